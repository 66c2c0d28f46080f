"""Checkpoints of many processes: their parts joined are the checkpoint of one, and a kill at any moment leaves the last whole one."""

import json
import os
import pathlib
import shutil
import threading

import h5py
import numpy as np
import pytest
from shared import come_and_go, heap, in_threads, run_ranks, shared

import gravel as gv
from gravel.io import checkpoint_parts, checksummed
from gravel.io.checkpoint import load_parts, origin_of
from gravel.state import FIELDS


def saved_by(size, path, steps, **options):
    """The checkpoint of so many processes after some steps; returns what one of them simulated."""
    sims = [heap(**options) for _ in range(size)]

    def one(team):
        sim = shared(sims[team.rank], team)
        for _ in range(steps):
            sim.step()
            come_and_go(sim)
        sim.save(path)

    outcome = in_threads(size, one)
    assert outcome == [None] * size, outcome
    return sims[0]


def after(steps, path, **options):
    """A simulation by itself, after its checkpoint was written and read."""
    sim = heap(**options)
    for _ in range(steps):
        sim.step()
        come_and_go(sim)
    sim.save(path)
    return gv.Simulation.load(path, threads=1)


def remembered(sim):
    """The memory of contacts, sorted."""
    memory = sim.engine.memory()
    found = {}
    for prefix in ("", "slept_"):
        order = np.lexsort([memory[prefix + name] for name in ("feature", "b", "a")])
        columns = [prefix + name for name in ("a", "b", "feature", "impulse", "torque")]
        found.update({name: memory[name][order] for name in columns if len(memory[name])})
    return found


def assert_same(sim, true):
    assert sim.state_hash() == true.state_hash() and (sim.steps, sim.count) == (true.steps, true.count)
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(sim.bodies, field.name), getattr(true.bodies, field.name), err_msg=field.name)
    for name in sim.contacts.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(sim.contacts, name), getattr(true.contacts, name), err_msg=name)
    have, want = remembered(sim), remembered(true)
    assert set(have) == set(want)
    for name in want:
        np.testing.assert_array_equal(have[name], want[name], err_msg=name)
    for arrays, others in ((sim.watch_arrays(), true.watch_arrays()), (sim.mechanism.to_arrays(), true.mechanism.to_arrays())):
        for name in others:
            np.testing.assert_array_equal(arrays[name], others[name], err_msg=name)
    assert sim.mechanism.names == true.mechanism.names and list(sim.motions) == list(true.motions)
    assert [m.friction for m in sim.materials.kinds] == [m.friction for m in true.materials.kinds]


@pytest.mark.parametrize("options", [{}, {"sleep": gv.Sleep(speed=1.0, time=0.02), "precision": "double"}], ids=["single", "asleep"])
def test_parts_joined_are_the_checkpoint_of_one(options, tmp_path):
    saved_by(3, tmp_path / "state.h5", 80, **options)
    sim, true = gv.Simulation.load(tmp_path / "state.h5", threads=1), after(80, tmp_path / "one.h5", **options)
    assert len(true.contacts) > 5 and true.asleep.any() == bool(options)
    assert_same(sim, true)
    for _ in range(5):  # warm start and all: they go the same way, but for the order of the rows
        sim.step(), true.step()
    np.testing.assert_allclose(sim.positions, true.positions, atol=1e-6)
    assert sim.report.iterations <= true.report.iterations + 5


def test_a_checkpoint_of_the_same_step_has_parts_of_another_name(tmp_path):
    names = ["state.h5", "state.step00000020.rank0000.h5", "state.step00000020.rank0001.h5"]
    for again in ("", ".again", ""):
        sim = saved_by(2, tmp_path / "state.h5", 20)
        assert sorted(file.name for file in tmp_path.iterdir()) == sorted(name.replace(".rank", f"{again}.rank") for name in names)
        assert gv.Simulation.load(tmp_path / "state.h5", threads=1).state_hash() == sim.state_hash()


