"""Contacts of ellipsoids (paper 002) against formulas, against a search over directions in NumPy, and against coal."""

import numpy as np
import pytest
from oracles import (
    Many,
    about,
    coal_distances,
    detect_on_plane,
    detect_pairs,
    matrices,
    move_to_gap,
    plane_gaps,
    random_directions,
    random_quaternions,
    signed_distances,
    sizes_of,
)

import gravel as gv

pytestmark = pytest.mark.usefixtures("device")

METHODS = ("direct", "method-1", "method-2")
UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])


def one_pair(radii_a, turn_a, centre_a, radii_b, turn_b, centre_b, margin=0.0, method="direct"):
    """(gap, normal, point) of the only contact of two ellipsoids."""
    radii, turns = np.array([radii_a, radii_b], float), np.array([turn_a, turn_b])
    found = gv.find_contacts(gv.Ellipsoid(radii), np.array([centre_a, centre_b], float), turns, margin=margin, ellipsoid_method=method)
    assert len(found) == 1
    return found.gap[0], found.normal[0], found.point[0]


def random_ellipsoids(rng, n, ratio=10.0):
    """Radii of up to 1 m, the smallest and the largest of a body up to a ratio apart."""
    radii = rng.uniform(0.3, 1.0, (n, 1)) * ratio ** -rng.uniform(0, 1, (n, 3))
    return Many(gv.Ellipsoid(radii), np.zeros((n, 3)), random_quaternions(rng, n))


def random_pairs(n, low, high, seed=1, ratio=10.0):
    """Pairs with signed distances between low and high."""
    rng = np.random.default_rng(seed)
    a, b = random_ellipsoids(rng, n, ratio), random_ellipsoids(rng, n, ratio)
    return a, move_to_gap(a, b, rng.uniform(low, high, n), random_directions(rng, n))


def matrix_of(radii, quaternions):
    """M = A R^2 A^T (eq. A-11)."""
    scaled = matrices(quaternions) * radii[:, None]
    return scaled @ np.swapaxes(scaled, 1, 2)


