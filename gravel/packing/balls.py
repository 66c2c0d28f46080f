"""Compiled work on many balls: who is near whom, how they push each other apart, and whether there is room for one more.

Balls lie in cells, on a level of cells for each power of two of their size, so that a ball looks into at most 27 cells of a level
whatever the sizes of the others are. Axes may be periodic: distances are then those to the nearest image. All of it runs on one
thread, in an order that the balls' numbers alone decide. Nothing here is imported before balls are packed (``import gravel`` loads
no compiler).
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from gravel.kernel_cache import install

install()
EMPTY = -1
INNER = {"nogil": True, "error_model": "numpy", "cache": True}


class Cells(NamedTuple):
    """Balls by cells. Level l has ``counts[l]`` cells from ``low`` on, of size ``widths[l]``; its first is number ``first[l]``."""

    low: np.ndarray  # (3,) m
    lengths: np.ndarray  # (3,) m, of periodic axes; 0: not periodic
    level: np.ndarray  # (n,) of each ball
    counts: np.ndarray  # (levels, 3)
    widths: np.ndarray  # (levels, 3) m
    first: np.ndarray  # (levels,)
    head: np.ndarray  # (cells,) the ball that was put last into each cell
    next: np.ndarray  # (n,) the ball that was put there before


def cells_for(radii, low, high, periodic, skin=0.0):
    """Empty cells for balls of these radii between ``low`` and ``high``; balls nearer than ``skin`` count as near."""
    low, span = np.asarray(low, float), np.asarray(high, float) - low
    level = np.floor(np.log2(radii / radii.min()) + 1e-9).astype(np.int64)
    counts, widths = [], []
    for k in range(level.max() + 1):
        here = radii[level == k]
        least = 2 * here.max(initial=radii.min() * 2**k) + skin
        most = max(4.0, 2 * len(here)) ** (1 / 3) * span / span.max() * (span.max() ** 3 / span.prod()) ** (1 / 3)
        counts.append(np.maximum(np.minimum(np.floor(span / least), np.ceil(most)), 1).astype(np.int64))
        widths.append(span / counts[-1])
    sizes = [int(np.prod(count)) for count in counts]
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    lengths = np.where(periodic, span, 0.0)
    head, after = np.full(sum(sizes), EMPTY, np.int64), np.full(len(radii), EMPTY, np.int64)
    return Cells(low, lengths, level, np.array(counts), np.array(widths), first, head, after)


@njit(**INNER)
def cell_of(x, axis, level, cells):
    """Which cell along an axis; what lies outside belongs to the last cell, or to the image."""
    k = int(np.floor((x - cells.low[axis]) / cells.widths[level, axis]))
    n = cells.counts[level, axis]
    if cells.lengths[axis] > 0.0:
        return k % n
    return min(max(k, 0), n - 1)


@njit(**INNER)
def put(ball, positions, cells):
    """A ball goes into its cell."""
    level = cells.level[ball]
    number = 0
    for axis in range(3):
        number = number * cells.counts[level, axis] + cell_of(positions[ball, axis], axis, level, cells)
    number += cells.first[level]
    cells.next[ball] = cells.head[number]
    cells.head[number] = ball


@njit(**INNER)
def offset(positions, i, j, lengths, out):
    """out := from i to the nearest image of j; returns the square of its length."""
    square = 0.0
    for axis in range(3):
        d = positions[j, axis] - positions[i, axis]
        if lengths[axis] > 0.0:
            d -= lengths[axis] * np.rint(d / lengths[axis])
        out[axis] = d
        square += d * d
    return square


@njit(**INNER)
def ranges(place, level, cells, start, stop):
    """The cells around a place along each axis, each once: ``start`` to ``stop``, to be taken modulo the number of cells."""
    for axis in range(3):
        n, k = cells.counts[level, axis], cell_of(place[axis], axis, level, cells)
        if cells.lengths[axis] > 0.0:
            start[axis], stop[axis] = (k - 1, k + 1) if n > 2 else (0, n - 1)
        else:
            start[axis], stop[axis] = max(k - 1, 0), min(k + 1, n - 1)


@njit(**INNER)
def near_pairs(positions, radii, skin, cells, pairs):
    """All pairs of balls whose surfaces are nearer than ``skin``, each once; returns how many there are. Those that find no place in
    ``pairs`` (m, 2) are counted only."""
    for ball in range(len(radii)):
        put(ball, positions, cells)
    d, start, stop = np.empty(3), np.empty(3, np.int64), np.empty(3, np.int64)
    found = 0
    for i in range(len(radii)):
        for level in range(cells.level[i], len(cells.first)):
            ranges(positions[i], level, cells, start, stop)
            nx, ny, nz = cells.counts[level]
            for x in range(start[0], stop[0] + 1):
                for y in range(start[1], stop[1] + 1):
                    for z in range(start[2], stop[2] + 1):
                        j = cells.head[cells.first[level] + ((x % nx) * ny + y % ny) * nz + z % nz]
                        while j != EMPTY:
                            if level > cells.level[i] or j > i:
                                reach = radii[i] + radii[j] + skin
                                if offset(positions, i, j, cells.lengths, d) < reach * reach:
                                    if found < len(pairs):
                                        pairs[found, 0], pairs[found, 1] = i, j
                                    found += 1
                            j = cells.next[j]
    return found


@njit(**INNER)
def push_apart(positions, radii, pairs, lengths, forces):
    """Adds to ``forces`` the push, as large as the overlap, that parts balls which overlap; returns (number of overlaps, the deepest, m).
    Balls at one place part along x."""
    d = np.empty(3)
    deepest, overlaps = 0.0, 0
    for k in range(len(pairs)):
        i, j = pairs[k, 0], pairs[k, 1]
        reach = radii[i] + radii[j]
        square = offset(positions, i, j, lengths, d)
        if square >= reach * reach:
            continue
        distance = np.sqrt(square)
        if distance < 1e-12 * reach:
            d[0], d[1], d[2], distance = 1.0, 0.0, 0.0, 1.0
            depth = reach
        else:
            depth = reach - distance
        overlaps += 1
        deepest = max(deepest, depth)
        for axis in range(3):
            push = depth * d[axis] / distance
            forces[i, axis] -= push
            forces[j, axis] += push
    return overlaps, deepest


@njit(**INNER)
def insert(balls, places, positions, radii, cells, placed):
    """One ball after the other goes to its place, if there is room. Balls that are smaller than half of those to come must not be in
    the cells yet. Returns how many found room; ``placed`` marks them."""
    d, start, stop = np.empty(3), np.empty(3, np.int64), np.empty(3, np.int64)
    count = 0
    for k in range(len(balls)):
        i = balls[k]
        positions[i] = places[k]
        free = True
        for level in range(cells.level[i], len(cells.first)):
            ranges(positions[i], level, cells, start, stop)
            nx, ny, nz = cells.counts[level]
            for x in range(start[0], stop[0] + 1):
                for y in range(start[1], stop[1] + 1):
                    for z in range(start[2], stop[2] + 1):
                        j = cells.head[cells.first[level] + ((x % nx) * ny + y % ny) * nz + z % nz]
                        while j != EMPTY and free:
                            reach = radii[i] + radii[j]
                            free = offset(positions, i, j, cells.lengths, d) >= reach * reach
                            j = cells.next[j]
        if free:
            put(i, positions, cells)
            placed[i] = True
            count += 1
    return count
