"""The variables of a machine: what controllers read and write, by name.

In: a simulation, and names of bodies and joints. Out: ``Variable`` objects, which a co-simulation unit and an environment share. A name is
``kind.owner.quantity``, with a component at the end where it is one of a vector:

    inputs   motor.crank.speed   load.piston.force.x   motion.drum.angular_velocity   surface.belt.velocity   gravity
    outputs  joint.crank.angle   body.piston.position.z   step.residual   time

An owner without a name is told by its id, ``body[3].position``. Lists leave out grains; by its id any body is found.
"""

import difflib
import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gravel import checks, measures
from gravel.joints.drives import ForceMotor, Moment, Motor, PositionMotor, SpeedMotor
from gravel.joints.kinds import TURNS
from gravel.joints.rows import FORCE, LIMIT, MOTOR_ROLES, POSITION, SPEED
from gravel.joints.table import UNITS as JOINT_UNITS
from gravel.joints.table import JointTable
from gravel.model.motion import ConstantVelocity, surface_at

if TYPE_CHECKING:
    from gravel.simulation import Simulation

REAL, BOOLEAN, INTEGER = "real", "boolean", "integer"
NUMBER: tuple[str, ...] = ()  # components of a variable that is one number
XYZ, WXYZ = ("x", "y", "z"), ("w", "x", "y", "z")
SIDES = ("inputs", "outputs")
CLOSE = 3  # matches that a refusal offers


@dataclass(frozen=True)
class Progress:
    """How the steps between two looks at a machine went: the worst of them, and the contacts of the last."""

    contacts: int = 0
    residual: float = 0.0
    converged: bool = True
    max_penetration: float = 0.0
    joint_violation: float = 0.0

    def after(self, report: Any) -> "Progress":
        """The same with one step more, by its report."""
        return Progress(
            report.contacts,
            max(self.residual, report.residual),
            self.converged and report.converged,
            max(self.max_penetration, report.max_penetration),
            max(self.joint_violation, report.joint_violation),
        )


class Reading:
    """A simulation at one moment. The joint table is made once, however many variables are read of it."""

    def __init__(self, simulation: "Simulation", progress: Progress):
        self.simulation, self.progress = simulation, progress

    @cached_property
    def joints(self) -> JointTable:
        return self.simulation.joints


@dataclass(frozen=True)
class Variable:
    """What can be read and, if it is an input, written."""

    name: str
    unit: str  # SI, "" for none
    meaning: str
    read: Callable[[Reading], Any] = field(repr=False)  # its value: a number, or an array of its components
    write: Callable[["Simulation", np.ndarray], None] | None = field(default=None, repr=False)  # takes (size,)
    components: tuple[str, ...] = NUMBER
    kind: str = REAL
    limits: tuple[float, float] | None = None  # between which its owner keeps it, where it does
    drives: tuple | None = None  # what an input acts on, of which there can be one input only

    @property
    def size(self) -> int:
        """How many numbers it is."""
        return len(self.components) or 1

    @property
    def names(self) -> list[str]:
        """The names of its numbers."""
        return [f"{self.name}.{one}" for one in self.components] or [self.name]

    def value(self, now: Reading) -> np.ndarray:
        """(size,) its numbers, a copy."""
        return np.array(self.read(now), float).reshape(self.size)

    def part(self, component: str) -> "Variable":
        """One of its components, as a variable of its own."""
        k, whole = self.components.index(component), self
        write_whole: Any = self.write

        def write(simulation, values):
            full = whole.value(Reading(simulation, Progress()))
            full[k] = values[0]
            write_whole(simulation, full)

        return replace(
            self,
            name=f"{self.name}.{component}",
            read=lambda now: whole.value(now)[k],
            write=None if write_whole is None else write,
            components=NUMBER,
            drives=None if self.drives is None else (*self.drives, component),
        )


@dataclass(frozen=True)
class Names:
    """What bodies and joints are called: names to ids, and of ``groups`` to many ids, ``grains[3]``."""

    bodies: Mapping[str, int] = field(default_factory=dict)
    joints: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, Sequence[int]] = field(default_factory=dict)


