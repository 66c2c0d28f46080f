"""Tables of pair functions for scenes of few kinds of shapes: which function finds the contacts of two bodies.

Rows and frames as in ``pair_geometry``; the kind of a is not behind that of b. A table for each kernel, so that a
scene compiles the functions it needs and no others: balls; balls and meshes; balls and boxes; ellipsoids. Scenes of other
shapes go by ``shape_pairs``.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from gravel.cpu.collide import pair_geometry as geometry
from gravel.cpu.collide.ellipsoids import between_ellipsoids
from gravel.cpu.collide.gjk import make_work
from gravel.cpu.collide.meshes import Meshes, meshes_of, sphere_mesh
from gravel.cpu.collide.support import Hulls, hulls_of
from gravel.host.threads import ALLOCATING, INNER
from gravel.host.vectors import rotate_back, to_matrix
from gravel.shapes import BOX, MESH, PLANE, SPHERE
from gravel.state import SHAPE

ROWS = 256  # contacts of one body with a mesh at most; of more the deepest are kept


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
    method: int  # for ellipsoids, see ``ellipsoids``


def shapes_of(library, method):
    """The shapes of a library."""
    children = Children(*(getattr(library, name) for name in Children._fields))
    return Shapes(hulls_of(library), meshes_of(library), children, method)


# What a table needs of the shapes, with the scratch of a thread.
@njit(**INNER)
def no_work(nothing):
    return 0


@njit(**ALLOCATING)
def mesh_work(meshes):
    return meshes, make_work()


@njit(**ALLOCATING)
def box_work(nothing):
    return np.empty((2, geometry.MOST_CORNERS, 3))


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
        return geometry.box_box(extent[a], quaternion[a], extent[b], quaternion[b], dx, dy, dz, limit, work[0], work[1], out, feature)
    return geometry.box_plane(extent[a], quaternion[a], extent[b], dx, dy, dz, limit, out, feature)


@njit(**INNER)
def ellipsoid_contact(a, b, dx, dy, dz, size, limit, extent, tag, quaternion, number, work, out, feature):
    """Balls, ellipsoids and planes."""
    kind_a, kind_b = tag[a, SHAPE], tag[b, SHAPE]
    if kind_b != PLANE:
        return between_ellipsoids(kind_a, extent[a], quaternion[a], kind_b, extent[b], quaternion[b], dx, dy, dz, limit, work, out, feature)
    if kind_a == SPHERE:
        return geometry.sphere_plane(extent[a, 0], extent[b], dx, dy, dz, out, feature)
    return geometry.ellipsoid_plane(extent[a], quaternion[a], extent[b], dx, dy, dz, out, feature)
