"""Joints: what holds bodies together. Plain descriptions, checked where they are made.

A joint sits at a point and has an axis, both given in world coordinates where the bodies lie in the scene. It carries a
frame a1 a2 a3 fixed in body a and a frame b1 b2 b3 fixed in body b, which coincide at the start, with a3 along the axis.
With d = (point of b) - (point of a), each joint holds a few of these scalars, its gauges, at zero:

    OFFSET i    d . a_i       the points stay together along a_i
    DOT ij      a_i . b_j     two directions stay at right angles
    DISTANCE    |d| - length
    REACH i     d . b_i       the same as OFFSET along a direction that b carries along

and leaves others free, its coordinates, on which limits, friction, springs and motors act:

    OFFSET 3    slide along the axis, m
    REACH 2     slide along a direction of b, m
    ANGLE       turn of b about the axis, rad, counted on over full turns
    SWING       turn of d about the axis, rad, counted likewise: a rod that has no body
    DISTANCE    length, m

A body is its id, or None for the world. The engines' ``gauges`` have the gradients.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gravel import checks
from gravel.joints.drives import MOTORS, Limits, Motor, SpringLaw, as_limits
from gravel.joints.rows import FRICTION, HOLD, LIMIT, SPRING, Row
from gravel.printing import formatting
from gravel.rotations import between, rotate

OFFSET_X, OFFSET_Y, OFFSET_Z = 0, 1, 2
DOT = 3  # DOT + 3 i + j: a_i . b_j, counted from 0
DISTANCE, ANGLE = 12, 13
TURN_X, TURN_Y, TURN_Z = 14, 15, 16  # components of the rotation vector from a to b in the frame of a
SWING = 17  # of d about a3, counted from a1
REACH_X, REACH_Y = 18, 19  # d . b1, d . b2
LAST_GAUGE = REACH_Y

TURNS, SLIDES = (ANGLE, SWING), (OFFSET_Z, REACH_Y)  # coordinates that users see as an angle, or as a slide
POINT = (OFFSET_X, OFFSET_Y, OFFSET_Z)
LINE = (OFFSET_X, OFFSET_Y)
AXIS = (DOT + 2, DOT + 5)  # a1 . b3, a2 . b3
LOCK = (DOT + 5, DOT + 6, DOT + 1)  # a2 . b3, a3 . b1, a1 . b2

Bounds = Limits | tuple[float, float]  # (lower, upper)


class Drive(NamedTuple):
    """What acts on one coordinate of a joint."""

    gauge: int
    start: float  # the coordinate's value at the start
    limits: Any
    motor: Any
    friction: float
    spring: Any

    def rows(self, size: float, lengths: dict[int, float]) -> Iterator[Row]:
        """Limits, friction, spring and motor, each a row."""
        scale, start = {ANGLE: size, SWING: lengths[DISTANCE]}.get(self.gauge, 1.0), {"start": self.start}
        if self.limits is not None:
            values = {name: getattr(self.limits, name) for name in ("lower", "upper", "restitution", "damping")}
            yield Row(self.gauge, LIMIT, scale, {**values, **start, "stiffness": self.limits.stiffness or 0.0})
        if self.friction:
            yield Row(self.gauge, FRICTION, scale, {"limit": self.friction, **start})
        for law in (self.spring, self.motor):
            if law is not None:
                now = (self.start + lengths.get(self.gauge, 0.0),) if law is self.spring else ()
                values = law.law(*now)
                yield Row(self.gauge, values.pop("role"), scale, {**values, **start}, law if law.is_function else None)


@dataclass(frozen=True, repr=False)
class Joint:
    """What all joints between two bodies have.

    ``body_a``, ``body_b``: ids, or None for the world. ``point`` (3,) m and ``axis`` (3,): where it is and along what, in world
    coordinates. ``point_b`` and ``axis_b``: the same for body b, where they differ at the start; ``Scene.add_joint(..., assemble=True)``
    lets the simulation close the difference. ``collide``: whether the two bodies may touch each other. It breaks when its reaction
    exceeds ``break_force`` N or ``break_torque`` N m."""

    body_a: int | None
    body_b: int | None
    point: Any = (0.0, 0.0, 0.0)
    axis: Any = (0.0, 0.0, 1.0)
    point_b: Any = None
    axis_b: Any = None
    collide: bool = False
    break_force: float = math.inf
    break_torque: float = math.inf

    HOLDS: ClassVar[tuple] = ()  # gauges kept at zero
    LENGTH: ClassVar[int | None] = None  # that of them which is kept at ``length`` instead (None: as at the start)
    COORDINATES: ClassVar[tuple] = ()  # (gauge, prefix of the options that act on it)

    def __post_init__(self):
        kind = type(self).__name__
        for name in ("body_a", "body_b"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checks.count(f"{kind} {name}", getattr(self, name)))
        if self.body_a == self.body_b:
            which = "the world" if self.body_a is None else f"body {self.body_a}"
            raise ValueError(f"{kind} must join two different bodies, but both ends are {which}")
        for name in ("point", "point_b", "axis", "axis_b"):
            value = getattr(self, name)
            if value is not None:
                check = checks.unit(f"{kind} {name}", value) if name.startswith("axis") else checks.array(f"{kind} {name}", value, (3,))
                object.__setattr__(self, name, tuple(check.tolist()))
        for name in ("break_force", "break_torque"):
            checks.bound(f"{kind} {name}", getattr(self, name), above=0.0)
        if not isinstance(self.collide, bool):
            raise TypeError(f"{kind} collide must be True or False, not {self.collide!r}")
        for _, prefix in self.COORDINATES:
            self._check_drive(kind, prefix)

    def __repr__(self) -> str:
        return formatting.of_fields(self)

    def _check_drive(self, kind, prefix):
        names = {f.name for f in fields(self)}
        if prefix + "limits" in names:
            object.__setattr__(self, prefix + "limits", as_limits(f"{kind} {prefix}limits", getattr(self, prefix + "limits")))
        motor = getattr(self, prefix + "motor", None)
        if motor is not None and not isinstance(motor, MOTORS):
            raise TypeError(f"{kind} {prefix}motor must be a SpeedMotor, PositionMotor or ForceMotor, not {motor!r}")
        spring = getattr(self, prefix + "spring", None)
        if spring is not None and not isinstance(spring, SpringLaw):
            raise TypeError(f"{kind} {prefix}spring must be a SpringLaw, not {spring!r}")
        checks.number(f"{kind} {prefix}friction", getattr(self, prefix + "friction", 0.0), minimum=0.0)
        checks.number(f"{kind} {prefix}start", getattr(self, prefix + "start", 0.0))

    @property
    def drives(self) -> list[Drive]:
        """What acts on each coordinate, in the order of ``COORDINATES``."""
        option: Callable[[str, Any], Any] = lambda name, default: getattr(self, name, default)  # noqa: E731
        return [
            Drive(
                gauge,
                option(prefix + "start", 0.0),
                option(prefix + "limits", None),
                option(prefix + "motor", None),
                option(prefix + "friction", 0.0),
                option(prefix + "spring", None),
            )
            for gauge, prefix in self.COORDINATES
        ]

    def rows(self, number: int, size: float, lengths: dict[int, float]) -> Iterable[Row]:
        """The joint's rows: ``number`` is its id, ``size`` a length of its bodies, ``lengths`` its gauges that are not zero at the
        start."""
        for gauge in self.HOLDS:
            yield Row(gauge, HOLD, size if DOT <= gauge < DISTANCE else 1.0, {"value": self.held_at(gauge, lengths)})
        for drive in self.drives:
            yield from drive.rows(size, lengths)

    def held_at(self, gauge: int, lengths: dict[int, float]) -> float:
        """What a gauge is held at."""
        if gauge != self.LENGTH:
            return 0.0
        length = getattr(self, "length", None)
        return lengths[gauge] if length is None else math.copysign(length, lengths[gauge])

    @property
    def across(self) -> np.ndarray | None:
        """(3,) direction of a1, at right angles to the axis, where it matters."""
        return None

    def seen(self, lengths: dict[int, float]) -> list[tuple[int, float, float]]:
        """Coordinates that users see: (gauge, what it is called at the start, gauge at the start)."""
        return [(drive.gauge, drive.start, lengths.get(drive.gauge, 0.0)) for drive in self.drives]

    def describe(self) -> str:
        """The joint in a few words, for messages."""
        name = lambda body: "the world" if body is None else f"body {body}"  # noqa: E731
        return f"{type(self).__name__} between {name(self.body_a)} and {name(self.body_b)}"


@dataclass(frozen=True, repr=False)
class Spherical(Joint):
    """A ball joint: the points stay together, b turns freely."""

    HOLDS = POINT


@dataclass(frozen=True, repr=False)
class Universal(Joint):
    """Cardan joint: the points stay together, ``axis`` (fixed in a) and ``axis_b`` (fixed in b) at right angles."""

    HOLDS = (*POINT, DOT + 8)

    def __post_init__(self):
        super().__post_init__()
        if self.axis_b is None:
            raise ValueError("Universal needs axis_b, the axis fixed in body b, at right angles to axis")


@dataclass(frozen=True, repr=False)
class Fixed(Joint):
    """Welds two bodies together as they lie."""

    HOLDS = (*POINT, *LOCK)


@dataclass(frozen=True, repr=False)
class Planar(Joint):
    """b slides on the plane through the point, square to the axis, and turns about the axis."""

    HOLDS = (OFFSET_Z, *AXIS)


@dataclass(frozen=True, repr=False)
class OneDrive(Joint):
    """A joint with one free coordinate, on which limits, a motor, friction (N or N m) and a spring may act. Its position is
    ``start`` where the points meet and nothing has turned."""

    limits: Bounds | None = None
    motor: Motor | None = None
    friction: float = 0.0
    spring: SpringLaw | None = None
    start: float = 0.0


@dataclass(frozen=True, repr=False)
class Revolute(OneDrive):
    """A hinge: b turns about the axis. Coordinate: the angle, rad."""

    HOLDS = (*POINT, *AXIS)
    COORDINATES = ((ANGLE, ""),)


@dataclass(frozen=True, repr=False)
class Prismatic(OneDrive):
    """A slide: b moves along the axis and does not turn. Coordinate: the slide, m."""

    HOLDS = (*LINE, *LOCK)
    COORDINATES = ((OFFSET_Z, ""),)


@dataclass(frozen=True, repr=False)
class PointOnLine(OneDrive):
    """The point of b stays on the line through the point of a along the axis; b turns freely. Coordinate: the slide, m."""

    HOLDS = LINE
    COORDINATES = ((OFFSET_Z, ""),)


@dataclass(frozen=True, repr=False)
class TwoDrives(OneDrive):
    """A joint that slides and turns: ``limits``, ``motor``, ``friction``, ``spring`` and ``start`` act on the slide, the same names
    with ``turn_`` on the angle."""

    turn_limits: Bounds | None = None
    turn_motor: Motor | None = None
    turn_friction: float = 0.0
    turn_spring: SpringLaw | None = None
    turn_start: float = 0.0


@dataclass(frozen=True, repr=False)
class Cylindrical(TwoDrives):
    """b slides along the axis and turns about it. ``limits``, ``motor``, ``friction``, ``spring`` and ``start`` act on the slide,
    the same names with ``turn_`` on the angle."""

    HOLDS = (*LINE, *AXIS)
    COORDINATES = ((OFFSET_Z, ""), (ANGLE, "turn_"))


@dataclass(frozen=True, repr=False)
class Screw(Cylindrical):
    """A Cylindrical joint whose slide follows the angle: ``pitch`` m a turn (right-handed if positive)."""

    pitch: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        if checks.number("Screw pitch", self.pitch) == 0.0:
            raise ValueError("Screw pitch must not be zero: m a turn")

    def rows(self, number: int, size: float, lengths: dict[int, float]) -> Iterable[Row]:
        slide = number, OFFSET_Z, self.pitch / (2 * math.pi)
        turning = Row(ANGLE, HOLD, 1.0, {"value": -lengths[OFFSET_Z]}, pair=slide)
        held = len(self.HOLDS)
        rows = list(super().rows(number, size, lengths))
        return [*rows[:held], turning, *rows[held:]]


@dataclass(frozen=True, repr=False)
class Distance(Joint):
    """A rod between ``point`` on a and ``point_b`` on b: their distance stays ``length`` (None: as at the start)."""

    length: float | None = None

    HOLDS = (DISTANCE,)
    LENGTH = DISTANCE

    def __post_init__(self):
        super().__post_init__()
        _check_rod(self)

    def seen(self, lengths: dict[int, float]) -> list[tuple[int, float, float]]:
        return [(DISTANCE, 0.0, lengths[DISTANCE])]


@dataclass(frozen=True, repr=False)
class RevoluteSpherical(OneDrive):
    """A rod without mass that turns about ``axis`` through ``point`` on a, at right angles to it, and ends in a ball joint at
    ``point_b`` on b: the points stay ``length`` m apart (None: as at the start). Coordinate: the rod's angle about the axis, rad,
    ``start`` where it lies at the start; a motor there turns the rod."""

    length: float | None = None

    HOLDS = (DISTANCE, OFFSET_Z)
    LENGTH = DISTANCE
    COORDINATES = ((SWING, ""),)

    def __post_init__(self):
        super().__post_init__()
        _check_rod(self)
        along = np.subtract(self.point_b, self.point)
        if np.linalg.norm(self.across) <= 1e-9 * np.linalg.norm(along):
            raise ValueError(f"RevoluteSpherical point_b must lie beside the axis through point, not on it, as {self.point_b} does")

    @property
    def across(self) -> np.ndarray:
        along = np.subtract(self.point_b, self.point)
        return along - (along @ self.axis) * np.asarray(self.axis)


@dataclass(frozen=True, repr=False)
class RevoluteTranslational(TwoDrives):
    """A rod without mass between a hinge on a and a slide on b. It turns about ``axis`` through ``point`` on a and ends, at right
    angles, on the line through ``point_b`` along ``slide``, both of which b carries along: b turns about the axis with the rod and
    slides across its end. The line stays ``length`` m from ``point`` (None: as at the start; 0: a pin in a slot).

    Coordinates: the slide, m, from where ``point_b`` is at the rod's end, and the angle of b about the axis, rad. ``limits``,
    ``motor``, ``friction``, ``spring`` and ``start`` act on the slide, the same names with ``turn_`` on the angle."""

    slide: Any = None
    length: float | None = None

    HOLDS = (REACH_X, OFFSET_Z, *AXIS)
    LENGTH = REACH_X
    COORDINATES = ((REACH_Y, ""), (ANGLE, "turn_"))

    def __post_init__(self):
        super().__post_init__()
        _need_point_b(self)
        if self.slide is None:
            raise ValueError("RevoluteTranslational needs slide, the direction along which b slides, at right angles to axis")
        slide = checks.unit("RevoluteTranslational slide", self.slide)
        object.__setattr__(self, "slide", tuple(slide.tolist()))
        if self.length is not None:
            checks.number("RevoluteTranslational length", self.length, minimum=0.0)
        name = "axis" if self.axis_b is None else "axis_b"
        axis = np.asarray(getattr(self, name))
        slant = float(axis @ slide)
        if abs(slant) > (1 - 1e-9 if self.axis_b is None else 1e-6):
            raise ValueError(f"RevoluteTranslational slide must be at right angles to {name} {tuple(axis.tolist())}, not {self.slide}")
        # what b takes for the axis is square to its slide: where the bodies do not lie so, ``axis`` and this do not agree at the start
        object.__setattr__(self, "axis_b", tuple(checks.unit("RevoluteTranslational axis_b", axis - slant * slide).tolist()))

    @property
    def across(self) -> np.ndarray:
        return rotate(between(self.axis_b, self.axis), np.cross(self.slide, self.axis_b))


@dataclass(frozen=True, repr=False)
class Spring(Joint):
    """A spring and damper between ``point`` on a and ``point_b`` on b, along the line through them.

    ``stiffness`` N/m, ``damping`` N s/m, ``rest`` length m (None: as at the start), or ``force(length, rate)`` N, positive where
    it pushes the points apart. ``limits`` on the length make a rope: ``limits=(0, 2)``; alone if there is no stiffness."""

    stiffness: float = 0.0
    damping: float = 0.0
    rest: float | None = None
    force: Callable[[float, float], float] | None = None
    limits: Bounds | None = None
    collide: bool = True

    COORDINATES = ((DISTANCE, ""),)

    def __post_init__(self):
        super().__post_init__()
        _need_point_b(self)
        _take_spring_law(self)


@dataclass(frozen=True, repr=False)
class RotationalSpring(Joint):
    """A spring and damper about an axis: ``stiffness`` N m/rad, ``damping`` N m s/rad, ``rest`` angle (None: as at the start), or
    ``force(angle, rate)`` N m. It holds nothing: the bodies usually have a Revolute joint about the same axis."""

    stiffness: float = 0.0
    damping: float = 0.0
    rest: float | None = None
    force: Callable[[float, float], float] | None = None
    start: float = 0.0
    collide: bool = True

    COORDINATES = ((ANGLE, ""),)

    def __post_init__(self):
        super().__post_init__()
        _take_spring_law(self)


@dataclass(frozen=True, repr=False)
class Bushing(Joint):
    """A rubber joint: springs and dampers along and about all three axes of the frame of a.

    ``stiffness`` and ``damping``: N/m and N s/m, one number or three; ``turn_stiffness`` and ``turn_damping``: N m/rad and
    N m s/rad, one number or three (of the rotation vector; meant for turns below a quarter)."""

    stiffness: Any = 0.0
    damping: Any = 0.0
    turn_stiffness: Any = 0.0
    turn_damping: Any = 0.0

    def __post_init__(self):
        super().__post_init__()
        for name in ("stiffness", "damping", "turn_stiffness", "turn_damping"):
            value = getattr(self, name)
            three = (value,) * 3 if np.ndim(value) == 0 else tuple(value)
            if len(three) != 3:
                raise ValueError(f"Bushing {name} must be one number or three, not {value!r}")
            object.__setattr__(self, name, tuple(checks.number(f"Bushing {name}", v, minimum=0.0) for v in three))
        if not any((*self.stiffness, *self.damping, *self.turn_stiffness, *self.turn_damping)):
            raise ValueError("a Bushing needs a stiffness or a damping")

    def rows(self, number: int, size: float, lengths: dict[int, float]) -> Iterable[Row]:
        for axis in range(3):
            for gauge, scale, prefix in ((axis, 1.0, ""), (TURN_X + axis, size, "turn_")):
                k, c = getattr(self, prefix + "stiffness")[axis], getattr(self, prefix + "damping")[axis]
                if k or c:
                    yield Row(gauge, SPRING, scale, {"stiffness": k, "damping": c})


@dataclass(frozen=True)
class Gear:
    """Two joints that have an angle (ids of hinges such as Revolute, Cylindrical or Screw) turn together: angle of the second =
    ``ratio`` times angle of the first, both counted from the start. Negative for wheels that mesh on the outside."""

    joint_1: int
    joint_2: int
    ratio: float

    COUPLES: ClassVar[tuple] = (TURNS, TURNS)

    def __post_init__(self):
        _check_coupling(self)
        if checks.number(f"{type(self).__name__} ratio", self.ratio) == 0.0:
            raise ValueError(f"{type(self).__name__} ratio must not be zero")


@dataclass(frozen=True)
class RackPinion:
    """A hinge ``joint_1`` drives a slide ``joint_2`` (ids of joints): slide = ``radius`` times angle, both from the start."""

    joint_1: int
    joint_2: int
    radius: float

    COUPLES: ClassVar[tuple] = (TURNS, SLIDES)

    def __post_init__(self):
        _check_coupling(self)
        if checks.number("RackPinion radius", self.radius) == 0.0:
            raise ValueError("RackPinion radius must not be zero")

    @property
    def ratio(self) -> float:
        """m a radian: the radius."""
        return self.radius


@dataclass(frozen=True)
class SlideGear(Gear):
    """Two slides (ids of Prismatic, PointOnLine or Cylindrical joints) move together: slide of the second = ``ratio`` times slide of
    the first, both counted from the start; the fingers of a gripper."""

    COUPLES = (SLIDES, SLIDES)


AnyJoint = Joint | Gear | RackPinion  # what ``add_joint`` takes
KINDS = (
    Spherical,
    Revolute,
    Prismatic,
    Cylindrical,
    Universal,
    Fixed,
    Planar,
    Distance,
    RevoluteSpherical,
    RevoluteTranslational,
    PointOnLine,
    Screw,
    Spring,
    RotationalSpring,
    Bushing,
    Gear,
    SlideGear,
    RackPinion,
)


def _need_point_b(joint):
    if joint.point_b is None:
        raise ValueError(f"{type(joint).__name__} needs point_b, the point on body b")


def _check_rod(joint):
    _need_point_b(joint)
    kind = type(joint).__name__
    if joint.length is not None:
        checks.number(f"{kind} length", joint.length, above=0.0)
    elif math.dist(joint.point, joint.point_b) < 1e-12:
        raise ValueError(f"{kind} length must be greater than 0, but point and point_b are the same")


def _take_spring_law(joint):
    """Springs keep their law as a ``SpringLaw``, like other joints do."""
    if joint.force is None and not (joint.stiffness or joint.damping) and getattr(joint, "limits", None) is not None:
        law = None  # a rope
        if joint.rest is not None:
            raise ValueError(f"{type(joint).__name__} rest goes with a stiffness or a damping, but both are 0")
    else:
        law = SpringLaw(joint.stiffness, joint.damping, joint.rest, joint.force)
    object.__setattr__(joint, "spring", law)


def _check_coupling(joint):
    kind = type(joint).__name__
    for name in ("joint_1", "joint_2"):
        object.__setattr__(joint, name, checks.count(f"{kind} {name}", getattr(joint, name)))
    if joint.joint_1 == joint.joint_2:
        raise ValueError(f"{kind} must couple two different joints, but both are joint {joint.joint_1}")
