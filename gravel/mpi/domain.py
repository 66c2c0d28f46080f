"""Domains: how space is shared out among processes, so that each body belongs to exactly one.

A user gives a description (``Grid``, ``Hexagons``, ``Bisection``); from it and from where the bodies are comes a
``gravel.engine.Partition``, which all processes know. Subdomains are convex: boxes that a tree of cuts leaves, or the cells of
points that are nearest to a centre. The outermost reach to infinity, so that no body can leave.

The owner of a point is the same on every process: cuts are compared, never computed, and distances
from centres are computed by one formula.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gravel import checks
from gravel.engine import Partition


class Domain(Protocol):
    """How to share out space."""

    def cut(self, points: np.ndarray, weights: np.ndarray, processes: int) -> Partition:
        """The partition for bodies at ``points`` (n, 3) m that cost ``weights`` (n,) each."""


@dataclass(frozen=True)
class Grid:
    """x times y times z boxes of one size, between ``low`` and ``high`` (3,) m; None: as far as there are bodies that can move. The
    outer boxes go on outwards without end."""

    x: int
    y: int = 1
    z: int = 1
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None

    def __post_init__(self) -> None:
        for name in ("x", "y", "z"):
            checks.count(f"Grid {name}", getattr(self, name), minimum=1)
        for name in ("low", "high"):
            if getattr(self, name) is not None:
                checks.array(f"Grid {name}", getattr(self, name), (3,))

    def cut(self, points: np.ndarray, weights: np.ndarray, processes: int) -> Partition:
        """The partition for bodies at ``points`` (n, 3) m that cost ``weights`` (n,) each."""
        if self.x * self.y * self.z != processes:
            raise ValueError(f"Grid({self.x}, {self.y}, {self.z}) is for {self.x * self.y * self.z} processes, but there are {processes}")
        low, high = _extent(points)
        low = low if self.low is None else np.asarray(self.low, float)
        high = high if self.high is None else np.asarray(self.high, float)
        if not (low <= high).all():
            raise ValueError(f"Grid low must lie below high, but they are {low.tolist()} and {high.tolist()}")
        cuts = [low[axis] + (high - low)[axis] * np.arange(1, n) / n for axis, n in enumerate((self.x, self.y, self.z))]
        tree = _Tree()
        tree.halve_boxes([(0, self.x), (0, self.y), (0, self.z)], cuts, (self.x, self.y, self.z))
        return tree.partition()


@dataclass(frozen=True)
class Bisection:
    """Boxes with the same work each: space is cut in two where the bodies' cost is, along the longest side, and so on; for any number of
    processes. Cut anew when the slowest process took longer than the mean by the share ``balance`` over the last ``every`` steps (None:
    never)."""

    balance: float | None = 0.2
    every: int = 100

    def __post_init__(self) -> None:
        if self.balance is not None:
            checks.number("Bisection balance", self.balance, above=0.0)
        checks.count("Bisection every", self.every, minimum=1)

    def cut(self, points: np.ndarray, weights: np.ndarray, processes: int) -> Partition:
        """The partition for bodies at ``points`` (n, 3) m that cost ``weights`` (n,) each."""
        tree = _Tree()
        tree.halve_bodies(points, weights, 0, processes)
        return tree.partition()


@dataclass(frozen=True)
class Hexagons:
    """Hexagonal prisms along an ``axis`` ("x", "y" or "z"), ring around ring: at most six neighbours each (paper 004, Fig. 2). ``width``
    m, from side to side; None: so that they cover the bodies that can move."""

    width: float | None = None
    axis: str = "z"

    def __post_init__(self) -> None:
        if self.width is not None:
            checks.number("Hexagons width", self.width, above=0.0)
        checks.choice("Hexagons axis", self.axis, ("x", "y", "z"))

    def cut(self, points: np.ndarray, weights: np.ndarray, processes: int) -> Partition:
        """The partition for bodies at ``points`` (n, 3) m that cost ``weights`` (n,) each."""
        along = "xyz".index(self.axis)
        across = [k for k in range(3) if k != along]
        low, high = (ends[across] for ends in _extent(points))
        width = self.width
        if width is None:
            area = max(float(np.prod(np.maximum(high - low, 1e-9 + 1e-3 * (high - low).max()))), 1e-12)
            width = math.sqrt(2 / math.sqrt(3) * area / processes)
        centre = np.zeros((processes, 3))
        centre[:, across] = 0.5 * (low + high) + width * _rings(processes)
        plain = np.ones(3)
        plain[along] = 0.0
        return Partition(0, *_NO_TREE, centre, plain, np.zeros((0, 4)))


DOMAINS = Grid, Bisection, Hexagons
_NO_TREE = np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 2), np.int64)


class _Tree:
    """Cuts, in the order in which they are made."""

    def __init__(self):
        self.axis, self.cut, self.child = [], [], []

    def partition(self):
        child = np.array(self.child, np.int64).reshape(-1, 2)
        return Partition(0, np.array(self.axis, np.int64), np.array(self.cut, float), child, np.zeros((0, 3)), np.ones(3), np.zeros((0, 4)))

    def add(self, axis, cut):
        """One more cut, whose sides are still to be given; returns its number."""
        self.axis.append(axis)
        self.cut.append(cut)
        self.child.append([0, 0])
        return len(self.axis) - 1

    def halve_boxes(self, ranges, cuts, shape):
        """The boxes of a grid in these ranges of its axes; returns the number of their first cut, or -1 - the rank of the only one."""
        axis = int(np.argmax([last - first for first, last in ranges]))
        first, last = ranges[axis]
        if last - first == 1:
            (x, _), (y, _), (z, _) = ranges
            return -1 - ((x * shape[1] + y) * shape[2] + z)
        middle = (first + last) // 2
        number = self.add(axis, cuts[axis][middle - 1])
        for side, part in enumerate(((first, middle), (middle, last))):
            self.child[number][side] = self.halve_boxes([part if k == axis else old for k, old in enumerate(ranges)], cuts, shape)
        return number

    def halve_bodies(self, points, weights, first, last):
        """Parts for the processes first to last, of the cost that each shall have; returns what ``halve_boxes`` does."""
        if last - first == 1:
            return -1 - first
        middle = (first + last) // 2
        low, high = _extent(points)
        axis = int(np.argmax(high - low))
        order = np.argsort(points[:, axis], kind="stable")
        place, total = points[order, axis], np.cumsum(weights[order])
        cut = 0.0
        if len(place):
            k = int(np.searchsorted(total, total[-1] * (middle - first) / (last - first)))
            k = min(max(k, 0), len(place) - 1)
            cut = 0.5 * (place[k] + place[min(k + 1, len(place) - 1)])
        number, below = self.add(axis, cut), points[:, axis] < cut
        self.child[number][0] = self.halve_bodies(points[below], weights[below], first, middle)
        self.child[number][1] = self.halve_bodies(points[~below], weights[~below], middle, last)
        return number


def _extent(points):
    return (points.min(axis=0), points.max(axis=0)) if len(points) else (np.zeros(3), np.zeros(3))


def _rings(n):
    """(n, 2) centres of hexagons of width one, ring around ring, about the origin."""
    places, ring = [(0.0, 0.0)], 0
    corners = [(math.cos(math.pi / 3 * k), math.sin(math.pi / 3 * k)) for k in range(6)]
    while len(places) < n:
        ring += 1
        for k, (x, y) in enumerate(corners):
            tx, ty = corners[(k + 2) % 6]
            places += [(ring * x + step * tx, ring * y + step * ty) for step in range(ring)]
    return np.array(places[:n]) - np.mean(places[:n], axis=0)


# --- questions to a partition
def owners(partition: Partition, points: np.ndarray) -> np.ndarray:
    """(n,) rank of the process to whose part each point belongs."""
    if len(partition.centre):
        away = ((points[:, None] - partition.centre) * partition.plain) ** 2
        return np.argmin(away[..., 0] + away[..., 1] + away[..., 2], axis=1)
    if not len(partition.axis):
        return np.zeros(len(points), np.int64)
    node = np.zeros(len(points), np.int64)
    while (inner := node >= 0).any():
        at = node[inner]
        above = points[inner, partition.axis[at]] >= partition.cut[at]
        node[inner] = partition.child[at, above.astype(np.int64)]
    return -1 - node


def reached(partition: Partition, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which parts boxes from ``low`` to ``high`` (n, 3) reach: (box, rank), sorted by rank and box. Of prisms, those between whose sides a
    box reaches, and a few more at their corners."""
    boxes = np.arange(len(low))
    found = _reached_cells(partition, low, high) if len(partition.centre) else _reached_boxes(partition, low, high, boxes)
    box, rank = (np.concatenate(columns) for columns in zip(*found)) if found else (boxes[:0], boxes[:0])
    order = np.lexsort((box, rank))
    return box[order], rank[order]


