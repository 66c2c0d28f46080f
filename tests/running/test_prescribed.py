"""Surfaces that move while their bodies stay: belts, rolls, discs, tracks."""

import numpy as np
import pytest

import gravel as gv


def on_a_belt(surface_velocity, shape=None, quaternion=None, position=(0, 0, 0.1), body=None, **options):
    scene = gv.Scene()
    scene.add_body(
        shape or gv.Box((5, 1, 0.1)),
        (0, 0, -0.1),
        gv.Material(friction=0.4),
        quaternion=quaternion,
        fixed=True,
        surface_velocity=surface_velocity,
    )
    scene.add_body(body or gv.Box((0.1, 0.1, 0.1)), position, gv.Material(friction=0.4))
    return gv.Simulation(scene, 1e-3, precision="double", **options)


@pytest.mark.parametrize("friction", ["cone", "coulomb"])
def test_a_box_on_a_belt_is_dragged_along_by_friction(friction):
    """It slides at first, mu g faster every second, and then rides."""
    sim = on_a_belt((1.0, 0, 0), friction=friction)
    sim.run(0.2)
    assert sim.velocities[1, 0] == pytest.approx(0.4 * 9.81 * 0.2, rel=1e-2)
    sim.run(0.6)
    assert sim.velocities[1, 0] == pytest.approx(1.0, abs=1e-3)
    np.testing.assert_array_equal(sim.positions[0], [0, 0, -0.1])
    np.testing.assert_array_equal(sim.velocities[0], 0)
    ridden = sim.positions[1, 0]
    sim.run(1.6)
    assert sim.positions[1, 0] - ridden == pytest.approx(1.0, abs=2e-3)


def test_a_ball_dropped_on_a_belt_rolls_without_slipping():
    """It ends at 2/7 of the belt's speed, turning so that its lowest point has all of it."""
    sim = on_a_belt((1.0, 0, 0), body=gv.Sphere(0.1))
    sim.run(1.0)
    assert sim.velocities[1, 0] == pytest.approx(2 / 7, rel=1e-3)
    assert sim.velocities[1, 0] - 0.1 * sim.angular_velocities[1, 1] == pytest.approx(1.0, rel=1e-3)


def test_the_ends_of_a_belt_push_nobody_away():
    sim = on_a_belt((1.0, 0, 0), position=(5.1, 0, -0.1))  # beside its front end, which moves along itself
    sim.gravity = (0, 0, 0)
    sim.run(0.2)
    np.testing.assert_allclose(sim.velocities[1], 0, atol=1e-9)


def test_an_inclined_belt_goes_along_itself():
    angle = 0.3
    turned = (np.cos(angle / 2), 0, -np.sin(angle / 2), 0)  # uphill along x
    along = np.array([np.cos(angle), 0, np.sin(angle)])
    normal = np.array([-np.sin(angle), 0, np.cos(angle)])
    sim = on_a_belt((1.0, 0, 0), quaternion=turned, position=np.array([0, 0, -0.1]) + 0.2 * normal)
    sim.quaternions[1] = turned
    sim.run(1.5)
    np.testing.assert_allclose(sim.velocities[1], along, atol=2e-3)


def test_a_disc_that_turns_carries_a_box_around():
    sim = on_a_belt(((0, 0, 0), (0, 0, 1.0)), gv.Cylinder(2.0, 0.1), position=(0.5, 0, 0.1))
    sim.run(4.0)
    x, y = sim.positions[1, :2]
    assert np.hypot(x, y) == pytest.approx(0.5, abs=0.03)
    np.testing.assert_allclose(sim.velocities[1, :2], (-y, x), atol=0.02)
    assert sim.angular_velocities[1, 2] == pytest.approx(1.0, abs=0.02)
    np.testing.assert_array_equal(sim.quaternions[0], [1, 0, 0, 0])


def test_a_roll_moves_what_lies_on_it_as_if_it_turned():
    """A roll whose surface turns, and one that turns: the same ride for a plate on two of them."""
    results = []
    for turns in (False, True):
        scene = gv.Scene()
        lying = (np.cos(np.pi / 4), np.sin(np.pi / 4), 0, 0)  # its axis along -y
        for x in (-0.5, 0.5):
            driven = (
                {"motion": gv.ConstantVelocity(angular_velocity=(0, 5, 0))}
                if turns
                else {"fixed": True, "surface_velocity": ((0, 0, 0), (0, 0, -5))}
            )
            scene.add_body(gv.Cylinder(0.2, 0.5), (x, 0, 0), quaternion=lying, **driven)
        scene.add_body(gv.Box((1.0, 0.2, 0.05)), (0, 0, 0.25))
        sim = gv.Simulation(scene, 1e-3, precision="double")
        sim.run(0.4)
        results.append((sim.positions[2].copy(), sim.velocities[2].copy()))
    assert results[0][1][0] == pytest.approx(1.0, abs=5e-3)
    np.testing.assert_allclose(results[0], results[1], atol=2e-3)


