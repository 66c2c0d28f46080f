"""A rotating blade mixes two granular materials (paper 000, Fig. 30)."""

import numpy as np

from gravel.model.materials import Material
from gravel.model.motion import ConstantVelocity
from gravel.scene import Scene
from gravel.scenes.setup import Check, Setup, lattice, mass_check, penetration_check, prism_walls
from gravel.shapes import Box, Plane, Sphere

BODIES, FEWEST = 4000, 200
RADIUS, LAYERS, SPACING, TURNS = 0.05, 12, 0.115, 0.5  # turns per second


def build(bodies, seed):
    rng = np.random.default_rng(seed)
    light, heavy = Material(density=1500, friction=0.4, name="light"), Material(density=3000, friction=0.4, name="heavy")
    scene = Scene()
    inner = SPACING * np.sqrt(bodies / LAYERS / np.pi) + 0.5 * SPACING
    tank = inner + SPACING
    scene.add_body(Plane((0, 0, 1)), material=heavy, fixed=True)
    prism_walls(scene, 16, tank, heavy)
    height = 0.25 * LAYERS * SPACING
    blade = ConstantVelocity(angular_velocity=(0, 0, 2 * np.pi * TURNS))
    scene.add_body(Box((tank - 3 * RADIUS, 0.6 * RADIUS, height)), (0, 0, height + 2.6 * RADIUS), heavy, motion=blade)
    square = lattice(6 * bodies, (-inner, -inner, 0.01), (inner, inner, 0), SPACING, 0.05 * RADIUS, rng)
    free = (np.hypot(square[:, 0], square[:, 1]) < inner) & (
        (np.abs(square[:, 1]) > 2.2 * RADIUS) | (square[:, 2] > 2 * height + 5 * RADIUS)
    )
    places = square[free][:bodies]
    left = places[:, 0] < 0
    radii = RADIUS * rng.uniform(0.9, 1.1, len(places))
    light_grains = scene.add_bodies(Sphere(radii[left]), places[left], light)
    heavy_grains = scene.add_bodies(Sphere(radii[~left]), places[~left], heavy)
    before = mixing(places[left], places[~left], tank)
    return Setup(scene, 1 / 500, 4.0, lambda s, r: check(s, r, tank, light_grains, heavy_grains, before))


def mixing(one, other, tank):
    """Lacey's index over cubes of five grain diameters: 0 apart, 1 mixed at random."""
    width = 10 * RADIUS
    cells = lambda x: [tuple(c) for c in np.floor(x / width).astype(int)]  # noqa: E731
    counts = {}
    for k, places in enumerate((one, other)):
        for cell in cells(places):
            counts.setdefault(cell, [0, 0])[k] += 1
    table = np.array([c for c in counts.values() if sum(c) >= 20], float)
    if len(table) < 2:
        return 0.0
    total, share = table.sum(axis=1), table[:, 0] / table.sum(axis=1)
    mean = np.average(share, weights=total)
    variance, apart, random = np.average((share - mean) ** 2, weights=total), mean * (1 - mean), mean * (1 - mean) / total.mean()
    return float((apart - variance) / (apart - random))


def check(simulation, report, tank, light_grains, heavy_grains, before):
    x = simulation.positions
    after = mixing(x[light_grains], x[heavy_grains], tank)
    reach = np.hypot(x[simulation.movable, 0], x[simulation.movable, 1]).max()
    return [
        mass_check(simulation, len(light_grains) + len(heavy_grains)),
        Check("nobody outside", reach < tank / np.cos(np.pi / 16), f"farthest centre {reach:.3f} m from the axis, wall at {tank:.3f} m"),
        Check("it mixes", after > before + 0.1, f"Lacey's index from {before:.2f} to {after:.2f}"),
        penetration_check(simulation, report, RADIUS, 0.8),
    ]
