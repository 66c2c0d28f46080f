"""Results and checkpoints: what is written can be read, by us and by others; what is not ours is refused."""

import dataclasses

import h5py
import numpy as np
import pytest
import pyvista

import gravel as gv
from gravel.io import checksummed
from gravel.io.vtkhdf import ResultWriter, read_frame, read_reports


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
        yield reader.GetTimeValue(), pyvista.wrap(reader.GetOutputDataObject(0))["bodies"]


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

    with pytest.raises(KeyboardInterrupt, match="interrupted after 7 steps"):
        simulation.run(until=1.0, save=tmp_path / "r.vtkhdf", every=0.002, observers=[interrupt], checkpoint=tmp_path / "c.h5")
    assert simulation.steps == 7
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


def change(path, function):
    """Change a checkpoint and seal it again, as someone who means harm would."""
    path.write_bytes(path.read_bytes()[: -checksummed.SEAL_BYTES])
    with h5py.File(path, "r+") as file:
        function(file)
    checksummed.seal(path)


def test_foreign_truncated_damaged_and_other_versions_are_refused(tmp_path):
    simulation = falling()
    simulation.step()
    good = tmp_path / "good.h5"
    simulation.save(good)
    content = good.read_bytes()
    cases = {"truncated": content[: len(content) // 2], "text": b"hello"}
    for name, data in cases.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match="not a checkpoint"):
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
    change(good, lambda file: file.attrs.modify("gravel_checkpoint", 99))
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
        assert file["VTKHDF/bodies/Steps"].attrs["NSteps"] == 4
    with pytest.raises(OSError, match="only 1.0 MB left"):
        simulation.run(until=0.2, save=tmp_path / "none.vtkhdf")
    with pytest.raises(OSError, match="only 1.0 MB left"):
        simulation.save(tmp_path / "state.h5")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["full.vtkhdf"]


# --- geometries
CUBE = np.array([(x, y, z) for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)])


