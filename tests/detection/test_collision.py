"""Collision detection: the grid against brute force, and both against a k-d tree and formulas in NumPy."""

from fractions import Fraction

import numba
import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

import gravel as gv

pytestmark = pytest.mark.usefixtures("device")

FIELDS = ("body_a", "body_b", "point", "normal", "gap")
BROAD_PHASES = ("grid", "brute")


def pairs_of(table):
    return list(zip(table.body_a.tolist(), table.body_b.tolist()))


def tree_pairs(positions, radii, margin=0.0):
    """Pairs of spheres with a gap up to the margin, by scipy's k-d tree."""
    radii = np.broadcast_to(radii, len(positions))
    found = []
    if len(positions):
        near = cKDTree(positions).query_ball_point(positions, radii + radii.max() + margin + 1e-9)
        for i, others in enumerate(near):
            j = np.array([k for k in others if k > i], int)
            gap = np.linalg.norm(positions[j] - positions[i], axis=1) - radii[i] - radii[j]
            found += [(i, k) for k in j[gap <= margin].tolist()]
    return sorted(found)


def check_spheres(positions, radii, margin=0.0):
    """Both broad phases give the k-d tree's pairs, each once, in order, and the same contacts; returns the table."""
    tables = [gv.find_contacts(gv.Sphere(radii), positions, broad_phase=name, margin=margin) for name in BROAD_PHASES]
    expected = tree_pairs(positions, radii, margin)
    for table in tables:
        assert pairs_of(table) == expected
        check_geometry(table, positions, np.broadcast_to(radii, len(positions)))
    for name in ("gap", "normal", "point"):
        assert np.allclose(getattr(tables[0], name), getattr(tables[1], name), rtol=0, atol=1e-9)
    return tables[0]


def check_geometry(table, positions, radii):
    a, b = table.body_a, table.body_b
    d = positions[b] - positions[a]
    distance = np.linalg.norm(d, axis=1)
    scale = np.abs(positions).max(initial=1.0)
    assert np.allclose(np.linalg.norm(table.normal, axis=1), 1.0, rtol=0, atol=1e-12)
    assert np.allclose(table.normal * distance[:, None], d, rtol=0, atol=1e-12 * scale)
    assert np.allclose(table.gap, distance - radii[a] - radii[b], rtol=0, atol=1e-12 * scale)
    surface_a = positions[a] + radii[a, None] * table.normal
    surface_b = positions[b] - radii[b, None] * table.normal
    assert np.allclose(table.point, 0.5 * (surface_a + surface_b), rtol=0, atol=1e-12 * scale)


# --- spheres


@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_random_equal_spheres(margin):
    positions = np.random.default_rng(1).uniform(-5, 7, (3000, 3))
    assert len(check_spheres(positions, 0.4, margin)) > 1000


@pytest.mark.parametrize("ratio", [20, 100])
@pytest.mark.parametrize("margin", [0.0, 0.02])
def test_random_spheres_of_mixed_sizes(ratio, margin):
    rng = np.random.default_rng(ratio)
    radii = 0.5 * ratio ** -rng.uniform(0, 1, 2500)
    assert len(check_spheres(rng.uniform(0, 6, (2500, 3)), radii, margin)) > 1000


@pytest.mark.parametrize("large", [1, 20, 60], ids=lambda n: f"{n} large")
def test_few_large_spheres_among_many_small_ones(large):
    """Up to 32 large bodies are kept out of the cells, more are not."""
    rng = np.random.default_rng(large)
    radii = np.where(np.arange(1500) < large, 1.0, 0.01) * rng.uniform(0.8, 1.0, 1500)
    radii = rng.permutation(radii)
    assert len(check_spheres(rng.uniform(0, 8, (1500, 3)), radii)) > 0


def test_small_spheres_far_finer_than_the_finest_level_of_the_grid():
    rng = np.random.default_rng(3)
    radii = np.concatenate([rng.uniform(0.5, 1, 50), 10.0 ** rng.uniform(-6, -4, 500)])
    positions = np.concatenate([rng.uniform(0, 4, (50, 3)), rng.uniform(0, 5e-4, (500, 3))])
    assert len(check_spheres(positions, radii)) > 500


