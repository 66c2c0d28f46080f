"""Shapes: what a body looks like to the collision detection, and its mass from a density.

A shape is plain data. The sizes may be arrays, one row per body, for ``Scene.add_bodies``. ``KIND`` is the number that
the engines use in their table of pair functions; ``rows(n)`` gives the three size numbers of each body. Shapes that three
numbers cannot describe (``gravel.shapes.polyhedra``, ``gravel.shapes.compounds``) bring a ``Geometry`` as well, and a ``mass_frame``: where
their centre of mass and principal axes lie in the coordinates in which they were given.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gravel import checks
from gravel.printing import formatting

# Kinds. Of two bodies, the one with the lower kind comes first in the table of pair functions.
SPHERE, ELLIPSOID, CAPSULE, CYLINDER, CONE, BOX, HULL, COMPOUND, MESH, PLANE = range(10)


class Simple:
    """A shape that its sizes describe, with its centre of mass at the origin and its principal axes along x, y and z."""

    KIND: ClassVar[int]
    __dataclass_fields__: ClassVar[dict[str, Any]]
    count: Any  # how many bodies it has sizes for; None: one size for any number
    take: Any  # the same shape with the sizes of some of its bodies
    mass_frame = None

    def __repr__(self) -> str:
        return formatting.of_fields(self)

    def geometry(self, movable: bool) -> None:
        """There is none: sizes say it all."""

    def rows(self, n: int) -> np.ndarray:
        """(n, 3) m, the sizes of each of n bodies; zero where a shape has fewer than three."""
        raise NotImplementedError

    def volumes(self, n: int) -> np.ndarray:
        """(n,) m3, of each of n bodies."""
        raise NotImplementedError

    def inertias(self, masses: np.ndarray) -> np.ndarray:
        """(n, 3) kg m2, principal moments of inertia of n bodies of ``masses`` (n,) kg."""
        raise NotImplementedError

    def bounding_radii(self, n: int) -> np.ndarray:
        """(n,) m, of the balls around the centres of n bodies that hold them."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class Sphere(Simple):
    """A ball. ``radius`` in m: a number, or an array (N,) for N bodies."""

    radius: Any
    KIND = SPHERE

    def __post_init__(self):
        object.__setattr__(self, "radius", _sizes("Sphere radius", self.radius, ()))

    @property
    def count(self) -> int | None:
        """How many bodies it has sizes for; None: one size for any number."""
        return None if self.radius.ndim == 0 else len(self.radius)

    def take(self, bodies: Any) -> "Sphere":
        """The same shape with the sizes of some of its bodies."""
        return self if self.count is None else Sphere(self.radius[bodies])

    def rows(self, n: int) -> np.ndarray:
        sizes = np.zeros((n, 3))
        sizes[:, 0] = self.radius
        return sizes

    def volumes(self, n: int) -> np.ndarray:
        return np.broadcast_to(4 / 3 * np.pi * self.radius**3, n)

    def inertias(self, masses: np.ndarray) -> np.ndarray:
        return np.repeat((0.4 * masses * self.radius**2)[:, None], 3, axis=1)

    def bounding_radii(self, n: int) -> np.ndarray:
        return np.broadcast_to(self.radius, n)


@dataclass(frozen=True, eq=False, repr=False)
class Ellipsoid(Simple):
    """An ellipsoid. ``radii`` along its axes x, y and z in m: (3,), or (N, 3) for N bodies."""

    radii: Any
    KIND = ELLIPSOID

    def __post_init__(self):
        object.__setattr__(self, "radii", _sizes("Ellipsoid radii", self.radii, (3,)))

    @property
    def count(self) -> int | None:
        """How many bodies it has sizes for; None: one size for any number."""
        return None if self.radii.ndim == 1 else len(self.radii)

    def take(self, bodies: Any) -> "Ellipsoid":
        """The same shape with the sizes of some of its bodies."""
        return self if self.count is None else Ellipsoid(self.radii[bodies])

    def rows(self, n: int) -> np.ndarray:
        return np.array(np.broadcast_to(self.radii, (n, 3)))

    def volumes(self, n: int) -> np.ndarray:
        return np.broadcast_to(4 / 3 * np.pi * np.prod(self.radii, axis=-1), n)

    def inertias(self, masses: np.ndarray) -> np.ndarray:
        squares = self.radii**2
        return masses[:, None] / 5 * (squares.sum(axis=-1, keepdims=True) - squares)

    def bounding_radii(self, n: int) -> np.ndarray:
        return np.broadcast_to(self.radii.max(axis=-1), n)


class Round(Simple):
    """A shape that is round about its z axis and has two sizes, each a number or an array (N,) for N bodies."""

    radius: Any

    def _check(self, *names):
        sizes = [_sizes(f"{type(self).__name__} {name}", getattr(self, name), ()) for name in names]
        lengths = {len(size) for size in sizes if size.ndim}
        if len(lengths) > 1:
            counts = " and ".join(f"{name} has {size.size}" for name, size in zip(names, sizes))
            raise ValueError(f"{type(self).__name__} sizes must belong to the same number of bodies, but {counts}")
        for name, size in zip(names, np.broadcast_arrays(*sizes)):
            object.__setattr__(self, name, size)

    @property
    def count(self) -> int | None:
        """How many bodies it has sizes for; None: one size for any number."""
        return None if self.radius.ndim == 0 else len(self.radius)

    def _pair(self):
        return [getattr(self, name) for name in self.__dataclass_fields__]

    def take(self, bodies: Any) -> "Round":
        """The same shape with the sizes of some of its bodies."""
        return self if self.count is None else type(self)(*(size[bodies] for size in self._pair()))

    def rows(self, n: int) -> np.ndarray:
        sizes = np.zeros((n, 3))
        for k, size in enumerate(self._pair()):
            sizes[:, k] = size
        return sizes

    def _moments(self, across, along):
        """Rows (across, across, along)."""
        return np.stack([across, across, along], axis=1)


