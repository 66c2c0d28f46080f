"""A four-bar linkage: a rotating crank swings the rocker through a coupler."""

import numpy as np

from gravel.joints.drives import SpeedMotor
from gravel.joints.kinds import Revolute
from gravel.rotations import from_rotation_vector
from gravel.scene import Scene
from gravel.scenes.setup import Check, Setup, joints_check
from gravel.shapes import Box

BODIES = FEWEST = 3
CRANK, COUPLER, ROCKER, GROUND = 0.2, 0.7, 0.5, 0.6  # m; the shortest and the longest are less than the others (Grashof): it turns round
SPEED = 2 * np.pi


def build(bodies, seed):
    scene = Scene()
    crank_end = np.array([CRANK, 0.0])
    rocker_end = joint_of(crank_end)
    bars = [
        bar(scene, (0, 0), crank_end, 0.0, "crank"),
        bar(scene, crank_end, rocker_end, 0.06, "coupler"),
        bar(scene, (GROUND, 0), rocker_end, 0.0, "rocker"),
    ]
    pin = lambda a, b, at, **options: scene.add_joint(Revolute(a, b, (at[0], 0, at[1]), (0, -1, 0), **options))  # noqa: E731
    drive = pin(None, bars[0], (0, 0), motor=SpeedMotor(SPEED))
    pin(bars[0], bars[1], crank_end)
    pin(bars[1], bars[2], rocker_end)
    angle = np.arctan2(rocker_end[1], rocker_end[0] - GROUND)
    rocker = pin(None, bars[2], (GROUND, 0), start=angle)
    return Setup(
        scene,
        1e-3,
        3.4,
        lambda s, r: check(s, r, drive, rocker, bars),
        options={"precision": "double"},
        joint_names={"crank": drive, "rocker": rocker},
    )


def bar(scene, start, end, aside, name):
    """A bar from start to end in the plane of x and z."""
    start, end = np.asarray(start, float), np.asarray(end, float)
    along, middle = end - start, 0.5 * (start + end)
    turn = from_rotation_vector((0, -np.arctan2(along[1], along[0]), 0))
    half = Box((0.5 * np.linalg.norm(along), 0.015, 0.02))
    return scene.add_body(half, (middle[0], aside, middle[1]), quaternion=turn, name=name)


def joint_of(crank_end):
    """Where coupler and rocker meet, above the line of their other ends."""
    far = np.array([GROUND, 0.0]) - crank_end
    d = np.linalg.norm(far)
    along = (COUPLER**2 - ROCKER**2 + d**2) / (2 * d)
    height = np.sqrt(COUPLER**2 - along**2)
    return crank_end + along * far / d + height * np.array([-far[1], far[0]]) / d


def check(simulation, report, drive, rocker, bars):
    turn, asked = simulation.joints.angle[drive], SPEED * simulation.time
    meet = joint_of(CRANK * np.array([np.cos(turn), np.sin(turn)]))
    exact = np.arctan2(meet[1], meet[0] - GROUND)
    angle = simulation.joints.angle[rocker]
    crank = CRANK * np.array([np.cos(turn), np.sin(turn)])
    middles = np.stack([0.5 * crank, 0.5 * (crank + meet), 0.5 * (meet + (GROUND, 0))])
    off = np.abs(simulation.positions[bars][:, [0, 2]] - middles).max()
    return [
        Check("the bars' places", off < 1e-4, f"off by {off:.1e} m"),
        Check("the crank's turn", abs(turn - asked) < SPEED * simulation.dt, f"{turn:.4f} rad, asked {asked:.4f}"),
        Check("the rocker's angle", abs(angle - exact) < 1e-4, f"{angle:.6f} rad, exactly {exact:.6f}"),
        joints_check(report, COUPLER, 1e-5),
    ]
