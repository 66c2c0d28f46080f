"""The surface of one body as triangles in its own frame, cut as finely as is asked for, and which of them a contact touches.

In: a ``Simulation`` or a ``Frame``, and the id of a body. Out: ``BodySurface``.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import cKDTree

from gravel import checks
from gravel.io.present import frame_of
from gravel.io.surfaces import surfaces_of
from gravel.shapes import PLANE
from gravel.shapes.geometry import NONE
from gravel.state import SHAPE

ALONG = 24  # pieces along the longest side of a shape that is no mesh, unless an edge is given
AROUND_PLANE = 1.2  # of the bodies' box: how far the square goes that stands for a plane
MOST = 2_000_000  # triangles of a surface
FIELDS = ("quaternion", "extent", "radius", "shape", "geometry")


@dataclass(frozen=True, eq=False)
class BodySurface:
    """Triangles of a body, m, in its frame: counter-clockwise from outside."""

    vertices: np.ndarray  # (v, 3)
    triangles: np.ndarray  # (t, 3)

    @cached_property
    def corners(self) -> np.ndarray:
        """(t, 3, 3) m."""
        return self.vertices[self.triangles]

    @cached_property
    def areas(self) -> np.ndarray:
        """(t,) m2."""
        return 0.5 * np.linalg.norm(np.cross(self.corners[:, 1] - self.corners[:, 0], self.corners[:, 2] - self.corners[:, 0]), axis=1)

    @cached_property
    def _classes(self):
        """Triangles by their size, twice as large from class to class: (rows, tree of their middles, how far they reach from these)."""
        middles = self.corners.mean(axis=1)
        reach = np.linalg.norm(self.corners - middles[:, None], axis=2).max(axis=1)
        size = np.floor(np.log2(np.maximum(reach, 1e-300))).astype(int)
        groups = [np.flatnonzero(size == one) for one in np.unique(size)]
        return [(rows, cKDTree(middles[rows]), float(reach[rows].max())) for rows in groups]

    @cached_property
    def normals(self) -> np.ndarray:
        """(t, 3) of length one."""
        across = np.cross(self.corners[:, 1] - self.corners[:, 0], self.corners[:, 2] - self.corners[:, 0])
        return across / np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300)

    def touched(self, points: np.ndarray, directions: np.ndarray, slack: np.ndarray) -> np.ndarray:
        """(n,) the triangle to which each contact belongs, at ``points`` (n, 3): of all that are at most ``slack`` (n,) m farther than the
        nearest, as on both sides of an edge, the one that faces most along the contact's normal, ``directions`` (n, 3); of those alike the
        first. Sheets have two sides, so either way along it counts."""
        bound = np.min([tree.query(points)[0] for _, tree, _ in self._classes], axis=0)  # no triangle is farther than its middle
        owners, rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for members, tree, reach in self._classes:
            found = tree.query_ball_point(points, bound + slack + reach)
            counts = np.array([len(some) for some in found])
            owners.append(np.repeat(np.arange(len(points)), counts))
            rows.append(members[np.concatenate([np.asarray(some, np.int64) for some in found])] if counts.sum() else rows[0])
        owner, row = np.concatenate(owners), np.concatenate(rows)
        apart = distances(points[owner], self.corners[row])
        least = np.full(len(points), np.inf)
        np.minimum.at(least, owner, apart)
        near = apart <= (least + slack)[owner]
        owner, row = owner[near], row[near]
        facing = np.abs(np.einsum("ni,ni->n", self.normals[row], directions[owner]))
        order = np.lexsort((row, -np.round(facing, 6), owner))
        return row[order][np.searchsorted(owner[order], np.arange(len(points)))]


def distances(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """(n,) m, of each point (n, 3) from a triangle (n, 3, 3): from its plane where it lies above the triangle, else from an edge."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    normal = np.cross(b - a, c - a)
    square = np.maximum(np.einsum("ni,ni->n", normal, normal), 1e-300)
    sides, apart = [], []
    for start, end in ((a, b), (b, c), (c, a)):
        edge, way = end - start, points - start
        share = np.clip(np.einsum("ni,ni->n", way, edge) / np.maximum(np.einsum("ni,ni->n", edge, edge), 1e-300), 0.0, 1.0)
        apart.append(np.linalg.norm(way - share[:, None] * edge, axis=1))
        sides.append(np.einsum("ni,ni->n", np.cross(edge, way), normal) >= 0)
    height = np.abs(np.einsum("ni,ni->n", points - a, normal)) / np.sqrt(square)
    return np.where(np.all(sides, axis=0), height, np.min(apart, axis=0))


