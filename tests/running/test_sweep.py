"""Processes beside and after a run: plain multiprocessing goes on working, and a sweep gives the numbers of a loop."""

import importlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import gravel as gv

FRICTIONS = [0.05, 0.2, 0.4, 0.8]
HERE = str(pathlib.Path(__file__).parent)


def slide(friction):
    """m, how far a box slides on a slope, and the state's fingerprint."""
    scene = gv.Scene(gravity=(4.0, 0, -9.0))
    rough = gv.Material(friction=friction)
    scene.add_body(gv.Plane(), material=rough, fixed=True)
    box = scene.add_body(gv.Box((0.2, 0.2, 0.05)), (0, 0, 0.05), rough)
    sim = gv.Simulation(scene, dt=0.01)
    for _ in range(20):
        sim.step()
    return float(sim.positions[box, 0]), sim.state_hash()


def threads_of(_):
    return gv.Simulation(_one(), dt=0.01).threads, os.getpid()


def _one():
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1), (0, 0, 1))
    return scene


def whole(value):
    return value


def fail_at_two(value):
    if value == 2:
        raise FloatingPointError("two is too many")
    return 10 * value


def leave(value):
    sys.exit(value)


def die_at_two(value):
    if value == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return 10 * value


def quit_at_once(value):
    os._exit(7)


def unpicklable(value):
    return lambda: value


