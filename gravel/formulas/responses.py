"""What an impulse at a contact does to the relative velocity there: the 3 x 3 response N = D^T M^-1 D of one contact, bounded.

In: inverse masses, inverse inertias, arms. Out: normal, tangential and mean response, 1/kg, and the twist, 1/(kg m2). A step with the first
two, along the normal and across it, never overshoots; the mean is a third of the trace of N, 1/eta of the residual; the twist answers a
torque impulse. Symbols: docs/NOTATION.md.
"""

from __future__ import annotations

import math

from gravel.formulas.cones import TINY
from gravel.formulas.kinds import Inertia, Vector
from gravel.formulas.precision import like
from gravel.formulas.vectors import cross

TWO_THIRDS = 2.0 / 3.0


def ball_responses(mass_a: float, mass_b: float, arm_a: float, arm_b: float, spin_a: float, spin_b: float):
    """(normal, tangential, mean, twist) of two balls with arms along the normal: N is diagonal. ``mass``, ``spin``: inverse mass and
    inertia."""
    tiny = like(mass_a, TINY)
    normal = max(mass_a + mass_b, tiny)
    turning = arm_a * arm_a * spin_a + arm_b * arm_b * spin_b
    return normal, normal + turning, normal + like(mass_a, TWO_THIRDS) * turning, max(spin_a + spin_b, tiny)


def turned(inertia: Inertia, x: float, y: float, z: float):
    """Change of the angular velocity by a torque impulse (x, y, z)."""
    return (
        inertia[0] * x + inertia[1] * y + inertia[2] * z,
        inertia[1] * x + inertia[3] * y + inertia[4] * z,
        inertia[2] * x + inertia[4] * y + inertia[5] * z,
    )


def turning_response(inertia: Inertia, arm: Vector, d: Vector):
    """(J^-1 (r x d)) x r: velocity at arm r after a unit impulse along d there, turning part."""
    tx, ty, tz = cross(arm[0], arm[1], arm[2], d[0], d[1], d[2])
    wx, wy, wz = turned(inertia, tx, ty, tz)
    return cross(wx, wy, wz, arm[0], arm[1], arm[2])


def response_to(d: Vector, mass: float, inertia_a: Inertia, inertia_b: Inertia, arm_a: Vector, arm_b: Vector):
    """Relative velocity after a unit impulse along d; ``mass``: sum of the inverse masses."""
    ax, ay, az = turning_response(inertia_a, arm_a, d)
    bx, by, bz = turning_response(inertia_b, arm_b, d)
    return mass * d[0] + ax + bx, mass * d[1] + ay + by, mass * d[2] + az + bz


def contact_responses(mass: float, inertia_a: Inertia, inertia_b: Inertia, arm_a: Vector, arm_b: Vector, n: Vector, u: Vector, w: Vector):
    """(normal, tangential, trace of N) of a contact between any two bodies; n, u and w: its normal and two directions across.

    N is bounded from above by diag(n, t, t): with g the coupling of normal and tangential parts, 2 x g y <= |g| (e x^2 + y^2 / e), and t
    the larger eigenvalue of the tangential part."""
    n0, n1, n2 = response_to(n, mass, inertia_a, inertia_b, arm_a, arm_b)
    u0, u1, u2 = response_to(u, mass, inertia_a, inertia_b, arm_a, arm_b)
    w0, w1, w2 = response_to(w, mass, inertia_a, inertia_b, arm_a, arm_b)
    nn = n0 * n[0] + n1 * n[1] + n2 * n[2]
    uu = u0 * u[0] + u1 * u[1] + u2 * u[2]
    ww = w0 * w[0] + w1 * w[1] + w2 * w[2]
    uw = u0 * w[0] + u1 * w[1] + u2 * w[2]
    nu = n0 * u[0] + n1 * u[1] + n2 * u[2]
    nw = n0 * w[0] + n1 * w[1] + n2 * w[2]
    across = 0.5 * (uu + ww) + math.sqrt(0.25 * ((uu - ww) * (uu - ww)) + uw * uw)
    coupling = math.sqrt(nu * nu + nw * nw)
    ratio = math.sqrt(nn / across)
    return nn + coupling * ratio, across + coupling / ratio, nn + uu + ww


def twist_response(inertia_a: Inertia, inertia_b: Inertia):
    """Bound from above of what a torque impulse changes the relative angular velocity by, 1/(kg m2): the traces of both inertias."""
    sum_a = inertia_a[0] + inertia_a[3] + inertia_a[5]
    return max(sum_a + inertia_b[0] + inertia_b[3] + inertia_b[5], TINY)
