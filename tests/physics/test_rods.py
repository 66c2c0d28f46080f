"""Rods without mass (RevoluteSpherical, RevoluteTranslational) against closed forms, against integrations in minimal coordinates in
which the rod does not appear, against statics, and against the same machines with a link of a milligram.

Planar cases lie in the x-y plane, gravity along -y; reactions are means over a step, compared with the formula in its middle.

A step moves a body's centre along a straight line, whose ends lie half a step before and behind: a rod is found shorter by the
sagitta h^2 x'' / 8 of its arc, x'' its length's second derivative on that line.
"""

import math

import numpy as np
import pytest
from oracles import matrices
from scipy.integrate import solve_ivp
from scipy.special import ellipk
from test_mechanisms import (
    DrivenLinks,
    G,
    PlanarLinks,
    add_hinge,
    add_planar,
    empty_scene,
    energy,
    four_bar,
    planar,
    simulate,
    slider_crank,
    slope_of,
    steps,
)

import gravel as gv

pytestmark = pytest.mark.usefixtures("device")

OUT = (0.0, 0.0, 1.0)  # of the plane


def flat(point):
    """A complex number as a point of the plane."""
    point = complex(point)
    return point.real, point.imag, 0.0


def add_rod(scene, a, b, hinge, ball, **options):
    return scene.add_joint(gv.RevoluteSpherical(a, b, flat(hinge), OUT, point_b=flat(ball), **options))


def ball_on_a_rod(angle, length, mass=2.0, gravity=G, speed=0.0, dt=1e-3, mode="direct", precision="double", **options):
    """(sim, joint) of a ball on a rod from the origin; ``angle`` from -y. The joint's angle is that angle."""
    scene, place = empty_scene((0, -gravity, 0)), -1j * length * np.exp(1j * angle)
    add_planar(scene, place, 0.0, mass, 0.004, velocity=speed * place / length * 1j)
    joint = add_rod(scene, None, 0, 0, place, start=angle, **options)
    return simulate(scene, dt, joints=mode, precision=precision), joint


# --- pendulums
@pytest.mark.parametrize("precision, mode", [("double", "direct"), ("double", "iterative"), ("single", "direct"), ("single", "iterative")])
def test_pendulum_has_the_period_of_the_elliptic_integral(precision, mode):
    """A ball, held at its centre, is the pendulum of a point: T = 4 sqrt(l / g) K(sin^2 (a / 2))."""
    length, highest = 0.8, 2.0
    sim, rod = ball_on_a_rod(highest, length, mode=mode, precision=precision)
    period = 4 * math.sqrt(length / G) * ellipk(math.sin(highest / 2) ** 2)
    angles = [highest]
    sagitta = 2 * G * (1 - math.cos(highest)) * sim.dt**2 / 8
    for _ in range(round(2.2 * period / sim.dt)):
        sim.step()
        angles.append(sim.joints.angle[rod])
        assert sim.report.joint_violation < sagitta + 1e-7
        assert abs(np.linalg.norm(sim.positions[0]) - length) < sagitta + 1e-7 and abs(sim.positions[0, 2]) < 1e-7
    angles = np.array(angles)
    before = np.flatnonzero(angles[:-1] * angles[1:] < 0)
    crossings = sim.dt * (before - angles[before] / (angles[before + 1] - angles[before]))
    assert len(crossings) == 4
    assert np.allclose(crossings, period * (np.arange(4) / 2 + 0.25), rtol=0, atol=2e-5 * period)
    assert abs(np.abs(angles).max() - highest) < 1e-5


