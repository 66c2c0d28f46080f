"""Scene files that would do harm: overwrite or read what is not theirs, take a machine's time or memory, or write into the terminal."""

import contextlib
import os
import time

import numpy as np
import pytest
import trimesh
from click.testing import CliRunner

import gravel as gv
from gravel.cli import main
from gravel.scenefile import SceneFileError, load_scene_file

BALL = "simulation: {dt: 0.01, time: 0.05}\nbodies:\n- {name: ball, shape: {sphere: {radius: 0.1}}}\n"
GRAINS = "simulation: {dt: 0.01, time: 0.05}\ngrains:\n- shape: {sphere: {radius: 0.01}}\n  placement:\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "scene").mkdir()
    monkeypatch.chdir(tmp_path / "scene")
    return tmp_path / "scene"


def call(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def faults_of(folder, text, **options):
    (folder / "a.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SceneFileError) as caught:
        load_scene_file(folder / "a.yaml", **options)
    return caught.value.faults


@contextlib.contextmanager
def at_once():
    """In a minute of processor time on the slowest machine: what is refused so takes a second, and took hours or for ever."""
    begun = time.process_time()
    yield
    assert time.process_time() - begun < 60.0


# --- what is written
@pytest.mark.parametrize("name", ["table.csv", "notes.csv", "data.h5"])
def test_a_log_replaces_no_file_of_others(name, folder):
    precious = "temperature,pressure\n1,2\n" if name == "table.csv" else "time flies\nlike an arrow\n"
    (folder / name).write_text(precious)
    (folder / "a.yaml").write_text(BALL + f"output: {{picture: false, logs: [{{file: {name}, measures: [kinetic_energy]}}]}}\n")
    result = call("run", "a.yaml", "--quiet")
    assert result.exit_code == 1 and name in result.output and "no log of gravel" in result.output
    assert (folder / name).read_text() == precious and not (folder / "a.vtkhdf").exists()
    with pytest.raises(ValueError, match="no log of gravel"):
        gv.measures.Log(folder / name, energy=gv.measures.kinetic_energy)


@pytest.mark.parametrize("ending", ["csv", "h5"])
def test_a_log_replaces_a_log(ending, folder):
    (folder / "a.yaml").write_text(BALL + f"output: {{picture: false, logs: [{{file: log.{ending}, measures: [kinetic_energy]}}]}}\n")
    for _ in range(2):
        assert call("run", "a.yaml", "--quiet").exit_code == 0


@pytest.mark.parametrize(
    "output, key",
    [
        ("{logs: [{file: ../precious.csv, measures: [kinetic_energy]}]}", "output.logs[0].file"),
        ("{file: ../precious.vtkhdf}", "output.file"),
        ("{checkpoint: ABOVE/precious.h5}", "output.checkpoint"),
        ("{file: link/precious.vtkhdf}", "output.file"),
    ],
)
def test_what_a_run_writes_stays_in_its_folder(output, key, folder):
    os.symlink(folder.parent, folder / "link")
    text = BALL + f"output: {output}\n".replace("ABOVE", str(folder.parent))
    (fault,) = faults_of(folder, text)
    assert fault.path == key and fault.line == 4 and "must be a file in the folder of the run" in fault.words
    assert "outside_files=True" in fault.words
    assert load_scene_file(folder / "a.yaml", outside_files=True).time == 0.05
    assert call("check", "a.yaml").exit_code == 1 and call("check", "a.yaml", "--outside-files").exit_code == 0


# --- what is read
SHAPES = {
    "mesh": "shapes: {a: {mesh: {file: WHERE}}}\n",
    "hull": "shapes: {a: {hull: {file: WHERE}}}\n",
    "clump": "shapes: {a: {clump: {file: WHERE, spheres: 2}}}\n",
    "region": "output: {logs: [{file: a.csv, measures: [stress], region: {mesh: {file: WHERE}}}]}\n",
}


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("way", ["absolute", "above", "link"])
def test_meshes_from_elsewhere_are_refused_as_those_of_robots_are(kind, way, folder):
    trimesh.creation.box((1, 1, 1)).export(folder.parent / "box.stl")
    os.symlink(folder.parent / "box.stl", folder / "link.stl")
    where = {"absolute": folder.parent / "box.stl", "above": "../box.stl", "link": "link.stl"}[way]
    (fault,) = faults_of(folder, BALL + SHAPES[kind].replace("WHERE", str(where)))
    assert fault.path.endswith("file") and "must be a file in" in fault.words and "outside_files=True" in fault.words
    load_scene_file(folder / "a.yaml", outside_files=True)
    assert call("run", "a.yaml", "--quiet", "--no-picture").exit_code == 1
    assert call("run", "a.yaml", "--quiet", "--no-picture", "--outside-files").exit_code == 0


def test_meshes_beside_the_scene_file_are_read(folder):
    (folder / "parts").mkdir()
    (folder.parent / "meshes").mkdir()  # beside the folder, as robots have it
    for place in (folder, folder / "parts", folder.parent / "meshes"):
        trimesh.creation.box((1, 1, 1)).export(place / "box.stl")
    for where in ("box.stl", "parts/box.stl", "../meshes/box.stl", folder / "box.stl"):
        (folder / "a.yaml").write_text(BALL + SHAPES["mesh"].replace("WHERE", str(where)))
        load_scene_file(folder / "a.yaml")


def test_tables_and_robots_from_elsewhere_are_refused(folder):
    (folder.parent / "t.csv").write_text("x,y,z\n0,0,0\n")
    (folder.parent / "r.urdf").write_text('<robot name="r"><link name="a"/></robot>')
    for text, key in (
        ("grains: [{shape: {sphere: {radius: 0.1}}, placement: {table: {file: ../t.csv}}}]\n", "grains[0].placement.table.file"),
        ("robots: [{name: r, file: ../r.urdf}]\n", "robots[0].file"),
    ):
        (fault,) = faults_of(folder, BALL + text)
        assert fault.path == key and "must be a file in" in fault.words


def test_a_robot_of_a_scene_file_may_refer_to_files_anywhere_only_if_that_is_allowed(folder):
    trimesh.creation.box((1, 1, 1)).export(folder.parent / "box.stl")
    mesh = '<collision><geometry><mesh filename="../box.stl"/></geometry></collision>'
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    (folder / "r.urdf").write_text(f'<robot name="r"><link name="a">{mesh}<inertial><mass value="1"/>{inertia}</inertial></link></robot>')
    assert "must be a file in" in faults_of(folder, BALL + "robots: [{name: r, file: r.urdf, base: floating}]\n")[0].words
    load_scene_file(folder / "a.yaml", outside_files=True)


# --- time and memory
def compounds(depth, width):
    """``width`` of the compound before in each."""
    lines = ["shapes:", "  a0: {sphere: {radius: 0.1}}"]
    for k in range(depth):
        items = ", ".join(f"{{shape: a{k}, position: [{j}, {k}, 0]}}" for j in range(width))
        lines.append(f"  a{k + 1}: {{compound: {{items: [{items}]}}}}")
    return BALL + "\n".join(lines) + "\n"


def test_compounds_of_compounds_have_a_bound_told_by_line(folder):
    with at_once():
        faults = faults_of(folder, compounds(8, 10))
    assert faults[0].line in range(7, 14) and faults[0].path.startswith("shapes.a") and "parts" in faults[0].words


def test_compounds_of_compounds_within_the_bound_are_made(folder):
    (folder / "a.yaml").write_text(compounds(2, 10))
    load_scene_file(folder / "a.yaml")


def test_aliases_of_compounds_have_the_same_bound(folder):
    text = BALL + "shapes:\n  a: &a {compound: {items: [" + "{shape: {sphere: {radius: 0.1}}}, " * 40 + "]}}\n"
    text += "  b: &b {compound: {items: [" + "{shape: *a}, " * 40 + "]}}\n"
    text += "  c: {compound: {items: [" + "{shape: *b}, " * 20 + "]}}\n"
    with at_once():
        faults = faults_of(folder, text)
    assert any("parts" in fault.words for fault in faults)


INLET = "{box: {low: [0, 0, 0], high: [0.1, 0.1, 0.1]}}"


@pytest.mark.parametrize("rate", ["number_rate: 1.0e+12", "rate: 1.0e+12"])
def test_rates_that_cannot_be_poured_are_refused_with_what_is_possible(rate, folder):
    with at_once():
        (fault,) = faults_of(folder, GRAINS + f"    pour: {{inlet: {INLET}, {rate}}}\n")
    assert fault.path == f"grains[0].placement.pour.{rate.split(':')[0]}" and fault.words.startswith("must be at most")


def test_rates_that_can_be_poured_are_taken(folder):
    (folder / "a.yaml").write_text(GRAINS + f"    pour: {{inlet: {INLET}, number_rate: 20000}}\n")
    load_scene_file(folder / "a.yaml")


def test_more_bodies_than_memory_holds_are_refused_with_what_it_holds(folder, monkeypatch):
    monkeypatch.setattr("gravel.packing.pack.most_bodies", lambda: 10_000_000)  # on machines of any size
    region = "{box: {low: [0, 0, 0], high: [1000, 1000, 1000]}}"
    for what in ("count: 1000000000", "fraction: 0.1"):
        with at_once():
            (fault,) = faults_of(folder, GRAINS + f"    random: {{region: {region}, {what}}}\n")
        assert fault.path == f"grains[0].placement.random.{what.split(':')[0]}" and "at most" in fault.words, fault
        assert "GB" in fault.words and "allocate" not in fault.words


def test_lattices_beyond_memory_are_refused(folder, monkeypatch):
    monkeypatch.setattr("gravel.scenefile.placing.most_bodies", lambda: 900)
    lattice = "    lattice: {low: [0, 0, 0], high: [1, 1, 1], spacing: 0.1"
    for more, key in (("}", "spacing"), (", count: 950}", "count")):
        (fault,) = faults_of(folder, GRAINS + lattice + more + "\n")
        assert fault.path == f"grains[0].placement.lattice.{key}" and "at most 900 bodies" in fault.words


def test_fractions_that_no_packing_has_are_refused_at_once(folder):
    region = "{box: {low: [0, 0, 0], high: [0.5, 0.5, 0.5]}}"
    with at_once():
        (fault,) = faults_of(folder, GRAINS + f"    random: {{region: {region}, fraction: 0.99}}\n")
    assert fault.path == "grains[0].placement.random.fraction" and "must be at most 0.74" in fault.words


# --- words
def test_escape_sequences_do_not_reach_the_terminal(folder):
    (folder / "a.yaml").write_text('title: "\\e[31mred\\e]0;title\\a"\n' + BALL)
    printed = call("check", "a.yaml")
    assert printed.exit_code == 0 and "\x1b" not in printed.output and "\x07" not in printed.output and "red" in printed.output
    (folder / "a.yaml").write_text(BALL.replace("name: ball", 'name: "\\e[2Jball"'))
    printed = call("check", "a.yaml")
    assert printed.exit_code == 1 and "\x1b" not in printed.output and "must be a text of one line" in printed.output
    (folder / "a.yaml").write_text(BALL + '"\\e[31mkey": 1\n"b\\u202ec": 2\n')
    printed = call("run", "a.yaml")
    assert printed.exit_code == 1 and "\x1b" not in printed.output and "\u202e" not in printed.output and "key" in printed.output


def test_very_many_faults_are_counted(folder):
    text = BALL + "".join(f"key{k}: 1\n" for k in range(2000))
    faults = faults_of(folder, text)
    assert len(faults) == 2000
    for command in ("check", "run"):
        lines = call(command, "a.yaml").output.splitlines()
        assert len(lines) < 60 and any("more" in line and "1960" in line for line in lines)
    with pytest.raises(SceneFileError) as caught:
        load_scene_file(folder / "a.yaml")
    assert len(str(caught.value).splitlines()) < 60


@pytest.mark.parametrize(
    "line, key", [('title: "a\\ud800b"', "title"), ('"k\\udfff": 1', ""), ('materials: {"\\ud800": {density: 1}}', "materials")]
)
def test_lone_surrogates_are_no_text(line, key, folder):
    faults = faults_of(folder, BALL + line + "\n")
    assert any(fault.line == 4 and fault.path == key and "surrogate" in fault.words for fault in faults), faults
    str(faults[0]).encode()
    assert call("check", "a.yaml").exit_code == 1


@pytest.mark.parametrize(
    "text, key",
    [
        (BALL.replace("0.01", "1e-320"), "simulation.dt"),
        (BALL.replace("0.1}", "1e200}"), "bodies[0].shape.sphere.radius"),
        (BALL.replace("0.1}", "1e-200}"), "bodies[0].shape.sphere.radius"),
        (BALL + "gravity: [0, 0, 1e300]\n", "gravity[2]"),
        (BALL + "materials: {a: {density: 1e-310}}\n", "materials.a.density"),
    ],
)
def test_numbers_beyond_what_can_be_computed_with_are_refused_in_a_sentence(text, key, folder, recwarn):
    (fault,) = faults_of(folder, text)
    assert fault.path == key and "must be" in fault.words and "encountered" not in fault.words, fault
    assert not recwarn.list


def test_numbers_at_the_bounds_do_not_overflow(folder, recwarn):
    for radius in ("1.0e+20", "1.0e-20"):
        (folder / "a.yaml").write_text(BALL.replace("0.1}", f"{radius}}}"))
        scene = load_scene_file(folder / "a.yaml").scene
        assert np.isfinite(scene.bodies.inverse_mass).all()
    assert not [one for one in recwarn.list if issubclass(one.category, RuntimeWarning)]
