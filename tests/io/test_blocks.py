"""What ParaView finds in a result: bodies, surfaces, fixed ones, planes and contacts, by VTK's own reader, frame by frame."""

import os
import shutil
import subprocess
import sys
import warnings

import h5py
import numpy as np
import pytest
import pyvista
import vtk

import gravel as gv
from gravel.io import surface_blocks
from gravel.io.vtkhdf import ResultWriter, read_frame

EVERY = 0.01


def scene():
    """Ground, a wall, a fixed box, and a ball, a box, a hull and a driven cylinder above them."""
    scene = gv.Scene()
    scene.add_body(gv.Plane((0, 0, 1)), fixed=True)
    scene.add_body(gv.Plane((1, 0, 0)), (-3, 0, 0), fixed=True)
    scene.add_body(gv.Box((0.5, 0.3, 0.1)), (2, 0, 0.5), fixed=True, material=gv.Material(friction=0.1))
    scene.add_body(gv.Sphere(0.2), (0, 0, 0.2))
    scene.add_body(gv.Box((0.2, 0.1, 0.1)), (0, 1, 0.1), quaternion=(1, 0, 0, 0.3))
    scene.add_body(gv.ConvexHull([(0, 0, 0), (0.2, 0, 0), (0, 0.2, 0), (0, 0, 0.2)], scale=1.5), (0, 2, 1))
    scene.add_body(gv.Cylinder(0.1, 0.4), (0, -1, 1), motion=gv.ConstantVelocity((0.5, 0, 0), (0, 0, 2.0)))
    return scene


def change(sim):
    if sim.steps == 25:
        sim.add_bodies(gv.Box((0.1, 0.1, 0.1)), [(1, 1, 2)])
        sim.remove([4])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """(path, what was there at each frame): times, bodies by id, contacts."""
    path, seen, sim = tmp_path_factory.mktemp("blocks") / "r.vtkhdf", [], gv.Simulation(scene(), 1e-3)

    def note(s):
        there = np.flatnonzero(s.alive)
        fields = {name: getattr(s, name)[there].copy() for name in ("positions", "quaternions", "velocities")}
        seen.append((s.time, there, fields, s.contacts))

    note(sim)
    sim.run(0.05, path, EVERY, observers=[change, (note, EVERY)], contacts=True)
    return path, seen


def blocks_of(path, by_time=False):
    """(time, blocks) of each frame, by VTK; asked for by number or, as ParaView does, by time, with information asked for again."""
    reader = vtk.vtkHDFReader()
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    times = reader.GetOutputInformation(0).Get(vtk.vtkStreamingDemandDrivenPipeline.TIME_STEPS())
    for k, time in enumerate(times):
        if by_time:
            reader.UpdateInformation()
            reader.UpdateTimeStep(time)
        else:
            reader.SetStep(k)
            reader.Update()
        blocks = pyvista.wrap(reader.GetOutputDataObject(0))
        yield reader.GetTimeValue(), {name: blocks[name].copy() for name in list(blocks.keys())}


@pytest.mark.parametrize("by_time", [False, True])
def test_vtk_finds_bodies_as_points_with_radius_at_their_times(saved, by_time):
    path, seen = saved
    frames = list(blocks_of(path, by_time))
    assert len(frames) == len(seen) == 6
    for (time, blocks), (true_time, ids, fields, _) in zip(frames, seen):
        bodies = blocks["bodies"]
        shown = ids >= 2  # without planes
        assert time == pytest.approx(true_time) and np.array_equal(bodies["id"], ids[shown])
        assert np.allclose(bodies.points, fields["positions"][shown], atol=1e-6)
        assert np.allclose(bodies["velocity"], fields["velocities"][shown], atol=1e-6)
        assert bodies["radius"][bodies["id"] == 3] == pytest.approx(0.2)
        assert np.array_equal(bodies.verts.reshape(-1, 2)[:, 1], np.arange(len(bodies.points)))


def corners(half, position, quaternion):
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    turn = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    signs = np.array([(a, b, c) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)])
    return (signs * half) @ turn.T + position


