"""Shapes with flat faces: convex hulls, triangle meshes and height fields, from arrays or from files.

In come points and triangles in the user's coordinates, m; out go a ``Geometry`` (convex faces, or triangles with their tree)
and the mass properties, integrated exactly over the tetrahedra between the surface and a point. Bodies share the geometry and
may each have a ``scale``. A closed mesh is one-sided (behind a triangle is inside); an open one is made of sheets and has no mass.
"""

import copy
import itertools
import os
import warnings
from dataclasses import InitVar, dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import ConvexHull as Quickhull
from scipy.spatial import QhullError, cKDTree
from scipy.spatial.transform import Rotation

from gravel import checks
from gravel.geometry import NONE, Geometry, tree_of
from gravel.rotations import conjugate, rotate
from gravel.shapes import HULL, MESH

# Lengths relative to the size of a shape
SAME_POINT = 1e-12  # vertices nearer than this are one
REPAIRED_POINT = 1e-6  # ... in a mesh under repair
COPLANAR = 1e-7  # a hull's facets that lie within this of a plane are one face
FLAT = 1e-6  # points within a slab thinner than this have no hull
SLIVER = 1e-12  # a triangle lower than this has no area
HOLE_EDGES = 12  # the largest hole that repair fills


class Mass(NamedTuple):
    """Volume in m3; centre of mass and principal axes in the coordinates as given; principal moments per unit mass, m2."""

    volume: float
    centre: np.ndarray
    axes: np.ndarray  # quaternion: from principal axes to the given ones
    moments: np.ndarray


class Scaled:
    """A shape of one geometry that its bodies share, each at its own ``scale``. It knows its ``mass`` at scale 1, or refuses."""

    @property
    def count(self):
        return None if self.scale.ndim == 0 else len(self.scale)

    def take(self, bodies):
        """The same shape with the scales of some of its bodies; the geometry stays shared."""
        if self.count is None:
            return self
        some = copy.copy(self)
        object.__setattr__(some, "scale", self.scale[bodies])
        return some

    def rows(self, n):
        sizes = np.zeros((n, 3))
        sizes[:, 0] = self.scale
        return sizes

    def volumes(self, n):
        return np.broadcast_to(self.mass.volume * self.scale**3, n)

    def inertias(self, masses):
        """Principal moments of inertia, kg m2."""
        return (masses * self.scale**2)[:, None] * self.mass.moments

    def bounding_radii(self, n):
        return np.broadcast_to(self.geometry(self.has_mass).radius * self.scale, n)

    has_mass = True

    @property
    def mass_frame(self):
        """Centre of mass (3,) and quaternion of the principal axes (4,) in the coordinates as given, at scale 1."""
        return self.mass.centre, self.mass.axes

    def geometry(self, movable):
        """The geometry: about the centre of mass along the principal axes if ``movable``, else in the coordinates as given."""
        if movable not in self._made:
            frame = self.mass_frame if movable else (np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))
            self._made[movable] = self._geometry_in(*frame)
        return self._made[movable]

    def _set(self, **values):
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def _set_scale(self, scale):
        shape = () if np.ndim(scale) == 0 else (None,)
        self._set(scale=checks.array(f"{type(self).__name__} scale", scale, shape, above=0.0), _made={})


