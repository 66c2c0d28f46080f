"""More contacts than memory: space is cut into boxes, each detected on its own (paper 000, section 4.2: boxes, then bins).

Boxes are halved until what is found in one fits into the memory allowed. A body lies in every box that its bounding cube
reaches into. Two bodies that touch may so be found in several boxes; the pair counts in the one box that holds the lowest
corner of what their two cubes share, so nothing is counted twice and nothing is lost.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks, shapes
from gravel.contacts import ContactTable
from gravel.engine import Margin, Rules, make_engine
from gravel.scene import unit_quaternions
from gravel.state import MOVABLE

BODY_BYTES, CONTACT_BYTES, PAIR_BYTES = 700, 80, 8  # that detection holds of each, in double precision
MOST_BODIES = 100_000  # in a box: more make it no quicker


def count_contacts(
    shapes,
    positions: ArrayLike,
    quaternions: ArrayLike | None = None,
    margin: float = 0.0,
    memory: float = 2.0,
    threads: int | None = None,
) -> int:
    """How many contacts N bodies of one kind of shape have: what ``find_contacts`` would list, without the list.

    ``memory``: GB for what is found in one box of space, beside the arguments and some 20 bytes for each body. The smaller
    it is, the more boxes; any number of contacts can be counted.
    """
    total = 0
    for engine, _, low, high in _Work(shapes, positions, quaternions, margin, memory, threads).boxes():
        total += engine.count_contacts_in(low, high)
    return total


def contact_batches(
    shapes,
    positions: ArrayLike,
    quaternions: ArrayLike | None = None,
    margin: float = 0.0,
    memory: float = 2.0,
    threads: int | None = None,
) -> Iterator[ContactTable]:
    """The contacts that ``find_contacts`` would list, as an iterator over tables of some of them; each contact is in one."""
    return _tables(_Work(shapes, positions, quaternions, margin, memory, threads))


def _tables(work):
    for engine, bodies, low, high in work.boxes():
        table = engine.contacts_in(low, high)
        if len(table):
            table.body_a[:], table.body_b[:] = bodies[table.body_a], bodies[table.body_b]
            yield table


def _halves(engine, bodies, low, high, positions, radii, budget):
    """A box cut in two across the longest side of what lies in it."""
    x = positions[bodies[:: max(len(bodies) // 10000, 1)]]
    first, last = np.maximum(x.min(axis=0), low), np.minimum(x.max(axis=0), high)
    axis = int(np.argmax(last - first))
    at = float(np.median(x[:, axis]))
    if not first[axis] < at:
        at = 0.5 * (first[axis] + last[axis])
    left, right = engine.split(positions, radii, bodies, axis, at)
    if len(left) + len(right) > 1.9 * len(bodies):  # nearly all lie on both sides: cutting helps no more
        raise ValueError(f"memory must be larger than {budget / 1e9:g} GB: {len(bodies)} bodies overlap in one place")
    high_left, low_right = high.copy(), low.copy()
    high_left[axis] = low_right[axis] = at
    return (right, low_right, high), (left, low, high_left)


class _Work:
    """The bodies, and one engine with one table of bodies, filled anew for each box."""

    def __init__(self, shape, positions, quaternions, margin, memory, threads):
        if not isinstance(shape, shapes.Simple) or isinstance(shape, shapes.Plane):
            raise TypeError(f"shapes must be a Sphere, Ellipsoid, Capsule, Cylinder, Cone or Box, not {shape!r}")
        self.shape, self.positions = shape, checks.array("positions", positions, (None, 3), copy=False)
        self.count = n = len(self.positions)
        if shape.count is not None and shape.count != n:
            raise ValueError(f"shapes holds {shape.count} sizes, but positions has {n} rows")
        self.quaternions = None if quaternions is None else unit_quaternions(quaternions, n)
        self.margin = checks.number("margin", margin, minimum=0.0)
        self.budget = checks.number("memory", memory, above=0.0) * 1e9
        self.engine = make_engine(precision="double", broad_phase="grid", threads=threads)
        self.engine.set_rules(Rules(margin=Margin(self.margin, 0.0)))

    def boxes(self):
        """Find pairs box by box: yields (engine, ids of its bodies, low and high corner of the box)."""
        n, budget = self.count, self.budget
        reach = np.broadcast_to(self.shape.bounding_radii(1 if self.shape.count is None else n) + 0.5 * self.margin, n)
        everywhere = np.full(3, -math.inf), np.full(3, math.inf)
        boxes = [(np.arange(n, dtype=np.int32 if n < 2**31 else np.int64), *everywhere)] if n else []
        while boxes:
            bodies, low, high = boxes.pop()
            if len(bodies) <= MOST_BODIES and len(bodies) * BODY_BYTES <= budget and self.find_pairs(bodies):
                yield self.engine, bodies, low, high
            else:
                boxes.extend(_halves(self.engine, bodies, low, high, self.positions, reach, budget))

    def find_pairs(self, ids):
        """Fill the engine with these bodies, numbered anew, and list the pairs that may touch; False if they do not fit into the
        budget."""
        n = len(ids)
        extent = np.empty((n, 4))
        shape = self.shape.take(ids)
        extent[:, :3], extent[:, 3] = shape.rows(n), shape.bounding_radii(n)
        self.engine.refill(
            {
                "id": np.arange(n),
                "position": self.positions[ids],
                "quaternion": (1.0, 0.0, 0.0, 0.0) if self.quaternions is None else self.quaternions[ids],
                "inverse_mass": 1.0,
                "extent": extent,
                "tag": (self.shape.KIND, 0, 0, MOVABLE),
            }
        )
        fits = lambda pairs, room: n * BODY_BYTES + pairs * CONTACT_BYTES + room * PAIR_BYTES <= self.budget  # noqa: E731
        return self.engine.find_pairs_within(fits)
