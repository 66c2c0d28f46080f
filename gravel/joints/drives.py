"""What acts along the free direction of a joint: limits, motors, springs. Plain descriptions, checked where they are made.

On a slide, positions are in m, speeds in m/s and forces in N; on a hinge in rad, rad/s and N m.

A motor or spring says which law its row follows (``law``: role and numbers) and, where it is a function, its numbers in a step
(``evaluate``).
"""

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gravel import checks
from gravel.joints.rows import FORCE, POSITION, SPEED, SPRING, SPRING_FUNCTION
from gravel.model.motion import TimeShifted

Drive = float | Callable[[float], float]  # a number, or a function of the time in s


@dataclass(frozen=True)
class Limits:
    """The joint's position stays between ``lower`` and ``upper`` (infinite: no limit on that side).

    Rigid by default: it stops, or bounces back with ``restitution`` times its speed. With a ``stiffness`` (N/m or N m/rad) the
    stop is a spring with ``damping`` that only pushes."""

    lower: float = -math.inf
    upper: float = math.inf
    restitution: float = 0.0
    stiffness: float | None = None
    damping: float = 0.0

    def __post_init__(self):
        for name in ("lower", "upper"):
            object.__setattr__(self, name, checks.bound(f"limits {name}", getattr(self, name)))
        if self.lower > self.upper or self.lower == math.inf or self.upper == -math.inf:
            raise ValueError(f"limits must be in order, lower <= upper, not {self.lower:g} and {self.upper:g}")
        checks.number("Limits restitution", self.restitution, minimum=0.0, maximum=1.0)
        checks.number("Limits damping", self.damping, minimum=0.0)
        if self.stiffness is not None:
            checks.number("Limits stiffness", self.stiffness, above=0.0)
        elif self.damping:
            raise ValueError(f"Limits damping goes with a stiffness, but damping is {self.damping:g} and stiffness None")


@dataclass(frozen=True)
class SpeedMotor:
    """Keeps a speed, a number or a function of time, with a force or torque up to ``limit``."""

    speed: Drive
    limit: float = math.inf

    def __post_init__(self):
        _number_or_function("SpeedMotor speed", self.speed)
        checks.bound("SpeedMotor limit", self.limit, above=0.0)

    @property
    def is_function(self) -> bool:
        """Whether it has to be asked in every step."""
        return callable(self.speed)

    def after(self, time: float) -> "SpeedMotor":
        """The same motor in a run that starts ``time`` s later."""
        return replace(self, speed=TimeShifted(self.speed, time)) if callable(self.speed) else self

    def law(self) -> dict[str, Any]:
        """Role and numbers of its row."""
        return _motor_law(SPEED, self.speed, limit=self.limit)

    def evaluate(self, now: "Moment") -> dict[str, float]:
        """The numbers of its row in a step."""
        return {"value": finite_answer(self.speed, now.end)}


@dataclass(frozen=True)
class PositionMotor:
    """Keeps a position, a number or a function of time, with a force or torque up to ``limit``.

    Rigid by default. With a ``stiffness`` it is a servo: a spring towards the position, with ``damping`` of the difference of
    speeds."""

    position: Drive
    limit: float = math.inf
    stiffness: float | None = None
    damping: float = 0.0

    def __post_init__(self):
        _number_or_function("PositionMotor position", self.position)
        checks.bound("PositionMotor limit", self.limit, above=0.0)
        checks.number("PositionMotor damping", self.damping, minimum=0.0)
        if self.stiffness is not None:
            checks.number("PositionMotor stiffness", self.stiffness, above=0.0)
        elif self.damping:
            raise ValueError(f"PositionMotor damping goes with a stiffness, but damping is {self.damping:g} and stiffness None")

    @property
    def is_function(self) -> bool:
        """Whether it has to be asked in every step."""
        return callable(self.position)

    def after(self, time: float) -> "PositionMotor":
        """The same motor in a run that starts ``time`` s later."""
        return replace(self, position=TimeShifted(self.position, time)) if callable(self.position) else self

    def law(self) -> dict[str, Any]:
        """Role and numbers of its row."""
        return _motor_law(POSITION, self.position, self.limit, self.stiffness or 0.0, self.damping)

    def evaluate(self, now: "Moment") -> dict[str, float]:
        """The numbers of its row in a step."""
        return {"value": finite_answer(self.position, now.time), "ahead": finite_answer(self.position, now.time + now.step)}


