"""Mechanisms as part of a simulation: same bits, checkpoints, joints that come and go, carriers, and every solver."""

import warnings

import numpy as np
import pytest

import gravel as gv
from gravel.engine import largest_thread_count
from gravel.host.joints import direct
from gravel.host.joints.block import JointBlock
from gravel.io.vtkhdf import read_joints

COLUMNS = ("slide", "slide_speed", "angle", "angle_speed", "force", "torque", "motor_force", "motor_torque", "violation", "broken")
SOLVERS = [gv.GaussSeidel, gv.Jacobi, gv.APGD, gv.BarzilaiBorwein]
MODES = ["direct", "iterative"]
G = 9.81


def mixer(grains=300, function=False):
    """A paddle with a motor, an arm of three boxes with stops and springs, a slide on a spring, a closed linkage of four bars and a
    crank that a gear drives, on a floor under a rain of balls. Returns the scene and some joints by name."""
    scene, names = gv.Scene(), {}
    scene.add_body(gv.Plane(), fixed=True)
    box = lambda half, position, **options: scene.add_body(gv.Box(half), position, **options)  # noqa: E731
    post = box((0.05, 0.05, 0.4), (0, 0, 0.4), fixed=True)
    paddle = box((0.45, 0.03, 0.1), (0.1, 0, 0.25))
    motor = gv.SpeedMotor((lambda t: 8.0) if function else 8.0, limit=500.0)
    names["paddle"] = scene.add_joint(gv.Revolute(post, paddle, point=(0, 0, 0.25), axis=(0, 0, 1), motor=motor))
    last, arm = post, []
    for k in range(3):
        link = box((0.15, 0.04, 0.04), (0.25 + 0.32 * k, 0, 0.75))
        hinge = gv.Revolute(
            last, link, point=(0.09 + 0.32 * k, 0, 0.75), axis=(0, 1, 0), limits=(-0.6, 0.8), friction=0.5, spring=gv.SpringLaw(20.0, 0.5)
        )
        arm.append(scene.add_joint(hinge))
        last = link
    names["arm"] = arm[-1]
    names["spring"] = scene.add_joint(gv.Spring(None, last, point=(0.9, 0, 1.6), point_b=(0.9, 0, 0.75), stiffness=300.0, damping=5.0))
    plate = box((0.2, 0.2, 0.03), (-0.6, 0.5, 0.3))
    slide = gv.Prismatic(None, plate, point=(-0.6, 0.5, 0.3), axis=(0, 0, 1), limits=(-0.2, 0.2), spring=gv.SpringLaw(2000.0, 20.0))
    names["plate"] = scene.add_joint(slide)
    bars = [box((0.2, 0.02, 0.02), (-0.6, -0.5 + 0.1 * (k % 2), 0.2 + 0.4 * (k == 1))) for k in range(2)]
    rods = [box((0.02, 0.02, 0.2), (-0.8 + 0.4 * k, -0.45, 0.4)) for k in range(2)]
    for x, rod in zip((-0.8, -0.4), rods):
        for z, bar in zip((0.2, 0.6), bars):
            scene.add_joint(gv.Revolute(bar, rod, point=(x, -0.45, z), axis=(0, 1, 0)))
    scene.add_joint(gv.Fixed(None, bars[0], point=(-0.6, -0.5, 0.2)))
    crank = box((0.1, 0.03, 0.03), (0.7, 0.6, 0.3))
    names["crank"] = scene.add_joint(gv.Revolute(None, crank, point=(0.65, 0.6, 0.3), axis=(0, 0, 1)))
    names["gear"] = scene.add_joint(gv.Gear(names["paddle"], names["crank"], ratio=-2.0))
    rng = np.random.default_rng(3)
    grid = np.stack(np.meshgrid(np.arange(-7, 8), np.arange(-5, 5), np.arange(2)), axis=-1).reshape(-1, 3)[:grains]
    places = grid * (0.15, 0.15, 0.15) + (0, 0, 1.0) + rng.uniform(-0.02, 0.02, (len(grid), 3))
    scene.add_bodies(gv.Sphere(rng.uniform(0.04, 0.05, len(grid))), places, velocities=np.tile((0.0, 0.0, -5.0), (len(grid), 1)))
    return scene, names


def run_mixer(steps=200, **options):
    scene, names = mixer()
    sim = gv.Simulation(scene, 1e-3, gv.GaussSeidel(iterations=20), **options)
    for _ in range(steps):
        sim.step()
    return sim, names


def tables_equal(one, two):
    return all(np.array_equal(getattr(one, name), getattr(two, name), equal_nan=name != "broken") for name in COLUMNS)


def pendulum(joint_options=None, joint=gv.Revolute, **options):
    """A rod of 2 kg that hangs sideways from the world. Returns the simulation, the rod and the joint."""
    scene = gv.Scene(gravity=(0, 0, -G))
    rod = scene.add_body(gv.Box((0.5, 0.05, 0.05)), position=(0.5, 0, 1), mass=2.0, inertia=(0.01, 0.2, 0.2))
    number = scene.add_joint(joint(None, rod, **{"point": (0, 0, 1), "axis": (0, 1, 0), **(joint_options or {})}))
    return gv.Simulation(scene, **{"dt": 1e-3, "precision": "double", **options}), rod, number


def point_of(sim, body, local):
    """Where a point of a body is."""
    w, x, y, z = sim.quaternions[body]
    u, local = np.array([x, y, z]), np.asarray(local, float)
    return sim.positions[body] + local + 2 * np.cross(u, np.cross(u, local) + w * local)


def near(have, want, tolerance):
    """Whether all numbers agree within an absolute tolerance; NaN where the other is NaN."""
    return np.allclose(have, want, rtol=0.0, atol=tolerance, equal_nan=True)


def energy(sim):
    """Kinetic energy, J."""
    total = 0.0
    for b in np.flatnonzero(sim.movable):
        w, x, y, z = sim.quaternions[b] * (1, -1, -1, -1)
        u, spin = np.array([x, y, z]), sim.angular_velocities[b].astype(float)
        spin = spin + 2 * np.cross(u, np.cross(u, spin) + w * spin)
        masses = 1 / sim.bodies.inverse_mass[b]
        total += 0.5 * (masses[0] * (sim.velocities[b].astype(float) ** 2).sum() + (masses[1:] * spin**2).sum())
    return total


@pytest.fixture
def stiff(monkeypatch):
    """Joints that are solved at once yield a little, by a share of their response. Here they do not."""
    monkeypatch.setattr(direct, "softness_of", lambda real: 1e-12)


# --- the same bits
@pytest.mark.parametrize("joints", MODES)
@pytest.mark.skipif(largest_thread_count() < 2, reason="one core: there is only one number of threads to compare")
def test_same_bits_on_one_and_two_threads(joints):
    (one, _), (two, _) = run_mixer(threads=1, joints=joints), run_mixer(threads=2, joints=joints)
    a, b, balls = one.contacts.body_a, one.contacts.body_b, one.bodies.shape == 0
    assert (~balls[a] & balls[b] & (a > 1)).sum() > 10  # the rain has come down on the mechanism
    assert one.state_hash() == two.state_hash()
    assert tables_equal(one.joints, two.joints)


def test_same_bits_twice_and_other_bits_for_another_mechanism():
    (first, names), (second, _) = run_mixer(), run_mixer()
    assert first.state_hash() == second.state_hash() and tables_equal(first.joints, second.joints)
    scene, names = mixer()
    other = gv.Simulation(scene, 1e-3, gv.GaussSeidel(iterations=20))
    other.set_motor(names["paddle"], gv.SpeedMotor(8.001, limit=400.0))
    for _ in range(200):
        other.step()
    assert other.state_hash() != first.state_hash()


