"""Contacts of convex shapes, two by two, with planes, and in compounds, against supports in NumPy, coal and fcl."""

import itertools

import numpy as np
import pytest
from oracles import (
    Many,
    about,
    apart,
    coal_distances,
    detect_on_plane,
    detect_pairs,
    detect_scene,
    fcl_depths,
    fcl_distances,
    fibonacci,
    move_to_gap,
    plane_gaps,
    random_directions,
    random_quaternions,
    signed_distances,
    sizes_of,
    world_heights,
)

import gravel as gv
from gravel.rotations import multiply, rotate

pytestmark = pytest.mark.usefixtures("device")

UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])
# a stone of many corners, and one of few whose centre of mass is elsewhere
STONES = fibonacci(40) * (1.0, 0.7, 0.5), np.random.default_rng(3).normal(size=(12, 3)) * 0.5 + 0.3


def spread(rng, n, *columns, low=0.15, high=1.0):
    return np.exp(rng.uniform(np.log(low), np.log(high), (n, *columns)))


def rounded(rng, half):
    return gv.RoundedBox(half, half.min(axis=1) * rng.uniform(0.05, 1.0, len(half)))


MAKE = {
    "Sphere": lambda rng, n, stone: gv.Sphere(spread(rng, n)),
    "Ellipsoid": lambda rng, n, stone: gv.Ellipsoid(spread(rng, n, 3)),
    "Capsule": lambda rng, n, stone: gv.Capsule(spread(rng, n), spread(rng, n)),
    "Cylinder": lambda rng, n, stone: gv.Cylinder(spread(rng, n), spread(rng, n)),
    "Cone": lambda rng, n, stone: gv.Cone(spread(rng, n), spread(rng, n, high=1.5)),
    "RoundedBox": lambda rng, n, stone: rounded(rng, spread(rng, n, 3)),
    "Box": lambda rng, n, stone: gv.Box(spread(rng, n, 3)),
    "ConvexHull": lambda rng, n, stone: gv.ConvexHull(STONES[stone], spread(rng, n, low=0.4)),
}
PAIRS = list(itertools.combinations_with_replacement(MAKE, 2))
GENERAL_PAIRS = pytest.mark.parametrize("names", PAIRS[:-3] + PAIRS[-2:], ids=["-".join(pair) for pair in PAIRS[:-3] + PAIRS[-2:]])
assert PAIRS[-3] == ("Box", "Box")  # whose contacts have rules of their own, see below


def random_bodies(rng, name, n, stone=0):
    return Many(MAKE[name](rng, n, stone), np.zeros((n, 3)), random_quaternions(rng, n))


def random_pairs(names, low, high, n=200, seed=1):
    """Pairs with signed distances between low and high, in shares of their sizes; and these sizes."""
    rng = np.random.default_rng(seed)
    a, b = random_bodies(rng, names[0], n), random_bodies(rng, names[1], n, stone=1)
    size = sizes_of(a.shape) + sizes_of(b.shape)
    return a, move_to_gap(a, b, rng.uniform(low, high, n) * size, random_directions(rng, n)), size


def gaps_along(a, b, normals):
    return plane_gaps(a, b, normals[:, None])[:, 0]


def round_contact(names):
    """Whether the pair has one contact, at the nearest points; faces may show a contact a hair beside them."""
    return "Sphere" in names or "Ellipsoid" in names


# --- two shapes
@GENERAL_PAIRS
def test_gap_is_the_distance_of_tangent_planes_and_no_direction_has_a_larger_one(names):
    a, b, size = random_pairs(names, -0.5, 0.2)
    found = detect_pairs(a, b, margin=1.0)
    assert (found.count >= 1).all()
    assert np.abs(np.linalg.norm(found.table.normal, axis=1) - 1).max() < 1e-9
    assert (np.abs(found.gap - gaps_along(a, b, found.normal)) / size).max() < 2e-5
    best, _ = signed_distances(a, b, found.normal[:, None])
    assert ((best - found.gap) / size).max() < 1e-6


