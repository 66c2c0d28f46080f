"""The device's engine against formulas and against the CPU: residuals, solvers, broad phases, features, bad input.

``warp:cpu`` runs the kernels that a GPU gets, in single precision, on one thread.
"""

import sys
import time

import numpy as np
import pytest
import warp as wp

import gravel as gv
from gravel.detection.find import detect_scene
from gravel.engine import make_engine
from gravel.formulas.contact_laws import RESTING, TOUCHING
from gravel.rotations import rotate

DEVICE = "warp:cpu"
BOTH = ("cpu", DEVICE)
RADIUS = 0.01
WALLS = ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0))


def grid(counts, pitch, low, noise=0.0, seed=0):
    """Places in rows, columns and layers, shaken a little."""
    places = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, 3)
    return low + pitch * places + np.random.default_rng(seed).uniform(-noise, noise, places.shape)


def pile(material=None, counts=(3, 3, 3), shape=None):
    """Bodies that overlap a little, in a box of planes; body 0 is the floor."""
    material = material or gv.Material(friction=0.5)
    scene = gv.Scene()
    scene.add_body(gv.Plane(), material=material, fixed=True)
    for x, y, z in WALLS:
        scene.add_body(gv.Plane((x, y, z)), (-0.032 * x, -0.032 * y, 0), material, fixed=True)
    places = grid(counts, 1.99 * RADIUS, (-0.02, -0.02, 0.99 * RADIUS), 1e-4)
    rng = np.random.default_rng(1)
    velocities = rng.normal(size=places.shape) * 0.05
    scene.add_bodies(shape or gv.Sphere(RADIUS), places, material, velocities=velocities, angular_velocities=rng.normal(size=places.shape))
    return scene


BOX = gv.Box((0.0099, 0.009, 0.0098))


def made(scene, device, **options):
    return gv.Simulation(scene, **{"dt": 1e-3, "device": device, "threads": 1, **options})


# --- the residual, by its formula
def onto_cone(q, n, mu, tip):
    """The point of the cone around n, whose tip lies at -tip n, that is nearest to q, and its height above the tip."""
    height, across = q @ n + tip, q - (q @ n) * n
    side = np.linalg.norm(across)
    if mu * height >= side:
        return q, height
    if height <= -mu * side:
        return -tip * n, 0.0
    load = (height + mu * side) / (1 + mu * mu)
    return (load - tip) * n + mu * load / side * across, load


def cross_matrix(r):
    return np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])


class Solved:
    """What a step of the explicit scheme made, in plain numbers: where bodies were and how fast they left, before they turned."""

    def __init__(self, simulation):
        self.sim = simulation
        before = simulation.positions.copy(), simulation.quaternions.copy()
        self.report = simulation.step()
        self.position, turn = before
        moment, n = simulation.inertias, len(self.position)
        with np.errstate(divide="ignore"):
            self.lightness = 1 / simulation.masses
        self.give, self.spin = np.zeros((n, 3, 3)), np.zeros((n, 3))
        for i in np.flatnonzero(simulation.movable):
            start, end = (np.stack([rotate(q, axis) for axis in np.eye(3)], axis=1) for q in (turn[i], simulation.quaternions[i]))
            self.give[i] = start @ np.diag(1 / moment[i]) @ start.T
            momentum = end @ np.diag(moment[i]) @ end.T @ simulation.angular_velocities[i]
            self.spin[i] = self.give[i] @ momentum

    def residual(self, material, margin, coulomb=False):
        """max |x - P(x - eta u)| / eta, and for torques likewise, in the units of the impulses."""
        sim, table, worst = self.sim, self.sim.contacts, 0.0
        memory = sim.engine.memory()
        torques = {(a, b, f): t for a, b, f, t in zip(memory["a"], memory["b"], memory["feature"], memory["torque"])}
        for row in range(len(table)):
            a, b, n = int(table.body_a[row]), int(table.body_b[row]), table.normal[row]
            arms = table.point[row] - self.position[a], table.point[row] - self.position[b]
            gap = table.gap[row]
            u = (sim.velocities[b] + np.cross(self.spin[b], arms[1])) - (sim.velocities[a] + np.cross(self.spin[a], arms[0]))
            u = u + (gap / sim.dt if gap > RESTING * margin else 0.0) * n
            if coulomb:
                u = u + material.friction * np.linalg.norm(u - (u @ n) * n) * n
            response = sum(self.lightness[i] * np.eye(3) - cross_matrix(r) @ self.give[i] @ cross_matrix(r) for i, r in zip((a, b), arms))
            mean = np.trace(response) / 3
            tip = material.cohesion * sim.dt if gap <= TOUCHING * margin else 0.0
            x = table.impulse[row]
            p, load = onto_cone(x - u / mean, n, material.friction, tip)
            error = mean**2 * np.sum((p - x) ** 2)
            if torques:
                o, twist = np.array(torques.get((a, b, 0), torques.get((b, a, 0)))), self.give[a][0, 0] + self.give[b][0, 0]  # of balls
                o = o if (a, b, 0) in torques else -o
                q = o - (self.spin[b] - self.spin[a]) / twist
                along, across = q @ n, q - (q @ n) * n
                spin, roll = material.spinning_friction * load, material.rolling_friction * load
                q = np.clip(along, -spin, spin) * n + min(1.0, roll / max(np.linalg.norm(across), 1e-30)) * across
                error += np.sum((q - o) ** 2) * twist * mean
            worst = max(worst, error)
        return np.sqrt(worst)


