"""The friction cone against brute force: the nearest point by a search along the load, Coulomb's law by its own conditions."""

import numpy as np
import pytest
from numba import njit
from scipy.optimize import minimize_scalar

import gravel as gv
from gravel.formulas import cones, responses
from gravel.host.formulas import FORMS, LANE_FORMS

COEFFICIENTS = 0.0, 0.05, 0.5, 1.0, 3.0


def rows(seed, n=200):
    """(load, tangential length, coefficient, two responses) of random impulses, of which some lie in the cone, some below its tip."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=n), np.abs(rng.normal(size=n)), rng.choice(COEFFICIENTS, n), *np.exp(rng.uniform(-1.5, 1.5, (2, n)))
    edges = (0.0, 0.0, 0.5, 1.0, 1.0), (-1.0, 0.0, 0.0, 1.0, 2.0), (1.0, 0.0, 0.0, 1.0, 2.0)
    return [*zip(*(column.tolist() for column in columns)), *edges]


def distance(load, qn, qt, mu, wn, wt):
    """From q to the nearest impulse with that load, squared."""
    return wn * (load - qn) ** 2 + wt * max(qt - mu * load, 0.0) ** 2


@pytest.mark.parametrize("row", rows(0))
def test_the_nearest_impulse_of_the_cone_in_the_metric_of_the_responses(row):
    qn, qt, mu, wn, wt = row
    load, keep = cones.into_cone(*row, 1.0)
    t = keep * qt
    assert load >= 0 and 0 <= keep <= 1 and t <= mu * load * (1 + 1e-12)
    most = 2 * (abs(qn) + qt + mu * qt) * max(1.0, wt / wn) + 1.0
    found = minimize_scalar(distance, bounds=(0.0, most), args=row, method="bounded", options={"xatol": 1e-9})
    least = min(found.fun, distance(0.0, *row))
    assert wn * (load - qn) ** 2 + wt * (qt - t) ** 2 <= least + 1e-9 * (1.0 + least)


@pytest.mark.parametrize("lag", [0.1, 0.5, 1.0])
def test_the_share_of_the_sliding_term_that_does_not_lag_is_solved_at_once(lag):
    for qn, qt, mu, wn, wt in rows(1):
        load, keep = cones.into_cone(qn, qt, mu, wn, wt, lag)
        slip = wt * (1 - keep) * qt  # |u_t| after the impulse
        un = wn * (load - qn) + (1 - lag) * mu * slip  # with De Saxcé's term of this very solution
        size = 1e-12 * (abs(qn) + qt + 1.0) * (1.0 + wn + wt) * (1.0 + mu) ** 2
        assert un >= mu * slip - size  # in the dual cone
        assert load * un - keep * qt * slip == pytest.approx(0.0, abs=size * (1.0 + load))  # and at right angles to the impulse


def vectors(seed, n=100):
    """(impulse, normal, coefficient, cohesion) at random."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=(n, 3))
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    for p, d, mu, cohesion in zip(rng.normal(size=(n, 3)), normal, rng.choice(COEFFICIENTS, n), rng.choice((0.0, 0.4), n)):
        yield tuple(p.tolist()), tuple(d.tolist()), float(mu), float(cohesion)


def test_projection_is_that_of_a_convex_set():
    """q - P(q) makes no acute angle with any way from P(q) into the set."""
    rng = np.random.default_rng(3)
    for q, n, mu, cohesion in vectors(2):
        *p, load = cones.project(q, n, mu, cohesion)
        p, normal = np.array(p), np.array(n)
        assert load == pytest.approx(p @ normal + cohesion, abs=1e-12)
        across = np.linalg.qr(np.column_stack([normal, np.eye(3)]))[0][:, 1:3]
        for load_there, angle, share in rng.uniform(0, 1, (50, 3)) * (3.0, 2 * np.pi, 1.0):
            tangent = share * mu * load_there * (across @ (np.cos(angle), np.sin(angle)))
            there = (load_there - cohesion) * normal + tangent
            assert (np.array(q) - p) @ (there - p) <= 1e-12


