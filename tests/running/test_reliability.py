"""Nothing half done, nothing silent: twins, threads, files that are in the way, and limits that are told of."""

import copy
import dataclasses
import os
import pickle
import threading
import warnings

import numpy as np
import pytest

import gravel as gv
from gravel.io.vtkhdf import read_frame


def pile(n=60, **options):
    """Balls and boxes that fall onto a floor and into each other, beside a hinged lid and a plate that moves."""
    scene, rng = gv.Scene(), np.random.default_rng(3)
    rough = gv.Material(friction=0.6, rolling_friction=1e-3, restitution=0.3)
    scene.add_body(gv.Plane(), material=rough, fixed=True)
    places = 0.21 * np.stack(np.unravel_index(np.arange(n), (5, 4, n)), axis=1) + (0, 0, 0.11) + rng.uniform(-0.005, 0.005, (n, 3))
    scene.add_bodies(gv.Sphere(0.1), places[::2], rough)
    scene.add_bodies(gv.Box((0.08, 0.07, 0.06)), places[1::2], rough)
    lid = scene.add_body(gv.Box((0.3, 0.3, 0.02)), (-1.0, 0, 0.5))
    scene.add_joint(gv.Revolute(None, lid, (-1.3, 0, 0.5), (0, 1, 0), motor=gv.ForceMotor(wave)))
    scene.add_body(gv.Box((0.1, 0.1, 0.1)), (0, -1, 0.2), motion=shake)
    return gv.Simulation(scene, 2e-3, **options)


def wave(time):
    return 3.0 * np.sin(9.0 * time)


def shake(time):
    return (0.0, -1.0 + 0.1 * np.sin(5.0 * time), 0.2), (1.0, 0.0, 0.0, 0.0)


def advance(sim, steps):
    for _ in range(steps):
        sim.step()
    return sim


# --- twins
TWINS = {"copy": gv.Simulation.copy, "deep": copy.deepcopy, "shallow": copy.copy, "pickle": lambda sim: pickle.loads(pickle.dumps(sim))}


@pytest.mark.parametrize("way", TWINS)
def test_a_twin_has_the_same_future_and_goes_its_own_way(way):
    sim = advance(pile(), 80)
    sim.velocities[5] += 0.5  # not taken back yet
    twin = TWINS[way](sim)
    assert twin.state_hash() == sim.state_hash()
    assert (twin.steps, twin.time) == (sim.steps, sim.time)
    before = sim.state_hash()
    advance(twin, 40)
    assert sim.state_hash() == before != twin.state_hash()
    advance(sim, 40)
    assert sim.state_hash() == twin.state_hash()
    assert dataclasses.replace(sim.report, seconds={}) == dataclasses.replace(twin.report, seconds={})
    assert np.array_equal(sim.joints.force, twin.joints.force)


def test_a_copy_knows_report_and_contacts_of_the_last_step():
    sim = advance(pile(), 80)
    twin = sim.copy()
    assert twin.report == sim.report and len(twin.contacts) == len(sim.contacts) == sim.report.contacts > 0
    assert np.array_equal(twin.contacts.impulse, sim.contacts.impulse)
    advance(twin, 1)
    assert len(twin.contacts) == twin.report.contacts
    assert len(pile().copy().contacts) == 0


def test_a_copy_of_a_new_simulation_and_after_bodies_went():
    sim = pile()
    assert advance(sim.copy(), 30).state_hash() == advance(sim, 30).state_hash()
    sim.remove([3, 7])
    sim.add_bodies(gv.Capsule(0.05, 0.1), [(0, 2, 1)])
    twin = sim.copy()
    assert twin.count == sim.count and np.array_equal(twin.alive, sim.alive)
    assert advance(twin, 30).state_hash() == advance(sim, 30).state_hash()


# --- threads
def test_a_step_while_another_is_under_way_is_refused():
    sim, inside, go_on = pile(), threading.Event(), threading.Event()

    def slow(time):
        inside.set()
        assert go_on.wait(60)
        return shake(time)

    advance(sim, 2)
    sim.set_motion(62, slow)
    thread = threading.Thread(target=sim.step)
    thread.start()
    assert inside.wait(60)
    hash_of = lambda: sim.engine.field("position").tobytes()  # noqa: E731
    before = hash_of()
    calls = (sim.step, sim.next_problem, sim.flush, lambda: sim.remove([1]), lambda: sim.add_bodies(gv.Sphere(0.1), [(0, 0, 9)]))
    for call in calls:
        with pytest.raises(gv.SimulationError, match="is under way, in another thread"):
            call()
    assert hash_of() == before and sim.steps == 2
    go_on.set()
    thread.join()
    assert sim.steps == 3
    advance(sim, 1)