ROLLING = gv.Material(friction=0.5, rolling_friction=2e-4, spinning_friction=1e-4)
STICKY = gv.Material(friction=0.5, cohesion=0.05)
CASES = {
    "balls": (gv.Material(friction=0.5), None, "cone"),
    "boxes": (gv.Material(friction=0.5), BOX, "cone"),
    "rolling": (ROLLING, None, "cone"),
    "cohesion": (STICKY, None, "cone"),
    "coulomb": (gv.Material(friction=0.7), None, "coulomb"),
    "boxes, coulomb": (gv.Material(friction=0.7), BOX, "coulomb"),
}
UNSOLVED = [gv.GaussSeidel(iterations=3, tolerance=0.0), gv.APGD(iterations=6, tolerance=0.0)]


@pytest.mark.parametrize("solver", UNSOLVED, ids=lambda solver: type(solver).__name__)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("device", BOTH)
def test_residual_is_what_its_formula_says(name, solver, device):
    material, shape, friction = CASES[name]
    margin = 1e-4
    options = {"margin": margin, "recovery": 0.0, "integrator": "euler", "friction": friction, "solver": solver}
    simulation = made(pile(material, shape=shape), device, **options)
    simulation.step()  # the next starts from impulses that are not zero
    solved = Solved(simulation)
    assert solved.report.contacts > 40
    expected = solved.residual(material, margin, friction == "coulomb")
    assert expected > 1e-4
    assert solved.report.residual == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("solver", [gv.Jacobi(iterations=10, tolerance=0.0), gv.APGD(iterations=6, tolerance=0.0)], ids=["Jacobi", "APGD"])
def test_residual_of_balls_with_rolling_friction_is_the_same_beside_a_box(solver):
    """A box far away makes every contact one of any bodies, on the device; what a residual is worth does not hang on that."""
    residuals = []
    for device, box in ((DEVICE, False), (DEVICE, True), ("cpu", True)):
        scene = pile(ROLLING)
        if box:
            scene.add_body(BOX, (0, 0, 5))
        simulation = made(scene, device, solver=solver)
        simulation.step()
        residuals.append(simulation.step().residual)
    assert residuals == pytest.approx([residuals[-1]] * 3, rel=1e-3)


# --- solvers
SOLVERS = [gv.GaussSeidel, gv.Jacobi, gv.APGD, gv.BarzilaiBorwein]


def one_step(scene, device, solver, **options):
    simulation = made(scene, device, solver=solver, **options)
    report = simulation.step()
    return simulation, report


def exact(scene, **options):
    """The velocities that a step leads to, from the CPU in double precision."""
    simulation, report = one_step(scene, "cpu", gv.GaussSeidel(iterations=100_000, tolerance=1e-11), precision="double", **options)
    assert report.converged
    return simulation.velocities.copy(), simulation.angular_velocities.copy()


def assert_solved(scene, solver, allowed, **options):
    """A step on the device ends below its tolerance and within ``allowed`` m/s of the solution; turning counts at the surface."""
    simulation, report = one_step(scene, DEVICE, solver, **options)
    assert report.converged, report
    velocities, spins = exact(scene, **options)
    there = simulation.movable
    reach = simulation.radii[there, None]
    assert np.abs(simulation.velocities - velocities)[there].max() <= allowed
    assert (np.abs(simulation.angular_velocities - spins)[there] * reach).max() <= allowed
    return report


@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_find_the_solution(solver):
    """Velocities are unique in the convex model; a residual of 1e-5 m/s, passed on through some layers, leaves ten times that."""
    assert_solved(pile(), solver(iterations=20_000, tolerance=1e-5), 1e-4)


