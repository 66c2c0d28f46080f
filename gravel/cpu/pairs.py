"""The table of pair functions: which function finds the contacts of two kinds of shapes.

Rows and frames as in ``pair_geometry``; the kind of a is not above that of b. A table is made for each family of scenes, so
that a scene compiles the functions it needs and no others: balls; balls and boxes; balls and meshes; ellipsoids; everything.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from gravel.cpu import pair_geometry as geometry
from gravel.cpu.ellipsoids import ellipsoid_ellipsoid
from gravel.cpu.gjk import make_work
from gravel.cpu.manifold import convex_convex, convex_plane
from gravel.cpu.meshes import Meshes, collect, mesh_mesh, meshes_of, place_for, sphere_mesh, thin_out_by_normal
from gravel.cpu.rounds import sphere_round
from gravel.cpu.support import Hulls, Solid, hulls_of, solid_of
from gravel.cpu.threads import INNER
from gravel.cpu.vectors import rotate, rotate_back, to_matrix
from gravel.shapes import BOX, COMPOUND, ELLIPSOID, HULL, MESH, PLANE, SPHERE
from gravel.state import SHAPE

ROWS = 256  # contacts of one pair at most; of more with one compound or mesh the deepest are kept


class Children(NamedTuple):
    """What the library holds of compounds."""

    first_child: np.ndarray
    child_kind: np.ndarray
    child_size: np.ndarray
    child_radius: np.ndarray
    child_position: np.ndarray
    child_quaternion: np.ndarray
    child_geometry: np.ndarray


class Shapes(NamedTuple):
    """The scene's library as the pair functions want it, and how ellipsoids are tested."""

    hulls: Hulls
    meshes: Meshes
    children: Children
    half: np.ndarray  # (g, 3) half extents of each geometry
    method: int  # for ellipsoids, see ``ellipsoids``


def shapes_of(library, method):
    """The shapes of a library."""
    children = Children(*(getattr(library, name) for name in Children._fields))
    return Shapes(hulls_of(library), meshes_of(library), children, library.half, method)


# What a table needs of the shapes, with the scratch of a thread.
@njit(**INNER)
def no_work(nothing):
    return 0


@njit(**INNER)
def mesh_work(meshes):
    return meshes, make_work()


@njit(**INNER)
def all_work(shapes):
    return shapes, make_work(), np.empty((ROWS, 7)), np.empty(ROWS, np.int32)


@njit(**INNER)
def ellipsoid_work(method):
    return method


# --- tables, simplest first
@njit(**INNER)
def ball_contact(a, b, dx, dy, dz, size, limit, extent, tag, quaternion, number, work, out, feature):
    """A ball a with a plane or a box."""
    if tag[b, SHAPE] == PLANE:
        return geometry.sphere_plane(extent[a, 0], extent[b], dx, dy, dz, out, feature)
    return geometry.sphere_box(extent[a, 0], extent[b], quaternion[b], dx, dy, dz, out, feature)


@njit(**INNER)
def ball_mesh_contact(a, b, dx, dy, dz, size, limit, extent, tag, quaternion, number, work, out, feature):
    """A ball a with a plane, a box or a mesh."""
    if tag[b, SHAPE] != MESH:
        return ball_contact(a, b, dx, dy, dz, size, limit, extent, tag, quaternion, number, work, out, feature)
    mb = to_matrix(quaternion[b])
    x, y, z = rotate_back(mb, -dx, -dy, -dz)
    return sphere_mesh(extent[a, 0], x, y, z, extent[b, 0], number[b], mb, limit, work[0], work[1], out, feature)


@njit(**INNER)
def box_contact(a, b, dx, dy, dz, size, limit, extent, tag, quaternion, number, work, out, feature):
    """Balls, boxes and planes."""
    if tag[a, SHAPE] == SPHERE:
        return ball_contact(a, b, dx, dy, dz, size, limit, extent, tag, quaternion, number, work, out, feature)
    if tag[b, SHAPE] == BOX:
        return geometry.box_box(extent[a], quaternion[a], extent[b], quaternion[b], dx, dy, dz, limit, out, feature)
    return geometry.box_plane(extent[a], quaternion[a], extent[b], dx, dy, dz, limit, out, feature)