@GENERAL_PAIRS
def test_distances_of_separated_pairs_against_coal_and_fcl(names):
    a, b, size = random_pairs(names, 0.005, 0.2, seed=2)
    found = detect_pairs(a, b, margin=1.0)
    coal_gap, _ = coal_distances(a, b)
    assert (np.abs(found.gap - coal_gap) / size).max() < (1e-6 if round_contact(names) else 1e-5)  # see ``manifold.not_shown``
    # fcl's own steps end early now and then
    assert (np.abs(found.gap - fcl_distances(a, b)) / size < 1e-4).mean() > 0.95


@GENERAL_PAIRS
def test_depths_against_coal_and_fcl_where_these_are_right(names):
    """Theirs count where their normal shows their depth and no sampled direction is better, which for round shapes is not always."""
    a, b, size = random_pairs(names, -0.2, -0.01, seed=3)
    found = detect_pairs(a, b, margin=0.1)
    best, _ = signed_distances(a, b, found.normal[:, None])
    assert (found.count >= 1).all() and (found.gap < 0).mean() > 0.9
    coal_gap, coal_normal = coal_distances(a, b)
    fcl_depth, fcl_normal = fcl_depths(a, b)
    agree = {}
    for name, gap, normal in (("coal", coal_gap, coal_normal), ("fcl", -fcl_depth, fcl_normal)):
        normal = np.where(np.abs(np.linalg.norm(normal, axis=1, keepdims=True) - 1) < 1e-6, normal, 1.0)
        right = (np.abs(gaps_along(a, b, normal) - gap) < 2e-5 * size) & (gap > best - 1e-6 * size)
        agree[name] = right.mean()
        assert (np.abs(found.gap - gap)[right] < 3e-5 * size[right]).all()
    assert agree["coal"] > 0.5, agree


@pytest.mark.parametrize("names", PAIRS, ids=["-".join(p) for p in PAIRS])
def test_swapped_bodies_have_the_same_contact_turned_round(names):
    a, b, size = random_pairs(names, -0.1, 0.05, seed=4)
    one, two = detect_pairs(a, b, margin=0.3), detect_pairs(b, a, margin=0.3)
    hair = 0.02 * np.abs(one.gap) + 1e-3 * size if names == ("Box", "Box") else 3e-5 * size
    both = np.isfinite(one.gap) & np.isfinite(two.gap)
    assert (both | (np.minimum(one.gap, two.gap) > 0.2)).all()
    assert (np.abs(one.gap - two.gap)[both] <= hair[both]).mean() > (0.97 if names == ("Box", "Box") else 1 - 1e-9)


@GENERAL_PAIRS
def test_points_of_all_contacts_lie_on_both_bodies(names):
    """Half a gap from a point along its normal are points of both bodies. Straight sides of round bodies that cross at a small
    angle are taken for parallel, and their ends for nearer than they are."""
    a, b, size = random_pairs(names, -0.02, 0.02, seed=5, n=100)
    found = detect_pairs(a, b, margin=0.3)
    assert (found.count >= 1).all()
    rows, normal = found.pair, found.table.normal
    for many, side in ((a, -1), (b, 1)):
        there = found.points + side * 0.5 * found.table.gap[:, None] * normal
        picked = Many(many.shape.take(rows), many.position[rows], many.quaternion[rows])
        dots = Many(gv.Sphere(np.full(len(rows), 1e-12)), there, np.tile(UPRIGHT, (len(rows), 1)))
        outside, _ = signed_distances(picked, dots, samples=200, rounds=30)
        assert (outside / size[rows]).max() < (4e-2 if set(names) <= {"Capsule", "Cylinder", "Cone"} else 2e-3)
    deepest = found.point - 0.5 * found.gap[:, None] * found.normal
    height = world_heights(a, found.normal[:, None])[:, 0] - np.einsum("ni,ni->n", deepest, found.normal)
    assert (np.abs(height) / size).max() < 3e-5


