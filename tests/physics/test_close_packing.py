"""Frictionless spheres, pressed until they are jammed: fraction and contacts of random close packing.

The literature's 0.64 (Berryman 1983; Scott and Kilgour 1969: 0.6366) and 6 contacts (isostatic: as many contacts as directions in which
the spheres can move; O'Hern et al. 2003) hold for infinitely many; a few hundred spread by about a hundredth around them.
"""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from gravel.bench.packing import RADIUS, Jammed, jammed


def close_pairs(simulation, share):
    """Distances of the pairs whose surfaces are nearer than a share of a diameter, by positions alone."""
    side, places = simulation.cell.lengths, simulation.cell.wrap(simulation.positions) - simulation.cell.low
    tree = cKDTree(np.where(places >= side, 0.0, places), boxsize=side)
    pairs = tree.query_pairs(2 * RADIUS * (1 + share), output_type="ndarray")
    apart = places[pairs[:, 0]] - places[pairs[:, 1]]
    return np.linalg.norm(apart - side * np.round(apart / side), axis=1)


def check(result: Jammed, fractions, contacts):
    simulation = result.simulation
    assert fractions[0] <= result.fraction <= fractions[1]
    assert contacts[0] <= result.contacts <= contacts[1]
    assert simulation.count * 4 / 3 * np.pi * RADIUS**3 / np.prod(simulation.cell.lengths) == pytest.approx(result.fraction, rel=1e-4)
    distances = close_pairs(simulation, 1e-3)
    assert distances.min() > 2 * RADIUS * (1 - 1e-3)
    assert result.contacts_of_all - 0.1 < 2 * len(distances) / simulation.count < contacts[1] + 0.3  # and those that are only near


@pytest.mark.slow
def test_a_few_hundred_jam_near_random_close_packing():
    check(jammed(300, 1), (0.60, 0.65), (5.8, 6.2))


@pytest.mark.slow
def test_ten_thousand_jam_at_random_close_packing():
    check(jammed(10000, 0), (0.62, 0.645), (5.9, 6.1))
