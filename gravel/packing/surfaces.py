"""Closed surfaces of triangles: how deep points lie inside, and which way leads further in.

The nearest triangle is found in the mesh's tree (``shapes.geometry.tree_of``). Which side a point is on is told by the normal of what
is nearest: of a face its own, of an edge the mean of its two faces', of a corner that of its faces weighted by their angles there;
with these the sign is right everywhere (Baerentzen and Aanaes 2005).
"""

import numpy as np
from numba import njit

from gravel.kernel_cache import install
from gravel.shapes.geometry import LEAF, NONE

install()
INNER = {"nogil": True, "error_model": "numpy", "cache": True}
DEPTH = 64  # nodes that wait while the tree is searched


class Surface:
    """A closed mesh that can be asked where its nearest point is."""

    def __init__(self, mesh):
        geometry = mesh.geometry(False)
        scale = float(mesh.scale)
        self.vertices, self.boxes = scale * geometry.vertices, scale * geometry.boxes
        self.triangles, self.normals = geometry.triangles, geometry.normals
        across = geometry.normals[geometry.adjacent]
        across[geometry.adjacent == NONE] = 0.0
        self.edge_normals = geometry.normals[:, None] + across
        self.corner_normals = _corner_normals(self.vertices, self.triangles, self.normals)

    def nearest(self, points):
        """(depth (N,) m, negative outside; inward directions (N, 3)) of points (N, 3)."""
        depth, inward = np.empty(len(points)), np.empty((len(points), 3))
        points = np.ascontiguousarray(points, float)
        tables = self.normals, self.edge_normals, self.corner_normals
        nearest_of(points, self.vertices, self.triangles, self.boxes, *tables, depth, inward)
        return depth, inward


def _corner_normals(vertices, triangles, normals):
    """(V, 3) sums of the normals around each vertex, weighted by the angles of the triangles there."""
    result = np.zeros_like(vertices)
    for k in range(3):
        here, after, before = (vertices[triangles[:, (k + step) % 3]] for step in range(3))
        one, other = after - here, before - here
        angle = np.arctan2(np.linalg.norm(np.cross(one, other), axis=1), np.einsum("ni,ni->n", one, other))
        np.add.at(result, triangles[:, k], angle[:, None] * normals)
    return result


@njit(**INNER)
def nearest_of(points, vertices, triangles, boxes, normals, edge_normals, corner_normals, depth, inward):
    stack, place, side = np.empty(DEPTH, np.int64), np.empty(3), np.empty(3)
    leaves = (len(boxes) + 1) // 2
    for p in range(len(points)):
        best = np.inf
        stack[0], top = 0, 1
        while top > 0:
            top -= 1
            node = stack[top]
            if square_to_box(points[p], boxes[node]) >= best:
                continue
            if node < leaves - 1:
                left, right = 2 * node + 1, 2 * node + 2
                if square_to_box(points[p], boxes[left]) < square_to_box(points[p], boxes[right]):
                    left, right = right, left
                stack[top], stack[top + 1] = left, right  # the nearer one is looked at first
                top += 2
                continue
            first = (node - leaves + 1) * LEAF
            for t in range(first, min(first + LEAF, len(triangles))):
                a, b, c = triangles[t]
                part = on_triangle(points[p], vertices[a], vertices[b], vertices[c], place)
                square = (points[p, 0] - place[0]) ** 2 + (points[p, 1] - place[1]) ** 2 + (points[p, 2] - place[2]) ** 2
                if square < best:
                    best = square
                    for axis in range(3):
                        inward[p, axis] = points[p, axis] - place[axis]
                        if part < 3:
                            side[axis] = corner_normals[triangles[t, part], axis]
                        elif part < 6:
                            side[axis] = edge_normals[t, part - 3, axis]
                        else:
                            side[axis] = normals[t, axis]
        settle(p, best, side, depth, inward)


@njit(**INNER)
def settle(p, square, side, depth, inward):
    """Sign and direction of point p, from the arm of its nearest point and the normal there."""
    distance = np.sqrt(square)
    outside = inward[p, 0] * side[0] + inward[p, 1] * side[1] + inward[p, 2] * side[2] > 0.0
    length = np.sqrt(side[0] ** 2 + side[1] ** 2 + side[2] ** 2)
    for axis in range(3):
        if distance > 1e-12:
            inward[p, axis] *= (-1.0 if outside else 1.0) / distance
        else:
            inward[p, axis] = -side[axis] / length
    depth[p] = -distance if outside else distance


@njit(**INNER)
def square_to_box(point, box):
    square = 0.0
    for axis in range(3):
        d = max(box[axis] - point[axis], 0.0, point[axis] - box[axis + 3])
        square += d * d
    return square


@njit(**INNER)
def on_triangle(p, a, b, c, place):
    """place := the point of a triangle that is nearest to p; returns where that is: 0 to 2 a corner, 3 to 5 the edge from corner k to
    k + 1, 6 the face. By the regions of Voronoi, as in Ericson's book (Real-Time Collision Detection, 5.1.5)."""
    ab, ac, ap = b - a, c - a, p - a
    d1, d2 = dot(ab, ap), dot(ac, ap)
    bp, cp = p - b, p - c
    d3, d4 = dot(ab, bp), dot(ac, bp)
    d5, d6 = dot(ab, cp), dot(ac, cp)
    if d1 <= 0.0 and d2 <= 0.0:
        place[:] = a
        return 0
    if d3 >= 0.0 and d4 <= d3:
        place[:] = b
        return 1
    if d6 >= 0.0 and d5 <= d6:
        place[:] = c
        return 2
    vc, vb, va = d1 * d4 - d3 * d2, d5 * d2 - d1 * d6, d3 * d6 - d5 * d4
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        place[:] = a + d1 / (d1 - d3) * ab
        return 3
    if va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        place[:] = b + (d4 - d3) / ((d4 - d3) + (d5 - d6)) * (c - b)
        return 4
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        place[:] = a + d2 / (d2 - d6) * ac
        return 5
    place[:] = a + vb / (va + vb + vc) * ab + vc / (va + vb + vc) * ac
    return 6


@njit(**INNER)
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
