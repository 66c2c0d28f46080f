"""The command line: what it prints, writes and refuses."""

import pytest
from click.testing import CliRunner

from gravel import scenes
from gravel.cli import main


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(main, [str(w) for w in words])


def test_run_prints_device_first_and_result_last_and_leaves_files(call, tmp_path):
    result = call("run", "pile", "--bodies", 60, "--time", 0.1, "--quiet")
    assert result.exit_code == 0, result.output
    lines = result.output.strip().splitlines()
    assert lines[0].startswith("device cpu") and "threads" in lines[0] and "precision single" in lines[0]
    for word in ("wrote pile.vtkhdf", "contacts", "worst residual", "worst penetration"):
        assert word in lines[-1]
    assert (tmp_path / "pile.vtkhdf").stat().st_size > 1000
    assert (tmp_path / "pile.png").read_bytes()[:4] == b"\x89PNG"


def test_picture_and_plot(call, tmp_path):
    call("run", "pile", "--bodies", 30, "--time", 0.05, "--quiet", "--no-picture", "-o", "a.vtkhdf")
    for words in (("picture", "a.vtkhdf", "--frame", 2, "--colour", "speed", "-o", "p.png"), ("plot", "a.vtkhdf", "-o", "q.png")):
        result = call(*words)
        assert result.exit_code == 0, result.output
    for name in ("p.png", "q.png"):
        assert (tmp_path / name).stat().st_size > 2000


def test_resume_gives_the_same_state_as_one_run(call):
    common = ("--bodies", 40, "--quiet", "--no-picture")
    call("run", "pile", *common, "--time", 0.1, "--checkpoint", "whole.h5")
    call("run", "pile", *common, "--time", 0.06, "--checkpoint", "half.h5")
    result = call("run", "pile", *common, "--time", 0.1, "--resume", "half.h5", "--checkpoint", "rest.h5")
    assert result.exit_code == 0, result.output
    import gravel as gv

    assert gv.Simulation.load("rest.h5").state_hash() == gv.Simulation.load("whole.h5").state_hash()


def test_scenes_and_info_list_what_there_is(call):
    listed = call("scenes").output
    assert all(name in listed for name in scenes.NAMES)
    assert "numba" in call("info").output


@pytest.mark.parametrize(
    "words, said",
    [
        (("run", "sillo"), "did you mean 'silo'"),
        (("run", "pile", "--solver", "gaus"), "did you mean 'gauss-seidel'"),
        (("run", "pile", "--bodies", -3), "bodies must be at least"),
        (("run", "pile", "--dt", -1), "dt must be greater than 0"),
        (("run", "pile", "--precision", "half"), "precision must be one of"),
        (("run", "pile", "-o", "no/such/folder/x.vtkhdf"), "no folder"),
        (("run", "pile", "--resume", "nothing.h5"), "no checkpoint"),
        (("picture", "nothing.vtkhdf"), "no result file"),
        (("plot", "nothing.vtkhdf"), "no result file"),
        (("bench", "colide"), "did you mean 'collide'"),
        (("rum",), "did you mean 'run'"),
    ],
)
def test_errors_are_one_clear_sentence(call, words, said):
    result = call(*words)
    assert result.exit_code != 0
    assert said in result.output
    assert "Traceback" not in result.output