def test_spheres_in_clusters_far_apart():
    rng = np.random.default_rng(4)
    centres = np.array([[0, 0, 0], [1e5, 0, 0], [-1e5, 1e5, 0], [0, 0, -1e5], [1e5, 1e5, 1e5]])
    positions = rng.permutation((centres[:, None] + rng.uniform(0, 2, (5, 200, 3))).reshape(-1, 3))
    assert len(check_spheres(positions, rng.uniform(0.05, 0.2, 1000))) > 500


def test_all_spheres_at_one_point():
    positions = np.tile([[0.3, -2.0, 7.0]], (300, 1))
    table = check_spheres(positions, 0.25)
    assert len(table) == 300 * 299 // 2
    assert np.all(table.gap == -0.5)


@pytest.mark.parametrize("broad_phase", BROAD_PHASES)
def test_no_one_and_two_spheres(broad_phase):
    def find(x, **options):
        return gv.find_contacts(gv.Sphere(1.0), np.reshape(x, (-1, 3)), broad_phase=broad_phase, **options)

    assert len(find([])) == 0
    assert len(find([1, 2, 3])) == 0
    assert len(find([0, 0, 0, 2.5, 0, 0])) == 0
    assert pairs_of(find([0, 0, 0, 2.5, 0, 0], margin=0.6)) == [(0, 1)]
    table = find([0, 0, 0, 0, 1.5, 0])
    assert pairs_of(table) == [(0, 1)]
    assert table.normal.tolist() == [[0, 1, 0]] and table.gap.tolist() == [-0.5]
    assert table.point.tolist() == [[0, 0.75, 0]]


# --- spheres on the edges of the cells: these are as wide as the largest sphere


def lattice(spacing, cells):
    line = spacing * np.arange(-cells, cells + 1)
    return np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)


@pytest.mark.parametrize("spacing", [0.25, 1.0, 2.0])
@pytest.mark.parametrize("share", [0.0, 0.125])
def test_touching_lattice_whose_spacing_has_no_rounding(spacing, share):
    table = check_spheres(lattice(spacing, 4), spacing / 2, share * spacing)
    assert len(table) == 3 * 8 * 9 * 9
    assert np.all(table.gap == 0.0)


@pytest.mark.parametrize("spacing", [0.1, 0.3, 0.7, 1 / 3])
def test_lattice_with_gaps_below_the_margin(spacing):
    positions = lattice(spacing, 4)
    tables = [gv.find_contacts(gv.Sphere(spacing / 2), positions, broad_phase=b, margin=1e-9) for b in BROAD_PHASES]
    expected = sorted(cKDTree(positions).query_pairs(1.01 * spacing))  # pairs (i, j) with i < j
    assert len(expected) == 3 * 8 * 9 * 9
    for table in tables:
        assert pairs_of(table) == expected


@pytest.mark.parametrize("spacing", [0.1, 0.3, 0.7, 1 / 3])
def test_grid_equals_brute_on_a_lattice_that_touches_up_to_rounding(spacing):
    tables = [gv.find_contacts(gv.Sphere(spacing / 2), lattice(spacing, 6), broad_phase=b) for b in BROAD_PHASES]
    assert pairs_of(tables[0]) == pairs_of(tables[1])


@pytest.mark.parametrize("radius", [0.05, 0.1, 0.35, 1 / 3])
def test_pairs_that_touch_across_a_cell_edge_are_found_to_the_last_bit(radius):
    """Pairs at the edges of cells and a bit below; whether they touch is decided in exact arithmetic."""
    left = 2 * radius * np.arange(-400, 400)
    left = np.concatenate([left, np.nextafter(left, -np.inf), np.nextafter(left, np.inf)])
    positions = np.zeros((len(left), 2, 3))
    positions[:, 0, 0], positions[:, 1, 0] = left, left + 2 * radius
    positions[:, :, 1] = (50 * radius * np.arange(len(left)))[:, None]
    touching = [Fraction(b) - Fraction(a) <= 2 * Fraction(radius) for a, b in positions[:, :, 0].tolist()]
    expected = {(2 * k, 2 * k + 1) for k in np.flatnonzero(touching).tolist()}
    assert len(expected) > 100
    for name in ("brute", "grid"):
        found = gv.find_contacts(gv.Sphere(radius), positions.reshape(-1, 3), broad_phase=name)
        assert expected - set(pairs_of(found)) == set()


