"""Rays against trimesh and against the inside of shapes as formulas; boxes against the points of shapes."""

import itertools

import numba
import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation
from trimesh.ray.ray_triangle import ray_triangle_id
from trimesh.transformations import quaternion_matrix

import gravel as gv
from gravel.detection.queries import bodies_in_box, cast_rays, engine_of
from gravel.state import Bodies

TURN = np.array([0.8, 0.3, -0.4, 0.2]) / np.linalg.norm([0.8, 0.3, -0.4, 0.2])
PLACE = np.array([0.4, -0.3, 0.7])


def scene_with(*shapes, turn=TURN, place=PLACE, step=(0.0, 0.0, 0.0)):
    scene = gv.Scene()
    for k, shape in enumerate(shapes):
        scene.add_body(shape, place + k * np.array(step), fixed=True, quaternion=turn)
    return scene


def cast(scene, origins, directions, **options):
    return cast_rays(engine_of(scene.bodies, scene.geometries), origins, directions, **options)


def to_world(points, turn=TURN, place=PLACE):
    return Rotation.from_quat(np.roll(turn, -1)).apply(points) + place


def to_body(points, turn=TURN, place=PLACE):
    return Rotation.from_quat(np.roll(turn, -1)).inv().apply(points - place)


def rays_around(n, size=1.0, seed=1):
    """Rays from around, past and inside a body at PLACE: some aim at it, some start in it, some miss."""
    rng = np.random.default_rng(seed)
    origins = PLACE + rng.normal(size=(n, 3)) * size * rng.choice([0.3, 1.0, 4.0], n)[:, None]
    targets = PLACE + rng.normal(size=(n, 3)) * size * rng.choice([0.2, 0.8], n)[:, None]
    return origins, (targets - origins) * rng.uniform(0.1, 10.0, n)[:, None]


# --- curved shapes: their inside as a formula, negative within


def distance_beyond(points, half):
    """From a box about the origin; within it, zero less how deep: it does not count on the surface of what is around it."""
    beyond = np.abs(points) - half
    return np.linalg.norm(np.maximum(beyond, 0), axis=-1) + np.minimum(beyond.max(axis=-1), 0)


ROUND = {
    "sphere": (gv.Sphere(0.7), lambda p: np.linalg.norm(p, axis=-1) - 0.7),
    "ellipsoid": (gv.Ellipsoid((0.9, 0.3, 0.6)), lambda p: np.linalg.norm(p / (0.9, 0.3, 0.6), axis=-1) - 1.0),
    "capsule": (
        gv.Capsule(0.3, 0.5),
        lambda p: np.linalg.norm(p - np.clip(p[..., 2:], -0.5, 0.5) * (0.0, 0.0, 1.0), axis=-1) - 0.3,
    ),
    "cylinder": (gv.Cylinder(0.5, 0.4), lambda p: np.maximum(np.linalg.norm(p[..., :2], axis=-1) - 0.5, np.abs(p[..., 2]) - 0.4)),
    "cone": (
        gv.Cone(0.5, 1.2),
        lambda p: np.maximum(np.linalg.norm(p[..., :2], axis=-1) - 0.5 / 1.2 * (0.9 - p[..., 2]), -0.3 - p[..., 2]),
    ),
    "box": (gv.Box((0.5, 0.2, 0.8)), lambda p: np.max(np.abs(p) - (0.5, 0.2, 0.8), axis=-1)),
    "rounded box": (gv.RoundedBox((0.5, 0.3, 0.8), 0.2), lambda p: distance_beyond(p, (0.3, 0.1, 0.6)) - 0.2),
    "rounded rod": (gv.RoundedBox((0.2, 0.2, 0.8), 0.2), lambda p: distance_beyond(p, (0.0, 0.0, 0.6)) - 0.2),
    "plane": (gv.Plane((0.6, 0.0, 0.8)), lambda p: p @ (0.6, 0.0, 0.8)),
}


def outward(inside, points):
    """Unit gradient of an inside formula, by differences."""
    steps = 1e-6 * np.eye(3)
    gradient = np.stack([inside(points + s) - inside(points - s) for s in steps], axis=-1)
    return gradient / np.linalg.norm(gradient, axis=-1, keepdims=True)


