"""Surfaces of all bodies of a frame, merged: a template or geometry is placed for all its bodies at once.

In: the arrays of a frame (``gravel.io.vtkhdf.read_frame``). Out: ``Group``s of bodies with one surface, and ``Merged`` ones:
points, triangles, and for each vertex its body and normal.
"""

from typing import NamedTuple

import numpy as np

from gravel.io.triangles import SIDES, placed, template
from gravel.shapes import COMPOUND, HULL, ROUND, SPHERE
from gravel.view import need

TRIANGLES = 4_000_000  # in a picture, about: above, round shapes get fewer sides and geometries fewer triangles
SMOOTHEST = (96, 48)  # sides of round bodies that fill a picture
COARSEST = 40  # triangles of a geometry that is simplified; where not even these fit in, bodies are drawn as points
COARSE = 600  # triangles: of a mesh with fewer, or of a sheet, sharp edges are drawn
SHARP, SMOOTH = 1.0, 35.0  # degrees: edges of flat faces are drawn above the one; fine meshes are smooth below the other


class Group(NamedTuple):
    """Bodies of one frame that look alike but for their size and place."""

    bodies: np.ndarray  # rows of the frame
    weights: np.ndarray  # (v, 3, 3) or (v, 3, 4): see ``gravel.shapes.templates``
    triangles: np.ndarray  # (t, 3)
    edges: np.ndarray  # (e, 2) vertices, to be drawn as lines
    flat: bool  # faces are flat, or smooth at their vertices


class Merged(NamedTuple):
    points: np.ndarray  # (V, 3) f4, world frame
    triangles: np.ndarray  # (T, 3)
    edges: np.ndarray  # (E, 2)
    body: np.ndarray  # (V,) row of the frame of each vertex
    normals: np.ndarray  # (V, 3)


def groups_of(data, bodies, finest=SIDES[0]):
    """The groups of some bodies (rows of the frame); round ones get at most ``finest`` sides."""
    kinds, numbers = data["shape"][bodies], data["geometry"][bodies]
    groups = []
    round_ones = np.isin(kinds, ROUND).sum()
    choices = [n for n in (*SMOOTHEST, *SIDES) if n <= finest]
    sides = next((n for n in choices if round_ones * len(template(SPHERE, n).triangles) <= TRIANGLES), SIDES[-1])
    for kind in np.unique(kinds[numbers < 0]).tolist():
        (weights, triangles, _), flat = template(kind, sides), kind not in ROUND
        edges = sharp_edges(weights @ np.ones(weights.shape[2]), triangles) if flat else np.zeros((0, 2), int)
        groups.append(Group(bodies[(kinds == kind) & (numbers < 0)], weights, triangles, edges, flat))
    has_surface = max(np.count_nonzero(numbers >= 0), 1)
    order = np.argsort(numbers, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
        if len(part) and numbers[part[0]] >= 0:
            surface = data["geometries"][int(numbers[part[0]])]
            groups.append(_geometry_group(bodies[part], kinds[part[0]], surface, TRIANGLES / has_surface))
    return groups


def _geometry_group(bodies, kind, surface, room):
    vertices, triangles = surface["vertices"], surface["triangles"]
    if len(triangles) > max(room, COARSEST):
        vertices, triangles = simplified(vertices, triangles, max(room, COARSEST))
    flat, edges = kind == HULL, np.zeros((0, 2), int)
    if flat:
        edges = sharp_edges(vertices, triangles)
    elif kind != COMPOUND:  # whose sharp edges are split already
        vertices, triangles = split(vertices, triangles)
        edges = sharp_edges(vertices, triangles, SMOOTH) if len(triangles) < COARSE else edges
    weights = np.zeros((len(vertices), 3, 3))
    weights[:, :, 0] = vertices
    return Group(bodies, weights, triangles, edges, flat)


def place(group, data):
    """The vertices (n, v, 3) of all bodies of a group in the world frame."""
    return placed(group.weights, data, group.bodies)


def merge(groups, data):
    """All groups as one surface."""
    points, triangles, edges, body, count = [], [], [], [], 0
    for group in groups:
        placed = place(group, data)
        n, v = placed.shape[:2]
        first = count + v * np.arange(n)[:, None, None]
        points.append(placed.reshape(-1, 3))
        triangles.append((first + group.triangles).reshape(-1, 3))
        edges.append((first + group.edges).reshape(-1, 2))
        body.append(np.repeat(group.bodies, v))
        count += n * v
    points, triangles = np.concatenate(points), np.concatenate(triangles)
    return Merged(points, triangles, np.concatenate(edges), np.concatenate(body), vertex_normals(points, triangles))


def _area_vectors(points, triangles):
    a, b, c = points[triangles[:, 0]], points[triangles[:, 1]], points[triangles[:, 2]]
    return np.cross(b - a, c - a)


def unit(vectors):
    """Vectors (..., 3) at length one; those without a length stay so."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-30)


def vertex_normals(points, triangles):
    """Unit normals: sums of the area vectors of the triangles at each vertex."""
    areas = _area_vectors(points, triangles)
    corners = triangles.T.reshape(-1)
    sums = [np.bincount(corners, np.tile(areas[:, k], 3), len(points)) for k in range(3)]
    return unit(np.stack(sums, axis=1)).astype("f4")


def sharp_edges(vertices, triangles, angle=SHARP):
    """Pairs of vertices (e, 2) of the edges at borders and between triangles whose normals differ by more than ``angle`` degrees."""
    places, place = np.unique(vertices, axis=0, return_inverse=True)
    place = place.reshape(-1)
    normals = unit(_area_vectors(vertices.astype(float), triangles))
    ends = np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=-1).reshape(-1, 2)
    key = np.sort(place[ends], axis=1) @ np.array([len(places), 1])
    order = np.argsort(key, kind="stable")
    key, owner = key[order], order // 3
    first = np.flatnonzero(np.diff(key, prepend=-1))
    count = np.diff(np.append(first, len(key)))
    second = np.minimum(first + 1, len(key) - 1)
    cosine = np.einsum("ei,ei->e", normals[owner[first]], normals[owner[second]])
    return ends[order[first[(count != 2) | (cosine < np.cos(np.radians(angle)))]]]


def split(vertices, triangles):
    """The surface with vertices doubled along edges that are sharper than SMOOTH, so that averaged normals keep them."""
    pv = need("pyvista")
    surface = pv.PolyData.from_regular_faces(vertices.astype(float), triangles)
    surface = surface.compute_normals(
        cell_normals=False, split_vertices=True, feature_angle=SMOOTH, consistent_normals=False, auto_orient_normals=False
    )
    return np.asarray(surface.points), surface.regular_faces


def simplified(vertices, triangles, room):
    """The surface with at most about ``room`` triangles."""
    pv = need("pyvista")
    surface = pv.PolyData.from_regular_faces(vertices.astype(float), triangles).clean()
    surface = surface.decimate(1 - room / surface.n_cells) if surface.n_cells > room else surface
    return np.asarray(surface.points), surface.regular_faces
