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
from gravel.formulas import cones, contact_laws, momentum, responses
from gravel.formulas.momentum import NEVER, RENEWED
from gravel.host.formulas import FORMS, LANE_FORMS, SAFE_MATH
from gravel.host.threads import ALLOCATING, INNER, PARALLEL, Kernel, named

_cones, _laws, _responses = (LANE_FORMS.of(module) for module in (cones, contact_laws, responses))
best_impulse, best_torque = _cones.best_impulse, _cones.best_torque
lagged_share, renewed_slip, sliding_speed = _laws.lagged_share, _laws.renewed_slip, _laws.sliding_speed
ball_responses, turned = _responses.ball_responses, _responses.turned
next_pace = FORMS.of(momentum).nesterov_step

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
ROWS_GENERAL = 20

STRETCH = 1 << 9  # numbers of velocities that are carried on together, or left alone
SPARSE = 4  # times as many bodies as places of contacts make these few
AHEAD = u64(2)  # how many blocks before its turn the memory is asked for one: 13 ns per contact and sweep become 10

SWEEP, APPLY, GRADIENT, MEASURE, DE_SAXCE = "sweep", "apply", "gradient", "measure", "de_saxce"
AGE, ASCENT, MAX_MOMENTUM, SWEEP_TOLERANCE, BETA, CHANGE, FIRST, SHARE, DIVERGENCE_RATIO, CARRIED, SWEEPS = range(11)  # of the last sweep


class Blocks(NamedTuple):
    """A cone problem in block form. Flat arrays, [block][row][lane]; the balls' blocks come first, then the general ones."""

    rows: np.ndarray  # constants of each contact, see the offsets above
    body_a: np.ndarray  # index of the velocity row; padding lanes point to an immovable dummy
    body_b: np.ndarray
    rolling: np.ndarray  # [block][2][lane] arms of rolling and spinning friction, m; empty where there is none
    ball_start: np.ndarray  # (tiles + 1,) balls' blocks of each tile
    general_start: np.ndarray  # (tiles + 1,) and its general ones, numbered after all of the balls'
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
    de_saxce: np.ndarray  # [block][lane] mu |u_t| as of its last update, m/s: De Saxcé's term; zero in the cone model


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
    return balls * (ROWS_BALL * WIDTH) + (block - balls) * (ROWS_GENERAL * WIDTH)


row_offset = njit(**INNER)(rows_before)


# --- stages of the work on one block; each is inlined into it
@njit(**INNER)
def ask_for_rows(block, origin, size, rows, body_a, body_b):
    """While a block is worked on, the rows of one of the next are asked for."""
    ahead = block + AHEAD
    for line in range(size // u64(WIDTH)):
        prefetch(rows, origin + ahead * size + u64(line * WIDTH))
    prefetch(body_a, ahead * u64(WIDTH))
    prefetch(body_b, ahead * u64(WIDTH))


@njit(**INNER)
def ask_for_impulses(block, impulse):
    for line in range(3):
        prefetch(impulse, (block + AHEAD) * u64(3 * WIDTH) + u64(line * WIDTH))


@njit(**INNER)
def ask_for_velocities(first, velocity, body_a, body_b):
    """Those of the block whose lanes begin there."""
    for lane in range(WIDTH):
        prefetch(velocity, u64(body_a[first + u64(lane)]) * BODY)
        prefetch(velocity, u64(body_b[first + u64(lane)]) * BODY)


@njit(**INNER)
def gather_block(first, velocity, body_a, body_b, va, vb):
    for lane in range(WIDTH):
        gather(velocity, body_a[first + u64(lane)], lane, va)
        gather(velocity, body_b[first + u64(lane)], lane, vb)


@njit(**INNER)
def gather_inertias(first, inertia, body_a, body_b, ja, jb):
    for lane in range(WIDTH):
        gather_inertia(inertia, body_a[first + u64(lane)], lane, ja)
        gather_inertia(inertia, body_b[first + u64(lane)], lane, jb)


@njit(fastmath=SAFE_MATH, **INNER)
def largest(start, lanes):
    """The largest of a number and those of the lanes."""
    for lane in range(WIDTH):
        start = max(start, lanes[lane])
    return start


@njit(fastmath=SAFE_MATH, **INNER)
def sum_from(start, lanes):
    for lane in range(WIDTH):
        start += lanes[lane]
    return start


@njit(**INNER)
def scatter_block(first, masses, rows, body_a, body_b, va, vb, velocity):
    """Immovable bodies are shared by all tiles: they are read, never written. ``masses``: where the inverse masses of a stand."""
    zero = rows.dtype.type(0)
    for lane in range(WIDTH):
        if rows[masses + u64(lane)] > zero:
            scatter(va, lane, velocity, body_a[first + u64(lane)])
        if rows[masses + (MASS_B - MASS_A) + u64(lane)] > zero:
            scatter(vb, lane, velocity, body_b[first + u64(lane)])


@njit(fastmath=SAFE_MATH, **INNER)
def three(rows, k):
    """The vector of a lane."""
    return rows[k], rows[k + L1], rows[k + L2]


@njit(fastmath=SAFE_MATH, **INNER)
def put(rows, k, p):
    rows[k], rows[k + L1], rows[k + L2] = p


@njit(fastmath=SAFE_MATH, **INNER)
def plus(p, q):
    return p[0] + q[0], p[1] + q[1], p[2] + q[2]


@njit(fastmath=SAFE_MATH, **INNER)
def minus(p, q):
    return p[0] - q[0], p[1] - q[1], p[2] - q[2]


@njit(fastmath=SAFE_MATH, **INNER)
def times(factor, p):
    return factor * p[0], factor * p[1], factor * p[2]


@njit(fastmath=SAFE_MATH, **INNER)
def cross(p, q):
    return p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]


