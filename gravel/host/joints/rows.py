"""Joint rows of a cone problem: scalar equations J v + b + c p = 0 between bodies, with impulses p within bounds.

``JointRows`` is what joints become (paper 000, eqs. 13 and 18): one row per scalar constraint. A row has an entry for each body
it acts on (two for most, up to four for a gear): the part of J on that body's velocity and turn, world frame. Bounds of
+-infinity make a bilateral constraint; others make limits, motors and friction. A compliance c makes a spring.

The kernels here treat joint rows like contact rows, as the papers do. ``direct`` solves all of them at once.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from gravel.host.threads import INNER


class JointRows(NamedTuple):
    start: np.ndarray  # (m + 1,) entries of each row
    member: np.ndarray  # (e,) index of the entry's body among the members
    body: np.ndarray  # (e,) and its velocity row
    jacobian: np.ndarray  # (e, 6)
    delta: np.ndarray  # (e, 6) M^-1 J^T: what a unit impulse does to the velocity
    eta: np.ndarray  # (m,) 1 / (J M^-1 J^T + c)
    bias: np.ndarray  # (m,)
    lower: np.ndarray  # (m,)
    upper: np.ndarray  # (m,)
    compliance: np.ndarray  # (m,)
    softness: np.ndarray  # (m,) how much of the compliance only keeps rigid rows solvable
    least: np.ndarray  # (m,) the softness that a load may leave


def make_rows(counts, member):
    """Rows with so many entries each, for the given members, to be filled."""
    m, e = len(counts), len(member)
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return JointRows(
        start,
        np.array(member, np.int64),
        np.zeros(e, np.int64),
        np.zeros((e, 6)),
        np.zeros((e, 6)),
        np.ones(m),
        *(np.zeros(m) for _ in range(6)),
    )


NO_ROWS = make_rows([], [])


@njit(**INNER)
def row_velocity(rows, k, p, velocity):
    """J v + b + c p"""
    u = rows.bias[k] + rows.compliance[k] * p
    for e in range(rows.start[k], rows.start[k + 1]):
        i = 8 * rows.body[e]
        for c in range(3):
            u += rows.jacobian[e, c] * velocity[i + c] + rows.jacobian[e, 3 + c] * velocity[i + 4 + c]
    return u


@njit(**INNER)
def push(rows, k, p, velocity):
    for e in range(rows.start[k], rows.start[k + 1]):
        i = 8 * rows.body[e]
        for c in range(3):
            velocity[i + c] += rows.delta[e, c] * p
            velocity[i + 4 + c] += rows.delta[e, 3 + c] * p


@njit(nogil=True, error_model="numpy", cache=True)
def sweep_joints(rows, impulse, velocity):
    """One Gauss-Seidel pass, in the order of the rows."""
    for k in range(rows.eta.size):
        u = row_velocity(rows, k, impulse[k], velocity)
        p = min(max(impulse[k] - rows.eta[k] * u, rows.lower[k]), rows.upper[k])
        push(rows, k, p - impulse[k], velocity)
        impulse[k] = p


@njit(nogil=True, error_model="numpy", cache=True)
def apply_joints(rows, values, velocity):
    """velocity += M^-1 J^T values"""
    for k in range(rows.eta.size):
        push(rows, k, values[k], velocity)


@njit(nogil=True, error_model="numpy", cache=True)
def joint_gradient(rows, impulse, velocity, values):
    """values := J v + b + c p"""
    for k in range(rows.eta.size):
        values[k] = row_velocity(rows, k, impulse[k], velocity)


@njit(nogil=True, error_model="numpy", cache=True)
def joint_residual(rows, impulse, velocity):
    """(largest, sum of squares) of |p - P(p - eta u)| / eta over the rows."""
    worst, squares = 0.0, 0.0
    for k in range(rows.eta.size):
        p = impulse[k]
        u = row_velocity(rows, k, p, velocity)
        error = (min(max(p - rows.eta[k] * u, rows.lower[k]), rows.upper[k]) - p) / rows.eta[k]
        worst, squares = max(worst, abs(error)), squares + error * error
    return worst, squares