def test_the_mixer_does_what_it_should():
    """So that the tests of bits are about a mechanism that works."""
    sim, names = run_mixer(200, precision="double")
    table = sim.joints
    assert table.angle_speed[names["paddle"]] == pytest.approx(8.0, rel=1e-6) and 1.2 < table.angle[names["paddle"]] < 1.6
    assert abs(table.motor_torque[names["paddle"]]) <= 500.0
    assert table.angle[names["crank"]] == pytest.approx(-2.0 * table.angle[names["paddle"]], abs=1e-5)
    assert -0.6 - 1e-4 <= table.angle[names["arm"]] <= 0.8 + 1e-4
    assert -0.2 - 1e-4 <= table.slide[names["plate"]] <= 0.2 + 1e-4
    assert sim.report.joint_violation < 1e-5 and not table.broken.any()
    assert np.isnan(table.slide[names["paddle"]]) and np.isnan(table.angle[names["plate"]])


# --- checkpoints
@pytest.mark.parametrize("joints", MODES)
@pytest.mark.parametrize("precision", ["single", "double"])
def test_resume_continues_bit_for_bit(joints, precision, tmp_path):
    sim, names = run_mixer(100, joints=joints, precision=precision)
    sim.save(tmp_path / "state.h5")
    resumed = gv.Simulation.load(tmp_path / "state.h5")
    assert resumed.state_hash() == sim.state_hash()
    for name in ("slide", "slide_speed", "angle", "angle_speed", "broken", "violation"):
        assert np.array_equal(getattr(resumed.joints, name), getattr(sim.joints, name), equal_nan=name != "broken")
    for _ in range(100):
        sim.step()
        resumed.step()
    assert resumed.state_hash() == sim.state_hash() and resumed.time == sim.time
    assert tables_equal(resumed.joints, sim.joints)
    assert resumed.report.joint_violation == sim.report.joint_violation


def heavy_load():
    """Ten links of 1 kg, level, with 1000 kg at the end: swings down, and its links are stiff against turning."""
    scene = gv.Scene(gravity=(0, 0, -G))
    links = [scene.add_body(gv.Capsule(0.02, 0.05), (0.1 + 0.2 * k, 0, 0), quaternion=(1, 0, 1, 0), mass=1.0) for k in range(10)]
    crate = scene.add_body(gv.Box((0.5, 0.5, 0.5)), (2.5, 0, 0), mass=1000.0)
    ends = [None, *links, crate]
    for k in range(11):
        scene.add_joint(gv.Spherical(ends[k], ends[k + 1], point=(0.2 * k, 0, 0)))
    return gv.Simulation(scene, 2e-3)


def test_resume_with_stiff_links(tmp_path):
    """What a step takes from the reactions of the step before is part of the state."""
    sim = heavy_load()
    sim.run(until=0.4)
    sim.save(tmp_path / "state.h5")
    resumed = gv.Simulation.load(tmp_path / "state.h5")
    assert tables_equal(resumed.joints, sim.joints)
    for _ in range(20):
        sim.step()
        resumed.step()
    assert resumed.state_hash() == sim.state_hash() and tables_equal(resumed.joints, sim.joints)


def test_a_joint_elsewhere_does_not_disturb_stiff_links():
    """A joint between other bodies is added while they swing: nothing changes for them."""
    sims = heavy_load(), heavy_load()
    for k, sim in enumerate(sims):
        balls = sim.add_bodies(gv.Sphere(0.1), [(0, 50, 0), (0, 51, 0)])
        sim.run(until=0.4)
        if k:
            sim.add_joint(gv.Distance(*balls.tolist(), point=tuple(sim.positions[balls[0]]), point_b=tuple(sim.positions[balls[1]])))
        sim.run(until=0.44)
    assert near(sims[0].positions, sims[1].positions, 1e-9)


def test_turns_and_broken_joints_are_kept(tmp_path):
    """An angle counts on over full turns, and what is out of force stays so. (The wheel turns from half of the first step on.)"""
    scene = gv.Scene()
    wheel = scene.add_body(gv.Cylinder(0.3, 0.05), (0, 0, 2))
    weight = scene.add_body(gv.Sphere(0.1), (3, 0, 2))
    axle = scene.add_joint(gv.Revolute(None, wheel, point=(0, 0, 2), axis=(0, 0, 1), motor=gv.SpeedMotor(-50.0)))
    thread = scene.add_joint(gv.Spherical(None, weight, point=(3, 0, 2)))
    sim = gv.Simulation(scene, 1e-3, precision="double")
    sim.run(until=0.3)
    sim.release_joint(thread)
    sim.run(until=0.5)
    sim.save(tmp_path / "state.h5")
    resumed = gv.Simulation.load(tmp_path / "state.h5")
    assert resumed.joints.angle[axle] == sim.joints.angle[axle] == pytest.approx(-50.0 * 0.4995, abs=1e-6)
    assert resumed.joints.broken.tolist() == [False, True]
    sim.run(until=0.8)
    resumed.run(until=0.8)
    assert resumed.state_hash() == sim.state_hash()
    assert resumed.joints.angle[axle] == sim.joints.angle[axle] == pytest.approx(-50.0 * 0.7995, abs=1e-6)
    assert resumed.velocities[weight, 2] == pytest.approx(-G * 0.5, rel=1e-4)


def test_joints_that_came_later_and_motors_that_were_changed_are_kept(tmp_path):
    sim, rod, hinge = pendulum({"motor": gv.SpeedMotor(1.0)})
    sim.run(until=0.1)
    ball = int(sim.add_bodies(gv.Sphere(0.1), [point_of(sim, rod, (0.5, 0, 0)) - (0, 0, 0.3)])[0])
    rope = sim.add_joint(gv.Spherical(rod, ball, point=tuple(point_of(sim, rod, (0.5, 0, 0)))))
    sim.set_motor(hinge, gv.PositionMotor(0.5, stiffness=200.0, damping=20.0))
    sim.run(until=0.2)
    sim.save(tmp_path / "state.h5")
    resumed = gv.Simulation.load(tmp_path / "state.h5")
    sim.run(until=0.4)
    resumed.run(until=0.4)
    assert resumed.state_hash() == sim.state_hash() and tables_equal(resumed.joints, sim.joints)
    assert len(resumed.joints.broken) == 2 and np.linalg.norm(resumed.joints.force[rope]) > 1.0


def test_motors_that_are_functions_are_asked_for(tmp_path):
    """The sentence says what to pass; what is passed goes on bit for bit."""
    scene, names = mixer(grains=60, function=True)
    paddle, motor = names["paddle"], gv.SpeedMotor(lambda t: 8.0, limit=400.0)
    sim = gv.Simulation(scene, 1e-3)
    sim.run(until=0.05)
    sim.save(tmp_path / "state.h5")
    with pytest.raises(ValueError) as caught:
        gv.Simulation.load(tmp_path / "state.h5")
    text = str(caught.value)
    assert "\n" not in text and f"joint {paddle}" in text and "Python function" in text and f"laws={{{paddle}:" in text
    with pytest.raises(ValueError, match=f"joint {paddle}"):
        gv.Simulation.load(tmp_path / "state.h5", laws={names["arm"]: motor})
    with pytest.raises((TypeError, ValueError), match=f"joint {paddle}"):
        gv.Simulation.load(tmp_path / "state.h5", laws={paddle: "fast"})
    resumed = gv.Simulation.load(tmp_path / "state.h5", laws={paddle: motor})
    sim.run(until=0.1)
    resumed.run(until=0.1)
    assert resumed.state_hash() == sim.state_hash() and tables_equal(resumed.joints, sim.joints)


