"""What grains do to a machine: the force, torque and power of the contacts of one body, such as a drum, a blade or a belt."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.measures.snapshot import Source, snapshot_of
from gravel.measures.units import measured_in


class Touched(NamedTuple):
    """A body and the forces that contacts exert on it."""

    position: np.ndarray  # (3,) m
    velocity: np.ndarray  # (3,) m/s
    angular_velocity: np.ndarray  # (3,) rad/s
    arms: np.ndarray  # (contacts, 3) m, from its position to the points
    forces: np.ndarray  # (contacts, 3) N, on it


@measured_in("N", (3,))
def contact_force(source: Source, body: str | int) -> np.ndarray:
    """(3,) N: the sum of the forces f_c that contacts exert on a ``body`` (its name or id), means over the last step: impulse over dt."""
    return _touched(source, body).forces.sum(axis=0)


@measured_in("N m", (3,))
def contact_torque(source: Source, body: str | int, point: ArrayLike | None = None) -> np.ndarray:
    r"""(3,) N m: the torque of the contacts on a body about a ``point`` m of the world (None: its centre), $\sum (x_c - p) \times f_c$. A
    drive that turns the body steadily about an axis must hold minus the component along it."""
    touched = _touched(source, body)
    shift = np.zeros(3) if point is None else touched.position - checks.array("point", point, (3,))
    return np.cross(touched.arms + shift, touched.forces).sum(axis=0)


@measured_in("W")
def contact_power(source: Source, body: str | int) -> float:
    r"""W that a body gives to what touches it, $P = -\sum f_c \cdot (v + \omega \times (x_c - x))$: of a drum or a blade that moves
    steadily, what its drive consumes. A surface that moves along itself (``surface_velocity``) is not a motion of the body; its power is
    not in this."""
    touched = _touched(source, body)
    return -float(np.sum(touched.forces * (touched.velocity + np.cross(touched.angular_velocity, touched.arms))))


def body_of(source: Any, body: Any) -> int:
    """The id of a body, given by its name or id, that is there; refused in a frame if it is a plane, which has no row there."""
    ids = snapshot_of(source).ids_of("body", body)
    if len(ids) != 1:
        raise ValueError(f"body must be one body, but {body!r:.80} are {len(ids)}")
    body = checks.count("body", int(ids[0]))
    if hasattr(source, "views"):
        if body >= source.count or not source.alive[body]:
            raise ValueError(f"body must be the name or id of a body that is there, not {body}")
    elif not (source.ids == body).any():
        raise ValueError(f"body must be in the frame, and no plane, not {body}")
    return body


def _touched(source, body):
    body = body_of(source, body)
    snapshot = snapshot_of(source)
    if hasattr(source, "views"):
        state = [np.array(values[body], float) for values in (source.positions, source.velocities, source.angular_velocities)]
    else:
        row = np.flatnonzero(source.ids == body)
        state = [np.array(values[row[0]], float) for values in (source.positions, source.velocities, source.angular_velocities)]
    table = snapshot.contacts
    rows = np.flatnonzero((table.body_a == body) | (table.body_b == body))
    sign = np.where(table.body_b[rows] == body, 1.0, -1.0)[:, None]
    found = state[0] - snapshot.contact_lag * state[1]  # where it was when contacts were found
    arms, forces = snapshot.arms(table.point[rows] - found), sign * table.impulse[rows] / snapshot.dt
    return Touched(state[0], state[1], state[2], arms, forces)
