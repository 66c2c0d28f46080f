"""Shapes in motion: what stands stays, what rolls rolls as mechanics says."""

import itertools

import numpy as np
import pytest
from oracles import about
from scipy.spatial.transform import Rotation

import gravel as gv
from gravel.rotations import multiply

pytestmark = pytest.mark.usefixtures("device")

G, DT = 9.81, 1 / 500
UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])
ROUGH = gv.Material(friction=0.6)


def simulate(scene, dt=DT, **options):
    solver = gv.GaussSeidel(iterations=500, tolerance=1e-9)
    return gv.Simulation(scene, dt, **{"solver": solver, "precision": "double", "threads": 1, "friction": "coulomb", **options})


def steps(sim, seconds):
    for _ in range(round(seconds / sim.dt)):
        sim.step()


# --- at rest
def on_a_face(points):
    """A hull with its largest face below: (shape, quaternion, height of its given origin above the floor)."""
    hull = gv.ConvexHull(points)
    faces = [hull.vertices[face] for face in hull.faces]
    normals = [np.cross(f[1] - f[0], f[2] - f[0]) for f in faces]
    areas = [np.linalg.norm(sum(np.cross(p - f[0], q - f[0]) for p, q in zip(f[1:-1], f[2:]))) for f in faces]
    down = normals[int(np.argmax(areas))]
    turn = Rotation.align_vectors([[0, 0, -1]], [down / np.linalg.norm(down)])[0]
    return hull, np.roll(turn.as_quat(), 1), -(turn.apply(hull.vertices.copy())[:, 2].min())


def dodecahedron():
    phi = (1 + 5**0.5) / 2
    corners = list(itertools.product((-1.0, 1.0), repeat=3))
    for a, b in itertools.product((-1.0, 1.0), repeat=2):
        corners += [(0, a / phi, b * phi), (a / phi, b * phi, 0), (a * phi, 0, b / phi)]
    return 0.12 * np.array(corners)


TETRAHEDRON = 0.2 * np.array([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1.0)])
STANDING = {
    "cylinder on its cap": (gv.Cylinder(0.1, 0.2), UPRIGHT, 0.2),
    "flat cylinder on its cap": (gv.Cylinder(0.3, 0.03), UPRIGHT, 0.03),
    "cylinder on its side": (gv.Cylinder(0.1, 0.2), about("x", 90), 0.1),
    "cone on its base": (gv.Cone(0.15, 0.3), UPRIGHT, 0.075),
    "capsule": (gv.Capsule(0.1, 0.2), about("y", 90), 0.1),
    "ellipsoid": (gv.Ellipsoid((0.3, 0.2, 0.1)), UPRIGHT, 0.1),
    "box": (gv.Box((0.1, 0.2, 0.15)), UPRIGHT, 0.15),
    "rounded box": (gv.RoundedBox((0.1, 0.2, 0.15), 0.05), UPRIGHT, 0.15),
    "rounded plate": (gv.RoundedBox((0.2, 0.3, 0.03), 0.03), UPRIGHT, 0.03),
    "rounded rod": (gv.RoundedBox((0.08, 0.08, 0.3), 0.08), about("x", 90), 0.08),
    "tetrahedron": on_a_face(TETRAHEDRON),
    "dodecahedron": on_a_face(dodecahedron()),
    "clump": (gv.Clump([(0.15, 0, 0), (-0.1, 0.15, 0), (-0.1, -0.15, 0)], 0.1), UPRIGHT, 0.1),
    "compound": (gv.Compound([(gv.Box((0.2, 0.15, 0.05)),), (gv.Cylinder(0.05, 0.15), (0, 0, 0.2))]), UPRIGHT, 0.05),
}
FLOORS = {"plane": (gv.Plane(), (0, 0, 0)), "box": (gv.Box((10, 10, 1)), (0, 0, -1))}