@pytest.mark.parametrize("name", ROUND)
def test_hits_lie_on_the_surface_and_nothing_is_crossed_before(name):
    shape, inside = ROUND[name]
    origins, directions = rays_around(3000)
    hits = cast(scene_with(shape), origins, directions)
    hit = hits.body == 0
    assert hit.sum() > 500 and (name == "plane" or (~hit).sum() > 200)
    o = to_body(origins)
    d = to_body(origins + directions / np.linalg.norm(directions, axis=1, keepdims=True)) - o
    p = o + hits.distance[:, None] * d
    assert np.all(np.abs(inside(p[hit])) < 1e-12)
    assert np.allclose(to_world(p[hit]), hits.point[hit], rtol=0, atol=1e-12)
    # on the way to the hit, or to 30 m where there is none, a ray stays on the side where it started
    way = np.where(hit, hits.distance, 30.0)
    along = np.linspace(1e-6, 1 - 1e-6, 2001)
    for k in range(len(o)):
        values = inside(o[k] + (along * way[k])[:, None] * d[k])
        assert np.all(values > 0) or np.all(values < 0), k
    started_inside = inside(o) < 0
    assert started_inside[hit].sum() > 100
    if name != "plane":
        assert np.all(hit[started_inside])
    normals = to_body(hits.normal[hit], place=0.0)
    edge = np.linalg.norm(outward(inside, p[hit]) - normals, axis=1) > 1e-4  # where two smooth parts of a surface meet
    assert edge.mean() < 0.01
    against = np.einsum("ni,ni->n", normals, d[hit])
    assert np.all((against < 1e-9) | started_inside[hit]) and np.all((against > -1e-9) | ~started_inside[hit])


@pytest.mark.parametrize("name", ["sphere", "ellipsoid", "capsule", "cylinder", "cone"])
def test_round_shapes_against_their_tessellation(name):
    shape, _ = ROUND[name]
    mesh = {
        "sphere": lambda: trimesh.creation.icosphere(subdivisions=4, radius=0.7),
        "ellipsoid": lambda: trimesh.creation.icosphere(subdivisions=4).apply_scale((0.9, 0.3, 0.6)),
        "capsule": lambda: trimesh.creation.capsule(height=1.0, radius=0.3, count=[64, 64]),
        "cylinder": lambda: trimesh.creation.cylinder(radius=0.5, height=0.8, sections=128),
        "cone": lambda: trimesh.creation.cone(radius=0.5, height=1.2, sections=128).apply_translation((0, 0, -0.3)),
    }[name]()
    if name == "capsule":
        mesh.apply_translation(-mesh.bounds.mean(axis=0))
    rng = np.random.default_rng(2)
    targets = rng.uniform(-0.1, 0.1, (60, 3))
    origins = targets + 5 * rng.normal(size=(60, 3))
    hits = cast(scene_with(shape), to_world(origins), to_world(targets) - to_world(origins))
    distance, _ = by_trimesh(mesh, origins, targets - origins)
    assert np.all(hits.body == 0) and np.allclose(hits.distance, distance, rtol=0, atol=0.01)


# --- flat faces: trimesh, which tells the same to the last digits


class EveryTriangle:
    """Stands in for the tree of trimesh: every triangle is a candidate."""

    def __init__(self, mesh):
        self.all, self.bounds = list(range(len(mesh.faces))), mesh.bounds.reshape(-1)

    def intersection(self, bounds):
        return self.all


def by_trimesh(mesh, origins, directions):
    """Distance to the first triangle ahead (inf where there is none) and its normal."""
    triangle, ray, place = ray_triangle_id(mesh.triangles, origins, directions, tree=EveryTriangle(mesh))
    distance, normal = np.full(len(origins), np.inf), np.full((len(origins), 3), np.nan)
    for t, r, d in zip(triangle, ray, np.linalg.norm(place - origins[ray], axis=1)):
        if d < distance[r]:
            distance[r], normal[r] = d, mesh.face_normals[t]
    return distance, normal