@dataclass(frozen=True, eq=False, repr=False)
class ConvexHull(Scaled):
    """The smallest convex body around ``points`` (N, 3) m, at ``scale``: a number, or an array (N,) for N bodies."""

    points: InitVar[object]
    scale: object = 1.0
    source: str = None  # file, for messages
    vertices: np.ndarray = field(init=False)  # the corners
    faces: list = field(init=False)  # corners of each face, counter-clockwise from outside
    mass: Mass = field(init=False)
    KIND = HULL

    def __post_init__(self, points):
        self._set_scale(self.scale)
        name = f"ConvexHull points{_of(self.source)}"
        points = checks.array(name, points, (None, 3))
        if len(points) < 4:
            raise ValueError(f"{name} must be at least four, not {len(points)}")
        vertices, faces = hull_of(points, name)
        fans = [(face[0], b, c) for face in faces for b, c in zip(face[1:-1], face[2:])]
        self._set(vertices=vertices, faces=faces, mass=mass_of(vertices, np.array(fans)))

    @classmethod
    def from_file(cls, path, scale=1.0):
        """The hull of all points in a file (STL, PLY, OBJ, OFF, glTF and others)."""
        vertices, _ = read_mesh(path)
        return cls(vertices, scale, source=str(path))

    def __repr__(self):
        return f"ConvexHull({len(self.vertices)} corners, {len(self.faces)} faces{_scale_text(self)}{_of(self.source)})"

    def _geometry_in(self, centre, axes):
        vertices = rotate(conjugate(axes), self.vertices - centre)
        edges = np.array(sorted((a, face[k - 1]) for face in map(np.ndarray.tolist, self.faces) for k, a in enumerate(face)), np.int32)
        start = np.searchsorted(edges[:, 0], np.arange(len(vertices)))
        lengths = [len(face) for face in self.faces]
        return Geometry(
            **_reach(vertices),
            vertices=vertices,
            neighbour_start=start.astype(np.int32),
            neighbours=edges[:, 1].copy(),
            face_start=(np.cumsum(lengths) - lengths).astype(np.int32),
            face_corners=np.concatenate(self.faces).astype(np.int32),
            face_normals=face_normals(vertices, self.faces),
        )


