"""Pair functions against brute force: closest points by a QP, separating axes in NumPy, corners by hand."""

import functools

import numpy as np
import pytest
from numba import njit
from scipy.optimize import lsq_linear
from scipy.spatial.transform import Rotation

from gravel.cpu.collide import pair_geometry as geometry

UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])
FAR = 1e9  # a limit that leaves nothing out
EDGE_FEATURES = 4096  # features from here on are contacts of two edges


@functools.cache
def entry_of(function):
    """A function that only compiled code can call, for Python."""
    return njit(lambda *arguments: function(*arguments))


def rows(function, *arguments):
    """(normals, points, gaps, features) of a pair function's contacts."""
    out, feature = np.full((geometry.MOST_POINTS, 7), np.nan), np.full(geometry.MOST_POINTS, -1, np.int32)
    scratch = tuple(np.full((2, geometry.MOST_CORNERS, 3), np.nan)) if function is geometry.box_box else ()
    count = entry_of(function)(*arguments, *scratch, out, feature)
    return out[:count, :3], out[:count, 3:6], out[:count, 6], feature[:count]


def matrix(quaternion):
    return Rotation.from_quat(np.roll(quaternion, -1)).as_matrix()


def about(axis, degrees):
    return np.roll(Rotation.from_euler(axis, degrees, degrees=True).as_quat(), 1)


def random_quaternion(rng):
    quaternion = rng.normal(size=4)
    return quaternion / np.linalg.norm(quaternion)


def corners(half):
    return np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half


def outside(half, quaternion, centre, point):
    """How far a point lies outside a box, along the box axis where it is worst; negative inside."""
    return (np.abs(matrix(quaternion).T @ (point - centre)) - half).max()


# --- spheres


def test_sphere_sphere_against_formula():
    rng = np.random.default_rng(1)
    for _ in range(50):
        radius_a, radius_b, d = rng.uniform(0.1, 2), rng.uniform(0.1, 2), rng.normal(size=3)
        found = entry_of(geometry.between_spheres)(radius_a, radius_b, *d)
        normal, point, gap = found[:3], found[3:6], found[6]
        unit = d / np.linalg.norm(d)
        assert np.allclose(normal, unit, atol=1e-14)
        assert np.isclose(gap, np.linalg.norm(d) - radius_a - radius_b, atol=1e-14)
        assert np.allclose(point, 0.5 * (radius_a * unit + d - radius_b * unit), atol=1e-14)


def test_sphere_sphere_with_one_centre_has_a_unit_normal():
    found = entry_of(geometry.between_spheres)(1.0, 0.5, 0.0, 0.0, 0.0)
    assert np.isclose(np.linalg.norm(found[:3]), 1.0) and found[6] == -1.5 and np.isfinite(found).all()


def test_sphere_plane_against_distance_to_plane():
    rng = np.random.default_rng(2)
    for _ in range(50):
        radius, d, n = rng.uniform(0.1, 2), rng.normal(size=3), rng.normal(size=3)
        n /= np.linalg.norm(n)
        normal, point, gap, _ = rows(geometry.sphere_plane, radius, n, *d)
        height = -d @ n  # of the ball's centre, the origin, above the plane through d
        assert np.allclose(normal[0], -n, atol=1e-14)  # from the ball to the plane
        assert np.isclose(gap[0], height - radius, atol=1e-14)
        assert np.allclose(point[0], 0.5 * (-radius * n - height * n), atol=1e-14)


# --- sphere and box


def closest_in_box(half, quaternion, centre):
    """The point of a box that is nearest to the origin, by bounded least squares."""
    turn = matrix(quaternion)
    return centre + turn @ lsq_linear(turn, -centre, bounds=(-half, half), tol=1e-15).x


def test_sphere_box_against_numerical_closest_point():
    rng = np.random.default_rng(3)
    seen = 0
    for _ in range(200):
        half, quaternion, d = rng.uniform(0.2, 1, 3), random_quaternion(rng), rng.normal(size=3)
        radius = rng.uniform(0.1, 1)
        if outside(half, quaternion, d, np.zeros(3)) < 1e-3:
            continue
        nearest = closest_in_box(half, quaternion, d)
        distance = np.linalg.norm(nearest)
        normal, point, gap, _ = rows(geometry.sphere_box, radius, half, quaternion, *d)
        assert np.allclose(normal[0], nearest / distance, atol=1e-6)
        assert np.isclose(gap[0], distance - radius, atol=1e-9)
        assert np.allclose(point[0], 0.5 * (radius * nearest / distance + nearest), atol=1e-6)
        seen += 1
    assert seen > 100