def rock(seed=3, n=40):
    return trimesh.convex.convex_hull(np.random.default_rng(seed).normal(size=(n, 3)) * (0.5, 0.3, 0.4))


def torus():
    return trimesh.creation.torus(0.6, 0.25, major_sections=24, minor_sections=12)


def open_sheet():
    x, y = np.meshgrid(np.linspace(-1, 1, 12), np.linspace(-1, 1, 12))
    z = 0.3 * np.sin(3 * x) * np.cos(2 * y)
    corner = np.arange(144).reshape(12, 12)
    quads = np.stack([corner[:-1, :-1], corner[:-1, 1:], corner[1:, 1:], corner[1:, :-1]], axis=-1).reshape(-1, 4)
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    return trimesh.Trimesh(np.stack([x, y, z], axis=-1).reshape(-1, 3), faces, process=False)


FLAT = {
    "box": (gv.Box((0.5, 0.2, 0.8)), trimesh.creation.box((1.0, 0.4, 1.6))),
    "hull": (gv.ConvexHull(rock().vertices), rock()),
    "scaled hull": (gv.ConvexHull(rock().vertices, scale=1.7), rock().apply_scale(1.7)),
    "mesh": (gv.Mesh(torus().vertices, torus().faces), torus()),
    "scaled mesh": (gv.Mesh(torus().vertices, torus().faces, scale=0.6), torus().apply_scale(0.6)),
    "open sheet": (gv.Mesh(open_sheet().vertices, open_sheet().faces), open_sheet()),
}


@pytest.mark.parametrize("name", FLAT)
def test_flat_faces_against_trimesh(name):
    shape, mesh = FLAT[name]
    origins, directions = rays_around(800, seed=4)
    o, d = to_body(origins), to_body(directions, place=0.0)
    distance, normal = by_trimesh(mesh, o, d)
    hits = cast(scene_with(shape), origins, directions)
    assert 200 < np.isfinite(distance).sum() < 800
    assert np.array_equal(hits.body == 0, np.isfinite(distance))
    hit = hits.body == 0
    assert np.allclose(hits.distance[hit], distance[hit], rtol=0, atol=1e-9)
    assert np.allclose(hits.normal[hit], to_world(normal[hit], place=0.0), rtol=0, atol=1e-6)
    assert np.all(hits.distance[~hit] == np.inf) and np.all(np.isnan(hits.point[~hit])) and np.all(np.isnan(hits.normal[~hit]))


def test_compound_is_hit_where_the_first_of_its_children_is():
    turn = np.array([0.9, 0.1, 0.3, -0.2]) / np.linalg.norm([0.9, 0.1, 0.3, -0.2])
    parts = [(gv.Box((0.3, 0.2, 0.1)), (0.5, 0, 0), turn), (gv.ConvexHull(rock().vertices), (-0.5, 0.2, 0.1))]
    parts += [(gv.Sphere(0.3), (0, 0, 0.6)), (gv.Cone(0.2, 0.6), (0.1, -0.7, 0), turn)]
    shape = gv.Compound(parts)
    origins, directions = rays_around(2000, seed=5)
    hits = cast(scene_with(shape), origins, directions)
    expected, normal = np.full(2000, np.inf), np.full((2000, 3), np.nan)
    for child, place, *turned in parts:
        pose = Rotation.from_quat(np.roll(TURN, -1)) * Rotation.from_quat(np.roll(turned[0] if turned else (1, 0, 0, 0), -1))
        one = cast(scene_with(child, turn=np.roll(pose.as_quat(), 1), place=to_world(np.array(place))), origins, directions)
        nearer = one.distance < expected
        expected[nearer], normal[nearer] = one.distance[nearer], one.normal[nearer]
    assert 500 < np.isfinite(expected).sum() < 1900
    assert np.array_equal(hits.body == 0, np.isfinite(expected))
    hit = hits.body == 0
    assert np.allclose(hits.distance[hit], expected[hit], rtol=0, atol=1e-12)
    assert np.allclose(hits.normal[hit], normal[hit], rtol=0, atol=1e-6)