class Variables:
    """All variables of a simulation. ``listed_by``: what lists them, for refusals."""

    def __init__(self, simulation: "Simulation", names: Names, listed_by: str):
        self.simulation, self.names, self.listed_by = simulation, names, listed_by
        for what, known, count in (("body", names.bodies, simulation.count), ("joint", names.joints, len(simulation.mechanism))):
            for name, number in known.items():
                if checks.count(f"{what} {name!r}", number) >= count:
                    raise ValueError(f"{what} {name!r} must be an id below {count}, not {number}")
        self._called = {what: {n: name for name, n in known.items()} for what, known in (("body", names.bodies), ("joint", names.joints))}
        self._of_owner: dict[tuple[str, int], list[Variable]] = {}

    # --- all of them
    def listed(self, side: str) -> dict[str, list[Variable]]:
        """Owner, such as "joint.crank" -> its variables: of all joints, and of the bodies that have a name, a joint, a motion or a moving
        surface. ``side``: "inputs" or "outputs"."""
        found = {self._key(kind, number): self._variables(kind, number) for kind, number in self._owners(side)}
        return {key: variables for key, variables in found.items() if variables} | {"": self._single(side)}

    def _owners(self, side) -> Iterator[tuple[str, int]]:
        sim = self.simulation
        joints, prescribed = range(len(sim.mechanism)), [*sim.motions, *sim.surfaces]
        bodies = sorted({*self.names.bodies.values(), *sim.mechanism.bodies(), *prescribed})
        for kind in KINDS[side]:
            yield from ((kind, number) for number in (joints if kind in OF_JOINTS else bodies))

    def _single(self, side):
        if side == "inputs":
            read = lambda now: now.simulation.gravity  # noqa: E731
            return [Variable("gravity", "m/s2", "acceleration of gravity", read, _set_gravity, XYZ, drives=("gravity",))]
        return [Variable("time", "s", "simulated time", lambda now: now.simulation.time), *_step_outputs()]

    def _key(self, kind, number):
        name = self._called[OF_JOINTS.get(kind, "body")].get(number)
        if name is None and kind not in OF_JOINTS:
            name = next((f"{group}[{ids.index(number)}]" for group, ids in self._groups.items() if number in ids), None)
        return f"{kind}[{number}]" if name is None else f"{kind}.{name}"

    @cached_property
    def _groups(self):
        return {group: [int(n) for n in ids] for group, ids in self.names.groups.items()}

    def _variables(self, kind, number):
        """Those of one owner."""
        if (kind, number) not in self._of_owner:
            self._of_owner[kind, number] = list(MAKERS[kind](self.simulation, self._key(kind, number), number))
        return self._of_owner[kind, number]

    # --- some of them
    def select(self, side: str, words: str | Iterable[str]) -> list[Variable]:
        """The variables that words name, in their order: ``joint.crank.angle``, one component ``body.piston.position.x``, all of an owner
        ``joint.crank``, a pattern ``joint.*.angle``, or a quantity of all listed owners of a kind, ``motor.speed``. ``words``: a text with
        commas between, or several texts."""
        if not isinstance(words, str) and not (isinstance(words, Iterable) and all(isinstance(word, str) for word in words)):
            raise TypeError(f"{side} must be names of variables, not {words!r:.80}")
        words = words.split(",") if isinstance(words, str) else list(words)
        found: dict[str, Variable] = {}
        for word in words:
            found.update((variable.name, variable) for variable in self._find(side, word.strip().replace("'", "")))
        self._refuse_two_drives(found.values())
        return list(found.values())

    def defaults(self, side: str) -> list[Variable]:
        """What a machine is driven by, and what is looked at, where nobody says: the motors as they are; what joints do, and whether the
        steps converged."""
        listed = self._all_listed(side)
        if side == "inputs":
            mechanism = self.simulation.mechanism
            roles = {
                ("motor", joint, gauge): mechanism.row_values["role"][row]
                for joint in range(len(mechanism))
                for row, gauge in _motor_rows(mechanism, joint)
            }
            return [v for v in listed if v.drives in roles and v.name.rpartition(".")[2] in TARGETS[roles[v.drives]]]
        wanted = ("slide", "slide_speed", "angle", "angle_speed", "motor_force", "motor_torque")
        of_joints = [v for v in listed if v.name.startswith("joint") and v.name.rpartition(".")[2] in wanted]
        return [*of_joints, *(v for v in listed if v.name in ("step.residual", "step.converged"))]

    def _all_listed(self, side):
        return [variable for variables in self.listed(side).values() for variable in variables]

    def _find(self, side, word):
        """What a word names; refused if there is nothing."""
        if "*" in word:
            found = self._matching(side, word)
        else:
            owner = self._owner_of(side, word)
            if owner is None:
                found = _named(self._single(side), word) or self._of_all_owners(side, word)
            else:
                kind, number, rest = owner
                key = self._key(kind, number)
                found = _named(self._variables(kind, number), f"{key}.{rest}") if rest else self._variables(kind, number)
        if not found:
            self._refuse(side, word)
        return found

    def _matching(self, side, word):
        pattern = re.compile(fnmatch.translate(word.replace("[", "[[]")))
        found = []
        for variable in self._all_listed(side):
            whole = pattern.match(variable.name)
            found += [variable] if whole else [variable.part(c) for c in variable.components if pattern.match(f"{variable.name}.{c}")]
        return found

    def _of_all_owners(self, side, word):
        """``motor.speed``: that quantity of all listed owners of a kind."""
        kind, _, quantity = word.partition(".")
        quantity, _, component = quantity.partition(".")
        found = [
            variable
            for key, variables in self.listed(side).items()
            for variable in variables
            if re.match(rf"{re.escape(kind)}[.\[]", key) and variable.name == f"{key}.{quantity}"
        ]
        return [v.part(component) for v in found if component in v.components] if component else found

    def _owner_of(self, side, word):
        """(kind, id, what follows) of a word that names a body or a joint, or None."""
        kind = re.split(r"[.\[]", word, maxsplit=1)[0]
        if kind not in KINDS[side]:
            return None
        what = OF_JOINTS.get(kind, "body")
        count = self.simulation.count if what == "body" else len(self.simulation.mechanism)
        by_id = re.fullmatch(rf"{kind}\[(\d+)\](?:\.(.*))?", word)
        if by_id:
            number = int(by_id[1])
            if number >= count:
                raise ValueError(f"{what} of {word!r} must be an id below {count}, not {number}")
            return kind, number, by_id[2] or ""
        rest, known = word[len(kind) + 1 :], self.names.bodies if what == "body" else self.names.joints
        fitting = [name for name in known if rest == name or rest.startswith(f"{name}.")]
        if fitting:
            name = max(fitting, key=len)
            return kind, known[name], rest[len(name) + 1 :]
        for name, ids in self._groups.items() if what == "body" else ():
            found = re.fullmatch(rf"{re.escape(name)}\[(\d+)\](?:\.(.*))?", rest)
            if found and int(found[1]) < len(ids):
                return kind, ids[int(found[1])], found[2] or ""
        return None

    # --- refusals
    def _refuse(self, side, word):
        listed = self._all_listed(side)
        near = difflib.get_close_matches(word, [name for v in listed for name in dict.fromkeys((v.name, *v.names))], CLOSE, 0.5)
        hint = f"; close to it: {', '.join(map(repr, near))}" if near else ""
        other = SIDES[side == "inputs"]
        words = f", which is one of the {other}" if any(word in (v.name, *v.names) for v in self._all_listed(other)) else ""
        raise ValueError(f"{side} must be variables of this scene, not {word!r}{words}{hint}; {self.listed_by} lists them all")

    @staticmethod
    def _refuse_two_drives(variables):
        """An input must not act on what another acts on, be it another target of the same motor, or a vector and its component."""
        taken: dict[tuple, str] = {}
        for variable in variables:
            if variable.write is None:
                continue
            acts = variable.drives or (variable.name,)
            clash = next((name for other, name in taken.items() if acts[: len(other)] == other[: len(acts)]), None)
            if clash is not None:
                raise ValueError(f"inputs must act on different things, but {clash!r} and {variable.name!r} act on the same one")
            taken[acts] = variable.name


