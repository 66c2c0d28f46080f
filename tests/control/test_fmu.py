"""Machines as co-simulation units, run by fmpy: the same bits as in gravel, valid by the standard, states that can be taken up again."""

import json
import pathlib
import subprocess
import sys
import zipfile

import fmpy
import numpy as np
import pytest
from click.testing import CliRunner
from fmpy.fmi2 import FMU2Slave, defaultCallbacks, fmi2CallbackFunctions, fmi2CallbackLoggerTYPE
from fmpy.fmi3 import FMU3Slave, fmi3LogMessageCallback
from fmpy.model_description import ValidationError
from fmpy.validation import validate_fmu
from hopper import HOPPER

import gravel as gv
from gravel import scenes
from gravel.cli import main

VERSIONS = pytest.mark.parametrize("fmi", [2, 3])
INPUTS = "motor.crank.speed, load.piston.force.x"
OUTPUTS = "joint.crank.motor_torque, body.position, body.rod.quaternion, joint.piston.force.z, step.contacts, step.converged"


class Tool:
    """A unit in a tool, either version by the same words."""

    def __init__(self, path, folder, start=0.0):
        about = fmpy.read_model_description(str(path))
        self.references = {v.name: v.valueReference for v in about.modelVariables}
        self.said, self.time = [], start
        where = str(fmpy.extract(str(path), str(folder)))
        common = {"guid": about.guid, "unzipDirectory": where, "modelIdentifier": about.coSimulation.modelIdentifier}
        if about.fmiVersion == "2.0":
            self.unit = unit = FMU2Slave(**common, instanceName="machine")
            self._callbacks = fmi2CallbackFunctions()
            self._callbacks.logger = fmi2CallbackLoggerTYPE(lambda *words: self.said.append(words[-1].decode()))
            self._callbacks.allocateMemory, self._callbacks.freeMemory = defaultCallbacks.allocateMemory, defaultCallbacks.freeMemory
            unit.instantiate(callbacks=self._callbacks, loggingOn=True)
            unit.setupExperiment(startTime=start)
            unit.enterInitializationMode()
            self._get, self._set = unit.getReal, unit.setReal
            self.keep, self.take, self.free = unit.getFMUstate, unit.setFMUstate, unit.freeFMUstate
            self.to_bytes, self.from_bytes = unit.serializeFMUstate, unit.deSerializeFMUstate
        else:
            self.unit = unit = FMU3Slave(**common, instanceName="machine")
            self._callbacks = fmi3LogMessageCallback(lambda *words: self.said.append(words[-1].decode()))
            unit.instantiate(logMessage=self._callbacks, loggingOn=True)
            unit.enterInitializationMode(startTime=start)
            self._get, self._set = unit.getFloat64, unit.setFloat64
            self.keep, self.take, self.free = unit.getFMUState, unit.setFMUState, unit.freeFMUState
            self.to_bytes, self.from_bytes = unit.serializeFMUState, unit.deserializeFMUState
        unit.exitInitializationMode()

    def get(self, *names):
        return list(self._get([self.references[name] for name in names]))

    def set(self, **values):
        self._set([self.references[name.replace("__", ".")] for name in values], list(values.values()))

    def step(self, size):
        self.unit.doStep(self.time, size)
        self.time += size

    def fails(self, time, size):
        """What the unit says of a step that it does not take."""
        self.said.clear()
        with pytest.raises(Exception, match="DoStep failed"):
            self.unit.doStep(time, size)
        (words,) = self.said
        return words

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.unit.terminate()
        self.unit.freeInstance()


@pytest.fixture(scope="module")
def units(tmp_path_factory):
    """The slider-crank as a unit of either version."""
    folder = tmp_path_factory.mktemp("units")
    return {fmi: gv.export_fmu("slider-crank", folder / f"crank{fmi}.fmu", INPUTS, OUTPUTS, fmi=fmi) for fmi in (2, 3)}


def own_simulation():
    setup = scenes.build("slider-crank")
    return gv.Simulation(setup.scene, setup.dt, **setup.options)


