"""The volume that a ball and a box along the axes share, in closed form: faces, edges and corners may all cut the ball.

With h_a(x) = 1/2 for x > a, else -1/2, the box from a to a' is h_a - h_a' along each axis, so that its share of the ball is a sum over
its eight corners, with signs, of H(a, b, c), the integral of h_a h_b h_c over the ball. H is odd in a, b and c. For a, b, c >= 0 it
follows from caps (x > a), wedges (x > a, y > b) and corners (x > a, y > b, z > c); the corner is the integral over z of the area
that a disc of radius sqrt(1 - z^2) has beyond x > a and y > b, which is elementary. Only roots and arctangents of positive numbers
occur, so that rounding is all there is of errors: some 1e-15 of the ball."""

import numpy as np


def ball_in_box(centres: np.ndarray, radii: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """(n,) m3, of balls at ``centres`` (n, 3) m with ``radii`` (n,) m, in the box from ``low`` to ``high`` (3,)."""
    near, far = ((np.clip((face - centres) / radii[:, None], -1.0, 1.0)).T for face in (low, high))
    total = np.zeros(len(radii))
    for corner in np.ndindex(2, 2, 2):
        a, b, c = (far[axis] if end else near[axis] for axis, end in enumerate(corner))
        total += (-1) ** sum(corner) * _odd(a, b, c)
    return np.where((near < far).all(axis=0), np.maximum(total, 0.0), 0.0) * radii**3


def _odd(a, b, c):
    """H(a, b, c) of the unit ball."""
    sign = np.sign(a) * np.sign(b) * np.sign(c)
    a, b, c = np.abs(a), np.abs(b), np.abs(c)
    wedges = 2 * (_corner(a, b, 0.0) + _corner(a, c, 0.0) + _corner(b, c, 0.0))
    caps = sum(np.pi / 3 * (1 - x) ** 2 * (2 + x) for x in (a, b, c))
    return sign * (_corner(a, b, c) - wedges / 2 + caps / 4 - np.pi / 6)


def _corner(a, b, c):
    """Volume of the unit ball beyond x > a, y > b, z > c, all of them >= 0."""
    top = np.sqrt(np.maximum(1 - a * a - b * b, 0.0))
    return np.where(top > c, _below(a, b, top) - _below(a, b, np.minimum(c, top)), 0.0)


def _below(a, b, z):
    """Integral of the area of the disc at z beyond x > a, y > b."""
    return 0.5 * (_part(a, z) + _part(b, z) - 0.5 * np.pi * (z - z**3 / 3)) + a * b * z


def _part(a, z):
    """Integral over z of rho^2 arccos(a / rho) - a sqrt(rho^2 - a^2), rho^2 = 1 - z^2."""
    square = 1 - a * a
    root = np.sqrt(np.maximum(square - z * z, 0.0))
    turn = np.arctan2(z, root)
    sectors = (z - z**3 / 3) * np.arctan2(root, a) + a / 6 * (square * turn - z * root) - 2 / 3 * a * turn
    return sectors + 2 / 3 * np.arctan2(a * z, root) - a / 2 * (z * root + square * turn)
