"""Results in which there is nothing to draw but a plane, or nothing at all, are exported as such."""

import json
import struct

import pytest
import trimesh

import gravel as gv


@pytest.fixture(params=["one frame", "several", "comes later"])
def floor(request, tmp_path):
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    sim = gv.Simulation(scene, 1e-3, threads=1)
    later = [lambda s: s.add_bodies(gv.Sphere(0.1), [(0, 0, 1)]) if s.steps == 3 else None] if request.param == "comes later" else []
    sim.run(1e-3 if request.param == "one frame" else 5e-3, tmp_path / "floor.vtkhdf", 1e-3, observers=later)
    return tmp_path / "floor.vtkhdf", len(later)


def document(path):
    with open(path, "rb") as file:
        file.seek(12)
        length, _ = struct.unpack("<II", file.read(8))
        return json.loads(file.read(length))


def test_gltf_of_a_plane(floor):
    path, bodies = floor
    (written,) = gv.export(path, "gltf")
    content = document(written)
    names = [node["name"] for node in content["nodes"]]
    assert "floors" in names and sum(name.startswith("body") for name in names) == bodies
    assert len(trimesh.load(written).geometry) >= 1


@pytest.mark.parametrize("frame", [0, -1])
def test_gltf_of_one_frame_of_it_in_colours(floor, frame):
    for colour in ("material", "speed", "radius"):
        assert document(gv.export(floor[0], "gltf", frames=frame, colour=colour)[0])["nodes"]


@pytest.mark.parametrize("to", ["csv", "vtp"])
def test_other_formats_of_it(floor, to):
    for path in gv.export(floor[0], to):
        assert path.exists()


def test_gltf_of_an_empty_scene(tmp_path):
    scene = gv.Scene()
    ball = scene.add_body(gv.Sphere(0.1))
    sim = gv.Simulation(scene, 1e-3, threads=1)
    sim.step()
    sim.remove([ball])
    sim.run(3e-3, tmp_path / "none.vtkhdf", 1e-3)
    assert [node["name"] for node in document(gv.export(tmp_path / "none.vtkhdf", "gltf")[0])["nodes"]] == ["gravel, z up"]
