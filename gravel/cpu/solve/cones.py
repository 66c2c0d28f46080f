"""Steps of the gradient solvers over the contacts' cones, fused into few passes over memory.

In: ``Cones`` (what a projection needs of each contact) and vectors laid out like the values of ``gravel.cpu.solve.blocks``,
[block][row][lane]: three rows of impulse and, with rolling friction, three of torque impulse. Behind the blocks follow
the impulses of the joint rows, one number each.

The metric is that of the steps eta: |x|^2 = sum x^2 / eta. Cones do not change when a contact is scaled as a whole, so the
projection in this metric is the ordinary one, contact by contact. Sums run over chunks of fixed size, in double precision.
"""

import functools
import math
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.cpu.solve.blocks import L1, L3, WIDTH, dot, minus, plus, put, three, times, u64
from gravel.formulas import cones, contact_laws
from gravel.host.formulas import LANE_FORMS, SAFE_MATH
from gravel.host.threads import ALLOCATING, INNER, Kernel

_cones, sliding_speed = LANE_FORMS.of(cones), LANE_FORMS.of(contact_laws).sliding_speed
project, project_torque = _cones.project, _cones.project_torque
CHUNK = 64  # blocks


class Cones(NamedTuple):
    normal: np.ndarray  # (blocks, 3, WIDTH)
    friction: np.ndarray  # (blocks, WIDTH)
    cohesion: np.ndarray  # (blocks, WIDTH)
    eta: np.ndarray  # (blocks, WIDTH)
    rolling: np.ndarray  # (blocks, 2, WIDTH) arms, or empty
    twist_eta: np.ndarray  # (blocks, WIDTH) step of the torques, or empty
    joint_eta: np.ndarray  # (rows,)
    joint_lower: np.ndarray  # (rows,)
    joint_upper: np.ndarray  # (rows,)


@njit(fastmath=SAFE_MATH, **ALLOCATING)
def step_chunk(chunk, cones, y, g, de_saxce, step, relaxation, x, sums):
    """Lanes side by side, without branches, so that the loop over them is vectorised; sums in double precision."""
    blocks, rolling = cones.friction.shape[0], cones.rolling.size > 0
    rows = u64(6 if rolling else 3)
    normal, friction = cones.normal.reshape(-1), cones.friction.reshape(-1)
    cohesion, etas = cones.cohesion.reshape(-1), cones.eta.reshape(-1)
    terms, arms, twists = de_saxce.reshape(-1), cones.rolling.reshape(-1), cones.twist_eta.reshape(-1)
    real = y.dtype.type
    zero, step, relaxation = real(0), real(step), real(relaxation)
    square, slope = np.zeros(WIDTH), np.zeros(WIDTH)
    for block in range(u64(chunk * CHUNK), u64(min((chunk + 1) * CHUNK, blocks))):
        for lane in range(WIDTH):
            k = u64(lane)
            c, n, at = block * u64(WIDTH) + k, block * u64(3 * WIDTH) + k, block * rows * u64(WIDTH) + k
            normal_of, eta = three(normal, n), etas[c]
            u = plus(three(g, at), times(terms[c] if terms.size > 0 else zero, normal_of))
            before = three(y, at)
            px, py, pz, load = project(minus(before, times(step * eta, u)), normal_of, friction[c], cohesion[c])
            d = times(relaxation, minus((px, py, pz), before))
            put(x, at, plus(before, d))
            square[k] += np.float64(dot(d, d) / eta)
            slope[k] += np.float64(dot(u, d))
            if rolling:
                turn, roll = twists[c], block * u64(2 * WIDTH) + k
                w, before = three(g, at + L3), three(y, at + L3)
                where = minus(before, times(step * turn, w))
                d = times(relaxation, minus(project_torque(where, normal_of, arms[roll] * load, arms[roll + L1] * load), before))
                put(x, at + L3, plus(before, d))
                square[k] += np.float64(dot(d, d) / turn)
                slope[k] += np.float64(dot(w, d))
    sums[chunk, 0], sums[chunk, 1] = square.sum(), slope.sum()