def test_a_remembered_impulse_keeps_its_normal_part_and_the_friction_that_it_can_bear():
    for q, n, mu, cohesion in vectors(4):
        p, normal = np.array(cones.turned_into_cone(q, n, mu, cohesion)), np.array(n)
        qn, qt = q @ normal, q - (q @ normal) * normal
        pn, pt = p @ normal, p - (p @ normal) * normal
        assert pn == pytest.approx(max(qn, -cohesion), abs=1e-12)
        assert np.linalg.norm(pt) == pytest.approx(min(np.linalg.norm(qt), mu * (pn + cohesion)), abs=1e-12)
        assert np.linalg.norm(np.cross(pt, qt)) < 1e-12 and pt @ qt >= -1e-12


def test_torques_stay_within_disc_and_segment():
    for q, n, roll, spin in vectors(5):
        p, normal, q = np.array(cones.project_torque(q, n, roll, spin)), np.array(n), np.array(q)
        qt = q - (q @ normal) * normal
        expected = qt * min(1.0, roll / np.linalg.norm(qt)) + np.clip(q @ normal, -spin, spin) * normal
        assert np.allclose(p, expected, atol=1e-12)


@pytest.mark.parametrize("forms", [FORMS, LANE_FORMS])
def test_compiled_forms_give_the_bits_of_the_plain_functions_in_double_and_its_digits_in_single(forms):
    best_impulse, project = forms.of(cones).best_impulse, forms.of(cones).project
    best = njit(lambda p, u, n, numbers: best_impulse(p, u, n, *numbers))  # the forms themselves have no entry for Python
    nearest = njit(lambda p, n, mu, cohesion: project(p, n, mu, cohesion))
    for (p, n, mu, cohesion), (u, *_) in zip(vectors(6, 50), vectors(7, 50)):
        single = [tuple(map(np.float32, v)) for v in (p, u, n)]
        numbers = mu, cohesion, 0.1, 1.5, 2.5, 0.7
        expected = cones.best_impulse(p, u, n, *numbers)
        assert best(p, u, n, numbers) == expected
        assert nearest(p, n, mu, cohesion) == cones.project(p, n, mu, cohesion)
        assert np.allclose(best(*single, tuple(map(np.float32, numbers))), expected, rtol=1e-5, atol=1e-5)


def test_a_sweep_gives_every_contact_the_impulse_of_the_formula():
    """One sweep of Gauss-Seidel over pairs that touch nothing else, from nothing."""
    rng, n = np.random.default_rng(8), 40
    chosen = list(vectors(9, n))
    normal, friction, cohesion = (np.array(column) for column in list(zip(*chosen))[1:])
    mass, spin, arms = np.exp(rng.normal(size=2 * n)), np.exp(rng.normal(size=2 * n)), rng.uniform(0.2, 1.0, (n, 2))
    arm_a, arm_b = arms[:, :1] * normal, -arms[:, 1:] * normal  # balls: their responses are exact
    velocity, a, b = rng.normal(size=(2 * n, 6)), 2 * np.arange(n), 2 * np.arange(n) + 1
    inertia = spin[:, None, None] * np.eye(3)
    problem = gv.ConeProblem(a, b, normal, arm_a, arm_b, friction, mass, inertia, velocity, cohesion=cohesion).prepare("cone")
    problem.warm_start()
    problem.sweep(1, 0.0, 0.0)
    u = velocity[b, :3] + np.cross(velocity[b, 3:], arm_b) - velocity[a, :3] - np.cross(velocity[a, 3:], arm_a)
    for k, found in enumerate(problem.impulse_of_contacts()):
        normal_response, across, _, _ = responses.ball_responses(mass[a[k]], mass[b[k]], *arms[k], spin[a[k]], spin[b[k]])
        given = (0.0, 0.0, 0.0), tuple(u[k]), tuple(normal[k]), friction[k], cohesion[k]
        expected = cones.best_impulse(*given, 0.0, normal_response, across, 1.0)[:3]
        assert np.allclose(found, expected, rtol=1e-12, atol=1e-12)
