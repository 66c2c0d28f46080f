"""gravel check, init, schema, and gravel run with a scene file: what they print, write and refuse."""

import json

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import gravel as gv
from gravel.cli import main

POURED = """
bodies: [{shape: {plane: {}}, fixed: true}]
grains:
  - shape: {sphere: {radius: 0.05}}
    velocity: [0, 0, -2]
    placement: {pour: {inlet: {box: {low: [-0.2, -0.2, 1], high: [0.2, 0.2, 1.2]}}, number_rate: 60}}
  - shape: sphere
    sizes: {uniform: {low: 0.03, high: 0.05}}
    velocity: [0, 0, -2]
    placement: {pour: {inlet: {box: {low: [0.8, -0.2, 1], high: [1.2, 0.2, 1.2]}}, rate: 20, start: 0.02}}
removals: [{below: -1}]
simulation: {dt: 0.002, time: 0.3}
output: {picture: false, every: 0.1, file: out.vtkhdf, logs: [{file: log.csv, measures: [kinetic_energy], every: 0.1}]}
expect: [{bodies: {least: 1}}, {inside: {low: [-9, -9, -9], high: [9, 9, 9]}}, {rest: {speed: 100}}, {converged: {share: 0}}]
"""


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(main, [str(w) for w in words])


def test_init_check_and_run_the_starter(call, tmp_path):
    result = call("init")
    assert result.exit_code == 0 and "wrote my.yaml" in result.output
    result = call("check", "my.yaml")
    assert result.exit_code == 0 and "my.yaml is valid" in result.output and "warning" not in result.output
    assert "3 materials" in result.output and "poured during the run: 400 bodies a second" in result.output
    result = call("run", "my.yaml", "--quiet", "--time", 0.6)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "my.vtkhdf").exists() and (tmp_path / "my.png").read_bytes()[:4] == b"\x89PNG"
    frame = gv.open_result("my.vtkhdf")[-1]
    poured = len(frame.positions) - 142
    assert 0.9 * 400 * 0.6 < poured <= 400 * 0.6 and (tmp_path / "my-energy.csv").exists()


def test_init_refuses_to_overwrite_and_leaves_no_part(call, tmp_path):
    call("init", "a.yaml")
    before = (tmp_path / "a.yaml").read_bytes()
    for words in (("init", "a.yaml"), ("init", "a.yaml", "--from", "silo")):
        result = call(*words)
        assert result.exit_code == 1 and "is there already" in result.output
    assert (tmp_path / "a.yaml").read_bytes() == before and len(list(tmp_path.iterdir())) == 1
    assert "must end with .yaml" in call("init", "a.txt").output
    assert "did you mean 'silo'" in call("init", "b.yaml", "--from", "sillo").output
    assert "--bodies goes with --from" in call("init", "b.yaml", "--bodies", 3).output


def test_init_from_a_built_in_scene_and_the_schema_beside(call, tmp_path):
    result = call("init", "chute.yaml", "--from", "silo", "--bodies", 120, "--schema")
    assert result.exit_code == 0 and "not in the file: the checks of its physics" in result.output
    assert json.loads((tmp_path / "gravel.schema.json").read_text())["title"] == "A scene of gravel"
    assert (tmp_path / "chute.yaml").read_text().startswith("# yaml-language-server: $schema=gravel.schema.json\n")
    assert "121 bodies: 120 free, 1 fixed" in call("check", "chute.yaml").output


def test_check_tells_all_errors_and_exits_1(call, tmp_path):
    (tmp_path / "a.yaml").write_text("gravity: [0, 0]\nbodies:\n- {shape: {sphere: {radius: 0}}}\nsimulation: {dt: 1, time: 1}\n")
    result = call("check", "a.yaml")
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        "a.yaml:1: gravity: must be three numbers in m/s2, not a list of 2",
        "a.yaml:3: bodies[0].shape.sphere.radius: must be above 0, not 0",
        "a.yaml cannot be run: 2 errors",
    ]
    result = call("run", "a.yaml")
    assert result.exit_code == 1 and "a.yaml:3: " in result.output and not list(tmp_path.glob("*.vtkhdf"))
    assert call("check", "no.yaml").exit_code == 1


