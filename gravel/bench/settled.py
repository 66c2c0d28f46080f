"""A settled pile of any size, in little time: one pile is settled and repeated side by side.

The scene ``pile`` has constant depth, so a pile that has come to rest fills a larger box as tiles; a few steps close the
seams.
"""

import functools

import numpy as np

from gravel.materials import Material
from gravel.scene import Scene
from gravel.scenes import build
from gravel.scenes.setup import box_walls
from gravel.shapes import Plane, Sphere
from gravel.simulation import Simulation
from gravel.solvers import GaussSeidel

TILE = 4000


def settled_pile(bodies, solver=None, steps=100, **options):
    """A ``Simulation`` of about ``bodies`` settled spheres; ``steps`` close the seams."""
    x, radii, side = _tile()
    repeats = max(int(round(np.sqrt(bodies / len(x)))), 1)
    if bodies < len(x):
        return _small(bodies, solver, options)
    shift = np.stack(np.meshgrid(np.arange(repeats), np.arange(repeats), [0], indexing="ij"), -1).reshape(-1, 1, 3) * [side, side, 0]
    places = (x[None] + shift).reshape(-1, 3) - [0.5 * side * (repeats - 1), 0.5 * side * (repeats - 1), 0]
    stone = Material(density=2500, friction=0.5)
    scene = Scene()
    scene.add_body(Plane((0, 0, 1)), material=stone, fixed=True)
    box_walls(scene, 0.5 * side * repeats, 0.5 * side * repeats, stone)
    scene.add_bodies(Sphere(np.tile(radii, repeats**2)), places, stone)
    simulation = Simulation(scene, 1 / 500, solver or GaussSeidel(iterations=50, tolerance=0.0), **options)
    for _ in range(steps):
        simulation.step()
    return simulation


def _small(bodies, solver, options):
    setup = build("pile", bodies)
    simulation = Simulation(setup.scene, setup.dt, solver or GaussSeidel(iterations=50, tolerance=0.0), **options)
    for _ in range(1000):
        simulation.step()
    return simulation


@functools.cache
def _tile():
    """Places, radii and width of a settled pile."""
    setup = build("pile", TILE)
    simulation = Simulation(setup.scene, setup.dt, GaussSeidel(iterations=50, tolerance=0.0))
    for _ in range(1200):
        simulation.step()
    grains = simulation.movable
    return simulation.positions[grains].copy(), simulation.bodies.extent[grains, 0].copy(), 2 * float(-simulation.positions[1, 0])
