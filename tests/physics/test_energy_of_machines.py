"""Machines that nothing drives and nothing brakes keep their energy, however long: it swings about with the square of the step, and does
not drift."""

import itertools

import numpy as np
import pytest

import gravel as gv
from gravel.rotations import between, to_matrix

GRAVITY, DT = 9.81, 1 / 500


def rod(scene, start, end):
    """A flat bar from point to point; no two of its moments of inertia are the same."""
    start, end = np.array(start, float), np.array(end, float)
    length = np.linalg.norm(end - start)
    turned = between((1, 0, 0), tuple((end - start) / length))
    return scene.add_body(gv.Box((length / 2, 0.03, 0.01)), (start + end) / 2, quaternion=turned)


def linkage(points, joint):
    """Bars through the points, one after the other, the first at home in the world; returns scene and bars."""
    scene = gv.Scene(gravity=(0, 0, -GRAVITY))
    bars = [rod(scene, *ends) for ends in zip(points, points[1:])]
    for pair in itertools.combinations(bars, 2):
        scene.ignore_pair(*pair)
    for before, bar, point in zip([None, *bars], bars, points):
        scene.add_joint(joint(before, bar, point))
    return scene, bars


def hinge(a, b, point):
    return gv.Revolute(a, b, point=point, axis=(0, 1, 0))


def double_pendulum():
    return linkage([(0, 0, 0), (0.5, 0, 0), (1, 0, 0)], hinge)[0]


def chain_in_space():
    """Each bar at a right angle to the one before, on ball joints: it tumbles about all axes."""
    return linkage([(0, 0, 0), (0.3, 0, 0), (0.3, 0.3, 0), (0.3, 0.3, 0.3)], lambda a, b, point: gv.Spherical(a, b, point=point))[0]


def four_bar():
    """A crank of 0.4 m upright, a coupler of 1.1 m and a rocker of 0.9 m, 1.2 m from joint to joint in the world: it falls and swings."""
    home, top, far = np.zeros(3), np.array([0, 0, 0.4]), np.array([1.2, 0, 0])
    line = (far - top) / np.linalg.norm(far - top)
    along = (1.1**2 - 0.9**2 + (far - top) @ (far - top)) / (2 * np.linalg.norm(far - top))
    bend = top + along * line + np.sqrt(1.1**2 - along**2) * np.cross(line, (0, 1, 0))
    scene, bars = linkage([home, top, bend, far], hinge)
    scene.add_joint(hinge(bars[-1], None, far))
    return scene


def energy_of(sim):
    spins = np.array([to_matrix(q).T @ w for q, w in zip(sim.quaternions, sim.angular_velocities)])
    moving = 0.5 * (sim.masses[:, None] * sim.velocities**2).sum() + 0.5 * (sim.inertias * spins**2).sum()
    return moving + GRAVITY * sim.masses @ sim.positions[:, 2]


def energies(scene, steps, scale, **settings):
    """Changes of the energy, relative to m g ``scale``, (5, n): in each fifth of the time."""
    sim = gv.Simulation(scene, DT, **settings)
    start, found = energy_of(sim), []
    for k in range(steps):
        assert sim.step().converged
        if k % 20 == 19:
            found.append(energy_of(sim) - start)
    return np.array(found).reshape(5, -1) / (GRAVITY * sim.masses.sum() * scale)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("machine, scale", [(double_pendulum, 1.0), (chain_in_space, 0.9), (four_bar, 0.4)])
def test_energy_does_not_drift(machine, scale, precision):
    change = energies(machine(), 10_000, scale, precision=precision)
    means = change.mean(axis=1)
    assert np.abs(change).max() < 5e-3 and np.abs(means).max() < 1.5e-4
    assert abs(means[-1] - means[0]) < 1e-4


@pytest.mark.slow
def test_energy_does_not_drift_in_a_hundred_thousand_steps():
    means = energies(double_pendulum(), 100_000, 1.0).mean(axis=1)
    assert np.abs(means).max() < 1e-4 and np.ptp(means) < 7e-5


def test_energy_beside_contacts():
    """A ball that lies on the floor far away, in the same scene: the joints are then solved from sweep to sweep."""
    scene = double_pendulum()
    scene.add_body(gv.Plane(normal=(0, 0, 1)), (0, 0, -3), fixed=True)
    scene.add_body(gv.Sphere(0.1), (5, 0, -2.9))
    sim = gv.Simulation(scene, DT)
    bars = slice(0, 2)

    def energy():
        spins = np.array([to_matrix(q).T @ w for q, w in zip(sim.quaternions[bars], sim.angular_velocities[bars])])
        moving = 0.5 * (sim.masses[bars, None] * sim.velocities[bars] ** 2).sum() + 0.5 * (sim.inertias[bars] * spins**2).sum()
        return moving + GRAVITY * sim.masses[bars] @ sim.positions[bars, 2]

    start, found = energy(), []
    for k in range(10_000):
        assert sim.step().contacts == 1
        if k % 20 == 19:
            found.append(energy() - start)
    means = np.array(found).reshape(5, -1).mean(axis=1) / (GRAVITY * sim.masses[bars].sum())
    assert np.abs(means).max() < 1e-4
