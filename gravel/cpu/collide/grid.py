"""Grid broad phase: the nine stages of paper 000, section 4.2, in the form that suits CPU cores.

In: ``sphere`` of each body. Out: candidate pairs, each once, in an order that no thread count changes.

The paper sorts (bin, object) pairs, with each object in up to eight bins, and tells doubles by the bin of the contact's
midpoint. Here each body lies in the one cell that holds its centre, cells are at least as wide as the bodies in them, and
a cell looks at its thirteen forward neighbours, so that no pair is met twice and nothing is entered eight times.

- Mixed sizes: a level of the grid per power of two; a body looks for larger ones in the coarser levels. Where the small ones
  are so sparse that the largest cells hold few bodies, one level for all is quicker: it is tried first.
- A gas: cells as wide as its bodies would mostly be empty and far too many; wider ones, which hold two bodies each, are tried
  before, and kept unless bodies crowd in some of them.
- Huge bodies (planes, floors, a drum): few and far larger than the rest, kept out of the cells, tested by their shape.
- Cells wrap around: a body far outside costs a false candidate at worst, never memory or a lost pair.
- Cells are numbered in cubes of 8 x 8 x 8, so bodies that follow each other are close in space in all directions; the
  later stages cut this order into tiles.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.cpu.collide.bounds import BINS
from gravel.formulas.bounds import MOVES
from gravel.host.arrays import CHUNK
from gravel.host.sort import radix_sort
from gravel.host.threads import ALLOCATING, INNER, Kernel
from gravel.host.traits import CELLS_PER_BODY, HUGE_LIMIT, HUGE_RATIO
from gravel.host.vectors import rotate_back, to_matrix
from gravel.shapes import BOX, PLANE
from gravel.state import GROUP, SHAPE

LEVELS = 12
CANDIDATES = 512  # bodies around a cell that are brought together in the cache
C1, C2, C3 = np.uint64(CANDIDATES), np.uint64(2 * CANDIDATES), np.uint64(3 * CANDIDATES)
CROWD = 4.0  # bodies that a body may meet in its own cell, on average, for one level to serve all sizes
SPARSE, CELL_BODIES = 0.5, 2.0  # bodies a cell below which wider cells are tried, and how many those hold: fewer cells stay in the cache
ONE_WIDE, ONE, SEVERAL = range(3)  # levels of cells: what is tried, in this order


class Cells(NamedTuple):
    """The cells of all levels in one table; level 0 has the largest."""

    width: np.ndarray  # (LEVELS,) m
    bits: np.ndarray  # (LEVELS, 3) 2^bits cubes of 8 x 8 x 8 cells along each axis
    wrap: np.ndarray  # (LEVELS, 3) cells along each axis less one: the mask that wraps them around
    first: np.ndarray  # (LEVELS + 1,) first cell of each level
    used: np.ndarray  # (LEVELS,) bodies in each level
    count: np.ndarray  # (2,) bodies in cells, bodies in cells or huge


def make_cells():
    whole = lambda *shape: np.zeros(shape, np.int64)  # noqa: E731
    return Cells(np.zeros(LEVELS), whole(LEVELS, 3), whole(LEVELS, 3), whole(LEVELS + 1), whole(LEVELS), whole(2))


def most_cells(bodies):
    """How many cells there may be for so many bodies."""
    return CELLS_PER_BODY * bodies + 512 * LEVELS


@njit(**INNER)
def floor(x):
    """The next whole number below, as an integer; quicker than math.floor, which knows no bounds."""
    k = np.int64(x)
    return k - 1 if x < k else k


@njit(**INNER)
def level_of(radius, biggest):
    level = 0
    while level < LEVELS - 1 and radius * 2.0 <= biggest:
        radius *= 2.0
        level += 1
    return level


@njit(**ALLOCATING)
def biggest_in_cells(statistics):
    """The largest radius that goes into cells; what is larger is huge. 0 if there is none."""
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


@njit(**INNER)
def cell_at(ix, iy, iz, wrap, bits, level, first):
    """Number of a cell from its place along the axes."""
    ix, iy, iz = ix & wrap[level, 0], iy & wrap[level, 1], iz & wrap[level, 2]
    block = ((((iz >> 3) << bits[level, 1]) + (iy >> 3)) << bits[level, 0]) + (ix >> 3)
    return first[level] + (block << 9) + ((iz & 7) << 6) + ((iy & 7) << 3) + (ix & 7)


@njit(**INNER)
def levels_of_chunk(chunk, sphere, biggest, levels, low, high, used, huge):
    """levels := level of each body, -1 for huge ones; extents and numbers of the chunk's levels."""
    for level in range(LEVELS):
        used[chunk, level] = 0
        for k in range(3):
            low[chunk, level, k], high[chunk, level, k] = math.inf, -math.inf
    huge[chunk] = 0
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, levels.size)):
        if sphere[i, 3] > biggest:
            levels[i] = -1
            huge[chunk] += 1
        else:
            level = level_of(sphere[i, 3], biggest)
            levels[i] = level
            used[chunk, level] += 1
            for k in range(3):
                low[chunk, level, k] = min(low[chunk, level, k], sphere[i, k])
                high[chunk, level, k] = max(high[chunk, level, k], sphere[i, k])


