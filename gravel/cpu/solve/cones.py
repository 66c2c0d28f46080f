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

from gravel.cpu.solve.blocks import L1, L2, L3, L4, L5, SAFE_MATH, WIDTH, u64
from gravel.host.threads import INNER, Kernel

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


@njit(fastmath=SAFE_MATH, **INNER)
def project(x, y, z, nx, ny, nz, mu, cohesion, zero, one, tiny):
    """The nearest impulse in the friction cone, whose tip lies at -cohesion n; also its load on the contact. Without branches, in the
    precision of its arguments, constants among them: so a loop over contacts can be vectorised."""
    pn = x * nx + y * ny + z * nz
    tx, ty, tz = x - pn * nx, y - pn * ny, z - pn * nz
    pn += cohesion
    pt = np.sqrt(tx * tx + ty * ty + tz * tz)
    inside = (pn >= zero) & (mu * pn >= pt)
    load = pn if inside else max((mu * pt + pn) / (one + mu * mu), zero)
    keep = one if inside else mu * load / max(pt, tiny)
    pn = load - cohesion
    return pn * nx + keep * tx, pn * ny + keep * ty, pn * nz + keep * tz, load


@njit(fastmath=SAFE_MATH, **INNER)
def project_torque(x, y, z, nx, ny, nz, roll, spin, one, tiny):
    """The nearest torque impulse within what rolling and spinning friction can bear."""
    rn = x * nx + y * ny + z * nz
    tx, ty, tz = x - rn * nx, y - rn * ny, z - rn * nz
    rt = np.sqrt(tx * tx + ty * ty + tz * tz)
    keep = min(one, roll / max(rt, tiny))
    rn = max(-spin, min(spin, rn))
    return rn * nx + keep * tx, rn * ny + keep * ty, rn * nz + keep * tz


@njit(**INNER)
def slip_term(cones, block, lane, g, k, coulomb):
    """mu |u_t|, the De Saxce term, where it is asked for."""
    if coulomb == 0.0:
        return 0.0
    nx, ny, nz = cones.normal[block, 0, lane], cones.normal[block, 1, lane], cones.normal[block, 2, lane]
    x, y, z = g[k], g[k + WIDTH], g[k + 2 * WIDTH]
    un = x * nx + y * ny + z * nz
    return coulomb * cones.friction[block, lane] * math.sqrt(max(x * x + y * y + z * z - un * un, 0.0))


@njit(fastmath=SAFE_MATH, **INNER)
def step_chunk(chunk, cones, y, g, slip, step, relaxation, x, sums):
    """Lanes side by side, without branches, so that the loop over them is vectorised; sums in double precision."""
    blocks, rolling = cones.friction.shape[0], cones.rolling.size > 0
    rows = u64(6 if rolling else 3)
    normal, friction = cones.normal.reshape(-1), cones.friction.reshape(-1)
    cohesion, etas = cones.cohesion.reshape(-1), cones.eta.reshape(-1)
    slips, arms, twists = slip.reshape(-1), cones.rolling.reshape(-1), cones.twist_eta.reshape(-1)
    real = y.dtype.type
    zero, one, tiny, step, relaxation = real(0), real(1), real(1e-30), real(step), real(relaxation)
    square, slope = np.zeros(WIDTH), np.zeros(WIDTH)
    for block in range(u64(chunk * CHUNK), u64(min((chunk + 1) * CHUNK, blocks))):
        for lane in range(WIDTH):
            k = u64(lane)
            c, n, at = block * u64(WIDTH) + k, block * u64(3 * WIDTH) + k, block * rows * u64(WIDTH) + k
            nx, ny, nz, mu, eta = normal[n], normal[n + L1], normal[n + L2], friction[c], etas[c]
            extra = slips[c] if slips.size > 0 else zero
            gx, gy, gz = g[at] + extra * nx, g[at + L1] + extra * ny, g[at + L2] + extra * nz
            y0, y1, y2 = y[at], y[at + L1], y[at + L2]
            t = step * eta
            px, py, pz, load = project(y0 - t * gx, y1 - t * gy, y2 - t * gz, nx, ny, nz, mu, cohesion[c], zero, one, tiny)
            dx, dy, dz = relaxation * (px - y0), relaxation * (py - y1), relaxation * (pz - y2)
            x[at], x[at + L1], x[at + L2] = y0 + dx, y1 + dy, y2 + dz
            square[k] += np.float64((dx * dx + dy * dy + dz * dz) / eta)
            slope[k] += np.float64(gx * dx + gy * dy + gz * dz)
            if rolling:
                turn, roll = twists[c], block * u64(2 * WIDTH) + k
                t = step * turn
                gx, gy, gz = g[at + L3], g[at + L4], g[at + L5]
                y0, y1, y2 = y[at + L3], y[at + L4], y[at + L5]
                limits = arms[roll] * load, arms[roll + L1] * load
                px, py, pz = project_torque(y0 - t * gx, y1 - t * gy, y2 - t * gz, nx, ny, nz, *limits, one, tiny)
                dx, dy, dz = relaxation * (px - y0), relaxation * (py - y1), relaxation * (pz - y2)
                x[at + L3], x[at + L4], x[at + L5] = y0 + dx, y1 + dy, y2 + dz
                square[k] += np.float64((dx * dx + dy * dy + dz * dz) / turn)
                slope[k] += np.float64(gx * dx + gy * dy + gz * dz)
    sums[chunk, 0], sums[chunk, 1] = square.sum(), slope.sum()