def test_pendulum_keeps_its_energy_and_pulls_as_it_should():
    """T = m v^2 / l + m g cos(a), in large steps. Through six swings the energy is kept but for (w h)^2, w the fastest turn."""
    length, mass, highest = 0.8, 2.0, 1.5
    sim, rod = ball_on_a_rod(highest, length, mass, dt=2e-3)
    total = lambda: sum(energy(sim, np.array([mass]), np.full((1, 3), 0.004), (0, -G, 0)))  # noqa: E731
    swing, start, off = mass * G * length * (1 - math.cos(highest)), total(), []
    for n in range(6000):
        before = sim.joints.angle[rod], sim.joints.angle_speed[rod]
        sim.step()
        if n % 50 == 7:
            angle, rate = np.mean([before, (sim.joints.angle[rod], sim.joints.angle_speed[rod])], axis=0)
            pull = mass * (length * rate**2 + G * math.cos(angle))
            along = -np.array([math.sin(angle), -math.cos(angle), 0])
            assert np.abs(sim.joints.force[rod] - pull * along).max() < 1e-3 * mass * G
            assert np.abs(sim.joints.torque[rod]).max() < 1e-9
        if n % 5 == 0:
            off.append(abs(total() - start) / swing)
    fastest = 2 * G / length * (1 - math.cos(highest))
    assert max(off) < fastest * sim.dt**2


def test_second_pendulum_without_a_body_of_its_own():
    """A bar on a hinge with a ball on a rod at its end. In the oracle the second link's mass sits at its end, without a moment."""
    lengths, masses, moment = (0.5, 0.4), (1.5, 0.7), 0.03
    links = PlanarLinks([0, 0], [[lengths[0] / 2, 0], list(lengths)], masses, [moment, 0.0], -1j * G)
    angles, rates = np.array([-0.4, 0.9]), np.array([1.0, -2.0])
    unit = np.exp(1j * angles)
    velocities = links.arms @ (1j * unit * rates)
    scene, centres = empty_scene((0, -G, 0)), links.centres(angles)
    add_planar(scene, centres[0], angles[0], masses[0], moment, velocities[0], rates[0])
    add_planar(scene, centres[1], 0.0, masses[1], 0.01, velocities[1], 3.0)
    add_hinge(scene, None, 0, 0, start=angles[0])
    rod = add_rod(scene, 0, 1, lengths[0] * unit[0], centres[1], start=angles[1] - angles[0])
    sim = simulate(scene, 5e-4)
    wanted, _ = links.integrate(angles, rates, np.arange(0, 1.01, 0.1))
    for row in wanted[1:]:
        steps(sim, 0.1)
        assert np.abs(planar(sim.positions) - links.centres(row)).max() < 2e-5
        assert np.abs(sim.joints.angle - (row[0], row[1] - row[0])).max() < 1e-4
        assert abs(sim.angular_velocities[1, 2] - 3.0) < 1e-9  # nothing turns the ball
    assert rod == 1 and sim.report.joint_violation < 1e-6


def test_reaction_of_a_rod_is_on_body_b():
    """A ball hangs on a rod from the world: the rod pulls the ball up, and the world down; along its axis it bears a side load."""
    length, side, mass, hung = 0.5, 3.0, 2.0, []
    for a, b, point, point_b in ((None, 0, (0, 0, 0), (0, -length, 0)), (0, None, (0, -length, 0), (0, 0, 0))):
        scene = empty_scene((0, -G, 0))
        scene.add_body(gv.Sphere(0.1), (0, -length, 0), mass=mass)
        scene.add_joint(gv.RevoluteSpherical(a, b, point, OUT, point_b=point_b))
        scene.set_force(0, force=(0, 0, side if a is None else 0.0))
        sim = simulate(scene, 1e-3)
        steps(sim, 0.05)
        hung.append(sim.joints.force[0])
        assert np.abs(sim.joints.torque[0]).max() < 1e-6
    assert np.allclose(hung, [(0, mass * G, -side), (0, -mass * G, 0)], rtol=0, atol=1e-4)


