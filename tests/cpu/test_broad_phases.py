"""All broad phases find the contacts of brute force: to the bit, since the narrow phase sees the same pairs."""

import numba
import numpy as np
import pytest
from scipy.spatial import cKDTree

import gravel as gv
from gravel.detection.find import run_detection
from gravel.engine import GROUPS, Margin, Rules, make_engine
from gravel.host.tree import LEAF, tree_rows
from gravel.state import FIELDS as BODY_FIELDS
from gravel.state import Bodies

NAMES = ("grid", "bvh", "sap")
FIELDS = ("body_a", "body_b", "gap", "normal", "point")


def contacts_of(bodies, name, margin=0.0, threads=1, engine=None, ignored=None, step=0.0):
    """The table of the contacts that a broad phase leads to, and the engine."""
    threads = min(threads, numba.config.NUMBA_NUM_THREADS)
    engine = engine or make_engine(precision="double", broad_phase=name, threads=threads)
    engine.threads = threads
    engine.refill({field.name: getattr(bodies, field.name) for field in BODY_FIELDS})
    ignored = np.zeros((GROUPS, GROUPS), bool) if ignored is None else ignored
    engine.set_rules(Rules(step=step, margin=Margin(margin, 0.0), ignored=ignored))
    run_detection(engine)
    return engine.contacts(), engine


def pairs_of(table):
    return list(zip(table.body_a.tolist(), table.body_b.tolist()))


def assert_same_bits(one, two):
    for field in FIELDS:
        assert np.array_equal(getattr(one, field), getattr(two, field)), field


def assert_same(found, expected):
    """The same pairs, and the same values to the bit: contacts do not depend on who has found them."""
    assert pairs_of(found) == pairs_of(expected)
    assert_same_bits(found, expected)


def spheres(radii, positions, **options):
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(radii), positions, **options)
    return scene.bodies


def lattice(cells, spacing):
    line = spacing * np.arange(-cells, cells + 1)
    return np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)


def mixed():
    rng = np.random.default_rng(1)
    return spheres(rng.uniform(0.01, 0.5, 3000), rng.uniform(-4, 9, (3000, 3)))


def one_to_hundred():
    rng = np.random.default_rng(2)
    return spheres(0.5 * 100 ** -rng.uniform(0, 1, 3000), rng.uniform(0, 5, (3000, 3)))


def few_boulders():
    rng = np.random.default_rng(3)
    radii = np.where(rng.random(4000) < 0.02, 1.0, 0.02) * rng.uniform(0.8, 1.0, 4000)
    return spheres(radii, rng.uniform(0, 6, (4000, 3)))


def on_bin_edges():
    return spheres(0.5, lattice(6, 1.0))


def on_edges_up_to_rounding():
    return spheres(0.05, lattice(6, 0.1))


def chain_up_to_rounding():
    """Bodies of neighbouring leaves of the tree touch at the very ends of their boxes."""
    radii = np.random.default_rng(12).uniform(0.1, 0.11, 8000)
    return spheres(radii, np.cumsum(np.append(0.0, radii[1:] + radii[:-1]))[:, None] * (1.0, 0.0, 0.0))


def all_at_one_point():
    return spheres(0.5, np.full((70, 3), 0.3))


def no_body():
    return gv.Scene().bodies


def one_body():
    return spheres(1.0, [[1.0, 2.0, 3.0]])


def two_bodies():
    return spheres(1.0, [[0.0, 0.0, 0.0], [0.0, 2.0, 0.0]])


def on_a_line():
    rng = np.random.default_rng(4)
    return spheres(rng.uniform(0.1, 0.4, 2000), rng.uniform(0, 1, (2000, 3)) * (1000.0, 0.0, 0.0))


def on_a_sheet_with_lost_bodies():
    """Two bodies so far away that cells over all of space would hold all the others."""
    rng = np.random.default_rng(5)
    positions = rng.uniform(0, 1, (3000, 3)) * (40.0, 40.0, 0.2)
    positions[[7, 1234]] = [[1e9, -1e9, 1e9], [-1e8, 0.0, 0.0]]
    return spheres(rng.uniform(0.1, 0.5, 3000), positions)


