"""Stress, from the forces at contacts and from the motion of bodies."""

import numpy as np

from gravel.measures.regions import Where, need_bodies, region_of
from gravel.measures.snapshot import Snapshot, Source, snapshot_of
from gravel.measures.units import measured_in


@measured_in("Pa", (3, 3))
def stress(source: Source, region: Where = None, kinetic: bool = True) -> np.ndarray:
    """(3, 3) Pa, mean stress in a region, compression positive:

        sigma_ij = 1/V sum_p [ - sum_c f_i (x_c - x_p)_j + m v'_i v'_j ],    v' = v - mean velocity (by mass)

    over the bodies p whose centres x_p are inside (the form of single bodies, after Christoffersen and Weber): each contact c of p
    acts with the force f (N, mean over the last step) on it at x_c. Two bodies inside share their branch vector at the contact
    point; of a contact with a wall, the part from the centre to the point counts. V is the region's volume, m3; by default that of
    the periodic cell, or of the box around the bodies. ``kinetic`` False leaves out the second term. Forces of joints are not part
    of it. Bodies at the edge of a region count whole or not at all: take regions of many bodies."""
    snapshot = snapshot_of(source)
    where = region_of(region, snapshot)
    chosen = where.contains(snapshot.wrapped(snapshot.positions))
    need_bodies(snapshot, chosen)
    total = contact_moments(snapshot)[chosen].sum(axis=0)
    if kinetic:
        total += kinetic_moments(snapshot, chosen).sum(axis=0)
    return total / where.volume


def contact_moments(snapshot: Snapshot) -> np.ndarray:
    """(n, 3, 3) J: - sum_c f (x_c - x_p) of each body, with its centre where it was when contacts were found."""
    table = snapshot.contacts
    centres = snapshot.positions - snapshot.contact_lag * snapshot.velocities
    moments = np.zeros((len(snapshot), 3, 3))
    for ids, sign in ((table.body_a, -1.0), (table.body_b, 1.0)):
        rows = snapshot.rows(ids)
        here = rows >= 0
        force = sign * table.impulse[here] / snapshot.dt
        arm = snapshot.arms(table.point[here] - centres[rows[here]])
        np.add.at(moments, rows[here], -force[:, :, None] * arm[:, None, :])
    return moments


def kinetic_moments(snapshot: Snapshot, chosen: np.ndarray) -> np.ndarray:
    """(k, 3, 3) J: m v' v' of the chosen bodies, relative to their mean velocity."""
    masses, velocities = snapshot.masses[chosen], snapshot.velocities[chosen]
    relative = velocities - np.average(velocities, axis=0, weights=masses)
    return masses[:, None, None] * relative[:, :, None] * relative[:, None, :]
