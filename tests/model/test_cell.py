"""Periodic cells: what happens at a border is what happens between copies of the cell that lie side by side."""

import itertools

import numpy as np
import pytest

import gravel as gv
from gravel.detection.find import detect_scene

UNIT = ((0.0, 1.0), (0.0, 1.0), (0.0, 1.0))
KINDS = [
    gv.Sphere(0.08),
    gv.Ellipsoid((0.1, 0.06, 0.05)),
    gv.Capsule(0.05, 0.05),
    gv.Cylinder(0.06, 0.06),
    gv.Cone(0.08, 0.12),
    gv.Box((0.07, 0.05, 0.06)),
    gv.ConvexHull(np.array([[0, 0, 0], [0.12, 0, 0], [0, 0.12, 0], [0, 0, 0.12]])),
    gv.Clump([[0, 0, 0], [0.06, 0, 0]], [0.05, 0.04]),
]


def crowd(seed, count=120):
    rng = np.random.default_rng(seed)
    quaternions = rng.normal(size=(count, 4))
    return rng.uniform(0, 1, (count, 3)), quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)


def add_all(scene, positions, quaternions, kinds):
    for k, (position, quaternion) in enumerate(zip(positions, quaternions)):
        scene.add_body(kinds[k % len(kinds)], position, quaternion=quaternion)


def table_of(scene, broad_phase):
    """The contacts of a scene as it lies."""
    return detect_scene(scene, margin=0.01, broad_phase=broad_phase, threads=1).contacts()


def contacts_of_copies(positions, quaternions, kinds, cell):
    """{(a, b, ...)}: contacts of the bodies in the cell with all bodies in it and in the 26 cells around it, each pair once."""
    n, scene = len(positions), gv.Scene(gravity=(0, 0, 0))
    copies = np.array(sorted(itertools.product((-1, 0, 1), repeat=3), key=lambda k: k != (0, 0, 0)))
    for shift in cell.shifts(copies):
        add_all(scene, positions + shift, quaternions, kinds)
    table = table_of(scene, "bvh")
    own = table.body_a < n
    a, b = table.body_a[own] % n, table.body_b[own] % n
    turned = a > b
    normal = np.where(turned[:, None], -1.0, 1.0) * table.normal[own]
    inside = table.body_b[own] < n
    keep = inside | (a < b)  # across a border each pair is there from both sides
    return listed(np.minimum(a, b)[keep], np.maximum(a, b)[keep], table.gap[own][keep], normal[keep])


def listed(a, b, gap, normal):
    rows = np.column_stack([a, b, np.round(gap, 9) + 0.0, np.round(normal, 6) + 0.0])
    return rows[np.lexsort(rows.T[::-1])]


@pytest.mark.parametrize(("broad_phase", "tilt"), [("grid", 0.0), ("grid", 0.37), ("bvh", 0.37), ("sap", 0.37), ("brute", 0.37)])
def test_contacts_of_every_shape_are_those_of_copies_side_by_side(broad_phase, tilt):
    positions, quaternions = crowd(1)
    scene = gv.Scene(gravity=(0, 0, 0), periodic=UNIT)
    scene.cell.tilt = tilt
    add_all(scene, positions, quaternions, KINDS)
    table = table_of(scene, broad_phase)
    expected = contacts_of_copies(positions, quaternions, KINDS, scene.cell)
    found = listed(table.body_a, table.body_b, table.gap, table.normal)
    across = np.abs(positions[table.body_a] - positions[table.body_b]).max(axis=1) > 0.5
    assert across.sum() > 10
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=2e-6)