def test_boxes_report_the_least_depth_but_for_a_preference_of_faces():
    """Faces win over edges by a hundredth of the depth and a thousandth of the size; a gap is that of a corner over a face."""
    a, b, size = random_pairs(("Box", "Box"), -0.5, -0.1, n=1000)
    found = detect_pairs(a, b, margin=0.0)
    assert (found.count >= 1).all()
    along = gaps_along(a, b, found.normal)
    best, _ = signed_distances(a, b, found.normal[:, None])
    coal_gap, coal_normal = coal_distances(a, b)
    best = np.maximum(best, np.where(np.isfinite(coal_gap), gaps_along(a, b, coal_normal), -np.inf))
    allowed = 0.011 * -best + 1.1e-3 * np.minimum(a.shape.half_extents.min(axis=1), b.shape.half_extents.min(axis=1))
    assert (best - along <= allowed).all()
    assert (found.gap >= along - 1e-9).all() and (found.gap <= 0.97 * along + 1e-9).all()


def test_separated_boxes_are_seen_within_the_margin_and_not_beyond():
    a, b, size = random_pairs(("Box", "Box"), 0.005, 0.2, n=1000)
    distance, _ = coal_distances(a, b)
    found = detect_pairs(a, b, margin=0.3)
    assert (found.gap >= gaps_along(a, b, found.normal) - 1e-9)[found.count > 0].all()
    assert (distance[detect_pairs(a, b, margin=0.05).count > 0] < 0.3).all()
    assert (found.count > 0)[distance < 0.1].mean() > 0.97


# --- hard cases
THIN = {
    "Sphere": gv.Sphere(1e-3),
    "Ellipsoid": gv.Ellipsoid((1, 1, 1e-3)),
    "Capsule": gv.Capsule(1e-3, 1),
    "Cylinder": gv.Cylinder(1, 1e-3),
    "Cone": gv.Cone(1e-3, 1),
    "RoundedBox": gv.RoundedBox((1e-3, 1, 1), 1e-3),
    "Box": gv.Box((1e-3, 1, 1)),
    "ConvexHull": gv.ConvexHull(np.array(list(itertools.product((-1e-3, 1e-3), (-1.0, 1.0), (-0.5, 0.7))))),
}
PLAIN = {
    "Sphere": gv.Sphere(0.5),
    "Ellipsoid": gv.Ellipsoid((0.5, 0.4, 0.6)),
    "Capsule": gv.Capsule(0.3, 0.4),
    "Cylinder": gv.Cylinder(0.4, 0.5),
    "Cone": gv.Cone(0.5, 0.8),
    "RoundedBox": gv.RoundedBox((0.5, 0.4, 0.3), 0.1),
    "Box": gv.Box((0.5, 0.4, 0.3)),
    "ConvexHull": gv.ConvexHull(np.array(list(itertools.product((-0.5, 0.5), (-0.4, 0.4), (-0.3, 0.3))))),
}


def scaled(shape, factor):
    if isinstance(shape, gv.ConvexHull):
        return gv.ConvexHull(shape.vertices, factor)
    return type(shape)(*(factor * getattr(shape, name) for name in type(shape).__dataclass_fields__))


def hard_pairs():
    """(shape, shape, quaternion, quaternion, from a to b): overlapping or touching, all in special positions."""
    turns = [UPRIGHT, about("x", 90), about("xyz", (30, 40, 50))]
    for name_a, name_b in PAIRS:
        for a, b in itertools.product((PLAIN[name_a], THIN[name_a]), (PLAIN[name_b], THIN[name_b])):
            for turn in turns:
                yield a, b, UPRIGHT, turn, np.zeros(3)  # concentric
                yield a, b, turn, turn, np.zeros(3)  # identical, or the same axes
                yield a, b, UPRIGHT, turn, np.array([1e-13, 0, 0])
                yield a, b, UPRIGHT, turn, np.array([0, 0, 1e-4])
        yield scaled(PLAIN[name_a], 0.1), PLAIN[name_b], UPRIGHT, turns[2], np.array([0.02, 0.01, -0.03])  # inside
        yield scaled(PLAIN[name_a], 1e-4), PLAIN[name_b], UPRIGHT, turns[2], np.array([0.05, 0.01, -0.03])
        yield scaled(PLAIN[name_a], 1e4), scaled(PLAIN[name_b], 0.1), UPRIGHT, turns[2], np.array([100.0, 0.01, -0.03])


