"""Assemble: contacts to the rows of the cone problem, as ``gravel.cpu.solve.assemble``."""

import warp as wp

from gravel.cpu.solve.assemble import COHESION_COLUMN, DEEP, FRICTION_COLUMN, RESTING, ROLLING_COLUMN, SPINNING_COLUMN, TOUCHING
from gravel.formulas.bounds import MOVES, OTHER
from gravel.gpu.collide.bounds import turn_of
from gravel.gpu.collide.jobs import margin_of
from gravel.gpu.formulas import to_matrix
from gravel.gpu.structs import Arranged, Bodies, Contacts, Margin, Rows, Unknowns
from gravel.state import MATERIAL

wp.set_module_options({"enable_backward": False, "max_unroll": 0})


@wp.func
def angular(velocity: wp.array2d(dtype=float), i: int):
    return wp.vec3(velocity[i, 4], velocity[i, 5], velocity[i, 6])


@wp.struct
class Scalars:
    """Of the step; see ``gravel.cpu.solve.blocks.Scalars``."""

    step: float
    recovery: float
    recovery_speed: float


@wp.func
def inertia_of(inertia: wp.array2d(dtype=float), i: int):
    xx, xy, xz, yy, yz, zz = inertia[i, 0], inertia[i, 1], inertia[i, 2], inertia[i, 3], inertia[i, 4], inertia[i, 5]
    return wp.mat33(xx, xy, xz, xy, yy, yz, xz, yz, zz)


@wp.kernel
def world_inertia(bodies: Bodies, row: wp.array(dtype=int), n: int, inertia: wp.array2d(dtype=float)):
    """``inertia`` := inverse inertia in the world frame; the last row is nobody's. ``row``: of the body that each is, or empty."""
    i = wp.tid()
    if i == n:
        for k in range(8):
            inertia[i, k] = 0.0
        return
    b = i
    if row.shape[0] > 0:
        b = row[i]
    m = to_matrix(turn_of(bodies.quaternion, b))
    d = wp.vec3(float(bodies.inverse_mass[b, 1]), float(bodies.inverse_mass[b, 2]), float(bodies.inverse_mass[b, 3]))
    k = int(0)
    for r in range(3):
        for c in range(r, 3):
            inertia[i, k] = m[r, 0] * d[0] * m[c, 0] + m[r, 1] * d[1] * m[c, 1] + m[r, 2] * d[2] * m[c, 2]
            k += 1


@wp.kernel
def count_deep(contacts: Contacts, touching: Contacts, arranged: Arranged, deep: wp.array(dtype=int)):
    """deep (n,) := contacts by which a body that can move lies within another."""
    c = wp.tid()
    a, b = contacts.a[c], contacts.b[c]
    radius_a, radius_b = wp.inf, wp.inf
    if arranged.tag[a, MOVES] > 0:
        radius_a = float(arranged.reach[a, 3] - arranged.extent[a, 3])
    if arranged.tag[b, MOVES] > 0:
        radius_b = float(arranged.reach[b, 3] - arranged.extent[b, 3])
    if contacts.gap[c] < -DEEP * wp.min(radius_a, radius_b):
        if arranged.tag[a, MOVES] > 0:
            wp.atomic_add(deep, touching.a[c], 1)
        if arranged.tag[b, MOVES] > 0:
            wp.atomic_add(deep, touching.b[c], 1)


@wp.func
def bias_of(gap: float, near: float, crowd: int, scalars: Scalars):
    """Normal part of the bias of a contact, m/s."""
    if gap > 0.0:
        if gap > RESTING * near:
            return gap / scalars.step
        return 0.0
    return wp.max(scalars.recovery * gap / scalars.step, -scalars.recovery_speed / float(crowd))


@wp.func
def tangent(n: wp.vec3):
    """A direction across n (Duff et al. 2017)."""
    sign = 1.0
    if n[2] < 0.0:
        sign = -1.0
    a = -1.0 / (sign + n[2])
    return wp.vec3(1.0 + sign * n[0] * n[0] * a, sign * n[0] * n[1] * a, -sign * n[0])


@wp.func
def response_to(d: wp.vec3, mass: float, ja: wp.mat33, jb: wp.mat33, arm_a: wp.vec3, arm_b: wp.vec3):
    """Relative velocity after a unit impulse along d."""
    return mass * d + wp.cross(ja * wp.cross(arm_a, d), arm_a) + wp.cross(jb * wp.cross(arm_b, d), arm_b)


@wp.func
def contact_responses(mass: float, ja: wp.mat33, jb: wp.mat33, n: wp.vec3, arm_a: wp.vec3, arm_b: wp.vec3):
    """(normal, tangential, mean, twist) of a contact between any two bodies: bounds from above, so that a step with them never
    overshoots."""
    s = tangent(n)
    t = wp.cross(n, s)
    rn = response_to(n, mass, ja, jb, arm_a, arm_b)
    rs = response_to(s, mass, ja, jb, arm_a, arm_b)
    rt = response_to(t, mass, ja, jb, arm_a, arm_b)
    nn, ss, tt, st = wp.dot(rn, n), wp.dot(rs, s), wp.dot(rt, t), wp.dot(rs, t)
    ns, nt = wp.dot(rn, s), wp.dot(rn, t)
    across = 0.5 * (ss + tt) + wp.sqrt(0.25 * (ss - tt) * (ss - tt) + st * st)
    coupling = wp.sqrt(ns * ns + nt * nt)
    ratio = wp.sqrt(nn / across)
    twist = wp.trace(ja) + wp.trace(jb)
    return wp.vec4(nn + coupling * ratio, across + coupling / ratio, (nn + ss + tt) / 3.0, wp.max(twist, 1.0e-30))


