"""Convex solids through their support: the point, and the face, that lies farthest along a direction.

A ``Solid`` is one convex shape in its own frame; where it is and how it is turned is left to the caller. A shape may be a core with a
radius around it (of a ball a point, of a capsule a segment), so that distance and depth of the cores are all that is computed for it.
``solid_of`` says what core and radius a kind has, ``support`` and ``support_face`` what its core looks like: this is all that contacts
of a convex shape need. A solid is made of numbers only, and functions get single arrays: named tuples of arrays are slow to pass,
and support functions are called dozens of times for a pair.
"""

from __future__ import annotations

import math
from math import hypot
from typing import NamedTuple

from gravel.formulas.kinds import Names, Table, Vector, whole
from gravel.formulas.vectors import vector
from gravel.shapes import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, HULL, ROUNDED_BOX, SPHERE

TRIANGLE = 1000  # a kind of its own for one triangle of a mesh
CORNERS = 8  # of the polygon that stands for a round face
FEW = 24  # vertices of a hull that are looked through one by one


class Solid(NamedTuple):
    kind: int
    x: float  # the three sizes of the shape
    y: float
    z: float
    radius: float  # around the core
    i: int  # of a hull its first vertex, the one after its last, and its number; of a triangle its three vertices
    j: int
    k: int


class Hulls(NamedTuple):
    """What the library holds of hulls (and the vertices of meshes)."""

    first_vertex: Names  # of each geometry
    vertices: Table  # (v, 3)
    links: Names  # links[k] to links[k + 1]: where in ``links`` the neighbours of vertex k are
    first_face: Names
    face_start: Names
    face_corners: Names
    face_normals: Table


def solid_of(kind: int, size: Vector, bounding_radius: float, geometry: int, hulls: Hulls):
    """The solid of a shape that is convex."""
    first, last, number, radius = whole(0), whole(0), whole(geometry), float(0.0)
    if kind == SPHERE or kind == CAPSULE:
        radius = size[0]
    if kind == ROUNDED_BOX:
        radius = max(bounding_radius - math.sqrt(size[0] * size[0] + size[1] * size[1] + size[2] * size[2]), 0.0)
    if kind == HULL:
        first = hulls.first_vertex[number]
        last = hulls.first_vertex[number + 1]
    return Solid(whole(kind), size[0], size[1], size[2], radius, first, last, number)


def hull_support(first: int, last: int, vertices: Table, links: Names, x: float, y: float, z: float):
    """Row of the vertex farthest along (x, y, z): all are tried, or, of many, a walk uphill from neighbour to neighbour."""
    best = first
    farthest = x * vertices[first, 0] + y * vertices[first, 1] + z * vertices[first, 2]
    if last - first <= FEW:
        for k in range(first + 1, last):
            height = x * vertices[k, 0] + y * vertices[k, 1] + z * vertices[k, 2]
            if height > farthest:
                best = k
                farthest = height
        return best
    climbing = bool(True)
    while climbing:
        climbing = bool(False)
        for m in range(links[best], links[best + 1]):
            k = whole(links[m])
            height = x * vertices[k, 0] + y * vertices[k, 1] + z * vertices[k, 2]
            if height > farthest:
                best = k
                farthest = height
                climbing = True
    return best


def support(solid: Solid, vertices: Table, links: Names, x: float, y: float, z: float):
    """The point of the core farthest along (x, y, z), in the solid's own frame."""
    kind = solid.kind
    if kind == BOX or kind == ROUNDED_BOX:
        return math.copysign(solid.x, x), math.copysign(solid.y, y), math.copysign(solid.z, z)
    if kind == HULL:
        row = hull_support(solid.i, solid.j, vertices, links, x, y, z)
        return solid.x * vertices[row, 0], solid.x * vertices[row, 1], solid.x * vertices[row, 2]
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
    if kind == CYLINDER or kind == CONE:
        across = math.sqrt(x * x + y * y)
        sx = solid.x * x / across if across > 0.0 else solid.x
        sy = solid.x * y / across if across > 0.0 else 0.0
        if kind == CYLINDER:
            return sx, sy, math.copysign(solid.y, z)
        if z * solid.y > across * solid.x:
            return 0.0, 0.0, 0.75 * solid.y
        return sx, sy, -0.25 * solid.y
    return 0.0, 0.0, 0.0


def set_corner(polygon: Table, k: int, x: float, y: float, z: float):
    polygon[k, 0] = x
    polygon[k, 1] = y
    polygon[k, 2] = z


def straight_side(polygon: Table, x: float, y: float, half: float):
    """The side of a cylinder, or the core of a capsule: two corners."""
    set_corner(polygon, 0, x, y, -half)
    set_corner(polygon, 1, x, y, half)
    return 2


