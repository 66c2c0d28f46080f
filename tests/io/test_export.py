"""What is exported is what was simulated, by the readers of others: csv, PyVista, trimesh and VTK's for glTF, Pixar's for USD."""

import csv
import json
import struct
import sys

import numpy as np
import pytest
import pyvista
import trimesh
import vtk
from click.testing import CliRunner

import gravel as gv
from gravel.cli import main
from gravel.io.export import export
from gravel.io.export.instances import PALETTE, SCALE, keys_of, linear, mesh_of, scales_of
from gravel.io.present import frame_of

Usd = pytest.importorskip("pxr.Usd", reason="usd-core is not installed (pip install gravel[usd])")
STONE = gv.Material(density=2500)
SHAPES = {  # by id
    2: gv.Sphere(0.2),
    3: gv.Box((0.2, 0.1, 0.15)),
    4: gv.Capsule(0.1, 0.25),
    5: gv.Cylinder(0.1, 0.3),
    6: gv.Cone(0.15, 0.4),
    7: gv.Ellipsoid((0.3, 0.2, 0.1)),
    8: gv.ConvexHull(0.2 * np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]), scale=1.3),
    9: gv.Sphere(0.1),
}
VOLUMES = {  # m3, formulas
    2: 4 / 3 * np.pi * 0.2**3,
    3: 8 * 0.2 * 0.1 * 0.15,
    4: np.pi * 0.1**2 * 0.5 + 4 / 3 * np.pi * 0.1**3,
    5: np.pi * 0.1**2 * 0.6,
    6: np.pi * 0.15**2 * 0.4 / 3,
    7: 4 / 3 * np.pi * 0.3 * 0.2 * 0.1,
    8: 1.3**3 * 0.2**3 / 6,
    9: 4 / 3 * np.pi * 0.1**3,
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """(path, what was there at each frame): bodies that fly and turn, one that goes and one that comes; a ball that lies on another."""
    scene = gv.Scene(gravity=(0, 0, -9.81))
    scene.add_body(gv.Plane((0, 0, 1)), (0, 0, -0.2), fixed=True, material=STONE)
    scene.add_body(gv.Plane((0, -1, 0)), (0, 20, 0), fixed=True)
    for k, (_, shape) in enumerate(sorted(SHAPES.items())[:-1]):
        material = STONE if k % 2 else gv.Material()
        velocity = (0, 0, 0) if k == 0 else (0.3 * k, 0, 6.0)
        scene.add_body(shape, (0, 2.0 * k, 1.0 if k else 0.0), material, velocity=velocity, angular_velocity=(k, 0.5 * k, 3.0))
    path, seen, sim = tmp_path_factory.mktemp("export") / "r.vtkhdf", [], gv.Simulation(scene, 1e-3)

    def change(s):
        if s.steps == 250:
            s.add_bodies(SHAPES[9], [(0, 0, 0.3)], material=STONE)
            s.remove([5])

    def note(s):
        ids = np.flatnonzero(s.alive)[2:]
        names = ("positions", "quaternions", "velocities", "masses")
        seen.append({"time": s.time, "ids": ids, "contacts": s.contacts, **{name: getattr(s, name)[ids].copy() for name in names}})

    note(sim)
    sim.run(0.4, path, 0.1, observers=[change, (note, 0.1)], contacts=True)
    assert [frame["ids"].tolist() for frame in seen[1:4]] == [[2, 3, 4, 5, 6, 7, 8]] * 2 + [[2, 3, 4, 6, 7, 8, 9]]
    return path, seen


def test_meshes_of_bodies_that_are_scaled_as_a_whole_have_their_proportions():
    """Rounded boxes and capsules: alike ones share a mesh, and all have the volume of their shape."""
    boxes = gv.RoundedBox([(0.2, 0.1, 0.15), (0.4, 0.2, 0.3), (0.2, 0.1, 0.15)], [0.05, 0.1, 0.08])
    scene = gv.Scene()
    scene.add_bodies(boxes, np.eye(3))
    scene.add_bodies(gv.Capsule([0.1, 0.2], [0.2, 0.4]), 3 + np.eye(3)[:2])
    data = frame_of(gv.Simulation(scene, 1e-3))
    (keys, which), scales = keys_of(data), scales_of(data)
    assert which[0] == which[1] != which[2] and which[3] == which[4] and len(keys) == 3
    volumes = [*boxes.volumes(3), *gv.Capsule([0.1, 0.2], [0.2, 0.4]).volumes(2)]
    for row, volume in enumerate(volumes):
        vertices, triangles = mesh_of(keys[which[row]], {}, 24)
        mesh = trimesh.Trimesh(vertices * scales[row], triangles)
        mesh.merge_vertices(merge_norm=True, digits_vertex=5)
        assert mesh.is_watertight and mesh.volume == pytest.approx(volume, rel=0.04)


# --- csv
def table(path):
    with open(path, newline="") as file:
        rows = [row for row in csv.reader(file) if not row[0].startswith("#")]
    names = rows[0]
    columns = {name: np.array([row[k] for row in rows[1:]]) for k, name in enumerate(names)}
    return {name: values if name == "shape" else values.astype(float) for name, values in columns.items()}


def test_csv_holds_all_frames_with_units(saved, tmp_path):
    path, seen = saved
    files = export(path, "csv", tmp_path / "t.csv", contacts=True)
    assert [file.name for file in files] == ["t.csv", "t_contacts.csv"] and len(list(tmp_path.iterdir())) == 2
    found, contacts = table(files[0]), table(files[1])
    for k, frame in enumerate(seen):
        rows = found["frame"] == k
        assert np.allclose(found["time"][rows], frame["time"]) and np.array_equal(found["id"][rows], frame["ids"])
        for names, values in ((("x", "y", "z"), "positions"), (("velocity_x", "velocity_y", "velocity_z"), "velocities")):
            assert np.allclose(np.stack([found[name][rows] for name in names], 1), frame[values], atol=1e-6)
        assert np.allclose(found["mass"][rows], frame["masses"], rtol=1e-6)
        mine = contacts["frame"] == k
        assert np.count_nonzero(mine) == len(frame["contacts"])
        forces = np.stack([contacts[f"force_{axis}"][mine] for axis in "xyz"], 1)
        assert np.allclose(forces, frame["contacts"].impulse / 1e-3, rtol=1e-5, atol=1e-6)
    assert found["shape"][:7].tolist() == ["sphere", "box", "capsule", "cylinder", "cone", "ellipsoid", "hull"]
    lines = [line.split(",") for line in files[0].read_text().splitlines()]
    assert len(seen[-1]["contacts"]) >= 2 and "0.15" in lines[3]  # f4 as short as it is
    units = dict(zip(*lines[:2]))
    assert (units["time"], units["x"], units["velocity_x"], units["mass"], units["inertia_1"]) == ("s", "m", "m/s", "kg", "kg m2")


def test_csv_of_single_frames(saved, tmp_path):
    path, seen = saved
    files = export(path, "csv", tmp_path / "t.csv", frames=slice(1, None, 2), split=True)
    assert [file.name for file in files] == ["t_0001.csv", "t_0003.csv"]
    assert np.array_equal(table(files[1])["id"], seen[3]["ids"]) and set(table(files[1])["frame"]) == {3}


# --- vtp
def test_vtp_series_is_read_with_its_times_surfaces_and_contacts(saved, tmp_path):
    path, seen = saved
    (file,) = export(path, "vtp", tmp_path / "s.pvd", contacts=True)
    reader = pyvista.get_reader(file)
    assert np.allclose(reader.time_values, [frame["time"] for frame in seen])
    for time, frame in zip(reader.time_values, seen):
        reader.set_active_time_value(time)
        bodies, surfaces, planes, contacts = reader.read()
        assert np.array_equal(bodies["id"], frame["ids"]) and np.allclose(bodies.points, frame["positions"], atol=1e-6)
        assert bodies["radius"][frame["ids"] == 2] == pytest.approx(0.2)
        assert set(surfaces["id"]) == set(frame["ids"]) - {2, 9}
        for body in set(surfaces["id"]):
            part = surfaces.extract_points(surfaces["id"] == body, adjacent_cells=False).extract_surface(algorithm="dataset_surface")
            assert part.clean().volume == pytest.approx(VOLUMES[body], rel=0.04)
        assert planes.n_lines == 1 and planes.n_cells == 2
        table = frame["contacts"]
        assert contacts.n_lines == len(table) if len(table) else contacts.n_cells == 0
        if len(table):
            assert np.allclose(contacts["force_size"], np.linalg.norm(table.impulse, axis=1) / 1e-3, rtol=1e-5, atol=1e-6)
            ends = contacts.points.reshape(-1, 3, 3)
            assert np.allclose(ends[:, 1], table.point, atol=1e-6)
            row = {body: k for k, body in enumerate(frame["ids"])}
            for end, body in ((ends[:, 0], table.body_a), (ends[:, 2], table.body_b)):
                true = [frame["positions"][row[b]] if b in row else p for b, p in zip(body, table.point)]
                assert np.allclose(end, true, atol=1e-5)


def test_vtp_replaces_its_own_folder_only(saved, tmp_path):
    path, _ = saved
    export(path, "vtp", tmp_path / "s.pvd")
    export(path, "vtp", tmp_path / "s.pvd", frames=[0])
    names = sorted(file.name for file in (tmp_path / "s_vtp").iterdir())
    assert names == [f"{name}_00000.vtp" for name in ("bodies", "planes", "surfaces")]
    (tmp_path / "s_vtp" / "diary.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="s_vtp is there already and holds diary.txt"):
        export(path, "vtp", tmp_path / "s.pvd")


# --- gltf
def y_up(points):
    """z up turned into y up."""
    x, y, z = np.asarray(points).T
    return np.stack([x, z, -y], axis=-1)


def description(path):
    content = path.read_bytes()
    magic, version, length = struct.unpack("<4sII", content[:12])
    assert magic == b"glTF" and version == 2 and length == len(content)
    size, kind = struct.unpack("<I4s", content[12:20])
    assert kind == b"JSON"
    return json.loads(content[20 : 20 + size])


def test_gltf_of_a_frame_has_the_bodies_where_they_are_by_trimesh(saved, tmp_path):
    path, seen = saved
    (file,) = export(path, "gltf", tmp_path / "f.glb", frames=2)
    scene, frame = trimesh.load(file), seen[2]
    for body, place in zip(frame["ids"], frame["positions"]):
        transform, name = scene.graph[f"body {body}"]
        mesh = scene.geometry[name].copy()
        mesh.apply_transform(transform)
        mesh.merge_vertices(merge_norm=True, merge_tex=True)
        assert np.allclose(transform[:3, 3], y_up(place), atol=1e-5)
        assert mesh.volume == pytest.approx(VOLUMES[body], rel=0.08)  # of 16 sides
        if body not in (6, 8):  # whose middle is not that of their box
            assert np.allclose(mesh.bounds.mean(axis=0), y_up(place), atol=1e-4)
    info = description(file)
    assert "animations" not in info and len(info["nodes"]) == 1 + 7 + 2
    spheres = [node["mesh"] for node in info["nodes"] if node["name"] == "body 2"]
    assert "NORMAL" in info["meshes"][spheres[0]]["primitives"][0]["attributes"]


def test_gltf_shares_meshes_and_colours_by_material(saved, tmp_path):
    scene = gv.Scene()
    for k in range(6):
        scene.add_body(gv.Sphere(0.1 + 0.05 * k), (k, 0, 0), STONE if k < 3 else gv.Material())
    gv.Simulation(scene, 1e-3).run(0.001, tmp_path / "r.vtkhdf")
    (file,) = export(tmp_path / "r.vtkhdf", output=tmp_path / "f.glb", frames=0)
    info = description(file)
    assert len(info["meshes"]) == 2 and len(info["accessors"]) == 3  # places, normals, corners
    used = {info["nodes"][k]["mesh"] for k in info["nodes"][0]["children"]}
    numbers = [info["meshes"][mesh]["primitives"][0]["material"] for mesh in sorted(used)]
    colours = [info["materials"][number]["pbrMetallicRoughness"]["baseColorFactor"][:3] for number in numbers]
    assert np.allclose(sorted(colours), sorted(linear(colour) for colour in PALETTE[:2]))
    assert [node["scale"][0] for node in info["nodes"][1:]] == pytest.approx([0.1 + 0.05 * k for k in range(6)])


def centres_by_vtk(path, time):
    """(x, y, z, width) of the boxes around all meshes at a moment of the animation."""
    reader = vtk.vtkGLTFReader()
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    assert reader.GetNumberOfAnimations() == 1
    reader.EnableAnimation(0)
    reader.SetFrameRate(1000)
    reader.UpdateInformation()
    reader.UpdateTimeStep(time)
    found = np.array([leaf.bounds for leaf in pyvista.wrap(reader.GetOutput()).recursive_iterator() if leaf is not None and leaf.n_points])
    return np.concatenate([(found[:, ::2] + found[:, 1::2]) / 2, found[:, 1:2] - found[:, :1]], axis=1)


def test_gltf_animation_by_vtk_is_where_bodies_were(saved, tmp_path):
    path, seen = saved
    (file,) = export(path, "gltf", tmp_path / "a.glb")
    for frame in (seen[0], seen[2], seen[4]):
        centres = centres_by_vtk(file, frame["time"])
        for body in (2, 3, 4, 7):
            place = y_up(frame["positions"][frame["ids"] == body][0])
            assert np.linalg.norm(centres[:, :3] - place, axis=1).min() < 2e-3, (body, frame["time"])
        small = centres[np.linalg.norm(centres[:, :3] - y_up((0, 0, 0.3)), axis=1) < 0.2]
        assert (small[:, 3] > 0.15).any() == (9 in frame["ids"])  # the ball that comes is nothing before


def test_gltf_animation_turns_by_the_quaternions(saved, tmp_path):
    path, seen = saved
    (file,) = export(path, "gltf", tmp_path / "a.glb")
    info = description(file)
    binary = file.read_bytes()[28 + struct.unpack("<I", file.read_bytes()[12:16])[0] :]

    def values(number):
        accessor = info["accessors"][number]
        start = info["bufferViews"][accessor["bufferView"]]["byteOffset"] + accessor["byteOffset"]
        width = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[accessor["type"]]
        return np.frombuffer(binary, "f4", accessor["count"] * width, start).reshape(-1, width)

    (animation,) = info["animations"]
    turned = {}
    for channel in animation["channels"]:
        sampler, target = animation["samplers"][channel["sampler"]], channel["target"]
        assert np.allclose(values(sampler["input"])[:, 0], [frame["time"] for frame in seen])
        if target["path"] == "rotation":
            turned[info["nodes"][target["node"]]["name"]] = values(sampler["output"])
        if target["path"] == "scale":
            assert sampler["interpolation"] == "STEP"
    assert "body 2" not in turned and set(turned) == {f"body {k}" for k in (3, 4, 5, 6, 7, 8)}
    for name, turns in turned.items():
        assert (np.einsum("fi,fi->f", turns[1:], turns[:-1]) >= 0).all()
        for turn, frame in zip(turns, seen):
            row = frame["ids"] == int(name.split()[1])
            if row.any():
                true = frame["quaternions"][row][0][[1, 2, 3, 0]]
                assert abs(turn @ true) == pytest.approx(1, abs=1e-5)


def test_gltf_colours_by_speed_in_one_frame_only(saved, tmp_path):
    path, seen = saved
    (file,) = export(path, "gltf", tmp_path / "f.glb", frames=1, colour="speed")
    info = description(file)
    names = {}
    for node in info["nodes"][1:]:
        material = info["materials"][info["meshes"][node["mesh"]]["primitives"][0]["material"]]
        names[node["name"]] = material["name"]
    speeds = np.linalg.norm(seen[1]["velocities"], axis=1)
    assert names[f"body {seen[1]['ids'][speeds.argmax()]}"] == SCALE[-1] and names[f"body {seen[1]['ids'][speeds.argmin()]}"] == SCALE[0]
    with pytest.raises(ValueError, match="colour speed goes with one frame in gltf"):
        export(path, "gltf", tmp_path / "g.glb", colour="speed")
    assert [item.name for item in tmp_path.iterdir()] == ["f.glb"]


# --- usd
def test_usd_has_places_turns_and_sizes_at_their_times(saved, tmp_path):
    from pxr import UsdGeom

    path, seen = saved
    (file,) = export(path, "usd", tmp_path / "s.usdc")
    stage = Usd.Stage.Open(str(file))
    assert UsdGeom.GetStageUpAxis(stage) == "Z" and UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    bodies = UsdGeom.PointInstancer(stage.GetPrimAtPath("/gravel/bodies"))
    codes = bodies.GetPositionsAttr().GetTimeSamples()
    assert np.allclose(np.array(codes) / stage.GetTimeCodesPerSecond(), [frame["time"] for frame in seen])
    targets = bodies.GetPrototypesRel().GetTargets()
    for code, frame in zip(codes, seen):
        assert np.array_equal(bodies.GetIdsAttr().Get(code), frame["ids"])
        assert np.allclose(bodies.GetPositionsAttr().Get(code), frame["positions"], atol=1e-5)
        kinds = [stage.GetPrimAtPath(targets[k]).GetTypeName() for k in bodies.GetProtoIndicesAttr().Get(code)]
        assert [kind == "Sphere" for kind in kinds] == [body in (2, 9) for body in frame["ids"]]
        for body, place, transform in zip(frame["ids"], frame["positions"], transforms(bodies, code)):
            assert np.allclose(transform[3, :3], place, atol=1e-5)
            scale = np.linalg.norm(transform[:3, :3], axis=1)
            capsule = (0.35,) * 3  # scaled by its bounding radius: the mesh has its proportions
            sizes = {2: (0.2,) * 3, 3: (0.2, 0.1, 0.15), 4: capsule, 5: (0.1, 0.1, 0.3), 7: (0.3, 0.2, 0.1), 8: (1.3,) * 3}
            assert body not in sizes or np.allclose(scale, sizes[body], rtol=2e-3)
            row = np.flatnonzero(frame["ids"] == body)[0]
            w, x, y, z = frame["quaternions"][row]
            first = np.array([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)])  # where the body's x axis points
            assert body == 9 or np.allclose(transform[0, :3] / scale[0], first, atol=2e-3)  # turns have half precision


def transforms(bodies, code):
    found = bodies.ComputeInstanceTransformsAtTime(code, code, bodies.ExcludeProtoXform)
    return [np.array(matrix) for matrix in found]


def test_usd_colours_change_with_speed(saved, tmp_path):
    from pxr import UsdGeom

    path, _ = saved
    (file,) = export(path, "usd", tmp_path / "s.usda", colour="speed")
    stage = Usd.Stage.Open(str(file))
    bodies = UsdGeom.PointInstancer(stage.GetPrimAtPath("/gravel/bodies"))
    targets = bodies.GetPrototypesRel().GetTargets()
    codes = bodies.GetPositionsAttr().GetTimeSamples()
    prims = [stage.GetPrimAtPath(targets[bodies.GetProtoIndicesAttr().Get(code)[1]]) for code in codes]
    colours = [UsdGeom.Gprim(prim).GetDisplayColorAttr().Get()[0] for prim in prims]
    assert len({tuple(colour) for colour in colours}) > 1


# --- the command, and what is refused
def test_the_command_writes_beside_the_result_and_shows_progress(saved, tmp_path):
    path, _ = saved
    copy = tmp_path / "r.vtkhdf"
    copy.write_bytes(path.read_bytes())
    done = CliRunner().invoke(main, ["export", str(copy), "--to", "csv", "--first", "1", "--last", "3", "--every", "2"])
    assert done.exit_code == 0 and "2/2" in done.output and f"wrote {tmp_path / 'r.csv'}" in done.output
    assert set(table(tmp_path / "r.csv")["frame"]) == {1, 3}
    done = CliRunner().invoke(main, ["export", str(copy), "-o", str(tmp_path / "x.glb"), "--frame", "-1", "--quiet"])
    assert done.exit_code == 0 and done.output == f"wrote {tmp_path / 'x.glb'}\n"


WRONG = {
    "format": (["--to", "stl"], "to must be one of 'csv', 'vtp', 'gltf', 'usd', not 'stl'"),
    "none": ([], "to must be one of csv, vtp, gltf, usd; no output says which"),
    "ending": (["--to", "csv", "-o", "x.glb"], "output must be a file whose name ends in"),
    "frame": (["--to", "csv", "--frame", "5"], "frame must be from -5 to 4 for .*, not 5"),
    "both": (["--to", "csv", "--frame", "1", "--every", "2"], "--frame is one frame"),
    "no frames": (["--to", "csv", "--first", "4", "--last", "2"], "frames must be some of the 5"),
    "every": (["--to", "csv", "--every", "0"], "every must be"),
    "colour": (["--to", "csv", "--colour", "speed"], "colour goes with gltf and usd"),
    "which colour": (["--to", "usd", "--colour", "speeed"], "did you mean 'speed'"),
    "contacts": (["--to", "gltf", "--contacts"], "contacts go with csv and vtp"),
    "split": (["--to", "vtp", "--split"], "split goes with csv"),
    "folder": (["-o", "nowhere/x.csv"], "there is no folder"),
}


@pytest.mark.parametrize("options, words", WRONG.values(), ids=WRONG)
def test_what_cannot_be_is_refused_in_a_sentence_and_nothing_is_left(options, words, saved, tmp_path, monkeypatch):
    import re

    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["export", str(saved[0]), *options])
    assert done.exit_code == 1 and re.search(words, done.output), done.output
    assert not list(tmp_path.iterdir()) and not [file for file in saved[0].parent.iterdir() if "part" in file.name]