def test_sphere_inside_box_leaves_by_the_nearest_face():
    rng = np.random.default_rng(4)
    for _ in range(100):
        half, quaternion, radius = rng.uniform(0.2, 1, 3), random_quaternion(rng), rng.uniform(0.1, 1)
        turn, place = matrix(quaternion), rng.uniform(-0.99, 0.99, 3) * half  # of the ball in the box frame
        d = -turn @ place
        normal, point, gap, _ = rows(geometry.sphere_box, radius, half, quaternion, *d)
        depths = np.concatenate([half - place, half + place])  # to the six faces
        face = np.argmin(depths)
        outward = turn[:, face % 3] * (1 if face < 3 else -1)
        assert np.allclose(normal[0], -outward, atol=1e-12)  # the ball goes out, so the box lies the other way
        assert np.isclose(gap[0], -depths.min() - radius, atol=1e-12)
        assert np.allclose(point[0], 0.5 * (depths.min() - radius) * outward, atol=1e-12)


def test_moving_a_sphere_out_by_its_depth_leaves_it_touching():
    rng = np.random.default_rng(5)
    for _ in range(50):
        half, quaternion, radius = rng.uniform(0.2, 1, 3), random_quaternion(rng), 0.3
        d = -matrix(quaternion) @ (rng.uniform(-0.99, 0.99, 3) * half)
        normal, _, gap, _ = rows(geometry.sphere_box, radius, half, quaternion, *d)
        nearest = closest_in_box(half, quaternion, d - gap[0] * normal[0])
        assert np.isclose(np.linalg.norm(nearest), radius, atol=1e-7)


def test_sphere_at_the_centre_of_a_cube_has_a_finite_answer():
    normal, point, gap, _ = rows(geometry.sphere_box, 0.5, np.ones(3), UPRIGHT, 0.0, 0.0, 0.0)
    assert np.isclose(np.linalg.norm(normal[0]), 1.0) and gap[0] == -1.5 and np.isfinite(point).all()


# --- box and plane


def test_box_plane_against_all_corners():
    rng = np.random.default_rng(6)
    for _ in range(100):
        half, quaternion, d = rng.uniform(0.2, 1, 3), random_quaternion(rng), 0.5 * rng.normal(size=3)
        n = rng.normal(size=3)
        n /= np.linalg.norm(n)
        limit = rng.uniform(-0.3, 0.3)
        normal, point, gap, feature = rows(geometry.box_plane, half, quaternion, n, *d, limit)
        heights = (corners(half) @ matrix(quaternion).T - d) @ n
        expected = corners(half) @ matrix(quaternion).T - 0.5 * heights[:, None] * n
        near = heights <= limit
        assert len(gap) == near.sum() and len(set(feature.tolist())) == len(feature)
        assert np.allclose(np.sort(gap), np.sort(heights[near]), atol=1e-13)
        assert np.allclose(normal, -n, atol=1e-14)
        for p in point:
            assert np.abs(expected[near] - p).max(axis=1).min() < 1e-13


def test_box_flat_on_plane_has_four_corners():
    half, up = np.array([1.0, 2.0, 0.5]), np.array([0, 0, 1.0])
    _, point, gap, _ = rows(geometry.box_plane, half, UPRIGHT, up, 0, 0, -0.49, 0.0)
    assert np.allclose(gap, -0.01)
    assert sorted(map(tuple, point[:, :2])) == [(-1, -2), (-1, 2), (1, -2), (1, 2)]
    assert np.allclose(point[:, 2], -0.495)


# --- box and box


def separating_axes(turn_a, turn_b):
    crossed = np.cross(turn_a.T[:, None], turn_b.T[None]).reshape(9, 3)
    lengths = np.linalg.norm(crossed, axis=1, keepdims=True)
    return np.concatenate([turn_a.T, turn_b.T, (crossed / np.maximum(lengths, 1e-30))[lengths[:, 0] > 1e-6]])


