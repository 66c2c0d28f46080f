"""Regions of space that bodies are packed or poured into.

Every region tells its ``volume`` (m3), its ``bounds``, how far points lie inside (``distance``), which way is further in
(``inward``), and the ``walls`` that enclose it, as shapes. The simple ones are convex, so that the distance of a point inside is the
least of its distances to a few surfaces.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.printing import formatting
from gravel.shapes import Mesh, Plane

SIDES = 64  # of the polygons that walls approximate circles by
AROUND = 1 / np.cos(np.pi / SIDES)  # radius of such a polygon around a circle of radius 1
SAMPLES = 4096  # points that are tried to find the deepest one of a region


class Region:
    """What all regions have in common. Points are (N, 3) m.

    A region has ``volume`` m3, ``bounds`` (low, high), each (3,) m, ``_depth(points)`` (N,) and ``_inward(points)`` (N, 3).
    """

    _depth: Callable[[np.ndarray], np.ndarray]
    _inward: Callable[[np.ndarray], np.ndarray]

    @property
    def volume(self) -> float:
        """m3."""
        raise NotImplementedError

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest corner of the box around it, (3,) m each."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return formatting.of_fields(self)

    def distance(self, points: ArrayLike) -> np.ndarray:
        """(N,) m from each point to the surface: exact inside, negative outside. A ball lies wholly inside where this is at least
        its radius."""
        return self._depth(_points(points))

    def inward(self, points: ArrayLike) -> np.ndarray:
        """(N, 3) directions of length one in which ``distance`` grows fastest."""
        return self._inward(_points(points))

    def contains(self, points: ArrayLike) -> np.ndarray:
        """(N,) True for points inside or on the surface."""
        return self.distance(points) >= 0.0

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """(n, 3) random points, all places alike."""
        checks.count("n", n)
        low, high = self.bounds
        share = self.volume / np.prod(high - low)
        found, points = 0, [np.empty((0, 3))]
        while found < n:
            tried = rng.uniform(low, high, (int(1.1 * (n - found) / share) + 8, 3))
            points.append(tried[self.contains(tried)])
            found += len(points[-1])
        return np.concatenate(points)[:n]

    def try_centres(self, rng: np.random.Generator, radii: ArrayLike, open_axes: ArrayLike = (False, False, False)) -> np.ndarray:
        """(N, 3) one random centre for each ball of ``radii`` (N,): within the bounds less the radius, so that the ball has a good chance
        to be inside. Along ``open_axes`` it may reach out."""
        low, high = self.bounds
        inset = np.where(open_axes, 0.0, np.asarray(radii, float)[:, None])
        return low + inset + rng.uniform(size=(len(inset), 3)) * np.maximum(high - low - 2 * inset, 0.0)

    @functools.cached_property
    def inradius(self) -> float:
        """m, radius of the largest ball that fits; where there is no formula, of the best of many that were tried."""
        return self._inradius()

    def _inradius(self):
        points = self.sample(np.random.default_rng(0), SAMPLES)
        depth = self._depth(points)
        for step in 0.5 ** np.arange(1, 12) * float(np.max(self.bounds[1] - self.bounds[0])):  # the best ones climb
            best = points[np.argsort(-depth, kind="stable")[:64]]
            points = np.concatenate([best, best + 0.5 * step * self._inward(best), best - 0.1 * step * self._inward(best)])
            points = np.concatenate([points, points[:64] + step * np.random.default_rng(0).normal(size=(64, 3)) / 3])
            depth = self._depth(points)
        return float(depth.max())

    def walls(self, inside: bool = False) -> list[Plane | Mesh]:
        """Shapes that enclose the region, to be added as fixed bodies: planes around a box, else a closed ``Mesh`` sheet. Round walls
        are polygons of 64 sides around the region, so that they touch nothing that is packed into it; or ``inside`` it, so that what
        they hold is inside."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class BoxRegion(Region):
    """A box between the corners ``low`` (3,) and ``high`` (3,), m."""

    low: Any
    high: Any

    def __post_init__(self):
        low, high = checks.array("BoxRegion low", self.low, (3,)), checks.array("BoxRegion high", self.high, (3,))
        if not (high > low).all():
            raise ValueError(f"BoxRegion high must be above low {tuple(low.tolist())} along every axis, not {tuple(high.tolist())}")
        _set(self, low=low, high=high)

    @property
    def volume(self) -> float:
        return float(np.prod(self.high - self.low))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return self.low.copy(), self.high.copy()

    def _depth(self, points):
        return np.minimum(points - self.low, self.high - points).min(axis=1)

    def _inward(self, points):
        depths = np.concatenate([points - self.low, self.high - points], axis=1)
        return np.concatenate([np.eye(3), -np.eye(3)])[np.argmin(depths, axis=1)]

    def _inradius(self):
        return 0.5 * float(np.min(self.high - self.low))

    def walls(self, inside: bool = False) -> list[Plane | Mesh]:
        sides = [(1.0, self.low), (-1.0, self.high)]
        return [Plane(sign * np.eye(3)[axis], sign * corner[axis]) for axis in range(3) for sign, corner in sides]