def ring(polygon: Table, radius: float, z: float, sense: float):
    """A round face of a given radius; sense +1 or -1 says which way round."""
    for k in range(CORNERS):
        angle = sense * 2.0 * math.pi / float(CORNERS) * float(k)
        set_corner(polygon, k, radius * math.cos(angle), radius * math.sin(angle), z)
    return CORNERS


def box_face(polygon: Table, solid: Solid, x: float, y: float, z: float):
    """The face of a box that looks most along (x, y, z)."""
    size = vector(solid.x, solid.y, solid.z)
    face = 0 if abs(x) >= abs(y) and abs(x) >= abs(z) else (1 if abs(y) >= abs(z) else 2)
    side = x if face == 0 else (y if face == 1 else z)
    sense = 1.0 if side >= 0.0 else -1.0
    p, q = (face + 1) % 3, (face + 2) % 3
    for corner in range(4):
        polygon[corner, face] = sense * size[face]
        polygon[corner, p] = sense * size[p] if corner == 0 or corner == 3 else -sense * size[p]
        polygon[corner, q] = size[q] if corner < 2 else -size[q]
    return 4


def rounded_box_face(polygon: Table, solid: Solid, x: float, y: float, z: float):
    """The same of the core of a rounded box, which may be a plate, a rod or a point: then the face is an edge or a corner."""
    corners = box_face(polygon, solid, x, y, z)
    hair, long_p, long_q = 1e-6 * solid.radius, bool(False), bool(False)
    for axis in range(3):
        long_p = long_p or abs(polygon[0, axis] - polygon[1, axis]) > hair
        long_q = long_q or abs(polygon[1, axis] - polygon[2, axis]) > hair
    if long_p and long_q:
        return corners
    if long_q:
        set_corner(polygon, 1, polygon[2, 0], polygon[2, 1], polygon[2, 2])
    return 2 if long_p or long_q else 1


def hull_face(polygon: Table, solid: Solid, hulls: Hulls, x: float, y: float, z: float):
    """The face of a hull that looks most along (x, y, z); of one with very many corners, as many as fit, evenly taken."""
    vertices, normals, corners = hulls.vertices, hulls.face_normals, hulls.face_corners
    best, most = whole(0), float(-math.inf)
    for face in range(hulls.first_face[solid.k], hulls.first_face[solid.k + 1]):
        along = x * normals[face, 0] + y * normals[face, 1] + z * normals[face, 2]
        if along > most:
            best = face
            most = along
    first, count = hulls.face_start[best], hulls.face_start[best + 1] - hulls.face_start[best]
    taken = min(count, polygon.shape[0] // 2)
    for corner in range(taken):
        k = corners[first + corner * count // taken]
        for axis in range(3):
            polygon[corner, axis] = solid.x * vertices[k, axis]
    return taken


def support_face(polygon: Table, solid: Solid, hulls: Hulls, x: float, y: float, z: float):
    """Corners of the face of the core that looks most along the unit (x, y, z), in the solid's own frame: three or more of a
    face, two of an edge or a straight side; returns their number. One: the solid is round there, or it is a corner."""
    kind, vertices = solid.kind, hulls.vertices
    if kind == BOX:
        return box_face(polygon, solid, x, y, z)
    if kind == ROUNDED_BOX:
        return rounded_box_face(polygon, solid, x, y, z)
    if kind == HULL:
        return hull_face(polygon, solid, hulls, x, y, z)
    if kind == TRIANGLE:
        for axis in range(3):
            polygon[0, axis] = solid.x * vertices[solid.i, axis]
            polygon[1, axis] = solid.x * vertices[solid.j, axis]
            polygon[2, axis] = solid.x * vertices[solid.k, axis]
        return 3
    across = hypot(x, y)
    if kind == CAPSULE and across > 0.7:
        return straight_side(polygon, 0.0, 0.0, solid.y)
    if kind == CYLINDER:
        if abs(z) > 0.7:
            return ring(polygon, solid.x, math.copysign(solid.y, z), math.copysign(1.0, z))
        return straight_side(polygon, solid.x * x / across, solid.x * y / across, solid.y)
    if kind == CONE:
        if -z > (across * solid.y + z * solid.x) / hypot(solid.x, solid.y):
            return ring(polygon, solid.x, -0.25 * solid.y, -1.0)
        if across > 1e-9:
            set_corner(polygon, 0, 0.0, 0.0, 0.75 * solid.y)
            set_corner(polygon, 1, solid.x * x / across, solid.x * y / across, -0.25 * solid.y)
            return 2
    px, py, pz = support(solid, vertices, hulls.links, x, y, z)
    set_corner(polygon, 0, px, py, pz)
    return 1
