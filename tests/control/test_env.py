"""Machines as gymnasium environments: the checks of gymnasium, the same numbers as in gravel, starts that come back to the last bit."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import gravel as gv
from gravel import scenes

TORQUE = {"motor.crank.torque": (-20.0, 20.0)}
OBSERVED = ["joint.crank.angle", "joint.crank.angle_speed", "body.piston.position.x", "step.converged"]


def keeps_speed(env):
    return -abs(env["joint.crank.angle_speed"] - 5.0)


def shift(simulation, rng):
    simulation.gravity = (0, 0, -9.81 - rng.uniform(0, 5))


def make(**options):
    return gv.env.make("slider-crank", TORQUE, OBSERVED, **{"reward": keeps_speed, **options})


@pytest.mark.filterwarnings("ignore:.*A Box observation space m:UserWarning", "ignore:.*alternative render modes:UserWarning")
def test_the_checks_of_gymnasium_pass():
    check_env(make(randomise=shift, duration=2.0), skip_render_check=True)
    registered = gymnasium.make(
        "gravel.control.env:gravel/Machine-v0", scene="slider-crank", actions=TORQUE, observations=OBSERVED, render_mode="rgb_array",
        picture={"size": (64, 48)}, max_episode_steps=30,
    )  # fmt: skip
    check_env(registered.unwrapped)


def test_steps_are_those_of_gravel():
    env = make(frame_skip=7, normalise=False)
    first, _ = env.reset()
    assert np.array_equal(first, [0, 0, 0.8, 1]) and env.observation_names == OBSERVED and env.action_names == ["motor.crank.torque"]
    setup = scenes.build("slider-crank")
    sim = gv.Simulation(setup.scene, setup.dt, threads=1, **setup.options)
    rng = np.random.default_rng(0)
    for _ in range(12):
        torque = rng.uniform(-20, 20)
        seen, reward, terminated, truncated, info = env.step([torque])
        sim.set_motor(0, gv.ForceMotor(torque))
        converged = all([sim.step().converged for _ in range(7)])
        assert np.array_equal(seen, [sim.joints.angle[0], sim.joints.angle_speed[0], sim.positions[2, 0], converged])
        assert reward == -abs(sim.joints.angle_speed[0] - 5) and not terminated and not truncated
        assert info == {"time": pytest.approx(sim.time), "converged": converged}
    assert env.simulation.state_hash() == sim.state_hash()


def test_actions_from_minus_one_to_one_span_the_range():
    env = make()
    env.reset()
    assert env.action_space.low == [-1] and env.action_space.high == [1]
    for given, torque in ((-1, -20), (0.25, 5), (1, 20), (3, 20)):
        env.step([given])
        assert np.isclose(env.action[0], torque) and np.isclose(env["joint.crank.motor_torque"], torque, rtol=1e-6)
    speed = gv.env.make("slider-crank", {"motor.crank.speed": (2, 6)}, OBSERVED)
    speed.reset()
    speed.step([0.0])
    assert np.isclose(speed["joint.crank.angle_speed"], 4.0, atol=1e-6)
    with pytest.raises(ValueError, match=r"action must be finite, but action\[0\] is nan"):
        env.step([np.nan])


def test_a_reset_takes_up_the_start_to_the_last_bit_and_the_seed_decides_the_rest():
    env = make(randomise=shift)
    runs = {}
    for seed in (3, 4, 3):
        first, _ = env.reset(seed=seed)
        seen = [first, *(env.step([0.5])[0] for _ in range(10))]
        runs.setdefault(seed, []).append((np.array(seen), env.simulation.state_hash()))
    (one, again), (other,) = runs[3], runs[4]
    assert np.array_equal(one[0], again[0]) and one[1] == again[1] and other[1] != one[1]
    env.reset()
    assert not np.allclose(env.simulation.gravity, (0, 0, -9.81))


def test_grains_and_inlets_start_anew():
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    paddle = scene.add_body(gv.Box((0.2, 0.02, 0.1)), (0, 0, 0.11), mass=2.0, name="paddle")
    scene.add_joint(gv.Revolute(None, paddle, (0, 0, 0.11), motor=gv.SpeedMotor(0.0, limit=50.0)))
    inlet = gv.pour(gv.Sphere(0.03), gv.BoxRegion((-0.2, -0.2, 0.3), (0.2, 0.2, 0.5)), number_rate=200)
    env = gv.env.make(
        scene, {"motor.paddle.speed": (-3, 3)}, ["joint.paddle.motor_torque", "body.paddle.contact_force", ("grains", count)],
        dt=2e-3, joint_names={"paddle": 0}, observers=[inlet], frame_skip=20,
    )  # fmt: skip
    ends = []
    for _ in range(2):
        env.reset()
        ends.append(np.array([env.step([1.0])[0] for _ in range(8)]))
    assert np.array_equal(ends[0], ends[1]) and ends[0][-1, -1] > 20 and inlet.fed == 0  # the environment has a copy
    assert env.observation_names[-1] == "grains" and np.abs(ends[0][:, 1:4]).max() > 0


def count(simulation):
    return simulation.count - 2


def test_episodes_end_by_function_by_time_and_by_failure():
    env = make(terminated=lambda env: env["joint.crank.angle"] < -0.05, duration=0.1)
    env.reset()
    ends = [env.step([-1.0])[2:4] for _ in range(10)]
    angle_reached = next(k for k, (terminated, _) in enumerate(ends) if terminated)
    assert 0 < angle_reached < 9 and [truncated for _, truncated in ends] == [False] * 9 + [True]
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1), (0, 0, 0))
    sim = gv.Simulation(scene, 1e-3, bounds=((-1, -1, -0.01), (1, 1, 1)))
    falls = gv.env.make(sim, {"load[0].force.x": (-1, 1)}, ["body[0].position"], frame_skip=50, reward=lambda env: env.time)
    falls.reset()
    info, steps = {}, 0
    while "error" not in info:
        seen, reward, terminated, _, info = falls.step([0.0])
        steps += 1
    assert terminated and "leaves the world" in info["error"] or "bounds" in info["error"]
    assert steps == 1 and np.isfinite(seen).all() and reward == info["time"] > 0.03
    assert falls.reset()[0][2] == 0.0


def built():
    return make(randomise=shift)


def test_environments_run_beside_each_other():
    """In processes of their own, forked off this one, where kernels have run with threads or without."""
    single = built()
    expected = []
    for seed in (11, 12):
        first, _ = single.reset(seed=seed)
        expected.append([first, *(single.step([0.3])[0] for _ in range(3))])
    for kind in (gymnasium.vector.SyncVectorEnv, gymnasium.vector.AsyncVectorEnv):
        many = kind([built, built])
        first, _ = many.reset(seed=[11, 12])
        seen = [first, *(many.step(np.full((2, 1), 0.3, np.float32))[0] for _ in range(3))]
        assert np.allclose(np.swapaxes(seen, 0, 1), expected, rtol=1e-6, atol=1e-9), kind
        many.close()


def test_pictures():
    env = make(render_mode="rgb_array", picture={"size": (120, 90)})
    env.reset()
    first = env.render()
    env["body.piston.position"]
    for _ in range(8):
        env.step([1.0])
    second = env.render()
    assert first.shape == second.shape == (90, 120, 3) and first.dtype == np.uint8
    assert (first != second).any() and (first == second).mean() > 0.5  # the crank has turned, the camera has not
    assert make().render() is None and env.metadata["render_fps"] == 100


def test_wrong_arguments_are_refused():
    for error, said, arguments in (
        (ValueError, "action motor.crank.speed must have a range.*in rad/s", (["motor.crank.speed"], OBSERVED)),
        (ValueError, r"range of action motor.crank.speed must be \(low, high\), low < high", ({"motor.crank.speed": (2, 2)}, OBSERVED)),
        (ValueError, "close to it: 'motor.crank.torque'", ({"motor.crank.torqe": (0, 1)}, OBSERVED)),
        (ValueError, "act on the same one", ({"motor.crank.torque": (0, 1), "motor.crank.speed": (0, 1)}, OBSERVED)),
        (ValueError, "which is one of the inputs", (TORQUE, ["motor.crank.torque"])),
        (TypeError, "observations must be names of variables, or pairs", (TORQUE, [3])),
        (ValueError, "actions must name at least one input", ({}, OBSERVED)),
        (ValueError, "observations must name at least one output", (TORQUE, [])),
    ):
        with pytest.raises(error, match=said):
            gv.env.make("slider-crank", *arguments)
    for said, options in (
        ("reward must be a function", {"reward": 3}),
        ("frame_skip must be at least 1", {"frame_skip": 0}),
        ("duration must be greater than 0", {"duration": 0}),
        ("render_mode must be one of 'rgb_array'", {"render_mode": "human"}),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            make(**options)
    env = make()
    with pytest.raises(ValueError, match="close to it: 'joint.crank.angle'"):
        env["joint.crank.angl"]
    with pytest.raises(ValueError, match="stands for 2 variables"):
        env["joint.*.motor_torque, joint.piston.slide"]


def test_ranges_come_from_the_limits_of_joints():
    scene = gv.Scene()
    arm = scene.add_body(gv.Box((0.2, 0.02, 0.02)), (0.2, 0, 0))
    scene.add_joint(gv.Revolute(None, arm, axis=(0, -1, 0), motor=gv.PositionMotor(0.1), limits=(-0.5, 1.0)))
    env = gv.env.make(scene, "motor[0].position", "joint[0].angle", dt=1e-3, normalise=False)
    assert np.allclose(env.action_space.low, -0.5) and np.allclose(env.action_space.high, 1.0)


def test_the_list_has_inputs_and_outputs():
    found = gv.env.variables("slider-crank")
    writable = [variable.name for variable in found if variable.write is not None]
    assert "motor.crank.speed" in writable and "joint.crank.angle" not in writable and {v.unit for v in found} <= {
        "", "s", "m", "m/s", "m/s2", "rad", "rad/s", "N", "N m"
    }  # fmt: skip
