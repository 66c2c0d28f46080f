"""A triaxial test: grains between six smooth plates, at constant lateral stress and compressed from above.

First all plates apply the same stress. Then the upper one moves down at constant speed while the others keep their stress. The axial
stress rises to a peak, which gives the angle of friction; the volume first decreases a little, then grows (Reynolds' dilatancy).
"""

import numpy as np

from gravel.model.materials import Material
from gravel.model.servo import ServoWall, friction_angle
from gravel.packing.pack import pack
from gravel.packing.regions import BoxRegion
from gravel.packing.sizes import UniformSizes
from gravel.scene import Scene
from gravel.scenes.setup import Check, Curve, Setup, mass_check, penetration_check, unfinished_check
from gravel.shapes import Plane, Sphere
from gravel.solvers import GaussSeidel

BODIES, FEWEST = 1000, 500
RADIUS, FRICTION, LOOSE = 0.01, 0.5, 0.5  # the last: fraction at the start
STRESS = 1e4  # Pa, from the sides
PRESS, STRAIN, RATE = 0.4, 0.1, 0.25  # s of pressing alike, axial strain of the test, 1/s
PRESSED = 0.4  # friction until the test begins: it decides how dense the sample is
RAMP, GENTLE = 0.3, 0.02  # s until that stress is reached, and the share of it at the start
TOLERANCE = 5e-3  # m/s: 5 % of what the stress gives a grain in a step, as by default of gravity
WALLS = 1  # their group: they pass through each other
EVERY = 10  # steps between two samples


def build(bodies, seed, friction=FRICTION):
    sand, smooth = Material(density=2600, friction=friction, name="sand"), Material(density=2600, friction=0.0, name="smooth")
    sizes = UniformSizes(0.8 * RADIUS, RADIUS)
    half = np.cbrt(bodies * 4 / 3 * np.pi * sizes.mean_volume() / LOOSE / 16)
    top = 4 * half  # twice as high as wide
    grains = pack(Sphere, BoxRegion((-half, -half, 0), (half, half, top)), count=bodies, sizes=sizes, seed=seed)
    scene = Scene(gravity=(0, 0, 0))
    scene.ignore(WALLS, WALLS)
    scene.add_body(Plane(), material=smooth, fixed=True, group=WALLS)
    ids = grains.add_to(scene, sand)
    common = {"material": smooth, "group": WALLS, "thickness": 4 * RADIUS, "stress": GENTLE * STRESS}
    plates = [
        ServoWall(scene, (-sign * half * np.eye(3)[axis] + (0, 0, 0.5 * top)), sign * np.eye(3)[axis], size, **common)
        for axis, size in ((0, (3 * half, 2 * top)), (1, (2 * top, 3 * half)))
        for sign in (1, -1)
    ]
    plates.append(ServoWall(scene, (0, 0, top), (0, 0, -1), (3 * half, 3 * half), **common))
    scene.set_pair(sand, sand, friction=PRESSED)
    run = Triaxial(plates, half, top, int(ids[0]))
    time = PRESS + STRAIN / RATE
    options = {"friction": "coulomb", "solver": GaussSeidel(tolerance=TOLERANCE)}
    return Setup(scene, 1 / 2000, time, lambda s, r: run.check(s, r, bodies), [run], options, run.curve)


class Triaxial:
    """Keeps the stresses as the sample's faces change, and takes down what it measures."""

    def __init__(self, plates, half, top, grain):
        self.plates, self.half, self.top, self.grain = plates, half, top, grain
        self.curve = Curve("strain -", "volume_strain -", "axial Pa", "lateral Pa", "friction_angle deg")
        self.start = None  # height and volume at the beginning of the test

    def size(self, simulation):
        """(3,) m, of the sample."""
        travel = simulation.joints.slide[[plate.joint for plate in self.plates]]
        return np.array([2 * self.half - travel[0] - travel[1], 2 * self.half - travel[2] - travel[3], self.top - travel[4]])

    def __call__(self, simulation):
        if simulation.steps % EVERY:
            return
        size = self.size(simulation)
        areas = size.prod() / size[[0, 0, 1, 1, 2]]
        if self.start is None and simulation.time >= PRESS:
            self.start = size
            self.plates[4].set(simulation, speed=RATE * size[2])
            sand = simulation.material_of(self.grain)
            simulation.set_pair(sand, sand, friction=sand.friction)
        stress = STRESS * min(max(simulation.time / RAMP, GENTLE), 1.0)
        for plate, area in zip(self.plates[: 4 if self.start is not None else 5], areas):
            plate.set(simulation, stress=stress, area=area)
        self.plates[4].area = areas[4]
        if self.start is not None:
            stress = [plate.stress(simulation) for plate in self.plates]
            strains = 1 - size[2] / self.start[2], size.prod() / self.start.prod() - 1
            lateral = float(np.mean(stress[:4]))
            self.curve.add(*strains, stress[4], lateral, friction_angle(stress[4], lateral))

    def smooth(self, name):
        """A column, averaged over one percent of strain."""
        width = max(int(0.01 / (RATE * EVERY / 2000)), 1)
        return np.convolve(self.curve[name], np.ones(width) / width, "valid")

    def check(self, simulation, report, bodies):
        if not self.curve.is_long_enough("strain", 0.5 * STRAIN):
            return [mass_check(simulation, bodies + len(self.plates)), unfinished_check(self.curve)]
        angle, volume, lateral = (self.smooth(name) for name in ("friction_angle", "volume_strain", "lateral"))
        peak, lowest = float(angle.max()), float(self.curve["volume_strain"].min())
        off = float(np.abs(lateral / STRESS - 1).max())
        return [
            mass_check(simulation, bodies + len(self.plates)),
            Check("stress from the sides", off < 0.05, f"within {100 * off:.2g} % of {STRESS / 1e3:g} kPa, allowed 5 %"),
            Check("peak angle of friction", 20 < peak < 45, f"{peak:.1f} degrees"),
            Check(
                "it shrinks, then grows",
                bool(lowest < 0 and volume[-1] > lowest + 0.002),
                f"{100 * lowest:.2f} % at the smallest, {100 * volume[-1]:+.2f} % at the end",
            ),
            penetration_check(simulation, report, RADIUS, 0.05),
        ]