@pytest.mark.parametrize("floor", FLOORS)
def test_what_stands_stays(floor):
    """All of them side by side, each turned about the vertical by some angle."""
    scene = gv.Scene()
    scene.add_body(FLOORS[floor][0], FLOORS[floor][1], ROUGH, fixed=True)
    for k, (shape, turn, height) in enumerate(STANDING.values()):
        scene.add_body(shape, (1.1 * (k % 4) - 2, 1.1 * (k // 4) - 2, height), ROUGH, quaternion=multiply(about("z", 31.0 * k), turn))
    start, turns = scene.bodies.position.copy(), scene.bodies.quaternion.copy()
    sim = simulate(scene)
    squares = np.zeros(len(STANDING))
    for _ in range(500):
        sim.step()
        squares += (sim.bodies.velocity[1:, :3] ** 2).sum(axis=1) / 500
    drift = np.linalg.norm(sim.bodies.position - start, axis=1)[1:]
    turned = 1 - np.abs((sim.bodies.quaternion * turns).sum(axis=1))[1:]
    assert np.sqrt(squares).max() < 1e-3, dict(zip(STANDING, np.sqrt(squares)))
    assert drift.max() < 1e-3, dict(zip(STANDING, drift))
    assert turned.max() < 1e-5, dict(zip(STANDING, turned))
    assert sim.report.max_penetration < 1e-3


def test_tower_of_box_cylinder_and_box_stands():
    scene = gv.Scene()
    scene.add_body(gv.Plane(), material=ROUGH, fixed=True)
    for shape, height in ((gv.Box((0.2, 0.2, 0.1)), 0.1), (gv.Cylinder(0.15, 0.2), 0.4), (gv.Box((0.2, 0.2, 0.1)), 0.7)):
        scene.add_body(shape, (0.01, 0.02, height), ROUGH, quaternion=about("z", 100 * height))
    hull, turn, above = on_a_face(dodecahedron())
    scene.add_body(hull, (0, 0, 0.8 + above), ROUGH, quaternion=turn)
    start = scene.bodies.position.copy()
    sim = simulate(scene)
    steps(sim, 1.0)
    assert np.abs(sim.bodies.position - start).max() < 1e-3
    assert np.abs(sim.bodies.velocity[:, :3]).max() < 1e-3
    weight = sum(1 / sim.bodies.inverse_mass[1:, 0]) * G
    contacts = sim.contacts
    assert contacts.impulse[contacts.body_a == 0].sum(axis=0)[2] / sim.dt == pytest.approx(weight, rel=1e-3)


def test_tower_of_rounded_boxes_stands():
    """Faces on faces of the cores, each turned a little against the one below."""
    scene = gv.Scene()
    scene.add_body(gv.Plane(), material=ROUGH, fixed=True)
    for k in range(4):
        scene.add_body(gv.RoundedBox((0.2, 0.25, 0.1), 0.04), (0.01 * k, 0, 0.1 + 0.2 * k), ROUGH, quaternion=about("z", 20 * k))
    start = scene.bodies.position.copy()
    sim = simulate(scene)
    steps(sim, 1.0)
    assert np.abs(sim.bodies.position - start).max() < 1e-3
    assert np.abs(sim.bodies.velocity[:, :3]).max() < 1e-3
    assert np.abs(sim.bodies.velocity[:, 4:7]).max() < 1e-2
    contacts, weight = sim.contacts, 4 / sim.bodies.inverse_mass[1, 0] * G
    assert contacts.impulse[contacts.body_a == 0].sum(axis=0)[2] / sim.dt == pytest.approx(weight, rel=1e-3)


def test_rounded_box_rocks_over_its_edge_only_when_its_centre_is_beyond_the_core():
    """On its face it rests; tilted about an edge beyond the balance of its centre over the core's edge it falls over."""
    half, radius = np.array((0.1, 0.2, 0.15)), 0.05
    core = half - radius
    balance = np.degrees(np.arctan2(core[0], core[2]))
    for degrees, falls in ((0.8 * balance, False), (1.2 * balance, True)):
        scene = gv.Scene()
        scene.add_body(gv.Plane(), material=ROUGH, fixed=True)
        turn, angle = about("y", degrees), np.radians(degrees)
        height = core[0] * np.sin(angle) + core[2] * np.cos(angle) + radius
        scene.add_body(gv.RoundedBox(half, radius), (0, 0, height), ROUGH, quaternion=turn)
        sim = simulate(scene)
        steps(sim, 3.0)
        assert (sim.positions[1, 2] < 0.5 * (half[0] + half[2])) == falls, degrees


def test_box_falls_off_when_its_centre_is_beyond_the_support():
    """On a cylinder's cap, a box that overhangs by less than half stays, and one by more falls."""
    for x, stays in ((0.14, True), (0.16, False)):
        scene = gv.Scene()
        scene.add_body(gv.Cylinder(0.15, 0.2), (0, 0, 0.2), ROUGH, fixed=True)
        scene.add_body(gv.Box((0.2, 0.1, 0.05)), (x, 0, 0.45), ROUGH)
        sim = simulate(scene)
        steps(sim, 1.0)
        assert (sim.bodies.position[1, 2] > 0.449) == stays


@pytest.mark.parametrize("shape", [gv.Capsule(0.05, 1.0), gv.Cylinder(0.05, 1.0)], ids=["capsule", "cylinder"])
def test_rod_across_a_rod_tips_to_its_heavy_side(shape):
    """Two long rods that cross at ten degrees touch at one point: the upper one cannot balance 30 cm beside it."""
    scene = gv.Scene()
    scene.add_body(shape, (0, 0, 0), ROUGH, quaternion=about("y", 90), fixed=True)
    turn = multiply(about("z", 10), about("y", 90))
    along = np.array([np.cos(np.radians(10)), np.sin(np.radians(10)), 0])
    scene.add_body(shape, 0.3 * along + (0, 0, 0.1), ROUGH, quaternion=turn)
    sim = simulate(scene)
    steps(sim, 0.5)
    assert sim.bodies.position[1, 2] < 0.06


# --- rolling and rocking
@pytest.mark.parametrize(
    "shape, turn, share",
    [
        (gv.Cylinder(0.1, 0.2), about("x", 90), 2 / 3),
        (gv.Sphere(0.1), UPRIGHT, 5 / 7),
        (gv.Ellipsoid((0.1, 0.3, 0.1)), UPRIGHT, 5 / 7),  # a round one about y: I = 2/5 m r^2
        (gv.Capsule(0.1, 0.2), about("x", 90), None),
    ],
    ids=["cylinder", "ball", "ellipsoid", "capsule"],
)
@pytest.mark.parametrize("floor", FLOORS)
def test_round_body_rolls_down_a_slope(shape, turn, share, floor):
    """a = g sin(angle) / (1 + I / (m r^2))."""
    angle = np.radians(10)
    if share is None:
        share = 1 / (1 + shape.inertias(np.ones(1))[0, 2] / 0.1**2)
    scene = gv.Scene(gravity=(G * np.sin(angle), 0, -G * np.cos(angle)))
    scene.add_body(FLOORS[floor][0], FLOORS[floor][1], ROUGH, fixed=True)
    scene.add_body(shape, (-2, 0, 0.1), ROUGH, quaternion=turn)
    sim = simulate(scene)
    steps(sim, 1.0)
    acceleration = share * G * np.sin(angle)
    assert sim.bodies.velocity[1, 0] == pytest.approx(acceleration, rel=0.01)
    assert sim.bodies.position[1, 0] + 2 == pytest.approx(0.5 * acceleration, rel=0.01)
    assert sim.bodies.velocity[1, 5] == pytest.approx(sim.bodies.velocity[1, 0] / 0.1, rel=0.01)
    assert abs(sim.bodies.position[1, 1]) < 1e-3 and abs(sim.bodies.position[1, 2] - 0.1) < 1e-3


@pytest.mark.parametrize("floor", FLOORS)
def test_ellipsoid_rocks_with_the_period_of_small_oscillations(floor):
    """Rolling about y by a small angle t, the centre of an ellipsoid of radii a, c rises by (R - c) t^2 / 2 with R = a^2 / c, the
    radius of curvature below: period 2 pi sqrt((I + m c^2) / (m g (R - c)))."""
    a, b, c = 0.3, 0.25, 0.2
    scene = gv.Scene()
    scene.add_body(FLOORS[floor][0], FLOORS[floor][1], ROUGH, fixed=True)
    tilt = np.radians(2)
    height = np.hypot(a * np.sin(tilt), c * np.cos(tilt))
    scene.add_body(gv.Ellipsoid((a, b, c)), (0, 0, height), ROUGH, quaternion=about("y", np.degrees(tilt)))
    sim = simulate(scene, dt=1 / 1000)
    inertia = (a**2 + c**2) / 5
    period = 2 * np.pi * np.sqrt((inertia + c**2) / (G * (a**2 / c - c)))
    angles = []
    for _ in range(round(2.6 * period * 1000)):
        sim.step()
        angles.append(2 * sim.bodies.quaternion[1, 2] * np.sign(sim.bodies.quaternion[1, 0]))
    angles = np.array(angles)
    crossings = np.flatnonzero(angles[:-1] * angles[1:] < 0)
    times = (crossings + angles[crossings] / (angles[crossings] - angles[crossings + 1])) / 1000
    assert len(times) >= 4
    assert 2 * np.diff(times).mean() == pytest.approx(period, rel=0.02)
    assert np.abs(angles[-round(period * 1000) :]).max() > 0.8 * tilt  # it still rocks


def test_cone_rolls_in_a_circle_about_its_tip():
    """A cone on its mantle that is pushed rolls about its tip, which stays where it is."""
    radius, height = 0.2, 0.4
    slope = np.arctan2(radius, height)  # half the angle at the tip
    axis = np.array([np.cos(slope), 0, np.sin(slope)])  # from the tip to the base, seen in the plane
    turn = np.roll(Rotation.align_vectors([-axis], [[0, 0, 1]])[0].as_quat(), 1)
    scene = gv.Scene()
    scene.add_body(gv.Plane(), material=gv.Material(friction=1.0), fixed=True)
    centre = 0.75 * height * axis
    spin = 1.0  # rad/s about the vertical through the tip
    # rolling without slipping about the contact line: the angular velocity lies along it
    omega = np.array([-spin / np.tan(slope), 0, 0])
    motion = {"angular_velocity": omega, "velocity": np.cross(omega, centre)}
    scene.add_body(gv.Cone(radius, height), centre, gv.Material(friction=1.0), quaternion=turn, **motion)
    sim = simulate(scene, dt=1 / 1000)
    tips = []
    for _ in range(500):
        sim.step()
        tips.append(sim.bodies.position[1] + 0.75 * height * Rotation.from_quat(np.roll(sim.bodies.quaternion[1], -1)).apply([0, 0, 1]))
    assert np.linalg.norm(tips, axis=1).max() < 0.01
    assert np.linalg.norm(sim.bodies.position[1] - centre) > 0.05
