"""Rocks tumble down onto a height field and come to rest in its valleys.

The rocks are convex hulls of random points in five forms and many sizes; the hills are a sum of a few waves, meshed by triangles.
"""

import numpy as np

from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.scenes.setup import Check, Setup, lattice, penetration_check, random_turns
from gravel.shapes import Sphere
from gravel.shapes.meshes import HeightField
from gravel.shapes.polyhedra import ConvexHull

BODIES, FEWEST = 400, 10
RADIUS, SPACING, FORMS, LAYERS = 0.08, 0.24, 5, 3


def height(x, y):
    """The land, m: hills between a rim that keeps the rocks in."""
    return 0.18 * np.sin(1.9 * x + 0.4) * np.cos(1.5 * y) + 0.08 * np.sin(4.1 * x - 2.3 * y)


def build(bodies, seed):
    rng = np.random.default_rng(seed)
    stone = Material(density=2600, friction=0.7, rolling_friction=0.02, name="stone")
    scene = Scene()
    side = max(int(np.ceil(np.sqrt(bodies / LAYERS))), 3)
    half = 0.5 * side * SPACING
    edge = half + 1.2
    rim = lambda x, y: 2.0 * np.clip(np.maximum(np.abs(x), np.abs(y)) - half - 0.3, 0, None) ** 1.5  # noqa: E731
    land = lambda x, y: height(x, y) + rim(x, y)  # noqa: E731
    grid = np.linspace(-edge, edge, max(int(2 * edge / 0.06), 2) + 1)
    field = HeightField(land(*np.meshgrid(grid, grid, indexing="ij")), grid[1] - grid[0])
    ground = scene.add_body(field, (0, 0, 0), stone, fixed=True)
    places = lattice(bodies, (-half, -half, 0.45), (half, half, 0), SPACING, 0.1 * RADIUS, rng)
    mine = rng.integers(0, FORMS, bodies)
    for form in range(FORMS):
        points = rng.normal(size=(24, 3)) * rng.uniform(0.7, 1.3, 3)
        points *= 1.25 * RADIUS / np.linalg.norm(points, axis=1).max()
        chosen = places[mine == form]
        if len(chosen):
            shape = ConvexHull(points, scale=rng.uniform(0.5, 1.1, len(chosen)))
            scene.add_bodies(shape, chosen, stone, quaternions=random_turns(len(chosen), rng))
    balls = lattice(max(bodies // 20, 1), (-half, -half, 1.3), (half, half, 0), 3 * SPACING, RADIUS, rng)
    scene.add_bodies(Sphere(0.6 * RADIUS), balls, stone)
    return Setup(scene, 1 / 500, 3.0, lambda s, r: check(s, r, land, ground))


def check(simulation, report, land, ground):
    x = simulation.positions[simulation.movable]
    above = x[:, 2] - land(x[:, 0], x[:, 1])
    speed = np.sqrt(np.mean(np.sum(simulation.velocities[simulation.movable].astype(float) ** 2, axis=1)))
    touching = simulation.contacts
    return [
        Check("nobody below ground", above.min() > 0, f"lowest centre {above.min():.3f} m above the ground"),
        Check("it comes to rest", speed < 0.1, f"rms speed {speed:.3g} m/s, allowed 0.1"),
        Check(
            "the ground carries them",
            np.count_nonzero((touching.body_a == ground) | (touching.body_b == ground)) > 0,
            f"{len(touching)} contacts, {np.count_nonzero((touching.body_a == ground) | (touching.body_b == ground))} with the ground",
        ),
        penetration_check(simulation, report, RADIUS, 0.5),
    ]
