"""Grid broad phase: the nine stages of paper 000, section 4.2, on the device.

    survey, keys, count, sort, starts   bodies into cells
    count, scan, fill                   candidate pairs, in two passes
    (narrow phase)                      contacts of the pairs

The paper enters each object in up to eight bins. Here each body lies in the one cell that holds its centre and looks at the 27 cells
around it; cells are at least as wide as the bodies in them. Cells wrap around: a body far outside costs a false candidate at worst.
Huge bodies, few and far larger than the rest, are kept out of the cells and tested by their shape.
"""

import math

import numpy as np
import warp as wp

from gravel.gpu.collide.near import has_kept_all, keep_partner, may_collide, may_touch, may_touch_huge
from gravel.gpu.launch import run, scan
from gravel.gpu.structs import Cells, Proxies
from gravel.host.traits import CELLS_PER_BODY, HUGE_LIMIT, HUGE_RATIO

wp.set_module_options({"enable_backward": False, "max_unroll": 0})
OCTAVES = 64  # powers of two of the radius that are told apart, from 2^-32 m on
SURVEYORS = 4096  # threads that look at the bodies in turns, on a GPU
FAR = 1e6  # cells: what lies farther out wraps around


@wp.kernel
def survey(
    proxies: Proxies,
    n: int,
    workers: int,
    count: wp.array2d(dtype=int),
    largest: wp.array2d(dtype=float),
    corner: wp.array2d(dtype=float),
):
    """Of each worker's bodies: how many have a radius in each octave, the largest of those, and the corners of their box."""
    t = wp.tid()
    for k in range(OCTAVES):
        count[t, k] = 0
        largest[t, k] = 0.0
    for k in range(3):
        corner[t, k] = wp.inf
        corner[t, 3 + k] = -wp.inf
    for i in range(t, n, workers):
        r = float(proxies.sphere[i, 3])
        if wp.isfinite(r):
            k = wp.clamp(int(wp.floor(wp.log2(r))) + 32, 0, OCTAVES - 1)
            count[t, k] = count[t, k] + 1
            largest[t, k] = wp.max(largest[t, k], r * 1.000001)  # rounded up
            for axis in range(3):
                x = float(proxies.sphere[i, axis])
                if wp.isfinite(x):
                    corner[t, axis] = wp.min(corner[t, axis], x)
                    corner[t, 3 + axis] = wp.max(corner[t, 3 + axis], x)


@wp.kernel
def sum_up(workers: int, count: wp.array2d(dtype=int), largest: wp.array2d(dtype=float), corner: wp.array2d(dtype=float)):
    """Row 0 := what all workers have found."""
    k = wp.tid()
    for t in range(1, workers):
        if k < OCTAVES:
            count[0, k] = count[0, k] + count[t, k]
            largest[0, k] = wp.max(largest[0, k], largest[t, k])
        elif k < OCTAVES + 3:
            corner[0, k - OCTAVES] = wp.min(corner[0, k - OCTAVES], corner[t, k - OCTAVES])
        else:
            corner[0, k - OCTAVES] = wp.max(corner[0, k - OCTAVES], corner[t, k - OCTAVES])


@wp.func
def place_along(x: wp.float64, width: float):
    """Number of the cell along an axis; what is not a number lies in some cell, too."""
    at = x / wp.float64(width)
    if not wp.isfinite(at):
        return 0
    return int(wp.floor(wp.clamp(at, wp.float64(-1.0e9), wp.float64(1.0e9))))


@wp.func
def cell_at(ix: int, iy: int, iz: int, cells: Cells):
    """Number of a cell from its place along the axes."""
    return (ix & cells.wrap_x) + (((iy & cells.wrap_y) + ((iz & cells.wrap_z) << cells.bits_y)) << cells.bits_x)


@wp.kernel
def find_keys(proxies: Proxies, cells: Cells, key: wp.array(dtype=int), order: wp.array(dtype=int), count: wp.array(dtype=int)):
    """The cell of each body, behind all cells for huge ones; how many each has."""
    i = wp.tid()
    k = cells.total
    if float(proxies.sphere[i, 3]) <= cells.biggest:
        r, w = proxies.sphere, cells.width
        k = cell_at(place_along(r[i, 0], w), place_along(r[i, 1], w), place_along(r[i, 2], w), cells)
    key[i] = k
    order[i] = i
    wp.atomic_add(count, k, 1)


