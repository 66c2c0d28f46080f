"""An oedometer: grains in a rigid box are compressed from above, with the stress on lid and walls measured.

The lid's stress rises in steps. Grains are rigid, so the sample deforms only as they rearrange. The result is the ratio K0 of the
stress on the walls to that on the lid; Jaky's rule gives 1 - sin(phi) for sand.
"""

import numpy as np

from gravel.model.materials import Material
from gravel.model.servo import ServoWall, contact_force
from gravel.packing.pack import pack
from gravel.packing.regions import BoxRegion
from gravel.packing.sizes import UniformSizes
from gravel.scene import Scene
from gravel.scenes.setup import Check, Curve, Setup, box_walls, inside_check, mass_check, penetration_check, unfinished_check
from gravel.shapes import Plane, Sphere

BODIES, FEWEST = 1000, 100
RADIUS, LOOSE = 0.01, 0.5  # fraction at the start
LOADS = (2e3, 5e3, 1e4, 2e4)  # Pa
SETTLE, HOLD = 0.4, 0.15  # s until the first load, and at each


def build(bodies, seed):
    sand, smooth = Material(density=2600, friction=0.5, name="sand"), Material(density=2600, friction=0.0, name="smooth")
    sizes = UniformSizes(0.8 * RADIUS, RADIUS)
    half = 0.5 * np.cbrt(bodies * 4 / 3 * np.pi * sizes.mean_volume() / LOOSE)
    top = 2 * half
    grains = pack(Sphere, BoxRegion((-half, -half, 0), (half, half, top)), count=bodies, sizes=sizes, seed=seed)
    scene = Scene()
    floor = scene.add_body(Plane(), material=smooth, fixed=True)
    walls = box_walls(scene, half, half, smooth)
    grains.add_to(scene, sand)
    size = 2 * half - 0.1 * RADIUS
    lid = ServoWall(scene, (0, 0, top), (0, 0, -1), (size, size), stress=LOADS[0], area=4 * half**2, material=smooth, thickness=4 * RADIUS)
    run = Oedometer(lid, floor, walls, half, top)
    time = SETTLE + HOLD * len(LOADS)
    return Setup(scene, 1 / 2000, time, lambda s, r: run.check(s, r, bodies), [run], {"friction": "coulomb"}, run.curve)


class Oedometer:
    def __init__(self, lid, floor, walls, half, top):
        self.lid, self.floor, self.walls, self.half, self.top = lid, floor, walls, half, top
        self.curve = Curve("time s", "applied Pa", "strain -", "lid Pa", "floor Pa", "walls Pa")
        self.level, self.start = 0, None

    def __call__(self, simulation):
        level = int(np.clip((simulation.time - SETTLE) / HOLD + 1e-9, 0, len(LOADS) - 1))
        if level != self.level:
            self.level = level
            self.lid.set(simulation, stress=LOADS[level])
        if simulation.steps % 10:
            return
        height = self.top - self.lid.travel(simulation)
        if simulation.time >= SETTLE and self.start is None:
            self.start = height
        strain = 0.0 if self.start is None else 1.0 - height / self.start
        area = 2 * self.half * height
        sideways = sum(abs(contact_force(simulation, wall)[k // 2]) for k, wall in enumerate(self.walls)) / 4 / area
        below = -contact_force(simulation, self.floor)[2] / self.lid.area
        self.curve.add(simulation.time, LOADS[level], strain, self.lid.stress(simulation), below, sideways)

    def check(self, simulation, report, bodies):
        if not self.curve.is_long_enough("time", SETTLE + HOLD):
            return [mass_check(simulation, bodies + 1), unfinished_check(self.curve)]
        time, applied = self.curve["time"], self.curve["applied"]
        late = (time >= SETTLE) & ((time - SETTLE) % HOLD > 0.5 * HOLD)  # of each load, when all has come to rest
        lid, walls, floor = (self.curve[name][late] for name in ("lid", "walls", "floor"))
        grains = float(simulation.masses[simulation.movable].sum() - simulation.masses[self.lid.body])
        off, ratio = float(np.abs(np.mean(lid / applied[late]) - 1)), float(np.mean(walls / (0.5 * (lid + floor))))
        carried, strain = float(np.mean((floor - lid) * self.lid.area)) / (9.81 * grains), float(self.curve["strain"][-1])
        first, last = LOADS[0] / 1e3, LOADS[-1] / 1e3
        return [
            mass_check(simulation, bodies + 1),
            inside_check(simulation, report, (-self.half, -self.half, 0), (self.half, self.half, 2 * self.top), 0.1 * RADIUS),
            Check("the lid bears what it is given", off < 0.02, f"{100 * off:.2g} % off on average, allowed 2 %"),
            Check("the floor carries the grains besides", 0.7 < carried < 1.3, f"{carried:.2f} of their weight"),
            Check(
                "stress on walls over that on the lid",
                0.3 < ratio < 0.8,
                f"K0 = {ratio:.2f}; Jaky's rule for spheres, 20 to 25 degrees: 0.58 to 0.66",
            ),
            Check("grains are rigid", -0.002 < strain < 0.05, f"from {first:g} to {last:g} kPa by {100 * strain:.2g} %"),
            penetration_check(simulation, report, RADIUS, 0.05),
        ]