def plate_on_balls():
    """A heavy movable plate on 225 balls: it has far more contacts than there are colours."""
    scene, material = gv.Scene(), gv.Material(friction=0.5)
    scene.add_body(gv.Plane(), material=material, fixed=True)
    scene.add_bodies(gv.Sphere(RADIUS), grid((15, 15, 1), 2.2 * RADIUS, (-0.16, -0.16, RADIUS)), material)
    scene.add_body(gv.Box((0.2, 0.2, 0.02)), (0, 0, 2 * RADIUS + 0.02), material, velocity=(0.1, 0, 0))
    return scene


def tower():
    scene, material = gv.Scene(), gv.Material(friction=0.5)
    scene.add_body(gv.Plane(), material=material, fixed=True)
    for k in range(8):
        scene.add_body(gv.Box((0.05, 0.05, 0.05)), (1e-3 * (-1) ** k, 0, 0.05 + 0.1 * k), material)
    return scene


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_hub_of_many_contacts(momentum):
    """(In the cone model, whose velocities are unique: a plate that sticks to many balls has several solutions of Coulomb's law.)"""
    scene = plate_on_balls()
    assert_solved(scene, gv.GaussSeidel(iterations=20_000, tolerance=1e-5, momentum=momentum), 1e-4, friction="cone")


@pytest.mark.parametrize("scene", [pile, plate_on_balls], ids=["pile", "hub"])
def test_no_two_contacts_of_a_colour_share_a_body(scene):
    """On one thread nothing goes wrong if they do; on a GPU they would overwrite each other's velocities. The last group, which has the
    contacts that no colour would take, is for one thread alone."""
    simulation = made(scene(), DEVICE, solver=gv.GaussSeidel(iterations=1, tolerance=0.0))
    simulation.step()
    problem = simulation.engine.problem
    a, b, mass = (getattr(problem.rows, name).numpy() for name in ("a", "b", "mass"))
    starts = problem.starts.tolist()
    assert starts[0] == 0 and starts[-1] == simulation.report.contacts == len(a)
    assert sorted(problem.slot.numpy().tolist()) == list(range(len(a)))
    colours = list(zip(starts[:-2], starts[1:-1]))
    assert sum(low < high for low, high in colours) > 3
    for low, high in colours:
        bodies = np.concatenate([a[low:high][mass[low:high, 0] > 0], b[low:high][mass[low:high, 1] > 0]])
        assert len(set(bodies.tolist())) == len(bodies)


def test_a_tower():
    assert_solved(tower(), gv.GaussSeidel(iterations=20_000, tolerance=1e-6), 1e-4)


# --- broad phases
def crowd(kind):
    """Scenes that are hard on a broad phase, as (shape, positions, velocities) blocks."""
    rng = np.random.default_rng(3)
    scene = gv.Scene()
    if kind == "mixed sizes":
        scene.add_bodies(gv.Sphere(10 ** rng.uniform(-3, 0, 150)), rng.uniform(-1, 1, (150, 3)))
    elif kind == "planes and huge boxes":
        scene.add_body(gv.Plane(), (0, 0, -0.5), fixed=True)
        scene.add_body(gv.Plane((1, 1, 0)), (-0.2, 0, 0), fixed=True)
        scene.add_body(gv.Box((50, 50, 1)), (0, 0, -1.2), fixed=True)
        scene.add_body(gv.Box((0.3, 40, 0.2)), (0.3, 0, 0), fixed=True)
        scene.add_bodies(gv.Sphere(0.1), rng.uniform(-1, 1, (100, 3)))
    elif kind == "far away":
        scene.add_bodies(gv.Sphere(0.1), rng.uniform(-0.5, 0.5, (60, 3)) + (1e5, -1e5, 1e5))
        scene.add_bodies(gv.Sphere(0.1), rng.uniform(-0.5, 0.5, (60, 3)))
    elif kind == "fast":
        velocities = 200.0 * rng.normal(size=(100, 3))
        scene.add_bodies(gv.Sphere(0.05), rng.uniform(-0.5, 0.5, (100, 3)), velocities=velocities)
    elif kind == "one":
        scene.add_body(gv.Sphere(0.1), (0, 0, 0))
    elif kind == "all in one place":
        scene.add_bodies(gv.Sphere(0.1), np.full((40, 3), 0.3))
    elif kind == "many":
        scene.add_body(gv.Plane(), fixed=True)
        scene.add_bodies(gv.Sphere(0.03), rng.uniform(0, 1, (2000, 3)))
    return scene


CROWDS = ("mixed sizes", "planes and huge boxes", "far away", "fast", "one", "all in one place", "many")


def pairs_of(table):
    return list(zip(table.body_a.tolist(), table.body_b.tolist()))