# --- order and threads


def mixed_spheres(count=6000):
    rng = np.random.default_rng(5)
    return rng.uniform(0, 10, (count, 3)), 0.5 * 50 ** -rng.uniform(0, 1, count)


@pytest.mark.parametrize("broad_phase", BROAD_PHASES)
def test_one_and_two_threads_give_identical_tables(broad_phase):
    positions, radii = mixed_spheres()
    most = min(2, numba.config.NUMBA_NUM_THREADS)
    one, two = (gv.find_contacts(gv.Sphere(radii), positions, broad_phase=broad_phase, threads=n) for n in (1, most))
    for name in FIELDS:
        assert np.array_equal(getattr(one, name), getattr(two, name))


@pytest.mark.parametrize("broad_phase", BROAD_PHASES)
def test_the_same_call_gives_the_same_table(broad_phase):
    positions, radii = mixed_spheres(2000)
    first, second = (gv.find_contacts(gv.Sphere(radii), positions, broad_phase=broad_phase) for _ in range(2))
    for name in FIELDS:
        assert np.array_equal(getattr(first, name), getattr(second, name))
    assert pairs_of(first) == sorted(pairs_of(first))


def test_the_order_of_the_bodies_does_not_change_the_contacts():
    positions, radii = mixed_spheres(2000)
    order = np.random.default_rng(6).permutation(2000)
    plain = gv.find_contacts(gv.Sphere(radii), positions)
    mixed = gv.find_contacts(gv.Sphere(radii[order]), positions[order])
    renamed = np.sort(np.column_stack([order[mixed.body_a], order[mixed.body_b]]), axis=1)
    assert sorted(map(tuple, renamed.tolist())) == pairs_of(plain)


def test_single_precision_finds_the_same_pairs():
    positions, radii = mixed_spheres(2000)
    single, double = (gv.find_contacts(gv.Sphere(radii), positions, precision=p) for p in ("single", "double"))
    assert pairs_of(single) == pairs_of(double)
    assert np.allclose(single.gap, double.gap, rtol=0, atol=1e-6)


# --- how many overlaps to expect


def expected_overlaps(count, density, largest):
    """Mean and variance of the number of overlaps of spheres with radii uniform in [0, largest], uniform in a cube.

    The distance of two random points of the unit cube has the density 4 pi l^2 - 6 pi l^3 + 8 l^4 - l^5 for l <= 1; its
    first term alone ignores the faces of the cube.
    """
    side = (count / density) ** (1 / 3)
    nodes = (np.arange(400) + 0.5) / 400 * largest
    s = (nodes[:, None] + nodes[None]) / side
    chance = 4 / 3 * np.pi * s**3 - 3 / 2 * np.pi * s**4 + 8 / 5 * s**5 - s**6 / 6
    mean = count * (count - 1) / 2 * chance.mean()
    return mean, mean + count**3 * chance.mean(axis=1).var()  # pairs that share a sphere are not independent


def test_number_of_overlaps_of_random_spheres_as_in_paper_002():
    count, density, largest = 20_000, 1.25e-7, 101.0
    cube_of_sum = 2 * largest**3 / 4 + 6 * largest**2 / 3 * largest / 2  # E (r1 + r2)^3
    per_sphere = 4 / 3 * np.pi * density * cube_of_sum / 2
    assert round(per_sphere, 4) == 0.4046
    mean, variance = expected_overlaps(count, density, largest)
    assert 0.95 * per_sphere * count < mean < per_sphere * count  # the faces of the cube take a few per cent
    rng = np.random.default_rng(7)
    positions = rng.uniform(0, (count / density) ** (1 / 3), (count, 3))
    found = len(gv.find_contacts(gv.Sphere(rng.uniform(0, largest, count)), positions))
    assert abs(found - mean) < 4 * variance**0.5


