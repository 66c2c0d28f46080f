"""Broad phase by sweep and prune: bodies in the order of their lower ends along one axis.

In: ``sphere`` of each body and the proxies. Out: candidate pairs, each once, in an order that no thread count changes.

The axis is the one along which the centres spread most. From each body the sweep goes forward as long as intervals overlap,
and tests the rest of the bounds of those it meets. That suits small scenes and thin ones (a chain, a belt, a pipe); in a cube
of N bodies a sweep meets about N^(2/3) of them. Ends are rounded to steps, which widens intervals but loses no pair, since
the rounding keeps the order. Planes and the few bodies that are huge beside the rest come last and are tested by their shape.
"""

import numpy as np
from numba import njit, prange

from gravel.cpu.collide.bvh import near
from gravel.cpu.collide.grid import biggest_in_cells, may_collide, may_touch_huge
from gravel.host.arrays import CHUNK
from gravel.host.sort import radix_sort
from gravel.host.threads import INNER, Kernel
from gravel.host.tree import frame_of, lower_end, upper_end

STEPS = 1 << 29  # into which the axis is divided


@njit(**INNER)
def step_at(x, low, scale):
    """Number of the step that holds x; what lies outside is in the first or the last."""
    v = (x - low) * scale
    return 0 if not v > 0.0 else (STEPS - 1 if v >= STEPS - 1 else np.int64(v))


@njit(**INNER)
def ends_of_chunk(chunk, sphere, biggest, axis, low, scale, keys, count):
    """keys := step of each body's lower end; huge bodies come after all steps."""
    swept = 0
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, keys.size)):
        if sphere[i, 3] <= biggest:
            swept += 1
            keys[i] = step_at(lower_end(sphere[i, axis], sphere[i, 3]), low, scale)
        else:
            keys[i] = STEPS
    count[chunk] = swept


@Kernel
def sort_along_axis(sphere, statistics, keys, order, spare, line):
    """Choose the axis and its steps (``line``: axis, start, steps per m) and sort the bodies by their lower ends (``order``;
    ``keys``: their steps); returns how many are not huge."""
    chunks = (keys.size + CHUNK - 1) // CHUNK
    frame, biggest = frame_of(sphere), biggest_in_cells(statistics)
    axis = 0
    for k in range(1, 3):
        axis = k if frame[3, k] > frame[3, axis] else axis
    width = frame[1, axis] - frame[0, axis]
    line[0], line[1] = axis, frame[0, axis] - frame[1, 3]
    line[2] = STEPS / (width + frame[1, 3]) if width + frame[1, 3] > 0.0 else 0.0
    count = np.zeros(chunks, np.int64)
    for chunk in prange(chunks):
        ends_of_chunk(np.int64(chunk), sphere, biggest, axis, line[1], line[2], keys, count)
    radix_sort(keys, STEPS, order, spare)
    return count.sum()


@njit(**INNER)
def pairs_of_tile(tile, proxies, swept, line, ignored, tile_size, capacity, balls, pairs):
    n, axis, keys = proxies.order.size, np.int64(line[0]), proxies.key
    sphere, half, extent, tag, quaternion = proxies.sphere, proxies.half, proxies.extent, proxies.tag, proxies.quaternion
    pair_a, pair_b, end, found = pairs.a, pairs.b, (tile + 1) * capacity, tile * capacity
    flat = sphere.reshape(-1)
    for i in range(tile * tile_size, min((tile + 1) * tile_size, n)):
        x, y, z, r = sphere[i, 0], sphere[i, 1], sphere[i, 2], sphere[i, 3]
        last = step_at(upper_end(sphere[i, axis], r), line[1], line[2])
        for j in range(np.uint64(i + 1), np.uint64(swept)):
            if keys[j] > last:
                break
            k = j * np.uint64(4)
            dx, dy, dz = flat[k] - x, flat[k + np.uint64(1)] - y, flat[k + np.uint64(2)] - z
            limit = flat[k + np.uint64(3)] + r
            if dx * dx + dy * dy + dz * dz > limit * limit:
                continue
            if near(i, np.int64(j), sphere, half, extent, tag, quaternion, balls) and may_collide(i, j, tag, ignored):
                if found < end:
                    pair_a[found], pair_b[found] = i, j
                found += 1
        for j in range(max(swept, i + 1), n):
            if may_touch_huge(i, j, sphere, half, extent, tag, quaternion, balls) and may_collide(i, j, tag, ignored):
                if found < end:
                    pair_a[found], pair_b[found] = i, j
                found += 1
    pairs.count[tile] = found - tile * capacity


@Kernel
def find_pairs(proxies, swept, line, ignored, tile_size, capacity, balls, pairs):
    """Fill the pairs of each tile; returns the largest count, which above the capacity tells that a tile did not fit."""
    for tile in prange(pairs.count.size):
        pairs_of_tile(np.int64(tile), proxies, swept, line, ignored, tile_size, capacity, balls, pairs)
    return pairs.count.max()
