"""Contacts of the device (single precision) against those of the CPU engine (double), pair by pair: tables ROUND and BOXES."""

import numpy as np
import pytest
import warp as wp
from on_device import DEVICE, on_cpu, on_device, pairs_of, search
from oracles import Many, about, apart, matrices, move_to_gap, random_directions, random_quaternions, sizes_of, world_heights

import gravel as gv
from gravel.detection import find as detection
from gravel.engine import Margin, Rules, make_engine
from gravel.formulas import bounds, boxes, ellipsoids
from gravel.formulas.tables import MESHES, ROUND
from gravel.gpu import formulas
from gravel.gpu.buffers import DeviceBuffers
from gravel.gpu.collide import shape_pair_types, shape_pairs
from gravel.gpu.structs import Pairs, Proxies
from gravel.rotations import multiply, rotate
from gravel.shapes import BOX, MESH, SPHERE
from gravel.shapes.geometry import library_of

MARGIN = 0.05
METHODS = ("direct", "method-1", "method-2")


def spread(rng, n, *columns, low=0.15, high=1.0):
    return np.exp(rng.uniform(np.log(low), np.log(high), (n, *columns)))


MAKE = {
    "Sphere": lambda rng, n: gv.Sphere(spread(rng, n)),
    "Ellipsoid": lambda rng, n: gv.Ellipsoid(spread(rng, n, 3)),
    "Capsule": lambda rng, n: gv.Capsule(spread(rng, n), spread(rng, n)),
    "Cylinder": lambda rng, n: gv.Cylinder(spread(rng, n), spread(rng, n)),
    "Cone": lambda rng, n: gv.Cone(spread(rng, n), spread(rng, n, high=1.5)),
    "Box": lambda rng, n: gv.Box(spread(rng, n, 3)),
}


def pairs_in(names, n, seed, method="direct", touching=False):
    """(the CPU engine that has looked at n pairs of two kinds, size of each place's pair): some deep in each other, some apart; or all
    of them about to touch."""
    rng = np.random.default_rng(seed)
    a, b = (MAKE[name](rng, n) for name in names.split("-"))
    size = sizes_of(a) + sizes_of(b)
    way = (size * rng.uniform(0.0, 1.05, n))[:, None] * random_directions(rng, n)
    first, second = Many(a, np.zeros((n, 3)), random_quaternions(rng, n)), Many(b, way, random_quaternions(rng, n))
    if touching:
        second = move_to_gap(first, second, rng.uniform(-0.02, 0.06, n), random_directions(rng, n))
    places = apart(n, 6 * size.max())
    scene = gv.Scene()
    for many in (first, second):
        scene.add_bodies(many.shape, places + many.position, quaternions=many.quaternion)
    engine = detection.detect_scene(scene, MARGIN, method)
    return engine, np.tile(size, 2)[engine.rows.id[engine.detector.order]]


