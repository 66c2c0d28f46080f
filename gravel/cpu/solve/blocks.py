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

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.cpu.solve.prefetch import prefetch
from gravel.cpu.threads import INNER, PARALLEL, named

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
ROWS_SPHERICAL = 14
# ... or, for any other body: arms, the response to a normal and to a tangential impulse, and the residual's step.
AX, AY, AZ, CX, CY, CZ, RESPONSE_N, RESPONSE_T, ETA, TWIST = LANES[10:20]
ROWS_GENERAL = 20

AHEAD = u64(2)  # how many blocks before its turn the memory is asked for one: 13 ns per contact and sweep become 10

SWEEP, APPLY, GRADIENT, MEASURE = "sweep", "apply", "gradient", "measure"


class Blocks(NamedTuple):
    """A cone problem in block form. Flat arrays, [block][row][lane]."""

    rows: np.ndarray  # constants of each contact, see the offsets above
    body_a: np.ndarray  # index of the velocity row; padding lanes point to an immovable dummy
    body_b: np.ndarray
    rolling: np.ndarray  # [block][2][lane] arms of rolling and spinning friction, m; empty where there is none
    block_start: np.ndarray  # (tiles + 1,) blocks of each tile
    tile_order: np.ndarray  # tiles sorted by colour: those of one colour share no body that can move
    colour_start: np.ndarray  # (tile colours + 1,) ranges of tile_order


class Unknowns(NamedTuple):
    """What the kernels change."""

    impulse: np.ndarray  # [block][3][lane] p, N s
    torque: np.ndarray  # [block][3][lane] rolling and spinning impulse, N m s; empty where there is none
    velocity: np.ndarray  # (bodies * 8,) [v, -, w, -]
    inertia: np.ndarray  # (bodies * 8,) inverse inertia xx xy xz yy yz zz, world frame; empty for spherical bodies


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


