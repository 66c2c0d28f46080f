"""Coulomb's law beside the cone model at default settings; residual over sweeps with and without momentum, in flow and at rest; then
that of all solvers from a cold start.

The first rows: two beds, one of each friction model, fall, flow and settle side by side, step by step; iterations and time of the
solver in a step, how many steps converged, and the ratio of the times. The beds go different ways: the cone model's is looser, since
what slides is lifted. So every tenth problem of the Coulomb bed is solved by both laws, from the same start: the ratios of the iterations
and of the seconds that these take.

The next: 8 000 spheres that fall into a bed, the same while they settle and at rest, from the last step's impulses, single
precision; seconds and sweeps until the residual is 1e-3 m/s, and until it is what 50 plain sweeps leave.
"""

import math
import time
import warnings

import numpy as np

from gravel.bench.settled import settled_pile
from gravel.engine import finest_precision
from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.scenes.setup import box_walls
from gravel.shapes import Box, Plane, Sphere
from gravel.simulation import Simulation
from gravel.solvers import APGD, BarzilaiBorwein, GaussSeidel, Goal, Jacobi

MARKS = (1, 10, 50, 200, 1000)
STATES = (("falling", 150), ("settling", 300), ("settled", 1500))  # and steps of 1 ms until then
GOOD = 1e-3  # m/s
SAMPLED = 10  # steps between two problems that both laws solve
PHASES = (("falling", 150), ("flowing", 400), ("settled", 700))  # of the beds at default settings, and steps of 2 ms until then


def run(quick, threads, device="cpu"):
    for shape, bodies, frictions in (("spheres", 3000, (0.3, 0.5, 1.0, 3.0, 10.0)), ("boxes", 1500, (0.3, 0.5))):
        for friction in frictions[:1] if quick else frictions:
            yield from side_by_side(shape, 300 if quick else bodies, friction, threads, device)
    for friction in ("cone", "coulomb"):
        simulation, done = falling_bed(1000 if quick else 8000, friction, threads, device), 0
        for state, steps in STATES[:1] if quick else STATES:
            for _ in range(steps - done):
                simulation.step()
            done = steps
            yield from sweeps(simulation, state)
    yield from cold_start(quick, threads, device)


def side_by_side(shape, bodies, friction, threads, device):
    """Rows of both friction models at default settings, one for each phase."""
    models = ("cone", "coulomb")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the gaps and overlaps that these beds are meant to have
        pair, done = [wild_bed(shape, bodies, friction, model, threads, device) for model in models], 0
        for phase, steps in PHASES:
            reports, twins = [], []
            for step in range(done, steps):
                if step % SAMPLED == SAMPLED - 1:  # not in the first step, where kernels compile
                    twins.append([solved_by(model, pair[1]) for model in models])
                reports.append([simulation.step() for simulation in pair])
            done = steps
            row = {"shape": shape, "bodies": bodies, "friction coefficient": friction, "state": phase}
            for model, taken in zip(models, zip(*reports)):
                row[f"{model}: iterations"] = float(np.mean([report.iterations for report in taken]))
                row[f"{model}: converged, %"] = 100 * float(np.mean([report.converged for report in taken]))
                row[f"{model}: solver, ms"] = 1e3 * float(np.mean([report.seconds["solve"] for report in taken]))
            (cone, cone_seconds), (coulomb, coulomb_seconds) = np.mean(twins, axis=0)
            row["ratio of times"] = row["coulomb: solver, ms"] / row["cone: solver, ms"]
            row["same problems: cone, iterations"] = cone
            yield {**row, "ratio of iterations": coulomb / cone, "ratio of seconds": coulomb_seconds / cone_seconds}


def solved_by(model, simulation):
    """(iterations, seconds) that a friction law takes for the next step of a Coulomb bed."""
    simulation.friction = model
    problem, goal = simulation.next_problem(True), Goal(simulation.tolerance, simulation.rms_tolerance)
    start = time.perf_counter()
    outcome = simulation.solver.iterate(problem, goal, aim=simulation.aim)
    seconds = time.perf_counter() - start
    simulation.friction = "coulomb"
    return outcome.iterations, seconds


