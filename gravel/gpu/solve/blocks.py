"""The kernels that run over the contacts of a cone problem, as ``gravel.cpu.solve.blocks``: one thread a contact.

SWEEP     the contacts of one colour: each takes the impulse that is best for it alone
APPLY     body by body: velocities change by M^-1 D x, a body's contacts summed in a fixed order (``incidence``)
GRADIENT  values := D^T v + b of each contact
MEASURE   the residual of impulses and velocities, squared

Whether every body is a ball for the solver, and whether there is rolling friction, are constants of each kernel (``kernels_for``). What
workers find (sums, maxima) each keeps for itself; ``reduce`` adds it up in a fixed order.
"""

import functools
from types import SimpleNamespace

import warp as wp

from gravel.formulas import momentum
from gravel.gpu.formulas import FORMS
from gravel.gpu.solve.assemble import inertia_of
from gravel.gpu.structs import Rows, Unknowns, vec8

wp.set_module_options({"enable_backward": False, "max_unroll": 0})
AGE, UPHILL, CAP, ENOUGH, BETA, CHANGE, FIRST, SHARE, WILD, GOES_ON = range(10)  # what a sweep knows of the last one
TWO_THIRDS, TINY = 2.0 / 3.0, 1e-30
pace = FORMS.of(momentum).pace


@wp.struct
class Contact:
    """What is known of a contact, see ``structs.Rows``."""

    a: int
    b: int
    normal: wp.vec3
    mass: wp.vec2
    ball: wp.vec4
    arm_a: wp.vec3
    arm_b: wp.vec3
    response_n: float
    response_t: float
    mean: float
    twist: float


@wp.func
def onto_cone(q: wp.vec3, n: wp.vec3, mu: float, cohesion: float):
    """(nearest impulse in the friction cone whose tip lies at -cohesion n, its load): the twin of ``gravel.cpu.solve.cones.project``."""
    pn = wp.dot(q, n)
    t = q - pn * n
    pn += cohesion
    pt = wp.length(t)
    load, keep = pn, 1.0
    if pn < 0.0 or mu * pn < pt:
        load = wp.max((mu * pt + pn) / (1.0 + mu * mu), 0.0)
        keep = mu * load / wp.max(pt, TINY)
    return (load - cohesion) * n + keep * t, load


@wp.func
def torque_within(q: wp.vec3, n: wp.vec3, roll: float, spin: float):
    """The nearest torque impulse within what rolling and spinning friction can bear."""
    rn = wp.dot(q, n)
    t = q - rn * n
    return wp.clamp(rn, -spin, spin) * n + wp.min(1.0, roll / wp.max(wp.length(t), TINY)) * t


@wp.func
def linear(v: vec8):
    return wp.vec3(v[0], v[1], v[2])


@wp.func
def angular(v: vec8):
    return wp.vec3(v[4], v[5], v[6])


@wp.func
def changed(v: vec8, dv: wp.vec3, dw: wp.vec3):
    return vec8(v[0] + dv[0], v[1] + dv[1], v[2] + dv[2], v[3], v[4] + dw[0], v[5] + dw[1], v[6] + dw[2], v[7])


