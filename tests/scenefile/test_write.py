"""Scenes written as files and read again: the same bodies, joints and steps. Every built-in scene can be written."""

import jsonschema
import numpy as np
import pytest
from alike import assert_same_materials
from ruamel.yaml import YAML

import gravel as gv
from gravel import scenes
from gravel.scenefile.emit import block, flow
from gravel.scenefile.schema import json_schema
from gravel.scenefile.write import write_builtin, write_scene, write_setup, write_starter

FUNCTIONS = {"segregation": 1, "vehicle": 2, "excavator": 3}  # motors that are functions of time


def few(name):
    """The fewest bodies of a built-in scene that may have fewer than it has."""
    module = scenes.module_of(name)
    return None if module.BODIES == module.FEWEST else module.FEWEST


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A function: (setup of a built-in scene, the setup that is read from the file of it, its path, what is not in it)."""
    folder, known = tmp_path_factory.mktemp("scenes"), {}

    def both(name):
        if name not in known:
            path, setup = folder / f"{name}.yaml", scenes.build(name, few(name), 3)
            _, notes = write_setup(setup, path, name)
            known[name] = setup, gv.load_scene_file(path), path, notes
        return known[name]

    return both


def assert_same(scene, other, tolerance=1e-12):
    assert len(scene) == len(other)
    for field in ("position", "quaternion", "velocity", "inverse_mass", "extent"):
        mine, read = getattr(scene.bodies, field), getattr(other.bodies, field)
        finite = np.isfinite(mine)
        assert np.array_equal(finite, np.isfinite(read))
        scale = np.abs(np.where(finite, mine, 0)).max(axis=0, initial=1e-300)
        assert (np.abs(np.where(finite, mine, 0) - np.where(finite, read, 0)) <= tolerance * scale).all(), field
    assert np.array_equal(scene.bodies.tag[:, [0, 2, 3]], other.bodies.tag[:, [0, 2, 3]])
    assert np.array_equal(scene.bodies.geometry, other.bodies.geometry)
    assert_same_materials(*([one.materials[k] for k in one.bodies.tag[:, 1]] for one in (scene, other)))
    assert np.array_equal(scene.ignored, other.ignored) and np.array_equal(scene.gravity, other.gravity)


def assert_same_joints(scene, other, left_out):
    assert scene.mechanism.names == other.mechanism.names and scene.mechanism.filtered_pairs == other.mechanism.filtered_pairs
    one, two = scene.mechanism.to_arrays(), other.mechanism.to_arrays()
    assert len(one["functions"]) == left_out
    rows = ~np.isin(np.arange(len(one["row_role"])), one["functions"])  # a motor that is a function is not in the file
    for name, values in one.items():
        if name != "functions" and not name.startswith("carried"):
            own = values[rows] if name.startswith("row_") else values
            assert np.allclose(own, two[name], rtol=1e-12, atol=1e-12), name


@pytest.mark.parametrize("name", scenes.NAMES)
def test_every_built_in_scene_is_written_and_read(written, name):
    setup, read, path, notes = written(name)
    assert_same(setup.scene, read.scene)
    assert_same_joints(setup.scene, read.scene, FUNCTIONS.get(name, 0))
    assert (setup.dt, setup.time) == (read.dt, read.time)
    assert set(read.options) == set(setup.options)
    said = path.read_text()
    assert all(f"# - {note}\n" in said for note in notes)
    assert sum("Python function of time" in note for note in notes) == FUNCTIONS.get(name, 0)
    assert len(read.scene.motions) == len(setup.scene.motions)
    if setup.scene.cell is not None:
        assert read.scene.cell.to_values() == setup.scene.cell.to_values()


@pytest.mark.parametrize("name", scenes.NAMES)
def test_files_of_built_in_scenes_fit_the_schema(written, name):
    text = written(name)[2].read_text()
    jsonschema.Draft202012Validator(json_schema()).validate(YAML(typ="safe", pure=True).load(text))
    assert max(map(len, text.splitlines())) < 220


@pytest.mark.parametrize("name", ["silo", "four-bar"])
def test_a_step_of_what_is_read_is_that_of_what_was_written(written, name):
    setup, read, *_ = written(name)
    sims = [gv.Simulation(one.scene, one.dt, **one.options) for one in (setup, read)]
    for _ in range(2):
        reports = [sim.step() for sim in sims]
    assert reports[0].contacts == reports[1].contacts
    speed = np.abs(sims[0].velocities).max()
    assert np.allclose(sims[0].velocities, sims[1].velocities, rtol=0, atol=1e-9 * speed)


def test_rounding_is_all_that_a_file_changes_of_clumps_and_hulls(tmp_path):
    scene, rng = gv.Scene(), np.random.default_rng(0)
    clump = gv.Clump(rng.uniform(-0.1, 0.1, (4, 3)), 0.08, scale=rng.uniform(0.8, 1.2, 7))
    turns = rng.normal(size=(7, 4))
    scene.add_bodies(clump, rng.uniform(0, 9, (7, 3)), quaternions=turns, velocities=rng.normal(size=(7, 3)))
    parts = [(gv.ConvexHull(rng.normal(size=(9, 3))), (1, 0, 0), (1, 1, 0, 0)), (gv.Cone(0.2, 0.5), (-1, 0, 0))]
    scene.add_body(gv.Compound(parts), (20, 0, 0), quaternion=(1, 2, 3, 4))
    scene.add_body(gv.ConvexHull(rng.normal(size=(30, 3)), 0.3), (30, 0, 0), quaternion=(4, 3, 2, 1))
    scene.add_body(gv.Mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)]), (40, 0, 0), fixed=True)
    scene.add_body(gv.HeightField(rng.normal(size=(50, 40)), (0.1, 0.3), (7, 8)), (0, 50, 0), fixed=True)
    assert scene.to_file(tmp_path / "a.yaml") == []
    assert_same(scene, gv.Scene.from_file(tmp_path / "a.yaml"))


def test_what_a_file_cannot_say_is_told(tmp_path):
    scene = gv.Scene()
    a = scene.add_body(gv.Sphere(0.1), motion=lambda time: (0, 0, time))
    b = scene.add_body(gv.Sphere(0.1), (1, 0, 0), surface_velocity=lambda time: (time, 0, 0))
    scene.add_joint(gv.Spring(a, b, point_b=(1, 0, 0), force=lambda length, rate: -length))
    scene.add_joint(gv.Revolute(None, b, (1, 0, 0), motor=gv.SpeedMotor(lambda time: time)))
    notes = scene.to_file(tmp_path / "a.yaml")
    assert len(notes) == 4
    for words in (
        "a motion that is a Python function",
        "a surface velocity",
        "a spring whose force",
        "its motor, which is",
    ):
        assert any(words in note for note in notes), words
    read = gv.Scene.from_file(tmp_path / "a.yaml")
    assert len(read.mechanism) == 1 and not read.motions and read.bodies.tag[0, 3] == scene.bodies.tag[0, 3]


def test_a_state_becomes_a_file(tmp_path):
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_bodies(gv.Sphere(0.05), [(0, 0, 0.2), (0.5, 0, 0.3)])
    sim = gv.Simulation(scene, 1e-3, precision="double")
    for _ in range(10):
        sim.step()
    state = gv.Scene.from_simulation(sim)
    assert state.to_file(tmp_path / "later.yaml") == []
    assert_same(state, gv.Scene.from_file(tmp_path / "later.yaml"))
    assert state.bodies.velocity[1, 2] < -0.09


def test_many_bodies_go_into_arrays_beside_the_file(tmp_path, monkeypatch):
    from gravel.scenefile import write_bodies

    monkeypatch.setattr(write_bodies, "MOST_TEXT", 100)
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(np.linspace(0.1, 0.2, 200)), np.random.default_rng(0).uniform(0, 99, (200, 3)))
    files, _ = write_scene(scene, tmp_path / "a.yaml", {"dt": 1e-3, "time": 1.0})
    assert [file.name for file in files] == ["a.yaml", "a-grains-1.npz"]
    assert_same(scene, gv.Scene.from_file(tmp_path / "a.yaml"), 0.0)


def test_names_and_places_that_cannot_be_written(tmp_path):
    scene = gv.Scene()
    scene.add_body(gv.Sphere(1.0))
    for path, error, words in (
        (tmp_path / "a.txt", ValueError, "must end with .yaml or .yml"),
        (tmp_path / "no" / "a.yaml", FileNotFoundError, "there is no folder"),
    ):
        with pytest.raises(error, match=words):
            scene.to_file(path)
    with pytest.raises(ValueError, match="dt must be greater than 0"):
        scene.to_file(tmp_path / "a.yaml", dt=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "value",
    [
        {"a": {"b c": [1, 2.5, -1e-7, True, None], "d": "yes", "e": "x: y", "f": "", "g": []}, "h": [], "i": {}},
        {"rows": np.random.default_rng(0).uniform(-1, 1, (40, 3)).tolist(), "name": "12"},
        {"list": [{"long": "word " * 40, "inner": {"x": list(range(80))}}, {"short": 1}], "s": "a\nb", "t": "# no comment"},
    ],
)
def test_what_is_emitted_is_read_back_by_another_reader(value):
    read = YAML(typ="safe", pure=True)
    assert read.load("\n".join(block(value))) == value
    assert read.load(flow(value)) == value


def test_a_spring_that_rests_at_zero_is_not_one_that_rests_where_it_is(tmp_path):
    scene = gv.Scene(gravity=(0, 0, 0))
    door = scene.add_body(gv.Box((0.1, 0.02, 0.2)), (0, 0, 1))
    scene.add_joint(gv.Revolute(None, door, point=(0, 0, 1.5), axis=(0, 1, 0), start=0.5, spring=gv.SpringLaw(50, rest=0.0)))
    scene.to_file(tmp_path / "door.yaml", dt=1e-3, time=1.0)
    angles = []
    for one in (scene, gv.Scene.from_file(tmp_path / "door.yaml")):
        sim = gv.Simulation(one, 1e-3, precision="double")
        sim.run(0.2)
        angles.append(float(sim.joints.angle[0]))
    assert angles[0] == pytest.approx(angles[1], abs=1e-9) and angles[0] < 0.45


def test_init_overwrites_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "keep-shape-1.npz").write_text("mine")
    with pytest.raises(FileExistsError, match="keep-shape-1.npz is there already"):
        write_builtin("silo", "keep.yaml", 100)
    assert (tmp_path / "keep-shape-1.npz").read_text() == "mine" and [p.name for p in tmp_path.iterdir()] == ["keep-shape-1.npz"]


@pytest.mark.parametrize("name", ["a, b.yaml", "x #1.yaml", "x: y.yaml", "{z}.yaml"])
def test_starters_of_strange_names_can_be_read(tmp_path, name):
    write_starter(tmp_path / name)
    assert gv.load_scene_file(tmp_path / name).output["logs"][0]["file"] == name.replace(".yaml", "-energy.csv")


def test_rounded_boxes_are_written_and_read_one_by_one_and_in_rows(tmp_path):
    rng = np.random.default_rng(3)
    scene, half = gv.Scene(), rng.uniform(0.1, 0.3, (80, 3))
    scene.add_body(gv.RoundedBox((0.3, 0.2, 0.1), 0.07), (0, 0, 5), gv.Material(density=2500))
    scene.add_bodies(gv.RoundedBox(half, rng.uniform(0.2, 1.0, 80) * half.min(axis=1)), rng.uniform(-5, 5, (80, 3)))
    assert scene.to_file(tmp_path / "a.yaml") == []
    text = (tmp_path / "a.yaml").read_text()
    assert "rounded_box" in text and "half_extents" in text and list(tmp_path.glob("*.csv"))
    assert_same(scene, gv.Scene.from_file(tmp_path / "a.yaml"))
