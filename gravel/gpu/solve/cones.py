"""Steps of the gradient solvers over the contacts' cones, as ``gravel.cpu.solve.cones``: one thread takes every so-manieth contact.

Sums are kept by workers in double precision and added up in a fixed order.
"""

import warp as wp

from gravel.formulas import contact_laws
from gravel.gpu.formulas import FORMS
from gravel.gpu.solve.blocks import onto_cone, torque_within
from gravel.gpu.structs import Impulses, Rows

wp.set_module_options({"enable_backward": False, "max_unroll": 0})
sliding_speed = FORMS.of(contact_laws).sliding_speed


@wp.kernel
def projected_step(
    rows: Rows,
    eta: wp.array(dtype=wp.vec2),
    y: Impulses,
    g: Impulses,
    de_saxce: wp.array(dtype=float),
    step: float,
    relaxation: float,
    count: int,
    workers: int,
    x: Impulses,
    squares: wp.array(dtype=wp.float64),
    slopes: wp.array(dtype=wp.float64),
):
    """x := relaxation P(y - step eta (g + s n)) + (1 - relaxation) y; with d = x - y, |d|^2 and g . d."""
    t = wp.tid()
    square = wp.float64(0.0)
    slope = wp.float64(0.0)
    for i in range(t, count, workers):
        n = rows.normal[i]
        grad = 1.0 * g.impulse[i]
        if de_saxce.shape[0] > 0:
            grad = grad + de_saxce[i] * n
        p, load = onto_cone(y.impulse[i] - step * eta[i][0] * grad, n, rows.friction[i][0], rows.friction[i][1])
        d = relaxation * (p - y.impulse[i])
        x.impulse[i] = y.impulse[i] + d
        square += wp.float64(wp.dot(d, d) / eta[i][0])
        slope += wp.float64(wp.dot(grad, d))
        if rows.rolling.shape[0] > 0:
            arms = rows.rolling[i]
            q = torque_within(y.torque[i] - step * eta[i][1] * g.torque[i], n, arms[0] * load, arms[1] * load)
            e = relaxation * (q - y.torque[i])
            x.torque[i] = y.torque[i] + e
            square += wp.float64(wp.dot(e, e) / eta[i][1])
            slope += wp.float64(wp.dot(g.torque[i], e))
    squares[t] = square
    slopes[t] = slope


@wp.kernel
def measure(
    rows: Rows,
    eta: wp.array(dtype=wp.vec2),
    x: Impulses,
    g: Impulses,
    coulomb: float,
    count: int,
    workers: int,
    worst: wp.array(dtype=float),
    total: wp.array(dtype=wp.float64),
):
    """The residual of x, whose gradient is g, squared."""
    t = wp.tid()
    high = float(0.0)
    squares = wp.float64(0.0)
    for i in range(t, count, workers):
        n, mu, step = rows.normal[i], rows.friction[i][0], eta[i][0]
        u = 1.0 * g.impulse[i]
        if coulomb > 0.0:
            u += coulomb * (mu * sliding_speed(g.impulse[i], n)) * n
        p, load = onto_cone(x.impulse[i] - step * u, n, mu, rows.friction[i][1])
        error = wp.length_sq(p - x.impulse[i]) / (step * step)
        if rows.rolling.shape[0] > 0:
            arms = rows.rolling[i]
            q = torque_within(x.torque[i] - eta[i][1] * g.torque[i], n, arms[0] * load, arms[1] * load)
            error += wp.length_sq(q - x.torque[i]) / (eta[i][1] * step)
        high = wp.max(high, error)
        squares += wp.float64(error)
    worst[t] = high
    total[t] = squares


@wp.kernel
def de_saxce_terms(rows: Rows, g: wp.array(dtype=wp.vec3), de_saxce: wp.array(dtype=float)):
    """slip := mu |u_t| of each contact, De Saxcé's terms."""
    i = wp.tid()
    de_saxce[i] = rows.friction[i][0] * sliding_speed(g[i], rows.normal[i])


@wp.func
def product(a: wp.vec3, b: wp.vec3):
    """a . b in double precision."""
    return wp.float64(a[0]) * wp.float64(b[0]) + wp.float64(a[1]) * wp.float64(b[1]) + wp.float64(a[2]) * wp.float64(b[2])


@wp.kernel
def dot_of_differences(
    a: wp.array(dtype=wp.vec3),
    b: wp.array(dtype=wp.vec3),
    c: wp.array(dtype=wp.vec3),
    d: wp.array(dtype=wp.vec3),
    workers: int,
    sums: wp.array(dtype=wp.float64),
):
    """(a - b) . (c - d)"""
    t = wp.tid()
    total = wp.float64(0.0)
    for i in range(t, a.shape[0], workers):
        total += product(a[i] - b[i], c[i] - d[i])
    sums[t] = total


@wp.kernel
def extrapolate(x: wp.array(dtype=wp.vec3), old: wp.array(dtype=wp.vec3), beta: float, y: wp.array(dtype=wp.vec3)):
    """y := x + beta (x - old)"""
    i = wp.tid()
    y[i] = x[i] + beta * (x[i] - old[i])