def gas(seed=0, count=200, restitution=1.0, friction=0.0, radius=0.05, speed=1.0, **options):
    rng = np.random.default_rng(seed)
    lattice = np.stack(np.meshgrid(*[np.arange(6)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)[:count]
    scene = gv.Scene(gravity=(0, 0, 0), periodic=UNIT, **options)
    velocities = rng.normal(scale=speed, size=(count, 3))
    material = gv.Material(friction=friction, restitution=restitution)
    scene.add_bodies(gv.Sphere(radius), (lattice + 0.5) / 6, material, velocities=velocities - velocities.mean(axis=0))
    return scene


def test_a_gas_keeps_momentum_and_energy_and_nobody_is_lost():
    sim = gv.Simulation(gas(), 1e-3, precision="double")
    start = sim.unwrapped_positions.copy()
    energy = 0.5 * (sim.masses[:, None] * sim.velocities**2).sum()
    impacts = 0
    way = np.zeros(3)
    for _ in range(500):
        report = sim.step()
        impacts += report.impacts
    assert impacts > 200
    assert np.abs(sim.windings).sum() > 50
    assert report.kinetic_energy == pytest.approx(energy, rel=1e-12)
    np.testing.assert_allclose((sim.masses[:, None] * sim.velocities).sum(axis=0), 0.0, atol=1e-12)
    assert (sim.positions >= 0).all() and (sim.positions < 1).all()
    # the common centre of mass stays where it is, however often bodies have gone around
    way = (sim.unwrapped_positions - start).mean(axis=0)
    np.testing.assert_allclose(way, 0.0, atol=2e-5)


def test_bodies_that_touch_nothing_go_straight_on():
    scene = gv.Scene(gravity=(0, 0, 0), periodic=((-1, 1), None, (0, 3)))
    velocity = np.array([[7.0, 2.0, -11.1]])
    scene.add_bodies(gv.Sphere(0.1), [[0.5, 0.0, 1.0]], velocities=velocity)
    sim = gv.Simulation(scene, 1e-2, precision="double")
    sim.run(2.0)
    expected = np.array([[0.5, 0, 1]]) + 2.0 * velocity
    np.testing.assert_allclose(sim.unwrapped_positions, expected, atol=1e-12)
    wrapped = [[-1 + (expected[0, 0] + 1) % 2, expected[0, 1], expected[0, 2] % 3]]
    np.testing.assert_allclose(sim.positions, wrapped, atol=1e-12)
    np.testing.assert_array_equal(sim.windings, [[7, 0, -8]])


def machine_and_balls(shift, broad_phase):
    """Two boxes with a hinge, a mesh and balls that hit them, in the middle of the cell or across its borders."""
    scene = gv.Scene(gravity=(0, 0, 0), periodic=((0, 2), (0, 2), (0, 2)))
    shift = np.asarray(shift)
    left = scene.add_body(gv.Box((0.1, 0.05, 0.05)), shift + (0.9, 1.0, 1.0))
    right = scene.add_body(gv.Box((0.1, 0.05, 0.05)), shift + (1.1, 1.0, 1.0))
    scene.add_joint(gv.Revolute(left, right, point=shift + (1.0, 1.0, 1.0), axis=(0, 0, 1)))
    tetrahedron = np.array([[0, 0, 0], [0.15, 0, 0], [0, 0.15, 0], [0, 0, 0.15]])
    scene.add_body(gv.Mesh(tetrahedron, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]), shift + (0.85, 0.7, 0.95))
    balls = shift + np.array([[1.15, 0.8, 1.02], [0.8, 1.25, 1.0], [1.0, 1.3, 0.99], [0.95, 0.9, 1.2]])
    scene.add_bodies(gv.Sphere(0.06), balls, velocities=[[0, 1, 0], [0.2, -1, 0], [0, -1, 0], [0, 0, -1]])
    return gv.Simulation(scene, 1e-3, precision="double", broad_phase=broad_phase)


@pytest.mark.parametrize("broad_phase", ["grid", "auto"])
def test_a_border_makes_no_difference_to_a_machine(broad_phase):
    """The same in the middle of the cell, and where its corner comes between."""
    middle, border = machine_and_balls((0, 0, 0), broad_phase), machine_and_balls((1.02, 1.01, 0.99), broad_phase)
    contacts = 0
    for _ in range(250):
        contacts += middle.step().contacts
        border.step()
    assert contacts > 100
    offset = middle.cell.separation(border.positions - middle.positions - (1.02, 1.01, 0.99))
    assert np.abs(middle.velocities).max() > 0.1
    np.testing.assert_allclose(offset, 0.0, atol=1e-6)
    np.testing.assert_allclose(border.velocities, middle.velocities, atol=1e-4)
    assert border.joints.violation.max() < 1e-6


def test_shear_gives_what_crosses_the_border_the_velocity_of_its_layer():
    rate = 2.0
    scene = gv.Scene(gravity=(0, 0, 0), periodic=((0, 1), (0, 1), (0, 3)), deformation=gv.Deformation(shear_rate=rate))
    scene.add_bodies(gv.Sphere(0.1), [[0.5, 0.5, 2.9]], velocities=[[0.0, 0.0, 1.0]])
    sim = gv.Simulation(scene, 1e-3, precision="double")
    sim.run(0.2)
    # it has gone 0.2 up, out at the top and in at the bottom, where all is 3 * rate slower, and as far back as the copies have moved
    assert sim.cell.shear_strain == pytest.approx(0.4)
    np.testing.assert_allclose(sim.velocities[0], [-3 * rate, 0, 1], atol=1e-9)
    np.testing.assert_array_equal(sim.windings[0, 2], 1)
    assert sim.positions[0, 2] == pytest.approx(0.1, abs=1e-12)
    expected = (0.5 - 3 * rate * 0.2) % 1
    assert sim.positions[0, 0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.filterwarnings("ignore:bodies")
def test_shear_flow_has_a_linear_profile():
    rate = 1.0
    scene = gas(3, 200, restitution=0.3, friction=0.3, radius=0.078, speed=0.3, deformation=gv.Deformation(shear_rate=rate))
    scene.bodies.velocity[:, 0] += rate * (scene.bodies.position[:, 2] - 0.5)
    sim = gv.Simulation(scene, 2e-3)
    heights, speeds = [], []
    for k in range(2000):
        sim.step()
        if k >= 500 and k % 10 == 0:
            heights.append(sim.positions[:, 2].copy())
            speeds.append(sim.velocities[:, 0].copy())
    heights, speeds = np.concatenate(heights), np.concatenate(speeds)
    layer = np.minimum((heights * 5).astype(int), 4)
    profile = np.array([speeds[layer == k].mean() for k in range(5)])
    np.testing.assert_allclose(profile, rate * (np.arange(5) + 0.5) / 5 - rate * 0.5, atol=0.04 * rate)
    assert sim.cell.shear_strain == pytest.approx(4.0)
    np.testing.assert_allclose((sim.masses[:, None] * sim.velocities)[:, 1:].sum(axis=0), 0.0, atol=1e-3)


def test_a_strained_cell_pushes_its_bodies_together_as_pistons_would():
    """Two balls in a cell that shrinks from 1 to 0.26 m: in the end they touch both ways around, as they must."""
    scene = gv.Scene(gravity=(0, 0, 0), periodic=((0, 1), None, None), deformation=gv.Deformation(strain_rate=(-1.0, 0, 0)))
    scene.add_bodies(gv.Sphere(0.0625), [[0.1, 0, 0], [0.4, 0, 0]], gv.Material(friction=0))
    sim = gv.Simulation(scene, 1e-3, precision="double")
    sim.run(np.log(1 / 0.26))
    assert sim.cell.lengths[0] == pytest.approx(0.26, rel=2e-3)
    assert sim.cell.low[0] + sim.cell.high[0] == pytest.approx(1.0)
    apart = abs(np.diff(sim.positions[:, 0])[0])
    assert 0.125 - 1e-9 <= apart <= sim.cell.lengths[0] - 0.125 + 1e-9


def test_the_cell_follows_a_stress():
    target = 5000.0
    scene = gas(4, 216, restitution=0.2, radius=0.07, speed=0.2, deformation=gv.Deformation(stress=(target,) * 3, limit=2.0, inertia=1.0))
    sim = gv.Simulation(scene, 1e-3, gv.GaussSeidel(tolerance=2e-3))
    sim.run(0.6)
    lengths = sim.cell.lengths.copy()
    stresses = []
    for _ in range(400):
        sim.step()
        table = sim.contacts
        branch = sim.cell.separation(sim.positions[table.body_b] - sim.positions[table.body_a])
        mass, velocity = sim.masses, sim.velocities.astype(float)
        moving = np.einsum("n,ni,nj->ij", mass, velocity, velocity)
        stresses.append((np.einsum("ni,nj->ij", table.impulse, branch) / sim.dt + moving) / sim.cell.volume)
    stress = np.mean(stresses, axis=0)
    np.testing.assert_allclose(np.diagonal(stress), target, rtol=0.05)
    fraction = 216 * 4 / 3 * np.pi * 0.07**3 / np.prod(lengths)
    assert 0.55 < fraction < 0.68
    # jammed: what shrinks one way grows the other (five seeds: 0 to 0.8 %)
    assert sim.cell.volume == pytest.approx(np.prod(lengths), rel=1e-2)


@pytest.mark.parametrize("law", [None, gv.Deformation(shear_rate=3.0, strain_rate=(0, -0.1, 0)), gv.Deformation(stress=(None, None, 10.0))])
def test_a_checkpoint_goes_on_bit_for_bit(tmp_path, law):
    sim = gv.Simulation(gas(5, 216, restitution=0.5, friction=0.5, radius=0.07, deformation=law), 1e-3)
    sim.run(0.1)
    sim.save(tmp_path / "cell.h5")
    twin, copy = gv.Simulation.load(tmp_path / "cell.h5"), sim.copy()
    assert len(twin.contacts) == len(sim.contacts) > 0
    np.testing.assert_array_equal(twin.contacts.impulse, sim.contacts.impulse)
    for _ in range(50):
        sim.step(), twin.step(), copy.step()
    assert sim.state_hash() == twin.state_hash() == copy.state_hash()
    np.testing.assert_array_equal(sim.windings, twin.windings)
    assert sim.cell.to_values() == twin.cell.to_values() == copy.cell.to_values()


@pytest.mark.slow
def test_threads_make_no_difference():
    """Enough bodies for the kernels with threads."""
    hashes, count = set(), 16
    for threads in {1, gv.engine.largest_thread_count()}:
        scene = gv.Scene(gravity=(0, 0, 0), periodic=UNIT, deformation=gv.Deformation(shear_rate=1.0))
        lattice = np.stack(np.meshgrid(*[np.arange(count)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
        velocities = np.random.default_rng(6).normal(size=lattice.shape)
        scene.add_bodies(gv.Sphere(0.45 / count), (lattice + 0.5) / count, velocities=velocities)
        sim = gv.Simulation(scene, 1e-3, threads=threads)
        for _ in range(30):
            sim.step()
        hashes.add(sim.state_hash())
    assert len(hashes) == 1


def test_a_floor_under_a_periodic_layer():
    """Grains on a slab that is larger than the cell: it bears their weight, those across the border included."""
    scene = gv.Scene(gravity=(0, 0, -9.81), periodic=((0, 1), (0, 1), None))
    scene.add_body(gv.Box((0.8, 0.8, 0.05)), (0.5, 0.5, -0.05), fixed=True)  # larger than the cell: it has no copies
    lattice = np.stack(np.meshgrid(*[np.arange(5)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    scene.add_bodies(gv.Sphere(0.09), (lattice + 0.5) * 0.2 + np.random.default_rng(0).uniform(-0.005, 0.005, (125, 3)))
    sim = gv.Simulation(scene, 1e-3)
    sim.run(1.0)
    lifts, before = [], sim.velocities[1:, 2].astype(float)
    for _ in range(300):
        sim.step()
        table = sim.contacts
        lifts.append(table.impulse[table.body_a == 0, 2].sum() / sim.dt)
    gained = (sim.masses[1:] * (sim.velocities[1:, 2] - before)).sum() / 0.3  # they are still settling
    assert np.mean(lifts) == pytest.approx(sim.masses[1:].sum() * 9.81 + gained, rel=1e-3)
    assert sim.positions[1:, 2].min() > 0.088


def test_bodies_that_are_too_large_for_the_cell_are_refused():
    scene = gv.Scene(periodic=((0, 1), None, None))
    scene.add_body(gv.Sphere(0.3), (0, 0, 0))
    sim = gv.Simulation(scene, 1e-3)
    with pytest.raises(gv.SimulationError, match="body 0 reaches .* the periodic cell must be at least 1.2"):
        sim.step()
    assert sim.steps == 0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gv.Scene(periodic=(0, 1)), "periodic must be three pairs"),
        (lambda: gv.Scene(periodic=(None, None, None)), "at least one axis"),
        (lambda: gv.Scene(periodic=((1, 0), None, None)), "low < high"),
        (lambda: gv.Scene(periodic=((0, np.inf), None, None)), "periodic along x must be finite"),
        (lambda: gv.Scene(deformation=gv.Deformation()), "give periodic"),
        (lambda: gv.Scene(periodic=((0, 1), None, None), deformation=gv.Deformation(shear_rate=1)), "not periodic along z"),
        (lambda: gv.Scene(periodic=((0, 1), None, None), deformation=gv.Deformation(strain_rate=(0, 1, 0))), "not periodic along y"),
        (lambda: gv.Scene(periodic=((0, 1), None, None), deformation=gv.Deformation(stress=(1, None, None))), "all three axes"),
        (lambda: gv.Scene(periodic=UNIT, deformation="shear"), "must be a Deformation"),
        (lambda: gv.Deformation(direction="x", gradient="x"), "two axes"),
        (lambda: gv.Deformation(direction="w"), "direction must be one of"),
        (lambda: gv.Deformation(stress=5.0), "three numbers"),
        (lambda: gv.Deformation(stress=(-1.0, None, None)), "at least 0"),
        (lambda: gv.Simulation(gas(deformation=gv.Deformation(shear_rate=1e3)), 1e-3).step(), "dt must be so short"),
        (lambda: gv.Simulation(scene_without_cell(), 1e-3).deform(None), "this scene has none"),
    ],
)
def test_refused(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()


def scene_without_cell():
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1))
    return scene
