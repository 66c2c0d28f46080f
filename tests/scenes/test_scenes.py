"""Each built-in scene passes the checks of its own physics, at a small size; and the checks can fail."""

import numpy as np
import pytest

import gravel as gv
from gravel import scenes
from gravel.shapes import SPHERE

SMALL = {
    "silo": 400,
    "tank": 400,
    "drain": 500,
    "mixer": 600,
    "pile": 200,
    "gas": 200,
    "wall": 60,
    "ellipsoids": 200,
    "clumps": 60,
    "drum": 400,
    "terrain": 40,
    "box-collider": 200,
    "well": 100,
    "pendulum": 1,
    "slider-crank": 3,
    "four-bar": 3,
    "gyroscope": 1,
    "chain": 31,
    "segregation": 150,
    "vehicle": 500,
    "excavator": 400,
    "oedometer": 300,
    "triaxial": 600,
    "direct-shear": 500,
    "simple-shear": 300,
}

MACHINES = {"segregation": 3, "vehicle": 97, "excavator": 7, "oedometer": 1, "triaxial": 5, "direct-shear": 1}  # bodies beside the grains


LONG = {"vehicle", "excavator", "terrain", "direct-shear", "simple-shear"}  # run with `pytest -m slow`


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in scenes.NAMES])
def test_scene_passes_its_own_checks(name):
    setup = scenes.build(name, SMALL[name])
    simulation = gv.Simulation(setup.scene, setup.dt, **setup.options)
    report = simulation.run(setup.time, observers=setup.observers)
    failed = [f"{c.name}: {c.detail}" for c in setup.check(simulation, report) if not c.passed]
    assert failed == []


@pytest.mark.parametrize("name", scenes.NAMES)
def test_checks_notice_a_grain_outside_or_lost(name):
    setup = scenes.build(name, SMALL[name])
    simulation = gv.Simulation(setup.scene, setup.dt, **setup.options)
    report = simulation.run(0.02, observers=setup.observers)
    balls = simulation.movable & (simulation.bodies.shape == SPHERE)
    body = np.flatnonzero(balls if balls.any() else simulation.movable)[0]
    simulation.positions[body] = (200.0, 200.0, -200.0)
    assert not all(c.passed for c in setup.check(simulation, report))


@pytest.mark.parametrize("name", scenes.NAMES)
def test_scenes_scale_and_start_without_overlap(name):
    module = scenes.module_of(name)
    for bodies in (module.FEWEST,) if module.FEWEST == module.BODIES else (module.FEWEST, 1000):
        setup = scenes.build(name, bodies)
        machine = MACHINES.get(name, 0)
        assert np.count_nonzero(setup.scene.bodies.status == 2) - machine == pytest.approx(bodies, rel=0.1)
        options = {**setup.options, "integrator": "euler"}  # which looks at the start itself
        assert gv.Simulation(setup.scene, setup.dt, **options).step().max_penetration < 1e-3
