"""Where to measure: everywhere, in a box ``(low, high)``, or in any object with ``contains(points)`` and ``volume`` (m3)."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.measures.units import NothingToMeasure


class Space(Protocol):
    """Any object that knows what is inside it, such as ``gravel.BoxRegion``."""

    @property
    def volume(self) -> float:
        """m3."""

    def contains(self, points: np.ndarray) -> np.ndarray:
        """(n,) which of the points (n, 3) m are inside."""


Where = Space | ArrayLike | None  # a region, the corners (low, high) of a box in m, or everywhere


class Region(NamedTuple):
    """A region as measures see it. ``box``: (2, 3) its corners, if it is a box along the axes."""

    shape: Any  # with contains and volume; None: everywhere
    volume: float  # m3
    box: np.ndarray | None

    def contains(self, points: np.ndarray) -> np.ndarray:
        """(n,) which of the points (n, 3) are inside; a box holds its lower faces and not its upper ones, so that boxes can be tiled."""
        if self.box is not None:
            return ((points >= self.box[0]) & (points < self.box[1])).all(axis=1)
        if self.shape is None:
            return np.ones(len(points), bool)
        inside = np.asarray(self.shape.contains(points))
        if inside.shape != (len(points),):
            raise ValueError(f"region.contains must give one truth value for each of {len(points)} points, not the shape {inside.shape}")
        return inside.astype(bool)


def region_of(region: Any, snapshot: Any) -> Region:
    """The region that a user means; None: all bodies, in the periodic cell, or in the box around them along its open axes."""
    if region is None:
        return Region(None, everywhere(snapshot), None)
    if not hasattr(region, "contains"):
        box = _corners(region)
        return Region(None, float(np.prod(box[1] - box[0])), box)
    volume = checks.number("region.volume", region.volume, above=0.0)
    corners = [np.asarray(getattr(region, name, ())) for name in ("low", "high")]
    if all(corner.shape == (3,) for corner in corners):
        box = np.array(corners, float)
        if np.isclose(np.prod(box[1] - box[0]), volume, rtol=1e-9, atol=0.0):  # a box, not something within one
            return Region(region, volume, box)
    return Region(region, volume, None)


def _corners(region):
    try:
        low, high = region
    except (TypeError, ValueError):
        raise TypeError(f"region must be None, (low, high) or an object with contains and volume, not {region!r:.80}") from None
    box = np.array([checks.array("low corner of region", low, (3,)), checks.array("high corner of region", high, (3,))])
    if (box[0] >= box[1]).any():
        raise ValueError(f"region must be (low, high) with low < high, not {box[0].tolist()} and {box[1].tolist()}")
    return box


def everywhere(snapshot) -> float:
    """m3: the periodic cell, or along open axes the length that the bodies take."""
    need_bodies(snapshot, np.ones(len(snapshot), bool))
    radii = snapshot.radii[:, None]
    lengths = (snapshot.positions + radii).max(axis=0) - (snapshot.positions - radii).min(axis=0)
    if snapshot.cell is not None:
        cell = np.asarray(snapshot.cell.lengths, float)
        lengths = np.where(np.isfinite(cell), cell, lengths)
    return float(np.prod(lengths))


def need_bodies(snapshot, chosen) -> None:
    """Refuse a measure of nothing."""
    if not chosen.any():
        raise NothingToMeasure(f"the region must hold bodies that can move, but it holds none at t = {snapshot.time:g} s")
