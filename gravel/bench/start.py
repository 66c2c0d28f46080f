"""The first steps on a machine that never compiled: seconds until contacts are there, with an empty cache, then from the cache."""

import contextlib
import os
import signal
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
print(time.perf_counter() - start, simulation.steps, flush=True)
"""


def run(quick, threads):
    for scene in SCENES[:1] if quick else SCENES:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
            first, again = (_start(scene, threads, cache) for _ in range(2))
        yield {"scene": scene, "first run, s": first, "second run, s": again}


def _start(scene, threads, cache):
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", SCRIPT, scene, str(threads)]
    run = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
    said = run.stdout.readline()
    with contextlib.suppress(ProcessLookupError):  # what still compiles for later runs must not disturb the next one
        os.killpg(run.pid, signal.SIGKILL)
    run.communicate()
    return float(said.split()[0])
