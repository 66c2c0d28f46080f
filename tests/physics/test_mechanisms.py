"""Mechanisms against formulas and against independent integrations of their equations of motion in minimal coordinates.

The oracles stand at the top, in plain NumPy and SciPy; they share no code with the engine. Reported reactions are means over
a step: they are compared with the formula's value in its middle.
"""

import math

import numpy as np
import pytest
from oracles import matrices, random_quaternions
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation
from scipy.special import ellipk

import gravel as gv

pytestmark = pytest.mark.usefixtures("device")

G = 9.81
YIELD = 1e-5  # rigid joints yield by a few millionths of what the bodies would do without them, so that redundant ones share a load


# --- oracles
class PlanarLinks:
    """Rigid links in a plane, whose coordinates are their angles. With the plane's points as complex numbers, the centre of link
    b is base[b] + sum_j arms[b, j] exp(i angle[j]), and loops close where loops @ exp(i angles) + closing = 0."""

    def __init__(self, base, arms, masses, moments, gravity=0j, loops=(), closing=()):
        self.base, self.arms = np.asarray(base, complex), np.asarray(arms, complex)
        self.masses, self.moments, self.gravity = np.asarray(masses), np.asarray(moments), gravity
        self.loops = np.reshape(np.asarray(loops, complex), (-1, len(self.masses)))
        self.closing = np.asarray(closing, complex)

    def centres(self, angles):
        return self.base + self.arms @ np.exp(1j * angles)

    def gaps(self, angles):
        return self.loops @ np.exp(1j * angles) + self.closing

    def accelerations(self, angles, rates, loads):
        """Second derivatives of the angles under generalised forces ``loads``, by Lagrange's equations with multipliers."""
        unit = np.exp(1j * angles)
        slopes, bends = 1j * self.arms * unit, -(self.arms * unit) @ rates**2  # of the centres: by the angles; by time at constant rates
        mass = (slopes.conj().T @ (self.masses[:, None] * slopes)).real + np.diag(self.moments)
        force = loads + (slopes.conj().T @ (self.masses * (self.gravity - bends))).real
        if not len(self.loops):
            return np.linalg.solve(mass, force)
        hold = 1j * self.loops * unit
        hold, known = np.vstack([hold.real, hold.imag]), (self.loops * unit) @ rates**2
        known = np.concatenate([known.real, known.imag])
        n = len(known)
        whole = np.block([[mass, hold.T], [hold, np.zeros((n, n))]])
        scale = 1 / np.sqrt(np.concatenate([np.diag(mass), np.einsum("ij,j,ij->i", hold, 1 / np.diag(mass), hold)]))
        return (scale * np.linalg.solve(whole * np.outer(scale, scale), scale * np.concatenate([force, known])))[: len(mass)]

    def integrate(self, angles, rates, times, loads=lambda angles, rates: 0.0):
        """(angles, rates) at the times, each (T, n)."""
        n = len(self.masses)

        def slope(_, y):
            return np.concatenate([y[n:], self.accelerations(y[:n], y[n:], loads(y[:n], y[n:]))])

        start = np.concatenate([np.asarray(angles, float), np.asarray(rates, float)])
        run = solve_ivp(slope, (0, times[-1]), start, "DOP853", t_eval=times, rtol=1e-11, atol=1e-11)
        return run.y[:n].T, run.y[n:].T


def double_pendulum(lengths, masses, moments):
    """Two rods that hang from the origin, one below the other; angles of their directions from +x; gravity along -y."""
    half = np.asarray(lengths) / 2
    return PlanarLinks([0, 0], [[half[0], 0], [lengths[0], half[1]]], masses, moments, -1j * G)


# Andrews' squeezing mechanism: E. Hairer and G. Wanner, Solving Ordinary Differential Equations II, section VII.7, with the end
# values of the Test Set for IVP Solvers (Bari). Seven links in a plane without gravity: 1 crank, 2 rod, 3 with the spring,
# 4 and 5, 6 and 7 the two further pairs between the common point P and the pivot A.
ANDREWS = {
    "masses": [0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498],
    "moments": [2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5],
    "pivots": {"O": 0j, "A": -0.06934 - 0.00227j, "B": -0.03635 + 0.03273j, "C": 0.014 + 0.072j},
    "torque": 0.033,
    "stiffness": 4530.0,
    "rest": 0.07785,
    "start": [-0.0617138900142764496, 0.0, 0.455279819163070380, 0.222668390165885885, 0.487364979543842550, -0.222668390165885885]
    + [1.23054744454982119],
    "end": [15.81077119629904, -15.75637105984298, 0.04082224013073101, -0.5347301163226948, 0.5244099658805304]
    + [0.5347301163226948, 1.048080741042263],
}
# beta, Theta, gamma, Phi, delta, Omega, epsilon of the book from the seven links' angles
ANDREWS_ANGLES = np.array(
    [
        [1, 0, 0, 0, 0, 0, 0],
        [-1, 1, 0, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0, 0],
        [0, 0, 0, 1, -1, 0, 0],
        [0, 0, 0, 0, 1, 0, 0],
        [0, 0, 0, 0, 0, 1, -1],
        [0, 0, 0, 0, 0, 0, 1],
    ],
    float,
)


def andrews():
    """(links, arms of the points in their links, spring's point in link 3): read off the book's mass matrix and constraints."""
    d, da, e, ea, rr, ra = 28e-3, 115e-4, 2e-2, 1421e-5, 7e-3, 92e-5
    ss, sa, sb, sc, sd = 35e-3, 1874e-5, 1043e-5, 18e-3, 2e-2
    ta, tb, u, ua, ub, zf, zt, fa = 2308e-5, 916e-5, 4e-2, 1228e-5, 449e-5, 2e-2, 4e-2, 1421e-5
    base, arms = np.zeros(7, complex), np.zeros((7, 7), complex)
    pivots = ANDREWS["pivots"]
    arms[0, 0] = ra
    arms[1, :2] = rr, -da
    base[2], arms[2, 2] = pivots["B"], sb - 1j * sa
    base[3], arms[3, 3:5] = pivots["A"], (-1j * (e - ea), zt)
    base[4], arms[4, 4] = pivots["A"], ta - 1j * tb
    base[5], arms[5, 5:] = pivots["A"], (zf - fa, -1j * u)
    base[6], arms[6, 6] = pivots["A"], -ub - 1j * ua
    ways = np.zeros((4, 7), complex)  # to P by link 2, 3, 4 and 6
    ways[0, :2] = rr, -d
    ways[1, 2] = -1j * ss
    ways[2, 3:5] = -1j * e, zt
    ways[3, 5:] = zf, -1j * u
    closing = -np.array([pivots["B"], pivots["A"], pivots["A"]])
    links = PlanarLinks(base, arms, ANDREWS["masses"], ANDREWS["moments"], 0j, ways[0] - ways[1:], closing)
    return links, {"crank": rr, "P": ways, "4-5": zt, "6-7": -1j * u}, sd - 1j * sc


def andrews_loads(spring):
    """Generalised forces of the driving torque and of the spring from C to the point of link 3."""

    def loads(angles, _):
        point = ANDREWS["pivots"]["B"] + spring * np.exp(1j * angles[2])
        stretch = point - ANDREWS["pivots"]["C"]
        pull = -ANDREWS["stiffness"] * (abs(stretch) - ANDREWS["rest"]) * stretch / abs(stretch)
        result = np.zeros(7)
        result[0] = ANDREWS["torque"]
        result[2] = (np.conj(1j * spring * np.exp(1j * angles[2])) * pull).real
        return result

    return loads


class Bricard:
    """Bricard's six-bar along edges of the unit cube, the sixth link fixed. At every joint the link turns by alpha about the
    normal of the two links; the odd ones and the even ones are equal, with cos a cos b + cos a + cos b = 0 (all 90 degrees in the
    cube). That curve runs once around the origin: the motion's one coordinate is the polar angle on it."""

    CORNERS = np.array([(1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 1, 1), (0, 0, 1), (1, 0, 1)], float)
    MASS, MOMENTS = 10.0, 10.0 * np.array([0.01 / 6, 1.01 / 12, 1.01 / 12])  # of a square rod, 1 m x 0.1 m x 0.1 m

    def __init__(self, gravity):
        edges = np.roll(self.CORNERS, -1, axis=0) - self.CORNERS
        self.edges, self.axes = edges, np.cross(np.roll(edges, 1, axis=0), edges)
        self.twist = np.einsum("ij,ij->i", np.roll(self.axes, -1, axis=0), np.cross(self.axes, edges))
        polar = np.linspace(0, 2 * np.pi, 2049)
        poses = [self.poses(*self.angles(p)) for p in polar]
        centres, frames = np.array([p[0] for p in poses]), np.array([p[1] for p in poses])
        slope = lambda x: CubicSpline(polar, x, bc_type="periodic").derivative()(polar)  # noqa: E731
        centres[-1], frames[-1] = centres[0], frames[0]
        speeds, turning = slope(centres), np.einsum("tkij,tklj->tkil", slope(frames), frames)  # dR R^T
        spins = np.stack([turning[..., 2, 1], turning[..., 0, 2], turning[..., 1, 0]], axis=-1)
        local = np.einsum("tkij,tki->tkj", frames, spins)
        inertia = self.MASS * (speeds**2).sum(axis=(1, 2)) + (local**2 * self.MOMENTS).sum(axis=(1, 2))
        self.inertia = CubicSpline(polar, np.append(inertia[:-1], inertia[0]), bc_type="periodic")
        self.potential = CubicSpline(polar, -self.MASS * (centres @ np.asarray(gravity)).sum(axis=1), bc_type="periodic")

    @staticmethod
    def angles(polar):
        """(a, b) on the curve."""
        c, s = np.cos(polar), np.sin(polar)
        value = lambda r: np.cos(r * c) * np.cos(r * s) + np.cos(r * c) + np.cos(r * s)  # noqa: E731
        radius = brentq(value, 1.0, 2.5, xtol=1e-15)
        return radius * c, radius * s

    def poses(self, a, b):
        """(centres (5, 3), frames (5, 3, 3): along the link, across, joint axis; end of the last link) of the moving links."""
        point, edge, axis, centres, frames = self.CORNERS[0], self.edges[5], self.axes[0], [], []
        for k in range(5):
            edge = Rotation.from_rotvec((a, b)[k % 2] * axis).apply(edge)
            frame = np.stack([edge, np.cross(axis, edge), axis], axis=1)
            centres.append(point + edge / 2)
            frames.append(frame)
            point, axis = point + edge, self.twist[k] * frame[:, 1]
        return np.array(centres), np.array(frames), point

    def integrate(self, times):
        """The polar angle at the times, from rest in the cube."""
        bend, push = self.inertia.derivative(), self.potential.derivative()

        def slope(_, y):
            return [y[1], -(push(y[0]) + 0.5 * bend(y[0]) * y[1] ** 2) / self.inertia(y[0])]

        return solve_ivp(slope, (0, times[-1]), [np.pi / 4, 0.0], "DOP853", t_eval=times, rtol=1e-10, atol=1e-10).y[0]