@VERSIONS
def test_a_thousand_steps_are_those_of_gravel_bit_for_bit(units, fmi):
    times = 1e-3 * np.arange(1001)
    names = ["motor.crank.speed", "load.piston.force.x"]
    signal = np.array(list(zip(times, 6 + np.sin(10 * times), 30 * np.cos(20 * times))), [("time", float), *((n, float) for n in names)])
    found = fmpy.simulate_fmu(str(units[fmi]), stop_time=1.0, step_size=1e-3, output_interval=1e-3, input=signal, fmi_type="CoSimulation")
    sim = own_simulation()
    rows = [row_of(sim)]
    for _, speed, force in signal[:-1]:
        sim.set_motor(0, gv.SpeedMotor(float(speed)))
        sim.forces[2] = (force, 0, 0)
        sim.step()
        rows.append(row_of(sim))
    seen = np.array([[float(value) for value in row] for row in found.tolist()])
    assert seen.shape == (1001, 18) and np.array_equal(seen[:, 1:], rows)
    assert np.abs(np.diff(seen[:, 1])).max() > 0.01  # the load was felt


def row_of(sim):
    converged = True if sim.report is None else sim.report.converged
    return [sim.joints.motor_torque[0], *sim.positions[:3].ravel(), *sim.quaternions[1], sim.joints.force[3, 2], 0.0, float(converged)]


@VERSIONS
def test_the_standard_finds_no_fault_and_the_description_says_what_there_is(units, fmi):
    assert validate_fmu(str(units[fmi])) == []
    about = fmpy.read_model_description(str(units[fmi]))
    found = {v.name: v for v in about.modelVariables}
    speed, torque, converged = (found[name] for name in ("motor.crank.speed", "joint.crank.motor_torque", "step.converged"))
    assert (speed.causality, speed.variability, speed.unit) == ("input", "continuous", "rad/s")
    assert float(speed.start) == 2 * np.pi  # to the last bit
    assert (torque.causality, torque.unit, torque.initial) == ("output", "N.m", "calculated")
    assert (converged.type, converged.variability) == ("Boolean", "discrete") and found["step.contacts"].type in ("Integer", "Int32")
    units_of = {unit.name: unit.baseUnit for unit in about.unitDefinitions}
    assert (units_of["N.m"].kg, units_of["N.m"].m, units_of["N.m"].s) == (1, 2, -2)
    assert float(about.defaultExperiment.stepSize) == 1e-3
    ability = about.coSimulation
    assert ability.canGetAndSetFMUstate and ability.canSerializeFMUstate and ability.needsExecutionTool
    assert all(unknown.dependencies == [] for unknown in about.outputs)


@VERSIONS
def test_a_state_that_is_taken_up_has_the_same_future(units, fmi, tmp_path):
    names = ("time", "joint.crank.motor_torque", "body.piston.position.x")

    def future(tool, steps):
        seen = []
        for _ in range(steps):
            tool.set(motor__crank__speed=5 + np.sin(9 * tool.time))
            tool.step(2e-3)
            seen.append(tool.get(*names))
        return seen

    with Tool(units[fmi], tmp_path / "a", start=2.0) as tool:
        future(tool, 15)
        tool.set(load__piston__force__x=12.5)
        kept, begun = tool.keep(), tool.time
        first = future(tool, 20)
        tool.take(kept)
        tool.time = begun
        assert tool.get("load.piston.force.x") == [12.5] and future(tool, 20) == first
        content = tool.to_bytes(kept)
        tool.free(kept)
    with Tool(units[fmi], tmp_path / "b", start=2.0) as other:  # another instance, from bytes
        other.take(other.from_bytes(content))
        other.time = begun
        assert future(other, 20) == first
        assert abs(first[-1][0] - 2.07) < 1e-9


