"""Bounds: the swept bounding sphere of each body in this step.

In: poses, sizes, velocities. Out: ``sphere`` (n, 4), the swept bounding sphere: its centre, and a radius that holds the body, its share of
the contact margin and its travel in the step; ``statistics`` of fixed chunks, from which the grid is planned.
The bodies are arranged in the order of a broad phase, with what the pair tests need side by side in memory (``Proxies``).
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.formulas import bounds
from gravel.formulas.bounds import BALL, MOVES, OTHER
from gravel.host.arrays import CHUNK, is_ball, slack_of
from gravel.host.formulas import FORMS
from gravel.host.threads import INNER, Kernel
from gravel.host.vectors import rotate, to_matrix
from gravel.shapes import PLANE, SPHERE
from gravel.state import MOVABLE, SHAPE, STATUS

BINS = 128  # powers of two of the radius, 2^-64 to 2^63

_formulas = FORMS.of(bounds)
half_extents, scale_of = _formulas.half_extents, _formulas.scale_of


class Statistics(NamedTuple):
    """Per chunk of bodies."""

    count: np.ndarray  # (chunks, BINS) bodies with a radius in [2^k, 2^(k+1))
    largest: np.ndarray  # (chunks, BINS) largest radius among them


@njit(**INNER)
def bounds_of_chunk(chunk, position, velocity, extent, tag, margin, step, sphere, statistics):
    count, largest = statistics.count[chunk], statistics.largest[chunk]
    for k in range(BINS):
        count[k] = 0
        largest[k] = 0.0
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, sphere.shape[0])):
        r = extent[i, 3] + slack_of(margin, step, extent[i, 3], velocity, i, tag[i, STATUS], tag[i, SHAPE])
        sphere[i, 0], sphere[i, 1], sphere[i, 2], sphere[i, 3] = position[i, 0], position[i, 1], position[i, 2], r
        if r < math.inf:
            k = min(max(math.frexp(r)[1] + 63, 0), BINS - 1)
            count[k] += 1
            largest[k] = max(largest[k], r)


@Kernel
def find_bounds(position, velocity, extent, tag, margin, step, sphere, statistics):
    """Fill ``sphere`` and the chunks' statistics."""
    for chunk in prange(statistics.count.shape[0]):
        bounds_of_chunk(np.int64(chunk), position, velocity, extent, tag, margin, step, sphere, statistics)


@njit(**INNER)
def make_proxies_of_chunk(chunk, order, keys, bodies, jointed, half, margin, step, sphere, balls, proxies):
    velocity, extent, tag, quaternion, mass = bodies.velocity, bodies.extent, bodies.tag, bodies.quaternion, bodies.inverse_mass
    to_key, to_sphere, to_extent, to_tag, to_mass = proxies.key, proxies.sphere, proxies.extent, proxies.tag, proxies.mass
    to_velocity, to_half, to_quaternion, to_geometry = proxies.velocity, proxies.half, proxies.quaternion, proxies.geometry
    geometry, identity, to_id = bodies.geometry, bodies.id, proxies.id
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, order.size)):
        b = order[i]
        to_id[i] = identity[b]
        to_key[i] = keys[b]
        for k in range(4):
            to_sphere[i, k] = sphere[b, k]
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
        shape, slack = tag[b, SHAPE], sphere[b, 3] - extent[b, 3]
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
def make_proxies(order, keys, bodies, jointed, half, margin, step, sphere, balls, proxies):
    """Gather the bodies into the order of the broad phase. Joints act beside a ball's middle, so what has one is no ball."""
    for chunk in prange((order.size + CHUNK - 1) // CHUNK):
        make_proxies_of_chunk(np.int64(chunk), order, keys, bodies, jointed, half, margin, step, sphere, balls, proxies)
    for k in range(8):
        proxies.velocity[order.size, k] = 0
