"""Contacts with meshes and height fields: a floor of triangles must be a floor; edges and corners must be those of a box."""

import itertools

import numpy as np
import pytest
import trimesh
from oracles import about, detect_scene, distances_to_mesh, random_quaternions
from scipy.spatial import Delaunay

import gravel as gv
from gravel.rotations import multiply, rotate

pytestmark = pytest.mark.usefixtures("device")

UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])
CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))


# --- meshes
def flat_floor(half=2.0, count=20, seed=1, jitter=0.45):
    """(vertices, triangles) of a square in the plane z = 0, irregularly triangulated."""
    rng = np.random.default_rng(seed)
    line = np.linspace(-half, half, count + 1)
    x, y = np.meshgrid(line, line, indexing="ij")
    step = line[1] - line[0]
    inside = (np.abs(x) < half - 1e-9) & (np.abs(y) < half - 1e-9)
    x, y = x + inside * rng.uniform(-jitter, jitter, x.shape) * step, y + inside * rng.uniform(-jitter, jitter, x.shape) * step
    points = np.column_stack([x.ravel(), y.ravel()])
    triangles = Delaunay(points).simplices
    a, b, c = points[triangles[:, 0]], points[triangles[:, 1]], points[triangles[:, 2]]
    area = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
    triangles = np.where((area < 0)[:, None], triangles[:, ::-1], triangles)[np.abs(area) > 1e-6 * step**2]
    return np.column_stack([points, np.zeros(len(points))]), triangles


def slab(half=2.0, count=20, depth=0.5, seed=1):
    """A closed mesh: the floor above, a box below it."""
    vertices, triangles = flat_floor(half, count, seed)
    rim = [(a, b) for t in triangles.tolist() for a, b in zip(t, t[1:] + t[:1])]
    border = [edge for edge in rim if edge[::-1] not in set(rim)]
    n = len(vertices)
    below = vertices - (0, 0, depth)
    sides = [t for a, b in border for t in ((b, a, n + a), (b, n + a, n + b))]
    return np.concatenate([vertices, below]), np.concatenate([triangles, triangles[:, ::-1] + n, sides])


def cube(half=1.0, count=1):
    """A closed cube of count x count squares a side."""
    mesh = trimesh.creation.box((2 * half,) * 3)
    for _ in range(count - 1):
        mesh = mesh.subdivide()
    return gv.Mesh(np.array(mesh.vertices), np.array(mesh.faces))


def roof(angle, length=4.0):
    """Two big quadrilaterals that meet along the y axis, both sloping away from it at an angle (negative: a groove)."""
    c, s = length * np.cos(angle), -length * np.sin(angle)
    vertices = [(-c, -length, s), (0, -length, 0), (c, -length, s), (-c, length, s), (0, length, 0), (c, length, s)]
    return gv.Mesh(np.array(vertices, float), np.array([(0, 1, 4), (0, 4, 3), (1, 2, 5), (1, 5, 4)]))


def table_of(floor, shape, positions, quaternions=None, margin=0.0, floor_position=(0, 0, 0), floor_turn=None):
    """Contacts of bodies, ids 1 to N, with one fixed floor, id 0."""
    scene = gv.Scene()
    scene.add_body(floor, floor_position, quaternion=floor_turn, fixed=True)
    scene.add_bodies(shape, positions, quaternions=quaternions)
    table = detect_scene(scene, margin)
    return table[table.body_a == 0]


def assert_like(table, expected, atol=1e-9):
    assert np.array_equal(table.body_b, expected.body_b)
    for name in ("gap", "normal", "point"):
        assert np.allclose(getattr(table, name), getattr(expected, name), rtol=0, atol=atol), name


# --- balls on floors
FLOORS = {
    "sheet": lambda: gv.Mesh(*flat_floor()),
    "solid": lambda: gv.Mesh(*slab()),
    "height field": lambda: gv.HeightField(np.zeros((21, 21)), 0.2),
}