@njit(**INNER)
def radii_of(kind, size):
    """The radii of a ball or an ellipsoid."""
    return (size[0], size[0], size[0]) if kind == SPHERE else (size[0], size[1], size[2])


@njit(**INNER)
def between_ellipsoids(kind_a, size_a, turn_a, kind_b, size_b, turn_b, dx, dy, dz, limit, method, out, feature):
    """Contact of two ellipsoids, or of a ball and an ellipsoid."""
    qa, qb = (turn_a[0], turn_a[1], turn_a[2], turn_a[3]), (turn_b[0], turn_b[1], turn_b[2], turn_b[3])
    if kind_a == SPHERE:
        qa = (1.0, 0.0, 0.0, 0.0)
    nx, ny, nz, x, y, z, gap = ellipsoid_ellipsoid(radii_of(kind_a, size_a), qa, radii_of(kind_b, size_b), qb, dx, dy, dz, limit, method)
    return geometry.write_contact(out, feature, 0, 0, nx, ny, nz, x, y, z, gap) if gap <= limit else 0


@njit(**INNER)
def ellipsoid_contact(a, b, dx, dy, dz, size, limit, extent, tag, quaternion, number, work, out, feature):
    """Balls, ellipsoids and planes."""
    kind_a, kind_b = tag[a, SHAPE], tag[b, SHAPE]
    if kind_b != PLANE:
        return between_ellipsoids(
            kind_a, extent[a], quaternion[a], kind_b, extent[b], quaternion[b], dx, dy, dz, limit, work, out, feature
        )
    if kind_a == SPHERE:
        return geometry.sphere_plane(extent[a, 0], extent[b], dx, dy, dz, out, feature)
    return geometry.ellipsoid_plane(extent[a], quaternion[a], extent[b], dx, dy, dz, out, feature)


# --- everything
@njit(**INNER)
def convex_contact(
    kind_a, size_a, turn_a, number_a, kind_b, size_b, turn_b, number_b, dx, dy, dz, size, limit, hulls, method, work, out, feature
):
    """Contacts of two convex shapes, or of one and a plane."""
    if kind_a == SPHERE:
        if kind_b == SPHERE:
            nx, ny, nz, x, y, z, gap = geometry.between_spheres(size_a[0], size_b[0], dx, dy, dz)
            return geometry.write_contact(out, feature, 0, 0, nx, ny, nz, x, y, z, gap)
        if kind_b == PLANE:
            return geometry.sphere_plane(size_a[0], size_b, dx, dy, dz, out, feature)
        if kind_b == BOX:
            return geometry.sphere_box(size_a[0], size_b, turn_b, dx, dy, dz, out, feature)
        if kind_b != ELLIPSOID and kind_b != HULL:
            return sphere_round(size_a[0], kind_b, size_b, turn_b, dx, dy, dz, out, feature)
    if kind_b == ELLIPSOID:
        return between_ellipsoids(kind_a, size_a, turn_a, kind_b, size_b, turn_b, dx, dy, dz, limit, method, out, feature)
    if kind_a == BOX and kind_b == BOX:
        return geometry.box_box(size_a, turn_a, size_b, turn_b, dx, dy, dz, limit, out, feature)
    if kind_a == BOX and kind_b == PLANE:
        return geometry.box_plane(size_a, turn_a, size_b, dx, dy, dz, limit, out, feature)
    a, ma = solid_of(kind_a, size_a, number_a, hulls), to_matrix(turn_a)
    if kind_b == PLANE:
        return convex_plane(a, ma, size_b, dx, dy, dz, size, limit, hulls, work, out, feature)
    b = solid_of(kind_b, size_b, number_b, hulls)
    return convex_convex(a, ma, b, to_matrix(turn_b), dx, dy, dz, size, limit, hulls, work, out, feature)


