"""What moves as it is told: bodies that follow a motion, and surfaces that move while their bodies stay.

In: motions and surface velocities by body, and the moments of a step. Out: poses and velocities of the driven bodies in that step
(``engine.Driven``), and the surface velocities, uploaded when they have changed.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gravel.engine import Driven, Engine
from gravel.model.motion import Motion, SurfaceVelocity, pose_at, surface_at, surface_of
from gravel.rotations import conjugate, multiply, to_rotation_vector
from gravel.running.step_times import StepTimes
from gravel.state import IMMOVABLE, STATUS

Start = tuple[np.ndarray, np.ndarray, float]  # position, quaternion and time at which a motion begins


class Prescribed:
    """Motions and moving surfaces of a simulation, by body."""

    def __init__(self, engine: Engine, motions: Mapping[int, Motion], starts: Mapping[int, Start], surfaces: Mapping[int, Any]):
        self.engine = engine
        self.motions, self.starts, self.surfaces = dict(motions), dict(starts), dict(surfaces)
        self._uploaded: dict[int, Any] | None = None  # surfaces as the engine was told last

    # --- in a step
    def upload(self, times: StepTimes) -> Driven | None:
        """The engine is told how surfaces move in a step, if that has changed; returns how bodies do, None if there are none."""
        if self._uploaded != self.surfaces or any(map(callable, self.surfaces.values())):
            values = [surface_at(surface, times.look, body) for body, surface in self.surfaces.items()]
            self.engine.set_surfaces(np.array(list(self.surfaces), np.int64), np.array(values, float).reshape(-1, 6))
            self._uploaded = dict(self.surfaces)
        return self._driven(times) if self.motions else None

    def _driven(self, times):
        """Bodies with a motion get the velocity that takes them from where the step looks to where the next one will."""
        ids, dt = list(self.motions), times.dt
        ahead = self._poses(ids, times.look + dt)
        if times.midpoint:
            position, quaternion = map(np.array, zip(*self._poses(ids, times.look)))
            end = self._poses(ids, times.end)
        else:
            position, quaternion = self.engine.pick("position", ids), self.engine.pick("quaternion", ids)
            end = ahead
        turns = to_rotation_vector(multiply([turned for _, turned in ahead], conjugate(quaternion)))
        velocity = np.hstack([(np.array([place for place, _ in ahead]) - position) / dt, turns / dt])
        return Driven(np.array(ids), position, quaternion, velocity, *map(np.array, zip(*end)))

    def _poses(self, ids, time):
        return [self._pose(body, time) for body in ids]

    def _pose(self, body, time):
        position, quaternion, since = self.starts[body]
        pose = pose_at(self.motions[body], time - since, position, quaternion, f"the motion of body {body}")
        return np.asarray(pose[0], float), np.asarray(pose[1], float)

    # --- between steps
    def set_motion(self, body: int, motion: Motion | None, time: float) -> None:
        """A body follows another motion from where it is at a time; None: it stays there."""
        if self.engine.pick("tag", [body])[0, STATUS] != IMMOVABLE:
            raise ValueError(f"body {body} must be fixed or have a motion to get another, but forces move it")
        if motion is not None and not callable(motion) and not hasattr(motion, "pose"):
            raise TypeError(f"motion must be a function of time or a ready motion, not {motion!r}")
        if motion is None:
            self.motions.pop(body, None)
            return
        position, quaternion = self.engine.pick("position", [body])[0], self.engine.pick("quaternion", [body])[0]
        self.motions[body], self.starts[body] = motion, (np.array(position), np.array(quaternion), time)

    def set_surface(self, body: int, surface_velocity: SurfaceVelocity | None) -> None:
        """A surface moves so from now on; None: with its body."""
        if surface_velocity is None:
            self.surfaces.pop(body, None)
        else:
            self.surfaces[body] = surface_of(surface_velocity)

    def add(self, block: Mapping[str, Any], motion: Motion | None, surface: Any, time: float) -> None:
        """New bodies that come at a time (their fields), with a motion and a moving surface, each if there is one."""
        ids = np.asarray(block["id"]).tolist()
        if motion is not None:
            for body, position, quaternion in zip(ids, block["position"], block["quaternion"]):
                self.motions[body], self.starts[body] = motion, (np.array(position), np.array(quaternion), time)
        if surface is not None:
            self.surfaces.update((body, surface) for body in ids)

    def forget(self, ids: np.ndarray) -> None:
        """Bodies that go."""
        for body in ids.tolist() if self.motions or self.surfaces else ():
            self.motions.pop(body, None)
            self.surfaces.pop(body, None)
