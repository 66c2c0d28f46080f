"""Surfaces of the bodies of a frame, for files: what moves, what is fixed, and squares and outlines where planes are.

In: the arrays of a frame (``gravel.io.present``). Out: ``Placed`` surfaces in the world frame.
"""

from typing import NamedTuple

import numpy as np

from gravel.io.triangles import SIDES, placed, template
from gravel.shapes import ROUND, SPHERE
from gravel.shapes.geometry import NONE

UPRIGHT = 0.7  # cosine: a plane that leans less than that is a floor, and drawn as a square; walls, which would hide all, as outlines


class Placed(NamedTuple):
    """Surfaces of bodies, side by side."""

    points: np.ndarray  # (v, 3) f4 m
    triangles: np.ndarray  # (t, 3) i4, rows of points
    row: np.ndarray  # (v,) the body's row in its frame


def vertices_needed(data, rows, sides=SIDES[-1]):
    """How many vertices the surfaces of some bodies have, with so many sides of round ones."""
    kinds, numbers = data["shape"][rows], data["geometry"][rows]
    simple, counts = np.bincount(kinds[numbers == NONE]), np.bincount(numbers[numbers != NONE])
    total = sum(int(count) * len(template(kind, sides).weights) for kind, count in enumerate(simple) if count)
    return total + sum(int(count) * len(data["geometries"][number]["vertices"]) for number, count in enumerate(counts) if count)


def surfaces_of(data, rows, most=None):
    """The surfaces of some bodies, rows of a frame. ``most``: how many vertices they should have at most; round bodies get fewer sides to
    stay below it. None if even that does not help."""
    sides = next((n for n in SIDES if most is None or vertices_needed(data, rows, n) <= most), None)
    if sides is None:
        return None
    points, triangles, row, count = [np.zeros((0, 3), "f4")], [np.zeros((0, 3), "i4")], [np.zeros(0, int)], 0
    for members, weights, faces in _groups(data, rows, sides):
        local = placed(weights, data, members)
        first = count + local.shape[1] * np.arange(len(members), dtype="i4")[:, None, None]
        points.append(local.reshape(-1, 3))
        triangles.append((first + faces.astype("i4")).reshape(-1, 3))
        row.append(np.repeat(members, local.shape[1]))
        count += len(points[-1])
    return Placed(np.concatenate(points), np.concatenate(triangles), np.concatenate(row))


def _groups(data, rows, sides):
    """(rows of the frame, weights, triangles) of bodies that look alike but for their size and place."""
    kinds, numbers = data["shape"][rows], data["geometry"][rows]
    for kind in np.unique(kinds[numbers == NONE]).tolist():
        shape = template(kind, sides)
        yield rows[(kinds == kind) & (numbers == NONE)], shape.weights, shape.triangles
    order = np.argsort(numbers, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
        if len(part) and numbers[part[0]] != NONE:
            surface = data["geometries"][int(numbers[part[0]])]
            weights = np.zeros((len(surface["vertices"]), 3, 3), "f4")
            weights[:, :, 0] = surface["vertices"]  # scaled by extent[0]
            yield rows[part], weights, surface["triangles"]


def is_round(data):
    """(n,) whether a body is round, so that its triangles are a choice."""
    return np.isin(data["shape"], ROUND)


def shown_as_points(data):
    """(n,) whether a point and a radius say all of a body's shape."""
    return data["shape"] == SPHERE


def squares(data):
    """Where planes are: points (4 p, 3), point data (none), and the corners of the squares (floors) and outlines (walls) among them.

    A square is as large as the bodies need that are there, up to a power of two, so that it seldom changes."""
    position, normal = np.asarray(data["plane_position"], float), np.asarray(data["plane_normal"], float)
    size, middle = _reach(data, position) if len(position) else (1.0, np.zeros(3))
    points = []
    for place, n in zip(position, normal):
        u = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
        u /= np.linalg.norm(u)
        v = np.cross(n, u)
        centre = middle - ((middle - place) @ n) * n
        points += [centre + 0.5 * size * (a * u + b * v) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    gravity = np.asarray(data["gravity"], float)
    floors = normal @ -gravity > UPRIGHT * np.linalg.norm(gravity)
    corners = np.arange(4 * len(position)).reshape(-1, 4)
    outlines = corners[~floors][:, [0, 1, 2, 3, 0]]
    return np.array(points, "f4").reshape(-1, 3), {}, {"Polygons": corners[floors], "Lines": outlines}


def _reach(data, planes):
    """Size of a square and its middle: those of the bodies that are there, in coarse steps."""
    if not len(data["id"]):
        return 1.0, planes.mean(axis=0)
    low, high = (extreme(data["position"], axis=0).astype(float) for extreme in (np.min, np.max))
    largest = float(data["radius"].max())
    low, high = low - largest, high + largest
    size = 2.0 ** np.ceil(np.log2(max(1.2 * np.max(high - low), 1e-6)))
    return size, 0.25 * size * np.round(0.5 * (low + high) / (0.25 * size))