class Surface(Scaled):
    """Triangles: ``vertices``, ``triangles``, ``adjacent`` (across the edge from corner k to k + 1) and ``one_sided``."""

    def _geometry_in(self, centre, axes):
        vertices = rotate(conjugate(axes), self.vertices - centre)
        order, boxes = tree_of(vertices, self.triangles)
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order))
        adjacent = self.adjacent[order]
        triangles = self.triangles[order]
        return Geometry(
            **_reach(vertices),
            one_sided=self.one_sided,
            vertices=vertices,
            triangles=triangles.astype(np.int32),
            adjacent=np.where(adjacent == NONE, NONE, place[adjacent]).astype(np.int32),
            normals=triangle_normals(vertices, triangles),
            boxes=boxes,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Mesh(Surface):
    """Triangles (M, 3), corners counter-clockwise from outside, between ``vertices`` (N, 3) m, at ``scale`` (number or (N,)).

    Vertices at one place are merged and triangles without area dropped. A mesh with flipped triangles or inside out is refused
    unless ``repair`` is True: then it is put right, small holes are filled, and a warning says what was done (``repairs``).
    Parts inside a part count as cavities if they face inwards. ``sheet``: True takes the triangles for a thin sheet, closed or
    not, that stops bodies from both sides: a drum, a hopper, anything that holds grains inside. A sheet has no mass.
    """

    vertices: object
    triangles: object
    scale: object = 1.0
    repair: InitVar[bool] = False
    source: str = None  # file, for messages
    sheet: bool = False
    closed: bool = field(init=False)
    repairs: tuple = field(init=False)
    KIND = MESH

    def __post_init__(self, repair):
        self._set_scale(self.scale)
        vertices, triangles = self._checked(repair)
        done = []
        if repair:
            vertices, triangles = repaired(vertices, triangles, done)
        else:
            vertices, triangles = merged(vertices, triangles, SAME_POINT)
        name = f"Mesh{_of(self.source)}"
        if not len(triangles):
            raise ValueError(f"{name} must have triangles, but all of them have no area")
        edges = Edges(triangles)
        _refuse_mixed_winding(name, edges)
        if not self.sheet:
            _refuse_inside_out(name, vertices, triangles, edges)
        volume = signed_volumes(vertices, triangles).sum()
        closed = bool(not self.sheet and edges.balanced.all() and volume > 1e-12 * _size(vertices) ** 3)
        self._set(open_edges=int((~edges.balanced).sum()), closed=closed, repairs=tuple(done))
        self._set(_mass=mass_of(vertices, triangles) if closed else None)
        triangles, adjacent = without_slivers(vertices, triangles, edges.adjacent())
        self._set(vertices=vertices, triangles=triangles, adjacent=adjacent)
        if done:
            warnings.warn(f"{name} was repaired: {', '.join(done)}", stacklevel=4 if self.source else 3)

    def _checked(self, repair):
        if not isinstance(repair, (bool, np.bool_)):
            raise TypeError(f"Mesh repair must be True or False, not {repair!r}")
        if not isinstance(self.sheet, (bool, np.bool_)):
            raise TypeError(f"Mesh sheet must be True or False, not {self.sheet!r}")
        of = _of(self.source)
        vertices = checks.array(f"Mesh vertices{of}", self.vertices, (None, 3))
        if hasattr(self.triangles, "__len__") and not len(self.triangles):
            raise ValueError(f"Mesh triangles{of} must be at least one, not 0")
        if getattr(self.triangles, "dtype", np.dtype(int)).kind not in "iu":
            raise TypeError(f"Mesh triangles{of} must be whole numbers, not {self.triangles.dtype}")
        triangles = checks.array(f"Mesh triangles{of}", self.triangles, (None, 3), dtype=np.int64)
        wrong = (triangles < 0) | (triangles >= len(vertices))
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            allowed = f"must be vertices from 0 to {len(vertices) - 1}"
            raise ValueError(f"Mesh triangles{of} {allowed}, but triangles[{row}, {column}] is {triangles[row, column]}")
        return vertices, triangles

    @classmethod
    def from_file(cls, path, scale=1.0, repair=False, sheet=False):
        """The mesh in a file (STL, PLY, OBJ, OFF, glTF and others); several parts become one mesh."""
        vertices, triangles = read_mesh(path)
        return cls(vertices, triangles, scale, repair, str(path), sheet)

    def __repr__(self):
        kind = "closed" if self.closed else "open"
        return f"Mesh({len(self.vertices)} vertices, {len(self.triangles)} triangles, {kind}{_scale_text(self)}{_of(self.source)})"

    @property
    def one_sided(self):
        return self.closed

    @property
    def has_mass(self):
        return self.closed

    @property
    def mass(self):
        if self.closed:
            return self._mass
        why = f"is not closed ({self.open_edges} edges with one side)" if self.open_edges else "encloses no volume"
        why = "is a sheet" if self.sheet else why
        raise ValueError(
            f"mesh{_of(self.source)} of {len(self.triangles)} triangles {why} and so has no mass: add it with fixed=True or with a motion, "
            "close it (repair=True fills small holes), or use ConvexHull"
        )


@dataclass(frozen=True, eq=False, repr=False)
class HeightField(Surface):
    """Ground: z = ``heights[i, j]`` m at x = i ``spacing`` and y = j ``spacing`` (a number, or one for x and one for y, m).

    Its middle is at x = y = 0, unless ``origin`` (x, y) says where heights[0, 0] is. Between the points are triangles; all
    below them is inside. It has no mass: fixed, or with prescribed motion.
    """

    heights: object
    spacing: object
    origin: object = None
    scale = np.ones(())
    one_sided = True
    has_mass = False
    KIND = MESH

    def __post_init__(self):
        heights = checks.array("HeightField heights", self.heights, (None, None))
        if min(heights.shape) < 2:
            raise ValueError(f"HeightField heights must be at least 2 x 2, not {heights.shape[0]} x {heights.shape[1]}")
        spacing = _pair("HeightField spacing", self.spacing)
        middle = -0.5 * spacing * (np.array(heights.shape) - 1)
        origin = middle if self.origin is None else checks.array("HeightField origin", self.origin, (2,))
        self._set(heights=heights, spacing=spacing, origin=origin, _made={})
        x, y = (origin[k] + spacing[k] * np.arange(heights.shape[k]) for k in (0, 1))
        vertices = np.stack([*np.meshgrid(x, y, indexing="ij"), heights], axis=-1).reshape(-1, 3)
        triangles = _grid_triangles(*heights.shape)
        self._set(vertices=vertices, triangles=triangles, adjacent=Edges(triangles).adjacent())

    @classmethod
    def from_function(cls, function, low, high, spacing):
        """Heights function(x, y), called once with arrays, between the corners ``low`` (x, y) and ``high``. The spacing is
        made a little smaller where it does not divide the length."""
        if not callable(function):
            raise TypeError(f"HeightField function must be a function of x and y, not {function!r}")
        low, high = checks.array("HeightField low", low, (2,)), checks.array("HeightField high", high, (2,))
        if not (high > low).all():
            raise ValueError(f"HeightField high must be above low, not {high.tolist()} with low {low.tolist()}")
        steps = np.maximum(np.ceil((high - low) / _pair("HeightField spacing", spacing) - 1e-9), 1).astype(int)
        x, y = (np.linspace(low[k], high[k], steps[k] + 1) for k in (0, 1))
        heights = function(*np.meshgrid(x, y, indexing="ij"))
        heights = np.broadcast_to(heights, steps + 1) if np.ndim(heights) == 0 else heights
        if np.shape(heights) != tuple(steps + 1):
            grid = tuple((steps + 1).tolist())
            raise ValueError(f"HeightField function must give heights of the shape of x, {grid}, not {np.shape(heights)}")
        return cls(heights, (high - low) / steps, low)

    def __repr__(self):
        return f"HeightField({self.heights.shape[0]} x {self.heights.shape[1]} heights)"

    @property
    def mass(self):
        raise ValueError("a HeightField has no mass: add it with fixed=True or with a motion")


def _grid_triangles(nx, ny):
    """Two triangles for each cell of a grid of points, counter-clockwise from above."""
    corner = np.arange(nx * ny).reshape(nx, ny)
    a, b, c, d = corner[:-1, :-1], corner[1:, :-1], corner[1:, 1:], corner[:-1, 1:]
    return np.stack([a, b, c, a, c, d], axis=-1).reshape(-1, 3)


# --- mass
def signed_volumes(vertices, triangles):
    """Of the tetrahedra between each triangle and the middle of the vertices."""
    a, b, c = np.moveaxis((vertices - vertices.mean(axis=0))[triangles], 1, 0)
    return np.einsum("ni,ni->n", a, np.cross(b, c)) / 6


def mass_properties(vertices, triangles):
    """(volume, centre, inertia): of the solid inside a closed surface; inertia (3, 3) about the centre for density 1.

    Sums over tetrahedra from a point near the middle to each triangle. With corners a, b, c and s = a + b + c, a tetrahedron of
    volume V has the first moment V s / 4 and the second moments V (s sT + a aT + b bT + c cT) / 20.
    """
    middle = vertices[triangles].mean(axis=(0, 1))
    a, b, c = np.moveaxis((vertices - middle)[triangles], 1, 0)
    volumes = np.einsum("ni,ni->n", a, np.cross(b, c)) / 6
    volume, total = volumes.sum(), a + b + c
    centre = volumes @ total / (4 * volume)
    second = sum((volumes[:, None] * x).T @ x for x in (total, a, b, c)) / 20 - volume * np.outer(centre, centre)
    return volume, middle + centre, np.trace(second) * np.eye(3) - second


def principal(inertia):
    """(moments, quaternion) of a tensor of inertia. The axes are the right-handed ones nearest to x, y and z; those of a tensor
    that is diagonal already stay as they are, so that nothing is turned for rounding's sake."""
    inertia = 0.5 * (inertia + inertia.T)
    diagonal = np.diag(inertia)
    if np.abs(inertia - np.diag(diagonal)).max() <= 1e-9 * np.abs(diagonal).max():
        return diagonal.copy(), np.array([1.0, 0.0, 0.0, 0.0])
    moments, axes = np.linalg.eigh(inertia)
    turns = [
        (order, np.array([*signs, 1.0]) * axes[:, order])
        for order in map(list, itertools.permutations(range(3)))
        for signs in itertools.product((1.0, -1.0), repeat=2)
    ]
    turns = [(order, turn * np.array([1.0, 1.0, np.linalg.det(turn)])) for order, turn in turns]
    order, turn = max(turns, key=lambda pair: np.trace(pair[1]))
    quaternion = np.roll(Rotation.from_matrix(turn).as_quat(), 1)
    return moments[order], quaternion if quaternion[0] >= 0 else -quaternion


def mass_of(vertices, triangles):
    volume, centre, inertia = mass_properties(vertices, triangles)
    moments, axes = principal(inertia / volume)
    return Mass(float(volume), centre, axes, moments)


# --- hulls
def hull_of(points, name):
    """(vertices, faces) of the convex hull, with coplanar facets as one face and only the corners that faces need.

    A corner belongs to three faces or more. Points that do not are dropped and the hull is made again, until none is left, so
    that points on faces and on edges leave no trace.
    """
    size = _size(points)
    flat = f"{name} must span a volume, but all {len(points)} are"
    if size == 0:
        raise ValueError(f"{flat} at {points[0].tolist()}")
    unit = (points - points.mean(axis=0)) / size
    directions = np.linalg.svd(unit, full_matrices=False)[2]
    widths = np.ptp(unit @ directions.T, axis=0)
    if widths[2] < FLAT:
        raise ValueError(f"{flat} on one {'line' if widths[1] < FLAT else 'plane'} (within {FLAT:g} of their size)")
    kept = _apart(unit)
    while True:
        try:
            hull = Quickhull(unit[kept])
        except QhullError:
            raise ValueError(f"{flat} too near one plane for a hull") from None
        faces = _faces_of(hull)
        faces_at = np.bincount(np.concatenate(faces), minlength=len(kept))
        if (faces_at >= 3).all():
            return points[kept], [_ordered(unit[kept], face) for face in faces]
        kept = kept[faces_at >= 3]


def _apart(unit):
    """Numbers of points of which no two are as near as FLAT: the first of each cluster."""
    pairs = cKDTree(unit).query_pairs(FLAT, output_type="ndarray")
    cluster = connected_components(_graph(len(unit), *pairs.T), directed=False)[1]
    return np.sort(np.unique(cluster, return_index=True)[1])


def _faces_of(hull):
    """Corners of each face, in no order. A face is a facet, from the largest on, and all that it reaches of the facets within
    COPLANAR of its plane."""
    corners, outward = hull.points[hull.simplices], hull.equations[:, :3]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(normals, axis=1)
    # the facet's own plane, not hull.equations: qhull may have merged facets before it cut them into triangles again
    normals *= np.sign(np.einsum("ni,ni->n", normals, outward) / areas)[:, None] / areas[:, None]

    def level(facet, others):
        """Are other facets in a facet's plane?"""
        height = np.einsum("...ki,...i->...k", corners[others] - corners[facet, 0][..., None, :], normals[facet])
        return (np.abs(height) < COPLANAR).all(axis=-1) & (np.einsum("...i,...i->...", outward[others], normals[facet]) > 0)

    alone = np.ones(len(areas), bool)
    for k in range(3):
        neighbour = hull.neighbors[:, k]
        joined = level(np.arange(len(areas)), neighbour)
        alone[joined] = alone[neighbour[joined]] = False
    free, faces = ~alone, list(hull.simplices[alone])
    for seed in np.flatnonzero(free)[np.argsort(-areas[free], kind="stable")]:
        if free[seed]:
            group, free[seed] = [seed], False
            for facet in group:
                others = hull.neighbors[facet][free[hull.neighbors[facet]]]
                others = others[level(np.full(len(others), seed), others)]
                free[others] = False
                group.extend(others)
            faces.append(np.unique(hull.simplices[group]))
    return faces


def _ordered(points, face):
    """A face's corners counter-clockwise from outside; the origin is inside."""
    corners = points[face]
    middle = corners.sum(axis=0) / len(face)
    if len(face) == 3:
        (ax, ay, az), (bx, by, bz), (cx, cy, cz) = corners.tolist()
        volume = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
        return face if volume > 0 else face[::-1]
    corners = corners - middle
    along = corners[np.argmax(np.einsum("ni,ni->n", corners, corners))]
    across = np.cross(corners, along)
    normal = across[np.argmax(np.einsum("ni,ni->n", across, across))]
    normal = normal * np.sign(normal @ middle)
    return face[np.argsort(np.arctan2(corners @ np.cross(normal / np.linalg.norm(normal), along), corners @ along), kind="stable")]


def face_normals(vertices, faces):
    """Unit normals of polygons, from their area vectors (Newell)."""
    lengths = np.array([len(face) for face in faces])
    start = np.cumsum(lengths) - lengths
    corners = np.concatenate(faces)
    onward = np.arange(len(corners)) + 1
    onward[start + lengths - 1] = start
    arms = vertices[corners] - np.repeat(vertices[corners[start]], lengths, axis=0)
    areas = np.add.reduceat(np.cross(arms, arms[onward]), start)
    return areas / np.linalg.norm(areas, axis=1, keepdims=True)


# --- meshes
class Edges:
    """Which triangles meet at which edge. Half edges h = 3 t + k (triangle t, from corner k to k + 1), sorted by edge."""

    def __init__(self, triangles):
        self.shape = triangles.shape
        ends = np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=-1).reshape(-1, 2)
        low, high = ends.min(axis=1), ends.max(axis=1)
        self.half_edges = np.lexsort((high, low))
        low, high = low[self.half_edges], high[self.half_edges]
        new = np.concatenate([[True], (low[1:] != low[:-1]) | (high[1:] != high[:-1])])
        self.start = np.flatnonzero(new)
        self.sides = np.diff(np.append(self.start, len(low)))  # triangles at each edge
        forward = (ends[:, 0] < ends[:, 1])[self.half_edges]
        self.balanced = 2 * np.add.reduceat(forward.astype(int), self.start) == self.sides  # as many up as down: no border
        first = self.start[self.sides == 2]
        self.pairs = np.stack([self.half_edges[first], self.half_edges[first + 1]], axis=1)  # at edges of just two triangles
        self.against = forward[first] != forward[first + 1]  # pairs that run along their edge in opposite directions

    def adjacent(self):
        """Triangle across each edge (M, 3); NONE at borders and where more than two meet."""
        result = np.full(self.shape, NONE, np.int64).reshape(-1)
        result[self.pairs[:, 0]] = self.pairs[:, 1] // 3
        result[self.pairs[:, 1]] = self.pairs[:, 0] // 3
        return result.reshape(self.shape)

    def parts(self):
        """The number of the connected part of each triangle."""
        a, b = self.pairs.T // 3
        return connected_components(_graph(self.shape[0], a, b), directed=False)[1]