@pytest.mark.parametrize("kind", CROWDS)
def test_broad_phases_find_the_contacts_of_the_cpu(kind):
    """Gaps within 1e-6 of the margin may count or not; the random places have none."""
    scene, margin = crowd(kind), 1e-3
    table = detect_scene(scene, margin, broad_phase="brute", precision="single").contacts()
    assert len(table) > 15 or kind == "one"
    for phase in ("grid", "bvh", "brute"):
        found = detect_scene(scene, margin, broad_phase=phase, device=DEVICE).contacts()
        assert pairs_of(found) == pairs_of(table), phase
        np.testing.assert_allclose(found.gap, table.gap, atol=1e-6)
        np.testing.assert_allclose(found.normal, table.normal, atol=1e-5)
        np.testing.assert_allclose(found.point, table.point, rtol=1e-12, atol=1e-6)


@pytest.mark.parametrize("phase", ["auto", "grid", "bvh", "brute"])
def test_steps_do_not_depend_on_the_broad_phase(phase):
    """Fast bodies, whose bounds hold the way of a step."""
    ours, theirs = (made(crowd("fast"), device, broad_phase=phase, solver=gv.Jacobi(iterations=20, tolerance=0.0)) for device in BOTH)
    for _ in range(3):
        assert ours.step().contacts == theirs.step().contacts
        theirs.positions[:], theirs.velocities[:] = ours.positions, ours.velocities
        theirs.quaternions[:], theirs.angular_velocities[:] = ours.quaternions, ours.angular_velocities


def test_no_bodies():
    simulation = made(crowd("one"), DEVICE)
    simulation.step()
    simulation.remove([0])
    for phase in ("grid", "bvh", "brute"):
        other = made(crowd("one"), DEVICE, broad_phase=phase)
        other.remove([0])
        assert other.step().contacts == 0
        assert other.add_bodies(gv.Sphere(0.1), [[0, 0, 1.0]]).tolist() == [1]
        other.step()
        assert other.positions[1, 2] < 1.0
    assert simulation.step().bodies == 0


# --- bad input
def test_devices_that_are_not_there_are_named():
    for name in ("cuda", "cuda:7"):
        if wp.is_cuda_available() and name == "cuda":
            continue
        with pytest.raises(ValueError, match=f"device '{name}' is not there; this machine has 'cpu' and, through Warp, 'warp:cpu'"):
            made(tower(), name)
    with pytest.raises(ValueError, match="device must be"):
        made(tower(), "gpu")


def test_what_the_device_lacks_is_refused_by_name():
    with pytest.raises(ValueError, match="precision must be 'single' on device 'warp:cpu', not 'double'"):
        made(tower(), DEVICE, precision="double")
    with pytest.raises(ValueError, match="broad_phase must be one of auto, grid, bvh, brute on device 'warp:cpu', not 'sap'"):
        made(tower(), DEVICE, broad_phase="sap")


def test_ffd_is_refused_when_the_simulation_is_made():
    with pytest.raises(ValueError, match="solver FFD runs on device 'cpu' only, not on 'warp:cpu'"):
        made(pile(), DEVICE, solver=gv.FFD())
    simulation = made(pile(), DEVICE)
    with pytest.raises(ValueError, match="solver FFD runs on device 'cpu' only, not on 'warp:cpu'"):
        simulation.solver = gv.FFD()
    assert isinstance(simulation.solver, gv.GaussSeidel)
    simulation.step()


def test_without_warp_the_extra_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("gravel.gpu")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "warp", None)
    with pytest.raises(ModuleNotFoundError, match=r"device 'warp:cpu' needs Warp: pip install 'gravel\[gpu\]'"):
        made(tower(), DEVICE)


class Full:
    """``wp.empty`` of a device that has room for so many more arrays."""

    def __init__(self, room):
        self.room, self.calls, self.plain = room, 0, wp.empty

    def __call__(self, *arguments, **named):
        self.calls += 1
        if self.calls > self.room:
            raise RuntimeError("Failed to allocate 4096 bytes on device 'cuda:0'")
        return self.plain(*arguments, **named)


@pytest.mark.parametrize("steps", [0, 2])
def test_out_of_memory_keeps_the_state(steps, monkeypatch):
    """Wherever in a step the device has no room for more, the state is that before the step, and it goes on when there is room again."""

    def prepared():
        simulation = made(pile(ROLLING), DEVICE)
        for _ in range(steps):
            simulation.step()
        if steps:
            simulation.add_bodies(gv.Sphere(RADIUS), grid((4, 4, 3), 2.01 * RADIUS, (-0.03, -0.03, 0.2)), simulation.material_of(0))
        return simulation

    room, refused = 0, 0
    twin = prepared()
    twin.step()
    expected = twin.state_hash()
    simulation = prepared()
    before, time = simulation.state_hash(), simulation.time
    while room < 500:
        with monkeypatch.context() as patch:
            patch.setattr(wp, "empty", Full(room))
            try:
                simulation.step()
                break
            except MemoryError as error:
                assert "has no room for" in str(error) and "MB were asked for" in str(error)
        refused += 1
        assert (simulation.state_hash(), simulation.time) == (before, time), room
        room += 1
    assert refused > 5
    assert simulation.state_hash() == expected


