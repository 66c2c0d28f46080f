"""Brute force broad phase: every pair. The twin that the other broad phases are tested against."""

from numba import njit, prange

from gravel.cpu.grid import add_pair, close_tile, may_touch, may_touch_huge
from gravel.shapes import PLANE


@njit(parallel=True, nogil=True, cache=True)
def find_all_pairs(arranged, n, ignored, tile_size, capacity, balls, pairs):
    """Fill the pairs of each tile; a count above the capacity tells that the tile did not fit."""
    for tile in prange(pairs.count.size):
        k = 0
        for i in range(tile * tile_size, min((tile + 1) * tile_size, n)):
            for j in range(i + 1, n):
                plane_i, plane_j = arranged.shape[i] == PLANE, arranged.shape[j] == PLANE
                if plane_i and plane_j:
                    continue
                if plane_i:
                    found = may_touch_huge(j, i, arranged, ignored, balls)
                elif plane_j:
                    found = may_touch_huge(i, j, arranged, ignored, balls)
                else:
                    found = may_touch(i, j, arranged, ignored, balls)
                if found:
                    k = add_pair(i, j, tile, capacity, k, pairs)
        close_tile(tile, k, pairs)