# --- table 1 of the paper
Z90 = about("z", 90)
SMALL = (3, 1, 2)
TABLE_1 = [
    # radii, turn and centre of both; signed distance; the paper's direction, which may be turned round
    (SMALL, UPRIGHT, (1, 1, 1), (6, 2, 4), UPRIGHT, (1, 1, 1), -3.0, (0, 1, 0)),
    (SMALL, Z90, (1, 1, 1), (12, 4, 8), UPRIGHT, (1, 1, 1), -7.0, (0, 1, 0)),
    (SMALL, UPRIGHT, (0, 0, 0), SMALL, UPRIGHT, (5.8, 0, 0), -0.2, (1, 0, 0)),
    (SMALL, Z90, (1, 1, 1), (1, 3, 2), Z90, (5.2, 1, 1), 0.2, (1, 0, 0)),
    (SMALL, Z90, (1, 1, 1), (1, 3, 2), Z90, (4.8, 1, 1), -0.2, (1, 0, 0)),
    (SMALL, UPRIGHT, (0, 0, 0), SMALL, UPRIGHT, (6, 0, 0), 0.0, (1, 0, 0)),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", TABLE_1, ids=[f"case {k}" for k in range(1, 7)])
def test_table_1_of_the_paper(case, method):
    *bodies, distance, direction = case
    gap, normal, _ = one_pair(*bodies, margin=0.3, method=method)
    assert gap == pytest.approx(distance, abs=1e-12)
    assert abs(normal @ direction) == pytest.approx(1.0, abs=1e-12)
    if bodies[2] != bodies[5]:
        assert normal @ direction > 0  # from a to b


@pytest.mark.parametrize("case", TABLE_1[:2], ids=["case 1", "case 2"])
def test_contact_with_a_contained_ellipsoid_lies_at_its_centre(case):
    radii_a, turn_a, centre, radii_b, turn_b, _ = case[:6]
    for shift in ((0, 0, 0), (0.1, -0.1, 0.05)):
        inner = np.add(centre, shift)
        assert np.allclose(one_pair(radii_a, turn_a, inner, radii_b, turn_b, centre)[2], inner, atol=1e-12)
        assert np.allclose(one_pair(radii_b, turn_b, centre, radii_a, turn_a, inner)[2], inner, atol=1e-12)


@pytest.mark.parametrize("distance", [-0.2, 0.0, 0.2])
def test_point_lies_halfway_between_the_surfaces(distance):
    _, _, point = one_pair(SMALL, UPRIGHT, (0, 0, 0), SMALL, UPRIGHT, (6 + distance, 0, 0), margin=0.3)
    assert np.allclose(point, (3 + distance / 2, 0, 0), atol=1e-9)


# --- random pairs
def test_ten_thousand_random_pairs_against_a_search_over_directions():
    a, b = random_pairs(10_000, -0.2, 0.15)
    size = sizes_of(a.shape) + sizes_of(b.shape)
    found = detect_pairs(a, b, margin=0.2)
    true, _ = signed_distances(a, b, samples=250, starts=4, rounds=24)
    assert 0.4 < (true < 0).mean() < 0.7
    assert (found.count == 1).all()  # the margin is above all distances
    error = (found.gap - true) / size
    assert np.abs(error[true >= 0]).max() < 1e-6
    assert np.abs(error[true < 0]).max() < 1e-5
    assert ((found.gap < 0) == (true < 0))[np.abs(true) > 1e-6 * size].all()
    assert np.abs(plane_gaps(a, b, found.normal[:, None])[:, 0] - found.gap).max() < 1e-11
    assert np.allclose(np.linalg.norm(found.normal, axis=1), 1.0, atol=1e-12)


def test_without_margin_contacts_are_the_overlaps():
    a, b = random_pairs(3000, -0.1, 0.1, seed=2)
    true, _ = signed_distances(a, b, samples=250, starts=4, rounds=24)
    assert ((detect_pairs(a, b, margin=0.0).count == 1) == (true <= 0))[np.abs(true) > 1e-6].all()


def test_deep_overlaps_report_the_least_depth():
    """Nearly concentric: several local maxima."""
    a, b = random_pairs(2000, -1.0, -0.3, seed=3)
    found = detect_pairs(a, b, margin=0.0)
    true, _ = signed_distances(a, b, found.normal[:, None], samples=400, starts=6, rounds=30)
    assert (found.count == 1).all()
    assert ((true - found.gap) / (sizes_of(a.shape) + sizes_of(b.shape))).max() < 1e-5


def test_points_lie_on_both_surfaces_along_the_normal():
    a, b = random_pairs(1000, -0.05, 0.1, seed=4)
    found = detect_pairs(a, b, margin=0.2)
    shallow = found.gap > -0.05 * np.minimum(a.shape.radii.min(axis=1), b.shape.radii.min(axis=1))
    for many, side in ((a, -1), (b, 1)):
        on = found.point + side * 0.5 * found.gap[:, None] * found.normal - many.position
        inside = np.linalg.norm(np.einsum("nji,nj->ni", matrices(many.quaternion), on) / many.shape.radii, axis=1)
        assert np.abs(inside - 1)[shallow].max() < 1e-5


def test_separated_pairs_against_coal():
    a, b = random_pairs(2000, 0.001, 0.2, seed=5)
    theirs, normals = coal_distances(a, b)
    found = detect_pairs(a, b, margin=0.3)
    size = sizes_of(a.shape) + sizes_of(b.shape)
    assert (np.abs(found.gap - theirs) / size).max() < 1e-6
    assert np.linalg.norm(found.normal - normals, axis=1)[theirs > 0.01].max() < 1e-3


@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_the_three_methods_find_the_same_contacts(margin):
    rng = np.random.default_rng(6)
    n = 3000
    bodies = random_ellipsoids(rng, n)
    places = rng.uniform(0, 9.0, (n, 3))
    tables = [gv.find_contacts(bodies.shape, places, bodies.quaternion, margin=margin, ellipsoid_method=method) for method in METHODS]
    assert len(tables[0]) > 3000
    for table in tables[1:]:
        assert np.array_equal(table.body_a, tables[0].body_a) and np.array_equal(table.body_b, tables[0].body_b)
        assert np.allclose(table.gap, tables[0].gap, rtol=0, atol=1e-12)
        assert np.allclose(table.normal, tables[0].normal, rtol=0, atol=1e-7)


def test_bounding_boxes_miss_no_overlap():
    """Eq. 12 is in the broad phase: all broad phases give the contacts of brute force."""
    rng = np.random.default_rng(7)
    bodies, places = random_ellipsoids(rng, 1000), rng.uniform(0, 6.0, (1000, 3))
    tables = [gv.find_contacts(bodies.shape, places, bodies.quaternion, broad_phase=name) for name in ("brute", "grid")]
    assert len(tables[0]) > 500
    assert np.array_equal(tables[0].body_a, tables[1].body_a) and np.array_equal(tables[0].body_b, tables[1].body_b)


def test_axis_aligned_planes_at_the_ends_of_the_bounding_box_are_touched():
    """Max and Min of eq. 12: +- sqrt of the diagonal of M."""
    rng = np.random.default_rng(8)
    bodies = random_ellipsoids(rng, 200)
    half = np.sqrt(np.einsum("nii->ni", matrix_of(bodies.shape.radii, bodies.quaternion)))
    for axis in np.eye(3):
        for normal in (axis, -axis):
            found = detect_on_plane(bodies._replace(position=half * normal), normal, margin=1e-3)
            assert (found.count == 1).all() and np.abs(found.gap).max() < 1e-12


# --- planes and balls
def test_plane_against_formula():
    """Lowest point -M n / sqrt(n M n) (eq. A-13)."""
    rng = np.random.default_rng(9)
    for n in random_directions(rng, 10):
        bodies = random_ellipsoids(rng, 100)._replace(position=rng.normal(size=(100, 3)))
        m = matrix_of(bodies.shape.radii, bodies.quaternion)
        lowest = bodies.position - (m @ n) / np.sqrt(np.einsum("i,nij,j->n", n, m, n))[:, None]
        found = detect_on_plane(bodies, n, margin=10.0)
        assert (found.count == 1).all()
        assert np.allclose(found.gap, lowest @ n, rtol=0, atol=1e-11)
        assert np.allclose(found.normal, -n, rtol=0, atol=1e-12)
        assert np.allclose(found.point, lowest - 0.5 * (lowest @ n)[:, None] * n, rtol=0, atol=1e-11)


def test_ball_against_the_nearest_point_of_an_ellipsoid():
    """A point x of an ellipsoid with normal n, and a ball whose centre is x + d n: the gap is d - radius, for d small or positive."""
    rng = np.random.default_rng(10)
    n = 1000
    bodies = random_ellipsoids(rng, n, ratio=5.0)
    normal, radius = random_directions(rng, n), rng.uniform(0.05, 0.5, n)
    m = matrix_of(bodies.shape.radii, bodies.quaternion)
    surface = np.einsum("nij,nj->ni", m, normal) / np.sqrt(np.einsum("ni,nij,nj->n", normal, m, normal))[:, None]
    distance = rng.uniform(-0.02, 0.5, n) * bodies.shape.radii.min(axis=1) ** 2 / bodies.shape.radii.max(axis=1)
    balls = Many(gv.Sphere(radius), surface + distance[:, None] * normal, np.tile(UPRIGHT, (n, 1)))
    found = detect_pairs(bodies, balls, margin=1.0)
    assert np.abs(found.gap - (distance - radius)).max() < 1e-9
    assert np.abs(found.normal - normal).max() < 1e-6
    uncovered = radius - distance < 2 * np.minimum(radius, np.sqrt(np.einsum("ni,nij,nj->n", normal, m, normal)))
    wrong = found.point - surface - 0.5 * (distance - radius)[:, None] * normal
    assert uncovered.sum() > 500 and np.abs(wrong[uncovered]).max() < 1e-6


def test_round_ellipsoids_are_balls():
    rng = np.random.default_rng(11)
    n = 2000
    radius, places = rng.uniform(0.1, 0.5, n), rng.uniform(0, 5.0, (n, 3))
    balls = gv.find_contacts(gv.Sphere(radius), places, margin=0.01)
    assert len(balls) > 1000
    for method in METHODS:
        found = gv.find_contacts(
            gv.Ellipsoid(np.repeat(radius[:, None], 3, 1)), places, random_quaternions(rng, n), margin=0.01, ellipsoid_method=method
        )
        assert np.array_equal(found.body_a, balls.body_a) and np.array_equal(found.body_b, balls.body_b)
        for name in ("gap", "normal"):
            assert np.allclose(getattr(found, name), getattr(balls, name), rtol=0, atol=1e-7)
        free = balls.gap > -2 * np.minimum(radius[balls.body_a], radius[balls.body_b])  # not covered: there, points differ
        assert np.allclose(found.point[free], balls.point[free], rtol=0, atol=1e-7)


# --- hard cases
@pytest.mark.parametrize("method", METHODS)
def test_aspect_one_to_a_thousand(method):
    """Needles and discs: what is reported is a direction of which g is the gap, and no other has a larger g."""
    rng = np.random.default_rng(12)
    n = 600
    radii = np.where(rng.random((n, 3)) < 0.5, 1e-3, 1.0)
    a = Many(gv.Ellipsoid(radii), np.zeros((n, 3)), random_quaternions(rng, n))
    b = Many(gv.Ellipsoid(np.roll(radii, 1, axis=0)), np.zeros((n, 3)), random_quaternions(rng, n))
    b = move_to_gap(a, b, rng.uniform(-0.3, 0.02, n), random_directions(rng, n))
    found = detect_pairs(a, b, 0.2, method)
    true, _ = signed_distances(a, b, np.nan_to_num(found.normal, nan=1.0)[:, None], starts=6)
    seen = found.count == 1
    assert (seen | (true > 0.2 - 1e-9)).all() and seen.mean() > 0.8
    assert np.isfinite(found.gap[seen]).all() and np.isfinite(found.point[seen]).all()
    assert np.abs(np.linalg.norm(found.normal[seen], axis=1) - 1).max() < 1e-9
    assert np.abs(plane_gaps(a, b, found.normal[:, None])[seen, 0] - found.gap[seen]).max() < 1e-9
    assert (true - found.gap)[seen].max() < 2e-5


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("radii", [(1, 1, 1), (3, 1, 2), (1, 1, 1e-3), (1e-3, 1e-3, 1), (1e-6, 1e-6, 1e-6), (1e4, 1e4, 1e4)])
def test_identical_poses_are_as_deep_as_twice_the_least_radius(radii, method):
    for turn in (UPRIGHT, about("xyz", (10, 20, 30))):
        gap, normal, point = one_pair(radii, turn, (1, 2, 3), radii, turn, (1, 2, 3), method=method)
        assert gap == pytest.approx(-2 * min(radii), rel=1e-6)
        assert np.linalg.norm(normal) == pytest.approx(1.0) and np.allclose(point, (1, 2, 3), rtol=0, atol=1e-9 * max(radii))


def test_huge_against_tiny():
    for distance in (-1e-5, 1e-5):
        gap, normal, point = one_pair((100, 50, 80), UPRIGHT, (0, 0, 0), (1e-3, 2e-3, 3e-3), UPRIGHT, (0, 50.002 + distance, 0), 1e-4)
        assert gap == pytest.approx(distance, abs=1e-9)
        assert np.allclose(normal, (0, 1, 0), atol=1e-6) and np.allclose(point, (0, 50 + distance / 2, 0), atol=1e-6)