@pytest.mark.parametrize("kind", ["Spring", "RotationalSpring", "Revolute"])
def test_springs_that_are_functions_are_asked_for(kind, tmp_path):
    law = lambda x, v: -50.0 * x**3 - 0.3 * v  # noqa: E731
    scene = gv.Scene()
    rod = scene.add_body(gv.Box((0.5, 0.05, 0.05)), position=(0.5, 0, 1))
    options = {"spring": gv.SpringLaw(force=law)} if kind == "Revolute" else {}
    number = scene.add_joint(gv.Revolute(None, rod, point=(0, 0, 1), axis=(0, 1, 0), **options))
    if kind == "Spring":
        number = scene.add_joint(gv.Spring(None, rod, point=(1, 0, 1.5), point_b=(1, 0, 1), force=law))
    if kind == "RotationalSpring":
        number = scene.add_joint(gv.RotationalSpring(None, rod, point=(0, 0, 1), axis=(0, 1, 0), force=law))
    sim = gv.Simulation(scene, 1e-3, precision="double")
    sim.run(until=0.05)
    sim.save(tmp_path / "state.h5")
    with pytest.raises(ValueError, match=f"joint {number}.*laws={{{number}:"):
        gv.Simulation.load(tmp_path / "state.h5")
    resumed = gv.Simulation.load(tmp_path / "state.h5", laws={number: gv.SpringLaw(force=law)})
    sim.run(until=0.1)
    resumed.run(until=0.1)
    assert resumed.state_hash() == sim.state_hash() and tables_equal(resumed.joints, sim.joints)


# --- who collides
def overlapping(**options):
    """Two boxes that overlap, on a hinge."""
    scene = gv.Scene(gravity=(0, 0, 0))
    a, b = (scene.add_body(gv.Box((0.5, 0.1, 0.1)), (0.8 * k, 0, 0)) for k in range(2))
    joint = scene.add_joint(gv.Revolute(a, b, point=(0.4, 0, 0), axis=(0, 0, 1), **options))
    return scene, a, b, joint


@pytest.mark.parametrize("broad_phase", ["grid", "bvh", "sap", "brute"])
def test_joined_bodies_do_not_collide_unless_asked(broad_phase):
    for collide in (False, True):
        scene, *_ = overlapping(collide=collide)
        report = gv.Simulation(scene, 1e-3, broad_phase=broad_phase).step()
        assert (report.contacts > 0) == collide


def test_one_joint_that_lets_collide_does_not_undo_another():
    """Springs let their bodies touch; the hinge between the same bodies does not."""
    scene, a, b, _ = overlapping()
    scene.add_joint(gv.Spring(a, b, point=(0, 0, 0), point_b=(0.8, 0, 0), stiffness=10.0))
    assert gv.Simulation(scene, 1e-3).step().contacts == 0


def test_springs_let_their_bodies_collide():
    scene = gv.Scene(gravity=(0, 0, 0))
    a, b = (scene.add_body(gv.Sphere(0.5), (0.8 * k, 0, 0)) for k in range(2))
    scene.add_joint(gv.Spring(a, b, point=(0, 0, 0), point_b=(0.8, 0, 0), stiffness=10.0))
    assert gv.Simulation(scene, 1e-3).step().contacts == 1


def test_only_the_joined_pair_is_left_out():
    scene, a, b, _ = overlapping()
    ball = scene.add_body(gv.Sphere(0.1), (0.4, 0.15, 0))
    sim = gv.Simulation(scene, 1e-3)
    sim.step()
    pairs = {tuple(sorted(pair)) for pair in zip(sim.contacts.body_a.tolist(), sim.contacts.body_b.tolist())}
    assert pairs == {(a, ball), (b, ball)}


def test_a_joint_to_a_fixed_body_leaves_that_pair_out_too():
    scene = gv.Scene()
    floor = scene.add_body(gv.Plane(), fixed=True)
    block = scene.add_body(gv.Box((0.2, 0.2, 0.2)), (0, 0, 0.1))
    scene.add_joint(gv.Prismatic(floor, block, point=(0, 0, 0.1), axis=(0, 0, 1)))
    sim = gv.Simulation(scene, 1e-3)
    assert sim.step().contacts == 0
    sim.run(until=0.1)
    assert sim.positions[block, 2] == pytest.approx(0.1 - G * 0.1**2 / 2, abs=2e-3)  # through the floor


def test_bodies_collide_again_when_their_joint_is_gone():
    scene, _, _, joint = overlapping()
    sim = gv.Simulation(scene, 1e-3)
    assert sim.step().contacts == 0
    sim.release_joint(joint)
    assert sim.step().contacts > 0


def test_a_joint_that_comes_later_stops_collisions():
    scene = gv.Scene(gravity=(0, 0, 0))
    a, b = (scene.add_body(gv.Box((0.5, 0.1, 0.1)), (0.99 * k, 0, 0)) for k in range(2))
    sim = gv.Simulation(scene, 1e-3)
    assert sim.step().contacts > 0
    sim.add_joint(gv.Spherical(a, b, point=(0.5, 0, 0)))
    assert sim.step().contacts == 0


# --- joints that come and go
def test_release():
    """A pendulum at its height, let go: it falls as it flew."""
    sim, rod, hinge = pendulum()
    sim.run(until=0.2)
    assert not sim.joints.broken[hinge] and np.linalg.norm(sim.joints.force[hinge]) > 1
    velocity, spin = sim.velocities[rod].copy(), sim.angular_velocities[rod].copy()
    sim.release_joint(hinge)
    assert sim.joints.broken[hinge]
    sim.run(until=0.5)
    assert near(sim.velocities[rod], velocity + (0, 0, -G * 0.3), 1e-9)
    assert near(sim.angular_velocities[rod], spin, 1e-9)
    assert np.array_equal(sim.joints.force[hinge], np.zeros(3)) and sim.report.joint_violation == 0.0


def hanging(**options):
    """10 kg on a ball joint, at rest."""
    scene = gv.Scene(gravity=(0, 0, -G))
    weight = scene.add_body(gv.Sphere(0.1), (0, 0, 0), mass=10.0)
    joint = scene.add_joint(gv.Spherical(None, weight, point=(0, 0, 0.5), **options))
    return gv.Simulation(scene, 1e-3, precision="double"), weight, joint


def test_breaking_force():
    """The weight is 98.1 N."""
    sim, weight, joint = hanging(break_force=98.2)
    sim.run(until=0.1)
    assert not sim.joints.broken[joint] and sim.joints.force[joint, 2] == pytest.approx(98.1, rel=1e-6)
    sim.forces[weight] = (0, 0, -0.2)
    sim.run(until=0.11)
    assert sim.joints.broken[joint]
    sim.run(until=0.31)
    assert sim.velocities[weight, 2] == pytest.approx(-(G + 0.02) * 0.2, rel=0.06)  # fell from t = 0.10 or a little later
    assert np.array_equal(sim.joints.force[joint], np.zeros(3))


def test_breaking_torque():
    """A welded rod of 2 kg carries 2 * 9.81 * 0.5 = 9.81 N m."""
    for strength, breaks in ((9.7, True), (9.9, False)):
        sim, rod, joint = pendulum({"break_torque": strength}, gv.Fixed)
        sim.run(until=0.1)
        assert bool(sim.joints.broken[joint]) == breaks
        assert (sim.positions[rod, 2] < 0.999) == breaks


def test_a_breaking_joint_takes_its_gear_along():
    scene = gv.Scene(gravity=(0, 0, 0))
    wheels = [scene.add_body(gv.Cylinder(0.1, 0.02), (k, 0, 0)) for k in range(2)]
    axles = [
        scene.add_joint(gv.Revolute(None, w, point=(k, 0, 0), axis=(0, 0, 1), motor=gv.SpeedMotor(1.0) if k == 0 else None))
        for k, w in enumerate(wheels)
    ]
    scene.add_joint(gv.Gear(*axles, ratio=-3.0))
    sim = gv.Simulation(scene, 1e-3, precision="double")
    sim.run(until=0.1)
    assert sim.joints.angle_speed[axles[1]] == pytest.approx(-3.0, abs=1e-9)
    sim.release_joint(axles[0])
    sim.run(until=0.2)
    assert np.isfinite(sim.velocities).all()
    assert sim.joints.angle_speed[axles[1]] == pytest.approx(-3.0, abs=1e-9)  # turns on, driven by nothing