def test_vectors_of_gradient_solvers_that_find_no_room_say_so(monkeypatch):
    simulation = gv.Simulation(pile(ROLLING), 1e-3, gv.APGD(iterations=3, tolerance=0.0), device=DEVICE)
    simulation.step()
    before = simulation.state_hash()
    with monkeypatch.context() as patch:  # whatever was needed once has its room: only the vectors are new in each step
        patch.setattr(wp, "empty", Full(2))
        with pytest.raises(MemoryError, match="has no room for '(impulses|torques)'.*MB were asked for"):
            simulation.step()
    assert simulation.state_hash() == before
    simulation.step()


def test_two_engines_at_once():
    """Neither sees anything of the other."""
    alone = made(pile(), DEVICE)
    for _ in range(5):
        alone.step()
    one, other = made(pile(), DEVICE), made(pile(ROLLING, (3, 3, 2)), DEVICE)
    for _ in range(5):
        one.step()
        other.step()
    assert one.state_hash() == alone.state_hash() != other.state_hash()


# --- features, step by step against the CPU
def twins(scene_of, **options):
    return [made(scene_of(), device, **options) for device in BOTH]


def assert_alike(ours, theirs, far, fast=None, turned=None):
    """Positions within ``far`` m, velocities within ``fast`` m/s, quaternions within ``turned``."""
    np.testing.assert_allclose(theirs.positions, ours.positions, rtol=0, atol=far)
    if fast is not None:
        np.testing.assert_allclose(theirs.velocities, ours.velocities, rtol=0, atol=fast)
    if turned is not None:
        np.testing.assert_allclose(theirs.quaternions, ours.quaternions, rtol=0, atol=turned)


def together(pair, steps):
    for _ in range(steps):
        for simulation in pair:
            simulation.step()
    return pair


@pytest.mark.parametrize("integrator", ["midpoint", "euler"])
def test_driven_bodies_are_where_their_motion_says(integrator):
    """A plate that swings and a bar that turns, with balls around them."""

    def scene():
        made_of = pile()
        swing = gv.Oscillation((0.01, 0, 0), 2.0)
        made_of.add_body(gv.Box((0.01, 0.01, 0.002)), (0.0, 0.0, 0.08), motion=swing)
        made_of.add_body(gv.Box((0.02, 0.001, 0.001)), (0.0, 0.0, 0.1), motion=gv.ConstantVelocity((0, 0, -0.2), (0, 0, 3.0)))
        return made_of

    ours, theirs = together(twins(scene, integrator=integrator), 15)
    last = ours.count - 1
    np.testing.assert_array_equal(theirs.positions[last - 1 :], ours.positions[last - 1 :])
    np.testing.assert_array_equal(theirs.quaternions[last - 1 :], ours.quaternions[last - 1 :])
    np.testing.assert_allclose(theirs.velocities[last - 1 :], ours.velocities[last - 1 :], rtol=1e-6, atol=1e-9)
    assert theirs.positions[last, 2] == pytest.approx(0.1 - 0.2 * 0.015, abs=1e-9)
    assert_alike(ours, theirs, 1e-4)


def test_a_belt_drags_a_ball_until_it_rolls():
    """2/7 of the belt's speed."""
    scene = gv.Scene()
    scene.add_body(gv.Box((5, 1, 0.1)), (0, 0, -0.1), gv.Material(friction=0.4), fixed=True, surface_velocity=(1.0, 0, 0))
    scene.add_body(gv.Sphere(0.1), (0, 0, 0.1), gv.Material(friction=0.4))
    simulation = made(scene, DEVICE)
    simulation.run(0.3)
    assert simulation.velocities[1, 0] == pytest.approx(2 / 7, rel=1e-3)


def test_a_bouncing_ball_reaches_its_height():
    """And is where the CPU has it: in the step of the impact it goes down, and up again with what is left of the step."""
    scene, material = gv.Scene(), gv.Material(restitution=0.8)
    scene.add_body(gv.Plane(), material=material, fixed=True)
    scene.add_body(gv.Sphere(0.1), (0, 0, 1.1), material)
    ours, theirs = twins(lambda: scene)
    highest, struck = 0.0, 0
    while theirs.time < 0.9:
        together((ours, theirs), 1)
        struck += theirs.report.impacts
        if struck == 1:
            highest = max(highest, float(theirs.positions[1, 2]))
    assert struck == 1 and highest == pytest.approx(0.1 + 0.64, abs=2e-3)
    assert_alike(ours, theirs, 1e-6, 1e-6)


