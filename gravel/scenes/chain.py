"""A swinging chain with a payload as heavy as a thousand links: joints stay closed and energy is conserved at any length."""

import numpy as np

from gravel.joints.kinds import Spherical
from gravel.rotations import between
from gravel.scene import Scene
from gravel.scenes.setup import Check, Setup, joints_check, mechanical_energy
from gravel.shapes import Capsule, Sphere

BODIES, FEWEST = 101, 3
LINK, MASS, PAYLOAD = 0.1, 1.0, 1000.0  # m, kg, times the mass of a link
LEAN = 1.0  # rad from hanging, at the start


def build(bodies, seed):
    scene = Scene()
    scene.ignore(1, 1)  # links reach into each other at the joints
    down = np.array([np.sin(LEAN), 0, -np.cos(LEAN)])
    turn, last = between((0, 0, 1), down), None
    moments = np.array([1 / 12, 1 / 12, 1 / 100]) * MASS * LINK**2
    for k in range(bodies - 1):
        shape = Capsule(0.15 * LINK, 0.35 * LINK)
        link = scene.add_body(shape, (k + 0.5) * LINK * down, quaternion=turn, mass=MASS, inertia=moments, group=1)
        scene.add_joint(Spherical(last, link, k * LINK * down))
        last = link
    load = scene.add_body(Sphere(0.5), (bodies - 1) * LINK * down, mass=PAYLOAD * MASS, group=1)
    scene.add_joint(Spherical(last, load, (bodies - 1) * LINK * down))
    height = (bodies - 1) * LINK * (1 - np.cos(LEAN))
    drop = 9.81 * height * MASS * (PAYLOAD + 0.5 * (bodies - 1))
    record = Energies(drop)
    return Setup(scene, 1e-3, 10.0, lambda s, r: check(s, r, record), [(record, 0.05)], {"precision": "double"})


class Energies:
    """How far the energy strays, as a share of what the swing exchanges."""

    def __init__(self, drop):
        self.drop, self.first, self.worst = drop, None, 0.0

    def __call__(self, simulation):
        energy = mechanical_energy(simulation)
        self.first = energy if self.first is None else self.first
        self.worst = max(self.worst, abs(energy - self.first) / self.drop)


def check(simulation, report, record):
    apart = np.linalg.norm(np.diff(simulation.positions, axis=0), axis=1)
    return [
        Check("it hangs together", apart.max() < 1.001 * LINK, f"neighbours at most {apart.max():.4f} m apart, a link is {LINK:g} m"),
        Check("energy", record.worst < 0.01, f"strays by {record.worst:.1e} of what the swing exchanges, allowed 0.01"),
        joints_check(report, LINK, 1e-5),
    ]