def test_a_gear_can_be_released_alone():
    scene = gv.Scene(gravity=(0, 0, 0))
    wheels = [scene.add_body(gv.Cylinder(0.1, 0.02), (k, 0, 0)) for k in range(2)]
    motor = gv.SpeedMotor(1.0)
    axles = [scene.add_joint(gv.Revolute(None, w, point=(k, 0, 0), axis=(0, 0, 1), motor=motor)) for k, w in enumerate(wheels[:1])]
    axles.append(scene.add_joint(gv.Revolute(None, wheels[1], point=(1, 0, 0), axis=(0, 0, 1))))
    gear = scene.add_joint(gv.Gear(*axles, ratio=2.0))
    sim = gv.Simulation(scene, 1e-3, precision="double")
    sim.run(until=0.1)
    sim.release_joint(gear)
    sim.set_motor(axles[0], gv.SpeedMotor(-1.0))
    sim.run(until=0.2)
    assert sim.joints.broken.tolist() == [False, False, True]
    assert near(sim.joints.angle_speed[axles], [-1.0, 2.0], 1e-9)


def test_a_gear_that_comes_later_moves_nothing_by_itself():
    """One wheel has turned by 1 rad, the other has not; both stand still when they are coupled, and turn together from there on."""
    scene = gv.Scene(gravity=(0, 0, 0))
    wheels = [scene.add_body(gv.Cylinder(0.1, 0.02), (k, 0, 0)) for k in range(2)]
    motor = gv.PositionMotor(lambda t: min(10 * t, 1.0))
    axles = [scene.add_joint(gv.Revolute(None, w, point=(k, 0, 0), axis=(0, 0, 1), motor=motor)) for k, w in enumerate(wheels)]
    sim = gv.Simulation(scene, 1e-3, precision="double")
    sim.set_motor(axles[1], gv.ForceMotor(0.0))
    sim.run(until=0.2)
    assert near(sim.joints.angle, (1.0, 0.0), 1e-9)
    sim.add_joint(gv.Gear(*axles, ratio=2.0))
    sim.run(until=0.3)
    assert near(sim.joints.angle[axles], (1.0, 0.0), 1e-9)
    sim.set_motor(axles[0], gv.SpeedMotor(1.0))
    sim.run(until=0.4)
    assert near(sim.joints.angle[axles], (1.0 + 1.0 * 0.0995, 2.0 * 0.0995), 1e-6)  # the speed is there half a step later


def test_add_joint_while_it_runs():
    """A falling ball is caught on a rod of the length that it has by then."""
    scene = gv.Scene(gravity=(0, 0, -G))
    ball = scene.add_body(gv.Sphere(0.1), (1, 0, 0))
    sim = gv.Simulation(scene, 1e-3, precision="double")
    sim.run(until=0.2)
    assert len(sim.joints.broken) == 0
    place = sim.positions[ball].copy()
    rod = sim.add_joint(gv.Distance(None, ball, point=(0, 0, 0), point_b=tuple(place)))
    assert rod == 0
    for k in range(300):
        sim.step()
        off = np.linalg.norm(sim.positions[ball]) - np.linalg.norm(place)
        # the step looks half a step ahead: off by v h / 2 when the ball is caught, by the height of an arc, v^2 h^2 / 8 l, from then on
        assert abs(off) < (2e-4 if k < 2 else 1.2 * np.sum(sim.velocities[ball] ** 2) * 1e-6 / 8 / np.linalg.norm(place))
    assert sim.joints.slide[rod] == pytest.approx(np.linalg.norm(sim.positions[ball]), abs=1e-12)
    assert sim.positions[ball, 0] < 0.9


def test_ids_count_on():
    sim, rod, hinge = pendulum()
    sim.step()
    ball = int(sim.add_bodies(gv.Sphere(0.1), [(2, 0, 1)])[0])
    first = sim.add_joint(gv.Spherical(None, ball, point=(2, 0, 2)))
    sim.release_joint(first)
    second = sim.add_joint(gv.Spherical(None, ball, point=(2, 0, 2)))
    sim.step()
    assert (hinge, first, second) == (0, 1, 2)
    assert sim.joints.broken.tolist() == [False, True, False]


def test_a_joint_that_comes_later_starts_from_zero():
    """Its angle counts from where the bodies lie then; those that were there keep theirs."""
    sim, rod, hinge = pendulum({"motor": gv.SpeedMotor(2.0)})
    sim.run(until=0.5)
    tip = point_of(sim, rod, (0.5, 0, 0))
    spin = np.array([0.0, 2.0, 0.0])
    moving = {"velocities": [np.cross(spin, tip - (0, 0, 1))], "angular_velocities": [spin]}
    blade = int(sim.add_bodies(gv.Box((0.1, 0.05, 0.01)), [tip], **moving)[0])
    second = sim.add_joint(gv.Revolute(rod, blade, point=tuple(tip), axis=(0, 1, 0), motor=gv.SpeedMotor(-2.0)))
    sim.run(until=1.0)
    assert sim.joints.angle[hinge] == pytest.approx(2.0 * 0.9995, abs=1e-6)  # the step looks half a step ahead
    assert sim.joints.angle[second] == pytest.approx(-2.0 * 0.4995, abs=1e-4)


def test_the_scene_is_not_changed_by_its_simulation():
    scene, _ = mixer(grains=5)
    number = len(scene.mechanism)
    sim = gv.Simulation(scene, 1e-3)
    ball = int(sim.add_bodies(gv.Sphere(0.1), [(5, 0, 1)])[0])
    sim.add_joint(gv.Spherical(None, ball, point=(5, 0, 2)))
    sim.release_joint(0)
    sim.step()
    assert len(scene.mechanism) == number
    again = gv.Simulation(scene, 1e-3)
    assert len(again.joints.broken) == number and not again.joints.broken.any()


def test_set_motor():
    sim, _, hinge = pendulum({"motor": gv.SpeedMotor(1.0)})
    sim.run(until=0.1)
    assert sim.joints.angle_speed[hinge] == pytest.approx(1.0, abs=1e-6)
    sim.set_motor(hinge, gv.SpeedMotor(lambda t: 3.0))
    sim.run(until=0.2)
    assert sim.joints.angle_speed[hinge] == pytest.approx(3.0, abs=1e-6)
    sim.set_motor(hinge, gv.PositionMotor(0.1))
    sim.run(until=0.3)
    assert sim.joints.angle[hinge] == pytest.approx(0.1, abs=1e-6)
    sim.set_motor(hinge, gv.ForceMotor(0.5))
    sim.step()
    assert sim.joints.motor_torque[hinge] == pytest.approx(0.5, rel=1e-9)


# --- assembly
def apart():
    """Two rods on world hinges whose ends miss each other by 3 cm; a ball joint shall bring them together."""
    scene = gv.Scene(gravity=(0, 0, 0))
    rods = [scene.add_body(gv.Box((0.5, 0.05, 0.05)), (0.5 + 1.03 * k, 0, 0)) for k in range(2)]
    for k, rod in enumerate(rods):
        scene.add_joint(gv.Revolute(None, rod, point=(0.1 + 1.73 * k, 0, 0.3), axis=(0, 1, 0)))
    ball = scene.add_joint(gv.Spherical(*rods, point=(1.0, 0, 0), point_b=(1.03, 0, 0)), assemble=True)
    return scene, rods, ball


def test_assembly_closes_gaps():
    """The points meet before the first step, no body has gone far, and none has got a speed."""
    scene, (a, b), ball = apart()
    sim = gv.Simulation(scene, 1e-3, precision="double")
    gap = point_of(sim, b, (-0.5, 0, 0)) - point_of(sim, a, (0.5, 0, 0))
    assert np.linalg.norm(gap) < 1e-8 and np.abs(sim.joints.violation).max() < 1e-8
    assert sim.time == 0.0 and sim.steps == 0
    assert np.abs(sim.positions - scene.bodies.position).max() < 0.1
    assert energy(sim) == 0.0
    report = sim.step()
    assert energy(sim) < 1e-12 and report.joint_violation < 1e-8
    sim.run(until=0.1)
    assert energy(sim) < 1e-12 and np.linalg.norm(sim.joints.force[ball]) < 0.01


