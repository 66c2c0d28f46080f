"""Machines: pendulums, tops, springs and driven mechanisms against closed forms or integration in minimal coordinates."""

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import ellipj, ellipk

from gravel.joints.drives import SpeedMotor, SpringLaw
from gravel.joints.kinds import Prismatic, Revolute, Screw, Spherical, Universal
from gravel.scene import Scene
from gravel.shapes import Capsule, Sphere
from gravel.validation.case import Curve, Outcome, case, largest
from gravel.validation.running import G, advance, record, rounding, simulate

BALL = Sphere(0.02)


def machine(gravity=(0.0, 0.0, -G)):
    return Scene(gravity=gravity)


MOMENT, SWING = 0.05, 2.0  # kg m2 of the pendulum of 1 kg at 1 m; where it is let go, rad from below


def pendulum(dt, angle=SWING):
    """A body of 1 kg on a hinge 1 m away, from rest at an angle from below; (simulation, hinge)."""
    scene = machine()
    bob = scene.add_body(BALL, (np.sin(angle), 0, -np.cos(angle)), mass=1.0, inertia=(MOMENT,) * 3)
    hinge = scene.add_joint(Revolute(None, bob, (0, 0, 0), (0, -1, 0), start=angle))
    return simulate(scene, dt), hinge


def pendulum_angle(times, angle=SWING):
    """Of that pendulum, at some times."""
    return swing_of(times, angle, 1 + MOMENT)


def swing_of(times, angle, reduced):
    """Angles of a pendulum of a reduced length that is let go at an angle from below."""
    m = np.sin(angle / 2) ** 2
    sn = ellipj(np.sqrt(G / reduced) * times + ellipk(m), m)[0]
    return 2 * np.arcsin(np.sqrt(m) * sn)


@case("Pendulum with a wide swing")
def pendulum_swing() -> Outcome:
    r"""Released at $\theta_0 = 2$ rad, $\theta = 2 \arcsin(k\, \mathrm{sn}(\sqrt{g/l}\, t + K(k), k))$ with $k = \sin(\theta_0 / 2)$
    and the reduced length $l = (I + m r^2) / (m r)$: the period is $4 K(k) \sqrt{l/g}$, longer than that of small swings."""
    sim, hinge = pendulum(1e-3)
    times, found = record(sim, 6.0, lambda sim: sim.joints.angle[hinge], every=40)
    return largest("time, s", "angle, rad", [Curve("θ", times, pendulum_angle(times), found)], 2.0, "of the swing", 1e-4)


@case("Order of the step", only="tight")
def order_of_the_step() -> Outcome:
    r"""The error of that pendulum after 1 s falls with the square of the step, $e \propto h^2$: the line passes through the error at
    the smallest step. The error of the case is the largest deviation of $\log_2 e$ from the line. Single precision would hide it, so
    the case runs at tight settings only."""
    steps = np.array([8e-3, 4e-3, 2e-3, 1e-3, 5e-4])
    errors = []
    for step in steps:
        sim, hinge = pendulum(step)
        errors.append(abs(advance(sim, 1.0).joints.angle[hinge] - pendulum_angle(np.array([1.0]))[0]))
    errors = np.array(errors)
    line = errors[-1] * (steps / steps[-1]) ** 2
    misfit = float(np.abs(np.log2(errors / line)).max())
    curve = Curve("after 1 s", steps, line, errors)
    return Outcome("step, s", "error of the angle, rad", [curve], misfit, "of a factor of 2", 0.4, log=True)