def places_on(mesh, rng, n=300):
    """Random places, and those exactly over vertices, over the middles of edges, and on edges anywhere; away from the rim."""
    over = mesh.vertices[np.abs(mesh.vertices[:, 2]) < 1e-12]
    flat = mesh.triangles[np.abs(mesh.vertices[mesh.triangles, 2]).max(axis=1) < 1e-12]
    a, b = mesh.vertices[flat[:, 0]], mesh.vertices[flat[:, 1]]
    share = rng.random((len(a), 1))
    places = np.concatenate([rng.uniform(-1.5, 1.5, (n, 3)), over, 0.5 * (a + b), a + share * (b - a)])
    return places[np.abs(places[:, :2]).max(axis=1) < 1.6]


@pytest.mark.parametrize("name", FLOORS)
@pytest.mark.parametrize("radius", [0.01, 0.1, 0.35])
def test_ball_on_a_flat_mesh_has_the_one_contact_of_a_plane(name, radius):
    floor, rng = FLOORS[name](), np.random.default_rng(2)
    positions = places_on(floor, rng)
    positions[:, 2] = radius + rng.uniform(-0.2, 0.3, len(positions)) * radius
    found, plane = (table_of(f, gv.Sphere(radius), positions, margin=0.5 * radius) for f in (floor, gv.Plane()))
    assert len(plane) == len(positions)
    assert_like(found, plane)


@pytest.mark.parametrize("name", FLOORS)
def test_ball_on_a_flat_mesh_that_is_turned_and_moved(name):
    floor, rng, radius = FLOORS[name](), np.random.default_rng(3), 0.1
    local = places_on(floor, rng)
    local[:, 2] = radius + rng.uniform(-0.2, 0.3, len(local)) * radius
    turn, move = about("xyz", (20, 30, 40)), np.array([1.0, -2.0, 3.0])
    positions = rotate(turn, local) + move
    normal = rotate(turn, np.array([0, 0, 1.0]))
    found = table_of(floor, gv.Sphere(radius), positions, margin=0.05, floor_position=move, floor_turn=turn)
    plane = table_of(gv.Plane(normal, normal @ move), gv.Sphere(radius), positions, margin=0.05)
    assert_like(found, plane)


def test_sloping_height_field_is_a_plane():
    slope = np.array([0.3, -0.2])
    field = gv.HeightField.from_function(lambda x, y: slope[0] * x + slope[1] * y, (-2, -2), (2, 2), 0.17)
    normal = np.array([-slope[0], -slope[1], 1.0]) / np.sqrt(1 + slope @ slope)
    rng = np.random.default_rng(4)
    on = rng.uniform(-1.4, 1.4, (500, 2))
    positions = np.column_stack([on, on @ slope]) + (0.1 + rng.uniform(-0.02, 0.03, (500, 1))) * normal
    found, plane = (table_of(f, gv.Sphere(0.1), positions, margin=0.05) for f in (field, gv.Plane(normal)))
    assert_like(found, plane, atol=1e-9)


def test_ball_is_stopped_by_a_sheet_from_both_sides_and_by_a_solid_from_outside():
    positions = np.array([[0.1, 0.2, 0.09], [0.1, 0.2, -0.09]])
    for name, sides in (("sheet", (1, -1)), ("solid", (1, 1))):
        table = table_of(FLOORS[name](), gv.Sphere(0.1), positions)
        gaps = [-0.01, -0.01] if name == "sheet" else [-0.01]
        assert np.allclose(table.gap, gaps, atol=1e-12)
        assert np.allclose(table.normal[:, 2], sides[: len(table)], atol=1e-12)


def test_ball_that_sinks_into_a_solid_is_pushed_back_up():
    positions = np.column_stack([np.zeros((2, 2)) + 0.1, [0.02, -0.04]])
    table = table_of(FLOORS["solid"](), gv.Sphere(0.1), positions)
    assert np.allclose(table.gap, (-0.08, -0.14), atol=1e-12) and np.allclose(table.normal, (0, 0, 1), atol=1e-12)