def alone(shape, turn, position):
    """One body as Many."""
    if isinstance(shape, gv.ConvexHull):
        shape = gv.ConvexHull(shape.vertices, np.reshape(shape.scale, 1))
    else:
        shape = type(shape)(*(np.asarray(getattr(shape, name))[None] for name in type(shape).__dataclass_fields__))
    return Many(shape, np.reshape(position, (1, 3)), np.reshape(turn, (1, 4)))


def detect_list(cases, margin):
    """Contacts of (shape, shape, quaternion, quaternion, from a to b): for each, the rows of the table."""
    big = max(float(s.bounding_radii(1)[0]) for case in cases for s in case[:2])
    places = apart(len(cases), 4 * big + 1)
    scene = gv.Scene()
    for (a, b, turn_a, turn_b, d), place in zip(cases, places):
        scene.add_body(a, place, quaternion=turn_a)
        scene.add_body(b, place + d, quaternion=turn_b)
    table = detect_scene(scene, margin)
    assert (table.body_a % 2 == 0).all() and (table.body_b == table.body_a + 1).all()
    return [table[table.body_a == 2 * k] for k in range(len(cases))]


def fault_of(rows, a, b, turn_a, turn_b, d):
    """What is wrong with the contacts of a pair, or None."""
    if not len(rows):
        return "none"
    if not all(np.isfinite(values).all() for values in (rows.gap, rows.normal, rows.point)):
        return "not finite"
    if np.abs(np.linalg.norm(rows.normal, axis=1) - 1).max() > 1e-9:
        return "not unit"
    deepest = rows.gap.argmin()
    shown = gaps_along(alone(a, turn_a, np.zeros(3)), alone(b, turn_b, d), rows.normal[deepest][None])[0]
    boxes = isinstance(a, gv.Box) and isinstance(b, gv.Box)
    hair = 3e-5 * max(a.bounding_radii(1)[0], b.bounding_radii(1)[0]) + (0.02 * abs(shown) if boxes else 0)
    return None if abs(shown - rows.gap[deepest]) < hair else f"gap {rows.gap[deepest]} where its normal shows {shown}"


@pytest.mark.parametrize("large", [False, True])
def test_special_positions_give_finite_values_and_unit_normals(large):
    cases = [case for case in hard_pairs() if (max(shape.bounding_radii(1)[0] for shape in case[:2]) > 100) == large]
    faults = [(case, fault_of(rows, *case)) for case, rows in zip(cases, detect_list(cases, margin=1e-6))]
    wrong = [(case, fault) for case, fault in faults if fault]
    assert wrong == [], f"{len(wrong)} of {len(cases)}: {wrong[:3]}"


@pytest.mark.parametrize("names", PAIRS, ids=["-".join(p) for p in PAIRS])
def test_bodies_that_just_touch_have_a_gap_of_nothing(names):
    """Moved apart along the normal by the depth found, a pair touches."""
    a, b, size = random_pairs(names, -0.05, 0.0, seed=6, n=100)
    found = detect_pairs(a, b, margin=0.3)
    move = gaps_along(a, b, found.normal)
    touching = b._replace(position=b.position - move[:, None] * found.normal)
    again = detect_pairs(a, touching, margin=0.3)
    assert np.isfinite(again.gap).all() and np.abs(np.linalg.norm(again.normal, axis=1) - 1).max() < 1e-9
    assert (np.abs(gaps_along(a, touching, again.normal)) / size).max() < (2e-3 if names == ("Box", "Box") else 1e-5)