@njit(**INNER)
def put_in_one_level(low, high, used):
    """What the chunks found, as if all bodies were large."""
    for chunk in range(used.shape[0]):
        for level in range(1, LEVELS):
            used[chunk, 0] += used[chunk, level]
            used[chunk, level] = 0
            for k in range(3):
                low[chunk, 0, k] = min(low[chunk, 0, k], low[chunk, level, k])
                high[chunk, 0, k] = max(high[chunk, 0, k], high[chunk, level, k])


@njit(**ALLOCATING)
def levels_in_use(used):
    count = 0
    for level in range(LEVELS):
        count += used[:, level].sum() > 0
    return count


@njit(**INNER)
def crowded(start, total, n):
    """Whether bodies would meet too many others in their cells."""
    meetings = 0
    for c in range(total):
        meetings += np.int64(start[c + 1] - start[c]) ** 2
    return meetings > CROWD * n


@njit(**ALLOCATING)
def wide_enough(biggest, low, high, used):
    """Half the width of cells that hold a few bodies each on average, if those that bodies need hold far fewer; else 0."""
    number, volume = used[:, 0].sum(), 1.0
    if number == 0:
        return 0.0
    for k in range(3):
        volume *= max(high[:, 0, k].max() - low[:, 0, k].min(), 2.0 * biggest)
    return 0.5 * (CELL_BODIES * volume / number) ** (1.0 / 3.0) if number * (2.0 * biggest) ** 3 < SPARSE * volume else 0.0


@njit(**INNER)
def choose_cells(biggest, low, high, used, huge, cells):
    """Width and number of the cells of each level, from what the chunks found."""
    chunks = huge.size
    cells.count[0], cells.count[1], cells.first[0] = 0, 0, 0
    for chunk in range(chunks):
        cells.count[1] += huge[chunk]
    for level in range(LEVELS):
        cells.width[level] = 2.0 * biggest * (1.0 + 1e-6) / 2.0**level  # a hair more: touching bodies are never two cells apart
        cells.used[level] = 0
        for chunk in range(chunks):
            cells.used[level] += used[chunk, level]
        cells.count[0] += cells.used[level]
        cells.first[level + 1] = cells.first[level]
        if cells.used[level] == 0:
            continue
        bits, total = cells.bits[level], 0
        for k in range(3):
            lowest, highest = math.inf, -math.inf
            for chunk in range(chunks):
                lowest, highest = min(lowest, low[chunk, level, k]), max(highest, high[chunk, level, k])
            extent = min((highest - lowest) / cells.width[level], 1e6)
            bits[k] = 0
            while 8 << bits[k] <= extent:
                bits[k] += 1
            total += bits[k]
        while total > 0 and 512 << total > CELLS_PER_BODY * cells.used[level]:
            k = 0 if bits[0] >= bits[1] and bits[0] >= bits[2] else (1 if bits[1] >= bits[2] else 2)
            bits[k] -= 1
            total -= 1
        for k in range(3):
            cells.wrap[level, k] = (8 << bits[k]) - 1
        cells.first[level + 1] += 512 << total
    cells.count[1] += cells.count[0]


