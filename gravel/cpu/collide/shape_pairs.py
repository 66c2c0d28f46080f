"""Contacts of all shapes: pairs of bodies are expanded to pairs of simple shapes, and each table of functions handles its own.

A compound is as many shapes as it has children; a shape pair is one shape of a with one of b. They are listed tile by tile, in the
order of the pairs; every table then fills in the rows of its shape pairs, and in the end the rows of each pair are gathered as
contacts. Three passes instead of one, because Numba compiles a function again with every one that calls it: in one piece, all
shapes took minutes to compile. A scene compiles the tables that it has shape pairs for.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.cpu.collide import pair_geometry as geometry
from gravel.cpu.collide.bounds import scale_of
from gravel.cpu.collide.ellipsoids import between_ellipsoids
from gravel.cpu.collide.gjk import make_work
from gravel.cpu.collide.manifold import convex_convex, convex_plane
from gravel.cpu.collide.meshes import collect, mesh_mesh, sphere_mesh, thin_out_by_normal
from gravel.cpu.collide.narrow import in_order, may_close
from gravel.cpu.collide.pair_functions import ROWS
from gravel.cpu.collide.rounds import sphere_round
from gravel.cpu.collide.support import Solid, solid_of
from gravel.formulas import tables
from gravel.formulas.tables import BOXES, CONVEX, MESH_PAIRS, MESHES, ROUND
from gravel.host.arrays import margin_of
from gravel.host.formulas import FORMS
from gravel.host.threads import INNER, Kernel, named
from gravel.host.vectors import rotate, rotate_back, to_matrix
from gravel.shapes import BOX, COMPOUND, ELLIPSOID, MESH, PLANE, SPHERE
from gravel.state import SHAPE, can_move

_tables = FORMS.of(tables)
table_between, is_behind, rows_of = _tables.table_between, _tables.is_behind, _tables.rows_of


class ShapePairs(NamedTuple):
    """Shape pairs of tile t: [t * capacity, t * capacity + count[t])."""

    pair: np.ndarray  # row of the pair
    child_a: np.ndarray  # row of the child, or -1: the body itself
    child_b: np.ndarray
    table: np.ndarray
    start: np.ndarray  # its first row in ``Rows``
    found: np.ndarray  # how many rows it has filled
    count: np.ndarray  # (tiles,)


class Rows(NamedTuple):
    """Contacts of the shape pairs, before it is known which of them are near enough."""

    values: np.ndarray  # (rows, 7) as in ``pair_geometry``
    feature: np.ndarray


@njit(**INNER)
def children_of(body, tag, number, first_child):
    """(first, last) child of a compound; of any other body (-1, 0), the one that stands for itself."""
    if tag[body, SHAPE] != COMPOUND:
        return np.int64(-1), np.int64(0)
    return first_child[number[body]], first_child[number[body] + 1]


@njit(**INNER)
def ball_of_child(body, child, sphere, extent, quaternion, children):
    """(centre from the body's, radius) of the ball around a child, or around the body itself."""
    if child < 0:
        return 0.0, 0.0, 0.0, sphere[body, 3] - extent[body, 3]
    scale, p = extent[body, 0], children.child_position
    x, y, z = rotate(to_matrix(quaternion[body]), scale * p[child, 0], scale * p[child, 1], scale * p[child, 2])
    return x, y, z, scale * children.child_radius[child]


@njit(**INNER)
def kind_of(body, child, tag, children):
    return tag[body, SHAPE] if child < 0 else children.child_kind[child]


@njit(**INNER)
def shape_pairs_of_tile(tile, pairs, pair_capacity, proxies, children, capacity, shape_pairs):
    tag, sphere, extent, quaternion = proxies.tag, proxies.sphere, proxies.extent, proxies.quaternion
    number, identity, first_child = proxies.geometry, proxies.id, children.first_child
    begin = tile * capacity
    count, end = begin, begin + capacity
    for k in range(tile * pair_capacity, tile * pair_capacity + pairs.count[tile]):
        a, b = in_order(pairs.a[k], pairs.b[k], tag, identity)
        if tag[a, SHAPE] == SPHERE and tag[b, SHAPE] == SPHERE:
            continue
        dx, dy, dz = sphere[b, 0] - sphere[a, 0], sphere[b, 1] - sphere[a, 1], sphere[b, 2] - sphere[a, 2]
        limit = extent[a, 3] + extent[b, 3]
        first_a, last_a = children_of(a, tag, number, first_child)
        first_b, last_b = children_of(b, tag, number, first_child)
        for i in range(first_a, last_a):
            ax, ay, az, radius_a = ball_of_child(a, i, sphere, extent, quaternion, children)
            for j in range(first_b, last_b):
                bx, by, bz, radius_b = ball_of_child(b, j, sphere, extent, quaternion, children)
                x, y, z, far = dx + bx - ax, dy + by - ay, dz + bz - az, radius_a + radius_b + limit
                if tag[b, SHAPE] == PLANE:
                    apart = -(x * extent[b, 0] + y * extent[b, 1] + z * extent[b, 2]) > radius_a + limit
                else:
                    apart = x * x + y * y + z * z > far * far
                if apart:
                    continue
                if count < end:
                    kind_a, kind_b = kind_of(a, i, tag, children), kind_of(b, j, tag, children)
                    shape_pairs.pair[count], shape_pairs.child_a[count], shape_pairs.child_b[count] = k, i, j
                    shape_pairs.table[count] = table_between(kind_a, kind_b)
                    shape_pairs.found[count] = 0
                count += 1
    shape_pairs.count[tile] = count - begin


@Kernel
def list_shape_pairs(pairs, pair_capacity, proxies, children, capacity, shape_pairs):
    """Fill the shape pairs; returns the most that a tile has, which above the capacity tells that they did not fit."""
    for tile in prange(pairs.count.size):
        shape_pairs_of_tile(np.int64(tile), pairs, pair_capacity, proxies, children, capacity, shape_pairs)
    return shape_pairs.count.max()


@njit(nogil=True, error_model="numpy", cache=True)
def make_room(pairs, pair_capacity, tag, capacity, shape_pairs, many, start):
    """First row of each shape pair and first contact of each tile (``start``): (rows, contacts, whether each table has shape pairs)."""
    used = np.zeros(5, np.bool_)
    rows, total = 0, 0
    for tile in range(pairs.count.size):
        start[tile] = total
        for k in range(tile * pair_capacity, tile * pair_capacity + pairs.count[tile]):
            total += tag[pairs.a[k], SHAPE] == SPHERE and tag[pairs.b[k], SHAPE] == SPHERE
        for shape_pair in range(tile * capacity, tile * capacity + shape_pairs.count[tile]):
            used[shape_pairs.table[shape_pair]] = True
            shape_pairs.start[shape_pair] = rows
            rows += rows_of(shape_pairs.table[shape_pair], many)
            total += rows_of(shape_pairs.table[shape_pair], many)
    return rows, total, used


# --- the shapes of a shape pair
@njit(**INNER)
def take_shape(body, child, sphere, extent, quaternion, children, sizes, turns, slot):
    """Sizes and turn of a child, or of the body itself, into a slot of the scratch; returns where its centre lies from the body's, and
    the radius of the ball around it, which is the last of its sizes, too."""
    if child < 0:
        for k in range(3):
            sizes[slot, k] = extent[body, k]
        for k in range(4):
            turns[slot, k] = quaternion[body, k]
        sizes[slot, 3] = sphere[body, 3] - extent[body, 3]
        return 0.0, 0.0, 0.0, sizes[slot, 3]
    scale, p, q, c = extent[body, 0], children.child_position, quaternion, children.child_quaternion
    for k in range(3):
        sizes[slot, k] = scale * children.child_size[child, k]
    sizes[slot, 3] = scale * children.child_radius[child]
    qw, qx, qy, qz = q[body, 0], q[body, 1], q[body, 2], q[body, 3]
    cw, cx, cy, cz = c[child, 0], c[child, 1], c[child, 2], c[child, 3]
    turns[slot, 0] = qw * cw - qx * cx - qy * cy - qz * cz
    turns[slot, 1] = qw * cx + qx * cw + qy * cz - qz * cy
    turns[slot, 2] = qw * cy - qx * cz + qy * cw + qz * cx
    turns[slot, 3] = qw * cz + qx * cy - qy * cx + qz * cw
    x, y, z = rotate(to_matrix(quaternion[body]), scale * p[child, 0], scale * p[child, 1], scale * p[child, 2])
    return x, y, z, sizes[slot, 3]


# --- the tables: each gets two shapes, the kind of the first not behind that of the second, and writes rows as in pair_geometry
@njit(**INNER)
def round_rows(kind_a, kind_b, dx, dy, dz, limit, method, sizes, turns, first, out, feature):
    """A ball, or an ellipsoid, against what has a closed form or Newton's method."""
    second = 1 - first
    if kind_a == SPHERE and kind_b == SPHERE:
        nx, ny, nz, x, y, z, gap = geometry.between_spheres(sizes[first, 0], sizes[second, 0], dx, dy, dz)
        return geometry.write_contact(out, feature, 0, 0, nx, ny, nz, x, y, z, gap)
    if kind_b == ELLIPSOID:
        return between_ellipsoids(
            kind_a, sizes[first], turns[first], kind_b, sizes[second], turns[second], dx, dy, dz, limit, method, out, feature
        )
    if kind_a == ELLIPSOID:
        return geometry.ellipsoid_plane(sizes[first], turns[first], sizes[second], dx, dy, dz, out, feature)
    if kind_b == PLANE:
        return geometry.sphere_plane(sizes[first, 0], sizes[second], dx, dy, dz, out, feature)
    if kind_b == BOX:
        return geometry.sphere_box(sizes[first, 0], sizes[second], turns[second], dx, dy, dz, out, feature)
    return sphere_round(sizes[first, 0], kind_b, sizes[second], turns[second], dx, dy, dz, out, feature)


@njit(**INNER)
def box_rows(kind_b, dx, dy, dz, limit, polygons, sizes, turns, first, out, feature):
    """Two boxes, or a box and a plane."""
    second = 1 - first
    if kind_b == PLANE:
        return geometry.box_plane(sizes[first], turns[first], sizes[second], dx, dy, dz, limit, out, feature)
    return geometry.box_box(
        sizes[first], turns[first], sizes[second], turns[second], dx, dy, dz, limit, polygons[0], polygons[1], out, feature
    )


@njit(**INNER)
def convex_rows(kind_a, number_a, kind_b, number_b, dx, dy, dz, size, limit, hulls, work, sizes, turns, first, out, feature):
    """Any two convex shapes, or one, or a mesh, and a plane."""
    second = 1 - first
    a, ma = solid_of(kind_a, sizes[first], sizes[first, 3], number_a, hulls), to_matrix(turns[first])
    if kind_b == PLANE:
        if kind_a == MESH:
            a = Solid(a.kind, a.x, a.y, a.z, a.radius, hulls.first_vertex[number_a], hulls.first_vertex[number_a + 1], a.k)
        return convex_plane(a, ma, sizes[second], dx, dy, dz, size, limit, hulls, work, out, feature)
    b = solid_of(kind_b, sizes[second], sizes[second, 3], number_b, hulls)
    return convex_convex(a, ma, b, to_matrix(turns[second]), dx, dy, dz, size, limit, hulls, work, out, feature)


@njit(**INNER)
def mesh_rows(kind_a, number_a, number_b, dx, dy, dz, size, limit, shapes, work, sizes, turns, first, out, feature):
    """Any other shape with a mesh."""
    hulls, meshes = shapes
    second = 1 - first
    ma, mb, scale = to_matrix(turns[first]), to_matrix(turns[second]), sizes[second, 0]
    if kind_a == SPHERE:
        x, y, z = rotate_back(mb, -dx, -dy, -dz)
        return sphere_mesh(sizes[first, 0], x, y, z, scale, number_b, mb, limit, meshes, work, out, feature)
    a = solid_of(kind_a, sizes[first], sizes[first, 3], number_a, hulls)
    count = collect(a, ma, size, dx, dy, dz, scale, number_b, mb, limit, hulls, meshes, work, np.int64(0), out, feature)
    return thin_out_by_normal(work.rows, work.names, count, mb, out, feature)


@njit(**INNER)
def mesh_pair_rows(number_a, number_b, dx, dy, dz, size, limit, shapes, work, sizes, turns, first, out, feature):
    """Two meshes."""
    hulls, meshes = shapes
    ma, mb, scales = to_matrix(turns[first]), to_matrix(turns[1 - first]), (sizes[first, 0], sizes[1 - first, 0])
    count = mesh_mesh(scales[0], number_a, ma, scales[1], number_b, mb, dx, dy, dz, size, limit, hulls, meshes, work, out, feature)
    return thin_out_by_normal(work.rows, work.names, count, mb, out, feature)


def make_table(own):
    """The work of a table on its shape pairs in some tiles. It runs in threads of Python: compiling a parallel loop around so large a
    function takes three times as long. (Numba leaves out the branches that constants close, and its cache tells functions
    apart by constants, not by the functions they call.)"""
    is_round, is_box, is_convex, is_mesh = own == ROUND, own == BOXES, own == CONVEX, own == MESHES

    @njit(nogil=True, error_model="numpy", cache=True)
    @named(own)
    def fill_rows(first_tile, last_tile, pairs, pair_capacity, proxies, children, shapes, many, capacity, shape_pairs, rows):
        tag, sphere, extent, quaternion = proxies.tag, proxies.sphere, proxies.extent, proxies.quaternion
        number, identity, work = proxies.geometry, proxies.id, make_work()
        sizes, turns, out, feature = work.sizes, work.turns, np.empty((ROWS, 7)), np.empty(ROWS, np.int32)
        polygons = np.empty((2, geometry.MOST_CORNERS, 3))
        for tile in range(first_tile, last_tile):
            for shape_pair in range(tile * capacity, tile * capacity + shape_pairs.count[tile]):
                if shape_pairs.table[shape_pair] != own:
                    continue
                k, i, j = shape_pairs.pair[shape_pair], shape_pairs.child_a[shape_pair], shape_pairs.child_b[shape_pair]
                a, b = in_order(pairs.a[k], pairs.b[k], tag, identity)
                ax, ay, az, radius_a = take_shape(a, i, sphere, extent, quaternion, children, sizes, turns, 0)
                bx, by, bz, radius_b = take_shape(b, j, sphere, extent, quaternion, children, sizes, turns, 1)
                x, y, z = (
                    sphere[b, 0] - sphere[a, 0] + bx - ax,
                    sphere[b, 1] - sphere[a, 1] + by - ay,
                    sphere[b, 2] - sphere[a, 2] + bz - az,
                )
                kind_a, kind_b = kind_of(a, i, tag, children), kind_of(b, j, tag, children)
                number_a = number[a] if i < 0 and number.size > 0 else (children.child_geometry[i] if i >= 0 else np.int32(-1))
                number_b = number[b] if j < 0 and number.size > 0 else (children.child_geometry[j] if j >= 0 else np.int32(-1))
                size, limit, first, sign = scale_of(radius_a, radius_b), extent[a, 3] + extent[b, 3], 0, 1.0
                px, py, pz = ax, ay, az
                if is_behind(kind_a, kind_b):  # children may come the other way round
                    kind_a, kind_b, number_a, number_b, first, sign = kind_b, kind_a, number_b, number_a, 1, -1.0
                    px, py, pz = ax + x, ay + y, az + z
                    x, y, z = -x, -y, -z
                if is_round:
                    found = round_rows(kind_a, kind_b, x, y, z, limit, shapes, sizes, turns, first, out, feature)
                elif is_box:
                    found = box_rows(kind_b, x, y, z, limit, polygons, sizes, turns, first, out, feature)
                elif is_convex:
                    found = convex_rows(
                        kind_a, number_a, kind_b, number_b, x, y, z, size, limit, shapes, work, sizes, turns, first, out, feature
                    )
                elif is_mesh:
                    found = mesh_rows(kind_a, number_a, number_b, x, y, z, size, limit, shapes, work, sizes, turns, first, out, feature)
                else:
                    found = mesh_pair_rows(number_a, number_b, x, y, z, size, limit, shapes, work, sizes, turns, first, out, feature)
                shape_pairs.found[shape_pair] = found
                name = (np.int64(i + 1) * 1009 + np.int64(j + 1)) * 8209
                for c in range(min(found, rows_of(own, many))):
                    at = shape_pairs.start[shape_pair] + c
                    for axis in range(3):
                        rows.values[at, axis] = sign * out[c, axis]
                    rows.values[at, 3], rows.values[at, 4], rows.values[at, 5] = out[c, 3] + px, out[c, 4] + py, out[c, 5] + pz
                    rows.values[at, 6] = out[c, 6]
                    rows.feature[at] = (name + feature[c]) & 0x7FFFFFFF

    return fill_rows


TABLES = tuple(make_table(own) for own in (ROUND, BOXES, CONVEX, MESHES, MESH_PAIRS))


def tables_of(bodies, geometries):
    """Which tables the bodies of a scene may need, as a tuple of booleans."""
    kinds = {}  # of all shapes, and whether some can move
    for kind, number, movable in set(zip(bodies.shape.tolist(), bodies.geometry.tolist(), can_move(bodies.status).tolist())):
        for child in geometries[number].child_kind.tolist() if kind == COMPOUND else [kind]:
            kinds[child] = kinds.get(child, False) or movable
    used = {tables.table_between(a, b) for a in kinds for b in kinds if (kinds[a] or kinds[b]) and {a, b} != {PLANE}}
    return tuple(table in used for table in range(len(TABLES)))


@njit(**INNER)
def gather_tile(tile, pairs, pair_capacity, proxies, margin, step, capacity, shape_pairs, rows, tile_size, contacts):
    pair_a, pair_b, velocity, identity, tag = pairs.a, pairs.b, proxies.velocity, proxies.id, proxies.tag
    sphere, extent, values, names = proxies.sphere, proxies.extent, rows.values, rows.feature
    shape_pair, last_shape_pair = tile * capacity, tile * capacity + shape_pairs.count[tile]
    c, k = contacts.start[tile], tile * pair_capacity
    last_pair = k + pairs.count[tile]
    for i in range(tile * tile_size, min((tile + 1) * tile_size, identity.size)):
        contacts.first[i] = c
        while k < last_pair and pair_a[k] == i:
            a, b = in_order(pair_a[k], pair_b[k], tag, identity)
            contact_distance = margin_of(margin, a, b, sphere, extent, tag)
            if tag[a, SHAPE] == SPHERE and tag[b, SHAPE] == SPHERE:
                dx, dy, dz = sphere[b, 0] - sphere[a, 0], sphere[b, 1] - sphere[a, 1], sphere[b, 2] - sphere[a, 2]
                if dx == 0.0 and dy == 0.0 and dz == 0.0:
                    dx, dy, dz = geometry.parted(identity[a], identity[b])
                nx, ny, nz, x, y, z, gap = geometry.between_spheres(extent[a, 0], extent[b, 0], dx, dy, dz)
                if may_close(gap, contact_distance, step, velocity, sphere, a, b, x, y, z):
                    c = add_contact(contacts, c, a, b, 0, nx, ny, nz, x, y, z, gap)
            while shape_pair < last_shape_pair and shape_pairs.pair[shape_pair] == k:
                for r in range(shape_pairs.start[shape_pair], shape_pairs.start[shape_pair] + shape_pairs.found[shape_pair]):
                    x, y, z, gap = values[r, 3], values[r, 4], values[r, 5], values[r, 6]
                    if may_close(gap, contact_distance, step, velocity, sphere, a, b, x, y, z):
                        c = add_contact(contacts, c, a, b, names[r], values[r, 0], values[r, 1], values[r, 2], x, y, z, gap)
                shape_pair += 1
            k += 1
        contacts.number[i] = c - contacts.first[i]
    contacts.count[tile] = c - contacts.start[tile]


@njit(**INNER)
def add_contact(contacts, c, a, b, name, nx, ny, nz, x, y, z, gap):
    contacts.a[c], contacts.b[c], contacts.feature[c], contacts.gap[c] = a, b, name, gap
    contacts.normal[c, 0], contacts.normal[c, 1], contacts.normal[c, 2] = nx, ny, nz
    contacts.arm[c, 0], contacts.arm[c, 1], contacts.arm[c, 2] = x, y, z
    return c + 1


@njit(**INNER)
def most_found(capacity, shape_pairs):
    """The most rows that one shape pair has found."""
    most = 0
    for tile in range(shape_pairs.count.size):
        for shape_pair in range(tile * capacity, tile * capacity + shape_pairs.count[tile]):
            most = max(most, shape_pairs.found[shape_pair])
    return most


@Kernel
def gather_contacts(pairs, pair_capacity, proxies, margin, step, many, capacity, shape_pairs, rows, tile_size, contacts):
    """Contacts from the rows of all shape pairs; returns the most that one of them has found, and only that if it exceeds ``many``."""
    most = most_found(capacity, shape_pairs)
    if most <= many:
        for tile in prange(pairs.count.size):
            gather_tile(np.int64(tile), pairs, pair_capacity, proxies, margin, step, capacity, shape_pairs, rows, tile_size, contacts)
    return most
