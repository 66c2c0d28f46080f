"""A settled pile of any size, in little time: one pile is settled and repeated side by side.

The scene ``pile`` has constant depth, so a pile that has come to rest fills a larger box as tiles; a few steps close the
seams.
"""

import functools
from typing import NamedTuple

import numpy as np

from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.scenes import build
from gravel.scenes.setup import box_walls
from gravel.shapes import Plane, Sphere
from gravel.simulation import Simulation
from gravel.solvers import GaussSeidel

TILE = 4000


def settled_pile(bodies, solver=None, steps=100, **options):
    """A ``Simulation`` of about ``bodies`` settled spheres; ``steps`` close the seams."""
    tile = settled_tile()
    repeats = max(int(round(np.sqrt(bodies / len(tile.places)))), 1)
    if bodies < len(tile.places):
        return _small(bodies, solver, options)
    scene = tiled_scene(tile, repeats, repeats)
    simulation = Simulation(scene, 1 / 500, solver or GaussSeidel(iterations=50, tolerance=0.0), **options)
    for _ in range(steps):
        simulation.step()
    return simulation


class Tile(NamedTuple):
    """A settled pile in a square box."""

    places: np.ndarray  # (n, 3) m
    radii: np.ndarray  # (n,) m
    side: float  # m, of the box


def tiled_scene(tile, x, y):
    """x times y tiles side by side in one box, around the origin."""
    side = tile.side
    shift = np.stack(np.meshgrid(np.arange(x), np.arange(y), [0], indexing="ij"), -1).reshape(-1, 1, 3) * [side, side, 0]
    places = (tile.places[None] + shift).reshape(-1, 3) - [0.5 * side * (x - 1), 0.5 * side * (y - 1), 0]
    stone = Material(density=2500, friction=0.5)
    scene = Scene()
    scene.add_body(Plane((0, 0, 1)), material=stone, fixed=True)
    box_walls(scene, 0.5 * side * x, 0.5 * side * y, stone)
    scene.add_bodies(Sphere(np.tile(tile.radii, x * y)), places, stone)
    return scene


def _small(bodies, solver, options):
    setup = build("pile", bodies)
    simulation = Simulation(setup.scene, setup.dt, solver or GaussSeidel(iterations=50, tolerance=0.0), **options)
    for _ in range(1000):
        simulation.step()
    return simulation


@functools.cache
def settled_tile(bodies=TILE, steps=1200):
    """A ``Tile`` of so many spheres, after so many steps."""
    setup = build("pile", bodies)
    simulation = Simulation(setup.scene, setup.dt, GaussSeidel(iterations=50, tolerance=0.0))
    for _ in range(steps):
        simulation.step()
    grains = simulation.movable
    return Tile(simulation.positions[grains].copy(), simulation.bodies.extent[grains, 0].copy(), 2 * float(-simulation.positions[1, 0]))
