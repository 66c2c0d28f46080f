"""The cone problem in blocks of contacts, and the kernels that run over them.

In: a ``Blocks`` tuple (contacts of one colour in groups of ``WIDTH``, laid out [block][row][lane]) and the bodies'
velocity rows [v, -, w, -]; for bodies without spherical inertia also their inverse inertia in the world frame.
Out: impulses and velocities changed in place, or the residual.

No body that can move appears twice in a block, so its lanes are independent and the loop over lanes is vectorised. The
impulse p of a contact acts on b, its opposite on a. It is kept as a vector in the world frame, so no tangent directions
are needed: with u the velocity of b relative to a at the contact plus the bias, u_n = u.n and u_t = u - u_n n.

One kernel body serves every job (``make_kernel``): gather, relative velocity and scatter are the same, only what happens
to the impulse in between differs. The flags are compile-time constants, so each job is compiled when a scene first needs
it and pays for nothing it does not use.

What was measured and rejected (ns per contact and sweep, one thread, data in cache): array slices per block, 21 (each
slice counts references); whole velocity rows copied and transposed by the compiler, 15; this form, scalar gather and
scatter around a vectorised loop, with masses among the contact rows, 13.
"""

import math
import types
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.cpu.solve.prefetch import prefetch
from gravel.formulas.momentum import LAGGED, NEVER, RENEWED, pace
from gravel.host.threads import INNER, PARALLEL, Kernel, named

# What the compiler may assume: nothing that changes how results are rounded. With all of fastmath, a kernel that comes from
# the cache gives other bits than the one that was just compiled: it is optimised once more, and fuses other operations.
SAFE_MATH = {"nnan", "ninf", "nsz"}

WIDTH = 16  # lanes of a block: LLVM unrolls a loop of 8 before its vectoriser sees it

u64 = np.uint64  # unsigned indices: a signed one costs a test for "counted from the end" that stops the vectoriser
LANES = [u64(row * WIDTH) for row in range(24)]
_, L1, L2, L3, L4, L5 = LANES[:6]  # the components of a vector or row of six
BODY = u64(8)  # numbers in a velocity or inertia row

# Rows of a block: offsets of a lane's numbers. Normal, bias, friction, cohesive impulse, inverse masses ...
NX, NY, NZ, BX, BY, BZ, FRICTION, COHESION, MASS_A, MASS_B = LANES[:10]
# ... then, where every body is a ball for the solver (arms along the normal, inertia a number):
ARM_A, ARM_B, SPIN_A, SPIN_B = LANES[10:14]
ROWS_BALL = 14
# ... or, for any other body: arms, the response to a normal and to a tangential impulse, and the residual's step.
AX, AY, AZ, CX, CY, CZ, RESPONSE_N, RESPONSE_T, ETA, TWIST = LANES[10:20]
ROWS_WIDE = 20

STRETCH = 1 << 15  # numbers of velocities that a thread takes at a time
AHEAD = u64(2)  # how many blocks before its turn the memory is asked for one: 13 ns per contact and sweep become 10

SWEEP, APPLY, GRADIENT, MEASURE, SLIP = "sweep", "apply", "gradient", "measure", "slip"
AGE, UPHILL, CAP, ENOUGH, BETA, CHANGE, FIRST, SHARE, WILD, CARRIED, SWEEPS = range(11)  # what a sweep knows of the last one


class Blocks(NamedTuple):
    """A cone problem in block form. Flat arrays, [block][row][lane]; the balls' blocks come first, then the wide ones."""

    rows: np.ndarray  # constants of each contact, see the offsets above
    body_a: np.ndarray  # index of the velocity row; padding lanes point to an immovable dummy
    body_b: np.ndarray
    rolling: np.ndarray  # [block][2][lane] arms of rolling and spinning friction, m; empty where there is none
    ball_start: np.ndarray  # (tiles + 1,) balls' blocks of each tile
    wide_start: np.ndarray  # (tiles + 1,) and its wide ones, numbered after all of the balls'
    tile_order: np.ndarray  # tiles sorted by colour: those of one colour share no body that can move
    colour_start: np.ndarray  # (tile colours + 1,) ranges of tile_order