def _named(variables, name):
    """The variable of a name, or the component of one, as a list of one; else an empty one."""
    whole, _, component = name.rpartition(".")
    for variable in variables:
        if variable.name == name:
            return [variable]
        if variable.name == whole and component in variable.components:
            return [variable.part(component)]
    return []


# --- outputs
def _joint_outputs(simulation, key, joint) -> Iterator[Variable]:
    mechanism = simulation.mechanism
    gauges = [gauge for j, gauge, *_ in mechanism.coordinates if j == joint]
    couples = any(owner == joint and second >= 0 for owner, second in zip(mechanism.row_values["owner"], mechanism.row_values["joint_2"]))
    driven = [gauge in TURNS for _, gauge in _motor_rows(mechanism, joint)]
    of = lambda name: lambda now: getattr(now.joints, name)[joint]  # noqa: E731
    for turns, coordinate in ((False, "slide"), (True, "angle")):
        if any((gauge in TURNS) == turns for gauge in gauges):
            yield Variable(f"{key}.{coordinate}", JOINT_UNITS[coordinate], "position of its coordinate", of(coordinate))
            speed = f"{coordinate}_speed"
            yield Variable(f"{key}.{speed}", JOINT_UNITS[speed], "speed of its coordinate", of(speed))
    for turns, effort in ((False, "motor_force"), (True, "motor_torque")):
        if couples or turns in driven:
            yield Variable(f"{key}.{effort}", JOINT_UNITS[effort], "effort of its motor, mean over the last step", of(effort))
    if not couples:
        meaning = "reaction on the second body, world frame, mean over the last step"
        yield Variable(f"{key}.force", "N", meaning, of("force"), components=XYZ)
        yield Variable(f"{key}.torque", "N m", meaning, of("torque"), components=XYZ)
    yield Variable(f"{key}.violation", "m", "largest error of what it holds", of("violation"))
    yield Variable(f"{key}.broken", "", "whether it is broken or released", of("broken"), kind=BOOLEAN)


