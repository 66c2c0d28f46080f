"""Mechanisms: chains of any length solved directly and row by row, a robot's arm, and the tracked vehicle on granular soil.

The chains swing with a payload of a thousand links for half a second; "open" is the worst violation, in links. The arm has seven
hinges and two fingers, all with limits and held by servos; nothing touches it. The vehicle's figures are means of 20 steps after
0.8 s, when it drives. Bar for 100 000 grains on 2 threads: 500 ms a step.
"""

import time

import numpy as np

from gravel.joints.drives import PositionMotor
from gravel.joints.kinds import Prismatic, Revolute
from gravel.scene import Scene
from gravel.scenes import build
from gravel.scenes.chain import LINK
from gravel.scenes.vehicle import PITCH
from gravel.shapes import Box, Capsule
from gravel.simulation import Simulation
from gravel.solvers import GaussSeidel


def run(quick, threads):
    for links in (10, 100) if quick else (10, 100, 1000):
        direct, iterative = swing(links, "direct", threads), swing(links, "iterative", threads)
        yield {
            "links": links,
            "direct, ms a step": direct[0],
            "open": direct[1],
            "50 iterations row by row, ms a step": iterative[0],
            "open ": iterative[1],
            "ratio": iterative[1] / direct[1],
        }
    yield hold(threads)
    for grains in (1000,) if quick else (10000, 100000):
        yield drive(grains, threads)


def swing(links, joints, threads):
    """(ms a step, worst violation in links) of the chain."""
    setup = build("chain", links + 1)
    solver = GaussSeidel(iterations=50, tolerance=0.0)
    simulation = Simulation(setup.scene, setup.dt, solver, threads=threads, joints=joints, **setup.options)
    simulation.step()
    started, worst, steps = time.perf_counter(), 0.0, 500
    for _ in range(steps):
        worst = max(worst, simulation.step().joint_violation)
    return 1e3 * (time.perf_counter() - started) / steps, worst / LINK


def hold(threads):
    """The median step of an arm that servos hold."""
    scene, last = Scene(), None
    servo = {"motor": PositionMotor(0.0, stiffness=2000.0, damping=50.0), "limits": (-2.0, 2.0)}
    for k in range(7):
        link = scene.add_body(Capsule(0.05, 0.05), (0, 0, 0.1 + 0.2 * k), mass=2.0)
        scene.add_joint(Revolute(last, link, (0, 0, 0.2 * k), (0, k % 2, 1 - k % 2), **servo))
        last = link
    for side in (-1, 1):
        finger = scene.add_body(Box((0.01, 0.01, 0.03)), (0, 0.04 * side, 1.45), mass=0.05)
        scene.add_joint(Prismatic(last, finger, (0, 0.04 * side, 1.4), (0, 1, 0), **servo))
    simulation = Simulation(scene, 1 / 240, threads=threads)
    seconds = [_timed(simulation.step) for _ in range(1200)][200:]
    return {
        "arm, joints": len(simulation.mechanism),
        "ms a step": 1e3 * float(np.median(seconds)),
        "open, m": simulation.report.joint_violation,
        "contacts": simulation.report.contacts,
    }


def _timed(function):
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def drive(grains, threads):
    """The vehicle on so many grains."""
    setup = build("vehicle", grains)
    simulation = Simulation(setup.scene, setup.dt, GaussSeidel(iterations=50, tolerance=0.0), threads=threads, **setup.options)
    worst = 0.0
    while simulation.time < 0.8 - 1e-9:
        worst = max(worst, simulation.step().joint_violation)
    reports = [simulation.step() for _ in range(20)]
    mean = lambda *stages: 1e3 * sum(r.seconds[s] for r in reports for s in stages) / len(reports)  # noqa: E731
    return {
        "vehicle, grains": grains,
        "joints": len(simulation.mechanism),
        "contacts": reports[-1].contacts,
        "ms a step": mean(*reports[0].seconds),
        "detection": mean("bounds", "broad phase", "narrow phase", "match"),
        "solve": mean("solve"),
        "pins open, % of a shoe": 100 * max(worst, *(r.joint_violation for r in reports)) / PITCH,
        "speed, m/s": float(simulation.velocities[chassis(simulation), 0]),
        "residual, m/s": reports[-1].residual,
    }


def chassis(simulation):
    """The heaviest body that can move."""
    return int(np.argmax(np.where(simulation.movable, simulation.masses, 0.0)))
