"""Assemble: contacts to the rows of the cone problem, as ``gravel.cpu.solve.assemble``."""

import warp as wp

from gravel.formulas import cones, contact_laws, responses, vectors
from gravel.formulas.bounds import MOVES, OTHER
from gravel.formulas.contact_laws import DEEP_OVERLAP
from gravel.gpu.collide.bounds import turn_of
from gravel.gpu.collide.shape_pairs import margin_of
from gravel.gpu.formulas import FORMS, to_matrix, vec6
from gravel.gpu.structs import Bodies, ContactInput, Contacts, Margin, Proxies, Rows, Unknowns
from gravel.state import MATERIAL

wp.set_module_options({"enable_backward": False, "max_unroll": 0})
_laws, _responses, turned_into_cone = FORMS.of(contact_laws), FORMS.of(responses), FORMS.of(cones).turned_into_cone
bias_of, cohesive_impulse, friction_of, torque_arms = _laws.bias_of, _laws.cohesive_impulse, _laws.friction_of, _laws.torque_arms
bounded_responses, twist_response, tangents = _responses.contact_responses, _responses.twist_response, FORMS.of(vectors).tangents


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
    """``inertia`` := inverse inertia in the world frame; the last row is the dummy's. ``row``: of the body that each is, or empty."""
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
def count_overlaps(contacts: Contacts, folded: Contacts, proxies: Proxies, overlap_count: wp.array(dtype=int)):
    """overlap_count (n,) := contacts by which a body that can move lies within another."""
    c = wp.tid()
    a, b = contacts.a[c], contacts.b[c]
    radius_a, radius_b = wp.inf, wp.inf
    if proxies.tag[a, MOVES] > 0:
        radius_a = float(proxies.sphere[a, 3] - proxies.extent[a, 3])
    if proxies.tag[b, MOVES] > 0:
        radius_b = float(proxies.sphere[b, 3] - proxies.extent[b, 3])
    if contacts.gap[c] < -DEEP_OVERLAP * wp.min(radius_a, radius_b):
        if proxies.tag[a, MOVES] > 0:
            wp.atomic_add(overlap_count, folded.a[c], 1)
        if proxies.tag[b, MOVES] > 0:
            wp.atomic_add(overlap_count, folded.b[c], 1)


@wp.func
def numbers_of(inertia: wp.array2d(dtype=float), i: int):
    """xx xy xz yy yz zz"""
    return vec6(inertia[i, 0], inertia[i, 1], inertia[i, 2], inertia[i, 3], inertia[i, 4], inertia[i, 5])


@wp.func
def contact_responses(mass: float, ja: vec6, jb: vec6, n: wp.vec3, arm_a: wp.vec3, arm_b: wp.vec3):
    """(normal, tangential, mean, twist) of a contact between any two bodies, see ``gravel.formulas.responses``."""
    ux, uy, uz, _wx, _wy, _wz = tangents(n[0], n[1], n[2])
    u = wp.vec3(ux, uy, uz)
    normal, across, trace = bounded_responses(mass, ja, jb, arm_a, arm_b, n, u, wp.cross(n, u))
    return wp.vec4(normal, across, trace / 3.0, twist_response(ja, jb))


@wp.func
def most_overlaps(c: int, folded: Contacts, overlap_count: wp.array(dtype=int)):
    """In how many others one of the bodies of contact c lies; 1: at most one."""
    overlaps = int(1)
    if overlap_count.shape[0] > 0:
        overlaps = wp.max(wp.max(overlap_count[folded.a[c]], overlap_count[folded.b[c]]), 1)
    return float(overlaps)


@wp.func
def ball_rows(a: int, b: int, n: wp.vec3, arm_a: wp.vec3, arm_b: wp.vec3, proxies: Proxies):
    """(arms along the normal, inverse inertias) of balls; zero of what cannot move."""
    ra, rb, ia, ib = float(0.0), float(0.0), float(0.0), float(0.0)
    if proxies.tag[a, MOVES] > 0:
        ra = wp.dot(arm_a, n)
        ia = float(proxies.mass[a, 1])
    if proxies.tag[b, MOVES] > 0:
        rb = -wp.dot(arm_b, n)
        ib = float(proxies.mass[b, 1])
    return wp.vec4(ra, rb, ia, ib)


