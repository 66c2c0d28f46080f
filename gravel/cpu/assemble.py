"""Assemble: contacts and joint rows to one cone problem in block form.

In: contacts with slots, arranged bodies, the material table. Out: the rows of the blocks (``gravel.cpu.blocks``).

The bias of a contact is b = (gap / h) n for a gap (it may close, no further), and for a penetration the share of it that
the step may take back, at most at ``recovery_speed``. Immovable bodies that turn add the velocity of their surface.
"""

import math

import numpy as np
from numba import njit, prange

from gravel.cpu.blocks import ROWS_GENERAL, ROWS_SPHERICAL, WIDTH
from gravel.cpu.vectors import cross, to_matrix

FRICTION_COLUMN, ROLLING_COLUMN, SPINNING_COLUMN, COHESION_COLUMN = 0, 2, 3, 4  # of materials.PAIR_FIELDS


@njit(nogil=True)
def bias_of(gap, step, recovery, recovery_speed):
    """Bias velocity along the normal, m/s."""
    if gap > 0.0:
        return gap / step
    return max(recovery * gap / step, -recovery_speed)


@njit(nogil=True)
def response(inertia, body, rx, ry, rz, dx, dy, dz):
    """(J^-1 (r x d)) x r: velocity at arm r after a unit impulse along d there, turning part."""
    i = 8 * body
    tx, ty, tz = cross(rx, ry, rz, dx, dy, dz)
    wx = inertia[i] * tx + inertia[i + 1] * ty + inertia[i + 2] * tz
    wy = inertia[i + 1] * tx + inertia[i + 3] * ty + inertia[i + 4] * tz
    wz = inertia[i + 2] * tx + inertia[i + 4] * ty + inertia[i + 5] * tz
    return cross(wx, wy, wz, rx, ry, rz)


@njit(nogil=True)
def tangents(nx, ny, nz):
    """Two directions that complete n to a right-handed frame (Duff et al. 2017)."""
    sign = 1.0 if nz >= 0.0 else -1.0
    a = -1.0 / (sign + nz)
    b = nx * ny * a
    return 1.0 + sign * nx * nx * a, sign * b, -sign * nx, b, sign + ny * ny * a, -ny


@njit(nogil=True)
def contact_responses(inertia, mass, a, b, nx, ny, nz, ax, ay, az, bx, by, bz):
    """(normal, tangential, residual's eta, twist) of a contact between any two bodies.

    The 3 x 3 response N is bounded from above by diag(n, t, t), so that a step with it never overshoots: with g the
    coupling of normal and tangential parts, 2 x g y <= |g| (e x^2 + y^2 / e).
    """
    ux, uy, uz, wx, wy, wz = tangents(nx, ny, nz)
    n0, n1, n2 = response_row(inertia, mass, a, b, nx, ny, nz, ax, ay, az, bx, by, bz)
    u0, u1, u2 = response_row(inertia, mass, a, b, ux, uy, uz, ax, ay, az, bx, by, bz)
    w0, w1, w2 = response_row(inertia, mass, a, b, wx, wy, wz, ax, ay, az, bx, by, bz)
    nn = n0 * nx + n1 * ny + n2 * nz
    uu = u0 * ux + u1 * uy + u2 * uz
    ww = w0 * wx + w1 * wy + w2 * wz
    uw = u0 * wx + u1 * wy + u2 * wz
    nu, nw = n0 * ux + n1 * uy + n2 * uz, n0 * wx + n1 * wy + n2 * wz
    tt = 0.5 * (uu + ww) + math.sqrt(0.25 * (uu - ww) ** 2 + uw * uw)
    coupling = math.sqrt(nu * nu + nw * nw)
    ratio = math.sqrt(nn / tt)
    i, j = 8 * a, 8 * b
    twist = inertia[i] + inertia[i + 3] + inertia[i + 5] + inertia[j] + inertia[j + 3] + inertia[j + 5]
    return nn + coupling * ratio, tt + coupling / ratio, 3.0 / (nn + uu + ww), max(twist, 1e-30)


@njit(nogil=True)
def response_row(inertia, mass, a, b, dx, dy, dz, ax, ay, az, bx, by, bz):
    x0, y0, z0 = response(inertia, a, ax, ay, az, dx, dy, dz)
    x1, y1, z1 = response(inertia, b, bx, by, bz, dx, dy, dz)
    return mass * dx + x0 + x1, mass * dy + y0 + y1, mass * dz + z0 + z1


@njit(parallel=True, nogil=True, cache=True)
def world_inertia(order, bodies, inertia):
    """``inertia`` := inverse inertia of the arranged bodies in the world frame, rows of eight."""
    for i in prange(order.size):
        b = order[i]
        m = to_matrix(bodies.quaternion[b])
        x, y, z = bodies.inverse_inertia[b, 0], bodies.inverse_inertia[b, 1], bodies.inverse_inertia[b, 2]
        k = 8 * i
        for row in range(3):
            for column in range(row, 3):
                inertia[k] = m[row][0] * x * m[column][0] + m[row][1] * y * m[column][1] + m[row][2] * z * m[column][2]
                k += 1
        inertia[k] = inertia[k + 1] = 0
    for k in range(8 * order.size, 8 * order.size + 8):
        inertia[k] = 0


