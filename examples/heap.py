"""A heap of glass grains on a floor, which carries their weight: the twelve lines of README with fewer grains."""

import numpy as np

import gravel as gv

scene, rng = gv.Scene(gravity=(0, 0, -9.81)), np.random.default_rng(1)
glass = gv.Material(density=2500, friction=0.5, rolling_friction=0.003, restitution=0.1)
floor = scene.add_body(gv.Plane(normal=(0, 0, 1)), material=glass, fixed=True)
places = 0.09 * np.stack(np.unravel_index(np.arange(500), (8, 8, 8)), axis=1) + rng.uniform(0.04, 0.05, (500, 3))
grains = scene.add_bodies(gv.Sphere(rng.uniform(0.02, 0.04, 500)), positions=places, material=glass)

sim = gv.Simulation(scene, dt=1 / 500)
report = sim.run(until=2.0, save="heap.vtkhdf", every=0.02)
carried = sim.contacts.impulse[sim.contacts.body_a == floor].sum(axis=0) / sim.dt
weight = 9.81 * sim.masses[grains].sum()
print(f"{report.steps} steps, {report.contacts} contacts; the floor carries {carried[2]:.0f} N, the grains weigh {weight:.0f} N")
assert abs(carried[2] / weight - 1) < 0.01
