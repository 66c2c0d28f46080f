"""The first steps on a machine that never compiled: seconds until contacts are there, with an empty cache, then from the cache."""

import os
import subprocess
import sys
import tempfile

SCENES = ("pendulum", "silo", "terrain", "vehicle")
SCRIPT = """
import sys, time
start = time.perf_counter()
import gravel as gv
from gravel import scenes
setup = scenes.build(sys.argv[1])
simulation = gv.Simulation(setup.scene, setup.dt, threads=int(sys.argv[2]), **setup.options)
for _ in range(200):
    if simulation.step().contacts and simulation.steps > 2:
        break
print(time.perf_counter() - start, simulation.steps)
"""


def run(quick, threads):
    for scene in SCENES[:1] if quick else SCENES:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
            first, again = (_start(scene, threads, cache) for _ in range(2))
        yield {"scene": scene, "first run, s": first, "second run, s": again}


def _start(scene, threads, cache):
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", SCRIPT, scene, str(threads)]
    return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()[0])
