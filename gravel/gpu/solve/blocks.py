"""The kernels that run over the contacts of a cone problem, as ``gravel.cpu.solve.blocks``: one thread a contact.

SWEEP     the contacts of one colour: each takes the impulse that is best for it alone
APPLY     body by body: velocities change by M^-1 D x, a body's contacts summed in a fixed order (``incidence``)
GRADIENT  values := D^T v + b of each contact
MEASURE   the residual of impulses and velocities, squared
SLIP      De Saxcé's terms mu |u_t| at the velocities before momentum carried them on, before every second sweep in Coulomb mode

Whether every body is a ball for the solver, and whether there is rolling friction, are constants of each kernel (``kernels_for``). What
workers find (sums, maxima) each keeps for itself; ``reduce`` adds it up in a fixed order.
"""

import functools
from types import SimpleNamespace

import warp as wp

from gravel.formulas import cones, contact_laws, momentum, responses
from gravel.gpu.formulas import FORMS
from gravel.gpu.solve.assemble import inertia_of
from gravel.gpu.structs import Rows, Unknowns, vec8

wp.set_module_options({"enable_backward": False, "max_unroll": 0})
AGE, ASCENT, MAX_MOMENTUM, SWEEP_TOLERANCE, BETA, CHANGE, FIRST, SHARE, DIVERGENCE_RATIO, GOES_ON, SWEEPS = range(11)  # of the last sweep
RENEWED = wp.constant(momentum.RENEWED)
nesterov_step, ball_responses = FORMS.of(momentum).nesterov_step, FORMS.of(responses).ball_responses
_cones, _laws = FORMS.of(cones), FORMS.of(contact_laws)
best_impulse, best_torque, project, project_torque = _cones.best_impulse, _cones.best_torque, _cones.project, _cones.project_torque
lagged_share, renewed_slip, sliding_speed = _laws.lagged_share, _laws.renewed_slip, _laws.sliding_speed


@wp.struct
class Answer:
    """What a contact makes of the relative velocity of its bodies."""

    u: wp.vec3  # with its bias
    response_n: float
    response_t: float
    mean: float
    twist: float


@wp.func
def onto_cone(q: wp.vec3, n: wp.vec3, mu: float, cohesion: float):
    """(nearest impulse in the friction cone, its load)"""
    x, y, z, load = project(q, n, mu, cohesion)
    return wp.vec3(x, y, z), load


@wp.func
def torque_within(q: wp.vec3, n: wp.vec3, roll: float, spin: float):
    """The nearest torque impulse within what rolling and spinning friction can bear."""
    x, y, z = project_torque(q, n, roll, spin)
    return wp.vec3(x, y, z)


@wp.func
def linear(v: vec8):
    return wp.vec3(v[0], v[1], v[2])


@wp.func
def angular(v: vec8):
    return wp.vec3(v[4], v[5], v[6])


@wp.func
def changed(v: vec8, dv: wp.vec3, dw: wp.vec3):
    return vec8(v[0] + dv[0], v[1] + dv[1], v[2] + dv[2], v[3], v[4] + dw[0], v[5] + dw[1], v[6] + dw[2], v[7])


# --- functions and kernels for problems of balls or of any bodies, with rolling friction or without
@functools.cache
def answer_of(balls: bool):
    @wp.func
    def answer(rows: Rows, i: int, va: vec8, vb: vec8):
        n, wa, wb = rows.normal[i], angular(va), angular(vb)
        out = Answer()
        u = linear(vb) - linear(va) + rows.bias[i]
        if wp.static(balls):
            mass, ball = rows.mass[i], rows.balls[i]
            u -= wp.cross(ball[0] * wa + ball[1] * wb, n)
            normal, across, mean, twist = ball_responses(mass[0], mass[1], ball[0], ball[1], ball[2], ball[3])
            out.response_n = normal
            out.response_t = across
            out.mean = mean
            out.twist = twist
        else:
            u += wp.cross(wb, rows.arm_b[i]) - wp.cross(wa, rows.arm_a[i])
            response = rows.response[i]
            out.response_n = response[0]
            out.response_t = response[1]
            out.mean = response[2]
            out.twist = response[3]
        out.u = u
        return out

    return answer


