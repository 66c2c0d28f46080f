"""Shapes: what a body looks like to the collision detection, and its mass from a density.

A shape is plain data. The sizes may be arrays, one row per body, for ``Scene.add_bodies``. ``KIND`` is the number that
the engines use in their table of pair functions; ``rows(n)`` gives the three size numbers of each body.
"""

from dataclasses import dataclass

import numpy as np

from gravel import checks

SPHERE, BOX, PLANE = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Sphere:
    """A ball. ``radius`` in m: a number, or an array (N,) for N bodies."""

    radius: object
    KIND = SPHERE

    def __post_init__(self):
        object.__setattr__(self, "radius", _sizes("Sphere radius", self.radius, ()))

    @property
    def count(self):
        return None if self.radius.ndim == 0 else len(self.radius)

    def take(self, bodies):
        """The same shape with the sizes of some of its bodies."""
        return self if self.count is None else Sphere(self.radius[bodies])

    def rows(self, n):
        sizes = np.zeros((n, 3))
        sizes[:, 0] = self.radius
        return sizes

    def volumes(self, n):
        return np.broadcast_to(4 / 3 * np.pi * self.radius**3, n)

    def inertias(self, masses):
        """Principal moments of inertia, kg m2."""
        return np.repeat((0.4 * masses * self.radius**2)[:, None], 3, axis=1)

    def bounding_radii(self, n):
        return np.broadcast_to(self.radius, n)


@dataclass(frozen=True, eq=False)
class Box:
    """A cuboid. ``half_extents`` in m: (3,), or (N, 3) for N bodies."""

    half_extents: object
    KIND = BOX

    def __post_init__(self):
        object.__setattr__(self, "half_extents", _sizes("Box half_extents", self.half_extents, (3,)))

    @property
    def count(self):
        return None if self.half_extents.ndim == 1 else len(self.half_extents)

    def take(self, bodies):
        """The same shape with the sizes of some of its bodies."""
        return self if self.count is None else Box(self.half_extents[bodies])

    def rows(self, n):
        return np.array(np.broadcast_to(self.half_extents, (n, 3)))

    def volumes(self, n):
        return np.broadcast_to(8 * np.prod(self.half_extents, axis=-1), n)

    def inertias(self, masses):
        squares = self.half_extents**2
        return masses[:, None] / 3 * (squares.sum(axis=-1, keepdims=True) - squares)

    def bounding_radii(self, n):
        return np.broadcast_to(np.linalg.norm(self.half_extents, axis=-1), n)


@dataclass(frozen=True, eq=False)
class Plane:
    """A half space: all points with x . normal <= offset are inside. It has no mass: fixed, or with prescribed motion."""

    normal: object = (0.0, 0.0, 1.0)
    offset: float = 0.0
    KIND = PLANE

    def __post_init__(self):
        object.__setattr__(self, "normal", checks.unit("Plane normal", self.normal))
        object.__setattr__(self, "offset", checks.number("Plane offset", self.offset))

    count = None

    def rows(self, n):
        return np.array(np.broadcast_to(self.normal, (n, 3)))

    def volumes(self, n):
        return np.full(n, np.inf)

    def bounding_radii(self, n):
        return np.full(n, np.inf)


SHAPES = (Sphere, Box, Plane)


def _sizes(name, value, single):
    """An array of positive sizes, of the shape of one body's or with a leading N."""
    given = np.asarray(value)
    shape = single if given.ndim <= len(single) else (None, *single)
    sizes = checks.array(name, value, shape, above=0.0)
    sizes.flags.writeable = False
    return sizes
