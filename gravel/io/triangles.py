"""Surfaces as triangles, for files and pictures: templates of the simple shapes (``gravel.shapes.templates``), and geometries."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gravel.rotations import rotate
from gravel.shapes import COMPOUND, HULL, KINDS, MESH, ROUND, SPHERE
from gravel.shapes.inside import inside_child
from gravel.shapes.kinds import kind_of
from gravel.shapes.templates import Template

COMPOUND_TRIANGLES = 6000  # a compound's round children get as many sides as keep its surface near this
SIDES = (24, 16, 12, 8)  # sides of round surfaces, from fine to coarse


class Surface(NamedTuple):
    vertices: np.ndarray  # (v, 3) m
    triangles: np.ndarray  # (t, 3), counter-clockwise from outside


@lru_cache
def template(kind: int, sides: int = SIDES[0]) -> Template:
    """The template of a simple shape, with so many sides around its axis if it is round."""
    return KINDS[kind].template(sides)


def lengths_of(extents, radii, columns=4):
    """(n, columns) what the points of a template are linear in: three sizes and the rounding radius, by which the ball around the body is
    larger than that around a box of these sizes."""
    if columns == 3:
        return extents
    return np.column_stack([extents, np.maximum(radii - np.linalg.norm(extents, axis=1), 0.0)])


def placed(weights, data, bodies):
    """The vertices (n, v, 3) in f4 and the world frame of some bodies (rows of a frame) that look alike but for their size and place."""
    lengths = data["extent"][bodies] if weights.shape[2] == 3 else lengths_of(data["extent"][bodies], data["radius"][bodies])
    local = np.einsum("vij,nj->nvi", np.asarray(weights, "f4"), np.asarray(lengths, "f4"), optimize=True)
    turns = matrices(data["quaternion"][bodies]).astype("f4")
    return local @ turns.transpose(0, 2, 1) + np.asarray(data["position"][bodies])[:, None, :].astype("f4")


def matrices(quaternions):
    """Rotation matrices (n, 3, 3)."""
    w, x, y, z = np.asarray(quaternions, float).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


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
        weights, faces, _ = template(int(kind), sides)
        points = weights @ lengths_of(geometry.child_size[k : k + 1], geometry.child_radius[k : k + 1], weights.shape[2])[0]
    return geometry.child_position[k] + rotate(geometry.child_quaternion[k], points), faces
