"""Mechanism: the joints of a scene or of a simulation.

``Mechanism.add`` anchors a joint in its two bodies where they lie, checks that it fits, and lists its rows. ``arrays`` is all of
them as an engine wants it. Rows and joints are only ever appended, so that a row keeps its number and its impulse.
"""

import math

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from gravel.errors import MissingFunctionError
from gravel.joints import anchoring
from gravel.joints.drives import MOTORS, ForceMotor, Moment, NoNumber, PositionMotor, SpeedMotor, SpringLaw
from gravel.joints.kinds import KINDS, TURNS, Joint
from gravel.joints.rows import (
    ANCHOR_FIELDS,
    CARRIED,
    DRIVES,
    FORCE,
    HOLD,
    MOTOR_ROLES,
    POSITION,
    ROW_FIELDS,
    SPEED,
    WHOLE,
    JointArrays,
    Row,
)


class Mechanism:
    """The joints of a scene or of a simulation. ``changed``: the engine has not been told of the latest."""

    def __init__(self):
        self.names = []  # the joints in words
        self.described = []  # (joint as it was given, whether to assemble it), for scene files; None where it is not known any more
        self.joint_values = {name: [] for name in ANCHOR_FIELDS}
        self.row_values = {name: [] for name in ROW_FIELDS}
        self.coordinates = []  # (joint, gauge, start, gauge when it was last written down)
        self.functions = {}  # row -> motor or spring with a function
        self.filtered_pairs = []  # (body, body, joint or -1): pairs that may not touch
        self.open = False  # whether a joint waits to be closed
        self.carried = {}  # what an engine knew of the joints there were, see ``JointArrays``
        self.changed = False

    def __len__(self):
        return len(self.names)

    def __repr__(self) -> str:
        return f"Mechanism({len(self)} joints, {len(self.row_values['scale'])} rows)"

    # --- joints come
    def add(self, joint, bodies, assemble=False):
        """Anchor a joint where its bodies lie; returns its id. A joint that is refused leaves nothing behind."""
        if not isinstance(assemble, bool):
            raise TypeError(f"assemble must be True or False, not {assemble!r}")
        if not isinstance(joint, KINDS):
            raise TypeError(f"joint must be one of {', '.join(kind.__name__ for kind in KINDS)}, not {joint!r}")
        if not isinstance(joint, Joint):
            return self._add_coupling(joint)
        anchoring.check_bodies(joint, bodies)
        anchor = anchoring.anchor(joint, bodies)
        size = anchoring.size_of(joint, bodies)
        if not assemble:
            anchoring.check_meeting(joint, anchor, size)
        lengths = anchoring.start_lengths(joint)
        for drive, (_, prefix) in zip(joint.drives, joint.COORDINATES):
            anchoring.check_start(joint, drive, lengths, prefix + "limits")
        number = self._add_joint(joint.describe(), joint.body_a, joint.body_b, anchor, joint.break_force, joint.break_torque)
        for row in joint.rows(number, size, lengths):
            self._add_row(number, row)
        self.coordinates += [(number, *seen) for seen in joint.seen(lengths)]
        self.open |= assemble
        self.described[number] = joint, assemble
        if not joint.collide and joint.body_a is not None and joint.body_b is not None:
            self.filtered_pairs.append((joint.body_a, joint.body_b, number))
        return number

    def _add_joint(self, words, body_a, body_b, anchor, break_force=math.inf, break_torque=math.inf):
        number = len(self.names)
        self.names.append(f"joint {number} ({words})")
        self.described.append(None)
        ends = (-1 if body_a is None else body_a), (-1 if body_b is None else body_b)
        for name, value in zip(ANCHOR_FIELDS, (*ends, *anchor, 0.0, 0, break_force, break_torque)):
            self.joint_values[name].append(value)
        self.changed = True
        return number

    def _add_coupling(self, joint):
        """A gear: a row between coordinates of two joints, and no bodies of its own."""
        kind = type(joint).__name__
        gauges = []
        for name, wanted in zip(("joint_1", "joint_2"), joint.COUPLES):
            which = getattr(joint, name)
            if which >= len(self):
                raise ValueError(f"{kind} {name} must be the id of a joint, below {len(self)}, not {which}")
            gauges.append(next((gauge for j, gauge, *_ in self.coordinates if j == which and gauge in wanted), None))
            if gauges[-1] is None:
                does = "turns about an axis" if wanted == TURNS else "slides along an axis"
                raise ValueError(f"{kind} {name} must be a joint that {does}, but {self.names[which]} does not")
        still = np.zeros(3), np.zeros(3), np.array([1.0, 0, 0, 0]), np.array([1.0, 0, 0, 0])
        number = self._add_joint(f"{kind} of joints {joint.joint_1} and {joint.joint_2}", None, None, still)
        scale = self._scale_of(joint.joint_2) if gauges[1] in TURNS else 1.0
        pair = joint.joint_2, gauges[1], joint.ratio
        off = joint.ratio * self._gauge_now(joint.joint_1, gauges[0]) - self._gauge_now(*pair[:2])
        self._add_row(number, Row(gauges[0], HOLD, scale, {"value": scale * off}, joint=joint.joint_1, pair=pair))
        self.described[number] = joint, False
        return number

    def _gauge_now(self, joint, gauge):
        """A coordinate's gauge as it was last seen."""
        return next(seen for j, g, _, seen in self.coordinates if (j, g) == (joint, gauge))

    def _scale_of(self, joint):
        return max(s for s, owner in zip(self.row_values["scale"], self.row_values["owner"]) if owner == joint)

    def _add_row(self, owner, row):
        given = {"joint": owner if row.joint is None else row.joint, "gauge": row.gauge, "owner": owner, "role": row.role}
        given.update(row.values, scale=row.scale, **dict(zip(("joint_2", "gauge_2", "ratio"), row.pair)))
        if row.law is not None:
            self.functions[len(self.row_values["role"])] = row.law
        for name in ROW_FIELDS:
            self.row_values[name].append(given.get(name, 0))

    # --- motors and springs
    def set_motor(self, joint, motor, gauges):
        """Replace the motor of a joint, on one of some gauges (None: any); returns (its row, the law's new numbers)."""
        if not isinstance(motor, MOTORS):
            raise TypeError(f"motor must be a SpeedMotor, PositionMotor or ForceMotor, not {motor!r}")
        rows = self.row_values
        for row, (owner, role, at) in enumerate(zip(rows["owner"], rows["role"], rows["gauge"])):
            if owner == joint and role in MOTOR_ROLES and (gauges is None or at in gauges):
                self.functions.pop(row, None)
                if motor.is_function:
                    self.functions[row] = motor
                return row, self._write(row, motor.law())
        raise ValueError(f"{self.names[joint]} has no motor to replace: make it with one, e.g. motor=ForceMotor(0)")

    def _write(self, row, values):
        for name, value in values.items():
            self.row_values[name][row] = value
        return values

    def evaluate(self, time, end, step, value, rate):
        """Motors and springs that are functions, asked for a step that looks at the joints at ``time``, where the rows' gauges are
        ``value`` and ``rate``: yields (row, the law's new numbers)."""
        for row, law in self.functions.items():
            scale, start = self.row_values["scale"][row], self.row_values["start"][row]
            try:
                numbers = law.evaluate(Moment(time, end, step, value[row] / scale + start, rate[row] / scale))
            except NoNumber as error:
                raise ValueError(f"the function of {self.names[self.row_values['owner'][row]]} {error}") from None
            yield row, self._write(row, numbers)

    # --- for engines
    def arrays(self, directly):
        """All joints for an engine."""
        columns = {name: np.array(values) for name, values in self.joint_values.items()}
        rows = {name: np.array(values, np.int64 if name in WHOLE else np.float64) for name, values in self.row_values.items()}
        order = np.array([c[:2] for c in self.coordinates], np.int64).reshape(-1, 2)
        return JointArrays(
            columns["body_a"].astype(np.int64),
            columns["body_b"].astype(np.int64),
            *(columns[name].astype(float).reshape(-1, 3) for name in ("point_a", "point_b")),
            *(columns[name].astype(float).reshape(-1, 4) for name in ("frame_a", "frame_b")),
            columns["angle"].astype(float),
            columns["broken"].astype(np.uint8),
            rows,
            np.ascontiguousarray(order[:, 0]),
            np.ascontiguousarray(order[:, 1]),
            directly,
            self.carried,
        )

    def keep(self, state):
        """What an engine has changed of the joints is written down, before joints are added or a file is written."""
        self.joint_values["angle"] = state.angle.tolist()
        self.joint_values["broken"] = state.broken.tolist()
        self.coordinates = [(*c[:3], float(seen)) for c, seen in zip(self.coordinates, state.coordinate)]
        self.carried = {name: getattr(state, name).copy() for name in CARRIED}

    def copy(self):
        """The same joints, to be changed apart."""
        twin = Mechanism()
        twin.names, twin.coordinates, twin.filtered_pairs = list(self.names), list(self.coordinates), list(self.filtered_pairs)
        twin.joint_values = {name: list(values) for name, values in self.joint_values.items()}
        twin.row_values = {name: list(values) for name, values in self.row_values.items()}
        twin.functions, twin.open, twin.changed, twin.described = dict(self.functions), self.open, True, list(self.described)
        return twin

    def renumbered(self, number, time):
        """A copy for a start ``time`` s later: bodies get the ids ``number`` (a dict; those that are not in it are gone, and their joints
        broken), motors that are functions of time go on."""
        twin = self.copy()
        for name in ("body_a", "body_b"):
            twin.joint_values[name] = [number.get(int(b), -1) for b in twin.joint_values[name]]
        twin.filtered_pairs = [(number[a], number[b], joint) for a, b, joint in twin.filtered_pairs if a in number and b in number]
        twin.functions = {row: law.after(time) for row, law in twin.functions.items()}
        twin.described = [None] * len(twin)  # bodies are elsewhere now
        return twin

    # --- who hangs together
    def bodies(self):
        """Ids of the bodies that have joints."""
        return sorted({b for name in ("body_a", "body_b") for b in self.joint_values[name] if b >= 0})

    def connected(self, joints, state, without):
        """Mask of the joints that are connected with some, by way of bodies that can move; none that connects with a body ``without``."""
        label, _ = self._labels(state)
        driven = {label[j] for name in ("body_a", "body_b") for j, b in enumerate(self.joint_values[name]) if b in without}
        return np.isin(label, list({label[j] for j in joints} - driven))

    def machine_of_bodies(self, state):
        """Body -> number of the machine it belongs to: bodies that joints connect, by way of bodies that can move."""
        return self._labels(state)[1]

    def machine_of_joint(self, joint, state):
        """Ids of the bodies that can move of a joint's machine; a gear belongs to that of its joints."""
        label, machine = self._labels(state)
        return [b for b, number in machine.items() if number == label[joint]]

    def driven_machines(self, state, moving):
        """Numbers of those machines that a motor or a spring drives, or that hang on a body which is ``moving`` (ids)."""
        label, holds = self._labels(state)[0], state.broken == 0
        driven = {j for j, role in zip(self.row_values["owner"], self.row_values["role"]) if role in DRIVES}
        driven |= {j for name in ("body_a", "body_b") for j, b in enumerate(self.joint_values[name]) if b in moving}
        return {int(label[j]) for j in driven if holds[j]}

    def _labels(self, state):
        """Numbers of connected parts: of the joints (an array), and of the bodies that can move (by id)."""
        n, member = len(self), {int(b): k for k, (b, movable) in enumerate(zip(state.body, state.movable)) if movable}
        ends = [(j, b) for name in ("body_a", "body_b") for j, b in enumerate(self.joint_values[name])]
        links = [(j, n + member[b]) for j, b in ends if b in member]
        links += [(o, j) for name in ("joint", "joint_2") for o, j in zip(self.row_values["owner"], self.row_values[name]) if j >= 0]
        graph = scipy.sparse.coo_matrix((np.ones(len(links)), np.array(links, int).reshape(-1, 2).T), shape=(n + len(state.body),) * 2)
        _, label = scipy.sparse.csgraph.connected_components(graph, directed=False)
        return label[:n], {b: int(label[n + k]) for b, k in member.items()}

    def joints_of(self, bodies, broken):
        """Ids of the joints that bodies take with them when they go, and of the gears on those joints."""
        gone = set(bodies)
        out = {j for j, ends in enumerate(zip(self.joint_values["body_a"], self.joint_values["body_b"])) if not gone.isdisjoint(ends)}
        out |= set(np.flatnonzero(broken).tolist())
        for owner, *joints in zip(self.row_values["owner"], self.row_values["joint"], self.row_values["joint_2"]):
            if not out.isdisjoint(joints):
                out.add(owner)
        return sorted(out)

    def pairs_to_filter(self, broken):
        """(p, 2) bodies that may not touch, as long as their joint holds."""
        return np.array([(a, b) for a, b, joint in self.filtered_pairs if joint < 0 or not broken[joint]], np.int64).reshape(-1, 2)

    def overloaded(self, state):
        """Ids of the joints whose reaction exceeds what they bear."""
        if min(min(self.joint_values["break_force"]), min(self.joint_values["break_torque"])) == math.inf:
            return ()
        force, torque = np.linalg.norm(state.force, axis=1), np.linalg.norm(state.torque, axis=1)
        over = (force > self.joint_values["break_force"]) | (torque > self.joint_values["break_torque"])
        return np.flatnonzero(over & (state.broken == 0))

    # --- files
    def to_arrays(self):
        """Everything but words and functions, by name."""
        arrays = {f"joint_{name}": np.array(values) for name, values in self.joint_values.items()}
        arrays.update({f"row_{name}": np.array(values) for name, values in self.row_values.items()})
        arrays["coordinates"] = np.array(self.coordinates, float).reshape(-1, 4)
        arrays["apart"] = np.array(self.filtered_pairs, np.int64).reshape(-1, 3)
        arrays["functions"] = np.array(sorted(self.functions), np.int64)
        arrays.update({f"carried_{name}": values for name, values in self.carried.items()})
        return arrays

    def from_arrays(self, arrays, names, given):
        """Take over what ``to_arrays`` has written. ``given``: joint -> motor or spring, where one was a Python function."""
        self.names, self.changed, self.described = list(names), True, [None] * len(names)
        self.joint_values = {name: list(arrays[f"joint_{name}"]) for name in ANCHOR_FIELDS}
        self.row_values = {name: arrays[f"row_{name}"].tolist() for name in ROW_FIELDS}
        self.coordinates = [(int(j), int(g), start, seen) for j, g, start, seen in arrays["coordinates"].tolist()]
        self.filtered_pairs = [tuple(row) for row in arrays["apart"].tolist()]
        self.carried = {name.removeprefix("carried_"): values for name, values in arrays.items() if name.startswith("carried_")}
        for row in arrays["functions"].tolist():
            joint, role = self.row_values["owner"][row], self.row_values["role"][row]
            kind = {SPEED: SpeedMotor, POSITION: PositionMotor, FORCE: ForceMotor}.get(role, SpringLaw)
            laws_given = given.get(joint, ())
            fitting = [law for law in (laws_given if isinstance(laws_given, (tuple, list)) else [laws_given]) if isinstance(law, kind)]
            taken = sum(self.row_values["owner"][r] == joint and isinstance(law, kind) for r, law in self.functions.items())
            if len(fitting) <= taken:
                words = f"{names[joint]} had a {kind.__name__} with a Python function, which a file cannot hold"
                raise MissingFunctionError(
                    f"{words}; pass laws={{{joint}: {kind.__name__}(...)}}, not {laws_given!r} (several as a tuple, in their order)"
                )
            self.functions[row] = fitting[taken]

    def function_laws(self):
        """Joint -> its motors and springs that are Python functions, as ``from_arrays`` wants them."""
        given = {}
        for row in sorted(self.functions):
            given.setdefault(self.row_values["owner"][row], []).append(self.functions[row])
        return given