# --- edges and corners
@pytest.mark.parametrize("count", [1, 4])
def test_ball_against_a_cube_of_triangles_is_as_against_a_box(count):
    """Outside, balls over faces, edges and corners."""
    rng = np.random.default_rng(5)
    n, radius = 1500, 0.15
    near = rng.uniform(-1.2, 1.2, (4 * n, 3))
    outside = near[np.abs(near).max(axis=1) > 1.001][:n]
    turn = about("xyz", (15, 25, 35))
    positions = rotate(turn, outside)
    found = table_of(cube(count=count), gv.Sphere(radius), positions, margin=0.02, floor_turn=turn)
    box = table_of(gv.Box((1, 1, 1)), gv.Sphere(radius), positions, margin=0.02, floor_turn=turn)
    assert len(box) > 500
    assert_like(found, box)


@pytest.mark.parametrize("angle", [0.05, 0.3, 1.0])
def test_ball_over_a_ridge_touches_the_edge(angle):
    rng = np.random.default_rng(6)
    for lean in (0.0, 0.6 * angle, -0.9 * angle):
        n = np.array([np.sin(lean), 0, np.cos(lean)])
        positions = np.column_stack([np.zeros(20), rng.uniform(-1, 1, 20), np.zeros(20)]) + 0.21 * n
        table = table_of(roof(angle), gv.Sphere(0.2), positions, margin=0.02)
        assert len(table) == 20
        assert np.allclose(table.normal, n, atol=1e-9) and np.allclose(table.gap, 0.01, atol=1e-9)


@pytest.mark.parametrize("angle", [0.3, 0.7, 1.2])
def test_ball_in_a_groove_touches_both_sides(angle):
    radius = 0.2
    positions = np.array([[0.0, y, (radius - 1e-3) / np.cos(angle)] for y in (-0.5, 0.0, 0.3)])
    table = table_of(roof(-angle), gv.Sphere(radius), positions, margin=1e-3)
    assert np.array_equal(table.body_b, [1, 1, 2, 2, 3, 3])
    assert np.allclose(table.gap, -1e-3, atol=1e-9)
    assert np.allclose(np.abs(table.normal[:, 0]), np.sin(angle), atol=1e-9)
    assert np.allclose(table.normal[::2, 0] + table.normal[1::2, 0], 0, atol=1e-9)


def test_ball_touches_the_rim_of_a_sheet():
    """Beside the border of an open mesh, the edge itself is met."""
    table = table_of(gv.Mesh(*flat_floor()), gv.Sphere(0.2), [[2.1, 0.3, 0.1]])
    assert len(table) == 1
    assert np.allclose(table.normal[0], np.array([1, 0, 1]) / np.sqrt(2), atol=1e-9)
    assert table.gap[0] == pytest.approx(0.1 * np.sqrt(2) - 0.2)


def l_mesh():
    """An L of 3 unit cubes: closed, not convex."""
    outline = np.array([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)], float)
    vertices = np.concatenate([np.column_stack([outline, np.full(6, z)]) for z in (0.0, 1.0)])
    cap = np.array([(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)])
    side = [(k, (k + 1) % 6, 6 + (k + 1) % 6) for k in range(6)] + [(k, 6 + (k + 1) % 6, 6 + k) for k in range(6)]
    return vertices, np.concatenate([cap[:, ::-1], cap + 6, side])


def torus():
    mesh = trimesh.creation.torus(1.0, 0.4, major_sections=24, minor_sections=12)
    return np.array(mesh.vertices), np.array(mesh.faces)


@pytest.mark.parametrize("make", [l_mesh, torus])
def test_gaps_of_balls_with_a_hollow_solid_against_brute_force(make):
    vertices, triangles = make()
    rng = np.random.default_rng(7)
    positions = rng.uniform(vertices.min(axis=0) - 0.2, vertices.max(axis=0) + 0.2, (3000, 3))
    radius = 0.25
    distance = distances_to_mesh(positions, vertices, triangles)
    table = table_of(gv.Mesh(vertices, triangles), gv.Sphere(radius), positions)
    deepest, shallowest = np.full(len(positions), np.inf), np.full(len(positions), -np.inf)
    np.minimum.at(deepest, table.body_b - 1, table.gap)
    np.maximum.at(shallowest, table.body_b - 1, table.gap)
    seen, outside = np.isfinite(deepest), distance > 1e-9
    assert np.array_equal(seen[outside], (distance <= radius)[outside])
    assert np.allclose(deepest[seen & outside], distance[seen & outside] - radius, rtol=0, atol=1e-9)
    # a ball whose centre is inside is pushed out of all faces near it, the nearest one among them; not out of hollow edges
    sunk = (distance < -1e-9) & (distance > -0.1)
    assert seen[sunk].mean() > 0.98
    assert (np.abs(shallowest - distance + radius)[sunk & seen] < 1e-9).mean() > 0.95


