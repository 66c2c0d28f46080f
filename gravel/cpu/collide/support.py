"""Convex solids through their support: the point, and the face, that lies farthest along a direction.

A ``Solid`` is one convex shape in its own frame; where it is and how it is turned is left to the caller. Balls and capsules
are a point or a segment (the core) with a radius around it, so that distance and depth of the cores are all that is
computed for them. A solid is made of numbers only, and functions get single arrays: named tuples of arrays are slow to pass,
and support functions are called dozens of times for a pair.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from gravel.cpu.threads import INNER
from gravel.shapes import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, HULL, PLANE, SPHERE

TRIANGLE = PLANE + 1  # a kind of its own for one triangle of a mesh
CORNERS = 8  # of the polygon that stands for a round face
FEW = 24  # vertices of a hull that are looked through one by one


class Solid(NamedTuple):
    kind: int
    x: float  # the three sizes of the shape
    y: float
    z: float
    i: int  # of a hull its first vertex, the one after its last, and its number; of a triangle its three vertices
    j: int
    k: int


class Hulls(NamedTuple):
    """What the library holds of hulls (and the vertices of meshes)."""

    first_vertex: np.ndarray  # of each geometry
    vertices: np.ndarray  # (v, 3)
    links: np.ndarray  # links[k] to links[k + 1]: where in ``links`` the neighbours of vertex k are
    first_face: np.ndarray
    face_start: np.ndarray
    face_corners: np.ndarray
    face_normals: np.ndarray


def hulls_of(library):
    """The hulls of a library."""
    starts = library.neighbour_start + np.int32(len(library.neighbour_start))
    links = np.concatenate([starts, library.neighbours]).astype(np.int32)
    faces = library.first_face, library.face_start, library.face_corners, library.face_normals
    return Hulls(library.first_vertex, library.vertices, links, *faces)


@njit(**INNER)
def solid_of(kind, size, geometry, hulls):
    """The solid of a shape that is convex."""
    first, last, number = np.int64(0), np.int64(0), np.int64(geometry)
    if kind == HULL:
        first, last = hulls.first_vertex[number], hulls.first_vertex[number + 1]
    return Solid(np.int64(kind), size[0], size[1], size[2], first, last, number)


@njit(**INNER)
def core_radius(solid):
    return solid.x if solid.kind == SPHERE or solid.kind == CAPSULE else 0.0


@njit(**INNER)
def hull_support(first, last, vertices, links, x, y, z):
    """Row of the vertex farthest along (x, y, z): all are tried, or, of many, a walk uphill from neighbour to neighbour."""
    best, farthest = first, x * vertices[first, 0] + y * vertices[first, 1] + z * vertices[first, 2]
    if last - first <= FEW:
        for k in range(first + 1, last):
            height = x * vertices[k, 0] + y * vertices[k, 1] + z * vertices[k, 2]
            if height > farthest:
                best, farthest = k, height
        return best
    climbing = True
    while climbing:
        climbing = False
        for m in range(links[best], links[best + 1]):
            k = np.int64(links[m])
            height = x * vertices[k, 0] + y * vertices[k, 1] + z * vertices[k, 2]
            if height > farthest:
                best, farthest, climbing = k, height, True
    return best


@njit(**INNER)
def support(solid, vertices, links, x, y, z):
    """The point of the core farthest along (x, y, z), in the solid's own frame."""
    kind = solid.kind
    if kind == BOX:
        return math.copysign(solid.x, x), math.copysign(solid.y, y), math.copysign(solid.z, z)
    if kind == HULL:
        k = hull_support(solid.i, solid.j, vertices, links, x, y, z)
        return solid.x * vertices[k, 0], solid.x * vertices[k, 1], solid.x * vertices[k, 2]
    if kind == TRIANGLE:
        i, j, k = solid.i, solid.j, solid.k
        height_i = x * vertices[i, 0] + y * vertices[i, 1] + z * vertices[i, 2]
        height_j = x * vertices[j, 0] + y * vertices[j, 1] + z * vertices[j, 2]
        height_k = x * vertices[k, 0] + y * vertices[k, 1] + z * vertices[k, 2]
        best = i if height_i >= height_j and height_i >= height_k else (j if height_j >= height_k else k)
        return solid.x * vertices[best, 0], solid.x * vertices[best, 1], solid.x * vertices[best, 2]
    if kind == ELLIPSOID:
        px, py, pz = solid.x * x, solid.y * y, solid.z * z
        square = px * px + py * py + pz * pz
        if not square > 0.0:
            return solid.x, 0.0, 0.0
        scale = 1.0 / math.sqrt(square)
        return scale * solid.x * px, scale * solid.y * py, scale * solid.z * pz
    if kind == CAPSULE:
        return 0.0, 0.0, math.copysign(solid.y, z)
    if kind in (CYLINDER, CONE):
        across = math.sqrt(x * x + y * y)
        sx, sy = (solid.x * x / across, solid.x * y / across) if across > 0.0 else (solid.x, 0.0)
        if kind == CYLINDER:
            return sx, sy, math.copysign(solid.y, z)
        if z * solid.y > across * solid.x:
            return 0.0, 0.0, 0.75 * solid.y
        return sx, sy, -0.25 * solid.y
    return 0.0, 0.0, 0.0


