"""A heavy ball hits a wall of boxes."""

import numpy as np

from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.scenes.setup import Check, Setup
from gravel.shapes import Box, Plane, Sphere

BODIES, FEWEST = 200, 12
HALF = np.array([0.2, 0.1, 0.1])  # of a brick


def build(bodies, seed):
    rng = np.random.default_rng(seed)
    brick, iron = Material(density=1800, friction=0.6, name="brick"), Material(density=7800, friction=0.4, name="iron")
    scene = Scene()
    scene.add_body(Plane((0, 0, 1)), material=brick, fixed=True)
    bricks = bodies - 1
    columns = max(int(np.ceil(np.sqrt(bricks / 2))), 2)
    k = np.arange(bricks)
    row, column = k // columns, k % columns
    x = (column - 0.5 * (columns - 1) + 0.25 * (row % 2) - 0.125) * 2.02 * HALF[0]
    places = np.stack([x, np.zeros(bricks), HALF[2] * (2 * row + 1)], axis=1)
    scene.add_bodies(Box(HALF), places, brick)
    height = 2 * HALF[2] * (row.max() + 1)
    radius = 0.12 * height + 0.1
    start = (0.1 * rng.uniform(-1, 1), -2.0 - radius, max(0.5 * height, radius))
    ball = scene.add_body(Sphere(radius), start, iron, velocity=(0, 12.0, 0))
    mass = 7800 * 4 / 3 * np.pi * radius**3
    weights = np.append(np.full(bricks, 1800 * 8 * HALF.prod()), mass)
    heights = np.append(places[:, 2], start[2])
    energy = 0.5 * mass * 12.0**2 + 9.81 * np.sum(weights * heights)
    return Setup(scene, 1 / 500, 2.0, lambda s, r: check(s, r, ball, energy), options={"friction": "coulomb"})


def check(simulation, report, ball, energy):
    moving = simulation.movable
    x = simulation.positions[moving]
    bricks = moving.copy()
    bricks[ball] = False
    total = simulation.report.kinetic_energy + 9.81 * np.sum(simulation.masses[moving] * x[:, 2])
    shift = np.abs(simulation.positions[bricks, 1])
    return [
        Check("energy never rises", total < energy * 1.001, f"{total:.4g} J at the end, {energy:.4g} J at the start"),
        Check("nobody below the floor", x[:, 2].min() > 0.5 * HALF.min(), f"lowest centre at {x[:, 2].min():.3f} m"),
        Check("the wall breaks", shift.max() > 0.5, f"farthest brick moved {shift.max():.2f} m"),
        Check(
            "penetration",
            report.max_penetration < 0.5 * HALF.min(),
            f"worst {report.max_penetration:.3g} m, smallest half brick {HALF.min():g} m",
        ),
    ]