@case("Chain with a heavy payload")
def loaded_chain() -> Outcome:
    r"""Ten thin links, connected by spherical joints, carry $10^4$ times the mass of one and swing from 45°. Their weight is negligible
    compared with the tension, so the chain stays straight and the payload is a pendulum of its length $L$; with the chain as a rod of
    mass $m$ the reduced length is $L (M + m/3) / (M + m/2)$. Steps of 1/500 s cannot resolve the transverse oscillations of links in
    the taut chain. The bound is a thousandth of the length, which would reveal both an opening chain and a wrong period."""
    count, link, load, lean = 10, 0.1, 1e4, np.pi / 4
    scene, last, length = machine(), None, count * link
    down, turn = np.array([np.sin(lean), 0, -np.cos(lean)]), (np.cos(lean / 2), 0, -np.sin(lean / 2), 0)
    moments = (link**2 / 12, link**2 / 12, link**2 / 1000)  # of 1 kg
    for k in range(count):
        body = scene.add_body(Capsule(0.005, link / 2 - 0.005), (k + 0.5) * link * down, mass=1.0, inertia=moments, quaternion=turn)
        scene.add_joint(Spherical(last, body, k * link * down))
        last = body
    payload = scene.add_body(Sphere(0.03), length * down, mass=load)
    scene.add_joint(Spherical(last, payload, length * down))
    times, found = record(simulate(scene, 1 / 500), 3.0, lambda sim: sim.positions[payload, [0, 2]], every=25)
    angles = swing_of(times, lean, length * (load + count / 3) / (load + count / 2))
    wanted = length * np.column_stack([np.sin(angles), -np.cos(angles)])
    curves = [Curve(name, times, wanted[:, k], found[:, k]) for k, name in enumerate("xz")]
    return largest("time, s", "place of the payload, m", curves, length, "of the length", 1e-3)


def double_pendulum_motion(times, start, lengths, masses):
    """Angles from below of two point masses on rods without mass, by Lagrange's equations (SciPy, DOP853)."""
    (l1, l2), (m1, m2) = lengths, masses

    def slopes(_, y):
        a, b, wa, wb = y
        matrix = [[(m1 + m2) * l1, m2 * l2 * np.cos(a - b)], [l1 * np.cos(a - b), l2]]
        right = [-m2 * l2 * wb**2 * np.sin(a - b) - (m1 + m2) * G * np.sin(a), l1 * wa**2 * np.sin(a - b) - G * np.sin(b)]
        return [wa, wb, *np.linalg.solve(matrix, right)]

    return solve_ivp(slopes, (0, times[-1]), [*start, 0, 0], "DOP853", times, rtol=1e-11, atol=1e-11).y[:2].T


@case("Double pendulum")
def double_pendulum() -> Outcome:
    """Two point masses on massless rods, from angles with chaotic motion, are compared with Lagrange's equations integrated by SciPy
    (DOP853, tolerances 1e-11). At defaults, the bound allows 10 000 roundings in single precision, at 5 m/s."""
    lengths, masses, start = (1.0, 0.7), (2.0, 1.5), (2.0, 2.6)
    scene, places, point = machine(), [], np.zeros(3)
    for k in range(2):
        place = point + lengths[k] * np.array([np.sin(start[k]), 0, -np.cos(start[k])])
        scene.add_body(BALL, place, mass=masses[k], inertia=(1e-6,) * 3)
        scene.add_joint(Revolute(k - 1 if k else None, k, point, (0, -1, 0)))
        point = place
        places.append(place)
    times, found = record(simulate(scene, 2e-4), 2.0, lambda sim: sim.positions[:, [0, 2]].ravel(), every=100)
    angles = double_pendulum_motion(times, start, lengths, masses)
    first = lengths[0] * np.column_stack([np.sin(angles[:, 0]), -np.cos(angles[:, 0])])
    second = first + lengths[1] * np.column_stack([np.sin(angles[:, 1]), -np.cos(angles[:, 1])])
    wanted = np.hstack([first, second])
    curves = [Curve(name, times, wanted[:, k], found[:, k]) for k, name in enumerate(("x of 1", "z of 1", "x of 2", "z of 2"))]
    return largest("time, s", "place, m", curves, sum(lengths), "of the length", 1e-4, rounding(10_000, 5.0))