def make_kernel(job, general=False, rolling=False, parallel=True):
    """The kernel ``run(blocks, unknowns, values, scalars, worst, squares, passes)`` for one job.

    SWEEP     a Gauss-Seidel pass: every contact at once takes the impulse that is best for it alone
    APPLY     velocities change by M^-1 D ``values`` (a body's rows are summed one colour after the other)
    GRADIENT  ``values`` := D^T v + b of each contact
    MEASURE   ``worst`` and ``squares`` of each tile := the residual of impulses and velocities

    ``general``: arms and inertia of any shape; else every movable body is a ball for the solver.
    ``rolling``: rolling and spinning friction blocks beside the contacts. ``parallel``: threads take tiles of one colour.
    """
    sweep, apply, gradient, measure = (job == name for name in (SWEEP, APPLY, GRADIENT, MEASURE))
    moves = sweep or apply
    rows_of_values = u64(6 if rolling else 3)
    projects = sweep or measure
    rows_per_block = ROWS_GENERAL if general else ROWS_SPHERICAL
    block_size = u64(rows_per_block * WIDTH)

    @njit(parallel=PARALLEL if parallel else False, fastmath=SAFE_MATH, error_model="numpy", nogil=True, cache=True)
    @named(job, *(word for word, used in (("general", general), ("rolling", rolling), ("parallel", parallel)) if used))
    def run(blocks, unknowns, values, scalars, worst, squares, passes):
        rows, body_a, body_b, arms = blocks.rows, blocks.body_a, blocks.body_b, blocks.rolling
        impulse, torque, velocity, inertia = unknowns.impulse, unknowns.torque, unknowns.velocity, unknowns.inertia
        real = rows.dtype.type
        zero, one, tiny, two_thirds = real(0), real(1), real(1e-30), real(2 / 3)
        coulomb = real(scalars.coulomb)
        colour_start, tile_order, block_start = blocks.colour_start, blocks.tile_order, blocks.block_start
        for _ in range(passes):
            for colour in range(colour_start.size - 1):
                for index in prange(colour_start[colour], colour_start[colour + 1]):
                    tile = tile_order[index]
                    va, vb = np.empty(6 * WIDTH, rows.dtype), np.empty(6 * WIDTH, rows.dtype)
                    ja, jb = np.empty(6 * WIDTH, rows.dtype), np.empty(6 * WIDTH, rows.dtype)
                    error = np.empty(WIDTH, rows.dtype)
                    tile_worst, tile_squares = zero, zero
                    for block in range(u64(block_start[tile]), u64(block_start[tile + 1])):
                        first = block * u64(WIDTH)
                        # while this block is worked on, the next ones are asked for: their rows, then their velocities
                        ahead = block + AHEAD
                        for line in range(rows_per_block):
                            prefetch(rows, ahead * block_size + u64(line * WIDTH))
                        for line in range(3):
                            prefetch(impulse, ahead * u64(3 * WIDTH) + u64(line * WIDTH))
                        prefetch(body_a, ahead * u64(WIDTH))
                        prefetch(body_b, ahead * u64(WIDTH))
                        after = min(block + u64(1), u64(block_start[tile + 1]) - u64(1)) * u64(WIDTH)
                        for lane in range(WIDTH):
                            prefetch(velocity, u64(body_a[after + u64(lane)]) * BODY)
                            prefetch(velocity, u64(body_b[after + u64(lane)]) * BODY)
                        for lane in range(WIDTH):
                            gather(velocity, body_a[first + u64(lane)], lane, va)
                            gather(velocity, body_b[first + u64(lane)], lane, vb)
                            if general and moves:
                                gather_inertia(inertia, body_a[first + u64(lane)], lane, ja)
                                gather_inertia(inertia, body_b[first + u64(lane)], lane, jb)
                        for lane in range(WIDTH):
                            k = u64(lane)
                            i = block * block_size + k
                            j = first * u64(3) + k
                            nx, ny, nz = rows[i + NX], rows[i + NY], rows[i + NZ]
                            ma, mb = rows[i + MASS_A], rows[i + MASS_B]
                            vax, vay, vaz = va[k], va[k + L1], va[k + L2]
                            vbx, vby, vbz = vb[k], vb[k + L1], vb[k + L2]
                            wax, way, waz = va[k + L3], va[k + L4], va[k + L5]
                            wbx, wby, wbz = vb[k + L3], vb[k + L4], vb[k + L5]
                            # the relative velocity with its bias, and how it responds to a normal and a tangential impulse
                            ux, uy, uz = vbx - vax + rows[i + BX], vby - vay + rows[i + BY], vbz - vaz + rows[i + BZ]
                            if general:
                                ax, ay, az, bx, by, bz = rows[i + AX], rows[i + AY], rows[i + AZ], rows[i + CX], rows[i + CY], rows[i + CZ]
                                ux += (wby * bz - wbz * by) - (way * az - waz * ay)
                                uy += (wbz * bx - wbx * bz) - (waz * ax - wax * az)
                                uz += (wbx * by - wby * bx) - (wax * ay - way * ax)
                                response_n, response_t, eta = rows[i + RESPONSE_N], rows[i + RESPONSE_T], rows[i + ETA]
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
                                eta = one / (response_n + two_thirds * turn)
                                twist = max(ia + ib, tiny)
                            x = first * rows_of_values + k
                            if gradient:
                                values[x], values[x + L1], values[x + L2] = ux, uy, uz
                                if rolling:
                                    values[x + L3], values[x + L4], values[x + L5] = wbx - wax, wby - way, wbz - waz
                            if apply:
                                dx, dy, dz = values[x], values[x + L1], values[x + L2]
                            if projects:
                                px, py, pz = impulse[j], impulse[j + L1], impulse[j + L2]
                                mu, cohesion = rows[i + FRICTION], rows[i + COHESION]
                                un = ux * nx + uy * ny + uz * nz
                                utx, uty, utz = ux - un * nx, uy - un * ny, uz - un * nz
                                un += coulomb * mu * np.sqrt(utx * utx + uty * uty + utz * utz)
                                pn = px * nx + py * ny + pz * nz
                                if measure:  # the residual's map takes one step for all three directions
                                    response_n = one / eta
                                    response_t = response_n
                                # the impulse that is best for this contact alone, in the metric of the two responses ...
                                qn = pn + cohesion - un / response_n
                                step_t = one / response_t
                                qx = px - pn * nx - step_t * utx
                                qy = py - pn * ny - step_t * uty
                                qz = pz - pn * nz - step_t * utz
                                qt = np.sqrt(qx * qx + qy * qy + qz * qz)
                                # ... then onto the cone: inside it stays, else it goes to the edge or, below, to the tip
                                edge = (mu * response_t * qt + response_n * qn) / (response_n + mu * mu * response_t)
                                sticks = (qn >= zero) & (mu * qn >= qt)
                                load = qn if sticks else max(edge, zero)
                                keep = one if sticks else mu * load / max(qt, tiny)
                                dx = (load - cohesion) * nx + keep * qx - px
                                dy = (load - cohesion) * ny + keep * qy - py
                                dz = (load - cohesion) * nz + keep * qz - pz
                                if sweep:
                                    impulse[j], impulse[j + L1], impulse[j + L2] = px + dx, py + dy, pz + dz
                                if measure:
                                    error[k] = (dx * dx + dy * dy + dz * dz) * response_n * response_n
                            if moves:
                                va[k], va[k + L1], va[k + L2] = vax - ma * dx, vay - ma * dy, vaz - ma * dz
                                vb[k], vb[k + L1], vb[k + L2] = vbx + mb * dx, vby + mb * dy, vbz + mb * dz
                                if general:
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
                                rx, ry, rz = ox - (wbx - wax) / twist, oy - (wby - way) / twist, oz - (wbz - waz) / twist
                                rn = rx * nx + ry * ny + rz * nz
                                rx, ry, rz = rx - rn * nx, ry - rn * ny, rz - rn * nz
                                rt = np.sqrt(rx * rx + ry * ry + rz * rz)
                                keep = min(one, roll / max(rt, tiny))
                                rn = max(-spin, min(spin, rn))
                                ex, ey, ez = rn * nx + keep * rx - ox, rn * ny + keep * ry - oy, rn * nz + keep * rz - oz
                                if sweep:
                                    torque[j], torque[j + L1], torque[j + L2] = ox + ex, oy + ey, oz + ez
                                if measure:  # an angular velocity; the ratio of the two responses makes a speed of it
                                    error[k] += (ex * ex + ey * ey + ez * ez) * twist * response_n
                            if rolling and moves:
                                if general:
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
                        if measure:
                            for lane in range(WIDTH):
                                tile_worst = max(tile_worst, error[lane])
                                tile_squares += error[lane]
                        if moves:
                            for lane in range(WIDTH):
                                # immovable bodies are shared by all tiles: they are read, never written
                                if rows[block * block_size + u64(lane) + MASS_A] > zero:
                                    scatter(va, lane, velocity, body_a[first + u64(lane)])
                                if rows[block * block_size + u64(lane) + MASS_B] > zero:
                                    scatter(vb, lane, velocity, body_b[first + u64(lane)])
                    if measure:
                        worst[tile] = np.sqrt(tile_worst)
                        squares[tile] = tile_squares

    return run