# --- planes
@pytest.mark.parametrize("name", MAKE)
def test_lowest_point_over_a_plane(name):
    rng = np.random.default_rng(7)
    for normal in [*random_directions(rng, 4), *np.eye(3)]:
        bodies = random_bodies(rng, name, 100)._replace(position=rng.normal(size=(100, 3)))
        size = sizes_of(bodies.shape)
        found = detect_on_plane(bodies, normal, margin=8.0)
        lowest = -world_heights(bodies, np.broadcast_to(-normal, (100, 1, 3)))[:, 0]
        assert (found.count >= 1).all()
        assert (np.abs(found.gap - lowest) / size).max() < 2.1e-5  # see ``manifold.not_shown``
        assert np.allclose(found.table.normal, -normal, rtol=0, atol=1e-12)
        surface = found.points + 0.5 * found.table.gap[:, None] * normal  # of the bodies
        assert np.allclose(surface @ normal, found.table.gap, rtol=0, atol=1e-10)


LYING = {  # shape, quaternion, height of the centre, points of the footprint
    "cylinder standing": (gv.Cylinder(0.4, 0.5), UPRIGHT, 0.5, None),
    "cylinder lying": (gv.Cylinder(0.4, 0.5), about("x", 90), 0.4, [(0, -0.5), (0, 0.5)]),
    "capsule lying": (gv.Capsule(0.3, 0.4), about("x", 90), 0.3, [(0, -0.4), (0, 0.4)]),
    "capsule standing": (gv.Capsule(0.3, 0.4), UPRIGHT, 0.7, [(0, 0)]),
    "cone standing": (gv.Cone(0.5, 0.8), UPRIGHT, 0.2, None),
    "cone on its tip": (gv.Cone(0.5, 0.8), about("x", 180), 0.6, [(0, 0)]),
    "box": (gv.Box((0.1, 0.2, 0.3)), UPRIGHT, 0.3, [(-0.1, -0.2), (-0.1, 0.2), (0.1, -0.2), (0.1, 0.2)]),
    "hull": (PLAIN["ConvexHull"], UPRIGHT, 0.3, [(-0.5, -0.4), (-0.5, 0.4), (0.5, -0.4), (0.5, 0.4)]),
    "ellipsoid": (gv.Ellipsoid((0.5, 0.4, 0.6)), UPRIGHT, 0.6, [(0, 0)]),
    "rounded box": (gv.RoundedBox((0.1, 0.2, 0.3), 0.04), UPRIGHT, 0.3, [(-0.06, -0.16), (-0.06, 0.16), (0.06, -0.16), (0.06, 0.16)]),
    "rounded plate on its edge": (gv.RoundedBox((0.2, 0.3, 0.1), 0.1), about("y", 90), 0.2, [(0, -0.2), (0, 0.2)]),
    "rounded rod lying": (gv.RoundedBox((0.1, 0.1, 0.4), 0.1), about("x", 90), 0.1, [(0, -0.3), (0, 0.3)]),
    "rounded to a ball": (gv.RoundedBox((0.2, 0.2, 0.2), 0.2), about("xyz", (30, 40, 50)), 0.2, [(0, 0)]),
}