class Unknowns(NamedTuple):
    """What the kernels change."""

    impulse: np.ndarray  # [block][3][lane] p, N s
    torque: np.ndarray  # [block][3][lane] rolling and spinning impulse, N m s; empty where there is none
    velocity: np.ndarray  # (bodies * 8,) [v, -, w, -]
    last_impulse: np.ndarray  # the three of the sweep before, for momentum
    last_torque: np.ndarray
    last_velocity: np.ndarray
    inertia: np.ndarray  # (bodies * 8,) inverse inertia xx xy xz yy yz zz, world frame; empty for spherical bodies
    slip: np.ndarray  # [block][lane] mu |u_t| as the sweeps know it, m/s: De Saxcé's term; zero in the cone model


class Scalars(NamedTuple):
    coulomb: float  # 1: the De Saxcé term removes the sliding gap of the cone model; 0: the convex cone model
    step: float  # h, s
    recovery: float  # share of a penetration that a step may take back
    recovery_speed: float  # and the speed at which it may, m/s


@njit(**INNER)
def gather(velocity, body, lane, rows):
    """rows[component][lane] := velocity row of a body."""
    i, k = u64(body) * BODY, u64(lane)
    for row in range(3):
        rows[k + u64(row * WIDTH)] = velocity[i + u64(row)]
        rows[k + u64((3 + row) * WIDTH)] = velocity[i + u64(4 + row)]


@njit(**INNER)
def scatter(rows, lane, velocity, body):
    i, k = u64(body) * BODY, u64(lane)
    for row in range(3):
        velocity[i + u64(row)] = rows[k + u64(row * WIDTH)]
        velocity[i + u64(4 + row)] = rows[k + u64((3 + row) * WIDTH)]


@njit(**INNER)
def gather_inertia(inertia, body, lane, rows):
    i, k = u64(body) * BODY, u64(lane)
    for row in range(6):
        rows[k + u64(row * WIDTH)] = inertia[i + u64(row)]


def rows_before(block, ball_blocks):
    """Where the rows of a block begin: the balls' blocks come first."""
    balls = min(block, ball_blocks)
    return balls * (ROWS_BALL * WIDTH) + (block - balls) * (ROWS_WIDE * WIDTH)


row_offset = njit(**INNER)(rows_before)