# --- boxes and mixed shapes


def test_random_boxes_grid_equals_brute():
    rng = np.random.default_rng(8)
    boxes, quaternions = rng.uniform(0.1, 0.5, (400, 3)), rng.normal(size=(400, 4))
    positions = rng.uniform(0, 6, (400, 3))
    grid, brute = (gv.find_contacts(gv.Box(boxes), positions, quaternions, broad_phase=b) for b in BROAD_PHASES)
    assert len(grid) > 1000
    assert_same_contacts(grid, brute)


def assert_same_contacts(one, two):
    """Equal pairs, and for each pair equal gaps and points, in any order."""
    assert pairs_of(one) == pairs_of(two)
    rows = [np.column_stack([t.body_a, t.body_b, t.gap, t.point, t.normal]) for t in (one, two)]
    one, two = (r[np.lexsort((*np.round(r[:, 5:2:-1].T, 4), r[:, 1], r[:, 0]))] for r in rows)
    assert np.allclose(one, two, rtol=0, atol=1e-5)


def mixed_scene(gravity=(1.0, 0.5, -9.81)):
    """Balls and boxes of many sizes in a pit of planes, one of them tilted, with fixed boxes and balls in it."""
    rng = np.random.default_rng(9)
    scene = gv.Scene(gravity=gravity)
    for normal in ((0, 0.1, 1), (1, 0, 0), (-1, 0, 0.2), (0, 1, 0), (0, -1, 0)):
        scene.add_body(gv.Plane(normal=normal, offset=-1.5), fixed=True)
    scene.add_body(gv.Plane(normal=(0, 0, 1)), (0, 0, -1.8), fixed=True, quaternion=(0.99, 0.05, 0, 0.1))
    scene.add_body(gv.Box((0.8, 0.3, 0.2)), (0.2, 0.1, -0.8), fixed=True, quaternion=(0.9, 0.1, 0.3, 0.2))
    scene.add_body(gv.Box((6.0, 0.1, 6.0)), (0, 1.4, 0), fixed=True, quaternion=(0.98, 0.1, 0, 0))
    scene.add_body(gv.Sphere(0.5), (-0.7, -0.5, -1.0), fixed=True)
    places = rng.permutation(np.stack(np.meshgrid(*[np.linspace(-1.2, 1.2, 7)] * 3), -1).reshape(-1, 3))
    speeds = lambda n: rng.normal(size=(n, 3))  # noqa: E731
    scene.add_bodies(gv.Sphere(rng.uniform(0.02, 0.18, 150)), places[:150], velocities=speeds(150), angular_velocities=speeds(150))
    scene.add_bodies(
        gv.Box(rng.uniform(0.03, 0.18, (150, 3))),
        places[150:300],
        quaternions=rng.normal(size=(150, 4)),
        velocities=speeds(150),
        angular_velocities=speeds(150),
    )
    return scene


def one_step_from(simulation, scene, broad_phase):
    """The contacts that one step finds in the present state of a simulation."""
    twin = gv.Simulation(scene, dt=simulation.dt, broad_phase=broad_phase)
    for name in ("positions", "quaternions", "velocities", "angular_velocities"):
        getattr(twin, name)[:] = getattr(simulation, name)
    twin.step()
    return twin.contacts


def mixed_contacts(steps):
    """The contacts that grid and brute force find in one state, after some steps."""
    scene = mixed_scene()
    simulation = gv.Simulation(scene, dt=4e-3, broad_phase="grid")
    for _ in range(steps):
        simulation.step()
    return [one_step_from(simulation, scene, name) for name in BROAD_PHASES]


