"""Triangles: meshes and height fields, from arrays or from files.

In come points and triangles in the user's coordinates, m; out go a ``Geometry`` (triangles with their neighbours and their tree)
and, of closed meshes, the mass properties. A closed mesh is one-sided (behind a triangle is inside); an open one, or a
``sheet``, stops bodies from both sides and has no mass.
"""

import os
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from gravel import checks
from gravel.cautions import warn
from gravel.printing import formatting
from gravel.rotations import conjugate, rotate
from gravel.shapes.geometry import NONE, Geometry, tree_of
from gravel.shapes.polyhedra import (
    Mass,
    Scaled,
    graph_of,
    mass_of,
    of_source,
    principal,
    reach_of,
    read_mesh,
    scale_text,
    signed_volumes,
    size_of,
)
from gravel.shapes.simple import MESH

# Lengths relative to the size of a shape
SAME_POINT = 1e-12  # vertices nearer than this are one
REPAIRED_POINT = 1e-6  # ... in a mesh under repair
SLIVER = 1e-12  # a triangle lower than this has no area
HOLE_EDGES = 12  # the largest hole that repair fills


class Surface(Scaled):
    """Triangles: ``vertices``, ``triangles``, ``adjacent`` (across the edge from corner k to k + 1) and ``one_sided``."""

    vertices: Any
    triangles: Any
    adjacent: np.ndarray
    one_sided: Any

    def _geometry_in(self, centre, axes):
        vertices = rotate(conjugate(axes), self.vertices - centre)
        order, boxes = tree_of(vertices, self.triangles)
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order))
        adjacent = self.adjacent[order]
        triangles = self.triangles[order]
        return Geometry(
            **reach_of(vertices),
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
    Two meshes find their contacts when they touch or overlap by little; deep inside each other they may find none.
    """

    vertices: Any
    triangles: Any
    scale: Any = 1.0
    repair: InitVar[bool] = False
    source: str | None = None  # file, for messages
    sheet: bool = False
    closed: bool = field(init=False)
    repairs: tuple[str, ...] = field(init=False)
    open_edges: int = field(init=False)  # edges with a triangle on one side only
    _mass: Any = field(init=False)
    KIND, NAME = MESH, "mesh"

    def __post_init__(self, repair):
        self._set_scale(self.scale)
        vertices, triangles = self._checked(repair)
        done: list[str] = []
        if repair:
            vertices, triangles = repaired(vertices, triangles, done)
        else:
            vertices, triangles = merged(vertices, triangles, SAME_POINT)
        name = f"Mesh{of_source(self.source)}"
        if not len(triangles):
            raise ValueError(f"{name} must have triangles, but all of them have no area")
        edges = Edges(triangles)
        _refuse_mixed_winding(name, edges)
        if not self.sheet:
            _refuse_inside_out(name, vertices, triangles, edges)
        volume = signed_volumes(vertices, triangles).sum()
        closed = bool(not self.sheet and edges.balanced.all() and volume > 1e-12 * size_of(vertices) ** 3)
        self._set(open_edges=int((~edges.balanced).sum()), closed=closed, repairs=tuple(done))
        self._set(_mass=mass_of(vertices, triangles) if closed else None)
        triangles, adjacent = without_slivers(vertices, triangles, edges.adjacent())
        self._set(vertices=vertices, triangles=triangles, adjacent=adjacent)
        if done:
            warn(f"{name} was repaired: {', '.join(done)}")

    def _checked(self, repair):
        if not isinstance(repair, (bool, np.bool_)):
            raise TypeError(f"Mesh repair must be True or False, not {repair!r}")
        if not isinstance(self.sheet, (bool, np.bool_)):
            raise TypeError(f"Mesh sheet must be True or False, not {self.sheet!r}")
        of = of_source(self.source)
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
    def from_file(cls, path: str | os.PathLike, scale: ArrayLike = 1.0, repair: bool = False, sheet: bool = False) -> "Mesh":
        """The mesh in a file (STL, PLY, OBJ, OFF, glTF and others); several parts become one mesh. Of a STEP file, whose surfaces are
        cut into triangles, the mass is that of the exact solids."""
        from gravel.cad.step import is_step, read_as_one  # here, since only those who read files should wait for it

        if not isinstance(path, (str, os.PathLike)) or not is_step(path):
            vertices, triangles = read_mesh(path)
            return cls(vertices, triangles, scale, repair, str(path), sheet)
        vertices, triangles, solid = read_as_one(path)
        mesh = cls(vertices, triangles, scale, repair, str(path), sheet)
        if mesh.closed and solid is not None:
            volume, centre, inertia = solid
            moments, axes = principal(inertia / volume)
            mesh._set(_mass=Mass(volume, centre, axes, moments))
        return mesh

    def __repr__(self):
        kind = "closed" if self.closed else "open"
        return f"Mesh({len(self.vertices)} vertices, {len(self.triangles)} triangles, {kind}{scale_text(self)}{of_source(self.source)})"

    @property
    def one_sided(self) -> bool:
        """Whether it stops bodies from one side only: behind it is inside."""
        return self.closed

    @property
    def has_mass(self) -> bool:
        """Whether it encloses a volume."""
        return self.closed

    @property
    def mass(self) -> Mass:
        """Its mass properties at scale 1; refused if it has none."""
        if self.closed:
            return self._mass
        why = f"is not closed ({self.open_edges} edges with one side)" if self.open_edges else "encloses no volume"
        why = "is a sheet" if self.sheet else why
        raise ValueError(
            f"mesh{of_source(self.source)} of {len(self.triangles)} triangles {why} and so has no mass: add it with fixed=True or with "
            "a motion, close it (repair=True fills small holes), or use ConvexHull"
        )


@dataclass(frozen=True, eq=False, repr=False)
class HeightField(Surface):
    """Ground: z = ``heights[i, j]`` m at x = i ``spacing`` and y = j ``spacing`` (a number, or one for x and one for y, m).

    Its middle is at x = y = 0, unless ``origin`` (x, y) says where heights[0, 0] is. Between the points are triangles; all
    below them is inside. It has no mass: fixed, or with prescribed motion.
    """

    heights: Any
    spacing: Any
    origin: Any = None
    scale = np.ones(())
    one_sided = True
    has_mass = False
    KIND, NAME = MESH, "mesh"

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
    def from_function(
        cls, function: Callable[[np.ndarray, np.ndarray], Any], low: ArrayLike, high: ArrayLike, spacing: ArrayLike
    ) -> "HeightField":
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
        grid, between = " x ".join(map(str, self.heights.shape)), formatting.span(self.heights)
        return f"HeightField({grid} heights, {between} m, spacing={formatting.text(self.spacing)})"

    @property
    def mass(self) -> Mass:
        """Ground has none: refused."""
        raise ValueError("a HeightField has no mass: add it with fixed=True or with a motion")


def _grid_triangles(nx, ny):
    """Two triangles for each cell of a grid of points, counter-clockwise from above."""
    corner = np.arange(nx * ny).reshape(nx, ny)
    a, b, c, d = corner[:-1, :-1], corner[1:, :-1], corner[1:, 1:], corner[:-1, 1:]
    return np.stack([a, b, c, a, c, d], axis=-1).reshape(-1, 3)


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
        return connected_components(graph_of(self.shape[0], a, b), directed=False)[1]


def merged(vertices, triangles, nearness):
    """The mesh with vertices of one place as one, without unused vertices and without triangles of fewer than three corners."""
    places, place_of = np.unique(vertices, axis=0, return_inverse=True)
    pairs = cKDTree(places).query_pairs(nearness * size_of(vertices), output_type="ndarray")
    group = connected_components(graph_of(len(places), *pairs.T), directed=False)[1]
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
    slivers = areas <= SLIVER * size_of(vertices) * sides.max(axis=1)
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
    for k in np.flatnonzero(~open_part & (volumes < -1e-12 * size_of(vertices) ** 3)):
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
    label = connected_components(graph_of(2 * n, np.r_[a, a + n], np.r_[b + agree, b + n - agree]), directed=False)[1]
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
    filled: list[list] = []
    points: list[np.ndarray] = []
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


def _pair(name, value):
    """Two positive numbers, of one or two."""
    value = np.full(2, value) if np.ndim(value) == 0 and not isinstance(value, str) else value
    return checks.array(name, value, (2,), above=0.0)
