"""Bodies at rest sleep if that is asked for: nothing of them changes until they are disturbed, and then it is as if they had not slept."""

import numpy as np
import pytest

import gravel as gv
from gravel.contacts import ContactTable
from gravel.running import sleep

DT, RADIUS = 1e-3, 0.01
ROUGH = gv.Material(friction=0.6, rolling_friction=1e-3, spinning_friction=1e-3)


def heap_scene(heaps=1, layers=4):
    """Heaps of 25 balls a layer on a plane, a metre apart; body 0 is the plane."""
    scene = gv.Scene()
    scene.add_body(gv.Plane(), material=ROUGH, fixed=True)
    grid = np.stack(np.meshgrid(np.arange(5), np.arange(5), np.arange(layers), indexing="ij"), axis=-1).reshape(-1, 3)
    for k in range(heaps):
        noise = np.random.default_rng(k).uniform(-1e-3, 1e-3, grid.shape)
        scene.add_bodies(gv.Sphere(RADIUS), 0.023 * grid + noise + (float(k), 0.0, 0.012), ROUGH)
    return scene


def until_asleep(sim, bodies, most=6000):
    """Step until these sleep; returns the last report."""
    for _ in range(most):
        report = sim.step()
        if sim.asleep[bodies].all():
            return report
    raise AssertionError(f"{np.count_nonzero(~sim.asleep[bodies])} bodies are awake after {most} steps")


@pytest.fixture(scope="module")
def slept():
    """A heap that sleeps; tests take copies."""
    sim = gv.Simulation(heap_scene(), DT, threads=1, sleep=gv.Sleep(time=0.2))
    until_asleep(sim, slice(1, None))
    return sim


@pytest.fixture
def heap(slept):
    return slept.copy()


def highest(sim):
    """The id of the highest grain."""
    return 1 + int(np.argmax(sim.positions[1:, 2]))


def until_touched(sim, body, most=400):
    """Step until a sleeper wakes; returns a copy from before that step."""
    for _ in range(most):
        before = sim.copy()
        sim.step()
        if not sim.asleep[body]:
            return before
    raise AssertionError(f"body {body} sleeps still after {most} steps")


def steps(sim, n=1):
    for _ in range(n):
        report = sim.step()
    return report


def momentum(sim):
    moves = sim.movable
    return sim.masses[moves] @ sim.velocities[moves].astype(float)


# --- asleep
def test_a_heap_that_sleeps_has_no_contacts_and_stays_to_the_last_bit(heap):
    before, masses = {name: getattr(heap, name).copy() for name in ("positions", "quaternions")}, heap.masses.copy()
    report = steps(heap, 20)
    assert report.contacts == 0 and report.kinetic_energy == 0.0 and len(heap.contacts) == 0
    for name, values in before.items():
        assert np.array_equal(getattr(heap, name), values)
    assert not heap.velocities.any() and not heap.angular_velocities.any()
    assert heap.asleep.tolist() == heap.movable.tolist() == [False] + 100 * [True]
    assert np.isfinite(masses[1:]).all() and heap.typical_radius == RADIUS


def test_off_by_default_and_on_it_changes_nothing_until_somebody_sleeps():
    plain, watched = (gv.Simulation(heap_scene(), DT, threads=1, **setting) for setting in ({}, {"sleep": gv.Sleep(time=0.2)}))
    steps(plain, 150), steps(watched, 150)
    assert plain.sleep is None and not plain.asleep.any() and plain.state_hash() == watched.state_hash()


def test_box_stacks_sleep_and_stand_when_they_wake():
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    boxes = scene.add_bodies(gv.Box((0.05, 0.05, 0.05)), [(0.5 * k, 0, 0.05 + 0.1 * z) for k in range(2) for z in range(5)])
    sim = gv.Simulation(scene, 2e-3, threads=1, sleep=gv.Sleep(time=0.2))
    until_asleep(sim, boxes)
    assert len(np.unique(sim.bodies.island[boxes])) == 2
    before = sim.positions.copy()
    sim.wake([int(boxes[0])])
    assert sim.asleep[boxes].tolist() == 5 * [False] + 5 * [True]
    report = steps(sim, 20)
    assert report.contacts >= 5 * 4
    assert np.abs(sim.positions - before).max() < 1e-4  # within what a stack trembles; a fall would be 8 mm
    until_asleep(sim, boxes)


def test_who_wakes_has_the_impulses_that_carry_it(heap):
    steps(heap, 2)  # after which the last step knows nothing of it
    blank = heap.copy()
    for sim in (heap, blank):
        sim.solver = gv.GaussSeidel(iterations=1)  # which wakes all
    blank.warm_start = False
    heap.step(), blank.step()
    assert heap.report.contacts == blank.report.contacts > 100
    assert heap.report.residual <= heap.tolerance < blank.report.residual


