"""Results of many processes: together they are what one process writes, for us and for VTK; a run goes on with any number of them."""

import shutil

import h5py
import numpy as np
import pytest
import pyvista
from click.testing import CliRunner
from matplotlib.image import imread
from shared import come_and_go, heap, in_threads, run_ranks, shared

import gravel as gv
from gravel.cli import main
from gravel.io import parts
from gravel.io.vtkhdf import ResultWriter
from gravel.view.viewer.sources import Recorded

EVERY = 0.01
FIELDS = (
    *("ids", "positions", "quaternions", "velocities", "angular_velocities", "radii", "masses", "inertias", "movable", "materials"),
    *("kinds", "extents", "geometry", "plane_positions", "plane_normals", "gravity", "time", "dt", "contact_lag"),
)


def all_blocks(path):
    """(time, blocks) of each frame, by VTK."""
    reader = pyvista.get_reader(path).reader
    reader.UpdateInformation()
    for k in range(reader.GetNumberOfSteps()):
        reader.SetStep(k)
        reader.Update()
        yield reader.GetTimeValue(), pyvista.wrap(reader.GetOutputDataObject(0))


def clouds(path):
    """(time, points) of each frame, likewise."""
    for time, blocks in all_blocks(path):
        yield time, blocks["bodies"].copy()


def assert_same(path, other):
    """Two results hold the same, wherever it lies."""
    with gv.open_result(path) as a, gv.open_result(other) as b:
        assert len(a) == len(b) and a.joint_names == b.joint_names
        np.testing.assert_array_equal(a.reports, b.reports)
        assert a.materials == b.materials and {len(seconds) for seconds in a.stage_seconds.values()} == {len(a.reports)}
        for one, two in zip(a, b):
            for name in FIELDS:
                np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
            assert set(one.surfaces) == set(two.surfaces)
            for name in ("body_a", "body_b", "point", "normal", "gap", "impulse", "sliding"):
                np.testing.assert_array_equal(getattr(one.contacts, name), getattr(two.contacts, name), err_msg=name)
        for name in ("angle", "force", "broken"):
            np.testing.assert_array_equal(getattr(a.joints, name), getattr(b.joints, name), err_msg=name)


def assert_same_by_vtk(path, other):
    frames, expected = list(clouds(path)), list(clouds(other))
    assert len(frames) == len(expected)
    for (time, cloud), (its_time, true) in zip(frames, expected):
        order = np.argsort(cloud["id"])
        assert time == its_time and cloud.n_verts == true.n_verts == len(order)
        np.testing.assert_array_equal(cloud.points[order], true.points)
        np.testing.assert_array_equal(np.sort(cloud.verts.reshape(-1, 2)[:, 1]), np.arange(len(order)))
        for name in true.point_data:
            np.testing.assert_array_equal(cloud[name][order], true[name], err_msg=name)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The result of one process, with bodies that come and go."""
    path = tmp_path_factory.mktemp("whole") / "run.vtkhdf"
    heap().run(0.06, path, EVERY, observers=[come_and_go], contacts=True)
    with gv.open_result(path) as result:
        assert len(result) == 7 and len(result.contacts(-1)) > 5
    return path


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """The same by three processes of MPI; the folder is moved after that."""
    folder = tmp_path_factory.mktemp("three")
    script = """
