"""A belt takes grains from an inlet to its end, where they fall and are taken out: what is fed comes out, some time later."""

import numpy as np

import gravel as gv

scene = gv.Scene()
rubber, grain = gv.Material(density=1200, friction=0.8), gv.Material(density=2000, friction=0.5)
belt = scene.add_body(gv.Box((1.0, 0.3, 0.05)), (0, 0, -0.05), rubber, fixed=True, surface_velocity=(0.8, 0, 0))
for side in (-0.32, 0.32):
    scene.add_body(gv.Box((1.0, 0.02, 0.2)), (0, side, 0.1), rubber, fixed=True)
sim = gv.Simulation(scene, dt=1 / 500)
inlet = gv.BoxRegion((-0.9, -0.2, 0.35), (-0.6, 0.2, 0.45))
feed = gv.pour(gv.Sphere, inlet, number_rate=100, sizes=gv.UniformSizes(0.02, 0.03), material=grain, velocity=(0, 0, -1))
taken_out = []


def take_out(simulation):
    """Grains that have fallen off the end."""
    fallen = np.flatnonzero(simulation.movable & (simulation.positions[:, 2] < -1))
    taken_out.extend((simulation.time, mass) for mass in simulation.masses[fallen])
    simulation.remove(fallen)


sim.run(until=6.0, observers=[feed, (take_out, 0.1)])
late = sum(mass for time, mass in taken_out if time > 4.0) / 2.0
print(f"fed {feed.fed_mass / 6.0:.2f} kg/s; off the end after the first 4 s {late:.2f} kg/s")
sim.set_surface_velocity(belt, None)  # it stops, and so does what lies on it
sim.run(until=8.0)
on_it = sim.movable & (sim.positions[:, 2] > 0)
speed = np.sqrt((sim.velocities[on_it] ** 2).sum(axis=1).mean())
print(f"{int(on_it.sum())} grains lie on the belt, which stands still; on average they move at {speed:.3f} m/s")
assert abs(late * 6.0 / feed.fed_mass - 1) < 0.2