# --- other solids on flat floors
SOLIDS = {
    "box": (gv.Box((0.2, 0.15, 0.1)), UPRIGHT, 0.1),
    "cylinder standing": (gv.Cylinder(0.15, 0.2), UPRIGHT, 0.2),
    "cylinder lying": (gv.Cylinder(0.15, 0.2), about("x", 90), 0.15),
    "capsule lying": (gv.Capsule(0.1, 0.2), about("y", 90), 0.1),
    "cone": (gv.Cone(0.2, 0.3), UPRIGHT, 0.075),
    "ellipsoid": (gv.Ellipsoid((0.3, 0.2, 0.1)), UPRIGHT, 0.1),
    "hull": (gv.ConvexHull(CORNERS * (0.2, 0.15, 0.1)), UPRIGHT, 0.1),
    "mesh": (gv.Mesh(*(lambda m: (np.array(m.vertices), np.array(m.faces)))(trimesh.creation.box((0.4, 0.3, 0.2)))), UPRIGHT, 0.1),
}


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("name", SOLIDS)
def test_solid_on_a_flat_mesh_is_pushed_straight_up_by_no_more_than_on_a_plane(name, floor):
    shape, turn, height = SOLIDS[name]
    rng = np.random.default_rng(8)
    n, depth = 60, 1e-3
    spin = np.array([about("z", angle) for angle in rng.uniform(0, 360, n)])
    turns = np.array([multiply(q, turn) for q in spin])
    positions = np.column_stack([rng.uniform(-1.4, 1.4, (n, 2)), np.full(n, height - depth)])
    found = table_of(FLOORS[floor](), shape, positions, turns, margin=1e-3)
    plane = table_of(gv.Plane(), shape, positions, turns, margin=1e-3)
    assert np.abs(found.normal - (0, 0, 1)).max() < 1e-3
    assert np.allclose([found.gap[found.body_b == k].min() for k in range(1, n + 1)], -depth, rtol=0, atol=1e-5)
    assert found.gap.min() > -depth - 1e-6
    angles = np.linspace(0, np.pi, 8, endpoint=False)
    across = np.stack([np.cos(angles), np.sin(angles)])
    for k in range(1, n + 1):  # the footprint is about as wide, in any direction
        ours, theirs = (np.ptp(table.point[table.body_b == k, :2] @ across, axis=0) for table in (found, plane))
        assert (ours > 0.85 * theirs - 1e-3).all() and (ours < 1.1 * theirs + 1e-3).all()


def test_cube_mesh_against_balls_and_boxes_whichever_moves():
    """A mesh that moves gives the contacts of a box as well."""
    rng = np.random.default_rng(9)
    scene_of = {}
    places, turns = rng.uniform(-1, 1, (60, 3)), random_quaternions(rng, 60)
    for name, shape in (("mesh", cube(0.3)), ("box", gv.Box((0.3, 0.3, 0.3)))):
        scene = gv.Scene()
        for k in range(60):
            scene.add_body(shape, (4.0 * k, 0, 0), quaternion=turns[k])
            scene.add_body(gv.Sphere(0.2), np.array([4.0 * k, 0, 0]) + 0.52 * places[k] / np.abs(places[k]).max())
        scene_of[name] = detect_scene(scene, 0.05)
    outside = scene_of["box"].gap > -0.19
    assert_like(scene_of["mesh"][outside], scene_of["box"][outside])


# --- in motion
def simulate(scene, seconds, dt=1 / 500, record=None):
    """Coulomb friction: with the convex cone, what slides is lifted by h mu v."""
    solver = gv.GaussSeidel(iterations=300, tolerance=1e-9)
    sim = gv.Simulation(scene, dt, solver=solver, precision="double", threads=1, friction="coulomb")
    for _ in range(round(seconds / dt)):
        sim.step()
        if record is not None:
            record(sim)
    return sim