@Kernel
def projected_step(cones, y, g, de_saxce, step, relaxation, x, sums):
    """x := relaxation P(y - step eta (g + s n)) + (1 - relaxation) y, with d = x - y: returns (|d|^2, g . d).

    ``de_saxce`` (blocks, WIDTH) holds the De Saxcé terms in force; empty in the cone model.
    """
    blocks, rows = cones.friction.shape[0], 6 if cones.rolling.size > 0 else 3
    chunks = (blocks + CHUNK - 1) // CHUNK
    for chunk in prange(chunks):
        step_chunk(np.int64(chunk), cones, y, g, de_saxce, step, relaxation, x, sums)
    square, slope = 0.0, 0.0
    for row in range(cones.joint_eta.size):
        k = blocks * rows * WIDTH + row
        p = min(max(y[k] - step * cones.joint_eta[row] * g[k], cones.joint_lower[row]), cones.joint_upper[row])
        d = relaxation * (p - y[k])
        x[k] = y[k] + d
        square += d * d / cones.joint_eta[row]
        slope += g[k] * d
    for chunk in range(chunks):
        square += sums[chunk, 0]
        slope += sums[chunk, 1]
    return square, slope


@njit(fastmath=SAFE_MATH, **ALLOCATING)
def measure_chunk(chunk, cones, x, g, coulomb, sums):
    blocks, rolling = cones.friction.shape[0], cones.rolling.size > 0
    rows = u64(6 if rolling else 3)
    normal, friction = cones.normal.reshape(-1), cones.friction.reshape(-1)
    cohesion, etas = cones.cohesion.reshape(-1), cones.eta.reshape(-1)
    arms, twists = cones.rolling.reshape(-1), cones.twist_eta.reshape(-1)
    real = x.dtype.type
    zero, coulomb = real(0), real(coulomb)
    worst, squares, number = np.zeros(WIDTH, x.dtype), np.zeros(WIDTH), np.zeros(WIDTH)
    for block in range(u64(chunk * CHUNK), u64(min((chunk + 1) * CHUNK, blocks))):
        for lane in range(WIDTH):
            k = u64(lane)
            c, n, at = block * u64(WIDTH) + k, block * u64(3 * WIDTH) + k, block * rows * u64(WIDTH) + k
            normal_of, mu, eta = three(normal, n), friction[c], etas[c]
            u, before = three(g, at), three(x, at)
            u = plus(u, times(coulomb * mu * sliding_speed(u, normal_of), normal_of))
            px, py, pz, load = project(minus(before, times(eta, u)), normal_of, mu, cohesion[c])
            d = minus((px, py, pz), before)
            error = dot(d, d) / (eta * eta)
            if rolling:
                turn, roll = twists[c], block * u64(2 * WIDTH) + k
                before = three(x, at + L3)
                where = minus(before, times(turn, three(g, at + L3)))
                d = minus(project_torque(where, normal_of, arms[roll] * load, arms[roll + L1] * load), before)
                error += dot(d, d) / (turn * eta)
            real_lane = dot(normal_of, normal_of) > zero  # the others are padding
            error = error if real_lane else zero
            worst[k] = max(worst[k], error)
            squares[k] += np.float64(error)
            number[k] += 1.0 if real_lane else 0.0
    sums[chunk, 0], sums[chunk, 1], sums[chunk, 2] = worst.max(), squares.sum(), number.sum()


@Kernel
def measure(cones, x, g, coulomb, sums):
    """The residual of x, whose gradient is g: (max in m/s, sum of squares, number) over contacts and joint rows."""
    blocks, rows = cones.friction.shape[0], 6 if cones.rolling.size > 0 else 3
    chunks = (blocks + CHUNK - 1) // CHUNK
    for chunk in prange(chunks):
        measure_chunk(np.int64(chunk), cones, x, g, coulomb, sums)
    worst, squares, number = 0.0, 0.0, 0.0
    for chunk in range(chunks):
        worst, squares, number = max(worst, sums[chunk, 0]), squares + sums[chunk, 1], number + sums[chunk, 2]
    for row in range(cones.joint_eta.size):
        k, eta = blocks * rows * WIDTH + row, cones.joint_eta[row]
        d = (min(max(x[k] - eta * g[k], cones.joint_lower[row]), cones.joint_upper[row]) - x[k]) / eta
        worst, squares, number = max(worst, d * d), squares + d * d, number + 1.0
    return math.sqrt(worst), squares, number