def oscillator(times, start, speed, mass, stiffness, damping, rest=0.0):
    """Position of the damped oscillator (less than critical) that starts at ``start``."""
    decay, pace = damping / (2 * mass), math.sqrt(stiffness / mass - (damping / (2 * mass)) ** 2)
    x = start - rest
    return rest + np.exp(-decay * times) * (x * np.cos(pace * times) + (speed + decay * x) / pace * np.sin(pace * times))


def free_precession_period(moments, spin):
    """Landau and Lifshitz, Mechanics, section 37, I1 < I2 < I3 and L^2 > 2 E I2: period of the spin in the body frame."""
    i1, i2, i3 = moments
    square, twice = np.sum((moments * spin) ** 2), moments @ spin**2
    assert i1 < i2 < i3 and square > twice * i2
    k2 = (i2 - i1) * (twice * i3 - square) / ((i3 - i2) * (square - twice * i1))
    return 4 * ellipk(k2) * math.sqrt(i1 * i2 * i3 / ((i3 - i2) * (square - twice * i1)))


def slider_crank(theta, crank, rod):
    """(angle of the rod, position of the slider) for the crank's angle."""
    along = np.sqrt(rod**2 - (crank * np.sin(theta)) ** 2)
    return np.arctan2(-crank * np.sin(theta), along), crank * np.cos(theta) + along


def four_bar(theta, crank, coupler, rocker, ground):
    """(angle of the coupler, angle of the rocker) for the crank's angle, open assembly; pivots at 0 and ``ground``."""
    pin = crank * np.exp(1j * theta)
    diagonal = ground - pin
    length = abs(diagonal)
    lift = np.arccos((coupler**2 + length**2 - rocker**2) / (2 * coupler * length))
    coupling = np.angle(diagonal) + lift
    return coupling, np.angle(pin + coupler * np.exp(1j * coupling) - ground)


class DrivenLinks:
    """Planar bodies whose poses follow the angle of a crank that turns at a constant speed; gravity along -y.
    ``poses(theta)``: (centres as complex numbers, angles)."""

    def __init__(self, poses, speed, masses, moments):
        self.poses, self.speed, self.masses, self.moments = poses, speed, np.array(masses), np.array(moments)

    def motion(self, theta):
        """(velocities, rates)."""
        return self.speed * slope_of(lambda t: self.poses(t)[0], theta), self.speed * slope_of(lambda t: self.poses(t)[1], theta)

    def energy(self, theta):
        velocities, rates = self.motion(theta)
        return 0.5 * (self.masses @ abs(velocities) ** 2 + self.moments @ rates**2) + G * self.masses @ self.poses(theta)[0].imag

    def torque(self, theta):
        """What drives the crank: its power is the change of the energy."""
        return slope_of(self.energy, theta, 1e-4)

    def scene(self, theta):
        scene, (centres, angles), (velocities, rates) = empty_scene((0, -G, 0)), self.poses(theta), self.motion(theta)
        for k, mass in enumerate(self.masses):
            add_planar(scene, centres[k], angles[k], mass, self.moments[k], velocities[k], rates[k])
        return scene

    def check(self, sim, motor, theta, turns):
        """Positions after every step within 1e-6 m, torques within 1e-3 of the largest."""
        scale = max(abs(self.torque(t)) for t in np.linspace(0, 2 * np.pi, 50))
        for n in range(1, round(turns * 2 * np.pi / self.speed / sim.dt)):
            sim.step()
            now = theta + self.speed * n * sim.dt
            assert np.abs(planar(sim.positions) - self.poses(now)[0]).max() < 1e-6
            if n % 20 == 5:
                assert abs(sim.joints.motor_torque[motor] - self.torque(now - self.speed * sim.dt / 2)) < 1e-3 * scale


def slope_of(function, x, step=1e-5):
    """Derivative of a smooth function, to fourth order."""
    f = [np.asarray(function(x + k * step)) for k in (-2, -1, 1, 2)]
    return (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * step)


# --- scenes and measurements
def simulate(scene, dt, **options):
    return gv.Simulation(scene, dt, **{"precision": "double", "threads": 1, **options})


def steps(sim, seconds):
    for _ in range(round(seconds / sim.dt)):
        sim.step()


def empty_scene(gravity=(0.0, 0.0, 0.0)):
    """A scene whose bodies do not touch one another."""
    scene = gv.Scene(gravity=gravity)
    scene.ignore(0, 0)
    return scene


def add_planar(scene, centre, angle, mass, moment, velocity=0j, rate=0.0):
    """A body in the x-y plane; centre and velocity as complex numbers."""
    return scene.add_body(
        gv.Sphere(0.01),
        (centre.real, centre.imag, 0),
        quaternion=(math.cos(angle / 2), 0, 0, math.sin(angle / 2)),
        velocity=(velocity.real, velocity.imag, 0),
        angular_velocity=(0, 0, rate),
        mass=mass,
        inertia=(moment, moment, moment),
    )


def add_hinge(scene, a, b, point, **options):
    point = complex(point)
    return scene.add_joint(gv.Revolute(a, b, (point.real, point.imag, 0), (0, 0, 1), **options))


def planar(positions):
    return positions[:, 0] + 1j * positions[:, 1]


def slider(mass=2.0, gravity=0.0, speed=0.0, dt=1e-3, **options):
    """(sim, joint) of one body on a slide along +z."""
    scene = empty_scene((0, 0, -gravity))
    body = scene.add_body(gv.Sphere(0.05), velocity=(0, 0, speed), mass=mass)
    joint = scene.add_joint(gv.Prismatic(None, body, (0.1, 0.2, 0.0), (0, 0, 1), **options))
    return simulate(scene, dt), joint


def wheel(moment=0.5, speed=0.0, dt=1e-3, **options):
    """(sim, joint) of one body on a hinge along +z through its centre."""
    scene = empty_scene()
    body = scene.add_body(gv.Sphere(0.05), mass=1.0, inertia=(moment,) * 3, angular_velocity=(0, 0, speed))
    joint = scene.add_joint(gv.Revolute(None, body, (0, 0, 0.3), (0, 0, 1), **options))
    return simulate(scene, dt), joint


def energy(sim, masses, moments, gravity):
    """Kinetic and potential energy, J: moments (N, 3) about the body axes."""
    local = np.einsum("nij,ni->nj", matrices(sim.quaternions), sim.angular_velocities)
    kinetic = 0.5 * (masses * (sim.velocities**2).sum(axis=1)).sum() + 0.5 * (moments * local**2).sum()
    return kinetic, -(masses * (sim.positions @ np.asarray(gravity))).sum()


def momenta(sim, masses, moments):
    """Momentum and angular momentum about the origin of all bodies."""
    turn = matrices(sim.quaternions)
    spin = np.einsum("nij,nj,nkj,nk->ni", turn, moments, turn, sim.angular_velocities)
    p = masses[:, None] * sim.velocities
    return p.sum(axis=0), (np.cross(sim.positions, p) + spin).sum(axis=0)


# --- pendulums
def swinging_rod(h, seconds=1.0, angle=0.3, length=1.0):
    """Angle and rate of a rod on a hinge, from rest at an angle from +x, after some time, and those of the integration."""
    links = PlanarLinks([0], [[length / 2]], [3.0], [0.4], -1j * G)
    scene = empty_scene((0, -G, 0))
    add_planar(scene, links.centres(np.array([angle]))[0], angle, 3.0, 0.4)
    hinge = add_hinge(scene, None, 0, 0)
    sim = simulate(scene, h)
    steps(sim, seconds)
    angles, rates = links.integrate([angle], [0.0], [seconds])
    return (angle + sim.joints.angle[hinge], sim.angular_velocities[0, 2]), (angles[0, 0], rates[0, 0])


def test_error_of_a_pendulum_falls_with_the_square_of_the_step():
    found = np.array([np.subtract(*swinging_rod(h)) for h in (2e-3, 1e-3, 5e-4, 2.5e-4)])
    orders = np.log2(np.abs(found[:-1] / found[1:]))
    assert (abs(orders - 2) < 0.2).all(), orders
    assert abs(orders[-1] - 2).max() < 0.1, orders  # and nearer to it the smaller the step
    assert np.abs(found[1]).max() < 1e-4


def test_double_pendulum():
    """Two different rods from an angle at which the motion is wild; largest error over 2 s."""
    lengths, masses, moments = (1.0, 0.7), (2.0, 1.5), (0.2, 0.08)
    links, start = double_pendulum(lengths, masses, moments), np.array([0.4, 1.1])
    scene = empty_scene((0, -G, 0))
    for k, centre in enumerate(links.centres(start)):
        add_planar(scene, centre, start[k], masses[k], moments[k])
    add_hinge(scene, None, 0, 0)
    add_hinge(scene, 0, 1, lengths[0] * np.exp(1j * start[0]))
    sim = simulate(scene, 1e-4)
    times = np.arange(0, 2.001, 0.02)
    wanted, _ = links.integrate(start, [0, 0], times)
    worst = 0.0
    for angles in wanted:
        worst = max(worst, np.abs(planar(sim.positions) - links.centres(angles)).max())
        steps(sim, 0.02)
    assert worst < 1e-4 * sum(lengths)  # the bar is 1e-3