@functools.cache
def kernels_for(balls: bool, rolling: bool) -> SimpleNamespace:
    """The kernels for problems of balls or of any bodies, with rolling friction or without."""

    @wp.func
    def read(rows: Rows, i: int):
        """What is known of contact i, once: the compiler must take every write for one that may have changed it."""
        it = Contact()
        it.a = rows.a[i]
        it.b = rows.b[i]
        it.normal = rows.normal[i]
        it.mass = rows.mass[i]
        if wp.static(balls):
            it.ball = rows.balls[i]
            turn = it.ball[0] * it.ball[0] * it.ball[2] + it.ball[1] * it.ball[1] * it.ball[3]
            it.response_n = wp.max(it.mass[0] + it.mass[1], TINY)
            it.response_t = it.response_n + turn
            it.mean = it.response_n + TWO_THIRDS * turn
            it.twist = wp.max(it.ball[2] + it.ball[3], TINY)
        else:
            it.arm_a = rows.arm_a[i]
            it.arm_b = rows.arm_b[i]
            response = rows.response[i]
            it.response_n = response[0]
            it.response_t = response[1]
            it.mean = response[2]
            it.twist = response[3]
        return it

    @wp.func
    def between(it: Contact, bias: wp.vec3, va: vec8, vb: vec8):
        """Velocity of b relative to a at the contact, with the bias."""
        u = linear(vb) - linear(va) + bias
        if wp.static(balls):
            return u - wp.cross(it.ball[0] * angular(va) + it.ball[1] * angular(vb), it.normal)
        return u + wp.cross(angular(vb), it.arm_b) - wp.cross(angular(va), it.arm_a)

    @wp.func
    def a_after(it: Contact, inertia: wp.array2d(dtype=float), v: vec8, p: wp.vec3, q: wp.vec3):
        """Velocity row of a after impulse p and torque impulse q on b, and their opposites on a."""
        if wp.static(balls):
            return changed(v, -it.mass[0] * p, -it.ball[2] * (it.ball[0] * wp.cross(it.normal, p) + q))
        return changed(v, -it.mass[0] * p, -(inertia_of(inertia, it.a) * (wp.cross(it.arm_a, p) + q)))

    @wp.func
    def b_after(it: Contact, inertia: wp.array2d(dtype=float), v: vec8, p: wp.vec3, q: wp.vec3):
        if wp.static(balls):
            return changed(v, it.mass[1] * p, it.ball[3] * (q - it.ball[1] * wp.cross(it.normal, p)))
        return changed(v, it.mass[1] * p, inertia_of(inertia, it.b) * (wp.cross(it.arm_b, p) + q))

    @wp.func
    def solve_contact(rows: Rows, unknowns: Unknowns, i: int, coulomb: float, beta: float):
        """(square of the change, m2/s2, and what it adds to ``uphill``) of the sweep's step at one contact."""
        it, law = read(rows, i), rows.friction[i]
        va, vb = 1.0 * unknowns.velocity[it.a], 1.0 * unknowns.velocity[it.b]
        u, n, mu, cohesion = between(it, rows.bias[i], va, vb), it.normal, law[0], law[1]
        last = 1.0 * unknowns.impulse[i]
        p = last + beta * (last - unknowns.last_impulse[i])  # the velocities are extrapolated already
        un, pn = wp.dot(u, n), wp.dot(p, n)
        # the impulse that is best for this contact alone, in the metric of the two responses ...
        qn = pn + cohesion - un / it.response_n
        q = p - pn * n - (1.0 / it.response_t) * (u - un * n)
        qt = wp.length(q)
        # ... then onto the cone: inside it stays, else it goes to the edge or, below, to the tip
        load = qn
        if coulomb == 0.0 and not (qn >= 0.0 and mu * qn >= qt):
            load = (mu * it.response_t * qt + it.response_n * qn) / (it.response_n + mu * mu * it.response_t)
        load = wp.max(load, 0.0)
        bears = load
        if coulomb > 0.0:  # strong friction answers a growing load by and by, or contacts that push each other never agree
            before = wp.max(wp.dot(last, n) + cohesion, 0.0)
            bears = wp.min(load, before + wp.min(1.0, 0.5 / wp.max(mu, TINY)) * (load - before))
        keep = float(1.0)
        if mu * bears < qt:
            keep = mu * bears / qt
        now = (load - cohesion) * n + keep * q
        d = now - p
        unknowns.last_impulse[i] = last
        unknowns.impulse[i] = now
        error = wp.dot(d, d) * it.mean * it.mean
        climb = -wp.dot(d, now - last) * it.response_n
        va = a_after(it, unknowns.inertia, va, d, wp.vec3())
        vb = b_after(it, unknowns.inertia, vb, d, wp.vec3())
        if wp.static(rolling):
            # rolling and spinning impulses: onto the disc and the segment that the normal impulse allows
            last_torque, arms = 1.0 * unknowns.torque[i], rows.rolling[i]
            o = last_torque + beta * (last_torque - unknowns.last_torque[i])
            unknowns.last_torque[i] = last_torque
            e = torque_within(o - (angular(vb) - angular(va)) / it.twist, n, arms[0] * load, arms[1] * load) - o
            unknowns.torque[i] = o + e
            error += wp.dot(e, e) * it.twist * it.mean  # an angular velocity; the ratio of the two responses makes a speed of it
            climb -= wp.dot(e, o + e - last_torque) * it.twist
            va = a_after(it, unknowns.inertia, va, wp.vec3(), e)
            vb = b_after(it, unknowns.inertia, vb, wp.vec3(), e)
        if it.mass[0] > 0.0:  # immovable bodies are read by all, never written
            unknowns.velocity[it.a] = va
        if it.mass[1] > 0.0:
            unknowns.velocity[it.b] = vb
        return error, climb

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
            error, uphill = solve_contact(rows, unknowns, i, coulomb, known[BETA])
            high = wp.max(high, error)
            climb += wp.float64(uphill)
        worst[t] = wp.max(worst[t], high)
        total[t] = total[t] + climb

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
            it, mu, p = read(rows, i), rows.friction[i][0], unknowns.impulse[i]
            va, vb, n = unknowns.velocity[it.a], unknowns.velocity[it.b], it.normal
            u = between(it, rows.bias[i], va, vb)
            if coulomb > 0.0:
                u += coulomb * mu * wp.length(u - wp.dot(u, n) * n) * n
            q, load = onto_cone(p - (1.0 / it.mean) * u, n, mu, rows.friction[i][1])
            error = wp.length_sq(q - p) * it.mean * it.mean
            if wp.static(rolling):
                o = unknowns.torque[i]
                e = torque_within(o - (angular(vb) - angular(va)) / it.twist, n, rows.rolling[i][0] * load, rows.rolling[i][1] * load) - o
                error += wp.dot(e, e) * it.twist * it.mean
            high = wp.max(high, error)
            squares += wp.float64(error)
        worst[t] = high
        total[t] = squares

    @wp.kernel(module="unique", enable_backward=False)
    def gradient(rows: Rows, unknowns: Unknowns, g: wp.array(dtype=wp.vec3), g_torque: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        it = read(rows, i)
        va, vb = unknowns.velocity[it.a], unknowns.velocity[it.b]
        g[i] = between(it, rows.bias[i], va, vb)
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
                v = a_after(read(rows, i), unknowns.inertia, v, x[i], q)
            else:
                v = b_after(read(rows, i), unknowns.inertia, v, x[i], q)
        unknowns.velocity[k] = v

    @wp.kernel(module="unique", enable_backward=False)
    def list_steps(rows: Rows, eta: wp.array(dtype=wp.vec2)):
        """The steps of a contact's impulse and torque impulse."""
        i = wp.tid()
        if wp.static(balls):
            ra, rb, ia, ib = rows.balls[i][0], rows.balls[i][1], rows.balls[i][2], rows.balls[i][3]
            mass = rows.mass[i][0] + rows.mass[i][1] + TWO_THIRDS * (ra * ra * ia + rb * rb * ib)
            eta[i] = wp.vec2(1.0 / wp.max(mass, TINY), 1.0 / wp.max(ia + ib, TINY))
        else:
            eta[i] = wp.vec2(1.0 / rows.response[i][2], 1.0 / rows.response[i][3])

    return SimpleNamespace(sweep=sweep, measure=measure, gradient=gradient, apply=apply, list_steps=list_steps)


@wp.kernel
def set_pace(known: wp.array(dtype=float)):
    """How far the next sweep is carried on."""
    age, beta, first, share = pace(known[AGE], known[UPHILL], known[CAP], known[CHANGE], known[FIRST], known[SHARE], known[WILD])
    known[AGE] = age
    known[BETA] = beta
    known[FIRST] = first
    known[SHARE] = share


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
    known[UPHILL] = float(sum)
    known[CHANGE] = wp.sqrt(high)
    goes_on[1] = goes_on[1] + 1
    goes_on[0] = 0
    if known[CHANGE] > known[ENOUGH] and goes_on[1] < goes_on[2]:
        goes_on[0] = 1
