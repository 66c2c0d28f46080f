"""Columns of grains: the start that two codes share, and what is measured of a deposit."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from gravel.validation.column_start import FRACTION, GRAINS, RADIUS, RATIOS, column_start, deposit, reference


@pytest.mark.parametrize("ratio", RATIOS)
def test_a_column_stands_on_its_floor_and_nothing_overlaps(ratio):
    start = column_start(ratio)
    places, radii = np.vstack([start.places, start.floor]), np.append(start.radii, np.full(len(start.floor), RADIUS))
    a, b = cKDTree(places).query_pairs(2.2 * RADIUS, output_type="ndarray").T
    moving = (a < len(start.places)) | (b < len(start.places))
    gaps = (np.linalg.norm(places[a] - places[b], axis=1) - radii[a] - radii[b])[moving]
    assert gaps.min() > 0
    assert len(start.places) >= GRAINS and start.height == pytest.approx(ratio * start.radius)
    volume = np.sum(4 / 3 * np.pi * start.radii**3)
    assert volume == pytest.approx(FRACTION * np.pi * start.radius**2 * start.height, rel=0.02)


def test_the_reference_is_of_these_starts():
    known = reference()
    assert {float(name) for name in known} == set(RATIOS)
    assert all(known[f"{ratio:g}"]["grains"] == len(column_start(ratio).places) for ratio in RATIOS)


def test_lengths_of_a_deposit_whose_shape_is_known():
    """A cone of grains at random, as dense as the packing: of base A and height H, it is thinner than t beyond A (1 - t / H)."""
    column, rng = column_start(1.0), np.random.default_rng(3)
    base, height = 2 * column.radius, 0.5 * column.radius
    count = round(FRACTION * np.pi * base**2 * height / 3 / (4 / 3 * np.pi * RADIUS**3))
    tip = np.cbrt(rng.uniform(size=count))  # distance from the tip's level, of the height
    distance, angle = base * tip * np.sqrt(rng.uniform(size=count)), rng.uniform(0, 2 * np.pi, count)
    places = np.column_stack([distance * np.cos(angle), distance * np.sin(angle), height * (1 - tip)])
    found = deposit(places, np.full(count, RADIUS), column)
    for name, least in (("one_diameter", 2 * RADIUS), ("half_diameter", RADIUS)):
        assert found[name] * column.radius == pytest.approx(base * (1 - least / height), rel=0.05)
    shares = np.linspace(0, 1, 2001)
    within = 3 * shares**2 - 2 * shares**3  # of a cone's volume, by the distance from its axis
    assert found["holds_95"] * column.radius == pytest.approx(base * shares[np.searchsorted(within, 0.95)], rel=0.02)
    assert found["height"] * column.radius == pytest.approx(height + RADIUS, rel=0.1)