def _body_outputs(simulation, key, body) -> Iterator[Variable]:
    for name, unit, meaning, array, components in (
        ("position", "m", "place of its centre of mass", "positions", XYZ),
        ("quaternion", "", "orientation", "quaternions", WXYZ),
        ("velocity", "m/s", "velocity of its centre of mass", "velocities", XYZ),
        ("angular_velocity", "rad/s", "angular velocity, world frame", "angular_velocities", XYZ),
    ):
        read = lambda now, array=array: getattr(now.simulation, array)[body]  # noqa: E731
        yield Variable(f"{key}.{name}", unit, meaning, read, components=components)

    def touched(measure):
        def read(now):
            if not now.simulation.alive[body]:
                return np.full(3, np.nan)
            return measure(now.simulation, body) if now.simulation.steps else np.zeros(3)

        return read

    meaning = "of all contacts on it, mean over the last step"
    yield Variable(f"{key}.contact_force", "N", f"force {meaning}", touched(measures.contact_force), components=XYZ)
    meaning = f"torque about its centre {meaning}"
    yield Variable(f"{key}.contact_torque", "N m", meaning, touched(measures.contact_torque), components=XYZ)


def _step_outputs() -> Iterator[Variable]:
    since = "since the variables were last looked at"
    for name, unit, meaning, kind in (
        ("contacts", "", "contacts in the last step", INTEGER),
        ("residual", "m/s", f"largest residual of the steps {since}", REAL),
        ("converged", "", f"whether all steps {since} converged", BOOLEAN),
        ("max_penetration", "m", f"deepest penetration {since}", REAL),
        ("joint_violation", "m", f"largest error of the joints {since}", REAL),
    ):
        yield Variable(f"step.{name}", unit, meaning, _of_progress(name), kind=kind)


def _of_progress(name):
    return lambda now: getattr(now.progress, name)


# --- inputs
def _motor_inputs(simulation, key, joint) -> Iterator[Variable]:
    """A motor can be told a speed, a position or an effort, whatever it was made for; of one motor only one of them is an input."""
    mechanism = simulation.mechanism
    rows = _motor_rows(mechanism, joint)
    for row, gauge in rows:
        turns = gauge in TURNS
        coordinate = ("angle" if turns else "slide") if len(rows) > 1 else None
        prefix = key if coordinate is None else f"{key}.{coordinate}"
        for role, target, unit in (
            (SPEED, "speed", "rad/s" if turns else "m/s"),
            (POSITION, "position", "rad" if turns else "m"),
            (FORCE, "torque" if turns else "force", "N m" if turns else "N"),
        ):
            yield Variable(
                f"{prefix}.{target}",
                unit,
                "target of the motor" if role != FORCE else "effort of the motor",
                _target_reader(role, joint, row, turns),
                _target_writer(role, joint, row, coordinate, mechanism),
                limits=_limits_of(mechanism, joint, gauge, row, role),
                drives=("motor", joint, gauge),
            )


def _motor_rows(mechanism, joint) -> list[tuple[int, int]]:
    """(row, gauge) of the motors of a joint."""
    rows = mechanism.row_values
    return [(k, rows["gauge"][k]) for k, owner in enumerate(rows["owner"]) if owner == joint and rows["role"][k] in MOTOR_ROLES]