@functools.cache
def velocities_after(balls: bool):
    """(of a, of b): their velocity rows after an impulse and a torque impulse at a contact."""

    @wp.func
    def a_after(rows: Rows, unknowns: Unknowns, i: int, v: vec8, p: wp.vec3, q: wp.vec3):
        """Velocity row of a after impulse p and torque impulse q on b, and their opposites on a."""
        if wp.static(balls):
            ball = rows.balls[i]
            return changed(v, -rows.mass[i][0] * p, -ball[2] * (ball[0] * wp.cross(rows.normal[i], p) + q))
        return changed(v, -rows.mass[i][0] * p, -(inertia_of(unknowns.inertia, rows.a[i]) * (wp.cross(rows.arm_a[i], p) + q)))

    @wp.func
    def b_after(rows: Rows, unknowns: Unknowns, i: int, v: vec8, p: wp.vec3, q: wp.vec3):
        if wp.static(balls):
            ball = rows.balls[i]
            return changed(v, rows.mass[i][1] * p, ball[3] * (q - ball[1] * wp.cross(rows.normal[i], p)))
        return changed(v, rows.mass[i][1] * p, inertia_of(unknowns.inertia, rows.b[i]) * (wp.cross(rows.arm_b[i], p) + q))

    return a_after, b_after


@functools.cache
def contact_solver(balls: bool, rolling: bool):
    answer, (a_after, b_after) = answer_of(balls), velocities_after(balls)

    @wp.func
    def solve_contact(rows: Rows, unknowns: Unknowns, i: int, coulomb: float, beta: float):
        """(square of the change, m2/s2, and what it adds to ``ascent``) of the sweep's step at one contact."""
        a, b, n = rows.a[i], rows.b[i], rows.normal[i]
        va, vb = 1.0 * unknowns.velocity[a], 1.0 * unknowns.velocity[b]
        it, mu = answer(rows, i, va, vb), rows.friction[i][0]
        last = 1.0 * unknowns.impulse[i]
        p = last + beta * (last - unknowns.last_impulse[i])  # the velocities are extrapolated already
        unknowns.last_impulse[i] = last
        lag = float(1.0)
        de_saxce = float(0.0)
        if coulomb > 0.0:
            lag = lagged_share(mu)
            de_saxce = lag * unknowns.de_saxce[i]
        x, y, z, load = best_impulse(p, it.u, n, mu, rows.friction[i][1], de_saxce, it.response_n, it.response_t, lag)
        now = wp.vec3(x, y, z)
        d = now - p
        unknowns.impulse[i] = now
        error = wp.dot(d, d) * it.mean * it.mean
        climb = -wp.dot(d, now - last) * it.response_n
        va = a_after(rows, unknowns, i, va, d, wp.vec3())
        vb = b_after(rows, unknowns, i, vb, d, wp.vec3())
        if wp.static(rolling):
            last_torque, arms = 1.0 * unknowns.torque[i], rows.rolling[i]
            o = last_torque + beta * (last_torque - unknowns.last_torque[i])
            unknowns.last_torque[i] = last_torque
            ox, oy, oz = best_torque(o, angular(vb) - angular(va), n, arms[0] * load, arms[1] * load, it.twist)
            e = wp.vec3(ox, oy, oz) - o
            unknowns.torque[i] = o + e
            error += wp.dot(e, e) * it.twist * it.mean  # an angular velocity; the ratio of the two responses makes a speed of it
            climb -= wp.dot(e, o + e - last_torque) * it.twist
            va = a_after(rows, unknowns, i, va, wp.vec3(), e)
            vb = b_after(rows, unknowns, i, vb, wp.vec3(), e)
        if rows.mass[i][0] > 0.0:  # immovable bodies are read by all, never written
            unknowns.velocity[a] = va
        if rows.mass[i][1] > 0.0:
            unknowns.velocity[b] = vb
        return error, climb

    return solve_contact


