"""A belt carries grains to an edge: bodies come and go, and a plane moves under them."""

import numpy as np

import gravel as gv

scene = gv.Scene()
rubber = gv.Material(density=1200, friction=0.8)
belt = scene.add_body(gv.Box((1.0, 0.3, 0.05)), (0, 0, -0.05), rubber, motion=gv.ConstantVelocity(velocity=(0, 0, 0)))
sim = gv.Simulation(scene, dt=1 / 500, friction="coulomb")
rng = np.random.default_rng(0)


def feed(simulation):
    """Ten grains every tenth of a second, apart from each other and from the last ones; those that fell are taken out."""
    places = [(-0.9 + 0.1 * (k % 5), -0.1 + 0.2 * (k // 5), 0.4) for k in range(10)] + rng.uniform(-0.015, 0.015, (10, 3))
    simulation.add_bodies(gv.Sphere(rng.uniform(0.02, 0.03, 10)), places, rubber, velocities=[(0, 0, -1.0)] * 10)
    simulation.remove(np.flatnonzero(simulation.movable & (simulation.positions[:, 2] < -1)))


sim.run(until=1.0, observers=[(feed, 0.1)])
print(f"{int(sim.movable.sum())} grains on the belt or in the air, {int((~sim.alive).sum())} taken out")
assert sim.movable.sum() > 50
