"""Stress, coordination, fabric, forces: against formulas of two bodies, forces of walls, and sets of contacts made by hand."""

import dataclasses

import numpy as np
import pytest
from test_bad_input import refuse

import gravel as gv
from gravel.measures.snapshot import snapshot_of
from gravel.model.cell import Cell

G, R = 9.81, 0.1
SHARP = {"precision": "double", "solver": gv.GaussSeidel(iterations=2000, tolerance=1e-10)}


def stack(n=2, shape=None, **options):
    """Balls on top of each other on a floor, at rest after a few steps."""
    scene = gv.Scene(gravity=(0, 0, -G))
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_bodies(shape or gv.Sphere(R), [(0, 0, R * (2 * k + 1)) for k in range(n)])
    sim = gv.Simulation(scene, 1e-3, **{**SHARP, **options})
    for _ in range(5):
        sim.step()
    return sim


def snapshot_with(contacts, n=6, **changes):
    """Bodies 0 to n - 1 of 1 kg, with contacts given as (a, b, normal, impulse); ids from n on are fixed."""
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(0.5), [(3.0 * k, 0, 0) for k in range(n)], masses=np.ones(n))
    a, b, normal, impulse = zip(*contacts)
    count = len(a)
    points = changes.pop("points", np.zeros((count, 3)))
    table = gv.ContactTable(
        np.array(a), np.array(b), points, np.array(normal, float), np.zeros(count), np.array(impulse, float), np.zeros(count, bool)
    )
    return dataclasses.replace(snapshot_of(gv.Simulation(scene, 1e-3)), table_of=lambda: table, **changes)


@pytest.fixture(scope="module")
def bed():
    """A bed of balls without friction at rest between four walls, half a metre apart."""
    rng = np.random.default_rng(1)
    scene = gv.Scene(gravity=(0, 0, -G))
    smooth = gv.Material(density=2000, friction=0.0)
    walls = [((0, 0, 1), 0.0), ((1, 0, 0), -0.25), ((-1, 0, 0), -0.25), ((0, 1, 0), -0.25), ((0, -1, 0), -0.25)]
    for normal, offset in walls:
        scene.add_body(gv.Plane(normal, offset), material=smooth, fixed=True)
    places = np.stack(np.meshgrid(*[np.linspace(-0.2, 0.2, 5)] * 2, np.linspace(0.05, 1.15, 12)), axis=-1).reshape(-1, 3)
    scene.add_bodies(gv.Sphere(rng.uniform(0.035, 0.048, len(places))), places + rng.uniform(-2e-3, 2e-3, places.shape), smooth)
    sim = gv.Simulation(scene, 2e-3, precision="double")
    sim.run(1.8)
    sim.solver = gv.GaussSeidel(iterations=500, tolerance=1e-5)
    sim.run(2.4)
    assert gv.measures.kinetic_energy(sim).total < 1e-5
    return sim


# --- stress
def test_two_balls_on_top_of_each_other():
    """Each contact has the force of the weight above it at the distance R: 2 m g R of the floor, twice m g R between them."""
    sim = stack()
    m, volume = sim.masses[1], 2 * R * 2 * R * 4 * R
    want = np.zeros((3, 3))
    want[2, 2] = 4 * m * G * R / volume
    assert np.allclose(gv.measures.stress(sim), want, rtol=1e-6, atol=1e-6 * want[2, 2])
    lower = ((-1, -1, 0), (1, 1, 2 * R))  # one body of two: 3 m g R, in its own volume
    assert gv.measures.stress(sim, lower)[2, 2] == pytest.approx(3 * m * G * R / (8 * R), rel=1e-6)


def test_stress_does_not_depend_on_a_common_velocity():
    """Contacts are found before the end of the step: at 50 m/s, centres are 25 mm further by then."""
    scene = gv.Scene(gravity=(0, 0, 0))
    bodies = scene.add_bodies(gv.Sphere(R), [(-R, 0, 0), (R, 0, 0)], velocities=[(0, 50, 0)] * 2)
    for body, sign in zip(bodies, (1, -1)):
        scene.set_force(body, (30.0 * sign, 0, 0))
    for integrator in ("midpoint", "euler"):
        sim = gv.Simulation(scene, 1e-3, integrator=integrator, **SHARP)
        sim.step()
        want = np.diag([30.0 * 2 * R / 1.0, 0, 0])
        assert np.allclose(gv.measures.stress(sim, ((-0.5, -0.5, -0.5), (0.5, 0.5, 0.5))), want, atol=1e-5)
        assert np.allclose(gv.measures.stress(sim, ((-1.0, -0.5, -0.5), (0.0, 0.5, 0.5))), want / 2, atol=1e-5)  # one of them


