"""The engine's rows and what users see of them: ids that stay, arrays that are lent and taken back, bodies that come and go."""

import gc

import numpy as np
import pytest

import gravel as gv
from gravel import scenes
from gravel.engine import largest_thread_count, make_engine
from gravel.host import rows
from gravel.state import FIELD, FIELDS, Bodies


@pytest.fixture
def always_sorting(monkeypatch):
    """Rows are sorted anew in every step."""
    monkeypatch.setattr("gravel.cpu.engine.FEW", 0)
    monkeypatch.setattr("gravel.cpu.engine.is_torn", lambda order: True)


def flying(n=400, seed=0, **options):
    """Bodies in free flight, each with a velocity of its own, ids at random in space: (simulation, ids, positions, velocities)."""
    rng = np.random.default_rng(seed)
    positions, velocities = rng.uniform(-50, 50, (n, 3)), rng.normal(size=(n, 3))
    scene = gv.Scene(gravity=(0, 0, 0))
    ids = scene.add_bodies(gv.Sphere(0.01), positions, velocities=velocities)
    return gv.Simulation(scene, dt=0.01, precision="double", **options), ids, positions, velocities


# --- rows and ids
def test_ids_stay_with_their_bodies_while_rows_are_sorted_and_bodies_come_and_go(always_sorting):
    sim, ids, start, speed = flying()
    born = np.zeros(len(ids))
    for k in range(30):
        sim.step()
        if k == 10:
            gone = np.arange(0, 400, 7)
            sim.remove(gone)
        if k == 20:
            more = np.random.default_rng(1).uniform(-50, 50, (90, 3))
            new = sim.add_bodies(gv.Sphere(0.02), more, velocities=more / 10)
            start, speed, born = np.vstack([start, more]), np.vstack([speed, more / 10]), np.append(born, np.full(90, sim.time))
    assert not np.array_equal(sim.engine.ids(), np.sort(sim.engine.ids()))  # rows are in another order
    assert new.tolist() == list(range(400, 490)) and sim.count == 490
    there = np.setdiff1d(np.arange(490), gone)
    assert np.array_equal(np.flatnonzero(sim.alive), there)
    expected = start + speed * (sim.time - born)[:, None]
    assert np.allclose(sim.positions[there], expected[there], rtol=0, atol=1e-12)
    assert np.array_equal(sim.velocities[there], speed[there])
    assert np.array_equal(sim.bodies.extent[there, 0], np.where(there < 400, 0.01, 0.02))
    assert np.isnan(sim.positions[gone]).all() and not sim.velocities[gone].any() and not sim.masses[gone].any()


def test_remembered_impulses_follow_their_bodies(always_sorting):
    """Settled towers are at rest after one iteration from the remembered impulses; from none the residual is about g h."""
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    places = np.random.default_rng(2).permutation(200)[:, None] * (0.5, 0, 0) + (0, 0, 0.05)
    towers = np.stack([scene.add_bodies(gv.Sphere(0.05), places + (0, 0, 0.1 * level)) for level in range(5)])
    sim = gv.Simulation(scene, dt=1 / 500, solver=gv.GaussSeidel(iterations=200, tolerance=0.0), precision="double")
    for _ in range(30):
        sim.step()
    assert sim.report.residual < 1e-6
    sim.solver = gv.GaussSeidel(iterations=1, tolerance=0.0)
    sim.remove(towers[:, ::3].reshape(-1))
    sim.add_bodies(gv.Sphere(0.05), [(-1.0 - k, 0, 5.0) for k in range(10)])
    assert sim.step().residual < 1e-5  # this step sorts the rows, whose order the removal has torn
    assert sim.step().residual < 1e-5
    cold = sim.next_problem(warm_start=False)
    cold.warm_start()
    cold.sweep(1, 0.0, 0.0)
    assert cold.measure()[0] > 1e-3