@VERSIONS
def test_what_cannot_be_is_told_through_the_logger_and_the_unit_lives_on(units, fmi, tmp_path):
    with Tool(units[fmi], tmp_path) as tool:
        tool.step(3e-3)
        for size in (1.5e-3, 0.0, np.nan, -1e-3):
            assert tool.fails(tool.time, size).startswith("the communication step must be a multiple of the machine's own step, 0.001 s")
        assert "must begin where the last one ended, at 0.003 s, not at 1.0 s" in tool.fails(1.0, 1e-3)
        tool.set(load__piston__force__x=np.inf)
        assert tool.fails(tool.time, 1e-3) == "load.piston.force.x must be finite, not inf"
        tool.set(load__piston__force__x=0.0)
        kept = tool.keep()
        tool.take(tool.from_bytes(b"rubbish"))
        assert "is damaged" in tool.fails(tool.time, 1e-3)
        tool.take(kept)
        tool.step(1e-3)
        with Tool(gv.export_fmu("four-bar", tmp_path / "other.fmu", fmi=fmi), tmp_path / "other") as other:
            other.take(other.from_bytes(tool.to_bytes(kept)))
            assert "must be one of this very unit" in other.fails(0.0, 1e-3)
        expected = own_simulation()
        for _ in range(4):
            expected.step()
        assert tool.get("body.piston.position.x") == [expected.positions[2, 0]]


def test_a_scene_file_with_inlet_and_tables_goes_into_the_unit(tmp_path):
    path = tmp_path / "hopper.yaml"
    path.write_text(HOPPER)
    outputs = "body.left wheel.position.z, body.left wheel.contact_force, step.contacts, joint.lift.main.slide"
    unit = gv.export_fmu(path, tmp_path / "hopper.fmu", "surface.belt.velocity.x, motion.paddle.angular_velocity", outputs)
    assert validate_fmu(str(unit)) == []
    setup = gv.load_scene_file(path)
    path.unlink()  # the unit has all it needs
    sim = setup.simulation()
    with Tool(unit, tmp_path / "unzipped") as tool:
        for _ in range(40):
            tool.step(4 * sim.dt)
        kept = tool.keep()
        for _ in range(20):
            tool.step(4 * sim.dt)
        seen = tool.get("body.'left wheel'.position.z", "joint.lift.main.slide")
        tool.take(tool.from_bytes(tool.to_bytes(kept)))
        tool.time -= 20 * 4 * sim.dt
        for _ in range(20):
            tool.step(4 * sim.dt)
        assert tool.get("body.'left wheel'.position.z", "joint.lift.main.slide") == seen
    sim.run(240 * sim.dt, observers=setup.watchers())
    assert seen == [sim.positions[1, 2], sim.joints.slide[0]] and sim.count > 120


def test_functions_of_a_script_are_refused_unless_they_are_inputs(tmp_path):
    scene = gv.Scene()
    crank = scene.add_body(gv.Box((0.1, 0.02, 0.02)), (0.1, 0, 0))
    scene.add_joint(gv.Revolute(None, crank, axis=(0, -1, 0), motor=gv.SpeedMotor(lambda time: 2.0 + time)))
    with pytest.raises(ValueError, match="is Python code of a script, which a file cannot hold"):
        gv.export_fmu(scene, tmp_path / "m.fmu", inputs="gravity.z", outputs="joint.angle", dt=1e-3)
    assert not list(tmp_path.iterdir())
    path = gv.export_fmu(scene, tmp_path / "m.fmu", dt=1e-3, joint_names={"crank": 0})
    about = fmpy.read_model_description(str(path))
    assert {v.name: v.start for v in about.modelVariables if v.causality == "input"} == {"motor.crank.speed": "2.0"}


def test_wrong_arguments_are_refused_and_leave_no_file(tmp_path):
    target = tmp_path / "m.fmu"
    for error, said, options in (
        (ValueError, "fmi must be 3 or 2, not 1", {"fmi": 1}),
        (ValueError, "did you mean|close to it: 'motor.crank.speed'", {"inputs": "motor.crank.sped"}),
        (ValueError, "outputs must not have the time", {"outputs": "time"}),
        (ValueError, "step must be a multiple of the simulation's, 0.001 s, not 0.0015", {"step": 1.5e-3}),
        (TypeError, "inputs must be names of variables, not 3", {"inputs": 3}),
    ):
        with pytest.raises(error, match=said):
            gv.export_fmu("slider-crank", target, **options)
    with pytest.raises(ValueError, match="path must be a file whose name ends in .fmu"):
        gv.export_fmu("slider-crank", tmp_path / "m.zip")
    with pytest.raises(ValueError, match="must be given for a scene without joints"):
        gv.export_fmu("pile", target, bodies=20, outputs=())
    assert not list(tmp_path.iterdir())


