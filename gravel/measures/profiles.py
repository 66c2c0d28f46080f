"""How measures change along an axis: packing, coordination and velocity in slabs, which lie side by side in a box around the bodies."""

from typing import NamedTuple

import numpy as np

from gravel import checks
from gravel.measures.packing import packing_fraction
from gravel.measures.regions import Where, need_bodies, region_of
from gravel.measures.snapshot import Source, snapshot_of
from gravel.measures.structure import coordination
from gravel.measures.units import measured_in

AXES = "xyz"
STRAYED = 0.005  # of the bodies on each side, which the box around them leaves out
FEW = 200  # of so many bodies none counts as strayed


class Slabs(NamedTuple):
    """Boxes side by side along an axis."""

    axis: int  # 0, 1, 2: x, y, z
    edges: np.ndarray  # (slabs + 1,) m
    low: np.ndarray  # (3,) m, corners of them all
    high: np.ndarray

    @property
    def middles(self) -> np.ndarray:
        """(slabs,) m."""
        return 0.5 * (self.edges[1:] + self.edges[:-1])

    def boxes(self):
        """The slabs as regions (low, high)."""
        for lower, upper in zip(self.edges[:-1], self.edges[1:]):
            low, high = self.low.copy(), self.high.copy()
            low[self.axis], high[self.axis] = lower, upper
            yield low, high


def slabs(source: Source, axis: str = "z", bins: int = 20, region: Where = None) -> Slabs:
    """So many slabs across an axis ("x", "y" or "z") of a box ``region`` = (low, high); by default of the periodic cell, and along open
    axes of the box around the bodies, without the 0.5 % of them that are farthest out on each side (of more than 200)."""
    snapshot = snapshot_of(source)
    along = AXES.index(checks.choice("axis", axis, tuple(AXES)))
    bins = checks.count("bins", bins, minimum=1)
    if region is not None:
        box = region_of(region, snapshot).box
        if box is None:
            raise ValueError(f"region of slabs must be a box (low, high), not {region!r:.80}")
        low, high = box
    else:
        low, high = _around(snapshot)
    return Slabs(along, np.linspace(low[along], high[along], bins + 1), low, high)


def _around(snapshot):
    need_bodies(snapshot, np.ones(len(snapshot), bool))
    places, radii = snapshot.wrapped(snapshot.positions), snapshot.radii[:, None]
    strayed = STRAYED if len(places) > FEW else 0.0
    low, high = np.quantile(places - radii, strayed, axis=0), np.quantile(places + radii, 1 - strayed, axis=0)
    if snapshot.cell is not None:
        low = np.where(snapshot.cell.periodic, snapshot.cell.low, low)
        high = np.where(snapshot.cell.periodic, snapshot.cell.high, high)
    return low, high


@measured_in("1")
def packing_profile(source: Source, axis: str = "z", bins: int = 20, region: Where = None) -> tuple[Slabs, np.ndarray]:
    """The slabs, and the ``packing_fraction`` of each (bins,)."""
    snapshot = snapshot_of(source)
    places = slabs(snapshot, axis, bins, region)
    return places, np.array([packing_fraction(snapshot, box) for box in places.boxes()])


@measured_in("1")
def coordination_profile(source: Source, axis: str = "z", bins: int = 20, region: Where = None) -> tuple[Slabs, np.ndarray]:
    """The slabs, and the ``coordination`` of the bodies whose centres are in each (bins,); NaN where there are none."""
    snapshot = snapshot_of(source)
    places = slabs(snapshot, axis, bins, region)
    inside = _filled(snapshot, places)
    return places, np.array([coordination(snapshot, box) if filled else np.nan for box, filled in zip(places.boxes(), inside)])


@measured_in("m/s")
def velocity_profile(source: Source, axis: str = "z", bins: int = 20, region: Where = None) -> tuple[Slabs, np.ndarray]:
    """The slabs, and the mean velocity by mass of the bodies whose centres are in each, (bins, 3) m/s; NaN where there are none."""
    snapshot = snapshot_of(source)
    places = slabs(snapshot, axis, bins, region)
    means = np.full((len(places.middles), 3), np.nan)
    centres = snapshot.wrapped(snapshot.positions)
    for k, box in enumerate(places.boxes()):
        chosen = region_of(box, snapshot).contains(centres)
        if chosen.any():
            means[k] = np.average(snapshot.velocities[chosen], axis=0, weights=snapshot.masses[chosen])
    return places, means


def _filled(snapshot, places):
    """(bins,) whether a slab holds the centre of a body."""
    centres = snapshot.wrapped(snapshot.positions)
    return [region_of(box, snapshot).contains(centres).any() for box in places.boxes()]