def test_what_swings_does_not_sleep_where_it_turns_back():
    """A pendulum whose period is the time: whenever the time is over it is where it was, and stands still."""
    scene, length = gv.Scene(), 0.25
    bob = scene.add_body(gv.Sphere(0.01), (length * np.sin(0.1), 0, -length * np.cos(0.1)))
    scene.add_joint(gv.Revolute(None, bob, point=(0, 0, 0), axis=(0, 1, 0)))
    period = 2 * np.pi * np.sqrt((length**2 + 0.4 * 0.01**2) / (9.81 * length)) * (1 + 0.1**2 / 16)
    sim = gv.Simulation(scene, period / 400, precision="double", threads=1, sleep=gv.Sleep(time=period))
    for _ in range(1300):
        sim.step()
        assert not sim.asleep.any()


# --- islands, against a search body by body
@pytest.mark.parametrize("seed", range(5))
def test_islands_are_those_of_a_plain_search(seed):
    rng, n = np.random.default_rng(seed), 40
    awake = np.sort(rng.choice(100, n, replace=False))
    restless, carrying = rng.random(n) < 0.05, rng.choice(100, 3, replace=False)
    machine = {int(b): int(rng.integers(4)) for b in rng.choice(100, 8, replace=False)}
    pairs = rng.integers(0, 100, (30, 2))
    table = ContactTable.empty()
    table = type(table)(**{**vars(table), "body_a": pairs[:, 0], "body_b": pairs[:, 1]})
    ids, islands = sleep.islands_at_rest(awake, restless, table, carrying, machine)

    there = set(awake.tolist())
    near = {b: set() for b in there}
    for a, b in pairs.tolist() + [(a, b) for a in machine for b in machine if machine[a] == machine[b]]:
        if a in there and b in there:
            near[a].add(b), near[b].add(a)
    moves = set(awake[restless].tolist()) | set(carrying.tolist())
    moves |= {a for pair in pairs.tolist() for a, b in (pair, pair[::-1]) if b in carrying}
    expected = {}
    for start in sorted(there):
        island, edge = {start}, [start]
        while edge:
            edge = [b for a in edge for b in near[a] if b not in island and not island.add(b)]
        if not island & moves:
            expected[start] = min(island) + 1
    assert dict(zip(ids.tolist(), islands.tolist())) == expected


# --- touch
@pytest.mark.parametrize("integrator", ["midpoint", "euler"])
def test_a_ball_that_hits_a_sleeping_heap_meets_it_as_if_it_were_awake(heap, integrator):
    heap.integrator = integrator  # which wakes all
    until_asleep(heap, slice(1, None))
    top = highest(heap)
    island = heap.bodies.island == heap.bodies.island[top]
    heap.add_bodies(gv.Sphere(RADIUS), [heap.positions[top] + (0.003, 0, 0.05)], ROUGH, velocities=[(0, 0, -2.0)])
    twin = until_touched(heap, top)
    assert np.count_nonzero(island) > 50 and np.array_equal(~heap.asleep[1:-1], island[1:])
    twin.sleep = None
    before = momentum(twin)
    twin.step()
    assert heap.report.contacts > 50
    assert np.abs(heap.velocities - twin.velocities).max() < 2 * heap.tolerance
    for sim in (heap, twin):  # what the balls gained is what weight and the floor gave
        table = sim.contacts
        floor = table.impulse[table.body_a == 0].sum(axis=0) - table.impulse[table.body_b == 0].sum(axis=0)
        weight = DT * sim.masses[sim.movable & ~sim.asleep].sum() * sim.gravity
        assert momentum(sim) == pytest.approx(before + weight + floor, abs=1e-6)


def test_only_the_heap_that_is_touched_wakes():
    sim = gv.Simulation(heap_scene(2, 1), DT, threads=1, sleep=gv.Sleep(time=0.1))
    until_asleep(sim, slice(1, None))
    one, two = np.arange(1, 26), np.arange(26, 51)
    ball = sim.add_bodies(gv.Sphere(RADIUS), [sim.positions[13] + (0, 0, 0.022)], ROUGH)
    still = sim.positions[two].copy()
    until_touched(sim, 13)
    touched = sim.bodies.island[one] == 0
    assert touched[12] and sim.asleep[two].all() and np.array_equal(sim.positions[two], still)
    until_asleep(sim, ball)
    assert sim.asleep[1:].all()


# --- what else wakes
def add_wall(sim):
    sim.add_bodies(gv.Plane((0, 0, 1)), [(0, 0, -0.01)], fixed=True)