def boxes_and_planes():
    rng = np.random.default_rng(6)
    scene = gv.Scene()
    scene.add_body(gv.Plane(normal=(0.1, 0, 1)), (0, 0, 0.5), fixed=True)
    scene.add_bodies(gv.Box(rng.uniform(0.1, 0.5, (500, 3))), rng.uniform(0, 6, (500, 3)), quaternions=rng.normal(size=(500, 4)))
    scene.add_body(gv.Plane(normal=(1, 0, 0)), (0.5, 0, 0), fixed=True, quaternion=(0.9, 0, 0.1, 0.2))
    scene.add_body(gv.Box((8.0, 8.0, 0.1)), (3, 3, 1), fixed=True, quaternion=(0.9, 0.1, 0.1, 0))
    scene.add_bodies(gv.Sphere(rng.uniform(0.05, 0.4, 300)), rng.uniform(0, 6, (300, 3)))
    return scene.bodies


def balls_on_a_floor_box():
    """All that moves is a ball, so the engine knows of the floor only the ball around it."""
    rng = np.random.default_rng(7)
    scene = gv.Scene()
    scene.add_body(gv.Box((30.0, 30.0, 0.5)), (0, 0, -0.3), fixed=True)
    scene.add_bodies(gv.Box((0.2, 0.4, 0.3)), rng.uniform(-3, 3, (5, 3)), fixed=True)
    scene.add_bodies(gv.Sphere(0.2), rng.uniform(0, 1, (1500, 3)) * (20.0, 20.0, 1.0) - (10.0, 10.0, 0.0))
    return scene.bodies


def with_removed_bodies():
    simulation = gv.Simulation(scene_of(mixed()), dt=1e-3)
    simulation.remove(np.arange(5, 3000, 3))
    return present(simulation)


def all_removed():
    simulation = gv.Simulation(scene_of(two_bodies()), dt=1e-3)
    simulation.remove([0, 1])
    return present(simulation)


def present(simulation):
    """The bodies that are there, in the order of their ids."""
    bodies = Bodies()
    bodies.append(simulation.bodies.present(*(field.name for field in BODY_FIELDS)))
    return bodies


def half_fixed():
    rng = np.random.default_rng(8)
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(0.3), rng.uniform(0, 5, (1000, 3)), fixed=True)
    scene.add_bodies(gv.Sphere(0.3), rng.uniform(0, 5, (1000, 3)))
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_body(gv.Plane(normal=(0, 1, 0)), fixed=True)
    return scene.bodies


def scene_of(bodies):
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(bodies.extent[:, 0]), bodies.position)
    return scene


SCENES = {  # and how many contacts there are at least
    mixed: 1000,
    one_to_hundred: 1000,
    few_boulders: 1000,
    on_bin_edges: 3 * 12 * 13 * 13,
    on_edges_up_to_rounding: 1000,
    chain_up_to_rounding: 1000,
    all_at_one_point: 70 * 69 // 2,
    no_body: 0,
    one_body: 0,
    two_bodies: 1,
    on_a_line: 500,
    on_a_sheet_with_lost_bodies: 1000,
    boxes_and_planes: 1000,
    balls_on_a_floor_box: 500,
    with_removed_bodies: 500,
    all_removed: 0,
    half_fixed: 1000,
}