def gap_along(half_a, turn_a, half_b, turn_b, d, axes):
    """Distance of the two boxes' shadows on each axis; negative where they overlap."""
    return np.abs(axes @ d) - np.abs(axes @ turn_a) @ half_a - np.abs(axes @ turn_b) @ half_b


def distance_of_boxes(half_a, turn_a, half_b, turn_b, d):
    both = np.hstack([turn_a, -turn_b])
    bound = np.concatenate([half_a, half_b])
    return np.linalg.norm(both @ lsq_linear(both, d, bounds=(-bound, bound), tol=1e-15).x - d)


class Pair:
    """Two random boxes, moved apart along a random line until their largest gap over the 15 axes has a given value."""

    def __init__(self, rng, gap, sizes=(0.2, 1.0)):
        self.half_a, self.half_b = rng.uniform(*sizes, 3), rng.uniform(*sizes, 3)
        self.quaternion_a, self.quaternion_b = random_quaternion(rng), random_quaternion(rng)
        self.turn_a, self.turn_b = matrix(self.quaternion_a), matrix(self.quaternion_b)
        self.axes = separating_axes(self.turn_a, self.turn_b)
        line = rng.normal(size=3)
        line /= np.linalg.norm(line)
        low, high = 0.0, 10.0
        for _ in range(60):
            self.d = 0.5 * (low + high) * line
            low, high = (0.5 * (low + high), high) if self.gaps(self.axes).max() < gap else (low, 0.5 * (low + high))

    def gaps(self, axes):
        return gap_along(self.half_a, self.turn_a, self.half_b, self.turn_b, self.d, axes)

    def distance(self):
        return distance_of_boxes(self.half_a, self.turn_a, self.half_b, self.turn_b, self.d)

    def contacts(self, limit):
        return rows(geometry.box_box, self.half_a, self.quaternion_a, self.half_b, self.quaternion_b, *self.d, limit)

    def permuted(self, limit):
        """Contacts of the same boxes, b first, in the frame of b."""
        return rows(geometry.box_box, self.half_b, self.quaternion_b, self.half_a, self.quaternion_a, *-self.d, limit)


def random_pairs(gap, count=200, seed=7):
    rng = np.random.default_rng(seed)
    return [Pair(rng, gap) for _ in range(count)]


@pytest.mark.parametrize("depth", [1e-6, 1e-3, 0.05])
def test_penetrating_boxes_report_the_least_depth_of_15_axes(depth):
    for pair in random_pairs(-depth):
        normal, _, gap, _ = pair.contacts(0.0)
        assert len(gap) > 0
        # faces are preferred to edges by one per cent of the depth and a hair of the size
        assert -pair.gaps(normal[:1])[0] <= 1.01 * depth + 1e-3 * min(pair.half_a[0], pair.half_b[0])
        assert -gap.min() <= -pair.gaps(normal[:1])[0] + 1e-12
        assert -gap.min() >= 0.98 * depth - 1e-12


def test_moving_penetrating_boxes_apart_along_the_normal_separates_them():
    for pair in random_pairs(-0.02):
        normal, _, gap, _ = pair.contacts(0.0)
        pair.d = pair.d - 1.02 * gap.min() * normal[0]
        assert pair.gaps(pair.axes).max() >= -1e-12


def test_separated_boxes_report_between_their_shadows_and_no_nearer_than_their_distance():
    """The gap along any axis is a lower bound of the distance; a point over the other box's face is an upper bound."""
    for pair in random_pairs(0.02):
        normal, _, gap, feature = pair.contacts(0.2)
        if len(gap) == 0:
            continue
        shadow, distance = pair.gaps(normal[:1])[0], pair.distance()
        assert shadow <= distance + 1e-9
        assert (gap >= shadow - 1e-12).all()
        if feature[0] < EDGE_FEATURES:
            assert (gap >= distance - 1e-7).all()
        else:
            assert (gap <= distance + 1e-7).all()


def test_boxes_nearer_than_the_limit_have_a_contact():
    missed = [pair for pair in random_pairs(0.01, 600) if len(pair.contacts(0.1)[2]) == 0 and pair.distance() < 0.05]
    assert len(missed) == 0


def test_boxes_nearer_than_the_limit_across_parallel_edges_have_a_contact():
    """Cubes whose faces are 1 mm apart in x and in y: 1.4 mm apart, with a limit of 10 mm."""
    _, _, gap, _ = rows(geometry.box_box, np.ones(3), UPRIGHT, np.ones(3), UPRIGHT, 2.001, 2.001, 0.0, 0.01)
    assert len(gap) > 0


