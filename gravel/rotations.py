"""Quaternions (w, x, y, z) in NumPy, for scenes and motions; the engines have their own compiled forms."""

import numpy as np


def multiply(a, b):
    """The rotation b followed by a."""
    aw, ax, ay, az = np.moveaxis(np.asarray(a, float), -1, 0)
    bw, bx, by, bz = np.moveaxis(np.asarray(b, float), -1, 0)
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def from_rotation_vector(vector):
    """exp: a rotation by |vector| rad about the vector."""
    vector = np.asarray(vector, float)
    angle = np.linalg.norm(vector, axis=-1, keepdims=True)
    scale = 0.5 * np.sinc(angle / (2 * np.pi))
    return np.concatenate([np.cos(angle / 2), scale * vector], axis=-1)


def to_rotation_vector(quaternion):
    """log: the shortest rotation vector of a quaternion."""
    quaternion = np.asarray(quaternion, float)
    quaternion = np.where(quaternion[..., :1] < 0, -quaternion, quaternion)
    length = np.linalg.norm(quaternion[..., 1:], axis=-1, keepdims=True)
    angle = 2 * np.arctan2(length, quaternion[..., :1])
    return quaternion[..., 1:] * np.where(length > 1e-12, angle / np.maximum(length, 1e-300), 2.0)


def conjugate(quaternion):
    return np.asarray(quaternion, float) * np.array([1.0, -1.0, -1.0, -1.0])


def rotate(quaternion, vector):
    """The vector (..., 3) turned by the quaternion."""
    vector = np.asarray(vector, float)
    axis = np.asarray(quaternion, float)[..., 1:]
    twice = 2 * np.cross(axis, vector)
    return vector + np.asarray(quaternion, float)[..., :1] * twice + np.cross(axis, twice)


def to_matrix(quaternion):
    """(3, 3) rotation matrix; its columns are the turned axes."""
    return np.stack([rotate(quaternion, axis) for axis in np.eye(3)], axis=-1)


def between(start, end):
    """The shortest rotation that turns direction ``start`` into direction ``end``."""
    start, end = np.asarray(start, float), np.asarray(end, float)
    start, end = start / np.linalg.norm(start), end / np.linalg.norm(end)
    cosine = float(start @ end)
    if cosine < -1 + 1e-12:
        axis = np.cross(start, np.eye(3)[np.argmin(np.abs(start))])
        return np.concatenate([[0.0], axis / np.linalg.norm(axis)])
    quaternion = np.concatenate([[1 + cosine], np.cross(start, end)])
    return quaternion / np.linalg.norm(quaternion)
