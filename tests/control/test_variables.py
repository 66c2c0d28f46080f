"""Variables of machines: what is read is what the simulation says, what is written does what it should, what is unknown is refused."""

import numpy as np
import pytest
from hopper import HOPPER

import gravel as gv
from gravel.control.plant import snapshot_from
from gravel.control.sources import machine_of


def drop(**options):
    """A ball that floats, with no gravity."""
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_body(gv.Sphere(0.1), (0, 0, 1), mass=2.0, name="ball")
    return machine_of(scene, dt=1e-3, **options)


@pytest.fixture
def hopper(tmp_path):
    path = tmp_path / "hopper.yaml"
    path.write_text(HOPPER)
    return machine_of(path)


def read(source, *names):
    return source.plant.read(source.variables.select("outputs", names))


def write(source, name, *values):
    (variable,) = source.variables.select("inputs", name)
    variable.write(source.plant.simulation, np.array(values, float))


def test_outputs_are_what_the_simulation_says():
    source = machine_of("slider-crank")
    source.plant.advance(20)
    sim = source.plant.simulation
    x, v, w, q, joints = sim.positions, sim.velocities, sim.angular_velocities, sim.quaternions, sim.joints
    expected = {
        "joint.crank.angle": joints.angle[0],
        "joint.crank.angle_speed": joints.angle_speed[0],
        "joint.crank.motor_torque": joints.motor_torque[0],
        "joint.crank_pin.force": joints.force[1],
        "joint.piston_pin.torque.y": joints.torque[2, 1],
        "joint.piston.slide": joints.slide[3],
        "joint.piston.slide_speed": joints.slide_speed[3],
        "joint[2].violation": joints.violation[2],
        "body.piston.position": x[2],
        "body.rod.quaternion": q[1],
        "body.rod.quaternion.w": q[1, 0],
        "body.crank.velocity.z": v[0, 2],
        "body[1].angular_velocity": w[1],
        "time": 0.02,
    }
    for name, value in expected.items():
        assert np.array_equal(read(source, name), np.ravel(value)), name
    assert read(source, "step.converged") == [1.0] and read(source, "step.contacts") == [0.0]


def test_the_crank_obeys_its_formula_through_the_variables():
    """x = r cos a + sqrt(l2 - r2 sin2 a), and the kinematics of a motor that keeps its speed."""
    source = machine_of("slider-crank")
    write(source, "motor.crank.speed", 3.0)
    source.plant.advance(500)
    angle, slide, speed = read(source, "joint.crank.angle", "joint.piston.slide", "joint.crank.angle_speed")
    assert np.isclose(slide, 0.2 * np.cos(angle) + np.sqrt(0.6**2 - (0.2 * np.sin(angle)) ** 2), atol=1e-6)
    assert np.isclose(speed, 3.0, atol=1e-6) and np.isclose(angle, 1.5, atol=3 * 2e-3)


def test_a_motor_takes_each_kind_of_target():
    for target, value, seen in (("speed", 2.0, "angle_speed"), ("position", 0.4, "angle"), ("torque", 5.0, "motor_torque")):
        source = machine_of("slider-crank")
        write(source, f"motor.crank.{target}", value)
        source.plant.advance(3)
        assert np.isclose(read(source, f"joint.crank.{seen}")[0], value, rtol=1e-4), target


def test_forces_torques_and_gravity_accelerate_as_newton_says():
    source = drop()
    write(source, "load.ball.force", 4.0, 0.0, -2.0)
    write(source, "load.ball.torque.z", 0.016)  # 2/5 m r2 = 0.008
    source.plant.advance(100)
    assert np.allclose(read(source, "body.ball.velocity"), (0.2, 0, -0.1), atol=1e-6)
    assert np.allclose(read(source, "body.ball.angular_velocity"), (0, 0, 0.2), atol=1e-6)
    write(source, "load.ball.force.x", 0.0)  # the other components stay
    write(source, "gravity.z", 1.0)  # and carry the ball, with the force of -2 N on 2 kg
    source.plant.advance(100)
    assert np.allclose(read(source, "body.ball.velocity"), (0.2, 0, -0.1), atol=1e-6)


def test_belts_and_driven_bodies_move_as_they_are_told(hopper):
    write(hopper, "motion.paddle.velocity.y", 0.25)
    write(hopper, "surface.belt.velocity.x", -0.3)
    hopper.plant.advance(50)
    sim = hopper.plant.simulation
    assert np.allclose(read(hopper, "body.paddle.position"), (0.6, 0.025, 0.2), atol=1e-9)
    turned = 2 * np.arccos(read(hopper, "body.paddle.quaternion.w")[0])
    assert np.isclose(turned, 0.1, atol=1e-9)  # it goes on turning
    assert np.allclose(sim.surfaces[0], (-0.3, 0, 0, 0, 0, 0))


def test_the_force_of_contacts_is_the_weight_at_rest():
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True, name="floor")
    scene.add_body(gv.Sphere(0.1), (0, 0, 0.1), mass=2.0, name="ball")
    source = machine_of(scene, dt=2e-3)
    assert np.array_equal(read(source, "body.ball.contact_force"), np.zeros(3))  # before the first step
    source.plant.advance(200)
    assert np.allclose(read(source, "body.ball.contact_force"), (0, 0, 2 * 9.81), atol=1e-2)
    assert np.allclose(read(source, "body.floor.contact_force"), (0, 0, -2 * 9.81), atol=1e-2)
    source.plant.simulation.remove(1)
    assert np.isnan(read(source, "body.ball.contact_force", "body.ball.position")).all()


