"""A run that goes on goes on with its result file: no frame is lost, none is there twice, and others' files are left alone."""

import os
import signal
import subprocess
import sys

import h5py
import numpy as np
import pytest
from test_files import frames_by_vtk

import gravel as gv
from gravel.io.vtkhdf import ResultWriter, open_result, read_frame, read_joints, read_reports

EVERY = 0.01


def scene(n=5):
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_bodies(gv.Sphere(np.linspace(0.05, 0.1, n)), [[0.3 * k, 0, 0.5] for k in range(n)])
    scene.add_bodies(gv.ConvexHull([(0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)]), [(0, 1, 0.5)])
    scene.add_joint(gv.Spherical(None, 1, (0, 0, 0.8)))
    return scene


def come_and_go(sim):
    """Bodies, a joint and a geometry of a later time."""
    if sim.steps == 15:
        sim.add_bodies(gv.Sphere(0.07), [[0, 2, 1], [0, 3, 1]])
    if sim.steps == 35:
        sim.remove([2])
        sim.add_joint(gv.Spherical(None, 3, (0.6, 0, 0.9)))
        sim.add_bodies(gv.ConvexHull([(0, 0, 0), (0.2, 0, 0), (0, 0.2, 0), (0, 0, 0.2)]), [(0, 4, 1)])


def content(path):
    """Everything that a result file holds, but the name of its run and what depends on the clock."""
    found = {}

    def note(name, item):
        if isinstance(item, h5py.Dataset):
            found[name] = item.shape if name == "gravel/stage_seconds" else item[()]
        found.update({f"{name}@{key}": value for key, value in item.attrs.items() if key not in ("run", "about")})

    with h5py.File(path, "r") as file:
        file.visititems(note)
    return found


def assert_same(a, b):
    a, b = content(a), content(b)
    assert set(a) == set(b)
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


@pytest.fixture
def whole(tmp_path):
    """The result of a run without a break."""
    path = tmp_path / "whole.vtkhdf"
    gv.Simulation(scene(), 1e-3).run(0.06, path, EVERY, observers=[come_and_go], contacts=True)
    return path


@pytest.mark.parametrize("stop", [0.01, 0.02, 0.04])
@pytest.mark.parametrize("way", ["same", "loaded", "copied"])
def test_two_parts_are_the_whole(tmp_path, whole, way, stop):
    part, sim = tmp_path / "part.vtkhdf", gv.Simulation(scene(), 1e-3)
    sim.run(stop, part, EVERY, observers=[come_and_go], contacts=True)
    if way == "loaded":
        sim.save(tmp_path / "c.h5")
        sim = gv.Simulation.load(tmp_path / "c.h5")
    sim = sim.copy() if way == "copied" else sim
    sim.run(0.06, part, EVERY, observers=[come_and_go], contacts=True)
    assert_same(part, whole)


def test_frames_after_the_checkpoint_are_written_anew(tmp_path, whole):
    """The file is ahead of the checkpoint: bodies, joints and geometries that came after it go, and come again."""
    part, sim = tmp_path / "part.vtkhdf", gv.Simulation(scene(), 1e-3)
    sim.run(0.02, part, EVERY, observers=[come_and_go], contacts=True, checkpoint=tmp_path / "c.h5")
    sim.run(0.05, part, EVERY, observers=[come_and_go], contacts=True)
    assert len(read_joints(part)["names"]) == 2
    again = gv.Simulation.load(tmp_path / "c.h5")
    with ResultWriter(part, again):
        pass
    assert read_frame(part)["time"] == pytest.approx(0.01) and len(read_reports(part)["time"]) == 20
    again.run(0.06, part, EVERY, observers=[come_and_go], contacts=True)
    assert_same(part, whole)


KILLED = """
import os, signal, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import gravel as gv
from test_appending import EVERY, come_and_go, scene
def die(sim):
    if sim.steps == 47:
        os.kill(os.getpid(), signal.SIGKILL)
sim = gv.Simulation(scene(), 1e-3)
sim.run(0.06, "part.vtkhdf", EVERY, observers=[come_and_go, die], checkpoint="c.h5", checkpoint_every=0.025)
"""


