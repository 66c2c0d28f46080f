"""Impacts: bounces, collisions of balls, and the quantities that they must conserve."""

import numpy as np

from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.shapes import Plane, Sphere
from gravel.validation.case import Curve, Outcome, case, largest
from gravel.validation.running import G, advance, on_floor, record, rounding, simulate


def bounces(times, height, e):
    """Height of a ball over the floor that falls from rest and bounces with restitution e: parabola after parabola."""
    speed, begun = np.sqrt(2 * G * height), np.sqrt(2 * height / G)
    found = np.where(times <= begun, height - 0.5 * G * times**2, 0.0)
    while begun < times[-1]:
        speed *= e
        since = times - begun
        found = np.where(since > 0, speed * since - 0.5 * G * since**2, found)
        begun += 2 * speed / G
    return found


@case("Bouncing ball")
def bouncing_ball() -> Outcome:
    r"""A ball dropped from $H$ rises to $e^2 H$, $e^4 H$, ...: parabolas of duration $2 e^n \sqrt{2 H / g}$ (Newton's law of
    restitution). Steps of 1/500 s; a bounce happens at the moment of contact."""
    height, curves = 0.5, []
    for e in (0.5, 0.8, 1.0):
        rubber = Material(restitution=e, friction=0.0)
        scene = on_floor(rubber)
        scene.add_body(Sphere(0.05), (0, 0, 0.05 + height), rubber)
        times, found = record(simulate(scene, 1 / 500), 0.9, lambda sim: sim.positions[1, 2] - 0.05, every=3)
        curves.append(Curve(f"e = {e:g}", times, bounces(times, height, e), found))
    return largest("time, s", "height, m", curves, height, "of the height", 2e-3)


@case("Two balls that collide")
def two_balls() -> Outcome:
    r"""Along the line of centres the impulse is $(1 + e)(v_1 - v_2)\, m_1 m_2 / (m_1 + m_2)$, for any restitution $e$. At defaults, the
    few operations of the impact round in single precision."""
    m1, m2, v1, v2, values = 1.0, 3.0, 2.0, -1.0, np.linspace(0, 1, 6)
    found = []
    for e in values:
        ball = Material(restitution=e, friction=0.0)
        scene = Scene(gravity=(0, 0, 0))
        scene.add_body(Sphere(0.1), (0, 0, 0), ball, mass=m1, velocity=(v1, 0, 0))
        scene.add_body(Sphere(0.2), (0.5, 0, 0), ball, mass=m2, velocity=(v2, 0, 0))
        found.append(advance(simulate(scene), 0.2).velocities[:, 0])
    blow, found = (1 + values) * m1 * m2 * (v1 - v2) / (m1 + m2), np.array(found)
    curves = [Curve("light ball", values, v1 - blow / m1, found[:, 0]), Curve("heavy ball", values, v2 + blow / m2, found[:, 1])]
    return largest("restitution", "speed after the blow, m/s", curves, 1.0, "m/s", 1e-9, rounding(5, v1 - v2))


@case("Newton's cradle")
def cradle() -> Outcome:
    """Five touching balls: as many leave as strike, at the same speed, and the others rest (momentum and energy are conserved). At
    defaults, the impacts round in single precision."""
    steel, curves, number = Material(restitution=1.0, friction=0.0), [], np.arange(1, 6)
    for strikers in (1, 2, 3):
        x, velocities = 0.1 * np.arange(5.0), np.zeros((5, 3))
        x[:strikers] -= 0.1
        velocities[:strikers, 0] = 1.0
        scene = Scene(gravity=(0, 0, 0))
        scene.add_bodies(Sphere(0.05), np.column_stack([x, 0 * x, 0 * x]), steel, velocities=velocities)
        found = advance(simulate(scene), 0.5).velocities[:, 0]
        curves.append(Curve(f"{strikers} strike", number, velocities[::-1, 0], found))
    return largest("ball", "speed after the blows, m/s", curves, 1.0, "m/s", 1e-9, rounding(20, 1.0))


