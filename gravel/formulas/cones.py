"""The friction cone: every engine and every solver projects by these functions.

In: an impulse p, the normal n of its contact, the coefficient of friction mu and the cohesive impulse c. Out: an impulse in the cone

    K = {p : |p_t| <= mu (p_n + c)},        p_n = p . n,   p_t = p - p_n n,

whose tip lies at -c n. The load of a contact is p_n + c, what presses its two surfaces onto each other.

Coulomb's law as a complementarity over this cone: De Saxcé and Feng, The bipotential method, Math. Comput. Modelling 28 (1998); the
nearest point of the cone: Anitescu and Tasora (paper 001, section 3).
"""

from __future__ import annotations

import math

from gravel.formulas.kinds import Vector
from gravel.formulas.precision import like
from gravel.formulas.vectors import vector

TINY = 1e-30  # below all lengths and impulses: keeps a division by zero finite, also in single precision


def into_cone(qn: float, qt: float, mu: float, response_n: float, response_t: float, lag: float):
    """(load, share of the tangential part that is kept) of the impulse of the cone that is nearest to one with load ``qn`` and
    tangential length ``qt``.

    Nearest in the metric of the contact's responses, w_n (load - qn)^2 + w_t (t - qt)^2 over t <= mu load: inside the cone q itself,
    else the edge at

        load = (w_n qn + lag mu w_t qt) / (w_n + lag mu^2 w_t)

    or, below, the tip. Equal responses give the ordinary projection. ``lag``: the share of De Saxcé's term that qn has in it already; of
    the rest, (1 - lag) mu |u_t|, this edge is the exact solution (1 in the cone model). Without branches, so that a loop over contacts is
    vectorised; a load below zero inside, which needs mu = 0, ends at the tip by the maximum."""
    edge = (lag * mu * response_t * qt + response_n * qn) / (response_n + lag * mu * mu * response_t)
    load = max(qn if mu * qn >= qt else edge, like(qn, 0.0))
    return load, min(like(qn, 1.0), mu * load / max(qt, like(qn, TINY)))


def project(p: Vector, n: Vector, mu: float, cohesion: float):
    """The nearest impulse of the cone, x, y and z, and its load."""
    one = like(mu, 1.0)
    pn = p[0] * n[0] + p[1] * n[1] + p[2] * n[2]
    tx, ty, tz = p[0] - pn * n[0], p[1] - pn * n[1], p[2] - pn * n[2]
    load, keep = into_cone(pn + cohesion, math.sqrt(tx * tx + ty * ty + tz * tz), mu, one, one, one)
    pn = load - cohesion
    return pn * n[0] + keep * tx, pn * n[1] + keep * ty, pn * n[2] + keep * tz, load


def best_impulse(
    p: Vector, u: Vector, n: Vector, mu: float, cohesion: float, slip: float, response_n: float, response_t: float, lag: float
):
    """The impulse that is best for one contact alone, x, y and z, and its load: at relative velocity u, with bias, under the impulse p, in
    the metric of what a normal and a tangential impulse change (``responses``). ``slip``: what is added to the normal velocity, De Saxcé's
    term or its share ``lag``. For balls this is the exact minimum of the contact's energy."""
    un = u[0] * n[0] + u[1] * n[1] + u[2] * n[2]
    pn = p[0] * n[0] + p[1] * n[1] + p[2] * n[2]
    qn = pn + cohesion - (un + slip) / response_n
    step = like(mu, 1.0) / response_t
    qx = p[0] - pn * n[0] - step * (u[0] - un * n[0])
    qy = p[1] - pn * n[1] - step * (u[1] - un * n[1])
    qz = p[2] - pn * n[2] - step * (u[2] - un * n[2])
    load, keep = into_cone(qn, math.sqrt(qx * qx + qy * qy + qz * qz), mu, response_n, response_t, lag)
    pn = load - cohesion
    return pn * n[0] + keep * qx, pn * n[1] + keep * qy, pn * n[2] + keep * qz, load


def turned_into_cone(p: Vector, n: Vector, mu: float, cohesion: float):
    """A remembered impulse p, x, y and z, in the cone of a new normal: the normal part stays, unless it pulls too hard, and the tangential
    part is cut to what friction can bear (the nearest point would raise the load)."""
    pn = p[0] * n[0] + p[1] * n[1] + p[2] * n[2]
    tx, ty, tz = p[0] - pn * n[0], p[1] - pn * n[1], p[2] - pn * n[2]
    pn = max(pn, -cohesion)
    most = mu * (pn + cohesion)
    pt = math.sqrt(tx * tx + ty * ty + tz * tz)
    keep = 1.0 if pt <= most else most / pt
    return pn * n[0] + keep * tx, pn * n[1] + keep * ty, pn * n[2] + keep * tz


def project_torque(q: Vector, n: Vector, roll: float, spin: float):
    """The nearest torque impulse, x, y and z, within what rolling and spinning friction can bear: a disc of radius ``roll`` across the
    normal, and ``spin`` at most about it."""
    qn = q[0] * n[0] + q[1] * n[1] + q[2] * n[2]
    tx, ty, tz = q[0] - qn * n[0], q[1] - qn * n[1], q[2] - qn * n[2]
    keep = min(like(qn, 1.0), roll / max(math.sqrt(tx * tx + ty * ty + tz * tz), like(qn, TINY)))
    qn = max(-spin, min(spin, qn))
    return qn * n[0] + keep * tx, qn * n[1] + keep * ty, qn * n[2] + keep * tz


def best_torque(q: Vector, spin: Vector, n: Vector, roll_limit: float, spin_limit: float, twist: float):
    """The torque impulse that is best for one contact alone, x, y and z: at relative angular velocity ``spin``, under the torque impulse q;
    ``twist``: what a torque impulse changes."""
    return project_torque(vector(q[0] - spin[0] / twist, q[1] - spin[1] / twist, q[2] - spin[2] / twist), n, roll_limit, spin_limit)
