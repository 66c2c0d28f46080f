"""A rod swings on a hinge with a large amplitude, without damping; the exact motion is known (elliptic functions)."""

import numpy as np
from scipy.special import ellipj, ellipk

from gravel.joints.kinds import Revolute
from gravel.rotations import from_rotation_vector, rotate
from gravel.scene import Scene
from gravel.scenes.setup import Check, Setup, joints_check, mechanical_energy
from gravel.shapes import Box

BODIES = FEWEST = 1
LENGTH, MASS, WIDTH = 1.0, 1.0, 0.04
SWING = 2.0  # rad from hanging, at the start


def build(bodies, seed):
    scene = Scene()
    turn = from_rotation_vector((0, -SWING, 0))  # hanging, turned by -SWING about y: the positive angle brings it back
    rod = scene.add_body(Box((WIDTH / 2, WIDTH / 2, LENGTH / 2)), rotate(turn, (0, 0, -LENGTH / 2)), quaternion=turn, mass=MASS)
    hinge = scene.add_joint(Revolute(None, rod, (0, 0, 0), (0, 1, 0), start=-SWING))
    return Setup(scene, 1e-3, 5.0, lambda s, r: check(s, r, hinge), options={"precision": "double"})


def exact_angle(time):
    """Swing of a physical pendulum released at rest: sin(angle / 2) = k sn(w t + K), k = sin(SWING / 2)."""
    inertia = MASS * (LENGTH**2 + WIDTH**2) / 12 + MASS * (LENGTH / 2) ** 2
    k, rate = np.sin(SWING / 2), np.sqrt(MASS * 9.81 * LENGTH / 2 / inertia)
    return 2 * np.arcsin(k * ellipj(rate * time - ellipk(k * k), k * k)[0])


def check(simulation, report, hinge):
    angle, exact = simulation.joints.angle[hinge], exact_angle(simulation.time)
    start = -MASS * 9.81 * LENGTH / 2 * np.cos(SWING)
    drift = abs(mechanical_energy(simulation) - start) / (MASS * 9.81 * LENGTH)
    return [
        Check("the swing", abs(angle - exact) < 1e-4 * SWING, f"{angle:.6f} rad, exactly {exact:.6f}"),
        Check("energy", drift < 1e-5, f"off by {drift:.1e} of m g length"),
        joints_check(report, LENGTH, 1e-5),
    ]
