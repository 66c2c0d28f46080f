"""Brute force broad phase: every pair. The twin that the other broad phases are tested against."""

import numpy as np
from numba import njit, prange

from gravel.cpu.collide.grid import may_collide, may_touch, may_touch_huge
from gravel.host.threads import INNER, Kernel
from gravel.shapes import PLANE
from gravel.state import SHAPE


@njit(**INNER)
def pairs_of_tile(tile, proxies, ignored, tile_size, capacity, balls, pairs):
    sphere, half, extent, tag, quaternion = proxies.sphere, proxies.half, proxies.extent, proxies.tag, proxies.quaternion
    pair_a, pair_b, count, n = pairs.a, pairs.b, pairs.count, proxies.order.size
    k, end = tile * capacity, (tile + 1) * capacity
    found = k
    for i in range(tile * tile_size, min((tile + 1) * tile_size, n)):
        for j in range(i + 1, n):
            if not may_collide(i, j, tag, ignored):
                continue
            if tag[i, SHAPE] == PLANE:
                near = may_touch_huge(j, i, sphere, half, extent, tag, quaternion, balls)
            elif tag[j, SHAPE] == PLANE:
                near = may_touch_huge(i, j, sphere, half, extent, tag, quaternion, balls)
            else:
                near = may_touch(i, j, sphere, half, balls)
            if near:
                if found < end:
                    pair_a[found], pair_b[found] = i, j
                found += 1
    count[tile] = found - k


@Kernel
def find_all_pairs(proxies, ignored, tile_size, capacity, balls, pairs):
    """Fill the pairs of each tile; returns the largest count, which above the capacity tells that a tile did not fit."""
    for tile in prange(pairs.count.size):
        pairs_of_tile(np.int64(tile), proxies, ignored, tile_size, capacity, balls, pairs)
    return pairs.count.max()
