"""A direct shear box: its upper half slides over the lower one, under a lid with constant stress.

The ratio of the shear force to the force on the lid is the friction of the material along the plane between the halves.
"""

import numpy as np

from gravel.model.materials import Material
from gravel.model.motion import ConstantVelocity
from gravel.model.servo import ServoWall, contact_force
from gravel.scene import Scene
from gravel.scenes.setup import Check, Curve, Setup, mass_check, penetration_check, staggered, unfinished_check
from gravel.shapes import Box, Plane, Sphere
from gravel.solvers import GaussSeidel

BODIES, FEWEST = 1200, 300
RADIUS = 0.01
STRESS = 1e4  # Pa, on the lid
PRESS, WAY, SPEED = 0.4, 0.03, 0.05  # s until it moves, m, m/s
TOLERANCE = 5e-3  # m/s: 5 % of what the stress gives a grain in a step, as by default of gravity
EVERY = 10  # steps between two samples
WALLS = 1  # their group: they pass through each other
THICK = 3 * RADIUS  # of the walls


def build(bodies, seed):
    rng = np.random.default_rng(seed)
    sand = Material(density=2600, friction=0.5, name="sand")
    half = max(1.25 * RADIUS * np.cbrt(bodies), 6 * RADIUS)  # wider than high
    scene = Scene()
    scene.ignore(WALLS, WALLS)
    floor = scene.add_body(Plane(), material=sand, fixed=True, group=WALLS)
    places = staggered(bodies, half, half, RADIUS, rng)
    scene.add_bodies(Sphere(RADIUS * rng.uniform(0.8, 1.0, bodies)), places, sand)
    top = places[:, 2].max() + 1.1 * RADIUS
    middle = 0.45 * bodies * (2 * 0.9 * RADIUS) ** 3 / (2 * half) ** 2  # about half of its height when it lies dense
    lower = frame(scene, half, 0.0, middle, sand, fixed=True)
    later = ConstantVelocity()  # it stands still at first
    upper = frame(scene, half, middle, top + 2 * RADIUS, sand, motion=later)
    size = 2 * half - 0.2 * RADIUS
    options = {"material": sand, "group": WALLS, "thickness": 2 * RADIUS, "on": upper[0], "stress": STRESS, "area": 4 * half**2}
    lid = ServoWall(scene, (0, 0, top), (0, 0, -1), (size, size), **options)
    run = ShearBox(lid, upper, lower, floor, half, top)
    options = {"friction": "coulomb", "solver": GaussSeidel(tolerance=TOLERANCE)}
    return Setup(scene, 1 / 2000, PRESS + WAY / SPEED, lambda s, r: run.check(s, r, bodies), [run], options, run.curve)


def frame(scene, half, low, high, material, **options):
    """Four walls around a square; returns their ids."""
    reach, height = half + 2 * THICK, 0.5 * (high - low)
    bodies = []
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        size = (0.5 * THICK, reach, height) if x else (reach, 0.5 * THICK, height)
        place = (x * (half + 0.5 * THICK), y * (half + 0.5 * THICK), low + height)
        bodies.append(scene.add_body(Box(size), place, material, group=WALLS, **options))
    return bodies


class ShearBox:
    def __init__(self, lid, upper, lower, floor, half, top):
        self.lid, self.upper, self.lower, self.half, self.top = lid, upper, [*lower, floor], half, top
        self.curve = Curve("way m", "shear_stress Pa", "normal_stress Pa", "lid_height m")
        self.moving = False

    def __call__(self, simulation):
        if not self.moving and simulation.time >= PRESS - 0.5 * simulation.dt:
            self.moving = True
            for wall in self.upper:
                simulation.set_motion(wall, ConstantVelocity(velocity=(SPEED, 0, 0)))
        if self.moving and simulation.steps % EVERY == 0:
            pushed = contact_force(simulation, self.lower)
            area = 2 * self.half * (2 * self.half - SPEED * (simulation.time - PRESS))  # of the plane that both halves share
            self.curve.add(SPEED * (simulation.time - PRESS), pushed[0] / area, -pushed[2] / area, self.top - self.lid.travel(simulation))

    def check(self, simulation, report, bodies):
        if not self.curve.is_long_enough("way", 0.5 * WAY):
            return [mass_check(simulation, bodies + 1), unfinished_check(self.curve)]
        way, shear, normal = (self.curve[name] for name in ("way", "shear_stress", "normal_stress"))
        late = way > 0.3 * WAY
        friction = float(shear[late].mean() / normal[late].mean())
        angle = np.degrees(np.arctan(friction))
        rise = float(self.curve["lid_height"][-1] - self.curve["lid_height"].min())
        return [
            mass_check(simulation, bodies + 1),
            Check("friction along the plane", 0.25 < friction < 0.9, f"shear over normal stress {friction:.2f}, {angle:.0f} degrees"),
            Check("it takes force from the start", bool(shear[late].min() > 0), f"at least {shear[late].min() / 1e3:.2f} kPa"),
            Check("the lid rises", rise > 0, f"by {rise / RADIUS:.2f} radii from its lowest"),
            penetration_check(simulation, report, RADIUS, 0.1),
        ]
