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

from gravel.cpu.solve.blocks import WIDTH
from gravel.cpu.threads import INNER, Kernel

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


@njit(**INNER)
def project(x, y, z, nx, ny, nz, mu, cohesion):
    """The nearest impulse in the friction cone, whose tip lies at -cohesion n; also its load on the contact."""
    pn = x * nx + y * ny + z * nz
    tx, ty, tz = x - pn * nx, y - pn * ny, z - pn * nz
    pn += cohesion
    pt = math.sqrt(tx * tx + ty * ty + tz * tz)
    keep = 1.0
    if pn < 0.0 or mu * pn < pt:
        pn = max((mu * pt + pn) / (1.0 + mu * mu), 0.0)
        keep = mu * pn / pt if pt > 0.0 else 0.0
    load = pn
    pn -= cohesion
    return pn * nx + keep * tx, pn * ny + keep * ty, pn * nz + keep * tz, load


@njit(**INNER)
def project_torque(x, y, z, nx, ny, nz, roll, spin):
    """The nearest torque impulse within what rolling and spinning friction can bear."""
    rn = x * nx + y * ny + z * nz
    tx, ty, tz = x - rn * nx, y - rn * ny, z - rn * nz
    rt = math.sqrt(tx * tx + ty * ty + tz * tz)
    keep = roll / rt if rt > roll else 1.0
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


@Kernel
def step_and_project(cones, y, g, slip, step, relaxation, x, sums):
    """x := relaxation P(y - step eta (g + slip n)) + (1 - relaxation) y, with d = x - y: returns (|d|^2, g . d).

    ``slip`` (blocks, WIDTH) holds the De Saxcé terms in force; empty in the cone model.
    """
    blocks, rows = cones.friction.shape[0], 6 if cones.rolling.size > 0 else 3
    joints = cones.joint_eta.size
    chunks = (blocks + CHUNK - 1) // CHUNK
    for chunk in prange(chunks):
        square, slope = 0.0, 0.0
        for block in range(chunk * CHUNK, min((chunk + 1) * CHUNK, blocks)):
            for lane in range(WIDTH):
                k = block * rows * WIDTH + lane
                nx, ny, nz = cones.normal[block, 0, lane], cones.normal[block, 1, lane], cones.normal[block, 2, lane]
                eta = cones.eta[block, lane]
                extra = slip[block, lane] if slip.size > 0 else 0.0
                gx, gy, gz = g[k] + extra * nx, g[k + WIDTH] + extra * ny, g[k + 2 * WIDTH] + extra * nz
                y0, y1, y2 = y[k], y[k + WIDTH], y[k + 2 * WIDTH]
                t = step * eta
                px, py, pz, load = project(
                    y0 - t * gx, y1 - t * gy, y2 - t * gz, nx, ny, nz, cones.friction[block, lane], cones.cohesion[block, lane]
                )
                dx, dy, dz = relaxation * (px - y0), relaxation * (py - y1), relaxation * (pz - y2)
                x[k], x[k + WIDTH], x[k + 2 * WIDTH] = y0 + dx, y1 + dy, y2 + dz
                square += (dx * dx + dy * dy + dz * dz) / eta
                slope += gx * dx + gy * dy + gz * dz
                if rows == 6:
                    t = step * cones.twist_eta[block, lane]
                    k += 3 * WIDTH
                    y0, y1, y2 = y[k], y[k + WIDTH], y[k + 2 * WIDTH]
                    px, py, pz = project_torque(
                        y0 - t * g[k],
                        y1 - t * g[k + WIDTH],
                        y2 - t * g[k + 2 * WIDTH],
                        nx,
                        ny,
                        nz,
                        cones.rolling[block, 0, lane] * load,
                        cones.rolling[block, 1, lane] * load,
                    )
                    dx, dy, dz = relaxation * (px - y0), relaxation * (py - y1), relaxation * (pz - y2)
                    x[k], x[k + WIDTH], x[k + 2 * WIDTH] = y0 + dx, y1 + dy, y2 + dz
                    square += (dx * dx + dy * dy + dz * dz) / cones.twist_eta[block, lane]
                    slope += g[k] * dx + g[k + WIDTH] * dy + g[k + 2 * WIDTH] * dz
        sums[chunk, 0], sums[chunk, 1] = square, slope
    square, slope = 0.0, 0.0
    for row in range(joints):
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