def test_each_process_reads_a_share(tmp_path):
    sim = saved_by(3, tmp_path / "state.h5", 60)
    ids, contacts = np.sort(sim.engine.ids()), type(sim.engine).memory(sim.engine)
    for size in (1, 2, 3, 5):
        shares = [load_parts(tmp_path / "state.h5", rank, size) for rank in range(size)]
        np.testing.assert_array_equal(np.sort(np.concatenate([share.arrays["bodies/id"] for share in shares])), ids)
        assert sum(len(share.arrays["memory/a"]) for share in shares) == len(contacts["a"])
        assert sum(len(share.arrays["contacts/gap"]) for share in shares) == len(gv.Simulation.contacts.fget(sim))
        for rank, share in enumerate(shares):
            parts = {0 if not movable else k % 3 for k, movable in zip(share.arrays["bodies/id"], sim.movable[share.arrays["bodies/id"]])}
            assert parts == set(range(rank, 3, size)) and share.about["steps"] == 60
            assert len(share.arrays["joints/joint_body_a"]) == 1 and share.arrays["bodies/position"].shape[1:] == (3,)
    alone = [load_parts(tmp_path / name, rank, 2) for name in [after(60, tmp_path / "one.h5") and "one.h5"] for rank in range(2)]
    assert [len(share.arrays["bodies/id"]) for share in alone] == [len(ids), 0]


def test_contacts_go_to_the_rows_that_are_there(tmp_path):
    sim = saved_by(2, tmp_path / "state.h5", 60)
    saved = load_parts(tmp_path / "state.h5", 0, 1)
    np.testing.assert_array_equal(saved.memory_of(sim.engine.ids())["number"], type(sim.engine).memory(sim.engine)["number"])
    for ids in (sim.engine.ids(), sim.engine.ids()[::-1], np.array([0, 4, 5]), np.empty(0, np.int64)):
        memory = saved.memory_of(ids)
        owner = np.repeat(ids, memory["number"])
        assert np.all((memory["a"] == owner) | (memory["b"] == owner))
        known = np.isin(saved.arrays["memory/a"], ids) | np.isin(saved.arrays["memory/b"], ids)
        pairs = lambda a, b: sorted(zip(a.tolist(), b.tolist()))  # noqa: E731
        assert pairs(memory["a"], memory["b"]) == pairs(saved.arrays["memory/a"][known], saved.arrays["memory/b"][known])


def test_joints_are_as_those_know_them_who_have_their_bodies(tmp_path):
    """What a process tells of joints that are another's is not looked at."""
    sims = [heap() for _ in range(2)]

    def one(team):
        sim = shared(sims[team.rank], team)
        sim.add_joint(gv.Revolute(None, 5, point=sim.positions[5], axis=(0, 1, 0)))  # of rank 1; the first is that of rank 0
        for _ in range(10):
            sim.step()
        keep, other = type(sim.mechanism).keep, 1 - team.rank

        def keep_own(state):
            keep(sim.mechanism, state)
            rows, joint_of = np.array(sim.mechanism.row_values["joint"]) == other, [c[0] for c in sim.mechanism.coordinates]
            for name, where in (("impulse", rows), ("force", other), ("torque", other), ("motor", other)):
                sim.mechanism.carried[name][where] = -77.0
            sim.mechanism.joint_values["angle"][other] = -77.0
            sim.mechanism.coordinates = [(*c[:3], -77.0 if j == other else c[3]) for c, j in zip(sim.mechanism.coordinates, joint_of)]

        sim.mechanism.keep = keep_own
        sim.save(tmp_path / "state.h5")

    assert in_threads(2, one) == [None] * 2
    have, want = gv.Simulation.load(tmp_path / "state.h5", threads=1).joints, sims[0].joints
    assert np.abs(want.force).min(axis=0).any() and (want.angle != 0).all()
    for name in ("angle", "angle_speed", "force", "torque", "broken", "violation"):
        np.testing.assert_array_equal(getattr(have, name), getattr(want, name), err_msg=name)


@pytest.mark.parametrize("rank, size", [(2, 2), (-1, 2), (0, 0), (0.5, 2)])
def test_a_share_that_there_is_not_is_refused(rank, size, tmp_path):
    with pytest.raises((ValueError, TypeError), match="rank|size"):
        load_parts(tmp_path / "state.h5", rank, size)


