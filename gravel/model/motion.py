"""Prescribed motion: a body that follows a function of time, whatever touches it.

A motion is a function ``motion(time)`` that returns the position (3,), or a pair (position, quaternion). The ones below
are ready to use; they start from the pose that the body has in the scene.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.printing import formatting
from gravel.rotations import from_rotation_vector, multiply


class StartsFromPose(Protocol):
    """A motion that starts from the pose that its body has in the scene."""

    def pose(self, time: float, position: np.ndarray, quaternion: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position (3,) m and quaternion (4,) at ``time`` s, from those at the start."""


Motion = Callable[[float], Any] | StartsFromPose  # a function returns a position (3,) m, or (position, quaternion)
SurfaceVelocity = ArrayLike | Callable[[float], Any]  # (3,) m/s, a pair of (3,) m/s and (3,) rad/s, or a function that returns one


@dataclass(frozen=True, repr=False)
class ConstantVelocity:
    """Straight motion and rotation at constant ``velocity`` (3,) m/s and ``angular_velocity`` (3,) rad/s, world frame."""

    velocity: Any = (0.0, 0.0, 0.0)
    angular_velocity: Any = (0.0, 0.0, 0.0)

    def __post_init__(self):
        for name in ("velocity", "angular_velocity"):
            object.__setattr__(self, name, checks.array(f"ConstantVelocity {name}", getattr(self, name), (3,)))

    def __repr__(self) -> str:
        return formatting.of_fields(self)

    def pose(self, time: float, position: np.ndarray, quaternion: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position (3,) m and quaternion (4,) at ``time`` s, from those at the start."""
        turn = from_rotation_vector(self.angular_velocity * time)
        return position + self.velocity * time, multiply(turn, quaternion)

    def after(self, time: float) -> "ConstantVelocity":
        """The same motion, started where it has led after a time."""
        return self


@dataclass(frozen=True, repr=False)
class Oscillation:
    """x(t) = x0 + amplitude (sin(2 pi f t + phase) - sin(phase)); ``amplitude`` (3,) m, ``frequency`` f in Hz, ``phase`` in rad."""

    amplitude: Any
    frequency: float
    phase: float = 0.0

    def __post_init__(self):
        object.__setattr__(self, "amplitude", checks.array("Oscillation amplitude", self.amplitude, (3,)))
        checks.number("Oscillation frequency", self.frequency, above=0.0)
        checks.number("Oscillation phase", self.phase)

    def __repr__(self) -> str:
        return formatting.of_fields(self)

    def pose(self, time: float, position: np.ndarray, quaternion: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position (3,) m and quaternion (4,) at ``time`` s, from those at the start."""
        swing = np.sin(2 * np.pi * self.frequency * time + self.phase) - np.sin(self.phase)
        return position + self.amplitude * swing, quaternion

    def after(self, time: float) -> "Oscillation":
        """The same motion, started where it has led after a time."""
        return Oscillation(self.amplitude, self.frequency, self.phase + 2 * np.pi * self.frequency * time)


@dataclass(frozen=True)
class TimeShifted:
    """A function of time that is asked for what it says ``by`` s later: the motion or motor of a run that goes on in another."""

    function: Callable[[float], Any]
    by: float

    def __call__(self, time):
        return self.function(time + self.by)


@dataclass(frozen=True)
class LaterPose:
    """The same for any motion that starts from a pose: it goes on from the one that it had at its own start."""

    motion: StartsFromPose
    by: float
    position: np.ndarray
    quaternion: np.ndarray

    def pose(self, time, position, quaternion):
        return self.motion.pose(time + self.by, self.position, self.quaternion)

    def after(self, time):
        """The same motion, started where it has led after a time."""
        return LaterPose(self.motion, self.by + time, self.position, self.quaternion)


def continued(motion, time, position, quaternion):
    """The motion that goes on, from a new start, as this one does from ``time`` s after its start at a pose."""
    if hasattr(motion, "after"):
        return motion.after(time)
    if hasattr(motion, "pose"):
        return LaterPose(motion, time, position, quaternion)
    return TimeShifted(motion, time)


def surface_of(value, name="surface_velocity"):
    """A surface's velocity as six numbers, linear (m/s) and angular (rad/s) in the body's frame, or the function of time that it is."""
    if callable(value):
        return value
    try:
        parts = [np.ndim(part) for part in value]
    except TypeError:
        parts = []
    if parts == [1, 1]:
        words = zip(("linear", "angular"), value)
        return tuple(x for word, part in words for x in checks.array(f"{word} part of {name}", part, (3,)).tolist())
    if parts != [0, 0, 0]:
        raise TypeError(
            f"{name} must be a vector (3,) in m/s, a pair of vectors, in m/s and rad/s, or a function of time that returns one of these, "
            f"not {value!r:.80}"
        )
    return (*checks.array(name, value, (3,)).tolist(), 0.0, 0.0, 0.0)


def surface_at(surface, time, body):
    """Velocity of a body's surface at a time, checked."""
    if not callable(surface):
        return surface
    name = f"surface_velocity of body {body} at t = {time:g} s"
    value = surface_of(surface(time), name)
    if callable(value):
        raise TypeError(f"{name} must be numbers, not another function")
    return value


def pose_at(motion, time, position, quaternion, name="the motion"):
    """Pose that a motion asks for at a time, checked; ``position`` and ``quaternion`` are the body's pose in the scene. ``name`` is
    what a refusal calls it."""
    if hasattr(motion, "pose"):
        return motion.pose(time, position, quaternion)
    answer = motion(time)
    if isinstance(answer, tuple) and len(answer) == 2 and np.ndim(answer[0]) == 1:
        turned = checks.array(f"quaternion of {name} at t = {time:g} s", answer[1], (4,))
        norm = np.linalg.norm(turned)
        if norm < 1e-12:
            raise ValueError(f"quaternion of {name} at t = {time:g} s must not be zero")
        answer, quaternion = answer[0], turned / norm
    return checks.array(f"position of {name} at t = {time:g} s", answer, (3,)), quaternion