@njit(**INNER)
def mesh_contact(kind_a, size_a, turn_a, number_a, scale, turn_b, number_b, dx, dy, dz, size, limit, shapes, work, count, out, feature):
    """Add the contacts of a convex shape with a mesh b to the scratch's rows; returns how many there are."""
    ma, mb = to_matrix(turn_a), to_matrix(turn_b)
    if kind_a == SPHERE:
        x, y, z = rotate_back(mb, -dx, -dy, -dz)
        new = sphere_mesh(size_a[0], x, y, z, scale, number_b, mb, limit, shapes.meshes, work, out, feature)
        for k in range(new):
            at = place_for(out[k, 6], work.rows[: work.names.size], count)
            if at >= 0:
                for column in range(7):
                    work.rows[at, column] = out[k, column]
                work.names[at] = feature[k]
                count = max(count, at + 1)
        return count
    a = solid_of(kind_a, size_a, number_a, shapes.hulls)
    return collect(a, ma, size, dx, dy, dz, scale, number_b, mb, limit, shapes.hulls, shapes.meshes, work, count, out, feature)


@njit(**INNER)
def take_child(k, body_turn, children, work, slot):
    """Size and turn of child k into a slot of the scratch; returns where its centre lies from the body's."""
    m = to_matrix(body_turn)
    for axis in range(3):
        work.sizes[slot, axis] = children.child_size[k, axis]
    p, q = children.child_quaternion[k], body_turn
    work.turns[slot, 0] = q[0] * p[0] - q[1] * p[1] - q[2] * p[2] - q[3] * p[3]
    work.turns[slot, 1] = q[0] * p[1] + q[1] * p[0] + q[2] * p[3] - q[3] * p[2]
    work.turns[slot, 2] = q[0] * p[2] + q[2] * p[0] + q[3] * p[1] - q[1] * p[3]
    work.turns[slot, 3] = q[0] * p[3] + q[3] * p[0] + q[1] * p[2] - q[2] * p[1]
    return rotate(m, children.child_position[k, 0], children.child_position[k, 1], children.child_position[k, 2])


@njit(**INNER)
def add_rows(part, part_feature, new, name, x, y, z, out, feature, count):
    """Contacts of two children, moved to the frame of their bodies; of too many the deepest are kept."""
    for k in range(new):
        at = place_for(part[k, 6], out, count)
        if at >= 0:
            for column in range(7):
                out[at, column] = part[k, column]
            out[at, 3] += x
            out[at, 4] += y
            out[at, 5] += z
            feature[at] = (name * 8209 + part_feature[k]) & 0x7FFFFFFF
            count = max(count, at + 1)
    return count


