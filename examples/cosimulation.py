"""A machine of gravel as an FMU, and a controller outside that holds the speed of its crank under a changing load.

The controller knows the machine by the standard FMI only. It needs pip install "gravel[fmi]" fmpy."""

import math

import fmpy
from fmpy.fmi3 import FMU3Slave

import gravel as gv

path = gv.export_fmu(
    "slider-crank",
    "crank.fmu",
    inputs="motor.crank.torque, load.piston.force.x",
    outputs="joint.crank.angle_speed, joint.piston.slide",
    step=2e-3,
)

about = fmpy.read_model_description(str(path))
number = {variable.name: variable.valueReference for variable in about.modelVariables}
machine = FMU3Slave(
    guid=about.guid, unzipDirectory=fmpy.extract(str(path)), modelIdentifier=about.coSimulation.modelIdentifier, instanceName="crank"
)
machine.instantiate()
machine.enterInitializationMode(startTime=0.0)
machine.exitInitializationMode()

TARGET, GAIN, PER_SECOND, STEP = 5.0, 10.0, 20.0, 2e-3  # rad/s, N m s, 1/s, s
time, held = 0.0, 0.0
while time < 1.5:
    (speed,) = machine.getFloat64([number["joint.crank.angle_speed"]])
    held += PER_SECOND * STEP * (TARGET - speed)
    torque = GAIN * (TARGET - speed + held)
    machine.setFloat64([number["motor.crank.torque"], number["load.piston.force.x"]], [torque, 10.0 * math.sin(20.0 * time)])
    machine.doStep(time, STEP)
    time += STEP
(speed,) = machine.getFloat64([number["joint.crank.angle_speed"]])
machine.terminate()
machine.freeInstance()
print(f"after {time:.1f} s the crank turns at {speed:.2f} rad/s, asked {TARGET:g}")
assert abs(speed - TARGET) < 0.1 * TARGET
