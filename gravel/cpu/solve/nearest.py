"""The nearest point between walls that yield, in six dimensions: of all z, the one with the least

    1/2 |z|^2 + sum 1/(2 give[k]) max(lacking[k] - rows[k] . z, 0)^2

Wall k asks for rows[k] . z >= lacking[k] and pushes with the load (lacking[k] - rows[k] . z) / give[k] where that is positive: it yields by
``give`` times its load. As all ``give`` go to zero, z becomes the nearest point to the origin of what the walls leave. There is always one
solution, also where walls contradict each other.

The function is convex and piecewise quadratic, so Newton's method (6 x 6, whatever the number of walls) ends at the exact minimum when it
has found the walls that push; a line search keeps it going down.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from gravel.host.threads import ALLOCATING, INNER

DIRECTIONS = 6
ROUNDS = 50  # of Newton's method; a handful is usual
HALVINGS = 10  # of a step that leads too far


class Room(NamedTuple):
    """Scratch, and the point that was found."""

    point: np.ndarray  # (6,) z
    step: np.ndarray  # (6,)
    matrix: np.ndarray  # (6, 6)


@njit(**ALLOCATING)
def make_room():
    return Room(np.zeros(DIRECTIONS), np.zeros(DIRECTIONS), np.zeros((DIRECTIONS, DIRECTIONS)))


@njit(**INNER)
def dot(a, b):
    total = 0.0
    for k in range(DIRECTIONS):
        total += a[k] * b[k]
    return total


@njit(**INNER)
def solve_in_place(matrix, x):
    """x := matrix^-1 x, by L L^T; the matrix is positive definite."""
    for i in range(DIRECTIONS):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = math.sqrt(total) if i == j else total / matrix[j, j]
    for i in range(DIRECTIONS):
        for k in range(i):
            x[i] -= matrix[i, k] * x[k]
        x[i] /= matrix[i, i]
    for i in range(DIRECTIONS - 1, -1, -1):
        for k in range(i + 1, DIRECTIONS):
            x[i] -= matrix[k, i] * x[k]
        x[i] /= matrix[i, i]


@njit(**INNER)
def slope_along(count, rows, lacking, give, point, step, length):
    """Derivative of the function at point + length step, along the step."""
    slope = dot(point, step) + length * dot(step, step)
    for k in range(count):
        along = dot(rows[k], step)
        short = lacking[k] - dot(rows[k], point) - length * along
        if short > 0.0:
            slope -= short / give[k] * along
    return slope


@njit(**INNER)
def find_loads(count, rows, lacking, give, point, load):
    """``load`` := how hard the walls push at a point; returns how many push, or have stopped to, since the last call."""
    changed = 0
    for k in range(count):
        before = load[k] > 0.0
        load[k] = max(lacking[k] - dot(rows[k], point), 0.0) / give[k]
        changed += (load[k] > 0.0) != before
    return changed


@njit(**INNER)
def find_step(count, rows, give, load, room):
    """``room.step`` := the way to the least of the quadratic function that holds where the point is."""
    step, matrix = room.step, room.matrix
    for i in range(DIRECTIONS):
        step[i] = -room.point[i]
        for j in range(i + 1):
            matrix[i, j] = 1.0 if i == j else 0.0
    for k in range(count):
        if load[k] > 0.0:
            stiffness = 1.0 / give[k]
            for i in range(DIRECTIONS):
                step[i] += load[k] * rows[k, i]
                push = stiffness * rows[k, i]
                for j in range(i + 1):
                    matrix[i, j] += push * rows[k, j]
    solve_in_place(matrix, step)


@njit(**INNER)
def length_of_step(count, rows, lacking, give, room):
    """1, or the share of the step up to which the function still falls: its slope along the step only grows."""
    if slope_along(count, rows, lacking, give, room.point, room.step, 1.0) <= 0.0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if slope_along(count, rows, lacking, give, room.point, room.step, middle) > 0.0:
            high = middle
        else:
            low = middle
    return low if low > 0.0 else high


@njit(nogil=True, error_model="numpy", cache=True)
def find_nearest(count, rows, lacking, give, load, room):
    """``room.point`` := the point, ``load`` (count,) := how hard each wall k < count pushes."""
    room.point[:] = 0.0
    for k in range(count):
        load[k] = 0.0
    length = 1.0
    for _ in range(ROUNDS):
        changed = find_loads(count, rows, lacking, give, room.point, load)
        if changed == 0 and length == 1.0:  # the last step led to the least of this very function
            return
        find_step(count, rows, give, load, room)
        length = length_of_step(count, rows, lacking, give, room)
        for i in range(DIRECTIONS):
            room.point[i] += length * room.step[i]
    find_loads(count, rows, lacking, give, room.point, load)
