"""A motor turns a crank; a rod and a slide turn that into a stroke. Prints the torque that the motor needs."""

import numpy as np

import gravel as gv

scene = gv.Scene(gravity=(0, 0, -9.81))
crank = scene.add_body(gv.Box((0.1, 0.02, 0.02)), position=(0.1, 0, 0), mass=1.0)
rod = scene.add_body(gv.Box((0.3, 0.01, 0.01)), position=(0.5, 0, 0), mass=1.0)
piston = scene.add_body(gv.Box((0.04, 0.04, 0.04)), position=(0.8, 0, 0), mass=2.0)
hinge = scene.add_joint(gv.Revolute(None, crank, point=(0, 0, 0), axis=(0, 1, 0), motor=gv.SpeedMotor(6.0, limit=50)))
scene.add_joint(gv.Revolute(crank, rod, point=(0.2, 0, 0), axis=(0, 1, 0)))
scene.add_joint(gv.Revolute(rod, piston, point=(0.8, 0, 0), axis=(0, 1, 0)))
slide = scene.add_joint(gv.Prismatic(None, piston, point=(0.8, 0, 0), axis=(1, 0, 0), start=0.8))

sim = gv.Simulation(scene, dt=1e-3, precision="double")
torques = []
sim.run(until=1.0, observers=[lambda s: torques.append(s.joints.motor_torque[hinge])])
angle = sim.joints.angle[hinge]
exact = 0.2 * np.cos(angle) + np.sqrt(0.6**2 - (0.2 * np.sin(angle)) ** 2)
print(f"angle {angle:.4f} rad, piston at {sim.joints.slide[slide]:.6f} m, by the formula {exact:.6f} m")
print(f"torque {np.min(torques[10:]):.2f} to {np.max(torques[10:]):.2f} N m, joints open by {sim.report.joint_violation:.1e} m")
assert abs(sim.joints.slide[slide] - exact) < 1e-5