def test_memory_does_not_grow_with_ids():
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    places = np.stack(np.meshgrid(*[np.arange(5)] * 3), -1).reshape(-1, 3) * 0.12 + (0, 0, 0.06)
    ids = scene.add_bodies(gv.Sphere(0.05), places)
    sim = gv.Simulation(scene, dt=1e-3, solver=gv.GaussSeidel(iterations=3))

    def held():
        arrays = [*sim.engine.rows._store.values(), *sim.engine.buffers.held.values()]
        return sum(array.nbytes for array in arrays)

    sizes = []
    for _ in range(60):
        sim.remove(ids)
        ids = sim.add_bodies(gv.Sphere(0.05), places)
        sim.step()
        sizes.append(held())
    assert ids[0] == 1 + 60 * 125 and len(sim.engine.ids()) == 126
    assert sizes[-1] == sizes[5]


def test_rows_are_sorted_when_their_order_has_decayed():
    shuffled = np.random.default_rng(3).permutation(20000)
    assert rows.is_torn(shuffled.astype(np.int32)) and not rows.is_torn(np.arange(20000, dtype=np.int32))
    side = np.stack(np.meshgrid(*[np.arange(22)] * 3, indexing="ij"), -1).reshape(-1, 3) * 1.0
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(gv.Sphere(0.45), np.random.default_rng(4).permutation(side))
    sim = gv.Simulation(scene, dt=1e-3)
    sim.step()
    jumps = np.linalg.norm(np.diff(sim.engine.field("position"), axis=0), axis=1)
    assert np.median(jumps) < 2.0  # neighbours in memory are neighbours in space; at random they are 11 apart
    assert np.array_equal(np.sort(sim.engine.ids()), np.arange(len(side)))


def test_shuffled_ids_give_the_same_contacts_and_motion():
    """What a body does depends on where it is, not on its number."""
    setup = scenes.build("pile", 600)
    whole = setup.scene.bodies
    move = np.flatnonzero(whole.status == 2)
    order = np.random.default_rng(5).permutation(move)
    twin = gv.Scene()
    fixed = np.flatnonzero(whole.status != 2)
    twin.materials, twin.geometries = setup.scene.materials.copy(), setup.scene.geometries
    rows_of_twin = np.concatenate([fixed, order])
    twin.bodies.append({**{name: values[rows_of_twin] for name, values in whole.block().items()}, "id": np.arange(whole.count)})
    one, two = (gv.Simulation(s, setup.dt, gv.GaussSeidel(iterations=300), precision="double") for s in (setup.scene, twin))
    for _ in range(20):
        one.step()
        two.step()
    back = np.empty(whole.count, int)
    back[np.arange(whole.count)] = rows_of_twin
    pairs = {tuple(sorted(pair)) for pair in zip(one.contacts.body_a.tolist(), one.contacts.body_b.tolist())}
    assert pairs == {tuple(sorted((back[a], back[b]))) for a, b in zip(two.contacts.body_a.tolist(), two.contacts.body_b.tolist())}
    assert np.allclose(one.positions[rows_of_twin], two.positions, rtol=0, atol=1e-9)


def test_contacts_are_sorted_where_few_of_many_ids_are_left():
    sim, ids, *_ = flying(5000, seed=6)
    sim.remove(ids[:-30])
    sim.positions[ids[-30:]] = [(0.015 * k, 0, 0) for k in np.random.default_rng(7).permutation(30)]
    sim.velocities[:] = 0
    sim.step()
    table = sim.contacts
    assert len(table) == 29 and table.body_a.min() >= 4970
    assert np.all(table.body_a < table.body_b)
    keys = list(zip(table.body_a.tolist(), table.body_b.tolist()))
    assert keys == sorted(keys)


def test_contacts_of_a_floor_with_very_many_are_sorted():
    scene, n = gv.Scene(), 900
    scene.add_body(gv.Plane(), fixed=True)
    places = np.stack(np.meshgrid(np.arange(30), np.arange(30)), -1).reshape(-1, 2) * 0.1
    scene.add_bodies(gv.Box((0.05, 0.05, 0.05)), np.column_stack([np.random.default_rng(9).permutation(places), np.full(n, 0.05)]))
    sim = gv.Simulation(scene, 1e-3)
    sim.step()
    table = sim.contacts
    floor = table[table.body_a == 0]
    assert floor.body_b.tolist() == np.repeat(np.arange(1, n + 1), 4).tolist()  # four corners each
    assert np.all(np.diff(table.body_a) >= 0)
    assert floor.impulse[:, 2].sum() == pytest.approx(n * 1000 * 0.1**3 * 9.81 * 1e-3, rel=0.05)


