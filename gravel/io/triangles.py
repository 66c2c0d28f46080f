"""Surfaces as triangles, for files and pictures: templates of the simple shapes, and geometries.

The points of every simple shape are linear in its three sizes e, so a template is a weight matrix for each vertex, W, and the
vertex of a body lies at W e in its frame. Bodies of one kind are then placed all at once, whatever their sizes.
Vertices are doubled where a surface has a sharp edge, so that normals that are averaged at vertices shade it rightly.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gravel.rotations import rotate
from gravel.shapes import BOX, CAPSULE, COMPOUND, CONE, CYLINDER, ELLIPSOID, HULL, MESH, SPHERE
from gravel.shapes.inside import inside_child

ROUND = (SPHERE, ELLIPSOID, CAPSULE, CYLINDER, CONE)
COMPOUND_TRIANGLES = 6000  # a compound's round children get as many sides as keep its surface near this
SIDES = (24, 16, 12, 8)  # sides of round surfaces, from fine to coarse
TIP = 1e-4  # relative radius of a cone's tip, which is a ring, since each side of it has its own normal


class Template(NamedTuple):
    weights: np.ndarray  # (v, 3, 3): point = weights @ sizes
    triangles: np.ndarray  # (t, 3), counter-clockwise from outside


class Surface(NamedTuple):
    vertices: np.ndarray  # (v, 3) m
    triangles: np.ndarray  # (t, 3), counter-clockwise from outside


@lru_cache
def template(kind, sides=SIDES[0]):
    """The template of a simple shape, with so many sides around its axis if it is round."""
    if kind == BOX:
        return Template(*_box())
    if kind == CYLINDER:
        points, triangles = _turned([[(0, -1), (1, -1)], [(1, -1), (1, 1)], [(1, 1), (0, 1)]], sides)
    elif kind == CONE:
        points, triangles = _turned([[(0, -0.25), (1, -0.25)], [(1, -0.25), (TIP, 0.75)]], sides)
    else:
        angles = np.linspace(-np.pi / 2, np.pi / 2, sides // 2 + 1)
        ball = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        ball[[0, -1], 0] = 0
        if kind == CAPSULE:  # the equator is there twice, once for each end of the cylinder
            ball = np.insert(ball, sides // 4, ball[sides // 4], axis=0)
        points, triangles = _turned([ball], sides)
    weights = np.zeros((len(points), 3, 3))
    x, y, z = np.arange(3)
    if kind in (SPHERE, CAPSULE):
        weights[:, :, 0] = points
    elif kind == ELLIPSOID:
        weights[:, (x, y, z), (x, y, z)] = points
    else:
        weights[:, (x, y), 0], weights[:, z, 1] = points[:, :2], points[:, z]
    if kind == CAPSULE:
        lower = np.arange(len(points)) < len(points) // 2
        weights[:, z, 1] = np.where(lower, -1, 1)
    return Template(weights, triangles)


def _turned(strips, sides):
    """Points and triangles of profiles (r, z), which run upwards along the outside, turned about z. A point at r = 0 is one vertex."""
    angles = 2 * np.pi * np.arange(sides) / sides
    points, triangles, count = [], [], 0
    for strip in strips:
        rings = []
        for r, z in strip:
            ring = np.stack([r * np.cos(angles), r * np.sin(angles), np.full(sides, float(z))], axis=1)[: sides if r else 1]
            rings.append(count + np.arange(len(ring)))
            points.append(ring)
            count += len(ring)
        for low, high in zip(rings[:-1], rings[1:]):
            a, d = np.broadcast_to(low, sides), np.broadcast_to(high, sides)
            b, c = np.roll(a, -1), np.roll(d, -1)
            triangles += [np.stack([a, b, c], axis=1)] * (len(low) > 1) + [np.stack([a, c, d], axis=1)] * (len(high) > 1)
    return np.concatenate(points), np.concatenate(triangles).astype(np.int32)


def _box():
    """Weights and triangles of a box: four corners for each of its six faces."""
    corners, weights = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]), np.zeros((6, 4, 3, 3))
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for face, side in ((2 * axis, -1), (2 * axis + 1, 1)):
            weights[face, :, axis, axis] = side
            weights[face, :, u, u], weights[face, :, v, v] = corners[::side].T
    first = 4 * np.arange(6)[:, None, None]
    return weights.reshape(24, 3, 3), (first + np.array([(0, 1, 2), (0, 2, 3)])).reshape(-1, 3).astype(np.int32)


def placed(weights, extents, quaternions, positions):
    """The vertices (n, v, 3) in f4 and the world frame of n bodies that have these sizes, turns and places."""
    local = np.einsum("vij,nj->nvi", np.asarray(weights, "f4"), np.asarray(extents, "f4"), optimize=True)
    turns = matrices(quaternions).astype("f4")
    return local @ turns.transpose(0, 2, 1) + np.asarray(positions)[:, None, :].astype("f4")


def matrices(quaternions):
    """Rotation matrices (n, 3, 3)."""
    w, x, y, z = np.asarray(quaternions, float).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


def kind_of(geometry):
    """HULL, COMPOUND or MESH."""
    return COMPOUND if len(geometry.child_kind) else MESH if len(geometry.triangles) else HULL


def surface_of(geometry):
    """The surface of a geometry in the frame of its body, at scale 1."""
    kind = kind_of(geometry)
    if kind == COMPOUND:
        return _compound(geometry)
    return Surface(geometry.vertices, geometry.triangles if kind == MESH else _fans(geometry))


def _fans(hull):
    """Triangles of a hull's faces, each a fan from its first corner."""
    lengths = np.diff(np.append(hull.face_start, len(hull.face_corners)))
    first = np.repeat(hull.face_start, lengths - 2)
    second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(lengths - 2) - (lengths - 2), lengths - 2)
    return hull.face_corners[np.stack([first, second, second + 1], axis=1)]


