"""Threads: two forms of each kernel, fewer threads on a crowded machine, and kernels that are compiled ahead."""

import pathlib

import numpy as np
import pytest

import gravel as gv
from gravel.cpu import precompile
from gravel.host import threads


class Counter(threads.AdaptiveThreadCount):
    """A crowd whose clock and counters are set by hand."""

    def __init__(self, monkeypatch):
        self.clock, self.count, self.cores = 0.0, 0, 0.0
        monkeypatch.setattr(threads.time, "perf_counter", lambda: self.clock)
        super().__init__()

    def _usage(self):
        return self.count, self.cores

    def after(self, seconds, rate, n=8, had=0.5):
        """Threads after so long a time in which cores were taken away at a rate per second, and our threads had the share ``had`` of
        those they could use; steps of 50 ms."""
        for _ in range(round(seconds / 0.05)):
            self.clock += 0.05
            self.count += round(0.05 * rate)
            self.cores += 0.05 * had * n * self.share
            used = self.threads(n)
        return used


def test_a_quiet_machine_gives_all_threads(monkeypatch):
    """As measured alone: the system's own work takes a core from each thread 16 times a second."""
    crowd = Counter(monkeypatch)
    assert all(crowd.after(0.05, 20.0 * round(2 * k % 13), had=0.97) == 8 for k in range(400))


def test_steps_with_serial_parts_keep_their_threads(monkeypatch):
    """Files and Python use one core of eight, and nobody takes it away."""
    crowd = Counter(monkeypatch)
    assert all(crowd.after(0.05, 100.0, had=0.2) == 8 for _ in range(200))


def test_a_crowded_machine_gives_fewer_and_all_again_when_it_is_quiet(monkeypatch):
    crowd = Counter(monkeypatch)
    assert crowd.after(0.3, 500.0) == 4
    assert crowd.after(0.25, 500.0) == 2
    assert crowd.after(0.25, 500.0) == 1
    assert crowd.after(0.3, 500.0) == 1
    assert crowd.after(4.0, 0.0, had=1.0) == 8


def test_every_try_that_fails_makes_the_next_one_later(monkeypatch):
    crowd, tries, used = Counter(monkeypatch), [], 1
    for k in range(4000):  # the machine is crowded whenever more than one thread is used
        now = crowd.after(0.05, 500.0 if used > 1 or k == 0 else 0.0, n=2)
        if now == 2 and used == 1 and k > 0:
            tries.append(crowd.clock)
        used = now
    waits = np.diff(tries)
    assert len(waits) >= 5
    assert (waits[1:] >= waits[:-1] - 0.3).all()
    assert waits[-1] > 25.0


def test_one_thread_and_several_run_different_forms_with_the_same_bits():
    def run(n):
        scene = gv.Scene()
        scene.add_body(gv.Plane(), fixed=True)
        places = np.stack(np.unravel_index(np.arange(2000), (20, 10, 10)), axis=1) * 0.021 + (0, 0, 0.011)
        scene.add_bodies(gv.Sphere(0.01), places + np.random.default_rng(0).uniform(-1e-4, 1e-4, (2000, 3)))
        sim = gv.Simulation(scene, 1e-3, gv.GaussSeidel(iterations=20), threads=n)
        sim.engine.warm_up = lambda *_: lambda: None  # kernels with threads are used at once
        forms = set()
        for _ in range(30):
            sim.step()
            forms.add(threads.Kernel.one_thread)
        return sim.state_hash(), forms

    if threads.numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("one core: no threads to compare")
    (alone, one), (threaded, several) = run(1), run(2)
    assert one == {True} and several == {False}
    assert alone == threaded


@pytest.mark.parametrize(
    "features, first, last",
    [
        ("single-ball00000-balls-plain-dead-grid-free-midpoint", "drift", "store_impulses"),
        ("double-box00000-any-plain-dead-brute-joints-midpoint", "find_box_contacts", "reactions"),
        ("single-any00010-both-rolling-bouncy-bvh-joints-midpoint", "list_shape_pairs", "reactions"),
    ],
)
def test_the_dry_step_meets_all_kernels(features, first, last):
    """Of a scene with joints those of the contacts come first, that is: they are compiled last."""
    for threaded in (False, True):
        names = [kernel.py_func.__name__.removesuffix("_serial") for kernel, _ in precompile._dry_step(features, threaded)]
        assert names[-1] == last
        assert len(names) == len(set(names)) or "find_rows" in names
        needed = {"find_bounds", "make_proxies", "add_gravity", "plan_blocks", "match_contacts"}
        assert needed <= set(names)
        assert first in names
        sweeps = [name for name in names if name.startswith("run_sweep")]
        assert len(sweeps) == 1 and sweeps[0].endswith("parallel") == threaded
    assert isinstance(precompile.bounds.find_bounds, threads.Kernel)  # nothing is left of the dry step


def test_what_is_compiled_is_told(monkeypatch, tmp_path):
    told = []
    monkeypatch.setattr(precompile, "marker", lambda features: pathlib.Path(tmp_path / "x.compiled"))
    (tmp_path / "x.plan").write_text("7")
    stop = precompile.watch(told.append, "any")
    kernel = threads.njit(lambda x: x + 1)
    kernel(1)
    stop()
    threads.njit(lambda x: x + 2)(1)
    assert told == ["compiling <lambda>, 1 of at most 7, for this and later runs"]


def test_machines_that_touch_nothing_need_no_kernels_of_contacts(monkeypatch):
    """No pairs: no narrow phase, no assembly, no sweep."""

    def never(*arguments):
        raise AssertionError("a kernel for contacts was called")

    scene = gv.Scene()
    rod = scene.add_body(gv.Box((0.02, 0.02, 0.5)), (0, 0, -0.5))
    scene.add_joint(gv.Revolute(None, rod, (0, 0, 0), (0, 1, 0)))
    scene.add_body(gv.Box((0.1, 0.1, 0.1)), (5, 0, 0))
    sim = gv.Simulation(scene, 1e-3, precision="double")
    from gravel.cpu.solve import assemble, block_problem, match, tiles

    monkeypatch.setattr(sim.engine.detector, "kernel", never, raising=False)
    for module, names in ((match, ("match_contacts", "store_impulses")), (assemble, ("assemble_any",)), (tiles, ("plan_blocks",))):
        for name in names:
            monkeypatch.setattr(module, name, never)
    monkeypatch.setattr(block_problem, "kernel", never)
    for _ in range(10):
        assert sim.step().contacts == 0
    assert len(sim.contacts) == 0
