"""What the references of cases are made from: starts that do not overlap, data of these starts, and an event-driven gas that is right."""

import numpy as np
import pytest
from make_cooling_reference import cool, impact
from scipy.spatial import cKDTree

from gravel.validation import cooling_start, drum, shear


def least_gap(places, radii, side=None):
    """Between any two balls; ``side`` of a periodic cube."""
    pairs = cKDTree(places % side if side else places, boxsize=side).query_pairs(2.5 * radii.max(), output_type="ndarray")
    apart = places[pairs[:, 0]] - places[pairs[:, 1]]
    if side:
        apart -= side * np.round(apart / side)
    return np.min(np.linalg.norm(apart, axis=1) - radii[pairs].sum(axis=1))


def test_starts_do_not_overlap():
    places, velocities = cooling_start.gas_start(0)
    assert least_gap(places, np.full(len(places), cooling_start.RADIUS), cooling_start.SIDE) > 0
    assert np.mean(velocities**2) == pytest.approx(cooling_start.SPEED**2) and np.abs(velocities.mean(axis=0)).max() < 1e-12
    places, radii, lengths = shear.start()
    assert least_gap(places, radii, lengths[0]) > 0 and len(places) == shear.COUNT**3
    places, radii = drum.start()
    assert least_gap(places, radii) > 0 and len(places) == drum.GRAINS
    assert np.max(np.hypot(places[:, 0], places[:, 2]) + radii) < drum.DRUM and np.max(np.abs(places[:, 1]) + radii) < drum.WIDTH / 2


def test_references_have_what_cases_ask_for():
    assert set(shear.reference()) == {f"{number:g}" for number in shear.NUMBERS}
    assert set(drum.reference()) == {f"{froude:g}" for froude in drum.FROUDES}
    known = cooling_start.reference()
    assert all(len(known[name]) == len(cooling_start.TIMES) for name in ("translation", "rotation", "translation_scatter"))
    assert all(abs(found["stress"] / shear.STRESS - 1) < 0.01 for found in shear.reference().values())


@pytest.mark.parametrize("speed", [0.5, 8.0])  # surfaces come to rest; they slip all through
def test_an_impact_of_the_event_driven_gas(speed, e=0.9, mu=0.5, radius=0.03):
    """Newton's law along the normal; Coulomb's across it, where 2/7 of the slip is what half a mass each can take (Walton 1993)."""
    x = np.array([[0.0, 0, 0], [2 * radius, 0, 0]])
    v, w = np.array([[1.0, speed, 0], [-1.0, 0, 0]]), np.array([[0, 0, 3.0], [0, 0, -1.0]])
    slip = (v[1] - v[0] - radius * np.cross(w.sum(axis=0), (1, 0, 0)))[1]
    momentum, spin = v.sum(axis=0), np.cross(x, v).sum(axis=0) + 0.4 * radius**2 * w.sum(axis=0)
    impact(x, v, w, 0, 1, radius, 1.0, e, mu)
    after = v[1] - v[0] - radius * np.cross(w.sum(axis=0), (1, 0, 0))
    assert after[0] == pytest.approx(2 * e)
    assert after[1] == pytest.approx(np.sign(slip) * max(0.0, abs(slip) - 7 * mu * (1 + e)), abs=1e-12)
    assert v.sum(axis=0) == pytest.approx(momentum) and np.cross(x, v).sum(axis=0) + 0.4 * radius**2 * w.sum(axis=0) == pytest.approx(spin)


def test_the_event_driven_gas_follows_haff_without_friction(e=0.9):
    """T = T0 / (1 + t / tau)^2 with 1 / tau = (1 - e^2) w / 6 and Enskog's rate of impacts w = 4 n d^2 chi sqrt(pi T / m), with
    chi = (1 - f / 2) / (1 - f)^3 at the solid fraction f (Carnahan and Starling). Single runs scatter by some per cent."""
    places, velocities = cooling_start.gas_start(0)
    radius, times = cooling_start.RADIUS, np.array([0.0, 0.5, 1.0])
    found, impacts = cool(places, velocities, radius, cooling_start.SIDE, e, 0.0, times)
    fraction = len(places) * 4 / 3 * np.pi * radius**3
    often = 4 * len(places) * (2 * radius) ** 2 * (1 - fraction / 2) / (1 - fraction) ** 3 * np.sqrt(np.pi)
    wanted = 1 / (1 + times * (1 - e**2) * often / 6) ** 2
    assert found[:, 0] == pytest.approx(wanted, rel=0.06) and found[:, 1].max() < 1e-20  # rounding
    tau = 6 / ((1 - e**2) * often)
    assert impacts == pytest.approx(0.5 * len(places) * often * tau * np.log(1 + times[-1] / tau), rel=0.03)