@pytest.mark.parametrize("make", SCENES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_contacts_are_those_of_brute_force(make, name):
    bodies = make()
    expected, _ = contacts_of(bodies, "brute")
    assert len(expected) >= SCENES[make]
    found, engine = contacts_of(bodies, name)
    assert_same(found, expected)


@pytest.mark.parametrize("make", [mixed, few_boulders, boxes_and_planes, with_removed_bodies], ids=lambda make: make.__name__)
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_one_and_two_threads_give_the_same_bits(make, name):
    bodies = make()
    (one, first), (two, second) = (contacts_of(bodies, name, margin=0.02, threads=n) for n in (1, 2))
    first, second = first.detector, second.detector
    assert_same_bits(one, two)
    assert np.array_equal(first.order, second.order)
    assert np.array_equal(first.pairs.count, second.pairs.count)
    for tile, count in enumerate(first.pairs.count.tolist()):
        rows = slice(tile * first.pair_capacity, tile * first.pair_capacity + count)
        assert np.array_equal(first.pairs.a[rows], second.pairs.a[rows]) and np.array_equal(first.pairs.b[rows], second.pairs.b[rows])


@pytest.mark.parametrize("name", NAMES)
def test_bodies_that_move_far_outside_the_bounds_of_the_detection_before(name):
    """One engine for all detections: together, scattered over kilometres, in one point, and back."""
    rng = np.random.default_rng(9)
    bodies = spheres(rng.uniform(0.1, 0.4, 1500), rng.uniform(0, 4, (1500, 3)))
    home = bodies.position.copy()
    engine = make_engine(precision="double", broad_phase=name)
    for positions in (home, 1e3 * (home - 2.0), home[::-1] + 1e6, np.full_like(home, -7.0), home):
        bodies.position[:] = positions
        expected, _ = contacts_of(bodies, "brute")
        found, _ = contacts_of(bodies, name, engine=engine)
        assert_same(found, expected)


@pytest.mark.parametrize("name", NAMES)
def test_no_pair_of_fixed_bodies_and_no_removed_body(name):
    fixed, _ = contacts_of(half_fixed(), name)
    assert np.all((fixed.body_a >= 1000) | (fixed.body_b >= 1000))
    assert np.any(fixed.body_b >= 2000) and np.any(fixed.body_a < 1000)
    bodies = with_removed_bodies()
    table, engine = contacts_of(bodies, name)
    assert not np.isin(np.arange(5, 3000, 3), np.concatenate([table.body_a, table.body_b])).any()
    assert len(engine.detector.order) == 3000 - len(range(5, 3000, 3))


@pytest.mark.parametrize("name", NAMES)
def test_groups_that_ignore_each_other(name):
    rng = np.random.default_rng(10)
    scene = gv.Scene()
    for group in range(3):
        scene.add_bodies(gv.Sphere(0.3), rng.uniform(0, 4, (400, 3)), group=group)
    scene.add_body(gv.Plane(), fixed=True, group=2)
    ignored = np.zeros((32, 32), bool)
    ignored[0, 1] = ignored[1, 0] = ignored[2, 2] = True
    expected, _ = contacts_of(scene.bodies, "brute", ignored=ignored)
    found, engine = contacts_of(scene.bodies, name, ignored=ignored)
    assert_same(found, expected)
    groups = {(a // 400, b // 400) for a, b in pairs_of(found)}
    assert groups == {(0, 0), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3)}


@pytest.mark.parametrize("name", NAMES)
def test_steps_with_a_margin_and_fast_bodies(name):
    """Reach grows with the speed of a body, so pairs come from further away."""
    bodies = one_to_hundred()
    bodies.velocity[:, :3] = np.random.default_rng(11).normal(size=(bodies.count, 3)) * 20.0
    tables = []
    for broad_phase in ("brute", name):
        table, engine = contacts_of(bodies, broad_phase, margin=0.01, step=0.01)
        tables.append(table)
    assert len(tables[0]) > len(contacts_of(bodies, "brute")[0])
    assert_same(tables[1], tables[0])


# --- the tree


def test_large_bodies_are_found_by_small_ones():
    """A floor under many balls does not fill the list of its own tile: all lists are as long as the longest."""
    for name in ("bvh", "sap", "grid"):
        _, engine = contacts_of(balls_on_a_floor_box(), name)
        assert engine.detector.pairs.count.max() < 4 * engine.detector.tile_size


def test_each_box_of_the_tree_holds_the_two_below_and_leaves_hold_their_bodies():
    bodies = mixed()
    _, engine = contacts_of(bodies, "bvh")
    tree, n = engine.detector.tree, engine.detector.in_tree
    rows = tree_rows(n)
    for node in range(1, rows // 2):
        assert np.array_equal(tree[node, :3], tree[2 * node : 2 * node + 2, :3].min(axis=0))
        assert np.array_equal(tree[node, 3:], tree[2 * node : 2 * node + 2, 3:].max(axis=0))
    sphere = engine.detector.proxies.sphere[:n]
    leaf = rows // 2 + np.arange(n) // LEAF
    assert np.all(tree[leaf, :3] <= sphere[:, :3] - sphere[:, 3:]) and np.all(tree[leaf, 3:] >= sphere[:, :3] + sphere[:, 3:])


def test_neighbours_in_the_order_are_close_in_space_even_when_bodies_are_lost():
    bodies = on_a_sheet_with_lost_bodies()
    _, engine = contacts_of(bodies, "bvh")
    steps = np.linalg.norm(np.diff(bodies.position[engine.detector.order], axis=0), axis=1)
    spacing = np.median(cKDTree(bodies.position).query(bodies.position, 2)[0][:, 1])
    assert np.median(steps) < 4 * spacing


@pytest.mark.parametrize("name", ("grid", "bvh", "sap", "brute"))
def test_find_contacts_takes_the_names(name):
    assert pairs_of(gv.find_contacts(gv.Sphere(1.0), [[0, 0, 0], [0, 0, 1.5], [9, 9, 9]], broad_phase=name)) == [(0, 1)]


def test_a_position_that_is_not_a_number_ends_the_search():
    """The step refuses it later; the broad phase must neither hang nor reach outside its arrays."""
    bodies = mixed()
    bodies.position[17] = np.nan
    bodies.position[18, 1] = np.inf
    for name in NAMES:
        found, _ = contacts_of(bodies, name)
        assert len(found) > 1000
