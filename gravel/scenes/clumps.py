"""Clumps, bodies of overlapping spheres that interlock, are dropped into a box (paper 000: spherical decomposition).

Three kinds in equal numbers: rods of three spheres, crosses of seven, and rings of eight, each in sizes from 0.8 to 1.2.
"""

import numpy as np

from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.scenes.setup import Setup, box_walls, inside_check, lattice, penetration_check, random_turns, rest_checks
from gravel.shapes import Plane
from gravel.shapes.compounds import Clump

BODIES, FEWEST = 600, 9
RADIUS, LAYERS, SPACING = 0.03, 8, 0.22


def rod():
    return np.array([(-1.2, 0, 0), (0, 0, 0), (1.2, 0, 0)]) * RADIUS


def cross():
    arms = 1.3 * RADIUS * np.eye(3)
    return np.concatenate([np.zeros((1, 3)), arms, -arms])


def ring():
    angles = 2 * np.pi * np.arange(8) / 8
    return 1.9 * RADIUS * np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)


def build(bodies, seed):
    rng = np.random.default_rng(seed)
    stone = Material(density=2500, friction=0.5, name="stone")
    scene = Scene()
    side = max(int(np.ceil(np.sqrt(bodies / LAYERS))), 2)
    half = 0.5 * side * SPACING
    floor = scene.add_body(Plane((0, 0, 1)), material=stone, fixed=True)
    box_walls(scene, half, half, stone)
    places = rng.permutation(lattice(bodies, (-half, -half, 0.01), (half, half, 0), SPACING, 0.1 * RADIUS, rng))
    for k, form in enumerate((rod, cross, ring)):
        mine = places[k::3]
        shape = Clump(form(), np.full(len(form()), RADIUS), scale=rng.uniform(0.8, 1.2, len(mine)))
        scene.add_bodies(shape, mine, stone, quaternions=random_turns(len(mine), rng))
    return Setup(scene, 1 / 500, 3.0, lambda s, r: check(s, r, half, floor))


def check(simulation, report, half, floor):
    return [
        inside_check(simulation, report, (-half, -half, 0), (half, half, np.inf), 0.2 * RADIUS),
        penetration_check(simulation, report, RADIUS, 0.25),
        *rest_checks(simulation, floor, 3 * RADIUS),
    ]
