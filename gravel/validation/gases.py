"""Gases of balls: what many impacts must keep."""

import numpy as np

from gravel.materials import Material
from gravel.scene import Scene
from gravel.shapes import Plane, Sphere
from gravel.validation.case import Curve, Outcome, case, largest
from gravel.validation.running import G, record, simulate


def box_of_balls(material, gravity, count=8, radius=0.04, side=1.0, speed=0.5, seed=2):
    """``count`` cubed balls in a cube between six walls, the bodies 0 to 5, on a lattice, with velocities at random."""
    scene = Scene(gravity=gravity)
    for normal in np.vstack([np.eye(3), -np.eye(3)]):
        scene.add_body(Plane(normal=normal, offset=-side / 2), material=material, fixed=True)
    line = side * ((np.arange(count) + 0.5) / count - 0.5)
    places = np.stack(np.meshgrid(line, line, line), axis=-1).reshape(-1, 3)
    velocities = speed * np.random.default_rng(seed).normal(size=places.shape)
    scene.add_bodies(Sphere(radius), places, material, velocities=velocities)
    return scene


@case("Energy of elastic balls with weight")
def elastic_balls_with_weight() -> Outcome:
    r"""512 smooth elastic balls in a box under gravity: $\sum \tfrac{1}{2} m v^2 + m g z$, from the floor, stays what it was, through some
    70 000 impacts in 3 s. Steps of 1/500 s; half a per cent is allowed."""
    sim = simulate(box_of_balls(Material(restitution=1.0, friction=0.0), (0, 0, -G)), 1 / 500)
    mass = sim.masses[6:]

    def energy(sim):
        return np.sum(mass * (0.5 * np.sum(sim.velocities[6:] ** 2, axis=1) + G * (sim.positions[6:, 2] + 0.5)))

    times, found = record(sim, 3.0, energy, every=25)
    curve = Curve("energy", times, np.ones(len(times)), found / found[0])
    return largest("time, s", "energy, of the start's", [curve], 1.0, "of the energy", 0.005)
