"""Settings that change while a simulation runs: checked as in the constructor, and from the next step on as if they had always held."""

import numpy as np
import pytest

import gravel as gv

CONSTRUCTED = {
    "gravity": (0.0, 0.0, -1.6),
    "dt": 2e-3,
    "friction": "cone",
    "solver": gv.APGD(iterations=20),
    "integrator": "euler",
    "margin": 0.03,
    "recovery": 0.5,
    "recovery_speed": 0.001,
    "warm_start": False,
    "restitution_threshold": 10.0,
}


def slope(gravity=(0.5, 0.0, -9.81), dt=1e-3, **settings):
    scene = gv.Scene(gravity)
    scene.add_body(gv.Plane(), fixed=True)
    bouncy = gv.Material(restitution=0.5)
    scene.add_bodies(
        gv.Sphere(0.05), [[0, 0, 0.049], [0.2, 0, 0.06], [0.2, 0.02, 0.17]], bouncy, velocities=[[1, 0, 0], [0, 0, -1], [0, 0, 0]]
    )
    scene.add_body(gv.Sphere(0.05), (0.4, 0, 0.0501))  # falls 0.1 mm, unless that is within 1 % of the margin: then it rests there
    return gv.Simulation(scene, dt, threads=1, **settings)


@pytest.mark.parametrize("name", CONSTRUCTED)
def test_a_setting_changed_before_the_first_step_is_that_of_the_constructor(name):
    made, changed = slope(**{name: CONSTRUCTED[name]}), slope()
    setattr(changed, name, CONSTRUCTED[name])
    for _ in range(30):
        made.step(), changed.step()
    assert made.state_hash() == changed.state_hash()
    plain = slope()
    for _ in range(30):
        plain.step()
    assert plain.state_hash() != changed.state_hash()


def test_the_moon_from_the_second_half_on():
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1), (0, 0, 10))
    sim = gv.Simulation(scene, 1e-3, precision="double")
    sim.run(0.1)
    sim.gravity = (0, 0, -1.6)
    sim.run(0.2)
    assert sim.velocities[0, 2] == pytest.approx(-0.981 - 0.16, abs=1e-12)
    assert sim.positions[0, 2] == pytest.approx(10 - 0.5 * 9.81 * 0.01 - 0.981 * 0.1 - 0.5 * 1.6 * 0.01, abs=1e-12)


def test_time_goes_on_when_the_step_changes():
    sim = slope()
    sim.run(0.1)
    sim.dt = 5e-4
    assert sim.time == pytest.approx(0.1, abs=1e-15)
    report = sim.run(0.2)
    assert report.steps == 200
    assert sim.time == pytest.approx(0.2, abs=1e-12)


def test_changed_settings_are_in_the_checkpoint(tmp_path):
    sim = slope()
    sim.run(0.01)
    sim.gravity, sim.dt, sim.friction, sim.solver = (0, 0, -1.6), 5e-4, "cone", gv.BarzilaiBorwein(iterations=30)
    sim.save(tmp_path / "c.h5")
    twin = gv.Simulation.load(tmp_path / "c.h5")
    assert twin.time == sim.time
    for _ in range(20):
        sim.step(), twin.step()
    assert sim.state_hash() == twin.state_hash()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("friction", "coulmb", "did you mean 'coulomb'"),
        ("gravity", 9.81, "gravity must have shape"),
        ("gravity", (0, 0, np.nan), "gravity must be finite"),
        ("dt", 0.0, "dt must be greater than 0"),
        ("solver", "apgd", "solver must be a solver"),
        ("warm_start", 1, "warm_start must be True or False"),
        ("velocity", 3, "did you mean 'velocities'"),
        ("velocities", 3, "write into it"),
        ("precision", "double", "precision= when it is made"),
        ("time", 0.0, "time of a simulation cannot be changed"),
        ("tolerance", 1e-6, "gv.GaussSeidel"),
    ],
)
def test_refused(name, value, words):
    sim = slope()
    before = sim.step()
    with pytest.raises((ValueError, TypeError, AttributeError), match=words):
        setattr(sim, name, value)
    assert sim.time == before.time
    sim.step()