def test_no_ray_slips_through_edges_and_corners_of_a_mesh():
    """Rays from the middle of a closed mesh straight at its corners and at points of its edges."""
    ball = trimesh.creation.icosphere(subdivisions=2)
    edges = ball.vertices[ball.edges_unique]
    share = np.random.default_rng(6).uniform(0, 1, (len(edges), 1))
    targets = np.concatenate([ball.vertices, share * edges[:, 0] + (1 - share) * edges[:, 1]])
    hits = cast(scene_with(gv.Mesh(ball.vertices, ball.faces)), PLACE, to_world(targets) - PLACE)
    assert np.all(hits.body == 0)
    assert np.allclose(hits.distance, np.linalg.norm(targets, axis=1), rtol=0, atol=1e-12)


# --- many bodies


def crowd(seed=7):
    """Bodies of all kinds, with planes around and some of them inside each other."""
    rng = np.random.default_rng(seed)
    shapes = [shape for shape, _ in ROUND.values()][:-1] + [gv.ConvexHull(rock().vertices), gv.Mesh(torus().vertices, torus().faces)]
    shapes.append(gv.Compound([(gv.Box((0.3, 0.2, 0.1)), (0.5, 0, 0)), (gv.Sphere(0.3), (-0.2, 0, 0.1))]))
    scene = gv.Scene()
    for k in range(120):
        shape, turn = shapes[k % len(shapes)], rng.normal(size=4)
        scene.add_body(shape, rng.uniform(-5, 5, 3), quaternion=turn / np.linalg.norm(turn))
    scene.add_body(gv.Plane((0, 0.1, 1)), (0, 0, -6), fixed=True)
    scene.add_body(gv.Plane((-1, 0, 0)), (6, 0, 0), fixed=True)
    return scene


def alone(bodies, i):
    """A table with one of the bodies."""
    twin = Bodies()
    twin.append({name: values[i : i + 1] for name, values in bodies.block().items()})
    return twin


def test_many_bodies_against_each_one_alone():
    scene = crowd()
    rng = np.random.default_rng(8)
    origins, directions = rng.uniform(-8, 8, (1500, 3)), rng.normal(size=(1500, 3))
    hits = cast(scene, origins, directions)
    distance, body = np.full(1500, np.inf), np.full(1500, -1)
    for i in range(scene.bodies.count):
        one = cast_rays(engine_of(alone(scene.bodies, i), scene.geometries), origins, directions)
        assert set(one.body.tolist()) <= {-1, 0}
        nearer = one.distance < distance
        distance[nearer], body[nearer] = one.distance[nearer], i
    assert np.array_equal(hits.body, body) and np.array_equal(hits.distance, distance)
    assert len(np.unique(body)) > 100 and np.any(body == -1)
    near = cast(scene, origins, directions, reach=2.0)
    within = distance <= 2.0
    assert within.any() and np.array_equal(near.body, np.where(within, body, -1))
    assert np.array_equal(near.distance, np.where(within, distance, np.inf))


