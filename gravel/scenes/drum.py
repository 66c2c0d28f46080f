"""A rotating drum, a mesh, tumbles the grains inside.

The drum lies along y and is one third full. Friction lifts the grains until they roll down: the bed's surface keeps the dynamic angle
of repose. Grains of both halves are one sand in two colours, which shows how they mix.
"""

import numpy as np

from gravel.model.materials import Material
from gravel.model.motion import ConstantVelocity
from gravel.scene import Scene
from gravel.scenes.setup import Check, Setup, lattice, mass_check, penetration_check
from gravel.shapes import Sphere
from gravel.shapes.meshes import Mesh

BODIES, FEWEST = 2000, 100
RADIUS, SPACING, SIDES = 0.02, 0.046, 64
WIDTH = 8 * SPACING  # of the drum, m
FILL = 0.33  # of its volume
FROUDE = 0.05  # speed^2 / (g radius): the rolling regime


def drum_mesh(radius, width, sides):
    """Wall and two ends of a drum along y, a sheet that holds the grains inside."""
    angles = 2 * np.pi * np.arange(sides) / sides
    ring = np.stack([radius * np.cos(angles), 0 * angles, radius * np.sin(angles)], axis=1)
    front, back = ring - (0, width / 2, 0), ring + (0, width / 2, 0)
    vertices = np.concatenate([front, back, [(0, -width / 2, 0), (0, width / 2, 0)]])
    k, after = np.arange(sides), (np.arange(sides) + 1) % sides
    wall = np.concatenate([np.stack([k, after, sides + k], 1), np.stack([after, sides + after, sides + k], 1)])
    ends = np.concatenate(
        [np.stack([np.full(sides, 2 * sides), after, k], 1), np.stack([np.full(sides, 2 * sides + 1), sides + k, sides + after], 1)]
    )
    return Mesh(vertices, np.concatenate([wall, ends]), sheet=True)


def build(bodies, seed):
    rng = np.random.default_rng(seed)
    sands = [Material(density=2500, friction=0.6, rolling_friction=0.05 * RADIUS, name=f"{colour} sand") for colour in ("orange", "blue")]
    steel = Material(density=7800, friction=0.8, name="steel")
    scene = Scene()
    volume = bodies * SPACING**3
    radius = np.sqrt(volume / (FILL * np.pi * WIDTH))
    rate = np.sqrt(FROUDE * 9.81 / radius)
    drum = drum_mesh(radius, WIDTH, SIDES)
    body = scene.add_body(drum, (0, 0, 0), steel, motion=ConstantVelocity(angular_velocity=(0, rate, 0)))
    reach = radius - 2 * RADIUS
    places = lattice(8 * bodies, (-reach, -WIDTH / 2 + RADIUS, -reach), (reach, WIDTH / 2 - RADIUS, 0), SPACING, 0.02 * RADIUS, rng)
    places = places[np.hypot(places[:, 0], places[:, 2]) < reach][:bodies]
    radii, right = RADIUS * rng.uniform(0.9, 1.1, len(places)), places[:, 0] > 0
    for half, sand in zip((~right, right), sands):
        scene.add_bodies(Sphere(radii[half]), places[half], sand)
    time = max(3.0, 0.4 * 2 * np.pi / rate)
    return Setup(scene, 1 / 1000, round(time, 1), lambda s, r: check(s, r, radius, len(places), body))


def surface_angle(places):
    """Angle of the bed's free surface in the plane across the axis, degrees: a line through the topmost grains."""
    x, z = places[:, 0], places[:, 2]
    columns = np.digitize(x, np.linspace(np.quantile(x, 0.15), np.quantile(x, 0.85), 13))
    tops = [(x[columns == k].mean(), np.quantile(z[columns == k], 0.97)) for k in range(1, 13) if np.count_nonzero(columns == k) > 5]
    if len(tops) < 4:
        return 0.0
    slope = np.polyfit(*np.array(tops).T, 1)[0]
    return float(np.degrees(np.arctan(slope)))


def check(simulation, report, radius, grains, body):
    x = simulation.positions[simulation.movable]
    reach, ends = np.hypot(x[:, 0], x[:, 2]).max(), np.abs(x[:, 1]).max()
    angle = abs(surface_angle(x))
    return [
        mass_check(simulation, grains),
        Check(
            "nobody outside",
            reach < radius and ends < WIDTH / 2,
            f"farthest centre {reach:.3f} m from the axis, wall at {radius:.3f} m; {ends:.3f} m from the middle, ends at {WIDTH / 2:.3f} m",
        ),
        Check("dynamic angle of repose", 15 < angle < 55, f"the surface is inclined by {angle:.1f} degrees"),
        penetration_check(simulation, report, RADIUS, 0.3),
    ]
