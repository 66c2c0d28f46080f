"""Grains flow from a silo through its hopper (paper 000, Table 1)."""

import numpy as np

from gravel.model.materials import Material
from gravel.rotations import from_rotation_vector, multiply, rotate
from gravel.scene import Scene
from gravel.scenes.flow import Outflow
from gravel.scenes.setup import Check, Setup, lattice, penetration_check
from gravel.shapes import Box, Sphere

BODIES, FEWEST = 2000, 100
RADIUS, SPACING, SLOPE = 0.05, 0.115, np.radians(50)


def build(bodies, seed):
    rng = np.random.default_rng(seed)
    glass, steel = Material(density=2500, friction=0.3, name="glass"), Material(density=7800, friction=0.3, name="steel")
    scene = Scene()
    half = max(0.5 * SPACING * np.cbrt(bodies / 1.5), 6 * RADIUS)  # of the square shaft
    outlet = max(4 * RADIUS, half / 3)  # half of its width
    top = (half - outlet) * np.tan(SLOPE)  # of the hopper, whose outlet lies at height 0
    height = bodies * SPACING**3 / (2 * half - SPACING) ** 2 + top + 4 * SPACING
    thick = 2 * RADIUS
    length = 0.5 * np.hypot(half - outlet, top) + RADIUS
    for angle in 0.5 * np.pi * np.arange(4):
        turn = from_rotation_vector((0, 0, angle))
        wall = rotate(turn, (half + thick, 0, top + 0.5 * height))
        scene.add_body(Box((thick, half + 2 * thick, 0.5 * height)), wall, steel, quaternion=turn, fixed=True)
        tilt = from_rotation_vector(rotate(turn, (0, -SLOPE, 0)))
        middle = np.array([0.5 * (half + outlet), 0, 0.5 * top]) + thick * np.array([np.sin(SLOPE), 0, -np.cos(SLOPE)])
        both = multiply(tilt, turn)
        scene.add_body(Box((length, half + 2 * thick, thick)), rotate(turn, middle), steel, quaternion=both, fixed=True)
    inner = half - 0.5 * SPACING
    places = lattice(bodies, (-inner, -inner, top + RADIUS), (inner, inner, 0), SPACING, 0.04 * RADIUS, rng)
    grains = scene.add_bodies(Sphere(RADIUS * rng.uniform(0.9, 1.1, bodies)), places, glass)
    outflow = Outflow(grains, -1.0)
    return Setup(scene, 1 / 500, 2.0, lambda s, r: check(s, r, half, outlet, outflow, bodies), [(outflow, 0.01)])


def check(simulation, report, half, outlet, outflow, bodies):
    x = simulation.positions[simulation.movable]
    held = x[x[:, 2] > 0]
    reach = np.abs(held[:, :2]).max(initial=0.0)
    rate, expected = outflow.rate(), outflow.beverloo(2 * outlet, RADIUS, 2500)
    return [
        Check("no grain lost", len(x) + outflow.count == bodies, f"{len(x)} there, {outflow.count} flowed out, {bodies} at the start"),
        Check("nobody outside", reach < half, f"farthest centre {reach:.3f} m from the axis, wall at {half:.3f} m"),
        Check("flow rate sensible", 0.3 < rate / expected < 3.0, f"{rate:.3g} kg/s, Beverloo's law for a flat floor {expected:.3g} kg/s"),
        penetration_check(simulation, report, RADIUS, 0.5),
    ]
