"""Narrow phase: candidate pairs to contacts.

In: pairs and the proxies. Out: ``Contacts``, tile by tile, those of one first body side by side. A contact stays
if its gap is within the margin, or if the bodies could close it within the step at their present relative speed. (Whether
they are closing it now does not matter: a ball that hits another is thrown aside within the step, into a third.)
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.cpu.collide import pair_functions as table
from gravel.cpu.collide import pair_geometry as geometry
from gravel.cpu.collide.bounds import scale_of
from gravel.formulas import tables
from gravel.formulas.bounds import HASTE
from gravel.host.arrays import margin_of
from gravel.host.formulas import FORMS
from gravel.host.threads import ALLOCATING, INNER, Kernel, named
from gravel.shapes import BOX, ELLIPSOID, KINDS, MESH, PLANE, SPHERE
from gravel.state import SHAPE

is_behind = FORMS.of(tables).is_behind


@njit(**INNER)
def may_close(gap, contact_distance, step, velocity, sphere, a, b, x, y, z):
    """Whether a gap is within the margin, or could be closed within the step."""
    return gap <= contact_distance or (
        step > 0.0 and gap <= contact_distance + step * HASTE * closing_speed(velocity, sphere, a, b, x, y, z)
    )


@njit(**INNER)
def closing_speed(velocity, sphere, a, b, x, y, z):
    """How fast a and b may come together at the point (x, y, z) from the centre of a: at their relative speed or, when one of them is
    stopped within the step (balls that fall side by side, and the lowest hits the floor), at the speed of the other."""
    bx, by, bz = x + sphere[a, 0] - sphere[b, 0], y + sphere[a, 1] - sphere[b, 1], z + sphere[a, 2] - sphere[b, 2]
    v = velocity
    ax, ay, az = v[a, 0] + (v[a, 5] * z - v[a, 6] * y), v[a, 1] + (v[a, 6] * x - v[a, 4] * z), v[a, 2] + (v[a, 4] * y - v[a, 5] * x)
    bx, by, bz = v[b, 0] + (v[b, 5] * bz - v[b, 6] * by), v[b, 1] + (v[b, 6] * bx - v[b, 4] * bz), v[b, 2] + (v[b, 4] * by - v[b, 5] * bx)
    ux, uy, uz = bx - ax, by - ay, bz - az
    return math.sqrt(max(ux * ux + uy * uy + uz * uz, ax * ax + ay * ay + az * az, bx * bx + by * by + bz * bz))


@njit(**INNER)
def bound_of_tile(tile, pairs, capacity, tag, simple, many):
    """An upper bound of the tile's contacts: one for pairs with a ball, eight for two convex bodies; with a mesh
    it is not known, and ``many`` are allowed for."""
    if simple:
        return pairs.count[tile]
    bound = 0
    for k in range(tile * capacity, tile * capacity + pairs.count[tile]):
        kind_a, kind_b = tag[pairs.a[k], SHAPE], tag[pairs.b[k], SHAPE]
        if kind_b == MESH or kind_a == MESH:
            bound += many
        else:
            bound += 1 if SPHERE in (kind_a, kind_b) else geometry.MOST_POINTS
    return bound


@njit(**INNER)
def make_room(pairs, capacity, tag, simple, many, contacts):
    """Give each tile its range of contacts; returns how many there may be at most."""
    total = 0
    for tile in range(pairs.count.size):
        contacts.start[tile] = total
        total += bound_of_tile(tile, pairs, capacity, tag, simple, many)
    return total


@njit(**INNER)
def overflown(contacts, total):
    """Whether a tile has more contacts than were allowed for."""
    tiles = contacts.count.size
    for tile in range(tiles):
        end = contacts.start[tile + 1] if tile + 1 < tiles else total
        if contacts.start[tile] + contacts.count[tile] > end:
            return True
    return False


@njit(**INNER)
def in_order(a, b, tag, identity):
    """The two bodies of a pair by the ranks of their kinds, of two alike the lower id first: contacts must not depend, not even in their
    last bit, on the order in which their bodies were found."""
    kind_a, kind_b = tag[a, SHAPE], tag[b, SHAPE]
    return (b, a) if is_behind(kind_a, kind_b) or (kind_a == kind_b and identity[a] > identity[b]) else (a, b)


def make_narrow_phase(pair_contacts, make_work, rows):
    """The work on one tile, for a table of pair functions, its scratch, and the most contacts that one of its pairs may have."""

    @njit(**INNER)
    @named(pair_contacts.py_func.__name__)
    def fill_tile(tile, pairs, capacity, proxies, tile_size, margin, step, contacts, end, out, feature, work):
        pair_a, pair_b, velocity, identity = pairs.a, pairs.b, proxies.velocity, proxies.id
        sphere, extent, tag, quaternion, number_of = (
            proxies.sphere,
            proxies.extent,
            proxies.tag,
            proxies.quaternion,
            proxies.geometry,
        )
        contact_a, contact_b, features, gaps = contacts.a, contacts.b, contacts.feature, contacts.gap
        normal, arm, first, number = contacts.normal, contacts.arm, contacts.first, contacts.number
        c, k = contacts.start[tile], tile * capacity
        last_pair = k + pairs.count[tile]
        for i in range(tile * tile_size, min((tile + 1) * tile_size, proxies.order.size)):
            first[i], is_ball = c, tag[i, SHAPE] == SPHERE
            while k < last_pair and pair_a[k] == i:
                j = pair_b[k]
                k += 1
                if is_ball and tag[j, SHAPE] == SPHERE:  # most pairs of most scenes: straight to their rows
                    a, b = (j, i) if identity[i] > identity[j] else (i, j)
                    dx, dy, dz = sphere[b, 0] - sphere[a, 0], sphere[b, 1] - sphere[a, 1], sphere[b, 2] - sphere[a, 2]
                    if dx == 0.0 and dy == 0.0 and dz == 0.0:
                        dx, dy, dz = geometry.parted(identity[a], identity[b])
                    nx, ny, nz, x, y, z, gap = geometry.between_spheres(extent[a, 0], extent[b, 0], dx, dy, dz)
                    if may_close(gap, margin_of(margin, a, b, sphere, extent, tag), step, velocity, sphere, a, b, x, y, z):
                        if c < end:
                            contact_a[c], contact_b[c], features[c], gaps[c] = a, b, 0, gap
                            normal[c, 0], normal[c, 1], normal[c, 2] = nx, ny, nz
                            arm[c, 0], arm[c, 1], arm[c, 2] = x, y, z
                        c += 1
                    continue
                a, b = in_order(i, j, tag, identity)
                dx, dy, dz = sphere[b, 0] - sphere[a, 0], sphere[b, 1] - sphere[a, 1], sphere[b, 2] - sphere[a, 2]
                radius_a, radius_b = sphere[a, 3] - extent[a, 3], sphere[b, 3] - extent[b, 3]
                contact_distance = margin_of(margin, a, b, sphere, extent, tag)
                size, limit = scale_of(radius_a, radius_b), extent[a, 3] + extent[b, 3]
                found = pair_contacts(a, b, dx, dy, dz, size, limit, extent, tag, quaternion, number_of, work, out, feature)
                for p in range(found):
                    nx, ny, nz, x, y, z, gap = out[p, 0], out[p, 1], out[p, 2], out[p, 3], out[p, 4], out[p, 5], out[p, 6]
                    if may_close(gap, contact_distance, step, velocity, sphere, a, b, x, y, z):
                        if c < end:
                            contact_a[c], contact_b[c], features[c], gaps[c] = a, b, feature[p], gap
                            normal[c, 0], normal[c, 1], normal[c, 2] = nx, ny, nz
                            arm[c, 0], arm[c, 1], arm[c, 2] = x, y, z
                        c += 1
            number[i] = c - first[i]
        contacts.count[tile] = c - contacts.start[tile]

    @njit(**ALLOCATING)
    @named(pair_contacts.py_func.__name__)
    def contacts_of_tile(tile, pairs, capacity, proxies, shapes, tile_size, margin, step, contacts, end):
        out, feature, work = np.empty((rows, 7)), np.empty(rows, np.int32), make_work(shapes)
        fill_tile(tile, pairs, capacity, proxies, tile_size, margin, step, contacts, end, out, feature, work)

    return contacts_of_tile


# One driver for each table, so that a scene need not compile what it does not hold. Each fills the contacts and returns how many
# there may be: only that where there is no room, and -1 where ``many`` were too few.
ball_contacts_of_tile = make_narrow_phase(table.ball_contact, table.no_work, 1)
ball_mesh_contacts_of_tile = make_narrow_phase(table.ball_mesh_contact, table.mesh_work, table.ROWS)
box_contacts_of_tile = make_narrow_phase(table.box_contact, table.box_work, geometry.MOST_POINTS)
ellipsoid_contacts_of_tile = make_narrow_phase(table.ellipsoid_contact, table.ellipsoid_work, 1)


@Kernel
def find_ball_contacts(pairs, capacity, proxies, many, tile_size, margin, step, contacts):
    """Contacts where each pair has a ball, and planes and boxes are all that stands in its way."""
    total, tiles = make_room(pairs, capacity, proxies.tag, True, many, contacts), pairs.count.size
    if total <= contacts.a.size:
        for tile in prange(tiles):
            end = contacts.start[tile + 1] if tile + 1 < tiles else total
            ball_contacts_of_tile(np.int64(tile), pairs, capacity, proxies, 0, tile_size, margin, step, contacts, end)
        if overflown(contacts, total):
            return np.int64(-1)
    return total


@Kernel
def find_ball_mesh_contacts(pairs, capacity, proxies, meshes, many, tile_size, margin, step, contacts):
    """Contacts where meshes may stand in the way of balls, too."""
    total, tiles = make_room(pairs, capacity, proxies.tag, False, many, contacts), pairs.count.size
    if total <= contacts.a.size:
        for tile in prange(tiles):
            end = contacts.start[tile + 1] if tile + 1 < tiles else total
            ball_mesh_contacts_of_tile(np.int64(tile), pairs, capacity, proxies, meshes, tile_size, margin, step, contacts, end)
        if overflown(contacts, total):
            return np.int64(-1)
    return total


@Kernel
def find_box_contacts(pairs, capacity, proxies, many, tile_size, margin, step, contacts):
    """Contacts of balls, boxes and planes."""
    total, tiles = make_room(pairs, capacity, proxies.tag, False, many, contacts), pairs.count.size
    if total <= contacts.a.size:
        for tile in prange(tiles):
            end = contacts.start[tile + 1] if tile + 1 < tiles else total
            box_contacts_of_tile(np.int64(tile), pairs, capacity, proxies, 0, tile_size, margin, step, contacts, end)
        if overflown(contacts, total):
            return np.int64(-1)
    return total


@Kernel
def find_ellipsoid_contacts(pairs, capacity, proxies, method, many, tile_size, margin, step, contacts):
    """Contacts of balls, ellipsoids and planes."""
    total, tiles = make_room(pairs, capacity, proxies.tag, True, many, contacts), pairs.count.size
    if total <= contacts.a.size:
        for tile in prange(tiles):
            end = contacts.start[tile + 1] if tile + 1 < tiles else total
            ellipsoid_contacts_of_tile(np.int64(tile), pairs, capacity, proxies, method, tile_size, margin, step, contacts, end)
        if overflown(contacts, total):
            return np.int64(-1)
    return total


@njit(nogil=True, error_model="numpy", cache=True)
def summarise(start, count, gap):
    """(number of contacts, largest penetration in m)."""
    total, depth = 0, 0.0
    for tile in range(count.size):
        total += count[tile]
        for c in range(start[tile], start[tile] + count[tile]):
            depth = max(depth, -gap[c])
    return total, depth


class PairKernel(NamedTuple):
    """A kernel of the narrow phase: the kinds of shapes that scenes for it may hold, those that may move, and what its driver,
    find_..._contacts, needs."""

    name: str
    kinds: frozenset
    movable: frozenset
    library: object  # function(shapes) -> arguments of the driver


PAIR_KERNELS = (
    PairKernel("ball", frozenset({SPHERE, PLANE, BOX}), frozenset({SPHERE}), lambda shapes: ()),
    PairKernel("ball_mesh", frozenset({SPHERE, PLANE, BOX, MESH}), frozenset({SPHERE}), lambda shapes: (shapes.meshes,)),
    PairKernel("box", frozenset({SPHERE, PLANE, BOX}), frozenset({SPHERE, BOX}), lambda shapes: ()),
    PairKernel("ellipsoid", frozenset({SPHERE, PLANE, ELLIPSOID}), frozenset({SPHERE, ELLIPSOID}), lambda shapes: (shapes.method,)),
    PairKernel("any", frozenset(range(len(KINDS))), frozenset(range(len(KINDS))) - {PLANE}, None),  # by ``shape_pairs``
)


def pair_kernel_of(kinds, movers):
    """The kernel for a scene by its kinds of shapes, and those of bodies that can move (sets)."""
    return next(pair_kernel for pair_kernel in PAIR_KERNELS if kinds <= pair_kernel.kinds and movers <= pair_kernel.movable)