# --- driven machines
def test_slider_crank_with_a_connecting_rod_without_mass():
    """Positions, the motor's torque, the rod's angle and the pull of the rod through more than two turns."""
    crank, rod, start, masses = 0.1, 0.35, 0.4, (1.0, 1.5)

    def poses(theta):
        return np.array([crank / 2 * np.exp(1j * theta), slider_crank(theta, crank, rod)[1] + 0j]), np.array([theta, 0.0])

    def pull(theta):
        """On the slider, along the rod: m x'' = F cos(angle of the rod)."""
        angle = slider_crank(theta, crank, rod)[0]
        push = masses[1] * model.speed**2 * slope_of(lambda t: slope_of(lambda s: slider_crank(s, crank, rod)[1], t, 1e-3), theta, 1e-3)
        return push / math.cos(angle) * np.exp(1j * angle)

    model = DrivenLinks(poses, 20.0, masses, [2e-3, 1e-3])
    scene, (angle, end) = model.scene(start), slider_crank(start, crank, rod)
    motor = add_hinge(scene, None, 0, 0, motor=gv.SpeedMotor(model.speed))
    link = add_rod(scene, 0, 1, crank * np.exp(1j * start), end, start=angle - start)
    scene.add_joint(gv.Prismatic(None, 1, (end, 0, 0), (1, 0, 0), start=end))
    sim = simulate(scene, 2.5e-4)
    model.check(sim, motor, start, turns=1.1)
    for _ in range(round(1.1 * 2 * np.pi / model.speed / sim.dt)):
        sim.step()
        now = start + model.speed * sim.time
        assert abs(sim.positions[1, 0] - slider_crank(now, crank, rod)[1]) < 1e-6
        assert abs(sim.joints.angle[link] - (slider_crank(now, crank, rod)[0] - now)) < 1e-5
        wanted, force = pull(now - model.speed * sim.dt / 2), sim.joints.force[link]
        assert abs(force[0] + 1j * force[1] - wanted) < 2e-3 * masses[1] * model.speed**2 * crank
        assert sim.report.joint_violation < 1e-6


def test_four_bar_with_a_coupler_without_mass():
    crank, coupler, _, ground = bars = (0.1, 0.4, 0.3, 0.45)
    start = 0.7

    def poses(theta):
        far = four_bar(theta, *bars)[1]
        return np.array([crank / 2 * np.exp(1j * theta), ground + bars[2] / 2 * np.exp(1j * far)]), np.array([theta, far])

    model = DrivenLinks(poses, 15.0, [0.5, 0.8], [5e-4, 6e-3])
    scene, middle = model.scene(start), four_bar(start, *bars)[0]
    pin = crank * np.exp(1j * start)
    motor = add_hinge(scene, None, 0, 0, motor=gv.SpeedMotor(model.speed))
    link = add_rod(scene, 0, 1, pin, pin + coupler * np.exp(1j * middle), start=middle - start)
    swing = add_hinge(scene, None, 1, ground, start=poses(start)[1][1])
    sim = simulate(scene, 2.5e-4)
    model.check(sim, motor, start, turns=2.2)
    now = start + model.speed * sim.time
    assert abs(sim.joints.angle[swing] - poses(now)[1][1]) < 1e-5
    assert abs(sim.joints.angle[link] - (four_bar(now, *bars)[0] - now)) < 1e-5  # two full turns back


@pytest.mark.parametrize("offset", [0.0, 0.06])
def test_quick_return(offset):
    """The pin of a crank runs in the slot of an arm that turns about a pivot below (Whitworth). The slot passes the pivot, or the pin
    is held at an ``offset`` from the line through the pivot: the arm's angle is that of the pin less asin(offset / its distance)."""
    crank, depth, start = 0.1, 0.25, 0.3

    def arm_angle(theta):
        way = crank * np.exp(1j * theta) + 1j * depth
        return np.angle(way) - np.arcsin(offset / abs(way))

    def poses(theta):
        return np.array([0j, -1j * depth + 0.2 * np.exp(1j * arm_angle(theta))]), np.array([theta, arm_angle(theta)])

    model = DrivenLinks(poses, 15.0, [0.5, 0.8], [5e-4, 6e-3])
    scene, pin, along = model.scene(start), crank * np.exp(1j * start), np.exp(1j * arm_angle(start))
    motor = add_hinge(scene, None, 0, 0, motor=gv.SpeedMotor(model.speed))
    add_hinge(scene, None, 1, -1j * depth)
    slot = gv.RevoluteTranslational(0, 1, flat(pin), OUT, point_b=flat(-1j * depth), slide=flat(along), turn_start=arm_angle(start) - start)
    slot = scene.add_joint(slot)
    sim = simulate(scene, 2.5e-4)
    model.check(sim, motor, start, turns=1.1)
    now = start + model.speed * sim.time
    way = crank * np.exp(1j * now) + 1j * depth
    assert abs(sim.joints.slide[slot] + math.sqrt(abs(way) ** 2 - offset**2)) < 1e-6
    assert abs(sim.joints.angle[slot] - (arm_angle(now) - now)) < 1e-5
    assert sim.report.joint_violation < 1e-6