def surface_of_body(source, body: int, edge: float | None) -> BodySurface:
    """The surface of a body. ``edge`` m: triangles are cut until their edges are at most so long; None: those of a mesh or a hull stay as
    they are, and others are cut into about 24 pieces along their longest side. A plane is a square about all bodies."""
    if hasattr(source, "views"):
        if int(source.bodies.tag[body, SHAPE]) == PLANE:
            return _square(source, body, edge)
        data = frame_of(source)
    else:
        data = {"id": source.ids, "shape": source.kinds, "extent": source.extents, "radius": source.radii}
        data |= {"geometry": source.geometry, "geometries": source.surfaces, "quaternion": source.quaternions}
    row = int(np.flatnonzero(data["id"] == body)[0])
    one = {name: np.array(data[name][row : row + 1]) for name in FIELDS}
    one |= {"position": np.zeros((1, 3)), "quaternion": np.array([[1.0, 0.0, 0.0, 0.0]]), "geometries": data["geometries"]}
    made = surfaces_of(one, np.array([0]))
    vertices, triangles = made.points.astype(float), made.triangles.astype(np.int64)
    if edge is None and one["geometry"][0] == NONE:
        edge = float(np.ptp(vertices, axis=0).max()) / ALONG
    return _cut(vertices, triangles, edge)


def _square(sim, body, edge):
    """The part of a plane that the bodies' box stands on, in the plane's frame."""
    normal = sim.shape_of(body).normal
    first = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    first /= np.linalg.norm(first)
    second = np.cross(normal, first)
    there = sim.alive & np.isfinite(sim.radii)
    if not there.any():
        raise ValueError("a plane's part of which there is a map is that around the other bodies, but there are none")
    away = np.column_stack([sim.positions[there] - sim.positions[body]]) @ np.column_stack([first, second])
    middle = 0.5 * (away.max(axis=0) + away.min(axis=0))
    half = 0.5 * AROUND_PLANE * float((np.ptp(away, axis=0) + 2 * sim.radii[there].max()).max())
    corners = middle + half * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    return _cut(corners @ np.stack([first, second]), np.array([(0, 1, 2), (0, 2, 3)]), 2 * half / ALONG if edge is None else edge)


def _cut(vertices, triangles, edge):
    """Each triangle into four, again and again, until no edge is longer."""
    if edge is None:
        return BodySurface(vertices, triangles)
    edge = checks.number("edge", edge, above=0.0) * (1 + 1e-9)
    corners, done = vertices[triangles], []
    while len(corners):
        longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
        done.append(corners[longest <= edge])
        corners = corners[longest > edge]
        if sum(map(len, done)) + 4 * len(corners) > MOST:
            raise ValueError(f"edge must be long enough for at most {MOST} triangles, not {edge:.3g} m")
        a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
        d, e, f = 0.5 * (a + b), 0.5 * (b + c), 0.5 * (c + a)
        corners = np.concatenate([np.stack(new, axis=1) for new in ((a, d, f), (d, b, e), (f, e, c), (d, e, f))])
    points, where = np.unique(np.concatenate(done).reshape(-1, 3), axis=0, return_inverse=True)
    return BodySurface(points, where.reshape(-1, 3))