def test_a_function_that_steps_its_own_simulation_is_refused():
    sim = pile()
    sim.set_motion(62, lambda time: sim.step())
    with pytest.raises(gv.SimulationError, match="under way"):
        sim.step()
    sim.set_motion(62, shake)
    advance(sim, 1)


# --- files
def test_files_follow_a_link_and_leave_it(tmp_path):
    sim = advance(pile(), 1)
    target, link = tmp_path / "folder" / "real.h5", tmp_path / "link.h5"
    target.parent.mkdir()
    target.write_bytes(b"old")
    link.symlink_to(target)
    sim.save(link)
    assert link.is_symlink() and gv.Simulation.load(target, motions={62: shake}, laws={0: gv.ForceMotor(wave)}).steps == 1
    target, link = target.with_name("real.vtkhdf"), tmp_path / "link.vtkhdf"
    link.symlink_to(target)
    sim.run(until=sim.time + 0.01, save=link)
    assert link.is_symlink() and read_frame(target)["time"] == pytest.approx(sim.time)


@pytest.mark.parametrize("kind", ["save", "checkpoint"])
def test_what_is_no_ordinary_file_is_not_replaced(kind, tmp_path):
    sim, pipe = pile(), tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="neither a new nor an ordinary file"):
        sim.run(until=0.01, **{kind: pipe})
    with pytest.raises(OSError, match="neither a new nor an ordinary file"):
        sim.save(pipe)
    assert pipe.is_fifo() and sim.steps == 0


def test_a_state_that_is_not_finite_does_not_replace_the_last_checkpoint(tmp_path):
    path = tmp_path / "c.h5"
    sim = advance(pile(), 2)
    sim.save(path)
    good = path.read_bytes()
    sim.positions[5, 1] = np.nan
    with pytest.raises(gv.SimulationError, match="positions of body 5 must be finite"):
        sim.save(path)
    assert path.read_bytes() == good and [p.name for p in tmp_path.iterdir()] == ["c.h5"]


def test_one_path_for_result_and_checkpoint_is_refused(tmp_path):
    sim, link = pile(), tmp_path / "b"
    link.symlink_to(tmp_path / "a")
    for other in (tmp_path / "a", link, tmp_path / "." / "a"):
        with pytest.raises(ValueError, match="save and checkpoint must be two files"):
            sim.run(until=0.01, save=tmp_path / "a", checkpoint=other)
    assert sim.steps == 0 and not (tmp_path / "a").exists()


def test_a_name_that_is_too_long_is_refused_before_the_work(tmp_path):
    sim = pile()
    for name, kind in (("x" * 256, "save"), ("x" * 252, "checkpoint")):
        with pytest.raises(OSError, match="a name may have 25"):
            sim.run(until=0.01, **{kind: tmp_path / name})
    assert sim.steps == 0
    sim.run(until=0.01, checkpoint=tmp_path / ("x" * 247 + ".h5"))


def test_a_file_that_may_not_grow_keeps_its_frames(tmp_path):
    """In a process of its own, for the limit holds for good: HDF5 would crash on the way out."""
    import subprocess
    import sys

    script = """
import resource, signal, sys
import gravel as gv
from gravel.io.vtkhdf import SPARE_BYTES
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
scene = gv.Scene()
scene.add_bodies(gv.Sphere(0.1), [(0.3 * k, 0, 0) for k in range(50000)])
sim = gv.Simulation(scene, 1e-3, threads=1)
def limit(s):
    if s.steps == 3:
        resource.setrlimit(resource.RLIMIT_FSIZE, (SPARE_BYTES + 20_000_000,) * 2)
sim.run(until=0.05, save=sys.argv[1], every=1e-3, observers=[limit])
"""
    path = tmp_path / "r.vtkhdf"
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and "OSError: output" in done.stderr and "cannot grow" in done.stderr.splitlines()[-1]
    for k in range(3):
        assert len(read_frame(path, k)["id"]) == 50000
    assert path.stat().st_size < 60_000_000


