"""Result files of settled piles: what part of a run is writing, how large a frame is, and what reading frame by frame takes.

A run of 20 steps with a frame every 10, as a run of 1 000 steps with 100 frames has; then frames up to 100 without steps between them.
Reading is done by a process of its own, which tells the most memory it had; importing gravel alone is told beside it. The aim (1 M bodies,
100 frames): writing is less than a tenth of the run's time, and reading never loads the whole.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

from gravel.bench.settled import settled_pile
from gravel.io.outputs import check_room
from gravel.io.vtkhdf import SPARE_BYTES, ResultWriter
from gravel.solvers import GaussSeidel

STEPS_A_FRAME = 10
BODY_BYTES = 56  # of a frame, about
READ = """
import json, resource, sys, time
import gravel as gv

def most():
    try:  # of this program alone: the other way counts the process that started it
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

before, seconds = most(), []
with gv.open_result(sys.argv[1]) as result:
    for k in range(len(result)):
        begun = time.perf_counter()
        result.frame(k)
        seconds.append(time.perf_counter() - begun)
print(json.dumps([seconds, before, most()]))
"""


def run(quick, threads):
    frames = 10 if quick else 100
    bodies = 4000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "pile.vtkhdf"
        check_room(path, SPARE_BYTES + BODY_BYTES * bodies * frames)
        yield write(settled_pile(bodies, GaussSeidel(), steps=20, threads=threads), path, frames)
        yield read(path)


def write(simulation, path, frames):
    """A run with frames, and more frames after it."""
    laps, until = [], simulation.time + 2 * STEPS_A_FRAME * simulation.dt
    observers = [lambda s: laps.append(sum(s.report.seconds.values()))]
    begun = time.perf_counter()
    report = simulation.run(until, path, STEPS_A_FRAME * simulation.dt, observers=observers)
    whole, stepping, size = time.perf_counter() - begun, sum(laps), path.stat().st_size
    seconds = []
    with ResultWriter(path, simulation, keep=3) as writer:
        while writer.common.steps["Values"].shape[0] < frames:
            begun = time.perf_counter()
            writer.write_frame()
            seconds.append(time.perf_counter() - begun)
    per_step, per_frame = float(np.median(laps)), float(np.mean(seconds))
    return {
        "spheres": int(simulation.movable.sum()),
        "ms per step": 1e3 * per_step,
        f"% of a run of {report.steps} steps beside stepping": 100 * (whole - stepping) / whole,
        "ms per frame": 1e3 * per_frame,
        f"% of {STEPS_A_FRAME} steps": 100 * per_frame / (STEPS_A_FRAME * per_step),
        "MB of the first frames": size / 1e6,
        "frames": frames,
        "MB a frame": (path.stat().st_size - size) / 1e6 / max(len(seconds), 1),
        "GB": path.stat().st_size / 1e9,
    }


def read(path):
    """All frames, one by one, by a process of its own."""
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True)
    seconds, before, most = json.loads(done.stdout)
    return {
        "reading, ms per frame": 1e3 * float(np.mean(seconds)),
        "at worst": 1e3 * max(seconds),
        "peak memory GB": most / 1e6,
        "of that before reading": before / 1e6,
        "GB of the file": path.stat().st_size / 1e9,
    }
