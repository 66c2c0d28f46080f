"""FFD next to Gauss-Seidel on a pile that lies still: how far it creeps and sinks, its residual, and seconds per step.

Both start from the same pile, settled by Gauss-Seidel, and take steps of 0.5 ms with recovery 0.1 for half a second.
"""

import time

import numpy as np

from gravel.bench.settled import settled_pile
from gravel.solvers import FFD, GaussSeidel

SECONDS = 0.5


def run(quick, threads):
    for bodies in (300,) if quick else (1000, 4000):
        settled = settled_pile(bodies, threads=threads)
        for solver in (FFD(), GaussSeidel()):
            simulation = settled.copy()
            simulation.solver, simulation.dt, simulation.recovery = solver, 5e-4, 0.1
            yield _row(simulation)


def _row(simulation):
    simulation.step()  # compiles
    grains = simulation.movable
    start, begun, penetration = simulation.positions[grains].copy(), time.perf_counter(), 0.0
    steps = round(SECONDS / simulation.dt)
    for _ in range(steps):
        penetration = max(penetration, simulation.step().max_penetration)
    seconds = time.perf_counter() - begun
    way = np.linalg.norm(simulation.positions[grains] - start, axis=1)
    speed = np.linalg.norm(simulation.velocities[grains], axis=1)
    return {
        "solver": type(simulation.solver).__name__,
        "bodies": int(grains.sum()),
        "contacts": simulation.report.contacts,
        "creep mm/s": 1e3 * float(way.mean()) / SECONDS,
        "sinks mm/s": 1e3 * float((start - simulation.positions[grains])[:, 2].mean()) / SECONDS,
        "jitter mm/s": 1e3 * float(speed.mean()),
        "penetration % of radius": 100 * penetration / simulation.typical_radius,
        "residual mm/s": 1e3 * simulation.report.residual,
        "ms per step": 1e3 * seconds / steps,
    }
