"""Fields of the state go between host and device only when somebody asks for them or has changed them."""

import numpy as np
import pytest
import warp as wp

import gravel as gv
from gravel.gpu import mirror


def pile():
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    places = np.stack(np.meshgrid(*[0.021 * np.arange(4)] * 3, indexing="ij"), axis=-1).reshape(-1, 3) + (0, 0, 0.0105)
    scene.add_bodies(gv.Sphere(0.01), places)
    return gv.Simulation(scene, 1e-3, device="warp:cpu")


@pytest.fixture
def copies(monkeypatch):
    """(fields that went up, fields that came down) since the lists were cleared."""
    sim = pile()
    sim.step()
    up, down = [], []
    arrays, send, fetch = sim.engine.mirror.arrays, mirror.to_device, wp.array.numpy

    def name_of(array):
        return next((name for name, held in arrays.items() if held is array), None)

    def record_up(values, array):
        send(values, array)
        up.append(array)

    def record_down(array):
        if name_of(array) is not None:
            down.append(name_of(array))
        return fetch(array)

    monkeypatch.setattr(mirror, "to_device", record_up)
    monkeypatch.setattr(wp.array, "numpy", record_down)
    return sim, up, down


def test_nobody_asks_and_no_field_is_copied(copies):
    sim, up, down = copies
    for _ in range(3):
        sim.step()
    assert up == [] and down == []


def test_an_array_that_is_held_comes_down_once_a_step_and_does_not_go_up(copies):
    sim, up, down = copies
    held = sim.positions
    up.clear(), down.clear()
    for _ in range(3):
        sim.step()
    assert down == ["position"] * 3 and up == []
    assert np.array_equal(held, sim.positions) and down == ["position"] * 3


def test_what_was_written_goes_up_alone(copies):
    sim, up, down = copies
    velocities = sim.velocities
    velocities[1:] += (0.1, 0.0, 0.0)
    up.clear(), down.clear()
    before = sim.positions[1:, 0].copy()
    sim.step()
    assert len(up) == 1 and up[0] is sim.engine.mirror.arrays["velocity"]
    assert np.all(sim.positions[1:, 0] - before > 0.5e-4)  # and it took effect
