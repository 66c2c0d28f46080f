"""A controller learns to hold the speed of a crank: random search over two gains, in environments that differ in gravity and load.

It needs pip install "gravel[env]". Libraries for training take the same environment."""

import numpy as np

import gravel as gv


def made():
    """An environment: a torque turns the crank, 5 rad/s are wanted."""
    return gv.env.make(
        "slider-crank",
        actions={"motor.crank.torque": (-30.0, 30.0)},
        observations=["joint.crank.angle_speed", "joint.crank.angle"],
        reward=lambda env: -abs(env["joint.crank.angle_speed"] - 5.0),
        randomise=loaded,
        frame_skip=10,
        duration=0.6,
    )


def loaded(simulation, rng):
    """Each episode has another load on the piston."""
    simulation.forces[2] = (rng.uniform(-15, 15), 0, 0)


def episode(env, gains, seed):
    """The mean reward of one episode with a controller: a torque in proportion to the error, and to its sum over time."""
    observation, _ = env.reset(seed=seed)
    total, steps, held, finished = 0.0, 0, 0.0, False
    while not finished:
        error = 5.0 - observation[0]
        held += error * env.dt
        observation, reward, terminated, truncated, _ = env.step([np.clip(gains[0] * error + gains[1] * held, -1, 1)])
        total, steps, finished = total + reward, steps + 1, terminated or truncated
    return total / steps


env, rng = made(), np.random.default_rng(0)
best = gains = np.array([0.01, 0.0])
first = value = np.mean([episode(env, gains, seed) for seed in range(3)])
for _ in range(12):
    tried = np.abs(best + rng.normal(0, (0.2, 1.0)))
    found = np.mean([episode(env, tried, seed) for seed in range(3)])
    if found > value:
        best, value = tried, found
        print(f"gains {best[0]:.2f} and {best[1]:.2f}: mean error {-value:.2f} rad/s")
assert value > first + 0.5