@Kernel
def measure(cones, x, g, coulomb, sums):
    """The residual of x, whose gradient is g: (max in m/s, sum of squares, number) over contacts and joint rows."""
    blocks, rows = cones.friction.shape[0], 6 if cones.rolling.size > 0 else 3
    joints = cones.joint_eta.size
    chunks = (blocks + CHUNK - 1) // CHUNK
    for chunk in prange(chunks):
        worst, squares, number = 0.0, 0.0, 0.0
        for block in range(chunk * CHUNK, min((chunk + 1) * CHUNK, blocks)):
            for lane in range(WIDTH):
                k = block * rows * WIDTH + lane
                nx, ny, nz = cones.normal[block, 0, lane], cones.normal[block, 1, lane], cones.normal[block, 2, lane]
                if nx * nx + ny * ny + nz * nz == 0.0:
                    continue  # padding
                eta = cones.eta[block, lane]
                extra = slip_term(cones, block, lane, g, k, coulomb)
                px, py, pz, load = project(
                    x[k] - eta * (g[k] + extra * nx),
                    x[k + WIDTH] - eta * (g[k + WIDTH] + extra * ny),
                    x[k + 2 * WIDTH] - eta * (g[k + 2 * WIDTH] + extra * nz),
                    nx,
                    ny,
                    nz,
                    cones.friction[block, lane],
                    cones.cohesion[block, lane],
                )
                dx, dy, dz = px - x[k], py - x[k + WIDTH], pz - x[k + 2 * WIDTH]
                error = (dx * dx + dy * dy + dz * dz) / (eta * eta)
                if rows == 6:
                    t = cones.twist_eta[block, lane]
                    k += 3 * WIDTH
                    px, py, pz = project_torque(
                        x[k] - t * g[k],
                        x[k + WIDTH] - t * g[k + WIDTH],
                        x[k + 2 * WIDTH] - t * g[k + 2 * WIDTH],
                        nx,
                        ny,
                        nz,
                        cones.rolling[block, 0, lane] * load,
                        cones.rolling[block, 1, lane] * load,
                    )
                    dx, dy, dz = px - x[k], py - x[k + WIDTH], pz - x[k + 2 * WIDTH]
                    error += (dx * dx + dy * dy + dz * dz) / (t * eta)
                worst = max(worst, error)
                squares += error
                number += 1.0
        sums[chunk, 0], sums[chunk, 1], sums[chunk, 2] = worst, squares, number
    worst, squares, number = 0.0, 0.0, 0.0
    for chunk in range(chunks):
        worst, squares, number = max(worst, sums[chunk, 0]), squares + sums[chunk, 1], number + sums[chunk, 2]
    for row in range(joints):
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


@Kernel
def dot_of_differences(a, b, c, d, sums):
    """(a - b) . (c - d)"""
    size = CHUNK * 3 * WIDTH
    chunks = (a.size + size - 1) // size
    for chunk in prange(chunks):
        total = 0.0
        for k in range(chunk * size, min((chunk + 1) * size, a.size)):
            total += float(a[k] - b[k]) * float(c[k] - d[k])
        sums[chunk, 0] = total
    total = 0.0
    for chunk in range(chunks):
        total += sums[chunk, 0]
    return total


@Kernel
def extrapolate(x, old, beta, y):
    """y := x + beta (x - old)"""
    for k in prange(x.size):
        y[k] = x[k] + beta * (x[k] - old[k])


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
