"""Narrow phase: candidate pairs to contacts.

In: pairs and the arranged bodies. Out: ``Contacts``, tile by tile, those of one first body side by side. A contact stays
if its gap is within the margin, or if the bodies could close it within the step at their present relative speed. (Whether
they are closing it now does not matter: a ball that hits another is thrown aside within the step, into a third.)
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.cpu import pair_geometry as geometry
from gravel.cpu.threads import INNER, PARALLEL
from gravel.shapes import BOX, PLANE, SPHERE
from gravel.state import SHAPE


class Contacts(NamedTuple):
    """Contact c of tile t: start[t] <= c < start[t] + count[t]. Bodies are places in the arranged order."""

    a: np.ndarray
    b: np.ndarray
    feature: np.ndarray
    normal: np.ndarray  # (c, 3) real, from a to b
    arm: np.ndarray  # (c, 3) real, from the centre of a to the contact point
    gap: np.ndarray  # (c,) real, negative in penetration
    start: np.ndarray  # (tiles,)
    count: np.ndarray  # (tiles,)
    first: np.ndarray  # (n + 1,) of each arranged body, the first contact it found
    number: np.ndarray  # (n + 1,) and how many


@njit(**INNER)
def relative_speed(velocity, reach, a, b, x, y, z):
    """|velocity of b relative to a| at the point (x, y, z) from the centre of a."""
    bx, by, bz = x + reach[a, 0] - reach[b, 0], y + reach[a, 1] - reach[b, 1], z + reach[a, 2] - reach[b, 2]
    v = velocity
    ux = v[b, 0] - v[a, 0] + (v[b, 5] * bz - v[b, 6] * by) - (v[a, 5] * z - v[a, 6] * y)
    uy = v[b, 1] - v[a, 1] + (v[b, 6] * bx - v[b, 4] * bz) - (v[a, 6] * x - v[a, 4] * z)
    uz = v[b, 2] - v[a, 2] + (v[b, 4] * by - v[b, 5] * bx) - (v[a, 4] * y - v[a, 5] * x)
    return math.sqrt(ux * ux + uy * uy + uz * uz)


@njit(**INNER)
def ball_contact(a, b, dx, dy, dz, extent, tag, quaternion, out, feature):
    """Contact of a ball a with any b that is none."""
    if tag[b, SHAPE] == PLANE:
        return geometry.sphere_plane(extent[a, 0], extent[b], dx, dy, dz, out, feature)
    return geometry.sphere_box(extent[a, 0], extent[b], quaternion[b], dx, dy, dz, out, feature)


@njit(**INNER)
def any_contact(a, b, dx, dy, dz, extent, tag, quaternion, out, feature):
    """Contacts of any pair, the kind of a not above that of b: the table of pair functions."""
    if tag[a, SHAPE] == SPHERE:
        return ball_contact(a, b, dx, dy, dz, extent, tag, quaternion, out, feature)
    limit = extent[a, 3] + extent[b, 3]
    if tag[b, SHAPE] == BOX:
        return geometry.box_box(extent[a], quaternion[a], extent[b], quaternion[b], dx, dy, dz, limit, out, feature)
    if tag[b, SHAPE] == PLANE:
        return geometry.box_plane(extent[a], quaternion[a], extent[b], dx, dy, dz, limit, out, feature)
    return 0


@njit(**INNER)
def bound_of_tile(tile, pairs, capacity, tag, boxes):
    """An upper bound of the tile's contacts."""
    if not boxes:
        return pairs.count[tile]
    bound = 0
    for k in range(tile * capacity, tile * capacity + pairs.count[tile]):
        ball = tag[pairs.a[k], SHAPE] == SPHERE or tag[pairs.b[k], SHAPE] == SPHERE
        bound += 1 if ball else geometry.MOST_POINTS
    return bound


@njit(**INNER)
def make_room(pairs, capacity, tag, boxes, contacts):
    """Give each tile its range of contacts; returns how many there may be at most."""
    total = 0
    for tile in range(pairs.count.size):
        contacts.start[tile] = total
        total += bound_of_tile(tile, pairs, capacity, tag, boxes)
    return total