def on_plane(name, n, seed, far):
    """(the CPU engine that has looked at n bodies around a plane whose origin is far away, size of each place's body)."""
    rng = np.random.default_rng(seed)
    shape = MAKE[name](rng, n)
    size, (normal, u) = sizes_of(shape), random_directions(rng, 2)
    u -= (u @ normal) * normal
    u, side = u / np.linalg.norm(u), int(np.ceil(np.sqrt(n)))
    k, height = np.arange(n), size * rng.uniform(-1.0, 1.05, n)
    places = 3 * size.max() * (np.outer(k % side, u) + np.outer(k // side, np.cross(normal, u))) + np.outer(height, normal)
    scene = gv.Scene()
    scene.add_bodies(shape, places, quaternions=random_quaternions(rng, n))
    scene.add_body(gv.Plane(normal), far * u, fixed=True)
    engine = detection.detect_scene(scene, MARGIN)
    return engine, np.append(size, np.inf)[engine.rows.id[engine.detector.order]]


def both(engine, size, limit=MARGIN):
    """(CPU's, device's contacts that both have, the size of their pairs). Either may lack one only where its gap is the limit's."""
    here, there = on_cpu(engine), on_device(engine)
    assert len(here.a) > 100 and there.gap.dtype == np.float32
    for mine, others in ((here, set(there.names)), (there, set(here.names))):
        limits = np.broadcast_to(limit(mine) if callable(limit) else limit, len(mine.a))
        for k, name in enumerate(mine.names):
            assert name in others or abs(mine.gap[k] - limits[k]) < 1e-6 * min(size[name[0]], size[name[1]]), name
    common = set(here.names) & set(there.names)
    here, there = (type(f)(*(x[[name in common for name in f.names]] for x in f)) for f in (here, there))
    assert here.names == there.names
    return here, there, np.minimum(size[here.a], size[here.b])


def errors(engine, size, limit=MARGIN):
    """Errors (of normals, of points in shares of the size, of gaps likewise) of all contacts, and the CPU's contacts."""
    here, there, size = both(engine, size, limit)
    normal = np.abs(here.normal - there.normal).max(axis=1)
    return normal, np.abs(here.arm - there.arm).max(axis=1) / size, np.abs(here.gap - there.gap) / size, here


def check(engine, size, limit=MARGIN):
    assert max(x.max() for x in errors(engine, size, limit)[:3]) < 1e-5


# --- balls, planes, boxes
@pytest.mark.parametrize("names", ["Sphere-Sphere", "Sphere-Box", "Sphere-Capsule", "Sphere-Cylinder", "Sphere-Cone"])
def test_balls_with_shapes(names):
    check(*pairs_in(names, 10_000, 1))


@pytest.mark.parametrize("names", [*("Sphere-" + name for name in MAKE), "Ellipsoid-Ellipsoid", "Box-Box"])
def test_shapes_that_touch(names):
    check(*pairs_in(names, 2000, 18, touching=True))


@pytest.mark.parametrize("name", ["Sphere", "Ellipsoid", "Box"])
def test_shapes_on_a_plane_whose_origin_is_far_away(name):
    check(*on_plane(name, 10_000, 2, far=1e5))


def test_two_boxes():
    """In random poses no edges are parallel, and no two axes are so much alike that rounding chooses between them."""
    check(*pairs_in("Box-Box", 10_000, 3))


def test_stacked_boxes_have_the_features_and_points_of_the_cpu():
    """Faces on faces: parallel edges, the degenerate case. A corner in line with an edge may count as the one's or the other's, so
    half extents differ from box to box."""
    rng = np.random.default_rng(4)
    n, half = 1000, spread(np.random.default_rng(5), 2000, 3)
    turn, places = random_quaternions(rng, n), apart(n, 20.0)
    shift = np.column_stack([rng.uniform(-0.3, 0.3, (n, 2)) * half[:n, :2], half[:n, 2] + half[n:, 2] + rng.uniform(-1e-3, 1e-3, n)])
    scene = gv.Scene()
    scene.add_bodies(gv.Box(half[:n]), places, quaternions=turn)
    scene.add_bodies(gv.Box(half[n:]), places + rotate(turn, shift), quaternions=turn)
    engine = detection.detect_scene(scene, MARGIN)
    size = np.linalg.norm(half, axis=1)[engine.rows.id[engine.detector.order]]
    check(engine, size)


def test_equal_boxes_on_each_other_touch_at_four_corners():
    """Sides that coincide must not cut each other, nor give a corner twice, however the last bits fall."""
    rng = np.random.default_rng(19)
    n, half = 1000, np.array([0.5, 0.4, 0.3])
    turn, places = random_quaternions(rng, n), apart(n, 4.0)
    scene = gv.Scene()
    scene.add_bodies(gv.Box(half), places, quaternions=turn)
    scene.add_bodies(gv.Box(half), places + rotate(turn, np.tile([0, 0, 0.5999], (n, 1))), quaternions=turn)
    engine = detection.detect_scene(scene, 1e-3)
    check(engine, np.ones(2 * n))
    found = on_device(engine)
    assert len(found.a) == 4 * n and np.abs(found.gap + 1e-4).max() < 1e-6


def test_crossing_edges_that_are_nearly_parallel():
    """One contact, between the same two edges, its gap right; where along them depends on the last bits of the turns."""
    rng = np.random.default_rng(6)
    n, up, half = 400, about("x", 45), np.array([1.0, 0.5, 0.5])
    tilt = rng.uniform(2e-3, 0.1, n)
    other = np.array([multiply(about("z", np.degrees(angle)), up) for angle in tilt])
    height = 2 * np.sqrt(0.5) + rng.uniform(0.005, 0.04, n)  # nearer, faces would be preferred
    places, zero = apart(n, 10.0), np.zeros(n)
    scene = gv.Scene()
    scene.add_bodies(gv.Box(half), places, quaternions=np.tile(up, (n, 1)))
    scene.add_bodies(gv.Box(half), places + np.column_stack([zero, zero, height]), quaternions=other)
    engine = detection.detect_scene(scene, MARGIN)
    normal, arm, gap, here = errors(engine, np.ones(2 * n))
    angle = tilt[np.minimum(*engine.rows.id[engine.detector.order[[here.a, here.b]]])]
    assert len(here.a) == n and (here.feature & 4096).all()
    assert gap.max() < 1e-5 and (normal * angle).max() < 1e-6 and (arm * angle).max() < 1e-6


def test_small_balls_on_a_large_box():
    """A slab of 200 m with balls of 1 mm: single precision alone would know their places to 1e-5 m."""
    rng = np.random.default_rng(7)
    n, turn = 2000, about("xyz", (20, 30, 40))
    radius, half = rng.uniform(0.5e-3, 1e-3, n), np.array([100.1, 90.2, 0.3])
    on = np.column_stack([rng.uniform(-0.99, 0.99, (n, 2)) * half[:2], half[2] + radius + rng.uniform(-1e-4, 1e-4, n)])
    scene = gv.Scene()
    scene.add_body(gv.Box(half), (3, 4, 5), quaternion=turn, fixed=True)
    scene.add_bodies(gv.Sphere(radius), (3, 4, 5) + rotate(np.tile(turn, (n, 1)), on))
    engine = detection.detect_scene(scene, 1e-3, broad_phase="bvh")
    check(engine, np.append(np.inf, radius)[engine.rows.id[engine.detector.order]], 1e-3)


# --- ellipsoids
def shallow(engine, here):
    """Contacts no deeper than half the smallest radius of curvature: deeper ones may have several directions that are as good."""
    size = engine.detector.proxies.extent[:, :3]
    size = np.where(engine.detector.proxies.tag[:, :1] == SPHERE, size[:, :1], size)
    bend = size.min(axis=1) ** 2 / size.max(axis=1)
    return -here.gap < 0.5 * np.minimum(bend[here.a], bend[here.b])


@pytest.mark.parametrize("names", ["Ellipsoid-Ellipsoid", "Sphere-Ellipsoid"])
@pytest.mark.parametrize("method", METHODS)
def test_ellipsoids(names, method):
    engine, size = pairs_in(names, 10_000, 8, method)
    normal, arm, gap, here = errors(engine, size)
    clear = shallow(engine, here)
    assert clear.sum() > 500 and gap.max() < 1e-6
    assert normal[clear].max() < 1e-5 and arm[clear].max() < 1e-5
    assert np.median(normal) < 1e-6  # of the deep ones, too, most have one best direction


@pytest.mark.parametrize("unit", [1e-6, 1e4])
def test_ellipsoids_of_any_size(unit):
    """Fourth powers of a size must not leave the range of single precision."""
    rng = np.random.default_rng(9)
    n = 1000
    radii, away = unit * spread(rng, 2 * n, 3), unit * rng.uniform(0.5, 1.5, n)
    places = unit * apart(n, 10.0)
    scene = gv.Scene()
    places = np.concatenate([places, places + away[:, None] * random_directions(rng, n)])
    scene.add_bodies(gv.Ellipsoid(radii), places, quaternions=random_quaternions(rng, 2 * n))
    engine = detection.detect_scene(scene, unit * MARGIN)
    gap = errors(engine, np.full(2 * n, unit), unit * MARGIN)[2]
    assert gap.max() < 2e-6


def test_discs_and_needles():
    """Of 1 : 100, n . M n would have lost its digits: the gap must be right to 1e-6 of the size all the same."""
    rng = np.random.default_rng(10)
    n = 2000
    radii = np.where(rng.random((2 * n, 3)) < 0.5, 1e-2, 1.0)
    places, away = apart(n, 10.0), rng.uniform(0.0, 1.5, n)
    scene = gv.Scene()
    places = np.concatenate([places, places + away[:, None] * random_directions(rng, n)])
    scene.add_bodies(gv.Ellipsoid(radii), places, quaternions=random_quaternions(rng, 2 * n))
    engine = detection.detect_scene(scene, MARGIN)
    _, _, gap, here = errors(engine, np.full(2 * n, 2.0))
    assert gap[here.gap > -0.01].max() < 1e-6 and gap.max() < 1e-5


def test_ellipsoids_in_one_place_are_as_deep_as_twice_the_least_radius():
    """Where g is flat, or has no first direction: (1, 1, 1) is the same from all sides."""
    radii = np.array([(1, 1, 1), (3, 1, 2), (1, 1, 0.01), (0.01, 0.01, 1), (1, 1, 3), (1, 1.00001, 1)], float)
    for method in METHODS:
        scene = gv.Scene()
        for turn in (about("x", 0), about("xyz", (10, 20, 30))):
            for k, size in enumerate(radii):
                scene.add_bodies(gv.Ellipsoid(size), np.full((2, 3), (10.0 * k, 100.0 * turn[1], 0)), quaternions=np.tile(turn, (2, 1)))
        found = on_device(detection.detect_scene(scene, 0.0, method))
        assert len(found.a) == 2 * len(radii)
        assert np.allclose(np.sort(found.gap), np.sort(np.tile(-2 * radii.min(axis=1), 2)), rtol=1e-5)
        assert np.allclose(np.linalg.norm(found.normal, axis=1), 1.0, atol=1e-6) and np.abs(found.arm).max() < 1e-6


# --- compounds
KNOBS = gv.Compound(
    [(gv.Sphere(0.3), (0.5, 0, 0)), (gv.Box((0.2, 0.4, 0.3)), (0, -0.3, 0.2), about("x", 30)), (gv.Sphere(0.2), (0, 0.6, 0))]
)
PEBBLES = gv.Compound([(gv.Ellipsoid((0.5, 0.3, 0.2)), (0.3, 0, 0), about("y", 50)), (gv.Sphere(0.3), (-0.3, 0.1, 0))])


@pytest.mark.parametrize("shapes", [(KNOBS, gv.Box((0.3, 0.4, 0.5)), gv.Sphere(0.4)), (PEBBLES, gv.Ellipsoid((0.5, 0.3, 0.2)))])
def test_compounds(shapes):
    """Children meet children in either order of their kinds, and planes."""
    rng = np.random.default_rng(11)
    scene = gv.Scene()
    for shape in shapes:
        scene.add_bodies(shape, rng.uniform(-4, 4, (600, 3)), quaternions=random_quaternions(rng, 600))
    scene.add_body(gv.Plane((0, 0.6, 0.8)), (0, 0, -2), fixed=True)
    engine = detection.detect_scene(scene, MARGIN)
    normal, arm, gap, here = errors(engine, np.ones(len(scene)))
    assert len(here.a) > 4000 and gap.max() < 1e-6
    if shapes[0] is KNOBS:
        assert normal.max() < 1e-5 and arm.max() < 1e-5
    else:  # some ellipsoids lie so deep in others that several directions are as good
        assert np.quantile(normal, 0.99) < 1e-5 and np.quantile(arm, 0.99) < 1e-5


# --- bounds
half_extents = formulas.FORMS.of(bounds).half_extents


@wp.kernel
def find_half_extents(
    shape: wp.array(dtype=int),
    extent: wp.array2d(dtype=float),
    turn: wp.array(dtype=wp.vec4),
    geometry: wp.array(dtype=int),
    half: wp.array2d(dtype=float),
    out: wp.array2d(dtype=float),
):
    i = wp.tid()
    x, y, z = half_extents(shape[i], extent[i, 0], extent[i, 1], extent[i, 2], extent[i, 3], turn[i], geometry[i], half)
    out[i, 0] = x
    out[i, 1] = y
    out[i, 2] = z


def test_half_extents_of_all_shapes():
    """Of those with a formula in NumPy, the supports along the axes of the world; of those of a geometry, the same in double."""
    rng = np.random.default_rng(21)
    scene, n, expected = gv.Scene(), 100, []
    for shape in (*(make(rng, n) for make in MAKE.values()), KNOBS, gv.ConvexHull(rng.normal(size=(20, 3)))):
        turn = random_quaternions(rng, n)
        ids = scene.add_bodies(shape, np.zeros((n, 3)), quaternions=turn)
        if shape.KIND <= BOX:
            axes = np.broadcast_to(np.concatenate([np.eye(3), -np.eye(3)]), (n, 6, 3))
            heights = world_heights(Many(shape, np.zeros((n, 3)), turn), axes)
            expected.append(np.maximum(heights[:, :3], heights[:, 3:]))
        else:
            half = library_of(scene.geometries).half[scene.bodies.geometry[ids]]
            expected.append((np.abs(matrices(scene.bodies.quaternion[ids])) * half[:, None]).sum(axis=2))  # turned to its axes
    bodies, half = scene.bodies, library_of(scene.geometries).half
    arrays = (bodies.tag[:, 0], int), (bodies.extent, float), (bodies.quaternion, wp.vec4), (bodies.geometry, int), (half, float)
    inputs = [wp.array(x, dtype=kind, device=DEVICE) for x, kind in arrays]
    out = wp.zeros((len(bodies.tag), 3), dtype=float, device=DEVICE)
    wp.launch(find_half_extents, len(bodies.tag), inputs=[*inputs, out], device=DEVICE)
    assert np.abs(out.numpy() - np.concatenate(expected)).max() < 1e-6


# --- the stages
def test_what_may_close_within_the_step():
    """Margins of movable bodies, and gaps that relative or own speed may close: the CPU's choice, and that of a formula."""
    rng = np.random.default_rng(12)
    n, step = 2000, 0.02
    scene = gv.Scene()
    shapes = gv.Sphere(spread(rng, n, low=0.2, high=0.5)), gv.Box(spread(rng, n, 3, low=0.1, high=0.3))
    for shape in shapes:
        scene.add_bodies(
            shape,
            rng.uniform(0, 12, (n, 3)),
            quaternions=random_quaternions(rng, n),
            velocities=rng.normal(size=(n, 3)),
            angular_velocities=rng.normal(size=(n, 3)),
        )
    engine = make_engine("cpu", "double", "grid")
    engine.add(scene.bodies.block())
    engine.set_rules(Rules(step=step, margin=Margin(0.003, 0.01), geometries=scene.geometries))
    detection.run_detection(engine)
    proxies = engine.detector.proxies
    radius = proxies.sphere[:, 3] - proxies.extent[:, 3]

    def limit(found):
        arm_b = found.arm + proxies.sphere[found.a, :3] - proxies.sphere[found.b, :3]
        of_a = proxies.velocity[found.a, :3] + np.cross(proxies.velocity[found.a, 4:7], found.arm)
        of_b = proxies.velocity[found.b, :3] + np.cross(proxies.velocity[found.b, 4:7], arm_b)
        speed = np.max([np.linalg.norm(v, axis=1) for v in (of_a, of_b, of_b - of_a)], axis=0)
        return 0.003 + 0.01 * (radius[found.a] + radius[found.b]) + step * 2.0 * speed

    here = on_cpu(engine)
    assert (here.gap <= limit(here) + 1e-12).all() and (here.gap > 0.02).sum() > 100
    check(engine, radius, limit)


def test_balls_in_one_place_are_parted_as_on_the_cpu():
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(0.25), np.tile([[0.3, -2.0, 7.0]], (40, 1)))
    engine = detection.detect_scene(scene)
    check(engine, np.ones(40))
    assert (on_device(engine).gap == -0.5).all()


def test_nothing_near_and_the_same_bits_twice_in_buffers_that_are_used_again():
    arrays = DeviceBuffers(DEVICE)
    engine = pairs_in("Box-Box", 300, 13)[0]
    first, again = on_device(engine, arrays), on_device(engine, arrays)
    assert all(np.array_equal(x, y) for x, y in zip(first, again))
    scene = gv.Scene()
    scene.add_bodies(gv.Box((1, 1, 1)), [(0, 0, 0), (9, 0, 0)])
    assert len(on_device(detection.detect_scene(scene), arrays).a) == 0
    assert all(np.array_equal(x, y) for x, y in zip(first, on_device(engine, arrays)))


@wp.kernel
def fill_with_many(
    first: int,
    order: wp.array(dtype=int),
    proxies: Proxies,
    pairs: Pairs,
    children: shape_pair_types.Children,
    these: shape_pair_types.ShapePairs,
    rows: shape_pair_types.Rows,
    out: wp.array2d(dtype=float),
    feature: wp.array(dtype=int),
):
    number = order[first + wp.tid()]
    shape_pair_types.keep_rows(
        number, shape_pair_types.shape_pair_of(number, proxies, pairs, children, these), feature.shape[0], out, feature, these, rows
    )


def test_a_job_that_finds_more_than_was_allowed_for_loses_nothing(monkeypatch):
    """A table for meshes that finds 37 rows of each pair, in the midst of other jobs."""
    out = np.tile([0, 0, 1, 0, 0, 0, -1.0], (37, 1))

    def fill(task):
        rows = wp.array(out, dtype=float, device=DEVICE), wp.array(np.arange(37), dtype=int, device=DEVICE)
        rest = task.children, task.shape_pairs, task.rows, *rows
        wp.launch(fill_with_many, task.count, inputs=[task.first, task.order, task.proxies, task.pairs, *rest], device=DEVICE)

    monkeypatch.setitem(shape_pairs.TABLES, MESHES, fill)
    rng = np.random.default_rng(14)
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(0.3), rng.uniform(0, 3, (100, 3)))
    scene.add_body(gv.HeightField(np.zeros((9, 9)), 0.5), fixed=True)
    scene.add_body(gv.Box((0.5, 0.5, 0.5)), (1, 1, 1), fixed=True)
    engine = detection.detect_scene(scene, 0.1)
    found, here = on_device(engine), on_cpu(engine)
    kind = engine.detector.proxies.tag[:, 0]
    others = [name for name in here.names if MESH not in (kind[name[0]], kind[name[1]])]
    assert [name for name in found.names if MESH not in (kind[name[0]], kind[name[1]])] == others and len(others) > 50
    a, b, _ = pairs_of(engine.detector)
    on_mesh = found.gap == -1.0
    assert on_mesh.sum() % 37 == 0 and 10 < on_mesh.sum() // 37 <= ((kind[a] == MESH) | (kind[b] == MESH)).sum()
    assert len(set(found.names)) == len(found.names)