def _graph(n, a, b):
    return coo_array((np.ones(len(a), bool), (a, b)), shape=(n, n))


def merged(vertices, triangles, nearness):
    """The mesh with vertices of one place as one, without unused vertices and without triangles of fewer than three corners."""
    places, place_of = np.unique(vertices, axis=0, return_inverse=True)
    pairs = cKDTree(places).query_pairs(nearness * _size(vertices), output_type="ndarray")
    group = connected_components(_graph(len(places), *pairs.T), directed=False)[1]
    first = np.full(group.max() + 1, len(vertices))
    np.minimum.at(first, group[place_of.reshape(-1)], np.arange(len(vertices)))
    triangles = first[group[place_of.reshape(-1)]][triangles]
    a, b, c = triangles.T
    triangles = triangles[(a != b) & (b != c) & (c != a)]
    used, renumbered = np.unique(triangles, return_inverse=True)
    return vertices[used], renumbered.reshape(triangles.shape)


def without_slivers(vertices, triangles, adjacent):
    """(triangles, adjacent) without those of three corners on a line; the triangles beside one become each other's neighbours,
    so that the surface stays whole."""
    sides = np.linalg.norm(vertices[np.roll(triangles, -1, axis=1)] - vertices[triangles], axis=2)
    corners = vertices[triangles]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    slivers = areas <= SLIVER * _size(vertices) * sides.max(axis=1)
    if slivers.all():
        raise ValueError("Mesh must have triangles, but all of them have no area")
    for t in np.flatnonzero(slivers):
        order = np.argsort(-sides[t], kind="stable")
        beyond, *others = (int(k) for k in adjacent[t, order])
        for other in others:
            _join(adjacent, other, t, beyond)
        _join(adjacent, beyond, t, next((other for other in others if other != NONE), NONE))
    place = np.cumsum(~slivers) - 1
    adjacent = adjacent[~slivers]
    return triangles[~slivers], np.where(adjacent == NONE, NONE, place[adjacent])


