"""Impacts against the formulas of rigid bodies: at any angle and phase of the step, in both friction models, and what a gas must keep."""

import numpy as np
import pytest

import gravel as gv

pytestmark = pytest.mark.usefixtures("device")
G, RADIUS, DT = 9.81, 0.05, 1 / 500
MODELS = pytest.mark.parametrize("friction", ["coulomb", "cone"])


def after_blow(normal_speed, slip, e, mu):
    """(normal speed, change of the tangential speed) of a blow on a ball that does not turn: it slides, or rolls
    after 2/7 of the slip."""
    return e * normal_speed, min(mu * (1 + e) * normal_speed, 2 / 7 * slip)


@MODELS
@pytest.mark.parametrize("mu", [0.0, 0.5])
@pytest.mark.parametrize("offset", [0.5, 0.9, 0.98, 0.99])
def test_balls_that_graze_each_other_bounce_as_they_touch(friction, mu, offset):
    speed, e = 2.0, 0.9
    normal = np.array([np.sqrt(1 - offset**2), offset, 0])
    tangent = np.array([-offset, np.sqrt(1 - offset**2), 0])
    ball = gv.Material(restitution=e, friction=mu)
    for phase in (0.0, 0.3, 0.6, 0.9):
        scene, x, y = gv.Scene(gravity=(0, 0, 0)), 0.06 + 0.5 * phase * speed * DT, offset * RADIUS
        scene.add_bodies(gv.Sphere(RADIUS), [(-x, -y, 0), (x, y, 0)], ball, velocities=[(speed / 2, 0, 0), (-speed / 2, 0, 0)])
        sim = gv.Simulation(scene, DT, friction=friction)
        sim.run(until=0.12)
        relative = (sim.velocities[1] - sim.velocities[0]).astype(float)
        away, change = after_blow(speed * normal[0], speed * offset, e, mu)
        assert relative @ normal == pytest.approx(away, rel=1e-4)
        assert relative @ tangent == pytest.approx(speed * offset - change, rel=1e-4)
        assert np.abs(sim.velocities.sum(axis=0)).max() < 1e-6


@MODELS
@pytest.mark.parametrize("angle", [15, 45, 60, 75, 85])
def test_oblique_impacts_on_a_floor_are_those_of_a_rigid_ball_at_any_phase_of_the_step(friction, angle):
    speed, e, mu, steps = 4.0, 0.8, 0.5, 8
    down, along = speed * np.cos(np.radians(angle)), speed * np.sin(np.radians(angle))
    rubber = gv.Material(restitution=e, friction=mu)
    up, change = after_blow(down, along, e, mu)
    for phase in np.arange(10) / 10:
        touch = (2 + phase) * DT
        scene, height = gv.Scene(gravity=(0, 0, -G)), down * touch - G * touch**2 / 2
        scene.add_body(gv.Plane(), material=rubber, fixed=True)
        scene.add_body(gv.Sphere(RADIUS), (0, 0, RADIUS + height), rubber, velocity=(along, 0, G * touch - down))
        sim = gv.Simulation(scene, DT, friction=friction)
        for _ in range(steps):
            assert sim.step().max_penetration < 1e-5
        after = steps * DT - touch
        assert sim.velocities[1, 2] + G * after == pytest.approx(up, rel=1e-3)
        assert sim.velocities[1, 0] == pytest.approx(along - change, rel=1e-3)
        assert sim.angular_velocities[1, 1] == pytest.approx(change / (0.4 * RADIUS), rel=1e-3)
        assert sim.positions[1, 2] == pytest.approx(RADIUS + up * after - G * after**2 / 2, abs=1e-6)


def gas_in_a_box(dt, n=6, width=0.9):
    rng, smooth, scene = np.random.default_rng(1), gv.Material(restitution=1.0, friction=0.0), gv.Scene(gravity=(0, 0, -G))
    for axis in np.eye(3):
        for side in (1, -1):
            scene.add_body(gv.Plane(normal=tuple(side * axis), offset=-width / 2), material=smooth, fixed=True)
    places = (np.arange(n) - 0.5 * (n - 1)) * (width / n)
    places = np.stack(np.meshgrid(places, places, places, indexing="ij"), -1).reshape(-1, 3)
    scene.add_bodies(gv.Sphere(RADIUS), places + rng.uniform(-0.02, 0.02, places.shape), smooth, velocities=rng.normal(0, 2, places.shape))
    return gv.Simulation(scene, dt, friction="coulomb")


def energy_of(sim):
    mass, speed = sim.masses[6:], sim.velocities[6:].astype(float)
    return float(0.5 * mass @ (speed**2).sum(axis=1) + G * mass @ sim.positions[6:, 2])


def test_elastic_balls_in_a_box_keep_their_energy_under_gravity():
    sim = gas_in_a_box(DT)
    start, impacts, depth = energy_of(sim), 0, 0.0
    for _ in range(500):
        report = sim.step()
        impacts, depth = impacts + report.impacts, max(depth, report.max_penetration)
    assert impacts > 5000
    assert energy_of(sim) == pytest.approx(start, rel=5e-4)
    assert depth < 0.1 * RADIUS


@MODELS
def test_balls_that_rain_on_each_other_do_not_press_the_lowest_into_the_floor(friction):
    """A ball on the floor that is struck from above in step after step: what is left of its own blow on the floor, slower than the
    threshold, is no impact, and the floor holds it. What may stay is how far a ball moves in a part of a step (PARTS), at the fastest."""
    rng, glass, scene = np.random.default_rng(1), gv.Material(restitution=0.1, friction=0.5), gv.Scene(gravity=(0, 0, -G))
    scene.add_body(gv.Plane(), material=glass, fixed=True)
    radii = rng.uniform(0.02, 0.04, 480)
    places = 0.09 * np.stack(np.unravel_index(np.arange(480), (4, 4, 30)), axis=1) + rng.uniform(0.04, 0.05, (480, 3))
    balls = scene.add_bodies(gv.Sphere(radii), places, glass)
    sim = gv.Simulation(scene, 1 / 500, friction=friction)
    deepest = fastest = 0.0
    for _ in range(150):
        sim.step()
        deepest = max(deepest, float((radii - sim.positions[balls, 2]).max()))
        fastest = max(fastest, float(np.abs(sim.velocities[balls, 2]).max()))
    assert deepest < fastest / 500 / 8


@pytest.mark.parametrize("restitution", [0.3, 0.9])
def test_a_crowd_that_is_pressed_together_does_not_bounce_without_end(restitution):
    """Balls that fall towards a point in space collide ever more often and ever more faintly, infinitely often in finite time. A step
    has an end: no body gets more than some thirty blows of one strength, and what still closes is held."""
    rng, radius = np.random.default_rng(4), 0.01
    places = 2.3 * radius * (np.stack(np.meshgrid(*[np.arange(6)] * 3), axis=-1).reshape(-1, 3) - 2.5)
    places += 0.1 * radius * rng.uniform(-1, 1, places.shape)
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(gv.Sphere(radius), places, gv.Material(2500, friction=0.5, restitution=restitution), velocities=-5.0 * places)
    sim, most = gv.Simulation(scene, 2e-3), 0
    for _ in range(100):
        report = sim.step()
        most = max(most, report.impacts)
        assert report.max_penetration < 0.02 * radius
    assert len(places) < most < 34 * len(places)
