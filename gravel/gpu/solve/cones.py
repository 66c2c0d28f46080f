"""Steps of the gradient solvers over the contacts' cones, as ``gravel.cpu.solve.cones``: one thread takes every so-manieth contact.

Sums are kept by workers in double precision and added up in a fixed order.
"""

import warp as wp

from gravel.gpu.solve.blocks import onto_cone, torque_within
from gravel.gpu.structs import Rows

wp.set_module_options({"enable_backward": False, "max_unroll": 0})


@wp.func
def slip_of(u: wp.vec3, n: wp.vec3, mu: float):
    """mu |u_t|, the De Saxce term."""
    return mu * wp.length(u - wp.dot(u, n) * n)


@wp.kernel
def step_and_project(
    rows: Rows,
    eta: wp.array(dtype=wp.vec2),
    y: wp.array(dtype=wp.vec3),
    y_torque: wp.array(dtype=wp.vec3),
    g: wp.array(dtype=wp.vec3),
    g_torque: wp.array(dtype=wp.vec3),
    slip: wp.array(dtype=float),
    step: float,
    relaxation: float,
    count: int,
    workers: int,
    x: wp.array(dtype=wp.vec3),
    x_torque: wp.array(dtype=wp.vec3),
    squares: wp.array(dtype=wp.float64),
    slopes: wp.array(dtype=wp.float64),
):
    """x := relaxation P(y - step eta (g + slip n)) + (1 - relaxation) y; with d = x - y, |d|^2 and g . d."""
    t = wp.tid()
    square = wp.float64(0.0)
    slope = wp.float64(0.0)
    for i in range(t, count, workers):
        n = rows.normal[i]
        grad = 1.0 * g[i]
        if slip.shape[0] > 0:
            grad = grad + slip[i] * n
        p, load = onto_cone(y[i] - step * eta[i][0] * grad, n, rows.friction[i][0], rows.friction[i][1])
        d = relaxation * (p - y[i])
        x[i] = y[i] + d
        square += wp.float64(wp.dot(d, d) / eta[i][0])
        slope += wp.float64(wp.dot(grad, d))
        if rows.rolling.shape[0] > 0:
            q = torque_within(y_torque[i] - step * eta[i][1] * g_torque[i], n, rows.rolling[i][0] * load, rows.rolling[i][1] * load)
            e = relaxation * (q - y_torque[i])
            x_torque[i] = y_torque[i] + e
            square += wp.float64(wp.dot(e, e) / eta[i][1])
            slope += wp.float64(wp.dot(g_torque[i], e))
    squares[t] = square
    slopes[t] = slope


@wp.kernel
def measure(
    rows: Rows,
    eta: wp.array(dtype=wp.vec2),
    x: wp.array(dtype=wp.vec3),
    x_torque: wp.array(dtype=wp.vec3),
    g: wp.array(dtype=wp.vec3),
    g_torque: wp.array(dtype=wp.vec3),
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
        u = 1.0 * g[i]
        if coulomb > 0.0:
            u += coulomb * slip_of(g[i], n, mu) * n
        p, load = onto_cone(x[i] - step * u, n, mu, rows.friction[i][1])
        error = wp.length_sq(p - x[i]) / (step * step)
        if rows.rolling.shape[0] > 0:
            q = torque_within(x_torque[i] - eta[i][1] * g_torque[i], n, rows.rolling[i][0] * load, rows.rolling[i][1] * load)
            error += wp.length_sq(q - x_torque[i]) / (eta[i][1] * step)
        high = wp.max(high, error)
        squares += wp.float64(error)
    worst[t] = high
    total[t] = squares


@wp.kernel
def slip_terms(rows: Rows, g: wp.array(dtype=wp.vec3), slip: wp.array(dtype=float)):
    i = wp.tid()
    slip[i] = slip_of(g[i], rows.normal[i], rows.friction[i][0])


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
