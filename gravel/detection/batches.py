"""More contacts than memory: space is cut into boxes, each detected on its own (paper 000, section 4.2: boxes, then bins).

Boxes are halved until what is found in one fits into the memory allowed. A body lies in every box that its bounding cube
reaches into. Two bodies that touch may so be found in several boxes; the pair counts in the one box that holds the lowest
corner of what their two cubes share, so nothing is counted twice and nothing is lost.
"""

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks, shapes
from gravel.contacts import ContactTable
from gravel.engine import Margin, Rules, finest_precision, make_engine
from gravel.scene import unit_quaternions
from gravel.shapes import Shape
from gravel.state import MOVABLE

BODY_BYTES, CONTACT_BYTES, PAIR_BYTES = 700, 80, 8  # that detection holds of each, in double precision
MOST_BODIES = 100_000  # in a box: more make it no quicker


def count_contacts(
    shapes: Shape,
    positions: ArrayLike,
    quaternions: ArrayLike | None = None,
    margin: float = 0.0,
    memory: float = 2.0,
    threads: int | None = None,
    device: str | Sequence[str] = "cpu",
) -> int:
    """How many contacts N bodies of one kind of shape have: what ``find_contacts`` would list, without the list.

    ``positions`` (N, 3) m and ``quaternions`` (N, 4) as of ``find_contacts``, ``margin`` m. ``memory``: GB for what is found in one box
    of space, beside the arguments and some 20 bytes for each body. The smaller it is, the more boxes; any number of contacts can be
    counted. ``device``: as of ``Simulation``, or a list of devices that take the boxes in turns.
    """
    with _Work(shapes, positions, quaternions, margin, memory, threads, device) as work:
        return sum(number for _, number in work.each_box(lambda engine, low, high: engine.count_contacts_in(low, high)))


def contact_batches(
    shapes: Shape,
    positions: ArrayLike,
    quaternions: ArrayLike | None = None,
    margin: float = 0.0,
    memory: float = 2.0,
    threads: int | None = None,
    device: str | Sequence[str] = "cpu",
) -> Iterator[ContactTable]:
    """The contacts that ``find_contacts`` would list, as an iterator over tables of some of them; each contact is in one. ``memory`` and
    ``device`` as of ``count_contacts``."""
    return _tables(_Work(shapes, positions, quaternions, margin, memory, threads, device))


def _tables(work):
    with work:
        for bodies, table in work.each_box(lambda engine, low, high: engine.contacts_in(low, high)):
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
    """The bodies, and an engine of each device with one table of bodies, filled anew for each box."""

    def __init__(self, shape, positions, quaternions, margin, memory, threads, device):
        if not isinstance(shape, shapes.Simple) or isinstance(shape, shapes.Plane):
            *names, last = (solid.__name__ for solid in shapes.SOLIDS)
            raise TypeError(f"shapes must be a {', '.join(names)} or {last}, not {shape!r}")
        self.shape, self.positions = shape, checks.array("positions", positions, (None, 3), copy=False)
        self.count = n = len(self.positions)
        if shape.count is not None and shape.count != n:
            raise ValueError(f"shapes holds {shape.count} sizes, but positions has {n} rows")
        self.quaternions = None if quaternions is None else unit_quaternions(quaternions, n)
        self.margin = checks.number("margin", margin, minimum=0.0)
        self.budget = checks.number("memory", memory, above=0.0) * 1e9
        devices = [device] if isinstance(device, str) or not isinstance(device, Sequence) else list(device)
        if not devices:
            raise ValueError("device must name at least one, not an empty list")
        self.engines = [make_engine(name, finest_precision(name), "grid", threads) for name in devices]
        for engine in self.engines:
            engine.set_rules(Rules(margin=Margin(self.margin, 0.0)))
        self.pool = ThreadPoolExecutor(len(devices)) if len(devices) > 1 else None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.pool is not None:
            self.pool.shutdown()

    def each_box(self, work):
        """(ids of its bodies, work(engine, low, high)) box by box; several devices do as many at once, and come in the same order."""
        n, budget = self.count, self.budget
        reach = np.broadcast_to(self.shape.bounding_radii(1 if self.shape.count is None else n) + 0.5 * self.margin, n)
        everywhere = np.full(3, -math.inf), np.full(3, math.inf)
        boxes = [(np.arange(n, dtype=np.int32 if n < 2**31 else np.int64), *everywhere)] if n else []
        while boxes:
            wave = [boxes.pop() for _ in range(min(len(self.engines), len(boxes)))]
            for (bodies, low, high), done in zip(wave, self._at_once(work, wave)):
                if done is None:
                    boxes.extend(_halves(self.engines[0], bodies, low, high, self.positions, reach, budget))
                else:
                    yield bodies, done

    def _at_once(self, work, wave):
        """What the engines make of some boxes; None where one is too large."""
        if self.pool is None:
            return [self._try(work, self.engines[0], *wave[0])]
        jobs = [self.pool.submit(self._try, work, engine, *box) for engine, box in zip(self.engines, wave)]
        return [job.result() for job in jobs]

    def _try(self, work, engine, bodies, low, high):
        fits = len(bodies) <= MOST_BODIES and len(bodies) * BODY_BYTES <= self.budget
        return work(engine, low, high) if fits and self.find_pairs(engine, bodies) else None

    def find_pairs(self, engine, ids):
        """Fill the engine with these bodies, numbered anew, and list the pairs that may touch; False if they do not fit into the
        budget."""
        n = len(ids)
        extent = np.empty((n, 4))
        shape = self.shape.take(ids)
        extent[:, :3], extent[:, 3] = shape.rows(n), shape.bounding_radii(n)
        engine.refill(
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
        return engine.find_pairs_within(fits)