def of_all_kinds():
    """A scene with ground and one or two bodies of each kind, and the shapes by id."""
    scene, hull = gv.Scene(), gv.ConvexHull(np.random.default_rng(3).normal(size=(15, 3)) * 0.07)
    ground = gv.HeightField.from_function(lambda x, y: 0.05 * np.sin(4 * x) * np.cos(3 * y), (-2, -2), (2, 2), 0.25)
    scene.add_body(ground, fixed=True)
    shapes = [
        gv.Sphere(0.1),
        gv.Ellipsoid((0.14, 0.1, 0.06)),
        gv.Capsule(0.06, 0.1),
        gv.Cylinder(0.08, 0.12),
        gv.Cone(0.1, 0.25),
        gv.Box((0.12, 0.08, 0.05)),
        gv.RoundedBox((0.12, 0.08, 0.05), 0.02),
        hull,
        gv.Clump([[0, 0, 0], [0.1, 0, 0]], [0.1, 0.07], scale=1.1),
        gv.Compound([(gv.Sphere(0.1),), (hull, (0, 0, 0.15)), (gv.ConvexHull(CUBE), (0.1, 0, 0))]),
        gv.Mesh([(0, 0, 0), (0.3, 0, 0), (0, 0.3, 0), (0, 0, 0.3)], [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]),
    ]
    for k, shape in enumerate(shapes):
        scene.add_body(shape, (0.5 * (k % 4) - 0.7, 0.5 * (k // 4) - 0.7, 0.4), quaternion=(1, 0.1 * k, 0, 0.2))
    return scene, [ground, *shapes]


def test_results_hold_every_kind_with_its_surface(tmp_path):
    scene, shapes = of_all_kinds()
    simulation = gv.Simulation(scene, 1e-3)
    with ResultWriter(tmp_path / "r.vtkhdf", simulation) as writer:
        writer.write_frame()
    frame, bodies = read_frame(tmp_path / "r.vtkhdf"), simulation.bodies
    assert frame["shape"].tolist() == [shape.KIND for shape in shapes]
    assert frame["geometry"].tolist() == bodies.geometry.tolist()
    assert np.allclose(frame["extent"], bodies.extent[:, :3]) and np.allclose(frame["quaternion"], bodies.quaternion)
    assert sorted(frame["geometries"]) == sorted(set(bodies.geometry.tolist()) - {-1})
    for body, number in enumerate(frame["geometry"].tolist()):
        if number >= 0:
            surface, geometry = frame["geometries"][number], simulation.geometries[number]
            assert surface["vertices"].dtype == "f4" and surface["triangles"].dtype == "i4"
            assert surface["triangles"].min() >= 0 and surface["triangles"].max() < len(surface["vertices"])
            reach = np.linalg.norm(surface["vertices"], axis=1).max()
            assert reach == pytest.approx(geometry.radius, rel=0.05 if shapes[body].KIND == gv.Clump.KIND else 1e-5)
            if shapes[body].KIND == gv.Mesh.KIND:
                assert np.array_equal(surface["triangles"], geometry.triangles)
    with h5py.File(tmp_path / "r.vtkhdf") as file:
        names = list(file["gravel"].attrs["shapes"])
        assert len(file["gravel/geometries"]) == len(simulation.geometries)  # with the hulls that are in compounds only
    assert [names[shape.KIND] for shape in shapes[:4]] == ["MESH", "SPHERE", "ELLIPSOID", "CAPSULE"]
    (mesh,) = [mesh for _, mesh in frames_by_vtk(tmp_path / "r.vtkhdf")]
    assert mesh["geometry"].tolist() == bodies.geometry.tolist()


def test_geometries_that_come_later_are_written_once_and_the_room_for_them_is_asked(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("gravel.io.vtkhdf.check_room", lambda path, needed: asked.append(needed))
    simulation = falling()
    with ResultWriter(tmp_path / "r.vtkhdf", simulation, surfaces=False) as writer:
        writer.write_frame()
        heights = gv.HeightField(np.zeros((400, 400)), 0.1)
        simulation.add_bodies(heights, [[0, 0, -1]], fixed=True)
        writer.write_frame()
        simulation.add_bodies(heights, [[0, 0, -2]], fixed=True)
        simulation.add_bodies(gv.ConvexHull(CUBE), [[0, 0, 3]])
        writer.write_frame()
    assert [sorted(read_frame(tmp_path / "r.vtkhdf", k)["geometries"]) for k in range(3)] == [[], [0], [0, 1]]
    assert read_frame(tmp_path / "r.vtkhdf")["geometry"].tolist() == [-1] * 5 + [0, 0, 1]
    assert asked[0] == asked[1] and asked[2] - asked[1] > 12 * (400**2 + 2 * 399**2) and asked[3] < asked[2] / 10 + asked[1]


def test_results_of_another_version_are_refused(tmp_path):
    with ResultWriter(tmp_path / "r.vtkhdf", falling()) as writer:
        writer.write_frame()
    with h5py.File(tmp_path / "r.vtkhdf", "r+") as file:
        del file["gravel"].attrs["version"]
    with pytest.raises(ValueError, match="result version 1, this gravel reads version 6"):
        read_frame(tmp_path / "r.vtkhdf")


def test_planes_are_written_where_they_are_in_each_frame(tmp_path):
    """A plane that tips and sinks, one that stands, and one that is removed between the frames."""
    scene, rate = gv.Scene(), 0.5
    tips = gv.ConstantVelocity((0, 0, -0.2), (0, rate, 0))
    scene.add_body(gv.Plane((0, 0, 1)), motion=tips)
    scene.add_body(gv.Plane((1, 0, 0)), (-2, 0, 0), fixed=True, quaternion=(np.cos(np.pi / 4), 0, 0, np.sin(np.pi / 4)))
    gone = scene.add_body(gv.Plane((0, 1, 0)), (0, -3, 0), fixed=True)
    scene.add_body(gv.Sphere(0.1), (0, 0, 5))
    simulation = gv.Simulation(scene, 0.01)
    with ResultWriter(tmp_path / "r.vtkhdf", simulation) as writer:
        writer.write_frame()
        for _ in range(50):
            simulation.step()
        simulation.remove(gone)
        writer.write_frame()
    first, last = read_frame(tmp_path / "r.vtkhdf", 0), read_frame(tmp_path / "r.vtkhdf", 1)
    assert np.allclose(first["plane_normal"], [(0, 0, 1), (0, 1, 0), (0, 1, 0)], atol=1e-12)
    angle = rate * simulation.time
    assert np.allclose(last["plane_normal"], [(np.sin(angle), 0, np.cos(angle)), (0, 1, 0)], atol=1e-9)
    assert np.allclose(last["plane_position"], [(0, 0, -0.2 * simulation.time), (-2, 0, 0)], atol=1e-9)


def test_checkpoints_hold_geometries_and_bodies_may_be_added_after(tmp_path):
    scene, shapes = of_all_kinds()
    simulation = gv.Simulation(scene, 1e-3)
    simulation.save(tmp_path / "c.h5")
    loaded = gv.Simulation.load(tmp_path / "c.h5")
    assert np.array_equal(loaded.bodies.geometry, simulation.bodies.geometry)
    assert len(loaded.geometries) == len(simulation.geometries)
    for old, new in zip(simulation.geometries, loaded.geometries):
        for field in dataclasses.fields(old):
            if field.name != "parts":
                a, b = np.asarray(getattr(old, field.name)), np.asarray(getattr(new, field.name))
                assert np.array_equal(a, b) and a.dtype == b.dtype and a.shape == b.shape, field.name
        assert [simulation.geometries.index(p) for p in old.parts] == [loaded.geometries.index(p) for p in new.parts]
    assert any(g.parts for g in loaded.geometries)
    count, hull = len(loaded.geometries), gv.ConvexHull(0.7 * np.array(CUBE))
    ids = [loaded.add_bodies(hull, [[0, 0, z]])[0] for z in (5, 6)]
    assert loaded.bodies.geometry[ids].tolist() == [count, count] and len(loaded.geometries) == count + 1
    ids = [loaded.add_bodies(shape, [[0, 0, 7 + k]])[0] for k, shape in enumerate((gv.ConvexHull(CUBE), hull))]
    assert loaded.bodies.geometry[ids[1]] == count and len(loaded.geometries) == count + 1  # the same content is stored once
    loaded.save(tmp_path / "d.h5")
    assert len(gv.Simulation.load(tmp_path / "d.h5").geometries) == count + 1


def test_a_resumed_simulation_of_shapes_continues_bit_for_bit(tmp_path):
    scene = gv.Scene()
    scene.add_body(gv.HeightField.from_function(lambda x, y: 0.05 * np.sin(4 * x) * np.cos(3 * y), (-2, -2), (2, 2), 0.25), fixed=True)
    for k, shape in enumerate(
        (
            gv.ConvexHull(np.random.default_rng(3).normal(size=(15, 3)) * 0.07, scale=[0.8, 1.1]),
            gv.Clump([[0, 0, 0], [0.1, 0, 0]], [0.1, 0.07]),
            gv.Ellipsoid((0.14, 0.1, 0.06)),
        )
    ):
        scene.add_bodies(shape, [[0.3 * k - 0.3, 0, 0.3], [0.3 * k - 0.3, 0.05, 0.6]], quaternions=[[1, 0.2, 0, 0], [1, 0, 0.5, 0.1]])
    simulation = gv.Simulation(scene, 2e-3)
    simulation.run(until=0.3)
    assert simulation.report.contacts > 3
    simulation.save(tmp_path / "c.h5")
    resumed = gv.Simulation.load(tmp_path / "c.h5")
    for _ in range(100):
        simulation.step()
        resumed.step()
    assert resumed.state_hash() == simulation.state_hash()
    assert resumed.report.contacts == simulation.report.contacts
