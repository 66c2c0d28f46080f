"""The arrays that joints become: what goes into an engine, and what comes out of it.

A row is a gauge (``gravel.joints.kinds``) and a law (a role here, its formula in the engine's ``laws``): hold it, limit it, drive
it, brake it, pull it by a spring. A joint has an anchor in each of its two bodies and some rows.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

HOLD, SPEED, POSITION, FORCE, LIMIT, FRICTION, SPRING, SPRING_FUNCTION = range(8)  # roles of rows
MOTOR_ROLES = (SPEED, POSITION, FORCE)
DRIVES = (*MOTOR_ROLES, SPRING, SPRING_FUNCTION)  # of rows that can set bodies in motion that are at rest

ANCHOR_FIELDS = ("body_a", "body_b", "point_a", "point_b", "frame_a", "frame_b", "angle", "broken", "break_force", "break_torque")
ROW_FIELDS = (
    *("joint", "gauge", "joint_2", "gauge_2", "ratio", "owner", "role", "scale", "start", "value", "ahead", "limit"),
    *("stiffness", "damping", "lower", "upper", "restitution"),
)
WHOLE = {"joint", "gauge", "joint_2", "gauge_2", "owner", "role"}  # row fields that are whole numbers


class Row(NamedTuple):
    """One row as its joint describes it."""

    gauge: int
    role: int
    scale: float = 1.0  # m for angles, so that all rows are in m, m/s and N s
    values: Mapping[str, float] = {}  # of ROW_FIELDS
    law: object = None  # the motor or spring it comes from, where that is a function
    joint: int | None = None  # whose gauge it is; None: of the joint that has the row
    pair: tuple = (-1, 0, 0.0)  # joint_2, gauge_2, ratio: the row holds ratio gauge - gauge_2 of joint_2


class JointArrays(NamedTuple):
    """All joints of a simulation, for an engine."""

    body_a: np.ndarray  # (j,) ids, -1: the world
    body_b: np.ndarray
    point_a: np.ndarray  # (j, 3) m, in the frame of the body
    point_b: np.ndarray
    frame_a: np.ndarray  # (j, 4) quaternion, in the frame of the body
    frame_b: np.ndarray
    angle: np.ndarray  # (j,) rad, as last seen, so that full turns are counted
    broken: np.ndarray  # (j,) u1
    rows: Mapping[str, np.ndarray]  # ROW_FIELDS, (m,) each
    coordinate_joint: np.ndarray  # (k,) gauges that are reported as coordinates
    coordinate_gauge: np.ndarray
    directly: bool  # all rows are solved at once; False: one by one, as contacts are
    carried: Mapping[str, np.ndarray]  # from the step before, of the joints and rows there were: impulse, force, torque, motor


class JointState(NamedTuple):
    """The joints as they are now."""

    angle: np.ndarray  # (j,) rad, as last seen
    broken: np.ndarray  # (j,) u1
    coordinate: np.ndarray  # (k,) gauges
    rate: np.ndarray  # (k,)
    violation: np.ndarray  # (j,) m
    impulse: np.ndarray  # (m,) N s, of the last step that was taken
    force: np.ndarray  # (j, 3) N on body b
    torque: np.ndarray  # (j, 3) N m
    motor: np.ndarray  # (j, 2) efforts on a slide and on an angle
    body: np.ndarray  # (k,) ids of the bodies that have joints
    movable: np.ndarray  # (k,) whether forces can move them


def no_joints() -> JointState:
    """The state where there are none."""
    none, whole, vectors = np.empty(0), np.empty(0, np.int64), np.empty((0, 3))
    return JointState(none, whole, none, none, none, none, vectors, vectors, np.empty((0, 2)), whole, whole > 0)


CARRIED = ("impulse", "force", "torque", "motor")