@pytest.mark.parametrize("steps", [0, 30, 150, 200])
def test_mixed_scene_grid_finds_the_pairs_of_brute(steps):
    grid, brute = mixed_contacts(steps)
    assert len(grid) > 100
    assert set(pairs_of(grid)) == set(pairs_of(brute))


@pytest.mark.parametrize("steps", [0, 30, 150, 200])
def test_mixed_scene_grid_finds_the_contacts_of_brute_where_a_ball_or_plane_is_touched(steps):
    shapes = mixed_scene().bodies.shape
    tables = mixed_contacts(steps)
    assert_same_contacts(*(table[(shapes[table.body_a] != 1) | (shapes[table.body_b] != 1)] for table in tables))


def test_contacts_of_two_boxes_do_not_depend_on_the_order_of_the_broad_phase():
    """Grid equals brute for pairs that lie nearly flat on each other, where the faces of both are about as good."""
    rng = np.random.default_rng(11)
    count = 400
    half = rng.uniform(0.2, 0.5, (2 * count, 3))
    turn = Rotation.random(count, rng=rng)
    tilt = Rotation.from_rotvec(rng.uniform(-0.01, 0.01, (count, 3)))
    centres = 3.0 * np.stack(np.unravel_index(np.arange(count), (8, 8, 7)), axis=1)
    offset = np.column_stack([rng.uniform(-0.1, 0.1, (count, 2)), half[::2, 2] + half[1::2, 2]])
    positions, quaternions = np.empty((2 * count, 3)), np.empty((2 * count, 4))
    positions[::2], positions[1::2] = centres, centres + turn.apply(offset)
    quaternions[::2], quaternions[1::2] = (np.roll(r.as_quat(), 1, axis=1) for r in (turn, turn * tilt))
    grid, brute = (gv.find_contacts(gv.Box(half), positions, quaternions, broad_phase=name, margin=1e-3) for name in BROAD_PHASES)
    assert len(set(pairs_of(grid))) == count
    assert_same_contacts(grid, brute)


def test_mixed_scene_has_each_ball_pair_once_and_no_pair_of_fixed_bodies():
    scene = mixed_scene()
    simulation = gv.Simulation(scene, dt=4e-3)
    for _ in range(50):
        simulation.step()
    table = simulation.contacts
    movable = simulation.movable
    assert (movable[table.body_a] | movable[table.body_b]).all()
    ball = (simulation.bodies.shape == 0)[table.body_a] | (simulation.bodies.shape == 0)[table.body_b]
    once = [pair for pair, is_ball in zip(pairs_of(table), ball) if is_ball]
    assert len(once) == len(set(once)) > 0
    assert np.allclose(np.linalg.norm(table.normal, axis=1), 1.0, atol=1e-6)


def test_balls_of_a_mixed_scene_against_the_k_d_tree():
    """Among the contacts of a step with margin 0 and no motion, those of two balls are the tree's overlaps."""
    scene = mixed_scene(gravity=(0, 0, 0))
    simulation = gv.Simulation(scene, dt=4e-3, margin=0.0)
    simulation.velocities[:] = 0
    simulation.angular_velocities[:] = 0
    simulation.positions[9:] *= 0.4
    balls = np.flatnonzero((simulation.bodies.shape == 0) & simulation.movable)
    expected = tree_pairs(simulation.positions[balls].copy(), simulation.bodies.extent[balls, 0])
    simulation.step()
    between_balls = [pair for pair in pairs_of(simulation.contacts) if set(pair) <= set(balls.tolist())]
    assert between_balls == [(balls[i], balls[j]) for i, j in expected]
    assert len(expected) > 20


def test_a_spinning_box_that_could_reach_the_plane_in_a_step_has_a_contact():
    """A corner 5 mm above the plane that comes down at 2 m/s reaches it within a step of 10 ms."""
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_body(gv.Box((1.0, 0.1, 0.1)), (0, 0, 0.105), angular_velocity=(0, 2.0, 0))
    simulation = gv.Simulation(scene, dt=0.01, margin=0.0)
    simulation.step()
    assert len(simulation.contacts) >= 2
