"""Energies, work of motors, mass through surfaces, displacements: against formulas and counts."""

import dataclasses

import numpy as np
import pytest
from test_bad_input import refuse

import gravel as gv
from gravel.measures.snapshot import snapshot_of
from gravel.model.cell import Cell

G = 9.81


def test_kinetic_and_potential_energy_of_turning_bodies():
    rng = np.random.default_rng(0)
    scene = gv.Scene(gravity=(1.0, 2.0, -3.0))
    scene.add_body(gv.Plane(offset=-5.0), fixed=True)
    half, n = np.array([0.1, 0.2, 0.3]), 10
    places, turns = rng.normal(size=(n, 3)), rng.normal(size=(n, 4))
    velocities, spins = rng.normal(size=(n, 3)), rng.normal(size=(n, 3))
    scene.add_bodies(gv.Box(half), 9 * places, quaternions=turns, velocities=velocities, angular_velocities=spins)
    sim = gv.Simulation(scene, 1e-3, precision="double")
    mass = 8 * half.prod() * 1000
    energy = gv.measures.kinetic_energy(sim)
    assert energy.translational == pytest.approx(0.5 * mass * (velocities**2).sum())
    turning = 0.0
    for q, spin in zip(turns / np.linalg.norm(turns, axis=1, keepdims=True), spins):
        axes = [np.array([gv.rotations.rotate(q, e)]) for e in np.eye(3)]
        turning += sum(0.5 * mass / 3 * ((half**2).sum() - h**2) * (axis @ spin)[0] ** 2 for h, axis in zip(half, axes))
    assert energy.rotational == pytest.approx(turning) and energy.total == pytest.approx(energy.translational + turning)
    assert gv.measures.potential_energy(sim) == pytest.approx(-mass * (9 * places @ (1.0, 2.0, -3.0)).sum())
    assert sum(gv.measures.kinetic_energy(sim, ((-50, -50, z), (50, 50, z + 50))).total for z in (-50, 0)) == pytest.approx(energy.total)


def test_energy_of_a_fall_is_kept():
    scene = gv.Scene(gravity=(0, 0, -G))
    scene.add_body(gv.Sphere(0.1), (0, 0, 10), velocity=(3, 0, 0))
    sim = gv.Simulation(scene, 1e-3, precision="double")
    total = lambda: gv.measures.kinetic_energy(sim).total + gv.measures.potential_energy(sim)  # noqa: E731
    before = total()
    sim.run(1.0)
    assert total() == pytest.approx(before, rel=1e-9) and gv.measures.kinetic_energy(sim).total > 100


# --- motors
@pytest.mark.parametrize("motor", [gv.ForceMotor(3.0), gv.ForceMotor(lambda t: 5 * np.sin(20 * t)), gv.SpeedMotor(12.0, limit=4.0)])
def test_work_of_a_motor_is_the_energy_of_a_flywheel(motor):
    scene = gv.Scene(gravity=(0, 0, 0))
    wheel = scene.add_body(gv.Cylinder(0.2, 0.05), (0, 0, 0))
    scene.add_joint(gv.Revolute(None, wheel, point=(0, 0, 0), axis=(0, 0, 1), motor=motor))
    sim = gv.Simulation(scene, 1e-3, precision="double")
    work = gv.measures.MotorWork(sim)
    sim.run(0.5, observers=[work])
    energy = 0.5 * sim.inertias[wheel, 2] * sim.angular_velocities[wheel, 2] ** 2
    assert energy > 0.01 and work.work == pytest.approx(energy, rel=1e-3)
    assert len(work.times) == 501 and work.works[-1] == work.work


def test_work_of_a_hoist_is_the_energy_of_its_load():
    """A motor lifts 5 kg by 1 m/s along a slide, another one idles."""
    scene = gv.Scene(gravity=(0, 0, -G))
    load, other = (scene.add_body(gv.Sphere(0.1), (x, 0, 0), mass=5.0) for x in (0, 2))
    scene.add_joint(gv.Revolute(None, other, point=(2, 0, 1), axis=(0, 1, 0), motor=gv.ForceMotor(0.0)))
    lift = scene.add_joint(gv.Prismatic(None, load, point=(0, 0, 0), axis=(0, 0, 1), motor=gv.SpeedMotor(1.0)))
    sim = gv.Simulation(scene, 1e-3, precision="double")
    both, one = gv.measures.MotorWork(sim), gv.measures.MotorWork(sim, joints=lift)
    sim.run(0.5, observers=[both, one])
    gained = 5.0 * G * sim.positions[load, 2] + 0.5 * 5.0 * sim.velocities[load, 2] ** 2
    assert sim.positions[load, 2] > 0.45 and one.work == pytest.approx(gained, rel=2e-3)
    assert both.work == pytest.approx(one.work) and np.allclose(both.work_of_joints, [0, one.work])
    refuse(lambda: gv.measures.MotorWork(sim, joints=[5]), "joints", "5")
    refuse(lambda: gv.measures.MotorWork(scene), "Simulation", error=TypeError)


