"""More contacts than memory: space is cut into boxes, each detected on its own (paper 000, section 4.2: boxes, then bins).

Boxes are halved until what is found in one fits into the memory allowed. A body lies in every box that its bounding cube
reaches into. Two bodies that touch may so be found in several boxes; the pair counts in the one box that holds the lowest
corner of what their two cubes share, so nothing is counted twice and nothing is lost.
"""

import math

import numpy as np

from gravel import checks, shapes
from gravel.contacts import ContactTable, checked_threads, detection_rules
from gravel.cpu.collide.boxes import count_owned, lower_bound, split_bodies
from gravel.cpu.engine import Engine
from gravel.cpu.threads import use_threads
from gravel.scene import unit_quaternions
from gravel.shapes.geometry import NONE
from gravel.state import MOVABLE, Bodies

BODY_BYTES, CONTACT_BYTES, PAIR_BYTES = 700, 80, 8  # that detection holds of each, in double precision
MOST_BODIES = 100_000  # in a box: more make it no quicker


def count_contacts(shapes, positions, quaternions=None, margin=0.0, memory=2.0, threads=None):
    """How many contacts N bodies of one kind of shape have: what ``find_contacts`` would list, without the list.

    ``memory``: GB for what is found in one box of space, beside the arguments and some 20 bytes for each body. The smaller
    it is, the more boxes; any number of contacts can be counted.
    """
    total = 0
    for engine, _, low, high in _Work(shapes, positions, quaternions, margin, memory, threads).detections():
        total += int(count_owned(engine.contacts, engine.arranged.reach, low, high))
    return total


def contact_batches(shapes, positions, quaternions=None, margin=0.0, memory=2.0, threads=None):
    """The contacts that ``find_contacts`` would list, as an iterator over tables of some of them; each contact is in one."""
    return _tables(_Work(shapes, positions, quaternions, margin, memory, threads))


def _tables(work):
    for engine, bodies, low, high in work.detections():
        table = ContactTable.of_detection(engine)
        reach = np.empty((len(bodies), 4))
        reach[engine.order] = engine.arranged.reach
        corner = np.maximum(_lower(reach[table.body_a]), _lower(reach[table.body_b]))
        table = table[np.all((corner >= low) & (corner < high), axis=1)]
        if len(table):
            table.body_a[:], table.body_b[:] = bodies[table.body_a], bodies[table.body_b]
            yield table


def _lower(reach):
    return lower_bound.py_func(reach[:, :3], reach[:, 3:])


def _halves(bodies, low, high, positions, radii, budget):
    """A box cut in two across the longest side of what lies in it."""
    x = positions[bodies[:: max(len(bodies) // 10000, 1)]]
    first, last = np.maximum(x.min(axis=0), low), np.minimum(x.max(axis=0), high)
    axis = int(np.argmax(last - first))
    at = float(np.median(x[:, axis]))
    if not first[axis] < at:
        at = 0.5 * (first[axis] + last[axis])
    left, right = split_bodies(positions, radii, bodies, axis, at)
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
        self.threads = checked_threads(threads)
        self.engine, self.bodies, self.rules = Engine(np.float64, "grid"), Bodies(), detection_rules(self.margin)

    def detections(self):
        """Run detection box by box: yields (engine, ids of its bodies, low and high corner of the box)."""
        n, budget = self.count, self.budget
        reach = np.broadcast_to(self.shape.bounding_radii(1 if self.shape.count is None else n) + 0.5 * self.margin, n)
        everywhere = np.full(3, -math.inf), np.full(3, math.inf)
        boxes = [(np.arange(n, dtype=np.int32 if n < 2**31 else np.int64), *everywhere)] if n else []
        while boxes:
            bodies, low, high = boxes.pop()
            use_threads(self.threads)  # the caller may have run something else in between
            if len(bodies) <= MOST_BODIES and len(bodies) * BODY_BYTES <= budget and self.find_pairs(bodies):
                self.engine.find_contacts()
                yield self.engine, bodies, low, high
            else:
                boxes.extend(_halves(bodies, low, high, self.positions, reach, budget))

    def find_pairs(self, ids):
        """Fill the table with these bodies and list the pairs that may touch; False if they do not fit into the budget."""
        n = len(ids)
        extent = np.empty((n, 4))
        shape = self.shape.take(ids)
        extent[:, :3], extent[:, 3] = shape.rows(n), shape.bounding_radii(n)
        still = (1.0, 0.0, 0.0, 0.0)
        block = {
            "position": self.positions[ids],
            "quaternion": np.broadcast_to(still, (n, 4)) if self.quaternions is None else self.quaternions[ids],
            "velocity": np.broadcast_to(0.0, (n, 8)),
            "inverse_mass": np.broadcast_to(1.0, (n, 4)),
            "extent": extent,
            "tag": np.broadcast_to((self.shape.KIND, 0, 0, MOVABLE), (n, 4)),
            "geometry": np.broadcast_to(NONE, n),
        }
        self.bodies.count = 0
        self.bodies.append(block)
        self.engine.find_bounds(self.bodies, self.rules)
        self.engine.sort_bodies()
        return self.engine.list_pairs(lambda pairs, room: n * BODY_BYTES + pairs * CONTACT_BYTES + room * PAIR_BYTES <= self.budget)
