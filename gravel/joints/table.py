"""The joint table: what users see of joints, as arrays, one row each."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from gravel.joints.kinds import TURNS
from gravel.joints.rows import JointState
from gravel.printing import formatting, tables

if TYPE_CHECKING:
    import pandas

UNITS = {
    "slide": "m",
    "slide_speed": "m/s",
    "angle": "rad",
    "angle_speed": "rad/s",
    "force": "N",
    "torque": "N m",
    "motor_force": "N",
    "motor_torque": "N m",
    "violation": "m",
}


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        frames = f" in {len(self)} frames" if np.ndim(self.slide) == 2 else ""
        loads = formatting.span(np.linalg.norm(self.force, axis=-1))
        broken = int(np.count_nonzero(self.broken))
        parts = [f"{np.shape(self.slide)[-1] if np.ndim(self.slide) else 1} joints{frames}"]
        parts += [f"forces {loads} N"] if loads else []
        parts += [f"{broken} broken"] if broken else []
        return f"JointTable({', '.join(parts)})"

    def __getitem__(self, joints: Any) -> "JointTable":
        """The same table with some of the rows: an id, an index array, a mask or a slice."""
        return JointTable(*(getattr(self, f.name)[joints] for f in fields(self)))

    def to_pandas(self) -> "pandas.DataFrame":
        """A pandas DataFrame with a row for each joint, by its id; of a table of many frames, a row for each ``frame`` and ``joint``.
        Vectors are columns such as ``force_x``, and ``attrs["units"]`` has their units."""
        return tables.data_frame(self._columns(), UNITS, self._index())

    def _repr_html_(self) -> str:
        many = np.shape(self.slide)[1] if np.ndim(self.slide) == 2 else None
        return tables.html(self._columns(), UNITS, repr(self), lambda k: str(k) if many is None else f"frame {k // many}, joint {k % many}")

    def _columns(self) -> dict[str, np.ndarray]:
        """Arrays with one row for each joint, or for each joint of each frame."""
        depth = max(np.ndim(self.slide), 1)
        columns = {f.name: np.asarray(getattr(self, f.name)) for f in fields(self)}
        columns = {name: values if np.ndim(self.slide) else values[None] for name, values in columns.items()}
        return {name: values.reshape(-1, *values.shape[depth:]) for name, values in columns.items()}

    def _index(self) -> Any:
        pandas = tables.need("pandas", "to_pandas")
        if np.ndim(self.slide) == 2:
            return pandas.MultiIndex.from_product([range(n) for n in np.shape(self.slide)], names=["frame", "joint"])
        return pandas.RangeIndex(np.size(self.slide), name="joint")


def joint_table(coordinates: list, state: JointState) -> JointTable:
    """The table of joints whose ``coordinates`` are (joint, gauge, start, ...), from what the engine says of them."""
    n = len(state.broken)
    columns = {name: np.full(n, np.nan) for name in ("slide", "slide_speed", "angle", "angle_speed")}
    for k, (joint, gauge, start, _) in enumerate(coordinates):
        name = "angle" if gauge in TURNS else "slide"
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
