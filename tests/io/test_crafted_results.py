"""Results that somebody made to do harm: nothing outside of them is read, nothing waits, and what they say is checked before use."""

import json
import os
import pathlib
import subprocess
import sys
import tracemalloc

import h5py
import numpy as np
import pytest

import gravel as gv
from gravel.view import report
from gravel.view.viewer import wire
from gravel.view.viewer.sources import Recorded


@pytest.fixture
def stack(tmp_path):
    """Two balls on a floor, with contacts; and a hull, whose surface is in the file."""
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_bodies(gv.Sphere(0.1), [(0, 0, 0.1), (0, 0, 0.3)])
    scene.add_body(gv.ConvexHull(np.vstack([np.zeros(3), np.eye(3)]), 0.2), (0, 1, 0.5))
    scene.add_joint(gv.Spherical(1, 2, point=(0, 0, 0.2)))
    path = tmp_path / "stack.vtkhdf"
    gv.Simulation(scene, 1e-3, threads=1).run(0.02, path, 0.01, contacts=True)
    return path


GROUPS = ("gravel/geometries/0", "gravel/geometries", "gravel/contact_table", "gravel/joints", "VTKHDF/bodies/Steps", "VTKHDF", "gravel")


@pytest.mark.parametrize("name", GROUPS)
def test_links_of_groups_to_other_files_are_refused(stack, name, tmp_path):
    other = tmp_path / "secret.vtkhdf"
    other.write_bytes(stack.read_bytes())
    with h5py.File(stack, "r+") as file:
        del file[name]
        file[name] = h5py.ExternalLink(str(other), name)
    with pytest.raises(ValueError, match=r"stack\.vtkhdf cannot be read .* is kept in another file"), gv.open_result(stack) as result:
        print(result[-1], result.contacts(-1), result.joints)


def test_a_link_to_a_pipe_does_not_hang(stack, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with h5py.File(stack, "r+") as file:
        del file["gravel/geometries/0"]
        file["gravel/geometries/0"] = h5py.ExternalLink(str(tmp_path / "pipe"), "/")
    script = f"import gravel as gv\ntry:\n  print(gv.open_result({str(stack)!r})[0])\nexcept ValueError as error:\n  print(error)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=20)
    assert "is kept in another file" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_is_no_result(linked, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / ("link.vtkhdf" if linked else "pipe")
    if linked:
        path.symlink_to(tmp_path / "pipe")
    script = f"import gravel as gv\ntry:\n  gv.open_result({str(path)!r})\nexcept ValueError as error:\n  print(error)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=20)
    assert "is no ordinary file" in done.stdout, done.stdout + done.stderr


def test_a_run_does_not_follow_links_of_the_file_it_replaces(stack, tmp_path):
    other = tmp_path / "other.h5"
    with h5py.File(other, "w") as file:
        file["x"] = 1
    with h5py.File(stack, "r+") as file:
        del file["gravel"]
        file["gravel"] = h5py.ExternalLink(str(other), "/")
    sim = gv.Simulation(falling(), 1e-3, threads=1)
    with pytest.raises(ValueError, match="kept in another file"):
        sim.run(0.01, stack)
    assert other.exists() and sim.steps == 0


def falling():
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1))
    return scene


def test_ids_of_contacts_need_no_memory_by_their_size(stack):
    """A table with a row for each id up to 10^9 would take 8 GB."""
    with h5py.File(stack, "r+") as file:
        table = file["gravel/contact_table"]
        table["body_a"][:] = 10**9
    source = Recorded(stack)
    tracemalloc.start()
    try:
        wire.contacts_message(source.frame(2), *source.contacts(2))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        source.close()
    assert peak < 50e6


@pytest.mark.parametrize("name", ["body_a", "body_b"])
@pytest.mark.parametrize("value", [-7, 2**62])
def test_ids_of_contacts_that_no_body_can_have_are_refused(stack, name, value):
    with h5py.File(stack, "r+") as file:
        file["gravel/contact_table"][name][0] = value
    with gv.open_result(stack) as result, pytest.raises(ValueError, match=rf"stack\.vtkhdf .*{name}"):
        for k in range(len(result)):
            if k:
                result.contacts(k)


@pytest.mark.parametrize("name", ["version", "started", "dt", "solver", "tolerance", "processes", "bodies", "friction"])
def test_what_a_result_does_not_tell_of_its_run_is_named(stack, name, tmp_path):
    with h5py.File(stack, "r+") as file:
        about = json.loads(file["gravel"].attrs["about"])
        del about[name]
        file["gravel"].attrs["about"] = json.dumps(about)
    with gv.open_result(stack) as result, pytest.raises(ValueError, match=rf"stack\.vtkhdf .*does not tell .*{name}"):
        print(result.about)
    with pytest.raises(ValueError, match=rf"stack\.vtkhdf .*does not tell .*{name}"):
        report.report(stack, tmp_path / "page.html")


@pytest.mark.parametrize(
    "name, value", [("dt", "soon"), ("tolerance", [1]), ("until", {}), ("processes", "many"), ("threads", None), ("scene", ["a"])]
)
def test_what_a_result_tells_wrong_of_its_run_is_refused(stack, name, value):
    with h5py.File(stack, "r+") as file:
        about = json.loads(file["gravel"].attrs["about"])
        file["gravel"].attrs["about"] = json.dumps({**about, name: value})
    with gv.open_result(stack) as result, pytest.raises(ValueError, match=rf"stack\.vtkhdf .*{name}"):
        print(result.about)


def test_continued_legs_tell_when(stack):
    with h5py.File(stack, "r+") as file:
        about = json.loads(file["gravel"].attrs["about"])
        file["gravel"].attrs["about"] = json.dumps({**about, "continued": [{"dt": 0.1}]})
    with gv.open_result(stack) as result, pytest.raises(ValueError, match="does not tell .*went on"):
        print(result.about)


def test_a_result_without_frames_says_so(stack):
    with h5py.File(stack, "r+") as file:
        file["VTKHDF/bodies/Steps"].attrs["NSteps"] = 0
    with gv.open_result(stack) as result, pytest.raises(IndexError, match=r"stack\.vtkhdf holds no frames"):
        result[-1]
    from gravel.io.vtkhdf import read_frame

    with pytest.raises((ValueError, IndexError), match=r"stack\.vtkhdf holds no frames"):
        read_frame(stack)
    with pytest.raises(ValueError, match=r"stack\.vtkhdf holds no frames"):
        report.report(stack)


def test_names_of_parts_are_kept_in_the_file_itself(stack, tmp_path):
    """A virtual array of names would read any file."""
    with h5py.File(stack, "r+") as file:
        own = file["gravel"]
        own["legs"] = np.array([[0, 3, 1, 20]])
        layout = h5py.VirtualLayout((1,), "S20")
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "names", (1,), "S20")
        own.create_virtual_dataset("parts", layout)
    with gv.open_result(stack) as result, pytest.raises(ValueError, match="parts is kept in another file"):
        result[0]


def test_a_plain_result_is_read(stack):
    """None of the above is refused for another reason."""
    with gv.open_result(stack) as result:
        assert len(result) == 3 and len(result.contacts(-1)) and result.about["bodies"] == 3
    assert pathlib.Path(report.report(stack)).exists()