@wp.kernel
def assemble(
    contacts: Contacts,
    folded: Contacts,
    slot: wp.array(dtype=int),
    proxies: Proxies,
    given: ContactInput,
    scalars: Scalars,
    margin: Margin,
    rows: Rows,
    unknowns: Unknowns,
):
    c = wp.tid()
    a, b, k = contacts.a[c], contacts.b[c], slot[c]
    body_a, body_b, r, gap = folded.a[c], folded.b[c], proxies.sphere, contacts.gap[c]
    n = wp.vec3(contacts.normal[c, 0], contacts.normal[c, 1], contacts.normal[c, 2])
    arm_a = wp.vec3(contacts.arm[c, 0], contacts.arm[c, 1], contacts.arm[c, 2])
    arm_b = arm_a + wp.vec3(float(r[a, 0] - r[b, 0]), float(r[a, 1] - r[b, 1]), float(r[a, 2] - r[b, 2]))
    i, j = proxies.tag[a, MATERIAL], proxies.tag[b, MATERIAL]
    contact_distance, overlaps = margin_of(margin, a, b, proxies), most_overlaps(c, folded, given.overlap_count)
    bias = bias_of(gap, contact_distance, overlaps, scalars.step, scalars.recovery, scalars.recovery_speed) * n
    if given.surface_velocity.shape[0] > 0:
        bias += wp.vec3(given.surface_velocity[c, 0], given.surface_velocity[c, 1], given.surface_velocity[c, 2])
    friction, cohesion = (
        friction_of(given.contact_values, i, j),
        cohesive_impulse(given.contact_values, i, j, gap, contact_distance, scalars.step),
    )
    rows.a[k] = body_a
    rows.b[k] = body_b
    rows.normal[k] = n
    rows.friction[k] = wp.vec2(friction, cohesion)
    rows.mass[k] = wp.vec2(proxies.mass[a, 0], proxies.mass[b, 0])
    if rows.balls.shape[0] > 0:
        rows.balls[k] = ball_rows(a, b, n, arm_a, arm_b, proxies)
        if proxies.tag[a, MOVES] == 0:  # an immovable body's turning enters as a surface velocity
            bias -= wp.cross(angular(proxies.velocity, a), arm_a)
        if proxies.tag[b, MOVES] == 0:
            bias += wp.cross(angular(proxies.velocity, b), arm_b)
    else:
        rows.arm_a[k] = arm_a
        rows.arm_b[k] = arm_b
        ja, jb = numbers_of(unknowns.inertia, body_a), numbers_of(unknowns.inertia, body_b)
        response = contact_responses(proxies.mass[a, 0] + proxies.mass[b, 0], ja, jb, n, arm_a, arm_b)
        if proxies.tag[a, MOVES] != OTHER and proxies.tag[b, MOVES] != OTHER:  # balls turn as they do among balls alone
            response[3] = wp.max(ja[0] + jb[0], 1.0e-30)
        rows.response[k] = response
    rows.bias[k] = bias
    px, py, pz = turned_into_cone(wp.vec3(given.impulse[c, 0], given.impulse[c, 1], given.impulse[c, 2]), n, friction, cohesion)
    unknowns.impulse[k] = wp.vec3(px, py, pz)
    if rows.rolling.shape[0] > 0:
        roll, spin = torque_arms(given.contact_values, i, j)
        rows.rolling[k] = wp.vec2(roll, spin)
        unknowns.torque[k] = wp.vec3(given.torque[c, 0], given.torque[c, 1], given.torque[c, 2])


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
        ja, jb, mean = numbers_of(inertia, a), numbers_of(inertia, b), rows.response[i][2]
        response = contact_responses(mass[0] + mass[1], ja, jb, rows.normal[i], rows.arm_a[i], rows.arm_b[i])
        rows.response[i] = wp.vec4(response[0], response[1], mean, response[3])