CHANGES = {
    "gravity": lambda sim: setattr(sim, "gravity", (0, 0, -1.6)),
    "dt": lambda sim: setattr(sim, "dt", 5e-4),
    "sleep": lambda sim: setattr(sim, "sleep", None),
    "wake": lambda sim: sim.wake(),
    "floor removed": lambda sim: sim.remove([0]),
    "grain removed": lambda sim: sim.remove([5]),
    "fixed body added": add_wall,
    "pair": lambda sim: sim.set_pair(sim.material_of(0), sim.material_of(1), friction=0.1),
    "motion": lambda sim: sim.set_motion(0, gv.ConstantVelocity((0, 0, 0))),
    "surface": lambda sim: sim.set_surface_velocity(0, (0.1, 0, 0)),
    "floor moved": lambda sim: sim.positions.__setitem__((0, 2), -0.1),
}


@pytest.mark.parametrize("what", CHANGES)
def test_changes_wake_all(heap, what):
    CHANGES[what](heap)
    assert not heap.asleep.any()  # at once
    heap.step()
    assert not heap.asleep.any()
    assert heap.report.contacts > 50


WRITTEN = ("positions", "quaternions", "velocities", "angular_velocities", "forces", "torques")


@pytest.mark.parametrize("name", WRITTEN)
def test_what_users_write_wakes_the_island(heap, name):
    top = highest(heap)
    island = heap.bodies.island == heap.bodies.island[top]
    getattr(heap, name)[top, 0] += 1e-6
    assert np.array_equal(heap.asleep, ~island & heap.movable)
    heap.step()
    assert heap.report.contacts > 50 and not heap.asleep[island].any()


def test_waking_one_wakes_its_island(heap):
    top = highest(heap)
    island = heap.bodies.island == heap.bodies.island[top]
    heap.wake(top)
    assert 50 < np.count_nonzero(island) < 100 and np.array_equal(heap.asleep, ~island & heap.movable)


def test_arrays_that_are_held_and_read_do_not_wake(heap):
    held = [getattr(heap, name) for name in WRITTEN]
    for _ in range(3):
        heap.step()
        assert heap.asleep[1:].all() and len(held) == 6
    with pytest.raises(ValueError, match="read-only"):
        heap.asleep[1] = False


def test_without_its_floor_the_heap_falls(heap):
    before = heap.positions[1:, 2].mean()
    heap.remove([0])
    steps(heap, 100)
    assert heap.positions[1:, 2].mean() - before == pytest.approx(-0.5 * 9.81 * 0.1**2, rel=0.02)


def test_a_driven_plate_wakes_whom_it_comes_near_and_one_that_stands_nobody():
    scene = heap_scene(1, 1)
    plate = scene.add_body(gv.Box((0.01, 0.1, 0.025)), (-0.5, 0.05, 0.03), motion=lambda t: (-0.5 + max(t - 1.0, 0.0), 0.05, 0.03))
    grains = np.arange(1, 26)
    sim = gv.Simulation(scene, DT, threads=1, sleep=gv.Sleep(time=0.1))
    until_asleep(sim, grains, 900)
    sim.run(1.2)
    assert sim.asleep[grains].all()
    sim.run(1.7)
    assert sim.positions[plate, 0] == pytest.approx(0.2, abs=1e-9)
    assert sim.positions[grains, 0].min() > 0.2 + 0.01 + 0.9 * RADIUS - 1e-3  # nobody was passed by


def test_what_lies_on_a_belt_does_not_sleep():
    scene = gv.Scene()
    belt = scene.add_body(gv.Plane(), fixed=True)
    scene.add_bodies(gv.Box((0.05, 0.05, 0.05)), [(0, 0, 0.05), (0, 0, 0.15)])
    sim = gv.Simulation(scene, DT, threads=1, sleep=gv.Sleep(speed=0.1, time=0.05))
    sim.set_surface_velocity(belt, (1e-3, 0, 0))
    steps(sim, 300)
    assert not sim.asleep.any()
    sim.set_surface_velocity(belt, None)
    until_asleep(sim, [1, 2], 300)


# --- joints
def pendulum(sleep=None, **drives):
    scene = gv.Scene()
    bob = scene.add_body(gv.Sphere(0.05), (0, 0, -1.0), mass=2.0)
    hinge = scene.add_joint(gv.Revolute(None, bob, point=(0, 0, 0), axis=(0, 1, 0), **drives))
    return gv.Simulation(scene, DT, precision="double", threads=1, sleep=sleep), bob, hinge