def test_the_worst_of_all_steps_is_kept():
    source = machine_of("pile", bodies=30)
    twin = source.plant.simulation.copy()
    source.plant.advance(150)
    reports = [twin.step() for _ in range(150)]
    names = "step.residual", "step.max_penetration", "step.converged", "step.contacts"
    expected = [max(r.residual for r in reports), max(r.max_penetration for r in reports), all(r.converged for r in reports)]
    assert np.array_equal(read(source, *names), [*map(float, expected), reports[-1].contacts])
    assert expected[0] > reports[-1].residual and expected[1] > reports[-1].max_penetration


def test_names_of_scene_files_reach_bodies_joints_and_grains(hopper):
    sim = hopper.plant.simulation
    ids = [int(n) for n in hopper.variables.names.groups["row"]]
    assert np.array_equal(read(hopper, "body.row[2].position"), sim.positions[ids[2]])
    assert np.array_equal(read(hopper, "body.left wheel.position.z"), read(hopper, "body.'left wheel'.position.z"))
    assert [v.name for v in hopper.variables.select("outputs", "joint.lift.main.slide")] == ["joint.lift.main.slide"]
    assert [v.name for v in hopper.variables.select("outputs", f"body[{ids[2]}].position.x")] == ["body.row[2].position.x"]
    assert "body.row[0]" not in hopper.variables.listed("outputs")  # grains are not listed
    assert "motion.paddle" in hopper.variables.listed("inputs") and "surface.belt" in hopper.variables.listed("inputs")
    (target,) = hopper.variables.select("inputs", "motor.lift.main.position")
    assert target.limits == (-0.2, 0.25) and np.array_equal(target.value(hopper.plant.reading()), [0.0])


def test_words_that_stand_for_several():
    table = machine_of("slider-crank").variables
    names = lambda side, words: [v.name for v in table.select(side, words)]  # noqa: E731
    assert names("inputs", "motor.speed") == ["motor.crank.speed"]
    assert names("outputs", "body.position.x") == ["body.crank.position.x", "body.rod.position.x", "body.piston.position.x"]
    assert names("outputs", "joint.*.slide, joint.crank.angle,joint.crank.angle") == ["joint.piston.slide", "joint.crank.angle"]
    assert names("outputs", ["body.r*.velocity.z"]) == ["body.rod.velocity.z"]
    assert names("outputs", "joint.piston_pin")[0] == "joint.piston_pin.angle" and len(names("outputs", "joint.piston_pin")) == 6
    assert [v.name for v in table.defaults("inputs")] == ["motor.crank.speed"]


@pytest.mark.parametrize(
    "side, words, said",
    [
        ("outputs", "joint.crnk.angle", "'joint.crank.angle'.*'gravel fmu slider-crank --list' lists them all"),
        ("outputs", "body.piston.positon", "close to it: 'body.piston.position'"),
        ("outputs", "motor.crank.speed", "which is one of the inputs"),
        ("inputs", "joint.crank.angle", "which is one of the outputs"),
        ("inputs", "motor.piston.speed", "inputs must be variables of this scene, not 'motor.piston.speed'"),
        ("outputs", "body[3].position", "must be an id below 3, not 3"),
        ("outputs", "joint[99].angle", "must be an id below 4, not 99"),
        ("outputs", "", "must be variables of this scene, not ''"),
        ("inputs", "motor.crank.speed, motor.crank.torque", "act on the same one"),
        ("inputs", "load.piston.force, load.piston.force.x", "act on the same one"),
        ("inputs", "gravity.x, gravity", "act on the same one"),
    ],
)
def test_unknown_and_contradictory_names_are_refused(side, words, said):
    with pytest.raises(ValueError, match=said):
        machine_of("slider-crank").variables.select(side, words)


def test_wrong_sources_are_refused():
    with pytest.raises(TypeError, match="scene must be the name of a built-in scene.*not 3"):
        machine_of(3)
    with pytest.raises(ValueError, match="dt must be given for a Scene"):
        machine_of(gv.Scene())
    with pytest.raises(ValueError, match="did you mean 'slider-crank'"):
        machine_of("slider-crnk")
    with pytest.raises(ValueError, match="joint 'crank' must be an id below 0, not 7"):
        machine_of(drop().plant.simulation, joint_names={"crank": 7})
    with pytest.raises(ValueError, match="dt must be left out for Simulation"):
        machine_of(drop().plant.simulation, dt=1e-3)
    with pytest.raises(TypeError, match="observers must hold functions"):
        drop(observers=[3])


def test_a_machine_is_a_copy_of_the_simulation_it_is_made_from():
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1), (0, 0, 1))
    sim = gv.Simulation(scene, 1e-3)
    sim.step()
    before = sim.state_hash()
    source = machine_of(sim)
    assert source.plant.simulation.state_hash() == before
    source.plant.advance(2)
    assert sim.state_hash() == before and sim.steps == 1


def test_a_state_is_taken_up_bit_for_bit_with_inlets_and_what_is_taken_out(hopper, tmp_path):
    plant = hopper.plant
    plant.advance(60)
    kept = plant.snapshot()
    futures = []
    for state in (kept, kept, snapshot_from(kept.to_bytes())):
        plant.restore(state)
        plant.advance(60)
        futures.append((plant.simulation.state_hash(), plant.simulation.count))
    assert futures[0] == futures[1] == futures[2] and futures[0][1] > 40  # grains were poured after the state, too
    setup = gv.load_scene_file(tmp_path / "hopper.yaml")
    straight = setup.simulation()
    straight.run(120 * straight.dt, observers=setup.watchers())
    assert straight.state_hash() == futures[0][0]