@case("Heavy top")
def heavy_top() -> Outcome:
    r"""A top on its tip precesses steadily at the slow root of $J \Omega^2 \cos\alpha - C \omega_3 \Omega + m g l = 0$, with the moments
    $J$ about the tip and $C$ about the axis (Goldstein, *Classical Mechanics*, section 5.7)."""
    mass, arm, tilt, spin, across, along = 0.5, 0.1, 0.6, 250.0, 4e-4, 6e-4
    tip = across + mass * arm**2
    root = np.sqrt((along * spin) ** 2 - 4 * tip * np.cos(tilt) * mass * G * arm)
    pace = (along * spin - root) / (2 * tip * np.cos(tilt))
    axis = np.array([np.sin(tilt), 0.0, np.cos(tilt)])
    rate = np.array([0, 0, pace]) + (spin - pace * np.cos(tilt)) * axis
    scene = machine()
    motion = {"velocity": np.cross(rate, arm * axis), "angular_velocity": rate, "quaternion": (np.cos(tilt / 2), 0, np.sin(tilt / 2), 0)}
    top = scene.add_body(BALL, arm * axis, mass=mass, inertia=(across, across, along), **motion)
    scene.add_joint(Spherical(None, top, (0, 0, 0)))
    times, found = record(simulate(scene, 1e-4), 1.5, lambda sim: sim.positions[top] / arm, every=150)
    turn = pace * times
    wanted = np.column_stack([np.sin(tilt) * np.cos(turn), np.sin(tilt) * np.sin(turn), np.full(len(times), np.cos(tilt))])
    curves = [Curve(name, times, wanted[:, k], found[:, k]) for k, name in enumerate("xyz")]
    return largest("time, s", "direction of the axis", curves, 1.0, "(absolute)", 5e-5)


@case("Damped spring")
def damped_spring() -> Outcome:
    r"""$m \ddot x + c \dot x + k (x - x_r) = 0$: $x = x_r + e^{-\beta t} (A \cos\omega t + B \sin\omega t)$ with $\beta = c / 2m$ and
    $\omega^2 = k/m - \beta^2$."""
    mass, stiffness, rest, curves = 2.0, 200.0, 0.1, []
    for damping in (0.0, 3.0, 12.0):
        scene = machine((0, 0, 0))
        body = scene.add_body(BALL, velocity=(0, 0, 1.0), mass=mass)
        slide = scene.add_joint(Prismatic(None, body, (0, 0, 0), (0, 0, 1), spring=SpringLaw(stiffness, damping, rest=rest)))
        times, found = record(simulate(scene), 1.5, lambda sim, slide=slide: sim.joints.slide[slide], every=10)
        beta = damping / (2 * mass)
        rate = np.sqrt(stiffness / mass - beta**2)
        wanted = rest + np.exp(-beta * times) * (-rest * np.cos(rate * times) + (1.0 - beta * rest) / rate * np.sin(rate * times))
        curves.append(Curve(f"c = {damping:g} N s/m", times, wanted, found))
    return largest("time, s", "place, m", curves, 0.1, "of 0.1 m", 1e-3)


def links(poses, start, speed, masses):
    """A scene of links in the x-y plane that move already: ``poses(theta)`` gives their centres as complex numbers and their angles."""
    scene, small = machine((0, 0, 0)), 1e-5
    centres, angles = poses(start)
    ahead, behind = poses(start + small), poses(start - small)
    for k, mass in enumerate(masses):
        velocity = speed * (ahead[0][k] - behind[0][k]) / (2 * small)
        spin = speed * (ahead[1][k] - behind[1][k]) / (2 * small)
        turn = (np.cos(angles[k] / 2), 0, 0, np.sin(angles[k] / 2))
        motion = {"velocity": (velocity.real, velocity.imag, 0), "angular_velocity": (0, 0, spin), "quaternion": turn}
        scene.add_body(BALL, (centres[k].real, centres[k].imag, 0), mass=mass, inertia=(1e-3,) * 3, **motion)
    return scene


def hinge(scene, a, b, point, **options):
    """About z, at a complex number."""
    point = complex(point)
    return scene.add_joint(Revolute(a, b, (point.real, point.imag, 0), (0, 0, 1), **options))


@case("Slider-crank")
def slider_crank() -> Outcome:
    r"""A crank $r$ at constant speed, a rod $l$: the slider is at $x = r \cos\theta + \sqrt{l^2 - r^2 \sin^2\theta}$."""
    r, rod, start, speed = 0.1, 0.35, 0.4, 20.0

    def poses(theta):
        pin, end = r * np.exp(1j * theta), r * np.cos(theta) + np.sqrt(rod**2 - (r * np.sin(theta)) ** 2)
        return np.array([pin / 2, (pin + end) / 2, end + 0j]), np.array([theta, np.angle(end - pin), 0 * theta])

    scene, pin, end = links(poses, start, speed, (1.0, 0.8, 1.5)), r * np.exp(1j * start), poses(start)[0][2].real
    hinge(scene, None, 0, 0, motor=SpeedMotor(speed))
    hinge(scene, 0, 1, pin)
    hinge(scene, 1, 2, end)
    slide = scene.add_joint(Prismatic(None, 2, (end, 0, 0), (1, 0, 0), start=end))
    times, found = record(simulate(scene, 5e-4), 0.7, lambda sim: sim.joints.slide[slide], every=10)
    wanted = poses(start + speed * times)[0][2].real
    return largest("time, s", "slider, m", [Curve("x", times, wanted, found)], rod, "of the rod", 1e-5)