def _join(adjacent, triangle, old, new):
    if triangle != NONE:
        adjacent[triangle, adjacent[triangle] == old] = new


def _refuse_mixed_winding(name, edges):
    if not edges.against.all():
        half_edge = edges.pairs[~edges.against][0]
        a, b = half_edge // 3
        count = int((~edges.against).sum())
        raise ValueError(
            f"{name} must be wound one way, but neighbours run in the same direction along {count} edges (as triangles {a} and {b} do); "
            "repair=True turns them"
        )


def _refuse_inside_out(name, vertices, triangles, edges):
    wrong = inside_out_parts(vertices, triangles, edges)
    if len(wrong):
        raise ValueError(
            f"{name} is inside out ({len(wrong)} closed parts with normals to the inside); wind its triangles counter-clockwise as seen "
            "from outside, or repair=True turns it, or sheet=True makes it a container that holds bodies inside"
        )


def inside_out_parts(vertices, triangles, edges):
    """(triangles of each) closed part of negative volume that is no cavity, that is: not inside another part."""
    part = edges.parts()
    open_part = np.zeros(part.max() + 1, bool)
    open_part[part[edges.half_edges[np.repeat(~edges.balanced, edges.sides)] // 3]] = True
    volumes = np.bincount(part, signed_volumes(vertices, triangles))
    wrong = []
    for k in np.flatnonzero(~open_part & (volumes < -1e-12 * _size(vertices) ** 3)):
        mine = part == k
        point = vertices[triangles[mine][0, 0]]
        if winding_number(point, vertices, triangles[~mine & ~open_part[part]]) < 0.5:
            wrong.append(np.flatnonzero(mine))
    return wrong


def winding_number(point, vertices, triangles):
    """How often a closed surface goes round a point: the sum of its solid angles (Van Oosterom and Strackee) / 4 pi."""
    a, b, c = np.moveaxis((vertices - point)[triangles], 1, 0)
    la, lb, lc = (np.linalg.norm(x, axis=1) for x in (a, b, c))
    ab, bc, ca = (np.einsum("ni,ni->n", x, y) for x, y in ((a, b), (b, c), (c, a)))
    volume = np.einsum("ni,ni->n", a, np.cross(b, c))
    return np.arctan2(volume, la * lb * lc + ab * lc + bc * la + ca * lb).sum() / (2 * np.pi)


def triangle_normals(vertices, triangles):
    a, b, c = np.moveaxis(vertices[triangles], 1, 0)
    normals = np.cross(b - a, c - a)
    return normals / np.linalg.norm(normals, axis=1, keepdims=True)


# --- repair
def repaired(vertices, triangles, done):
    """The mesh put right as far as that goes; ``done`` gets a few words on each thing done."""
    before = len(np.unique(vertices[np.unique(triangles)], axis=0)), len(triangles)
    vertices, triangles = merged(vertices, triangles, REPAIRED_POINT)
    _note(done, before[0] - len(vertices), "merged {} vertices")
    _, first = np.unique(np.sort(triangles, axis=1), axis=0, return_index=True)
    triangles = triangles[np.sort(first)]
    _note(done, before[1] - len(triangles), "removed {} triangles without area or given twice")
    if not len(triangles):
        return vertices, triangles
    triangles = _wound_one_way(triangles, done)
    vertices, triangles = _without_holes(vertices, triangles, done)
    return vertices, _right_side_out(vertices, triangles, done)


def _note(done, count, words):
    if count:
        done.append(words.format(count))


def _wound_one_way(triangles, done):
    """Flip triangles until neighbours agree. Each triangle is in a graph twice, as it is and flipped, joined to its neighbours in
    the state that agrees; of the two connected parts of that graph the one that flips fewer triangles is taken."""
    edges, n = Edges(triangles), len(triangles)
    a, b = edges.pairs.T // 3
    agree = np.where(edges.against, 0, n)
    label = connected_components(_graph(2 * n, np.r_[a, a + n], np.r_[b + agree, b + n - agree]), directed=False)[1]
    as_is, flipped = label[:n], label[n:]
    if (as_is == flipped).any():
        raise ValueError("Mesh has only one side (like a Moebius strip): it cannot be wound one way, and repair=True cannot help")
    counts = np.bincount(as_is, minlength=label.max() + 1)
    flip = (counts[as_is] < counts[flipped]) | ((counts[as_is] == counts[flipped]) & (as_is > flipped))
    _note(done, int(flip.sum()), "turned {} triangles that were wound the other way")
    return np.where(flip[:, None], triangles[:, ::-1], triangles)


def _without_holes(vertices, triangles, done):
    """Holes of up to HOLE_EDGES edges are filled: by a triangle, or by a fan about the middle of their edge."""
    edges = Edges(triangles)
    border = edges.half_edges[edges.start[edges.sides == 1]]
    ends = np.stack([triangles.reshape(-1)[border], np.roll(triangles, -1, axis=1).reshape(-1)[border]], axis=1)
    filled, points = [], []
    for loop in _loops(ends):
        if len(loop) == 3:
            filled.append([loop[::-1]])
        elif 3 < len(loop) <= HOLE_EDGES:
            middle = len(vertices) + len(points)
            points.append(vertices[loop].mean(axis=0))
            filled.append([(b, a, middle) for a, b in zip(loop, np.roll(loop, -1))])
    _note(done, len(filled), "filled {} holes")
    return np.concatenate([vertices, np.reshape(points, (-1, 3))]), np.concatenate([triangles, *filled]).astype(np.int64)


def _loops(ends):
    """Closed chains of vertices along directed edges (from, to); places where borders cross are left alone."""
    onward, crossed = {}, set()
    for a, b in ends.tolist():
        if a in onward:
            crossed.add(a)
        onward[a] = b
    while onward:
        loop = [next(iter(onward))]
        while loop[-1] in onward:
            loop.append(onward.pop(loop[-1]))
        if loop[0] == loop[-1] and crossed.isdisjoint(loop):
            yield loop[:-1]


def _right_side_out(vertices, triangles, done):
    turned = 0
    if Edges(triangles).balanced.all() and signed_volumes(vertices, triangles).sum() < 0:
        triangles, turned = triangles[:, ::-1], 1
    for part in inside_out_parts(vertices, triangles, Edges(triangles)):
        triangles = triangles.copy()
        triangles[part] = triangles[part, ::-1]
        turned += 1
    _note(done, turned, "turned {} parts that were inside out")
    return triangles


# --- files
def read_mesh(path):
    """(vertices, triangles) of a file; those of several parts one after the other, each where the file places it."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path must be the name of a mesh file, not {path!r}")
    path = os.fspath(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"path must be a mesh file, but {path!r} does not exist")
    if not os.path.isfile(path):
        raise ValueError(f"path must be a mesh file, but {path!r} is no file")
    import trimesh  # here, since only those who read files should wait for it

    suffix = os.path.splitext(path)[1].lower().lstrip(".")
    if suffix not in trimesh.available_formats():
        raise ValueError(f"path must be a mesh file such as .stl, .ply, .obj, .off or .glb, not {path!r}")
    if not os.path.getsize(path):
        raise ValueError(f"path must be a mesh file, but {path!r} is empty")
    try:
        return _joined(trimesh.load(path, process=False))
    except Exception as error:  # the readers of the formats raise whatever goes wrong in them
        raise ValueError(f"path must be a mesh file, but {path!r} cannot be read as one: {' '.join(str(error).split())}") from None


def _joined(loaded):
    """Vertices and triangles of what trimesh loaded: a mesh, points, or a scene of them."""
    if not hasattr(loaded, "graph"):
        parts = [(np.eye(4), loaded)]
    else:
        poses = (loaded.graph[node] for node in loaded.graph.nodes_geometry)
        parts = [(pose, loaded.geometry[name]) for pose, name in poses]
    vertices, triangles, count = [np.zeros((0, 3))], [np.zeros((0, 3), np.int64)], 0
    for pose, part in parts:
        vertices.append(np.asarray(part.vertices, float) @ pose[:3, :3].T + pose[:3, 3])
        corners = np.asarray(getattr(part, "faces", np.zeros((0, 3))), np.int64) + count
        # a part that is mirrored when placed turns its triangles over
        triangles.append(corners[:, ::-1] if np.linalg.det(pose[:3, :3]) < 0 else corners)
        count += len(part.vertices)
    if count == 0:
        raise ValueError("it holds no points")
    return np.concatenate(vertices), np.concatenate(triangles)


# --- small things
def _reach(vertices):
    return {"half": np.abs(vertices).max(axis=0), "radius": float(np.linalg.norm(vertices, axis=1).max())}


def _size(points):
    """Length of the diagonal of the box around points."""
    return float(np.linalg.norm(np.ptp(points, axis=0)))


def _pair(name, value):
    """Two positive numbers, of one or two."""
    value = np.full(2, value) if np.ndim(value) == 0 and not isinstance(value, str) else value
    return checks.array(name, value, (2,), above=0.0)


def _of(source):
    return f" of {source!r}" if source else ""


def _scale_text(shape):
    return f", scale={float(shape.scale):g}" if shape.count is None else f", {shape.count} scales"