def test_check_warns_of_overlaps_and_long_steps(call, tmp_path):
    (tmp_path / "a.yaml").write_text(
        "motions: {m: {oscillation: {amplitude: [1, 0, 0], frequency: 10}}}\nbodies:\n- {name: a, shape: {sphere: {radius: 0.1}}}\n"
        "- {name: b, shape: {sphere: {radius: 0.1}}, position: [0.15, 0, 0], velocity: [9, 0, 0]}\n"
        "- {name: c, shape: {box: {half_extents: [1, 1, 1]}}, position: [0, 0, 5], motion: m}\nsimulation: {dt: 0.01, time: 1}\n"
    )
    output = call("check", "a.yaml").output
    assert "1 pair of bodies overlap at the start, 'a' and 'b' by 0.05 m" in output
    assert "'b' may move 0.09 m in a step by its speed" in output and "'c' oscillates 10 times a second: use a dt below 0.005 s" in output


def test_check_suspects_other_units(call, tmp_path):
    grains = "materials: {{glass: {{density: {}}}}}\nbodies:\n- {{shape: {{sphere: {{radius: {}}}}}, material: glass}}\n"
    for density, radius in ((2.5, 5), (2500, 0.005)):
        (tmp_path / "a.yaml").write_text(grains.format(density, radius) + "simulation: {dt: 0.001, time: 1}\n")
        output = call("check", "a.yaml").output
        assert ("radius of 5 m in the median: lengths are in metres, so that 5 mm is 0.005" in output) == (radius == 5)
        assert ("glass has a density of 2.5 kg/m3: 2.5 g/cm3 would be 2500" in output) == (density == 2.5)


def test_schema_prints_and_writes(call, tmp_path):
    assert json.loads(call("schema").output) == json.loads(call("schema").output)
    assert "wrote s.json" in call("schema", "-o", "s.json").output
    assert json.loads((tmp_path / "s.json").read_text())["type"] == "object"
    assert "| `half_extents` |" in call("schema", "--reference").output
    assert "there is no folder" in call("schema", "-o", "no/s.json").output


def test_a_run_of_a_file_writes_what_the_file_says(call, tmp_path):
    (tmp_path / "p.yaml").write_text(POURED)
    result = call("run", "p.yaml", "--quiet")
    assert result.exit_code == 0, result.output
    for words in ("ok     bodies", "ok     inside", "ok     rest", "ok     converged", "wrote out.vtkhdf"):
        assert words in result.output
    assert len(gv.open_result("out.vtkhdf").times) == 4 and not list(tmp_path.glob("*.png"))
    rows = np.genfromtxt("log.csv", delimiter=",", names=True, comments="#")
    assert len(rows) == 3 and (np.diff(rows["kinetic_energy_total"]) > 0).all()
    result = call("run", "p.yaml", "--quiet", "--time", 0.02, "-o", "other.vtkhdf", "--every", 0.01)
    assert result.exit_code == 0 and len(gv.open_result("other.vtkhdf").times) == 3


def test_an_expectation_that_does_not_hold_is_exit_code_3(call, tmp_path):
    (tmp_path / "p.yaml").write_text(POURED.replace("least: 1", "least: 1000").replace("time: 0.3", "time: 0.02"))
    result = call("run", "p.yaml", "--quiet")
    assert result.exit_code == 3 and "FAILED bodies" in result.output


def test_a_file_is_resumed_with_its_pours_bit_for_bit(call, tmp_path):
    (tmp_path / "p.yaml").write_text(POURED)
    call("run", "p.yaml", "--quiet", "--checkpoint", "whole.h5")
    call("run", "p.yaml", "--quiet", "--time", 0.16, "--checkpoint", "half.h5")
    result = call("run", "p.yaml", "--quiet", "--resume", "half.h5", "--checkpoint", "rest.h5")
    assert result.exit_code == 0, result.output
    whole, rest = gv.Simulation.load("whole.h5"), gv.Simulation.load("rest.h5")
    assert rest.state_hash() == whole.state_hash() and sum(whole.origin["fed"]) == whole.count - 1 > 20