def make_narrow_phase(pair_contacts):
    """The work on one tile, for a table of pair functions."""

    @njit(**INNER)
    def contacts_of_tile(tile, pairs, capacity, arranged, tile_size, margin, step, contacts):
        pair_a, pair_b, velocity, order = pairs.a, pairs.b, arranged.velocity, arranged.order
        reach, extent, tag, quaternion = arranged.reach, arranged.extent, arranged.tag, arranged.quaternion
        contact_a, contact_b, features, gaps = contacts.a, contacts.b, contacts.feature, contacts.gap
        normal, arm, first, number = contacts.normal, contacts.arm, contacts.first, contacts.number
        out, feature = np.empty((geometry.MOST_POINTS, 7)), np.empty(geometry.MOST_POINTS, np.int32)
        c, k = contacts.start[tile], tile * capacity
        last_pair = k + pairs.count[tile]
        for i in range(tile * tile_size, min((tile + 1) * tile_size, arranged.order.size)):
            first[i] = c
            while k < last_pair and pair_a[k] == i:
                a, b = pair_a[k], pair_b[k]
                k += 1
                kind_a, kind_b = tag[a, SHAPE], tag[b, SHAPE]
                # the lower kind first, and of two boxes the lower id: their contacts must not depend on the order of detection
                if kind_a > kind_b or (kind_a == kind_b and kind_a != SPHERE and order[a] > order[b]):
                    a, b = b, a
                dx, dy, dz = reach[b, 0] - reach[a, 0], reach[b, 1] - reach[a, 1], reach[b, 2] - reach[a, 2]
                near = margin.absolute
                near += margin.share * (reach[a, 3] - extent[a, 3]) if tag[a, 3] else 0.0
                near += margin.share * (reach[b, 3] - extent[b, 3]) if tag[b, 3] else 0.0
                if kind_a == SPHERE and kind_b == SPHERE:  # most pairs of most scenes: straight to their place
                    nx, ny, nz, x, y, z, gap = geometry.between_spheres(extent[a, 0], extent[b, 0], dx, dy, dz)
                    if gap <= near or gap <= near + step * relative_speed(velocity, reach, a, b, x, y, z):
                        contact_a[c], contact_b[c], features[c], gaps[c] = a, b, 0, gap
                        normal[c, 0], normal[c, 1], normal[c, 2] = nx, ny, nz
                        arm[c, 0], arm[c, 1], arm[c, 2] = x, y, z
                        c += 1
                    continue
                for p in range(pair_contacts(a, b, dx, dy, dz, extent, tag, quaternion, out, feature)):
                    nx, ny, nz, x, y, z, gap = out[p, 0], out[p, 1], out[p, 2], out[p, 3], out[p, 4], out[p, 5], out[p, 6]
                    if gap <= near or gap <= near + step * relative_speed(velocity, reach, a, b, x, y, z):
                        contact_a[c], contact_b[c], features[c], gaps[c] = a, b, feature[p], gap
                        normal[c, 0], normal[c, 1], normal[c, 2] = nx, ny, nz
                        arm[c, 0], arm[c, 1], arm[c, 2] = x, y, z
                        c += 1
            number[i] = c - first[i]
        contacts.count[tile] = c - contacts.start[tile]

    return contacts_of_tile


ball_contacts_of_tile = make_narrow_phase(ball_contact)
any_contacts_of_tile = make_narrow_phase(any_contact)


@njit(parallel=PARALLEL, nogil=True, error_model="numpy", cache=True)
def find_ball_contacts(pairs, capacity, arranged, tile_size, margin, step, contacts):
    """Fill the contacts where each pair has a ball; returns how many there may be, and only that if there is no room."""
    total = make_room(pairs, capacity, arranged.tag, False, contacts)
    if total <= contacts.a.size:
        for tile in prange(pairs.count.size):
            ball_contacts_of_tile(np.int64(tile), pairs, capacity, arranged, tile_size, margin, step, contacts)
    return total


@njit(parallel=PARALLEL, nogil=True, error_model="numpy", cache=True)
def find_any_contacts(pairs, capacity, arranged, tile_size, margin, step, contacts):
    """The same for all pairs. A driver of its own, so that scenes of balls need not compile what boxes do."""
    total = make_room(pairs, capacity, arranged.tag, True, contacts)
    if total <= contacts.a.size:
        for tile in prange(pairs.count.size):
            any_contacts_of_tile(np.int64(tile), pairs, capacity, arranged, tile_size, margin, step, contacts)
    return total