def test_many_spheres_against_numpy_on_one_and_two_threads():
    rng = np.random.default_rng(9)
    centres, radii = rng.uniform(-10, 10, (5000, 3)), rng.uniform(0.02, 0.4, 5000)
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(radii), centres)
    origins, directions = rng.uniform(-12, 12, (300, 3)), rng.normal(size=(300, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    tables = []
    for threads in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
        numba.set_num_threads(threads)
        tables.append(cast(scene, origins, directions))
    for field in ("body", "distance", "point", "normal"):
        assert np.array_equal(getattr(tables[0], field), getattr(tables[1], field), equal_nan=True)
    for k in range(300):
        away = centres - origins[k]
        along = away @ directions[k]
        square = radii**2 - (np.einsum("ni,ni->n", away, away) - along**2)
        half = np.sqrt(np.maximum(square, 0))
        t = np.where(along - half >= 0, along - half, along + half)
        t = np.where((square >= 0) & (t >= 0), t, np.inf)
        assert tables[0].body[k] == (np.argmin(t) if np.isfinite(t).any() else -1)
        assert tables[0].distance[k] == pytest.approx(t.min(), abs=1e-10)


def test_removed_bodies_are_not_hit():
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(0.5), [[0, 0, 1.0], [0, 0, 3.0], [0, 0, 5.0]])
    scene.add_body(gv.Plane((0, 0, -1)), (0, 0, 8), fixed=True)
    simulation = gv.Simulation(scene, dt=1e-3)
    found = []
    for gone in ([], [0], [1], [2], [3]):
        simulation.remove(np.array(gone, int))
        hits = simulation.cast_rays((0, 0, 0), (0, 0, 2.0))
        found.append((int(hits.body[0]), float(hits.distance[0])))
        assert simulation.bodies_in_box((-1, -1, 0), (1, 1, 9)).tolist() == list(range(len(found) - 1, 4))
    assert found == [(0, 0.5), (1, 2.5), (2, 4.5), (3, 8.0), (-1, np.inf)]


def test_rays_from_far_away_lose_no_digits():
    hits = cast(scene_with(gv.Sphere(0.5), place=np.zeros(3)), [[1e7, 0.3, 0.0]], [[-3.0, 0.0, 0.0]])
    assert hits.distance[0] == pytest.approx(1e7 - 0.4, abs=1e-8)
    assert np.allclose(hits.normal[0], (0.8, 0.6, 0.0), rtol=0, atol=1e-7)


def test_directions_of_any_length_and_one_origin_for_all():
    scene = scene_with(gv.Box((1, 1, 1)), place=np.zeros(3), turn=(1, 0, 0, 0))
    hits = cast(scene, (0, 0, 5), [[0, 0, -1], [0, 0, -1e-200], [0, 0, -1e200], [0, 0, 1]])
    assert hits.body.tolist() == [0, 0, 0, -1] and hits.distance.tolist() == [4, 4, 4, np.inf]
    assert hits.point[:3].tolist() == [[0, 0, 1]] * 3 and hits.normal[:3].tolist() == [[0, 0, 1]] * 3
    hits = cast(scene, [[0, 0, 0], [5, 0, 0]], (1, 0, 0))
    assert hits.distance.tolist() == [1, np.inf] and hits.normal[0].tolist() == [1, 0, 0]


def test_of_two_bodies_at_one_place_the_lower_id_is_hit():
    hits = cast(scene_with(*[gv.Sphere(0.5)] * 20), PLACE + (0, 0, 3), (0, 0, -1))
    assert hits.body.tolist() == [0]
    scene = scene_with(gv.Box((1, 1, 1)), gv.Plane(), place=np.zeros(3), turn=(1, 0, 0, 0), step=(0, 0, 1))
    assert cast(scene, (0, 0, 3), (0, 0, -1)).body.tolist() == [0]


def test_no_rays_and_no_bodies():
    assert len(cast(scene_with(gv.Sphere(1.0)), np.empty((0, 3)), np.empty((0, 3)))) == 0
    hits = cast(gv.Scene(), [[0, 0, 0]], [[1, 0, 0]])
    assert hits.body.tolist() == [-1] and hits.distance.tolist() == [np.inf]
    assert bodies_in_box(engine_of(gv.Scene().bodies, []), (0, 0, 0), (1, 1, 1)).tolist() == []


# --- boxes


CLOUDS = {
    **{name: (shape, mesh) for name, (shape, mesh) in FLAT.items()},
    "sphere": (gv.Sphere(0.7), trimesh.creation.icosphere(subdivisions=5, radius=0.7)),
    "ellipsoid": (gv.Ellipsoid((0.9, 0.3, 0.6)), trimesh.creation.icosphere(subdivisions=5).apply_scale((0.9, 0.3, 0.6))),
    "cylinder": (gv.Cylinder(0.5, 0.4), trimesh.creation.cylinder(radius=0.5, height=0.8, sections=2000)),
    "cone": (gv.Cone(0.5, 1.2), trimesh.creation.cone(radius=0.5, height=1.2, sections=2000).apply_translation((0, 0, -0.3))),
    "compound": (
        gv.Compound([(gv.Box((0.2, 0.3, 0.4)), (0.5, 0, 0), TURN), (gv.Sphere(0.25), (-0.5, 0.2, 0))]),
        trimesh.util.concatenate(
            trimesh.creation.box((0.4, 0.6, 0.8), quaternion_matrix(TURN)).apply_translation((0.5, 0, 0)),
            trimesh.creation.icosphere(subdivisions=5, radius=0.25).apply_translation((-0.5, 0.2, 0)),
        ),
    ),
}


@pytest.mark.parametrize("name", CLOUDS)
def test_a_body_is_in_the_boxes_that_its_points_reach(name):
    """A box moved away along each axis loses the body where the points of the shape end."""
    shape, mesh = CLOUDS[name]
    scene = scene_with(shape)
    points = to_world(mesh.vertices)
    low, high = points.min(axis=0), points.max(axis=0)
    for axis, side in itertools.product(range(3), (-1, 1)):
        for gap, expected in ((-2e-3, [0]), (2e-3, [])):
            a, b = low - 1.0, high + 1.0
            if side > 0:
                a[axis], b[axis] = high[axis] + gap, high[axis] + 1.0
            else:
                a[axis], b[axis] = low[axis] - 1.0, low[axis] - gap
            assert bodies_in_box(engine_of(scene.bodies, scene.geometries), a, b).tolist() == expected


def test_boxes_and_planes():
    scene = scene_with(gv.Plane((0, 0, 1)), gv.Plane((1, 1, 0)), gv.Plane((-1, 0, 0)), place=np.zeros(3), turn=(1, 0, 0, 0))
    inside = lambda low, high: bodies_in_box(engine_of(scene.bodies, scene.geometries), low, high).tolist()  # noqa: E731
    assert inside((1, 1, 1), (2, 2, 2)) == [2]
    assert inside((1, 1, -1), (2, 2, 2)) == [0, 2]
    assert inside((-3, 1, 1), (-2, 2, 2)) == [1]
    assert inside((0, 0, 0), (0, 0, 0)) == [0, 1, 2]


def test_touching_boxes_count_and_many_bodies_are_told_apart():
    rng = np.random.default_rng(10)
    centres, radii = rng.uniform(-5, 5, (3000, 3)), rng.uniform(0.1, 0.5, 3000)
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(radii), centres)
    expected = np.flatnonzero(np.all((centres - radii[:, None] <= 1) & (centres + radii[:, None] >= -2), axis=1))
    assert np.array_equal(bodies_in_box(engine_of(scene.bodies, []), (-2, -2, -2), (1, 1, 1)), expected)
    one = scene_with(gv.Sphere(0.5), place=np.zeros(3))
    assert bodies_in_box(engine_of(one.bodies, []), (0.5, 0.5, 0.5), (1, 1, 1)).tolist() == [0]


