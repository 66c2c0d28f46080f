"""Mechanism: the joints of a simulation, as arrays that the engine works on, and what users see of them.

``Mechanism.add`` anchors a joint in its two bodies where they lie, checks that it fits, and writes its rows (see
``gravel.joints`` for the gauges and ``gravel.cpu.joints.laws`` for the laws of the rows). Rows and joints are only ever appended, so
that a row keeps its number and its impulse.
"""

import math
import numbers
from dataclasses import dataclass, fields

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from gravel.cpu.joints import laws
from gravel.cpu.joints.gauges import Anchors, make_members
from gravel.cpu.joints.laws import Laws
from gravel.cpu.joints.rows import make_rows
from gravel.cpu.joints.stage import JointStage
from gravel.joints import anchoring
from gravel.joints.drives import MOTORS, ForceMotor, PositionMotor, SpeedMotor, SpringLaw
from gravel.joints.kinds import (
    ANGLE,
    DISTANCE,
    DOT,
    KINDS,
    OFFSET_Z,
    TURN_X,
    Bushing,
    Distance,
    Gear,
    RackPinion,
    Screw,
)
from gravel.state import MOVABLE

ASSEMBLY_ROUNDS = 100

ANCHOR_FIELDS = ("body_a", "body_b", "point_a", "point_b", "frame_a", "frame_b", "angle", "broken", "break_force", "break_torque")
ROW_FIELDS = tuple(name for name in Laws._fields if name != "entry")
WHOLE = {"joint", "gauge", "joint_2", "gauge_2", "owner", "role"}


@dataclass(frozen=True)
class JointTable:
    """The joints after the last step, one row each. A coordinate that a joint does not have is NaN."""

    slide: np.ndarray  # (n,) m along the axis; the length of Distance and Spring
    slide_speed: np.ndarray  # (n,) m/s
    angle: np.ndarray  # (n,) rad, full turns counted
    angle_speed: np.ndarray  # (n,) rad/s
    force: np.ndarray  # (n, 3) N on body b, world frame, mean over the step; without the motor's
    torque: np.ndarray  # (n, 3) N m on body b about the joint's point, world frame
    motor_force: np.ndarray  # (n,) N, effort of a motor on a slide; what a RackPinion does to its slide
    motor_torque: np.ndarray  # (n,) N m, effort of a motor on an angle; what a Gear does to its second joint
    violation: np.ndarray  # (n,) m, largest error of what the joint holds (angles times the bodies' radius of gyration)
    broken: np.ndarray  # (n,) bool

    def __len__(self):
        return len(self.slide)

    def __getitem__(self, joints):
        """The same table with some of the rows: an id, an index array, a mask or a slice."""
        return JointTable(*(getattr(self, f.name)[joints] for f in fields(self)))