@wp.kernel
def find_pairs(
    proxies: Proxies,
    cells: Cells,
    key: wp.array(dtype=int),
    order: wp.array(dtype=int),
    start: wp.array(dtype=int),
    ignored: wp.array2d(dtype=wp.uint8),
    n: int,
    found: wp.array(dtype=int),
    near: wp.array2d(dtype=int),
    first: wp.array(dtype=int),
    a: wp.array(dtype=int),
    b: wp.array(dtype=int),
):
    """``found`` := candidates of each body, of which ``near`` gets the first few; with room for pairs, all are written down. Bodies are
    taken in the order of the cells, so that threads that run together look at the same ones."""
    k = wp.tid()
    i = order[k]
    if has_kept_all(i, found[i], near, first, a, b):
        return
    count = int(0)
    if k < start[cells.total]:  # not a huge one
        r, w = proxies.sphere, cells.width
        x, y, z = place_along(r[i, 0], w), place_along(r[i, 1], w), place_along(r[i, 2], w)
        for turn in range(27):
            cell = cell_at(x + turn % 3 - 1, y + (turn // 3) % 3 - 1, z + turn // 9 - 1, cells)
            for p in range(start[cell], start[cell + 1]):
                j = order[p]
                if j > i:
                    if may_touch(i, j, proxies) and may_collide(i, j, proxies, ignored):
                        keep_partner(i, j, count, near, first, a, b)
                        count += 1
    for p in range(wp.max(start[cells.total], k + 1), n):
        j = order[p]
        if may_collide(i, j, proxies, ignored):
            if may_touch_huge(i, j, proxies):
                keep_partner(i, j, count, near, first, a, b)
                count += 1
    found[i] = count


def biggest_in_cells(count: np.ndarray, largest: np.ndarray) -> float:
    """The largest radius that goes into cells, see ``gravel.cpu.collide.grid``; 0 if there is none."""
    cut, above, lowest_above = 0.0, 0, math.inf
    for k in range(OCTAVES - 1, -1, -1):
        if count[k] == 0:
            continue
        if cut == 0.0 or (above <= HUGE_LIMIT and largest[k] * HUGE_RATIO <= lowest_above):
            cut = float(largest[k])
        above += int(count[k])
        lowest_above = math.ldexp(1.0, k - 32)
    return cut


def plan_cells(count: np.ndarray, largest: np.ndarray, corner: np.ndarray) -> Cells:
    """Cells for bodies of such reaches within such a box."""
    biggest, in_cells = biggest_in_cells(count, largest), int(count.sum())
    width = 2.0 * max(biggest, 1e-30) * (1.0 + 1e-5)  # a hair more: touching bodies are never two cells apart
    bits = [2, 2, 2]  # at least four cells along an axis, so that the neighbours of a cell are different ones
    for axis in range(3):
        extent = min(max((corner[3 + axis] - corner[axis]) / width, 0.0), FAR) if in_cells else 0.0
        while 1 << bits[axis] <= extent:
            bits[axis] += 1
    while sum(bits) > 6 and 1 << sum(bits) > CELLS_PER_BODY * max(in_cells, 64):
        bits[bits.index(max(bits))] -= 1
    cells = Cells()
    cells.width, cells.biggest, cells.total = width, biggest, 1 << sum(bits)
    cells.wrap_x, cells.wrap_y, cells.wrap_z = ((1 << k) - 1 for k in bits)
    cells.bits_x, cells.bits_y = bits[0], bits[1]
    return cells


class Grid:
    """The grid of a detector: ``sort`` the bodies, then ``count`` and ``fill`` pairs."""

    def __init__(self, buffers):
        self.buffers = buffers

    def sort(self, proxies, n):
        array, device = self.buffers.array, self.buffers.device
        workers = SURVEYORS if device.is_cuda else 1
        seen = (
            array("octave_count", workers, (OCTAVES,), wp.int32),
            array("octave_largest", workers, (OCTAVES,)),
            array("corners", workers, (6,)),
        )
        run(survey, workers, [proxies, n, workers, *seen], device)
        run(sum_up, OCTAVES + 6, [workers, *seen], device)
        self.cells = plan_cells(*(part[:1].numpy()[0] for part in seen))
        key, order = array("cell_key", 2 * n, dtype=wp.int32), array("cell_order", 2 * n, dtype=wp.int32)
        count, start = array("cell_count", self.cells.total + 1, dtype=wp.int32), array("cell_start", self.cells.total + 2, dtype=wp.int32)
        count.zero_()
        start.zero_()
        run(find_keys, n, [proxies, self.cells, key, order, count], device)
        scan(count, start)
        wp.utils.radix_sort_pairs(key, order, n)
        self.sorted = key, order, start

    def find(self, proxies, n, ignored, *out):
        run(find_pairs, n, [proxies, self.cells, *self.sorted, ignored, n, *out], self.buffers.device)

    def order(self, n):
        """The bodies in the order of the cells, on the host."""
        return self.sorted[1][:n].numpy()