@njit(fastmath=SAFE_MATH, **INNER)
def dot(p, q):
    return p[0] * q[0] + p[1] * q[1] + p[2] * q[2]


@njit(fastmath=SAFE_MATH, **INNER)
def answer_of_balls(rows, i, va, wa, vb, wb):
    """(relative velocity with bias, normal, tangential and mean response, twist) of balls: their arms lie along the normal."""
    arm_a, arm_b, spin_a, spin_b = rows[i + ARM_A], rows[i + ARM_B], rows[i + SPIN_A], rows[i + SPIN_B]
    u = minus(plus(minus(vb, va), three(rows, i + BX)), cross(plus(times(arm_a, wa), times(arm_b, wb)), three(rows, i + NX)))
    response_n, response_t, mean, twist = ball_responses(rows[i + MASS_A], rows[i + MASS_B], arm_a, arm_b, spin_a, spin_b)
    return u, response_n, response_t, mean, twist


@njit(fastmath=SAFE_MATH, **INNER)
def answer_of_any(rows, i, va, wa, vb, wb):
    """The same of any bodies."""
    turning = minus(cross(wb, three(rows, i + CX)), cross(wa, three(rows, i + AX)))
    u = plus(plus(minus(vb, va), three(rows, i + BX)), turning)
    return u, rows[i + RESPONSE_N], rows[i + RESPONSE_T], rows.dtype.type(1) / rows[i + ETA], rows[i + TWIST]


@njit(fastmath=SAFE_MATH, **INNER)
def turn_balls(rows, i, wa, wb, d):
    """Angular velocities after impulse d on b."""
    t = cross(three(rows, i + NX), d)
    wa = minus(wa, times(rows[i + SPIN_A] * rows[i + ARM_A], t))
    return wa, minus(wb, times(rows[i + SPIN_B] * rows[i + ARM_B], t))


@njit(fastmath=SAFE_MATH, **INNER)
def turn_any(inertia_a, inertia_b, k, wa, wb, torque_a, torque_b):
    """Angular velocities after a torque impulse on b and the opposite of one on a."""
    ja, jb = three(inertia_a, k) + three(inertia_a, k + L3), three(inertia_b, k) + three(inertia_b, k + L3)
    return minus(wa, turned(ja, *torque_a)), plus(wb, turned(jb, *torque_b))


@njit(fastmath=SAFE_MATH, **INNER)
def carried_on(values, last_values, k, beta):
    """(vector of the last sweep, the same carried on by momentum); the former is what the next sweep takes for the last one."""
    last = three(values, k)
    p = plus(last, times(beta, minus(last, three(last_values, k))))
    put(last_values, k, last)
    return last, p


# What ``tile_work`` refers to; each job has its own, see ``make_tile``.
SWEEPS_HERE = APPLIES_HERE = GIVES_GRADIENT = MEASURES_HERE = RENEWS_HERE = MOVES_HERE = PROJECTS_HERE = WIDE = ROLLING = False