def make_assembly(general, rolling):
    """The kernel for bodies of any shape (``general``) or for balls, with or without rolling friction."""
    rows_per_block = ROWS_GENERAL if general else ROWS_SPHERICAL

    @njit(parallel=True, nogil=True, cache=True)
    def assemble(contacts, slot, arranged, inertia, table, impulse, torque, scalars, blocks, unknowns):
        # arrays written in a parallel loop are taken out of their tuples first: Numba drops such writes otherwise
        rows, body_a, body_b, rolling_arms = blocks.rows, blocks.body_a, blocks.body_b, blocks.rolling
        block_impulse, block_torque, dummy = unknowns.impulse, unknowns.torque, arranged.order.size
        real = rows.dtype.type
        blocks_used = blocks.block_start[-1]
        for block in prange(blocks_used):
            for k in range(block * rows_per_block * WIDTH, (block + 1) * rows_per_block * WIDTH):
                rows[k] = real(0)
            for k in range(block * WIDTH, (block + 1) * WIDTH):
                body_a[k] = dummy
                body_b[k] = dummy
            for k in range(block * 3 * WIDTH, (block + 1) * 3 * WIDTH):
                block_impulse[k] = real(0)
                if rolling:
                    block_torque[k] = real(0)
            if rolling:
                for k in range(block * 2 * WIDTH, (block + 1) * 2 * WIDTH):
                    rolling_arms[k] = real(0)
            if general:  # padding lanes: any response will do, but not zero
                for lane in range(WIDTH):
                    k = block * rows_per_block * WIDTH + lane
                    for row in range(17, 21):
                        rows[k + row * WIDTH] = real(1)
        for tile in prange(contacts.count.size):
            for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
                a, b = contacts.a[c], contacts.b[c]
                block, lane = slot[c] // WIDTH, slot[c] % WIDTH
                k = block * rows_per_block * WIDTH + lane
                ra, rb, va, vb = arranged.reach[a], arranged.reach[b], arranged.velocity[a], arranged.velocity[b]
                nx, ny, nz = contacts.normal[c, 0], contacts.normal[c, 1], contacts.normal[c, 2]
                ax, ay, az = contacts.arm[c, 0], contacts.arm[c, 1], contacts.arm[c, 2]
                bx, by, bz = ax + ra[0] - rb[0], ay + ra[1] - rb[1], az + ra[2] - rb[2]
                values = table[arranged.material[a], arranged.material[b]]
                bias = bias_of(contacts.gap[c], scalars.step, scalars.recovery, scalars.recovery_speed)
                sx, sy, sz = bias * nx, bias * ny, bias * nz
                body_a[slot[c]], body_b[slot[c]] = a, b
                rows[k], rows[k + WIDTH], rows[k + 2 * WIDTH] = nx, ny, nz
                rows[k + 6 * WIDTH] = values[FRICTION_COLUMN]
                rows[k + 7 * WIDTH] = values[COHESION_COLUMN] * scalars.step if contacts.gap[c] <= 0.0 else 0.0
                rows[k + 8 * WIDTH] = contacts.gap[c]
                rows[k + 9 * WIDTH], rows[k + 10 * WIDTH] = arranged.inverse_mass[a], arranged.inverse_mass[b]
                if general:
                    rows[k + 11 * WIDTH], rows[k + 12 * WIDTH], rows[k + 13 * WIDTH] = ax, ay, az
                    rows[k + 14 * WIDTH], rows[k + 15 * WIDTH], rows[k + 16 * WIDTH] = bx, by, bz
                    mass = arranged.inverse_mass[a] + arranged.inverse_mass[b]
                    n, t, eta, twist = contact_responses(inertia, mass, a, b, nx, ny, nz, ax, ay, az, bx, by, bz)
                    rows[k + 17 * WIDTH], rows[k + 18 * WIDTH], rows[k + 19 * WIDTH], rows[k + 20 * WIDTH] = n, t, eta, twist
                else:
                    # a ball's arm lies along the normal; an immovable body's turning enters as a surface velocity
                    if arranged.movable[a]:
                        rows[k + 11 * WIDTH] = ax * nx + ay * ny + az * nz
                        rows[k + 13 * WIDTH] = arranged.spin[a]
                    else:
                        tx, ty, tz = cross(va[4], va[5], va[6], ax, ay, az)
                        sx, sy, sz = sx - tx, sy - ty, sz - tz
                    if arranged.movable[b]:
                        rows[k + 12 * WIDTH] = -(bx * nx + by * ny + bz * nz)
                        rows[k + 14 * WIDTH] = arranged.spin[b]
                    else:
                        tx, ty, tz = cross(vb[4], vb[5], vb[6], bx, by, bz)
                        sx, sy, sz = sx + tx, sy + ty, sz + tz
                rows[k + 3 * WIDTH], rows[k + 4 * WIDTH], rows[k + 5 * WIDTH] = sx, sy, sz
                at = block * 3 * WIDTH + lane
                # a remembered impulse is turned into the cone of the new normal: pushing, and within friction
                pn = impulse[c, 0] * nx + impulse[c, 1] * ny + impulse[c, 2] * nz
                tx, ty, tz = impulse[c, 0] - pn * nx, impulse[c, 1] - pn * ny, impulse[c, 2] - pn * nz
                pn = max(pn, -rows[k + 7 * WIDTH])
                most = values[FRICTION_COLUMN] * (pn + rows[k + 7 * WIDTH])
                pt = math.sqrt(tx * tx + ty * ty + tz * tz)
                keep = 1.0 if pt <= most else most / pt
                block_impulse[at] = pn * nx + keep * tx
                block_impulse[at + WIDTH] = pn * ny + keep * ty
                block_impulse[at + 2 * WIDTH] = pn * nz + keep * tz
                if rolling:
                    rolling_arms[block * 2 * WIDTH + lane] = values[ROLLING_COLUMN]
                    rolling_arms[block * 2 * WIDTH + WIDTH + lane] = values[SPINNING_COLUMN]
                    for row in range(3):
                        block_torque[at + row * WIDTH] = torque[c, row]

    return assemble
