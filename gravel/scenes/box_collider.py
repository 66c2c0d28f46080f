"""Spheres of very different sizes fly in a closed box and bounce off its faces and each other (paper 003: Box Collider).

A box of 100 x 100 x 100 m, radii uniform between 0 and 5 m. The paper places its spheres without checking for overlaps; here each is
placed where there is room, so that every collision is a real one. Beyond the number that fits (a fifth of the volume, about 1 500
spheres) all radii shrink together.
"""

import numpy as np
from scipy.spatial import cKDTree

from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.scenes.setup import Check, Setup, box_walls, inside_check, mass_check
from gravel.shapes import Plane, Sphere

BODIES, FEWEST = 1000, 2
SIDE, LARGEST, SPEED, SHARE = 100.0, 5.0, 20.0, 0.2


def places_without_overlap(radii, half, rng):
    """Random centres in a cube, the largest spheres first, none touching another."""
    order = np.argsort(-radii)
    places = np.empty((len(radii), 3))
    waiting, placed = order, order[:0]
    while len(waiting):
        places[waiting] = rng.uniform(-1, 1, (len(waiting), 3)) * (half - radii[waiting, None])
        everyone = np.concatenate([placed, waiting])
        pairs = cKDTree(places[everyone]).query_pairs(2 * radii.max(), output_type="ndarray")
        a, b = everyone[pairs[:, 0]], everyone[pairs[:, 1]]
        close = np.linalg.norm(places[a] - places[b], axis=1) < 1.01 * (radii[a] + radii[b])
        rank = np.empty(len(radii), int)
        rank[everyone] = np.arange(len(everyone))
        again = np.zeros(len(radii), bool)
        again[np.where(rank[a] > rank[b], a, b)[close]] = True  # of two that overlap, the one that came later moves
        placed, waiting = everyone[~again[everyone]], everyone[again[everyone]]
    return places


def build(bodies, seed):
    rng = np.random.default_rng(seed)
    rubber = Material(density=1000, friction=0.0, restitution=1.0, name="rubber")
    radii = rng.uniform(0.02, 1.0, bodies) * LARGEST
    volume = 4 / 3 * np.pi * np.sum(radii**3)
    radii *= min(1.0, (SHARE * SIDE**3 / volume) ** (1 / 3))
    half = SIDE / 2
    scene = Scene(gravity=(0, 0, 0))
    box_walls(scene, half, half, rubber)
    for normal in ((0, 0, 1), (0, 0, -1)):
        scene.add_body(Plane(normal, offset=-half), material=rubber, fixed=True)
    places = places_without_overlap(radii, half, rng)
    velocities = rng.normal(0, SPEED, (bodies, 3))
    scene.add_bodies(Sphere(radii), places, rubber, velocities=velocities)
    energy = 0.5 * 1000 * 4 / 3 * np.pi * np.sum(radii**3 * np.sum(velocities**2, axis=1))
    return Setup(scene, 1 / 300, 2.0, lambda s, r: check(s, r, half, energy, bodies))


def check(simulation, report, half, energy, bodies):
    drift = simulation.report.kinetic_energy / energy - 1
    return [
        inside_check(simulation, report, (-half,) * 3, (half,) * 3, 0.0),
        Check("energy is kept", abs(drift) < 1e-3, f"relative change {drift:.2e}, allowed 1e-3"),
        mass_check(simulation, bodies),
    ]