def _target_reader(role, joint, row, turns):
    """Reads what a motor is told now. One that was made for something else is at rest where it is."""

    def read(now):
        mechanism = now.simulation.mechanism
        if mechanism.row_values["role"][row] == role:
            law, time = mechanism.functions.get(row), now.simulation.time
            return mechanism.row_values["value"][row] if law is None else law.evaluate(Moment(time, time, now.simulation.dt, 0, 0))["value"]
        return (now.joints.angle if turns else now.joints.slide)[joint] if role == POSITION else 0.0

    return read


def _target_writer(role, joint, row, coordinate, mechanism):
    limit, stiffness, damping = (mechanism.row_values[name][row] for name in ("limit", "stiffness", "damping"))
    servo = {"stiffness": stiffness, "damping": damping} if stiffness and mechanism.row_values["role"][row] == POSITION else {}

    def write(simulation, values):
        target = float(values[0])
        motor: Motor
        if role == SPEED:
            motor = SpeedMotor(target, limit)
        elif role == POSITION:
            motor = PositionMotor(target, limit, **servo)
        else:
            motor = ForceMotor(target)
        simulation.set_motor(joint, motor, coordinate)

    return write


def _limits_of(mechanism, joint, gauge, row, role):
    """The range of a target, as far as the joint or the motor has one."""
    rows = mechanism.row_values
    if role == POSITION:
        stops = [k for k, owner in enumerate(rows["owner"]) if owner == joint and (rows["role"][k], rows["gauge"][k]) == (LIMIT, gauge)]
        bounds = (rows["lower"][stops[0]], rows["upper"][stops[0]]) if stops else (-np.inf, np.inf)
    else:
        bounds = (-rows["limit"][row], rows["limit"][row]) if role == FORCE else (-np.inf, np.inf)
    return bounds if np.isfinite(bounds).all() else None


def _load_inputs(simulation, key, body) -> Iterator[Variable]:
    if not simulation.movable[body]:
        return
    for name, unit, array in (("force", "N", "forces"), ("torque", "N m", "torques")):
        read = lambda now, array=array: getattr(now.simulation, array)[body]  # noqa: E731

        def write(simulation, values, array=array):
            getattr(simulation, array)[body] = values

        yield Variable(f"{key}.{name}", unit, f"{name} on its centre of mass, world frame", read, write, XYZ, drives=("load", body, name))


def _motion_inputs(simulation, key, body) -> Iterator[Variable]:
    """A body that follows a motion can be told another: constant velocities, from where it is."""
    if body not in simulation.motions:
        return
    for name, unit in (("velocity", "m/s"), ("angular_velocity", "rad/s")):

        def read(now, name=name):
            motion = now.simulation.motions[body]
            return getattr(motion, name) if isinstance(motion, ConstantVelocity) else np.zeros(3)

        def write(simulation, values, name=name):
            motion = simulation.motions[body]
            was = motion if isinstance(motion, ConstantVelocity) else ConstantVelocity()
            simulation.set_motion(body, replace(was, **{name: values}))

        meaning = f"{name.replace('_', ' ')} that it is driven with"
        yield Variable(f"{key}.{name}", unit, meaning, read, write, XYZ, drives=("motion", body, name))


def _surface_inputs(simulation, key, body) -> Iterator[Variable]:
    if body not in simulation.surfaces:
        return
    for first, name, unit in ((0, "velocity", "m/s"), (3, "angular_velocity", "rad/s")):
        part = slice(first, first + 3)

        def read(now, part=part):
            return np.array(surface_at(now.simulation.surfaces[body], now.simulation.time, body))[part]

        def write(simulation, values, part=part):
            both = np.array(surface_at(simulation.surfaces[body], simulation.time, body))
            both[part] = values
            simulation.set_surface_velocity(body, (both[:3], both[3:]))

        meaning = f"{name.replace('_', ' ')} of its surface, in its own frame"
        yield Variable(f"{key}.{name}", unit, meaning, read, write, XYZ, drives=("surface", body, name))


def _set_gravity(simulation, values):
    simulation.gravity = values


TARGETS = {SPEED: ("speed",), POSITION: ("position",), FORCE: ("force", "torque")}  # names of what motors are told, by their roles
MAKERS = {
    "joint": _joint_outputs,
    "body": _body_outputs,
    "motor": _motor_inputs,
    "load": _load_inputs,
    "motion": _motion_inputs,
    "surface": _surface_inputs,
}
KINDS = {"inputs": ("motor", "load", "motion", "surface"), "outputs": ("joint", "body")}
OF_JOINTS = {"joint": "joint", "motor": "joint"}  # kinds whose owners are joints; those of others are bodies
