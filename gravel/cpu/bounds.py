"""Bounds: how far each body may reach in this step.

In: poses, sizes, velocities. Out: ``reach`` (n, 4): centre and the radius of the ball that holds the body, its share of
the contact margin and the way it may travel in the step; ``statistics`` of fixed chunks, from which the grid is planned.
``Arranged`` holds the bodies in the order of a broad phase, with what the pair tests need side by side in memory.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.cpu.vectors import rotate, to_matrix
from gravel.shapes import BOX, PLANE
from gravel.state import IMMOVABLE, MOVABLE, REMOVED

CHUNK = 4096
BINS = 128  # powers of two of the reach, 2^-64 to 2^63


class Margin(NamedTuple):
    """A contact is kept when its gap is below absolute + share * (sizes of its movable bodies)."""

    absolute: float  # m
    share: float  # of the bounding radius of a movable body


class Statistics(NamedTuple):
    """Per chunk of bodies."""

    count: np.ndarray  # (chunks, BINS) bodies with a reach in [2^k, 2^(k+1))
    largest: np.ndarray  # (chunks, BINS) largest reach among them


class Arranged(NamedTuple):
    """Bodies in the order of the broad phase."""

    order: np.ndarray  # (n,) id of each
    reach: np.ndarray  # (n, 4) centre, reach
    slack: np.ndarray  # (n,) reach less bounding radius: margin and travel
    half: np.ndarray  # (n, 3) half extents of the axis-aligned box, with slack; empty where all movable bodies are balls
    shape: np.ndarray  # (n,) kind
    size: np.ndarray  # (n, 3); of a plane its normal in the world frame
    quaternion: np.ndarray  # (n, 4), of boxes; empty where there are none
    group: np.ndarray  # (n,)
    movable: np.ndarray  # (n,) 1 or 0
    material: np.ndarray  # (n,)
    inverse_mass: np.ndarray  # (n,) real
    spin: np.ndarray  # (n,) real, inverse inertia of a ball
    velocity: np.ndarray  # (n + 1, 8) real; the last row is the dummy of padding lanes


@njit(nogil=True)
def slack_of(margin, step, bounding_radius, velocity, status):
    """Margin share and travel of one body, m."""
    slack = 0.5 * margin.absolute
    if status == MOVABLE:
        slack += margin.share * bounding_radius
    speed = math.sqrt(velocity[0] ** 2 + velocity[1] ** 2 + velocity[2] ** 2)
    spin = math.sqrt(velocity[4] ** 2 + velocity[5] ** 2 + velocity[6] ** 2)
    if bounding_radius < math.inf and status == IMMOVABLE:
        speed += spin * bounding_radius
    return slack + step * speed


@njit(parallel=True, nogil=True, cache=True)
def find_bounds(position, velocity, bounding_radius, status, margin, step, reach, statistics):
    """Fill ``reach`` and the chunks' statistics."""
    n = status.size
    for chunk in prange((n + CHUNK - 1) // CHUNK):
        count, largest = statistics.count[chunk], statistics.largest[chunk]
        count[:] = 0
        largest[:] = 0.0
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, n)):
            if status[i] == REMOVED:
                continue
            r = bounding_radius[i] + slack_of(margin, step, bounding_radius[i], velocity[i], status[i])
            reach[i, 0], reach[i, 1], reach[i, 2], reach[i, 3] = position[i, 0], position[i, 1], position[i, 2], r
            if r < math.inf:
                k = min(max(math.frexp(r)[1] + 63, 0), BINS - 1)
                count[k] += 1
                largest[k] = max(largest[k], r)


@njit(nogil=True)
def arrange_body(i, b, bodies, margin, step, reach, balls, arranged):
    """Place i of the order takes the fields of body b."""
    status = bodies.status[b]
    for k in range(4):
        arranged.reach[i, k] = reach[b, k]
    for k in range(3):
        arranged.size[i, k] = bodies.size[b, k]
    for k in range(8):
        arranged.velocity[i, k] = bodies.velocity[b, k]
    slack = slack_of(margin, step, bodies.bounding_radius[b], bodies.velocity[b], status)
    arranged.slack[i] = slack
    arranged.shape[i] = bodies.shape[b]
    arranged.group[i] = bodies.group[b]
    arranged.movable[i] = status == MOVABLE
    arranged.material[i] = bodies.material[b]
    arranged.inverse_mass[i] = bodies.inverse_mass[b]
    arranged.spin[i] = bodies.inverse_inertia[b, 0]
    if bodies.shape[b] == PLANE:
        normal = rotate(to_matrix(bodies.quaternion[b]), bodies.size[b, 0], bodies.size[b, 1], bodies.size[b, 2])
        arranged.size[i, 0], arranged.size[i, 1], arranged.size[i, 2] = normal
    elif bodies.shape[b] == BOX:
        for k in range(4):
            arranged.quaternion[i, k] = bodies.quaternion[b, k]
    if not balls:
        spin = 0.0
        for k in range(4, 7):
            spin += bodies.velocity[b, k] ** 2
        slack += step * math.sqrt(spin) * bodies.bounding_radius[b] if bodies.shape[b] != PLANE else 0.0
        m = to_matrix(bodies.quaternion[b])
        for k in range(3):
            extent = bodies.bounding_radius[b]
            if bodies.shape[b] == BOX:
                extent = abs(m[k][0]) * bodies.size[b, 0] + abs(m[k][1]) * bodies.size[b, 1] + abs(m[k][2]) * bodies.size[b, 2]
            arranged.half[i, k] = min(extent + slack, reach[b, 3])


@njit(parallel=True, nogil=True, cache=True)
def arrange(order, count, bodies, margin, step, reach, balls, arranged):
    """Gather the bodies into the order of the broad phase."""
    for chunk in prange((count + CHUNK - 1) // CHUNK):
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, count)):
            arrange_body(i, order[i], bodies, margin, step, reach, balls, arranged)
    for k in range(8):
        arranged.velocity[count, k] = 0
