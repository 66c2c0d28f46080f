"""How two kinds of grains are mixed: Lacey's index, and the share of one kind along an axis."""

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.measures.profiles import Slabs, slabs
from gravel.measures.regions import Where, need_bodies, region_of
from gravel.measures.snapshot import Source, snapshot_of
from gravel.measures.units import DoesNotFit, measured_in

EDGE = 5.0  # mean diameters: edge of the cells that samples are taken from


@measured_in("1")
def mixing_index(source: Source, kind: str | ArrayLike, cell: float | None = None, fewest: int = 5, region: Where = None) -> float:
    r"""Lacey's mixing index (Lacey 1954): $M = (\sigma_0^2 - \sigma^2) / (\sigma_0^2 - \sigma_r^2)$, 0 where the kinds are apart, about 1
    where they are mixed at random.

    ``kind``: the name or the ids of the bodies of one of the two kinds; p is their share by number. Space is cut into cubes of edge
    ``cell`` m (None: five mean diameters); each that holds at least ``fewest`` bodies is a sample. $\sigma^2$ is the variance of the share
    in the samples, each weighted with its number of bodies, $\sigma_0^2 = p (1 - p)$ that of kinds apart, and
    $\sigma_r^2 = p (1 - p) / n$ that of a random mixture in samples of n bodies, their mean number."""
    snapshot = snapshot_of(source)
    of_kind, inside = _of_kind(snapshot, kind, region)
    cell = EDGE * 2 * float(snapshot.radii[inside].mean()) if cell is None else checks.number("cell", cell, above=0.0)
    fewest = checks.count("fewest", fewest, minimum=2)
    places = np.floor(snapshot.wrapped(snapshot.positions)[inside] / cell).astype(np.int64)
    _, sample, number = np.unique(places, axis=0, return_inverse=True, return_counts=True)
    chosen = number >= fewest
    if np.count_nonzero(chosen) < 2:
        raise DoesNotFit(f"mixing_index needs at least two cells of {cell:g} m with {fewest} bodies, not {np.count_nonzero(chosen)}")
    share = np.bincount(sample.reshape(-1), of_kind[inside])[chosen] / number[chosen]
    number = number[chosen]
    p = float(number @ share / number.sum())
    if not 0.0 < p < 1.0:
        raise DoesNotFit(f"kind must be some of the bodies, not {'all' if p else 'none'} of those in the cells")
    apart = p * (1 - p)
    variance, random = float(number @ (share - p) ** 2 / number.sum()), apart / float(number.mean())
    return (apart - variance) / (apart - random)


@measured_in("1")
def segregation_profile(
    source: Source, kind: str | ArrayLike, axis: str = "z", bins: int = 20, region: Where = None
) -> tuple[Slabs, np.ndarray]:
    r"""The slabs, and the share by mass of one kind in each (bins,), the concentration $\phi$ of theories of segregation (Gray and
    Thornton 2005): $\phi = \sum_{kind} m / \sum m$ over the bodies whose centres are in the slab; NaN where there are none.

    ``kind``: the name or the ids of the bodies of that kind."""
    snapshot = snapshot_of(source)
    of_kind, inside = _of_kind(snapshot, kind, region)
    places = slabs(snapshot, axis, bins, region)
    height = snapshot.wrapped(snapshot.positions)[:, places.axis]
    number = np.clip(np.searchsorted(places.edges, height, side="right") - 1, 0, bins - 1)
    inside = inside & (height >= places.edges[0]) & (height <= places.edges[-1])
    masses = snapshot.masses[inside]
    total = np.bincount(number[inside], masses, bins)
    own = np.bincount(number[inside], masses * of_kind[inside], bins)
    return places, np.divide(own, total, out=np.full(bins, np.nan), where=total > 0)


def _of_kind(snapshot, kind, region):
    """(n,) which bodies are of a kind, and which are in the region."""
    ids = np.unique(snapshot.ids_of("kind", kind))
    if not len(ids):
        raise ValueError("kind must be a name or ids of bodies, not none")
    inside = np.ones(len(snapshot), bool)
    if region is not None:
        inside = region_of(region, snapshot).contains(snapshot.wrapped(snapshot.positions))
    need_bodies(snapshot, inside)
    return np.isin(snapshot.ids, ids), inside