def test_a_table_that_is_missing_is_named(monkeypatch):
    engine = pairs_in("Sphere-Box", 200, 15)[0]
    monkeypatch.delitem(shape_pairs.TABLES, ROUND)
    with pytest.raises(NotImplementedError, match="ROUND"):
        search(engine)


def test_buffers_grow_by_a_quarter_and_say_what_they_were_asked_for():
    arrays = DeviceBuffers(DEVICE)
    assert arrays.array("x", 100, (3,)).shape == (100, 3) and arrays.array("x", 40, (3,)).shape == (40, 3)
    assert arrays.array("x", 101, (3,)).shape == (101, 3) and arrays.held["x"].shape == (125, 3)
    assert arrays.array("x", 125, (3,)).ptr == arrays.held["x"].ptr and arrays.array("none", 0).shape == (0,)
    assert arrays.megabytes() == pytest.approx(125 * 12 / 1e6)

    def refuse(*_, **__):
        raise RuntimeError("Failed to allocate")

    with pytest.MonkeyPatch.context() as patch, pytest.raises(MemoryError, match="'rows': 12 MB"):
        patch.setattr(wp, "empty", refuse)
        arrays.array("rows", 1_000_000, (3,))


# --- twins
DEVICE_ELLIPSOIDS, DEVICE_BOXES = formulas.FORMS.of(ellipsoids), formulas.FORMS.of(boxes)
separated, times, times_sum, matrix_of, sum_of = (
    getattr(DEVICE_ELLIPSOIDS, name) for name in ("separated", "times", "times_sum", "matrix_of", "sum_of")
)
along_first = DEVICE_BOXES.along_first


