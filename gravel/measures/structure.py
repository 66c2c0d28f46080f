"""Who touches whom, and how hard: coordination, fabric, the distribution of forces."""

from typing import NamedTuple

import numpy as np

from gravel import checks
from gravel.measures.regions import Where, need_bodies, region_of
from gravel.measures.snapshot import Source, snapshot_of
from gravel.measures.units import NothingToMeasure, measured_in

CARRIES = 1e-6  # of the mean force: contacts with less are gaps that a solver has not closed to the last digit
STABLE = 4  # contacts that hold a body in space with friction: one more than dimensions


@measured_in("1")
def coordination(source: Source, region: Where = None, rattlers: bool = True) -> float:
    """Mean number of bodies that a body touches, z = sum_p z_p / N: partners with a contact that carries force, walls included, each
    once however many points they touch at. Over the bodies whose centres are in the region.

    ``rattlers`` False leaves out the bodies with fewer than 4 partners, and then those that have too few without them, again and
    again; 0 if none are left."""
    snapshot = snapshot_of(source)
    chosen = region_of(region, snapshot).contains(snapshot.wrapped(snapshot.positions))
    need_bodies(snapshot, chosen)
    a, b = _partners(snapshot)
    stays = np.ones(len(snapshot) + 1, bool)  # the last one stands for all that is fixed (row -1)
    while True:
        holds = stays[a] & stays[b]
        number = np.bincount(np.concatenate([a[holds], b[holds]]) + 1, minlength=len(snapshot) + 1)[1:]
        loose = stays[:-1] & (number < STABLE)
        if rattlers or not loose.any():
            break
        stays[:-1] &= ~loose
    counted = chosen & stays[:-1]
    return float(number[counted].mean()) if counted.any() else 0.0


@measured_in("1", (3, 3))
def fabric(source: Source, region: Where = None) -> np.ndarray:
    """(3, 3) fabric tensor F = 1/N sum_c n n of the contact normals n of the N contacts that carry force, with points in the region.
    Its trace is 1; one third of the unit tensor where directions are spread evenly."""
    snapshot = snapshot_of(source)
    table = snapshot.contacts
    table = table[carrying(table) & region_of(region, snapshot).contains(snapshot.wrapped(table.point))]
    if not len(table):
        raise NothingToMeasure(f"the region must hold contacts that carry force, but it holds none at t = {snapshot.time:g} s")
    return np.einsum("ci,cj->ij", table.normal, table.normal) / len(table)


class ForceDistribution(NamedTuple):
    """The share of normal forces in each bin, per width of the bin, so that its integral is 1 (if the bins hold all forces)."""

    edges: np.ndarray  # (bins + 1,) normal force over the mean
    density: np.ndarray  # (bins,)
    mean: float  # N


def force_distribution(source: Source, bins: int | np.ndarray = 20, region: Where = None) -> ForceDistribution:
    """Probability density of the normal force over its mean, f / <f>, of the contacts that push, with points in the region.
    ``bins``: their number, up to the largest force, or their edges (bins + 1,), in f / <f>; see ``ForceDistribution``."""
    snapshot = snapshot_of(source)
    bins = checks.count("bins", bins, minimum=1) if np.ndim(bins) == 0 else checks.array("bins", bins, (None,))
    force = normal_forces(snapshot, region)
    mean = float(force.mean())
    count, edges = np.histogram(force / mean, bins, None if np.ndim(bins) else (0.0, float(force.max()) / mean))
    return ForceDistribution(edges, count / (len(force) * np.diff(edges)), mean)


def normal_forces(source: Source, region: Where = None) -> np.ndarray:
    """(n,) N: the normal forces, mean over the last step, of the contacts that push, with points in the region."""
    snapshot = snapshot_of(source)
    table = snapshot.contacts
    inside = region_of(region, snapshot).contains(snapshot.wrapped(table.point))
    force = np.einsum("ci,ci->c", table.normal, table.impulse)[inside] / snapshot.dt
    force = force[force > CARRIES * force.mean()] if len(force) else force
    if not len(force):
        raise NothingToMeasure(f"the region must hold contacts that push, but it holds none at t = {snapshot.time:g} s")
    return force


def carrying(table) -> np.ndarray:
    """(n,) contacts that carry force."""
    strength = np.linalg.norm(table.impulse, axis=1)
    return strength > CARRIES * strength.mean() if len(strength) else np.zeros(0, bool)


def _partners(snapshot):
    """Rows of the two bodies of each pair that touches; -1: fixed."""
    table = snapshot.contacts
    table = table[carrying(table)]
    new = np.ones(len(table), bool)
    new[1:] = (np.diff(table.body_a) != 0) | (np.diff(table.body_b) != 0)  # the table is sorted by pairs
    return snapshot.rows(table.body_a[new]), snapshot.rows(table.body_b[new])