def test_assembly_leaves_the_scene_and_fixed_bodies_where_they_are():
    scene = gv.Scene(gravity=(0, 0, 0))
    wall = scene.add_body(gv.Box((0.1, 1, 1)), (-0.1, 0, 0), fixed=True)
    door = scene.add_body(gv.Box((0.5, 0.02, 0.8)), (0.55, 0.02, 0.01))
    scene.add_joint(
        gv.Revolute(wall, door, point=(0, 0, 0), point_b=(0.05, 0.02, 0.01), axis=(0, 0, 1), axis_b=(0.03, 0, 1)), assemble=True
    )
    before = scene.bodies.position.copy(), scene.bodies.quaternion.copy()
    sim = gv.Simulation(scene, 1e-3, precision="double")
    assert np.array_equal(scene.bodies.position, before[0]) and np.array_equal(scene.bodies.quaternion, before[1])
    assert np.array_equal(sim.positions[wall], before[0][wall])
    assert np.abs(point_of(sim, door, (-0.5, 0, 0))).max() < 1e-8
    axis = point_of(sim, door, np.array([0.03, 0, 1]) / np.hypot(0.03, 1)) - sim.positions[door]
    assert near(axis, (0, 0, 1), 1e-8)


def test_assembly_of_what_meets_changes_nothing():
    scene = gv.Scene()
    rod = scene.add_body(gv.Box((0.5, 0.05, 0.05)), position=(0.5, 0, 1))
    scene.add_joint(gv.Revolute(None, rod, point=(0, 0, 1), axis=(0, 1, 0)), assemble=True)
    sim = gv.Simulation(scene, 1e-3)
    assert np.array_equal(sim.positions, scene.bodies.position) and np.array_equal(sim.quaternions, scene.bodies.quaternion)


def test_assembly_of_rods():
    """A rod that is too short and not square to its axis, and a slide too near and askew, on free bodies: closed before the first
    step, each with its length, and nothing moves."""
    scene = gv.Scene(gravity=(0, 0, 0))
    ball, block = scene.add_body(gv.Sphere(0.1), (0.5, 0, 0.02)), scene.add_body(gv.Box((0.1, 0.2, 0.1)), (0.5, 2, 0.03))
    rod = gv.RevoluteSpherical(None, ball, point=(0, 0, 0), axis=(0, 0, 1), point_b=(0.45, 0, 0.02), length=0.5)
    slide = gv.RevoluteTranslational(
        None, block, point=(0, 1.8, 0), axis=(0, 0, 1), point_b=(0.45, 2, 0.03), slide=(-0.02, -1, -0.05), length=0.5
    )
    for joint in (rod, slide):
        scene.add_joint(joint, assemble=True)
    sim = gv.Simulation(scene, 1e-3, precision="double")
    for _ in range(2):
        end, on_slide = point_of(sim, ball, (-0.05, 0, 0)), point_of(sim, block, (-0.05, 0, 0)) - (0, 1.8, 0)
        along = point_of(sim, block, np.array((-0.02, -1, -0.05)) / np.linalg.norm((0.02, 1, 0.05))) - sim.positions[block]
        assert abs(np.linalg.norm(end) - 0.5) < 1e-8 and abs(end[2]) < 1e-8
        assert abs(on_slide[2]) < 1e-8 and abs(along[2]) < 1e-8
        assert abs(np.cross(on_slide, along)[2] + 0.5) < 1e-8
        assert energy(sim) < 1e-12 and np.abs(sim.joints.violation).max() < 1e-8
        sim.step()


def test_assembly_that_cannot_be_is_refused():
    """Two points of one body cannot both be where they are wanted: 1 m apart there, 2 m apart here."""
    scene = gv.Scene()
    rod = scene.add_body(gv.Box((1, 0.05, 0.05)), (0, 0, 0))
    scene.add_joint(gv.Spherical(None, rod, point=(-0.5, 0, 0), point_b=(-1, 0, 0)), assemble=True)
    scene.add_joint(gv.Spherical(None, rod, point=(0.5, 0, 0), point_b=(1, 0, 0)), assemble=True)
    with pytest.raises(ValueError, match="joint [01]") as caught:
        gv.Simulation(scene, 1e-3)
    assert "\n" not in str(caught.value)


def test_assembly_keeps_velocities():
    scene = gv.Scene(gravity=(0, 0, 0))
    ball = scene.add_body(gv.Sphere(0.1), (1, 0, 0), velocity=(0, 2, 0))
    scene.add_joint(gv.Distance(None, ball, point=(0, 0, 0), point_b=(1, 0, 0), length=1.1), assemble=True)
    sim = gv.Simulation(scene, 1e-3, precision="double")
    assert np.linalg.norm(sim.positions[ball]) == pytest.approx(1.1, abs=1e-9)
    assert np.array_equal(sim.velocities[ball], (0, 2, 0))
    sim.run(until=0.1)
    assert np.linalg.norm(sim.velocities[ball]) <= 2.0 * (1 + 1e-6)


# --- bodies that forces do not move
@pytest.mark.parametrize("first, most", [(True, 1e-10), (False, 1e-6)])
def test_joints_to_fixed_bodies_are_joints_to_the_world(first, most):
    """The same motion from either end; if the rod is named first, up to the step's own error, as the rows lie in its frame then."""
    free, rod, hinge = pendulum()
    scene = gv.Scene(gravity=(0, 0, -G))
    wall = scene.add_body(gv.Box((0.1, 0.1, 0.1)), (-0.1, 0, 1), quaternion=(1, 0.2, 0.3, 0.4), fixed=True)
    body = scene.add_body(gv.Box((0.5, 0.05, 0.05)), position=(0.5, 0, 1), mass=2.0, inertia=(0.01, 0.2, 0.2))
    ends = (wall, body) if first else (body, wall)
    joint = scene.add_joint(gv.Revolute(*ends, point=(0, 0, 1), axis=(0, 1, 0)))
    sim = gv.Simulation(scene, 1e-3, precision="double")
    free.run(until=0.5)
    sim.run(until=0.5)
    assert near(sim.positions[body], free.positions[rod], most)
    sign = 1 if first else -1
    assert sim.joints.angle[joint] == pytest.approx(sign * free.joints.angle[hinge], abs=most)
    assert near(sim.joints.force[joint], sign * free.joints.force[hinge], 1e3 * most)
    assert np.array_equal(sim.positions[wall], (-0.1, 0, 1))


@pytest.mark.parametrize("integrator", ["midpoint", "euler"])
def test_what_hangs_on_a_carrier_comes_along(integrator):
    """A load welded to a cart at constant speed, on a slope; the weld carries its weight."""
    scene = gv.Scene(gravity=(0, 0, -G))
    cart = scene.add_body(gv.Box((0.2, 0.2, 0.1)), (0, 0, 1), motion=gv.ConstantVelocity((1.0, 0, 0.5)))
    load = scene.add_body(gv.Box((0.1, 0.1, 0.1)), (0.3, 0, 1), mass=3.0)
    weld = scene.add_joint(gv.Fixed(cart, load, point=(0.2, 0, 1)))
    sim = gv.Simulation(scene, 1e-3, precision="double", integrator=integrator)
    sim.run(until=0.5)
    assert near(sim.positions[load] - sim.positions[cart], (0.3, 0, 0), 1e-9)
    assert near(sim.positions[cart], (0.5, 0, 1.25), 1e-9)
    assert near(sim.velocities[load], (1.0, 0, 0.5), 1e-9)
    assert near(sim.joints.force[weld], (0, 0, 3.0 * G), 1e-6)


