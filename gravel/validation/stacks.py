"""Stacks, walls and pyramids: stable structures stand still."""

import numpy as np

from gravel.model.materials import Material
from gravel.shapes import Box, Cylinder
from gravel.validation.case import Curve, Outcome, case, largest
from gravel.validation.running import on_floor, record, simulate

STEP = 1 / 500  # s
CLAY = Material(density=2000, friction=0.5)


def pile(*parts, material=CLAY):
    """A simulation of bodies on a floor, bodies 1 and on; ``parts``: shapes, each with the places of its bodies."""
    scene = on_floor(material)
    for shape, places in parts:
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
    """Ten boxes of 0.2 m, exactly one on top of the other, for 10 s, in steps of 1/500 s. They are in equilibrium, so nothing moves.
    The bound is a hundredth of a millimetre."""
    return rests({"boxes": drift(pile((Box((0.1, 0.1, 0.1)), tower())), 10.0)}, 0.01)


@case("Towers for a minute", slow=True)
def towers() -> Outcome:
    """Ten boxes of 0.2 m, and ten cylinders as high and wide, each exactly on top of the other, for 60 s, in steps of 1/500 s. Nothing
    moves; the bound is a hundredth of a millimetre."""
    shapes = {"boxes": Box((0.1, 0.1, 0.1)), "cylinders": Cylinder(0.1, half_length=0.1)}
    return rests({name: drift(pile((shape, tower())), 60.0) for name, shape in shapes.items()}, 0.01)


def brick_wall(rows=10, columns=10, half=(0.1, 0.05, 0.03)):
    """Bricks in bond and their places: every other row begins and ends with half a brick, so that no brick overhangs."""
    a, b, c = half
    heights = [c + 2 * c * row for row in range(rows)]
    whole = [(2 * a * (k + 0.5 * (row % 2)), 0, z) for row, z in enumerate(heights) for k in range(columns - row % 2)]
    ends = [(x, 0, z) for z in heights[1::2] for x in (-a / 2, 2 * a * (columns - 1) + a / 2)]
    return (Box((a, b, c)), whole), (Box((a / 2, b, c)), ends)


def pyramid(rows=10, half=0.1):
    """Places of boxes: each stands on two, a tenth of a box apart; 55 of ten rows."""
    return [(2.2 * half * (k - 0.5 * (rows - 1 - row)), 0, half + 2 * half * row) for row in range(rows) for k in range(rows - row)]


@case("Wall and pyramid", slow=True, only="defaults")
def wall_and_pyramid() -> Outcome:
    """A wall of 10 rows of 10 bricks in bond, with half a brick at both ends of every other row, and a pyramid of 55 boxes, for 60 s,
    in steps of 1/500 s. Each body is supported on both sides of its centre. So an equilibrium exists and they stand; the bound is a
    tenth of a millimetre in a minute. Statics does not determine the loads, so their distribution is not compared."""
    piles = {"wall": brick_wall(), "pyramid": [(Box((0.1, 0.1, 0.1)), pyramid())]}
    return rests({name: drift(pile(*parts), 60.0) for name, parts in piles.items()}, 0.1)
