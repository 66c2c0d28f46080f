"""The nearest point of a polyhedron in six dimensions: of all z with rows[k] . z >= lacking[k], the one that is closest to the origin.

Goldfarb and Idnani's dual method (1983): one violated constraint after the other is met; those that have become superfluous on the
way are let go, and since the active ones are independent there are at most six. The active rows are kept as Q R, so that nothing is
squared.

Constraints may contradict each other: a ball between two plates that both push it out. Then some are left out. ``firm`` ones are asked
first, in the order of how much they lack; then the others likewise; and one that cannot be met together with those that came before it
is left out, as if it were not there. So the method always ends at the nearest point of a polyhedron that is not empty, and multipliers
stay those of loads that can be borne.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from gravel.cpu.threads import INNER

DIRECTIONS = 6
DEPENDENT = 1e-8  # square of the sine of the angle between a row and the active ones below which it depends on them
MET = 1e-10  # of what the constraints lack at most: what a constraint may still lack
ROUNDS = 10  # times the number of constraints: then rounding leads in circles, and the point is good enough
WAITING, TAKEN, ACTIVE, LEFT_OUT = range(4)  # what has become of a constraint


class Face(NamedTuple):
    """The active constraints and the point that they hold."""

    active: np.ndarray  # (6,) i8, which ones
    load: np.ndarray  # (6,) their multipliers, never negative
    point: np.ndarray  # (6,) z
    count: np.ndarray  # (1,) i8, how many
    q: np.ndarray  # (6, 6) orthonormal rows: those of the active ones, one after the other
    r: np.ndarray  # (6, 6) upper triangle: row of active[j] = sum_i r[i, j] q[i]


@njit(**INNER)
def empty_face():
    count = np.zeros(1, np.int64)
    return Face(np.zeros(DIRECTIONS, np.int64), np.zeros(DIRECTIONS), np.zeros(DIRECTIONS), count, np.zeros((6, 6)), np.zeros((6, 6)))


@njit(**INNER)
def split(row, count, q, along, rest):
    """row = sum along[i] q[i] + rest, with ``rest`` across all of them; returns its square. Twice is enough (Kahan)."""
    for k in range(DIRECTIONS):
        rest[k] = row[k]
    for i in range(count):
        along[i] = 0.0
    for _ in range(2):
        for i in range(count):
            part = 0.0
            for k in range(DIRECTIONS):
                part += q[i, k] * rest[k]
            along[i] += part
            for k in range(DIRECTIONS):
                rest[k] -= part * q[i, k]
    square = 0.0
    for k in range(DIRECTIONS):
        square += rest[k] * rest[k]
    return square


@njit(**INNER)
def append(k, load, along, rest, square, face):
    """Constraint k becomes active; ``along``, ``rest``, ``square``: of its row."""
    n, length = face.count[0], math.sqrt(square)
    face.active[n], face.load[n] = k, load
    for i in range(n):
        face.r[i, n] = along[i]
    face.r[n, n] = length
    for i in range(DIRECTIONS):
        face.q[n, i] = rest[i] / length
    face.count[0] = n + 1


@njit(**INNER)
def rebuild(rows, face, along, rest):
    """Q R of the active rows anew."""
    n = face.count[0]
    face.count[0] = 0
    for j in range(n):
        square = split(rows[face.active[j]], j, face.q, along, rest)
        append(face.active[j], face.load[j], along, rest, square, face)


@njit(**INNER)
def let_go(j, rows, face, along, rest):
    """The j-th active constraint holds nothing any more."""
    for i in range(j, face.count[0] - 1):
        face.active[i], face.load[i] = face.active[i + 1], face.load[i + 1]
    face.count[0] -= 1
    rebuild(rows, face, along, rest)


@njit(**INNER)
def lacks(k, rows, lacking, point):
    total = lacking[k]
    for i in range(DIRECTIONS):
        total -= rows[k, i] * point[i]
    return total


@njit(**INNER)
def meet(k, rows, lacking, state, face, along, rest, relief):
    """Move to the nearest point that meets constraint k, too; False where the active ones do not allow it."""
    load = 0.0
    while True:
        n = face.count[0]
        square = split(rows[k], n, face.q, along, rest)
        for i in range(n - 1, -1, -1):  # how much load k takes from each active one
            relief[i] = along[i]
            for j in range(i + 1, n):
                relief[i] -= face.r[i, j] * relief[j]
            relief[i] /= face.r[i, i]
        free, first = math.inf, -1
        for i in range(n):
            if relief[i] > 1e-12 and face.load[i] / relief[i] < free:
                free, first = face.load[i] / relief[i], i
        full = math.inf
        if square > DEPENDENT and n < DIRECTIONS:
            full = max(lacks(k, rows, lacking, face.point), 0.0) / square
        step = min(free, full)
        if step == math.inf:
            return False
        for i in range(n):
            face.load[i] = max(face.load[i] - step * relief[i], 0.0)
        load += step
        if full < math.inf:
            for i in range(DIRECTIONS):
                face.point[i] += step * rest[i]
        if full <= free:
            append(k, load, along, rest, square, face)
            state[k] = ACTIVE
            return True
        state[face.active[first]] = TAKEN
        let_go(first, rows, face, along, rest)


@njit(**INNER)
def most_lacking(of, firm_only, count, rows, lacking, firm, state, point, enough):
    """The constraint of a state that lacks most, and more than ``enough``; -1: none. Of equals the first."""
    worst, found = enough, -1
    for k in range(count):
        if state[k] == of and (firm[k] or not firm_only):
            missing = lacks(k, rows, lacking, point)
            if missing > worst:
                worst, found = missing, k
    return found


@njit(**INNER)
def copy_face(face, to, state):
    """``to`` := the face, and what is active in it says so in ``state``. (Its Q R is not copied.)"""
    to.count[0] = face.count[0]
    for i in range(DIRECTIONS):
        to.active[i], to.load[i], to.point[i] = face.active[i], face.load[i], face.point[i]
    for i in range(face.count[0]):
        state[face.active[i]] = ACTIVE


@njit(nogil=True, error_model="numpy", cache=True)
def find_nearest(count, rows, lacking, firm, state, face, before, along, rest, relief):
    """``face`` := the nearest point to the origin with rows[k] . z >= lacking[k], k < count, and the constraints that hold it there;
    ``state`` (count,) := what has become of each. Rows have length one. ``before``, ``along``, ``rest``, ``relief``: scratch."""
    face.count[0] = 0
    face.point[:] = 0.0
    largest = 0.0
    for k in range(count):
        state[k] = WAITING
        largest = max(largest, lacking[k])
    enough, tried, only_firm = MET * largest, -1, True
    for _ in range(ROUNDS * (count + DIRECTIONS)):
        k = most_lacking(TAKEN, False, count, rows, lacking, firm, state, face.point, enough)
        if k < 0:  # all that were taken are met: what was tried last can stay, and the next one comes
            k = tried = most_lacking(WAITING, only_firm, count, rows, lacking, firm, state, face.point, enough)
            if k < 0 and only_firm:
                only_firm = False
                for i in range(count):  # those that lack nothing now must hold later on, too
                    state[i] = TAKEN if state[i] == WAITING and firm[i] else state[i]
                continue
            if k < 0:
                return
            copy_face(face, before, state)
        if not meet(k, rows, lacking, state, face, along, rest, relief):
            for i in range(face.count[0]):
                state[face.active[i]] = TAKEN
            copy_face(before, face, state)
            rebuild(rows, face, along, rest)
            state[tried if tried >= 0 else k] = LEFT_OUT
            tried = -1