# --- chains
def chain(n, length=0.1, mass=0.1, payload=1000.0, slope=0.3):
    """A chain of n links on ball joints from the origin, straight at an angle below the horizontal, a heavy ball at its end."""
    scene, along = empty_scene((0, 0, -G)), np.array([math.cos(slope), 0.0, -math.sin(slope)])
    moments = np.array([mass * 0.01**2, mass * length**2 / 12, mass * length**2 / 12])
    turn = (math.cos(slope / 2), 0, math.sin(slope / 2), 0)
    for k in range(n):
        scene.add_body(gv.Sphere(0.01), (k + 0.5) * length * along, quaternion=turn, mass=mass, inertia=moments)
        scene.add_joint(gv.Spherical(k - 1 if k else None, k, k * length * along))
    ball = 0.4 * payload * mass * 0.1**2
    scene.add_body(gv.Sphere(0.01), (n * length + 0.1) * along, quaternion=turn, mass=payload * mass, inertia=(ball,) * 3)
    scene.add_joint(gv.Spherical(n - 1, n, n * length * along))
    masses = np.append(np.full(n, mass), payload * mass)
    return scene, masses, np.vstack([np.tile(moments, (n, 1)), np.full(3, ball)])


def swing_chain(n, seconds, length=0.1, slope=0.3):
    """(largest violation in links, largest change of the energy as a share of the potential energy exchanged)."""
    scene, masses, moments = chain(n, length, slope=slope)
    sim = simulate(scene, 1e-3)
    gravity = (0, 0, -G)
    kinetic, potential = energy(sim, masses, moments, gravity)
    total, lowest, changes, violation = kinetic + potential, potential, [], 0.0
    for _ in range(round(seconds / sim.dt)):
        violation = max(violation, sim.step().joint_violation)
        kinetic, now = energy(sim, masses, moments, gravity)
        lowest = min(lowest, now)
        changes.append(abs(kinetic + now - total))
    return violation / length, max(changes) / (potential - lowest)


def test_chain_of_a_hundred_links_with_a_heavy_load():
    violation, change = swing_chain(100, 1.0)
    assert violation <= 1e-5
    assert change <= 0.01


@pytest.mark.slow
@pytest.mark.parametrize("slope", [0.3, 0.8])
def test_chain_of_a_hundred_links_with_a_heavy_load_for_ten_seconds(slope):
    """The rods zigzag under the tension T at sqrt(12 T / (m l)): nearly 2 / h at the bottom of the swing from slope 0.3."""
    violation, change = swing_chain(100, 10.0, slope=slope)
    assert violation <= 1e-5
    assert change <= 0.01


def test_violation_does_not_grow_with_the_chain():
    """Ten times more links: the same bar, and not ten times the violation (both may be at rounding)."""
    short, long = swing_chain(10, 0.3)[0], swing_chain(100, 0.3)[0]
    assert long <= max(3 * short, 1e-9)


@pytest.mark.parametrize("payload", [1000.0, 8000.0])
def test_taut_chain_is_stable_whatever_the_step(payload):
    """A hanging chain whose links zigzag a little: sqrt(12 T / (m l)) h is 1.1 and 3.1. It must not gain energy."""
    scene, masses, moments = chain(10, payload=payload, slope=math.pi / 2)
    sim = simulate(scene, 1e-3)
    sim.angular_velocities[:10, 1] = 1e-3 * (-1.0) ** np.arange(10)
    for _ in range(1000):
        sim.step()
        assert np.abs(sim.angular_velocities).max() < 1e-2


def test_hanging_chain_carries_what_is_below():
    n, mass = 20, 0.1
    scene, masses, _ = chain(n, mass=mass, payload=50.0, slope=math.pi / 2)
    sim = simulate(scene, 1e-3)
    steps(sim, 0.2)
    below = masses[::-1].cumsum()[::-1] * G
    assert np.allclose(sim.joints.force, below[:, None] * np.array([0, 0, 1.0]), rtol=0, atol=1e-6 * below[0])
    assert np.allclose(sim.joints.torque, 0, atol=1e-6 * below[0])
    assert np.abs(sim.velocities).max() < 1e-6


# --- closed loops
ANDREWS_STEP, ANDREWS_BAR = 2.5e-6, 1e-5  # s, rad


def test_our_reading_of_andrews_mechanism_gives_the_published_angles():
    """The oracle of the next test against the end values of the test set."""
    links, _, spring = andrews()
    start = np.linalg.solve(ANDREWS_ANGLES, ANDREWS["start"])
    assert np.abs(links.gaps(start)).max() < 1e-15
    angles, _ = links.integrate(start, np.zeros(7), [0.03], andrews_loads(spring))
    assert np.allclose(ANDREWS_ANGLES @ angles[0], ANDREWS["end"], rtol=0, atol=1e-7)


def andrews_scene():
    """(scene, the hinges whose angles are those of the book)."""
    links, points, spring = andrews()
    start = np.linalg.solve(ANDREWS_ANGLES, ANDREWS["start"])
    pivots, unit = ANDREWS["pivots"], np.exp(1j * start)
    scene = empty_scene()
    for k, centre in enumerate(links.centres(start)):
        add_planar(scene, centre, start[k], ANDREWS["masses"][k], ANDREWS["moments"][k])
    beta = add_hinge(scene, None, 0, pivots["O"], motor=gv.ForceMotor(ANDREWS["torque"]))
    theta = add_hinge(scene, 0, 1, points["crank"] * unit[0])
    gamma = add_hinge(scene, None, 2, pivots["B"])
    delta = add_hinge(scene, None, 4, pivots["A"])
    phi = add_hinge(scene, 4, 3, pivots["A"] + points["4-5"] * unit[4])
    epsilon = add_hinge(scene, None, 6, pivots["A"])
    omega = add_hinge(scene, 6, 5, pivots["A"] + points["6-7"] * unit[6])
    common = points["P"][0] @ unit
    for other in (2, 3, 5):
        add_hinge(scene, 1, other, common)
    end, fixed = pivots["B"] + spring * unit[2], pivots["C"]
    scene.add_joint(
        gv.Spring(
            None,
            2,
            (fixed.real, fixed.imag, 0),
            point_b=(end.real, end.imag, 0),
            stiffness=ANDREWS["stiffness"],
            rest=ANDREWS["rest"],
        )
    )
    return scene, [beta, theta, gamma, phi, delta, omega, epsilon]


def test_andrews_squeezing_mechanism():
    """Seven bodies, ten hinges in three loops (nine of the 50 conditions are redundant in space)."""
    scene, hinges = andrews_scene()
    sim = simulate(scene, ANDREWS_STEP)
    start = np.array(ANDREWS["start"])
    links, _, spring = andrews()
    times, violation = np.array([0.01, 0.02, 0.03]), 0.0
    wanted, _ = links.integrate(np.linalg.solve(ANDREWS_ANGLES, start), np.zeros(7), times, andrews_loads(spring))
    for angles in wanted @ ANDREWS_ANGLES.T:
        for _ in range(round(0.01 / sim.dt)):
            violation = max(violation, sim.step().joint_violation)
        assert np.abs(start + sim.joints.angle[hinges] - angles).max() < ANDREWS_BAR
    assert np.abs(start + sim.joints.angle[hinges] - ANDREWS["end"]).max() < ANDREWS_BAR
    assert violation < 1e-5 * 7e-3  # of the shortest link, m


def bricard_scene(gravity):
    model, scene = Bricard(gravity), empty_scene(gravity)
    centres, frames, _ = model.poses(np.pi / 2, np.pi / 2)
    turns = np.roll(Rotation.from_matrix(frames).as_quat(), 1, axis=-1)
    for centre, turn in zip(centres, turns):
        scene.add_body(gv.Box((0.5, 0.05, 0.05)), centre, quaternion=turn, mass=model.MASS, inertia=model.MOMENTS)
    for k in range(6):
        ends = k - 1 if k else None, k if k < 5 else None
        scene.add_joint(gv.Revolute(*ends, model.CORNERS[k], model.axes[k]))
    return model, scene


def test_bricard_oracle_closes():
    """The curve of the angles closes the loop everywhere, which is what makes this overconstrained linkage move."""
    model = Bricard((0, -G, 0))
    for polar in np.linspace(0, 6, 50):
        a, b = model.angles(polar)
        _, frames, end = model.poses(a, b)
        assert np.linalg.norm(end - model.CORNERS[5]) < 1e-12
        assert abs(frames[4, :, 0] @ model.edges[5] - np.cos(b)) < 1e-12  # the angle at the last joint


def test_bricard_six_bar():
    """Redundant: 6 hinges take 30 of 30 freedoms, one is left. 10 s against the integration in its one coordinate."""
    gravity = np.array([0, -G, 0])
    model, scene = bricard_scene(gravity)
    sim = simulate(scene, 1e-3)
    masses, moments = np.full(5, model.MASS), np.tile(model.MOMENTS, (5, 1))
    start = sum(energy(sim, masses, moments, gravity))
    times = np.arange(0, 10.001, 0.05)
    potentials, changes, off = [], [], []
    for polar in model.integrate(times):
        off.append(np.abs(sim.positions - model.poses(*model.angles(polar))[0]).max())
        kinetic, potential = energy(sim, masses, moments, gravity)
        potentials.append(potential)
        changes.append(abs(kinetic + potential - start))
        for _ in range(50):
            assert sim.step().joint_violation < 1e-4
    assert np.isfinite(sim.positions).all()
    exchanged = np.ptp(potentials)
    assert exchanged > 10.0  # J: it moved
    assert max(changes) < 1e-3 * exchanged
    assert max(off[:41]) < 1e-4  # m, in the first two seconds
    assert max(off) < 1e-3