@njit(**INNER)
def ring(polygon, radius, z, sense):
    """A round face of a given radius; sense +1 or -1 says which way round."""
    for k in range(CORNERS):
        angle = sense * 2.0 * math.pi / CORNERS * k
        polygon[k, 0], polygon[k, 1], polygon[k, 2] = radius * math.cos(angle), radius * math.sin(angle), z
    return CORNERS


@njit(**INNER)
def box_face(polygon, solid, x, y, z):
    """The face of a box that looks most along (x, y, z)."""
    size = (solid.x, solid.y, solid.z)
    face = 0 if abs(x) >= abs(y) and abs(x) >= abs(z) else (1 if abs(y) >= abs(z) else 2)
    side = x if face == 0 else (y if face == 1 else z)
    sense = 1.0 if side >= 0.0 else -1.0
    p, q = (face + 1) % 3, (face + 2) % 3
    for corner in range(4):
        polygon[corner, face] = sense * size[face]
        polygon[corner, p] = sense * size[p] if corner == 0 or corner == 3 else -sense * size[p]
        polygon[corner, q] = size[q] if corner < 2 else -size[q]
    return 4


@njit(**INNER)
def hull_face(polygon, solid, hulls, x, y, z):
    """The face of a hull that looks most along (x, y, z); of one with very many corners, as many as fit, evenly taken."""
    vertices, normals, corners = hulls.vertices, hulls.face_normals, hulls.face_corners
    best, most = 0, -math.inf
    for face in range(hulls.first_face[solid.k], hulls.first_face[solid.k + 1]):
        along = x * normals[face, 0] + y * normals[face, 1] + z * normals[face, 2]
        if along > most:
            best, most = face, along
    first, count = hulls.face_start[best], hulls.face_start[best + 1] - hulls.face_start[best]
    taken = min(count, polygon.shape[0] // 2)
    for corner in range(taken):
        k = corners[first + corner * count // taken]
        for axis in range(3):
            polygon[corner, axis] = solid.x * vertices[k, axis]
    return taken


@njit(**INNER)
def support_face(polygon, solid, hulls, x, y, z):
    """Corners of the face of the core that looks most along the unit (x, y, z), in the solid's own frame: three or more of a
    face, two of an edge or a straight side; returns their number. One: the solid is round there, or it is a corner."""
    kind, vertices = solid.kind, hulls.vertices
    if kind == BOX:
        return box_face(polygon, solid, x, y, z)
    if kind == HULL:
        return hull_face(polygon, solid, hulls, x, y, z)
    if kind == TRIANGLE:
        for axis in range(3):
            polygon[0, axis] = solid.x * vertices[solid.i, axis]
            polygon[1, axis] = solid.x * vertices[solid.j, axis]
            polygon[2, axis] = solid.x * vertices[solid.k, axis]
        return 3
    across = math.hypot(x, y)
    if kind == CAPSULE and across > 0.7:
        for k in range(2):
            polygon[k, 0], polygon[k, 1], polygon[k, 2] = 0.0, 0.0, (2 * k - 1) * solid.y
        return 2
    if kind == CYLINDER:
        if abs(z) > 0.7:
            return ring(polygon, solid.x, math.copysign(solid.y, z), math.copysign(1.0, z))
        for k in range(2):
            polygon[k, 0], polygon[k, 1], polygon[k, 2] = solid.x * x / across, solid.x * y / across, (2 * k - 1) * solid.y
        return 2
    if kind == CONE:
        if -z > (across * solid.y + z * solid.x) / math.hypot(solid.x, solid.y):
            return ring(polygon, solid.x, -0.25 * solid.y, -1.0)
        if across > 1e-9:
            polygon[0, 0], polygon[0, 1], polygon[0, 2] = 0.0, 0.0, 0.75 * solid.y
            polygon[1, 0], polygon[1, 1], polygon[1, 2] = solid.x * x / across, solid.x * y / across, -0.25 * solid.y
            return 2
    polygon[0, 0], polygon[0, 1], polygon[0, 2] = support(solid, vertices, hulls.links, x, y, z)
    return 1