@njit(**INNER)
def keys_of_chunk(chunk, sphere, one_level, cells, levels, keys):
    """keys := cell of each body, from its level."""
    width, wrap, bits, first = cells.width, cells.wrap, cells.bits, cells.first
    total = first[LEVELS]
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, keys.size)):
        level = min(levels[i], 0) if one_level else levels[i]
        if level >= 0:
            inverse = 1.0 / width[level]
            ix, iy, iz = floor(sphere[i, 0] * inverse), floor(sphere[i, 1] * inverse), floor(sphere[i, 2] * inverse)
            keys[i] = cell_at(ix, iy, iz, wrap, bits, level, first)
        else:
            keys[i] = total


@njit(**INNER)
def starts_of_chunk(chunk, keys, order, n, total, start):
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, n + 1)):
        previous = keys[order[i - 1]] if i > 0 else -1
        here = keys[order[i]] if i < n else total
        for c in range(previous + 1, here + 1):
            start[c] = i


@Kernel
def sort_into_cells(sphere, statistics, cells, keys, order, spare, start):
    """Choose the cells for these bodies, find the cell of each (``keys``; huge bodies come after all cells), sort the bodies by it
    (``order``), and note where each cell starts in that order (``start``)."""
    chunks = statistics.count.shape[0]
    biggest = biggest_in_cells(statistics)
    low, high = np.empty((chunks, LEVELS, 3)), np.empty((chunks, LEVELS, 3))
    used, huge, levels = np.empty((chunks, LEVELS), np.int64), np.empty(chunks, np.int64), np.empty(keys.size, np.int8)
    for chunk in prange(chunks):
        levels_of_chunk(np.int64(chunk), sphere, biggest, levels, low, high, used, huge)
    mixed = levels_in_use(used) > 1
    whole_low, whole_high, whole_used = low, high, used
    if mixed:
        whole_low, whole_high, whole_used = low.copy(), high.copy(), used.copy()
        put_in_one_level(whole_low, whole_high, whole_used)
    wide = wide_enough(biggest, whole_low, whole_high, whole_used)
    for attempt in range(ONE if wide == 0.0 else ONE_WIDE, SEVERAL + 1):
        if attempt == SEVERAL:
            choose_cells(biggest, low, high, used, huge, cells)
        else:
            choose_cells(wide if attempt == ONE_WIDE else biggest, whole_low, whole_high, whole_used, huge, cells)
        for chunk in prange(chunks):
            keys_of_chunk(np.int64(chunk), sphere, attempt != SEVERAL, cells, levels, keys)
        total, n = cells.first[LEVELS], cells.count[0]
        radix_sort(keys, total, order, spare)
        for chunk in prange((n + CHUNK) // CHUNK):
            starts_of_chunk(np.int64(chunk), keys, order, n, total, start)
        if attempt == ONE and not mixed:
            break
        if not crowded(start, total, n):
            break


@njit(**INNER)
def may_touch(i, j, sphere, half, balls):
    """Whether the bounds of two bodies overlap."""
    dx, dy, dz = sphere[j, 0] - sphere[i, 0], sphere[j, 1] - sphere[i, 1], sphere[j, 2] - sphere[i, 2]
    r = sphere[i, 3] + sphere[j, 3]
    if dx * dx + dy * dy + dz * dz > r * r:
        return False
    if balls:
        return True
    return abs(dx) <= half[i, 0] + half[j, 0] and abs(dy) <= half[i, 1] + half[j, 1] and abs(dz) <= half[i, 2] + half[j, 2]


@njit(**INNER)
def may_collide(i, j, tag, ignored):
    """Whether one of two bodies can move and they are not meant to ignore each other."""
    return tag[i, MOVES] + tag[j, MOVES] > 0 and not ignored[tag[i, GROUP], tag[j, GROUP]]


@njit(**INNER)
def ball_may_touch(x, y, z, radius, j, sphere, extent, tag, quaternion):
    """Whether a ball overlaps the bounds of a plane or box j, by its shape; of any other body, the ball around it."""
    dx, dy, dz = x - sphere[j, 0], y - sphere[j, 1], z - sphere[j, 2]
    r = radius + extent[j, 3]
    if tag[j, SHAPE] == PLANE:
        return dx * extent[j, 0] + dy * extent[j, 1] + dz * extent[j, 2] <= r
    if tag[j, SHAPE] != BOX:
        r = radius + sphere[j, 3]
        return dx * dx + dy * dy + dz * dz <= r * r
    dx, dy, dz = rotate_back(to_matrix(quaternion[j]), dx, dy, dz)
    ex, ey, ez = max(abs(dx) - extent[j, 0], 0.0), max(abs(dy) - extent[j, 1], 0.0), max(abs(dz) - extent[j, 2], 0.0)
    return ex * ex + ey * ey + ez * ez <= r * r


@njit(**INNER)
def may_touch_huge(i, j, sphere, half, extent, tag, quaternion, balls):
    """Whether the bounds of body i overlap a huge body j, by its shape."""
    if tag[j, SHAPE] != PLANE and tag[j, SHAPE] != BOX:
        return may_touch(i, j, sphere, half, balls)
    return ball_may_touch(sphere[i, 0], sphere[i, 1], sphere[i, 2], sphere[i, 3], j, sphere, extent, tag, quaternion)


@njit(**INNER)
def huge_bodies_near(first, last, in_cells, n, sphere, extent, tag, quaternion, near):
    """Which huge bodies may touch some of the bodies first to last; returns their number."""
    last = min(last, in_cells)
    x, y, z, count = 0.0, 0.0, 0.0, 0
    for i in range(first, last):
        x, y, z = x + sphere[i, 0], y + sphere[i, 1], z + sphere[i, 2]
    scale = 1.0 / max(last - first, 1)
    x, y, z, radius = x * scale, y * scale, z * scale, 0.0
    for i in range(first, last):
        dx, dy, dz = sphere[i, 0] - x, sphere[i, 1] - y, sphere[i, 2] - z
        radius = max(radius, math.sqrt(dx * dx + dy * dy + dz * dz) + sphere[i, 3])
    radius *= 1.0 + 1e-9  # for rounding, and a position that is not a number counts as near to all
    for j in range(in_cells, n):
        if last <= first or not (radius < math.inf) or ball_may_touch(x, y, z, radius, j, sphere, extent, tag, quaternion):
            near[count] = j
            count += 1
    return count


@njit(**INNER)
def add_range(ranges, number, first, last):
    """One more run of bodies to test; cells that follow each other in memory make one run."""
    if last <= first:
        return number
    if number > 0 and ranges[number - 1, 1] == first:
        ranges[number - 1, 1] = last
        return number
    ranges[number, 0], ranges[number, 1] = first, last
    return number + 1


@njit(**INNER)
def test_ranges(i, ranges, number, proxies, ignored, balls, pairs, found, end):
    """Pairs of body i with the bodies in the ranges; returns the number of pairs so far, even those that had no room."""
    sphere, half, tag, pair_a, pair_b = proxies.sphere, proxies.half, proxies.tag, pairs.a, pairs.b
    flat_sphere = sphere.reshape(-1)
    x, y, z, r = sphere[i, 0], sphere[i, 1], sphere[i, 2], sphere[i, 3]
    for m in range(number):
        for j in range(np.uint64(ranges[m, 0]), np.uint64(ranges[m, 1])):
            k = j * np.uint64(4)
            dx, dy, dz = flat_sphere[k] - x, flat_sphere[k + np.uint64(1)] - y, flat_sphere[k + np.uint64(2)] - z
            limit = flat_sphere[k + np.uint64(3)] + r
            if dx * dx + dy * dy + dz * dz > limit * limit:
                continue
            if (balls or may_touch(i, j, sphere, half, balls)) and may_collide(i, j, tag, ignored):
                if found < end:
                    pair_a[found], pair_b[found] = i, j
                found += 1
    return found


@njit(**INNER)
def append_touching(i, ranges, number, sphere, flat_sphere, pair_a, pair_b, found):
    """The same where distance alone decides and there is room for all: each candidate is written, and the next one over it unless the two
    touch. No branch depends on the outcome of a test, which cannot be foreseen."""
    x, y, z, r = sphere[i, 0], sphere[i, 1], sphere[i, 2], sphere[i, 3]
    at = np.uint64(found)
    for m in range(number):
        for j in range(ranges[m, 0], ranges[m, 1]):
            k = np.uint64(j) * np.uint64(4)
            dx, dy, dz = flat_sphere[k] - x, flat_sphere[k + np.uint64(1)] - y, flat_sphere[k + np.uint64(2)] - z
            limit = flat_sphere[k + np.uint64(3)] + r
            pair_a[at], pair_b[at] = i, j
            at += np.uint64(not (dx * dx + dy * dy + dz * dz > limit * limit))
    return np.int64(at)


@njit(**INNER)
def bodies_in(ranges, number):
    total = 0
    for m in range(number):
        total += max(ranges[m, 1] - ranges[m, 0], 0)
    return total


@njit(**INNER)
def forward_ranges(ix, iy, iz, wrap, bits, level, first, start, ranges):
    """Runs of bodies in the forward neighbours of a cell, from ranges[1] on; those that follow the cell itself in memory belong to
    its own run. Returns (number of ranges, end of the cell's own run).

    The number of a cell is a sum of parts for x, y and z (see ``cell_at``)."""
    shift_y, shift_z = 9 + bits[level, 0], 9 + bits[level, 0] + bits[level, 1]
    x0, x1, x2 = (ix - 1) & wrap[level, 0], ix & wrap[level, 0], (ix + 1) & wrap[level, 0]
    x0, x1, x2 = ((x0 >> 3) << 9) + (x0 & 7), ((x1 >> 3) << 9) + (x1 & 7), ((x2 >> 3) << 9) + (x2 & 7)
    y0, y1, y2 = (iy - 1) & wrap[level, 1], iy & wrap[level, 1], (iy + 1) & wrap[level, 1]
    y0, y1 = ((y0 >> 3) << shift_y) + ((y0 & 7) << 3), ((y1 >> 3) << shift_y) + ((y1 & 7) << 3)
    y2 = ((y2 >> 3) << shift_y) + ((y2 & 7) << 3)
    z1, z2 = iz & wrap[level, 2], (iz + 1) & wrap[level, 2]
    z1, z2 = first[level] + ((z1 >> 3) << shift_z) + ((z1 & 7) << 6), first[level] + ((z2 >> 3) << shift_z) + ((z2 & 7) << 6)
    own, number, ranges[0, 1] = z1 + y1 + x1, 1, -1  # the first range is the cell's own, still to be filled
    if x2 == x0 + 2:  # the three neighbours along x follow each other in memory
        for row in (z1 + y2, z2 + y0, z2 + y1, z2 + y2):
            number = add_range(ranges, number, start[row + x0], start[row + x0 + 3])
        return number, start[own + 2]
    number = add_range(ranges, number, start[z1 + y1 + x2], start[z1 + y1 + x2 + 1])
    for row in (z1 + y2, z2 + y0, z2 + y1, z2 + y2):
        number = add_range(ranges, number, start[row + x0], start[row + x0 + 1])
        number = add_range(ranges, number, start[row + x1], start[row + x1 + 1])
        number = add_range(ranges, number, start[row + x2], start[row + x2 + 1])
    return number, start[own + 1]


@njit(**INNER)
def collect(ranges, number, flat_sphere, near):
    """Bodies in the ranges side by side (``near``: x, y, z and radius one after the other, CANDIDATES each); returns how many, or -1
    if there are too many."""
    if bodies_in(ranges, number) > CANDIDATES:
        return np.int64(-1)
    k = np.uint64(0)
    for m in range(number):
        for j in range(np.uint64(ranges[m, 0]), np.uint64(max(ranges[m, 1], ranges[m, 0]))):
            q = j * np.uint64(4)
            near[k], near[k + C1] = flat_sphere[q], flat_sphere[q + np.uint64(1)]
            near[k + C2], near[k + C3] = flat_sphere[q + np.uint64(2)], flat_sphere[q + np.uint64(3)]
            k += np.uint64(1)
    return np.int64(k)


@njit(**INNER)
def separations(x, y, z, r, first, last, near, apart):
    """apart := squared distance less squared sum of radii of a body and the candidates first to last: one loop without branches, which the
    compiler vectorises."""
    for k in range(np.uint64(first), np.uint64(last)):
        dx, dy, dz, limit = near[k] - x, near[k + C1] - y, near[k + C2] - z, near[k + C3] + r
        apart[k] = dx * dx + dy * dy + dz * dz - limit * limit


@njit(**INNER)
def coarse_ranges(x, y, z, r, coarse, cells, start, ranges):
    """Runs of bodies in the cells of a coarser level that a body may reach; returns their number."""
    inverse, far, number = 1.0 / cells.width[coarse], r + 0.5 * cells.width[coarse], 0
    for cz in range(floor((z - far) * inverse), floor((z + far) * inverse) + 1):
        for cy in range(floor((y - far) * inverse), floor((y + far) * inverse) + 1):
            for cx in range(floor((x - far) * inverse), floor((x + far) * inverse) + 1):
                c = cell_at(cx, cy, cz, cells.wrap, cells.bits, coarse, cells.first)
                number = add_range(ranges, number, start[c], start[c + 1])
    return number


class Scratch(NamedTuple):
    """What the search of a tile works with."""

    ranges: np.ndarray  # (64, 2) runs of bodies to test
    other_ranges: np.ndarray  # (64, 2) the same in coarser levels
    huge: np.ndarray  # huge bodies near the tile
    near: np.ndarray  # (4 CANDIDATES,) bodies around a cell
    apart: np.ndarray  # (CANDIDATES,) how far one body is from them


@njit(**ALLOCATING)
def pairs_of_tile(tile, proxies, cells, start, ignored, tile_size, capacity, balls, pairs):
    ranges, other_ranges = np.empty((64, 2), np.int32), np.empty((64, 2), np.int32)
    huge = np.empty(cells.count[1] - cells.count[0], np.int32)
    scratch = Scratch(ranges, other_ranges, huge, np.empty(4 * CANDIDATES), np.empty(CANDIDATES))
    search_tile(tile, proxies, cells, start, ignored, balls and not ignored.any(), tile_size, capacity, balls, pairs, scratch)


@njit(**INNER)
def test_collected(i, first, total, scratch, proxies, ignored, balls, pairs, found, end):
    """Pairs of body i with the bodies that were brought together, from number ``first`` on."""
    sphere, half, tag, pair_a, pair_b = proxies.sphere, proxies.half, proxies.tag, pairs.a, pairs.b
    ranges, near, apart = scratch.ranges, scratch.near, scratch.apart
    separations(sphere[i, 0], sphere[i, 1], sphere[i, 2], sphere[i, 3], first, total, near, apart)
    m, base = 0, ranges[0, 0]  # candidate k is body base + k, within its range
    for k in range(first, total):
        if apart[k] > 0.0:
            continue
        while base + k >= ranges[m, 1]:
            base += ranges[m + 1, 0] - ranges[m, 1]
            m += 1
        j = base + k
        if (balls or may_touch(i, j, sphere, half, balls)) and may_collide(i, j, tag, ignored):
            if found < end:
                pair_a[found], pair_b[found] = i, j
            found += 1
    return found


@njit(**INNER)
def search_tile(tile, proxies, cells, start, ignored, by_distance, tile_size, capacity, balls, pairs, scratch):
    """``by_distance``: whether nothing but distance decides on the pairs of bodies that can move."""
    in_cells, n = cells.count[0], cells.count[1]
    sphere, half, extent, tag = proxies.sphere, proxies.half, proxies.extent, proxies.tag
    quaternion, keys = proxies.quaternion, proxies.key
    pair_a, pair_b, count, flat_sphere = pairs.a, pairs.b, pairs.count, sphere.reshape(-1)
    first, used, width, wrap, bits = cells.first, cells.used, cells.width, cells.wrap, cells.bits
    ranges, other_ranges, huge, near = scratch.ranges, scratch.other_ranges, scratch.huge, scratch.near
    begin, end = tile * capacity, (tile + 1) * capacity
    found, last_key, level, number, total, cell_begin, own_end = begin, np.int32(-1), 0, 0, np.int64(0), 0, np.int32(0)
    most, dense = 0, False  # candidates of a body in this cell, and whether many of them touch
    low, high = tile * tile_size, min((tile + 1) * tile_size, n)
    huge_count = huge_bodies_near(low, high, in_cells, n, sphere, extent, tag, quaternion, huge)
    for i in range(low, high):
        if i >= in_cells:  # a huge body, with the others that come after it
            for j in range(i + 1, n):
                if may_touch_huge(i, j, sphere, half, extent, tag, quaternion, balls) and may_collide(i, j, tag, ignored):
                    if found < end:
                        pair_a[found], pair_b[found] = i, j
                    found += 1
            continue
        x, y, z, r = sphere[i, 0], sphere[i, 1], sphere[i, 2], sphere[i, 3]
        if keys[i] != last_key:  # bodies of one cell have the same neighbours
            last_key, level, cell_begin = keys[i], 0, i
            while last_key >= first[level + 1]:
                level += 1
            inverse = 1.0 / width[level]
            ix, iy, iz = floor(x * inverse), floor(y * inverse), floor(z * inverse)
            number, own_end = forward_ranges(ix, iy, iz, wrap, bits, level, first, start, ranges)
            ranges[0, 0], ranges[0, 1] = i, own_end
            most = bodies_in(ranges, number)
            dense = by_distance and r > 0.25 * width[level]  # many of the candidates touch
            shared = start[last_key + 1] - start[last_key] > (2 if dense else 1)  # by bodies for which it pays to bring them together
            total = collect(ranges, number, flat_sphere, near) if shared else np.int64(-1)
        if total < 0:  # few bodies in the cell, or very many around it
            ranges[0, 0], ranges[0, 1] = i + 1, own_end
            if dense and tag[i, MOVES] > 0 and found + most <= end:
                found = append_touching(i, ranges, number, sphere, flat_sphere, pair_a, pair_b, found)
            else:
                found = test_ranges(i, ranges, number, proxies, ignored, balls, pairs, found, end)
        else:
            found = test_collected(i, i - cell_begin + 1, total, scratch, proxies, ignored, balls, pairs, found, end)
        for coarse in range(level):
            if used[coarse] > 0:
                others = coarse_ranges(x, y, z, r, coarse, cells, start, other_ranges)
                found = test_ranges(i, other_ranges, others, proxies, ignored, balls, pairs, found, end)
        for k in range(huge_count):
            j = huge[k]
            if may_touch_huge(i, j, sphere, half, extent, tag, quaternion, balls) and may_collide(i, j, tag, ignored):
                if found < end:
                    pair_a[found], pair_b[found] = i, j
                found += 1
    count[tile] = found - begin


@Kernel
def find_pairs(proxies, cells, start, ignored, tile_size, capacity, balls, pairs):
    """Fill the pairs of each tile; returns the largest count, which above the capacity tells that a tile did not fit."""
    for tile in prange(pairs.count.size):
        pairs_of_tile(np.int64(tile), proxies, cells, start, ignored, tile_size, capacity, balls, pairs)
    return pairs.count.max()