def test_boxes_farther_apart_than_the_limit_have_no_contact():
    for pair in random_pairs(0.02, 50):
        assert len(pair.contacts(0.019)[2]) == 0


@pytest.mark.parametrize("gap", [-0.05, -1e-3, 0.02])
def test_box_normals_are_unit_and_from_a_to_b(gap):
    for pair in random_pairs(gap):
        normal, _, _, _ = pair.contacts(0.1)
        assert np.allclose(np.linalg.norm(normal, axis=1), 1.0, atol=1e-12)
        assert (normal @ pair.d >= 0).all()


@pytest.mark.parametrize("gap", [-0.05, -1e-3, 0.02])
def test_box_points_lie_halfway_between_points_of_both_boxes(gap):
    for pair in random_pairs(gap):
        for normal, point, g, feature in zip(*pair.contacts(0.1)):
            assert outside(pair.half_a, pair.quaternion_a, 0.0, point - 0.5 * g * normal) < 1e-12
            if feature < EDGE_FEATURES or g < 0:
                assert outside(pair.half_b, pair.quaternion_b, pair.d, point + 0.5 * g * normal) < 1e-12


@pytest.mark.parametrize("gap", [-0.05, -1e-3, 0.02])
def test_swapping_the_boxes_flips_the_normal_and_keeps_the_gaps(gap):
    for pair in random_pairs(gap):
        best = np.sort(pair.gaps(pair.axes))[-2:]
        if best[1] - best[0] < 5e-3:
            continue  # two axes are as good: either answer is right
        normal, point, g, _ = pair.contacts(0.1)
        swapped_normal, swapped_point, swapped_g, _ = pair.permuted(0.1)
        assert np.allclose(swapped_normal[: len(normal)], -normal, atol=1e-12)
        assert np.allclose(np.sort(swapped_g), np.sort(g), atol=1e-12)
        for p in swapped_point + pair.d:
            assert np.abs(point - p).max(axis=1).min() < 1e-12


def test_features_of_one_pair_are_distinct():
    rng = np.random.default_rng(8)
    for _ in range(1000):
        pair = Pair(rng, -rng.uniform(0, 0.4))
        _, _, gap, feature = pair.contacts(0.0)
        assert len(set(feature.tolist())) == len(gap)


@pytest.mark.parametrize("degrees", [10, 20, 30, 45])
def test_features_of_a_twisted_stack_of_cubes_are_distinct(degrees):
    _, _, gap, feature = rows(geometry.box_box, np.ones(3), UPRIGHT, np.ones(3), about("z", degrees), 0, 0, 1.999, 0.0)
    assert len(gap) == 8
    assert len(set(feature.tolist())) == 8


def stack(half_a, half_b, x, y, quaternion=UPRIGHT):
    """b stands on a with 0.1 mm of penetration, both turned alike; contacts turned back to the frame of the stack."""
    d = matrix(quaternion) @ [x, y, half_a[2] + half_b[2] - 1e-4]
    normal, point, gap, feature = rows(geometry.box_box, half_a, quaternion, half_b, quaternion, *d, 1e-3)
    return normal @ matrix(quaternion), point @ matrix(quaternion), gap, feature


def assert_four_points(contacts, half_a, x_range, y_range):
    normal, point, gap, feature = contacts
    assert len(gap) == 4 and len(set(feature.tolist())) == 4
    assert np.allclose(normal, (0, 0, 1), atol=1e-12) and np.allclose(gap, -1e-4, atol=1e-12)
    order = np.lexsort(np.round(point[:, 1::-1], 9).T)
    expected = [[x, y, half_a[2] - 0.5e-4] for x in x_range for y in y_range]
    assert np.allclose(point[order], expected, atol=1e-12)


TURNS = [UPRIGHT, about("x", 90), about("xyz", (20, 30, 40)), about("xyz", (-70, 10, 160))]
LARGE, SMALL = np.array([1.0, 1.2, 0.5]), np.array([0.5, 0.4, 0.3])


@pytest.mark.parametrize("turn", TURNS, ids=range(4))
def test_small_box_on_large_touches_at_its_own_corners(turn):
    assert_four_points(stack(LARGE, SMALL, 0.1, 0.05, turn), LARGE, (-0.4, 0.6), (-0.35, 0.45))


