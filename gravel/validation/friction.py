"""Dry friction: sticking, sliding, rolling, spinning, and the gap of the cone model."""

import numpy as np

from gravel.model.materials import Material
from gravel.model.motion import ConstantVelocity
from gravel.shapes import Box, Sphere
from gravel.validation.case import Curve, Outcome, case, largest
from gravel.validation.running import DT, G, advance, on_floor, record, rounding, simulate

RADIUS = 0.1  # m, of every ball here


def thrown(shape, height, mu, speed, gap=0.0, **options):
    """A body that starts to slide along x on a floor."""
    stone = Material(friction=mu)
    scene = on_floor(stone)
    scene.add_body(shape, (0, 0, height + gap), stone, velocity=(speed, 0, 0))
    return simulate(scene, **options)


def slide_down(angle, mu, friction, seconds=0.2):
    """The acceleration of a flat box on a slope, from rest."""
    stone = Material(friction=mu)
    scene = on_floor(stone, gravity=(G * np.sin(angle), 0, -G * np.cos(angle)))
    scene.add_body(Box((0.2, 0.2, 0.05)), (0, 0, 0.05), stone)
    return advance(simulate(scene, friction=friction), seconds).velocities[1, 0] / seconds


@case("Block on a slope")
def incline() -> Outcome:
    r"""A block on a slope of angle $\alpha$ sticks up to $\tan\alpha = \mu$ and slides with $a = g (\sin\alpha - \mu \cos\alpha)$
    beyond (Coulomb's law). Both friction models are run; the bound is the effect of gravity in one step of the 0.2 s."""
    mu, degrees = 0.5, np.array([5, 15, 22, 25, 26, 27, 28, 30, 35, 45, 55], float)
    angles = np.radians(degrees)
    wanted = np.maximum(0.0, G * (np.sin(angles) - mu * np.cos(angles)))
    curves = [Curve(name, degrees, wanted, np.array([slide_down(angle, mu, name) for angle in angles])) for name in ("cone", "coulomb")]
    return largest("slope, degrees", "acceleration, m/s²", curves, G, "of g", DT / 0.2)


@case("Block that slides to rest")
def sliding_block() -> Outcome:
    r"""$x = v t - \tfrac{1}{2} \mu g t^2$ until $t = v / (\mu g)$; then the block rests. At defaults, the bound also includes the
    rounding of single precision."""
    mu, speed = 0.4, 2.0
    times, places = record(thrown(Box((0.2, 0.2, 0.05)), 0.05, mu, speed), 0.7, lambda sim: sim.positions[1, 0], every=10)
    moving = np.minimum(times, speed / (mu * G))
    curve = Curve("x", times, speed * moving - 0.5 * mu * G * moving**2, places)
    return largest("time, s", "way, m", [curve], 1.0, "m", 1e-5, 1e-5 + rounding(510, speed) * 0.51)


@case("Ball that slips, then rolls")
def slipping_ball() -> Outcome:
    r"""A ball thrown along a floor slips until $t = 2 v_0 / (7 \mu g)$ with $v = v_0 - \mu g t$, $\omega R = \tfrac{5}{2} \mu g t$, and
    then rolls at $\tfrac{5}{7} v_0$. At defaults, the bound allows 400 roundings in single precision."""
    mu, speed = 0.3, 2.0
    sim = thrown(Sphere(RADIUS), RADIUS, mu, speed)
    times, found = record(sim, 0.4, lambda sim: (sim.velocities[1, 0], RADIUS * sim.angular_velocities[1, 1]), every=5)
    slip = np.minimum(times, 2 * speed / (7 * mu * G))
    curves = [Curve("v", times, speed - mu * G * slip, found[:, 0]), Curve("ωR", times, 2.5 * mu * G * slip, found[:, 1])]
    return largest("time, s", "speed, m/s", curves, 1.0, "m/s", 1e-9, rounding(400, speed))


@case("Rolling friction")
def rolling_friction() -> Outcome:
    r"""Rolling without slip, $I \dot\omega = F R - \rho N$ and $m \dot v = -F$ give $\dot v = -\tfrac{5}{7} g \rho / R$ for a ball,
    until it rests. At defaults, the bound allows 1 430 roundings in single precision."""
    arm, speed, stone = 0.01, 1.0, Material(friction=0.8, rolling_friction=0.01)
    scene = on_floor(stone)
    scene.add_body(Sphere(RADIUS), (0, 0, RADIUS), stone, velocity=(speed, 0, 0), angular_velocity=(0, speed / RADIUS, 0))
    times, found = record(simulate(scene), 2.0, lambda sim: sim.velocities[1, 0], every=20)
    slowing = 5 / 7 * G * arm / RADIUS
    curve = Curve("v", times, np.maximum(0.0, speed - slowing * times), found)
    return largest("time, s", "speed, m/s", [curve], 1.0, "m/s", 1e-9, rounding(1430, speed))