class Turned(Region):
    """A convex region that is round about an axis: ``_origin``, ``_axis``, and a profile of lines.

    ``_lines`` (k, 3): rows (a, b, c) with a^2 + b^2 = 1, and distance a r + b z + c of a point at the radius r and the height z along
    the axis; ``_outline`` (m, 2): corners (r, z) of the profile from the lower end of the axis to the upper.
    """

    _origin: np.ndarray
    _axis: np.ndarray
    _lines: np.ndarray
    _outline: np.ndarray

    def _rz(self, points):
        arms = points - self._origin
        z = arms @ self._axis
        across = arms - z[:, None] * self._axis
        return np.linalg.norm(across, axis=1), z, across

    def _depths(self, r, z):
        return r[:, None] * self._lines[:, 0] + z[:, None] * self._lines[:, 1] + self._lines[:, 2]

    def _depth(self, points):
        r, z, _ = self._rz(points)
        return self._depths(r, z).min(axis=1)

    def _inward(self, points):
        r, z, across = self._rz(points)
        line = self._lines[np.argmin(self._depths(r, z), axis=1)]
        sideways = _across(self._axis)
        out = np.where(r[:, None] > 0, across / np.maximum(r, 1e-300)[:, None], sideways)
        return line[:, :1] * out + line[:, 1:2] * self._axis

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        sideways = np.sqrt(np.maximum(1 - self._axis**2, 0))
        rims = self._origin + self._outline[:, 1:] * self._axis
        reach = self._outline[:, :1] * sideways
        return (rims - reach).min(axis=0), (rims + reach).max(axis=0)

    def walls(self, inside: bool = False) -> list[Plane | Mesh]:
        return [_lathe(self._origin, self._axis, self._outline, inside)]


@dataclass(frozen=True, eq=False, repr=False)
class CylinderRegion(Turned):
    """A cylinder of ``radius`` m between the centres ``start`` (3,) and ``end`` (3,) of its two faces, m."""

    start: Any
    end: Any
    radius: float

    def __post_init__(self):
        start, end = checks.array("CylinderRegion start", self.start, (3,)), checks.array("CylinderRegion end", self.end, (3,))
        radius, length = checks.number("CylinderRegion radius", self.radius, above=0.0), float(np.linalg.norm(end - start))
        if length == 0.0:
            raise ValueError(f"CylinderRegion end must be another point than start {tuple(start.tolist())}")
        _set(self, start=start, end=end, radius=radius, _origin=start, _axis=(end - start) / length)
        _set(self, _lines=np.array([(-1.0, 0.0, radius), (0.0, 1.0, 0.0), (0.0, -1.0, length)]))
        _set(self, _outline=np.array([(radius, 0.0), (radius, length)]))

    @property
    def volume(self) -> float:
        return float(np.pi * self.radius**2 * self._outline[1, 1])

    def _inradius(self):
        return min(self.radius, 0.5 * float(self._outline[1, 1]))


@dataclass(frozen=True, eq=False, repr=False)
class HopperRegion(Turned):
    """A cylinder above a cone that narrows downwards to its outlet, about the vertical (z) through ``outlet``, the centre (3,) m of the
    outlet. Radii and heights in m."""

    outlet_radius: float
    top_radius: float
    cone_height: float
    cylinder_height: float
    outlet: Any = (0.0, 0.0, 0.0)

    def __post_init__(self):
        bottom = checks.number("HopperRegion outlet_radius", self.outlet_radius, minimum=0.0)
        top = checks.number("HopperRegion top_radius", self.top_radius, above=0.0)
        cone = checks.number("HopperRegion cone_height", self.cone_height, above=0.0)
        cylinder = checks.number("HopperRegion cylinder_height", self.cylinder_height, minimum=0.0)
        if top < bottom:
            raise ValueError(f"HopperRegion top_radius must be at least outlet_radius {bottom:g}, not {top:g}")
        slope = np.hypot(cone, top - bottom)
        _set(self, outlet_radius=bottom, top_radius=top, cone_height=cone, cylinder_height=cylinder)
        _set(self, outlet=checks.array("HopperRegion outlet", self.outlet, (3,)), _axis=np.array([0.0, 0.0, 1.0]))
        lines = [(0, 1, 0), (0, -1, cone + cylinder), (-1, 0, top), (-cone / slope, (top - bottom) / slope, bottom * cone / slope)]
        outline = [(bottom, 0.0), (top, cone), (top, cone + cylinder)][: 3 if cylinder else 2]
        _set(self, _origin=self.outlet, _lines=np.array(lines, float), _outline=np.array(outline))

    @property
    def volume(self) -> float:
        bottom, top = self.outlet_radius, self.top_radius
        return float(np.pi * (self.cone_height * (bottom**2 + bottom * top + top**2) / 3 + self.cylinder_height * top**2))