@pytest.mark.parametrize("integrator", ["midpoint", "euler"])
def test_what_is_welded_to_a_turning_table_turns(integrator):
    scene = gv.Scene(gravity=(0, 0, 0))
    table = scene.add_body(gv.Cylinder(1.0, 0.1), (0, 0, 0), motion=gv.ConstantVelocity(angular_velocity=(0, 0, 3.0)))
    load = scene.add_body(gv.Box((0.1, 0.1, 0.1)), (0.8, 0, 0.3), mass=3.0)
    weld = scene.add_joint(gv.Fixed(table, load, point=(0.8, 0, 0.1)))
    sim = gv.Simulation(scene, 1e-3, precision="double", integrator=integrator)
    sim.run(until=1.0)
    assert near(sim.positions[load], (0.8 * np.cos(3.0), 0.8 * np.sin(3.0), 0.3), 1e-4)
    assert sim.report.joint_violation < 1e-4
    assert np.linalg.norm(sim.joints.force[weld]) == pytest.approx(3.0 * 9.0 * 0.8, rel=0.02)  # m omega^2 r


def test_a_pendulum_on_a_shaken_support():
    """Points meet all the time, and a small swing follows x'' + g x / l = g x0 / l with x0 = A (cos(2 pi f t) - 1)."""
    length, amplitude, frequency = 1.0, 0.002, 0.3
    scene = gv.Scene(gravity=(0, 0, -G))
    support = scene.add_body(gv.Box((0.1, 0.1, 0.1)), (0, 0, 0), motion=gv.Oscillation((amplitude, 0, 0), frequency, np.pi / 2))
    bob = scene.add_body(gv.Sphere(0.05), (0, 0, -length), mass=1.0, inertia=(1e-9, 1e-9, 1e-9))
    scene.add_joint(gv.Spherical(support, bob, point=(0, 0, 0)))
    sim = gv.Simulation(scene, 1e-3, precision="double")
    worst, own, driven = 0.0, np.sqrt(G / length), 2 * np.pi * frequency
    share = own**2 / (own**2 - driven**2)
    for _ in range(2000):
        report = sim.step()
        assert report.joint_violation < 1e-7
        slow, fast = np.cos(driven * sim.time), np.cos(own * sim.time)
        worst = max(worst, abs(sim.positions[bob, 0] - amplitude * (share * (slow - fast) + fast - 1)))
    assert worst < 0.001 * amplitude


def test_set_motion_moves_what_hangs_on_it():
    scene = gv.Scene(gravity=(0, 0, -G))
    hook = scene.add_body(gv.Sphere(0.05), (0, 0, 1), fixed=True)
    load = scene.add_body(gv.Sphere(0.1), (0, 0, 0), mass=2.0)
    scene.add_joint(gv.Spherical(hook, load, point=(0, 0, 1)))
    sim = gv.Simulation(scene, 1e-3, precision="double")
    sim.run(until=0.1)
    assert near(sim.positions[load], (0, 0, 0), 1e-9)
    sim.set_motion(hook, gv.ConstantVelocity((0, 0, 0.5)))
    sim.run(until=0.5)
    assert near(sim.positions[load], (0, 0, 0.2), 1e-8)
    sim.set_motion(hook, None)
    sim.run(until=0.6)
    assert near(sim.positions[load], (0, 0, 0.2), 1e-8)


# --- rods without mass
def linkage(**options):
    """A crank with a motor drives a slotted arm, and by a rod a piston; a ball hangs on the arm by another rod, which breaks."""
    scene = gv.Scene(gravity=(0, 0, -G))
    crank = scene.add_body(gv.Box((0.1, 0.02, 0.02)), (0, 0, 0), mass=1.0)
    arm = scene.add_body(gv.Box((0.3, 0.02, 0.02)), (0, 0.1, -0.1), mass=0.5)
    piston = scene.add_body(gv.Sphere(0.04), (0.5, 0, 0), mass=2.0)
    ball = scene.add_body(gv.Sphere(0.04), (0.3, 0.1, -0.4), mass=0.3)
    scene.add_joint(gv.Revolute(None, crank, point=(0, 0, 0), axis=(0, 1, 0), motor=gv.SpeedMotor(9.0, limit=2.0)))
    scene.add_joint(gv.Revolute(None, arm, point=(-0.3, 0.1, -0.1), axis=(0, 1, 0)))
    slot = {"point": (0.1, 0, 0), "point_b": (-0.3, 0, -0.1), "axis": (0, 1, 0), "slide": (1, 0, 0)}
    names = {"slot": scene.add_joint(gv.RevoluteTranslational(crank, arm, friction=0.2, **slot))}
    names["rod"] = scene.add_joint(gv.RevoluteSpherical(crank, piston, point=(0.1, 0, 0), axis=(0, 1, 0), point_b=(0.5, 0, 0)))
    scene.add_joint(gv.Prismatic(None, piston, point=(0.5, 0, 0), axis=(1, 0, 0)))
    hook = {"point": (0.3, 0.1, -0.1), "point_b": (0.3, 0.1, -0.4), "axis": (0, 1, 0), "limits": (-1.2, 1.2)}
    names["hook"] = scene.add_joint(gv.RevoluteSpherical(arm, ball, break_force=8.0, **hook))
    return gv.Simulation(scene, **{"dt": 1e-3, "precision": "double", **options}), names


@pytest.mark.parametrize("joints", MODES)
@pytest.mark.parametrize("precision", ["single", "double"])
def test_rods_go_on_bit_for_bit(joints, precision, tmp_path):
    """After a stop, with a rod that has turned and one that is broken."""
    (whole, names), (first, _) = (linkage(precision=precision, joints=joints) for _ in range(2))
    for _ in range(1200):
        whole.step()
    for _ in range(900):
        first.step()
    assert first.joints.broken[names["hook"]] and not first.joints.broken[[names["slot"], names["rod"]]].any()
    assert abs(first.joints.angle[names["rod"]]) > np.pi
    first.save(tmp_path / "half.h5")
    second = gv.Simulation.load(tmp_path / "half.h5")
    assert tables_equal(second.joints, first.joints)
    for _ in range(300):
        second.step()
    assert second.state_hash() == whole.state_hash() and tables_equal(second.joints, whole.joints)


def test_rods_in_both_modes_and_precisions():
    """The same motion, but for the little (a hundred-thousandth) that rows yield when they are solved at once, and for rounding."""
    solver = gv.GaussSeidel(iterations=5000, tolerance=1e-11)
    at_once, iterative = (linkage(joints=mode, solver=solver)[0] for mode in MODES)
    single = linkage(precision="single")[0]
    for _ in range(150):
        assert at_once.step().converged and iterative.step().converged
        single.step()
    assert np.abs(at_once.positions - iterative.positions).max() < 1e-5
    assert near(at_once.joints.angle, iterative.joints.angle, 1e-4) and near(at_once.joints.slide, iterative.joints.slide, 1e-5)
    assert near(at_once.joints.force[:, [0, 2]], iterative.joints.force[:, [0, 2]], 1e-2)  # along the axes the loads may be shared anyhow
    assert np.abs(at_once.positions - single.positions).max() < 1e-4


def test_rods_in_result_files(tmp_path):
    sim, names = linkage()
    sim.run(until=0.1, save=tmp_path / "rods.vtkhdf", every=0.05)
    written = read_joints(tmp_path / "rods.vtkhdf")
    for name in ("angle", "slide", "force"):
        assert np.array_equal(written[name][-1], getattr(sim.joints, name), equal_nan=True)
    assert "RevoluteSpherical between body 0 and body 2" in written["names"][names["rod"]]
    assert np.isnan(written["slide"][:, names["rod"]]).all() and np.isfinite(written["slide"][:, names["slot"]]).all()


