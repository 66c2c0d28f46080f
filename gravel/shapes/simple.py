"""Simple shapes: solids that a few sizes describe, and the plane. The class of a shape is the record of its kind.

Each class says, in one place, all that the package knows of its kind outside of compiled code: the number of the kind, its name, its
sizes, mass properties, bounds, which points are inside, and the triangles that stand for its surface. ``kinds.KINDS`` lists the classes by
number. What engines compile for a kind stands in ``formulas/solids.py`` (support function, faces), ``formulas/bounds.py`` (axis-aligned
box) and ``cpu/collide/rays.py`` (rays).

The sizes of a shape may be arrays, one row per body, for ``Scene.add_bodies``. An engine keeps four numbers for each body: three sizes
(``rows``) and the radius of the ball around it (``bounding_radii``). Shapes that these cannot describe (``polyhedra``, ``meshes``,
``compounds``) bring a ``Geometry`` as well, and a ``mass_frame``: where their centre of mass and principal axes lie in the coordinates in
which they were given.
"""

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gravel import checks
from gravel.printing import formatting
from gravel.shapes import templates
from gravel.shapes.templates import Template

# Numbers of the kinds. They stand in files, so they never change: a new kind gets the next one. ``formulas.tables.rank_of`` is their order
# in a pair.
SPHERE, ELLIPSOID, CAPSULE, CYLINDER, CONE, BOX, HULL, COMPOUND, MESH, PLANE, ROUNDED_BOX = range(11)


class Size(NamedTuple):
    """One size of a kind of shape: an argument of its class, and a key in scene files."""

    name: str
    says: str  # what it is
    columns: int = 1  # numbers; three: along x, y and z