sim = shared(heap(), team)
sim.run(0.06, "run.vtkhdf", 0.01, observers=[come_and_go], contacts=True, checkpoint="state.h5", checkpoint_every=0.025, progress=True)
"""
    printed = run_ranks(3, script, folder)
    assert printed.count("60/60") <= 2  # the bar of rank 0, in its last two states
    moved = folder.parent / "moved"
    shutil.move(folder, moved)
    return moved


def test_three_processes_write_what_one_does(three, whole):
    assert_same(three / "run.vtkhdf", whole)
    assert_same_by_vtk(three / "run.vtkhdf", whole)
    assert sorted(file.name for file in three.glob("run*")) == [*(f"run.rank000{rank}.vtkhdf" for rank in range(3)), "run.vtkhdf"]


def test_an_even_share_of_many_bodies_is_that_of_one_process(three, whole):
    """What the viewer shows where it cannot show all."""
    of_parts, of_one = (Recorded(path, bodies=4) for path in (three / "run.vtkhdf", whole))
    assert of_parts.share == of_one.share == 4 / 9
    for number in range(7):
        data, true = of_parts.frame(number), of_one.frame(number)
        assert data["moving"] == true["moving"]
        common = np.isin(data["id"], true["id"])  # what is large is decided part by part
        assert common.sum() == len(true["id"])
        np.testing.assert_array_equal(data["position"][common], true["position"])


def test_three_processes_write_the_checkpoint_of_one(three, tmp_path):
    names = [*(f"state.step00000060.rank000{rank}.h5" for rank in range(3)), "state.h5"]
    assert sorted(file.name for file in three.glob("state*")) == sorted(names)
    true = heap()
    true.run(0.06, observers=[come_and_go])
    sim = gv.Simulation.load(three / "state.h5", threads=1)
    assert sim.state_hash() == true.state_hash() and sim.steps == 60
    np.testing.assert_array_equal(sim.contacts.impulse, true.contacts.impulse)


def test_vtk_finds_the_contacts_of_all_parts_in_the_index(three, whole):
    with gv.open_result(whole) as result:
        tables = [frame.contacts for frame in result]
    for (_, blocks), table in zip(all_blocks(three / "run.vtkhdf"), tables, strict=True):
        found = blocks["contacts"]
        assert found.n_points == found.n_verts == len(table)
        order, true = np.lexsort(found.points.T), np.lexsort(table.point.T)
        np.testing.assert_array_equal(found.points[order], table.point[true])
        assert np.allclose(found["impulse"][order], table.impulse[true], atol=1e-9)


def test_each_body_is_in_one_part_and_says_whose_it_is(three, whole):
    with gv.open_result(three / "run.vtkhdf") as result:
        for frame in result:
            assert np.array_equal(frame.ranks, np.where(frame.movable, frame.ids % 3, 0))
    for rank in range(3):
        for _, cloud in clouds(three / f"run.rank000{rank}.vtkhdf"):  # a part is a result of its own
            assert cloud.n_points and (cloud["rank"] == rank).all()
    for _, cloud in clouds(three / "run.vtkhdf"):
        assert np.array_equal(cloud["rank"], np.sort(cloud["rank"]))
    with gv.open_result(whole) as result:
        assert (result[-1].ranks == 0).all()


def test_others_find_all_in_the_index(three, whole):
    """The group gravel by h5py: what is virtual or linked there is that of one process; contacts stand part by part."""
    with h5py.File(three / "run.vtkhdf") as index, h5py.File(whole) as one:
        own, true = index["gravel"], one["gravel"]
        names = [name for name in true if isinstance(true[name], h5py.Dataset) and name != "stage_seconds"]  # legs may have other stages
        names += [f"joints/{name}" for name in true["joints"]]
        names += [f"geometries/{number}/vertices" for number in true["geometries"]]
        assert len(names) > 20
        for name in names:
            np.testing.assert_array_equal(own[name][()], true[name][()], err_msg=name)
        table, frame, count = own["contact_table"], own["contact_table/frame"][:], own["contact_table/count"][:]
        last = np.repeat(frame, count) == 6
        rows = slice(len(true["contact_table/gap"]) - true["contact_table/count"][-1], None)
        assert np.array_equal(np.sort(table["gap"][last]), np.sort(true["contact_table/gap"][rows]))


def test_pictures_and_plots_of_an_index(three, tmp_path):
    for colour in ("material", "rank"):
        done = CliRunner().invoke(main, ["picture", str(three / "run.vtkhdf"), "--color", colour, "-o", str(tmp_path / f"{colour}.png")])
        assert done.exit_code == 0, done.output
    plain, ranks = (imread(tmp_path / f"{colour}.png")[..., :3].reshape(-1, 3) for colour in ("material", "rank"))
    blue = lambda pixels: np.mean((pixels.argmax(axis=1) == 2) & (np.ptp(pixels, axis=1) > 0.15))  # noqa: E731
    assert blue(ranks) > 0.002 > blue(plain)  # rank 2; there is one material only
    for options in ([], ["--joints"], ["--measure", "coordination"]):
        done = CliRunner().invoke(main, ["plot", str(three / "run.vtkhdf"), "-o", str(tmp_path / "p.png"), *options])
        assert done.exit_code == 0, done.output


def test_a_missing_part_is_named(three, tmp_path):
    shutil.copytree(three, tmp_path / "copy")
    (tmp_path / "copy" / "run.rank0001.vtkhdf").unlink()
    with gv.open_result(tmp_path / "copy" / "run.vtkhdf") as result:
        assert len(result) == 7
        with pytest.raises(ValueError, match=r"run\.vtkhdf .*part run\.rank0001\.vtkhdf is not there"):
            result[0]


def test_parts_of_another_run_or_place_are_refused(three, whole, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(three, folder)
    shutil.copy(whole, folder / "run.rank0001.vtkhdf")
    with gv.open_result(folder / "run.vtkhdf") as result, pytest.raises(ValueError, match=r"part run\.rank0001\.vtkhdf: .*another run"):
        result[0]
    shutil.copy(folder / "run.rank0002.vtkhdf", folder / "run.rank0001.vtkhdf")
    with gv.open_result(folder / "run.vtkhdf") as result, pytest.raises(ValueError, match="body 2 of frame 0 is in two parts"):
        result[0]
    with h5py.File(folder / "run.vtkhdf", "r+") as file:
        names = file["gravel/parts"][:].astype("S40")
        names[1] = b"../run.rank0001.vtkhdf"
        del file["gravel/parts"]
        file["gravel/parts"] = names
    with gv.open_result(folder / "run.vtkhdf") as result, pytest.raises(ValueError, match=r"run\.vtkhdf .*no plain name"):
        result[0]


def leg(folder, size, until, start=None):
    """Run by so many processes until a time, from the last checkpoint if there is one."""

    def one(team):
        sim = heap() if start is None else gv.Simulation.load(start, threads=1)
        sim = sim if size == 1 else shared(sim, team)
        sim.run(until, folder / "run.vtkhdf", EVERY, observers=[come_and_go], contacts=True, checkpoint=folder / "state.h5")

    outcome = in_threads(size, one)
    assert outcome == [None] * size, outcome


@pytest.mark.parametrize("sizes", [(2, 3, 1, 3), (1, 2, 2, 1, 1)], ids=str)
def test_a_run_goes_on_with_any_number_of_processes(sizes, whole, tmp_path):
    ends = np.linspace(0.0, 0.06, len(sizes) + 1)[1:].round(2)
    for size, end, start in zip(sizes, ends, (None, *[tmp_path / "state.h5"] * len(sizes))):
        leg(tmp_path, size, float(end), start)
    with gv.open_result(tmp_path / "run.vtkhdf") as result, gv.open_result(whole) as true:
        assert np.allclose(result.times, true.times)
        assert np.array_equal(result.reports["time"], true.reports["time"])
        for have, want in zip(result, true):
            np.testing.assert_array_equal(have.ids, want.ids)
            np.testing.assert_allclose(have.positions, want.positions, atol=1e-6)
            assert len(have.contacts) == len(want.contacts)
        assert np.allclose(result.joints.angle, true.joints.angle, atol=1e-6)
        assert len(set(result[-1].ranks.tolist())) == sizes[-1]
    for (time, cloud), (its_time, true) in zip(clouds(tmp_path / "run.vtkhdf"), clouds(whole)):
        assert time == pytest.approx(its_time)
        np.testing.assert_allclose(cloud.points[np.argsort(cloud["id"])], true.points, atol=1e-6)


@pytest.mark.parametrize("size", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_frames_after_the_checkpoint_are_written_anew(size, whole, tmp_path):
    """The files are ahead of the checkpoint: they are cut there by as many processes, and left aside by another number."""
    leg(tmp_path, 2, 0.02)
    shutil.copytree(tmp_path, tmp_path / "then")
    leg(tmp_path, 2, 0.05, tmp_path / "state.h5")
    leg(tmp_path, size, 0.04, tmp_path / "then" / "state.h5")
    leg(tmp_path, size, 0.06, tmp_path / "state.h5")
    with gv.open_result(tmp_path / "run.vtkhdf") as result, gv.open_result(whole) as true:
        assert np.allclose(result.times, true.times) and np.array_equal(result.reports["time"], true.reports["time"])
        assert all(np.array_equal(have.ids, want.ids) for have, want in zip(result, true))
    assert len(list(clouds(tmp_path / "run.vtkhdf"))) == 7


def test_parts_that_a_kill_has_left_unequal_are_made_equal(tmp_path):
    """One part lacks a frame that the others have: it is one of no index, and what comes after is in step again. Before a part is cut, the
    index tells of no more than what stays."""
    leg(tmp_path, 2, 0.04)
    with h5py.File(tmp_path / "run.rank0001.vtkhdf", "r+") as file:
        file["VTKHDF/bodies/Steps"].attrs["NSteps"] = 3  # up to 0.02 s
    shutil.copytree(tmp_path, tmp_path / "copy")

    def begin(team):
        sim = shared(gv.Simulation.load(tmp_path / "state.h5", threads=1), team)
        parts.PartsWriter(tmp_path / "copy" / "run.vtkhdf", sim).abandon()

    assert in_threads(2, begin) == [None] * 2
    with gv.open_result(tmp_path / "copy" / "run.vtkhdf") as result:
        assert np.allclose(result.times, (0, 0.01, 0.02)) and len(list(result)) == 3
    leg(tmp_path, 2, 0.06, tmp_path / "state.h5")
    with gv.open_result(tmp_path / "run.vtkhdf") as result:
        assert np.allclose(result.times, (0, 0.01, 0.02, 0.04, 0.05, 0.06)) and len(list(result)) == 6
    assert len(list(clouds(tmp_path / "run.vtkhdf"))) == 6


def test_frames_that_the_index_does_not_tell_of_are_found_again(whole, tmp_path):
    """A kill may come when the parts have frames that the index lacks."""
    leg(tmp_path, 2, 0.02)
    shutil.copy(tmp_path / "run.vtkhdf", tmp_path / "before.vtkhdf")
    leg(tmp_path, 2, 0.05, tmp_path / "state.h5")
    shutil.move(tmp_path / "before.vtkhdf", tmp_path / "run.vtkhdf")
    with gv.open_result(tmp_path / "run.vtkhdf") as result:
        assert len(result) == 3 and len(list(result)) == 3
    leg(tmp_path, 2, 0.06, tmp_path / "state.h5")
    with gv.open_result(tmp_path / "run.vtkhdf") as result:
        assert np.allclose(result.times, EVERY * np.arange(7))


def test_another_run_replaces_parts_and_index(tmp_path):
    leg(tmp_path, 3, 0.02)
    leg(tmp_path, 2, 0.02)
    assert sorted(file.name for file in tmp_path.glob("run*")) == ["run.rank0000.vtkhdf", "run.rank0001.vtkhdf", "run.vtkhdf"]
    assert len(list(clouds(tmp_path / "run.vtkhdf"))) == 3
    leg(tmp_path, 1, 0.02)
    assert [file.name for file in tmp_path.glob("run*")] == ["run.vtkhdf"]


@pytest.mark.parametrize("where", ["part", "index", "start"])
def test_what_one_cannot_write_ends_the_run_on_all(where, tmp_path, monkeypatch):
    """No rank waits for one that has failed, and the frames before can be read."""
    write, index = ResultWriter.write_frame, parts.write_index

    def full(writer):
        if writer.rank == 1 and writer.simulation.steps == 30:
            raise OSError("output run.rank0001.vtkhdf cannot be written: no space")
        write(writer)

    def no_index(path, stretches, simulation, about):
        if simulation.steps == 30:
            raise OSError("output run.vtkhdf cannot be written: no space")
        index(path, stretches, simulation, about)

    if where == "part":
        monkeypatch.setattr(ResultWriter, "write_frame", full)
    elif where == "index":
        monkeypatch.setattr(parts, "write_index", no_index)
        monkeypatch.setattr(parts, "QUICK", np.inf)  # it is written with every frame, however slow the machine is
    else:
        (tmp_path / "run.rank0001.vtkhdf").write_text("my diary")
    sims = [heap() for _ in range(3)]
    outcome = in_threads(3, lambda team: shared(sims[team.rank], team).run(0.06, tmp_path / "run.vtkhdf", EVERY))
    assert all(isinstance(error, ValueError if where == "start" else OSError) for error in outcome), outcome
    assert all(("run.rank0001" if where != "index" else "run.vtkhdf") in str(error) for error in outcome)
    assert {sim.steps for sim in sims} == {0 if where == "start" else 30}
    if where == "start":
        assert (tmp_path / "run.rank0001.vtkhdf").read_text() == "my diary"
    else:
        with gv.open_result(tmp_path / "run.vtkhdf") as result:
            assert len(list(result)) == 3
        assert len(list(clouds(tmp_path / "run.vtkhdf"))) == 3


def test_after_a_frame_that_failed_no_other_is_taken(tmp_path, monkeypatch):
    """One part would lag behind the others for ever."""
    write, fails = ResultWriter.write_frame, []

    def full(writer):
        if writer.rank == 1 and writer.simulation.steps == 1 and not fails:
            fails.append(1)
            raise OSError("no space")
        write(writer)

    monkeypatch.setattr(ResultWriter, "write_frame", full)

    def one(team):
        sim = shared(heap(), team)
        with parts.PartsWriter(tmp_path / "run.vtkhdf", sim) as writer:
            writer.write_frame()
            sim.step()
            with pytest.raises(OSError, match="no space"):
                writer.write_frame()
            writer.write_frame()

    assert in_threads(2, one) == [None] * 2
    ((time, cloud),) = clouds(tmp_path / "run.vtkhdf")
    assert time == 0 and np.array_equal(np.sort(cloud.verts.reshape(-1, 2)[:, 1]), np.arange(cloud.n_points))
    with gv.open_result(tmp_path / "run.vtkhdf") as result:
        assert len(list(result)) == 1


def test_what_an_observer_of_one_raises_all_raise(tmp_path):
    def watch(sim):
        if sim.team.rank == 1 and sim.steps == 7:
            raise ValueError("the bed is too hot")

    sims = [heap() for _ in range(2)]
    run = lambda team: shared(sims[team.rank], team).run(0.06, tmp_path / "run.vtkhdf", EVERY, observers=[watch])  # noqa: E731
    outcome = in_threads(2, run)
    assert [str(error) for error in outcome] == ["rank 1: the bed is too hot", "the bed is too hot"]
    assert {sim.steps for sim in sims} == {7}
    with gv.open_result(tmp_path / "run.vtkhdf") as result:
        assert np.allclose(result.times, (0.0, 0.007))


INTERRUPTED = """
def press(sim):
    if sim.steps == 7 and team.rank == 1:
        os.kill(os.getpid(), signal.SIGINT)
sim = shared(heap(), team)
try:
    sim.run(1.0, "run.vtkhdf", 0.005, observers=[press], checkpoint="state.h5")
except KeyboardInterrupt:
    print(f"rank {team.rank}: True {sim.steps}")
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


def test_an_interrupt_of_one_process_ends_the_run_on_all(tmp_path):
    printed = run_ranks(2, INTERRUPTED, tmp_path)
    assert "rank 0: True 7" in printed and "rank 1: True 7" in printed
    with gv.open_result(tmp_path / "run.vtkhdf") as result:
        assert np.allclose(result.times, (0.0, 0.005, 0.007)) and len(result.reports) == 7
    assert gv.Simulation.load(tmp_path / "state.h5").steps == 7
