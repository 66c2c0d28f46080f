"""Machines whose light parts carry heavy loads, at the step that the user chose."""

import warnings

import numpy as np
import pytest

import gravel as gv
from gravel.rotations import between, to_matrix

GRAVITY = 9.81
LINKS, LINK, PAYLOAD_RADIUS = 10, 0.1, 0.03  # m
LENGTH = LINKS * LINK


def loaded_chain(payload, angle, hinges=False, **settings):
    """A straight chain of thin rods at an angle below the horizontal, with a ball of so many links' mass at its end."""
    scene = gv.Scene(gravity=(0, 0, -GRAVITY))
    along = np.array([np.cos(angle), 0.0, -np.sin(angle)])
    rod, rods, before = gv.Capsule(0.005, LINK / 2 - 0.005), gv.Material(density=1000), None

    def join(body, point):
        scene.add_joint(gv.Revolute(before, body, point=point, axis=(0, 1, 0)) if hinges else gv.Spherical(before, body, point=point))
        return body

    for k in range(LINKS):
        body = scene.add_body(rod, position=along * LINK * (k + 0.5), quaternion=between((0, 0, 1), tuple(along)), material=rods)
        before = join(body, along * LINK * k)
    mass = payload / scene.bodies.inverse_mass[before][0]
    heavy = gv.Material(density=mass / (4 / 3 * np.pi * PAYLOAD_RADIUS**3))
    join(scene.add_body(gv.Sphere(PAYLOAD_RADIUS), position=along * (LENGTH + PAYLOAD_RADIUS), material=heavy), along * LENGTH)
    return gv.Simulation(scene, **settings)


def energy_of(sim):
    spins = np.array([to_matrix(q).T @ w for q, w in zip(sim.quaternions, sim.angular_velocities)])
    moving = 0.5 * (sim.masses[:, None] * sim.velocities**2).sum() + 0.5 * (sim.inertias * spins**2).sum()
    return moving + GRAVITY * sim.masses @ sim.positions[:, 2]


@pytest.mark.parametrize("payload, hinges", [(1e3, False), (1e4, False), (1e4, True)])
def test_a_light_chain_holds_a_heavy_payload(payload, hinges):
    """The links swing across the taut chain far too fast for the step; it opens by no more than 1e-3 of its length, and what swings
    keeps its energy."""
    sim = loaded_chain(payload, 0.0, hinges, dt=1 / 500)
    start, scale = energy_of(sim), sim.masses.sum() * GRAVITY * LENGTH
    for k in range(1500):
        assert sim.step().joint_violation <= 1e-3 * LENGTH
        if k % 50 == 0:
            assert abs(energy_of(sim) - start) <= 0.01 * scale
            assert np.linalg.norm(sim.positions[-1]) <= 1.001 * (LENGTH + PAYLOAD_RADIUS)


@pytest.mark.parametrize("hinges", [False, True])
@pytest.mark.filterwarnings("ignore:joint")
def test_a_chain_at_the_limit_of_stiffness_survives_its_whip(hinges):
    """With ten links' mass at its end it is now stiff and now not, and forces grow many times over in a few steps."""
    sim = loaded_chain(10, 0.0, hinges, dt=1 / 500)
    assert max(sim.step().joint_violation for _ in range(1500)) <= 2e-3 * LENGTH


def test_open_joints_are_told_once():
    """A link that is put 5 mm aside, 2.5 % of what is 0.2 m long, cannot come back within a step at the recovery speed."""
    scene = gv.Scene(gravity=(0, 0, 0))
    links = [scene.add_body(gv.Box((0.05, 0.01, 0.01)), position=(x, 0, 0), material=gv.Material(density=1000)) for x in (0.05, 0.15)]
    joint = scene.add_joint(gv.Spherical(*links, point=(0.1, 0, 0)))
    sim = gv.Simulation(scene, dt=1e-3, recovery_speed=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.step()
    sim.positions[links[1]] += (0, 0.005, 0)
    words = rf"joint {joint} \(Spherical.*\) is open by 0.00\d+ m, .* % of its machine's size, in step 2: .*dt.* 0.00025 s"
    with pytest.warns(UserWarning, match=words):
        sim.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.step()


def test_gaps_too_small_for_any_machine_are_not_looked_into(monkeypatch):
    """The largest gap of a machine grows in most steps of a swing; what hangs together need not be found again for that."""
    looks, labels = [], gv.joints.mechanism.Mechanism._labels
    sim = loaded_chain(10, 0.3, dt=1e-3)
    sim.step()
    monkeypatch.setattr(gv.joints.mechanism.Mechanism, "_labels", lambda *given: looks.append(1) or labels(*given))
    gaps = [sim.step().joint_violation for _ in range(100)]
    assert max(gaps) > gaps[0] > 0 and not looks


def test_a_small_machine_is_looked_at_beside_a_large_one():
    """5 mm are next to nothing for a crane of 10 m, 4 mm are much for a gripper of 2 cm."""
    scene = gv.Scene(gravity=(0, 0, 0))
    steel = gv.Material(density=1000)
    beams = [scene.add_body(gv.Box((2.5, 0.1, 0.1)), position=(x, 0, 0), material=steel) for x in (-2.5, 2.5)]
    fingers = [scene.add_body(gv.Box((0.005, 0.001, 0.001)), position=(x, 5, 0), material=steel) for x in (-0.005, 0.005)]
    scene.add_joint(gv.Spherical(*beams, point=(0, 0, 0)))
    knuckle = scene.add_joint(gv.Spherical(*fingers, point=(0, 5, 0)))
    sim = gv.Simulation(scene, dt=1e-3, recovery_speed=0.1)
    sim.step()
    sim.positions[beams[1]] += (0, 0, 0.005)
    sim.positions[fingers[1]] += (0, 0, 0.004)
    with pytest.warns(UserWarning, match=f"joint {knuckle} "):
        sim.step()


@pytest.mark.parametrize("axis", [(0, 0, 1), (0, 1, 0)])
def test_a_mass_that_is_nearly_a_point_stays_on_its_hinge(axis):
    """Its own inertia is a millionth of m r^2, but what its hinge carries is its weight, also as a moment about the hinge's side."""
    scene = gv.Scene(gravity=(0, 0, -GRAVITY))
    bob = scene.add_body(gv.Sphere(0.02), (1, 0, 0), mass=2.0, inertia=(2e-6,) * 3)
    scene.add_joint(gv.Revolute(None, bob, point=(0, 0, 0), axis=axis))
    sim = gv.Simulation(scene, dt=1 / 500)
    for _ in range(1000):
        assert sim.step().joint_violation <= 2e-5
        assert abs(sim.positions[bob] @ axis) <= 1e-3 and abs(np.linalg.norm(sim.positions[bob]) - 1) <= 2e-5
