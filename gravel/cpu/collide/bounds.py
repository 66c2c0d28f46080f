"""Bounds: how far each body may reach in this step.

In: poses, sizes, velocities. Out: ``reach`` (n, 4): centre and the radius of the ball that holds the body, its share of
the contact margin and the way it may travel in the step; ``statistics`` of fixed chunks, from which the grid is planned.
``Arranged`` holds the bodies in the order of a broad phase, with what the pair tests need side by side in memory.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.formulas import bounds
from gravel.formulas.bounds import BALL, HASTE, MOVES, OTHER
from gravel.host.formulas import FORMS
from gravel.host.threads import INNER, Kernel
from gravel.host.vectors import rotate, to_matrix
from gravel.shapes import PLANE, SPHERE
from gravel.state import MOVABLE, SHAPE, STATUS

CHUNK = 4096
BINS = 128  # powers of two of the reach, 2^-64 to 2^63

_formulas = FORMS.of(bounds)
half_extents, scale_of = _formulas.half_extents, _formulas.scale_of


class Statistics(NamedTuple):
    """Per chunk of bodies."""

    count: np.ndarray  # (chunks, BINS) bodies with a reach in [2^k, 2^(k+1))
    largest: np.ndarray  # (chunks, BINS) largest reach among them


class BodyArrays(NamedTuple):
    """The fields of the bodies, see ``gravel.state``."""

    id: np.ndarray
    position: np.ndarray
    quaternion: np.ndarray
    velocity: np.ndarray
    inverse_mass: np.ndarray
    extent: np.ndarray
    tag: np.ndarray
    geometry: np.ndarray


class Arranged(NamedTuple):
    """Bodies in the order of the broad phase."""

    order: np.ndarray  # (n,) row of each in the engine's state
    id: np.ndarray  # (n,)
    key: np.ndarray  # (n,) its cell
    reach: np.ndarray  # (n, 4) centre, reach
    extent: np.ndarray  # (n, 4) size (of a plane its normal in the world frame), slack: reach less bounding radius
    tag: np.ndarray  # (n, 4) shape, material, group, MOVES
    mass: np.ndarray  # (n, 2) real, inverse mass and, of a ball, inverse inertia
    velocity: np.ndarray  # (n + 1, 8) real; the last row is the dummy of padding lanes
    half: np.ndarray  # (n, 3) half extents of the axis-aligned box, with slack; empty where all movable bodies are balls
    quaternion: np.ndarray  # (n, 4), of what is neither ball nor plane; empty where there is nothing else
    geometry: np.ndarray  # (n,) number of the geometry; empty where there is none


@njit(**INNER)
def is_ball(shape, inverse_mass, i):
    return shape == SPHERE and inverse_mass[i, 1] == inverse_mass[i, 2] and inverse_mass[i, 2] == inverse_mass[i, 3]


@njit(**INNER)
def margin_of(margin, a, b, reach, extent, tag):
    """The gap below which two arranged bodies count as touching."""
    near = margin.absolute
    near += margin.share * (reach[a, 3] - extent[a, 3]) if tag[a, MOVES] else 0.0
    near += margin.share * (reach[b, 3] - extent[b, 3]) if tag[b, MOVES] else 0.0
    return near


@njit(**INNER)
def slack_of(margin, step, bounding_radius, velocity, i, status, shape):
    """Margin share and travel of one body, m."""
    slack = 0.5 * margin.absolute
    if status == MOVABLE:
        slack += margin.share * bounding_radius
    speed = math.sqrt(velocity[i, 0] ** 2 + velocity[i, 1] ** 2 + velocity[i, 2] ** 2)
    if bounding_radius < math.inf and shape != SPHERE:  # a corner may travel with the turning
        speed += math.sqrt(velocity[i, 4] ** 2 + velocity[i, 5] ** 2 + velocity[i, 6] ** 2) * bounding_radius
    return slack + step * HASTE * speed


@njit(**INNER)
def bounds_of_chunk(chunk, position, velocity, extent, tag, margin, step, reach, statistics):
    count, largest = statistics.count[chunk], statistics.largest[chunk]
    for k in range(BINS):
        count[k] = 0
        largest[k] = 0.0
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, reach.shape[0])):
        r = extent[i, 3] + slack_of(margin, step, extent[i, 3], velocity, i, tag[i, STATUS], tag[i, SHAPE])
        reach[i, 0], reach[i, 1], reach[i, 2], reach[i, 3] = position[i, 0], position[i, 1], position[i, 2], r
        if r < math.inf:
            k = min(max(math.frexp(r)[1] + 63, 0), BINS - 1)
            count[k] += 1
            largest[k] = max(largest[k], r)


@Kernel
def find_bounds(position, velocity, extent, tag, margin, step, reach, statistics):
    """Fill ``reach`` and the chunks' statistics."""
    for chunk in prange(statistics.count.shape[0]):
        bounds_of_chunk(np.int64(chunk), position, velocity, extent, tag, margin, step, reach, statistics)