def tile_work(first_block, last_block, origin, blocks, unknowns, values, coulomb, beta):
    """One tile's blocks of one kind; returns what the tile adds to ``worst`` and ``total``. See ``make_kernel``."""
    rows, body_a, body_b, arms = blocks.rows, blocks.body_a, blocks.body_b, blocks.rolling
    impulse, torque, inertia, slips = unknowns.impulse, unknowns.torque, unknowns.inertia, unknowns.de_saxce
    last_impulse, last_torque = unknowns.last_impulse, unknowns.last_torque
    velocity = unknowns.last_velocity if RENEWS_HERE else unknowns.velocity  # the terms: before momentum carried the velocities on
    real, block_size, value_rows = rows.dtype.type, u64((ROWS_GENERAL if WIDE else ROWS_BALL) * WIDTH), u64(6 if ROLLING else 3)
    zero, one, worst, total = real(0), real(1), real(0), real(0)
    va, vb = np.empty(6 * WIDTH, rows.dtype), np.empty(6 * WIDTH, rows.dtype)
    ja, jb = np.empty(6 * WIDTH, rows.dtype), np.empty(6 * WIDTH, rows.dtype)
    error, climb = np.empty(WIDTH, rows.dtype), np.zeros(WIDTH, rows.dtype)
    for block in range(u64(first_block), u64(last_block)):
        first = block * u64(WIDTH)
        ask_for_rows(block, origin, block_size, rows, body_a, body_b)
        ask_for_impulses(block, impulse)
        if SWEEPS_HERE:
            ask_for_impulses(block, last_impulse)
        ask_for_velocities(min(block + u64(1), u64(last_block) - u64(1)) * u64(WIDTH), velocity, body_a, body_b)
        gather_block(first, velocity, body_a, body_b, va, vb)
        if WIDE and MOVES_HERE:
            gather_inertias(first, inertia, body_a, body_b, ja, jb)
        for lane in range(WIDTH):
            k = u64(lane)
            i, j, x = origin + block * block_size + k, first * u64(3) + k, first * value_rows + k
            n, v_a, w_a, v_b, w_b = three(rows, i + NX), three(va, k), three(va, k + L3), three(vb, k), three(vb, k + L3)
            if WIDE:
                u, response_n, response_t, mean, twist = answer_of_any(rows, i, v_a, w_a, v_b, w_b)
            else:
                u, response_n, response_t, mean, twist = answer_of_balls(rows, i, v_a, w_a, v_b, w_b)
            if GIVES_GRADIENT:
                put(values, x, u)
                if ROLLING:
                    put(values, x + L3, minus(w_b, w_a))
            mu = rows[i + FRICTION]
            if RENEWS_HERE:  # beta: 1 for the first terms of all, else 0
                slips[first + k] = renewed_slip(slips[first + k], mu * sliding_speed(u, n), max(beta, lagged_share(mu)))
            if APPLIES_HERE:
                d = three(values, x)
            if PROJECTS_HERE:
                if SWEEPS_HERE:  # p is carried on, as the velocities are already
                    last, p = carried_on(impulse, last_impulse, j, beta)
                    lag = lagged_share(mu) if coulomb > zero else one
                    de_saxce = lag * slips[first + k]
                else:  # the residual's map takes one step for all three directions, and the whole De Saxcé term
                    p, lag, de_saxce, response_n, response_t = three(impulse, j), one, coulomb * mu * sliding_speed(u, n), mean, mean
                px, py, pz, load = best_impulse(p, u, n, mu, rows[i + COHESION], de_saxce, response_n, response_t, lag)
                d = minus((px, py, pz), p)
                error[k] = dot(d, d) * mean * mean
                if SWEEPS_HERE:
                    p = plus(p, d)
                    put(impulse, j, p)
                    climb[k] -= dot(d, minus(p, last)) * response_n
            if MOVES_HERE:
                put(va, k, minus(v_a, times(rows[i + MASS_A], d)))
                put(vb, k, plus(v_b, times(rows[i + MASS_B], d)))
                if WIDE:
                    w_a, w_b = turn_any(ja, jb, k, w_a, w_b, cross(three(rows, i + AX), d), cross(three(rows, i + CX), d))
                else:
                    w_a, w_b = turn_balls(rows, i, w_a, w_b, d)
            if ROLLING and APPLIES_HERE:
                e = three(values, x + L3)
            if ROLLING and PROJECTS_HERE:
                at = first * u64(2) + k
                if SWEEPS_HERE:
                    last, o = carried_on(torque, last_torque, j, beta)
                else:
                    o = three(torque, j)
                e = minus(best_torque(o, minus(w_b, w_a), n, arms[at] * load, arms[at + L1] * load, twist), o)
                # an angular velocity; the ratio of the two responses makes a speed of it
                error[k] += dot(e, e) * twist * mean
                if SWEEPS_HERE:
                    o = plus(o, e)
                    put(torque, j, o)
                    climb[k] -= dot(e, minus(o, last)) * twist
            if ROLLING and MOVES_HERE:
                if WIDE:
                    w_a, w_b = turn_any(ja, jb, k, w_a, w_b, e, e)
                else:
                    w_a, w_b = minus(w_a, times(rows[i + SPIN_A], e)), plus(w_b, times(rows[i + SPIN_B], e))
            if MOVES_HERE:
                put(va, k + L3, w_a)
                put(vb, k + L3, w_b)
        if PROJECTS_HERE:
            worst = largest(worst, error)
        if MEASURES_HERE:
            total = sum_from(total, error)
        if MOVES_HERE:
            scatter_block(first, origin + block * block_size + MASS_A, rows, body_a, body_b, va, vb, velocity)
    return worst, sum_from(total, climb) if SWEEPS_HERE else total


