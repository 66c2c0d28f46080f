"""Ellipsoids of many proportions are dropped into a box and settle (paper 002).

Radii are 0.05 m times a factor from 0.6 to 1.4, drawn for each axis; friction 0.5, steps of 1/500 s.
"""

import numpy as np

from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.scenes.setup import Setup, box_walls, inside_check, lattice, penetration_check, random_turns, rest_checks
from gravel.shapes import Ellipsoid, Plane

BODIES, FEWEST = 1000, 10
RADIUS, LAYERS, SPACING = 0.05, 10, 0.15


def build(bodies, seed):
    rng = np.random.default_rng(seed)
    stone = Material(density=2500, friction=0.5, name="stone")
    scene = Scene()
    side = max(int(np.ceil(np.sqrt(bodies / LAYERS))), 2)
    half = 0.5 * side * SPACING
    floor = scene.add_body(Plane((0, 0, 1)), material=stone, fixed=True)
    box_walls(scene, half, half, stone)
    places = lattice(bodies, (-half, -half, 0.01), (half, half, 0), SPACING, 0.05 * RADIUS, rng)
    radii = RADIUS * rng.uniform(0.6, 1.4, (bodies, 3))
    scene.add_bodies(Ellipsoid(radii), places, stone, quaternions=random_turns(bodies, rng))
    return Setup(scene, 1 / 500, 3.0, lambda s, r: check(s, r, half, floor))


def check(simulation, report, half, floor):
    return [
        inside_check(simulation, report, (-half, -half, 0), (half, half, np.inf), 0.2 * RADIUS),
        penetration_check(simulation, report, RADIUS, 0.2),
        *rest_checks(simulation, floor, RADIUS),
    ]
