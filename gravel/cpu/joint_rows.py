"""Joint rows of a cone problem: scalar equations J v + b = 0 between two bodies, with impulses within bounds.

``JointRows`` is what a joint becomes (paper 000, eqs. 13 and 18): one row per scalar constraint, J = [on v_a, on w_a, on
v_b, on w_b] in the world frame. Bounds of +-infinity make a bilateral constraint; others make limits and motors.
"""

import functools
from typing import NamedTuple

import numpy as np
from numba import njit

from gravel.cpu.threads import INNER


class JointRows(NamedTuple):
    body_a: np.ndarray  # (m,) velocity rows
    body_b: np.ndarray
    jacobian: np.ndarray  # (m, 12) real
    delta: np.ndarray  # (m, 12) real, M^-1 J^T: what a unit impulse does to the two velocity rows
    eta: np.ndarray  # (m,) real, 1 / (J M^-1 J^T)
    bias: np.ndarray  # (m,) real
    lower: np.ndarray  # (m,) real
    upper: np.ndarray  # (m,) real


@functools.cache
def no_rows(real):
    return JointRows(
        np.empty(0, np.int32),
        np.empty(0, np.int32),
        np.empty((0, 12), real),
        np.empty((0, 12), real),
        *(np.empty(0, real) for _ in range(4)),
    )


@njit(**INNER)
def row_velocity(rows, k, velocity):
    a, b = 8 * rows.body_a[k], 8 * rows.body_b[k]
    u = rows.bias[k]
    for c in range(3):
        u += rows.jacobian[k, c] * velocity[a + c] + rows.jacobian[k, 3 + c] * velocity[a + 4 + c]
        u += rows.jacobian[k, 6 + c] * velocity[b + c] + rows.jacobian[k, 9 + c] * velocity[b + 4 + c]
    return u


@njit(**INNER)
def push(rows, k, p, velocity):
    a, b = 8 * rows.body_a[k], 8 * rows.body_b[k]
    for c in range(3):
        velocity[a + c] += rows.delta[k, c] * p
        velocity[a + 4 + c] += rows.delta[k, 3 + c] * p
        velocity[b + c] += rows.delta[k, 6 + c] * p
        velocity[b + 4 + c] += rows.delta[k, 9 + c] * p


@njit(nogil=True, error_model="numpy", cache=True)
def sweep_joints(rows, impulse, velocity):
    """One Gauss-Seidel pass, in the order of the rows."""
    for k in range(rows.eta.size):
        p = min(max(impulse[k] - rows.eta[k] * row_velocity(rows, k, velocity), rows.lower[k]), rows.upper[k])
        push(rows, k, p - impulse[k], velocity)
        impulse[k] = p


@njit(nogil=True, error_model="numpy", cache=True)
def apply_joints(rows, values, velocity):
    """velocity += M^-1 J^T values"""
    for k in range(rows.eta.size):
        push(rows, k, values[k], velocity)


@njit(nogil=True, error_model="numpy", cache=True)
def joint_gradient(rows, velocity, values):
    """values := J v + b"""
    for k in range(rows.eta.size):
        values[k] = row_velocity(rows, k, velocity)
