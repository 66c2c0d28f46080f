"""Collision filter: bodies that are joined do not collide. Their candidate pairs are taken out of the list.

In: candidate pairs by tile, rows of the filtered pairs. Out: the same list without them, in the same order.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.host.threads import INNER, Kernel


class Excluded(NamedTuple):
    joined: np.ndarray  # (rows,) u1: whether a body is in any of the pairs, so that most need no search
    keys: np.ndarray  # (pairs,) lower row * 2^32 + higher row, sorted


def make_excluded(pairs, rows):
    """From (p, 2) rows of the bodies, -1 for those that are gone."""
    pairs = np.sort(pairs[(pairs >= 0).all(axis=1)], axis=1)
    joined = np.zeros(rows, np.uint8)
    joined[pairs.reshape(-1)] = 1
    return Excluded(joined, np.unique(pairs[:, 0] << 32 | pairs[:, 1]))


@njit(**INNER)
def contains(keys, key):
    low, high = 0, keys.size
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low < keys.size and keys[low] == key


@njit(**INNER)
def exclude_in_tile(tile, capacity, order, excluded, pairs):
    first, kept = tile * capacity, 0
    for k in range(first, first + pairs.count[tile]):
        a, b = np.int64(order[pairs.a[k]]), np.int64(order[pairs.b[k]])
        if excluded.joined[a] and excluded.joined[b] and contains(excluded.keys, min(a, b) << 32 | max(a, b)):
            continue
        pairs.a[first + kept], pairs.b[first + kept] = pairs.a[k], pairs.b[k]
        kept += 1
    pairs.count[tile] = kept


@Kernel
def exclude_pairs(capacity, order, excluded, pairs):
    for tile in prange(pairs.count.size):
        exclude_in_tile(np.int64(tile), capacity, order, excluded, pairs)