# --- mass through a surface
def rain(n=200):
    """Balls of different masses, far apart, that fall, half of them thrown up first."""
    rng = np.random.default_rng(1)
    scene = gv.Scene(gravity=(0, 0, -10.0))
    places = np.column_stack([np.arange(n), rng.uniform(-1, 1, n), rng.uniform(-0.5, 2, n)])
    masses = rng.uniform(0.5, 2, n)
    scene.add_bodies(gv.Sphere(0.01), places, masses=masses, velocities=[(0, 0, 4.0 * (k % 2)) for k in range(n)])
    return gv.Simulation(scene, 1e-2), places, masses


def test_mass_through_a_plane_and_a_disc_is_what_has_changed_sides():
    sim, places, masses = rain()
    down = gv.measures.MassFlow((0, 0, 0), (0, 0, -2))
    disc = gv.measures.MassFlow((99.5, 0, 0), (0, 0, -1), radius=20.0)
    seldom = gv.measures.MassFlow((0, 0, 0), (0, 0, 1))
    for flow in (down, disc, seldom):
        flow(sim)
    sim.run(0.7, observers=[down, disc, (seldom, 0.1)])
    passed = (places[:, 2] > 0).astype(int) - (sim.positions[:, 2] > 0)
    assert passed.sum() > 0 and (passed < 0).any()
    near = np.hypot(places[:, 0] - 99.5, places[:, 1]) < 20.0
    assert down.mass == pytest.approx(masses @ passed) and down.count == passed.sum()
    assert disc.mass == pytest.approx(masses[near] @ passed[near]) and 0 < near.sum() < len(near)
    assert seldom.mass == pytest.approx(-down.mass)
    assert down.rate == pytest.approx(down.mass / 0.7) and len(down.times) == 71


def test_bodies_that_are_removed_or_added_do_not_flow():
    sim, _, _ = rain(4)
    flow = gv.measures.MassFlow((0, 0, -1.0), (0, 0, -1))
    flow(sim)
    sim.remove([0, 1, 2, 3])
    ids = sim.add_bodies(gv.Sphere(0.01), [(0, 0, -5), (9, 0, -0.99)], masses=[1.0, 7.0])
    flow(sim)
    assert flow.mass == 0.0
    sim.positions[ids[1]] = (9, 0, -1.5)
    assert flow(sim) == 7.0 and flow(sim) == 7.0 and flow.count == 1


def test_mass_goes_round_a_periodic_cell():
    """1 kg passes x = 0.9 three times as it goes round a cell of 1 m, and does not count when it is wrapped."""
    sim, _, _ = rain(1)
    cell, flow = Cell(((0, 1), (0, 1), (0, 1))), gv.measures.MassFlow((0.9, 0.5, 0.5), (1, 0, 0))
    steps = gv.measures.MeanSquareDisplacement
    place = lambda x: dataclasses.replace(snapshot_of(sim), cell=cell, masses=np.ones(1), positions=cell.wrap(np.array([[x, 0.5, 0.5]])))  # noqa: E731
    flow(place(0.0))
    displaced = steps(place(0.0))
    for x in np.arange(0.1, 3.05, 0.1):
        flow(place(x))
        displaced(place(x))
    assert flow.mass == 3.0
    assert displaced.values[-1] == pytest.approx(9.0)


# --- displacement
def test_displacement_of_ballistic_motion_grows_with_the_square_of_time(tmp_path):
    rng = np.random.default_rng(2)
    velocities = rng.normal(size=(50, 3))
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(gv.Sphere(1e-3), [(k, 0, 0) for k in range(50)], velocities=velocities)
    sim = gv.Simulation(scene, 1e-2, precision="double")
    observer, some = gv.measures.MeanSquareDisplacement(sim), gv.measures.MeanSquareDisplacement(sim, [3, 1])
    sim.run(1.0, tmp_path / "r.vtkhdf", every=0.1, observers=[observer, some])
    speed = (velocities**2).sum(axis=1)
    assert np.allclose(observer.values, speed.mean() * np.array(observer.times) ** 2)
    assert some.values[-1] == pytest.approx(speed[[1, 3]].mean())
    with gv.open_result(tmp_path / "r.vtkhdf") as result:
        times, values = gv.measures.mean_square_displacement(result)
        assert len(times) == 11 and np.allclose(values, speed.mean() * times**2, rtol=1e-4)
        assert gv.measures.mean_square_displacement(result, 3)[1][-1] == pytest.approx(speed[3], rel=1e-4)
    sim.remove([1])
    assert some(sim) == pytest.approx(speed[3])
    sim.remove([3])
    refuse(lambda: some(sim), "removed")
    refuse(lambda: gv.measures.MeanSquareDisplacement(sim, [3]), "bodies", "3")
    refuse(lambda: gv.measures.mean_square_displacement([]), "frames")


def test_bad_surfaces_are_refused():
    refuse(lambda: gv.measures.MassFlow((0, 0), (0, 0, 1)), "point", "(2,)")
    refuse(lambda: gv.measures.MassFlow((0, 0, 0), (0, 0, 0)), "normal")
    refuse(lambda: gv.measures.MassFlow((0, 0, 0), (0, 0, 1), radius=-1), "radius", "-1")