def make_tile(job, wide, rolling):
    """The work on one tile's blocks of one kind, see ``make_kernel``; returns what the tile adds to ``worst`` and ``total``."""
    sweep, apply, gradient, measure, renew = (job == name for name in (SWEEP, APPLY, GRADIENT, MEASURE, SLIP))
    moves = sweep or apply
    rows_of_values = u64(6 if rolling else 3)
    projects = sweep or measure
    rows_per_block = ROWS_WIDE if wide else ROWS_BALL
    block_size = u64(rows_per_block * WIDTH)

    @njit(fastmath=SAFE_MATH, **INNER)
    @named(job, "wide" if wide else "ball", *(("rolling",) if rolling else ()))
    def work(first_block, last_block, origin, blocks, unknowns, values, coulomb, beta):
        rows, body_a, body_b, arms = blocks.rows, blocks.body_a, blocks.body_b, blocks.rolling
        impulse, torque, inertia, slip = unknowns.impulse, unknowns.torque, unknowns.inertia, unknowns.slip
        last_impulse, last_torque = unknowns.last_impulse, unknowns.last_torque
        velocity = unknowns.last_velocity if renew else unknowns.velocity  # slip: before momentum carried the velocities on
        real = rows.dtype.type
        zero, one, tiny, two_thirds, lagged = real(0), real(1), real(1e-30), real(2 / 3), real(LAGGED)
        va, vb = np.empty(6 * WIDTH, rows.dtype), np.empty(6 * WIDTH, rows.dtype)
        ja, jb = np.empty(6 * WIDTH, rows.dtype), np.empty(6 * WIDTH, rows.dtype)
        error = np.empty(WIDTH, rows.dtype)
        climb = np.zeros(WIDTH, rows.dtype)
        tile_worst, tile_total = zero, zero
        for block in range(u64(first_block), u64(last_block)):
            first = block * u64(WIDTH)
            # while this block is worked on, the next ones are asked for: their rows, then their velocities
            ahead = block + AHEAD
            for line in range(rows_per_block):
                prefetch(rows, origin + ahead * block_size + u64(line * WIDTH))
            for line in range(3):
                prefetch(impulse, ahead * u64(3 * WIDTH) + u64(line * WIDTH))
                if sweep:
                    prefetch(last_impulse, ahead * u64(3 * WIDTH) + u64(line * WIDTH))
            prefetch(body_a, ahead * u64(WIDTH))
            prefetch(body_b, ahead * u64(WIDTH))
            after = min(block + u64(1), u64(last_block) - u64(1)) * u64(WIDTH)
            for lane in range(WIDTH):
                prefetch(velocity, u64(body_a[after + u64(lane)]) * BODY)
                prefetch(velocity, u64(body_b[after + u64(lane)]) * BODY)
            for lane in range(WIDTH):
                gather(velocity, body_a[first + u64(lane)], lane, va)
                gather(velocity, body_b[first + u64(lane)], lane, vb)
                if wide and moves:
                    gather_inertia(inertia, body_a[first + u64(lane)], lane, ja)
                    gather_inertia(inertia, body_b[first + u64(lane)], lane, jb)
            for lane in range(WIDTH):
                k = u64(lane)
                i = origin + block * block_size + k
                j = first * u64(3) + k
                nx, ny, nz = rows[i + NX], rows[i + NY], rows[i + NZ]
                ma, mb = rows[i + MASS_A], rows[i + MASS_B]
                vax, vay, vaz = va[k], va[k + L1], va[k + L2]
                vbx, vby, vbz = vb[k], vb[k + L1], vb[k + L2]
                wax, way, waz = va[k + L3], va[k + L4], va[k + L5]
                wbx, wby, wbz = vb[k + L3], vb[k + L4], vb[k + L5]
                # the relative velocity with its bias, and how it responds to a normal and a tangential impulse
                ux, uy, uz = vbx - vax + rows[i + BX], vby - vay + rows[i + BY], vbz - vaz + rows[i + BZ]
                if wide:
                    ax, ay, az, bx, by, bz = rows[i + AX], rows[i + AY], rows[i + AZ], rows[i + CX], rows[i + CY], rows[i + CZ]
                    ux += (wby * bz - wbz * by) - (way * az - waz * ay)
                    uy += (wbz * bx - wbx * bz) - (waz * ax - wax * az)
                    uz += (wbx * by - wby * bx) - (wax * ay - way * ax)
                    response_n, response_t, mean = rows[i + RESPONSE_N], rows[i + RESPONSE_T], one / rows[i + ETA]
                    twist = rows[i + TWIST]
                else:
                    ra, rb, ia, ib = rows[i + ARM_A], rows[i + ARM_B], rows[i + SPIN_A], rows[i + SPIN_B]
                    sx, sy, sz = ra * wax + rb * wbx, ra * way + rb * wby, ra * waz + rb * wbz
                    ux -= sy * nz - sz * ny
                    uy -= sz * nx - sx * nz
                    uz -= sx * ny - sy * nx
                    response_n = max(ma + mb, tiny)
                    turn = ra * ra * ia + rb * rb * ib
                    response_t = response_n + turn
                    mean = response_n + two_thirds * turn
                    twist = max(ia + ib, tiny)
                x = first * rows_of_values + k
                if gradient:
                    values[x], values[x + L1], values[x + L2] = ux, uy, uz
                    if rolling:
                        values[x + L3], values[x + L4], values[x + L5] = wbx - wax, wby - way, wbz - waz
                if apply:
                    dx, dy, dz = values[x], values[x + L1], values[x + L2]
                if renew:
                    un = ux * nx + uy * ny + uz * nz
                    utx, uty, utz = ux - un * nx, uy - un * ny, uz - un * nz
                    mu, was = rows[i + FRICTION], slip[first + k]
                    taken = max(beta, min(one, lagged / max(mu, tiny)))  # beta: 1 for the first terms of all, else 0
                    slip[first + k] = was + taken * (mu * np.sqrt(utx * utx + uty * uty + utz * utz) - was)
                if projects:
                    px, py, pz = impulse[j], impulse[j + L1], impulse[j + L2]
                    if sweep:  # from here on p is the extrapolated impulse; the velocities are extrapolated already
                        lx, ly, lz = px, py, pz
                        px += beta * (lx - last_impulse[j])
                        py += beta * (ly - last_impulse[j + L1])
                        pz += beta * (lz - last_impulse[j + L2])
                        last_impulse[j], last_impulse[j + L1], last_impulse[j + L2] = lx, ly, lz
                    mu, cohesion = rows[i + FRICTION], rows[i + COHESION]
                    un = ux * nx + uy * ny + uz * nz
                    utx, uty, utz = ux - un * nx, uy - un * ny, uz - un * nz
                    pn = px * nx + py * ny + pz * nz
                    if measure:  # the residual's map takes one step for all three directions, and the De Saxcé term
                        un += coulomb * mu * np.sqrt(utx * utx + uty * uty + utz * utz)
                        response_n = response_t = mean
                    lag = one  # the share of De Saxcé's term that is the last sweep's; the rest is this contact's own, at once
                    if sweep:
                        lag = min(one, lagged / max(mu, tiny)) if coulomb > zero else one
                        un += lag * slip[first + k]
                    # the impulse that is best for this contact alone, in the metric of the two responses ...
                    qn = pn + cohesion - un / response_n
                    step_t = one / response_t
                    qx = px - pn * nx - step_t * utx
                    qy = py - pn * ny - step_t * uty
                    qz = pz - pn * nz - step_t * utz
                    qt = np.sqrt(qx * qx + qy * qy + qz * qz)
                    # ... then onto the cone: inside it stays, else it goes to the edge or, below, to the tip
                    edge = (lag * mu * response_t * qt + response_n * qn) / (response_n + lag * mu * mu * response_t)
                    sticks = (qn >= zero) & (mu * qn >= qt)
                    load = max(qn if sticks else edge, zero)
                    keep = min(one, mu * load / max(qt, tiny))
                    dx = (load - cohesion) * nx + keep * qx - px
                    dy = (load - cohesion) * ny + keep * qy - py
                    dz = (load - cohesion) * nz + keep * qz - pz
                    error[k] = (dx * dx + dy * dy + dz * dz) * mean * mean
                    if sweep:
                        px, py, pz = px + dx, py + dy, pz + dz
                        impulse[j], impulse[j + L1], impulse[j + L2] = px, py, pz
                        climb[k] -= (dx * (px - lx) + dy * (py - ly) + dz * (pz - lz)) * response_n
                if moves:
                    va[k], va[k + L1], va[k + L2] = vax - ma * dx, vay - ma * dy, vaz - ma * dz
                    vb[k], vb[k + L1], vb[k + L2] = vbx + mb * dx, vby + mb * dy, vbz + mb * dz
                    if wide:
                        tx, ty, tz = ay * dz - az * dy, az * dx - ax * dz, ax * dy - ay * dx
                        xx, xy, xz, yy, yz, zz = ja[k], ja[k + L1], ja[k + L2], ja[k + L3], ja[k + L4], ja[k + L5]
                        wax -= xx * tx + xy * ty + xz * tz
                        way -= xy * tx + yy * ty + yz * tz
                        waz -= xz * tx + yz * ty + zz * tz
                        tx, ty, tz = by * dz - bz * dy, bz * dx - bx * dz, bx * dy - by * dx
                        xx, xy, xz, yy, yz, zz = jb[k], jb[k + L1], jb[k + L2], jb[k + L3], jb[k + L4], jb[k + L5]
                        wbx += xx * tx + xy * ty + xz * tz
                        wby += xy * tx + yy * ty + yz * tz
                        wbz += xz * tx + yz * ty + zz * tz
                    else:
                        tx, ty, tz = ny * dz - nz * dy, nz * dx - nx * dz, nx * dy - ny * dx
                        wax, way, waz = wax - ia * ra * tx, way - ia * ra * ty, waz - ia * ra * tz
                        wbx, wby, wbz = wbx - ib * rb * tx, wby - ib * rb * ty, wbz - ib * rb * tz
                if rolling and apply:
                    ex, ey, ez = values[x + L3], values[x + L4], values[x + L5]
                if rolling and projects:
                    # rolling and spinning impulses: onto the disc and the segment that the normal impulse allows
                    roll, spin = arms[first * u64(2) + k] * load, arms[first * u64(2) + k + L1] * load
                    ox, oy, oz = torque[j], torque[j + L1], torque[j + L2]
                    if sweep:
                        lx, ly, lz = ox, oy, oz
                        ox += beta * (lx - last_torque[j])
                        oy += beta * (ly - last_torque[j + L1])
                        oz += beta * (lz - last_torque[j + L2])
                        last_torque[j], last_torque[j + L1], last_torque[j + L2] = lx, ly, lz
                    rx, ry, rz = ox - (wbx - wax) / twist, oy - (wby - way) / twist, oz - (wbz - waz) / twist
                    rn = rx * nx + ry * ny + rz * nz
                    rx, ry, rz = rx - rn * nx, ry - rn * ny, rz - rn * nz
                    rt = np.sqrt(rx * rx + ry * ry + rz * rz)
                    keep = min(one, roll / max(rt, tiny))
                    rn = max(-spin, min(spin, rn))
                    ex, ey, ez = rn * nx + keep * rx - ox, rn * ny + keep * ry - oy, rn * nz + keep * rz - oz
                    # an angular velocity; the ratio of the two responses makes a speed of it
                    error[k] += (ex * ex + ey * ey + ez * ez) * twist * mean
                    if sweep:
                        ox, oy, oz = ox + ex, oy + ey, oz + ez
                        torque[j], torque[j + L1], torque[j + L2] = ox, oy, oz
                        climb[k] -= (ex * (ox - lx) + ey * (oy - ly) + ez * (oz - lz)) * twist
                if rolling and moves:
                    if wide:
                        xx, xy, xz, yy, yz, zz = ja[k], ja[k + L1], ja[k + L2], ja[k + L3], ja[k + L4], ja[k + L5]
                        wax -= xx * ex + xy * ey + xz * ez
                        way -= xy * ex + yy * ey + yz * ez
                        waz -= xz * ex + yz * ey + zz * ez
                        xx, xy, xz, yy, yz, zz = jb[k], jb[k + L1], jb[k + L2], jb[k + L3], jb[k + L4], jb[k + L5]
                        wbx += xx * ex + xy * ey + xz * ez
                        wby += xy * ex + yy * ey + yz * ez
                        wbz += xz * ex + yz * ey + zz * ez
                    else:
                        wax, way, waz = wax - ia * ex, way - ia * ey, waz - ia * ez
                        wbx, wby, wbz = wbx + ib * ex, wby + ib * ey, wbz + ib * ez
                if moves:
                    va[k + L3], va[k + L4], va[k + L5] = wax, way, waz
                    vb[k + L3], vb[k + L4], vb[k + L5] = wbx, wby, wbz
            if projects:
                for lane in range(WIDTH):
                    tile_worst = max(tile_worst, error[lane])
                    if measure:
                        tile_total += error[lane]
            if moves:
                for lane in range(WIDTH):
                    # immovable bodies are shared by all tiles: they are read, never written
                    if rows[origin + block * block_size + u64(lane) + MASS_A] > zero:
                        scatter(va, lane, velocity, body_a[first + u64(lane)])
                    if rows[origin + block * block_size + u64(lane) + MASS_B] > zero:
                        scatter(vb, lane, velocity, body_b[first + u64(lane)])
        if sweep:
            for lane in range(WIDTH):
                tile_total += climb[lane]
        return tile_worst, tile_total

    return work