@functools.cache
def sweep_kernels(balls: bool, rolling: bool) -> SimpleNamespace:
    answer, solve_contact = answer_of(balls), contact_solver(balls, rolling)

    @wp.kernel(module="unique", enable_backward=False)
    def sweep(
        rows: Rows,
        unknowns: Unknowns,
        start: wp.array(dtype=int),
        colour: int,
        workers: int,
        coulomb: float,
        known: wp.array(dtype=float),
        worst: wp.array(dtype=float),
        total: wp.array(dtype=wp.float64),
    ):
        """One colour."""
        t = wp.tid()
        high = float(0.0)
        climb = wp.float64(0.0)
        for i in range(start[colour] + t, start[colour + 1], workers):
            error, ascent = solve_contact(rows, unknowns, i, coulomb, known[BETA])
            high = wp.max(high, error)
            climb += wp.float64(ascent)
        worst[t] = wp.max(worst[t], high)
        total[t] = total[t] + climb

    @wp.kernel(module="unique", enable_backward=False)
    def update_de_saxce(rows: Rows, unknowns: Unknowns, known: wp.array(dtype=float)):
        """De Saxcé's terms, if it is their turn."""
        i = wp.tid()
        if wp.mod(known[SWEEPS], RENEWED) == 1.0:
            it = answer(rows, i, unknowns.last_velocity[rows.a[i]], unknowns.last_velocity[rows.b[i]])
            mu = rows.friction[i][0]
            term = mu * sliding_speed(it.u, rows.normal[i])
            if known[SWEEPS] > 1.0:  # not the first
                term = renewed_slip(unknowns.de_saxce[i], term, lagged_share(mu))
            unknowns.de_saxce[i] = term

    return SimpleNamespace(sweep=sweep, update_de_saxce=update_de_saxce)


@functools.cache
def measure_kernels(balls: bool, rolling: bool) -> SimpleNamespace:
    answer = answer_of(balls)

    @wp.func
    def error_of(rows: Rows, unknowns: Unknowns, i: int, coulomb: float):
        """Square of what one contact's residual is, m2/s2."""
        va, vb, n = unknowns.velocity[rows.a[i]], unknowns.velocity[rows.b[i]], rows.normal[i]
        it, mu, p = answer(rows, i, va, vb), rows.friction[i][0], unknowns.impulse[i]
        u = 1.0 * it.u
        if coulomb > 0.0:
            u += coulomb * mu * sliding_speed(it.u, n) * n
        q, load = onto_cone(p - (1.0 / it.mean) * u, n, mu, rows.friction[i][1])
        error = wp.length_sq(q - p) * it.mean * it.mean
        if wp.static(rolling):
            o, arms = unknowns.torque[i], rows.rolling[i]
            ox, oy, oz = best_torque(o, angular(vb) - angular(va), n, arms[0] * load, arms[1] * load, it.twist)
            e = wp.vec3(ox, oy, oz) - o
            error += wp.dot(e, e) * it.twist * it.mean
        return error

    @wp.kernel(module="unique", enable_backward=False)
    def measure(
        rows: Rows,
        unknowns: Unknowns,
        count: int,
        workers: int,
        coulomb: float,
        worst: wp.array(dtype=float),
        total: wp.array(dtype=wp.float64),
    ):
        t = wp.tid()
        high = float(0.0)
        squares = wp.float64(0.0)
        for i in range(t, count, workers):
            error = error_of(rows, unknowns, i, coulomb)
            high = wp.max(high, error)
            squares += wp.float64(error)
        worst[t] = high
        total[t] = squares

    return SimpleNamespace(measure=measure)


