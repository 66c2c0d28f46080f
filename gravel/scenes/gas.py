"""Elastic spheres at 1 % of the volume in a closed box, without gravity (paper 004, section 6)."""

import numpy as np

from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.scenes.setup import Check, Setup, box_walls, inside_check, lattice
from gravel.shapes import Plane, Sphere

BODIES, FEWEST = 1000, 2
RADIUS, SPEED = 0.05, 1.0


def build(bodies, seed):
    rng = np.random.default_rng(seed)
    gas = Material(density=1000, friction=0.0, restitution=1.0, name="gas")
    half = 0.5 * (bodies * 4 / 3 * np.pi * RADIUS**3 / 0.01) ** (1 / 3)
    scene = Scene(gravity=(0, 0, 0))
    box_walls(scene, half, half, gas)
    scene.add_body(Plane((0, 0, 1), offset=-half), material=gas, fixed=True)
    scene.add_body(Plane((0, 0, -1), offset=-half), material=gas, fixed=True)
    spacing = 2 * half / np.ceil(bodies ** (1 / 3))
    places = lattice(bodies, (-half, -half, -half), (half, half, half), spacing, 0.1 * spacing, rng)
    velocities = rng.normal(0, SPEED, (bodies, 3))
    scene.add_bodies(Sphere(RADIUS), places, gas, velocities=velocities)
    energy = 0.5 * 1000 * 4 / 3 * np.pi * RADIUS**3 * np.sum(velocities**2)
    return Setup(scene, 1 / 500, 2.0, lambda s, r: check(s, r, half, energy))


def check(simulation, report, half, energy):
    drift = simulation.report.kinetic_energy / energy - 1
    v = simulation.velocities[simulation.movable].astype(float)
    fractions = np.mean(v**2, axis=0) / np.mean(v**2)
    return [
        inside_check(simulation, report, (-half,) * 3, (half,) * 3, 0.1 * RADIUS),
        Check("energy is kept", abs(drift) < 1e-3, f"relative change {drift:.2e}, allowed 1e-3"),
        Check(
            "no direction is preferred",
            np.abs(fractions - 1).max() < 6 / np.sqrt(len(v)) + 0.02,
            f"energy per axis over mean {np.round(fractions, 3)}",
        ),
    ]