@njit(**INNER)
def slip_block(block, cones, g, de_saxce):
    normal, friction, rows = cones.normal, cones.friction, 6 if cones.rolling.size > 0 else 3
    for lane in range(WIDTH):
        k = block * rows * WIDTH + lane
        n = normal[block, 0, lane], normal[block, 1, lane], normal[block, 2, lane]
        de_saxce[block, lane] = friction[block, lane] * sliding_speed((g[k], g[k + WIDTH], g[k + 2 * WIDTH]), n)


@Kernel
def de_saxce_terms(cones, g, de_saxce):
    """slip := mu |u_t| of each contact, De Saxcé's terms."""
    for block in prange(cones.friction.shape[0]):
        slip_block(np.int64(block), cones, g, de_saxce)


@njit(fastmath=SAFE_MATH, **ALLOCATING)
def dot_chunk(first, last, a, b, c, d):
    lanes = np.zeros(WIDTH)
    whole = first + (last - first) // WIDTH * WIDTH
    for start in range(first, whole, WIDTH):
        for lane in range(WIDTH):
            k = u64(start) + u64(lane)
            lanes[u64(lane)] += np.float64(a[k] - b[k]) * np.float64(c[k] - d[k])
    for k in range(whole, last):
        lanes[0] += np.float64(a[k] - b[k]) * np.float64(c[k] - d[k])
    return lanes.sum()


@Kernel
def dot_of_differences(a, b, c, d, sums):
    """(a - b) . (c - d)"""
    size = CHUNK * 3 * WIDTH
    chunks = (a.size + size - 1) // size
    for chunk in prange(chunks):
        sums[chunk, 0] = dot_chunk(np.int64(chunk * size), np.int64(min((chunk + 1) * size, a.size)), a, b, c, d)
    total = 0.0
    for chunk in range(chunks):
        total += sums[chunk, 0]
    return total


@njit(fastmath=SAFE_MATH, **INNER)
def extrapolate_chunk(first, last, x, old, beta, y):
    beta = x.dtype.type(beta)
    for k in range(u64(first), u64(last)):
        y[k] = x[k] + beta * (x[k] - old[k])


@Kernel
def extrapolate(x, old, beta, y):
    """y := x + beta (x - old)"""
    size = CHUNK * 3 * WIDTH
    for chunk in prange((x.size + size - 1) // size):
        extrapolate_chunk(np.int64(chunk * size), np.int64(min((chunk + 1) * size, x.size)), x, old, beta, y)


class ConeVectors:
    """The vectors of a problem: what ``gravel.engine.Problem`` asks for beside the gradient. The problem has ``cones``, ``size``,
    ``number`` of blocks, ``real``, ``coulomb`` and ``share``."""

    @functools.cached_property
    def sums(self):
        return np.empty((self.size // (3 * WIDTH * CHUNK) + 2, 3))

    @functools.cached_property
    def de_saxce(self):
        return np.zeros((self.number, WIDTH) if self.coulomb else (0, 0), self.real)

    def blank(self):
        return np.zeros(self.size, self.real)

    def solve_bodies(self, samples):
        raise TypeError(
            "FFD solves the bodies of a simulation one by one; a cone problem alone needs another solver, such as GaussSeidel()"
        )

    def projected_step(self, y, g, step, relaxation, out):
        return self.sync.total(*projected_step(self.cones, y, g, self.de_saxce, step, relaxation, out, self.sums))

    def residual(self, x, g):
        worst, squares, number = measure(self.cones, x, g, float(self.coulomb), self.sums)
        (worst,), (squares, number) = self.sync.largest(worst), self.sync.total(squares, number)
        return worst, math.sqrt(squares / max(number, 1.0))

    def update_de_saxce(self, g):
        if self.coulomb:
            de_saxce_terms(self.cones, g, self.de_saxce)

    def dot(self, a, b, c, d):
        return self.sync.total(dot_of_differences(a, b, c, d, self.sums))[0]

    def extrapolate(self, x, old, beta, out):
        extrapolate(x, old, beta, out)

    def copy(self, x, out):
        out[:] = x
