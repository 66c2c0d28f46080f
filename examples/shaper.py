"""A shaping machine with two rods that have no mass: a crank's pin runs in the slot of an arm, which pushes a ram by a connecting
rod. The crank turns evenly; the ram comes back faster than it goes."""

import numpy as np

import gravel as gv

crank_radius, crank_height, arm_length, rod_length, ram_height = 0.1, 0.4, 0.7, 0.3, 0.75
y = (0, 1, 0)


def ram_position(turn):
    """Of the crank's angle from above: the arm points at the pin, the rod leads from its tip to the ram."""
    arm = np.arctan2(crank_radius * np.sin(turn), crank_height + crank_radius * np.cos(turn))
    return arm_length * np.sin(arm) + np.sqrt(rod_length**2 - (ram_height - arm_length * np.cos(arm)) ** 2)


scene = gv.Scene(gravity=(0, 0, -9.81))
start = ram_position(0.0)
crank = scene.add_body(gv.Box((0.1, 0.02, 0.1)), position=(0, 0, crank_height), mass=2.0)
arm = scene.add_body(gv.Box((0.02, 0.02, arm_length / 2)), position=(0, 0, arm_length / 2), mass=1.0)
ram = scene.add_body(gv.Box((0.15, 0.04, 0.04)), position=(start, 0, ram_height), mass=4.0)
hinge = scene.add_joint(gv.Revolute(None, crank, point=(0, 0, crank_height), axis=y, motor=gv.SpeedMotor(2 * np.pi)))
scene.add_joint(gv.Revolute(None, arm, point=(0, 0, 0), axis=y))
pin = (0, 0, crank_height + crank_radius)
slot = scene.add_joint(gv.RevoluteTranslational(crank, arm, point=pin, axis=y, point_b=(0, 0, 0), slide=(0, 0, 1), length=0.0))
tip = (0, 0, arm_length)
rod = scene.add_joint(gv.RevoluteSpherical(arm, ram, point=tip, axis=y, point_b=(start, 0, ram_height), length=rod_length))
slide = scene.add_joint(gv.Prismatic(None, ram, point=(start, 0, ram_height), axis=(1, 0, 0), start=start))

sim = gv.Simulation(scene, dt=1e-3, precision="double")
turns, places, pulls = [], [], []


def look(sim):
    turns.append(sim.joints.angle[hinge])
    places.append(sim.joints.slide[slide])
    pulls.append(np.linalg.norm(sim.joints.force[rod]))


sim.run(until=2.0, observers=[look])
off = np.abs(np.array(places) - ram_position(np.array(turns))).max()
forth = np.mean(np.diff(places) > 0)
reach = np.arccos(-crank_radius / crank_height)  # the arm is farthest where it touches the pin's circle
print(f"in two turns the ram is within {off:.1e} m of the formula, joints open by {sim.report.joint_violation:.1e} m")
print(f"it goes {forth / (1 - forth):.2f} times as long as it comes back, by the formula {reach / (np.pi - reach):.2f}")
print(f"the rod bears up to {np.max(pulls[10:]):.0f} N")
assert off < 1e-5 and abs(forth / (1 - forth) - reach / (np.pi - reach)) < 0.01
