"""Stacks, walls and pyramids: what must stand, stands still."""

import numpy as np

from gravel.materials import Material
from gravel.shapes import Box, Cylinder
from gravel.validation.case import Curve, Outcome, case, largest
from gravel.validation.running import on_floor, record, simulate

STEP = 1 / 500  # s
CLAY = Material(density=2000, friction=0.5)


def pile(shape, places, material=CLAY):
    """A simulation of bodies on a floor, bodies 1 and on."""
    scene = on_floor(material)
    scene.add_bodies(shape, places, material)
    return simulate(scene, STEP)


def drift(sim, seconds):
    """Times, and how far the body that has moved most is from where it began, mm."""
    begun = sim.positions[1:].copy()
    return record(sim, seconds, lambda sim: 1e3 * np.linalg.norm(sim.positions[1:] - begun, axis=1).max(), every=round(0.2 / sim.dt))


def rests(curves, bound, at_defaults=None):
    """The outcome of piles that must not move at all."""
    curves = [Curve(label, times, np.zeros(len(times)), found) for label, (times, found) in curves.items()]
    return largest("time, s", "largest way of a body, mm", curves, 1.0, "mm", bound, at_defaults)


def tower(count=10, half=0.1):
    return [(0, 0, half + 2 * half * k) for k in range(count)]


@case("Ten boxes stacked")
def ten_boxes() -> Outcome:
    """Ten boxes of 0.2 m, exactly one on top of the other, for 10 s, in steps of 1/500 s: at rest they are in balance, so nothing moves.
    A hundredth of a millimetre is allowed."""
    return rests({"boxes": drift(pile(Box((0.1, 0.1, 0.1)), tower()), 10.0)}, 0.01)


@case("Towers for a minute", slow=True)
def towers() -> Outcome:
    """Ten boxes of 0.2 m, and ten cylinders as high and wide, each exactly on top of the other, for 60 s, in steps of 1/500 s: nothing
    moves. A hundredth of a millimetre is allowed."""
    shapes = {"boxes": Box((0.1, 0.1, 0.1)), "cylinders": Cylinder(0.1, half_length=0.1)}
    return rests({name: drift(pile(shape, tower()), 60.0) for name, shape in shapes.items()}, 0.01)


def bricks(rows=10, columns=10, half=(0.1, 0.05, 0.03)):
    """Places of bricks in bond: each row is half a brick ahead of the one below or behind it."""
    a, _, c = half
    return [(2 * a * (k + 0.5 * (row % 2)), 0, c + 2 * c * row) for row in range(rows) for k in range(columns)]


def pyramid(rows=10, half=0.1):
    """Places of boxes: each stands on two, a tenth of a box apart; 55 of ten rows."""
    return [(2.2 * half * (k - 0.5 * (rows - 1 - row)), 0, half + 2 * half * row) for row in range(rows) for k in range(rows - row)]


@case("Wall and pyramid", slow=True, only="defaults")
def wall_and_pyramid() -> Outcome:
    """A wall of 10 by 10 bricks in bond, and a pyramid of 55 boxes, for 60 s, in steps of 1/500 s. Every brick has two below it or stands
    on the floor, with its centre between them: there are loads in balance, so they stand, and a tenth of a millimetre in a minute is
    allowed. Loads are not determined by statics, so how they are shared is not looked at."""
    piles = {"wall": (Box((0.1, 0.05, 0.03)), bricks()), "pyramid": (Box((0.1, 0.1, 0.1)), pyramid())}
    return rests({name: drift(pile(shape, places), 60.0) for name, (shape, places) in piles.items()}, 0.1)
