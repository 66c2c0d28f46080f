"""A machine from CAD: a slider-crank is drawn with build123d, read from its STEP file, and shakes a bucket of balls."""

import pathlib
import tempfile

import build123d as b3d

import gravel as gv

CRANK, ROD, PIN = 40, 200, 8  # mm


def pin(x, y, length, radius=PIN):
    return b3d.Pos(x, y, 0) * b3d.Rot(90, 0, 0) * b3d.Cylinder(radius, length)


def bore(length, radius):
    return b3d.Pos(CRANK + ROD, 0, 0) * b3d.Rot(0, 90, 0) * b3d.Cylinder(radius, length)


end = CRANK + ROD
parts = {
    "frame": b3d.Pos(0, -45, 0) * b3d.Box(60, 20, 60) - pin(0, -45, 30, 12) + (bore(200, 32) - bore(220, 24)),
    "crank": pin(0, -40, 40, 12) + b3d.Pos(CRANK / 2, -15, 0) * b3d.Box(CRANK + 30, 10, 30) + pin(CRANK, 0, 20),
    "rod": b3d.Pos(CRANK + ROD / 2, 0, 0) * b3d.Box(ROD + 24, 10, 24) - pin(CRANK, 0, 20) - pin(end, 0, 20),
    "piston": bore(60, 24) - b3d.Pos(end - 20, 0, 0) * b3d.Box(60, 14, 50) + pin(end, 0, 30),
    "bucket": b3d.Pos(end, 0, 80) * (b3d.Box(140, 100, 80) - b3d.Pos(0, 0, 5) * b3d.Box(130, 90, 80)),
}
for name, shape in parts.items():
    shape.label = name

scene = gv.Scene()
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "machine.step")
    b3d.export_step(b3d.Compound(label="machine", children=list(parts.values())), path)
    contact = {"*": "none", "bucket": "pieces"}
    machine = gv.load_step(scene, path, 7850, fixed="frame", contact=contact, rigid={"slider": ("piston", "bucket")})
motor = scene.add_joint(machine.hinge("frame", "crank", motor=gv.SpeedMotor(15.0)))
scene.add_joint(machine.hinge("crank", "rod"))
scene.add_joint(machine.hinge("rod", "slider"))
scene.add_joint(machine.slider("frame", "slider"))
inside = gv.BoxRegion((0.18, -0.04, 0.05), (0.30, 0.04, 0.11))
balls = gv.pack(gv.Sphere(0.006), inside, count=60, seed=1).add_to(scene)

sim = gv.Simulation(scene, dt=5e-4)
start = machine.part_pose(sim, "bucket")[0]
sim.run(until=0.2)
moved = machine.part_pose(sim, "bucket")[0] - start
print(machine)
torque = sim.joints.motor_torque[motor]
print(f"the bucket of {machine.masses['bucket']:.4f} kg has moved by {1e3 * moved[0]:.1f} mm; motor {torque:.2f} N m")
assert abs(machine.masses["bucket"] - 7850 * (140 * 100 * 80 - 130 * 90 * 75) * 1e-9) < 1e-9
assert -0.081 < moved[0] < -0.07 and abs(moved[1:]).max() < 1e-5  # by nearly twice the crank, along x
assert (sim.positions[balls, 2] > 0.04).all()  # they stay in it
