"""Ctrl-C at bad moments: state, count and report belong together, frames are whole, and the run stops."""

import signal
import subprocess
import sys

import numpy as np
import pytest

import gravel as gv
from gravel.host import threads
from gravel.io import blocks
from gravel.io.vtkhdf import read_frame, read_reports
from gravel.running.run import run

G, H = 9.81, 0.01


def falling():
    scene = gv.Scene()
    ball = scene.add_body(gv.Sphere(0.1), (0, 0, 0))
    return gv.Simulation(scene, H, precision="double", bounds=((-1e9, -1e9, -1e9), (1e9, 1e9, 1e9))), ball


def height_after(steps):
    """Of a ball that falls from rest, by the step's own rule: v += g h, then x += v h."""
    return -G * (H * steps) ** 2 / 2


def interrupt_in(monkeypatch, owner, name, at):
    """SIGINT comes while the function runs for the at-th time, after its work is done."""
    calls, function = [], getattr(owner, name)

    def interrupted(*arguments, **options):
        result = function(*arguments, **options)
        calls.append(name)
        if len(calls) == at:
            signal.raise_signal(signal.SIGINT)
        return result

    monkeypatch.setattr(owner, name, interrupted)


@pytest.mark.parametrize("place", ["commit", "break_overloaded", "refresh"])
def test_an_interrupt_between_the_commit_and_the_count_waits(place, monkeypatch):
    sim, ball = falling()
    owner = {"commit": sim.engine, "break_overloaded": sim._machines, "refresh": sim.views}[place]
    interrupt_in(monkeypatch, owner, place, 3)
    with pytest.raises(KeyboardInterrupt):
        for _ in range(10):
            sim.step()
    assert sim.steps == 3 and sim.report.step == 3
    assert sim.positions[ball, 2] == pytest.approx(height_after(3), rel=1e-12)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    sim.step()
    assert sim.positions[ball, 2] == pytest.approx(height_after(4), rel=1e-12)


def test_an_interrupt_before_the_commit_leaves_the_last_state(monkeypatch):
    sim, ball = falling()
    interrupt_in(monkeypatch, sim.engine, "match", 3)
    with pytest.raises(KeyboardInterrupt):
        for _ in range(10):
            sim.step()
    assert sim.steps == 2 and sim.positions[ball, 2] == pytest.approx(height_after(2), rel=1e-12)


@pytest.mark.parametrize("at", [2, 5])
def test_a_run_that_is_interrupted_while_it_writes_a_frame_stops_after_that_step(at, monkeypatch, tmp_path):
    sim, ball = falling()
    interrupt_in(monkeypatch, blocks, "append", 10 * at)
    report = run(sim, 1.0, tmp_path / "r.vtkhdf", H, checkpoint=tmp_path / "c.h5", interrupt="return")
    assert report.interrupted and report.steps == sim.steps < 100
    frame = read_frame(tmp_path / "r.vtkhdf")
    assert frame["time"] == pytest.approx(sim.time)
    assert frame["position"][0, 2] == pytest.approx(height_after(sim.steps), rel=1e-5)
    assert len(read_reports(tmp_path / "r.vtkhdf")["time"]) == sim.steps
    assert gv.Simulation.load(tmp_path / "c.h5").state_hash() == sim.state_hash()


def test_an_interrupt_of_a_run_ends_the_script_after_its_files_are_whole(monkeypatch, tmp_path):
    sim, ball = falling()
    interrupt_in(monkeypatch, sim.engine, "commit", 4)
    with pytest.raises(KeyboardInterrupt, match=r"t = 0\.04 s interrupted after 4 steps"):
        sim.run(until=1.0, save=tmp_path / "r.vtkhdf", every=H, checkpoint=tmp_path / "c.h5")
    assert sim.steps == 4 and read_frame(tmp_path / "r.vtkhdf")["time"] == pytest.approx(4 * H)
    assert gv.Simulation.load(tmp_path / "c.h5").state_hash() == sim.state_hash()
    assert run(sim, 0.06).steps == 2 and sim.positions[ball, 2] == pytest.approx(height_after(6), rel=1e-9)