def test_a_cradle_passes_the_blow_on():
    scene, material = gv.Scene(gravity=(0, 0, 0)), gv.Material(restitution=1.0, friction=0.0)
    for k in range(5):
        scene.add_body(gv.Sphere(0.1), (0.2 * k - (0.05 if k == 0 else 0.0), 0, 0), material, velocity=(1.0 if k == 0 else 0.0, 0, 0))
    simulation = made(scene, DEVICE)
    simulation.run(0.1)
    np.testing.assert_allclose(simulation.velocities[:, 0], [0, 0, 0, 0, 1], atol=1e-5)


@pytest.mark.parametrize("name", ["rolling", "cohesion", "coulomb"])
def test_laws_of_contact_over_some_steps(name):
    material, shape, friction = CASES[name]
    ours, theirs = twins(lambda: pile(material, shape=shape), friction=friction, solver=gv.GaussSeidel(iterations=500, tolerance=1e-6))
    together((ours, theirs), 10)
    assert ours.report.contacts == theirs.report.contacts
    assert_alike(ours, theirs, 1e-6, 1e-4)


def test_forces_and_torques():
    """A free body under a constant force, and about its axis of symmetry a torque."""
    scene = gv.Scene(gravity=(0, 0, 0))
    body = scene.add_body(gv.Box((0.1, 0.1, 0.2)), (0, 0, 0))
    scene.set_force(body, (3.0, 0, 0), (0, 0, 0.5))
    simulation = made(scene, DEVICE)
    simulation.run(0.2)
    mass, moment = simulation.masses[0], simulation.inertias[0, 2]
    assert simulation.velocities[0, 0] == pytest.approx(3.0 / mass * 0.2, rel=1e-5)
    assert simulation.positions[0, 0] == pytest.approx(1.5 / mass * 0.2**2, rel=1e-4)
    assert simulation.angular_velocities[0, 2] == pytest.approx(0.5 / moment * 0.2, rel=1e-5)
    simulation.forces[0], simulation.torques[0] = 0, 0
    before = simulation.velocities.copy()
    simulation.run(0.25)
    np.testing.assert_array_equal(simulation.velocities, before)


def test_bodies_come_and_go():
    ours, theirs = twins(pile, solver=gv.GaussSeidel(iterations=500, tolerance=1e-6))
    pair = together((ours, theirs), 3)
    for simulation in pair:
        simulation.remove([7, 12, 30])
    together(pair, 3)
    for simulation in pair:
        new = simulation.add_bodies(gv.Sphere(0.008), [[0, 0, 0.07], [0.0, 0.01, 0.09]], velocities=[[0, 0, -1.0], [0, 0, -2.0]])
        assert new.tolist() == [32, 33]
    together(pair, 5)
    assert np.isnan(theirs.positions[[7, 12, 30]]).all() and theirs.report.bodies == ours.report.bodies == 31
    assert ours.report.contacts == theirs.report.contacts
    assert_alike(ours, theirs, 1e-6, 1e-4)


def test_what_users_write_holds():
    """Arrays written between steps, read back at once, and stepped from; velocities of a body that the device moved before."""
    simulation = made(pile(), DEVICE)
    together([simulation], 2)
    simulation.positions[10] = (0, 0, 1.0)
    simulation.velocities[10] = (0.5, 0, 0)
    simulation.quaternions[10] = (0, 1, 0, 0)
    others = np.delete(simulation.positions.copy(), 10, axis=0)
    np.testing.assert_array_equal(simulation.positions[10], (0, 0, 1.0))
    simulation.step()
    np.testing.assert_allclose(simulation.positions[10], (0.5e-3, 0, 1.0), atol=2e-5)
    assert np.abs(np.delete(simulation.positions, 10, axis=0) - others).max() < 1e-3
    state = simulation.state_hash()
    simulation.positions[:] = simulation.positions  # the same values change nothing
    assert simulation.state_hash() == state


def test_groups_pass_through_each_other():
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True, group=1)
    scene.add_body(gv.Sphere(0.1), (0, 0, 0.1), group=2)
    scene.add_body(gv.Sphere(0.1), (1, 0, 0.1), group=3)
    scene.ignore(1, 2)
    simulation = made(scene, DEVICE)
    simulation.run(0.1)
    assert simulation.positions[1, 2] == pytest.approx(0.1 - 0.5 * 9.81 * 0.01, rel=1e-2)
    assert simulation.positions[2, 2] == pytest.approx(0.1, abs=1e-4)