@wp.kernel
def run_twins(
    a: wp.array(dtype=wp.vec3),
    p: wp.array(dtype=wp.vec4),
    b: wp.array(dtype=wp.vec3),
    q: wp.array(dtype=wp.vec4),
    d: wp.array(dtype=wp.vec3),
    out: wp.array2d(dtype=float),
):
    k = wp.tid()
    v = d[k]
    ma, mb = matrix_of(a[k], p[k]), matrix_of(b[k], q[k])
    out[k, 0] = 1.0 if separated(a[k], p[k], b[k], q[k], v[0], v[1], v[2]) else 0.0
    x, y, z = times(ma, v[0], v[1], v[2])
    out[k, 1] = x
    out[k, 2] = y
    out[k, 3] = z
    x, y, z = times_sum(0.3, ma, 0.7, mb, v[0], v[1], v[2])
    out[k, 4] = x
    out[k, 5] = y
    out[k, 6] = z
    xx, xy, xz, yy, yz, zz = sum_of(ma, mb)
    out[k, 7] = xx
    out[k, 8] = xy
    out[k, 9] = xz
    out[k, 10] = yy
    out[k, 11] = yz
    out[k, 12] = zz
    out[k, 13] = along_first(v[0], v[1], v[2], p[k][0], p[k][1], p[k][2], q[k][0], q[k][1], q[k][2])