def test_kinetic_stress_is_that_of_a_gas():
    """m <v'^2> N / V: random velocities on top of a wind, which does not count."""
    rng = np.random.default_rng(2)
    scene, n = gv.Scene(gravity=(0, 0, 0)), 4000
    velocities = rng.normal(0, (1.0, 2.0, 3.0), (n, 3)) + (100, 0, 0)
    scene.add_bodies(gv.Sphere(1e-3), rng.uniform(0, 1, (n, 3)), masses=np.full(n, 0.5), velocities=velocities)
    sim = gv.Simulation(scene, 1e-6, precision="double")
    stress = gv.measures.stress(sim, ((0, 0, 0), (1, 1, 1)))
    assert np.allclose(stress, 0.5 * n * np.cov(velocities.T, bias=True), rtol=1e-9)
    assert np.allclose(np.diag(stress) / (0.5 * n), (1, 4, 9), rtol=0.1)
    assert (gv.measures.stress(sim, ((0, 0, 0), (1, 1, 1)), kinetic=False) == 0).all()


def test_stress_of_a_bed_from_the_forces_of_its_walls(bed):
    """At rest, V sigma_ij = - sum over walls of f_i x_j - sum of m g_i x_j: contacts between grains do not enter."""
    table, movable = bed.contacts, bed.movable
    wall = ~movable[table.body_a]
    assert (table.body_a[wall] < table.body_b[wall]).all()  # the force is on b, the grain
    force = table.impulse[wall] / bed.dt
    weight = bed.masses[movable, None] * bed.gravity
    volume = 0.25 * 1.0
    want = -(force.T @ table.point[wall] + weight.T @ bed.positions[movable]) / volume
    have = gv.measures.stress(bed, ((-0.25, -0.25, 0), (0.25, 0.25, 1)))
    assert np.trace(have) == pytest.approx(np.trace(want), rel=0.01)
    assert np.allclose(have, want, atol=0.01 * np.trace(want))
    assert force[table.body_a[wall] == 0, 2].sum() == pytest.approx(-weight[:, 2].sum(), rel=0.01)  # the floor bears it all


def test_stress_in_slices_bears_the_weight_above(bed):
    """Balls between smooth walls lie in layers, of which a slice holds one more or less: the mean over slices that are shifted counts."""
    z, weight = bed.positions[bed.movable, 2], bed.masses[bed.movable] * G
    have, above = [], []
    for low in np.linspace(0.1, 0.2, 21):
        have.append(gv.measures.stress(bed, ((-0.25, -0.25, low), (0.25, 0.25, low + 0.3))))
        heights = np.linspace(low, low + 0.3, 200)
        above.append((weight[None] * (z[None] > heights[:, None])).sum(axis=1).mean() / 0.25)  # Pa, mean over the slice
    assert np.mean(have, axis=0)[2, 2] == pytest.approx(np.mean(above), rel=0.03)


def test_a_frame_of_a_result_has_the_same_stress(tmp_path):
    sim = stack(3)
    sim.run(sim.time + 2e-3, tmp_path / "r.vtkhdf", every=1e-3, contacts=True)
    region = ((-1, -1, 0), (1, 1, 0.45))
    with gv.open_result(tmp_path / "r.vtkhdf") as result:
        frame = result[-1]
        for measure in (gv.measures.stress, gv.measures.fabric, gv.measures.coordination, gv.measures.packing_fraction):
            assert np.allclose(measure(frame, region), measure(sim, region), rtol=1e-5, atol=1e-6), measure.__name__
        assert gv.measures.potential_energy(frame) == pytest.approx(gv.measures.potential_energy(sim), rel=1e-5)
        assert gv.measures.force_distribution(frame, 3).mean == pytest.approx(gv.measures.force_distribution(sim, 3).mean, rel=1e-5)