def test_contacts_that_were_not_saved_are_missed_and_nothing_is_left(tmp_path):
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1))
    gv.Simulation(scene, 1e-3).run(0.002, tmp_path / "r.vtkhdf")
    for to in ("csv", "vtp"):
        with pytest.raises(ValueError, match="holds no contacts"):
            export(tmp_path / "r.vtkhdf", to, contacts=True)
    assert [file.name for file in tmp_path.iterdir()] == ["r.vtkhdf"]


def test_a_missing_library_is_named_with_its_extra(saved, tmp_path, monkeypatch):
    for module, to, extra in (("pxr", "usd", "usd"), ("pyvista", "vtp", "view")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(RuntimeError, match=rf"export to {to} needs {module}, .*gravel\[{extra}\]"):
            export(saved[0], to, tmp_path / ("x.usdc" if to == "usd" else "x.pvd"))
    assert not list(tmp_path.iterdir())


def test_too_many_bodies_for_gltf_are_refused(saved, tmp_path, monkeypatch):
    monkeypatch.setattr("gravel.io.export.gltf_files.MOST_NODES", 6)
    with pytest.raises(ValueError, match="too many bodies and frames for gltf"):
        export(saved[0], "gltf", tmp_path / "x.glb")


def test_the_result_itself_is_not_replaced(saved):
    with pytest.raises(ValueError, match="output must be a file whose name ends in"):
        export(saved[0], "csv", saved[0])


def test_materials_have_the_colours_of_pictures():
    from gravel.view import colouring

    assert colouring.PALETTE == PALETTE