# --- bad input


@pytest.mark.parametrize(
    "origins, directions, options, words",
    [
        ([[0, 0, 0]], [[0, 0, 0]], {}, "directions must not be zero"),
        ([[0, 0, 0]] * 2, [[1, 0, 0], [0, 0, 0]], {}, r"directions\[1\]"),
        ([[0, 0, np.nan]], [[1, 0, 0]], {}, "origins must be finite"),
        ([[0, 0, 0]], [[1, 0, np.inf]], {}, "directions must be finite"),
        ([[0, 0]], [[1, 0, 0]], {}, "origins must have shape"),
        ([[0, 0, 0]] * 2, [[1, 0, 0]] * 3, {}, "same rays, not to 2 and 3"),
        ("abc", [[1, 0, 0]], {}, "origins must be an array"),
        ([[0, 0, 0]], [[1, 0, 0]], {"reach": -1.0}, "reach must be at least 0"),
        ([[0, 0, 0]], [[1, 0, 0]], {"reach": np.nan}, "reach must be finite"),
        ([[0, 0, 0]], [[1, 0, 0]], {"reach": "far"}, "reach must be a number"),
    ],
)
def test_bad_rays_are_refused(origins, directions, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        cast(scene_with(gv.Sphere(1.0)), origins, directions, **options)


@pytest.mark.parametrize(
    "low, high, words", [((0, 0), (1, 1, 1), "low must have shape"), ((0, 0, 2), (1, 1, 1), "high must not be below low")]
)
def test_bad_boxes_are_refused(low, high, words):
    with pytest.raises(ValueError, match=words):
        bodies_in_box(engine_of(gv.Scene().bodies, []), low, high)
