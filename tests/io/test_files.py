"""Results and checkpoints: what is written can be read, by us and by others; what is not ours is refused."""

import h5py
import numpy as np
import pytest
import pyvista

import gravel as gv
from gravel.io.vtkhdf import read_frame, read_reports


def falling(n=5, **options):
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_bodies(gv.Sphere(np.linspace(0.05, 0.1, n)), [[0.3 * k, 0, 0.5] for k in range(n)])
    return gv.Simulation(scene, 1e-3, **options)


def frames_by_vtk(path):
    reader = pyvista.get_reader(path).reader
    reader.UpdateInformation()
    for k in range(reader.GetNumberOfSteps()):
        reader.SetStep(k)
        reader.Update()
        yield reader.GetTimeValue(), pyvista.wrap(reader.GetOutputDataObject(0))


def test_vtk_reads_what_was_simulated_while_bodies_come_and_go(tmp_path):
    simulation, seen = falling(), []

    def change(s):
        if s.steps == 10:
            s.add_bodies(gv.Sphere(0.07), [[0, 1, 1], [0, 2, 1]])
        if s.steps == 30:
            s.remove([2])

    def note(s):
        seen.append((s.time, s.positions[s.movable].copy(), s.velocities[s.movable].copy()))

    note(simulation)
    simulation.run(until=0.05, save=tmp_path / "r.vtkhdf", every=0.01, observers=[change, (note, 0.01)])
    frames = list(frames_by_vtk(tmp_path / "r.vtkhdf"))
    assert len(frames) == len(seen) == 6
    for (time, mesh), (true_time, positions, velocities) in zip(frames, seen):
        assert time == pytest.approx(true_time)
        assert np.allclose(mesh.points, positions, atol=1e-6)
        assert np.allclose(mesh["velocity"], velocities, atol=1e-6)
        assert mesh.n_verts == len(positions)


def test_reports_are_kept(tmp_path):
    simulation = falling()
    energies = []
    simulation.run(until=0.02, save=tmp_path / "r.vtkhdf", observers=[lambda s: energies.append(s.report.kinetic_energy)])
    reports = read_reports(tmp_path / "r.vtkhdf")
    assert np.allclose(reports["kinetic_energy"], energies)
    assert np.allclose(reports["time"], 1e-3 * np.arange(1, 21))


def test_interrupted_run_leaves_a_readable_result(tmp_path):
    simulation = falling()

    def interrupt(s):
        if s.steps == 7:
            raise KeyboardInterrupt

    report = simulation.run(until=1.0, save=tmp_path / "r.vtkhdf", every=0.002, observers=[interrupt], checkpoint=tmp_path / "c.h5")
    assert report.interrupted and report.steps == 7
    assert read_frame(tmp_path / "r.vtkhdf")["time"] == pytest.approx(0.007)
    assert gv.Simulation.load(tmp_path / "c.h5").state_hash() == simulation.state_hash()


def test_failed_step_leaves_the_last_good_state_on_disk(tmp_path):
    simulation = falling()

    def poison(s):
        if s.steps == 5:
            s.velocities[3] = np.nan

    with pytest.raises(gv.SimulationError) as caught:
        simulation.run(until=1.0, save=tmp_path / "r.vtkhdf", every=0.001, observers=[poison])
    assert caught.value.body == 3 and caught.value.step == 6
    assert np.isfinite(read_frame(tmp_path / "r.vtkhdf")["position"]).all()


@pytest.mark.parametrize("path, reason", [("missing/r.vtkhdf", "no folder"), (".", "folder")])
def test_output_that_cannot_be_written_is_refused_before_the_first_step(tmp_path, path, reason):
    simulation = falling()
    with pytest.raises(OSError, match=reason):
        simulation.run(until=0.01, save=tmp_path / path)
    assert simulation.steps == 0


def test_foreign_truncated_damaged_and_other_versions_are_refused(tmp_path):
    simulation = falling()
    simulation.step()
    good = tmp_path / "good.h5"
    simulation.save(good)
    content = good.read_bytes()
    cases = {"truncated": content[: len(content) // 2], "text": b"hello"}
    for name, data in cases.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match="truncated or not a checkpoint"):
            gv.Simulation.load(tmp_path / name)
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["x"] = 1
    with pytest.raises(ValueError, match="not a checkpoint of gravel"):
        gv.Simulation.load(tmp_path / "foreign.h5")
    with h5py.File(good, "r+") as file:
        file["bodies/position"][1, 0] += 1e-9
    with pytest.raises(ValueError, match="damaged"):
        gv.Simulation.load(good)
    good.write_bytes(content)
    with h5py.File(good, "r+") as file:
        file.attrs["gravel_checkpoint"] = 99
    with pytest.raises(ValueError, match="version 99"):
        gv.Simulation.load(good)
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        gv.Simulation.load(tmp_path / "nothing.h5")


def test_saving_leaves_no_temporary_file(tmp_path):
    falling().save(tmp_path / "s.h5")
    assert [p.name for p in tmp_path.iterdir()] == ["s.h5"]


def test_a_disk_that_fills_up_stops_the_run_and_leaves_what_was_written(tmp_path, monkeypatch):
    import shutil
    from collections import namedtuple

    from gravel.io import vtkhdf

    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1), (0, 0, 1))
    simulation = gv.Simulation(scene, 1e-3)
    usage, room = namedtuple("usage", "total used free"), iter([10**9] * 5 + [10**6] * 100)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(10**9, 0, next(room)))
    with pytest.raises(OSError, match="only 1.0 MB left"):
        simulation.run(until=0.1, save=tmp_path / "full.vtkhdf", every=0.01)
    with vtkhdf.open_result(tmp_path / "full.vtkhdf") as file:
        assert file["VTKHDF/Steps"].attrs["NSteps"] == 4
    with pytest.raises(OSError, match="only 1.0 MB left"):
        simulation.run(until=0.2, save=tmp_path / "none.vtkhdf")
    with pytest.raises(OSError, match="only 1.0 MB left"):
        simulation.save(tmp_path / "state.h5")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["full.vtkhdf"]
