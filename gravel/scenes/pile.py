"""Spheres are dropped into a box, ten layers deep, and settle.

Solvers are measured on the settled pile: radius 0.05 m +- 20 %, friction 0.5, steps of 1/500 s.
"""

import numpy as np

from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.scenes.setup import Setup, box_walls, inside_check, lattice, penetration_check, rest_checks
from gravel.shapes import Plane, Sphere

BODIES, FEWEST = 1000, 10
RADIUS, LAYERS, SPACING, STAGGER = 0.05, 10, 0.125, 0.03


def build(bodies, seed):
    rng = np.random.default_rng(seed)
    stone = Material(density=2500, friction=0.5, name="stone")
    scene = Scene()
    side = max(int(np.ceil(np.sqrt(bodies / LAYERS))), 2)
    half = 0.5 * side * SPACING + STAGGER
    scene.add_body(Plane((0, 0, 1)), material=stone, fixed=True)
    box_walls(scene, half, half, stone)
    places = lattice(bodies, (-half, -half, 0.01), (half, half, 0), SPACING, 0.05 * RADIUS, rng)
    odd = np.round((places[:, 2] - places[0, 2]) / SPACING) % 2 == 1
    places[:, :2] += np.where(odd, STAGGER, -STAGGER)[:, None]  # columns would stand for a while before they fall
    scene.add_bodies(Sphere(RADIUS * rng.uniform(0.8, 1.2, bodies)), places, stone)
    return Setup(scene, 1 / 500, 3.0, lambda s, r: check(s, r, half))


def check(simulation, report, half):
    return [
        inside_check(simulation, report, (-half, -half, 0), (half, half, np.inf), 0.2 * RADIUS),
        penetration_check(simulation, report, RADIUS, 0.2),
        *rest_checks(simulation, 0, RADIUS),
    ]