@case("Spinning friction")
def spinning_friction() -> Outcome:
    r"""A ball that spins on the spot: $\dot\omega = -\sigma m g / I = -\tfrac{5}{2} \sigma g / R^2$, until it rests. At defaults, the
    bound allows 1 630 roundings in single precision."""
    arm, rate, stone = 0.005, 20.0, Material(friction=0.5, spinning_friction=0.005)
    scene = on_floor(stone)
    scene.add_body(Sphere(RADIUS), (0, 0, RADIUS), stone, angular_velocity=(0, 0, rate))
    times, found = record(simulate(scene), 2.0, lambda sim: sim.angular_velocities[1, 2], every=20)
    slowing = 2.5 * arm * G / RADIUS**2
    curve = Curve("ω", times, np.maximum(0.0, rate - slowing * times), found)
    return largest("time, s", "spin, rad/s", [curve], 1.0, "rad/s", 1e-9, rounding(1630, rate))


def gap_while_sliding(speed, friction, mu=0.3):
    """Height of a block over the floor after 0.05 s of sliding, and the speed it has then."""
    gap = DT * mu * speed if friction == "cone" else 0.0  # where the cone's condition is in balance
    sim = advance(thrown(Box((0.2, 0.2, 0.05)), 0.05, mu, speed, gap, friction=friction), 0.05)
    return sim.positions[1, 2] - 0.05, sim.velocities[1, 0]


@case("Sliding gap of the cone model")
def sliding_gap() -> Outcome:
    r"""The convex relaxation of Coulomb's law (Anitescu 2006; Negrut et al. 2010) keeps a sliding contact open by $h \mu |v_t|$; the
    Coulomb model must not. Steps of 1 ms, $\mu = 0.3$. The slip changes by $\mu g h$ within a step; this is the bound."""
    mu, speeds, curves = 0.3, np.linspace(0.5, 3.0, 6), []
    for friction in ("cone", "coulomb"):
        gaps, slips = np.array([gap_while_sliding(speed, friction) for speed in speeds]).T
        curves.append(Curve(friction, slips, 1e6 * DT * mu * slips * (friction == "cone"), 1e6 * gaps))
    return largest("sliding speed, m/s", "gap, µm", curves, 1.0, "µm", 1e6 * mu**2 * G * DT**2)


@case("Ball on a turntable")
def turntable() -> Outcome:
    r"""A ball that rolls without slip on a plane rotating at $\Omega$ obeys $\dot v = \tfrac{2}{7} \Omega\, e_z \times v$: it moves in
    a circle at $\tfrac{2}{7} \Omega$, independent of its position (Weltner 1979). The circle needs
    $\mu \ge \tfrac{2}{7} \Omega v / g = 0.102$; the case has 2 % more, so that the ball slips if it finds less friction."""
    table, speed, rough = 7.0, 0.5, Material(friction=0.104)
    scene = on_floor(rough, motion=ConstantVelocity(angular_velocity=(0, 0, table)))
    scene.add_body(Sphere(RADIUS), (0, 0, RADIUS), rough, velocity=(speed, 0, 0), angular_velocity=(0, speed / RADIUS, 0))
    rate = 2 / 7 * table
    times, places = record(simulate(scene), 2 * np.pi / rate, lambda sim: sim.positions[1], every=40)
    circle = speed / rate
    wanted = circle * np.column_stack([np.sin(rate * times), 1 - np.cos(rate * times)])
    curves = [Curve(name, times, wanted[:, k], places[:, k]) for k, name in enumerate("xy")]
    return largest("time, s", "place, m", curves, 2 * circle, "of the circle", 0.005)


@case("Ball on a belt")
def belt() -> Outcome:
    r"""A ball put on a belt of speed $u$: its angular momentum about the contact stays zero, $m R v + I \omega = 0$, so it finally
    rolls at $\tfrac{2}{7} u$; until then $v = \mu g t$. At defaults, the bound allows 200 roundings in single precision."""
    mu, speed, rubber = 0.4, 1.0, Material(friction=0.4)
    scene = on_floor(rubber, motion=ConstantVelocity((speed, 0, 0)))
    scene.add_body(Sphere(RADIUS), (0, 0, RADIUS), rubber)
    times, found = record(simulate(scene), 0.2, lambda sim: sim.velocities[1, 0], every=4)
    curve = Curve("v", times, np.minimum(mu * G * times, 2 / 7 * speed), found)
    return largest("time, s", "speed, m/s", [curve], 1.0, "m/s", 1e-9, rounding(200, speed))
