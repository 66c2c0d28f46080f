"""Bodies and contacts by box of space, for detection that goes box by box (``gravel.detection.batches``)."""

import numpy as np
from numba import njit, prange

from gravel.host.threads import INNER, Kernel


@njit(**INNER)
def lower_bound(x, radius):
    """Lower end of a body's bounding cube along an axis; a hair below, so that cubes of bodies that touch do overlap."""
    return x - radius * (1.0 + 1e-9) - abs(x) * 1e-15


@njit(nogil=True, error_model="numpy", cache=True)
def split_bodies(positions, radii, bodies, axis, at):
    """(bodies that reach below ``at``, bodies that reach above it) along an axis; those that do both are in both."""
    left, right = np.empty(bodies.size, bodies.dtype), np.empty(bodies.size, bodies.dtype)
    lefts, rights = 0, 0
    for k in range(bodies.size):
        b = bodies[k]
        x, r = positions[b, axis], radii[b]
        if lower_bound(x, r) < at:
            left[lefts] = b
            lefts += 1
        if -lower_bound(-x, r) >= at:
            right[rights] = b
            rights += 1
    return left[:lefts].copy(), right[:rights].copy()


def owned(reach_a, reach_b, low, high):
    """Which pairs of bodies have their lowest common corner in the box from ``low`` to ``high``."""
    lower = lambda sphere: lower_bound.py_func(sphere[:, :3], sphere[:, 3:])  # noqa: E731
    corner = np.maximum(lower(reach_a), lower(reach_b))
    return np.all((corner >= low) & (corner < high), axis=1)


@njit(**INNER)
def count_owned_of_tile(tile, contacts, sphere, low, high):
    count = 0
    for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
        a, b = contacts.a[c], contacts.b[c]
        inside = True
        for k in range(3):
            corner = max(lower_bound(sphere[a, k], sphere[a, 3]), lower_bound(sphere[b, k], sphere[b, 3]))
            inside = inside and low[k] <= corner and corner < high[k]
        count += inside
    return count


@Kernel
def count_owned(contacts, sphere, low, high):
    """How many contacts have their lowest common corner in the box from ``low`` to ``high``."""
    counts = np.zeros(contacts.count.size, np.int64)
    for tile in prange(contacts.count.size):
        counts[tile] = count_owned_of_tile(np.int64(tile), contacts, sphere, low, high)
    return counts.sum()
