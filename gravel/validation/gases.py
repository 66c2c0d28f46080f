"""Gases of balls: what many impacts must keep."""

import numpy as np

from gravel.materials import Material
from gravel.scene import Scene
from gravel.shapes import Plane, Sphere
from gravel.validation.case import Curve, Outcome, case, largest
from gravel.validation.cooling_start import FRICTION, RADIUS, RESTITUTION, SIDE, TIMES, gas_start, reference
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


def temperatures(seed, seconds=1.0):
    """At TIMES up to so many seconds: translational and rotational, over the first at the start."""
    rough, (places, velocities) = Material(friction=FRICTION, restitution=RESTITUTION), gas_start(seed)
    scene = Scene(gravity=(0, 0, 0), periodic=[(0, SIDE)] * 3)
    scene.add_bodies(Sphere(RADIUS), places, rough, velocities=velocities)
    sim = simulate(scene, 1 / 500)

    def measure(sim):
        return np.sum(sim.velocities**2), 0.4 * RADIUS**2 * np.sum(sim.angular_velocities**2)

    found = record(sim, seconds, measure, every=round((TIMES[1] - TIMES[0]) * 500))[1]
    return found / found[0, 0]


def cooled(found):
    """Curves of temperatures beside those of the reference, and by how much its single runs scatter."""
    known, count = reference(), len(found)
    names = ("translation", "rotation")
    scatter = [known[f"{name}_scatter"][:count] for name in names]
    return [Curve(name, TIMES[:count], known[name][:count], found[:, k]) for k, name in enumerate(names)], scatter


@case("Frictional cooling of a gas")
def frictional_cooling() -> Outcome:
    r"""1 000 rough balls, 11 % of a periodic cube, lose energy at every impact: $e = 0.9$ of the normal speed is left, and friction,
    $\mu = 0.5$, turns flight into spin and heat. Drawn are the translational and the rotational temperature, $\langle v^2 \rangle / 3$ and
    $I \langle \omega^2 \rangle / 3 m$, over the first at the start, beside the mean of 40 event-driven simulations of Newton's and
    Coulomb's laws, which have neither steps nor a solver (`tests/validation/make_cooling_reference.py`). Steps of 1/500 s. Single runs
    of these scatter by 3 % of the temperature; three times as much is allowed, and the next case looks closer."""
    curves, scatter = cooled(temperatures(0))
    error = float(max((np.abs(curve.difference()[1:]) / width[1:]).max() for curve, width in zip(curves, scatter)))
    return Outcome("time, s", "temperature, of the start's", curves, error, "of a run's scatter", 3.0)


@case("Frictional cooling, mean of 20", slow=True, only="defaults")
def mean_cooling() -> Outcome:
    r"""The same gas, in the mean of 20 starts and for 2 s, in which the temperature falls to a fiftieth: the mean is known to 1 %, and the
    reference's to 0.6 %. Three per cent are allowed."""
    curves, _ = cooled(np.mean([temperatures(seed, 2.0) for seed in range(20)], axis=0))
    error = float(max(np.abs(curve.difference()[1:] / curve.formula[1:]).max() for curve in curves))
    return Outcome("time, s", "temperature, of the start's", curves, error, "of the temperature", 0.03)