# --- what is told
def test_warnings_that_are_errors_come_after_a_step_that_counts():
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(0.1), [(0, 0, 0), (0.1, 0, 0)])
    sim = gv.Simulation(scene, 1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="overlap"):
            sim.step()
        assert sim.steps == 1 == sim.report.step and sim.time == 1e-3
        sim.step()
    assert sim.steps == 2


@pytest.mark.parametrize("shape", [gv.Sphere(0.1), gv.Box((0.1, 0.1, 0.1))], ids=["balls", "boxes"])
@pytest.mark.parametrize("n", [2, 10, 60])
@pytest.mark.parametrize("spread", [0.0, 0.02])
def test_bodies_in_one_place_part_no_faster_than_the_recovery_speed(shape, n, spread):
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(shape, np.random.default_rng(0).normal(0, spread, (n, 3)))
    sim, fastest = gv.Simulation(scene, 1 / 500, recovery_speed=1.0), 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(150):
            sim.step()
            fastest = max(fastest, np.linalg.norm(sim.velocities, axis=1).max())
    assert 0.0 < fastest <= 1.0
    assert np.ptp(sim.positions, axis=0).max() > (0.07 if n == 2 else 0.01)


def test_cohesion_beyond_the_precision_is_refused():
    def pile_with(cohesion, precision):
        scene, glue = gv.Scene(), gv.Material(density=2500, cohesion=cohesion)
        scene.add_body(gv.Plane(), material=glue, fixed=True)
        scene.add_bodies(gv.Sphere(0.05), [(0.1001 * k, 0, 0.0499) for k in range(5)], glue)
        return gv.Simulation(scene, 1 / 500, precision=precision)

    weight = 2500 * 4 / 3 * np.pi * 0.05**3 * 9.81
    with pytest.raises(ValueError, match=r"cohesion must be at most 100000 times .* single .* 1e\+12 N is 7.8e\+10 times that of body 1"):
        pile_with(1e12, "single")
    sim = pile_with(0.0, "single")
    sim.add_bodies(gv.Sphere(0.05), [(0, 1, 0.05)], gv.Material(cohesion=1e12))
    for _ in range(2):  # not once only
        with pytest.raises(ValueError, match="cohesion must be at most"):
            sim.step()
    assert sim.steps == 0
    for ratio, precision in ((9e4, "single"), (9e12, "double")):
        sim = advance(pile_with(ratio * weight, precision), 200)
        assert sim.positions[1:, 2] == pytest.approx(0.05, abs=1e-4) and sim.report.converged


def test_solids_too_fast_for_a_mesh_are_told_of():
    def flying(shape, speed, height):
        scene = gv.Scene(gravity=(0, 0, 0))
        corners = [(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)]
        scene.add_body(gv.Mesh(corners, [(0, 1, 2), (0, 2, 3)], sheet=True), fixed=True)
        scene.add_body(shape, (0.3, 0.2, height), velocity=(0, 0, -speed))
        return gv.Simulation(scene, 1e-3)

    with pytest.warns(UserWarning, match=r"body 1 moves 0.05 m in a step, .*half of it is 0.01 m.*mesh of body 0: .* dt below 0.0002 s"):
        advance(flying(gv.Capsule(0.01, 0.015), 50.0, 1.0), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        advance(flying(gv.Capsule(0.01, 0.015), 5.0, 1.0), 1)  # slow
        advance(flying(gv.Sphere(0.01), 50.0, 1.0), 1)  # a ball
        advance(flying(gv.Capsule(0.01, 0.015), 50.0, 9.0), 1)  # far away


def test_the_table_of_many_materials_follows_the_rule_of_two():
    """Geometric means of friction, and what was set for a pair."""
    from gravel.model.materials import pair_table

    materials = [gv.Material(friction=0.001 * k) for k in range(300)]
    table = pair_table(materials, {(4, 250): {"friction": 0.9}})
    assert table.shape == (300, 300, 5) and table[250, 4, 0] == 0.9
    assert table[100, 200, 0] == pytest.approx(np.sqrt(0.1 * 0.2))