@njit(**INNER)
def compound_contact(a, b, dx, dy, dz, limit, extent, tag, quaternion, number, shapes, work, part, part_feature, out, feature):
    """Contacts of two bodies of which one at least is a compound: of each child of one with each child of the other."""
    children, count = shapes.children, 0
    kind_a, kind_b = tag[a, SHAPE], tag[b, SHAPE]
    scale_a, scale_b = extent[a, 0] if kind_a == COMPOUND else 1.0, extent[b, 0] if kind_b == COMPOUND else 1.0
    first_a, last_a = (children.first_child[number[a]], children.first_child[number[a] + 1]) if kind_a == COMPOUND else (0, 1)
    first_b, last_b = (children.first_child[number[b]], children.first_child[number[b] + 1]) if kind_b == COMPOUND else (0, 1)
    for i in range(first_a, last_a):
        child_a, size_a, turn_a, number_a, ax, ay, az, radius_a = kind_a, extent[a], quaternion[a], number[a], 0.0, 0.0, 0.0, np.inf
        if kind_a == COMPOUND:
            ax, ay, az = take_child(i, quaternion[a], children, work, 0)
            ax, ay, az = scale_a * ax, scale_a * ay, scale_a * az
            child_a, size_a, turn_a, number_a = children.child_kind[i], work.sizes[0], work.turns[0], children.child_geometry[i]
            radius_a = scale_a * children.child_radius[i]
            for axis in range(3):
                work.sizes[0, axis] *= scale_a
        for j in range(first_b, last_b):
            child_b, size_b, turn_b, number_b, bx, by, bz, radius_b = kind_b, extent[b], quaternion[b], number[b], 0.0, 0.0, 0.0, np.inf
            if kind_b == COMPOUND:
                bx, by, bz = take_child(j, quaternion[b], children, work, 1)
                bx, by, bz = scale_b * bx, scale_b * by, scale_b * bz
                child_b, size_b, turn_b, number_b = children.child_kind[j], work.sizes[1], work.turns[1], children.child_geometry[j]
                radius_b = scale_b * children.child_radius[j]
                for axis in range(3):
                    work.sizes[1, axis] *= scale_b
            x, y, z, far = dx + bx - ax, dy + by - ay, dz + bz - az, radius_a + radius_b + limit
            if x * x + y * y + z * z > far * far:
                continue
            size = 2.0 * min(radius_a, radius_b)
            new = 0
            if child_b == MESH:
                new = mesh_contact(
                    child_a, size_a, turn_a, number_a, size_b[0], turn_b, number_b, x, y, z, size, limit, shapes, work, 0,
                    part, part_feature,
                )  # fmt: skip
                new = thin_out_by_normal(work.rows, work.names, new, to_matrix(turn_b), part, part_feature)
            elif child_a <= child_b:
                new = convex_contact(
                    child_a,
                    size_a,
                    turn_a,
                    number_a,
                    child_b,
                    size_b,
                    turn_b,
                    number_b,
                    x,
                    y,
                    z,
                    size,
                    limit,
                    shapes.hulls,
                    shapes.method,
                    work,
                    part,
                    part_feature,
                )
            else:
                new = convex_contact(
                    child_b,
                    size_b,
                    turn_b,
                    number_b,
                    child_a,
                    size_a,
                    turn_a,
                    number_a,
                    -x,
                    -y,
                    -z,
                    size,
                    limit,
                    shapes.hulls,
                    shapes.method,
                    work,
                    part,
                    part_feature,
                )
                for k in range(new):
                    for axis in range(3):
                        part[k, axis] = -part[k, axis]
                    part[k, 3] += x
                    part[k, 4] += y
                    part[k, 5] += z
            name = (i - first_a) * 1009 + (j - first_b) + 1
            count = add_rows(part, part_feature, new, name, ax, ay, az, out, feature, count)
    return count


@njit(**INNER)
def any_contact(a, b, dx, dy, dz, size, limit, extent, tag, quaternion, number, work, out, feature):
    """Any two shapes."""
    shapes, scratch, part, part_feature = work
    kind_a, kind_b = tag[a, SHAPE], tag[b, SHAPE]
    if kind_a == COMPOUND or kind_b == COMPOUND:
        return compound_contact(
            a, b, dx, dy, dz, limit, extent, tag, quaternion, number, shapes, scratch, part, part_feature, out, feature
        )
    if kind_a == MESH and kind_b == PLANE:
        hulls = shapes.hulls
        first, last = hulls.first_vertex[number[a]], hulls.first_vertex[number[a] + 1]
        corners = Solid(HULL, extent[a, 0], 0.0, 0.0, first, last, np.int64(0))
        return convex_plane(corners, to_matrix(quaternion[a]), extent[b], dx, dy, dz, size, limit, hulls, scratch, out, feature)
    if kind_b == MESH:
        turn_a, turn_b = quaternion[a], quaternion[b]
        if kind_a == MESH:
            found = mesh_mesh(
                extent[a, 0], number[a], to_matrix(turn_a), extent[b, 0], number[b], to_matrix(turn_b), dx, dy, dz, size, limit,
                shapes.hulls, shapes.meshes, scratch, part, part_feature,
            )  # fmt: skip
        else:
            found = mesh_contact(
                kind_a, extent[a], turn_a, number[a], extent[b, 0], turn_b, number[b], dx, dy, dz, size, limit, shapes, scratch, 0,
                part, part_feature,
            )  # fmt: skip
        return thin_out_by_normal(scratch.rows, scratch.names, found, to_matrix(turn_b), out, feature)
    return convex_contact(
        kind_a, extent[a], quaternion[a], number[a], kind_b, extent[b], quaternion[b], number[b], dx, dy, dz, size, limit,
        shapes.hulls, shapes.method, scratch, out, feature,
    )  # fmt: skip
