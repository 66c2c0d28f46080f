"""Momentum over the sweeps of Gauss-Seidel: it gets there in fewer of them, for every kind of problem, and spoils nothing."""

import math

import numpy as np
import pytest

import gravel as gv
from gravel.cpu.solve import blocks
from gravel.formulas.momentum import nesterov_step


def bed(shape, material=None, mixed=False, n=300, friction="cone", seconds=0.15, **options):
    """Bodies that have just fallen on a floor between walls and are still settling."""
    material = material or gv.Material(friction=0.3)
    scene, rng, side = gv.Scene(), np.random.default_rng(3), 6
    places = np.stack(np.unravel_index(np.arange(n), (n // side**2 + 1, side, side))[::-1], axis=1) * 0.024 + 0.012
    places = places + rng.uniform(-0.001, 0.001, (n, 3))
    scene.add_body(gv.Plane(), material=material, fixed=True)
    for axis in range(2):
        for sign in (1, -1):
            normal = sign * np.eye(3)[axis]
            scene.add_body(gv.Plane(normal=normal, offset=0.0 if sign > 0 else -side * 0.024), material=material, fixed=True)
    if mixed:
        scene.add_bodies(gv.Sphere(0.01), places[::2], material)
        scene.add_bodies(shape, places[1::2], material)
    else:
        scene.add_bodies(shape, places, material)
    sim = gv.Simulation(scene, 1e-3, gv.GaussSeidel(iterations=60), friction=friction, threads=1, **options)
    for _ in range(round(seconds / 1e-3)):
        sim.step()
    return sim


CASES = {
    "balls": lambda: bed(gv.Sphere(0.01)),
    "balls, Coulomb": lambda: bed(gv.Sphere(0.01), friction="coulomb"),
    "balls that roll hard": lambda: bed(gv.Sphere(0.01), gv.Material(friction=0.3, rolling_friction=1e-3, spinning_friction=1e-3)),
    "balls that stick": lambda: bed(gv.Sphere(0.01), gv.Material(friction=0.3, cohesion=0.01)),
    "boxes": lambda: bed(gv.Box((0.008, 0.009, 0.01)), seconds=0.05),
    "balls and boxes": lambda: bed(gv.Box((0.008, 0.009, 0.01)), mixed=True, seconds=0.08),
    "double precision": lambda: bed(gv.Sphere(0.01), precision="double"),
}


LONG = {"balls that roll hard", "balls and boxes", "double precision"}


@pytest.mark.parametrize("case", [pytest.param(case, marks=pytest.mark.slow) if case in LONG else case for case in CASES])
def test_fewer_sweeps_to_the_same_residual(case):
    sim = CASES[case]()
    assert sim.report.contacts > 300
    plain = gv.GaussSeidel(iterations=100, momentum=0.0).run(sim.next_problem(True), history=True)
    quick = gv.GaussSeidel(iterations=100).run(sim.next_problem(True), history=True)
    assert plain.history[0] == quick.history[0]  # the same problem
    assert quick.residual < 0.4 * plain.residual
    assert quick.residual_rms < 0.4 * plain.residual_rms


def test_matrix_problems_gain_too():
    """A row of blocks, each held by contacts with the next: what happens at one end takes many sweeps to reach the other."""
    rng, n = np.random.default_rng(0), 60
    links = np.eye(n) * 2.0 - np.eye(n, k=1) - np.eye(n, k=-1)
    q = np.kron(np.ones(n), [-1.0, 0.1, 0.0]) + rng.normal(size=3 * n)
    problem = gv.ConeProblem.from_matrices(np.kron(links, np.eye(3)), q, rng.uniform(0.2, 0.8, n))
    plain, quick = (gv.GaussSeidel(iterations=100, momentum=m).solve(problem) for m in (0.0, 0.9))
    assert quick.residual < 0.3 * plain.residual
    assert problem.objective(quick.impulses) < problem.objective(plain.impulses)


def test_rows_of_joints_gain_too():
    """A chain whose joints are treated like contacts."""
    scene = gv.Scene()
    links = [scene.add_body(gv.Capsule(0.01, 0.04), (0.1 * k, 0, 0), quaternion=(math.sqrt(0.5), 0, math.sqrt(0.5), 0)) for k in range(20)]
    for k, (a, b) in enumerate(zip([None, *links], links)):
        scene.add_joint(gv.Spherical(a, b, (0.1 * k - 0.05, 0, 0)))
    sim = gv.Simulation(scene, 1e-3, gv.GaussSeidel(iterations=200), joints="iterative", precision="double")
    for _ in range(5):
        sim.step()
    plain, quick = (gv.GaussSeidel(iterations=200, momentum=m).run(sim.next_problem(False)) for m in (0.0, 0.9))
    assert quick.residual < 0.5 * plain.residual


@pytest.mark.parametrize("max_momentum", [0.0, 0.5, 0.9, 1.0])
def test_velocities_stay_those_of_the_impulses(max_momentum):
    """v = v_free + M^-1 D x after any number of sweeps: the impulses of the contacts account for the momentum of every ball."""
    sim = bed(gv.Sphere(0.01), precision="double")
    problem = sim.next_problem(False)
    free = problem.unknowns.velocity.reshape(-1, 8).copy()
    gv.GaussSeidel(iterations=37, momentum=max_momentum).run(problem)
    found, proxies = sim.engine.detector.contacts, sim.engine.detector.proxies
    expected = free.copy()
    for tile in range(len(found.count)):
        for c in range(found.start[tile], found.start[tile] + found.count[tile]):
            at = (sim.engine.step.slot[c] // 16) * 48 + sim.engine.step.slot[c] % 16
            p = problem.unknowns.impulse[at : at + 48 : 16]
            expected[found.b[c], :3] += proxies.mass[found.b[c], 0] * p
            expected[found.a[c], :3] -= proxies.mass[found.a[c], 0] * p
    assert np.abs(expected - free).max() > 0.1
    assert np.allclose(expected[:, :3], problem.unknowns.velocity.reshape(-1, 8)[:, :3], rtol=0, atol=1e-11)


def test_momentum_of_zero_is_plain_gauss_seidel_and_calm_starts_anew():
    sim = bed(gv.Sphere(0.01), precision="double")
    whole = gv.GaussSeidel(iterations=40, momentum=0.0).run(sim.next_problem(True)).residual
    problem = sim.next_problem(True)
    problem.warm_start()
    for _ in range(40):  # what is carried on is forgotten after each sweep
        problem.sweep(1, 0.9, 0.0)
        problem.restart_momentum()
    assert problem.measure()[0] == whole


def test_sweeps_end_when_nothing_changes_any_more():
    sim = bed(gv.Sphere(0.01))
    loose, tight = (gv.GaussSeidel(iterations=400, tolerance=t).run(sim.next_problem(True)) for t in (1e-2, 1e-4))
    assert loose.iterations < tight.iterations < 400
    assert loose.residual <= 1e-2 and tight.residual <= 1e-4


def test_the_pace_follows_nesterov_up_to_its_cap_and_starts_anew_uphill():
    age, betas, first, share = 1.0, [], 0.0, 1.0
    for _ in range(50):
        age, beta, first, share = nesterov_step(age, -1.0, 0.9, 1.0, first, share, 5.0)
        betas.append(beta)
    t = [1.0]
    for _ in range(50):
        t.append((1 + math.sqrt(1 + 4 * t[-1] ** 2)) / 2)
    assert betas == pytest.approx([min((a - 1) / b, 0.9) for a, b in zip(t, t[1:])])
    assert betas[0] == 0.0 and betas[-1] == 0.9
    assert (first, share) == (1.0, 1.0)
    assert nesterov_step(age, 1e-30, 0.9, 1.0, first, share, 5.0) == nesterov_step(1.0, 0.0, 0.9, 1.0, first, share, 5.0)


def test_sweeps_that_swing_up_get_less_momentum():
    age, beta, first, share = nesterov_step(50.0, -1.0, 0.9, 0.1, 0.0, 1.0, 5.0)
    assert (beta, first, share) == (0.9, 0.1, 1.0)
    assert nesterov_step(age, -1.0, 0.9, 0.49, first, share, 5.0)[1:] == (0.9, 0.1, 1.0)  # not yet
    age, beta, first, share = nesterov_step(age, -1.0, 0.9, 0.51, first, share, 5.0)
    assert (beta, first, share) == (0.0, 0.1, 0.25)
    assert nesterov_step(50.0, -1.0, 0.9, 0.4, first, share, 5.0)[1] == pytest.approx(0.225)


@pytest.mark.parametrize("n", [40, 125])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_bodies_that_touch_very_many_others_are_solved_no_worse_than_by_plain_sweeps(n, precision):
    """So many balls in one place: each sweep turns some of their motions round, which much momentum would make grow without end."""
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(gv.Sphere(0.1), np.zeros((n, 3)))
    sim = gv.Simulation(scene, 1 / 500, precision=precision)
    for iterations in (50, 300):
        plain, quick = (gv.GaussSeidel(iterations=iterations, momentum=m).run(sim.next_problem(False)) for m in (0.0, 0.9))
        assert quick.residual < 1.5 * plain.residual


def test_balls_beside_other_shapes_are_solved_as_if_they_were_any_shape():
    """Balls have blocks of their own; when their inertia is not a number, by a hair, they are put among the wide ones."""
    one, other = (bed(gv.Box((0.008, 0.009, 0.01)), mixed=True, seconds=0.05, precision="double") for _ in range(2))
    inverse_mass = other.engine.field("inverse_mass")
    balls = (inverse_mass[:, 1] > 0) & (inverse_mass[:, 1] == inverse_mass[:, 2]) & (inverse_mass[:, 2] == inverse_mass[:, 3])
    assert balls.sum() == 150
    inverse_mass[balls, 1] *= 1 + 1e-12
    other.engine.rows.members += 1  # kinds are looked at again
    for sim in (one, other):
        sim.solver = gv.GaussSeidel(iterations=3000, tolerance=1e-11)
        sim.step()
    blocks = [sim.engine.problem.blocks for sim in (one, other)]
    assert blocks[0].ball_start[-1] > 0 and blocks[1].ball_start[-1] == 0
    assert np.allclose(one.velocities, other.velocities, rtol=0, atol=1e-8)


def test_velocities_that_no_contact_changes_may_be_left_alone():
    """Sweeps in a thin gas, which carry on the stretches with contacts only, beside the same with all of them carried on before each."""
    rng = np.random.default_rng(3)
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(gv.Sphere(0.1), np.stack(np.unravel_index(np.arange(8000), (20, 20, 20)), 1), velocities=rng.normal(size=(8000, 3)))
    row = np.column_stack([8.0 + 0.199 * np.arange(12), np.full(12, 9.5), np.full(12, 9.5)])
    scene.add_bodies(gv.Sphere(0.1), row, velocities=np.column_stack([8.0 - row[:, 0], *np.zeros((2, 12))]))
    sim = gv.Simulation(scene, 1e-3, threads=1)

    def begun():
        problem = sim.next_problem()
        problem.warm_start()
        problem.momentum[blocks.MAX_MOMENTUM] = 0.9
        return problem

    problem, sweeps = begun(), 6
    at_work = blocks.stretches_at_work.py_func(problem.blocks, problem.unknowns.velocity.size)
    assert 0 < at_work.sum() < 0.5 * at_work.size
    assert problem.run(blocks.SWEEP, problem.nothing, sweeps) == sweeps
    some = problem.unknowns.velocity.copy()
    problem = begun()
    before = problem.unknowns.velocity.copy()
    for _ in range(sweeps):
        blocks.carry_on(problem.unknowns.velocity, problem.unknowns.last_velocity, problem.momentum)
        problem.run(blocks.SWEEP, problem.nothing)
    assert np.array_equal(some, problem.unknowns.velocity) and not np.array_equal(some, before)