@njit(**INNER)
def arrange_chunk(chunk, order, keys, bodies, jointed, half, margin, step, reach, balls, arranged):
    velocity, extent, tag, quaternion, mass = bodies.velocity, bodies.extent, bodies.tag, bodies.quaternion, bodies.inverse_mass
    to_key, to_reach, to_extent, to_tag, to_mass = arranged.key, arranged.reach, arranged.extent, arranged.tag, arranged.mass
    to_velocity, to_half, to_quaternion, to_geometry = arranged.velocity, arranged.half, arranged.quaternion, arranged.geometry
    geometry, identity, to_id = bodies.geometry, bodies.id, arranged.id
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, order.size)):
        b = order[i]
        to_id[i] = identity[b]
        to_key[i] = keys[b]
        for k in range(4):
            to_reach[i, k] = reach[b, k]
        if step > 0.0:  # nothing moves in a detection alone
            for k in range(8):
                to_velocity[i, k] = velocity[b, k]
        for k in range(3):
            to_extent[i, k] = extent[b, k]
            to_tag[i, k] = tag[b, k]
        to_tag[i, MOVES] = 0
        if tag[b, STATUS] == MOVABLE:
            to_tag[i, MOVES] = BALL if is_ball(tag[b, SHAPE], mass, b) and not (jointed.size > 0 and jointed[b]) else OTHER
        to_mass[i, 0], to_mass[i, 1] = mass[b, 0], mass[b, 1]
        shape, slack = tag[b, SHAPE], reach[b, 3] - extent[b, 3]
        if shape == PLANE:
            slack = slack_of(margin, step, extent[b, 3], velocity, b, tag[b, STATUS], shape)
            to_extent[i, 0], to_extent[i, 1], to_extent[i, 2] = rotate(to_matrix(quaternion[b]), extent[b, 0], extent[b, 1], extent[b, 2])
        elif shape != SPHERE:
            for k in range(4):
                to_quaternion[i, k] = quaternion[b, k]
        if to_geometry.size > 0:
            to_geometry[i] = geometry[b]
        to_extent[i, 3] = slack
        if not balls:
            size = extent[b, 0], extent[b, 1], extent[b, 2]
            x, y, z = half_extents(shape, *size, extent[b, 3], quaternion[b], geometry[b], half)
            to_half[i, 0], to_half[i, 1], to_half[i, 2] = x + slack, y + slack, z + slack


@Kernel
def arrange(order, keys, bodies, jointed, half, margin, step, reach, balls, arranged):
    """Gather the bodies into the order of the broad phase. Joints act beside a ball's middle, so what has one is no ball."""
    for chunk in prange((order.size + CHUNK - 1) // CHUNK):
        arrange_chunk(np.int64(chunk), order, keys, bodies, jointed, half, margin, step, reach, balls, arranged)
    for k in range(8):
        arranged.velocity[order.size, k] = 0
