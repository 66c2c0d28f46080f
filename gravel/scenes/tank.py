"""A tank of grains is shaken sideways, with a light ball floating on top (paper 000, Fig. 29)."""

import numpy as np

from gravel.model.materials import Material
from gravel.model.motion import Oscillation
from gravel.scene import Scene
from gravel.scenes.setup import Check, Setup, box_walls, lattice, mass_check, penetration_check
from gravel.shapes import Plane, Sphere

BODIES, FEWEST = 4000, 200
RADIUS, LAYERS, SPACING = 0.05, 12, 0.12
AMPLITUDE, FREQUENCY = 0.05, 1.5


def build(bodies, seed):
    rng = np.random.default_rng(seed)
    sand, wood = Material(density=2000, friction=0.3, name="sand"), Material(density=200, friction=0.3, name="wood")
    scene = Scene()
    side = max(int(np.ceil(np.sqrt(bodies / LAYERS))), 4)
    half = 0.5 * side * SPACING
    shake = Oscillation((AMPLITUDE, 0, 0), FREQUENCY)
    scene.add_body(Plane((0, 0, 1)), material=sand, motion=shake)
    box_walls(scene, half, half, sand, motion=shake)
    grains = bodies - 1
    places = lattice(grains, (-half, -half, 0.01), (half, half, 0), SPACING, 0.1 * RADIUS, rng)
    ball_radius = min(0.5 * half, 8 * RADIUS)
    scene.add_bodies(Sphere(RADIUS * rng.uniform(0.9, 1.1, grains)), places, sand)
    ball = scene.add_body(Sphere(ball_radius), (0, 0, places[:, 2].max() + SPACING + ball_radius), wood)
    return Setup(scene, 1 / 500, 4.0, lambda s, r: check(s, r, half, ball, ball_radius, bodies))


def check(simulation, report, half, ball, ball_radius, bodies):
    grains = simulation.movable.copy()
    grains[ball] = False
    x = simulation.positions[grains]
    shift = simulation.positions[1, 0] + half
    away = np.abs(x[:, :2] - [shift, 0]).max() - half
    surface = np.quantile(x[:, 2], 0.95)
    z = simulation.positions[ball, 2]
    return [
        mass_check(simulation, bodies),
        Check(
            "nobody outside",
            away < 0.2 * RADIUS and x[:, 2].min() > -0.2 * RADIUS,
            f"nearest centre {away:.3g} m beyond a wall (negative: inside)",
        ),
        Check(
            "the light ball floats",
            z > surface - 0.5 * ball_radius,
            f"ball centre at {z:.3f} m, grains' surface at {surface:.3f} m, radius {ball_radius:.3f} m",
        ),
        penetration_check(simulation, report, RADIUS, 0.5),
    ]