def test_a_kill_at_any_moment_leaves_a_whole_checkpoint(tmp_path, monkeypatch):
    """The folder as it is before each file is sealed, renamed or removed: what it holds is the one or the other."""
    folder, copies = tmp_path / "run", tmp_path / "copies"
    folder.mkdir()
    first = saved_by(2, folder / "state.h5", 20).state_hash()
    moments, lock = [], threading.Lock()

    def look():
        moments.append(copies / str(len(moments)))
        shutil.copytree(folder, moments[-1])

    def before(function):
        def call(*arguments, **named):
            with lock:  # nothing goes while the folder is copied
                look()
                return function(*arguments, **named)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", before(os.replace))
        patch.setattr(pathlib.Path, "unlink", before(pathlib.Path.unlink))
        patch.setattr(checksummed, "seal", before(checksummed.seal))
        second = saved_by(2, folder / "state.h5", 25).state_hash()
    look()
    assert len(moments) > 10 and first != second
    found = [gv.Simulation.load(moment / "state.h5", threads=1).state_hash() for moment in moments]
    assert found == sorted(found, key=[first, second].index) and {*found} == {first, second}
    assert len(list(folder.iterdir())) == 3
    moment = moments[found.index(second) - 1]  # the last before the index was renamed: it holds parts of both
    assert len(list(moment.glob("*.rank*.h5"))) == 4
    shutil.copytree(moment, tmp_path / "again")
    saved_by(2, tmp_path / "again" / "state.h5", 30)
    assert len(list((tmp_path / "again").iterdir())) == 3


KILLED = """
from gravel.io import checksummed, parts
parts.QUICK = 1e9  # the index is written with every frame, however slow the machine is
seal = checksummed.seal
def die(path):
    if sim.steps == 20 and team.rank == 1:
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) // 2)
        os.kill(os.getpid(), signal.SIGKILL)
    return seal(path)
checksummed.seal = die
sim = shared(heap(), team)
sim.run(0.06, "run.vtkhdf", 0.004, checkpoint="state.h5", checkpoint_every=0.01)
"""


def test_a_process_that_is_killed_while_it_writes_leaves_the_checkpoint_before(tmp_path):
    run_ranks(2, KILLED, tmp_path, fails=True)
    sim = gv.Simulation.load(tmp_path / "state.h5", threads=1)
    true = heap()
    for _ in range(10):
        true.step()
    assert sim.steps == 10 and sim.state_hash() == true.state_hash()
    with gv.open_result(tmp_path / "run.vtkhdf") as result:  # frames up to the kill
        assert np.allclose(result.times[:5], 0.004 * np.arange(5)) and len(list(result)) == len(result)
    sim.run(0.03, tmp_path / "run.vtkhdf", 0.01, checkpoint=tmp_path / "state.h5")
    with gv.open_result(tmp_path / "run.vtkhdf") as result:
        assert np.allclose(result.times, (0, 0.004, 0.008, 0.01, 0.02, 0.03)) and len(list(result)) == 6
    assert [file.name for file in tmp_path.glob("state*")] == ["state.h5"]  # of one process, and no parts are left


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    saved_by(2, folder / "state.h5", 40)
    return folder


PART = "state.step00000040.rank0001.h5"


def changed(folder, name, change):
    """A sealed file after ``change(file)``, sealed again; returns the new SHA-256."""
    path = folder / name
    path.write_bytes(path.read_bytes()[: -checksummed.SEAL_BYTES])
    with h5py.File(path, "r+") as file:
        change(file)
    return checksummed.seal(path)


def named_again(folder, digest):
    """The index of a folder names its second part with another SHA-256."""

    def change(file):
        about = json.loads(file.attrs["description"])
        about["parts"][1][1] = digest
        file.attrs["description"] = json.dumps(about)

    changed(folder, "state.h5", change)


def put(name, index, value):
    def change(file):
        array = file[name][()]
        array[index] = value
        file[name][...] = array

    return change


