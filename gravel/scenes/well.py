"""Spheres and boxes fall into a round well of bricks, laid ring upon ring (paper 004, Fig. 2).

The bricks are fixed boxes; each ring is rotated by half a brick relative to the one below. Half of the bodies are spheres, half are
boxes with three different edges.
"""

import numpy as np

from gravel.model.materials import Material
from gravel.rotations import from_rotation_vector
from gravel.scene import Scene
from gravel.scenes.setup import Check, Setup, lattice, mass_check, penetration_check, random_turns
from gravel.shapes import Box, Sphere

BODIES, FEWEST = 800, 100
RADIUS, SPACING = 0.05, 0.135  # of the spheres; of the bodies at the start, so that boxes turned at will do not touch
BRICK = np.array([0.05, 0.11, 0.055])  # half extents: across the wall, along it, upwards
SLENDER = 0.8  # height over width of the column that falls
FILL = 0.4  # height of the well over that of the column; at rest the bodies need a third of it


def build(bodies, seed):
    rng = np.random.default_rng(seed)
    densities = {"stone": 2500, "glass": 2400, "brick": 2000}
    stone, glass, brick = (Material(density=density, friction=0.4, name=name) for name, density in densities.items())
    width = max(np.cbrt(4 / np.pi * bodies * SPACING**3 / SLENDER), 4 * SPACING)  # of the column
    inner = 0.5 * width + 0.5 * SPACING  # from the axis to the bricks
    column = bodies * SPACING**3 / (0.25 * np.pi * width**2)
    scene = Scene()
    rim = add_well(scene, inner, FILL * column, brick)
    places = column_of(bodies, 0.5 * width, rim + SPACING, rng)
    spheres = rng.permutation(bodies) < bodies // 2
    scene.add_bodies(Sphere(RADIUS * rng.uniform(0.8, 1.15, spheres.sum())), places[spheres], glass)
    edges = RADIUS * rng.uniform((0.8, 0.6, 0.45), (1.0, 0.8, 0.65), (int((~spheres).sum()), 3))
    scene.add_bodies(Box(edges), places[~spheres], stone, quaternions=random_turns(len(edges), rng))
    fall = np.sqrt(2 * (rim + column) / 9.81)
    return Setup(scene, 1 / 1000, round(1.5 * fall + 1.0, 1), lambda s, r: check(s, r, inner, rim, bodies))


def add_well(scene, inner, height, material):
    """A floor at height 0 and rings of bricks at the distance ``inner`` from the axis, at least so high; returns the height of the rim."""
    sides = max(int(round(np.pi * inner / BRICK[1])), 6)
    rings = max(int(np.ceil(0.5 * height / BRICK[2])), 3)
    along = inner * np.tan(np.pi / sides)  # the inner edges of neighbours meet
    outer = inner + 2 * BRICK[0] + 0.5 * BRICK[1]
    scene.add_body(Box((outer, outer, BRICK[2])), (0, 0, -BRICK[2]), material, fixed=True)
    for ring in range(rings):
        angles = 2 * np.pi * (np.arange(sides) + 0.5 * (ring % 2)) / sides
        middle = (inner + BRICK[0]) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        places = np.column_stack([middle, np.full(sides, (2 * ring + 1) * BRICK[2])])
        turns = from_rotation_vector(angles[:, None] * (0, 0, 1))
        scene.add_bodies(Box((BRICK[0], along, BRICK[2])), places, material, quaternions=turns, fixed=True)
    return 2 * BRICK[2] * rings


def column_of(bodies, radius, low, rng):
    """(bodies, 3) places in a round column above ``low``."""
    places = lattice(2 * bodies + 100, (-radius, -radius, low), (radius, radius, 0), SPACING, 0.02 * RADIUS, rng)
    return places[np.hypot(places[:, 0], places[:, 1]) < radius][:bodies]


def check(simulation, report, inner, rim, bodies):
    move = simulation.movable
    x, mass = simulation.positions[move], simulation.masses[move]
    away, low, high = np.hypot(x[:, 0], x[:, 1]).max(), x[:, 2].min(), x[:, 2].max()
    speed = np.sqrt(np.mean(np.sum(simulation.velocities[move].astype(float) ** 2, axis=1)))
    carried = carried_by_well(simulation) / (9.81 * mass.sum())
    return [
        mass_check(simulation, bodies),
        Check("nobody outside", away < inner and low > 0, f"farthest centre {away:.3f} m from the axis, wall at {inner:.3f} m"),
        Check("all have come down", high < rim, f"highest centre at {high:.3f} m, rim at {rim:.3f} m"),
        Check("it rests", speed < 0.05, f"rms speed {1e3 * speed:.3g} mm/s, allowed 50"),
        Check("the well carries it", 0.95 < carried < 1.05, f"upward force of floor and bricks {carried:.3f} of the weight"),
        penetration_check(simulation, report, RADIUS, 0.3),
    ]


def carried_by_well(simulation):
    """The upward force of all fixed bodies, N."""
    table, move = simulation.contacts, simulation.movable
    from_a, from_b = ~move[table.body_a], ~move[table.body_b]
    return float((table.impulse[from_a, 2].sum() - table.impulse[from_b, 2].sum()) / simulation.dt)
