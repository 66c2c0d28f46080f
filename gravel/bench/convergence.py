"""Residual over iterations and over seconds of the four solvers on one settled pile, from a cold start."""

import time

from gravel.bench.settled import settled_pile
from gravel.solvers import APGD, BarzilaiBorwein, GaussSeidel, Jacobi

MARKS = (1, 10, 50, 200, 1000)


def run(quick, threads):
    simulation = settled_pile(1000 if quick else 8000, steps=50, precision="double", threads=threads, warm_start=False, recovery=1.0)
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