ROUGH = gv.Material(friction=0.5)


def rolled(floor, turn=None):
    """Path of balls that roll over a floor for a second, without gaps at the start."""
    scene = gv.Scene()
    scene.add_body(floor, material=ROUGH, fixed=True, quaternion=turn)
    directions = np.array([about("z", angle) for angle in (0, 37, 101, 200)])
    velocities = rotate(directions, np.tile([1.0, 0, 0], (4, 1)))
    spins = rotate(directions, np.tile([0, 1.0 / 0.1, 0], (4, 1)))
    starts = np.array([(-0.6, -1.2, 0.1), (-0.6, 0.2, 0.1), (1.3, -0.6, 0.1), (0.2, 1.5, 0.1)])
    scene.add_bodies(gv.Sphere(0.1), starts, ROUGH, velocities=velocities, angular_velocities=spins)
    path = []
    simulate(scene, 1.0, record=lambda sim: path.append((sim.bodies.position[1:].copy(), sim.bodies.velocity[1:, :3].copy())))
    return np.array([p for p, _ in path]), np.array([v for _, v in path])


def test_ball_rolls_over_a_floor_of_triangles_as_over_a_plane():
    plane, _ = rolled(gv.Plane())
    for name in FLOORS:
        path, velocity = rolled(FLOORS[name]())
        assert np.abs(path - plane).max() < 1e-6, name
        assert np.abs(velocity[..., 2]).max() < 1e-4, name
    assert np.linalg.norm(plane[-1] - plane[0], axis=1).min() > 0.9


def resting(floor, floor_position=(0, 0, 0)):
    """All solids on a floor, 3 m apart, for a second: (drift, speed, lowest gap)."""
    scene = gv.Scene()
    scene.add_body(floor, floor_position, material=ROUGH, fixed=True)
    for k, (shape, turn, height) in enumerate(SOLIDS.values()):
        spin = multiply(about("z", 20 * k + 7), turn)
        scene.add_body(shape, (1.5 * (k % 3) - 1.5 + 0.03 * k, 1.2 * (k // 3) - 1.2, height), ROUGH, quaternion=spin)
    start = scene.bodies.position.copy()
    sim = simulate(scene, 1.0)
    drift = np.linalg.norm(sim.bodies.position - start, axis=1)[1:]
    speed = np.linalg.norm(sim.bodies.velocity[1:, :3], axis=1) + 0.2 * np.linalg.norm(sim.bodies.velocity[1:, 4:7], axis=1)
    return dict(zip(SOLIDS, drift)), dict(zip(SOLIDS, speed)), sim.report.max_penetration


@pytest.mark.parametrize("floor", ["sheet", "solid", "height field", "plane"])
def test_solids_rest_on_a_floor_of_triangles(floor):
    make = {**FLOORS, "plane": gv.Plane}[floor]
    drift, speed, penetration = resting(make())
    assert max(drift.values()) < 1e-4, drift
    assert max(speed.values()) < 1e-3, speed
    assert penetration < 1e-3


def test_box_slides_over_a_floor_of_triangles_without_being_caught():
    """With friction 0.2, a box at 1 m/s stops after v^2 / (2 mu g), on triangles as on a plane."""
    stops = {}
    for name in ("plane", "sheet", "height field"):
        material = gv.Material(friction=0.2)
        scene = gv.Scene()
        scene.add_body({**FLOORS, "plane": gv.Plane}[name](), material=material, fixed=True)
        scene.add_body(gv.Box((0.2, 0.15, 0.1)), (-0.5, 0.1, 0.1), material, velocity=(1.0, 0.0, 0.0), quaternion=about("z", 15))
        highest = []
        sim = simulate(scene, 0.7, record=lambda sim, highest=highest: highest.append(sim.bodies.position[1, 2]))
        stops[name] = sim.bodies.position[1].copy()
        assert max(highest) < 0.1 + 1e-3, name
    for name in ("sheet", "height field"):
        assert np.abs(stops[name] - stops["plane"]).max() < 5e-3, stops
    assert stops["plane"][0] + 0.5 == pytest.approx(1 / (2 * 0.2 * 9.81), rel=0.05)