class Odd(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def raise_odd(value):
    raise Odd(1, 2)


@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_a_value_that_fails_is_nan_with_its_reason(start):
    with pytest.warns(UserWarning, match=r"value 2 \(number 1\) failed: FloatingPointError: two is too many; the result is NaN there"):
        results = gv.sweep(fail_at_two, [1, 2, 3, 4], 2, False, start)
    assert results[0] == 10 and results[2:] == [30, 40] and np.isnan(results[1])
    np.testing.assert_array_equal(np.array(results, float), [10, np.nan, 30, 40])
    assert results[1].reason == "FloatingPointError: two is too many" and isinstance(results[1].error, FloatingPointError)
    assert repr(results[1]) == "nan (failed: FloatingPointError: two is too many)"


def test_a_value_whose_process_dies_is_nan_with_its_reason():
    with pytest.warns(UserWarning, match="killed by SIGKILL"):
        results = gv.sweep(die_at_two, [1, 2, 3, 4], 1, False, "fork")
    assert "killed by SIGKILL" in results[1].reason and [results[k] for k in (0, 2, 3)] == [10, 30, 40]


def test_what_is_done_about_failures_is_nan_or_raise():
    with pytest.raises(ValueError, match="failures must be one of 'nan', 'raise', not 'ignore'"):
        gv.sweep(whole, [1], failures="ignore")


@pytest.fixture(scope="module")
def loop():
    """The plain loop: after it, this process has used kernels."""
    return [slide(friction) for friction in FRICTIONS]


def run_script(text, *words, timeout=120, **options):
    """A script in a process of its own, so that a hang is seen; its files come from this folder."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([HERE, os.environ.get("PYTHONPATH", "")])}
    environment.pop("NUMBA_NUM_THREADS", None)
    command = [sys.executable, *(["-c", text] if "\n" in text else [text]), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment, **options)


# --- plain multiprocessing after a run
AFTER_A_RUN = """
import multiprocessing, os, sys
from concurrent.futures import ProcessPoolExecutor
import numpy as np
import gravel as gv

def balls(phase, threads):
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    places = np.stack(np.unravel_index(np.arange(1600), (40, 40, 1)), axis=1) * 0.0205 + (0, 0, 0.0099)
    scene.add_bodies(gv.Sphere(0.01), places)
    sim = gv.Simulation(scene, 1e-3, gv.GaussSeidel(iterations=5), threads=threads, broad_phase=phase)
    sim.engine.warm_up = lambda *_: lambda: None  # kernels with threads are used at once
    return sim

def step(sim):
    sim.step()
    return sim.state_hash()

def fresh(phase):
    return step(balls(phase, None))

def inherited(phase):
    return step(SIMS[phase])

LONG = 120  # s, after which it hangs
threads = int(sys.argv[1])
SIMS = {phase: balls(phase, threads) for phase in sys.argv[2:]}
first = {phase: step(sim) for phase, sim in SIMS.items()}
fork = multiprocessing.get_context("fork")
with fork.Pool(2) as pool:
    assert pool.map_async(fresh, SIMS).get(LONG) == list(first.values())
    again = pool.map_async(inherited, SIMS).get(LONG)
with ProcessPoolExecutor(2, mp_context=fork) as pool:
    assert list(pool.map(fresh, SIMS, timeout=LONG)) == list(first.values())
assert {phase: step(sim) for phase, sim in SIMS.items()} == dict(zip(SIMS, again))  # the parent goes on with its threads
from gravel.host.threads import Kernel
print("threads" if not Kernel.one_thread else "one thread")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("threads, form", [("1", "one thread"), ("2", "threads")])
def test_forked_pools_work_after_a_run(threads, form):
    """With the tree too: its kernels had threads inside, whatever was asked for."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core: no threads")
    done = run_script(AFTER_A_RUN, threads, "grid", "bvh", timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == form and "OpenMP" not in done.stderr


# --- sweeps
@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_a_sweep_gives_the_numbers_of_a_loop(loop, start):
    assert gv.sweep(slide, FRICTIONS, processes=2, progress=False, start=start) == loop
    far = [distance for distance, _ in loop]
    a, t = 4.0 - np.array(FRICTIONS) * 9.0, 0.2  # m/s2, s: what is left of the pull, where it slides
    assert np.allclose(far, np.maximum(0.5 * a * t**2, 0.0), atol=3e-3)
    assert sorted(far, reverse=True) == far


def test_processes_and_threads_share_the_cores(monkeypatch):
    module = importlib.import_module("gravel.running.sweep")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    monkeypatch.setattr(module, "available_cores", lambda: 2)
    monkeypatch.setattr(module, "checked_threads", lambda n: 2)
    assert {threads for threads, _ in gv.sweep(threads_of, range(4), 2, False, "fork")} == {1}
    alone = gv.sweep(threads_of, range(3), 1, False, "fork")
    assert {threads for threads, _ in alone} == {min(2, len(os.sched_getaffinity(0)))}
    assert len({process for _, process in alone}) == 1 and alone[0][1] != os.getpid()
    assert "OMP_NUM_THREADS" not in os.environ


def test_values_are_passed_on_as_they_are_and_in_order():
    values = [(1, 2), [3], "four", None, 5.0, {6: 7}]
    assert gv.sweep(whole, values, 2, False, "fork") == values
    assert gv.sweep(whole, iter(values), 1, False, "spawn") == values
    assert gv.sweep(whole, [], progress=False) == []
    seen = {}
    assert gv.sweep(lambda x: x + len(seen), [1, 2], progress=False, start="fork") == [1, 2]


@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_one_value_that_raises_lets_the_others_finish(start):
    with pytest.raises(gv.SweepError, match=r"^value 2 \(number 1\) failed: FloatingPointError: two is too many$") as caught:
        gv.sweep(fail_at_two, [1, 2, 3, 4], 2, False, start, failures="raise")
    error = caught.value
    assert error.results == [10, None, 30, 40] and list(error.failures) == [1]
    assert isinstance(error.__cause__, FloatingPointError) and error.failures[1] is error.__cause__
    assert "in fail_at_two" in str(error.__cause__.__cause__)  # where it was, in the worker


def test_a_worker_that_dies_is_told_of_and_replaced():
    with pytest.raises(gv.SweepError, match=r"^value 2 \(number 1\) failed: its process was killed by SIGKILL") as caught:
        gv.sweep(die_at_two, [1, 2, 3, 4], 1, False, "fork", failures="raise")
    assert caught.value.results == [10, None, 30, 40]
    with pytest.raises(gv.SweepError, match="exit code 7; 2 of 2 values failed"):
        gv.sweep(quit_at_once, [1, 2], 2, False, "fork")
    with pytest.raises(gv.SweepError, match="SystemExit: 3"):
        gv.sweep(leave, [3], 2, False, "fork")


def test_what_cannot_come_back_is_told():
    with pytest.raises(gv.SweepError, match="the result cannot be passed back"):
        gv.sweep(unpicklable, [1], 1, False, "fork")
    with pytest.raises(gv.SweepError, match="1 and 2"):  # an exception that pickle cannot make again
        gv.sweep(raise_odd, [1], 1, False, "fork")


@pytest.mark.parametrize(
    "arguments, kind, said",
    [
        ((3, [1]), TypeError, "function must be a function of one value, not 3"),
        ((whole, [1], 0), ValueError, "processes must be at least 1"),
        ((whole, [1], 1.5), TypeError, "processes must be a whole number"),
        ((whole, [1], 1, False, "spoon"), ValueError, "start must be one of 'spawn', 'fork', not 'spoon'"),
        ((lambda x: x, [1], 1, False), ValueError, "function must stand at the top of a file that can be imported"),
        ((whole, [lambda: 1], 1, False), ValueError, "values must be such that pickle can pass them on"),
    ],
)
def test_bad_arguments_are_refused(arguments, kind, said):
    with pytest.raises(kind, match=said):
        gv.sweep(*arguments)


def test_a_function_of_an_interactive_session_is_refused_in_one_sentence():
    script = "import gravel as gv\ndef f(x): return x\ngv.sweep(f, [1, 2], progress=False)\n"
    done = run_script(script)
    assert done.stderr.strip().splitlines()[-1].startswith("ValueError: function must stand at the top of a file that can be imported")
    assert "start='fork'" in done.stderr


def test_a_script_without_a_guard_is_told_so(tmp_path):
    (tmp_path / "bare.py").write_text("import gravel as gv\ndef f(x): return x\nprint(gv.sweep(f, [1, 2], 1, False))\n")
    done = run_script(str(tmp_path / "bare.py"))
    assert done.returncode == 1 and 'under `if __name__ == "__main__":`' in done.stderr.strip().splitlines()[-1]


def test_a_sweep_within_a_sweep_is_refused():
    with pytest.raises(gv.SweepError, match="must not be called within another sweep"):
        gv.sweep(lambda x: gv.sweep(whole, [x], progress=False, start="fork"), [1], progress=False, start="fork")


INTERRUPTED = """
import os, time
import gravel as gv

def nap(x):
    os.write(1, b"napping\\n")
    time.sleep(100)

try:
    gv.sweep(nap, range(4), 2, False, "fork")
except KeyboardInterrupt:
    import multiprocessing
    print("ended", len(multiprocessing.active_children()))
"""


@pytest.mark.parametrize("whom", ["all", "parent"])
def test_ctrl_c_ends_all(whom):
    """From a keyboard it reaches all processes, from elsewhere perhaps the parent only."""
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True, start_new_session=True)
    for _ in range(2):
        assert process.stdout.readline() == "napping\n"
    begun = time.monotonic()
    (os.killpg if whom == "all" else os.kill)(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out == "ended 0\n" and process.returncode == 0
    assert time.monotonic() - begun < 50.0  # not after the naps
