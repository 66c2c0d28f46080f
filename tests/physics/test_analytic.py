"""Simulations against formulas of mechanics.

Tolerances come from the step: with semi-implicit Euler a speed may be wrong by what the acting forces do in about one
step (g h), a way by one step's travel (v h), a free rotation by (w h)^2 of itself. What the scheme keeps exactly
(momentum, closed forms, sticking) is compared to rounding or to the solver's tolerance.
"""

import numpy as np
import pytest

import gravel as gv

pytestmark = pytest.mark.usefixtures("device")

G, DT = 9.81, 1e-3
EXACT = gv.GaussSeidel(iterations=1000, tolerance=1e-10)
MODES = pytest.mark.parametrize("friction", ["cone", "coulomb"])
SOLVERS = pytest.mark.parametrize(
    "solver",
    [kind(iterations=1000, tolerance=1e-9) for kind in (gv.GaussSeidel, gv.Jacobi, gv.APGD, gv.BarzilaiBorwein)],
)


# --- scenes and measurements
def simulate(scene, dt=DT, **options):
    options = {"solver": EXACT, "precision": "double", "threads": 1, **options}
    return gv.Simulation(scene, dt, **options)


def steps(sim, seconds):
    for _ in range(round(seconds / sim.dt)):
        sim.step()


def floor_scene(material, gravity=(0, 0, -G), **options):
    """A scene whose body 0 is a floor at z = 0."""
    scene = gv.Scene(gravity=gravity)
    scene.add_body(gv.Plane(), material=material, **(options or {"fixed": True}))
    return scene


def free_scene(shape, position=(0, 0, 0), material=None, **options):
    """One body alone, without gravity."""
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_body(shape, position, material, **options)
    return scene


def on_slope(angle, mu, friction, half=(0.2, 0.2, 0.1)):
    """A box that lies on a floor, with gravity tilted by the angle towards +x."""
    stone = gv.Material(friction=mu)
    scene = floor_scene(stone, gravity=(G * np.sin(angle), 0, -G * np.cos(angle)))
    scene.add_body(gv.Box(half), (0, 0, half[2]), stone)
    return simulate(scene, friction=friction)


def sliding_start(shape, height, mu, speed, friction, **values):
    """A body on the floor with a given speed along x. In cone mode it starts at the sliding gap h mu v, where the cone
    condition is in balance: from gap zero it would first be thrown up to it, and friction with that blow brakes it."""
    stone = gv.Material(friction=mu, **values)
    scene = floor_scene(stone)
    gap = DT * mu * speed if friction == "cone" else 0.0
    scene.add_body(shape, (0, 0, height + gap), stone, velocity=(speed, 0, 0))
    return simulate(scene, friction=friction)


def floor_impulse(sim):
    """Impulse of body 0, the floor, on all others in the last step."""
    contacts = sim.contacts
    return contacts.impulse[contacts.body_a == 0].sum(axis=0)


def in_body_frame(quaternion, vector):
    w, axis = quaternion[0], -quaternion[1:]
    return vector + 2 * np.cross(axis, np.cross(axis, vector) + w * vector)


def in_world_frame(quaternion, vector):
    return in_body_frame(quaternion * np.array([1, -1, -1, -1]), vector)


def turned(vector, axis, angle):
    """Rodrigues: the vector turned about the unit axis."""
    return vector * np.cos(angle) + np.cross(axis, vector) * np.sin(angle) + axis * (axis @ vector) * (1 - np.cos(angle))


def box_inertia(mass, half):
    a, b, c = half
    return mass / 3 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])


def crossings(times, values):
    """Times at which the values go from negative to positive, by straight lines between the samples."""
    k = np.flatnonzero((values[:-1] < 0) & (values[1:] >= 0))
    return times[k] - values[k] * (times[k + 1] - times[k]) / (values[k + 1] - values[k])


# --- motion without contact
@pytest.mark.parametrize("shape", [gv.Sphere(0.1), gv.Box((0.1, 0.2, 0.3))])
def test_free_fall_is_the_closed_form_of_semi_implicit_euler(shape):
    """v_n = v_0 + n h g and x_n = x_0 + n h v_0 + h^2 g n (n + 1) / 2."""
    gravity, start, velocity, n = np.array([1.0, -2.0, -G]), np.array([3.0, 2.0, 1.0]), np.array([0.5, 0.25, 4.0]), 500
    scene = gv.Scene(gravity=gravity)
    scene.add_body(shape, start, velocity=velocity)
    sim = simulate(scene, integrator="euler")
    for _ in range(n):
        sim.step()
    assert np.allclose(sim.velocities[0], velocity + n * DT * gravity, rtol=0, atol=1e-12)
    assert np.allclose(sim.positions[0], start + n * DT * velocity + DT**2 * gravity * n * (n + 1) / 2, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [gv.Sphere(0.1), gv.Box((0.1, 0.2, 0.3))])
def test_free_flight_is_exact(shape):
    """x = x_0 + v_0 t + g t^2 / 2: the midpoint rule knows parabolas."""
    gravity, start, velocity, n = np.array([1.0, -2.0, -G]), np.array([3.0, 2.0, 1.0]), np.array([0.5, 0.25, 4.0]), 500
    scene = gv.Scene(gravity=gravity)
    scene.add_body(shape, start, velocity=velocity)
    sim = simulate(scene)
    for _ in range(n):
        sim.step()
    t = n * DT
    assert np.allclose(sim.velocities[0], velocity + t * gravity, rtol=0, atol=1e-12)
    assert np.allclose(sim.positions[0], start + t * velocity + 0.5 * t**2 * gravity, rtol=0, atol=1e-12)


