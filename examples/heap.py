"""A heap of glass grains on a floor: the ten lines of README."""

import numpy as np

import gravel as gv

scene = gv.Scene(gravity=(0, 0, -9.81))
glass = gv.Material(density=2500, friction=0.3, restitution=0.1)
scene.add_body(gv.Plane(normal=(0, 0, 1)), material=glass, fixed=True)
xyz = np.stack(np.meshgrid(*[np.arange(6) * 0.11] * 3), -1).reshape(-1, 3) + (0, 0, 0.06)
grains = scene.add_bodies(gv.Sphere(0.05), positions=xyz, material=glass)

sim = gv.Simulation(scene, dt=1 / 500, solver=gv.GaussSeidel(iterations=100, tolerance=1e-4))
report = sim.run(until=0.5, save="heap.vtkhdf", every=0.02)
print(f"{report.steps} steps, {report.contacts} contacts, worst residual {report.residual:.2g} m/s")
assert sim.positions[grains, 2].min() > 0.04