# --- fields
def test_fields_are_the_one_source():
    bodies = Bodies(np.float32)
    bodies.append({"position": np.zeros((3, 3)), "quaternion": (1, 0, 0, 0)})
    for field in FIELDS:
        values = getattr(bodies, field.name)
        assert values.shape == (3, *field.shape) and values.dtype == (np.float32 if field.dtype == "real" else np.dtype(field.dtype))
    assert {"force", "torque", "id"} <= set(FIELD)
    assert bodies.id.tolist() == [-1, -1, -1] and not bodies.force.any()


def test_rows_of_removed_bodies_leave_nothing_to_those_that_come_after():
    engine = make_engine(precision="double")
    block = {"position": np.ones((4, 3)), "quaternion": (1, 0, 0, 0), "force": np.ones((4, 3)), "id": np.arange(4)}
    engine.add(block)
    engine.remove(np.array([1, 3]))
    assert sorted(engine.ids().tolist()) == [0, 2] and engine.pick("force", [1, 2]).tolist() == [[0, 0, 0], [1, 1, 1]]
    engine.add({"position": np.full((3, 3), 5.0), "quaternion": (1, 0, 0, 0), "id": np.arange(4, 7)})
    assert sorted(engine.ids().tolist()) == [0, 2, 4, 5, 6]
    assert not engine.pick("force", [4, 5, 6]).any() and engine.pick("geometry", [6]).tolist() == [-1]
    engine.remove(np.array([3, 3, 99]))  # gone already, or never there
    assert len(engine.ids()) == 5


# --- what is lent
@pytest.mark.parametrize("name", ["positions", "quaternions", "velocities", "angular_velocities", "forces", "torques"])
def test_what_is_written_is_taken_by_the_next_step(name):
    sim, *_ = flying(20)
    sim.step()
    getattr(sim, name)[7] = sim.quaternions[3] if name == "quaternions" else (0.5, 0.25, -1.0)
    field, columns = sim.views.WRITABLE[name]
    sim.step()
    value = sim.engine.pick(field, [7])[0][columns]
    moved = {"positions": 0.01 * sim.velocities[7]}.get(name, 0.0)
    assert np.allclose(value, [1, 0, 0, 0] if name == "quaternions" else np.add((0.5, 0.25, -1.0), moved), atol=0.03)


def test_an_array_that_is_held_goes_on_showing_the_state():
    sim, ids, start, speed = flying(50)
    held, one = sim.positions, sim.velocities[3]
    sim.run(until=0.1)
    assert np.allclose(held, start + 0.1 * speed, rtol=0, atol=1e-12)
    assert held is sim.positions
    one[:] = (1.0, 2.0, 3.0)  # a row that is held is part of an array that is
    sim.step()
    assert sim.velocities[3].tolist() == [1.0, 2.0, 3.0]
    held[5] = 7.0
    sim.step()
    assert np.allclose(sim.positions[5], 7.0 + 0.01 * speed[5], rtol=0, atol=1e-12)


def test_fields_that_nobody_holds_cost_nothing(monkeypatch):
    sim, *_ = flying(50)
    calls = []
    given = sim.engine.set_field
    monkeypatch.setattr(sim.engine, "set_field", lambda name, *rest: (calls.append(name), given(name, *rest)))
    sim.positions[0] = 1.0
    sim.step()
    assert calls == ["position"]
    gc.collect()
    sim.step()
    assert calls == ["position"]


def test_arrays_lent_before_bodies_came_are_taken_back_for_good():
    sim, *_ = flying(10)
    forces = sim.forces
    forces[2] = (1.0, 0, 0)
    sim.add_bodies(gv.Sphere(0.1), [(99, 0, 0)])
    with pytest.raises(ValueError, match="read-only"):
        forces[3] = (1.0, 0, 0)
    assert sim.forces.shape == (11, 3) and sim.forces[2].tolist() == [1.0, 0, 0]


def test_masses_cannot_be_written():
    sim, *_ = flying(10)
    with pytest.raises(ValueError, match="read-only"):
        sim.masses[3] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        sim.bodies.extent[3] = 1.0