def part_of(mesh, body):
    return mesh.extract_points(mesh["id"] == body, adjacent_cells=False).extract_surface(algorithm="dataset_surface").clean()


def test_vtk_finds_surfaces_of_what_moves(saved):
    path, seen = saved
    for (_, blocks), (_, ids, fields, _) in zip(blocks_of(path), seen):
        mesh = blocks["surfaces"]
        assert mesh.is_all_triangles and set(mesh["id"]) == set(ids[ids >= 4])
        for body, half in ((4, (0.2, 0.1, 0.1)), (7, (0.1, 0.1, 0.1))):
            if body in ids:
                row = np.flatnonzero(ids == body)[0]
                box = part_of(mesh, body)
                true = corners(np.array(half), fields["positions"][row], fields["quaternions"][row])
                found = np.unique(box.points.round(5), axis=0)
                assert len(found) == 8 and all(np.abs(found - corner).max(axis=1).min() < 2e-5 for corner in true)
                assert box.volume == pytest.approx(8 * np.prod(half), rel=1e-4)
                assert np.allclose(mesh["speed"][mesh["id"] == body], np.linalg.norm(fields["velocities"][row]), atol=1e-5)
        assert part_of(mesh, 5).volume == pytest.approx(1.5**3 * 0.2**3 / 6, rel=1e-4)
        assert part_of(mesh, 6).volume == pytest.approx(np.pi * 0.1**2 * 0.8, rel=0.02)


def test_vtk_finds_what_is_fixed_in_all_frames_and_it_is_written_once(saved):
    path, _ = saved
    for _, blocks in blocks_of(path):
        fixed, planes = blocks["fixed"], blocks["planes"]
        assert np.allclose(fixed.bounds, (1.5, 2.5, -0.3, 0.3, 0.4, 0.6), atol=1e-6) and set(fixed["id"]) == {2}
        assert fixed.volume == pytest.approx(8 * 0.5 * 0.3 * 0.1, rel=1e-5)
        assert planes.n_points == 8 and planes.n_lines == 1  # the wall is an outline
        assert planes.n_cells == 2
        floor = planes.extract_cells(planes.n_lines)
        assert np.allclose(floor.points[:, 2], 0) and floor.bounds[0] < 0 and floor.bounds[1] > 2.5
    with h5py.File(path) as file:
        assert len(file["VTKHDF/fixed/Points"]) == 24 and len(file["VTKHDF/fixed/Steps/PointOffsets"]) == 6
        assert len(file["VTKHDF/bodies/PointData/radius"]) == 10 and len(file["VTKHDF/bodies/PointData/velocity"]) == 30


def test_vtk_finds_contacts_with_their_forces(saved):
    path, seen = saved
    sizes = []
    for (_, blocks), (_, _, _, table) in zip(blocks_of(path), seen):
        mesh = blocks["contacts"]
        sizes.append(len(table))
        assert mesh.n_points == mesh.n_verts == len(table)
        assert np.allclose(mesh.points, table.point) and np.array_equal(mesh["body_b"], table.body_b)
        assert np.allclose(mesh["force"], table.impulse / 1e-3, rtol=1e-5, atol=1e-6)
    assert sizes[0] == 0 and max(sizes) >= 5 and len(set(sizes)) > 1


def test_gravel_reads_what_frames_share(saved):
    path, seen = saved
    for k, (_, ids, fields, _) in enumerate(seen):
        frame = read_frame(path, k)
        assert np.array_equal(frame["id"], ids[ids >= 2]) and np.allclose(frame["position"], fields["positions"][ids >= 2], atol=1e-6)
        assert frame["radius"][frame["id"] == 3] == pytest.approx(0.2) and len(frame["mass"]) == len(frame["id"])


def test_spheres_alone_have_no_surfaces(tmp_path):
    some = gv.Scene()
    some.add_bodies(gv.Sphere(0.1), [(0, 0, z) for z in range(3)])
    sim = gv.Simulation(some, 1e-3)
    sim.run(0.01, tmp_path / "r.vtkhdf", 0.005)
    with h5py.File(tmp_path / "r.vtkhdf") as file:
        assert list(file["VTKHDF/Assembly"]) == ["bodies"]
    sim.add_bodies(gv.Box((0.1, 0.1, 0.1)), [(1, 0, 0)])  # a block that comes later is empty before
    sim.run(0.02, tmp_path / "r.vtkhdf", 0.005)
    counts = [blocks["surfaces"].n_points for _, blocks in blocks_of(tmp_path / "r.vtkhdf")]
    assert counts == [0, 0, 24, 24, 24]  # the last frame of the first part is written anew