class Mechanism:
    """The joints of a scene or of a simulation. ``stage`` is the engine's form of them, made anew when joints come."""

    def __init__(self, solve_directly=True):
        self.solve_directly = solve_directly
        self.names = []  # the joints in words
        self.joint_values = {name: [] for name in ANCHOR_FIELDS}
        self.row_values = {name: [] for name in ROW_FIELDS}
        self.coordinates = []  # (joint, gauge, start, gauge when it was last written down)
        self.functions = {}  # row -> motor or spring with a function
        self.apart = []  # (body, body, joint or -1): pairs that may not touch
        self.open = False  # whether a joint waits to be closed by ``assemble``
        self.midpoint = True  # whether the step looks half a step ahead
        self.stage = None
        self.last = None  # what the stage before held of the joints and rows there were, by name; it goes on

    def __len__(self):
        return len(self.names)

    # --- joints come
    def add(self, joint, bodies, assemble=False):
        """Anchor a joint where its bodies lie; returns its id. A joint that is refused leaves nothing behind."""
        if not isinstance(assemble, bool):
            raise TypeError(f"assemble must be True or False, not {assemble!r}")
        if not isinstance(joint, KINDS):
            raise TypeError(f"joint must be one of {', '.join(kind.__name__ for kind in KINDS)}, not {joint!r}")
        if isinstance(joint, (Gear, RackPinion)):
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
        self._add_rows(joint, number, size, lengths)
        self.open |= assemble
        if not joint.collide and joint.body_a is not None and joint.body_b is not None:
            self.apart.append((joint.body_a, joint.body_b, number))
        return number

    def _add_joint(self, words, body_a, body_b, anchor, break_force=math.inf, break_torque=math.inf):
        number = len(self.names)
        self.names.append(f"joint {number} ({words})")
        ends = (-1 if body_a is None else body_a), (-1 if body_b is None else body_b)
        for name, value in zip(ANCHOR_FIELDS, (*ends, *anchor, 0.0, 0, break_force, break_torque)):
            self.joint_values[name].append(value)
        self.stage = None
        return number

    def _add_coupling(self, joint):
        kind = type(joint).__name__
        for name, gauge in zip(("joint_1", "joint_2"), joint.GAUGES):
            which = getattr(joint, name)
            if which >= len(self):
                raise ValueError(f"{kind} {name} must be the id of a joint, below {len(self)}, not {which}")
            if not any(c[:2] == (which, gauge) for c in self.coordinates):
                wanted = "turns about an axis" if gauge == ANGLE else "slides along an axis"
                raise ValueError(f"{kind} {name} must be a joint that {wanted}, but {self.names[which]} does not")
        still = np.zeros(3), np.zeros(3), np.array([1.0, 0, 0, 0]), np.array([1.0, 0, 0, 0])
        number = self._add_joint(f"{kind} of joints {joint.joint_1} and {joint.joint_2}", None, None, still)
        scale = self._scale_of(joint.joint_2) if joint.GAUGES[1] == ANGLE else 1.0
        pair = joint.joint_2, joint.GAUGES[1], joint.ratio
        off = joint.ratio * self._gauge_now(joint.joint_1, joint.GAUGES[0]) - self._gauge_now(*pair[:2])
        self._row(number, joint.GAUGES[0], laws.HOLD, scale, joint=joint.joint_1, pair=pair, value=scale * off)
        return number

    def _gauge_now(self, joint, gauge):
        """A coordinate's gauge as it was last seen."""
        return next(seen for j, g, _, seen in self.coordinates if (j, g) == (joint, gauge))

    def _scale_of(self, joint):
        return max(s for s, j, g in zip(self.row_values["scale"], self.row_values["owner"], self.row_values["gauge"]) if j == joint)

    def _add_rows(self, joint, number, size, lengths):
        for gauge in joint.HOLDS:
            scale, at = size if DOT <= gauge < DISTANCE else 1.0, anchoring.held_length(joint, gauge, lengths)
            self._row(number, gauge, laws.HOLD, scale, value=at)
        if isinstance(joint, Distance):
            self.coordinates.append((number, DISTANCE, 0.0, lengths[DISTANCE]))
        if isinstance(joint, Screw):
            pair = number, OFFSET_Z, joint.pitch / (2 * math.pi)
            self._row(number, ANGLE, laws.HOLD, 1.0, pair=pair, value=-lengths[OFFSET_Z])
        if isinstance(joint, Bushing):
            for axis in range(3):
                for gauge, scale, prefix in ((axis, 1.0, ""), (TURN_X + axis, size, "turn_")):
                    k, c = getattr(joint, prefix + "stiffness")[axis], getattr(joint, prefix + "damping")[axis]
                    if k or c:
                        self._row(number, gauge, laws.SPRING, scale, stiffness=k, damping=c)
        for drive in joint.drives:
            self._add_drive(number, drive, size if drive.gauge == ANGLE else 1.0, lengths)

    def _add_drive(self, number, drive, scale, lengths):
        self.coordinates.append((number, drive.gauge, drive.start, lengths.get(drive.gauge, 0.0)))
        common = {"start": drive.start}
        if drive.limits is not None:
            values = {name: getattr(drive.limits, name) for name in ("lower", "upper", "restitution", "damping")}
            self._row(number, drive.gauge, laws.LIMIT, scale, stiffness=drive.limits.stiffness or 0.0, **values, **common)
        if drive.friction:
            self._row(number, drive.gauge, laws.FRICTION, scale, limit=drive.friction, **common)
        if drive.spring is not None:
            law = drive.spring
            rest = law.rest if law.rest is not None else drive.start + lengths.get(drive.gauge, 0.0)
            role = laws.SPRING if law.force is None else laws.SPRING_FUNCTION
            row = self._row(number, drive.gauge, role, scale, value=rest, stiffness=law.stiffness, damping=law.damping, **common)
            if law.force is not None:
                self.functions[row] = law
        if drive.motor is not None:
            self._set_motor(self._row(number, drive.gauge, laws.FORCE, scale, **common), drive.motor)

    def _row(self, owner, gauge, role, scale, joint=None, pair=(-1, 0, 0.0), **values):
        given = {"joint": owner if joint is None else joint, "gauge": gauge, "owner": owner, "role": role, "scale": scale, **values}
        given.update(zip(("joint_2", "gauge_2", "ratio"), pair))
        for name in ROW_FIELDS:
            self.row_values[name].append(given.get(name, 0))
        self.stage = None
        return len(self.row_values["role"]) - 1

    # --- motors
    def set_motor(self, joint, motor, gauge):
        """Replace the motor of a joint."""
        if not isinstance(motor, MOTORS):
            raise TypeError(f"motor must be a SpeedMotor, PositionMotor or ForceMotor, not {motor!r}")
        rows = self.row_values
        for row, (owner, role, at) in enumerate(zip(rows["owner"], rows["role"], rows["gauge"])):
            if owner == joint and role in (laws.SPEED, laws.POSITION, laws.FORCE) and (gauge is None or at == gauge):
                return self._set_motor(row, motor)
        raise ValueError(f"{self.names[joint]} has no motor to replace: make it with one, e.g. motor=ForceMotor(0)")

    def _set_motor(self, row, motor):
        if isinstance(motor, SpeedMotor):
            role, value, stiffness = laws.SPEED, motor.speed, None
        elif isinstance(motor, PositionMotor):
            role, value, stiffness = laws.POSITION, motor.position, motor.stiffness
        else:
            role, value, stiffness = laws.FORCE, motor.force, None
        self.functions.pop(row, None)
        if callable(value):
            self.functions[row] = motor
            value = 0.0
        self._write(row, role=role, value=value, ahead=value, limit=getattr(motor, "limit", math.inf))
        self._write(row, stiffness=stiffness or 0.0, damping=getattr(motor, "damping", 0.0))
        if self.stage is not None:
            self.stage.kicked = True

    def _write(self, row, **values):
        for name, value in values.items():
            self.row_values[name][row] = value
            if self.stage is not None:
                getattr(self.stage.laws, name)[row] = value

    def evaluate(self, now, step):
        """Motors and springs that are functions get their values for a step that looks at the joints at the time ``now``."""
        table, measured = self.stage.laws, self.stage.measured
        for row, law in self.functions.items():
            if isinstance(law, SpringLaw):
                x = measured.value[row] / table.scale[row] + table.start[row]
                rate = measured.rate[row] / table.scale[row]
                table.value[row], table.stiffness[row], table.damping[row] = self._spring(row, law.force, x, rate)
            elif isinstance(law, SpeedMotor):
                end = now + (0.5 if self.midpoint else 1.0) * step
                table.value[row] = self._call(row, law.speed, end)
            elif isinstance(law, PositionMotor):
                table.value[row], table.ahead[row] = self._call(row, law.position, now), self._call(row, law.position, now + step)
            else:
                table.value[row] = self._call(row, law.force, now)

    def _spring(self, row, force, x, rate):
        """(force, stiffness, damping): the slopes make the step stable; where they would drive it, they are left out."""
        dx, dv = 1e-6 * (abs(x) + 1e-3), 1e-6 * (abs(rate) + 1e-3)
        slope = lambda high, low, d: max(-(high - low) / (2 * d), 0.0)  # noqa: E731
        stiffness = slope(self._call(row, force, x + dx, rate), self._call(row, force, x - dx, rate), dx)
        damping = slope(self._call(row, force, x, rate + dv), self._call(row, force, x, rate - dv), dv)
        return self._call(row, force, x, rate), stiffness, damping

    def _call(self, row, function, *arguments):
        answer = function(*arguments)
        if not isinstance(answer, (numbers.Real, np.ndarray)) or np.ndim(answer) != 0 or not math.isfinite(answer):
            given = ", ".join(f"{a:g}" for a in arguments)
            name = self.names[self.row_values["owner"][row]]
            raise ValueError(f"the function of {name} must give a finite number, but at ({given}) it gives {answer!r}")
        return float(answer)

    # --- files
    def to_arrays(self):
        """Everything but words and functions, by name."""
        self.keep()
        arrays = {f"joint_{name}": np.array(values) for name, values in self.joint_values.items()}
        arrays.update({f"row_{name}": np.array(values) for name, values in self._rows_now().items()})
        arrays["coordinates"] = np.array(self.coordinates, float).reshape(-1, 4)
        arrays["apart"] = np.array(self.apart, np.int64).reshape(-1, 3)
        arrays["functions"] = np.array(sorted(self.functions), np.int64)
        arrays.update({f"carried_{name}": values for name, values in (self.last or {}).items()})
        return arrays

    def from_arrays(self, arrays, names, given):
        """Take over what ``to_arrays`` has written. ``given``: joint -> motor or spring, where one was a Python function."""
        self.names, self.stage = list(names), None
        self.joint_values = {name: list(arrays[f"joint_{name}"]) for name in ANCHOR_FIELDS}
        self.row_values = {name: arrays[f"row_{name}"].tolist() for name in ROW_FIELDS}
        self.coordinates = [(int(j), int(g), start, seen) for j, g, start, seen in arrays["coordinates"].tolist()]
        self.apart = [tuple(row) for row in arrays["apart"].tolist()]
        self.last = {name.removeprefix("carried_"): values for name, values in arrays.items() if name.startswith("carried_")}
        for row in arrays["functions"].tolist():
            joint, role = self.row_values["owner"][row], self.row_values["role"][row]
            kind = {laws.SPEED: SpeedMotor, laws.POSITION: PositionMotor, laws.FORCE: ForceMotor}.get(role, SpringLaw)
            laws_given = given.get(joint, ())
            fitting = [law for law in (laws_given if isinstance(laws_given, (tuple, list)) else [laws_given]) if isinstance(law, kind)]
            taken = sum(self.row_values["owner"][r] == joint and isinstance(law, kind) for r, law in self.functions.items())
            if len(fitting) <= taken:
                words = f"{names[joint]} had a {kind.__name__} with a Python function, which a file cannot hold"
                raise ValueError(
                    f"{words}; pass laws={{{joint}: {kind.__name__}(...)}}, not {laws_given!r} (several as a tuple, in their order)"
                )
            self.functions[row] = fitting[taken]

    def function_laws(self):
        """Joint -> its motors and springs that are Python functions, as ``from_arrays`` wants them."""
        given = {}
        for row in sorted(self.functions):
            given.setdefault(self.row_values["owner"][row], []).append(self.functions[row])
        return given

    def _rows_now(self):
        """The rows' values with what functions last gave."""
        return self.row_values if self.stage is None else {name: getattr(self.stage.laws, name) for name in ROW_FIELDS}

    # --- for the engine
    def prepare(self, bodies, midpoint):
        """The engine's stage for the joints as they are now; what it held of them goes on."""
        self.midpoint = midpoint
        if self.stage is None:
            self.stage = self._stage(bodies, self.solve_directly)
            for name, values in (self.last or {}).items():
                self.stage.carried[name][: len(values)] = values
            self.last = self.stage.carried
            self.stage.look(bodies)
        return self.stage

    def keep(self):
        """What the engine changes of the joints is written back, before joints are added."""
        if self.stage is not None:
            self.joint_values["angle"] = self.stage.anchors.angle.tolist()
            self.joint_values["broken"] = self.stage.anchors.broken.tolist()
            self.coordinates = [(*c[:3], float(seen)) for c, seen in zip(self.coordinates, self.stage.coordinate)]

    def assemble(self, bodies):
        """Move the bodies, as little as their masses allow, until every joint is closed (Newton's method)."""
        stage, reach = self._stage(bodies, True), max(self.row_values["scale"], default=1.0)
        for _ in range(ASSEMBLY_ROUNDS):
            if stage.look(bodies) <= 1e-10 * reach:
                break
            stage.close(bodies)
        error = stage.look(bodies)
        if not error <= 1e-7 * reach:
            worst = self.names[int(np.nanargmax(stage.violation))]
            raise ValueError(f"the joints cannot be assembled: {worst} is still {error:g} m from being closed")
        self.open = False

    def copy(self):
        """The same joints, to be changed apart."""
        twin = Mechanism(self.solve_directly)
        twin.names, twin.coordinates, twin.apart = list(self.names), list(self.coordinates), list(self.apart)
        twin.joint_values = {name: list(values) for name, values in self.joint_values.items()}
        twin.row_values = {name: list(values) for name, values in self.row_values.items()}
        twin.functions, twin.open = dict(self.functions), self.open
        return twin

    def _stage(self, bodies, directly):
        ends = np.array([self.joint_values["body_a"], self.joint_values["body_b"]], np.int64)
        body = np.unique(ends[ends >= 0])
        member = np.where(ends >= 0, np.searchsorted(body, ends), -1)
        columns = {name: np.array(values) for name, values in self.joint_values.items()}
        anchors = Anchors(
            member[0],
            member[1],
            *(columns[name].astype(float).reshape(-1, 3) for name in ("point_a", "point_b")),
            *(columns[name].astype(float).reshape(-1, 4) for name in ("frame_a", "frame_b")),
            columns["angle"].astype(float),
            columns["broken"].astype(np.uint8),
        )
        table = {name: np.array(values, np.int64 if name in WHOLE else np.float64) for name, values in self.row_values.items()}
        entry, counts, members = _entries(table["joint"], table["joint_2"], member)
        row_laws = Laws(**table, entry=entry)
        order = np.array([c[:2] for c in self.coordinates], np.int64).reshape(-1, 2)
        coordinates = np.ascontiguousarray(order[:, 0]), np.ascontiguousarray(order[:, 1])
        movable = bodies.status[body] == MOVABLE
        rows = make_rows(counts, members)
        return JointStage(anchors, make_members(body), row_laws, rows, coordinates, movable, directly)

    def connected(self, joints, without):
        """Mask of the joints that are connected with some, by way of bodies that can move; none that connects with a body ``without``."""
        members, label, _ = self.stage.members, *self._labels()
        sides = self.stage.anchors.member_a, self.stage.anchors.member_b
        driven = {label[j] for side in sides for j, m in enumerate(side) if m >= 0 and int(members.body[m]) in without}
        return np.isin(label, list({label[j] for j in joints} - driven))

    def machine_of_bodies(self):
        """Body -> number of the machine it belongs to: bodies that joints connect, by way of bodies that can move."""
        members, (_, label) = self.stage.members, self._labels()
        return {int(body): int(k) for body, k, status in zip(members.body, label, members.status) if status == MOVABLE}

    def _labels(self):
        """Numbers of connected parts, for the joints and for the members."""
        anchors, members, rows, n = self.stage.anchors, self.stage.members, self.stage.laws, len(self)
        links = [(j, n + m) for side in (anchors.member_a, anchors.member_b) for j, m in enumerate(side) if m >= 0]
        links = [(j, m) for j, m in links if members.status[m - n] == MOVABLE]
        links += [(owner, j) for side in (rows.joint, rows.joint_2) for owner, j in zip(rows.owner, side) if j >= 0]
        graph = scipy.sparse.coo_matrix((np.ones(len(links)), np.array(links, int).reshape(-1, 2).T), shape=(n + len(members.body),) * 2)
        _, label = scipy.sparse.csgraph.connected_components(graph, directed=False)
        return label[:n], label[n:]

    def release_bodies(self, bodies):
        """Joints of bodies that are taken out, and gears on those joints, are out of force."""
        gone, broken = set(bodies), self.stage.anchors.broken
        for joint, ends in enumerate(zip(self.joint_values["body_a"], self.joint_values["body_b"])):
            broken[joint] |= not gone.isdisjoint(ends)
        for owner, *joints in zip(self.row_values["owner"], self.row_values["joint"], self.row_values["joint_2"]):
            broken[owner] |= any(joint >= 0 and broken[joint] for joint in joints)

    def pairs_apart(self):
        """Pairs of bodies that may not touch, as long as their joint holds."""
        return [(a, b) for a, b, joint in self.apart if joint < 0 or not self.stage.anchors.broken[joint]]

    # --- after the step
    def break_overloaded(self):
        """Joints whose reaction exceeds what they bear break; returns how many."""
        stage = self.stage
        force, torque = np.linalg.norm(stage.force, axis=1), np.linalg.norm(stage.torque, axis=1)
        over = (force > self.joint_values["break_force"]) | (torque > self.joint_values["break_torque"])
        new = over & (stage.anchors.broken == 0)
        stage.anchors.broken[new] = 1
        return int(np.count_nonzero(new))

    def table(self):
        """A ``JointTable``."""
        stage, n = self.stage, len(self)
        columns = {name: np.full(n, np.nan) for name in ("slide", "slide_speed", "angle", "angle_speed")}
        for k, (joint, gauge, start, _) in enumerate(self.coordinates):
            name = "angle" if gauge == ANGLE else "slide"
            columns[name][joint] = stage.coordinate[k] + start
            columns[name + "_speed"][joint] = stage.rate[k]
        efforts = stage.motor[:, 0].copy(), stage.motor[:, 1].copy()
        return JointTable(
            **columns,
            force=stage.force.copy(),
            torque=stage.torque.copy(),
            motor_force=efforts[0],
            motor_torque=efforts[1],
            violation=stage.violation.copy(),
            broken=stage.anchors.broken > 0,
        )


def _entries(joint, joint_2, member):
    """Entries of each row, one per body: (m, 4) entry of a, b, a of the second joint, b of it; entries a row; their members."""
    entry, counts, members = np.full((len(joint), 4), -1, np.int64), [], []
    for k in range(len(joint)):
        first, own = len(members), []
        ends = [member[0, joint[k]], member[1, joint[k]]]
        ends += [member[0, joint_2[k]], member[1, joint_2[k]]] if joint_2[k] >= 0 else []
        for side, end in enumerate(ends):
            if end >= 0:
                if end not in own:
                    own.append(end)
                entry[k, side] = first + own.index(end)
        members += own
        counts.append(len(own))
    return entry, np.array(counts, np.int64), members