def test_door_on_three_hinges():
    """Redundant: how the hinges share the load is not determined, their sum is. Then a torque swings it open."""
    scene, mass, width, height = empty_scene((0, 0, -G)), 30.0, 0.9, 2.0
    moments = mass / 12 * np.array([height**2, width**2 + height**2, width**2])
    door = scene.add_body(gv.Box((width / 2, 0.02, height / 2)), (width / 2, 0, height / 2), mass=mass, inertia=moments)
    places = np.array([(0, 0, z) for z in (0.2, 1.0, 1.8)])
    hinges = [scene.add_joint(gv.Revolute(None, door, place, (0, 0, 1))) for place in places]
    sim = simulate(scene, 1e-3)
    for _ in range(500):
        sim.step()
        table = sim.joints
        force, torque = table.force[hinges], table.torque[hinges]
        assert np.allclose(force.sum(axis=0), (0, 0, mass * G), rtol=0, atol=YIELD * mass * G)
        about_origin = (np.cross(places, force) + torque).sum(axis=0)
        assert np.allclose(about_origin, (0, -mass * G * width / 2, 0), rtol=0, atol=YIELD * mass * G)
        assert np.abs(force).max() < 10 * mass * G and np.abs(torque).max() < 10 * mass * G
    assert np.abs(sim.velocities).max() < 1e-9
    sim.torques[door] = (0, 0, 5.0)
    steps(sim, 1.0)
    swing = 0.5 * 5.0 / (moments[2] + mass * width**2 / 4)
    assert np.allclose(sim.joints.angle[hinges], swing, rtol=1e-5)


# --- rotation in space
def test_heavy_top_precesses_steadily():
    """J W^2 cos a - C w3 W + m g l = 0 with moments J about the tip, C about the axis: the slow root, near m g l / (C w3)."""
    mass, arm, tilt, spin = 0.5, 0.1, 0.6, 250.0
    across, along = 4e-4, 6e-4
    about_tip = across + mass * arm**2
    square = math.sqrt((along * spin) ** 2 - 4 * about_tip * math.cos(tilt) * mass * G * arm)
    pace = (along * spin - square) / (2 * about_tip * math.cos(tilt))
    assert 1.01 < pace / (mass * G * arm / (along * spin)) < 1.2  # the correction matters
    axis = np.array([math.sin(tilt), 0.0, math.cos(tilt)])
    rate = np.array([0, 0, pace]) + (spin - pace * math.cos(tilt)) * axis
    scene = empty_scene((0, 0, -G))
    top = scene.add_body(
        gv.Sphere(0.01),
        arm * axis,
        quaternion=(math.cos(tilt / 2), 0, math.sin(tilt / 2), 0),
        velocity=np.cross(rate, arm * axis),
        angular_velocity=rate,
        mass=mass,
        inertia=(across, across, along),
    )
    scene.add_joint(gv.Spherical(None, top, (0, 0, 0)))
    sim = simulate(scene, 1e-4)
    seconds = 1.0
    steps(sim, seconds)
    x, y, z = sim.positions[top] / arm
    turned = pace * seconds
    assert abs(z - math.cos(tilt)) < 1e-3
    assert abs((np.arctan2(y, x) - turned + np.pi) % (2 * np.pi) - np.pi) < 1e-3 * turned


def test_free_rotation_beside_a_joint():
    """A joint elsewhere: free bodies are moved by the same second-order scheme. Period by elliptic integrals, momentum kept."""
    moments, spin = np.array([0.02, 0.05, 0.06]), np.array([1.0, 10.0, 2.0])
    scene = empty_scene()
    free = scene.add_body(gv.Sphere(0.1), mass=1.0, inertia=moments, angular_velocity=spin)
    other = scene.add_body(gv.Sphere(0.1), (5, 0, 0))
    scene.add_joint(gv.Revolute(None, other, (5, 0, 0)))
    sim = simulate(scene, 1e-3)
    period = free_precession_period(moments, spin)
    momentum, twice = moments * spin, moments @ spin**2
    times, rates = [], []
    for _ in range(round(2.6 * period / sim.dt)):
        sim.step()
        turn = matrices(sim.quaternions[free])
        local = turn.T @ sim.angular_velocities[free]
        times.append(sim.time)
        rates.append(local[1])
        assert np.linalg.norm(turn @ (moments * local) - momentum) < 1e-3 * np.linalg.norm(momentum)
        assert abs(moments @ local**2 - twice) < 1e-3 * twice
    times, rates = np.array(times), np.array(rates)
    k = np.flatnonzero((rates[:-1] < 0) & (rates[1:] >= 0))
    crossings = times[k] - rates[k] * (times[k + 1] - times[k]) / (rates[k + 1] - rates[k])
    assert len(crossings) >= 2
    assert np.allclose(np.diff(crossings), period, rtol=1e-3)


# --- driven mechanisms
def test_slider_crank_at_constant_speed():
    crank, rod, start = 0.1, 0.35, 0.4

    def poses(theta):
        angle, x = slider_crank(theta, crank, rod)
        pin = crank * np.exp(1j * theta)
        return np.array([pin / 2, pin + rod / 2 * np.exp(1j * angle), x + 0j]), np.array([theta, angle, 0.0])

    model = DrivenLinks(poses, 20.0, [1.0, 0.8, 1.5], [2e-3, 9e-3, 1e-3])
    scene, end = model.scene(start), slider_crank(start, crank, rod)[1]
    motor = add_hinge(scene, None, 0, 0, motor=gv.SpeedMotor(model.speed))
    add_hinge(scene, 0, 1, crank * np.exp(1j * start))
    add_hinge(scene, 1, 2, end)
    slide = scene.add_joint(gv.Prismatic(None, 2, (end, 0, 0), (1, 0, 0), start=end))
    sim = simulate(scene, 2.5e-4)
    model.check(sim, motor, start, turns=2.2)
    assert abs(sim.joints.slide[slide] - slider_crank(start + model.speed * sim.time, crank, rod)[1]) < 1e-6


def test_four_bar_at_constant_speed():
    """A crank and rocker."""
    crank, coupler, rocker, ground = bars = (0.1, 0.4, 0.3, 0.45)
    start = 0.7

    def poses(theta):
        middle, far = four_bar(theta, *bars)
        pin = crank * np.exp(1j * theta)
        centres = [pin / 2, pin + coupler / 2 * np.exp(1j * middle), ground + rocker / 2 * np.exp(1j * far)]
        return np.array(centres), np.array([theta, middle, far])

    model = DrivenLinks(poses, 15.0, [0.5, 1.0, 0.8], [5e-4, 1.4e-2, 6e-3])
    scene, angles = model.scene(start), poses(start)[1]
    motor = add_hinge(scene, None, 0, 0, motor=gv.SpeedMotor(model.speed))
    pin = crank * np.exp(1j * start)
    add_hinge(scene, 0, 1, pin)
    add_hinge(scene, 1, 2, pin + coupler * np.exp(1j * angles[1]))
    swing = add_hinge(scene, None, 2, ground, start=angles[2])
    sim = simulate(scene, 2.5e-4)
    model.check(sim, motor, start, turns=2.2)
    assert abs(sim.joints.angle[swing] - poses(start + model.speed * sim.time)[1][2]) < 1e-5


# --- every kind of joint
class Marks:
    """Points and directions that ride on the bodies of a simulation, given in the world where the bodies lie at the start."""

    def __init__(self, sim):
        self.sim, self.place, self.turn = sim, sim.positions.copy(), matrices(sim.quaternions)

    def direction(self, body, vector):
        return matrices(self.sim.quaternions[body]) @ self.turn[body].T @ vector

    def point(self, body, point):
        return self.sim.positions[body] + self.direction(body, point - self.place[body])

    def apart(self, a, b, point, point_b=None):
        return self.point(b, point if point_b is None else point_b) - self.point(a, point)

    def twisted(self, a, b):
        """Zero where b has turned with a."""
        return np.concatenate([self.direction(b, e) - self.direction(a, e) for e in np.eye(3)])

    def angle(self, a, b, axis):
        """Turn of b relative to a about an axis that both share, in (-pi, pi]."""
        side = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
        side /= np.linalg.norm(side)
        of_a, of_b = self.direction(a, side), self.direction(b, side)
        return np.arctan2(np.cross(of_a, of_b) @ self.direction(a, axis), of_a @ of_b)


def random_bodies(rng, n, speed):
    """(scene with n free bodies about a metre apart, masses, moments), all at random; velocities of about ``speed``."""
    scene, masses, moments = empty_scene(), rng.uniform(1, 2, n), rng.uniform(0.06, 0.1, (n, 3))
    turns = random_quaternions(rng, n)
    for k in range(n):
        motion = dict(zip(("velocity", "angular_velocity"), speed * rng.normal(size=(2, 3))))
        scene.add_body(gv.Sphere(0.05), rng.uniform(-0.5, 0.5, 3), quaternion=turns[k], mass=masses[k], inertia=moments[k], **motion)
    return scene, masses, moments


PITCH, RATIO, RADIUS = 0.3, -2.0, 0.15
POINT, OTHER = np.array([0.3, -0.2, 0.4]), np.array([-0.3, 0.5, 0.1])
AXIS = np.array([0.48, 0.6, 0.64])
SIDE = np.array([0.8, 0.0, -0.6])
TRACK = np.cross(AXIS, SIDE)
ROD, END = 0.7, POINT + 0.7 * SIDE  # a rod square to the axis
ON_TRACK = END + 0.2 * TRACK
assert abs(AXIS @ SIDE) < 1e-15 and abs(AXIS @ AXIS - 1) < 1e-15

