"""Small functions of vectors and rotations."""

from __future__ import annotations

from gravel.formulas.kinds import Matrix


def vector(x: float, y: float, z: float):
    """Three numbers as one, v[i]. (A tuple: devices that have none bring a type of theirs.)"""
    return x, y, z


def quaternion_of(w: float, x: float, y: float, z: float):
    """Four numbers as one, q[i]; likewise."""
    return w, x, y, z


def cross(ax: float, ay: float, az: float, bx: float, by: float, bz: float):
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


def rotate(m: Matrix, x: float, y: float, z: float):
    """m v"""
    return (
        m[0][0] * x + m[0][1] * y + m[0][2] * z,
        m[1][0] * x + m[1][1] * y + m[1][2] * z,
        m[2][0] * x + m[2][1] * y + m[2][2] * z,
    )


def rotate_back(m: Matrix, x: float, y: float, z: float):
    """m^T v"""
    return (
        m[0][0] * x + m[1][0] * y + m[2][0] * z,
        m[0][1] * x + m[1][1] * y + m[2][1] * z,
        m[0][2] * x + m[1][2] * y + m[2][2] * z,
    )


def tangents(nx: float, ny: float, nz: float):
    """Two directions that complete n to a right-handed frame (Duff et al. 2017)."""
    sign = 1.0 if nz >= 0.0 else -1.0
    a = -1.0 / (sign + nz)
    b = nx * ny * a
    return 1.0 + sign * nx * nx * a, sign * b, -sign * nx, b, sign + ny * ny * a, -ny


def to_matrix(q):
    """Rotation matrix of a quaternion (w, x, y, z), row by row. (Nested tuples: devices that have none bring a twin.)"""
    w, x, y, z = q[0], q[1], q[2], q[3]
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