def twins(*arrays):
    out = wp.zeros((len(arrays[0]), 14), dtype=float, device=DEVICE)
    inputs = [wp.array(x, dtype=wp.vec3 if x.shape[1] == 3 else wp.vec4, device=DEVICE) for x in arrays]
    wp.launch(run_twins, len(out), inputs=[*inputs, out], device=DEVICE)
    return out.numpy()


def test_twins_do_what_the_formulas_do():
    rng = np.random.default_rng(16)
    n = 2000
    a, b, p, q = spread(rng, n, 3), spread(rng, n, 3), random_quaternions(rng, n), random_quaternions(rng, n)
    d = rng.uniform(0.5, 2.0, (n, 1)) * random_directions(rng, n)
    out, f = twins(a, p, b, q, d), ellipsoids
    for k in range(n):
        ma, mb = f.matrix_of(a[k], p[k]), f.matrix_of(b[k], q[k])
        exact = [*f.times(ma, *d[k]), *f.times_sum(0.3, ma, 0.7, mb, *d[k]), *f.sum_of(ma, mb)]
        assert np.allclose(out[k, 1:13], exact, rtol=0, atol=2e-6)
        u, w = p[k, :3], q[k, :3]
        s = np.linalg.lstsq(np.column_stack([u, -w]), d[k], rcond=None)[0][0]  # nearest points of the lines s u and d + t w
        assert out[k, 13] == pytest.approx(s, rel=1e-3, abs=1e-3)
    exact = np.array([f.separated(a[k], p[k], b[k], q[k], *d[k]) for k in range(n)])
    assert not (out[:, 0] > exact).any()
    assert 0.3 < exact.mean() < 0.9 and out[exact, 0].mean() > 0.95