@wp.func
def within_cone(p: wp.vec3, n: wp.vec3, friction: float, cohesion: float):
    """A remembered impulse turned into the cone of a new normal: pushing, and within friction."""
    pn = wp.dot(p, n)
    t = p - pn * n
    pn = wp.max(pn, -cohesion)
    most = friction * (pn + cohesion)
    pt = wp.length(t)
    if pt > most:
        t = t * (most / pt)
    return pn * n + t


@wp.kernel
def assemble(
    contacts: Contacts,
    touching: Contacts,
    slot: wp.array(dtype=int),
    arranged: Arranged,
    contact_values: wp.array3d(dtype=float),
    impulse: wp.array2d(dtype=float),
    torque: wp.array2d(dtype=float),
    carry: wp.array2d(dtype=float),
    deep: wp.array(dtype=int),
    scalars: Scalars,
    margin: Margin,
    rows: Rows,
    unknowns: Unknowns,
):
    c = wp.tid()
    a, b, k = contacts.a[c], contacts.b[c], slot[c]
    body_a, body_b = touching.a[c], touching.b[c]
    r = arranged.reach
    n = wp.vec3(contacts.normal[c, 0], contacts.normal[c, 1], contacts.normal[c, 2])
    arm_a = wp.vec3(contacts.arm[c, 0], contacts.arm[c, 1], contacts.arm[c, 2])
    arm_b = arm_a + wp.vec3(float(r[a, 0] - r[b, 0]), float(r[a, 1] - r[b, 1]), float(r[a, 2] - r[b, 2]))
    i, j = arranged.tag[a, MATERIAL], arranged.tag[b, MATERIAL]
    near, crowd = margin_of(margin, a, b, arranged), 1
    if deep.shape[0] > 0:
        crowd = wp.max(wp.max(deep[body_a], deep[body_b]), 1)
    bias = bias_of(contacts.gap[c], near, crowd, scalars) * n
    if carry.shape[0] > 0:
        bias += wp.vec3(carry[c, 0], carry[c, 1], carry[c, 2])
    cohesion = 0.0
    if contacts.gap[c] <= TOUCHING * near:
        cohesion = contact_values[i, j, COHESION_COLUMN] * scalars.step
    friction = contact_values[i, j, FRICTION_COLUMN]
    rows.a[k] = body_a
    rows.b[k] = body_b
    rows.normal[k] = n
    rows.friction[k] = wp.vec2(friction, cohesion)
    rows.mass[k] = wp.vec2(arranged.mass[a, 0], arranged.mass[b, 0])
    if rows.balls.shape[0] > 0:
        # a ball's arm lies along the normal; an immovable body's turning enters as a surface velocity
        ra, rb, ia, ib = 0.0, 0.0, 0.0, 0.0
        if arranged.tag[a, MOVES] > 0:
            ra = wp.dot(arm_a, n)
            ia = float(arranged.mass[a, 1])
        else:
            bias -= wp.cross(angular(arranged.velocity, a), arm_a)
        if arranged.tag[b, MOVES] > 0:
            rb = -wp.dot(arm_b, n)
            ib = float(arranged.mass[b, 1])
        else:
            bias += wp.cross(angular(arranged.velocity, b), arm_b)
        rows.balls[k] = wp.vec4(ra, rb, ia, ib)
    else:
        rows.arm_a[k] = arm_a
        rows.arm_b[k] = arm_b
        ja, jb = inertia_of(unknowns.inertia, body_a), inertia_of(unknowns.inertia, body_b)
        response = contact_responses(arranged.mass[a, 0] + arranged.mass[b, 0], ja, jb, n, arm_a, arm_b)
        if arranged.tag[a, MOVES] != OTHER and arranged.tag[b, MOVES] != OTHER:  # balls turn as they do among balls alone
            response[3] = wp.max(ja[0, 0] + jb[0, 0], 1.0e-30)
        rows.response[k] = response
    rows.bias[k] = bias
    p = wp.vec3(impulse[c, 0], impulse[c, 1], impulse[c, 2])
    unknowns.impulse[k] = within_cone(p, n, friction, cohesion)
    if rows.rolling.shape[0] > 0:
        rows.rolling[k] = wp.vec2(contact_values[i, j, ROLLING_COLUMN], contact_values[i, j, SPINNING_COLUMN])
        unknowns.torque[k] = wp.vec3(torque[c, 0], torque[c, 1], torque[c, 2])


@wp.kernel
def split_inertia(parts: wp.array(dtype=float), inertia: wp.array2d(dtype=float)):
    """Inverse inertia of one of a body's parts."""
    i = wp.tid()
    for k in range(8):
        inertia[i, k] = parts[i] * inertia[i, k]


@wp.kernel
def split_rows(parts: wp.array(dtype=float), rows: Rows, inertia: wp.array2d(dtype=float)):
    """What a contact's bodies answer, as if their parts were all of them; ``inertia`` is that of the parts."""
    i = wp.tid()
    a, b = rows.a[i], rows.b[i]
    mass = wp.vec2(parts[a] * rows.mass[i][0], parts[b] * rows.mass[i][1])
    rows.mass[i] = mass
    if rows.balls.shape[0] > 0:
        ball = rows.balls[i]
        rows.balls[i] = wp.vec4(ball[0], ball[1], parts[a] * ball[2], parts[b] * ball[3])
    else:
        ja, jb, mean = inertia_of(inertia, a), inertia_of(inertia, b), rows.response[i][2]
        response = contact_responses(mass[0] + mass[1], ja, jb, rows.normal[i], rows.arm_a[i], rows.arm_b[i])
        rows.response[i] = wp.vec4(response[0], response[1], mean, response[3])