@njit(fastmath=SAFE_MATH, **INNER)
def carry_chunk(chunk, velocity, last, beta):
    """Velocities are affine in the impulses, so they are extrapolated with the same beta."""
    for k in range(u64(chunk * STRETCH), u64(min((chunk + 1) * STRETCH, velocity.size))):
        v = velocity[k]
        velocity[k] = v + beta * (v - last[k])
        last[k] = v


next_pace = njit(**INNER)(pace)


@njit(**INNER)
def set_pace(momentum):
    """How far the next sweep is carried on."""
    known = momentum[CHANGE], momentum[FIRST], momentum[SHARE], momentum[WILD]
    momentum[AGE], momentum[BETA], momentum[FIRST], momentum[SHARE] = next_pace(momentum[AGE], momentum[UPHILL], momentum[CAP], *known)


@Kernel
def carry_on(velocity, last_velocity, momentum):
    """What a sweep does first, done before it: the velocities are carried on. ``momentum`` says so."""
    set_pace(momentum)
    momentum[CARRIED] = 1.0
    beta = velocity.dtype.type(momentum[BETA])
    for chunk in prange((velocity.size + STRETCH - 1) // STRETCH):
        carry_chunk(np.int64(chunk), velocity, last_velocity, beta)


def fresh_momentum(wild=NEVER):
    """Of the first sweep."""
    momentum = np.zeros(11)
    momentum[AGE], momentum[SHARE], momentum[WILD] = 1.0, 1.0, wild
    return momentum


# What ``run`` refers to; each kernel has its own. They are no variables of an enclosing function: the cache would take two processes'
# compiled functions for different ones, and miss.
ball_tile = wide_tile = ball_slip = wide_slip = None
SWEEP_HERE = BALLS_HERE = WIDE_HERE = False


def run(blocks, unknowns, values, scalars, worst, total, momentum, passes):
    colour_start, tile_order, ball_start, wide_start = blocks.colour_start, blocks.tile_order, blocks.ball_start, blocks.wide_start
    real = blocks.rows.dtype.type
    coulomb, beta = real(scalars.coulomb), real(0)
    velocity, last_velocity = unknowns.velocity, unknowns.last_velocity
    origin = u64(ball_start[-1]) * u64(ROWS_BALL * WIDTH) - u64(ball_start[-1]) * u64(ROWS_WIDE * WIDTH)  # of the wide rows
    done = 0
    while done < passes:
        if SWEEP_HERE:
            if momentum[CARRIED] == 0.0:
                set_pace(momentum)
            beta = real(momentum[BETA])
            if momentum[CARRIED] == 0.0:
                for chunk in prange((velocity.size + STRETCH - 1) // STRETCH):
                    carry_chunk(np.int64(chunk), velocity, last_velocity, beta)
            if coulomb > real(0) and momentum[SWEEPS] % RENEWED == 0.0:
                first_terms = real(1 if momentum[SWEEPS] == 0.0 else 0)
                for index in prange(tile_order.size):
                    tile = tile_order[index]
                    if BALLS_HERE:
                        ball_slip(ball_start[tile], ball_start[tile + 1], u64(0), blocks, unknowns, values, coulomb, first_terms)
                    if WIDE_HERE:
                        wide_slip(wide_start[tile], wide_start[tile + 1], origin, blocks, unknowns, values, coulomb, first_terms)
            momentum[SWEEPS] += 1.0
        for colour in range(colour_start.size - 1):
            for index in prange(colour_start[colour], colour_start[colour + 1]):
                tile = tile_order[index]
                high, sum_ = real(0), real(0)
                if BALLS_HERE:
                    first, last = ball_start[tile], ball_start[tile + 1]
                    high, sum_ = ball_tile(first, last, u64(0), blocks, unknowns, values, coulomb, beta)
                if WIDE_HERE:
                    first, last = wide_start[tile], wide_start[tile + 1]
                    more = wide_tile(first, last, origin, blocks, unknowns, values, coulomb, beta)
                    high, sum_ = max(high, more[0]), sum_ + more[1]
                worst[tile], total[tile] = high, sum_
        done += 1
        if SWEEP_HERE:
            momentum[UPHILL], momentum[CHANGE] = 0.0, 0.0
            for tile in tile_order:
                momentum[UPHILL] += total[tile]
                momentum[CHANGE] = max(momentum[CHANGE], worst[tile])
            momentum[CHANGE] = math.sqrt(momentum[CHANGE])
            if momentum[CHANGE] <= momentum[ENOUGH]:
                break
    return done


def make_kernel(job, balls=True, wide=False, rolling=False, parallel=True):
    """The kernel ``run(blocks, unknowns, values, scalars, worst, total, momentum, passes)`` for one job.

    SWEEP     Gauss-Seidel passes: every contact at once takes the impulse that is best for it alone. Each starts from the last
              one's impulses, carried on by ``momentum`` (AGE to SWEEPS, see ``gravel.formulas``); they end
              early when no contact's velocity changes by more than ``enough``. Returns how many were made. In Coulomb mode De Saxcé's
              terms are renewed before every second pass (SLIP), at the velocities before they are carried on.
    APPLY     velocities change by M^-1 D ``values`` (a body's rows are summed one colour after the other)
    GRADIENT  ``values`` := D^T v + b of each contact
    MEASURE   ``worst`` and ``total`` of each tile := the residual of impulses and velocities, squared

    ``balls``: there are blocks of contacts between balls; ``wide``: there are blocks with arms and inertia of any shape.
    ``rolling``: rolling and spinning friction blocks beside the contacts. ``parallel``: threads take tiles of one colour.
    """
    own = {
        "ball_tile": make_tile(job, False, rolling),
        "wide_tile": make_tile(job, True, rolling),
        "ball_slip": make_tile(SLIP, False, False),
        "wide_slip": make_tile(SLIP, True, False),
        "SWEEP_HERE": job == SWEEP,
        "BALLS_HERE": balls,
        "WIDE_HERE": wide,
    }
    used = ("balls", balls), ("wide", wide), ("rolling", rolling), ("parallel", parallel)
    kernel = types.FunctionType(run.__code__, {**globals(), **own}, run.__name__)
    kernel = named(job, *(word for word, holds in used if holds))(kernel)
    options = {"fastmath": SAFE_MATH, "error_model": "numpy", "nogil": True, "cache": True}
    return njit(parallel=PARALLEL if parallel else False, **options)(kernel)
