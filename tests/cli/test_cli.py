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


@pytest.mark.parametrize("words", [(), *((name,) for name in sorted(main.commands))], ids=lambda words: "_".join(words) or "gravel")
def test_help_is_no_error(call, words):
    for option in ("--help", "-h"):
        result = call(*words, option)
        assert result.exit_code == 0 and result.output.startswith("Usage:") and "Error" not in result.output
    assert call("--version").exit_code == 0


@pytest.mark.parametrize(
    "words, said",
    [
        (("run", "pendulum", "--time", -1), "Error: --time must be later than the present time 0 s, not -1"),
        (("run", "pendulum", "--dt", 0), "Error: --dt must be greater than 0, not 0"),
        (("run", "pendulum", "--every", -1), "Error: --every must be greater than 0, not -1"),
        (("run", "pendulum", "--threads", 0), "Error: --threads must be at least 1, not 0"),
    ],
)
def test_refusals_name_the_option(call, tmp_path, words, said):
    refused = call(*words)
    assert refused.exit_code == 1 and said in refused.output
    assert not list(tmp_path.iterdir())


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


def test_resume_applies_what_can_change_and_says_so(call):
    import gravel as gv

    call("run", "pile", "--bodies", 40, "--quiet", "--no-picture", "--time", 0.06, "--checkpoint", "half.h5")
    half = gv.Simulation.load("half.h5")
    words = ("--dt", half.dt / 2, "--friction", "cone", "--iterations", 77, "--tolerance", 1e-3)
    rest = ("run", "pile", "--quiet", "--no-picture", "--resume", "half.h5", "--time", 0.08)
    result = call(*rest, *words, "--checkpoint", "rest.h5", "-o", "rest.vtkhdf")
    assert result.exit_code == 0, result.output
    (line,) = [line for line in result.output.splitlines() if line.startswith("changed at 0.06 s: ")]
    for said in (
        f"dt {half.dt / 2:g} s (was {half.dt:g})",
        "friction cone (was coulomb)",
        "iterations=77",
        "was GaussSeidel(iterations=600",
    ):
        assert said in line
    after = gv.Simulation.load("rest.h5")
    assert (after.dt, after.friction, after.solver.iterations, after.solver.tolerance) == (half.dt / 2, "cone", 77, 1e-3)
    assert after.time == pytest.approx(0.08) and after.steps - half.steps == round(0.02 / after.dt)  # the time goes on where it was
    twin = half  # the same by hand
    twin.dt, twin.friction, twin.solver = half.dt / 2, "cone", gv.GaussSeidel(iterations=77, tolerance=1e-3)
    twin.run(until=0.08)
    assert twin.state_hash() == after.state_hash()
    other = call(*rest, "--solver", "jacobi", "-o", "other.vtkhdf")
    assert other.exit_code == 0 and "Jacobi(iterations=600" in other.output and "(was GaussSeidel(" in other.output
    assert "changed" not in call(*rest, "-o", "plain.vtkhdf").output


@pytest.mark.parametrize(
    "words, said",
    [
        (("--precision", "double"), "precision must be single to continue from half.h5, not double"),
        (("--joints", "iterative"), "joints must be direct to continue from half.h5, not iterative"),
        (("--bodies", 41), "bodies must be 40 to continue from half.h5, not 41"),
        (("--seed", 3), "seed must be 5 to continue from half.h5, not 3"),
        (("--dt", -1), "dt must be greater than 0"),
        (("--friction", "glue"), "friction must be one of"),
        (("--iterations", 0), "iterations must be at least 1"),
        (("-o", "a.csv"), "--output must be a file whose name ends in .vtkhdf"),
        (("--checkpoint", "a.txt"), "checkpoint must be a file whose name ends in .h5"),
    ],
)
def test_resume_refuses_what_cannot_change(call, words, said):
    call("run", "pile", "--bodies", 40, "--seed", 5, "--quiet", "--no-picture", "--time", 0.01, "--checkpoint", "half.h5")
    result = call("run", "pile", "--quiet", "--no-picture", "--resume", "half.h5", "--time", 0.02, *words)
    assert result.exit_code == 1 and said in result.output and "Traceback" not in result.output
    other = call("run", "silo", "--resume", "half.h5")
    assert other.exit_code == 1 and "scene must be pile to continue from half.h5, not silo" in other.output


def test_a_resumed_run_goes_on_with_its_result(call):
    from gravel.io.vtkhdf import read_reports

    call("run", "pile", "--bodies", 40, "--quiet", "--no-picture", "--time", 0.06, "--checkpoint", "half.h5")
    first = read_reports("pile.vtkhdf")["time"]
    result = call("run", "pile", "--quiet", "--no-picture", "--time", 0.1, "--resume", "half.h5")
    assert result.exit_code == 0, result.output
    both = read_reports("pile.vtkhdf")["time"]
    assert (both[: len(first)] == first).all() and both[-1] == pytest.approx(0.1)


def test_resume_of_a_machine_with_a_motor_that_is_a_function(call):
    import gravel as gv

    common, laws = ("--bodies", 150, "--quiet", "--no-picture"), scenes.build("segregation", 150).scene.mechanism.function_laws()
    call("run", "segregation", *common, "--time", 0.06, "--checkpoint", "whole.h5")
    call("run", "segregation", *common, "--time", 0.03, "--checkpoint", "half.h5")
    result = call("run", "segregation", *common, "--time", 0.06, "--resume", "half.h5", "--checkpoint", "rest.h5")
    assert result.exit_code == 0, result.output
    assert gv.Simulation.load("rest.h5", laws=laws).state_hash() == gv.Simulation.load("whole.h5", laws=laws).state_hash()


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
        (("bench", "collide", "--steps", 3), "--steps goes with scaling only"),
        (("rum",), "did you mean 'run'"),
    ],
)
def test_errors_are_one_clear_sentence(call, words, said):
    result = call(*words)
    assert result.exit_code != 0
    assert said in result.output
    assert "Traceback" not in result.output