def wild_bed(shape, bodies, friction, model, threads, device):
    """Balls or boxes of many sizes, some layers wide and many high, that are let fall between walls."""
    rng, size = np.random.default_rng(11), 0.1 * math.sqrt(bodies / 10)
    spacing, stone, scene, k = 0.125 if shape == "spheres" else 0.15, Material(friction=friction), Scene(), np.arange(bodies)
    scene.add_body(Plane((0, 0, 1)), material=stone, fixed=True)
    box_walls(scene, 0.5 * size, 0.5 * size, stone)
    side = int(size / spacing)
    places = np.stack([k % side - (side - 1) / 2, k // side % side - (side - 1) / 2, k // side**2 + 0.55], 1) * spacing
    places += rng.uniform(-0.002, 0.002, places.shape)
    if shape == "spheres":
        scene.add_bodies(Sphere(0.05 * rng.uniform(0.8, 1.2, bodies)), places, stone)
    else:
        turns = rng.normal(size=(bodies, 4))
        turns /= np.linalg.norm(turns, axis=1, keepdims=True)
        scene.add_bodies(Box(0.04 * rng.uniform(0.8, 1.2, (bodies, 3))), places, stone, quaternions=turns)
    return Simulation(scene, 1 / 500, friction=model, threads=threads, device=device)


def falling_bed(bodies, friction, threads, device):
    """Balls on a loose lattice above a floor, between walls."""
    radius, side = 0.01, 20
    k, scene, stone = np.arange(bodies), Scene(), Material(friction=0.5)
    scene.add_body(Plane((0, 0, 1)), material=stone, fixed=True)
    box_walls(scene, 1.1 * radius * side, 1.1 * radius * side, stone)
    places = np.stack([k % side - 9.5, k // side % side - 9.5, k // side**2 + 0.5], 1) * 2.2 * radius
    scene.add_bodies(Sphere(radius), places + np.random.default_rng(1).uniform(-0.05 * radius, 0.05 * radius, (bodies, 3)), stone)
    return Simulation(scene, 1e-3, GaussSeidel(iterations=100), friction=friction, threads=threads, device=device)


def sweeps(simulation, state):
    """Rows of plain sweeps, sweeps with momentum, and APGD, on the next step's problem."""
    plain = GaussSeidel(iterations=1000, momentum=0.0).run(simulation.next_problem(True), history=True).history
    for solver in (GaussSeidel(iterations=1000, momentum=0.0), GaussSeidel(iterations=1000), APGD(iterations=200)):
        history = solver.run(simulation.next_problem(True), history=True).history
        yield {
            "state": state,
            "friction": simulation.friction,
            "solver": solver.describe(),
            "contacts": simulation.report.contacts,
            "residual after 50": history[50],
            "100": history[100],
            "200": history[min(200, len(history) - 1)],
            "iterations to 1e-3 m/s": _first(history, GOOD),
            "to what 50 plain ones leave": _first(history, plain[50]),
            "seconds to 1e-3 m/s": _seconds(simulation, solver, GOOD),
        }


def _first(history, residual):
    """The first iteration from which on the residual is at most this."""
    above = np.flatnonzero(np.array(history) > residual)
    return "more" if len(above) and above[-1] == len(history) - 1 else int(above[-1] + 1) if len(above) else 0


def _seconds(simulation, solver, tolerance):
    best = np.inf
    for _ in range(3):
        problem, start = simulation.next_problem(True), time.perf_counter()
        solver.iterate(problem, Goal(tolerance))
        best = min(best, time.perf_counter() - start)
    return best


def cold_start(quick, threads, device):
    options = {"precision": finest_precision(device), "threads": threads, "device": device, "warm_start": False, "recovery": 1.0}
    simulation = settled_pile(1000 if quick else 8000, steps=50, **options)
    for solver in (GaussSeidel, Jacobi, APGD, BarzilaiBorwein):
        for iterations in MARKS[:3] if quick else MARKS:
            problem = simulation.next_problem()
            start = time.perf_counter()
            outcome = solver(iterations=iterations).run(problem)
            seconds = time.perf_counter() - start
            yield {
                "solver": solver.__name__,
                "contacts": problem.contacts,
                "iterations": iterations,
                "seconds": seconds,
                "residual": outcome.residual,
                "rms": outcome.residual_rms,
            }
