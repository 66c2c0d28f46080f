"""Which points lie inside a shape, in plain NumPy: for surfaces that are hidden, and for volumes that are measured by points."""

import numpy as np

from gravel.rotations import conjugate, rotate
from gravel.shapes.geometry import NONE
from gravel.shapes.simple import HULL, SOLID_OF

MOST_ANGLES = 1 << 21  # solid angles that are held at once


def inside_convex(kind, extent, points, hull=None, less=1.0):
    """(n,) whether points (n, 3) are inside a simple shape, or a ``hull`` of the scale extent[0]; in the frame of the shape.
    ``less`` than one leaves out what is nearly on the surface."""
    if kind != HULL:
        return SOLID_OF[kind].inside(extent, points, less)
    foot = hull.vertices[hull.face_corners[hull.face_start]]
    depth = np.einsum("fi,fi->f", hull.face_normals, foot) * extent[0]
    return (points @ hull.face_normals.T < depth * less).all(axis=1)


def inside_child(geometry, k, points, less=1.0):
    """(n,) whether points are inside child k of a compound, in the frame of the compound at scale 1."""
    own = rotate(conjugate(geometry.child_quaternion[k]), points - geometry.child_position[k])
    part = geometry.child_geometry[k]
    return inside_convex(geometry.child_kind[k], geometry.extent_of_child(k), own, None if part == NONE else geometry.parts[part], less)


def inside_compound(geometry, points):
    """(n,) whether points are inside any child of a compound."""
    found = np.zeros(len(points), bool)
    for k in range(len(geometry.child_kind)):
        found[~found] = inside_child(geometry, k, points[~found])
    return found


def inside_surface(vertices, triangles, points):
    """(n,) whether points are inside a closed surface: the triangles fill more than half of the sphere of directions that they see
    (winding number, by the solid angles of van Oosterom and Strackee)."""
    found, many = np.empty(len(points), bool), max(MOST_ANGLES // len(triangles), 1)
    for first in range(0, len(points), many):
        a, b, c = np.moveaxis(vertices[triangles][None] - points[first : first + many, None, None], 2, 0)
        la, lb, lc = (np.linalg.norm(corner, axis=-1) for corner in (a, b, c))
        dot = lambda u, v: np.einsum("nti,nti->nt", u, v)  # noqa: E731
        volume, below = dot(a, np.cross(b, c)), la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb
        found[first : first + many] = np.arctan2(volume, below).sum(axis=1) > np.pi  # half of the angles: all around is 2 pi
    return found
