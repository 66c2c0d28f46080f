"""The joint table: what users see of joints, as arrays, one row each."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from gravel.joints.kinds import ANGLE
from gravel.joints.rows import JointState


@dataclass(frozen=True)
class JointTable:
    """The joints after the last step, one row each. A coordinate that a joint does not have is NaN.

    - ``slide`` (n,) m along the axis; the length of Distance and Spring
    - ``slide_speed`` (n,) m/s
    - ``angle`` (n,) rad, full turns counted
    - ``angle_speed`` (n,) rad/s
    - ``force`` (n, 3) N on body b, world frame, mean over the step; without the motor's
    - ``torque`` (n, 3) N m on body b about the joint's point, world frame, mean over the step
    - ``motor_force`` (n,) N, effort of a motor on a slide; what a RackPinion does to its slide
    - ``motor_torque`` (n,) N m, effort of a motor on an angle; what a Gear does to its second joint
    - ``violation`` (n,) m, the largest error of what the joint holds (angles times the bodies' radius of gyration)
    - ``broken`` (n,): True for joints that broke or were released
    """

    slide: np.ndarray
    slide_speed: np.ndarray
    angle: np.ndarray
    angle_speed: np.ndarray
    force: np.ndarray
    torque: np.ndarray
    motor_force: np.ndarray
    motor_torque: np.ndarray
    violation: np.ndarray
    broken: np.ndarray

    def __len__(self) -> int:
        return len(self.slide)

    def __getitem__(self, joints: Any) -> "JointTable":
        """The same table with some of the rows: an id, an index array, a mask or a slice."""
        return JointTable(*(getattr(self, f.name)[joints] for f in fields(self)))


def joint_table(coordinates: list, state: JointState) -> JointTable:
    """The table of joints whose ``coordinates`` are (joint, gauge, start, ...), from what the engine says of them."""
    n = len(state.broken)
    columns = {name: np.full(n, np.nan) for name in ("slide", "slide_speed", "angle", "angle_speed")}
    for k, (joint, gauge, start, _) in enumerate(coordinates):
        name = "angle" if gauge == ANGLE else "slide"
        columns[name][joint] = state.coordinate[k] + start
        columns[name + "_speed"][joint] = state.rate[k]
    return JointTable(
        **columns,
        force=state.force.copy(),
        torque=state.torque.copy(),
        motor_force=state.motor[:, 0].copy(),
        motor_torque=state.motor[:, 1].copy(),
        violation=state.violation.copy(),
        broken=state.broken > 0,
    )