# --- all solvers, both ways
def small_mechanism(**options):
    """A four-bar linkage with a motor and a spring, and a pendulum with a stop."""
    scene = gv.Scene(gravity=(0, 0, -G))
    left = scene.add_body(gv.Box((0.05, 0.05, 0.5)), (0, 0, 0.5))
    top = scene.add_body(gv.Box((0.6, 0.05, 0.05)), (0.6, 0, 1))
    right = scene.add_body(gv.Box((0.05, 0.05, 0.5)), (1.2, 0, 0.5))
    scene.add_joint(gv.Revolute(None, left, point=(0, 0, 0), axis=(0, 1, 0), motor=gv.SpeedMotor(1.0, limit=300.0)))
    scene.add_joint(gv.Revolute(left, top, point=(0, 0, 1), axis=(0, 1, 0)))
    scene.add_joint(gv.Spherical(top, right, point=(1.2, 0, 1)))
    scene.add_joint(gv.Revolute(None, right, point=(1.2, 0, 0), axis=(0, 1, 0), friction=2.0))
    scene.add_joint(gv.Spring(None, right, point=(2, 0, 0.5), point_b=(1.2, 0, 0.5), stiffness=500.0, damping=5.0))
    rod = scene.add_body(gv.Box((0.3, 0.02, 0.02)), (0.3, 1, 1))
    scene.add_joint(gv.Revolute(None, rod, point=(0, 1, 1), axis=(0, 1, 0), limits=(-0.1, 0.1)))
    return gv.Simulation(scene, 1e-3, precision="double", **options)


@pytest.mark.parametrize("integrator", ["midpoint", "euler"])
def test_iterative_agrees_with_direct(integrator):
    solver = gv.GaussSeidel(iterations=5000, tolerance=1e-11)
    at_once = small_mechanism(solver=solver, integrator=integrator)
    iterative = small_mechanism(solver=solver, integrator=integrator, joints="iterative")
    for _ in range(100):
        one, two = at_once.step(), iterative.step()
        assert one.converged and two.converged
    assert np.abs(at_once.positions - iterative.positions).max() < 1e-8
    assert np.abs(at_once.velocities - iterative.velocities).max() < 1e-6
    assert near(at_once.joints.motor_torque, iterative.joints.motor_torque, 1e-4)
    assert near(at_once.joints.angle, iterative.joints.angle, 1e-8)


def mixed_problem(**options):
    """Three balls on the floor, on a stiff hinge and a ball joint; a fourth falls on two of them along a line with a stop; a box on a
    slide lies on its stop. Some contacts stick, some slide, and every contact has but one solution."""
    scene = gv.Scene(gravity=(0, 0, -G))
    rough = gv.Material(friction=0.4)
    scene.add_body(gv.Plane(), material=rough, fixed=True)
    places = [(0, 0, 0.2), (0.5, 0, 0.2), (1.0, 0.1, 0.2), (0.25, 0.02, 0.48)]
    speeds = [(0.5, 0.2, -0.1), (0, 0, 0), (-0.3, 0, 0), (0.1, 0.2, -1.0)]
    balls = [scene.add_body(gv.Sphere(0.2), x, rough, mass=1.0 + k, velocity=v) for k, (x, v) in enumerate(zip(places, speeds))]
    box = scene.add_body(gv.Box((0.1, 0.1, 0.1)), (3, 0, 1))
    scene.add_joint(gv.Revolute(balls[0], balls[1], point=(0.25, 0, 0.2), axis=(0, 1, 0), friction=0.2))
    scene.add_joint(gv.Spherical(balls[1], balls[2], point=(0.75, 0, 0.2)))
    scene.add_joint(gv.PointOnLine(None, balls[3], point=places[3], axis=(0, 0, 1), limits=(-0.0005, 1.0)))
    scene.add_joint(gv.Prismatic(None, box, point=(3, 0, 1), axis=(0, 0, 1), limits=(-1e-6, 1.0)))
    scene.set_force(balls[0], (8.0, 3.0, 0.0))
    return gv.Simulation(scene, 1e-3, precision="double", **options)


@pytest.fixture
def straight(monkeypatch):
    """The direct solver takes the curvature of the joints' gauges from the velocities before the step, as row by row one does."""
    solve = JointBlock._solve
    monkeypatch.setattr(JointBlock, "_solve", lambda self, impulse, velocity, revises, rounds: solve(self, impulse, velocity, revises, -1))


