"""Contact laws and responses against what they are defined by."""

import math

import numpy as np
import pytest

import gravel as gv
from gravel.formulas import contact_laws as laws
from gravel.formulas import responses
from gravel.formulas.momentum import LAGGED
from gravel.formulas.vectors import tangents
from gravel.model.materials import pair_table

STEP, NEAR = 1e-3, 1e-2


def bias(gap, overlaps=1.0, recovery=0.03, recovery_speed=0.5):
    return laws.bias_of(gap, NEAR, overlaps, STEP, recovery, recovery_speed)


def test_a_gap_may_close_within_the_step_and_a_hair_is_left_alone():
    assert bias(2e-3) == pytest.approx(2.0) and bias(0.9 * laws.RESTING * NEAR) == 0.0 and bias(0.0) == 0.0


def test_a_penetration_is_taken_back_by_its_share_and_no_faster_than_allowed():
    assert bias(-1e-4) == pytest.approx(-0.03 * 0.1)
    assert bias(-1.0) == -0.5 and bias(-1.0, overlaps=4.0) == -0.125


def test_values_of_a_pair_are_found_in_their_columns():
    material = gv.Material(friction=0.1, restitution=0.2, rolling_friction=0.3, spinning_friction=0.4, cohesion=0.5)
    table = pair_table([gv.Material(), material], {})
    assert laws.friction_of(table, 1, 1) == pytest.approx(0.1) and laws.restitution_of(table, 1, 1) == pytest.approx(0.2)
    assert laws.torque_arms(table, 1, 1) == pytest.approx((0.3, 0.4))
    assert laws.cohesive_impulse(table, 1, 1, 0.0, NEAR, STEP) == pytest.approx(0.5 * STEP)
    assert laws.cohesive_impulse(table, 1, 1, 2 * laws.TOUCHING * NEAR, NEAR, STEP) == 0.0


def test_the_sliding_speed_is_the_part_across_the_normal():
    rng = np.random.default_rng(0)
    for u, n in zip(rng.normal(size=(50, 3)), rng.normal(size=(50, 3))):
        n /= np.linalg.norm(n)
        assert laws.sliding_speed(tuple(u), tuple(n)) == pytest.approx(np.linalg.norm(np.cross(n, u)), rel=1e-12)


def test_a_term_lags_wholly_where_friction_is_weak_and_approaches_what_it_is_renewed_with():
    assert laws.lagged_share(0.0) == laws.lagged_share(LAGGED) == 1.0 and laws.lagged_share(4 * LAGGED) == pytest.approx(0.25)
    assert laws.renewed_slip(1.0, 3.0, 1.0) == 3.0 and laws.renewed_slip(1.0, 3.0, 0.25) == pytest.approx(1.5)


def inertia_at_random(rng):
    root = rng.normal(size=(3, 3))
    full = root @ root.T
    return full, tuple(full[np.triu_indices(3)].tolist())


def skew(r):
    return np.array([(0, -r[2], r[1]), (r[2], 0, -r[0]), (-r[1], r[0], 0)])


def test_responses_bound_the_matrix_of_any_two_bodies_from_above():
    rng = np.random.default_rng(1)
    for _ in range(200):
        (full_a, ja), (full_b, jb), mass = inertia_at_random(rng), inertia_at_random(rng), math.exp(rng.normal())
        arm_a, arm_b, n = rng.normal(size=(3, 3))
        n /= np.linalg.norm(n)
        frame = np.array([n, *np.reshape(tangents(*n), (2, 3))])
        whole = mass * np.eye(3) - skew(arm_a) @ full_a @ skew(arm_a) - skew(arm_b) @ full_b @ skew(arm_b)
        whole = frame @ whole @ frame.T
        normal, across, trace = responses.contact_responses(mass, ja, jb, tuple(arm_a), tuple(arm_b), *map(tuple, frame))
        assert trace == pytest.approx(np.trace(whole), rel=1e-10)
        assert np.linalg.eigvalsh(np.diag([normal, across, across]) - whole).min() > -1e-9 * trace
        assert normal + 2 * across < 6 * trace  # and not by far
        twist = responses.twist_response(ja, jb)
        assert twist == pytest.approx(np.trace(full_a + full_b)) and twist >= np.linalg.eigvalsh(full_a + full_b).max()


def test_responses_of_balls_are_those_of_any_bodies():
    rng = np.random.default_rng(2)
    mass_a, mass_b, spin_a, spin_b, ra, rb = np.exp(rng.normal(size=6)).tolist()
    n = rng.normal(size=3)
    n /= np.linalg.norm(n)
    frame = n, *np.reshape(tangents(*n), (2, 3))
    ja, jb = ((spin, 0.0, 0.0, spin, 0.0, spin) for spin in (spin_a, spin_b))
    normal, across, trace = responses.contact_responses(mass_a + mass_b, ja, jb, tuple(ra * n), tuple(-rb * n), *map(tuple, frame))
    found = responses.ball_responses(mass_a, mass_b, ra, rb, spin_a, spin_b)
    assert found[:3] == pytest.approx((normal, across, trace / 3)) and found[3] == pytest.approx(spin_a + spin_b)