def test_imports_are_left_as_they_were(tmp_path):
    before = list(sys.path)
    gv.export_fmu("four-bar", tmp_path / "m.fmu")
    left = [str(module) for name, module in sys.modules.items() if name.startswith("gravel_fmi")]
    assert sys.path == before and not [words for words in left if "slaves" in words]
    with zipfile.ZipFile(tmp_path / "m.fmu") as file:
        about = json.loads(file.read("resources/machine.json"))
        script = file.read("resources/gravel_fmi3.py").decode()
    assert about["joints"] == {"crank": 0, "rocker": 3} and "class GravelMachine(Fmi3Slave)" in script


def test_a_python_without_gravel_is_told(units, tmp_path):
    """The script of the unit, where gravel cannot be imported."""
    with zipfile.ZipFile(units[3]) as file:
        file.extractall(tmp_path)
    script = """
import sys
sys.modules["gravel"] = None
sys.path.insert(0, sys.argv[1])
from gravel_fmi3 import GravelMachine
GravelMachine(instance_name="m", resources=sys.argv[1])
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "resources")], capture_output=True, text=True)
    assert "holds a machine of gravel, which the Python that runs it cannot import; install gravel there" in done.stderr


def test_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call = lambda *words: CliRunner().invoke(main, [str(word) for word in words])  # noqa: E731
    listed = call("fmu", "slider-crank", "--list")
    assert listed.exit_code == 0 and "motor.crank" in listed.output and "speed rad/s, position rad, torque N m" in listed.output
    assert "joint.piston " in listed.output and "gravity.{x,y,z} m/s2" in listed.output and not list(tmp_path.iterdir())
    chosen = ("--inputs", "motor.speed", "--outputs", "joint.torque,body.position")
    done = call("fmu", "slider-crank", *chosen, "--fmi", 2, "-o", "machine.fmu")
    assert done.exit_code == 0 and done.output == "wrote machine.fmu\n" and validate_fmu("machine.fmu") == []
    names = {v.name for v in fmpy.read_model_description("machine.fmu").modelVariables}
    assert len(names) == 1 + 1 + 4 * 3 + 3 * 3 and "joint.crank_pin.torque.y" in names
    wrong = call("fmu", "slider-crank", "--inputs", "motor.crank.sped")
    assert wrong.exit_code == 1 and "--inputs must be variables" in wrong.output and "'motor.crank.speed'" in wrong.output
    assert [path.name for path in pathlib.Path().iterdir()] == ["machine.fmu"]


def test_validation_would_see_a_fault(units, tmp_path):
    """A unit whose description lacks the start value of an input."""
    with zipfile.ZipFile(units[3]) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    parts["modelDescription.xml"] = parts["modelDescription.xml"].replace(b'start="6.283185307179586"', b"")
    with zipfile.ZipFile(tmp_path / "bad.fmu", "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)
    assert validate_fmu(str(tmp_path / "bad.fmu"))
    with pytest.raises(ValidationError):
        fmpy.read_model_description(str(tmp_path / "bad.fmu"))


@pytest.mark.slow
def test_the_vehicle_is_driven_from_outside(tmp_path):
    unit = gv.export_fmu(
        "vehicle", tmp_path / "vehicle.fmu", "motor.*.speed", "body.chassis.position, joint.*_sprocket.motor_torque", bodies=500, step=2e-3
    )
    setup = scenes.build("vehicle", 500)
    sim = gv.Simulation(setup.scene, setup.dt, **setup.options)
    drives = [setup.joint_names[name] for name in ("right_sprocket", "left_sprocket")]
    with Tool(unit, tmp_path / "unzipped") as tool:
        for step in range(500):
            speeds = 3.0 * min(step / 100, 1), 2.5 * min(step / 100, 1)
            tool.set(motor__right_sprocket__speed=speeds[0], motor__left_sprocket__speed=speeds[1])
            tool.step(2e-3)
            for joint, speed in zip(drives, speeds):
                sim.set_motor(joint, gv.SpeedMotor(speed, limit=4000.0))
            sim.step()
            sim.step()
        seen = tool.get(*(f"body.chassis.position.{axis}" for axis in "xyz"), "joint.right_sprocket.motor_torque")
    assert seen == [*sim.positions[sim.body_names["chassis"]], sim.joints.motor_torque[drives[0]]]
