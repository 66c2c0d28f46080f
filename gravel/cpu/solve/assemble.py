"""Assemble: contacts and joint rows to one cone problem in block form.

In: contacts with slots, arranged bodies, what pairs of materials do at a contact. Out: the rows of the blocks
(``gravel.cpu.solve.blocks``).

The bias of a contact is b = (gap / h) n for a gap (it may close, no further), and for a penetration the share of it that
the step may take back, at most at ``recovery_speed``. Immovable bodies that turn add the velocity of their surface, and so do surfaces
that move by themselves (``carry``, empty where none does). ``contacts`` has images of bodies where space repeats itself, ``touching`` the
bodies themselves. Bodies that lie within several others (``count_deep``) share that speed among them: pushed by each at full speed, a
hundred in one place would fly apart at a hundred times as much.
"""

import math

import numpy as np
from numba import njit, prange

from gravel.cpu.solve import blocks as rows_of
from gravel.cpu.solve.blocks import WIDTH, row_offset
from gravel.formulas.bounds import MOVES
from gravel.host.arrays import margin_of
from gravel.host.threads import INNER, Kernel, named
from gravel.host.vectors import cross, tangents, to_matrix
from gravel.state import MATERIAL

DEEP = 0.5  # of the smaller bounding radius: bodies that overlap by more lie within each other
TOUCHING = 1e-3  # of the margin: gaps below it bear cohesion
# Nothing asks gaps below this share of the margin to close. A resting box whose corners must close every hair of a gap within
# the step is never at rest: few iterations answer late, and the late answer makes a tall stack sway more and more.
RESTING = 1e-2
FRICTION_COLUMN, ROLLING_COLUMN, SPINNING_COLUMN, COHESION_COLUMN = 0, 2, 3, 4  # of materials.PAIR_FIELDS

# Offsets of a lane's numbers within its block, as signed integers: those of ``blocks`` are made for the vectoriser.
NX, NY, NZ, BX, BY, BZ = (int(getattr(rows_of, name)) for name in ("NX", "NY", "NZ", "BX", "BY", "BZ"))
FRICTION, COHESION, MASS_A, MASS_B = (int(getattr(rows_of, name)) for name in ("FRICTION", "COHESION", "MASS_A", "MASS_B"))
ARM_A, ARM_B, SPIN_A, SPIN_B = (int(getattr(rows_of, name)) for name in ("ARM_A", "ARM_B", "SPIN_A", "SPIN_B"))
AX, AY, AZ, CX, CY, CZ = (int(getattr(rows_of, name)) for name in ("AX", "AY", "AZ", "CX", "CY", "CZ"))
RESPONSE_N, RESPONSE_T, ETA, TWIST = (int(getattr(rows_of, name)) for name in ("RESPONSE_N", "RESPONSE_T", "ETA", "TWIST"))


@njit(**INNER)
def response(inertia, body, rx, ry, rz, dx, dy, dz):
    """(J^-1 (r x d)) x r: velocity at arm r after a unit impulse along d there, turning part."""
    i = 8 * body
    tx, ty, tz = cross(rx, ry, rz, dx, dy, dz)
    wx = inertia[i] * tx + inertia[i + 1] * ty + inertia[i + 2] * tz
    wy = inertia[i + 1] * tx + inertia[i + 3] * ty + inertia[i + 4] * tz
    wz = inertia[i + 2] * tx + inertia[i + 4] * ty + inertia[i + 5] * tz
    return cross(wx, wy, wz, rx, ry, rz)


@njit(**INNER)
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


@njit(**INNER)
def response_row(inertia, mass, a, b, dx, dy, dz, ax, ay, az, bx, by, bz):
    x0, y0, z0 = response(inertia, a, ax, ay, az, dx, dy, dz)
    x1, y1, z1 = response(inertia, b, bx, by, bz, dx, dy, dz)
    return mass * dx + x0 + x1, mass * dy + y0 + y1, mass * dz + z0 + z1


@njit(**INNER)
def world_inertia_of(i, order, quaternion, mass, inertia):
    b = order[i]
    m = to_matrix(quaternion[b])
    x, y, z = mass[b, 1], mass[b, 2], mass[b, 3]
    k = 8 * i
    for row in range(3):
        for column in range(row, 3):
            inertia[k] = m[row][0] * x * m[column][0] + m[row][1] * y * m[column][1] + m[row][2] * z * m[column][2]
            k += 1


@Kernel
def world_inertia(order, bodies, inertia):
    """``inertia`` := inverse inertia of the arranged bodies in the world frame, rows of eight; the last is the dummy's."""
    for i in prange(order.size):
        world_inertia_of(np.int64(i), order, bodies.quaternion, bodies.inverse_mass, inertia)
    for k in range(8 * order.size, 8 * order.size + 8):
        inertia[k] = 0