@dataclass(frozen=True, eq=False, repr=False)
class SphereRegion(Region):
    """A ball of ``radius`` m about ``centre`` (3,) m."""

    centre: Any
    radius: float

    def __post_init__(self):
        _set(self, centre=checks.array("SphereRegion centre", self.centre, (3,)))
        _set(self, radius=checks.number("SphereRegion radius", self.radius, above=0.0))

    @property
    def volume(self) -> float:
        return float(4 / 3 * np.pi * self.radius**3)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return self.centre - self.radius, self.centre + self.radius

    def _depth(self, points):
        return self.radius - np.linalg.norm(points - self.centre, axis=1)

    def _inward(self, points):
        arms = self.centre - points
        length = np.linalg.norm(arms, axis=1, keepdims=True)
        return np.where(length > 0, arms / np.maximum(length, 1e-300), np.array([0.0, 0.0, 1.0]))

    def _inradius(self):
        return self.radius

    def walls(self, inside: bool = False) -> list[Plane | Mesh]:
        angles = np.linspace(0, np.pi, SIDES // 2 + 1)
        outline = self.radius * (1.0 if inside else AROUND) * np.column_stack([np.sin(angles), -np.cos(angles)])
        outline[[0, -1], 0] = 0.0
        return [_lathe(self.centre, np.array([0.0, 0.0, 1.0]), outline, inside)]


@dataclass(frozen=True, eq=False, repr=False)
class MeshRegion(Region):
    """What a closed surface encloses: a ``Mesh``, or ``MeshRegion((vertices, triangles))`` with vertices (N, 3) m and triangles (M, 3),
    corners counter-clockwise from outside."""

    mesh: Any
    _surface: Any = field(init=False, repr=False)

    def __post_init__(self):
        mesh = self.mesh
        if not isinstance(mesh, Mesh):
            if not isinstance(mesh, (tuple, list)) or len(mesh) != 2:
                raise TypeError(f"MeshRegion mesh must be a Mesh or (vertices, triangles), not {mesh!r:.80}")
            mesh = Mesh(*mesh)
        if not mesh.closed:
            raise ValueError(f"MeshRegion mesh must be closed, so that it has an inside, but {mesh!r} is not")
        if mesh.count is not None:
            raise ValueError(f"MeshRegion mesh must have one scale, not {mesh.count}")
        _set(self, mesh=mesh, _surface=None)

    @property
    def volume(self) -> float:
        return float(self.mesh.volumes(1)[0])  # by the divergence theorem

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        vertices = float(self.mesh.scale) * self.mesh.vertices[np.unique(self.mesh.triangles)]
        return vertices.min(axis=0), vertices.max(axis=0)

    def _nearest(self, points):
        from gravel.packing.surfaces import Surface

        if self._surface is None:
            _set(self, _surface=Surface(self.mesh))
        return self._surface.nearest(points)

    def _depth(self, points):
        return self._nearest(points)[0]

    def _inward(self, points):
        return self._nearest(points)[1]

    def walls(self, inside: bool = False) -> list[Plane | Mesh]:
        return [Mesh(float(self.mesh.scale) * self.mesh.vertices, self.mesh.triangles, sheet=True)]


def _points(points):
    return checks.array("points", points, (None, 3), copy=False)


def _set(region, **values):
    for name, value in values.items():
        object.__setattr__(region, name, value)


def _across(axis):
    """A direction of length one across another."""
    sideways = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    return sideways / np.linalg.norm(sideways)


def _lathe(origin, axis, outline, inside):
    """The closed sheet that an outline of corners (r, z) makes when it is turned about an axis, from the lower end to the upper: with
    its corners on the circles if ``inside``, else with its sides."""
    u = _across(axis)
    angles = 2 * np.pi * np.arange(SIDES) / SIDES
    circle = np.cos(angles)[:, None] * u + np.sin(angles)[:, None] * np.cross(axis, u)
    circle *= 1.0 if inside else AROUND
    rims = [origin + z * axis + r * circle for r, z in outline if r > 0]
    ends = [origin + z * axis for z in outline[[0, -1], 1]]
    k, following = np.arange(SIDES), np.roll(np.arange(SIDES), -1)
    triangles = [np.column_stack([np.zeros_like(k), 2 + following, 2 + k])]
    for first in 2 + SIDES * np.arange(len(rims) - 1):
        a, b, c, d = first + k, first + following, first + SIDES + following, first + SIDES + k
        triangles += [np.column_stack([a, b, c]), np.column_stack([a, c, d])]
    last = 2 + SIDES * (len(rims) - 1)
    triangles.append(np.column_stack([np.ones_like(k), last + k, last + following]))
    return Mesh(np.concatenate([ends, *rims]), np.concatenate(triangles), sheet=True)