URDF = """<robot name="leg">
  <link name="foot"><inertial><mass value="3"/><inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size="0.4 0.4 0.1"/></geometry></collision></link>
  <link name="shank"><inertial><origin xyz="0 0 0.2"/><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.001" ixy="0" ixz="0" iyz="0"/>
    </inertial><collision><origin xyz="0 0 0.2"/><geometry><box size="0.05 0.05 0.4"/></geometry></collision></link>
  <joint name="ankle" type="revolute"><parent link="foot"/><child link="shank"/><origin xyz="0 0 0.05"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="50" velocity="5"/></joint>
</robot>"""


def test_robot_is_put_on_a_floor_and_stands(call, tmp_path):
    (tmp_path / "leg.urdf").write_text(URDF)
    result = call("robot", "leg.urdf", "--hold", 200, "--time", 0.2, "--no-picture")
    assert result.exit_code == 0, result.output
    assert "leg: 2 links in 2 bodies, 4.000 kg, 1 joints" in result.output and "ankle: joint 0 (Revolute" in result.output
    import gravel as gv
    from gravel.io.vtkhdf import read_frame, read_joints

    frame = read_frame(tmp_path / "leg.vtkhdf")
    foot, shank = (frame["position"][k][2] for k in (0, 1))
    assert foot == pytest.approx(0.05, abs=1e-3) and shank == pytest.approx(0.3, abs=1e-3)
    assert abs(read_joints(tmp_path / "leg.vtkhdf")["angle"][-1, 0]) < 0.01
    assert gv.load_urdf  # the loader that the command uses is public


def test_robot_without_servos_falls_over(call, tmp_path):
    """The same leg on a slant tips over: the servos of the other test hold it up, not a mistake."""
    (tmp_path / "leg.urdf").write_text(URDF.replace('xyz="0 0 0.2"/><mass', 'xyz="0.05 0 0.2"/><mass'))
    call("robot", "leg.urdf", "--time", 0.5, "--no-picture")
    from gravel.io.vtkhdf import read_joints

    assert read_joints(tmp_path / "leg.vtkhdf")["angle"][-1, 0] > 0.3


def test_robot_with_a_mesh_elsewhere_is_read_on_request(call, tmp_path):
    (tmp_path / "robot").mkdir()
    corners = ["0 0 0", "1 0 0", "0 1 0", "0 0 1"]
    faces = ["1 3 2", "1 2 4", "1 4 3", "2 3 4"]
    (tmp_path / "foot.obj").write_text("".join(f"v {c}\n" for c in corners) + "".join(f"f {f}\n" for f in faces))
    text = (
        '<robot name="r"><link name="foot"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    mesh = '<collision><geometry><mesh filename="../foot.obj"/></geometry></collision></link></robot>'
    (tmp_path / "robot" / "r.urdf").write_text(text + mesh)
    result = call("robot", "robot/r.urdf", "--time", 0)
    assert result.exit_code != 0 and "'../foot.obj' must be a file in" in result.output and "outside_files=True" in result.output
    assert call("robot", "robot/r.urdf", "--time", 0, "--outside-files").exit_code == 0


def test_cad_lists_parts_masses_and_common_axes(call, tmp_path):
    from cad_parts import kernel_volume, machine_parts, write_slider_crank

    write_slider_crank(tmp_path / "machine.step", unit="INCH")
    result = call("cad", "machine.step", "--density", 1000)
    total = 1000 * sum(map(kernel_volume, machine_parts().values()))
    assert result.exit_code == 0, result.output
    assert f"slider-crank: 5 parts, {total:.6g} kg at 1000 kg/m3, lengths in the file in inch" in result.output
    assert "  bucket (slider-crank/bucket): 0.1425 kg, 142.5 cm3" in result.output
    assert "hole of radius 0.006 m, 0.01 m long at (0.25, 0, 0) m along (0, 1, 0)" in result.output
    assert result.output.count(": an axis through") == 4 and "crank and rod: an axis through (0.05, 0, 0) m" in result.output
    (tmp_path / "cut.step").write_bytes((tmp_path / "machine.step").read_bytes()[:5000])
    result = call("cad", "cut.step")
    assert result.exit_code == 1 and result.output == (
        "Error: path must be a whole STEP file, which ends with END-ISO-10303-21, but 'cut.step' does not\n"
    )


def test_robot_that_is_not_there(call):
    result = call("robot", "nobody.urdf")
    assert result.exit_code == 1 and "nobody.urdf" in result.output and "Traceback" not in result.output


def test_joints_can_be_chosen_and_plotted(call, tmp_path):
    result = call("run", "four-bar", "--time", 0.05, "--joints", "iterative", "--iterations", 200, "--quiet", "--no-picture")
    assert result.exit_code == 0 and "4 joints" in result.output, result.output
    assert call("plot", "four-bar.vtkhdf", "--joints").exit_code == 0
    assert (tmp_path / "four-bar-joints.png").stat().st_size > 2000
    refused = call("run", "pendulum", "--bodies", 7)
    assert refused.exit_code == 1 and "bodies must be 1 for pendulum" in refused.output