@pytest.mark.parametrize("turn", TURNS, ids=range(4))
def test_large_box_on_small_touches_at_the_corners_of_the_small_one(turn):
    assert_four_points(stack(SMALL, LARGE, 0.1, 0.05, turn), SMALL, (-0.5, 0.5), (-0.4, 0.4))


@pytest.mark.parametrize("turn", TURNS, ids=range(4))
def test_overhanging_box_touches_at_the_corners_of_the_overlap(turn):
    assert_four_points(stack(LARGE, SMALL, 0.8, 0.05, turn), LARGE, (0.3, 1.0), (-0.35, 0.45))


def test_equal_box_on_box_touches_at_four_corners():
    assert_four_points(stack(SMALL, SMALL, 0.0, 0.0), SMALL, (-0.5, 0.5), (-0.4, 0.4))


def test_equal_box_on_box_touches_at_four_corners_in_any_frame():
    """Sides that coincide must not give a corner twice, however the last bits fall."""
    rng = np.random.default_rng(9)
    for _ in range(50):
        assert_four_points(stack(SMALL, SMALL, 0.0, 0.0, random_quaternion(rng)), SMALL, (-0.5, 0.5), (-0.4, 0.4))


@pytest.mark.parametrize("halves", [(LARGE, SMALL), (SMALL, LARGE)], ids=["small on large", "large on small"])
@pytest.mark.parametrize("turn", TURNS, ids=range(4))
def test_features_of_a_resting_box_survive_a_small_shift(halves, turn):
    before = stack(*halves, 0.1, 0.05, turn)
    for dx, dy in ((1e-6, 0), (0, 1e-6), (-1e-6, 1e-6)):
        after = stack(*halves, 0.1 + dx, 0.05 + dy, turn)
        assert sorted(after[3]) == sorted(before[3])
        for feature in before[3]:  # a feature stays at its corner
            moved = after[1][after[3] == feature] - before[1][before[3] == feature]
            assert np.abs(moved).max() < 1.5e-6


@pytest.mark.parametrize("gap", [-1e-3, -0.05, 0.01])
def test_crossing_edges_give_one_contact_where_they_cross(gap):
    """Two cubes that stand on an edge, one along x, the other above it along y."""
    d = np.array([0.1, -0.2, 2 * np.sqrt(2) + gap])
    normal, point, g, _ = rows(geometry.box_box, np.ones(3), about("x", 45), np.ones(3), about("y", 45), *d, 0.1)
    assert len(g) == 1
    assert np.allclose(normal[0], (0, 0, 1), atol=1e-12)
    assert np.isclose(g[0], gap, atol=1e-12)
    assert np.allclose(point[0], (0.1, 0.0, np.sqrt(2) + 0.5 * gap), atol=1e-12)


def test_edge_of_a_box_on_a_face_gives_the_ends_of_the_edge():
    """A cube on one edge, 1 mm deep in the middle of a large slab."""
    slab, d = np.array([3.0, 3.0, 0.5]), np.array([0.2, 0.1, 0.5 + np.sqrt(2) - 1e-3])
    normal, point, gap, _ = rows(geometry.box_box, slab, UPRIGHT, np.ones(3), about("x", 45), *d, 0.0)
    assert np.allclose(normal, (0, 0, 1), atol=1e-12)
    assert np.allclose(gap, -1e-3, atol=1e-12)
    assert np.allclose(np.sort(point[:, 0]), (-0.8, 1.2)) and np.allclose(point[:, 1], 0.1)


def test_corner_of_a_box_on_a_face_gives_the_corner():
    diagonal = np.roll(Rotation.align_vectors([[0, 0, -1]], [np.ones(3) / np.sqrt(3)])[0].as_quat(), 1)
    slab, d = np.array([3.0, 3.0, 0.5]), np.array([0.2, 0.1, 0.5 + np.sqrt(3) - 1e-3])
    normal, point, gap, _ = rows(geometry.box_box, slab, UPRIGHT, np.ones(3), diagonal, *d, 0.0)
    assert len(gap) == 1 and np.isclose(gap[0], -1e-3, atol=1e-12)
    assert np.allclose(normal[0], (0, 0, 1)) and np.allclose(point[0], (0.2, 0.1, 0.4995))
