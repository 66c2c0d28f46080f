"""A step of 8 000 settled spheres alone on the machine and beside processes that are always busy."""

import multiprocessing
import time

import numpy as np

from gravel.bench.settled import settled_pile
from gravel.solvers import GaussSeidel


def run(quick, threads):
    simulation = settled_pile(8000, GaussSeidel(iterations=50, tolerance=0.0), steps=20, threads=threads)
    alone = None
    for busy in (0, 1) if quick else (0, 1, 3):
        others = [multiprocessing.get_context("spawn").Process(target=_spin, daemon=True) for _ in range(busy)]
        for other in others:
            other.start()
        time.sleep(2.0 if busy else 0.0)  # until they have started
        seconds = []
        while sum(seconds) < (1.0 if quick else 6.0):
            begin = time.perf_counter()
            simulation.step()
            seconds.append(time.perf_counter() - begin)
        for other in others:
            other.terminate()
            other.join()
        alone = alone or float(np.mean(seconds))
        yield {"busy processes": busy, "ms a step, mean": 1e3 * float(np.mean(seconds)), "times alone": float(np.mean(seconds)) / alone}


def _spin():
    while True:
        pass
