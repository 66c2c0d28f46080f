"""Time of a whole step on settled piles, split into detection, assembly and solve (papers' Tables 1 and 3).

50 iterations, all stages; the ten spheres of the first row stop when they have converged. For the boxes and the largest pile a
second row tells how few sweeps with momentum leave no more residual than 50 plain ones, and the time of a step with either.

Paper 000: Tesla C1060; its Table 1 gives the cone problem of a silo (GPU), Table 3 the total of a step in a tank. Peers measured on
2 cores of an AMD EPYC (design page): PhysX 241 ms at 32 000 spheres (2 threads), 1 715 ms at 100 000 (1 thread); Chrono Multicore
BB 766 and 2 765 ms (2 threads).
"""

import resource
import warnings

import numpy as np

from gravel.bench.settled import settled_pile
from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.scenes.setup import box_walls, lattice
from gravel.shapes import Box, Plane, Sphere
from gravel.simulation import Simulation
from gravel.solvers import GaussSeidel

PAPER_TABLE_1 = {16000: 0.57, 32000: 1.00, 64000: 1.97, 128000: 4.55}  # s, cone problem
PAPER_TABLE_3 = {100000: 6.1972, 500000: 29.2565, 1000000: 58.1518}  # s, whole step
DETECTION = ("bounds", "order", "broad phase", "narrow phase", "match")


def run(quick, threads, device="cpu"):
    yield small(threads, device)
    boxes = pile_of_boxes(500 if quick else 8000, threads, device)
    yield measure(boxes, "boxes")
    yield equal_quality(boxes, "boxes")
    boxes = None
    sizes = (4000,) if quick else (16000, 32000, 64000, 100000, 128000, 500000, 1000000)
    for bodies in sizes:
        simulation = None  # one at a time: the peak of memory is that of the largest
        solver, steps = GaussSeidel(iterations=50, tolerance=0.0), 100 if bodies <= 128000 else 20
        simulation = settled_pile(bodies, solver, steps=steps, threads=threads, device=device)
        row = measure(simulation, "spheres")
        if bodies in PAPER_TABLE_1:
            row["paper's GPU, cone problem, ms"] = 1e3 * PAPER_TABLE_1[bodies]
        if bodies in PAPER_TABLE_3:
            row["paper's GPU, whole step, ms"] = 1e3 * PAPER_TABLE_3[bodies]
        yield row
    yield equal_quality(simulation, "spheres")


def equal_quality(simulation, kind):
    """The fewest sweeps with momentum after which the residual, largest and rms, is no larger than after 50 plain ones."""
    plain = GaussSeidel(iterations=50, tolerance=0.0, momentum=0.0)
    wanted, sweeps = plain.run(simulation.next_problem(warm_start=True)), 8
    while sweeps < 50:
        sweeps += 2
        reached = GaussSeidel(iterations=sweeps, tolerance=0.0).run(simulation.next_problem(warm_start=True))
        if reached.residual <= wanted.residual and reached.residual_rms <= wanted.residual_rms:
            break
    times = {}
    for solver in (GaussSeidel(iterations=sweeps, tolerance=0.0), plain):
        simulation.solver = solver
        times[solver] = 1e3 * float(np.median([sum(simulation.step().seconds.values()) for _ in range(5)]))
    fast, slow = times.values()
    return {
        kind: int(simulation.movable.sum()),
        "sweeps for the residual of 50 plain ones": sweeps,
        "ms per step": fast,
        "with 50 plain ones": slow,
        "ratio": fast / slow,
    }


def measure(simulation, kind):
    """The median of five steps, by stage."""
    laps = [simulation.step() for _ in range(5)]
    total = [sum(r.seconds.values()) for r in laps]
    seconds, last = laps[int(np.argsort(total)[len(total) // 2])].seconds, laps[-1]
    solve = seconds["solve"]
    detection = sum(seconds[name] for name in DETECTION)
    return {
        kind: int(simulation.movable.sum()),
        "contacts": last.contacts,
        "ms per step": 1e3 * float(np.median(total)),
        "detection": 1e3 * detection,
        "solve": 1e3 * solve,
        "rest": 1e3 * (sum(seconds.values()) - solve - detection),
        "us per body": 1e6 * float(np.median(total)) / float(simulation.movable.sum()),
        "residual": last.residual,
        "penetration % of radius": 100 * last.max_penetration / 0.05,
        "peak memory GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def pile_of_boxes(bodies, threads, device):
    """Cubes of half extents 0.04 to 0.06 m dropped in ten layers, after two seconds (PhysX: 111 ms at 8 000, one thread)."""
    rng = np.random.default_rng(1)
    stone, half = Material(density=2500, friction=0.5), 0.07 * np.ceil(np.sqrt(bodies / 10))
    scene = Scene()
    scene.add_body(Plane(), material=stone, fixed=True)
    box_walls(scene, half, half, stone)
    places = lattice(bodies, (-half, -half, 0.02), (half, half, 0), 0.14, 0.003, rng)
    sizes = np.repeat(rng.uniform(0.04, 0.06, bodies)[:, None], 3, axis=1)
    tilted = 0.1 * rng.normal(size=(bodies, 4)) + (1, 0, 0, 0)
    scene.add_bodies(Box(sizes), places, stone, quaternions=tilted)
    simulation = Simulation(scene, 1 / 500, GaussSeidel(iterations=50, tolerance=0.0), threads=threads, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tilted corners of some overlap at the start
        for _ in range(1000):
            simulation.step()
    return simulation


def small(threads, device):
    """Ten spheres on a plane, with the default solver."""
    scene = Scene()
    scene.add_body(Plane(), material=Material(), fixed=True)
    scene.add_bodies(Sphere(0.05), [[0.2 * k, 0, 0.05] for k in range(10)], Material())
    simulation = Simulation(scene, 1 / 500, threads=threads, device=device)
    for _ in range(50):
        simulation.step()
    times = [sum(simulation.step().seconds.values()) for _ in range(200)]
    return {"spheres": 10, "contacts": simulation.report.contacts, "ms per step": 1e3 * float(np.median(times))}