@case("Ball dropped with speed sideways")
def dropped_sideways() -> Outcome:
    r"""A ball dropped from $h$ = 0.3 m rises to $e^2 h$, whatever its tangential speed: friction reduces only the tangential speed
    (Newton's and Coulomb's laws). $e = 0.8$, $\mu = 0.5$, steps of 1/500 s."""
    height, e, speeds = 0.3, 0.8, np.array([0.0, 1.0, 2.0, 4.0, 6.0])
    rubber, found = Material(friction=0.5, restitution=e), []
    for speed in speeds:
        scene = on_floor(rubber)
        scene.add_body(Sphere(0.05), (0, 0, 0.05 + height), rubber, velocity=(speed, 0, 0))
        sim = advance(simulate(scene, 1 / 500), np.sqrt(2 * height / G) + 0.02)
        found.append(record(sim, 0.3, lambda sim: sim.positions[1, 2] - 0.05)[1].max())
    curve = Curve("rebound", speeds, np.full(len(speeds), e**2 * height), np.array(found))
    return largest("speed along the floor, m/s", "height of the rebound, m", [curve], height, "of the height", 2e-3)


@case("Restitution by the angle of incidence")
def restitution_by_angle() -> Outcome:
    r"""A ball of 3 m/s hits the floor at an angle from its normal, and leaves it with $e$ times the normal speed, at every angle and at
    any phase of the step (Newton's law). $e = 0.9$, $\mu = 0.5$, steps of 1/500 s, with five phases of contact within a step for each
    angle; the figure shows the lowest and the highest $e$. At defaults, single precision rounds."""
    e, speed, degrees = 0.9, 3.0, np.array([15, 30, 45, 60, 63, 67, 75, 80, 85], float)
    rubber, found = Material(friction=0.5, restitution=e), []
    for angle in np.radians(degrees):
        for phase in np.arange(5) / 5:
            down = speed * np.cos(angle)
            scene = on_floor(rubber, gravity=(0, 0, 0))
            scene.add_body(Sphere(0.1), (0, 0, 0.1 + (10 + phase) * down / 500), rubber, velocity=(speed * np.sin(angle), 0, -down))
            found.append(advance(simulate(scene, 1 / 500), 0.04).velocities[1, 2] / down)
    found = np.array(found).reshape(len(degrees), 5)
    wanted = np.full(len(degrees), e)
    curves = [Curve("lowest", degrees, wanted, found.min(axis=1)), Curve("highest", degrees, wanted, found.max(axis=1))]
    return largest("angle from the normal, degrees", "restitution", curves, 1.0, "(absolute)", 1e-6, 1e-5)


@case("Pairs that graze")
def grazing_pairs() -> Outcome:
    r"""Two balls of diameter $d$ pass at a distance $b$: at contact, the normal is at $\arcsin(b/d)$ from their path, and along it they
    separate with $e$ times the speed of approach (Newton's law). $e = 0.9$, $\mu = 0.5$, 2 m/s, steps of 1/500 s, at five phases of
    contact within a step; the figure shows the lowest and the highest $e$. The bound is one hundredth, because the normal is that of a
    step."""
    e, speed, d, shares = 0.9, 2.0, 0.1, np.array([0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98])
    rubber, found = Material(friction=0.5, restitution=e), []
    for share in shares:
        normal = np.array([np.sqrt(1 - share**2), share, 0.0])
        for phase in np.arange(5) / 5:
            scene = Scene(gravity=(0, 0, 0))
            scene.add_body(Sphere(d / 2), (0, 0, 0), rubber, velocity=(speed, 0, 0))
            scene.add_body(Sphere(d / 2), (d * normal[0] + (10 + phase) * speed / 500, d * share, 0), rubber)
            velocities = advance(simulate(scene, 1 / 500), 0.1).velocities
            found.append((velocities[1] - velocities[0]) @ normal / (speed * normal[0]))
    found = np.array(found).reshape(len(shares), 5)
    wanted = np.full(len(shares), e)
    curves = [Curve("lowest", shares, wanted, found.min(axis=1)), Curve("highest", shares, wanted, found.max(axis=1))]
    return largest("distance of passing, diameters", "restitution", curves, 1.0, "(absolute)", 0.01)


