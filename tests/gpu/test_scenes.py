"""Every built-in scene, one step on the CPU and on the device from the same state: the same contacts, the same motion."""

import numpy as np
import pytest

import gravel as gv
from gravel import scenes

DEVICE = "warp:cpu"
FIXED = gv.Jacobi(iterations=50, tolerance=0.0)  # the same arithmetic on both devices, whatever the residual
# bodies, and the step from whose state both devices go on: grains lie, and touch each other and the machine
STATES = {
    "silo": (80, 160),
    "tank": (80, 100),
    "drain": (120, 130),
    "mixer": (100, 100),
    "pile": (60, 150),
    "gas": (60, 60),
    "wall": (60, 3),
    "ellipsoids": (60, 180),
    "clumps": (30, 180),
    "drum": (100, 120),
    "terrain": (12, 200),
    "box-collider": (100, 20),
    "well": (50, 420),
    "pendulum": (None, 100),
    "slider-crank": (None, 100),
    "four-bar": (None, 100),
    "gyroscope": (None, 100),
    "chain": (31, 100),
    "segregation": (150, 100),
    "vehicle": (500, 60),
    "excavator": (400, 100),
    "oedometer": (200, 40),
    "triaxial": (600, 60),
    "direct-shear": (500, 50),
    "simple-shear": (200, 150),
}

LONG = {"terrain", "vehicle", "excavator", "oedometer", "triaxial", "direct-shear", "simple-shear", "mixer", "drain", "well", "tank"}
ALL = [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in scenes.NAMES]


def settled(name, precision="single"):
    """A built-in scene on the CPU, after some steps."""
    bodies, steps = STATES[name]
    setup = scenes.build(name, bodies)
    simulation = gv.Simulation(setup.scene, setup.dt, **{**setup.options, "precision": precision})
    for _ in range(steps):
        simulation.step()
    return simulation


def continued(simulation, path, device):
    """The same state on a device, by way of a file."""
    functions = {"motions": simulation.motions, "laws": simulation.mechanism.function_laws(), "surfaces": simulation.surfaces}
    twin = gv.Simulation.load(path, device=device, **functions)
    twin.solver = FIXED
    return twin


def size_of(simulation):
    return simulation.typical_radius


def assert_same_contacts(ours, theirs, size):
    """Tables of the same contacts; ``size`` m, of the bodies."""
    pairs = [list(zip(table.body_a.tolist(), table.body_b.tolist())) for table in (ours, theirs)]
    assert pairs[0] == pairs[1]
    np.testing.assert_allclose(theirs.gap, ours.gap, rtol=0, atol=1e-5 * size)
    np.testing.assert_allclose(theirs.normal, ours.normal, rtol=0, atol=1e-5)
    np.testing.assert_allclose(theirs.point, ours.point, rtol=0, atol=1e-5 * size)


def furthest(ours, theirs):
    """(largest difference, largest) length of vectors; of bodies that are gone there is none."""
    there = np.isfinite(ours).all(axis=1)
    assert (np.isfinite(theirs).all(axis=1) == there).all()
    length = lambda rows: float(np.linalg.norm(rows[there], axis=1).max(initial=0.0))  # noqa: E731
    return length(ours - theirs), length(ours)


@pytest.mark.parametrize("name", ALL)
def test_one_step_is_that_of_the_cpu(name, tmp_path):
    simulation, path = settled(name), tmp_path / "state.h5"
    simulation.save(path)
    ours, theirs = (continued(simulation, path, device) for device in ("cpu", DEVICE))
    before = ours.positions.copy()
    np.testing.assert_array_equal(before, theirs.positions)
    report, other = ours.step(), theirs.step()
    assert report.contacts == other.contacts == len(theirs.contacts)
    assert_same_contacts(ours.contacts, theirs.contacts, size_of(ours))
    error, speed = furthest(ours.velocities, theirs.velocities)
    assert error <= 1e-4 * speed
    turned, spin = furthest(ours.angular_velocities, theirs.angular_velocities)
    assert turned <= 1e-4 * max(spin, speed / size_of(ours))
    apart, _ = furthest(ours.positions, theirs.positions)
    assert apart <= 1e-4 * speed * ours.dt
    assert other.kinetic_energy == pytest.approx(report.kinetic_energy, rel=1e-5)
    assert other.impacts == report.impacts
    assert other.residual == pytest.approx(report.residual, rel=1e-2, abs=1e-4 * speed)
    assert other.max_penetration == pytest.approx(report.max_penetration, abs=1e-5 * size_of(ours))