def _compound(geometry):
    """The surfaces of all children, without triangles that lie inside another child and are never seen."""
    round_ones = max(np.isin(geometry.child_kind, ROUND).sum(), 1)
    sides = next((n for n in SIDES if round_ones * len(template(SPHERE, n).triangles) <= COMPOUND_TRIANGLES), SIDES[-1])
    vertices, triangles, count = [], [], 0
    reach = geometry.child_radius
    for k, kind in enumerate(geometry.child_kind):
        corners, faces = _child(geometry, k, kind, sides)
        near = np.linalg.norm(geometry.child_position - geometry.child_position[k], axis=1) < reach + reach[k]
        hidden = np.zeros(len(faces), bool)
        for other in np.flatnonzero(near):
            if other != k:  # children are convex: a triangle whose corners are inside one is inside it
                hidden |= inside_child(geometry, other, corners, 1 - 1e-6)[faces].all(axis=1)
        if hidden.all():
            continue
        used, faces = np.unique(faces[~hidden], return_inverse=True)
        vertices.append(corners[used])
        triangles.append(count + faces.reshape(-1, 3))
        count += len(used)
    return Surface(np.concatenate(vertices), np.concatenate(triangles).astype(np.int32))


def _child(geometry, k, kind, sides):
    """Vertices in the compound's frame, and triangles, of child k."""
    if kind == HULL:
        part = geometry.parts[geometry.child_geometry[k]]
        faces = _fans(part)
        points = geometry.child_size[k, 0] * part.vertices[faces].reshape(-1, 3)  # a hull has an edge at each of its sides
        faces = np.arange(len(points)).reshape(-1, 3)
    else:
        weights, faces = template(int(kind), sides)
        points = weights @ geometry.child_size[k]
    return geometry.child_position[k] + rotate(geometry.child_quaternion[k], points), faces
