"""A robot arm from URDF: two servos swing it round, and it sweeps a crate off its place."""

import pathlib
import tempfile

import gravel as gv

LINK = """<link name="{name}">
  <inertial><origin xyz="0.25 0 0"/><mass value="2"/><inertia ixx="0.002" iyy="0.04" izz="0.04" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><origin xyz="0.25 0 0" rpy="0 1.5708 0"/><geometry><cylinder radius="0.04" length="0.5"/></geometry></collision>
</link>"""
JOINT = """<joint name="{name}" type="revolute">
  <parent link="{parent}"/><child link="{child}"/><origin xyz="{place}"/><axis xyz="0 0 1"/>
  <limit lower="-2" upper="2" effort="40" velocity="3"/><dynamics damping="0.5"/>
</joint>"""
URDF = f"""<robot name="arm">
  <link name="base"><collision><geometry><box size="0.2 0.2 0.4"/></geometry></collision></link>
  {LINK.format(name="upper")} {LINK.format(name="lower")}
  {JOINT.format(name="shoulder", parent="base", child="upper", place="0 0 0.1")}
  {JOINT.format(name="elbow", parent="upper", child="lower", place="0.5 0 0")}
</robot>"""

scene = gv.Scene()
scene.add_body(gv.Plane(), fixed=True)
crate = scene.add_body(gv.Box((0.1, 0.1, 0.2)), (0.8, 0.4, 0.2), gv.Material(density=100))
goal = {"shoulder": 1.2, "elbow": 0.4}
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "arm.urdf")
    path.write_text(URDF)
    servos = {name: gv.PositionMotor(angle, stiffness=100, damping=30) for name, angle in goal.items()}
    robot = gv.load_urdf(scene, path, position=(0, 0, 0.2), motors=servos)

sim = gv.Simulation(scene, dt=1 / 500)
sim.run(until=2.0)
for name, joint in robot.joints.items():
    print(f"{name}: {sim.joints.angle[joint]:+.3f} rad, {sim.joints.motor_torque[joint]:+.2f} N m")
print("elbow at", robot.link_pose(sim, "lower")[0].round(3), "crate at", sim.positions[crate].round(3))
print("\n".join(robot.messages))
assert abs(sim.joints.angle[robot.joints["shoulder"]] - goal["shoulder"]) < 0.05
assert sim.positions[crate, 1] > 0.6
