"""A hopper packed with grains of a sieve curve, and stones poured on top of them. Writes packing.vtkhdf."""

import numpy as np

import gravel as gv

sand, stone = gv.Material(density=2500, friction=0.4), gv.Material(density=2700, friction=0.6)
curve = gv.SieveCurve(diameters=[0.03, 0.04, 0.06], passing=[0.0, 0.3, 1.0])  # shares by mass
hopper = gv.HopperRegion(outlet_radius=0.1, top_radius=0.25, cone_height=0.2, cylinder_height=0.15)

packing = gv.pack(gv.Sphere, hopper, sizes=curve, fraction=0.5, seed=1)
print(packing)

scene = gv.Scene()
silo = gv.HopperRegion(0.1, 0.25, 0.2, 0.8)  # the same one, higher
for wall in silo.walls():
    scene.add_body(wall, material=stone, fixed=True)
grains = packing.add_to(scene, sand)

sim = gv.Simulation(scene, dt=1 / 1000)
inlet = gv.CylinderRegion((0, 0, 0.7), (0, 0, 0.85), radius=0.2)
stones = gv.Mixture([(gv.Capsule(radius=0.015, half_length=0.015), 0.5), (gv.Sphere, 0.5, gv.UniformSizes(0.015, 0.025))])
pourer = gv.pour(stones, inlet, rate=20.0, total=5.0, material=stone, velocity=(0, 0, -1))
sim.run(until=0.5, save="packing.vtkhdf", every=0.05, observers=[pourer])
print(pourer)
print(sim.report)
assert pourer.fed_mass > 4.5 and silo.contains(sim.positions[sim.movable]).all() and np.isfinite(sim.positions).all()
