"""Triangles that stand for the surfaces of simple shapes, whatever their sizes: templates.

The points of every simple shape are linear in its sizes e, so a template is a weight matrix for each vertex, W, and the vertex of a body
lies at W e in its frame. Bodies of one kind are then placed all at once. Vertices are doubled where a surface has a sharp edge, so that
normals that are averaged at vertices shade it rightly.
"""

from typing import NamedTuple

import numpy as np

TIP = 1e-4  # relative radius of a cone's tip, which is a ring, since each side of it has its own normal


class Template(NamedTuple):
    weights: np.ndarray  # (v, 3, 3): point = weights @ sizes; (v, 3, 4): of sizes and rounding radius, see ``io.triangles.lengths_of``
    triangles: np.ndarray  # (t, 3), counter-clockwise from outside
    normals: np.ndarray | None = None  # (v, 3) where they are the same for all sizes


def turned(strips, sides):
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


def ball(sides, halves=False):
    """Points and triangles of a ball of radius 1; of two ``halves`` the equator is there twice, once for each."""
    angles = np.linspace(-np.pi / 2, np.pi / 2, sides // 2 + 1)
    profile = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    profile[[0, -1], 0] = 0
    if halves:
        profile = np.insert(profile, sides // 4, profile[sides // 4], axis=0)
    return turned([profile], sides)


def scaled_by_first(points, triangles):
    """The template of a shape that is as large as its first size."""
    weights = np.zeros((len(points), 3, 3))
    weights[:, :, 0] = points
    return Template(weights, triangles)


def scaled_along_axes(points, triangles):
    """The template of a shape with a size along each axis."""
    weights = np.zeros((len(points), 3, 3))
    x, y, z = np.arange(3)
    weights[:, (x, y, z), (x, y, z)] = points
    return Template(weights, triangles)


def scaled_about_z(points, triangles):
    """The template of a shape whose first size is its radius about z and whose second is a length along z."""
    weights = np.zeros((len(points), 3, 3))
    weights[:, :2, 0], weights[:, 2, 1] = points[:, :2], points[:, 2]
    return Template(weights, triangles)


def box():
    """The template of a box: four corners for each of its six faces."""
    corners, weights = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]), np.zeros((6, 4, 3, 3))
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for face, side in ((2 * axis, -1), (2 * axis + 1, 1)):
            weights[face, :, axis, axis] = side
            weights[face, :, u, u], weights[face, :, v, v] = corners[::side].T
    first = 4 * np.arange(6)[:, None, None]
    triangles = (first + np.array([(0, 1, 2), (0, 2, 3)])).reshape(-1, 3).astype(np.int32)
    return Template(weights.reshape(24, 3, 3), triangles)