def test_a_damaged_part_is_refused_by_name(good, tmp_path):
    shutil.copytree(good, tmp_path / "c")
    content, rng = (tmp_path / "c" / PART).read_bytes(), np.random.default_rng(0)
    for _ in range(10):
        damaged = bytearray(content)
        damaged[rng.integers(len(damaged))] ^= 1 << int(rng.integers(8))
        for harm in (bytes(damaged), content[: rng.integers(len(content))]):
            (tmp_path / "c" / PART).write_bytes(harm)
            with pytest.raises(ValueError, match=rf"state\.h5 .*{PART}"):
                gv.Simulation.load(tmp_path / "c" / "state.h5")


def test_a_part_that_is_missing_or_not_its_own_is_refused(good, tmp_path):
    shutil.copytree(good, tmp_path / "c")
    changed(tmp_path / "c", PART, lambda file: None)
    gv.Simulation.load(tmp_path / "c" / "state.h5")  # nothing has changed
    changed(tmp_path / "c", PART, put("bodies/position", (0, 0), 0.5))
    with pytest.raises(ValueError, match=f"{PART} is not the one that was written with it"):
        gv.Simulation.load(tmp_path / "c" / "state.h5")
    (tmp_path / "c" / PART).unlink()
    with pytest.raises(ValueError, match=rf"state\.h5 .*{PART} is not there"):
        gv.Simulation.load(tmp_path / "c" / "state.h5")


HARM = {
    "id of another part": put("bodies/id", 0, 0),
    "id": put("bodies/id", 0, 10**6),
    "material": put("bodies/tag", (0, 1), 7),
    "position": put("bodies/position", (0, 0), np.nan),
    "who found a contact": put("memory/at", 0, 10**6),
    "who was removed": put("memory/at", 0, 3),
    "body of a contact": put("contacts/body_b", 0, -1),
    "missing": lambda file: file.__delitem__("bodies/force"),
    "more": lambda file: file.__setitem__("gravity", np.zeros(3)),
    "link": lambda file: file.__setitem__("bodies/x", h5py.ExternalLink("elsewhere.h5", "/x")),
    "step": lambda file: file.attrs.modify("description", file.attrs["description"].replace('"steps": 40', '"steps": 41')),
}


@pytest.mark.parametrize("harm", HARM)
def test_a_part_that_was_changed_on_purpose_is_refused(harm, good, tmp_path):
    shutil.copytree(good, tmp_path / "c")
    named_again(tmp_path / "c", changed(tmp_path / "c", PART, HARM[harm]))
    with pytest.raises(ValueError, match=r"state\.h5 is damaged"):
        gv.Simulation.load(tmp_path / "c" / "state.h5")


def test_a_part_alone_is_no_checkpoint_and_its_index_says_what_it_is_of(good):
    for rank in range(2):
        with pytest.raises(ValueError, match="part of a checkpoint of 2 processes"):
            gv.Simulation.load(good / f"state.step00000040.rank000{rank}.h5")
    assert origin_of(good / "state.h5") == {}


@pytest.mark.parametrize("name", ["../state.h5", "/etc/passwd", "a/b.h5", ".."])
def test_parts_lie_beside_their_index(name, good, tmp_path):
    shutil.copytree(good, tmp_path / "c")

    def change(file):
        file.attrs["description"] = file.attrs["description"].replace(PART, name)

    changed(tmp_path / "c", "state.h5", change)
    with pytest.raises(ValueError, match="no plain name"):
        gv.Simulation.load(tmp_path / "c" / "state.h5")


def test_what_one_cannot_write_all_refuse_and_the_last_one_stays(tmp_path, monkeypatch):
    first = saved_by(3, tmp_path / "state.h5", 20).state_hash()
    write = checkpoint_parts.write_sealed

    def full(path, arrays, about):
        if "rank0002" in path.name:
            raise OSError(f"output {path.name} cannot be written: no space")
        return write(path, arrays, about)

    monkeypatch.setattr(checkpoint_parts, "write_sealed", full)
    sims = [heap() for _ in range(3)]
    outcome = in_threads(3, lambda team: shared(sims[team.rank], team).save(tmp_path / "state.h5"))
    assert all(isinstance(error, OSError) and "rank0002" in str(error) for error in outcome), outcome
    assert gv.Simulation.load(tmp_path / "state.h5", threads=1).state_hash() == first
    assert len(list(tmp_path.iterdir())) == 4