def test_a_script_does_not_go_on_after_an_interrupt(tmp_path):
    script = """
import signal, gravel as gv
scene = gv.Scene()
scene.add_body(gv.Sphere(0.1))
sim = gv.Simulation(scene, 0.01)
sim.run(1.0, "r.vtkhdf", observers=[lambda s: signal.raise_signal(signal.SIGINT) if s.steps == 3 else None])
print("half done")
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode != 0 and done.stdout == "" and "KeyboardInterrupt: t = 0.03 s interrupted after 3 steps" in done.stderr
    with gv.open_result(tmp_path / "r.vtkhdf") as result:
        assert result.times[-1] == pytest.approx(0.03)


def test_what_an_interrupt_does_is_raise_or_return():
    with pytest.raises(ValueError, match="interrupt must be one of 'raise', 'return', not 'stop'"):
        run(falling()[0], 1.0, interrupt="stop")


def test_another_handler_is_left_alone(monkeypatch):
    sim, _ = falling()
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(sim.steps))
    try:
        interrupt_in(monkeypatch, sim.engine, "commit", 2)
        for _ in range(4):
            sim.step()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [1] and sim.steps == 4


def test_steps_in_a_thread_are_not_concerned():
    import threading

    sim, ball = falling()
    thread = threading.Thread(target=lambda: [sim.step() for _ in range(3)])
    thread.start()
    thread.join()
    assert sim.steps == 3 and np.isfinite(sim.positions).all()


def interrupt_after(seconds):
    """SIGINT comes after so long a time, wherever the program is then."""
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, seconds)


@pytest.mark.parametrize("trials", [60, pytest.param(4000, marks=pytest.mark.slow)])
def test_interrupts_at_random(trials):
    """State, count and report belong together after every one of them."""
    sim, ball = falling()
    sim.step()
    rng, stopped = np.random.default_rng(5), 0
    for _ in range(trials):
        sim.positions[ball, 2], sim.velocities[ball, 2] = height_after(sim.steps), -G * H * sim.steps
        try:
            interrupt_after(rng.uniform(5e-5, 3e-3))
            for _ in range(200):
                sim.step()
        except KeyboardInterrupt:
            stopped += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        assert sim.report.step == sim.steps and sim.report.time == pytest.approx(sim.steps * H)
        assert sim.positions[ball, 2] == pytest.approx(height_after(sim.steps), rel=1e-9)
        assert sim.velocities[ball, 2] == pytest.approx(-G * H * sim.steps, rel=1e-9)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert stopped > 0.9 * trials


@pytest.mark.parametrize("trials", [5, pytest.param(300, marks=pytest.mark.slow)])
def test_runs_that_are_interrupted_at_random_leave_whole_files(trials, tmp_path):
    """The result's last frame and the checkpoint are the state that is left, whatever was being written."""
    rng, stopped = np.random.default_rng(6), 0
    result, saved = tmp_path / "r.vtkhdf", tmp_path / "c.h5"
    falling()[0].step()
    for _ in range(trials):
        sim, ball = falling()
        interrupt_after(rng.uniform(0.02, 0.2))
        try:
            report = run(sim, 100.0, result, H, checkpoint=saved, checkpoint_every=3 * H, interrupt="return")
        except KeyboardInterrupt:
            assert sim.steps == 0  # before the run has begun with its files
            continue
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        stopped += 1
        assert report.interrupted and report.steps == sim.steps == len(read_reports(result)["time"])
        frame = read_frame(result)
        assert frame["time"] == pytest.approx(sim.time)
        assert frame["position"][0, 2] == pytest.approx(height_after(sim.steps), rel=1e-5, abs=1e-12)
        assert gv.Simulation.load(saved).state_hash() == sim.state_hash()
    assert stopped > 0.5 * trials


def test_a_run_that_is_interrupted_while_it_opens_its_files_leaves_the_start_in_them(monkeypatch, tmp_path):
    sim, ball = falling()
    interrupt_in(monkeypatch, blocks, "append", 1)
    report = run(sim, 1.0, tmp_path / "r.vtkhdf", H, checkpoint=tmp_path / "c.h5", interrupt="return")
    assert report.interrupted and report.steps == sim.steps == 0
    with gv.open_result(tmp_path / "r.vtkhdf") as result:
        assert result.times.tolist() == [0.0] and result[0].positions[0, 2] == 0.0
    assert gv.Simulation.load(tmp_path / "c.h5").state_hash() == sim.state_hash()


def test_an_interrupt_while_numba_holds_its_lock_waits(monkeypatch):
    """Numba tells its number of threads under a lock; an interrupt just then left it closed, and the next step waited for ever."""
    told = []

    def ask():
        signal.raise_signal(signal.SIGINT)
        told.append("the lock is open again")
        return 1

    monkeypatch.setattr("gravel.host.threads.numba.get_num_threads", ask)
    with pytest.raises(KeyboardInterrupt):
        threads.use_threads(1)
    assert told
