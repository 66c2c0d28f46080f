"""What is packed or poured: shapes, each with a share of the volume and perhaps with sizes, and bodies drawn from them."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from gravel import checks
from gravel.model.materials import Material
from gravel.packing.sizes import Sizes
from gravel.rotations import conjugate, multiply, rotate
from gravel.shapes import MESH, PLANE, Shape, Simple, Sphere

SHAPE = "a shape such as Sphere(0.01), the class Sphere with sizes=, or a Mixture"


class Part(NamedTuple):
    """One kind of body in a mixture."""

    shape: Any  # of one size: the template
    share: float  # of the volume of all bodies
    sizes: Sizes | None  # factors for the template; None: all bodies are as large as it

    def mean_volume(self):
        """m3, of a body."""
        return float(self.shape.volumes(1)[0]) * (1.0 if self.sizes is None else self.sizes.mean_volume())

    def draw(self, rng, n):
        """(n,) factors for the template."""
        return np.ones(n) if self.sizes is None else self.sizes.sample(rng, n)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Several kinds of bodies: ``items`` (shape, share) or (shape, share, sizes), the shares by volume of the bodies (by mass, where
    all have one density); they need not add up to 1. ``sizes`` as of ``pack``."""

    items: Sequence[tuple]
    parts: tuple[Part, ...] = field(init=False, repr=False)

    def __post_init__(self):
        if not isinstance(self.items, (list, tuple)) or not self.items:
            raise TypeError(f"Mixture items must be a list of (shape, share) or (shape, share, sizes), not {self.items!r:.80}")
        parts = []
        for k, item in enumerate(self.items):
            if not isinstance(item, (list, tuple)) or len(item) not in (2, 3):
                raise TypeError(f"Mixture items[{k}] must be (shape, share) or (shape, share, sizes), not {item!r:.80}")
            share = checks.number(f"Mixture items[{k}] share", item[1], above=0.0)
            parts.append(_part(f"Mixture items[{k}] shape", item[0], share, item[2] if len(item) == 3 else None))
        total = sum(part.share for part in parts)
        object.__setattr__(self, "parts", tuple(part._replace(share=part.share / total) for part in parts))


What = Shape | type[Sphere] | Mixture  # a shape of one size, the class Sphere with sizes, or a mixture


def parts_of(what: What, sizes: Sizes | None = None) -> tuple[Part, ...]:
    """The parts of what is packed: a shape, the class ``Sphere`` with sizes, or a mixture."""
    if isinstance(what, Mixture):
        if sizes is not None:
            raise ValueError("sizes must be given with the items of a Mixture, (shape, share, sizes), not beside it")
        return what.parts
    return (_part("what", what, 1.0, sizes),)


def _part(name, shape, share, sizes):
    if sizes is not None and not isinstance(sizes, Sizes):
        raise TypeError(f"sizes must be a distribution such as UniformSizes(0.01, 0.02), not {sizes!r:.80}")
    if shape is Sphere and sizes is not None:
        shape = Sphere(1.0)
    if isinstance(shape, type) or not hasattr(shape, "KIND"):
        raise TypeError(f"{name} must be {SHAPE}, not {shape!r:.80}")
    if shape.KIND in (PLANE, MESH):
        raise ValueError(
            f"{name} must be convex or made of convex shapes, not a {type(shape).__name__}: of a mesh, take ConvexHull or Clump.from_mesh"
        )
    if shape.count is not None:
        raise ValueError(f"{name} must have one size, but its {type(shape).__name__} holds {shape.count}; give a distribution with sizes=")
    return Part(shape, share, sizes)


def scaled(shape, factors):
    """A shape of one size at ``factors`` (N,): the shape of N bodies."""
    factors = np.asarray(factors, float)
    if not isinstance(shape, Simple):
        some = copy.copy(shape)
        object.__setattr__(some, "scale", float(shape.scale) * factors)
        return some
    sizes = [np.asarray(getattr(shape, entry.name)) for entry in fields(shape)]
    return type(shape)(*(np.multiply.outer(factors, size) for size in sizes))


def numbers_of(parts, count):
    """How many of ``count`` bodies belong to each part, so that the shares by volume hold as nearly as whole numbers can."""
    exact = number_shares(parts) * count
    numbers = np.floor(exact).astype(int)
    late = np.argsort(-(exact - numbers), kind="stable")[: count - numbers.sum()]
    numbers[late] += 1
    return numbers


def number_shares(parts):
    """Shares by number that follow from those by volume."""
    shares = np.array([part.share / part.mean_volume() for part in parts])
    return shares / shares.sum()


def factors_for_volume(part, volume, rng):
    """Factors of as many bodies as come nearest to a volume (m3)."""
    single = float(part.shape.volumes(1)[0])
    if part.sizes is None:
        return np.ones(int(np.rint(volume / single)))
    factors = np.empty(0)
    while single * np.sum(factors**3) < volume:
        missing = volume - single * np.sum(factors**3)
        factors = np.concatenate([factors, part.draw(rng, int(missing / part.mean_volume()) + 16)])
    filled = single * np.cumsum(factors**3)
    return factors[: int(np.argmin(np.abs(np.append(0.0, filled) - volume)))]


def random_turns(rng, n):
    """(n, 4) quaternions, every direction alike."""
    turns = rng.normal(size=(n, 4))
    return turns / np.linalg.norm(turns, axis=1, keepdims=True)


def as_given(shape, factors, centres, axes):
    """(positions, quaternions) of the coordinates in which a shape of one size is given, at ``factors``, from the centres of mass and
    the principal axes of its bodies: the other way round than ``Scene.add_bodies``."""
    if shape.mass_frame is None:
        return centres, axes
    centre, own = shape.mass_frame
    turns = multiply(axes, conjugate(own))
    return centres - rotate(turns, np.outer(factors * float(shape.scale), centre)), turns


def materials_for(parts, material):
    """One material for each part."""
    if not isinstance(material, (list, tuple)):
        return [Material() if material is None else material] * len(parts)
    if len(material) != len(parts):
        raise ValueError(f"material must be one Material, or one for each of the {len(parts)} parts, not {len(material)}")
    return list(material)