# kind: (joints between bodies 0 and 1 (and 2), freedoms it takes, what must be zero)
PAIRS = {
    "Spherical": (lambda: [gv.Spherical(0, 1, POINT)], 3, lambda m: m.apart(0, 1, POINT)),
    "Revolute": (
        lambda: [gv.Revolute(0, 1, POINT, AXIS)],
        5,
        lambda m: (m.apart(0, 1, POINT), m.direction(0, AXIS) - m.direction(1, AXIS)),
    ),
    "Prismatic": (
        lambda: [gv.Prismatic(0, 1, POINT, AXIS)],
        5,
        lambda m: (np.cross(m.apart(0, 1, POINT), m.direction(0, AXIS)), m.twisted(0, 1)),
    ),
    "Cylindrical": (
        lambda: [gv.Cylindrical(0, 1, POINT, AXIS)],
        4,
        lambda m: (np.cross(m.apart(0, 1, POINT), m.direction(0, AXIS)), m.direction(0, AXIS) - m.direction(1, AXIS)),
    ),
    "Universal": (
        lambda: [gv.Universal(0, 1, POINT, AXIS, axis_b=SIDE)],
        4,
        lambda m: (m.apart(0, 1, POINT), [m.direction(0, AXIS) @ m.direction(1, SIDE)]),
    ),
    "Fixed": (lambda: [gv.Fixed(0, 1, POINT)], 6, lambda m: (m.apart(0, 1, POINT), m.twisted(0, 1))),
    "Planar": (
        lambda: [gv.Planar(0, 1, POINT, AXIS)],
        3,
        lambda m: ([m.apart(0, 1, POINT) @ m.direction(0, AXIS)], m.direction(0, AXIS) - m.direction(1, AXIS)),
    ),
    "Distance": (
        lambda: [gv.Distance(0, 1, POINT, point_b=OTHER)],
        1,
        lambda m: [np.linalg.norm(m.apart(0, 1, POINT, OTHER)) - np.linalg.norm(OTHER - POINT)],
    ),
    "RevoluteSpherical": (
        lambda: [gv.RevoluteSpherical(0, 1, POINT, AXIS, point_b=END)],
        2,
        lambda m: [np.linalg.norm(m.apart(0, 1, POINT, END)) - ROD, m.apart(0, 1, POINT, END) @ m.direction(0, AXIS)],
    ),
    "RevoluteTranslational": (
        lambda: [gv.RevoluteTranslational(0, 1, POINT, AXIS, point_b=ON_TRACK, slide=TRACK)],
        4,
        lambda m: (
            [m.apart(0, 1, POINT, ON_TRACK) @ m.direction(1, SIDE) - ROD, m.apart(0, 1, POINT, ON_TRACK) @ m.direction(0, AXIS)],
            m.direction(0, AXIS) - m.direction(1, AXIS),
        ),
    ),
    "PointOnLine": (
        lambda: [gv.PointOnLine(0, 1, POINT, AXIS)],
        2,
        lambda m: np.cross(m.apart(0, 1, POINT), m.direction(0, AXIS)),
    ),
    "Screw": (
        lambda: [gv.Screw(0, 1, POINT, AXIS, pitch=PITCH)],
        5,
        lambda m: (
            np.cross(m.apart(0, 1, POINT), m.direction(0, AXIS)),
            m.direction(0, AXIS) - m.direction(1, AXIS),
            [m.apart(0, 1, POINT) @ m.direction(0, AXIS) - PITCH * m.angle(0, 1, AXIS) / (2 * np.pi)],
        ),
    ),
    "Gear": (
        lambda: [gv.Revolute(0, 1, POINT, AXIS), gv.Revolute(0, 2, OTHER, SIDE), gv.Gear(0, 1, RATIO)],
        11,
        lambda m: (m.apart(0, 1, POINT), m.apart(0, 2, OTHER), [m.angle(0, 2, SIDE) - RATIO * m.angle(0, 1, AXIS)]),
    ),
    "SlideGear": (
        lambda: [gv.Prismatic(0, 1, POINT, AXIS), gv.Prismatic(0, 2, OTHER, SIDE), gv.SlideGear(0, 1, RATIO)],
        11,
        lambda m: (
            m.twisted(0, 1),
            m.twisted(0, 2),
            [m.apart(0, 2, OTHER) @ m.direction(0, SIDE) - RATIO * m.apart(0, 1, POINT) @ m.direction(0, AXIS)],
        ),
    ),
    "RackPinion": (
        lambda: [gv.Revolute(0, 1, POINT, AXIS), gv.Prismatic(0, 2, OTHER, SIDE), gv.RackPinion(0, 1, RADIUS)],
        11,
        lambda m: (
            m.apart(0, 1, POINT),
            m.twisted(0, 2),
            [m.apart(0, 2, OTHER) @ m.direction(0, SIDE) - RADIUS * m.angle(0, 1, AXIS)],
        ),
    ),
    "Spring": (lambda: [gv.Spring(0, 1, POINT, point_b=OTHER, stiffness=30.0, damping=0.5, rest=0.4)], 0, lambda m: [0.0]),
    "RotationalSpring": (lambda: [gv.RotationalSpring(0, 1, POINT, AXIS, stiffness=2.0, damping=0.1, rest=0.5)], 0, lambda m: [0.0]),
    "Bushing": (
        lambda: [gv.Bushing(0, 1, POINT, AXIS, stiffness=(50, 60, 70), damping=1.0, turn_stiffness=(2, 3, 4), turn_damping=0.1)],
        0,
        lambda m: [0.0],
    ),
}


def test_every_kind_of_joint_is_here():
    from gravel.joints.kinds import KINDS

    assert {kind.__name__ for kind in KINDS} == set(PAIRS)


def jointed_bodies(kind, seed, speed=0.0):
    rng = np.random.default_rng(seed)
    scene, masses, moments = random_bodies(rng, 3 if kind in ("Gear", "SlideGear", "RackPinion") else 2, speed)
    for joint in PAIRS[kind][0]():
        scene.add_joint(joint)
    return rng, scene, masses, moments


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("seed", [0, 1])
def test_joint_holds_what_it_must_and_conserves_momenta(kind, seed):
    """Random velocities are put in, which the joint does not allow as they are, then random loads for a while, then none. In the
    first step the bodies may still move apart as those velocities want."""
    rng, scene, masses, moments = jointed_bodies(kind, seed)
    sim = simulate(scene, 1e-3)
    sim.velocities[:], sim.angular_velocities[:] = rng.normal(size=(2, len(masses), 3)) * 0.5
    marks, (momentum, spin) = Marks(sim), momenta(sim, masses, moments)
    wrong = lambda: np.abs(np.hstack(PAIRS[kind][2](marks))).max()  # noqa: E731
    scale, fastest = np.abs(masses[:, None] * sim.velocities).sum(), np.linalg.norm(sim.velocities, axis=1).sum()
    for n in range(100):
        sim.step()
        assert wrong() < (1e-6 if n else fastest * sim.dt)
        now = momenta(sim, masses, moments)
        assert np.abs(now[0] - momentum).max() < 1e-10 * scale
        assert np.abs(now[1] - spin).max() < 1e-10 * scale
    sim.forces[:], sim.torques[:] = rng.normal(size=(2, len(masses), 3)) * np.array([2.0, 0.2])[:, None, None]
    for n in range(100):
        sim.step()
        assert wrong() < 1e-6
        assert np.abs(momenta(sim, masses, moments)[0] - momentum - (n + 1) * sim.dt * sim.forces.sum(axis=0)).max() < 1e-9 * scale
    sim.forces[:], sim.torques[:] = 0, 0
    momentum, spin = momenta(sim, masses, moments)
    for _ in range(100):
        sim.step()
        assert wrong() < 1e-6
    now = momenta(sim, masses, moments)
    assert np.abs(now[0] - momentum).max() < 1e-10 * scale
    assert np.abs(now[1] - spin).max() < 1e-10 * scale