@case("Four-bar linkage")
def four_bar() -> Outcome:
    """A crank at constant speed moves a rocker; its angle follows from the intersection of two circles, about the crank's pin (the
    coupler's length) and about the rocker's hinge."""
    crank, coupler, rocker, ground, start, speed = 0.1, 0.4, 0.3, 0.45, 0.7, 15.0

    def poses(theta):
        pin = crank * np.exp(1j * theta)
        across = ground - pin
        along = (np.abs(across) ** 2 + coupler**2 - rocker**2) / (2 * np.abs(across))
        joint = pin + across / np.abs(across) * (along + 1j * np.sqrt(coupler**2 - along**2))
        angles = np.array([theta, np.angle(joint - pin), np.angle(joint - ground)])
        return np.array([pin / 2, (pin + joint) / 2, (joint + ground) / 2]), angles

    scene, pin = links(poses, start, speed, (0.5, 1.0, 0.8)), crank * np.exp(1j * start)
    centres, angles = poses(start)
    hinge(scene, None, 0, 0, motor=SpeedMotor(speed))
    hinge(scene, 0, 1, pin)
    hinge(scene, 1, 2, 2 * centres[2] - ground)
    swing = hinge(scene, None, 2, ground, start=angles[2])
    times, found = record(simulate(scene, 5e-4), 0.9, lambda sim: sim.joints.angle[swing], every=10)
    wanted = poses(start + speed * times)[1][2]
    return largest("time, s", "angle of the rocker, rad", [Curve("rocker", times, wanted, found)], 1.0, "rad", 1e-4)


@case("Universal joint")
def universal_joint() -> Outcome:
    r"""Two shafts at an angle $\beta$: $\tan\varphi_2 = \cos\beta \tan\varphi_1$. The figure shows the lead of the driven shaft."""
    bend, rate = 0.6, 10.0
    first, second, up = np.array([1.0, 0, 0]), np.array([np.cos(bend), 0, np.sin(bend)]), np.array([0, 1.0, 0])
    scene = machine((0, 0, 0))
    scene.add_body(BALL, -0.5 * first, mass=1.0, inertia=(0.01,) * 3, angular_velocity=rate * first)
    scene.add_body(BALL, 0.5 * second, mass=1.0, inertia=(0.01,) * 3, angular_velocity=rate * np.cos(bend) * second)
    scene.add_joint(Revolute(None, 0, -0.5 * first, first, motor=SpeedMotor(rate)))
    swing = scene.add_joint(Revolute(None, 1, 0.5 * second, second))
    scene.add_joint(Universal(0, 1, (0, 0, 0), up, axis_b=np.cross(second, up)))
    times, found = record(simulate(scene, 5e-4), 1.2, lambda sim: sim.joints.angle[swing], every=12)
    turn = rate * times
    wanted = np.unwrap(np.arctan2(np.cos(bend) * np.sin(turn), np.cos(turn)))
    return largest("time, s", "ahead, rad", [Curve("φ₂ − φ₁", times, wanted - turn, found - turn)], 1.0, "rad", 1e-4)


@case("Nut on a screw")
def nut_on_a_screw() -> Outcome:
    r"""A nut with moment $I$ runs down a screw of pitch $p$: $(m + I (2\pi/p)^2)\, \ddot z = -m g$."""
    mass, moment, pitch = 2.0, 1e-3, 0.2
    scene = machine()
    nut = scene.add_body(BALL, mass=mass, inertia=(moment,) * 3)
    screw = scene.add_joint(Screw(None, nut, (0, 0, 0), (0, 0, 1), pitch=pitch))
    times, found = record(simulate(scene), 1.0, lambda sim: sim.joints.slide[screw], every=20)
    wanted = -0.5 * times**2 * mass * G / (mass + moment * (2 * np.pi / pitch) ** 2)
    return largest("time, s", "height, m", [Curve("z", times, wanted, found)], 1.0, "m", 1e-5)