def test_force_accelerates_by_force_over_mass():
    force, mass = np.array([3.0, -2.0, 1.0]), 4.0
    scene = free_scene(gv.Box((0.1, 0.2, 0.3)), mass=mass)
    scene.set_force(0, force=force)
    sim = simulate(scene)
    steps(sim, 0.5)
    assert np.allclose(sim.velocities[0], 0.5 * force / mass, rtol=1e-12)
    sim.forces[0] = 0
    steps(sim, 0.1)
    assert np.allclose(sim.velocities[0], 0.5 * force / mass, rtol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_torque_about_a_principal_axis_gives_torque_over_moment(axis):
    """Also when the box lies askew: the torque is in the world frame, the moments are in the body's."""
    half, mass, quaternion, torque = (0.1, 0.2, 0.3), 5.0, np.array([0.8, 0.0, 0.36, 0.48]), 0.05
    direction = in_world_frame(quaternion, np.eye(3)[axis])
    scene = free_scene(gv.Box(half), mass=mass, quaternion=quaternion)
    scene.set_force(0, torque=torque * direction)
    sim = simulate(scene)
    steps(sim, 0.5)
    expected = 0.5 * torque / box_inertia(mass, half)[axis] * direction
    assert np.allclose(sim.angular_velocities[0], expected, rtol=0, atol=1e-9 * np.linalg.norm(expected))


def test_spin_about_an_axis_turns_by_rate_times_time():
    axis = np.array([0.6, 0.0, 0.8])
    sim = simulate(free_scene(gv.Sphere(0.1), angular_velocity=2.0 * axis))
    steps(sim, 0.5)
    assert np.allclose(
        in_world_frame(sim.quaternions[0], np.array([0, 1.0, 0])),
        turned(np.array([0, 1.0, 0]), axis, 1.0),
        rtol=0,
        atol=1e-12,
    )


@pytest.mark.parametrize("spin", [(10, 0.1, 0.1), (0.1, 10, 0.1), (0.1, 0.1, 10), (4, 5, 6)])
def test_torque_free_rotation_keeps_angular_momentum_and_energy(spin):
    half, mass = (0.1, 0.2, 0.3), 6.0
    inertia = box_inertia(mass, half)
    sim = simulate(free_scene(gv.Box(half), mass=mass, angular_velocity=spin))
    momentum, energy = inertia * spin, 0.5 * inertia @ np.square(spin)
    for _ in range(2000):
        sim.step()
        rate = in_body_frame(sim.quaternions[0], sim.angular_velocities[0])
        assert np.allclose(in_world_frame(sim.quaternions[0], inertia * rate), momentum, rtol=0, atol=1e-10 * np.linalg.norm(momentum))
        assert abs(0.5 * inertia @ rate**2 / energy - 1) < 1e-3
        assert abs(sim.report.kinetic_energy / energy - 1) < 1e-3


def rates_in_body_frame(sim, seconds):
    times, rates = [], []
    for _ in range(round(seconds / sim.dt)):
        sim.step()
        times.append(sim.time)
        rates.append(in_body_frame(sim.quaternions[0], sim.angular_velocities[0]))
    return np.array(times), np.array(rates)


@pytest.mark.parametrize("axis", [0, 2])
def test_small_precession_about_a_stable_axis(axis):
    """About axis 1 of the largest or smallest moment: w_p = W sqrt((I1 - I2)(I1 - I3) / (I2 I3)) in the body frame."""
    half, mass, rate, small = (0.1, 0.2, 0.3), 6.0, 10.0, 1e-3
    i1, i2, i3 = np.roll(box_inertia(mass, half), -axis)
    spin = np.full(3, small * rate)
    spin[axis] = rate
    sim = simulate(free_scene(gv.Box(half), mass=mass, angular_velocity=spin))
    expected = rate * np.sqrt((i1 - i2) * (i1 - i3) / (i2 * i3))
    times, rates = rates_in_body_frame(sim, 3.5 * 2 * np.pi / expected)
    periods = np.diff(crossings(times, rates[:, (axis + 1) % 3]))
    assert len(periods) >= 2
    assert np.allclose(2 * np.pi / periods, expected, rtol=(rate * DT) ** 2 + 10 * small**2)


def test_intermediate_axis_flips_with_the_period_of_the_elliptic_integral():
    """Landau and Lifshitz, Mechanics, section 37: with I1 < I2 < I3 and L^2 > 2 E I2 the period is
    4 K(k) sqrt(I1 I2 I3 / ((I3 - I2)(L^2 - 2 E I1)))."""
    half, mass, spin = (0.3, 0.2, 0.1), 6.0, np.array([1.0, 10.0, 2.0])
    i1, i2, i3 = inertia = box_inertia(mass, half)
    square, twice = np.sum((inertia * spin) ** 2), inertia @ spin**2
    assert i1 < i2 < i3 and square > twice * i2
    k2 = (i2 - i1) * (twice * i3 - square) / ((i3 - i2) * (square - twice * i1))
    a, b = 1.0, np.sqrt(1 - k2)
    for _ in range(30):  # the arithmetic-geometric mean gives K = pi / (2 M(1, k'))
        a, b = (a + b) / 2, np.sqrt(a * b)
    expected = 4 * np.pi / (2 * a) * np.sqrt(i1 * i2 * i3 / ((i3 - i2) * (square - twice * i1)))
    sim = simulate(free_scene(gv.Box(half), mass=mass, angular_velocity=spin))
    times, rates = rates_in_body_frame(sim, 2.6 * expected)
    periods = np.diff(crossings(times, rates[:, 1]))
    assert len(periods) >= 1
    assert np.allclose(periods, expected, rtol=10 * (np.linalg.norm(spin) * DT) ** 2)


def test_symmetric_top_precesses_about_its_angular_momentum():
    """The axis of a top with moments (It, It, I3) turns about L at |L| / It."""
    half, mass, spin = (0.2, 0.2, 0.05), 3.0, np.array([3.0, 0.0, 9.0])
    inertia = box_inertia(mass, half)
    momentum = inertia * spin
    sim = simulate(free_scene(gv.Box(half), mass=mass, angular_velocity=spin))
    length, seconds = np.linalg.norm(momentum), 2.0
    steps(sim, seconds)
    axis = in_world_frame(sim.quaternions[0], np.array([0, 0, 1.0]))
    expected = turned(np.array([0, 0, 1.0]), momentum / length, length / inertia[0] * seconds)
    speed = np.linalg.norm(spin)
    assert np.linalg.norm(axis - expected) < (speed * DT) ** 2 * speed * seconds


# --- dry friction
@MODES
@pytest.mark.parametrize("mu", [0.2, 0.5, 0.9])
def test_box_sticks_on_a_slope_below_the_friction_angle(friction, mu):
    sim = on_slope(np.arctan(mu) - np.radians(2), mu, friction)
    steps(sim, 0.5)
    assert np.linalg.norm(sim.positions[1] - (0, 0, 0.1)) < G * DT**2  # what a single free step would do
    assert not sim.contacts.sliding.all()  # how four corners share the load is not determined: some may be at the limit


@MODES
@pytest.mark.parametrize("mu, excess", [(0.0, 20), (0.2, 2), (0.5, 2), (0.5, 15), (0.9, 10)])
def test_box_slides_on_a_slope_above_the_friction_angle(friction, mu, excess):
    """a = g (sin angle - mu cos angle)."""
    angle = np.arctan(mu) + np.radians(excess)
    sim = on_slope(angle, mu, friction, half=(0.2, 0.2, 0.05))
    steps(sim, 0.5)
    expected = 0.5 * G * (np.sin(angle) - mu * np.cos(angle))
    assert abs(sim.velocities[1, 0] - expected) < G * DT
    assert abs(sim.positions[1, 0] - 0.25 * expected) < 0.5 * G * DT
    assert sim.contacts.sliding.all() or mu == 0.0


@pytest.mark.parametrize("excess, slides", [(-2, False), (2, True)])
def test_tilted_plane_is_tilted_gravity(excess, slides):
    mu = 0.5
    angle = np.arctan(mu) + np.radians(excess)
    stone, up = gv.Material(friction=mu), np.array([np.sin(angle), 0, np.cos(angle)])
    scene = gv.Scene(gravity=(0, 0, -G))
    scene.add_body(gv.Plane(normal=up, offset=0.3), material=stone, fixed=True)
    turn = (np.cos(angle / 2), 0, np.sin(angle / 2), 0)
    scene.add_body(gv.Box((0.2, 0.2, 0.05)), 0.35 * up, stone, quaternion=turn)
    sim = simulate(scene, friction="coulomb")
    steps(sim, 0.4)
    expected = 0.4 * G * (np.sin(angle) - mu * np.cos(angle)) if slides else 0.0
    assert abs(sim.velocities[1] @ (np.cos(angle), 0, -np.sin(angle)) - expected) < G * DT


@MODES
def test_sliding_box_stops_after_v2_over_2_mu_g(friction):
    mu, speed = 0.4, 2.0
    sim = sliding_start(gv.Box((0.2, 0.2, 0.05)), 0.05, mu, speed, friction)
    steps(sim, 1.2 * speed / (mu * G))
    assert abs(sim.positions[1, 0] - speed**2 / (2 * mu * G)) < speed * DT
    assert np.linalg.norm(sim.velocities[1]) < mu * G * DT


@MODES
def test_friction_direction_opposes_sliding_in_the_plane(friction):
    """A box that slides askew keeps its direction: the friction cone is round."""
    mu, speed = 0.4, 2.0
    direction = np.array([np.cos(0.4), np.sin(0.4), 0])
    sim = sliding_start(gv.Box((0.2, 0.2, 0.02)), 0.02, mu, speed, friction)
    sim.velocities[1] = speed * direction
    steps(sim, 0.3)
    assert np.linalg.norm(sim.velocities[1, :2] - (speed - 0.3 * mu * G) * direction[:2]) < G * DT


@MODES
def test_slipping_ball_ends_rolling_at_five_sevenths(friction):
    """Until 2 v0 / (7 mu g) it slows down by mu g t; then it rolls at 5/7 v0."""
    mu, speed, radius = 0.3, 2.0, 0.1
    sim = sliding_start(gv.Sphere(radius), radius, mu, speed, friction)
    slipping = 2 * speed / (7 * mu * G)
    steps(sim, slipping / 2)
    gap = DT * mu * speed if friction == "cone" else 0.0  # lengthens the arm of friction
    assert abs(sim.velocities[1, 0] - (speed - mu * G * sim.time)) < mu * G * DT
    steps(sim, slipping)
    assert abs(sim.velocities[1, 0] - 5 / 7 * speed) < speed * gap / radius + mu * G * DT
    assert abs(sim.velocities[1, 0] - radius * sim.angular_velocities[1, 1]) < speed * gap / radius + mu * G * DT


def test_slipping_ball_with_its_own_moments_of_inertia():
    """A ball with a core: about the axis it rolls on, I = 0.6 m R^2, and it ends at v0 / (1 + 0.6)."""
    mu, speed, radius, mass = 0.3, 2.0, 0.1, 3.0
    stone = gv.Material(friction=mu)
    scene = floor_scene(stone)
    inertia = np.array([0.4, 0.6, 0.4]) * mass * radius**2
    scene.add_body(gv.Sphere(radius), (0, 0, radius), stone, velocity=(speed, 0, 0), mass=mass, inertia=inertia)
    sim = simulate(scene, friction="coulomb")
    steps(sim, 0.6)
    assert abs(sim.velocities[1, 0] - speed / 1.6) < mu * G * DT


@MODES
def test_rolling_friction_slows_a_ball_by_five_sevenths_g_rho_over_r(friction):
    """Rolling without slip: I w' = F R - rho N and m v' = -F give v' = -rho N R / (I + m R^2) = -(5/7) g rho / R."""
    radius, arm, speed = 0.1, 0.01, 1.0
    stone = gv.Material(friction=0.8, rolling_friction=arm)
    scene = floor_scene(stone)
    scene.add_body(gv.Sphere(radius), (0, 0, radius), stone, velocity=(speed, 0, 0), angular_velocity=(0, speed / radius, 0))
    sim = simulate(scene, friction=friction)
    slowing = 5 / 7 * G * arm / radius
    steps(sim, 0.5 * speed / slowing)
    assert abs(sim.velocities[1, 0] - (speed - slowing * sim.time)) < 2 * slowing * DT
    steps(sim, 0.6 * speed / slowing)
    assert abs(sim.velocities[1, 0]) < slowing * DT
    assert abs(sim.positions[1, 0] - speed**2 / (2 * slowing)) < speed * DT


def test_rolling_friction_holds_a_ball_on_a_slope_below_atan_rho_over_r():
    """On a slope the ball starts to roll when the arm of its weight, R tan(angle), exceeds rho."""
    radius, arm = 0.1, 0.01
    stone = gv.Material(friction=0.8, rolling_friction=arm)
    for tilt, rolls in ((0.8 * arm / radius, False), (1.2 * arm / radius, True)):
        angle = np.arctan(tilt)
        scene = floor_scene(stone, gravity=(G * np.sin(angle), 0, -G * np.cos(angle)))
        scene.add_body(gv.Sphere(radius), (0, 0, radius), stone)
        sim = simulate(scene)
        steps(sim, 0.5)
        expected = 0.5 * 5 / 7 * G * (np.sin(angle) - np.cos(angle) * arm / radius) if rolls else 0.0
        assert abs(sim.velocities[1, 0] - expected) < G * np.sin(angle) * DT


@MODES
def test_spinning_friction_slows_a_ball_by_sigma_m_g_over_i(friction):
    radius, arm, rate = 0.1, 0.005, 20.0
    stone = gv.Material(friction=0.5, spinning_friction=arm)
    scene = floor_scene(stone)
    scene.add_body(gv.Sphere(radius), (0, 0, radius), stone, angular_velocity=(0, 0, rate))
    sim = simulate(scene, friction=friction)
    slowing = arm * G / (0.4 * radius**2)
    steps(sim, 0.5 * rate / slowing)
    assert abs(sim.angular_velocities[1, 2] - (rate - slowing * sim.time)) < slowing * DT
    steps(sim, 0.6 * rate / slowing)
    assert abs(sim.angular_velocities[1, 2]) < slowing * DT


def test_without_spinning_friction_a_ball_spins_on():
    scene = floor_scene(gv.Material(friction=0.5))
    scene.add_body(gv.Sphere(0.1), (0, 0, 0.1), gv.Material(friction=0.5), angular_velocity=(0, 0, 20.0))
    sim = simulate(scene)
    steps(sim, 0.3)
    assert abs(sim.angular_velocities[1, 2] - 20.0) < 1e-9


@MODES
@pytest.mark.parametrize("shape, height", [(gv.Box((0.2, 0.2, 0.05)), 0.05), (gv.Sphere(0.1), 0.1)])
def test_sliding_gap_of_the_cone_mode_is_h_mu_v(friction, shape, height):
    """The convex relaxation lifts a sliding body by h mu v_T (design, section 4); Coulomb mode must not."""
    mu = 0.3
    sim = sliding_start(shape, height, mu, 2.0, friction)
    steps(sim, 0.1)
    slip = sim.velocities[1, 0] - height * sim.angular_velocities[1, 1] * isinstance(shape, gv.Sphere)
    gap, artefact = sim.positions[1, 2] - height, DT * mu * slip
    assert slip > 0.5
    if friction == "cone":
        assert abs(gap - artefact) < 2 * DT * mu * 3.5 * mu * G * DT  # the slip changes by at most 7/2 mu g h a step
    else:
        assert abs(gap) < 0.1 * artefact


# --- impacts
@pytest.mark.parametrize("restitution", [0.3, 0.7, 1.0])
def test_bouncing_ball_rises_to_e2_h(restitution):
    assert_bounce(gv.Sphere(0.1), restitution)


@pytest.mark.parametrize("restitution", [0.3, 1.0])
def test_flat_box_bounces_straight_up_to_e2_h(restitution):
    """Its four corners hit the floor at once, so by symmetry it does not start to turn."""
    sim = assert_bounce(gv.Box((0.1, 0.1, 0.1)), restitution)
    assert np.linalg.norm(sim.angular_velocities[1]) < 1e-6


def assert_bounce(shape, restitution, height=0.5, low=0.1, dt=5e-4):
    """Drop a body from the height of its lowest point and look how high that comes after the first bounce."""
    rubber = gv.Material(restitution=restitution, friction=0.0)
    scene = floor_scene(rubber)
    scene.add_body(shape, (0, 0, low + height), rubber)
    sim = simulate(scene, dt=dt)
    fall = np.sqrt(2 * height / G)
    steps(sim, fall * (1 + 0.2 * restitution))
    peak = 0.0
    for _ in range(round(1.5 * restitution * fall / dt)):
        sim.step()
        peak = max(peak, sim.positions[1, 2] - low)
    # half a step's travel from falling, one from meeting the floor early, half from rising
    assert abs(peak - restitution**2 * height) < 2 * G * fall * dt
    return sim


@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_two_balls_of_different_mass_collide_as_in_the_textbook(restitution):
    """Along the line of centres the impulse is (1 + e) (v1 - v2) m1 m2 / (m1 + m2)."""
    m1, m2, v1, v2, ball = 1.0, 3.0, 2.0, -1.0, gv.Material(restitution=restitution, friction=0.0)
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_body(gv.Sphere(0.1), (0, 0, 0), ball, mass=m1, velocity=(v1, 0, 0))
    scene.add_body(gv.Sphere(0.2), (0.5, 0, 0), ball, mass=m2, velocity=(v2, 0, 0))
    sim = simulate(scene)
    steps(sim, 0.2)
    blow = (1 + restitution) * m1 * m2 * (v1 - v2) / (m1 + m2)
    assert np.allclose(sim.velocities, [[v1 - blow / m1, 0, 0], [v2 + blow / m2, 0, 0]], rtol=0, atol=1e-8)


@SOLVERS
def test_every_solver_lets_smooth_balls_part(solver):
    """Without friction and head-on, with restitution 1/2: two equal balls leave with 1/4 and 3/4 of the speed."""
    smooth = gv.Material(friction=0.0, restitution=0.5)
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(gv.Sphere(0.1), [(0, 0, 0), (0.25, 0, 0)], smooth, velocities=[(1, 0, 0), (0, 0, 0)])
    sim = simulate(scene, solver=solver)
    steps(sim, 0.1)
    assert np.allclose(sim.velocities, [(0.25, 0, 0), (0.75, 0, 0)], rtol=0, atol=10 * solver.tolerance)


@pytest.mark.parametrize("apart", [0.0, 0.037])
@pytest.mark.parametrize("strikers", [1, 2, 3])
def test_newtons_cradle(apart, strikers):
    """As many balls leave as strike, at the same speed; the others rest."""
    radius, speed, steel = 0.05, 1.0, gv.Material(restitution=1.0, friction=0.0)
    x = np.arange(5) * (2 * radius + apart)
    x[:strikers] -= 0.1
    scene = gv.Scene(gravity=(0, 0, 0))
    velocities = np.zeros((5, 3))
    velocities[:strikers, 0] = speed
    scene.add_bodies(gv.Sphere(radius), np.column_stack([x, 0 * x, 0 * x]), steel, velocities=velocities)
    sim = simulate(scene)
    steps(sim, 0.5)
    assert np.allclose(sim.velocities, velocities[::-1], rtol=0, atol=1e-9 * speed)


def test_impact_with_friction_starts_to_roll():
    """A ball without spin hits the floor askew: friction is mu (1 + e) m v_n, unless that would reverse the slip."""
    mu, restitution, radius, down = 0.1, 0.8, 0.1, 3.0
    rubber = gv.Material(friction=mu, restitution=restitution)
    scene = floor_scene(rubber, gravity=(0, 0, 0))
    scene.add_body(gv.Sphere(radius), (0, 0, 0.2), rubber, velocity=(5.0, 0, -down))
    sim = simulate(scene)
    steps(sim, 0.1)
    blow = mu * (1 + restitution) * down
    assert np.allclose(sim.velocities[1], (5.0 - blow, 0, restitution * down), rtol=0, atol=1e-9)
    # the ball may meet the floor up to a step early: the arm of friction is longer by half that gap
    assert abs(sim.angular_velocities[1, 1] * 0.4 * radius / blow - 1) < down * DT / radius


def gas(seed=1):
    """27 elastic balls between six walls, which are the bodies 0 to 5."""
    smooth, rng = gv.Material(restitution=1.0, friction=0.0), np.random.default_rng(seed)
    scene = gv.Scene(gravity=(0, 0, 0))
    for normal in np.vstack([np.eye(3), -np.eye(3)]):
        scene.add_body(gv.Plane(normal=normal, offset=-0.5), material=smooth, fixed=True)
    places = np.stack(np.meshgrid(*[[-0.3, 0.0, 0.3]] * 3), axis=-1).reshape(-1, 3)
    scene.add_bodies(gv.Sphere(rng.uniform(0.06, 0.12, 27)), places, smooth, velocities=rng.normal(0, 1, (27, 3)))
    return simulate(scene)


def test_elastic_gas_keeps_energy_and_balances_momentum():
    """Only the walls change the momentum: by the impulses that the contact table gives, to rounding."""
    sim = gas()
    mass = sim.masses[6:, None]
    momentum = start = (mass * sim.velocities[6:]).sum(axis=0)
    energy = 0.5 * np.sum(mass * sim.velocities[6:] ** 2)
    collisions = 0
    for _ in range(1000):
        collisions += sim.step().impacts
        contacts = sim.contacts
        momentum = momentum + contacts.impulse[contacts.body_a < 6].sum(axis=0)
        assert np.allclose((mass * sim.velocities[6:]).sum(axis=0), momentum, rtol=0, atol=1e-9 * np.abs(mass).sum())
        assert abs(sim.report.kinetic_energy / energy - 1) < 1e-3
    assert collisions > 100 and not np.allclose(momentum, start)
    assert np.abs(sim.positions[6:]).max() < 0.5


@pytest.mark.parametrize("kind", ["balls", "boxes"])
def test_collisions_among_themselves_keep_momentum_and_angular_momentum(kind):
    """With friction and half elastic, without outside forces. (Relaxation moves bodies with another velocity than they
    keep, so angular momentum is exact only without it.)"""
    rough, rng, n, mass = gv.Material(restitution=0.5, friction=0.4), np.random.default_rng(3), 8, 2.0
    half = (0.1, 0.12, 0.15)
    shape = gv.Sphere(0.12) if kind == "balls" else gv.Box(half)
    inertia = np.full(3, 0.4 * mass * 0.12**2) if kind == "balls" else box_inertia(mass, half)
    places = 0.25 * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(
        shape,
        places,
        rough,
        masses=np.full(n, mass),
        velocities=-3 * places + rng.normal(0, 0.2, (n, 3)),
        angular_velocities=rng.normal(0, 3, (n, 3)),
        quaternions=rng.normal(0, 1, (n, 4)),
    )
    sim = simulate(scene)

    def momenta():
        linear, angular = mass * sim.velocities.sum(axis=0), mass * np.cross(sim.positions, sim.velocities).sum(axis=0)
        for q, w in zip(sim.quaternions, sim.angular_velocities):
            angular += in_world_frame(q, inertia * in_body_frame(q, w))
        return np.concatenate([linear, angular])

    start, collisions = momenta(), 0
    for _ in range(400):
        collisions += sim.step().impacts
        assert np.allclose(momenta(), start, rtol=0, atol=1e-10)
    assert collisions > 5


# --- rest
@MODES
@pytest.mark.parametrize("shape", [gv.Sphere(0.1), gv.Box((0.1, 0.1, 0.1))])
def test_resting_bodies_press_on_the_floor_with_their_weight(friction, shape):
    """Three columns of three, touching: the floor carries the weight of all, each column its own."""
    stone = gv.Material(density=2000, friction=0.5)
    scene = floor_scene(stone)
    places = [(x, 0, 0.1 + 0.2 * layer) for x in (0, 1, 2) for layer in range(3)]
    ids = scene.add_bodies(shape, places, stone)
    sim = simulate(scene, friction=friction)
    steps(sim, 0.2)
    weight = G * sim.masses[ids].sum()
    allowed = 100 * EXACT.tolerance / (G * DT)  # speeds that the solver may leave, over the speed gained in a step
    assert np.allclose(floor_impulse(sim) / DT, (0, 0, weight), rtol=0, atol=allowed * weight)
    contacts = sim.contacts
    column = contacts.impulse[(contacts.body_a == 0) & (np.abs(contacts.point[:, 0] - 1) < 0.5)].sum(axis=0)
    assert np.allclose(column / DT, (0, 0, weight / 3), rtol=0, atol=allowed * weight)


@MODES
@SOLVERS
def test_every_solver_carries_a_stack_of_two_boxes(solver, friction):
    """Each box presses with the weight above it."""
    stone = gv.Material(friction=0.5)
    scene = floor_scene(stone)
    scene.add_bodies(gv.Box((0.1, 0.1, 0.1)), [(0, 0, 0.1), (0, 0, 0.3)], stone)
    sim = simulate(scene, solver=solver, friction=friction)
    steps(sim, 0.1)
    contacts, weight = sim.contacts, G * sim.masses[1]
    allowed = 100 * solver.tolerance / (G * DT)
    assert np.allclose(floor_impulse(sim) / DT, (0, 0, 2 * weight), rtol=0, atol=allowed * weight)
    between = contacts.impulse[(contacts.body_a == 1) & (contacts.body_b == 2)].sum(axis=0)
    assert np.allclose(between / DT, (0, 0, weight), rtol=0, atol=allowed * weight)


def test_contact_impulses_are_the_change_of_momentum_in_every_step():
    """Balls that fall into a heap: P(t + h) - P(t) = M g h + impulses of the floor, to rounding, settled or not."""
    stone, rng = gv.Material(friction=0.5, restitution=0.2), np.random.default_rng(2)
    scene = floor_scene(stone)
    places = np.stack(np.meshgrid([0, 0.2], [0, 0.2], [0.12, 0.33, 0.54]), axis=-1).reshape(-1, 3)
    scene.add_bodies(gv.Sphere(0.1), places + rng.uniform(-0.01, 0.01, places.shape), stone)
    sim = simulate(scene, solver=gv.GaussSeidel(iterations=20))
    mass = sim.masses[1:, None]
    for _ in range(400):
        before = (mass * sim.velocities[1:]).sum(axis=0)
        sim.step()
        after = (mass * sim.velocities[1:]).sum(axis=0)
        assert np.allclose(after - before, floor_impulse(sim) - (0, 0, mass.sum() * G * DT), rtol=0, atol=1e-11 * mass.sum())


@MODES
@pytest.mark.parametrize("precision", ["single", "double"])
def test_stack_of_eight_boxes_stands(friction, precision):
    """With the default solver, no box moves by 0.5 % of its edge within 2 s."""
    stone = gv.Material(friction=0.5)
    scene = floor_scene(stone)
    places = np.array([(0, 0, 0.1 + 0.2 * k) for k in range(8)])
    scene.add_bodies(gv.Box((0.1, 0.1, 0.1)), places, stone)
    sim = gv.Simulation(scene, 1 / 500, friction=friction, precision=precision, threads=1)
    steps(sim, 2.0)
    assert np.linalg.norm(sim.positions[1:] - places, axis=1).max() < 5e-3 * 0.2


@MODES
@pytest.mark.parametrize("top", [gv.Box((0.1, 0.1, 0.1)), gv.Sphere(0.1)])
def test_heavy_on_light_stands_or_says_that_it_did_not_converge(friction, top):
    """Mass ratio 1000 with the default solver."""
    stone = gv.Material(friction=0.5)
    scene = floor_scene(stone)
    places = np.array([(0, 0, 0.1), (0, 0, 0.3)])
    scene.add_body(gv.Box((0.1, 0.1, 0.1)), places[0], stone, mass=1.0)
    scene.add_body(top, places[1], stone, mass=1000.0)
    sim = gv.Simulation(scene, 1 / 500, friction=friction, threads=1)
    converged = all([sim.step().converged for _ in range(500)])
    assert not converged or np.linalg.norm(sim.positions[1:] - places, axis=1).max() < 0.01 * 0.2


# --- cohesion
@pytest.mark.parametrize("start", [0.0, 1e-4])
def test_ball_hangs_under_a_box_when_cohesion_bears_its_weight(start):
    """Touching exactly, or pressed in a little: 10 % more cohesion than weight holds it."""
    sim, ball = hanging_ball(1.1, start)
    steps(sim, 0.5)
    assert abs(sim.positions[ball, 2] - 0.375) < G * DT**2 + start


def test_ball_falls_from_a_box_when_cohesion_is_below_its_weight():
    """Pulled back by 90 % of its weight while it touches, then free."""
    sim, ball = hanging_ball(0.9)
    n = 300
    for _ in range(n):
        sim.step()
    free = G * DT**2 * n * (n + 1) / 2
    assert abs(0.375 - sim.positions[ball, 2] - free) < 2 * G * DT * n * DT  # two steps of gravity may be lost


def hanging_ball(ratio, pressed=0.0):
    """A ball under a fixed box whose lower face is at z = 0.5, with cohesion = ratio times its weight."""
    radius, density = 0.125, 1000.0
    weight = density * 4 / 3 * np.pi * radius**3 * G
    sticky = gv.Material(density=density, cohesion=ratio * weight)
    scene = gv.Scene(gravity=(0, 0, -G))
    scene.add_body(gv.Box((0.5, 0.5, 0.5)), (0, 0, 1.0), sticky, fixed=True)
    ball = scene.add_body(gv.Sphere(radius), (0, 0, 0.5 - radius + pressed), sticky)
    return simulate(scene), ball


def test_cohesion_adds_to_the_friction_that_a_contact_bears():
    """A sticky box on a vertical wall, without gravity towards it: it holds if mu C exceeds its weight."""
    mu, half, density = 0.5, 0.125, 1000.0
    weight = density * (2 * half) ** 3 * G
    for ratio, holds in ((1.2, True), (0.8, False)):
        sticky = gv.Material(density=density, friction=mu, cohesion=ratio * weight / mu / 4)  # four corners touch
        scene = gv.Scene(gravity=(G, 0, 0))
        scene.add_body(gv.Plane(), material=sticky, fixed=True)
        scene.add_body(gv.Box((half, half, half / 4)), (0, 0, half / 4), sticky, mass=weight / G)
        sim = simulate(scene, friction="coulomb")
        steps(sim, 0.2)
        expected = 0.0 if holds else 0.2 * (1 - ratio) * G
        assert abs(sim.velocities[1, 0] - expected) < G * DT


# --- prescribed motion
def test_conveyor_drags_a_box_up_to_its_speed():
    """mu g t until it has the speed of the belt, and then that."""
    mu, belt = 0.4, 1.5
    rubber = gv.Material(friction=mu)
    scene = floor_scene(rubber, motion=gv.ConstantVelocity((belt, 0, 0)))
    scene.add_body(gv.Box((0.2, 0.2, 0.05)), (0, 0, 0.05), rubber)
    sim = simulate(scene, friction="coulomb")
    steps(sim, 0.2)
    assert abs(sim.velocities[1, 0] - 0.2 * mu * G) < mu * G * DT
    steps(sim, 0.3)
    assert abs(sim.velocities[1, 0] - belt) < mu * G * DT
    assert np.allclose(sim.positions[0], (0.5 * belt, 0, 0), rtol=0, atol=1e-12)


@MODES
def test_conveyor_drags_a_ball_to_two_sevenths_of_its_speed(friction):
    """The ball ends rolling: v - w R = belt speed with m R v + I w = 0 about the contact: v = 2/7 of the belt's."""
    mu, belt, radius = 0.4, 1.0, 0.1
    rubber = gv.Material(friction=mu)
    scene = floor_scene(rubber, motion=gv.ConstantVelocity((belt, 0, 0)))
    gap = DT * mu * belt if friction == "cone" else 0.0
    scene.add_body(gv.Sphere(radius), (0, 0, radius + gap), rubber)
    sim = simulate(scene, friction=friction)
    steps(sim, 0.5)
    assert abs(sim.velocities[1, 0] - 2 / 7 * belt) < belt * gap / radius + mu * G * DT


def test_ball_on_a_turntable_runs_in_circles_at_two_sevenths_of_its_rate():
    """Rolling without slip on a turning plane: v' = (2/7) W z x v, wherever the ball is."""
    table, speed, radius = 7.0, 0.5, 0.1
    rough = gv.Material(friction=1.0)
    scene = floor_scene(rough, motion=gv.ConstantVelocity(angular_velocity=(0, 0, table)))
    scene.add_body(gv.Sphere(radius), (0, 0, radius), rough, velocity=(speed, 0, 0), angular_velocity=(0, speed / radius, 0))
    sim = simulate(scene)
    rate = 2 / 7 * table
    allowed = np.pi * rate * DT * 2  # relative, of a first order method over one turn
    steps(sim, np.pi / rate)
    assert np.allclose(sim.positions[1, :2], (0, 2 * speed / rate), rtol=0, atol=2 * speed / rate * allowed)
    steps(sim, np.pi / rate)
    assert np.allclose(sim.positions[1, :2], (0, 0), rtol=0, atol=2 * speed / rate * allowed)
    assert abs(np.linalg.norm(sim.velocities[1]) / speed - 1) < allowed


@pytest.mark.parametrize("phase", [0.0, 0.7])
def test_oscillation_follows_its_formula(phase):
    amplitude, frequency, start = np.array([0.1, 0.0, -0.2]), 3.0, np.array([1.0, 2.0, 3.0])
    scene = gv.Scene()
    scene.add_body(gv.Box((0.1, 0.1, 0.1)), start, motion=gv.Oscillation(amplitude, frequency, phase))
    sim = simulate(scene, integrator="euler")  # whose velocities are differences of places
    before = start
    for _ in range(400):
        sim.step()
        swing = np.sin(2 * np.pi * frequency * sim.time + phase) - np.sin(phase)
        assert np.allclose(sim.positions[0], start + amplitude * swing, rtol=0, atol=1e-12)
        assert np.allclose(sim.velocities[0], (sim.positions[0] - before) / DT, rtol=0, atol=1e-9)
        before = sim.positions[0].copy()


def test_function_of_time_moves_and_turns_a_body():
    scene = gv.Scene()
    scene.add_body(gv.Box((0.1, 0.1, 0.1)), motion=lambda t: ((t, t * t, 0), (np.cos(t), 0, 0, np.sin(t))))
    sim = simulate(scene)
    steps(sim, 0.3)
    assert np.allclose(sim.positions[0], (0.3, 0.09, 0), rtol=0, atol=1e-12)
    assert np.allclose(sim.quaternions[0], (np.cos(0.3), 0, 0, np.sin(0.3)), rtol=0, atol=1e-12)


def test_box_on_a_shaking_floor_stays_on_it_below_g():
    amplitude, frequency = 0.01, 4.0
    assert amplitude * (2 * np.pi * frequency) ** 2 < G
    sim = shaken_box(amplitude, frequency)
    for _ in range(500):
        sim.step()
        assert abs(sim.positions[1, 2] - sim.positions[0, 2] - 0.1) < G * DT**2


def test_box_takes_off_when_the_floor_falls_away_faster_than_g():
    """z = A sin(w t): contact is lost at sin(w t) = g / (A w^2)."""
    amplitude, frequency = 0.02, 5.0
    rate = 2 * np.pi * frequency
    sim = shaken_box(amplitude, frequency)
    while sim.time < 0.2:
        sim.step()
        if floor_impulse(sim)[2] <= 0.0:
            break
    assert abs(sim.time - np.arcsin(G / (amplitude * rate**2)) / rate) < 2 * DT


def shaken_box(amplitude, frequency):
    """A box that moves with the floor at the start."""
    stone = gv.Material(friction=0.5)
    scene = floor_scene(stone, motion=gv.Oscillation((0, 0, amplitude), frequency))
    scene.add_body(gv.Box((0.1, 0.1, 0.1)), (0, 0, 0.1), stone, velocity=(0, 0, 2 * np.pi * frequency * amplitude))
    return simulate(scene)


# --- who touches whom, and how
def test_ignored_groups_pass_through_each_other():
    stone = gv.Material()
    scene = floor_scene(stone)
    scene.ignore(0, 1)
    scene.ignore(1, 1)
    ghosts = scene.add_bodies(gv.Sphere(0.1), [(0, 0, 0.1), (0, 0, 0.35)], stone, group=1, velocities=[(0, 0, 1), (0, 0, -1)])
    solid = scene.add_body(gv.Sphere(0.1), (5, 0, 0.1), stone, group=2)
    sim = simulate(scene)
    n = 300
    for _ in range(n):
        sim.step()
    free = -G * (n * DT) ** 2 / 2
    assert np.allclose(sim.positions[ghosts, 2], (0.1 + n * DT + free, 0.35 - n * DT + free), rtol=0, atol=1e-12)
    assert abs(sim.positions[solid, 2] - 0.1) < G * DT**2


def test_groups_that_are_not_ignored_touch():
    scene = floor_scene(gv.Material())
    scene.ignore(1, 2)
    scene.add_body(gv.Sphere(0.1), (0, 0, 0.1), group=1)
    scene.add_body(gv.Sphere(0.1), (0, 0, 0.3), group=3)
    sim = simulate(scene)
    steps(sim, 0.1)
    assert np.allclose(sim.positions[1:, 2], (0.1, 0.3), rtol=0, atol=G * DT**2)


def test_set_pair_overrides_the_mixing_rule():
    """Two boxes on a slope of 20 degrees, both with friction 0.9: the pair of one with the floor is set to 0.1."""
    angle, floor, rough, slick = (
        np.radians(20),
        gv.Material(friction=0.9),
        gv.Material(density=900, friction=0.9),
        gv.Material(density=800, friction=0.9),
    )
    scene = floor_scene(floor, gravity=(G * np.sin(angle), 0, -G * np.cos(angle)))
    scene.add_body(gv.Box((0.2, 0.2, 0.05)), (0, 0, 0.05), rough)
    scene.add_body(gv.Box((0.2, 0.2, 0.05)), (0, 1, 0.05), slick)
    scene.set_pair(slick, floor, friction=0.1)
    sim = simulate(scene, friction="coulomb")
    steps(sim, 0.3)
    assert np.linalg.norm(sim.velocities[1]) < G * DT
    assert abs(sim.velocities[2, 0] - 0.3 * G * (np.sin(angle) - 0.1 * np.cos(angle))) < G * DT


def test_set_pair_gives_a_restitution_that_neither_material_has():
    ball, floor, speed = gv.Material(), gv.Material(density=2000), 2.0
    scene = floor_scene(floor, gravity=(0, 0, 0))
    scene.add_body(gv.Sphere(0.1), (0, 0, 0.2), ball, velocity=(0, 0, -speed))
    scene.set_pair(ball, floor, restitution=0.5)
    sim = simulate(scene)
    steps(sim, 0.1)
    assert np.allclose(sim.velocities[1], (0, 0, 0.5 * speed), rtol=0, atol=1e-9)


# --- bodies that come and go
def test_what_lay_on_a_removed_body_falls_freely():
    stone = gv.Material()
    scene = floor_scene(stone)
    scene.add_bodies(gv.Box((0.1, 0.1, 0.1)), [(0, 0, 0.1), (0, 0, 0.3)], stone)
    sim = simulate(scene)
    steps(sim, 0.1)
    sim.remove(1)
    above = sim.positions[2].copy()
    n = 100
    for _ in range(n):
        sim.step()
    assert np.isnan(sim.positions[1]).all()
    assert list(sim.alive) == [True, False, True]
    # it may start with the speed that the solver leaves a resting body
    assert abs(above[2] - sim.positions[2, 2] - G * (n * DT) ** 2 / 2) < 100 * EXACT.tolerance * n * DT + 1e-12
    assert len(sim.contacts) == 0


def test_removed_floor_lets_everything_fall():
    scene = floor_scene(gv.Material())
    scene.add_body(gv.Sphere(0.1), (0, 0, 0.1))
    sim = simulate(scene)
    steps(sim, 0.05)
    sim.remove([0])
    steps(sim, 0.2)
    assert abs(sim.velocities[1, 2] + 0.2 * G) < 1e-9


def test_bodies_inserted_in_a_run_fall_bounce_and_rest():
    """One in free fall from the moment it came, one elastic with a new material, one that leans on what was there."""
    stone = gv.Material(friction=0.5)
    scene = floor_scene(stone)
    old = scene.add_body(gv.Box((0.1, 0.1, 0.1)), (0, 0, 0.1), stone)
    sim = simulate(scene)
    steps(sim, 0.1)
    falling, bouncing = sim.add_bodies(
        gv.Sphere(0.1),
        [(3, 0, 9.0), (6, 0, 0.2)],
        gv.Material(restitution=1.0, friction=0.0),
        velocities=[(1, 0, 0), (0, 0, -3)],
    )
    (resting,) = sim.add_bodies(gv.Box((0.1, 0.1, 0.1)), [(0, 0, 0.3)], stone)
    assert (falling, bouncing, resting) == (2, 3, 4)
    n = 100
    for _ in range(n):
        sim.step()
    assert np.allclose(sim.positions[falling], (3 + n * DT, 0, 9 - G * (n * DT) ** 2 / 2), rtol=0, atol=1e-12)
    travel = 3 * n * DT - 0.1  # down to the floor, the rest up again
    assert abs(sim.positions[bouncing, 2] - (0.1 + travel)) < G * (n * DT) ** 2 + 6 * DT
    assert sim.velocities[bouncing, 2] > 0
    assert np.allclose(sim.positions[[old, resting], 2], (0.1, 0.3), rtol=0, atol=G * DT**2)
    weight = G * (sim.masses[old] + sim.masses[resting])
    assert np.allclose(floor_impulse(sim) / DT, (0, 0, weight), rtol=0, atol=1e-4 * weight)


def test_inserted_body_takes_forces_and_rolling_friction():
    """Fields that the scene did not need at first appear with the bodies that need them."""
    scene = floor_scene(gv.Material(friction=0.8))
    scene.add_body(gv.Sphere(0.1), (0, 0, 0.1))
    sim = simulate(scene)
    steps(sim, 0.05)
    rolling = gv.Material(density=500, friction=0.8, rolling_friction=0.01)
    plate, ball = (
        int(sim.add_bodies(shape, [place], rolling, **options)[0])
        for shape, place, options in (
            (gv.Box((1, 1, 0.1)), (5, 0, 0.5), {"fixed": True}),
            (gv.Sphere(0.1), (5, 0, 0.7), {"velocities": [(1, 0, 0)], "angular_velocities": [(0, 10, 0)]}),
        )
    )
    sim.forces[ball] = (0, 0.0, -G * sim.masses[ball])  # doubles the weight, hence the torque, not the mass
    steps(sim, 0.3)
    slowing = 5 / 7 * 2 * G * 0.01 / 0.1
    assert abs(sim.velocities[ball, 0] - (1 - 0.3 * slowing)) < 2 * slowing * DT
    assert np.linalg.norm(sim.velocities[1]) < G * DT and np.array_equal(sim.positions[plate], (5, 0, 0.5))


def test_inserted_body_can_be_given_a_motion():
    scene = floor_scene(gv.Material())
    sim = simulate(scene)
    (plate,) = sim.add_bodies(gv.Box((1, 1, 0.1)), [(0, 0, 2.0)], fixed=True)
    sim.step()
    sim.set_motion(int(plate), gv.ConstantVelocity((0, 0, 1.0)))
    steps(sim, 0.1)
    assert np.allclose(sim.positions[plate], (0, 0, 2.1), rtol=0, atol=1e-12)