# --- a slide on a rod
class SlideOnARod:
    """A body whose centre slides, on a spring, across the end of a rod about the origin: centre = (length + i slide) exp(i angle).
    Lagrange's equations for the angle and the slide by Hamilton's momenta."""

    def __init__(self, length, mass, moment, stiffness):
        self.length, self.mass, self.moment, self.stiffness = length, mass, moment, stiffness

    def centre(self, angle, slide):
        return (self.length + 1j * slide) * np.exp(1j * angle)

    def momenta(self, slide, rate, speed):
        across = self.mass * (self.length * rate + speed)
        return (self.mass * slide**2 + self.moment) * rate + self.length * across, across

    def integrate(self, angle, slide, rate, speed, times):
        """(angle, slide) at the times."""

        def change(_, y):
            a, s, p, q = y
            w = (p - self.length * q) / (self.mass * s**2 + self.moment)
            pull, weight = self.mass * s * w**2 - self.stiffness * s, self.mass * G
            torque = -weight * (self.length * math.cos(a) - s * math.sin(a))
            return w, q / self.mass - self.length * w, torque, pull - weight * math.cos(a)

        start = angle, slide, *self.momenta(slide, rate, speed)
        return solve_ivp(change, (0, times[-1]), start, "DOP853", t_eval=times, rtol=1e-11, atol=1e-11).y[:2].T


def slide_on_a_rod(dt=5e-4, mode="direct", precision="double"):
    """(the oracle, its start, sim, joint)"""
    model, start = SlideOnARod(0.4, 1.5, 0.02, 200.0), (0.6, 0.15, -2.0, 0.5)
    angle, slide, rate, speed = start
    centre, unit = model.centre(angle, slide), np.exp(1j * angle)
    velocity = (-slide * rate + 1j * (model.length * rate + speed)) * unit
    scene = empty_scene((0, -G, 0))
    add_planar(scene, centre, 0.3, model.mass, model.moment, velocity, rate)
    joint = gv.RevoluteTranslational(
        None, 0, axis=OUT, point_b=flat(centre), slide=flat(1j * unit), spring=gv.SpringLaw(model.stiffness, rest=0.0), turn_start=angle
    )
    joint = scene.add_joint(joint)
    return model, start, simulate(scene, dt, joints=mode, precision=precision), joint


def test_body_that_slides_across_a_turning_rod():
    model, start, sim, joint = slide_on_a_rod(2.5e-4)
    wanted = model.integrate(*start, np.arange(0, 1.01, 0.05))
    assert np.ptp(wanted[:, 0]) > 2 and np.ptp(wanted[:, 1]) > 0.3  # it does move
    for angle, slide in wanted[1:]:
        steps(sim, 0.05)
        assert abs(planar(sim.positions)[0] - model.centre(angle, slide)) < 1e-4 * model.length
        assert abs(sim.joints.angle[joint] - angle) < 1e-4 and abs(sim.joints.slide[joint] - slide) < 1e-4 * model.length
        rate, speed = sim.joints.angle_speed[joint], sim.joints.slide_speed[joint]
        assert sim.report.joint_violation < 1.2 * abs(model.length * rate**2 + 2 * rate * speed) * sim.dt**2 / 8 + 1e-7


def test_error_of_a_slide_on_a_rod_falls_with_the_square_of_the_step_at_least():
    model, start, _, _ = slide_on_a_rod()
    angle, slide = model.integrate(*start, np.array([0.0, 0.5]))[-1]
    errors = []
    for dt in (2e-3, 1e-3, 5e-4):
        sim = slide_on_a_rod(dt)[2]
        steps(sim, 0.5)
        errors.append(abs(planar(sim.positions)[0] - model.centre(angle, slide)))
    assert errors[0] / errors[1] > 3.8 and errors[1] / errors[2] > 3.8