@njit(**INNER)
def clear_block(block, blocks, unknowns, dummy):
    """Empty lanes: the dummy body, no impulse, and responses that can be divided by."""
    rows, body_a, body_b, rolling_arms = blocks.rows, blocks.body_a, blocks.body_b, blocks.rolling
    block_impulse, block_torque = unknowns.impulse, unknowns.torque
    rolling, real = rolling_arms.size > 0, rows.dtype.type
    first = row_offset(block, blocks.ball_start[-1])
    for k in range(first, row_offset(block + 1, blocks.ball_start[-1])):
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
    if block >= blocks.ball_start[-1]:  # padding lanes: any response will do, but not zero
        for lane in range(WIDTH):
            k = first + lane
            rows[k + RESPONSE_N] = rows[k + RESPONSE_T] = rows[k + ETA] = rows[k + TWIST] = real(1)


@njit(**INNER)
def clear_hubs(blocks, unknowns, dummy):
    """The last tile's blocks, which all tiles fill."""
    for start in (blocks.ball_start, blocks.wide_start):
        for block in range(start[-2], start[-1]):
            clear_block(block, blocks, unknowns, dummy)


@njit(nogil=True, error_model="numpy", cache=True)
def count_deep(contacts, reach, extent, tag, deep):
    """deep (n,) := contacts by which a body that can move lies within another."""
    deep[:] = 0
    for tile in range(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            a, b = contacts.a[c], contacts.b[c]
            radius_a = reach[a, 3] - extent[a, 3] if tag[a, MOVES] else math.inf
            radius_b = reach[b, 3] - extent[b, 3] if tag[b, MOVES] else math.inf
            if contacts.gap[c] < -DEEP * min(radius_a, radius_b):
                deep[a] += radius_a < math.inf
                deep[b] += radius_b < math.inf


@njit(**INNER)
def bias_of(gap, near, crowd, scalars):
    """Normal part of the bias of a contact, m/s; ``near``: the gap up to which it counts as touching, ``crowd``: in how many others one
    of its bodies lies (1: at most one)."""
    if gap > 0.0:
        return gap / scalars.step if gap > RESTING * near else 0.0
    return max(scalars.recovery * gap / scalars.step, -scalars.recovery_speed / crowd)


def make_assemble_tile(wide):
    """The work on one tile, where there may be contacts with arms and inertia of any shape (``wide``), or nothing but balls. A
    constant, so that scenes of balls do not compile the rest."""

    @njit(**INNER)
    @named("any" if wide else "balls")
    def assemble_tile(
        tile, contacts, touching, slot, arranged, inertia, contact_values, impulse, torque, carry, scalars, margin, deep, blocks, unknowns
    ):
        rows, body_a, body_b, rolling_arms = blocks.rows, blocks.body_a, blocks.body_b, blocks.rolling
        block_impulse, block_torque = unknowns.impulse, unknowns.torque
        rolling = rolling_arms.size > 0
        contact_a, contact_b, start, count = contacts.a, contacts.b, contacts.start, contacts.count
        normal, arm, gaps = contacts.normal, contacts.arm, contacts.gap
        reach, extent, tag, mass, velocity = arranged.reach, arranged.extent, arranged.tag, arranged.mass, arranged.velocity
        for block in range(blocks.ball_start[tile], blocks.ball_start[tile + 1]):
            clear_block(block, blocks, unknowns, arranged.order.size)
        for block in range(blocks.wide_start[tile], blocks.wide_start[tile + 1]):
            clear_block(block, blocks, unknowns, arranged.order.size)
        for c in range(start[tile], start[tile] + count[tile]):
            a, b = contact_a[c], contact_b[c]
            block, lane = slot[c] // WIDTH, slot[c] % WIDTH
            k = row_offset(block, blocks.ball_start[-1]) + lane
            nx, ny, nz = normal[c, 0], normal[c, 1], normal[c, 2]
            ax, ay, az = arm[c, 0], arm[c, 1], arm[c, 2]
            bx, by, bz = ax + reach[a, 0] - reach[b, 0], ay + reach[a, 1] - reach[b, 1], az + reach[a, 2] - reach[b, 2]
            i, j = tag[a, MATERIAL], tag[b, MATERIAL]
            friction, cohesion = contact_values[i, j, FRICTION_COLUMN], contact_values[i, j, COHESION_COLUMN]
            body_a[slot[c]], body_b[slot[c]] = touching.a[c], touching.b[c]
            rows[k + NX], rows[k + NY], rows[k + NZ] = nx, ny, nz
            rows[k + FRICTION] = friction
            near = margin_of(margin, a, b, reach, extent, tag)
            crowd = max(deep[touching.a[c]], deep[touching.b[c]], 1) if deep.size > 0 else 1
            bias = bias_of(gaps[c], near, crowd, scalars)
            sx, sy, sz = bias * nx, bias * ny, bias * nz
            if carry.size > 0:
                sx, sy, sz = sx + carry[c, 0], sy + carry[c, 1], sz + carry[c, 2]
            rows[k + COHESION] = cohesion * scalars.step if gaps[c] <= TOUCHING * near else 0.0
            rows[k + MASS_A], rows[k + MASS_B] = mass[a, 0], mass[b, 0]
            if wide and block >= blocks.ball_start[-1]:
                rows[k + AX], rows[k + AY], rows[k + AZ] = ax, ay, az
                rows[k + CX], rows[k + CY], rows[k + CZ] = bx, by, bz
                n, t, eta, twist = contact_responses(inertia, mass[a, 0] + mass[b, 0], a, b, nx, ny, nz, ax, ay, az, bx, by, bz)
                rows[k + RESPONSE_N], rows[k + RESPONSE_T], rows[k + ETA], rows[k + TWIST] = n, t, eta, twist
            else:
                # a ball's arm lies along the normal; an immovable body's turning enters as a surface velocity
                if tag[a, MOVES]:
                    rows[k + ARM_A] = ax * nx + ay * ny + az * nz
                    rows[k + SPIN_A] = mass[a, 1]
                else:
                    tx, ty, tz = cross(velocity[a, 4], velocity[a, 5], velocity[a, 6], ax, ay, az)
                    sx, sy, sz = sx - tx, sy - ty, sz - tz
                if tag[b, MOVES]:
                    rows[k + ARM_B] = -(bx * nx + by * ny + bz * nz)
                    rows[k + SPIN_B] = mass[b, 1]
                else:
                    tx, ty, tz = cross(velocity[b, 4], velocity[b, 5], velocity[b, 6], bx, by, bz)
                    sx, sy, sz = sx + tx, sy + ty, sz + tz
            rows[k + BX], rows[k + BY], rows[k + BZ] = sx, sy, sz
            at = block * 3 * WIDTH + lane
            # a remembered impulse is turned into the cone of the new normal: pushing, and within friction
            pn = impulse[c, 0] * nx + impulse[c, 1] * ny + impulse[c, 2] * nz
            tx, ty, tz = impulse[c, 0] - pn * nx, impulse[c, 1] - pn * ny, impulse[c, 2] - pn * nz
            pn = max(pn, -rows[k + COHESION])
            most = friction * (pn + rows[k + COHESION])
            pt = math.sqrt(tx * tx + ty * ty + tz * tz)
            keep = 1.0 if pt <= most else most / pt
            block_impulse[at] = pn * nx + keep * tx
            block_impulse[at + WIDTH] = pn * ny + keep * ty
            block_impulse[at + 2 * WIDTH] = pn * nz + keep * tz
            if rolling:
                rolling_arms[block * 2 * WIDTH + lane] = contact_values[i, j, ROLLING_COLUMN]
                rolling_arms[block * 2 * WIDTH + WIDTH + lane] = contact_values[i, j, SPINNING_COLUMN]
                for row in range(3):
                    block_torque[at + row * WIDTH] = torque[c, row]

    return assemble_tile


ball_tile = make_assemble_tile(False)
any_tile = make_assemble_tile(True)


@Kernel
def assemble_balls(
    contacts, touching, slot, arranged, inertia, contact_values, impulse, torque, carry, scalars, margin, deep, blocks, unknowns
):
    """Fill the blocks' rows and the starting impulses, where every movable body is a ball."""
    clear_hubs(blocks, unknowns, arranged.order.size)
    for tile in prange(contacts.count.size):
        ball_tile(
            np.int64(tile),
            contacts,
            touching,
            slot,
            arranged,
            inertia,
            contact_values,
            impulse,
            torque,
            carry,
            scalars,
            margin,
            deep,
            blocks,
            unknowns,
        )


@Kernel
def assemble_any(
    contacts, touching, slot, arranged, inertia, contact_values, impulse, torque, carry, scalars, margin, deep, blocks, unknowns
):
    """The same for bodies of any shape."""
    clear_hubs(blocks, unknowns, arranged.order.size)
    for tile in prange(contacts.count.size):
        any_tile(
            np.int64(tile),
            contacts,
            touching,
            slot,
            arranged,
            inertia,
            contact_values,
            impulse,
            torque,
            carry,
            scalars,
            margin,
            deep,
            blocks,
            unknowns,
        )
