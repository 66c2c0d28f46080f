"""Right physics at the edges: what should stand stands, what bounces keeps its speed, what falls together does not overlap, and strong
friction does no harm."""

import warnings

import numpy as np
import pytest

import gravel as gv

pytestmark = pytest.mark.usefixtures("device")
G = 9.81


# --- restitution
@pytest.mark.parametrize("e", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("height", [0.3, 1.0, 1.003, 1.007])
def test_a_ball_rises_to_e_squared_times_its_height(e, height):
    """At 1/500 s, wherever in the step it touches the floor; the speed that gravity gives in a step is 4e-3 of that of the blow."""
    scene, rubber = gv.Scene(), gv.Material(restitution=e, friction=0.0)
    scene.add_body(gv.Plane(), material=rubber, fixed=True)
    ball = scene.add_body(gv.Sphere(0.05), (0, 0, height + 0.05), rubber)
    sim = gv.Simulation(scene, 1 / 500)
    highest, bounced = 0.0, False
    for _ in range(500):
        sim.step()
        bounced |= sim.velocities[ball, 2] > 0
        highest = max(highest, sim.positions[ball, 2] - 0.05) if bounced else 0.0
    assert np.sqrt(highest / height) == pytest.approx(e, abs=1e-3)


def test_two_balls_that_meet_in_flight_exchange_their_velocities():
    scene, steel = gv.Scene(), gv.Material(restitution=1.0, friction=0.0)
    a = scene.add_body(gv.Sphere(0.05), (-0.301, 0, 1), steel, velocity=(1.5, 0, 0))
    b = scene.add_body(gv.Sphere(0.05), (0.3, 0, 1), steel, velocity=(-0.5, 0, 0))
    sim = gv.Simulation(scene, 1 / 500, precision="double")
    while sim.time < 0.4:
        sim.step()
    assert sim.velocities[a, 0] == pytest.approx(-0.5, abs=1e-12)
    assert sim.velocities[b, 0] == pytest.approx(1.5, abs=1e-12)
    # they meet when the gap of 0.501 m is closed at 2 m/s; each goes on from there at the other's speed
    t = 0.501 / 2.0
    assert sim.positions[a, 0] == pytest.approx(-0.301 + 1.5 * t - 0.5 * (sim.time - t), abs=1e-9)
    assert sim.positions[b, 0] == pytest.approx(0.3 - 0.5 * t + 1.5 * (sim.time - t), abs=1e-9)


# --- stacks at their limit
def overhanging(share):
    """Five bricks on a table, each as far out over the next as the harmonic series allows, times ``share``."""
    length, width, height = 0.2, 0.1, 0.05
    scene, clay = gv.Scene(), gv.Material(friction=0.5, density=2000)
    scene.add_body(gv.Box((0.5, 0.2, 0.25)), (-0.5, 0, 0.25), clay, fixed=True)
    end, level = 0.0, 0.5
    for k in range(5, 0, -1):
        end += share * length / (2 * k)
        top = scene.add_body(gv.Box((length / 2, width / 2, height / 2)), (end - length / 2, 0, level + height / 2), clay)
        level += height
    return scene, top, level


@pytest.mark.parametrize("friction", ["cone", "coulomb"])
def test_bricks_stand_within_the_harmonic_limit_and_fall_beyond_it(friction):
    scene, top, level = overhanging(0.98)
    sim = gv.Simulation(scene, 1 / 500, friction=friction)
    for _ in range(1500):
        assert sim.step().converged
    assert sim.positions[top, 2] == pytest.approx(level - 0.025, abs=1e-3)
    scene, top, level = overhanging(1.02)
    sim = gv.Simulation(scene, 1 / 500, friction=friction)
    for _ in range(500):
        sim.step()
    assert sim.positions[top, 2] < level - 0.05


def three_logs(share):
    """Two logs on the floor and one on them, with ``share`` of the floor's friction that they need, (2 - sqrt 3) / 3."""
    r, wood, floor = 0.1, gv.Material(friction=0.6, density=700), gv.Material(friction=0.5)
    scene, turn = gv.Scene(), (np.sqrt(0.5), np.sqrt(0.5), 0, 0)
    scene.add_body(gv.Plane(), material=floor, fixed=True)
    places = [(-r, 0, r), (r, 0, r), (0, 0, r + np.sqrt(3) * r)]
    top = [scene.add_body(gv.Cylinder(r, 0.2), place, wood, quaternion=turn) for place in places][-1]
    scene.set_pair(wood, floor, friction=share * (2 - np.sqrt(3)) / 3)
    return scene, top, places[-1][2]


@pytest.mark.parametrize("friction", ["cone", "coulomb"])
def test_three_logs_stand_with_the_friction_they_need_and_roll_apart_with_less(friction):
    for share, stands in ((1.05, True), (0.95, False)):
        scene, top, height = three_logs(share)
        # (solved well: within a looser tolerance, friction along the logs may use up what it should bear across them)
        sim = gv.Simulation(scene, 1 / 500, gv.GaussSeidel(tolerance=1e-4), friction=friction)
        for _ in range(1000):
            assert sim.step().converged
        assert (sim.positions[top, 2] > height - 1e-4) == stands


# --- contacts that come up within a step
def test_a_falling_column_does_not_run_into_itself():
    """Balls fall one above the other at one speed, so nothing closes, until the lowest is stopped by the floor within a step."""
    scene, r = gv.Scene(), 0.05
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_bodies(gv.Sphere(r), [(0, 0, 0.5 + r + 2.03 * r * k) for k in range(10)], velocities=[(0, 0, -3.0)] * 10)
    sim = gv.Simulation(scene, 2e-3)
    deepest = max(sim.step().max_penetration for _ in range(200))
    assert deepest < 2e-3 * r


# --- strong friction
@pytest.mark.parametrize("friction", [0.5, 1.0, 3.0, 10.0])
def test_strong_friction_in_coulomb_mode_keeps_balls_apart(friction):
    r, width = 0.05, 0.24
    scene, rough = gv.Scene(), gv.Material(friction=friction)
    scene.add_body(gv.Plane(), material=rough, fixed=True)
    for normal, offset in (((1, 0, 0), 0), ((-1, 0, 0), -width), ((0, 1, 0), 0), ((0, -1, 0), -width)):
        scene.add_body(gv.Plane(normal=normal, offset=offset), material=rough, fixed=True)
    places = [(0.06 + 0.12 * (k % 2) + 0.003 * k, 0.06 + 0.12 * (k // 2 % 2) - 0.002 * k, 0.06 + 0.11 * k) for k in range(8)]
    scene.add_bodies(gv.Sphere(r), np.clip(places, r, [width - r, width - r, 9]), rough)
    sim = gv.Simulation(scene, 2e-3, friction="coulomb")
    deepest = max(sim.step().max_penetration for _ in range(1000))
    assert deepest < 0.005 * r
    assert sim.report.kinetic_energy < 1e-4


# --- what is wrong is said
def test_a_start_that_overlaps_deeply_is_said_once():
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    ids = scene.add_bodies(gv.Sphere(0.1), [(0, 0, 0.1), (0.15, 0, 0.1)])
    sim = gv.Simulation(scene, 1e-3)
    with pytest.warns(UserWarning, match=rf"bodies {ids[0]} and {ids[1]} overlap by 0.05 m, 50 % of the smaller one's radius, in step 1"):
        sim.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(20):
            sim.step()


# --- light links
@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("swing", [0.0, 1.0])
@pytest.mark.parametrize("mass", [1e-2, 1e-4, 1e-6])
def test_joints_of_a_link_without_weight_stay_closed(precision, swing, mass):
    """A kilogram hangs on a rod of half a metre that weighs next to nothing, or swings on it: the rod is then no more than a length, and
    the ball a mathematical pendulum that keeps its energy."""
    scene, down = gv.Scene(), np.array([np.sin(swing), 0.0, -np.cos(swing)])
    turned = (np.cos(swing / 2), 0.0, -np.sin(swing / 2), 0.0)
    rod = scene.add_body(gv.Capsule(0.02, 0.2), 0.25 * down, quaternion=turned, mass=mass)
    ball = scene.add_body(gv.Sphere(0.001), 0.5 * down, mass=1.0)
    scene.add_joint(gv.Revolute(None, rod, point=(0, 0, 0), axis=(0, 1, 0)))
    scene.add_joint(gv.Spherical(rod, ball, point=0.5 * down))
    sim = gv.Simulation(scene, 1 / 500, precision=precision)
    fallen = []
    for _ in range(1000):
        report = sim.step()
        assert report.converged
        assert report.joint_violation < 5e-6
        assert np.linalg.norm(sim.positions[ball]) == pytest.approx(0.5, abs=1e-5)
        fallen.append(G * (0.5 * down[2] - sim.positions[ball, 2]))
    energy = 0.5 * np.sum(sim.velocities[ball] ** 2)
    assert energy == pytest.approx(fallen[-1], abs=1e-5 + 5e-3 * max(fallen))


def test_touching_bodies_are_no_reason_for_a_warning():
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_bodies(gv.Sphere(0.1), [(0, 0, 0.0999), (0.1999, 0, 0.1)])
    sim = gv.Simulation(scene, 1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(20):
            sim.step()


def test_a_run_tells_how_its_steps_converged():
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_bodies(gv.Sphere(0.1), [(0, 0, 0.1), (0.15, 0, 0.3)])
    report = gv.Simulation(scene, 1e-3).run(0.2)
    assert (report.tolerance, report.rms_tolerance) == pytest.approx((0.2 * G * 1e-3, 0.01 * G * 1e-3))
    assert report.median_residual <= report.residual <= report.tolerance
    assert report.radius == pytest.approx(0.1)
    sentence = report.convergence()
    assert sentence.startswith("all 200 steps converged to 0.002 m/s (rms 9.8e-05): largest residual ")
    assert sentence.endswith(f"{report.residual * 1e-3:.1e} m in a step or {report.residual * 1e-3 / 0.1 * 100:.2g} % of a radius")
    short = gv.Simulation(scene, 1e-3, gv.GaussSeidel(iterations=1, tolerance=1e-12)).run(0.2)
    assert short.unconverged > 0
    assert short.convergence().startswith(f"{100 * (200 - short.unconverged) / 200:.1f} % of 200 steps")


def test_the_tolerance_follows_gravity_and_step_unless_it_is_given():
    def tolerance(gravity, dt, solver=None):
        scene = gv.Scene(gravity=gravity)
        scene.add_body(gv.Sphere(0.1))
        simulation = gv.Simulation(scene, dt, solver)
        return simulation.tolerance, simulation.rms_tolerance

    assert tolerance((0, 0, -G), 1e-3) == pytest.approx((0.2 * G * 1e-3, 0.01 * G * 1e-3))
    assert tolerance((0, 0, 0), 1e-3) == pytest.approx((2e-3, 1e-4))
    assert tolerance((0, 0, -G), 1e-3, gv.APGD()) == pytest.approx((0.2 * G * 1e-3, 0.01 * G * 1e-3))
    assert tolerance((0, 0, -G), 1e-3, gv.GaussSeidel(tolerance=0.0)) == (0.0, np.inf)