def make_tile(job, general, rolling):
    """``tile_work`` for one job and kind of blocks."""
    own = {
        "SWEEPS_HERE": job == SWEEP,
        "APPLIES_HERE": job == APPLY,
        "GIVES_GRADIENT": job == GRADIENT,
        "MEASURES_HERE": job == MEASURE,
        "RENEWS_HERE": job == DE_SAXCE,
        "MOVES_HERE": job in (SWEEP, APPLY),
        "PROJECTS_HERE": job in (SWEEP, MEASURE),
        "WIDE": general,
        "ROLLING": rolling,
    }
    work = types.FunctionType(tile_work.__code__, {**globals(), **own}, tile_work.__name__)
    work = named(job, "general" if general else "ball", *(("rolling",) if rolling else ()))(work)
    return njit(fastmath=SAFE_MATH, **ALLOCATING)(work)


@njit(fastmath=SAFE_MATH, **INNER)
def carry_chunk(chunk, velocity, last, beta):
    """Velocities are affine in the impulses, so they are extrapolated with the same beta."""
    for k in range(u64(chunk * STRETCH), u64(min((chunk + 1) * STRETCH, velocity.size))):
        v = velocity[k]
        velocity[k] = v + beta * (v - last[k])
        last[k] = v


@njit(**ALLOCATING)
def stretches_at_work(blocks, size):
    """Which stretches of the velocities hold bodies that contacts act on; all of them, unless contacts are few. The others do not change
    and need not be carried on: in a gas that would take longer than all else."""
    stretches = (size + STRETCH - 1) // STRETCH
    if SPARSE * blocks.body_a.size > size // 8:
        return np.ones(stretches, np.bool_)
    at_work = np.zeros(stretches, np.bool_)
    for k in range(blocks.body_a.size):
        at_work[u64(blocks.body_a[k]) * u64(8) // u64(STRETCH)] = True
        at_work[u64(blocks.body_b[k]) * u64(8) // u64(STRETCH)] = True
    return at_work


@njit(**INNER)
def set_nesterov_step(momentum):
    """How far the next sweep is carried on."""
    known = momentum[CHANGE], momentum[FIRST], momentum[SHARE], momentum[DIVERGENCE_RATIO]
    momentum[AGE], momentum[BETA], momentum[FIRST], momentum[SHARE] = next_pace(
        momentum[AGE], momentum[ASCENT], momentum[MAX_MOMENTUM], *known
    )


@Kernel
def carry_on(velocity, last_velocity, momentum):
    """What a sweep does first, done before it: the velocities are carried on. ``momentum`` says so."""
    set_nesterov_step(momentum)
    momentum[CARRIED] = 1.0
    beta = velocity.dtype.type(momentum[BETA])
    for chunk in prange((velocity.size + STRETCH - 1) // STRETCH):
        carry_chunk(np.int64(chunk), velocity, last_velocity, beta)


def fresh_momentum(divergence_ratio=NEVER):
    """Of the first sweep."""
    momentum = np.zeros(11)
    momentum[AGE], momentum[SHARE], momentum[DIVERGENCE_RATIO] = 1.0, 1.0, divergence_ratio
    return momentum


# What ``run`` refers to; each kernel has its own. They are no variables of an enclosing function: the cache would take two processes'
# compiled functions for different ones, and miss.
ball_tile = general_tile = ball_de_saxce = general_de_saxce = None
SWEEP_HERE = BALLS_HERE = GENERAL_HERE = False


def run(blocks, unknowns, values, scalars, worst, total, momentum, iterations):
    colour_start, tile_order, ball_start, general_start = blocks.colour_start, blocks.tile_order, blocks.ball_start, blocks.general_start
    real = blocks.rows.dtype.type
    coulomb, beta = real(scalars.coulomb), real(0)
    velocity, last_velocity = unknowns.velocity, unknowns.last_velocity
    origin = u64(ball_start[-1]) * u64(ROWS_BALL * WIDTH) - u64(ball_start[-1]) * u64(ROWS_GENERAL * WIDTH)  # of the wide rows
    at_work = stretches_at_work(blocks, velocity.size if SWEEP_HERE else 0)
    done = 0
    while done < iterations:
        if SWEEP_HERE:
            if momentum[CARRIED] == 0.0:
                set_nesterov_step(momentum)
            beta = real(momentum[BETA])
            if momentum[CARRIED] == 0.0:
                for chunk in prange(at_work.size):
                    if at_work[chunk]:
                        carry_chunk(np.int64(chunk), velocity, last_velocity, beta)
            if coulomb > real(0) and momentum[SWEEPS] % RENEWED == 0.0:
                first_terms = real(1 if momentum[SWEEPS] == 0.0 else 0)
                for index in prange(tile_order.size):
                    tile = tile_order[index]
                    if BALLS_HERE:
                        ball_de_saxce(ball_start[tile], ball_start[tile + 1], u64(0), blocks, unknowns, values, coulomb, first_terms)
                    if GENERAL_HERE:
                        general_de_saxce(
                            general_start[tile], general_start[tile + 1], origin, blocks, unknowns, values, coulomb, first_terms
                        )
            momentum[SWEEPS] += 1.0
        for colour in range(colour_start.size - 1):
            for index in prange(colour_start[colour], colour_start[colour + 1]):
                tile = tile_order[index]
                high, sum_ = real(0), real(0)
                if BALLS_HERE:
                    first, last = ball_start[tile], ball_start[tile + 1]
                    high, sum_ = ball_tile(first, last, u64(0), blocks, unknowns, values, coulomb, beta)
                if GENERAL_HERE:
                    first, last = general_start[tile], general_start[tile + 1]
                    more = general_tile(first, last, origin, blocks, unknowns, values, coulomb, beta)
                    high, sum_ = max(high, more[0]), sum_ + more[1]
                worst[tile], total[tile] = high, sum_
        done += 1
        if SWEEP_HERE:
            momentum[ASCENT], momentum[CHANGE] = 0.0, 0.0
            for tile in tile_order:
                momentum[ASCENT] += total[tile]
                momentum[CHANGE] = max(momentum[CHANGE], worst[tile])
            momentum[CHANGE] = math.sqrt(momentum[CHANGE])
            if momentum[CHANGE] <= momentum[SWEEP_TOLERANCE]:
                break
    return done


def make_kernel(job, balls=True, general=False, rolling=False, parallel=True):
    """The kernel ``run(blocks, unknowns, values, scalars, worst, total, momentum, iterations)`` for one job.

    SWEEP     Gauss-Seidel passes: every contact at once takes the impulse that is best for it alone. Each starts from the last
              one's impulses, carried on by ``momentum`` (AGE to SWEEPS, see ``gravel.formulas``); they end
              early when no contact's velocity changes by more than ``tolerance``. Returns how many were made. In Coulomb mode De Saxcé's
              terms are renewed before every second pass (SLIP), at the velocities before they are carried on.
    APPLY     velocities change by M^-1 D ``values`` (a body's rows are summed one colour after the other)
    GRADIENT  ``values`` := D^T v + b of each contact
    MEASURE   ``worst`` and ``total`` of each tile := the residual of impulses and velocities, squared

    ``balls``: there are blocks of contacts between balls; ``general``: there are blocks with arms and inertia of any shape.
    ``rolling``: rolling and spinning friction blocks beside the contacts. ``parallel``: threads take tiles of one colour.
    """
    own = {
        "ball_tile": make_tile(job, False, rolling),
        "general_tile": make_tile(job, True, rolling),
        "ball_de_saxce": make_tile(DE_SAXCE, False, False),
        "general_de_saxce": make_tile(DE_SAXCE, True, False),
        "SWEEP_HERE": job == SWEEP,
        "BALLS_HERE": balls,
        "GENERAL_HERE": general,
    }
    used = ("balls", balls), ("general", general), ("rolling", rolling), ("parallel", parallel)
    kernel = types.FunctionType(run.__code__, {**globals(), **own}, run.__name__)
    kernel = named(job, *(word for word, holds in used if holds))(kernel)
    options = {"fastmath": SAFE_MATH, "error_model": "numpy", "nogil": True, "cache": True}
    return njit(parallel=PARALLEL if parallel else False, **options)(kernel)