@pytest.mark.parametrize("kind", PAIRS)
def test_velocities_of_the_scene_are_made_to_fit_the_joints(kind):
    """From the first step on the joint holds, and the momenta are those that the scene's velocities had."""
    _, scene, masses, moments = jointed_bodies(kind, 2, speed=0.5)
    velocities = np.array(scene.bodies.velocity[: len(masses)], float)
    turn = matrices(np.array(scene.bodies.quaternion[: len(masses)]))
    spin = np.einsum("nij,nj,nkj,nk->ni", turn, moments, turn, velocities[:, 4:7])
    momentum = masses[:, None] * velocities[:, :3]
    about = (np.cross(scene.bodies.position[: len(masses)], momentum) + spin).sum(axis=0)
    sim = simulate(scene, 1e-3)
    marks = Marks(sim)
    for _ in range(5):
        sim.step()
        assert np.abs(np.hstack(PAIRS[kind][2](marks))).max() < 1e-6
        assert np.allclose(momenta(sim, masses, moments), (momentum.sum(axis=0), about), rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", PAIRS)
def test_joint_leaves_the_right_number_of_freedoms(kind):
    """The rank of the velocities' response to forces and torques on all bodies. Joints may yield a little, far less than what is free."""
    _, scene, masses, moments = jointed_bodies(kind, 5)
    loads = 6 * len(masses)

    def after(load):
        sim = simulate(scene, 1e-3)
        both = np.zeros(loads)
        if load is not None:
            both[load] = 1.0
        sim.forces[:], sim.torques[:] = both.reshape(2, -1, 3)
        sim.step()
        return np.concatenate([sim.velocities, sim.angular_velocities]).ravel()

    rest = after(None)
    response = np.array([after(k) - rest for k in range(loads)])
    values = np.linalg.svd(response, compute_uv=False)
    free = loads - PAIRS[kind][1]
    assert values[free - 1] > 1e-2 * values[0], values / values[0]
    assert free == loads or values[free] < 1e-4 * values[0], values / values[0]


@pytest.mark.parametrize("kind", ["Prismatic", "PointOnLine", "Cylindrical", "Screw", "Revolute", "Distance", "Spring"])
def test_coordinates_of_joints_are_those_of_the_geometry(kind):
    rng, scene, masses, _ = jointed_bodies(kind, 3)
    sim = simulate(scene, 1e-3)
    sim.velocities[:], sim.angular_velocities[:] = rng.normal(size=(2, len(masses), 3)) * 0.5
    marks, before = Marks(sim), []
    for _ in range(200):
        sim.step()
        before.append((sim.joints.slide[0], sim.joints.angle[0]))
    slide, angle = before[-1]
    if kind in ("Distance", "Spring"):
        assert abs(slide - np.linalg.norm(marks.apart(0, 1, POINT, OTHER))) < 1e-9
    elif kind != "Revolute":
        assert abs(slide - marks.apart(0, 1, POINT) @ marks.direction(0, AXIS)) < 1e-9
    else:
        assert np.isnan(slide)
    if kind in ("Revolute", "Cylindrical", "Screw"):
        assert abs(angle - marks.angle(0, 1, AXIS)) < 1e-9
        assert abs(angle) > 0.01
        assert abs(sim.joints.angle_speed[0] - (sim.angular_velocities[1] - sim.angular_velocities[0]) @ marks.direction(0, AXIS)) < 1e-6
    else:
        assert np.isnan(angle)


def run_rod(kind, point_b):
    """(sim, marks, d, its rate) of a jointed pair after 200 steps from random velocities; d from ``POINT`` on 0 to ``point_b`` on 1."""
    rng, scene, masses, _ = jointed_bodies(kind, 3)
    sim = simulate(scene, 1e-3)
    sim.velocities[:], sim.angular_velocities[:] = rng.normal(size=(2, len(masses), 3)) * 0.5
    marks = Marks(sim)
    steps(sim, 0.2)
    arms = [marks.point(k, p) - sim.positions[k] for k, p in enumerate((POINT, point_b))]
    speeds = sim.velocities + np.cross(sim.angular_velocities, arms)
    return sim, marks, marks.apart(0, 1, POINT, point_b), speeds[1] - speeds[0]


def test_coordinate_of_a_rod_is_its_angle_on_body_a():
    sim, marks, d, rate = run_rod("RevoluteSpherical", END)
    axis, side, track = (marks.direction(0, e) for e in (AXIS, SIDE, TRACK))
    turning = np.cross(d, rate) @ axis / (d @ d) - sim.angular_velocities[0] @ axis
    assert abs(sim.joints.angle[0] - np.arctan2(d @ track, d @ side)) < 1e-9 and abs(sim.joints.angle[0]) > 0.01
    assert abs(sim.joints.angle_speed[0] - turning) < 1e-6 and abs(turning) > 0.01
    assert np.isnan(sim.joints.slide[0])


def test_coordinates_of_a_slide_on_a_rod_are_those_of_the_geometry():
    sim, marks, d, rate = run_rod("RevoluteTranslational", ON_TRACK)
    axis, track, spins = marks.direction(0, AXIS), marks.direction(1, TRACK), sim.angular_velocities
    sliding = rate @ track + d @ np.cross(spins[1], track)
    assert abs(sim.joints.slide[0] - d @ track) < 1e-9 and abs(sim.joints.slide[0] - 0.2) > 0.01
    assert abs(sim.joints.slide_speed[0] - sliding) < 1e-9 and abs(sliding) > 0.01
    assert abs(sim.joints.angle[0] - marks.angle(0, 1, AXIS)) < 1e-9 and abs(sim.joints.angle[0]) > 0.01
    assert abs(sim.joints.angle_speed[0] - (spins[1] - spins[0]) @ axis) < 1e-6


# --- what joints and couplings transmit
def test_gear_divides_torque_and_speed():
    """Second = ratio times first: (I1 + ratio^2 I2) a1 = torque on the first + ratio times torque on the second."""
    moments, ratio, torques = (0.3, 0.8), -2.5, (1.5, 0.4)
    scene = empty_scene()
    for k in range(2):
        scene.add_body(gv.Sphere(0.05), (k, 0, 0), mass=1.0, inertia=(moments[k],) * 3)
        scene.add_joint(gv.Revolute(None, k, (k, 0, 0), (0, 0, 1)))
        scene.set_force(k, torque=(0, 0, torques[k]))
    scene.add_joint(gv.Gear(0, 1, ratio))
    sim = simulate(scene, 1e-3)
    steps(sim, 2.0)
    first = 2.0 * (torques[0] + ratio * torques[1]) / (moments[0] + ratio**2 * moments[1])
    assert np.allclose(sim.joints.angle[:2], (first, ratio * first), rtol=0, atol=1e-6)
    assert np.allclose(sim.joints.angle_speed[:2], (first, ratio * first), rtol=0, atol=1e-6)


def test_gear_counts_full_turns():
    scene = empty_scene()
    for k in range(2):
        scene.add_body(gv.Sphere(0.05), (k, 0, 0), mass=1.0, inertia=(0.5,) * 3, angular_velocity=(0, 0, (20.0, -50.0)[k]))
        scene.add_joint(gv.Revolute(None, k, (k, 0, 0), (0, 0, 1)))
    scene.add_joint(gv.Gear(0, 1, -2.5))
    sim = simulate(scene, 1e-3)
    steps(sim, 2.0)
    assert np.allclose(sim.joints.angle[:2], (40.0, -100.0), rtol=0, atol=1e-6)


def test_rack_and_pinion_turn_torque_into_force():
    """(I + m r^2) a = torque - r m g for a rack that is lifted."""
    moment, mass, radius, torque = 0.3, 2.0, 0.1, 3.0
    scene = empty_scene((0, 0, -G))
    scene.add_body(gv.Sphere(0.05), mass=1.0, inertia=(moment,) * 3)
    scene.add_body(gv.Sphere(0.05), (radius, 0, 0), mass=mass)
    scene.add_joint(gv.Revolute(None, 0, (0, 0, 0), (0, 1, 0), motor=gv.ForceMotor(torque)))
    scene.add_joint(gv.Prismatic(None, 1, (radius, 0, 0), (0, 0, 1)))
    scene.add_joint(gv.RackPinion(0, 1, radius))
    sim = simulate(scene, 1e-3)
    steps(sim, 1.0)
    angle = 0.5 * (torque - radius * mass * G) / (moment + mass * radius**2)
    assert np.allclose((sim.joints.angle[0], sim.joints.slide[1]), (angle, radius * angle), rtol=0, atol=1e-6)


def test_nut_runs_down_a_screw():
    """(m + I (2 pi / p)^2) z'' = -m g."""
    mass, moment, pitch = 2.0, 1e-3, 0.2
    scene = empty_scene((0, 0, -G))
    scene.add_body(gv.Sphere(0.05), mass=mass, inertia=(moment,) * 3)
    screw = scene.add_joint(gv.Screw(None, 0, (0, 0, 0), (0, 0, 1), pitch=pitch))
    sim = simulate(scene, 1e-3)
    steps(sim, 1.0)
    sunk = -0.5 * mass * G / (mass + moment * (2 * np.pi / pitch) ** 2)
    assert abs(sim.joints.slide[screw] - sunk) < 1e-6
    assert abs(sim.joints.angle[screw] - sunk * 2 * np.pi / pitch) < 1e-4  # more than two full turns
    assert abs(sim.joints.angle[screw]) > 4 * np.pi


def test_motor_on_a_screw_lifts_with_its_pitch():
    """Torque m g p / (2 pi) holds the weight; a motor that turns at w lifts by p w / (2 pi) a second."""
    mass, pitch, rate = 2.0, 0.2, 10.0
    scene = empty_scene((0, 0, -G))
    scene.add_body(gv.Sphere(0.05), mass=mass, velocity=(0, 0, pitch * rate / (2 * np.pi)), angular_velocity=(0, 0, rate))
    screw = scene.add_joint(gv.Screw(None, 0, (0, 0, 0), (0, 0, 1), pitch=pitch, turn_motor=gv.SpeedMotor(rate)))
    sim = simulate(scene, 1e-3)
    steps(sim, 1.0)
    assert abs(sim.joints.slide[screw] - pitch * rate / (2 * np.pi)) < 1e-6
    assert abs(sim.joints.motor_torque[screw] - mass * G * pitch / (2 * np.pi)) < 1e-6


def test_cardan_shaft_turns_unevenly():
    """Two shafts at an angle b, joined by a Universal: tan(out) = cos(b) tan(in). Redundant by three."""
    bend, rate = 0.6, 10.0
    first, second, up = np.array([1.0, 0, 0]), np.array([math.cos(bend), 0, math.sin(bend)]), np.array([0, 1.0, 0])
    scene = empty_scene()
    for along, speed in ((-first, rate), (second, rate * math.cos(bend))):
        scene.add_body(gv.Sphere(0.05), 0.5 * along, mass=1.0, inertia=(0.01,) * 3, angular_velocity=speed * np.sign(along[0]) * along)
    scene.add_joint(gv.Revolute(None, 0, -0.5 * first, first, motor=gv.SpeedMotor(rate)))
    swing = scene.add_joint(gv.Revolute(None, 1, 0.5 * second, second))
    scene.add_joint(gv.Universal(0, 1, (0, 0, 0), up, axis_b=np.cross(second, up)))
    sim, outs, wanted = simulate(scene, 2.5e-4), [], []
    for _ in range(round(1.5 / sim.dt)):  # more than two turns
        sim.step()
        turn = rate * sim.time
        outs.append(sim.joints.angle[swing])
        wanted.append(math.atan2(math.cos(bend) * math.sin(turn), math.cos(turn)))
    assert np.abs(np.array(outs) - np.unwrap(wanted)).max() < 1e-4
    assert np.ptp(np.unwrap(wanted) - rate * sim.dt * np.arange(1, len(outs) + 1)) > 0.1  # it is uneven


# --- motors
def test_speed_motor_turns_at_its_speed_and_counts_full_turns():
    sim, hinge = wheel(speed=50.0, motor=gv.SpeedMotor(50.0))
    steps(sim, 1.0)
    assert abs(sim.joints.angle[hinge] - 50.0) < 1e-9
    assert abs(sim.joints.angle_speed[hinge] - 50.0) < 1e-9
    assert abs(sim.joints.motor_torque[hinge]) < 1e-6


def test_speed_motor_follows_a_function():
    """x' = sin 3t, so x = (1 - cos 3t) / 3 and the force is m 3 cos 3t."""
    sim, joint = slider(mass=2.0, motor=gv.SpeedMotor(lambda t: math.sin(3 * t)))
    for _ in range(1000):
        sim.step()
        assert abs(sim.joints.slide[joint] - (1 - math.cos(3 * sim.time)) / 3) < 1e-5
        assert abs(sim.joints.motor_force[joint] - 6 * math.cos(3 * (sim.time - sim.dt / 2))) < 6 * 5e-3


def test_position_motor_follows_a_function():
    """Angle 0.5 sin 4t, so the torque is -8 I sin 4t."""
    sim, hinge = wheel(moment=0.5, speed=2.0, motor=gv.PositionMotor(lambda t: 0.5 * math.sin(4 * t)))
    for _ in range(1000):
        sim.step()
        assert abs(sim.joints.angle[hinge] - 0.5 * math.sin(4 * sim.time)) < 1.2 * 8 * sim.dt**2 / 8  # within a step: h^2 x'' / 8
        assert abs(sim.joints.motor_torque[hinge] + 4 * math.sin(4 * (sim.time - sim.dt / 2))) < 4 * 5e-3


def test_force_motor_pushes():
    """m x'' = 5 cos 2t from rest."""
    sim, joint = slider(mass=2.0, motor=gv.ForceMotor(lambda t: 5 * math.cos(2 * t)))
    steps(sim, 1.5)
    assert abs(sim.joints.slide[joint] - 5 / 8 * (1 - math.cos(3.0))) < 1e-5
    assert abs(sim.joints.slide_speed[joint] - 5 / 4 * math.sin(3.0)) < 1e-5
    sim, hinge = wheel(moment=0.5, motor=gv.ForceMotor(0.25))
    steps(sim, 2.0)
    assert abs(sim.joints.angle[hinge] - 1.0) < 1e-5
    assert abs(sim.joints.motor_torque[hinge] - 0.25) < 1e-12


@pytest.mark.parametrize("make", [lambda limit: gv.SpeedMotor(0.0, limit), lambda limit: gv.PositionMotor(0.0, limit)])
def test_motor_holds_a_load_below_its_limit_and_slips_above(make):
    """2 kg on a vertical slide weigh 19.62 N: it holds with 19.63 N, and with 19.61 N it sinks by 0.005 m/s2."""
    sim, joint = slider(mass=2.0, gravity=G, motor=make(19.63))
    steps(sim, 0.5)
    assert abs(sim.joints.slide[joint]) < 1e-9
    assert abs(sim.joints.motor_force[joint] - 19.62) < 1e-6
    sim, joint = slider(mass=2.0, gravity=G, motor=make(19.61))
    steps(sim, 0.5)
    assert abs(sim.joints.motor_force[joint] - 19.61) < 1e-9
    assert abs(sim.joints.slide_speed[joint] + 0.005 * 0.5) < 1e-5
    assert abs(sim.joints.slide[joint] + 0.0025 * 0.25) < 1e-5


def test_motor_with_a_limit_speeds_up_by_it_and_then_keeps_the_speed():
    sim, joint = slider(mass=2.0, motor=gv.SpeedMotor(3.0, limit=4.0))
    steps(sim, 1.0)
    assert abs(sim.joints.motor_force[joint] - 4.0) < 1e-9
    assert abs(sim.joints.slide_speed[joint] - 2.0) < 1e-9
    steps(sim, 1.0)
    assert abs(sim.joints.slide_speed[joint] - 3.0) < 1e-9
    assert abs(sim.joints.motor_force[joint]) < 1e-6
    assert abs(sim.joints.slide[joint] - (3.0**2 / (2 * 2.0) + 3.0 * 0.5)) < 3.0 * sim.dt


def test_another_motor_while_it_runs():
    sim, hinge = wheel(motor=gv.SpeedMotor(2.0), speed=2.0)
    steps(sim, 0.5)
    sim.set_motor(hinge, gv.ForceMotor(0.5))
    steps(sim, 0.5)
    assert abs(sim.joints.angle_speed[hinge] - 2.5) < 1e-9


def test_servo_is_a_damped_spring_towards_its_position():
    sim, joint = slider(mass=2.0, motor=gv.PositionMotor(0.2, stiffness=200.0, damping=4.0))
    for _ in range(1000):
        sim.step()
        assert abs(sim.joints.slide[joint] - oscillator(sim.time, 0.0, 0.0, 2.0, 200.0, 4.0, rest=0.2)) < 1e-4 * 0.2
    stretch = 0.2 - sim.joints.slide[joint]
    assert abs(sim.joints.motor_force[joint] - 200 * stretch + 4 * sim.joints.slide_speed[joint]) < 0.1


def test_servo_pushes_no_harder_than_its_limit():
    """The spring alone would push with 40 N at the start."""
    sim, joint = slider(mass=2.0, motor=gv.PositionMotor(0.2, stiffness=200.0, damping=4.0, limit=5.0))
    steps(sim, 0.2)
    assert abs(sim.joints.slide[joint] - 0.5 * 2.5 * 0.2**2) < 1e-6
    assert abs(sim.joints.motor_force[joint] - 5.0) < 1e-9


# --- limits
@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_body_bounces_off_a_limit_as_a_ball_does(restitution):
    """Dropped by 0.5 m onto the limit: then z = e v t - g t^2 / 2, up to what one step can shift the impact."""
    drop, h = 0.5, 2e-4
    sim, joint = slider(gravity=G, dt=h, start=drop, limits=gv.Limits(0.0, restitution=restitution))
    impact, speed = math.sqrt(2 * drop / G), math.sqrt(2 * drop * G)
    flight = 2 * restitution * speed / G
    for _ in range(round((impact + (0.95 * flight or 0.3)) / h)):
        sim.step()
        slide, since = sim.joints.slide[joint], sim.time - impact
        assert slide > -2 * speed * h
        if since < -h:
            assert abs(slide - (drop - 0.5 * G * sim.time**2)) < 1e-6
        elif since > h and restitution:
            assert abs(slide - (restitution * speed * since - 0.5 * G * since**2)) < 2 * (1 + restitution) * speed * h
            assert abs(sim.joints.slide_speed[joint] - (restitution * speed - G * since)) < 3 * G * h
        elif since > h:
            assert abs(slide) < 1e-6 and abs(sim.joints.slide_speed[joint]) < (1e-3 if since < 5 * h else YIELD) * speed


def test_body_does_not_pass_an_upper_limit_on_a_hinge():
    sim, hinge = wheel(speed=2.0, limits=(-0.3, 0.7))
    for _ in range(600):
        sim.step()
        assert sim.joints.angle[hinge] < 0.7 + 1e-4
    assert abs(sim.joints.angle[hinge] - 0.7) < 2 * 2.0 * sim.dt
    assert abs(sim.joints.angle_speed[hinge]) < 1e-6
    sim.torques[0] = (0, 0, -1.0)  # it can leave, and stops at the other one
    steps(sim, 0.5)
    assert abs(sim.joints.angle[hinge] - (0.7 - 0.5 * 2.0 * 0.25)) < 2 * 2.0 * sim.dt
    steps(sim, 1.0)
    assert abs(sim.joints.angle[hinge] + 0.3) < 1e-4


def test_soft_limit_gives_way_as_a_spring_does():
    """Dropped by H onto k: deepest at (m g / k)(1 + sqrt(1 + 2 k H / (m g))), and back up to H without damping."""
    mass, drop, stiffness = 2.0, 0.2, 4000.0
    sim, joint = slider(mass=mass, gravity=G, dt=2e-4, start=drop, limits=gv.Limits(0.0, stiffness=stiffness))
    track = []
    for _ in range(round(0.6 / sim.dt)):
        sim.step()
        track.append(sim.joints.slide[joint])
    sag = mass * G / stiffness
    deepest = sag * (1 + math.sqrt(1 + 2 * drop / sag))
    assert abs(min(track) + deepest) < 1e-2 * deepest
    bottom = int(np.argmin(track))
    assert abs(max(track[bottom:]) - drop) < 1e-2 * drop


# --- friction in joints
@pytest.mark.parametrize("share", [0.5, 0.99])
def test_joint_friction_holds_below_its_limit(share):
    sim, joint = slider(mass=2.0, friction=3.0)
    sim.forces[0] = (0, 0, 3.0 * share)
    steps(sim, 0.5)
    assert abs(sim.joints.slide[joint]) < 1e-9
    sim, hinge = wheel(moment=0.5, friction=0.4)
    sim.torques[0] = (0, 0, -0.4 * share)
    steps(sim, 0.5)
    assert abs(sim.joints.angle[hinge]) < 1e-9


def test_joint_friction_brakes_by_its_force():
    """m v' = P - F above, -F without a push until it stands still."""
    sim, joint = slider(mass=2.0, friction=3.0)
    sim.forces[0] = (0, 0, 5.0)
    steps(sim, 1.0)
    assert abs(sim.joints.slide_speed[joint] - 1.0) < 3 * sim.dt
    sim.forces[0] = 0
    before = sim.joints.slide[joint]
    steps(sim, 1.0)
    assert abs(sim.joints.slide[joint] - before - 1.0 / (2 * 1.5)) < 3 * sim.dt
    assert abs(sim.joints.slide_speed[joint]) < 1e-9
    sim, hinge = wheel(moment=0.5, speed=2.0, friction=0.4)
    steps(sim, 1.0)
    assert abs(sim.joints.angle_speed[hinge] - (2.0 - 0.8)) < 1e-6
    assert abs(sim.joints.angle[hinge] - (2.0 - 0.4)) < 1e-3


# --- springs
@pytest.mark.parametrize("damping", [0.0, 3.0])
def test_spring_on_a_slide_is_the_damped_oscillator(damping):
    sim, joint = slider(mass=2.0, speed=1.0, spring=gv.SpringLaw(200.0, damping, rest=0.1))
    for _ in range(1000):
        sim.step()
        assert abs(sim.joints.slide[joint] - oscillator(sim.time, 0.0, 1.0, 2.0, 200.0, damping, rest=0.1)) < 1e-4 * math.hypot(0.1, 0.1)


def test_rotational_spring_on_a_hinge_is_the_damped_oscillator():
    scene = empty_scene()
    body = scene.add_body(gv.Sphere(0.05), mass=1.0, inertia=(0.5,) * 3, angular_velocity=(0, 0, 3.0))
    hinge = scene.add_joint(gv.Revolute(None, body, (0, 0, 0.3), (0, 0, 1)))
    spring = scene.add_joint(gv.RotationalSpring(None, body, (0, 0, 0.3), (0, 0, 1), stiffness=50.0, damping=0.6))
    sim = simulate(scene, 1e-3)
    for _ in range(1000):
        sim.step()
        assert abs(sim.joints.angle[hinge] - oscillator(sim.time, 0.0, 3.0, 0.5, 50.0, 0.6)) < 1e-4 * 0.3
    middle = sim.time - sim.dt / 2
    rate = slope_of(lambda t: oscillator(t, 0.0, 3.0, 0.5, 50.0, 0.6), middle)
    wanted = -50.0 * oscillator(middle, 0.0, 3.0, 0.5, 50.0, 0.6) - 0.6 * rate
    assert abs(sim.joints.torque[spring, 2] - wanted) < 1e-3 * 15


def test_spring_between_two_free_bodies_beats_with_their_reduced_mass():
    masses, stiffness, damping, rest = (2.0, 3.0), 150.0, 1.0, 0.8
    reduced = masses[0] * masses[1] / sum(masses)
    along, scene = AXIS, empty_scene()
    for k in range(2):
        scene.add_body(gv.Sphere(0.05), k * 1.0 * along, mass=masses[k])
    spring = scene.add_joint(gv.Spring(0, 1, point_b=along, stiffness=stiffness, damping=damping, rest=rest))
    sim = simulate(scene, 1e-3)
    centre = (masses[1] * along) / sum(masses)
    for _ in range(1000):
        sim.step()
        wanted = oscillator(sim.time, 1.0, 0.0, reduced, stiffness, damping, rest)
        assert abs(sim.joints.slide[spring] - wanted) < 1e-4 * 0.2
        assert np.abs(np.array(masses) @ sim.positions / sum(masses) - centre).max() < 1e-12


def test_spring_with_a_force_of_its_own():
    """A hardening spring with quadratic damping, swinging in a plane under gravity, against an integration."""
    mass = 1.5

    def law(length, rate):
        x = length - 0.8
        return -60 * x - 900 * x**3 - 2.0 * rate * abs(rate)

    def slope(_, y):
        length = math.hypot(y[0], y[1])
        pull = law(length, (y[0] * y[2] + y[1] * y[3]) / length) / length / mass
        return [y[2], y[3], pull * y[0], pull * y[1] - G]

    scene = empty_scene((0, 0, -G))
    ball = scene.add_body(gv.Sphere(0.05), (1.0, 0, 0), mass=mass)
    scene.add_joint(gv.Spring(None, ball, (0, 0, 0), point_b=(1.0, 0, 0), force=law))
    sim = simulate(scene, 5e-4)
    times = np.arange(0, 2.001, 0.05)
    run = solve_ivp(slope, (0, 2.01), [1.0, 0, 0, 0], "DOP853", t_eval=times, rtol=1e-11, atol=1e-11)
    for x, z in run.y[:2].T:
        assert np.linalg.norm(sim.positions[0] - (x, 0, z)) < 1e-4
        steps(sim, 0.05)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_bushing_springs_along_and_about_each_axis(axis):
    """A free body on a bushing at its centre, pushed along or turned about one axis: damped oscillators."""
    mass, moments = 2.0, np.array([0.3, 0.4, 0.5])
    values = {"stiffness": (100, 200, 300), "damping": (1, 2, 3), "turn_stiffness": (20, 30, 40), "turn_damping": (0.1, 0.2, 0.3)}
    scene = empty_scene()
    body = scene.add_body(gv.Sphere(0.05), mass=mass, inertia=moments, velocity=np.eye(3)[axis] * 0.5)
    scene.add_joint(gv.Bushing(None, body, **values))
    sim, along = simulate(scene, 1e-3), np.eye(3)[axis]
    for _ in range(800):
        sim.step()
        wanted = oscillator(sim.time, 0.0, 0.5, mass, values["stiffness"][axis], values["damping"][axis])
        assert np.linalg.norm(sim.positions[0] - wanted * along) < 1e-4 * 0.1
    sim = simulate(scene, 1e-3)
    sim.velocities[:], sim.angular_velocities[0] = 0, 0.5 * along
    for _ in range(800):
        sim.step()
        wanted = oscillator(sim.time, 0.0, 0.5, moments[axis], values["turn_stiffness"][axis], values["turn_damping"][axis])
        assert np.linalg.norm(Rotation.from_quat(np.roll(sim.quaternions[0], -1)).as_rotvec() - wanted * along) < 1e-4 * 0.1


def test_rope_pulls_only_when_it_is_taut():
    """Limits on the length alone: the ball falls freely by half a metre, then hangs."""
    scene = empty_scene((0, 0, -G))
    ball = scene.add_body(gv.Sphere(0.05), (0, 0, -0.5), mass=2.0)
    rope = scene.add_joint(gv.Spring(None, ball, (0, 0, 0), point_b=(0, 0, -0.5), limits=(0, 1.0)))
    sim = simulate(scene, 1e-3)
    steps(sim, 0.3)
    assert abs(sim.positions[0, 2] + 0.5 + 0.5 * G * 0.09) < 1e-6
    steps(sim, 0.3)
    assert abs(sim.positions[0, 2] + 1.0) < 1e-4
    assert abs(sim.joints.force[rope, 2] - 2.0 * G) < 1e-6 * 2.0 * G


# --- reactions and breaking
def test_cantilever_carries_weight_and_moment():
    """Welded to the world at one end: force m g up, torque -m g L / 2 about the end; with a side load as well."""
    mass, length = 4.0, 1.2
    scene = empty_scene((0, 0, -G))
    beam = scene.add_body(gv.Box((length / 2, 0.05, 0.05)), (length / 2, 0, 0), mass=mass)
    weld = scene.add_joint(gv.Fixed(None, beam, (0, 0, 0)))
    sim = simulate(scene, 1e-3)
    steps(sim, 0.1)
    assert np.allclose(sim.joints.force[weld], (0, 0, mass * G), rtol=0, atol=1e-6)
    assert np.allclose(sim.joints.torque[weld], (0, -mass * G * length / 2, 0), rtol=0, atol=1e-6)
    sim.forces[beam], sim.torques[beam] = (3.0, -7.0, 0), (0.5, 0.6, 0.7)
    steps(sim, 0.1)
    force, torque = np.array([-3.0, 7.0, mass * G]), np.array([0.5, 0.6, 0.7])
    assert np.allclose(sim.joints.force[weld], force, rtol=0, atol=1e-6)
    assert np.allclose(sim.joints.torque[weld], -torque + np.cross((length / 2, 0, 0), force), rtol=0, atol=1e-6)
    assert np.abs(sim.positions[0] - (length / 2, 0, 0)).max() < 1e-9


def test_reaction_is_on_body_b_and_swaps_its_sign_with_the_bodies():
    for ends, sign in (((None, 0), 1), ((0, None), -1)):
        scene = empty_scene((0, 0, -G))
        scene.add_body(gv.Sphere(0.1), mass=2.0)
        scene.add_joint(gv.Fixed(*ends, (0.3, 0, 0)))
        sim = simulate(scene, 1e-3)
        steps(sim, 0.05)
        assert np.allclose(sim.joints.force[0], (0, 0, sign * 2.0 * G), rtol=0, atol=1e-6)
        assert np.allclose(sim.joints.torque[0], (0, sign * 2.0 * G * 0.3, 0), rtol=0, atol=1e-6)


@pytest.mark.parametrize("what", ["force", "torque"])
def test_joint_breaks_at_its_load_and_not_below(what):
    scene = empty_scene((0, 0, -G))
    scene.add_body(gv.Sphere(0.1), mass=2.0)
    weld = scene.add_joint(gv.Fixed(None, 0, **{"break_" + what: 30.0}))
    sim = simulate(scene, 1e-3)
    weight = 2.0 * G if what == "force" else 0.0
    for load in np.arange(0.05, 40, 0.1):
        (sim.forces if what == "force" else sim.torques)[0, 2] = -load
        sim.step()
        assert sim.joints.broken[weld] == (weight + load > 30.0), load
    assert sim.positions[0, 2] < -1e-4  # and falls


def test_swinging_ball_breaks_its_rod_at_twice_its_weight():
    """From the horizontal the rod's force is 3 m g sin a at an angle a below it: 2 m g at sin a = 2/3."""
    scene = empty_scene((0, 0, -G))
    ball = scene.add_body(gv.Sphere(0.05), (1.0, 0, 0), mass=2.0)
    rod = scene.add_joint(gv.Distance(None, ball, (0, 0, 0), point_b=(1.0, 0, 0), break_force=2 * 2.0 * G))
    sim = simulate(scene, 2e-4)
    while not sim.joints.broken[rod] and sim.time < 2.0:
        sim.step()
    speed = math.sqrt(2 * G * 2 / 3)
    assert abs(-sim.positions[0, 2] - 2 / 3) < 2 * speed * sim.dt
    velocity, start = sim.velocities[0].copy(), sim.positions[0].copy()
    assert abs(np.linalg.norm(velocity) - speed) < 3 * G * sim.dt
    steps(sim, 0.3)  # a free flight from there
    assert np.linalg.norm(sim.positions[0] - (start + 0.3 * velocity + (0, 0, -0.5 * G * 0.09))) < 1e-3


def test_released_joint_lets_go():
    scene = empty_scene((0, 0, -G))
    scene.add_body(gv.Sphere(0.1), mass=2.0)
    weld = scene.add_joint(gv.Fixed(None, 0))
    sim = simulate(scene, 1e-3)
    steps(sim, 0.1)
    assert np.abs(sim.positions[0]).max() < 1e-9
    sim.release_joint(weld)
    steps(sim, 0.3)
    assert sim.joints.broken[weld]
    assert abs(sim.positions[0, 2] + 0.5 * G * 0.09) < 2 * G * 0.3 * sim.dt


def test_joint_added_while_it_runs_holds_from_then_on():
    """A ball falls for 0.2 s and is then tied to a point at its height, a metre away: a pendulum with the speed across."""
    scene = empty_scene((0, 0, -G))
    scene.add_body(gv.Sphere(0.05), mass=2.0)
    scene.add_body(gv.Sphere(0.05), (5, 0, 0))
    scene.add_joint(gv.Fixed(None, 1, (5, 0, 0)))
    sim = simulate(scene, 1e-3)
    steps(sim, 0.2)
    place = sim.positions[0].copy()
    anchor = place + (1.0, 0, 0)
    rod = sim.add_joint(gv.Distance(None, 0, anchor, point_b=place))
    top = 0.5 * sim.velocities[0] @ sim.velocities[0] + G * place[2]
    for _ in range(500):
        sim.step()
        assert abs(np.linalg.norm(sim.positions[0] - anchor) - 1.0) < 1e-5
        assert abs(0.5 * sim.velocities[0] @ sim.velocities[0] + G * sim.positions[0, 2] - top) < 1e-3 * G
    assert abs(sim.joints.slide[rod] - 1.0) < 1e-5