# --- steps that are refused
@pytest.mark.parametrize("integrator", ["euler", "midpoint"])
def test_a_refused_step_leaves_driven_bodies_as_they_were(integrator):
    scene = gv.Scene()
    drum = scene.add_body(gv.Box((1, 1, 0.1)), motion=gv.Oscillation((0, 0, 0.1), 3.0))
    grain = scene.add_body(gv.Sphere(0.1), (0, 0, 1))
    sim = gv.Simulation(scene, 1e-3, bounds=((-5, -5, -5), (5, 5, 5)), integrator=integrator)
    for _ in range(40):
        sim.step()
    sim.velocities[grain] = (1e6, 0, 0)
    before = [np.array(getattr(sim, name)) for name in ("positions", "quaternions", "velocities", "angular_velocities")]
    state = sim.state_hash()
    with pytest.raises(gv.SimulationError, match=f"body {grain} "):
        sim.step()
    assert sim.state_hash() == state
    for name, values in zip(("positions", "quaternions", "velocities", "angular_velocities"), before):
        assert np.array_equal(getattr(sim, name), values), name
    assert before[2][drum, 2] != 0.0


@pytest.mark.parametrize("integrator", ["euler", "midpoint"])
def test_the_engine_itself_forgets_a_step_that_was_refused(integrator):
    """Nobody holds an array that would be taken back: what the engine has written early must go by itself."""
    scene = gv.Scene(gravity=(0, 0, 0))
    drum = scene.add_body(gv.Box((1, 1, 0.1)), motion=gv.Oscillation((0, 0, 0.1), 3.0))
    scene.add_body(gv.Sphere(0.1), (0, 0, 1), velocity=(1.0, 0, 0))
    sim = gv.Simulation(scene, 1e-2, bounds=((-0.5, -0.5, -0.5), (0.5, 0.5, 5)), integrator=integrator)
    while True:
        fields = [sim.engine.pick(name, [drum]) for name in ("position", "quaternion", "velocity")]
        try:
            sim.step()
        except gv.SimulationError:
            break
    assert sim.steps > 40 and fields[2][0, 2] != 0.0
    for name, values in zip(("position", "quaternion", "velocity"), fields):
        assert np.array_equal(sim.engine.pick(name, [drum]), values), name


def test_a_removed_body_gets_no_motion():
    sim, *_ = flying(5)
    sim.remove(2)
    with pytest.raises(ValueError, match="body 2 was removed"):
        sim.set_motion(2, None)


# --- threads
@pytest.mark.parametrize("asked, given", [("1", 1), ("1,4", 1), ("99", None), ("0", None), ("many", None), ("", None)])
def test_the_number_of_threads_follows_the_environment(asked, given, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert flying(5)[0].threads == (largest_thread_count() if given is None else given)
    assert flying(5, threads=largest_thread_count())[0].threads == largest_thread_count()  # what is said counts


# --- across a stop
def test_resume_with_sorted_rows_and_removed_bodies(tmp_path):
    """More bodies than fit into the cache in any order, so that the engine sorts its rows."""
    rng = np.random.default_rng(8)
    side = np.stack(np.meshgrid(*[np.arange(22)] * 3, indexing="ij"), -1).reshape(-1, 3) * 0.1
    scene = gv.Scene()
    scene.add_body(gv.Plane(offset=-0.06), fixed=True)
    ids = scene.add_bodies(gv.Sphere(0.05), rng.permutation(side) + rng.uniform(-1e-3, 1e-3, side.shape))
    sim = gv.Simulation(scene, 1 / 500, gv.GaussSeidel(iterations=10))
    sim.forces[ids[5]] = (0.1, 0, 0)
    for _ in range(5):
        sim.step()
    sim.remove(ids[::9])
    sim.step()
    sim.save(tmp_path / "state.h5")
    twin = gv.Simulation.load(tmp_path / "state.h5")
    assert twin.state_hash() == sim.state_hash() and twin.count == sim.count
    for _ in range(8):
        sim.step()
        twin.step()
    assert twin.state_hash() == sim.state_hash()
    assert twin.add_bodies(gv.Sphere(0.1), [(0, 0, 9)]).tolist() == [len(side) + 1]
