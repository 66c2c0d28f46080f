"""``pack``: bodies at random in a region, without overlap, to a fraction of its volume or a number."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.model.materials import Material
from gravel.packing.blend import What, factors_for_volume, materials_for, number_shares, numbers_of, parts_of
from gravel.packing.grow import Kind, inner_radius, place_bodies
from gravel.packing.regions import BoxRegion, Region
from gravel.packing.relax import Space, place_balls
from gravel.packing.sizes import Sizes
from gravel.shapes import SPHERE, Shape

if TYPE_CHECKING:
    from gravel.scene import Scene
    from gravel.simulation import Simulation

BODY_BYTES = 500  # that a body takes while it is packed
KEPLER = np.pi / np.sqrt(18)  # share of space that equal balls have at most (Hales 2005)
BY_BODY = ("velocities", "angular_velocities", "masses", "inertias")  # options of add_bodies with a row for each body


class Group(NamedTuple):
    """Bodies of one kind of shape in a packing."""

    shape: Shape  # with a size for each of them
    rows: slice  # of the packing's arrays


@dataclass(frozen=True, eq=False, repr=False)
class Packing:
    """Bodies in a region: what ``pack`` returns. ``add_to`` puts them into a scene or a simulation.

    - ``positions`` (N, 3) m, of the coordinates in which the shapes are given
    - ``quaternions`` (N, 4) w x y z
    - ``radii`` (N,) m: of balls; of other shapes, of the balls about their centres of mass that hold them
    - ``groups``: one for a shape, one for each item of a Mixture
    - ``fraction``: share of the region's volume that the bodies have
    - ``overlap`` m, the deepest that is left; 0 of balls
    - ``periodic``: as given
    """

    positions: np.ndarray
    quaternions: np.ndarray
    radii: np.ndarray
    groups: tuple[Group, ...]
    region: Region
    fraction: float
    overlap: float
    periodic: tuple | None

    def __len__(self) -> int:
        return len(self.positions)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{group.rows.stop - group.rows.start} {type(group.shape).__name__}" for group in self.groups)
        radii = f"radii {self.radii.min():.3g} to {self.radii.max():.3g} m, " if len(self) else ""
        return f"Packing({kinds}; {radii}fraction {self.fraction:.4f} of a {type(self.region).__name__})"

    @property
    def volumes(self) -> np.ndarray:
        """(N,) m3, of each body."""
        parts = [group.shape.volumes(group.rows.stop - group.rows.start) for group in self.groups]
        return np.concatenate([np.empty(0), *parts])

    def add_to(
        self, scene_or_sim: "Scene | Simulation", material: Material | Sequence[Material] | None = None, **options: Any
    ) -> np.ndarray:
        """Add the bodies to a ``Scene`` or a ``Simulation``; returns their ids (N,), in the order of ``positions``.

        ``material``: one, or a list with one for each item of a Mixture. ``options`` go to ``add_bodies``; velocities,
        angular_velocities, masses and inertias have a row for each body, and ``name`` is that of all."""
        if not hasattr(scene_or_sim, "add_bodies"):
            raise TypeError(f"scene_or_sim must be a Scene or a Simulation, not {scene_or_sim!r:.80}")
        if "quaternions" in options or "positions" in options:
            raise ValueError("positions and quaternions are the packing's own: they cannot be given to add_to")
        for name in BY_BODY:
            if options.get(name) is not None and len(np.atleast_1d(options[name])) != len(self):
                raise ValueError(f"{name} must have a row for each of the {len(self)} bodies, not {len(np.atleast_1d(options[name]))}")
        names, name = scene_or_sim.body_names, options.pop("name", None)
        if name is not None:
            names.check(name)
            if options.get("local"):
                raise ValueError("name cannot be given to a packing with local=True: its groups are not side by side then")
        ids = [np.empty(0, np.int64)]
        for group, own in zip(self.groups, materials_for(self.groups, material)):
            some = {name: _rows_of(name, value, group.rows) for name, value in options.items()}
            places, some["quaternions"] = self.positions[group.rows], self.quaternions[group.rows]
            ids.append(scene_or_sim.add_bodies(group.shape, places, own, **some))
        whole = np.concatenate(ids)
        if name is not None:
            names.add(name, range(int(whole[0]), int(whole[-1]) + 1) if len(whole) else range(0))
        return whole


def _rows_of(name, value, rows):
    return np.asarray(value)[rows] if name in BY_BODY and value is not None else value


def pack(
    what: What,
    region: Region,
    *,
    fraction: float | None = None,
    count: int | None = None,
    sizes: Sizes | None = None,
    gap: float = 0.0,
    periodic: Sequence[ArrayLike | None] | None = None,
    seed: int = 0,
) -> Packing:
    """Bodies at random in a region, wholly inside and without overlap.

    ``what``: a shape of one size, the class ``Sphere`` with ``sizes``, or a ``Mixture``. ``fraction`` of the region's volume that they
    shall have (the nearest that whole bodies allow), or ``count``. ``sizes``: radii of balls (m) with ``what=Sphere``, factors for any
    other shape. ``gap`` m that bodies keep between each other, at least, and half of it to the walls. ``periodic``: pairs (low, high)
    for each axis of a BoxRegion that is periodic, None for the others, as of ``Scene``; bodies reach through those sides.
    ``seed``: the same seed, the same packing.

    Balls are dropped one by one up to a fraction of 0.28, and pressed and shaken into place above; equal ones reach 0.60 in a box 15
    diameters wide, and 0.63 where it is periodic. Bodies of other shapes grow in the engine. A fraction that is not reached is an
    error that says what was.

    >>> pack(Sphere(0.01), BoxRegion((0, 0, 0), (0.2, 0.2, 0.2)), fraction=0.3).add_to(scene)
    """
    parts = parts_of(what, sizes)
    if not isinstance(region, Region):
        raise TypeError(f"region must be a region such as BoxRegion(low, high), not {region!r:.80}")
    if (fraction is None) == (count is None):
        raise ValueError(f"exactly one of fraction and count must be given, not fraction={fraction!r} and count={count!r}")
    gap = checks.number("gap", gap, minimum=0.0)
    space = Space(region, _periodic_axes(region, periodic))
    rng = np.random.default_rng(checks.count("seed", seed))
    if count is None:
        fraction = checks.number("fraction", fraction, above=0.0, maximum=1.0)
        if fraction > KEPLER and all(part.shape.KIND == SPHERE and part.sizes is None for part in parts) and _one_size(parts):
            raise ValueError(f"fraction must be at most {KEPLER:.4f} of equal balls, and about 0.63 at random, not {fraction:g}")
        expected = float(np.sum([part.share / part.mean_volume() for part in parts])) * fraction * region.volume
        _check_memory("fraction", expected, f"{fraction / expected * most_bodies():.3g}" if expected else "")
        factors = [factors_for_volume(part, part.share * fraction * region.volume, rng) for part in parts]
    else:
        count = checks.count("count", count, minimum=1)
        needed = float(np.dot(number_shares(parts), [part.mean_volume() for part in parts])) * count
        if needed > 2 * region.volume:  # known before sizes are drawn, of which there may be more than memory holds
            room = f"a region of {region.volume:.3g} m3"
            raise ValueError(f"count must fit: {count} bodies of about {needed:.3g} m3 cannot be packed into {room}")
        _check_memory("count", count, str(most_bodies()))
        factors = [part.draw(rng, n) for part, n in zip(parts, numbers_of(parts, count))]
    kinds = [Kind(part.shape, own) for part, own in zip(parts, factors)]
    return _packing(kinds, space, gap, rng, periodic)


def most_bodies() -> int:
    """How many bodies the memory of this machine holds while they are packed."""
    pages = os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 2**24  # elsewhere: 64 GB
    return pages * (os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096) // BODY_BYTES


def _check_memory(name, bodies, possible):
    if bodies > (most := most_bodies()):
        memory = f"which take {bodies * BODY_BYTES / 1e9:.3g} GB; this machine has {most * BODY_BYTES / 1e9:.3g}"
        raise ValueError(f"{name} must be at most {possible} here, for it asks for {bodies:.3g} bodies, {memory}")


def _one_size(parts):
    return len({float(part.shape.bounding_radii(1)[0]) for part in parts}) == 1


def _packing(kinds, space, gap, rng, periodic):
    region = space.region
    shapes = [kind.at(1.0) for kind in kinds]
    radii = np.concatenate([kind.radii() for kind in kinds])
    volume = float(sum(np.sum(shape.volumes(len(kind.factors))) for shape, kind in zip(shapes, kinds)))
    fraction = volume / region.volume
    if not len(radii):
        raise ValueError(f"fraction must be large enough for one body: the region of {region.volume:.3g} m3 gets none")
    if fraction > 1.0:
        raise ValueError(f"{len(radii)} bodies of {volume:.3g} m3 cannot be packed into a region of {region.volume:.3g} m3")
    _check_room(kinds, radii, space, gap)
    if all(kind.shape.KIND == SPHERE for kind in kinds):
        positions, share = place_balls(space, radii + 0.5 * gap, rng)
        share = ((radii + 0.5 * gap) * share - 0.5 * gap).clip(0).max() / radii.max() if share < 1 else 1.0
        quaternions, overlap = np.tile((1.0, 0.0, 0.0, 0.0), (len(radii), 1)), 0.0
    else:
        positions, quaternions, share, overlap = place_bodies(space, kinds, gap, rng)
    if share < 1.0:
        raise ValueError(
            f"a fraction of {fraction:.4g} ({len(radii)} bodies) was not reached without overlap: these bodies fitted at a fraction of "
            f"{fraction * share**3:.3f}; ask for less (or fewer bodies), a smaller gap, a larger region, or a wider spread of sizes"
        )
    ends = np.cumsum([len(kind.factors) for kind in kinds])
    groups = tuple(Group(shape, slice(int(end - len(kind.factors)), int(end))) for shape, kind, end in zip(shapes, kinds, ends))
    return Packing(positions, quaternions, radii, groups, region, fraction, overlap, periodic)


def _check_room(kinds, radii, space, gap):
    """Refuse bodies that the region, or a periodic axis, is too small for."""
    low, high = space.region.bounds
    for axis in np.flatnonzero(space.periodic):
        needed = 2 * gap + (4.0 if all(kind.shape.KIND == SPHERE for kind in kinds) else 5.0) * radii.max()
        if high[axis] - low[axis] < needed:
            raise ValueError(
                f"region must be at least two bodies wide along the periodic axis {'xyz'[axis]}, {needed:.3g} m for the largest, not "
                f"{high[axis] - low[axis]:.3g} m"
            )
    inner = max(float(kind.factors.max(initial=0.0)) * inner_radius(kind.shape) for kind in kinds)
    width = 0.5 * np.min(np.where(space.periodic, np.inf, high - low)) if space.periodic.any() else space.region.inradius
    if inner + 0.5 * gap > width * (1 + 1e-9):
        raise ValueError(f"region must hold the largest body, which needs a radius of {inner + 0.5 * gap:.3g} m, but has {width:.3g} m")


def _periodic_axes(region, periodic):
    """(3,) which axes are periodic."""
    if periodic is None:
        return np.zeros(3, bool)
    if not isinstance(periodic, (tuple, list)) or len(periodic) != 3:
        raise TypeError(f"periodic must be None or three entries, (low, high) or None for each axis, not {periodic!r:.80}")
    axes = np.array([pair is not None for pair in periodic])
    if axes.any() and not isinstance(region, BoxRegion):
        raise ValueError(f"periodic must be None for a {type(region).__name__}: only a BoxRegion can be periodic")
    for axis in np.flatnonzero(axes):
        pair = checks.array(f"periodic[{axis}]", periodic[axis], (2,))
        own = region.low[axis], region.high[axis]
        if not np.allclose(pair, own, rtol=0, atol=1e-12 * max(abs(own[0]), abs(own[1]))):
            raise ValueError(f"periodic[{axis}] must be the region's own ends {tuple(map(float, own))}, not {tuple(pair.tolist())}")
    return axes
