"""Narrow phase: candidate pairs to contacts.

In: pairs and the arranged bodies. Out: ``Contacts``, tile by tile, those of one first body side by side. A contact stays
if its gap is within the margin, or if the bodies close it within the step at their present speed.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.cpu import pair_geometry as geometry
from gravel.shapes import BOX, PLANE, SPHERE


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


@njit(nogil=True)
def closing_speed(arranged, a, b, nx, ny, nz, x, y, z):
    """- d gap / dt at the point (x, y, z) from the centre of a."""
    va, vb, ra, rb = arranged.velocity[a], arranged.velocity[b], arranged.reach[a], arranged.reach[b]
    bx, by, bz = x + ra[0] - rb[0], y + ra[1] - rb[1], z + ra[2] - rb[2]
    ux = vb[0] - va[0] + (vb[5] * bz - vb[6] * by) - (va[5] * z - va[6] * y)
    uy = vb[1] - va[1] + (vb[6] * bx - vb[4] * bz) - (va[6] * x - va[4] * z)
    uz = vb[2] - va[2] + (vb[4] * by - vb[5] * bx) - (va[4] * y - va[5] * x)
    return -(ux * nx + uy * ny + uz * nz)


@njit(nogil=True)
def most_contacts(arranged, a, b):
    """Upper bound of the contacts of a pair."""
    return 1 if arranged.shape[a] == SPHERE or arranged.shape[b] == SPHERE else geometry.MOST_POINTS


@njit(nogil=True)
def keep_contact(contacts, c, a, b, feature, nx, ny, nz, x, y, z, gap):
    contacts.a[c], contacts.b[c], contacts.feature[c] = a, b, feature
    contacts.normal[c, 0], contacts.normal[c, 1], contacts.normal[c, 2] = nx, ny, nz
    contacts.arm[c, 0], contacts.arm[c, 1], contacts.arm[c, 2] = x, y, z
    contacts.gap[c] = gap


@njit(nogil=True)
def close_body(contacts, i, first, end):
    contacts.first[i], contacts.number[i] = first, end - first


@njit(nogil=True)
def close_tile(contacts, tile, end):
    contacts.count[tile] = end - contacts.start[tile]


def make_narrow_phase(boxes):
    """The kernel; ``boxes`` says whether pairs without a ball occur. Without them their functions are not compiled."""

    @njit(parallel=True, nogil=True, cache=True)
    def find_contacts(pairs, pair_capacity, arranged, tile_size, margin, step, contacts):
        """Fill the contacts; returns how many there may be at most, and does nothing else if that is too many."""
        tiles = pairs.count.size
        for tile in prange(tiles):
            bound = pairs.count[tile]
            if boxes:
                bound = 0
                for k in range(tile * pair_capacity, tile * pair_capacity + pairs.count[tile]):
                    bound += most_contacts(arranged, pairs.a[k], pairs.b[k])
            close_tile(contacts, tile, contacts.start[tile] + bound)
        total = 0
        for tile in range(tiles):
            contacts.start[tile] = total
            total += contacts.count[tile]
        if total > contacts.a.size:
            return total
        for tile in prange(tiles):
            out, feature = np.empty((geometry.MOST_POINTS, 7)), np.empty(geometry.MOST_POINTS, np.int32)
            c, k = contacts.start[tile], tile * pair_capacity
            last_pair = k + pairs.count[tile]
            for i in range(tile * tile_size, min((tile + 1) * tile_size, arranged.order.size)):
                first = c
                while k < last_pair and pairs.a[k] == i:
                    a, b = pairs.a[k], pairs.b[k]
                    k += 1
                    if arranged.shape[a] > arranged.shape[b]:
                        a, b = b, a
                    ra, rb, size_a, size_b = arranged.reach[a], arranged.reach[b], arranged.size[a], arranged.size[b]
                    dx, dy, dz = rb[0] - ra[0], rb[1] - ra[1], rb[2] - ra[2]
                    near = margin.absolute
                    near += margin.share * (ra[3] - arranged.slack[a]) if arranged.movable[a] else 0.0
                    near += margin.share * (rb[3] - arranged.slack[b]) if arranged.movable[b] else 0.0
                    limit = arranged.slack[a] + arranged.slack[b]
                    kind_a, kind_b = arranged.shape[a], arranged.shape[b]
                    if kind_a == SPHERE and kind_b == SPHERE:
                        found = geometry.sphere_sphere(size_a[0], size_b[0], dx, dy, dz, out, feature)
                    elif kind_a == SPHERE and kind_b == PLANE:
                        found = geometry.sphere_plane(size_a[0], size_b, dx, dy, dz, out, feature)
                    elif kind_a == SPHERE:
                        found = geometry.sphere_box(size_a[0], size_b, arranged.quaternion[b], dx, dy, dz, out, feature)
                    else:
                        found = 0
                        if boxes:
                            if kind_b == PLANE:
                                found = geometry.box_plane(size_a, arranged.quaternion[a], size_b, dx, dy, dz, limit, out, feature)
                            elif kind_b == BOX:
                                found = geometry.box_box(
                                    size_a, arranged.quaternion[a], size_b, arranged.quaternion[b], dx, dy, dz, limit, out, feature
                                )
                    for p in range(found):
                        nx, ny, nz, x, y, z, gap = out[p, 0], out[p, 1], out[p, 2], out[p, 3], out[p, 4], out[p, 5], out[p, 6]
                        if gap <= near or gap <= near + step * closing_speed(arranged, a, b, nx, ny, nz, x, y, z):
                            keep_contact(contacts, c, a, b, feature[p], nx, ny, nz, x, y, z, gap)
                            c += 1
                close_body(contacts, i, first, c)
            close_tile(contacts, tile, c)
        return total

    return find_contacts
