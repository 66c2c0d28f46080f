"""Simple shear without walls: a periodic cell is sheared at constant rate under a constant normal stress.

Lees-Edwards boundaries drive the flow, so it is uniform over the height. The ratio of shear stress to normal stress is the friction of
the flowing material; for slow flows of spheres it lies between 0.2 and 0.45.
"""

import numpy as np

from gravel.measures import stress
from gravel.model.cell import Deformation
from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.scenes.setup import Check, Curve, Setup, mass_check, penetration_check, unfinished_check
from gravel.shapes import Sphere
from gravel.solvers import GaussSeidel

BODIES, FEWEST = 1000, 200
RADIUS, DENSITY = 0.01, 2600
STRESS, RATE = 1e4, 2.0  # Pa, 1/s
STRAIN, STEADY = 2.0, 1.0  # shear strain of the run, and from where on it is steady
TOLERANCE = 5e-3  # m/s: 5 % of what the stress gives a grain in a step, as by default of gravity
EVERY = 5  # steps between two samples


def build(bodies, seed):
    rng = np.random.default_rng(seed)
    count = round(np.cbrt(bodies))
    count = np.array([count, count, -(-bodies // count**2)])
    length = 2.1 * RADIUS * count
    cell = np.stack(np.meshgrid(*map(np.arange, count), indexing="ij"), axis=-1).reshape(-1, 3)[:bodies]
    flow = Deformation(shear_rate=RATE, stress=(None, None, STRESS), limit=5.0)
    scene = Scene(gravity=(0, 0, 0), periodic=[(0, x) for x in length], deformation=flow)
    places = (cell + 0.5) * 2.1 * RADIUS + rng.uniform(-0.04, 0.04, (bodies, 3)) * RADIUS
    velocities = np.zeros((bodies, 3))
    velocities[:, 0] = RATE * (places[:, 2] - 0.5 * length[2])
    sand = Material(DENSITY, friction=0.5, name="sand")
    scene.add_bodies(Sphere(RADIUS * rng.uniform(0.8, 1.0, bodies)), places, sand, velocities=velocities)
    run = Shear()
    options = {"friction": "coulomb", "solver": GaussSeidel(tolerance=TOLERANCE)}
    return Setup(scene, 1 / 2000, STRAIN / RATE, lambda s, r: run.check(s, r, bodies), [run], options, run.curve)


class Shear:
    def __init__(self):
        self.curve = Curve("strain -", "shear_stress Pa", "normal_stress Pa", "fraction -")
        self.heights, self.speeds = [], []

    def __call__(self, simulation):
        if simulation.steps % EVERY:
            return
        cell, tensor = simulation.cell, stress(simulation, kinetic=False)  # the flow is slow
        radii = simulation.bodies.extent[:, 0]
        self.curve.add(cell.shear_strain, -tensor[0, 2], tensor[2, 2], 4 / 3 * np.pi * (radii**3).sum() / cell.volume)
        if cell.shear_strain >= STEADY:
            self.heights.append((simulation.positions[:, 2] - cell.low[2]) / cell.lengths[2])
            self.speeds.append(simulation.velocities[:, 0] / (cell.shear_rate * cell.lengths[2]))

    def profile(self):
        """Speeds of five layers, against a linear profile from -1/2 to 1/2: the largest difference."""
        layer = np.minimum((np.concatenate(self.heights) * 5).astype(int), 4)
        speed = np.concatenate(self.speeds)
        mean = np.array([speed[layer == k].mean() for k in range(5)])
        return float(np.abs(mean - (np.arange(5) - 2) / 5).max())

    def check(self, simulation, report, bodies):
        if not self.curve.is_long_enough("strain", 0.5 * (STEADY + STRAIN)):
            return [mass_check(simulation, bodies), unfinished_check(self.curve)]
        steady = self.curve["strain"] >= STEADY
        shear, normal = (float(self.curve[name][steady].mean()) for name in ("shear_stress", "normal_stress"))
        fraction, off = float(self.curve["fraction"][steady].mean()), self.profile()
        return [
            mass_check(simulation, bodies),
            Check("normal stress", abs(normal / STRESS - 1) < 0.1, f"{normal / 1e3:.2f} kPa of {STRESS / 1e3:g} asked for"),
            Check("friction of the flow", 0.2 < shear / normal < 0.5, f"shear over normal stress {shear / normal:.3f}"),
            Check("packing", 0.54 < fraction < 0.64, f"fraction {fraction:.3f}"),
            Check("linear profile", off < 0.06, f"off by {100 * off:.1f} % of the speed across the cell, allowed 6 %"),
            penetration_check(simulation, report, RADIUS, 0.1),
        ]
