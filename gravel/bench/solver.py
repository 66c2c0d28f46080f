"""ns per contact and iteration of each solver on a settled pile, against the memory's speed measured in the same run.

A sweep moves 88 bytes per contact in single precision (14 constants, 3 impulses read and written, 2 body numbers); at the
triad's speed that alone would take the time in the column "memory limit".
"""

import time

from gravel.bench.settled import settled_pile
from gravel.bench.triad import triad
from gravel.host.threads import use_threads
from gravel.solvers import APGD, BarzilaiBorwein, GaussSeidel, Jacobi

BYTES = 4 * (14 + 6 + 2)


def run(quick, threads):
    sizes = (4000,) if quick else (32000, 256000)
    for bodies in sizes:
        for precision in ("single", "double"):
            simulation = settled_pile(bodies, steps=30, precision=precision, threads=threads)
            use_threads(threads)
            bandwidth = triad()
            scale = 2 if precision == "double" else 1
            for solver in (GaussSeidel, Jacobi, APGD, BarzilaiBorwein):
                count = 20
                seconds = min(_solve(simulation, solver(iterations=count)) for _ in range(3)) / count
                contacts = simulation.next_problem().contacts
                yield {
                    "solver": solver.__name__,
                    "precision": precision,
                    "bodies": int(simulation.movable.sum()),
                    "contacts": contacts,
                    "ns per contact and iteration": 1e9 * seconds / contacts,
                    "triad GB/s": bandwidth / 1e9,
                    "memory limit": 1e9 * BYTES * scale / bandwidth,
                }


def _solve(simulation, solver):
    """Seconds of the solver's iterations alone, on the next step's problem from a cold start."""
    problem = simulation.next_problem()
    problem.warm_start()
    start = time.perf_counter()
    if isinstance(solver, GaussSeidel):
        problem.sweep(solver.iterations, solver.momentum, 0.0)
    else:
        solver.run(problem)
    return time.perf_counter() - start