def test_stress_across_a_periodic_boundary():
    """Two balls that touch through the side of the cell, or in its middle, have the same stress, in the volume of the cell."""
    scene = gv.Scene(gravity=(0, 0, 0))
    bodies = scene.add_bodies(gv.Sphere(R), [(0.5 - R, 0.5, 0.5), (0.5 + R, 0.5, 0.5)])
    for body, sign in zip(bodies, (1, -1)):
        scene.set_force(body, (7.0 * sign, 0, 0))
    sim = gv.Simulation(scene, 1e-3, **SHARP)
    sim.step()
    plain, cell, shift = snapshot_of(sim), Cell(((0, 1), (0, 1), (0, 2))), (0.55, 0, 0)
    want = np.diag([7.0 * 2 * R / cell.volume, 0, 0])
    moved, table = plain.positions + shift, plain.contacts
    for positions in (moved, cell.wrap(moved)):
        across = dataclasses.replace(
            plain, cell=cell, positions=positions, table_of=lambda: dataclasses.replace(table, point=table.point + shift)
        )
        assert np.allclose(gv.measures.stress(across), want, atol=1e-6)
        assert gv.measures.packing_fraction(across) == pytest.approx(2 * 4 / 3 * np.pi * R**3 / 2.0)
        edge = ((0, 0, 0), (0.05, 1, 2))  # the ball around x = 0.95 reaches into it through the side of the cell, by a cap of 0.05
        assert gv.measures.packing_fraction(across, edge) * 0.1 == pytest.approx(np.pi * 0.05**2 * (R - 0.05 / 3), rel=1e-5)


@pytest.fixture(scope="module")
def sheared(tmp_path_factory):
    """A dense periodic bed under shear and compression, and the file of its last steps."""
    rng = np.random.default_rng(5)
    scene = gv.Scene((0, 0, 0), ((0, 1), (0, 1), (-0.5, 0.5)), gv.Deformation(strain_rate=(-0.4, -0.2, 0), shear_rate=1.5))
    places = np.stack(np.meshgrid(*[np.arange(6) / 6 + 1 / 12] * 3), axis=-1).reshape(-1, 3) - (0, 0, 0.5)
    scene.add_bodies(gv.Sphere(0.08), places + rng.uniform(-3e-3, 3e-3, places.shape), velocities=1.5 * places[:, [2, 1, 0]] * (1, 0, 0))
    sim = gv.Simulation(scene, 2e-3, gv.GaussSeidel(iterations=300, tolerance=1e-5), precision="double")
    sim.run(0.3)
    path = tmp_path_factory.mktemp("sheared") / "r.vtkhdf"
    sim.run(0.31, path, every=0.01, contacts=True)
    return sim, path


def test_stress_of_a_sheared_cell_is_the_virial_of_the_engine(sheared):
    """Which the engine sums up from its own arms, at bodies and their images, while it steps."""
    sim, path = sheared
    total = sim.engine.virial() / sim.dt / sim.cell.volume
    have = gv.measures.stress(sim, kinetic=False)
    assert sim.cell.tilt != 0 and np.trace(total) > 100
    assert np.allclose(have, total, atol=1e-4 * np.trace(total))
    with gv.open_result(path) as result:
        frame = result[-1]
        assert np.allclose(frame.cell.lengths, sim.cell.lengths) and frame.cell.tilt == sim.cell.tilt
        assert np.allclose(gv.measures.stress(frame, kinetic=False), have, atol=1e-4 * np.trace(total))


def test_packing_of_a_sheared_cell(sheared):
    """The whole cell, and boxes that cut it up: with a tilt, images at the border are shifted along it."""
    sim, _ = sheared
    low, high, volume = sim.cell.low, sim.cell.high, sim.movable.sum() * 4 / 3 * np.pi * 0.08**3
    assert gv.measures.packing_fraction(sim) == pytest.approx(volume / sim.cell.volume, rel=1e-12)
    assert gv.measures.packing_fraction(sim, (low, high)) == pytest.approx(volume / sim.cell.volume, rel=1e-12)
    cuts = [np.linspace(a, b, 3) for a, b in zip(low, high)]
    parts = [[np.array([cuts[k][i[k] + e] for k in range(3)]) for e in (0, 1)] for i in np.ndindex(2, 2, 2)]
    assert np.mean([gv.measures.packing_fraction(sim, tuple(part)) for part in parts]) == pytest.approx(volume / sim.cell.volume, rel=1e-12)