class Simple:
    """A shape that its sizes describe, with its centre of mass at the origin and its principal axes along x, y and z.

    Functions of one body get its sizes ``e`` as an engine keeps them: three numbers, and the bounding radius as the fourth.
    """

    KIND: ClassVar[int]
    NAME: ClassVar[str]  # in scene files, results and reports
    SAYS: ClassVar[str]  # in the reference of scene files
    SIZES: ClassVar[tuple[Size, ...]] = ()
    ROUND: ClassVar[bool] = True  # its surface is curved: triangles stand for it, the more the better
    SCALING: ClassVar[str] = "proportions"  # how one mesh serves bodies of all sizes, see ``io.export.instances``
    __dataclass_fields__: ClassVar[dict[str, Any]]
    mass_frame = None

    def __repr__(self) -> str:
        return formatting.of_fields(self)

    def __post_init__(self):
        name = type(self).__name__
        sizes = [_sizes(f"{name} {size.name}", getattr(self, size.name), size.columns) for size in self.SIZES]
        counts = [len(values) if values.ndim > (size.columns > 1) else None for size, values in zip(self.SIZES, sizes)]
        if len({count for count in counts if count is not None}) > 1:
            told = " and ".join(f"{size.name} has {count or 1}" for size, count in zip(self.SIZES, counts))
            raise ValueError(f"{name} sizes must belong to the same number of bodies, but {told}")
        count = next((count for count in counts if count is not None), None)
        for size, values in zip(self.SIZES, sizes):
            shape = (() if count is None else (count,)) + ((size.columns,) if size.columns > 1 else ())
            object.__setattr__(self, size.name, np.broadcast_to(values, shape))

    @property
    def count(self) -> int | None:
        """How many bodies it has sizes for; None: one size for any number."""
        first = self.SIZES[0]
        values = getattr(self, first.name)
        return None if values.ndim == (first.columns > 1) else len(values)

    def _given(self) -> list[np.ndarray]:
        return [getattr(self, size.name) for size in self.SIZES]

    def take(self, bodies: Any) -> Any:
        """The same shape with the sizes of some of its bodies."""
        return self if self.count is None else type(self)(*(values[bodies] for values in self._given()))

    def geometry(self, movable: bool) -> None:
        """There is none: sizes say it all."""

    def rows(self, n: int) -> np.ndarray:
        """(n, 3) m, the sizes of each of n bodies; zero where a shape has fewer than three."""
        sizes, first = np.zeros((n, 3)), 0
        for size, values in zip(self.SIZES, self._given()):
            sizes[:, first : first + size.columns] = values if size.columns > 1 else np.reshape(values, (-1, 1))
            first += size.columns
        return sizes

    @classmethod
    def split(cls, numbers: np.ndarray) -> list[np.ndarray]:
        """The arguments of the class from the numbers of its sizes side by side, (k,) of one body or (n, k) of many."""
        ends = np.cumsum([size.columns for size in cls.SIZES])
        return [numbers[..., end - size.columns : end] if size.columns > 1 else numbers[..., end - 1] for size, end in zip(cls.SIZES, ends)]

    @classmethod
    def sizes_of(cls, extent: np.ndarray) -> list[np.ndarray]:
        """The arguments of the class from what an engine keeps of one body (4,) or of many (n, 4): three sizes, bounding radius."""
        return cls.split(extent)

    @classmethod
    def of_extent(cls, extent: np.ndarray) -> Any:
        """The shape of one body (4,) or of many (n, 4) from what an engine keeps of them, see ``sizes_of``."""
        return cls(*cls.sizes_of(extent))

    def volumes(self, n: int) -> np.ndarray:
        """(n,) m3, of each of n bodies."""
        raise NotImplementedError

    def inertias(self, masses: np.ndarray) -> np.ndarray:
        """(n, 3) kg m2, principal moments of inertia of n bodies of ``masses`` (n,) kg."""
        raise NotImplementedError

    def bounding_radii(self, n: int) -> np.ndarray:
        """(n,) m, of the balls around the centres of n bodies that hold them."""
        raise NotImplementedError

    @staticmethod
    def box(e: np.ndarray, axes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest coordinates (3,) about the centre; columns of ``axes``: x, y and z of the shape."""
        raise NotImplementedError

    @staticmethod
    def reach(e: np.ndarray, x: float, y: float, z: float) -> float:
        """The largest distance of points of the shape from the origin, or a bound of it, with its centre at (x, y, z) of its own axes."""
        return float(np.linalg.norm((x, y, z))) + e[3]

    @staticmethod
    def inside(e: np.ndarray, points: np.ndarray, less: float = 1.0) -> np.ndarray:
        """(n,) whether points (n, 3) of its frame are inside; ``less`` than one leaves out what is nearly on the surface."""
        raise NotImplementedError

    @staticmethod
    def inner_radius(e: np.ndarray) -> float:
        """m, of the largest ball about the centre that it holds."""
        raise NotImplementedError

    @staticmethod
    def template(sides: int) -> Template:
        """Its surface as triangles, with so many sides around its axis if it is round."""
        raise NotImplementedError


def disc(axes):
    """Half widths of a disc of radius 1 across the z axis."""
    return np.sqrt(np.maximum(1 - axes[:, 2] ** 2, 0))


@dataclass(frozen=True, eq=False, repr=False)
class Sphere(Simple):
    """A ball. ``radius`` in m: a number, or an array (N,) for N bodies."""

    radius: Any
    KIND = SPHERE
    NAME, SAYS = "sphere", "A ball."
    SIZES = (Size("radius", "radius"),)
    SCALING = "first"

    def volumes(self, n: int) -> np.ndarray:
        return np.broadcast_to(4 / 3 * np.pi * self.radius**3, n)

    def inertias(self, masses: np.ndarray) -> np.ndarray:
        return np.repeat((0.4 * masses * self.radius**2)[:, None], 3, axis=1)

    def bounding_radii(self, n: int) -> np.ndarray:
        return np.broadcast_to(self.radius, n)

    @staticmethod
    def box(e: np.ndarray, axes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(3, -e[0]), np.full(3, e[0])

    @staticmethod
    def inside(e: np.ndarray, points: np.ndarray, less: float = 1.0) -> np.ndarray:
        return ((points / e[0]) ** 2).sum(axis=1) < less

    @staticmethod
    def inner_radius(e: np.ndarray) -> float:
        return e[0]

    @staticmethod
    def template(sides: int) -> Template:
        return templates.scaled_by_first(*templates.ball(sides))


@dataclass(frozen=True, eq=False, repr=False)
class Ellipsoid(Simple):
    """An ellipsoid. ``radii`` along its axes x, y and z in m: (3,), or (N, 3) for N bodies."""

    radii: Any
    KIND = ELLIPSOID
    NAME, SAYS = "ellipsoid", "An ellipsoid."
    SIZES = (Size("radii", "along x, y and z", 3),)
    SCALING = "axes"

    def volumes(self, n: int) -> np.ndarray:
        return np.broadcast_to(4 / 3 * np.pi * np.prod(self.radii, axis=-1), n)

    def inertias(self, masses: np.ndarray) -> np.ndarray:
        squares = self.radii**2
        return masses[:, None] / 5 * (squares.sum(axis=-1, keepdims=True) - squares)

    def bounding_radii(self, n: int) -> np.ndarray:
        return np.broadcast_to(self.radii.max(axis=-1), n)

    @staticmethod
    def box(e: np.ndarray, axes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        half = np.linalg.norm(axes * e[:3], axis=1)
        return -half, half

    @staticmethod
    def inside(e: np.ndarray, points: np.ndarray, less: float = 1.0) -> np.ndarray:
        return ((points / e[:3]) ** 2).sum(axis=1) < less

    @staticmethod
    def inner_radius(e: np.ndarray) -> float:
        return e[:3].min()

    @staticmethod
    def template(sides: int) -> Template:
        return templates.scaled_along_axes(*templates.ball(sides))


class Round(Simple):
    """A shape that is round about its z axis and has two sizes, each a number or an array (N,) for N bodies."""

    radius: Any

    def _moments(self, across, along):
        """Rows (across, across, along)."""
        return np.stack([across, across, along], axis=1)


@dataclass(frozen=True, eq=False, repr=False)
class Capsule(Round):
    """A cylinder along z with half a ball at each end; ``half_length`` m from the centre to the centre of a ball."""

    radius: Any
    half_length: Any
    KIND = CAPSULE
    NAME, SAYS = "capsule", "A cylinder along z with a hemisphere at each end."
    SIZES = (Size("radius", "radius"), Size("half_length", "from the centre to the end of the cylinder"))

    def volumes(self, n: int) -> np.ndarray:
        r, h = self._given()
        return np.broadcast_to(np.pi * r**2 * (2 * h + 4 / 3 * r), n)

    def inertias(self, masses: np.ndarray) -> np.ndarray:
        r, h = self._given()
        ball = masses * (4 / 3 * r) / (2 * h + 4 / 3 * r)  # mass of the two halves; the rest is the cylinder's
        cylinder = masses - ball
        # a half ball's centre of mass is 3/8 r beyond the cylinder's end
        across = cylinder * (r**2 / 4 + h**2 / 3) + ball * (0.4 * r**2 + h**2 + 0.75 * h * r)
        return self._moments(across, cylinder * r**2 / 2 + 0.4 * ball * r**2)

    def bounding_radii(self, n: int) -> np.ndarray:
        return np.broadcast_to(self.radius + self.half_length, n)

    @staticmethod
    def box(e: np.ndarray, axes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        half = e[0] + e[1] * np.abs(axes[:, 2])
        return -half, half

    @staticmethod
    def reach(e: np.ndarray, x: float, y: float, z: float) -> float:
        return np.hypot(np.hypot(x, y), abs(z) + e[1]) + e[0]

    @staticmethod
    def inside(e: np.ndarray, points: np.ndarray, less: float = 1.0) -> np.ndarray:
        x, y, z = points.T
        return np.hypot(np.hypot(x, y), np.maximum(np.abs(z) - e[1], 0)) < e[0] * less

    @staticmethod
    def inner_radius(e: np.ndarray) -> float:
        return e[0]

    @staticmethod
    def template(sides: int) -> Template:
        made = templates.scaled_by_first(*templates.ball(sides, halves=True))
        lower = np.arange(len(made.weights)) < len(made.weights) // 2
        made.weights[:, 2, 1] = np.where(lower, -1, 1)
        return made


@dataclass(frozen=True, eq=False, repr=False)
class Cylinder(Round):
    """A cylinder along z, from -half_length to half_length, m."""

    radius: Any
    half_length: Any
    KIND = CYLINDER
    NAME, SAYS = "cylinder", "A cylinder along z."
    SIZES = (Size("radius", "radius"), Size("half_length", "from the centre to the end of the cylinder"))
    SCALING = "turned"

    def volumes(self, n: int) -> np.ndarray:
        r, h = self._given()
        return np.broadcast_to(2 * np.pi * r**2 * h, n)

    def inertias(self, masses: np.ndarray) -> np.ndarray:
        r, h = self._given()
        return self._moments(masses * (r**2 / 4 + h**2 / 3), masses * r**2 / 2)

    def bounding_radii(self, n: int) -> np.ndarray:
        return np.broadcast_to(np.hypot(self.radius, self.half_length), n)

    @staticmethod
    def box(e: np.ndarray, axes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        half = e[0] * disc(axes) + e[1] * np.abs(axes[:, 2])
        return -half, half

    @staticmethod
    def reach(e: np.ndarray, x: float, y: float, z: float) -> float:
        return np.hypot(np.hypot(x, y) + e[0], abs(z) + e[1])

    @staticmethod
    def inside(e: np.ndarray, points: np.ndarray, less: float = 1.0) -> np.ndarray:
        x, y, z = points.T
        return (np.hypot(x, y) < e[0] * less) & (np.abs(z) < e[1] * less)

    @staticmethod
    def inner_radius(e: np.ndarray) -> float:
        return min(e[0], e[1])

    @staticmethod
    def template(sides: int) -> Template:
        return templates.scaled_about_z(*templates.turned([[(0, -1), (1, -1)], [(1, -1), (1, 1)], [(1, 1), (0, 1)]], sides))


@dataclass(frozen=True, eq=False, repr=False)
class Cone(Round):
    """A cone along z with its centre of mass at the origin: the base at z = -height / 4, the tip at 3 / 4 height, m."""

    radius: Any
    height: Any
    KIND = CONE
    NAME, SAYS = "cone", "A cone along z, its centre of mass at the origin."
    SIZES = (Size("radius", "radius"), Size("height", "height"))
    SCALING = "turned"

    def volumes(self, n: int) -> np.ndarray:
        r, h = self._given()
        return np.broadcast_to(np.pi * r**2 * h / 3, n)

    def inertias(self, masses: np.ndarray) -> np.ndarray:
        r, h = self._given()
        return self._moments(masses * (3 / 20 * r**2 + 3 / 80 * h**2), 0.3 * masses * r**2)

    def bounding_radii(self, n: int) -> np.ndarray:
        r, h = self._given()
        return np.broadcast_to(np.maximum(0.75 * h, np.hypot(r, 0.25 * h)), n)

    @staticmethod
    def box(e: np.ndarray, axes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r, sideways, tip, base = e[0], disc(axes), 0.75 * e[1] * axes[:, 2], -0.25 * e[1] * axes[:, 2]
        return np.minimum(tip, base - r * sideways), np.maximum(tip, base + r * sideways)

    @staticmethod
    def reach(e: np.ndarray, x: float, y: float, z: float) -> float:
        across = np.hypot(x, y)
        return max(np.hypot(across, z + 0.75 * e[1]), np.hypot(across + e[0], z - 0.25 * e[1]))

    @staticmethod
    def inside(e: np.ndarray, points: np.ndarray, less: float = 1.0) -> np.ndarray:
        x, y, z = points.T
        return (z > -0.25 * e[1] * less) & (np.hypot(x, y) < e[0] * (0.75 - z / e[1]) * less)

    @staticmethod
    def inner_radius(e: np.ndarray) -> float:
        return min(0.25 * e[1], 0.75 * e[1] * e[0] / np.hypot(e[0], e[1]))

    @staticmethod
    def template(sides: int) -> Template:
        profile = [[(0, -0.25), (1, -0.25)], [(1, -0.25), (templates.TIP, 0.75)]]
        return templates.scaled_about_z(*templates.turned(profile, sides))


@dataclass(frozen=True, eq=False, repr=False)
class Box(Simple):
    """A cuboid. ``half_extents`` in m: (3,), or (N, 3) for N bodies."""

    half_extents: Any
    KIND = BOX
    NAME, SAYS = "box", "A box."
    SIZES = (Size("half_extents", "half of its edges", 3),)
    ROUND = False
    SCALING = "axes"

    def volumes(self, n: int) -> np.ndarray:
        return np.broadcast_to(8 * np.prod(self.half_extents, axis=-1), n)

    def inertias(self, masses: np.ndarray) -> np.ndarray:
        squares = self.half_extents**2
        return masses[:, None] / 3 * (squares.sum(axis=-1, keepdims=True) - squares)

    def bounding_radii(self, n: int) -> np.ndarray:
        return np.broadcast_to(np.linalg.norm(self.half_extents, axis=-1), n)

    @staticmethod
    def box(e: np.ndarray, axes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        half = np.abs(axes) @ e[:3]
        return -half, half

    @staticmethod
    def reach(e: np.ndarray, x: float, y: float, z: float) -> float:
        return float(np.linalg.norm(np.abs((x, y, z)) + e[:3]))

    @staticmethod
    def inside(e: np.ndarray, points: np.ndarray, less: float = 1.0) -> np.ndarray:
        return (np.abs(points) < e[:3] * less).all(axis=1)

    @staticmethod
    def inner_radius(e: np.ndarray) -> float:
        return e[:3].min()

    @staticmethod
    def template(sides: int) -> Template:
        return templates.box()


@dataclass(frozen=True, eq=False, repr=False)
class RoundedBox(Simple):
    """A box with rounded edges and corners. ``half_extents`` from the centre to the faces in m: (3,), or (N, 3) for N bodies; ``radius`` of
    the edges in m: a number, or an array (N,), at most the smallest half extent.

    It is the Minkowski sum of a smaller box, the core, and a ball. An engine keeps the half extents of the core as the sizes; the radius
    is that by which the bounding radius exceeds the core's.
    """

    half_extents: Any
    radius: Any
    KIND = ROUNDED_BOX
    NAME, SAYS = "rounded_box", "A box with rounded edges and corners."
    SIZES = (Size("half_extents", "from the centre to its faces", 3), Size("radius", "of its edges, at most the smallest half extent"))

    def __post_init__(self):
        super().__post_init__()
        smallest = self.half_extents.min(axis=-1)
        if (self.radius > smallest).any():
            k = int(np.argmax(self.radius > smallest))
            at, radius, most = f"[{k}]" if self.radius.ndim else "", np.ravel(self.radius)[k], np.ravel(smallest)[k]
            raise ValueError(f"RoundedBox radius{at} must be at most the smallest half extent, {most:g}, not {radius:g}")

    def _core(self):
        """(half extents of the core, radius around it), the last axis along x, y and z."""
        r = self.radius[..., None]
        return self.half_extents - r, r

    def rows(self, n: int) -> np.ndarray:
        return np.array(np.broadcast_to(self._core()[0], (n, 3)))

    @classmethod
    def sizes_of(cls, extent: np.ndarray) -> list[np.ndarray]:
        core, whole = extent[..., :3], extent[..., 3]
        radius = np.maximum(whole - np.linalg.norm(core, axis=-1), 1e-16 * whole)
        return [core + radius[..., None], radius]

    def volumes(self, n: int) -> np.ndarray:
        c, r = self._core()
        faces = c * np.roll(c, 1, axis=-1)
        parts = 8 * np.prod(c, axis=-1, keepdims=True), 8 * r * faces.sum(-1, keepdims=True), 2 * np.pi * r**2 * c.sum(-1, keepdims=True)
        return np.broadcast_to((sum(parts) + 4 / 3 * np.pi * r**3)[..., 0], n)

    def inertias(self, masses: np.ndarray) -> np.ndarray:
        """(n, 3) kg m2, by parts: the core, slabs on its faces, quarters of cylinders on its edges, eighths of a ball on its corners."""
        c, r = self._core()
        p, q = np.roll(c, -1, axis=-1), np.roll(c, -2, axis=-1)
        within = 8 * c * p * q + 8 * r * c * (p + q) + 2 * np.pi * r**2 * c  # what lies between -c and c along an axis
        slabs = 8 / 3 * p * q * r * (3 * c**2 + 3 * c * r + r**2)
        edges = 2 * (p + q) * (np.pi * r**2 * c**2 + 8 / 3 * r**3 * c + np.pi / 4 * r**4)
        corners = 4 / 3 * np.pi * r**3 * c**2 + np.pi * r**4 * c + 4 / 15 * np.pi * r**5
        second = within * c**2 / 3 + slabs + edges + corners  # integral of the square of the coordinate along each axis
        return (masses / self.volumes(len(masses)))[:, None] * (second.sum(axis=-1, keepdims=True) - second)

    def bounding_radii(self, n: int) -> np.ndarray:
        return np.broadcast_to(np.linalg.norm(self._core()[0], axis=-1) + self.radius, n)

    @staticmethod
    def box(e: np.ndarray, axes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        half = np.abs(axes) @ e[:3] + _rounding(e)
        return -half, half

    @staticmethod
    def reach(e: np.ndarray, x: float, y: float, z: float) -> float:
        return float(np.linalg.norm(np.abs((x, y, z)) + e[:3])) + _rounding(e)

    @staticmethod
    def inside(e: np.ndarray, points: np.ndarray, less: float = 1.0) -> np.ndarray:
        return np.linalg.norm(np.maximum(np.abs(points) - e[:3], 0), axis=1) < _rounding(e) * less

    @staticmethod
    def inner_radius(e: np.ndarray) -> float:
        return float(e[:3].min()) + _rounding(e)

    @staticmethod
    def template(sides: int) -> Template:
        return _rounded_box(np.linspace(0, np.pi / 2, max(sides // 4, 1) + 1))


def _rounding(e):
    """The radius around the core of a rounded box."""
    return max(float(e[3]) - float(np.linalg.norm(e[:3])), 0.0)


def _rounded_box(arc):
    """The template of a rounded box: its faces, edges and corners have vertices of their own, each of which lies on a corner of the core
    and off it by the radius along its normal."""
    weights, triangles, normals, count = [], [], [], 0
    for signs in itertools.product((-1, 0, 1), repeat=3):
        if any(signs):
            corner, normal = _patch(np.array(signs, float), arc)
            rows, columns = normal.shape[:2]
            numbers = count + np.arange(rows * columns).reshape(rows, columns)
            a, b, c, d = (part.ravel() for part in (numbers[:-1, :-1], numbers[1:, :-1], numbers[1:, 1:], numbers[:-1, 1:]))
            triangles += [np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)]
            weights.append(np.concatenate([np.eye(3) * corner[..., None], normal[..., None]], axis=-1).reshape(-1, 3, 4))
            normals.append(normal.reshape(-1, 3))
            count += rows * columns
    whole = Template(np.concatenate(weights), np.concatenate(triangles).astype(np.int32), np.concatenate(normals))
    return _turned_outward(whole)


def _turned_outward(template):
    """The same without triangles that have no area, and all of them counter-clockwise from outside."""
    weights, triangles, normals = template
    points = (weights @ np.ones(4))[triangles]
    area = np.cross(points[:, 1] - points[:, 0], points[:, 2] - points[:, 0])
    outward = np.einsum("ti,ti->t", area, normals[triangles].sum(axis=1))
    triangles[outward < 0] = triangles[outward < 0, ::-1]
    return Template(weights, triangles[np.abs(outward) > 1e-12], normals)


def _patch(signs, arc):
    """Grids (rows, columns, 3) of core corners and normals: of a face (one sign), an edge (two) or a corner (three)."""
    free, bound = np.flatnonzero(signs == 0), np.flatnonzero(signs)
    u, v = np.meshgrid(arc if len(bound) > 1 else (-1.0, 1.0), arc if len(bound) > 2 else (-1.0, 1.0), indexing="ij")
    turns = {1: [np.ones_like(u)], 2: [np.cos(u), np.sin(u)], 3: [np.cos(u) * np.cos(v), np.cos(u) * np.sin(v), np.sin(u)]}
    corner, normal = np.broadcast_to(signs, (*u.shape, 3)).copy(), np.zeros((*u.shape, 3))
    for k, axis in enumerate(bound):
        normal[..., axis] = signs[axis] * turns[len(bound)][k]
    for axis, end in zip(free[::-1], (v, u)):
        corner[..., axis] = end
    return corner, normal


@dataclass(frozen=True, eq=False, repr=False)
class Plane(Simple):
    """A half space: all points with x . normal <= offset are inside. It has no mass: fixed, or with prescribed motion."""

    normal: Any = (0.0, 0.0, 1.0)
    offset: float = 0.0
    KIND = PLANE
    NAME, SAYS = "plane", "A half space: all points with x . normal <= offset are inside. Must be fixed or have a motion."

    def __post_init__(self):
        object.__setattr__(self, "normal", checks.unit("Plane normal", self.normal))
        object.__setattr__(self, "offset", checks.number("Plane offset", self.offset))

    count = None

    def __repr__(self) -> str:
        return formatting.call(self, normal=self.normal, offset=self.offset)

    def rows(self, n: int) -> np.ndarray:
        return np.array(np.broadcast_to(self.normal, (n, 3)))

    @classmethod
    def of_extent(cls, extent: np.ndarray) -> "Plane":
        return cls(extent[:3])

    def volumes(self, n: int) -> np.ndarray:
        return np.full(n, np.inf)

    def bounding_radii(self, n: int) -> np.ndarray:
        return np.full(n, np.inf)


SOLIDS: tuple[type[Simple], ...] = (Sphere, Ellipsoid, Capsule, Cylinder, Cone, Box, RoundedBox)  # convex shapes that their sizes describe
SOLID_OF = {solid.KIND: solid for solid in SOLIDS}


def _sizes(name, value, columns):
    """An array of positive sizes, of the shape of one body's or with a leading N."""
    single = (columns,) if columns > 1 else ()
    given = np.asarray(value)
    shape = single if given.ndim <= len(single) else (None, *single)
    sizes = checks.array(name, value, shape, above=0.0)
    sizes.flags.writeable = False
    return sizes
