"""Grid broad phase: the nine stages of paper 000, section 4.2, in the form that suits CPU cores.

In: ``reach`` of each body. Out: candidate pairs, each once, in an order that no thread count changes.

The paper sorts (bin, object) pairs, with each object in up to eight bins, and tells doubles by the bin of the contact's
midpoint. Here each body lies in the one cell that holds its centre, cells are at least as wide as the bodies in them, and
a cell looks at its thirteen forward neighbours, so that no pair is met twice and nothing is entered eight times.

- Mixed sizes: a level of the grid per power of two; a body looks for larger ones in the coarser levels.
- Huge bodies (planes, floors, a drum): few and far larger than the rest, kept out of the cells, tested by their shape.
- Cells wrap around: a body far outside costs a false candidate at worst, never memory or a lost pair.
- Cells are numbered in cubes of 8 x 8 x 8, so bodies that follow each other are close in space in all directions; the
  later stages cut this order into tiles.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.cpu.bounds import BINS, CHUNK
from gravel.cpu.vectors import rotate_back, to_matrix
from gravel.shapes import BOX, PLANE
from gravel.state import REMOVED

LEVELS = 12
HUGE_LIMIT = 32  # at most so many bodies are kept out of the cells ...
HUGE_RATIO = 4.0  # ... each at least so many times larger than any body in them


class Cells(NamedTuple):
    """The cells of all levels in one table; level 0 has the largest."""

    width: np.ndarray  # (LEVELS,) m
    blocks: np.ndarray  # (LEVELS, 3) cubes of 8 x 8 x 8 cells along each axis
    first: np.ndarray  # (LEVELS + 1,) first cell of each level
    used: np.ndarray  # (LEVELS,) bodies in each level
    count: np.ndarray  # (2,) bodies in cells, bodies in cells or huge


class Pairs(NamedTuple):
    """Candidate pairs by tile of the first body: tile t holds entries [t * capacity, t * capacity + count[t])."""

    a: np.ndarray
    b: np.ndarray
    count: np.ndarray


@njit(nogil=True)
def level_of(reach, biggest):
    level = 0
    while level < LEVELS - 1 and reach * 2.0 <= biggest:
        reach *= 2.0
        level += 1
    return level


@njit(nogil=True)
def biggest_in_cells(statistics):
    """The largest reach that goes into cells; what is larger is huge. 0 if there is none."""
    count, largest = np.zeros(BINS, np.int64), np.zeros(BINS)
    for chunk in range(statistics.count.shape[0]):
        for k in range(BINS):
            count[k] += statistics.count[chunk, k]
            largest[k] = max(largest[k], statistics.largest[chunk, k])
    cut, above, lowest_above = 0.0, 0, math.inf
    for k in range(BINS - 1, -1, -1):
        if count[k] == 0:
            continue
        if cut == 0.0 or (above <= HUGE_LIMIT and largest[k] * HUGE_RATIO <= lowest_above):
            cut = largest[k]
        above += count[k]
        lowest_above = math.ldexp(1.0, k - 64)
    return cut


@njit(nogil=True)
def cell_of(x, y, z, level, cells):
    """Number of the cell that holds a point."""
    inverse = 1.0 / cells.width[level]
    return cell_at(math.floor(x * inverse), math.floor(y * inverse), math.floor(z * inverse), level, cells)


@njit(nogil=True)
def cell_at(ix, iy, iz, level, cells):
    bx, by, bz = cells.blocks[level, 0], cells.blocks[level, 1], cells.blocks[level, 2]
    ix, iy, iz = int(ix) % (8 * bx), int(iy) % (8 * by), int(iz) % (8 * bz)
    block = ((iz >> 3) * by + (iy >> 3)) * bx + (ix >> 3)
    return cells.first[level] + (block << 9) + ((iz & 7) << 6) + ((iy & 7) << 3) + (ix & 7)


@njit(parallel=True, nogil=True, cache=True)
def plan_cells(reach, status, statistics, cells, keys):
    """Choose the cells for these bodies and find the cell of each: ``keys``; huge bodies come after all cells, removed
    ones last. Returns the largest key."""
    n = status.size
    biggest = biggest_in_cells(statistics)
    chunks = (n + CHUNK - 1) // CHUNK
    low, high = np.full((chunks, LEVELS, 3), math.inf), np.full((chunks, LEVELS, 3), -math.inf)
    used, huge = np.zeros((chunks, LEVELS), np.int64), np.zeros(chunks, np.int64)
    for chunk in prange(chunks):
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, n)):
            if status[i] == REMOVED:
                keys[i] = -2
            elif reach[i, 3] > biggest:
                keys[i] = -1
                huge[chunk] += 1
            else:
                level = level_of(reach[i, 3], biggest)
                keys[i] = level
                used[chunk, level] += 1
                for k in range(3):
                    low[chunk, level, k] = min(low[chunk, level, k], reach[i, k])
                    high[chunk, level, k] = max(high[chunk, level, k], reach[i, k])
    cells.count[0], cells.count[1] = used.sum(), used.sum() + huge.sum()
    cells.first[0] = 0
    for level in range(LEVELS):
        cells.width[level] = 2.0 * biggest / 2.0**level
        cells.used[level] = used[:, level].sum()
        size = 0
        if cells.used[level] > 0:
            for k in range(3):
                extent = (high[:, level, k].max() - low[:, level, k].min()) / cells.width[level]
                cells.blocks[level, k] = int(min(extent, 1e6)) // 8 + 1
            limit = max(1, 4 * cells.used[level] // 512)
            size = cells.blocks[level, 0] * cells.blocks[level, 1] * cells.blocks[level, 2]
            while size > limit and size > 1:
                k = np.argmax(cells.blocks[level])
                cells.blocks[level, k] = (cells.blocks[level, k] + 1) // 2
                size = cells.blocks[level, 0] * cells.blocks[level, 1] * cells.blocks[level, 2]
        cells.first[level + 1] = cells.first[level] + 512 * size
    total = cells.first[LEVELS]
    for chunk in prange(chunks):
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, n)):
            if keys[i] >= 0:
                keys[i] = cell_of(reach[i, 0], reach[i, 1], reach[i, 2], keys[i], cells)
            else:
                keys[i] = total if keys[i] == -1 else total + 1
    return total + 1


@njit(parallel=True, nogil=True, cache=True)
def find_cell_starts(keys, order, cells, start):
    """start[c] := first body, in cell order, of cell c; start[cells] := bodies in cells."""
    n = cells.count[0]
    total = cells.first[LEVELS]
    for chunk in prange((n + CHUNK) // CHUNK):
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, n + 1)):
            previous = keys[order[i - 1]] if i > 0 else -1
            here = keys[order[i]] if i < n else total
            for c in range(previous + 1, here + 1):
                start[c] = i


@njit(nogil=True)
def may_touch(i, j, arranged, ignored, balls):
    """Whether the bounds of two bodies overlap and they are not meant to ignore each other."""
    reach = arranged.reach
    dx, dy, dz = reach[j, 0] - reach[i, 0], reach[j, 1] - reach[i, 1], reach[j, 2] - reach[i, 2]
    r = reach[i, 3] + reach[j, 3]
    if dx * dx + dy * dy + dz * dz > r * r:
        return False
    if not balls:
        half = arranged.half
        if abs(dx) > half[i, 0] + half[j, 0] or abs(dy) > half[i, 1] + half[j, 1] or abs(dz) > half[i, 2] + half[j, 2]:
            return False
    return may_collide(i, j, arranged, ignored)


@njit(nogil=True)
def may_collide(i, j, arranged, ignored):
    if arranged.movable[i] + arranged.movable[j] == 0:
        return False
    return not ignored[arranged.group[i], arranged.group[j]]


@njit(nogil=True)
def may_touch_huge(i, j, arranged, ignored, balls):
    """The same against a huge body j, by its shape."""
    if not may_collide(i, j, arranged, ignored):
        return False
    reach, size, slack = arranged.reach, arranged.size, arranged.slack[j]
    dx, dy, dz = reach[i, 0] - reach[j, 0], reach[i, 1] - reach[j, 1], reach[i, 2] - reach[j, 2]
    if arranged.shape[j] != PLANE and arranged.shape[j] != BOX:
        return may_touch(i, j, arranged, ignored, balls)
    if arranged.shape[j] == PLANE:
        return dx * size[j, 0] + dy * size[j, 1] + dz * size[j, 2] <= reach[i, 3] + slack
    dx, dy, dz = rotate_back(to_matrix(arranged.quaternion[j]), dx, dy, dz)
    ex, ey, ez = max(abs(dx) - size[j, 0], 0.0), max(abs(dy) - size[j, 1], 0.0), max(abs(dz) - size[j, 2], 0.0)
    r = reach[i, 3] + slack
    return ex * ex + ey * ey + ez * ez <= r * r


@njit(nogil=True)
def add_pair(i, j, tile, capacity, k, pairs):
    if k < capacity:
        pairs.a[tile * capacity + k] = i
        pairs.b[tile * capacity + k] = j
    return k + 1


@njit(nogil=True)
def close_tile(tile, k, pairs):
    pairs.count[tile] = k


@njit(parallel=True, nogil=True, cache=True)
def find_pairs(arranged, keys, cells, start, ignored, tile_size, capacity, balls, pairs):
    """Fill the pairs of each tile; a count above the capacity tells that the tile did not fit."""
    in_cells, n = cells.count[0], cells.count[1]
    for tile in prange(pairs.count.size):
        k = 0
        for i in range(tile * tile_size, min((tile + 1) * tile_size, n)):
            if i < in_cells:
                key = keys[arranged.order[i]]
                level = 0
                while key >= cells.first[level + 1]:
                    level += 1
                for j in range(i + 1, start[key + 1]):
                    if may_touch(i, j, arranged, ignored, balls):
                        k = add_pair(i, j, tile, capacity, k, pairs)
                inverse = 1.0 / cells.width[level]
                x, y, z, r = arranged.reach[i, 0], arranged.reach[i, 1], arranged.reach[i, 2], arranged.reach[i, 3]
                ix, iy, iz = math.floor(x * inverse), math.floor(y * inverse), math.floor(z * inverse)
                for neighbour in range(14, 27):  # the forward half of the 3 x 3 x 3 cells around this one
                    c = cell_at(ix + neighbour % 3 - 1, iy + neighbour // 3 % 3 - 1, iz + neighbour // 9 - 1, level, cells)
                    for j in range(start[c], start[c + 1]):
                        if may_touch(i, j, arranged, ignored, balls):
                            k = add_pair(i, j, tile, capacity, k, pairs)
                for coarse in range(level):
                    if cells.used[coarse] == 0:
                        continue
                    inverse = 1.0 / cells.width[coarse]
                    far = r + 0.5 * cells.width[coarse]
                    for cz in range(math.floor((z - far) * inverse), math.floor((z + far) * inverse) + 1):
                        for cy in range(math.floor((y - far) * inverse), math.floor((y + far) * inverse) + 1):
                            for cx in range(math.floor((x - far) * inverse), math.floor((x + far) * inverse) + 1):
                                c = cell_at(cx, cy, cz, coarse, cells)
                                for j in range(start[c], start[c + 1]):
                                    if may_touch(i, j, arranged, ignored, balls):
                                        k = add_pair(i, j, tile, capacity, k, pairs)
            for j in range(max(in_cells, i + 1), n):
                if may_touch_huge(i, j, arranged, ignored, balls):
                    k = add_pair(i, j, tile, capacity, k, pairs)
        close_tile(tile, k, pairs)
