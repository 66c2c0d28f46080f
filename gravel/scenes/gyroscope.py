"""A spinning top on its tip precesses steadily under gravity."""

import numpy as np

from gravel.joints.kinds import Spherical
from gravel.rotations import from_rotation_vector, rotate
from gravel.scene import Scene
from gravel.scenes.setup import Check, Setup, joints_check, mechanical_energy
from gravel.shapes import Cylinder

BODIES = FEWEST = 1
RADIUS, HALF, MASS, ARM = 0.1, 0.02, 1.0, 0.15  # of the disc; from the tip to its middle
LEAN, SPIN = np.radians(40), 150.0  # from the vertical; rad/s about its own axis


def build(bodies, seed):
    scene = Scene()
    turn = from_rotation_vector((0, LEAN, 0))
    axis = rotate(turn, (0, 0, 1))
    rate = precession()
    spin = (SPIN - rate * np.cos(LEAN)) * axis + rate * np.array([0, 0, 1])
    place = ARM * axis
    options = {"quaternion": turn, "angular_velocity": spin, "velocity": np.cross(spin, place), "mass": MASS}
    top = scene.add_body(Cylinder(RADIUS, HALF), place, **options)
    scene.add_joint(Spherical(None, top, (0, 0, 0)))
    start = []
    note = lambda s: start.append(mechanical_energy(s)) if not start else None  # noqa: E731
    return Setup(scene, 2.5e-4, 3.0, lambda s, r: check(s, r, top, start[0]), [note], {"precision": "double"})


def precession():
    """The slower steady rate: I1 cos(lean) W^2 - I3 spin W + m g arm = 0, I1 about the tip, spin the whole turn about the axis."""
    i3 = 0.5 * MASS * RADIUS**2
    i1 = MASS * (RADIUS**2 / 4 + HALF**2 / 3) + MASS * ARM**2
    a, b, c = i1 * np.cos(LEAN), i3 * SPIN, MASS * 9.81 * ARM
    return (b - np.sqrt(b * b - 4 * a * c)) / (2 * a)


def check(simulation, report, top, start):
    x, y, z = simulation.positions[top]
    turned, exact = np.arctan2(y, x), precession() * simulation.time
    off = abs((turned - exact + np.pi) % (2 * np.pi) - np.pi) / exact
    lean = np.degrees(np.arccos(z / np.hypot(np.hypot(x, y), z)))
    drift = abs(mechanical_energy(simulation) - start) / start
    return [
        Check("precession", off < 1e-3, f"{precession():.5f} rad/s expected, off by {off:.1e} of the whole turn of {exact:.2f} rad"),
        Check("steady", abs(lean - np.degrees(LEAN)) < 0.05, f"leans {lean:.4f} degrees, {np.degrees(LEAN):.0f} at the start"),
        Check("energy", drift < 1e-5, f"off by {drift:.1e}"),
        joints_check(report, ARM, 1e-5),
    ]