def _reached_boxes(partition, low, high, boxes):
    found, waiting = [], [(0 if len(partition.axis) else -1, boxes)]
    while waiting:
        node, some = waiting.pop()
        if not len(some):
            continue
        if node < 0:
            found.append((some, np.full(len(some), -1 - node)))
            continue
        axis, cut = partition.axis[node], partition.cut[node]
        waiting += [(partition.child[node, 0], some[low[some, axis] < cut]), (partition.child[node, 1], some[high[some, axis] >= cut])]
    return found


def _reached_cells(partition, low, high):
    found, middle, half = [], 0.5 * (low + high), 0.5 * (high - low)
    for rank in range(len(partition.centre)):
        planes = half_spaces(partition, rank)
        nearest = middle @ planes[:, :3].T - half @ np.abs(planes[:, :3]).T  # of each box, along each normal
        some = np.flatnonzero((nearest <= planes[:, 3] + 1e-9 * np.abs(planes[:, 3])).all(axis=1))
        found.append((some, np.full(len(some), rank)))
    return found


def neighbours(partition: Partition, rank: int, distance: float, low: np.ndarray, high: np.ndarray, shifts: np.ndarray) -> set[int]:
    """Ranks of the processes whose parts come nearer than ``distance`` to that of ``rank``; some that do not may be among them. Space
    may repeat itself by ``shifts`` (k, 3); then it ends at ``low`` and ``high``."""
    if len(partition.centre):
        away = np.linalg.norm((partition.centre + shifts[:, None] - partition.centre[rank]) * partition.plain, axis=2).min(axis=0)
        width = np.sort(away)[1] if len(away) > 1 else 0.0
        return set(np.flatnonzero(away <= 2.0 * width + distance).tolist()) - {rank}
    low, high = low.copy(), high.copy()
    for *normal, offset in half_spaces(partition, rank):
        axis = int(np.argmax(np.abs(normal)))
        if normal[axis] > 0:
            high[axis] = min(high[axis], offset)
        else:
            low[axis] = max(low[axis], -offset)
    return set(reached(partition, low + shifts - distance, high + shifts + distance)[1].tolist()) - {rank}


