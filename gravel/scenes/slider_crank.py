"""A motor turns a crank, and a rod moves a piston back and forth."""

import numpy as np

from gravel.joints.drives import SpeedMotor
from gravel.joints.kinds import Prismatic, Revolute
from gravel.scene import Scene
from gravel.scenes.setup import Check, Setup, joints_check, mechanical_energy
from gravel.shapes import Box

BODIES = FEWEST = 3
CRANK, ROD, SPEED = 0.2, 0.6, 2 * np.pi  # m, m, rad/s: a turn a second


def build(bodies, seed):
    scene = Scene()
    crank = scene.add_body(Box((CRANK / 2, 0.02, 0.02)), (CRANK / 2, 0, 0), mass=1.0, name="crank")
    rod = scene.add_body(Box((ROD / 2, 0.015, 0.015)), (CRANK + ROD / 2, 0.05, 0), mass=2.0, name="rod")
    piston = scene.add_body(Box((0.05, 0.05, 0.05)), (CRANK + ROD, 0.15, 0), mass=3.0, name="piston")
    across = (0, -1, 0)  # so that a positive turn lifts the crank
    motor = scene.add_joint(Revolute(None, crank, (0, 0, 0), across, motor=SpeedMotor(SPEED)))
    crank_pin = scene.add_joint(Revolute(crank, rod, (CRANK, 0, 0), across))
    piston_pin = scene.add_joint(Revolute(rod, piston, (CRANK + ROD, 0, 0), across))
    slide = scene.add_joint(Prismatic(None, piston, (CRANK + ROD, 0, 0), (1, 0, 0), start=CRANK + ROD))
    work = Work(motor)
    return Setup(
        scene,
        1e-3,
        3.3,
        lambda s, r: check(s, r, motor, slide, work),
        [work],
        {"precision": "double"},
        joint_names={"crank": motor, "crank_pin": crank_pin, "piston_pin": piston_pin, "piston": slide},
    )


class Work:
    """What the motor has done so far, J: its torque times the crank's turn of each step."""

    def __init__(self, motor):
        self.motor, self.done, self.start = motor, 0.0, None

    def __call__(self, simulation):
        if self.start is None:
            self.start = mechanical_energy(simulation)  # after the first step, in which the crank is set going
            return
        self.done += simulation.joints.motor_torque[self.motor] * SPEED * simulation.dt


def check(simulation, report, motor, slide, work):
    turn = SPEED * simulation.time
    exact = CRANK * np.cos(turn) + np.sqrt(ROD**2 - (CRANK * np.sin(turn)) ** 2)
    place, angle = simulation.joints.slide[slide], simulation.joints.angle[motor]
    gained = mechanical_energy(simulation) - work.start
    return [
        Check("the crank's turn", abs(angle - turn) < SPEED * simulation.dt, f"{angle:.4f} rad, asked {turn:.4f}"),
        Check("the piston's place", abs(place - crank_to_slide(angle)) < 1e-5 * ROD, f"{place:.6f} m, exactly {crank_to_slide(angle):.6f}"),
        Check("and its motion", abs(place - exact) < 2 * CRANK * SPEED * simulation.dt, f"{exact:.6f} m at this time"),
        Check(
            "the motor's work", abs(gained - work.done) < 1e-2 * max(abs(gained), 1.0), f"{work.done:.4f} J, energy gained {gained:.4f} J"
        ),
        joints_check(report, ROD, 1e-5),
    ]


def crank_to_slide(angle):
    return CRANK * np.cos(angle) + np.sqrt(ROD**2 - (CRANK * np.sin(angle)) ** 2)