@dataclass(frozen=True)
class ForceMotor:
    """Pushes with a force (N, on a slide) or torque (N m, on a hinge): a number or a function of time."""

    force: Drive

    def __post_init__(self):
        _number_or_function("ForceMotor force", self.force)

    @property
    def is_function(self) -> bool:
        """Whether it has to be asked in every step."""
        return callable(self.force)

    def after(self, time: float) -> "ForceMotor":
        """The same motor in a run that starts ``time`` s later."""
        return replace(self, force=TimeShifted(self.force, time)) if callable(self.force) else self

    def law(self) -> dict[str, Any]:
        """Role and numbers of its row."""
        return _motor_law(FORCE, self.force)

    def evaluate(self, now: "Moment") -> dict[str, float]:
        """The numbers of its row in a step."""
        return {"value": finite_answer(self.force, now.time)}


@dataclass(frozen=True)
class SpringLaw:
    """The force with which a spring drives its coordinate x (a length, slide or angle): -stiffness (x - rest) - damping x',
    or ``force(x, rate)``, any function. ``rest`` None: where it is at the start."""

    stiffness: float = 0.0
    damping: float = 0.0
    rest: float | None = None
    force: Callable[[float, float], float] | None = None

    def __post_init__(self):
        checks.number("spring stiffness", self.stiffness, minimum=0.0)
        checks.number("spring damping", self.damping, minimum=0.0)
        if self.rest is not None:
            checks.number("spring rest", self.rest)
        if self.force is not None and not callable(self.force):
            raise TypeError(f"spring force must be a function of position and rate, not {self.force!r}")
        if self.force is not None and (self.stiffness or self.damping or self.rest is not None):
            raise ValueError("a spring takes a force function, or stiffness, damping and rest, not both")
        if self.force is None and not (self.stiffness or self.damping):
            raise ValueError("a spring needs a stiffness, a damping or a force function")

    @property
    def is_function(self) -> bool:
        """Whether it has to be asked in every step."""
        return self.force is not None

    def after(self, time: float) -> "SpringLaw":
        """The same spring in a run that starts ``time`` s later: it does not know the time."""
        return self

    def law(self, now: float) -> dict[str, Any]:
        """``now``: where its coordinate is."""
        role = SPRING_FUNCTION if self.is_function else SPRING
        return {"role": role, "value": now if self.rest is None else self.rest, "stiffness": self.stiffness, "damping": self.damping}

    def evaluate(self, now: "Moment") -> dict[str, Any]:
        """The force, and its slopes, which make the step stable; where they would drive it, they are left out."""
        x, rate = now.coordinate, now.rate
        dx, dv = 1e-6 * (abs(x) + 1e-3), 1e-6 * (abs(rate) + 1e-3)
        slope = lambda high, low, d: max(-(high - low) / (2 * d), 0.0)  # noqa: E731
        return {
            "value": finite_answer(self.force, x, rate),
            "stiffness": slope(finite_answer(self.force, x + dx, rate), finite_answer(self.force, x - dx, rate), dx),
            "damping": slope(finite_answer(self.force, x, rate + dv), finite_answer(self.force, x, rate - dv), dv),
        }


@dataclass(frozen=True)
class Moment:
    """What a law that is a function may ask for."""

    time: float  # s, where the step looks
    end: float  # s, at its end
    step: float  # s
    coordinate: float
    rate: float


MOTORS = (SpeedMotor, PositionMotor, ForceMotor)
Motor = SpeedMotor | PositionMotor | ForceMotor


def as_limits(name, limits):
    """Limits as users give them: None, (lower, upper) or ``Limits``."""
    if limits is None or isinstance(limits, Limits):
        return limits
    try:
        lower, upper = limits
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be (lower, upper) or Limits, not {limits!r}") from None
    try:
        return Limits(lower, upper)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


def _number_or_function(name, value):
    if not callable(value):
        checks.number(name, value)


def _motor_law(role, value, limit=math.inf, stiffness=0.0, damping=0.0):
    number = 0.0 if callable(value) else value
    return {"role": role, "value": number, "ahead": number, "limit": limit, "stiffness": stiffness, "damping": damping}


class NoNumber(ValueError):
    """A user's function gave something else than a finite number."""


def finite_answer(function: Any, *arguments: float) -> float:
    """What a user's function gives, checked."""
    answer: Any = function(*arguments)
    numeric = isinstance(answer, (numbers.Real, np.ndarray))
    if not numeric or np.ndim(answer) != 0 or not math.isfinite(answer):
        given = ", ".join(f"{a:g}" for a in arguments)
        raise NoNumber(f"must give a finite number, but at ({given}) it gives {answer!r}")
    return float(answer)
