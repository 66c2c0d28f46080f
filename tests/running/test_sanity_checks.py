"""What a simulation says of its own accord: that the cone model of the papers lifts what slides."""

import warnings

import numpy as np
import pytest

import gravel as gv


def sliding_block(speed=5.0, mu=0.5, dt=2e-3, gravity=(0, 0, -9.81), **settings):
    scene = gv.Scene(gravity)
    rough = gv.Material(friction=mu)
    scene.add_body(gv.Plane(), material=rough, fixed=True)
    scene.add_body(gv.Box((0.2, 0.1, 0.05)), (0, 0, 0.05), material=rough, velocity=(speed, 0, 0))
    return gv.Simulation(scene, dt, **settings)


def words_of(sim, steps):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(steps):
            sim.step()
    return [str(warning.message) for warning in said if "lifts what slides" in str(warning.message)]


@pytest.mark.parametrize("device", ["cpu", "warp:cpu"])
@pytest.mark.parametrize("settings", [{"friction": "cone"}, gv.PAPER_SCHEME], ids=["cone", "papers"])
@pytest.mark.parametrize("dt", [2e-3, 1e-4])
def test_a_block_set_sliding_leaps_in_the_cone_model_which_is_told_once(dt, settings, device):
    """At any dt: v_z = mu v / (1 + mu^2), so that it flies as high as v_z^2 / 2 g."""
    (words,) = words_of(sliding_block(dt=dt, device=device, **settings), 20)
    height = (0.5 * 5.0 / 1.25) ** 2 / (2 * 9.81)
    assert words.startswith("bodies 0 and 1 slide on each other at ") and "in step 1," in words and 'friction="coulomb"' in words
    assert float(words.split("here by ")[1].split(" m")[0]) == pytest.approx(height, rel=0.05)


def test_a_block_that_slides_ever_faster_has_a_gap_that_is_told_once():
    """It does not leap: down a slope of 45 degrees, the gap dt mu v is 1 % of its bounding radius at v = 0.01 R / (dt mu)."""
    sim = sliding_block(0.0, gravity=(9.81 * np.sqrt(0.5), 0, -9.81 * np.sqrt(0.5)), friction="cone")
    (words,) = words_of(sim, 400)
    speed = 0.01 * np.sqrt(0.2**2 + 0.1**2 + 0.05**2) / (2e-3 * 0.5)
    assert float(words.split(" at ")[1].split(" m/s")[0]) == pytest.approx(speed, rel=0.02)


@pytest.mark.parametrize("speed, mu, settings", [(5.0, 0.5, {}), (5.0, 0.0, {"friction": "cone"}), (0.0, 0.5, {"friction": "cone"})])
def test_nothing_is_said_of_coulombs_law_nor_of_what_has_no_friction_or_rests(speed, mu, settings):
    assert words_of(sliding_block(speed, mu, **settings), 50) == []


@pytest.mark.parametrize("settings", [{"friction": "cone"}, gv.PAPER_SCHEME], ids=["cone", "papers"])
def test_nothing_is_said_of_a_pile_at_rest(settings):
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    rng = np.random.default_rng(1)
    for layer in range(5):  # a pyramid of bricks
        across = 2.02 * 0.1 * (np.arange(5 - layer) - 0.5 * (4 - layer))
        for x in across:
            scene.add_body(gv.Box((0.1, 0.1, 0.05)), (x + rng.uniform(-1e-3, 1e-3), 0, 0.05 + 0.1 * layer))
    assert words_of(gv.Simulation(scene, 2e-3, **settings), 200) == []
