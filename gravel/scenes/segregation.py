"""A motor shakes a box with two sieves that sort steel balls of three sizes (paper 001, Fig. 2).

A crank and a rod drive the box back and forth along an inclined slide. The upper sieve retains the large balls, the lower one the
medium ones; the small ones fall into the tray below.
"""

import numpy as np

from gravel.joints.drives import SpeedMotor
from gravel.joints.kinds import Prismatic, Revolute
from gravel.model.materials import Material
from gravel.rotations import from_rotation_vector
from gravel.scene import Scene
from gravel.scenes.setup import Check, Setup, joints_check, lattice
from gravel.shapes import Box, Sphere
from gravel.shapes.compounds import Compound

BODIES, FEWEST = 1500, 150
RADII = np.array([0.006, 0.010, 0.015])  # m, small to large
SLOTS = (0.016, 0.025)  # m, clear width between the bars of the lower and the upper sieve
BAR = 0.004  # half width of a bar
LEVELS = (0.10, 0.20)  # m, heights of the sieves above the tray
WALL, TOP = 0.005, 0.42  # half thickness of the walls, height of the box
CRANK, ROD, TURNS = 0.010, 0.15, 9.0  # m, m, turns per second
SLANT = np.radians(35)  # of the slide, from level
TIME = 4.0
SLIDE = 0  # the slide is the first joint


def sieve_box(half):
    """Four walls, a tray and two sieves of bars along y, as one body; ``half`` extents of the inside in x and y."""
    items = [(Box((half[0], half[1], WALL)), (0, 0, -WALL))]
    for sign in (-1, 1):
        items.append((Box((WALL, half[1] + 2 * WALL, 0.5 * TOP + WALL)), (sign * (half[0] + WALL), 0, 0.5 * TOP - WALL)))
        items.append((Box((half[0], WALL, 0.5 * TOP + WALL)), (0, sign * (half[1] + WALL), 0.5 * TOP - WALL)))
    for level, slot in zip(LEVELS, SLOTS):
        count = int(np.floor(2 * half[0] / (slot + 2 * BAR)))
        # as many slots as fit; what is left over widens the bars, never the slots
        width = (2 * half[0] - (count + 1) * slot) / (2 * count)
        for k in range(count):
            x = -half[0] + (k + 1) * slot + (2 * k + 1) * width
            items.append((Box((width, half[1], BAR)), (x, 0, level)))
    return Compound(items)


def build(bodies, seed):
    rng = np.random.default_rng(seed)
    steel, frame = Material(density=7800, friction=0.2, restitution=0.0, name="steel"), Material(density=2700, friction=0.2, name="frame")
    scene = Scene()
    side = 0.5 * np.sqrt(bodies * 4.5e-4)  # about two layers of balls
    half = np.array([side, side])
    box = scene.add_body(sieve_box(half), (0, 0, 0), frame, mass=30.0)
    motor = add_drive(scene, box, half)
    sizes = rng.permutation(np.arange(bodies) % 3)
    spacing = 2.02 * RADII[-1]
    places = lattice(bodies, (-half[0], -half[1], LEVELS[1] + BAR), (half[0], half[1], 0), spacing, 0.01 * RADII[-1], rng)
    balls = scene.add_bodies(Sphere(RADII[sizes] * rng.uniform(0.97, 1.0, bodies)), places, steel)
    return Setup(scene, 1e-3, TIME, lambda s, r: check(s, r, balls, sizes, motor))


def add_drive(scene, box, half):
    """Crank, rod and slide; returns the motor's joint. The box slides along a slanted line, pushed at its wall."""
    along = np.array([np.cos(SLANT), 0, np.sin(SLANT)])
    steel = Material(density=7800, name="drive")
    pin = np.array([half[0] + 2 * WALL + 0.03, 0, 0.5 * TOP])
    end = pin + ROD * along
    axle = end + CRANK * along
    turn = from_rotation_vector((0, -SLANT, 0))
    rod = scene.add_body(Box((0.5 * ROD, 0.006, 0.006)), 0.5 * (pin + end), steel, quaternion=turn)
    crank = scene.add_body(Box((0.5 * CRANK + 0.01, 0.006, 0.01)), 0.5 * (end + axle), steel, quaternion=turn)
    scene.add_joint(Prismatic(None, box, (0, 0, 0), along))
    scene.add_joint(Revolute(box, rod, pin, (0, 1, 0)))
    scene.add_joint(Revolute(rod, crank, end, (0, 1, 0)))
    speed = lambda time: 2 * np.pi * TURNS * min(time / 0.5, 1.0)  # noqa: E731
    return scene.add_joint(Revolute(None, crank, axle, (0, 1, 0), motor=SpeedMotor(speed)))


def shares(simulation, balls, sizes):
    """(3, 3) share of each size (small to large) in the tray, on the lower and on the upper sieve."""
    height = simulation.positions[balls][:, 2] - tray_height(simulation)
    place = np.digitize(height, LEVELS)
    return np.array([[np.mean(place[sizes == size] == level) for level in range(3)] for size in range(3)])


def tray_height(simulation):
    """Of the tray's floor, m: the box slides without turning."""
    return simulation.joints.slide[SLIDE] * np.sin(SLANT)


def check(simulation, report, balls, sizes, motor):
    found = shares(simulation, balls, sizes)
    names = ("small", "middle", "large")
    words = "; ".join(f"{n} {100 * a:.0f}/{100 * b:.0f}/{100 * c:.0f} %" for n, (a, b, c) in zip(names, found))
    mean = [simulation.positions[balls[sizes == k]][:, 2].mean() - tray_height(simulation) for k in range(3)]
    turns = simulation.joints.angle[motor] / (2 * np.pi)
    inside = simulation.positions[balls][:, 2] > tray_height(simulation) - 0.02
    return [
        Check("sorted", bool((np.diag(found) > (0.9, 0.7, 0.99)).all()), f"in tray / on lower / on upper sieve: {words}"),
        Check("small ones end below", mean[0] < mean[1] < mean[2], f"mean heights {mean[0]:.3f}, {mean[1]:.3f}, {mean[2]:.3f} m"),
        Check("the motor turns", abs(turns - TURNS * (simulation.time - 0.25)) < 0.1, f"{turns:.2f} turns"),
        Check("no ball lost", bool(inside.all()), f"{int((~inside).sum())} of {len(balls)} outside"),
        joints_check(report, ROD, 1e-3),
    ]
