"""A run removes no file but its own parts: not those of a result that was copied, nor what a crafted index names."""

import shutil

import h5py
import numpy as np
import pytest
from shared import heap, in_threads, shared

import gravel as gv


def written(path, ranks=2, until=0.02):
    """A result of so many processes, or of one."""

    def one(team):
        sim = heap() if ranks == 1 else shared(heap(), team)
        sim.run(until, path, 0.01)

    outcome = in_threads(ranks, one)
    assert outcome == [None] * ranks, outcome


def frames_of(path):
    with gv.open_result(path) as result:
        return [frame.positions.tolist() for frame in result]


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_run_that_replaces_a_copied_index_leaves_the_parts_of_the_original(ranks, tmp_path):
    written(tmp_path / "a.vtkhdf")
    before = frames_of(tmp_path / "a.vtkhdf")
    shutil.copy(tmp_path / "a.vtkhdf", tmp_path / "b.vtkhdf")
    written(tmp_path / "b.vtkhdf", ranks)
    assert frames_of(tmp_path / "a.vtkhdf") == before and len(frames_of(tmp_path / "b.vtkhdf")) == 3


def test_a_run_that_goes_on_with_a_copied_index_leaves_the_parts_of_the_original(tmp_path):
    def begin(team):
        shared(heap(), team).run(0.02, tmp_path / "a.vtkhdf", 0.01, checkpoint=tmp_path / "state.h5")

    def go_on(team):
        shared(gv.Simulation.load(tmp_path / "state.h5", threads=1), team).run(0.04, tmp_path / "b.vtkhdf", 0.01)

    assert in_threads(2, begin) == [None, None]
    shutil.copy(tmp_path / "a.vtkhdf", tmp_path / "b.vtkhdf")
    before = frames_of(tmp_path / "a.vtkhdf")
    assert in_threads(2, go_on) == [None, None]
    assert frames_of(tmp_path / "a.vtkhdf") == before
    assert frames_of(tmp_path / "b.vtkhdf")[:3] == before and len(frames_of(tmp_path / "b.vtkhdf")) == 5


@pytest.mark.parametrize("name", ["thesis.tex", "run.rank0007.vtkhdf", "run.leg2.rank0000.vtkhdf"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_what_a_crafted_index_names_is_not_removed(name, ranks, tmp_path):
    path = tmp_path / "run.vtkhdf"
    written(path)
    (tmp_path / name).write_text("three years of work")
    with h5py.File(path, "r+") as file:
        del file["gravel/parts"]
        file["gravel/parts"] = np.array([b"run.rank0000.vtkhdf", name.encode()])
    written(path, ranks)
    assert (tmp_path / name).read_text() == "three years of work"


def test_a_part_of_another_run_is_not_removed(tmp_path):
    written(tmp_path / "run.vtkhdf", 3)
    shutil.copy(tmp_path / "run.vtkhdf", tmp_path / "kept.vtkhdf")
    written(tmp_path / "other.vtkhdf", 3)
    shutil.copy(tmp_path / "other.rank0002.vtkhdf", tmp_path / "run.rank0002.vtkhdf")
    written(tmp_path / "run.vtkhdf", 2)
    assert (tmp_path / "run.rank0002.vtkhdf").exists()


def test_what_has_the_name_of_a_first_part_is_not_replaced(tmp_path):
    """A file of one process becomes a part when several go on with its run."""
    path = tmp_path / "run.vtkhdf"
    heap().run(0.02, path, 0.01, checkpoint=tmp_path / "state.h5")
    (tmp_path / "run.rank0000.vtkhdf").write_text("three years of work")

    def go_on(team):
        shared(gv.Simulation.load(tmp_path / "state.h5", threads=1), team).run(0.04, path, 0.01)

    outcome = in_threads(2, go_on)
    assert all(isinstance(error, (OSError, ValueError)) and "run.rank0000.vtkhdf" in str(error) for error in outcome), outcome
    assert (tmp_path / "run.rank0000.vtkhdf").read_text() == "three years of work" and len(frames_of(path)) == 3