@pytest.mark.parametrize("floor", ["plane", "box"])
@pytest.mark.parametrize("name", LYING)
def test_footprint_of_what_lies_flat(name, floor):
    shape, turn, height, corners = LYING[name]
    scene = gv.Scene()
    scene.add_body(gv.Plane() if floor == "plane" else gv.Box((3, 3, 1)), (0, 0, 0 if floor == "plane" else -1), fixed=True)
    scene.add_body(shape, (0.2, 0.1, height - 1e-4), quaternion=turn)
    table = detect_scene(scene, 1e-3)
    assert np.allclose(table.gap, -1e-4, rtol=0, atol=1e-8) and np.allclose(table.normal, (0, 0, 1), rtol=0, atol=1e-6)
    assert np.allclose(table.point[:, 2], -0.5e-4, rtol=0, atol=1e-8)
    places = table.point[:, :2] - (0.2, 0.1)
    if corners is None:  # round: points on the rim, all around
        assert len(table) == 8 and np.allclose(np.linalg.norm(places, axis=1), shape.radius, rtol=0, atol=1e-6)
        assert np.abs(places.mean(axis=0)).max() < 1e-6
    else:
        assert len(table) == len(corners)
        assert max(np.abs(places - corner).max(axis=1).min() for corner in corners) < 1e-6