def test_pairs_pass_through_each_other():
    scene = gv.Scene()
    floor = scene.add_body(gv.Plane(), fixed=True)
    one, other = (scene.add_body(gv.Sphere(0.1), (x, 0, 0.1)) for x in (0, 1))
    scene.ignore_pair(floor, one)
    simulation = made(scene, DEVICE)
    simulation.run(0.1)
    assert simulation.positions[one, 2] < 0.06 and simulation.positions[other, 2] == pytest.approx(0.1, abs=1e-4)


def test_sleep_and_waking():
    """Balls at rest sleep on the device at the same moment as on the CPU, bit for bit still, and wake when they are struck."""

    def scene():
        made_of, material = gv.Scene(), gv.Material(friction=0.5, rolling_friction=1e-3)
        made_of.add_body(gv.Plane(), material=material, fixed=True)
        made_of.add_bodies(gv.Sphere(RADIUS), [(0, 0, RADIUS), (0.05, 0, RADIUS), (0.05, 0, 3 * RADIUS)], material)
        return made_of

    pair = twins(scene, sleep=gv.Sleep(time=0.05))
    for _ in range(120):
        together(pair, 1)
        assert pair[0].asleep.tolist() == pair[1].asleep.tolist()
    simulation = pair[1]
    assert simulation.asleep[1:].all()
    still = simulation.positions.copy()
    together([simulation], 3)
    np.testing.assert_array_equal(simulation.positions, still)
    simulation.add_bodies(gv.Sphere(RADIUS), [(0.05, 0, 5.1 * RADIUS)], simulation.material_of(1), velocities=[[0.3, 0, -1.0]])
    together([simulation], 10)
    assert simulation.asleep.tolist() == [False, True, False, False, False]
    assert np.abs(simulation.positions[3] - still[3]).max() > 1e-5
    twin = simulation.copy()
    assert twin.asleep.tolist() == simulation.asleep.tolist()


def pendulum():
    scene = gv.Scene()
    post = scene.add_body(gv.Box((0.1, 0.1, 0.1)), (0, 0, 0), fixed=True)
    bob = scene.add_body(gv.Sphere(0.05), (1.0, 0, 0))
    scene.add_joint(gv.Revolute(post, bob, (0, 0, 0), (0, 1, 0)))
    return scene


@pytest.mark.parametrize("joints", ["direct", "iterative"])
def test_a_pendulum_swings_as_on_the_cpu(joints):
    """Its joint is solved on the host: the same to rounding; energy is that of its fall."""
    ours, theirs = twins(pendulum, joints=joints)
    together((ours, theirs), 100)
    assert_alike(ours, theirs, 1e-6, 1e-5)
    inertia = 1 + 0.4 * 0.05**2
    assert np.sum(theirs.velocities[1] ** 2) * inertia / 2 == pytest.approx(-9.81 * theirs.positions[1, 2], rel=1e-2)
    np.testing.assert_allclose(theirs.joints.force, ours.joints.force, rtol=1e-4, atol=1e-3)


def test_joints_with_motors_limits_and_loads():
    """A motor that holds its speed, a limit that holds, a joint that breaks."""

    def scene():
        made_of = gv.Scene()
        post = made_of.add_body(gv.Box((0.1, 0.1, 0.1)), (0, 0, 0), fixed=True)
        wheel, arm, weight = (made_of.add_body(gv.Box((0.1, 0.05, 0.05)), (x, 3.0 * k, 0)) for k, x in enumerate((0.0, 0.3, 0.3), 1))
        made_of.add_joint(gv.Revolute(post, wheel, (0, 3, 0), (0, 1, 0), motor=gv.SpeedMotor(4.0)))
        made_of.add_joint(gv.Revolute(post, arm, (0, 6, 0), (0, 1, 0), limits=(-0.2, 0.2)))
        made_of.add_joint(gv.Revolute(post, weight, (0, 9, 0), (0, 1, 0), break_force=30.0))
        return made_of

    ours, theirs = twins(scene)
    broken = [0, 0]
    for _ in range(200):
        for k, simulation in enumerate((ours, theirs)):
            broken[k] += simulation.step().broken
    assert theirs.angular_velocities[1, 1] == pytest.approx(4.0, rel=1e-3)
    angle = np.arctan2(-theirs.positions[2, 2], theirs.positions[2, 0])
    assert angle == pytest.approx(0.2, abs=2e-3)
    assert broken == [1, 1]
    assert_alike(ours, theirs, 1e-4, 1e-3)


def periodic(shear):
    scene = gv.Scene(
        gravity=(0, 0, 0), periodic=((0.0, 0.2), (0.0, 0.2), (0.0, 0.2)), deformation=gv.Deformation(shear_rate=shear) if shear else None
    )
    places = grid((5, 5, 5), 0.04, 0.0, 2e-3)
    rng = np.random.default_rng(4)
    scene.add_bodies(gv.Sphere(0.0199), places % 0.2, gv.Material(friction=0.4), velocities=0.5 * rng.normal(size=places.shape))
    return scene