# --- structure
def test_coordination_counts_partners_that_carry_force():
    assert gv.measures.coordination(stack(3)) == pytest.approx(5 / 3)  # floor and next, two, one
    assert gv.measures.coordination(stack(3), rattlers=False) == 0.0
    assert gv.measures.coordination(stack(3), ((-1, -1, 0.0), (1, 1, 0.4))) == 2.0
    boxes = stack(2, gv.Box((R, R, R)))
    assert len(boxes.contacts) == 8 and gv.measures.coordination(boxes) == 1.5  # four points each, but one partner


def test_rattlers_go_one_after_the_other():
    """Five bodies that all touch; 5 hangs on them with four contacts, one of which is with 6, which touches nothing else."""
    up = (0, 0, 1)
    pairs = [(a, b) for a in range(5) for b in range(a + 1, 5)] + [(0, 5), (1, 5), (2, 5), (5, 6)]
    snapshot = snapshot_with([(a, b, up, up) for a, b in pairs], n=7)
    assert gv.measures.coordination(snapshot) == pytest.approx(2 * len(pairs) / 7)
    assert gv.measures.coordination(snapshot, rattlers=False) == 4.0
    weak = snapshot_with([(0, 1, up, up), (2, 3, up, (0, 0, 0)), (4, 5, up, (0, 0, 1e-9))])  # gaps carry nothing
    assert gv.measures.coordination(weak) == pytest.approx(2 / 6)


def test_fabric_of_directions():
    rng = np.random.default_rng(3)
    axes = [(0, 1, normal, (1, 1, 1)) for normal in np.eye(3)]
    assert np.allclose(gv.measures.fabric(snapshot_with(axes)), np.eye(3) / 3, atol=1e-15)
    normals = rng.normal(size=(20000, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    even = gv.measures.fabric(snapshot_with([(0, 1, n, n) for n in normals]))
    assert np.allclose(even, np.eye(3) / 3, atol=0.01) and np.trace(even) == pytest.approx(1.0)
    assert np.allclose(gv.measures.fabric(stack(3)), np.diag([0, 0, 1]), atol=1e-6)


def test_forces_are_distributed_as_they_were_drawn():
    forces = np.random.default_rng(4).exponential(5.0, 50000)
    snapshot = snapshot_with([(0, 1, (0, 0, 1), (3.0, 0, 1e-3 * f)) for f in forces])  # N s in 1 ms; friction does not enter
    edges, density, mean = gv.measures.force_distribution(snapshot, np.linspace(0, 4, 21))
    middle = 0.5 * (edges[1:] + edges[:-1])
    assert mean == pytest.approx(forces.mean(), rel=1e-3)
    assert np.allclose(density, np.exp(-middle), atol=0.03)
    whole = gv.measures.force_distribution(snapshot, 30)
    assert (whole.density * np.diff(whole.edges)).sum() == pytest.approx(1.0)


# --- refusals
def test_measures_of_nothing_are_refused():
    sim = stack()
    far = ((5, 5, 5), (6, 6, 6))
    for measure in (gv.measures.stress, gv.measures.coordination, gv.measures.fabric):
        refuse(lambda measure=measure: measure(sim, far), "region", "none")
    refuse(lambda: gv.measures.force_distribution(sim, 5, far), "region", "none")
    refuse(lambda: gv.measures.stress(sim, ((0, 0, 0), (1, 1, -1))), "low < high")
    refuse(lambda: gv.measures.stress(sim, 3.0), "region", "3.0", error=TypeError)
    refuse(lambda: gv.measures.stress(sim, ((0, 0, 0), (1, 1, np.nan))), "high corner of region", "nan")
    refuse(lambda: gv.measures.stress("heap"), "Simulation", "'heap'", error=TypeError)
    refuse(lambda: gv.measures.force_distribution(sim, 0), "bins", "0")
    fixed = gv.Scene()
    fixed.add_body(gv.Plane(), fixed=True)
    refuse(lambda: gv.measures.stress(gv.Simulation(fixed, 1e-3)), "bodies that can move")