@dataclass(frozen=True, eq=False, repr=False)
class Capsule(Round):
    """A cylinder along z with half a ball at each end; ``half_length`` m from the centre to the centre of a ball."""

    radius: Any
    half_length: Any
    KIND = CAPSULE

    def __post_init__(self):
        self._check("radius", "half_length")

    def volumes(self, n: int) -> np.ndarray:
        r, h = self._pair()
        return np.broadcast_to(np.pi * r**2 * (2 * h + 4 / 3 * r), n)

    def inertias(self, masses: np.ndarray) -> np.ndarray:
        r, h = self._pair()
        ball = masses * (4 / 3 * r) / (2 * h + 4 / 3 * r)  # mass of the two halves; the rest is the cylinder's
        cylinder = masses - ball
        # a half ball's centre of mass is 3/8 r beyond the cylinder's end
        across = cylinder * (r**2 / 4 + h**2 / 3) + ball * (0.4 * r**2 + h**2 + 0.75 * h * r)
        return self._moments(across, cylinder * r**2 / 2 + 0.4 * ball * r**2)

    def bounding_radii(self, n: int) -> np.ndarray:
        return np.broadcast_to(self.radius + self.half_length, n)


@dataclass(frozen=True, eq=False, repr=False)
class Cylinder(Round):
    """A cylinder along z, from -half_length to half_length, m."""

    radius: Any
    half_length: Any
    KIND = CYLINDER

    def __post_init__(self):
        self._check("radius", "half_length")

    def volumes(self, n: int) -> np.ndarray:
        r, h = self._pair()
        return np.broadcast_to(2 * np.pi * r**2 * h, n)

    def inertias(self, masses: np.ndarray) -> np.ndarray:
        r, h = self._pair()
        return self._moments(masses * (r**2 / 4 + h**2 / 3), masses * r**2 / 2)

    def bounding_radii(self, n: int) -> np.ndarray:
        return np.broadcast_to(np.hypot(self.radius, self.half_length), n)


@dataclass(frozen=True, eq=False, repr=False)
class Cone(Round):
    """A cone along z with its centre of mass at the origin: the base at z = -height / 4, the tip at 3 / 4 height, m."""

    radius: Any
    height: Any
    KIND = CONE

    def __post_init__(self):
        self._check("radius", "height")

    def volumes(self, n: int) -> np.ndarray:
        r, h = self._pair()
        return np.broadcast_to(np.pi * r**2 * h / 3, n)

    def inertias(self, masses: np.ndarray) -> np.ndarray:
        r, h = self._pair()
        return self._moments(masses * (3 / 20 * r**2 + 3 / 80 * h**2), 0.3 * masses * r**2)

    def bounding_radii(self, n: int) -> np.ndarray:
        r, h = self._pair()
        return np.broadcast_to(np.maximum(0.75 * h, np.hypot(r, 0.25 * h)), n)


@dataclass(frozen=True, eq=False, repr=False)
class Box(Simple):
    """A cuboid. ``half_extents`` in m: (3,), or (N, 3) for N bodies."""

    half_extents: Any
    KIND = BOX

    def __post_init__(self):
        object.__setattr__(self, "half_extents", _sizes("Box half_extents", self.half_extents, (3,)))

    @property
    def count(self) -> int | None:
        """How many bodies it has sizes for; None: one size for any number."""
        return None if self.half_extents.ndim == 1 else len(self.half_extents)

    def take(self, bodies: Any) -> "Box":
        """The same shape with the sizes of some of its bodies."""
        return self if self.count is None else Box(self.half_extents[bodies])

    def rows(self, n: int) -> np.ndarray:
        return np.array(np.broadcast_to(self.half_extents, (n, 3)))

    def volumes(self, n: int) -> np.ndarray:
        return np.broadcast_to(8 * np.prod(self.half_extents, axis=-1), n)

    def inertias(self, masses: np.ndarray) -> np.ndarray:
        squares = self.half_extents**2
        return masses[:, None] / 3 * (squares.sum(axis=-1, keepdims=True) - squares)

    def bounding_radii(self, n: int) -> np.ndarray:
        return np.broadcast_to(np.linalg.norm(self.half_extents, axis=-1), n)


@dataclass(frozen=True, eq=False, repr=False)
class Plane(Simple):
    """A half space: all points with x . normal <= offset are inside. It has no mass: fixed, or with prescribed motion."""

    normal: Any = (0.0, 0.0, 1.0)
    offset: float = 0.0
    KIND = PLANE

    def __post_init__(self):
        object.__setattr__(self, "normal", checks.unit("Plane normal", self.normal))
        object.__setattr__(self, "offset", checks.number("Plane offset", self.offset))

    count = None

    def __repr__(self) -> str:
        return formatting.call(self, normal=self.normal, offset=self.offset)

    def rows(self, n: int) -> np.ndarray:
        return np.array(np.broadcast_to(self.normal, (n, 3)))

    def volumes(self, n: int) -> np.ndarray:
        return np.full(n, np.inf)

    def bounding_radii(self, n: int) -> np.ndarray:
        return np.full(n, np.inf)


def _sizes(name, value, single):
    """An array of positive sizes, of the shape of one body's or with a leading N."""
    given = np.asarray(value)
    shape = single if given.ndim <= len(single) else (None, *single)
    sizes = checks.array(name, value, shape, above=0.0)
    sizes.flags.writeable = False
    return sizes
