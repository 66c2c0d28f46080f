"""What stands where in result files: names, types and numbers that those who write and those who read them share."""

import numpy as np

from gravel.io.blocks import ROOT, Form
from gravel.model.cell import Cell, Deformation
from gravel.shapes.kinds import NAMES

BODIES = f"{ROOT}/bodies"
POINT_DATA = {
    "id": ((), "i4"),
    "velocity": ((3,), "f4"),
    "angular_velocity": ((3,), "f4"),
    "radius": ((), "f4"),  # of the ball around the body
    "shape": ((), "i4"),
    "extent": ((3,), "f4"),
    "quaternion": ((4,), "f4"),
    "mass": ((), "f4"),  # kg; 0 of bodies that forces cannot move
    "inertia": ((3,), "f4"),  # kg m2, principal moments; 0 likewise
    "material": ((), "i4"),
    "movable": ((), "i4"),  # 0: fixed or with prescribed motion
    "geometry": ((), "i4"),  # number of its surface, or -1
}
RANK = {"rank": ((), "i4")}  # the process that wrote the body, in files of one of many
CONSTANT = ("id", "radius", "shape", "extent", "mass", "inertia", "material", "movable", "geometry")  # hardly ever change
PLACES = "f8"  # type of positions: single precision knows those a kilometre away to 0.1 mm only; versions up to 0.11 wrote "f4"
BODY_FORM = Form({"Vertices": 1}, POINT_DATA, CONSTANT, points=PLACES)
CIRCUMSTANCES = {  # of each frame
    "plane_count": ((), "i8"),
    "gravity": ((3,), "f8"),  # m/s2
    "cell": ((13,), "f8"),  # where space is periodic: ``cell_numbers``
    "frame_dt": ((), "f8"),  # s, length of the step before it
    "contact_lag": ((), "f8"),  # s: its contacts were found so long before it
}
VERSION = 6
ENDINGS = (".vtkhdf", ".hdf", ".h5")
SHAPES = tuple(name.upper() for name in NAMES)  # by their numbers
FRAME_BYTES, SPARE_BYTES = 132, 32_000_000  # room asked for: for each body of a frame, and for the chunks of all arrays
GEOMETRY_BYTES = 4000  # for the group of a geometry, beside its arrays
REPORT_FIELDS = (
    *("time", "contacts", "iterations", "residual", "residual_rms", "converged"),
    *("max_penetration", "kinetic_energy", "joint_violation"),
)
JOINT_FIELDS = ("slide", "slide_speed", "angle", "angle_speed", "force", "torque", "motor_force", "motor_torque", "violation", "broken")


# --- the periodic cell, as numbers
def cell_numbers(cell):
    """(13,) low and high corner (0 and 0 along axes that are open), tilt, the axes of its shear, rates of its lengths, shear rate."""
    if cell is None:
        return np.zeros(13)
    low, high = (np.where(cell.periodic, corner, 0.0) for corner in (cell.low, cell.high))
    direction, gradient = cell.to_values()["axes"]
    return np.array([*low, *high, cell.tilt, direction, gradient, *cell.rate, cell.shear_rate])


def cell_of(numbers):
    """The cell of ``cell_numbers``, as it was in its frame and goes on at its rates."""
    low, high, (tilt, direction, gradient), rate, shear_rate = np.split(numbers[:12], 4) + [float(numbers[12])]
    axes = ["xyz"[int(axis)] for axis in (direction, gradient)]
    law = Deformation(strain_rate=rate, shear_rate=shear_rate, direction=axes[0], gradient=axes[1])
    cell = Cell([(a, b) if a < b else None for a, b in zip(low, high)], law)
    cell.tilt = float(tilt)
    return cell