def test_face_on_face_of_two_hulls_and_of_boxes_agree():
    """A box as a hull: the corners of the shared face, wherever it lies."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        d = np.array([*rng.uniform(-0.6, 0.6, 2), 0.599])
        turn = about("z", rng.uniform(0, 360))
        tables = []
        for a, b in itertools.product(("Box", "ConvexHull"), repeat=2):
            scene = gv.Scene()
            scene.add_body(PLAIN[a])
            scene.add_body(PLAIN[b], d, quaternion=turn)
            tables.append(detect_scene(scene, 1e-3))
        for table in tables:
            assert np.allclose(table.normal, (0, 0, 1), atol=1e-7) and np.allclose(table.gap, -1e-3, atol=1e-7)
            for axis in range(2):  # the same patch
                assert np.isclose(table.point[:, axis].min(), tables[0].point[:, axis].min(), atol=1e-6)
                assert np.isclose(table.point[:, axis].max(), tables[0].point[:, axis].max(), atol=1e-6)


# --- compounds
CHAIR = gv.Compound(
    [
        (gv.Box((0.4, 0.3, 0.1)), (0.1, 0.0, 0.0), about("z", 20)),
        (gv.Cylinder(0.15, 0.5), (0.3, 0.1, 0.4), about("y", 30)),
        (gv.ConvexHull(STONES[1], 0.4), (-0.3, 0.2, -0.2), about("xyz", (10, 50, 80))),
        (gv.Cone(0.2, 0.5), (0.0, -0.4, 0.2), about("x", 70)),
    ]
)
DUMBBELL = gv.Compound(
    [(gv.Sphere(0.2), (0, 0, -0.4)), (gv.Capsule(0.1, 0.4),), (gv.Ellipsoid((0.2, 0.3, 0.1)), (0, 0, 0.4), about("x", 45))]
)
CLUMP_PLACES, CLUMP_RADII = np.array([(0, 0, 0), (0.3, 0, 0), (0.1, 0.3, 0.1), (0.1, 0.1, 0.4)]), np.array([0.2, 0.15, 0.25, 0.1])


def children(shape, position, quaternion, scale=1.0):
    """The items of a compound or a clump as bodies: (shape, position, quaternion)."""
    if isinstance(shape, gv.Clump):
        for place, radius in zip(shape.positions, shape.radii):
            yield gv.Sphere(scale * radius), position + rotate(quaternion, scale * place), UPRIGHT
        return
    for item, place, turn in shape.items:
        yield item, position + rotate(quaternion, place), multiply(quaternion, turn)


def rows_of(table, owner):
    """Contacts between different owners: (owner a, owner b, point, normal, gap), sorted."""
    a, b = owner[table.body_a], owner[table.body_b]
    values = np.column_stack([a, b, table.point, table.normal, table.gap])[a != b]
    return values[np.lexsort(np.round(values[:, ::-1].T, 5))]


def assert_same_contacts(bodies, margin=0.02, at_least=100):
    """``bodies``: (shape, position, quaternion, scale) of compounds and others; the same with all children apart."""
    whole, parts, owner = gv.Scene(), gv.Scene(), []
    for k, (shape, position, quaternion, scale) in enumerate(bodies):
        fixed = isinstance(shape, gv.Plane)
        given = gv.Clump(shape.positions, shape.radii, scale, samples=32) if isinstance(shape, gv.Clump) else shape
        whole.add_body(given, position, quaternion=quaternion, fixed=fixed)
        several = hasattr(shape, "children")
        items = children(shape, position, quaternion, scale) if several else [(shape, position, quaternion)]
        for item, place, turn in items:
            parts.add_body(item, place, quaternion=turn, fixed=fixed)
            owner.append(k)
    one, two = rows_of(detect_scene(whole, margin), np.arange(len(bodies))), rows_of(detect_scene(parts, margin), np.array(owner))
    assert len(one) >= at_least and abs(len(one) - len(two)) <= 0.005 * len(one)
    gaps = [{(a, b): gap for a, b, *_, gap in sorted(rows.tolist(), key=lambda row: -row[-1])} for rows in (one, two)]  # the deepest
    assert gaps[0].keys() == gaps[1].keys()
    assert max(abs(gap - gaps[1][pair]) for pair, gap in gaps[0].items()) < 1e-4
    left, same = two.copy(), 0
    for row in one:
        distance = np.abs(left - row).max(axis=1)
        nearest = distance.argmin()
        if distance[nearest] < 5e-4:  # the last bits of a pose decide where the search for a depth ends
            left[nearest], same = np.inf, same + 1
    assert same >= 0.98 * len(one)


@pytest.mark.parametrize("others", [gv.Sphere(0.3), gv.Box((0.3, 0.2, 0.25)), gv.Cylinder(0.2, 0.4), DUMBBELL, CHAIR], ids=str)
def test_compound_touches_as_its_children_do(others):
    rng = np.random.default_rng(9)
    places, turns = rng.uniform(0, 4.0, (100, 3)), random_quaternions(rng, 100)
    bodies = [(others if k < 50 else CHAIR, places[k], turns[k], 1.0) for k in range(100)]
    assert_same_contacts(bodies)


def test_compounds_of_different_kinds_touch_a_plane_as_their_children_do():
    rng = np.random.default_rng(10)
    places = np.column_stack([apart(64, 5.0)[:, :1] + 5 * np.arange(64)[:, None], rng.uniform(0, 1, 64), rng.uniform(0.0, 0.5, 64)])
    bodies = [(CHAIR if k % 2 else DUMBBELL, places[k], q, 1.0) for k, q in enumerate(random_quaternions(rng, 64))]
    assert_same_contacts([*bodies, (gv.Plane(), np.zeros(3), UPRIGHT, 1.0)])


def test_clumps_of_many_scales_touch_as_their_spheres_do():
    rng = np.random.default_rng(11)
    clump = gv.Clump(CLUMP_PLACES, CLUMP_RADII)
    places, turns = rng.uniform(0, 4.0, (120, 3)), random_quaternions(rng, 120)
    others = [gv.Sphere(0.2), gv.Box((0.3, 0.2, 0.25)), CHAIR, gv.Capsule(0.1, 0.4)]
    bodies = [(others[k % 4] if k < 40 else clump, places[k], turns[k], float(rng.uniform(0.5, 1.5))) for k in range(120)]
    assert_same_contacts([*bodies, (gv.Plane(), np.zeros(3), UPRIGHT, 1.0)])


def test_compound_of_one_child_is_the_child():
    rng = np.random.default_rng(12)
    for name in MAKE:
        item = PLAIN[name]
        turns = random_quaternions(rng, 20)
        cases = [(item, gv.Box((0.4, 0.4, 0.4)), q, UPRIGHT, rng.uniform(-0.7, 0.7, 3)) for q in turns]
        compound = gv.Compound([(item,)])
        for plain, made in zip(detect_list(cases, 0.01), detect_list([(compound, *case[1:]) for case in cases], 0.01)):
            assert len(plain) == len(made)
            if len(plain):
                assert np.isclose(plain.gap.min(), made.gap.min(), atol=2e-3 if name == "Box" else 1e-7)
