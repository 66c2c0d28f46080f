"""A round tank of constant depth is filled; then a hole opens in its floor (paper 000, section 5.2, Table 3)."""

import numpy as np

from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.scenes.flow import Outflow
from gravel.scenes.setup import Check, Setup, lattice, penetration_check, prism_walls
from gravel.shapes import Box, Sphere

BODIES, FEWEST = 3000, 200
RADIUS, LAYERS, SPACING = 0.05, 14, 0.115
OPENS, DROP = 1.0, 1.0


def build(bodies, seed):
    rng = np.random.default_rng(seed)
    sand = Material(density=2000, friction=0.4, name="sand")
    scene = Scene()
    inner = SPACING * np.sqrt(bodies / LAYERS / np.pi)  # distance from axis to wall
    tank = inner + SPACING
    hole = 4 * RADIUS
    prism_walls(scene, 16, tank, sand)
    depth, wide = 0.1, 2 * tank
    floor = (
        (hole + wide / 2, 0, wide / 2, wide),
        (-hole - wide / 2, 0, wide / 2, wide),
        (0, hole + wide / 2, hole, wide / 2),
        (0, -hole - wide / 2, hole, wide / 2),
    )
    for x, y, half_x, half_y in floor:
        scene.add_body(Box((half_x, half_y, depth)), (x, y, -depth), sand, fixed=True)
    plug = scene.add_body(Box((hole, hole, depth)), (0, 0, -depth), sand, fixed=True)
    square = lattice(4 * bodies, (-inner, -inner, 0.01), (inner, inner, 0), SPACING, 0.04 * RADIUS, rng)
    places = square[np.hypot(square[:, 0], square[:, 1]) < inner][:bodies]
    grains = scene.add_bodies(Sphere(RADIUS * rng.uniform(0.9, 1.1, len(places))), places, sand)
    outflow = Outflow(grains, -DROP)

    def open_hole(simulation):
        if simulation.alive[plug] and simulation.time >= OPENS:
            simulation.remove(plug)

    return Setup(scene, 1 / 500, 3.0, lambda s, r: check(s, r, tank, hole, outflow, len(grains)), [open_hole, (outflow, 0.01)])


def check(simulation, report, tank, hole, outflow, grains):
    x = simulation.positions[simulation.movable]
    reach = np.hypot(x[:, 0], x[:, 1]).max(initial=0.0)
    rate, expected = outflow.rate(), outflow.beverloo(2 * hole, RADIUS, 2000)
    return [
        Check("no grain lost", len(x) + outflow.count == grains, f"{len(x)} there, {outflow.count} drained, {grains} at the start"),
        Check("nobody outside", reach < tank / np.cos(np.pi / 16), f"farthest centre {reach:.3f} m from the axis, wall at {tank:.3f} m"),
        Check("flow rate sensible", 0.3 < rate / expected < 2.0, f"{rate:.3g} kg/s, Beverloo's law {expected:.3g} kg/s"),
        penetration_check(simulation, report, RADIUS, 0.5),
    ]