def half_spaces(partition: Partition, rank: int) -> np.ndarray:
    """(f, 4) n and d of the half spaces n . x <= d that bound the part of a process."""
    if len(partition.centre):
        return _sides_of_cell(partition, rank)
    sides = []
    node = -1 - rank
    while (above := np.argwhere(partition.child == node)).size:
        node, side = above[0]
        plane = np.zeros(4)
        sign = 1.0 if side == 0 else -1.0
        plane[partition.axis[node]], plane[3] = sign, sign * partition.cut[node]
        sides.append(plane)
    return np.array(sides).reshape(-1, 4)


def _sides_of_cell(partition, rank):
    """Halfway to the other centres, as far as that cuts anything off what the nearer ones leave."""
    across = np.flatnonzero(partition.plain)
    here = partition.centre[rank]
    way = (partition.centre - here) * partition.plain
    distance = np.linalg.norm(way, axis=1)
    reach = 1e3 * max(distance.max(), 1.0)
    polygon = here[across] + reach * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    sides = []
    for other in np.argsort(distance, kind="stable")[1:]:
        normal = way[other] / distance[other]
        offset = float(normal @ (here + 0.5 * way[other]))
        clipped = _clipped(polygon, normal[across], offset)
        if clipped is not polygon:
            polygon = clipped
            sides.append([*normal, offset])
    return np.array(sides).reshape(-1, 4)


def _clipped(polygon, normal, offset):
    """The part of a convex polygon below a line; the polygon itself where that is all of it."""
    height = polygon @ normal - offset
    if (height <= 1e-12 * np.abs(polygon).max()).all():
        return polygon
    corners = []
    for k in range(len(polygon)):
        here, there = polygon[k], polygon[(k + 1) % len(polygon)]
        a, b = height[k], height[(k + 1) % len(polygon)]
        if a <= 0:
            corners.append(here)
        if (a < 0 < b) or (b < 0 < a):
            corners.append(here + a / (a - b) * (there - here))
    return np.array(corners).reshape(-1, 2)