@case("Oblique impact")
def oblique_impact() -> Outcome:
    r"""A ball without spin hits the floor obliquely. Friction acts with $\mu (1 + e) v_n$ while the contact slips; if
    $\tfrac{2}{7} v_t$ is less than that, slip ends, and the ball leaves rolling at $\tfrac{5}{7} v_t$ (Walton 1993). A speculative
    contact has a longer lever arm, by up to half of the motion in a step: 0.3 % of the radius at steps of 0.2 ms, for which the bound
    allows 0.1 % of the impact speed."""
    mu, e, down, speeds = 0.1, 0.8, 3.0, np.array([0.25, 0.5, 1.0, 1.5, 1.8, 2.0, 2.5, 3.0, 4.0])
    rubber, found = Material(friction=mu, restitution=e), []
    for speed in speeds:
        scene = on_floor(rubber, gravity=(0, 0, 0))
        scene.add_body(Sphere(0.1), (0, 0, 0.2), rubber, velocity=(speed, 0, -down))
        found.append(advance(simulate(scene, 2e-4), 0.1).velocities[1])
    found, blow = np.array(found), mu * (1 + e) * down
    curves = [
        Curve("along the floor", speeds, np.maximum(speeds - blow, 5 / 7 * speeds), found[:, 0]),
        Curve("up", speeds, np.full(len(speeds), e * down), found[:, 2]),
    ]
    return largest("speed along the floor before, m/s", "speed after, m/s", curves, down, "of the impact speed", 0.001)


def gas(seed=1):
    """27 elastic balls between six walls, the bodies 0 to 5."""
    smooth, rng = Material(restitution=1.0, friction=0.0), np.random.default_rng(seed)
    scene = Scene(gravity=(0, 0, 0))
    for normal in np.vstack([np.eye(3), -np.eye(3)]):
        scene.add_body(Plane(normal=normal, offset=-0.5), material=smooth, fixed=True)
    places = np.stack(np.meshgrid(*[[-0.3, 0.0, 0.3]] * 3), axis=-1).reshape(-1, 3)
    scene.add_bodies(Sphere(rng.uniform(0.06, 0.12, 27)), places, smooth, velocities=rng.normal(0, 1, (27, 3)))
    return simulate(scene)


@case("Energy and momentum of a gas")
def elastic_gas() -> Outcome:
    r"""27 smooth elastic balls between walls: the energy is conserved, and only the walls change the momentum,
    $P(t) = P(0) + \sum \gamma_{wall}$, with the impulses $\gamma$ of the contact table. At defaults, each of about 150 impacts rounds
    in single precision."""
    sim = gas()
    mass = sim.masses[6:, None]
    pushed = np.zeros(3)

    def note(sim):
        nonlocal pushed
        table = sim.contacts
        pushed = pushed + table.impulse[table.body_a < 6].sum(axis=0)
        return (*((mass * sim.velocities[6:]).sum(axis=0) - pushed), 0.5 * np.sum(mass * sim.velocities[6:] ** 2))

    start = np.array(note(sim))
    times, found = record(sim, 1.0, note)
    scale = np.array([np.sqrt(2 * start[3] * mass.sum())] * 3 + [start[3]])
    shares = 1 + ((found - start) / scale)[::20]
    names = ("momentum x", "momentum y", "momentum z", "energy")
    curves = [Curve(name, times[::20], np.ones(len(shares)), shares[:, k]) for k, name in enumerate(names)]
    return largest("time, s", "1 + change, of the whole", curves, 1.0, "of the whole", 1e-12, rounding(150, 1.0))