def test_a_pendulum_at_rest_sleeps_and_its_hinge_bears_it():
    sim, bob, hinge = pendulum(gv.Sleep(time=0.05))
    until_asleep(sim, [bob], 200)
    steps(sim, 5)
    assert sim.joints.force[hinge] == pytest.approx((0, 0, 2.0 * 9.81), abs=1e-6)
    sim.velocities[bob] = (0.1, 0, 0)
    steps(sim, 10)
    free, *_ = pendulum()
    steps(free, sim.steps - 10)
    free.velocities[bob] = (0.1, 0, 0)
    steps(free, 10)
    assert sim.positions[bob] == pytest.approx(free.positions[bob], abs=1e-9)


@pytest.mark.parametrize("motor", [gv.ForceMotor(0.0), gv.SpeedMotor(0.0)])
def test_a_machine_with_a_motor_stays_awake(motor):
    sim, *_ = pendulum(gv.Sleep(speed=1.0, time=0.05), motor=motor)
    steps(sim, 300)
    assert not sim.asleep.any()


def test_a_machine_falls_asleep_as_a_whole():
    """Two links that touch nothing; joints come and go."""
    scene = gv.Scene()
    links = scene.add_bodies(gv.Sphere(0.05), [(0, 0, -0.5), (0, 0, -1.0)])
    for body_a, body_b, z in ((None, 0, 0.0), (0, 1, -0.75)):
        scene.add_joint(gv.Revolute(body_a, body_b, point=(0, 0, z), axis=(0, 1, 0)))
    sim = gv.Simulation(scene, DT, precision="double", threads=1, sleep=gv.Sleep(time=0.05))
    until_asleep(sim, links, 200)
    assert sim.bodies.island.tolist() == [1, 1]
    sim.velocities[1] = (0, 0.0, 1e-3)
    assert not sim.asleep.any()
    sim.velocities[1] = 0
    until_asleep(sim, links, 200)
    extra = sim.add_joint(gv.Spherical(None, 1, point=(0, 0, -1.0)))
    assert not sim.asleep.any()
    until_asleep(sim, links, 200)
    sim.release_joint(extra)
    assert not sim.asleep.any()


# --- the same bits
def test_checkpoints_asleep_and_awake(heap, tmp_path):
    def same_future(sim, n):
        sim.save(tmp_path / "c.h5")
        for twin in (gv.Simulation.load(tmp_path / "c.h5", threads=1), sim.copy()):
            other = sim.copy()
            assert np.array_equal(twin.asleep, sim.asleep) and twin.sleep == sim.sleep
            for _ in range(n):
                twin.step(), other.step()
                assert twin.state_hash() == other.state_hash()

    top = highest(heap)
    heap.add_bodies(gv.Sphere(RADIUS), [heap.positions[top] + (0.003, 0, 0.03)], ROUGH)
    same_future(until_touched(heap, top), 20)
    steps(heap, 60)
    same_future(heap, 300)


def test_a_pending_change_is_in_the_checkpoint(heap):
    heap.gravity = (0, 0, -1.6)
    twin = heap.copy()
    assert not twin.asleep.any()
    heap.step(), twin.step()
    assert heap.state_hash() == twin.state_hash()


@pytest.mark.slow
def test_threads_find_the_same_bits():
    def run(threads):
        scene = heap_scene(16, 4)
        sim = gv.Simulation(scene, DT, threads=threads, sleep=gv.Sleep(time=0.1))
        steps(sim, 600)
        asleep = np.count_nonzero(sim.asleep)
        assert asleep > 0
        sim.add_bodies(gv.Sphere(RADIUS), [(0.04, 0.04, 0.2)], ROUGH, velocities=[(0, 0, -3.0)])
        steps(sim, 100)
        return sim.state_hash(), asleep

    assert run(1) == run(2)


def test_a_scene_from_a_sleeping_simulation_is_awake(heap):
    scene = gv.Scene.from_simulation(heap)
    sim = gv.Simulation(scene, DT, threads=1)
    assert sim.movable[1:].all() and not sim.asleep.any()
    assert sim.step().contacts > 100


# --- bad input
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gv.Sleep(speed=0.0), "Sleep speed must be greater than 0"),
        (lambda: gv.Sleep(speed=np.nan), "Sleep speed must be finite"),
        (lambda: gv.Sleep(speed="slow"), "Sleep speed must be a number"),
        (lambda: gv.Sleep(time=-1.0), "Sleep time must be greater than 0"),
        (lambda: gv.Simulation(heap_scene(), DT, sleep=True), r"sleep must be None or Sleep\(\), not True"),
    ],
)
def test_refused(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()


def test_waking_whom_there_is_not_is_refused(heap):
    with pytest.raises(ValueError, match="ids must be below 101"):
        heap.wake([101])
    assert heap.asleep[1:].all()