def test_a_killed_run_goes_on_from_its_last_checkpoint(tmp_path, whole):
    done = subprocess.run([sys.executable, "-c", KILLED, os.path.dirname(__file__)], cwd=tmp_path, timeout=300)
    assert done.returncode == -signal.SIGKILL
    with open_result(tmp_path / "part.vtkhdf") as file:
        assert file["VTKHDF/bodies/Steps"].attrs["NSteps"] == 5  # up to 0.04 s, and the checkpoint is of 0.025 s
    sim = gv.Simulation.load(tmp_path / "c.h5")
    assert sim.time == pytest.approx(0.025)
    sim.run(0.03, tmp_path / "part.vtkhdf", EVERY, observers=[come_and_go])
    sim.run(0.06, tmp_path / "part.vtkhdf", EVERY, observers=[come_and_go])
    times = [time for time, _ in frames_by_vtk(tmp_path / "part.vtkhdf")]
    assert np.allclose(times, [0, 0.01, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06])
    assert np.array_equal(read_reports(tmp_path / "part.vtkhdf")["time"], read_reports(whole)["time"])
    assert np.array_equal(read_frame(tmp_path / "part.vtkhdf")["position"], read_frame(whole)["position"])


def test_pyvista_reads_all_frames_of_an_appended_file(tmp_path):
    sim, seen, path = gv.Simulation(scene(), 1e-3), [], tmp_path / "r.vtkhdf"
    note = lambda s: seen.append((s.time, s.positions[s.alive][1:].copy()))  # noqa: E731  (without the plane)
    note(sim)
    for until in (0.02, 0.04, 0.06):
        sim.run(until, path, EVERY, observers=[come_and_go, (note, EVERY)])
    frames = list(frames_by_vtk(path))
    assert len(frames) == len(seen) == 7
    for (time, cloud), (expected, places) in zip(frames, seen):
        assert time == pytest.approx(expected)
        np.testing.assert_allclose(cloud.points, places, atol=1e-6)
        assert cloud.n_cells == len(places)


def test_a_result_of_another_run_is_replaced(tmp_path):
    path = tmp_path / "r.vtkhdf"
    gv.Simulation(scene(), 1e-3).run(0.03, path, EVERY)
    other = gv.Simulation(scene(), 1e-3)
    other.run(0.02)
    other.run(0.04, path, EVERY)
    with open_result(path) as file:
        assert np.allclose(file["VTKHDF/bodies/Steps/Values"][:], [0.02, 0.03, 0.04])


@pytest.mark.parametrize("kind", ["text", "hdf5", "damaged", "checkpoint"])
def test_what_is_no_result_is_left_alone(tmp_path, kind):
    path, sim = tmp_path / "r.h5", gv.Simulation(scene(), 1e-3)
    if kind == "text":
        path.write_text("my diary")
    elif kind == "hdf5":
        with h5py.File(path, "w") as file:
            file["x"] = 1
    elif kind == "damaged":
        sim.run(0.01, path, EVERY)
        path.write_bytes(path.read_bytes()[:3000])
    else:
        sim.save(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="is there already"):
        sim.run(0.02, path, EVERY)
    assert path.read_bytes() == before
    path.write_bytes(b"")  # an empty file is as good as none
    sim.run(0.02, path, EVERY)


@pytest.mark.parametrize("name", ["f.csv", "f", "f.vtk", "vtkhdf"])
def test_an_ending_that_says_something_else_is_refused(tmp_path, name):
    sim = gv.Simulation(scene(), 1e-3)
    with pytest.raises(ValueError, match=r"save must be a file whose name ends in .vtkhdf, .hdf or .h5, not '" + name):
        sim.run(0.01, save=tmp_path / name)
    for way in (lambda path: sim.run(0.01, checkpoint=path), sim.save):
        with pytest.raises(ValueError, match=r"checkpoint must be a file whose name ends in .h5, .hdf5 or .hdf, not '" + name):
            way(tmp_path / name)
    assert sim.steps == 0 and not list(tmp_path.iterdir())