# --- the same with a light link
def hanging_pair(kind, light):
    """A free body b that hangs, off its centre, on body a, which swings about a ball joint: by a rod without mass, or by a link of a
    milligram with a hinge on a and, on b, a ball joint or a slide."""
    scene = empty_scene((0, 0, -G))
    axis, side = np.array([0.48, 0.6, 0.64]), np.array([0.8, 0.0, -0.6])
    track, point = np.cross(axis, side), np.array([0.2, 0.1, -0.3])
    end = point + 0.5 * side
    a = scene.add_body(gv.Sphere(0.05), (0.1, 0, -0.2), mass=1.5, inertia=(0.03, 0.05, 0.04))
    b = scene.add_body(gv.Sphere(0.05), end + (0.05, -0.02, -0.08), mass=1.0, inertia=(0.03, 0.02, 0.04), angular_velocity=(1, 2, -1))
    scene.add_joint(gv.Spherical(None, a, (0, 0, 0)))
    spring = gv.SpringLaw(80.0, 1.0, rest=0.0)
    if light:
        link = scene.add_body(gv.Sphere(0.05), (point + end) / 2, mass=1e-6, inertia=(1e-8,) * 3)
        scene.add_joint(gv.Revolute(a, link, point, axis))
        scene.add_joint(gv.Spherical(link, b, end) if kind is gv.RevoluteSpherical else gv.Prismatic(link, b, end, track, spring=spring))
    else:
        options = {"slide": track, "spring": spring} if kind is gv.RevoluteTranslational else {}
        scene.add_joint(kind(a, b, point, axis, point_b=end, **options))
    sim = simulate(scene, 2.5e-4)
    steps(sim, 0.5)
    return sim, (a, b)


@pytest.mark.parametrize("kind", [gv.RevoluteSpherical, gv.RevoluteTranslational])
def test_rod_without_mass_moves_as_a_link_of_a_milligram_does(kind):
    (rod, bodies), (link, _) = hanging_pair(kind, False), hanging_pair(kind, True)
    bodies = list(bodies)
    assert np.abs(rod.velocities[bodies]).max() > 0.5
    assert np.abs(rod.positions[bodies] - link.positions[bodies]).max() < 2e-5
    assert np.abs(rod.velocities[bodies] - link.velocities[bodies]).max() < 2e-4
    assert np.abs(matrices(rod.quaternions[bodies]) - matrices(link.quaternions[bodies])).max() < 2e-4


# --- statics
def test_stay_of_a_beam():
    """A beam on a ball joint, its far end held by a rod to a hinge above. Moments about the ball joint: the rod pulls with
    (m g / 2) / sin(slope), and takes half of a side load at the middle along its axis."""
    long, height, mass, side = 1.2, 0.9, 5.0, 4.0
    scene = empty_scene((0, -G, 0))
    beam = scene.add_body(gv.Box((long / 2, 0.05, 0.05)), (long / 2, 0, 0), mass=mass)
    foot = scene.add_joint(gv.Spherical(None, beam, (0, 0, 0)))
    stay = scene.add_joint(gv.RevoluteSpherical(None, beam, (0, height, 0), OUT, point_b=(long, 0, 0)))
    scene.set_force(beam, force=(0, 0, side))
    sim = simulate(scene, 1e-3)
    steps(sim, 0.05)
    slope = math.atan2(height, long)
    pull = mass * G / 2 / math.sin(slope)
    wanted = np.array([-pull * math.cos(slope), pull * math.sin(slope), -side / 2])
    assert np.abs(sim.joints.force[stay] - wanted).max() < 1e-4
    assert np.abs(sim.joints.force[foot] + wanted - (0, mass * G, -side)).max() < 1e-4
    assert np.abs(sim.joints.torque[stay]).max() < 1e-6
    assert np.abs(sim.positions[beam] - (long / 2, 0, 0)).max() < 1e-6