@pytest.mark.parametrize("joints", MODES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_all_solvers_agree(solver, joints, stiff, straight):
    """One step with contacts, friction, joints, a friction row and limits: the velocities that the convex problem has."""
    reference = mixed_problem(solver=gv.GaussSeidel(iterations=30_000, tolerance=1e-12), joints="iterative")
    assert reference.step().converged
    assert {0, 1} == set(reference.contacts.sliding.astype(int)) and len(reference.contacts.sliding) == 5
    sim = mixed_problem(solver=solver(iterations=30_000, tolerance=1e-11), joints=joints)
    report = sim.step()
    assert report.residual <= 1e-11 and report.converged
    assert near(sim.velocities, reference.velocities, 1e-8)
    assert near(sim.angular_velocities, reference.angular_velocities, 1e-8)
    assert near(sim.contacts.impulse, reference.contacts.impulse, 1e-7)
    assert near(sim.joints.force, reference.joints.force, 1e-4)  # of some 1000 N


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("most, off", [(np.inf, 1e-8), (1e-5, 2e-5)])
def test_all_solvers_agree_about_joints_that_yield(solver, most, off, monkeypatch, straight):
    """As above, with the softness that joints have: all solvers find the same, near what rigid joints do. How much of its softness a
    light link loses under its load depends on the way there, within the speed that it may yield."""
    assert direct.most_yield(np.float64) == 1e-5
    monkeypatch.setattr(direct, "most_yield", lambda real: most)
    rigid = mixed_problem(solver=gv.GaussSeidel(iterations=30_000, tolerance=1e-12), joints="iterative")
    reference = mixed_problem(solver=gv.GaussSeidel(iterations=30_000, tolerance=1e-12))
    sim = mixed_problem(solver=solver(iterations=30_000, tolerance=1e-11))
    assert rigid.step().converged and reference.step().converged and sim.step().converged
    assert near(sim.velocities, reference.velocities, off)
    assert near(sim.angular_velocities, reference.angular_velocities, 10 * off)  # links of 0.1 m
    assert near(sim.velocities, rigid.velocities, 1e-4)  # of 1 m/s


@pytest.mark.parametrize("solver", SOLVERS)
def test_all_solvers_agree_about_the_curvature_of_joints(solver):
    """It follows from the velocities that they find: where the hinge and the ball joint are a step later, they are closed."""
    reference = mixed_problem(solver=gv.GaussSeidel(iterations=30_000, tolerance=1e-12), integrator="euler")
    sim = mixed_problem(solver=solver(iterations=30_000, tolerance=1e-11), integrator="euler")
    assert reference.step().converged and sim.step().converged
    assert near(sim.velocities, reference.velocities, 2e-5)
    assert max(sim.joints.violation[:2]) < 2e-8  # softness


def long_chain(n=60, **options):
    """A level chain, held at one end."""
    scene = gv.Scene(gravity=(0, 0, -G))
    links = [scene.add_body(gv.Capsule(0.02, 0.05), (0.15 * k, 0, 0), quaternion=(1, 0, 1, 0)) for k in range(n)]
    for k, link in enumerate(links):
        scene.add_joint(gv.Spherical(links[k - 1] if k else None, link, point=(0.15 * k - 0.075, 0, 0)))
    return gv.Simulation(scene, 1e-3, precision="double", **options)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_residual_knows_about_joints(solver):
    """After two iterations a long chain is far from solved, and the report says so; the direct solution is there at once."""
    iterative = long_chain(joints="iterative", solver=solver(iterations=2, tolerance=1e-8))
    report = iterative.step()
    assert report.residual > 1e-5 and not report.converged
    assert report.residual_rms > 0
    at_once = long_chain(solver=solver(iterations=2, tolerance=1e-8))
    report = at_once.step()
    assert report.residual <= 1e-8 and report.converged
    for _ in range(20):
        iterative.step()
        report = at_once.step()
    assert report.joint_violation < 1e-7 < iterative.report.joint_violation
    assert iterative.joints.violation.max() == pytest.approx(iterative.report.joint_violation)


# --- too many rows
@pytest.mark.parametrize("joints", MODES)
@pytest.mark.parametrize("precision", ["single", "double"])
def test_redundant_joints_share_their_load_for_good(precision, joints):
    """A door on three hinges about a skew axis: what they carry together is what one hinge carries, and none carries more than
    twice the weight, soon or late."""
    turn = np.array([0.9, 0.1, -0.2, 0.3]) / np.linalg.norm([0.9, 0.1, -0.2, 0.3])

    def door(hinges):
        scene = gv.Scene(gravity=(0, 0, -G))
        leaf = scene.add_body(gv.Box((0.5, 0.02, 1.0)), quaternion=turn, mass=30.0)
        sim = gv.Simulation(scene, 1e-3)
        axis = point_of(sim, leaf, (0, 0, 1))
        for height in hinges:
            scene.add_joint(gv.Revolute(None, leaf, point=tuple(point_of(sim, leaf, (-0.5, 0, height))), axis=tuple(axis)))
        return gv.Simulation(scene, 1e-3, precision=precision, joints=joints, solver=gv.GaussSeidel(iterations=200, tolerance=1e-9))

    one, three = door([0.0]), door([-0.8, 0.1, 0.8])
    for until in (0.1, 1.0):
        one.run(until=until)
        three.run(until=until)
        assert near(three.joints.force.sum(axis=0), one.joints.force[0], 1.0)
        assert np.abs(three.joints.force).max() < 2 * 30 * G
        assert near(three.positions, one.positions, 1e-4)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize(
    "options",
    [
        {"limits": (-0.6, 0.8), "friction": 0.5},
        {"limits": (-0.6, 0.8), "motor": gv.SpeedMotor(3.0, limit=20.0)},
        {"friction": 0.5, "motor": gv.SpeedMotor(0.0, limit=0.4)},
        {"limits": (-0.6, 0.8), "friction": 0.5, "motor": gv.PositionMotor(1.0, limit=5.0), "spring": gv.SpringLaw(3.0, 0.1)},
        {"limits": gv.Limits(-0.6, 0.8, restitution=0.5), "friction": 0.5, "motor": gv.ForceMotor(1.0)},
    ],
)
def test_much_that_acts_on_one_angle(precision, options):
    """Rows with one and the same gradient: the force stays what a rod can need, and limits and efforts stay within their bounds."""
    sim, rod, hinge = pendulum(options, precision=precision)
    most = getattr(options.get("motor"), "limit", np.inf)
    for _ in range(500):
        report = sim.step()
        assert np.abs(sim.joints.motor_torque[hinge]) <= most * (1 + 1e-6)
        assert report.residual < 1e-4
        assert sim.joints.angle[hinge] < 0.8 + 1e-4 or "limits" not in options
        assert np.linalg.norm(sim.joints.force[hinge]) < 1e4  # stopped within a step, 2 kg at 3 m/s need 6 kN
    assert report.joint_violation < 1e-5


def test_no_joints_no_rows():
    sim = floor_with_a_ball()
    assert len(sim.joints) == 0 and sim.joints.force.shape == (0, 3)
    assert sim.step().joint_violation == 0.0
    assert len(sim.joints) == 0


def floor_with_a_ball():
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_body(gv.Sphere(0.1), (0, 0, 0.1))
    return gv.Simulation(scene, 1e-3)


# --- a heavy load on a light chain
@pytest.mark.parametrize("precision, most", [("single", 1e-5), ("double", 1e-7)])
def test_heavy_crate_on_a_light_chain(precision, most):
    """1000 kg on ten links of 1 kg; balls fall on the crate and come to rest on it. The chain carries all, and stays closed."""
    scene = gv.Scene(gravity=(0, 0, -G))
    links = [scene.add_body(gv.Capsule(0.02, 0.05), (0, 0, -0.1 - 0.2 * k), mass=1.0) for k in range(10)]
    crate = scene.add_body(gv.Box((0.5, 0.5, 0.5)), (0, 0, -2.5), mass=1000.0)
    ends = [None, *links, crate]
    chain = [scene.add_joint(gv.Spherical(ends[k], ends[k + 1], point=(0, 0, -0.2 * k))) for k in range(11)]
    places = [(0.3 * np.cos(a), 0.3 * np.sin(a), -1.85) for a in np.arange(6) * np.pi / 3]
    balls = scene.add_bodies(gv.Sphere(0.1), places, masses=np.full(6, 5.0))
    sim = gv.Simulation(scene, 1e-3, precision=precision)
    worst, touched = 0.0, 0
    for _ in range(600):
        report = sim.step()
        worst, touched = max(worst, report.joint_violation), max(touched, report.contacts)
    assert touched >= 6 and report.contacts >= 6
    assert worst < most
    assert np.abs(sim.positions[crate] - (0, 0, -2.5)).max() < 1e-3
    assert np.abs(sim.positions[balls, 2] + 1.9).max() < 0.005
    assert near(sim.joints.force[chain[0]], (0, 0, (1000 + 10 + 30) * G), 1e-3 * 1040 * G)


def test_a_refused_step_leaves_the_joints_as_they_were():
    """After a step that was refused, the simulation goes on as if it had not been tried."""
    scene = gv.Scene()
    rod = scene.add_body(gv.Box((0.5, 0.05, 0.05)), (0.5, 0, 0))
    hinge = scene.add_joint(gv.Revolute(None, rod, point=(0, 0, 0), axis=(0, 1, 0), motor=gv.ForceMotor(0.0)))
    tried, plain = (gv.Simulation(scene, 1e-3, precision="double") for _ in range(2))
    for simulation in (tried, plain):
        simulation.run(0.05)
    tried.set_motor(hinge, gv.ForceMotor(1e300))
    with pytest.raises(gv.SimulationError, match=f"body {rod}"):
        for _ in range(3):
            tried.step()
    tried.set_motor(hinge, gv.ForceMotor(0.0))
    for simulation in (tried, plain):
        simulation.run(0.1)
    assert tried.state_hash() == plain.state_hash()
    assert np.array_equal(tried.joints.force, plain.joints.force)


@pytest.mark.parametrize("apart", [False, True])
def test_wheels_of_one_machine_that_overlap_are_told(apart):
    """Two wheels on one frame whose axles are too near: their contact cannot be resolved, so the user is told, once."""
    scene = gv.Scene()
    frame = scene.add_body(gv.Box((0.5, 0.05, 0.05)), (0, 0, 1.5))
    wheels = [scene.add_body(gv.Sphere(0.3), (x, 0, 1)) for x in (-0.28, 0.28)]
    for wheel, x in zip(wheels, (-0.28, 0.28)):
        scene.add_joint(gv.Revolute(frame, wheel, point=(x, 0, 1), axis=(0, 1, 0)))
    if apart:
        scene.ignore_pair(*wheels)
    simulation = gv.Simulation(scene, 1e-3)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            simulation.step()
    told = [str(w.message) for w in told if "one machine" in str(w.message)]
    assert len(told) == (0 if apart else 1)
    if told:
        assert f"bodies {wheels[0]} and {wheels[1]}" in told[0] and "0.04 m" in told[0] and "ignore_pair" in told[0]


def test_a_motor_that_fails_in_a_step_leaves_the_last_good_state():
    """An error of the user's function in the middle of a step: the state stays, contacts are not half new, and it can go on."""
    scene, trouble = gv.Scene(), []
    scene.add_body(gv.Plane(), fixed=True)
    box = scene.add_body(gv.Box((0.1, 0.1, 0.1)), (0, 0, 0.1))
    speed = lambda time: float("nan") if trouble else 0.0  # noqa: E731
    scene.add_joint(gv.Prismatic(None, box, point=(0, 0, 0.1), axis=(1, 0, 0), motor=gv.SpeedMotor(speed)))
    tried, plain = (gv.Simulation(scene, 1e-3, precision="double") for _ in range(2))
    for simulation in (tried, plain):
        simulation.run(0.01)
    trouble.append(True)
    with pytest.raises(ValueError, match="joint 0"):
        tried.step()
    with pytest.raises(gv.SimulationError, match="contacts are not known"):
        _ = tried.contacts
    trouble.clear()
    for simulation in (tried, plain):
        simulation.run(0.02)
    assert tried.state_hash() == plain.state_hash() and len(tried.contacts) > 0