@pytest.mark.parametrize("integrator", ["midpoint", "euler"])
@pytest.mark.parametrize("shear", [0.0, 5.0])
def test_periodic_cells(shear, integrator):
    options = {"solver": gv.GaussSeidel(iterations=500, tolerance=1e-6), "integrator": integrator}
    ours, theirs = together(twins(lambda: periodic(shear), **options), 12)
    assert ours.report.contacts == theirs.report.contacts > 30
    assert (theirs.windings == ours.windings).all() and theirs.windings.any()
    assert_alike(ours, theirs, 1e-5, 1e-3)
    np.testing.assert_allclose(theirs.engine.virial(), ours.engine.virial(), rtol=1e-2, atol=1e-3 * np.abs(ours.engine.virial()).max())


@pytest.mark.parametrize("integrator", ["midpoint", "euler"])
def test_refused_steps_keep_the_state(integrator):
    """Too far out, or not a number: an error that names the body, and the state from before."""
    scene = pile()
    lone = scene.add_body(gv.Sphere(RADIUS), (0.0, 0.0, 0.5), gv.Material(friction=0.0))
    scene.add_body(gv.Box((0.01, 0.01, 0.002)), (0.0, 0.0, -0.5), motion=gv.Oscillation((0.01, 0, 0), 2.0))
    simulation = made(scene, DEVICE, bounds=((-1, -1, -1), (1, 1, 1)), integrator=integrator)
    together([simulation], 3)
    state = simulation.state_hash()
    simulation.velocities[lone] = (0, 0, 5000.0)
    written = simulation.state_hash()
    with pytest.raises(gv.SimulationError, match=f"body {lone} .*leave the bounds.*state before that step is kept"):
        simulation.step()
    assert simulation.state_hash() == written != state and simulation.steps == 3
    with pytest.raises(gv.SimulationError, match="contacts are not known after a refused step"):
        _ = simulation.contacts
    simulation.velocities[lone] = 0
    simulation.step()
    simulation.velocities[lone, 0] = np.nan
    with pytest.raises(gv.SimulationError, match=f"body {lone}|velocities"):
        simulation.step()


def test_rays_and_boxes_see_what_the_device_has_moved():
    ours, theirs = together(twins(pile, solver=gv.GaussSeidel(iterations=500, tolerance=1e-6)), 5)
    rng = np.random.default_rng(6)
    origins, directions = rng.uniform(-0.03, 0.03, (40, 3)) + (0, 0, 0.1), rng.normal(size=(40, 3)) * (0.3, 0.3, 0.0) - (0, 0, 1)
    hits, others = (simulation.cast_rays(origins, directions) for simulation in (ours, theirs))
    np.testing.assert_array_equal(hits.body, others.body)
    np.testing.assert_allclose(hits.distance, others.distance, atol=1e-5)
    assert len(set(hits.body.tolist())) > 5
    state = theirs.state_hash()
    inside = [simulation.bodies_in_box((-0.01, -0.01, 0), (0.02, 0.02, 0.03)).tolist() for simulation in (ours, theirs)]
    assert inside[0] == inside[1]
    theirs.step()
    assert theirs.state_hash() != state


def test_settings_change_in_the_run():
    """Gravity, step, friction, material: from the next step on, as on the CPU."""
    ours, theirs = twins(pile, solver=gv.GaussSeidel(iterations=500, tolerance=1e-6))
    pair = together((ours, theirs), 2)
    for simulation in pair:
        simulation.gravity, simulation.dt, simulation.friction = (0, 1.0, -5.0), 5e-4, "coulomb"
        simulation.set_material([8, 9], gv.Material(friction=0.1, restitution=0.5))
    together(pair, 6)
    assert_alike(ours, theirs, 1e-6, 2e-4)
    for simulation in pair:
        simulation.solver, simulation.integrator = gv.Jacobi(iterations=30, tolerance=0.0), "euler"
    together(pair, 3)
    assert_alike(ours, theirs, 1e-5, 1e-3)


def test_a_first_step_that_takes_long_says_why(monkeypatch):
    told, engine = [], make_engine("warp:cpu")
    names = type(engine).warm_up.__globals__
    monkeypatch.setitem(names, "LONG", 0.0)
    ready = engine.warm_up(told.append, False)
    for _ in range(100):
        if told:
            break
        time.sleep(0.02)
    ready()
    assert told == ["compiling for the device, for this and later runs"]
    monkeypatch.setitem(names, "LONG", 60.0)
    engine.warm_up(told.append, False)()
    assert len(told) == 1