def some_capsules(n=30):
    some = gv.Scene()
    some.add_bodies(gv.Capsule(0.1, 0.2), [(k, 0, 0) for k in range(n)])
    return gv.Simulation(some, 1e-3)


def test_too_many_vertices_are_told_and_left_out_unless_they_are_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(surface_blocks, "MOST_VERTICES", 900)
    with pytest.warns(UserWarning, match=r"written as points only, for the surfaces of 30 bodies would have \d+ vertices"):
        write(tmp_path / "a.vtkhdf", "auto")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(tmp_path / "b.vtkhdf", True)
        write(tmp_path / "c.vtkhdf", False)
        monkeypatch.setattr(surface_blocks, "MOST_VERTICES", 2000)
        write(tmp_path / "d.vtkhdf", "auto")
    first = {name: next(blocks_of_one(tmp_path / f"{name}.vtkhdf")) for name in "abcd"}
    assert "surfaces" not in first["a"] and "surfaces" not in first["c"] and list(first["a"]["bodies"]["id"]) == list(range(30))
    fine, coarse = first["b"]["surfaces"], first["d"]["surfaces"]
    assert 900 < coarse.n_points <= 2000 < fine.n_points
    assert set(coarse["id"]) == set(range(30))


def write(path, surfaces):
    with ResultWriter(path, some_capsules(), surfaces=surfaces) as writer:
        writer.write_frame()


def blocks_of_one(path):
    """A file of one frame has no time in VTK."""
    blocks = pyvista.get_reader(path).read()
    yield {name: blocks[name] for name in list(blocks.keys())}


def test_what_surfaces_may_be_is_told(tmp_path):
    with pytest.raises(ValueError, match="surfaces must be True, False or \"auto\", not 'all'"):
        some_capsules(2).run(0.01, tmp_path / "r.vtkhdf", surfaces="all")


# --- files that cannot be read
def test_a_file_that_a_run_is_writing_says_so(tmp_path):
    path = tmp_path / "r.vtkhdf"
    with ResultWriter(path, some_capsules(2)) as writer:
        writer.write_frame()
        for what in (f"gv.open_result({str(path)!r})", f"s.run(0.01, {str(path)!r})"):
            script = f"import gravel as gv\nc = gv.Scene()\nc.add_body(gv.Sphere(1))\ns = gv.Simulation(c, 0.01)\n{what}"
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ})
            words = "is being written by a run" if "open_result" in what else "is open in another process"
            assert done.returncode == 1 and words in done.stderr.splitlines()[-1], done.stderr
        assert (
            "gravel run --view"
            in subprocess.run([sys.executable, "-m", "gravel", "picture", str(path)], capture_output=True, text=True).stderr
        )
    assert len(read_frame(path)["id"]) == 2


KINDS = {"empty": "it is empty", "cut": "cut short", "other": "no group VTKHDF or gravel", "text": "not a result"}


@pytest.mark.parametrize("kind, words", KINDS.items())
def test_files_that_are_no_results_are_refused_in_a_sentence(kind, words, saved, tmp_path):
    path = tmp_path / "r.vtkhdf"
    if kind == "other":
        with h5py.File(path, "w") as file:
            file["x"] = 1
    elif kind == "cut":
        shutil.copy(saved[0], path)
        os.truncate(path, path.stat().st_size // 2)
    else:
        path.write_bytes(b"" if kind == "empty" else b"time,x\n0,1\n")
    with pytest.raises(ValueError, match=f"r.vtkhdf.*{words}"):
        gv.open_result(path)


def test_a_frame_that_is_not_there_is_refused(saved):
    with pytest.raises(ValueError, match="frame must be from -6 to 5 for .*, not 6"):
        read_frame(saved[0], 6)