@Kernel
def step_and_project(cones, y, g, slip, step, relaxation, x, sums):
    """x := relaxation P(y - step eta (g + slip n)) + (1 - relaxation) y, with d = x - y: returns (|d|^2, g . d).

    ``slip`` (blocks, WIDTH) holds the De Saxcé terms in force; empty in the cone model.
    """
    blocks, rows = cones.friction.shape[0], 6 if cones.rolling.size > 0 else 3
    chunks = (blocks + CHUNK - 1) // CHUNK
    for chunk in prange(chunks):
        step_chunk(np.int64(chunk), cones, y, g, slip, step, relaxation, x, sums)
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


@njit(fastmath=SAFE_MATH, **INNER)
def measure_chunk(chunk, cones, x, g, coulomb, sums):
    blocks, rolling = cones.friction.shape[0], cones.rolling.size > 0
    rows = u64(6 if rolling else 3)
    normal, friction = cones.normal.reshape(-1), cones.friction.reshape(-1)
    cohesion, etas = cones.cohesion.reshape(-1), cones.eta.reshape(-1)
    arms, twists = cones.rolling.reshape(-1), cones.twist_eta.reshape(-1)
    real = x.dtype.type
    zero, one, tiny, coulomb = real(0), real(1), real(1e-30), real(coulomb)
    worst, squares, number = np.zeros(WIDTH, x.dtype), np.zeros(WIDTH), np.zeros(WIDTH)
    for block in range(u64(chunk * CHUNK), u64(min((chunk + 1) * CHUNK, blocks))):
        for lane in range(WIDTH):
            k = u64(lane)
            c, n, at = block * u64(WIDTH) + k, block * u64(3 * WIDTH) + k, block * rows * u64(WIDTH) + k
            nx, ny, nz, mu, eta = normal[n], normal[n + L1], normal[n + L2], friction[c], etas[c]
            gx, gy, gz = g[at], g[at + L1], g[at + L2]
            un = gx * nx + gy * ny + gz * nz
            extra = coulomb * mu * np.sqrt(max(gx * gx + gy * gy + gz * gz - un * un, zero))
            gx, gy, gz = gx + extra * nx, gy + extra * ny, gz + extra * nz
            x0, x1, x2 = x[at], x[at + L1], x[at + L2]
            px, py, pz, load = project(x0 - eta * gx, x1 - eta * gy, x2 - eta * gz, nx, ny, nz, mu, cohesion[c], zero, one, tiny)
            dx, dy, dz = px - x0, py - x1, pz - x2
            error = (dx * dx + dy * dy + dz * dz) / (eta * eta)
            if rolling:
                t, roll = twists[c], block * u64(2 * WIDTH) + k
                x0, x1, x2 = x[at + L3], x[at + L4], x[at + L5]
                limits = arms[roll] * load, arms[roll + L1] * load
                px, py, pz = project_torque(x0 - t * g[at + L3], x1 - t * g[at + L4], x2 - t * g[at + L5], nx, ny, nz, *limits, one, tiny)
                dx, dy, dz = px - x0, py - x1, pz - x2
                error += (dx * dx + dy * dy + dz * dz) / (t * eta)
            real_lane = nx * nx + ny * ny + nz * nz > zero  # the others are padding
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


@Kernel
def slip_terms(cones, g, slip):
    """slip := mu |u_t| of each contact."""
    rows = 6 if cones.rolling.size > 0 else 3
    for block in prange(cones.friction.shape[0]):
        for lane in range(WIDTH):
            slip[block, lane] = slip_term(cones, block, lane, g, block * rows * WIDTH + lane, 1.0)


@njit(fastmath=SAFE_MATH, **INNER)
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
    def slip(self):
        return np.zeros((self.number, WIDTH) if self.coulomb else (0, 0), self.real)

    def blank(self):
        return np.zeros(self.size, self.real)

    def solve_bodies(self, samples):
        raise TypeError(
            "FFD solves the bodies of a simulation one by one; a cone problem alone needs another solver, such as GaussSeidel()"
        )

    def step_and_project(self, y, g, step, relaxation, out):
        return self.share.total(*step_and_project(self.cones, y, g, self.slip, step, relaxation, out, self.sums))

    def residual(self, x, g):
        worst, squares, number = measure(self.cones, x, g, float(self.coulomb), self.sums)
        (worst,), (squares, number) = self.share.largest(worst), self.share.total(squares, number)
        return worst, math.sqrt(squares / max(number, 1.0))

    def renew_slip(self, g):
        if self.coulomb:
            slip_terms(self.cones, g, self.slip)

    def dot(self, a, b, c, d):
        return self.share.total(dot_of_differences(a, b, c, d, self.sums))[0]

    def extrapolate(self, x, old, beta, out):
        extrapolate(x, old, beta, out)

    def copy(self, x, out):
        out[:] = x
