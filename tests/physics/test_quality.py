"""Settled piles: penetration, speed and residual after two seconds, 50 iterations, steps of 1/500 s. Long: pytest -m slow."""

import numpy as np
import pytest

import gravel as gv
from gravel import scenes
from gravel.scenes.setup import box_walls, lattice, random_turns

pytestmark = pytest.mark.usefixtures("device")


def settle(bodies, seconds, solver=None):
    setup = scenes.build("pile", bodies)
    simulation = gv.Simulation(setup.scene, setup.dt, solver)
    energies = []
    for _ in range(round(seconds / setup.dt)):
        energies.append(simulation.step().kinetic_energy)
    return simulation, energies


def speed(simulation):
    return np.sqrt(np.mean(np.sum(simulation.velocities[simulation.movable].astype(float) ** 2, axis=1)))


@pytest.mark.slow
def test_settled_pile_of_1000():
    simulation, _ = settle(1000, 2.0, gv.GaussSeidel(iterations=50))
    report = simulation.report
    print(f"penetration {100 * report.max_penetration / 0.05:.2g} %, rms speed {1e3 * speed(simulation):.2g} mm/s, ", end="")
    print(f"residual max {report.residual:.2g}, rms {report.residual_rms:.2g} m/s")
    assert report.max_penetration <= 1e-3 * 0.05
    assert speed(simulation) <= 3e-3
    assert report.residual <= 5e-3 and report.residual_rms <= 5e-4


@pytest.mark.slow
def test_settled_pile_of_8000_comes_to_rest():
    simulation, energies = settle(8000, 3.0)
    report = simulation.report
    print(f"penetration {100 * report.max_penetration / 0.05:.2g} %, kinetic energy {energies[-1]:.2g} J of at most {max(energies):.2g} J")
    assert report.max_penetration <= 5e-3 * 0.05
    assert energies[-1] < 1e-4 * max(energies)


@pytest.mark.slow
def test_heap_of_8000_ellipsoids_comes_to_rest():
    setup = scenes.build("ellipsoids", 8000)
    assert_comes_to_rest(gv.Simulation(setup.scene, setup.dt), 3.0, 0.05)


@pytest.mark.slow
def test_heap_of_4000_hulls_and_cylinders_comes_to_rest():
    rng = np.random.default_rng(0)
    stone = gv.Material(density=2500, friction=0.5)
    scene = gv.Scene()
    half = 1.5
    scene.add_body(gv.Plane(), material=stone, fixed=True)
    box_walls(scene, half, half, stone)
    places = rng.permutation(lattice(4000, (-half, -half, 0.01), (half, half, 0), 0.15, 0.003, rng))
    cylinders = gv.Cylinder(rng.uniform(0.03, 0.05, 2000), rng.uniform(0.03, 0.05, 2000))
    scene.add_bodies(cylinders, places[:2000], stone, quaternions=random_turns(2000, rng))
    for k in range(10):
        points = rng.normal(size=(20, 3))
        points *= 0.05 / np.linalg.norm(points, axis=1).max()
        mine = places[2000 + 200 * k : 2200 + 200 * k]
        scene.add_bodies(gv.ConvexHull(points, scale=rng.uniform(0.8, 1.2, 200)), mine, stone, quaternions=random_turns(200, rng))
    assert_comes_to_rest(gv.Simulation(scene, dt=1 / 500), 3.0, 0.05)


def assert_comes_to_rest(simulation, seconds, radius):
    """Kinetic energy goes to rest, and the penetration is at most 3 % of the radius."""
    energies = [simulation.step().kinetic_energy for _ in range(round(seconds / simulation.dt))]
    report = simulation.report
    print(
        f"penetration {100 * report.max_penetration / radius:.2g} %, rms speed {1e3 * speed(simulation):.2g} mm/s, "
        f"kinetic energy {energies[-1]:.2g} J of at most {max(energies):.2g} J, {1e3 * sum(report.seconds.values()):.0f} ms a step"
    )
    assert report.max_penetration <= 0.03 * radius
    assert energies[-1] < 1e-4 * max(energies)


@pytest.mark.slow
def test_papers_scheme_is_there_and_worse():
    setup = scenes.build("pile", 1000)
    plain = gv.Simulation(setup.scene, setup.dt, gv.GaussSeidel(iterations=50), **gv.PAPER_SCHEME)
    for _ in range(1000):
        plain.step()
    better, _ = settle(1000, 2.0, gv.GaussSeidel(iterations=50))
    assert plain.report.max_penetration > 3 * better.report.max_penetration