def test_a_track_drives_the_body_that_has_it():
    """The surface of a body that can move, under a crawler on the ground: it goes the other way."""
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    crawler = scene.add_body(gv.Box((0.3, 0.2, 0.1)), (0, 0, 0.1), surface_velocity=(-0.5, 0, 0))
    sim = gv.Simulation(scene, 1e-3, precision="double")
    sim.run(1.0)
    assert sim.velocities[crawler, 0] == pytest.approx(0.5, abs=1e-3)


def test_a_bounce_on_a_belt():
    """Without friction the belt does not matter; with it, the blow drags the ball along by mu (1 + e) v, at most until it rolls."""
    for friction, expected in ((0.0, 0.0), (0.1, 0.1 * 1.5 * 2.0)):
        scene = gv.Scene(gravity=(0, 0, 0))
        material = gv.Material(friction=friction, restitution=0.5)
        scene.add_body(gv.Box((5, 5, 0.1)), (0, 0, -0.1), material, fixed=True, surface_velocity=(3.0, 0, 0))
        scene.add_body(gv.Sphere(0.1), (0, 0, 0.2), material, velocity=(0, 0, -2))
        sim = gv.Simulation(scene, 1e-3, precision="double")
        sim.run(0.2)
        np.testing.assert_allclose(sim.velocities[1], [expected, 0, 1.0], atol=1e-9)


def test_a_function_of_time_and_a_change_in_the_run():
    sim = on_a_belt(lambda time: (0.5 if time < 0.5 else 0.0, 0, 0))
    sim.run(0.45)
    assert sim.velocities[1, 0] == pytest.approx(0.5, abs=1e-3)
    sim.run(1.0)
    assert sim.velocities[1, 0] == pytest.approx(0.0, abs=1e-3)
    sim.set_surface_velocity(0, (0, 0.2, 0))
    sim.run(1.5)
    np.testing.assert_allclose(sim.velocities[1], [0, 0.2, 0], atol=1e-3)
    sim.set_surface_velocity(0, None)
    sim.run(2.0)
    np.testing.assert_allclose(sim.velocities[1], 0, atol=1e-3)


def test_bodies_that_come_later_and_go():
    sim = on_a_belt(None)
    belt = sim.add_bodies(gv.Box((0.5, 0.5, 0.1)), [[0, 3, -0.1]], fixed=True, surface_velocity=(0, 0, 0.0))[0]
    sim.set_surface_velocity(belt, (1, 0, 0))
    load = sim.add_bodies(gv.Box((0.1, 0.1, 0.1)), [[-0.3, 3, 0.1]])[0]
    sim.run(0.5)
    assert sim.velocities[load, 0] == pytest.approx(1.0, abs=1e-3)
    assert sim.velocities[1, 0] == pytest.approx(0.0, abs=1e-6)
    sim.remove([belt])
    assert belt not in sim.surfaces
    sim.step()


def test_checkpoints_keep_constants_and_ask_for_functions(tmp_path):
    sim = on_a_belt(((1.0, 0, 0), (0, 0, 0.1)))
    sim.run(0.1)
    sim.save(tmp_path / "belt.h5")
    twin = gv.Simulation.load(tmp_path / "belt.h5")
    for _ in range(50):
        sim.step(), twin.step()
    assert sim.state_hash() == twin.state_hash()
    slow = lambda time: (0.1 * time, 0, 0)  # noqa: E731
    sim.set_surface_velocity(0, slow)
    sim.save(tmp_path / "belt.h5")
    with pytest.raises(ValueError, match="pass surfaces={0: function}"):
        gv.Simulation.load(tmp_path / "belt.h5")
    twin = gv.Simulation.load(tmp_path / "belt.h5", surfaces={0: slow})
    copy = sim.copy()
    for _ in range(50):
        sim.step(), twin.step(), copy.step()
    assert sim.state_hash() == twin.state_hash() == copy.state_hash()


@pytest.mark.parametrize("value", [3.0, (1, 2), (1, 2, np.nan), ((1, 0, 0), (1, 0)), "fast", ((0, 0, 0), (0, 0, 0), (0, 0, 0))])
def test_refused(value):
    scene = gv.Scene()
    with pytest.raises((ValueError, TypeError), match="surface_velocity"):
        scene.add_body(gv.Box((1, 1, 1)), fixed=True, surface_velocity=value)
    assert len(scene) == 0
    sim = on_a_belt(lambda time: value)
    with pytest.raises((ValueError, TypeError), match="surface_velocity of body 0 at t = "):
        sim.step()
    assert sim.steps == 0