def test_slide_on_a_rod_bears_what_its_motors_do_not():
    """By virtual work: the slide's motor holds the force along the slide, the other one the moment about the hinge. What is left is
    the joint's: along the rod, along the axis, and the moments square to it."""
    force, torque = np.array([3.0, -2.0, 5.0]), np.array([0.4, -0.7, 0.9])
    point, on_b, centre = np.array([0.1, 0.2, 0.0]), np.array([0.6, 0.5, 0.0]), np.array([0.7, 0.6, 0.2])
    scene = empty_scene()
    body = scene.add_body(gv.Sphere(0.1), centre, mass=2.0)
    hold = {"motor": gv.PositionMotor(0.3), "turn_motor": gv.PositionMotor(0.0)}
    joint = scene.add_joint(gv.RevoluteTranslational(None, body, point, OUT, point_b=on_b, slide=(0, 1, 0), **hold))
    scene.set_force(body, force=force, torque=torque)
    sim = simulate(scene, 1e-3)
    steps(sim, 0.05)
    table = sim.joints
    about = lambda p: torque + np.cross(centre - p, force)  # noqa: E731
    assert abs(table.motor_force[joint] + force[1]) < 1e-4
    assert abs(table.motor_torque[joint] + about(point)[2]) < 1e-4
    assert np.abs(table.force[joint] + (force[0], 0, force[2])).max() < 1e-4
    # the force along the rod passes its end, 0.3 m from the joint's point on b
    assert np.abs(table.torque[joint] + (*about(on_b)[:2], 0.3 * force[0])).max() < 1e-4
    assert abs(table.slide[joint] - 0.3) < 1e-6 and abs(table.angle[joint]) < 1e-6


# --- what acts on the rod
def test_motor_turns_a_rod():
    """m g l sin(a) at a constant speed, and full turns are counted. A step moves the ball along a straight line, so that the speed
    is kept but for (w h)^2 / 6."""
    length, mass, speed = 0.5, 2.0, 6.0
    sim, rod = ball_on_a_rod(0.0, length, mass, speed=speed * length, motor=gv.SpeedMotor(speed))
    for n in range(1, 2501):
        sim.step()
        if n % 50 == 0:
            off = (speed * sim.dt) ** 2
            assert abs(sim.joints.angle[rod] - speed * sim.time) < off / 5 * speed * sim.time
            assert abs(sim.joints.angle_speed[rod] - speed) < off / 2 * speed
            middle = speed * (sim.time - sim.dt / 2)
            assert abs(sim.joints.motor_torque[rod] - mass * G * length * math.sin(middle)) < 1e-3
    assert speed * sim.time > 4 * math.pi


@pytest.mark.parametrize("precision, mode", [("double", "direct"), ("single", "iterative")])
def test_spring_on_a_rod_is_an_oscillator(precision, mode):
    """m l^2 a'' = -k a: a period of 2 pi l sqrt(m / k)."""
    length, mass, stiffness = 0.5, 2.0, 30.0
    spring = gv.SpringLaw(stiffness, rest=0.0)
    sim, rod = ball_on_a_rod(0.4, length, mass, gravity=0.0, spring=spring, mode=mode, precision=precision)
    rate = math.sqrt(stiffness / mass) / length
    for _ in range(round(4 * math.pi / rate / sim.dt)):
        sim.step()
        assert abs(sim.joints.angle[rod] - 0.4 * math.cos(rate * sim.time)) < 2e-4


def test_rod_stops_at_its_limit_and_friction_holds_it():
    length, mass = 0.5, 2.0
    weight = mass * G * length
    sim, rod = ball_on_a_rod(1.0, length, mass, limits=(0.5, 1.2))
    steps(sim, 2.0)
    assert abs(sim.joints.angle[rod] - 0.5) < 1e-5 and abs(sim.joints.angle_speed[rod]) < 1e-5
    across = np.array([math.cos(0.5), math.sin(0.5), 0])
    assert abs(sim.joints.force[rod] @ across - weight / length * math.sin(0.5)) < 1e-4
    for share, holds in ((1.01, True), (0.9, False)):
        sim, rod = ball_on_a_rod(1.0, length, mass, friction=share * weight * math.sin(1.0))
        steps(sim, 0.2)
        assert (abs(sim.joints.angle[rod] - 1.0) < 1e-5) == holds