def test_resuming_another_file_is_refused(call, tmp_path):
    (tmp_path / "p.yaml").write_text(POURED)
    call("run", "p.yaml", "--quiet", "--time", 0.02, "--checkpoint", "p.h5")
    changed = POURED.replace("time: 0.3", "time: 0.03").replace("least: 1", "least: 2")  # these may change
    (tmp_path / "p.yaml").write_text(changed)
    assert call("run", "p.yaml", "--quiet", "--resume", "p.h5").exit_code == 0
    (tmp_path / "p.yaml").write_text(POURED.replace("radius: 0.05", "radius: 0.04"))
    result = call("run", "p.yaml", "--quiet", "--resume", "p.h5")
    assert result.exit_code == 1 and "p.yaml is not as it was when the run began" in result.output
    (tmp_path / "q.yaml").write_text(POURED)
    assert "scene must be p.yaml to continue" in call("run", "q.yaml", "--quiet", "--resume", "p.h5").output
    assert "scene must be p.yaml to continue" in call("run", "pile", "--quiet", "--resume", "p.h5").output


def test_options_of_run_with_a_file(call, tmp_path):
    (tmp_path / "p.yaml").write_text(POURED)
    result = call("run", "p.yaml", "--bodies", 3)
    assert result.exit_code == 1 and "--bodies goes with a built-in scene" in result.output
    result = call("run", "p.yaml", "--time", 0.01, "--dt", 0.001, "--iterations", 77, "--friction", "coulomb", "--seed", 4, "--quiet")
    assert (
        result.exit_code == 0 and "iterations=77" in result.output and "friction coulomb" in result.output and "10 steps" in result.output
    )


def test_bodies_are_taken_out_when_the_file_says_so(tmp_path):
    (tmp_path / "r.yaml").write_text(
        "bodies:\n- {name: plug, shape: {box: {half_extents: [1, 1, 0.1]}}, fixed: true}\n"
        "- {name: ball, shape: {sphere: {radius: 0.1}}, position: [0, 0, 0.2]}\n"
        "removals: [{bodies: [plug], at: 0.05}, {below: -0.5}]\nsimulation: {dt: 0.002, time: 1}\n"
    )
    setup = gv.load_scene_file(tmp_path / "r.yaml")
    sim = setup.simulation()
    sim.run(0.04, observers=setup.watchers())
    assert sim.alive.tolist() == [True, True] and sim.positions[1, 2] == pytest.approx(0.2, abs=1e-3)
    sim.run(0.5, observers=setup.watchers())
    assert sim.alive.tolist() == [False, False]


def test_logs_have_no_number_where_there_is_nothing_and_go_on_with_the_run(call, tmp_path):
    (tmp_path / "drop.yaml").write_text(
        "bodies:\n- {shape: {plane: {}}, fixed: true}\n- {shape: {sphere: {radius: 0.1}}, position: [0, 0, 0.12]}\n"
        "output:\n  checkpoint: half.h5\n  picture: false\n  logs:\n  - {file: f.csv, measures: [fabric, coordination]}\n"
        "  - {file: e.h5, measures: [kinetic_energy], every: 0.01}\nsimulation: {dt: 0.01, time: 0.1}\n"
    )
    done = call("run", "drop.yaml", "--quiet")
    assert done.exit_code == 0, done.output
    first = np.genfromtxt("f.csv", delimiter=",", names=True, comments="#")
    assert np.isnan(first["fabric_zz"][0]) and first["fabric_zz"][-1] == pytest.approx(1.0)  # it falls, then lies on the plane
    call("run", "drop.yaml", "--quiet", "--resume", "half.h5", "--time", "0.15")
    whole = np.genfromtxt("f.csv", delimiter=",", names=True, comments="#")
    assert np.allclose(whole["time"], 0.01 * np.arange(1, 16)) and np.allclose(whole["time"][:10], first["time"])
    with h5py.File("e.h5") as file:
        assert np.allclose(file["time"][:], 0.01 * np.arange(1, 16)) and len(file["kinetic_energy_total"]) == 15


def test_another_solver_keeps_the_iterations_of_the_file(call, tmp_path):
    (tmp_path / "a.yaml").write_text("bodies: [{shape: {sphere: {radius: 1}}}]\nsimulation: {dt: 0.01, time: 0.02, iterations: 777}\n")
    assert "Jacobi(iterations=777" in call("run", "a.yaml", "--quiet", "--no-picture", "--solver", "jacobi").output


@pytest.mark.parametrize("words", [("init", "s.yaml", "--seed", "5"), ("init", "s.yaml", "--bodies", "5")])
def test_options_of_from_need_it(call, tmp_path, words):
    refused = call(*words)
    assert refused.exit_code == 1 and "goes with --from" in refused.output and not list(tmp_path.iterdir())