@functools.cache
def vector_kernels(balls: bool, rolling: bool) -> SimpleNamespace:
    """Those of the gradient solvers; sweeps begin with ``apply``."""
    answer, (a_after, b_after) = answer_of(balls), velocities_after(balls)

    @wp.kernel(module="unique", enable_backward=False)
    def gradient(rows: Rows, unknowns: Unknowns, g: wp.array(dtype=wp.vec3), g_torque: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        va, vb = unknowns.velocity[rows.a[i]], unknowns.velocity[rows.b[i]]
        it = answer(rows, i, va, vb)
        g[i] = it.u
        if wp.static(rolling):
            g_torque[i] = angular(vb) - angular(va)

    @wp.kernel(module="unique", enable_backward=False)
    def apply(
        rows: Rows,
        unknowns: Unknowns,
        first: wp.array(dtype=int),
        incidence: wp.array(dtype=int),
        x: wp.array(dtype=wp.vec3),
        x_torque: wp.array(dtype=wp.vec3),
    ):
        """Velocity of each body += M^-1 D x."""
        k = wp.tid()
        v = 1.0 * unknowns.velocity[k]
        for at in range(first[k], first[k + 1]):
            i = incidence[at] >> 1
            q = wp.vec3()
            if wp.static(rolling):
                q = x_torque[i]
            if incidence[at] & 1 == 0:
                v = a_after(rows, unknowns, i, v, x[i], q)
            else:
                v = b_after(rows, unknowns, i, v, x[i], q)
        unknowns.velocity[k] = v

    @wp.kernel(module="unique", enable_backward=False)
    def list_steps(rows: Rows, eta: wp.array(dtype=wp.vec2)):
        """The steps of a contact's impulse and torque impulse."""
        i = wp.tid()
        it = answer(rows, i, vec8(), vec8())
        eta[i] = wp.vec2(1.0 / it.mean, 1.0 / it.twist)

    return SimpleNamespace(gradient=gradient, apply=apply, list_steps=list_steps)


@functools.cache
def kernels_for(balls: bool, rolling: bool) -> SimpleNamespace:
    """All of them, by name."""
    made = (factory(balls, rolling) for factory in (sweep_kernels, measure_kernels, vector_kernels))
    return SimpleNamespace(**{name: kernel for kernels in made for name, kernel in vars(kernels).items()})


@wp.kernel
def set_nesterov_step(known: wp.array(dtype=float)):
    """How far the next sweep is carried on."""
    age, beta, first, share = nesterov_step(
        known[AGE], known[ASCENT], known[MAX_MOMENTUM], known[CHANGE], known[FIRST], known[SHARE], known[DIVERGENCE_RATIO]
    )
    known[AGE] = age
    known[BETA] = beta
    known[FIRST] = first
    known[SHARE] = share
    known[SWEEPS] = known[SWEEPS] + 1.0


@wp.kernel
def carry_on(known: wp.array(dtype=float), velocity: wp.array(dtype=vec8), last: wp.array(dtype=vec8)):
    """Velocities are affine in the impulses, so they are extrapolated with the same beta."""
    i = wp.tid()
    v = 1.0 * velocity[i]
    velocity[i] = v + known[BETA] * (v - last[i])
    last[i] = v


@wp.kernel
def clear(worst: wp.array(dtype=float), total: wp.array(dtype=wp.float64)):
    t = wp.tid()
    worst[t] = 0.0
    total[t] = wp.float64(0.0)


@wp.kernel
def reduce(
    workers: int,
    share: int,
    worst: wp.array(dtype=float),
    total: wp.array(dtype=wp.float64),
    part_worst: wp.array(dtype=float),
    part_total: wp.array(dtype=wp.float64),
):
    """Sums and maxima of as many workers each."""
    t = wp.tid()
    high = float(0.0)
    sum = wp.float64(0.0)
    for k in range(t * share, wp.min((t + 1) * share, workers)):
        high = wp.max(high, worst[k])
        sum += total[k]
    part_worst[t] = high
    part_total[t] = sum


@wp.kernel
def finish_sweep(
    parts: int, worst: wp.array(dtype=float), total: wp.array(dtype=wp.float64), known: wp.array(dtype=float), goes_on: wp.array(dtype=int)
):
    """What the sweep has changed; ``goes_on``: whether another is worth while, and how many were made."""
    high = float(0.0)
    sum = wp.float64(0.0)
    for k in range(parts):
        high = wp.max(high, worst[k])
        sum += total[k]
    known[ASCENT] = float(sum)
    known[CHANGE] = wp.sqrt(high)
    goes_on[1] = goes_on[1] + 1
    goes_on[0] = 0
    if known[CHANGE] > known[SWEEP_TOLERANCE] and goes_on[1] < goes_on[2]:
        goes_on[0] = 1