def test_gears_on_rods():
    """A wheel geared to a rod: (I + ratio^2 m l^2) a'' = torque; and a cart whose slide is geared, two to one, to
    that of a RevoluteTranslational which does not turn: five times its mass."""
    moment, mass, length, ratio, torque = 0.3, 2.0, 0.5, -1.5, 2.0
    scene = empty_scene()
    scene.add_body(gv.Sphere(0.05), (2, 0, 0), mass=1.0, inertia=(moment,) * 3)
    scene.add_body(gv.Sphere(0.05), (length, 0, 0), mass=mass)
    wheel = add_hinge(scene, None, 0, 2)
    rod = add_rod(scene, None, 1, 0, length)
    scene.add_joint(gv.Gear(wheel, rod, ratio))
    scene.set_force(0, torque=(0, 0, torque))
    carts = [scene.add_body(gv.Sphere(0.05), (0, 3, k), mass=1.0) for k in range(2)]
    still = {"turn_motor": gv.PositionMotor(0.0)}
    first = scene.add_joint(gv.RevoluteTranslational(None, carts[0], (0, 2, 0), OUT, point_b=(0, 3, 0), slide=(1, 0, 0), **still))
    second = scene.add_joint(gv.Prismatic(None, carts[1], (0, 3, 1), (1, 0, 0)))
    scene.add_joint(gv.SlideGear(first, second, 2.0))
    scene.set_force(carts[0], force=(1.0, 0, 0))
    sim = simulate(scene, 1e-3)
    steps(sim, 1.0)
    turned = 0.5 * torque / (moment + ratio**2 * mass * length**2)
    assert np.allclose(sim.joints.angle[[wheel, rod]], (turned, ratio * turned), rtol=0, atol=1e-5)
    assert np.allclose(sim.joints.slide[[first, second]], (0.1, 0.2), rtol=0, atol=1e-5)


def test_another_motor_on_a_rod_and_on_its_slide():
    scene = empty_scene()
    scene.add_body(gv.Sphere(0.05), (0.5, 0, 0), mass=1.0)
    scene.add_body(gv.Sphere(0.05), (0.5, 1, 0), mass=1.0)
    rod = add_rod(scene, None, 0, 0, 0.5, motor=gv.SpeedMotor(1.0))
    motors = {"motor": gv.SpeedMotor(0.1), "turn_motor": gv.SpeedMotor(0.2)}
    slide = scene.add_joint(gv.RevoluteTranslational(None, 1, (0, 1, 0), OUT, point_b=(0.5, 1, 0), slide=(0, 1, 0), **motors))
    sim = simulate(scene, 1e-3)
    steps(sim, 0.01)
    assert abs(sim.joints.angle_speed[rod] - 1.0) < 1e-5
    assert np.allclose((sim.joints.slide_speed[slide], sim.joints.angle_speed[slide]), (0.1, 0.2), rtol=0, atol=1e-5)
    sim.set_motor(rod, gv.SpeedMotor(-2.0), "angle")
    sim.set_motor(slide, gv.SpeedMotor(0.3), "slide")
    sim.set_motor(slide, gv.SpeedMotor(0.4), "angle")
    steps(sim, 0.01)
    assert abs(sim.joints.angle_speed[rod] + 2.0) < 1e-5
    assert np.allclose((sim.joints.slide_speed[slide], sim.joints.angle_speed[slide]), (0.3, 0.4), rtol=0, atol=1e-5)


def test_rod_breaks_at_its_load():
    """From the horizontal the pull is 3 m g sin(b) at the angle b below: 2 m g where sin(b) = 2 / 3; then the ball flies."""
    length, mass = 0.5, 2.0
    sim, rod = ball_on_a_rod(math.pi / 2, length, mass, break_force=2 * mass * G, dt=5e-4)
    while not sim.joints.broken[rod]:
        last = sim.joints.angle[rod]
        sim.step()
        assert sim.time < 1.0
    assert abs(math.cos(last) - 2 / 3) < 5e-3
    velocity = sim.velocities[0].copy()
    sim.step()
    assert np.allclose(sim.velocities[0] - velocity, (0, -G * sim.dt, 0), rtol=0, atol=1e-9)
