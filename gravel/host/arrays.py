"""The arrays that stages hand to each other, as named tuples that kernels take, and how far a body may reach in a step.

An engine's rows are ``BodyArrays``; detection arranges a copy of them in the order of its broad phase (``Proxies``), lists candidate
``Pairs`` and finds ``Contacts`` between them.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from gravel.formulas.bounds import HASTE, MOVES
from gravel.host.threads import INNER
from gravel.shapes import SPHERE
from gravel.state import MOVABLE

CHUNK = 4096  # bodies that a thread takes at a time: fixed, so that results do not depend on the number of threads


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


class Proxies(NamedTuple):
    """Proxies of the bodies: copies in the order of the broad phase, on which detection and the solver work."""

    order: np.ndarray  # (n,) row of each in the engine's state
    id: np.ndarray  # (n,)
    key: np.ndarray  # (n,) its cell
    sphere: np.ndarray  # (n, 4) swept bounding sphere: centre, radius
    extent: np.ndarray  # (n, 4) size (of a plane its normal in the world frame), slack: radius of the sphere less bounding radius
    tag: np.ndarray  # (n, 4) shape, material, group, MOVES
    mass: np.ndarray  # (n, 2) real, inverse mass and, of a ball, inverse inertia
    velocity: np.ndarray  # (n + 1, 8) real; the last row is the dummy of padding lanes
    half: np.ndarray  # (n, 3) half extents of the axis-aligned box, with slack; empty where all movable bodies are balls
    quaternion: np.ndarray  # (n, 4), of what is neither ball nor plane; empty where there is nothing else
    geometry: np.ndarray  # (n,) number of the geometry; empty where there is none


class Pairs(NamedTuple):
    """Candidate pairs by tile of the first body: tile t holds entries [t * capacity, t * capacity + count[t])."""

    a: np.ndarray
    b: np.ndarray
    count: np.ndarray


class Contacts(NamedTuple):
    """Contact c of tile t: start[t] <= c < start[t] + count[t]. Bodies are indices of proxies."""

    a: np.ndarray
    b: np.ndarray
    feature: np.ndarray
    normal: np.ndarray  # (c, 3) real, from a to b
    arm: np.ndarray  # (c, 3) real, from the centre of a to the contact point
    gap: np.ndarray  # (c,) real, negative in penetration
    start: np.ndarray  # (tiles,)
    count: np.ndarray  # (tiles,)
    first: np.ndarray  # (n + 1,) of each proxy, the first contact it found
    number: np.ndarray  # (n + 1,) and how many


@njit(**INNER)
def is_ball(shape, inverse_mass, i):
    return shape == SPHERE and inverse_mass[i, 1] == inverse_mass[i, 2] and inverse_mass[i, 2] == inverse_mass[i, 3]


@njit(**INNER)
def margin_of(margin, a, b, sphere, extent, tag):
    """The gap below which two proxies count as touching."""
    contact_distance = margin.absolute
    contact_distance += margin.share * (sphere[a, 3] - extent[a, 3]) if tag[a, MOVES] else 0.0
    contact_distance += margin.share * (sphere[b, 3] - extent[b, 3]) if tag[b, MOVES] else 0.0
    return contact_distance


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
