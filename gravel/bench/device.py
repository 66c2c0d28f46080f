"""The GPU engine beside the CPU engine on one thread: 8 000 settled spheres, 50 iterations, step by step in turns.

Without a GPU (``--device warp:cpu``, the default) its kernels run on one thread of the CPU: then the ratio tells what the code costs, not
what a GPU gains. Both start from the same state; each row is one solver, times are medians.
"""

import numpy as np

from gravel.bench.settled import settled_tile, tiled_scene
from gravel.simulation import Simulation
from gravel.solvers import GaussSeidel, Jacobi

BAR, AIM = 4.0, 2.0
DETECTION = ("bounds", "order", "broad phase", "narrow phase")


def run(quick, threads, device="warp:cpu"):
    tile = settled_tile()
    scene = tiled_scene(tile, 1 if quick else 2, 1)
    for solver in (GaussSeidel(iterations=50, tolerance=0.0), Jacobi(iterations=50, tolerance=0.0)):
        host = Simulation(scene, 1 / 500, solver, threads=1)
        settle(host, 20 if quick else 100)
        other = Simulation(scene, 1 / 500, solver, device=device)
        for name in ("positions", "quaternions", "velocities", "angular_velocities"):
            getattr(other, name)[:] = getattr(host, name)
        settle(other, 5)
        yield compare(host, other, device, 5 if quick else 20)


def settle(simulation, steps):
    for _ in range(steps):
        simulation.step()


def compare(host, other, device, steps):
    """Steps of both in turns, so that both have the machine as it is."""
    seconds = {"cpu": [], device: []}
    for _ in range(steps):
        for name, simulation in (("cpu", host), (device, other)):
            report = simulation.step()
            seconds[name].append([sum(report.seconds.values()), report.seconds["solve"], sum(report.seconds[s] for s in DETECTION)])
    cpu, there = (1e3 * np.median(times, axis=0) for times in seconds.values())
    return {
        "spheres": int(host.movable.sum()),
        "contacts": report.contacts,
        "solver": type(host.solver).__name__,
        "cpu, one thread, ms": float(cpu[0]),
        f"{device}, ms": float(there[0]),
        "ratio": float(there[0] / cpu[0]),
        "of the solve": float(there[1] / cpu[1]),
        "of detection": float(there[2] / cpu[2]),
        "bar": BAR,
        "aim": AIM,
    }