def test_where_two_ellipsoids_nearly_touch_nothing_is_called_separated_that_is_not():
    """Along a line to where double precision finds them just apart, and a hair back."""
    rng = np.random.default_rng(20)
    n = 300
    a, b, p, q = spread(rng, n, 3, low=0.02), spread(rng, n, 3, low=0.02), random_quaternions(rng, n), random_quaternions(rng, n)
    d = random_directions(rng, n)
    for k in range(n):
        low, high = 0.0, 3.0
        while high - low > 1e-9:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if ellipsoids.separated(a[k], p[k], b[k], q[k], *(middle * d[k])) else (middle, high)
        d[k] *= low
    for hair in (1e-7, 1e-6, 1e-5, 1e-4):
        assert not twins(a, p, b, q, (1 - hair) * d)[:, 0].any()
    assert twins(a, p, b, q, 1.01 * d)[:, 0].mean() > 0.9


def test_the_formula_of_boxes_that_has_a_twin():
    """Nearest points of two lines, unit vectors: the CPU's form against least squares."""
    rng = np.random.default_rng(17)
    for r, u, w in zip(rng.normal(size=(100, 3)), random_directions(rng, 100), random_directions(rng, 100)):
        assert boxes.along_first(*r, *u, *w) == pytest.approx(np.linalg.lstsq(np.column_stack([u, -w]), r, rcond=None)[0][0], abs=1e-9)
