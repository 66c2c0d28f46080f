"""Fast frictional dynamics: every body by itself finds the velocity that its contacts leave it, once a step (paper 004, Algorithm 2, after
Kaufman, Edmunds and Pai 2005).

In: contacts, velocities after the forces of the step, impulses of the last step. Out: velocities after contact, and the impulses that each
side of a contact has found.

A contact is seen by each of its bodies that can move: a half contact. With phi the velocity of the body, N = (n, x x n) and lambda the load
of the contact, its body asks for

    N . phi >= d - b,      d = n . v_other - r_other (lambda - lambda_last)

b is the bias of the cone problem and d the velocity that the other's surface will have there: v_other is what its forces and the last
impulses of its contacts lead to, and r_other what it gives way by with 1/k of its mass, if k of its contacts count. So d is, for two bodies
that meet alone, their common velocity by perceived masses; for a body that lies on others which lie still, theirs; and of what cannot
move, its velocity. Why not simply the common velocities of pairs? Loads then creep through a heap one body a step, and it sinks into
itself; and a body that is pressed from two sides is shot out sideways, with more energy than there was.

Then, per body, in the metric of its kinetic energy:

    phi*  nearest to the free velocity between these walls (``nearest``), with the loads lambda
    phi'  = phi* + sum e lambda M^-1 N: contacts that bounce throw back with the share e of their load
    phi+  = phi' + sum M^-1 S f: friction

Friction impulses f minimise the kinetic energy of slip, each within a polygon around the disc |f| <= mu (1 + e) lambda: S . f <= mu (1 + e)
lambda for some directions S around the normal, the first of them against the slip. They start from those of the last step; then a few
sweeps over the loaded contacts, each a step that cannot overshoot and a projection: every one of them takes energy out.

A contact that closes faster than the threshold, and within the step, bounces: it has no bias, and e is such that the forces of the step
act half before the impact and half after it.

All that a body does follows from its half contacts in the order of the other's id and the feature, in double precision, and from sums of
whole numbers: the result does not depend on where they stand in memory, on tiles or threads.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.cpu.solve.assemble import bias_of, friction_of, most_overlaps
from gravel.cpu.solve.blocks import WIDTH
from gravel.cpu.solve.nearest import DIRECTIONS, Room, dot, find_nearest, make_room
from gravel.formulas.bounds import BALL, MOVES
from gravel.host.arrays import margin_of
from gravel.host.impacts import restitution_of
from gravel.host.responses import inertia_of, turning_response
from gravel.host.threads import ALLOCATING, INNER, Kernel
from gravel.host.vectors import cross, rotate, rotate_back, tangents, to_matrix
from gravel.state import MATERIAL

CHUNK = 256  # bodies
FIRM = 1e-6  # of a body's own response: what a contact gives way by with what cannot move
SWEEPS = 5  # over the friction of a body
SETTLED = 1e-3  # of the first slip: changes below it end the sweeps
UNIT = 2.0**-40  # m/s or rad/s: expected changes of velocity are counted in these, since sums of whole numbers have no order
MOST = 1e6  # m/s or rad/s: more is not expected of one contact
GAPS = 701, 301, 132, 57, 23, 10, 4, 1  # of Shell's sort (Ciura 2001)


class HalfContacts(NamedTuple):
    """Contacts as one of their bodies sees them, a column each: what a process needs to know to move a body that it owns."""

    body: np.ndarray  # (m,) i4, the index of its proxy
    partner: np.ndarray  # (m,) i4, index of the other's proxy, where the contact was found
    other: np.ndarray  # (m,) i8, id of the other
    feature: np.ndarray  # (m,) i4
    normal: np.ndarray  # (m, 3) pushes the body away from the other
    arm: np.ndarray  # (m, 3) m, from the body's centre
    partner_arm: np.ndarray  # (m, 3) m, from the other's centre
    bias: np.ndarray  # (m,) m/s, see ``assemble``
    velocity: np.ndarray  # (m, 3) m/s, expected of the other's surface (at first: beyond that of its body)
    give: np.ndarray  # (m, 2) 1/kg, what the other gives way by, along the normal and across (at first: with its whole mass)
    last: np.ndarray  # (m, 3) N s, impulse of the last step on this body
    friction: np.ndarray  # (m,)
    restitution: np.ndarray  # (m,) of this very impact; 0 where it does not bounce
    counts: np.ndarray  # (m,) bool, whether it bore a load in the last step, or its bodies would meet in this one


class FfdInput(NamedTuple):
    """What half contacts are made from."""

    contacts: tuple  # ``Contacts``, perhaps with images
    folded_contacts: tuple  # the same with the bodies themselves
    proxies: tuple
    row: np.ndarray  # of each proxy among the bodies
    before: np.ndarray  # (rows, 8) velocities before the forces of the step
    inertia: np.ndarray  # world frame, see ``blocks.Unknowns``
    surface_velocity: np.ndarray
    last: np.ndarray  # (c, 3) N s, impulses of the last step, on b
    contact_values: np.ndarray
    overlap_count: np.ndarray
    margin: tuple
    scalars: tuple
    threshold: float


class SightArrays(NamedTuple):
    """The arrays of ``FfdInput`` that stand in no tuple of their own: parallel loops take no tuples of tuples."""

    row: np.ndarray
    before: np.ndarray
    inertia: np.ndarray
    surface_velocity: np.ndarray
    last: np.ndarray
    contact_values: np.ndarray
    overlap_count: np.ndarray


@njit(**INNER)
def dot3(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(**INNER)
def less(a, b):
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@njit(**INNER)
def scaled(factor, a):
    return factor * a[0], factor * a[1], factor * a[2]


@njit(**INNER)
def vector(rows, k):
    return float(rows[k, 0]), float(rows[k, 1]), float(rows[k, 2])


@njit(**INNER)
def surface(v, i, arm):
    """Velocity of a row at an arm."""
    wx, wy, wz = cross(float(v[i, 4]), float(v[i, 5]), float(v[i, 6]), arm[0], arm[1], arm[2])
    return v[i, 0] + wx, v[i, 1] + wy, v[i, 2] + wz


# --- from contacts to half contacts
@njit(**INNER)
def bounce_of(closing, before, restitution, threshold):
    """The share of its load with which a contact throws back that closes at a speed, and did before the forces of the step: these act half
    before the impact and half after it."""
    if restitution == 0.0 or before <= threshold or closing <= 0.0:
        return 0.0
    half = 0.5 * (closing - before)
    return max(restitution * (before + half) - half, 0.0) / closing


@njit(**INNER)
def response_of(i, tag, mass, inertia, arm, d):
    """Velocity along d at an arm of a proxy after a unit impulse along d there."""
    if tag[i, MOVES] == 0:
        return 0.0
    if inertia.size == 0 or tag[i, MOVES] == BALL:
        t = cross(arm[0], arm[1], arm[2], d[0], d[1], d[2])
        return mass[i, 0] + mass[i, 1] * dot3(t, t)
    return mass[i, 0] + dot3(turning_response(inertia_of(inertia, i), arm, d), d)


@njit(**INNER)
def count_of_tile(tile, contacts, tag):
    total = 0
    for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
        total += (tag[contacts.a[c], MOVES] > 0) + (tag[contacts.b[c], MOVES] > 0)
    return total


@Kernel
def count_half_contacts(contacts, tag, start):
    """start (tiles + 1,) := half contacts before each tile, and of all; returns the last."""
    tiles = contacts.count.size
    for tile in prange(tiles):
        start[tile + 1] = count_of_tile(np.int64(tile), contacts, tag)
    start[0] = 0
    for tile in range(tiles):
        start[tile + 1] += start[tile]
    return start[tiles]


@njit(**INNER)
def look_at_contact(c, arm_a, arm_b, contacts, folded, proxies, seen, margin, scalars, threshold):
    """(bias, restitution of this very blow, what surfaces move at by themselves, direction of the slip, whether it counts) of a contact."""
    a, b, gap, values = folded.a[c], folded.b[c], float(contacts.gap[c]), seen.contact_values
    normal, velocity, before, row = vector(contacts.normal, c), proxies.velocity, seen.before, seen.row
    carried = vector(seen.surface_velocity, c) if seen.surface_velocity.size > 0 else (0.0, 0.0, 0.0)
    u = less(carried, less(surface(velocity, a, arm_a), surface(velocity, b, arm_b)))
    v = less(carried, less(surface(before, row[a], arm_a), surface(before, row[b], arm_b)))
    closing = -dot3(normal, u)
    slide = less(u, scaled(-closing, normal))
    slip = math.sqrt(dot3(slide, slide))
    across = scaled(1.0 / slip, slide) if slip > 0.0 else normal
    contact_distance = margin_of(margin, contacts.a[c], contacts.b[c], proxies.sphere, proxies.extent, proxies.tag)
    bias = bias_of(
        gap, contact_distance, most_overlaps(c, folded, seen.overlap_count), scalars.step, scalars.recovery, scalars.recovery_speed
    )
    counts, bounce = closing > bias or dot3(normal, vector(seen.last, c)) > 0.0, 0.0
    if gap <= scalars.step * closing:  # they meet within the step
        restitution = restitution_of(values, proxies.tag[a, MATERIAL], proxies.tag[b, MATERIAL])
        bounce = bounce_of(closing, -dot3(normal, v), restitution, threshold)
        bias = bias if bounce == 0.0 else 0.0
    return bias, bounce, carried, across, counts


@njit(**INNER)
def fill_tile(tile, contacts, folded, proxies, seen, margin, scalars, threshold, start, to, first_half):
    """The two sides of a contact stand together, that of a first."""
    sphere, tag, mass, inertia, k = proxies.sphere, proxies.tag, proxies.mass, seen.inertia, start[tile]
    for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
        first_half[c] = k
        i, j, a, b = contacts.a[c], contacts.b[c], folded.a[c], folded.b[c]
        normal, arm_a, last = vector(contacts.normal, c), vector(contacts.arm, c), vector(seen.last, c)
        arm_b = arm_a[0] + sphere[i, 0] - sphere[j, 0], arm_a[1] + sphere[i, 1] - sphere[j, 1], arm_a[2] + sphere[i, 2] - sphere[j, 2]
        friction = friction_of(seen.contact_values, tag[a, MATERIAL], tag[b, MATERIAL])
        found = look_at_contact(c, arm_a, arm_b, contacts, folded, proxies, seen, margin, scalars, threshold)
        bias, bounce, carried, across, counts = found
        for side in range(2):
            own, other, far, sign = (i, j, arm_b, -1.0) if side == 0 else (j, i, arm_a, 1.0)
            if tag[own, MOVES] == 0:
                continue
            arm = arm_a if side == 0 else arm_b
            to.body[k], to.partner[k] = (a, b) if side == 0 else (b, a)
            to.other[k], to.feature[k], to.counts[k] = proxies.id[other], contacts.feature[c], counts
            for axis in range(3):
                to.normal[k, axis], to.arm[k, axis], to.partner_arm[k, axis] = sign * normal[axis], arm[axis], far[axis]
                to.velocity[k, axis], to.last[k, axis] = -sign * carried[axis], sign * last[axis]
            to.give[k, 0] = response_of(other, tag, mass, inertia, far, normal)
            to.give[k, 1] = response_of(other, tag, mass, inertia, far, across)
            to.bias[k], to.friction[k], to.restitution[k] = bias, friction, bounce
            k += 1


@Kernel
def fill_half_contacts(contacts, folded, proxies, seen, margin, scalars, threshold, start, half_contacts, first_half):
    """Fill ``half_contacts``, but for what is expected of the others; first_half (contacts,) := the first half of each contact. ``seen``:
    ``SightArrays``."""
    for tile in prange(contacts.count.size):
        fill_tile(np.int64(tile), contacts, folded, proxies, seen, margin, scalars, threshold, start, half_contacts, first_half)


# --- what is expected of bodies
@njit(**INNER)
def whole(speed):
    return np.int64(round(min(max(speed, -MOST), MOST) / UNIT))


@njit(**INNER)
def sum_up_chunk(chunk, first, order, half_contacts, mass, tag, inertia, sums):
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, sums.shape[0])):
        for column in range(7):
            sums[i, column] = 0
        for k in range(first[i], first[i + 1]):
            p, x = half_contacts.last[order[k]], half_contacts.arm[order[k]]
            wx, wy, wz = cross(x[0], x[1], x[2], p[0], p[1], p[2])
            if inertia.size == 0 or tag[i, MOVES] == BALL:
                wx, wy, wz = mass[i, 1] * wx, mass[i, 1] * wy, mass[i, 1] * wz
            else:
                j = inertia[8 * i : 8 * i + 6]
                wx, wy, wz = j[0] * wx + j[1] * wy + j[2] * wz, j[1] * wx + j[3] * wy + j[4] * wz, j[2] * wx + j[4] * wy + j[5] * wz
            for axis in range(3):
                sums[i, axis] += whole(mass[i, 0] * p[axis])
            sums[i, 3] += whole(wx)
            sums[i, 4] += whole(wy)
            sums[i, 5] += whole(wz)
            sums[i, 6] += half_contacts.counts[order[k]]


@Kernel
def sum_up(half_contacts, mass, tag, inertia, first, order, sums):
    """sums (bodies, 7) := what the impulses of the last step would change the velocity by, in ``UNIT``, and how many contacts count.
    Leaves the half contacts grouped by body, see ``group_by_body``."""
    group_by_body(half_contacts.body, first, order)
    for chunk in prange((sums.shape[0] + CHUNK - 1) // CHUNK):
        sum_up_chunk(np.int64(chunk), first, order, half_contacts, mass, tag, inertia, sums)


@njit(**INNER)
def look_ahead_chunk(chunk, sums, velocity, half_contacts):
    for h in range(chunk * CHUNK, min((chunk + 1) * CHUNK, half_contacts.body.size)):
        i, x = half_contacts.partner[h], half_contacts.partner_arm[h]
        wx, wy, wz = velocity[i, 4] + UNIT * sums[i, 3], velocity[i, 5] + UNIT * sums[i, 4], velocity[i, 6] + UNIT * sums[i, 5]
        tx, ty, tz = cross(wx, wy, wz, x[0], x[1], x[2])
        half_contacts.velocity[h, 0] += velocity[i, 0] + UNIT * sums[i, 0] + tx
        half_contacts.velocity[h, 1] += velocity[i, 1] + UNIT * sums[i, 1] + ty
        half_contacts.velocity[h, 2] += velocity[i, 2] + UNIT * sums[i, 2] + tz
        shares = max(sums[i, 6], 1)
        half_contacts.give[h, 0] *= shares
        half_contacts.give[h, 1] *= shares


@Kernel
def look_ahead(sums, velocity, half_contacts):
    """``half_contacts`` get what is expected of the others: their velocities, and that they share their mass among the contacts that
    count."""
    for chunk in prange((half_contacts.body.size + CHUNK - 1) // CHUNK):
        look_ahead_chunk(np.int64(chunk), sums, velocity, half_contacts)


# --- the half contacts of a body
@njit(**INNER)
def group_by_body(body, first, order):
    """``order`` := the half contacts body by body; those of body i from first[i] on. Returns the most that a body has."""
    first[:] = 0
    for k in range(body.size):
        first[body[k] + 1] += 1
    most = 0
    for i in range(first.size - 1):
        most = max(most, first[i + 1])
        first[i + 1] += first[i]
    for k in range(body.size):
        order[first[body[k]]] = k
        first[body[k]] += 1
    for i in range(first.size - 1, 0, -1):
        first[i] = first[i - 1]
    first[0] = 0
    return most


@njit(**INNER)
def comes_before(i, j, half_contacts):
    """The order in which a body takes its half contacts. (Two of one feature are told apart by where they are.)"""
    if half_contacts.other[i] != half_contacts.other[j]:
        return half_contacts.other[i] < half_contacts.other[j]
    if half_contacts.feature[i] != half_contacts.feature[j]:
        return half_contacts.feature[i] < half_contacts.feature[j]
    for k in range(3):
        if half_contacts.arm[i, k] != half_contacts.arm[j, k]:
            return half_contacts.arm[i, k] < half_contacts.arm[j, k]
    return False


@njit(**INNER)
def sort_own(order, half_contacts):
    """Shell's sort: the half contacts of a body are few, or those of a hub."""
    for gap in GAPS:
        for i in range(gap, order.size):
            k, j = order[i], i
            while j >= gap and comes_before(k, order[j - gap], half_contacts):
                order[j] = order[j - gap]
                j -= gap
            order[j] = k


# --- one body
class Root(NamedTuple):
    """M^-1 = L L^T of one body: L = (linear, R diag(turning))."""

    linear: float
    turning: tuple
    rotation: tuple


@njit(**INNER)
def root_of(row, inverse_mass, quaternion):
    ix, iy, iz = float(inverse_mass[row, 1]), float(inverse_mass[row, 2]), float(inverse_mass[row, 3])
    rotation = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    if ix != iy or iy != iz:
        rotation = to_matrix(quaternion[row])
    return Root(math.sqrt(float(inverse_mass[row, 0])), (math.sqrt(ix), math.sqrt(iy), math.sqrt(iz)), rotation)


@njit(**INNER)
def write_row(root, arm, d, row):
    """row (6,) := L^T (d, arm x d)."""
    tx, ty, tz = cross(arm[0], arm[1], arm[2], d[0], d[1], d[2])
    tx, ty, tz = rotate_back(root.rotation, tx, ty, tz)
    row[0], row[1], row[2] = root.linear * d[0], root.linear * d[1], root.linear * d[2]
    row[3], row[4], row[5] = root.turning[0] * tx, root.turning[1] * ty, root.turning[2] * tz


class Scratch(NamedTuple):
    """Room for one body with at most so many half contacts."""

    rows: np.ndarray  # (most, 6) L^T N
    lacking: np.ndarray  # (most,) m/s
    give: np.ndarray  # (most,) 1/kg
    load: np.ndarray  # (most,) N s
    room: Room
    tangent: np.ndarray  # (most, 2, 6) L^T S of two directions of each loaded contact: against the slip, and across
    directions: np.ndarray  # (most, 2, 3) these
    slip: np.ndarray  # (most, 2) m/s, without friction
    rubbing: np.ndarray  # (most, 2) N s, friction along the two
    moved: np.ndarray  # (6,) change of velocity, as z: phi+ = phi + L z


@njit(**ALLOCATING)
def make_scratch(most):
    return Scratch(
        np.empty((most, DIRECTIONS)),
        np.empty(most),
        np.empty(most),
        np.empty(most),
        make_room(),
        np.empty((most, 2, DIRECTIONS)),
        np.empty((most, 2, 3)),
        np.empty((most, 2)),
        np.empty((most, 2)),
        np.empty(DIRECTIONS),
    )


@njit(**INNER)
def press(i, own, half_contacts, velocity, root, s):
    """``s.load`` := the loads that lead to the nearest velocity between the walls, with friction as it was in the last step (or a box on a
    slope, which friction tips over a little in every step, would rock); ``s.moved``: what loads and bounces change."""
    s.moved[:] = 0.0
    for k in range(own.size):
        n, last = vector(half_contacts.normal, own[k]), vector(half_contacts.last, own[k])
        write_row(root, vector(half_contacts.arm, own[k]), less(last, scaled(dot3(n, last), n)), s.rows[k])
        for j in range(DIRECTIONS):
            s.moved[j] += s.rows[k, j]
    for k in range(own.size):
        h = own[k]
        n = vector(half_contacts.normal, h)
        write_row(root, vector(half_contacts.arm, h), n, s.rows[k])
        s.give[k] = max(half_contacts.give[h, 0], FIRM * dot(s.rows[k], s.rows[k]))
        lag = less(vector(half_contacts.velocity, h), surface(velocity, i, vector(half_contacts.arm, h)))
        s.lacking[k] = dot3(n, lag) - half_contacts.bias[h] + half_contacts.give[h, 0] * max(dot3(n, vector(half_contacts.last, h)), 0.0)
        s.lacking[k] -= dot(s.rows[k], s.moved)
    find_nearest(own.size, s.rows, s.lacking, s.give, s.load, s.room)
    s.moved[:] = 0.0
    for k in range(own.size):
        for j in range(DIRECTIONS):
            s.moved[j] += (1.0 + half_contacts.restitution[own[k]]) * s.load[k] * s.rows[k, j]


@njit(**INNER)
def look_at_slip(i, own, half_contacts, velocity, root, s):
    """Slip of the loaded contacts, along two directions each, the first against it; returns the largest, m/s."""
    largest, z = 0.0, s.moved
    linear = scaled(root.linear, (z[0], z[1], z[2]))
    wx, wy, wz = rotate(root.rotation, root.turning[0] * z[3], root.turning[1] * z[4], root.turning[2] * z[5])
    for k in range(own.size):
        if s.load[k] == 0.0:
            continue
        n, x = vector(half_contacts.normal, own[k]), vector(half_contacts.arm, own[k])
        vx, vy, vz = less(surface(velocity, i, x), vector(half_contacts.velocity, own[k]))
        tx, ty, tz = cross(wx, wy, wz, x[0], x[1], x[2])
        u = vx + linear[0] + tx, vy + linear[1] + ty, vz + linear[2] + tz
        u = less(u, scaled(half_contacts.give[own[k], 1], vector(half_contacts.last, own[k])))
        u = less(u, scaled(dot3(u, n), n))
        slip = math.sqrt(dot3(u, u))
        if slip > 0.0:
            d = scaled(-1.0 / slip, u)
        else:
            dx, dy, dz, _, _, _ = tangents(n[0], n[1], n[2])
            d = dx, dy, dz
        e = cross(n[0], n[1], n[2], d[0], d[1], d[2])
        for axis in range(3):
            s.directions[k, 0, axis], s.directions[k, 1, axis] = d[axis], e[axis]
        write_row(root, x, d, s.tangent[k, 0])
        write_row(root, x, e, s.tangent[k, 1])
        s.slip[k, 0], s.slip[k, 1] = -slip - dot(s.tangent[k, 0], z), -dot(s.tangent[k, 1], z)
        s.rubbing[k, 0] = s.rubbing[k, 1] = 0.0
        largest = max(largest, slip)
    return largest


@njit(**INNER)
def into_polygon(x, y, most, samples):
    """The nearest point to (x, y) with c x + s y <= most for all directions (c, s) of ``samples``, which lie evenly around."""
    best, face = -math.inf, 0
    for k in range(samples.shape[0]):
        reach = samples[k, 0] * x + samples[k, 1] * y
        if reach > best:
            best, face = reach, k
    if best <= most:
        return x, y
    c, s = samples[face, 0], samples[face, 1]
    edge = most * math.tan(math.pi / samples.shape[0])  # half of a side
    side = min(max(c * y - s * x, -edge), edge)
    return most * c - side * s, most * s + side * c


@njit(**INNER)
def rub(own, half_contacts, samples, largest, s):
    """Friction of the loaded contacts: that of the last step, as far as they bear it, then a few sweeps over them."""
    for k in range(own.size):
        most = half_contacts.friction[own[k]] * s.load[k]
        if most > 0.0:
            last = vector(half_contacts.last, own[k])
            x, y = into_polygon(dot3(last, s.directions[k, 0]), dot3(last, s.directions[k, 1]), most, samples)
            s.rubbing[k, 0], s.rubbing[k, 1] = x, y
            for j in range(DIRECTIONS):
                s.moved[j] += x * s.tangent[k, 0, j] + y * s.tangent[k, 1, j]
    for _ in range(SWEEPS):
        change = 0.0
        for k in range(own.size):
            most = half_contacts.friction[own[k]] * (1.0 + half_contacts.restitution[own[k]]) * s.load[k]
            if most == 0.0:
                continue
            t, o, give = s.tangent[k, 0], s.tangent[k, 1], half_contacts.give[own[k], 1]
            tt, oo, to = dot(t, t), dot(o, o), dot(t, o)
            most_response = give + 0.5 * (tt + oo) + math.sqrt(0.25 * (tt - oo) ** 2 + to * to)
            x = s.rubbing[k, 0] - (s.slip[k, 0] + dot(t, s.moved) + give * s.rubbing[k, 0]) / most_response
            y = s.rubbing[k, 1] - (s.slip[k, 1] + dot(o, s.moved) + give * s.rubbing[k, 1]) / most_response
            x, y = into_polygon(x, y, most, samples)
            dx, dy = x - s.rubbing[k, 0], y - s.rubbing[k, 1]
            s.rubbing[k, 0], s.rubbing[k, 1] = x, y
            for j in range(DIRECTIONS):
                s.moved[j] += dx * t[j] + dy * o[j]
            change = max(change, most_response * math.sqrt(dx * dx + dy * dy))
        if change <= SETTLED * largest:
            break


@njit(**INNER)
def write_down(i, own, half_contacts, root, s, velocity, impulse):
    """The body's velocity, and the impulses on it."""
    z = s.moved
    wx, wy, wz = rotate(root.rotation, root.turning[0] * z[3], root.turning[1] * z[4], root.turning[2] * z[5])
    for axis in range(3):
        velocity[i, axis] += root.linear * z[axis]
    velocity[i, 4] += wx
    velocity[i, 5] += wy
    velocity[i, 6] += wz
    for k in range(own.size):
        h = own[k]
        push = (1.0 + half_contacts.restitution[h]) * s.load[k]
        for axis in range(3):
            impulse[h, axis] = push * half_contacts.normal[h, axis]
            if push > 0.0:
                impulse[h, axis] += s.rubbing[k, 0] * s.directions[k, 0, axis] + s.rubbing[k, 1] * s.directions[k, 1, axis]


@njit(**ALLOCATING)
def solve_chunk(chunk, most, first, order, half_contacts, row, bodies, samples, velocity, impulse):
    s = make_scratch(most)
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, row.size)):
        if first[i] == first[i + 1]:
            continue
        own = order[first[i] : first[i + 1]]
        sort_own(own, half_contacts)
        root = root_of(row[i], bodies.inverse_mass, bodies.quaternion)
        press(i, own, half_contacts, velocity, root, s)
        rub(own, half_contacts, samples, look_at_slip(i, own, half_contacts, velocity, root, s), s)
        write_down(i, own, half_contacts, root, s, velocity, impulse)


@Kernel
def solve_bodies(half_contacts, row, bodies, samples, first, order, velocity, impulse):
    """``velocity`` rows of the proxies := those after contact; impulse (m, 3) := what each half contact gives its body, N s.
    ``samples`` (k, 2): cosine and sine of the directions of friction. ``first``, ``order``: scratch, bodies + 1 and half contacts."""
    most = group_by_body(half_contacts.body, first, order)
    for chunk in prange((row.size + CHUNK - 1) // CHUNK):
        solve_chunk(np.int64(chunk), most, first, order, half_contacts, row, bodies, samples, velocity, impulse)


# --- back to contacts
@njit(**INNER)
def share_tile(tile, contacts, tag, first_half, half_contacts, impulse, slot, block_impulse, impact_impulse):
    for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
        at, k = (slot[c] // WIDTH) * 3 * WIDTH + slot[c] % WIDTH, first_half[c]
        first, second = tag[contacts.a[c], MOVES] > 0, tag[contacts.b[c], MOVES] > 0
        push = vector(impulse, k)
        if first:
            push = scaled(-1.0, push)
            push = scaled(0.5, less(push, scaled(-1.0, vector(impulse, k + 1)))) if second else push
        normal, e = vector(contacts.normal, c), half_contacts.restitution[k]
        thrown = scaled(e / (1.0 + e) * dot3(push, normal), normal)
        for axis in range(3):
            block_impulse[at + axis * WIDTH] = push[axis] - thrown[axis]
            impact_impulse[c, axis] = thrown[axis]


@Kernel
def share_impulses(contacts, tag, first_half, half_contacts, impulse, slot, block_impulse, impact_impulse):
    """The impulse of each contact := the mean of what its two sides have found, or what the one has that can move. The part that throws
    bodies back goes into ``impact_impulse``: it is not expected again in the next step."""
    for tile in prange(contacts.count.size):
        share_tile(np.int64(tile), contacts, tag, first_half, half_contacts, impulse, slot, block_impulse, impact_impulse)


def directions(samples):
    """(samples, 2) cosine and sine of as many directions, evenly around."""
    turn = 2.0 * math.pi / samples
    return np.array([(math.cos(turn * k), math.sin(turn * k)) for k in range(samples)])


class PerBodySolver:
    """What a step of FFD needs of the engine, kept by its cone problem."""

    def __init__(self, inputs, bodies, slot, impact_impulse, contacts, buffers, sync):
        self.inputs, self.bodies, self.slot, self.impact_impulse, self.contacts = inputs, bodies, slot, impact_impulse, contacts
        self.buffers, self.sync = buffers, sync

    def solve(self, samples, block_impulse):
        """New velocities of all bodies, and the impulses of the blocks."""
        if self.contacts == 0 and self.sync.single_process:
            return
        proxies = self.inputs.proxies
        half_contacts, first_half = self.half_contacts()
        self.look_ahead(half_contacts)
        own = self.sync.gather_half_contacts(half_contacts)
        impulse = np.empty((len(own.body), 3))
        first, order = self._grouping(own)
        solve_bodies(own, self.inputs.row, self.bodies, directions(samples), first, order, proxies.velocity, impulse)
        impulse = self.sync.return_impulses(impulse)
        share_impulses(self.inputs.contacts, proxies.tag, first_half, half_contacts, impulse, self.slot, block_impulse, self.impact_impulse)

    def half_contacts(self):
        """(half contacts, index of the first of each contact)."""
        contacts, array = self.inputs.contacts, self.buffers.array
        start = array("half_start", len(contacts.count) + 1, dtype="i8")
        m = int(count_half_contacts(contacts, self.inputs.proxies.tag, start))
        first_half = array("half_place", len(contacts.a), dtype="i8")
        half_contacts = self.buffers.kept("half_contacts", m, lambda: self._make_half_contacts(m))
        inputs = self.inputs
        seen = SightArrays(*(getattr(inputs, name) for name in SightArrays._fields))
        rules = inputs.margin, inputs.scalars, inputs.threshold
        fill_half_contacts(inputs.contacts, inputs.folded_contacts, inputs.proxies, seen, *rules, start, half_contacts, first_half)
        return half_contacts, first_half

    def look_ahead(self, half_contacts):
        """What bodies expect of each other."""
        proxies = self.inputs.proxies
        sums = self.buffers.array("half_sums", len(proxies.id), (7,), "i8")
        sum_up(half_contacts, proxies.mass, proxies.tag, self.inputs.inertia, *self._grouping(half_contacts), sums)
        self.sync.allreduce_sums(sums)
        look_ahead(sums, proxies.velocity, half_contacts)

    def _grouping(self, half_contacts):
        array = self.buffers.array
        return array("half_first", len(self.inputs.proxies.id) + 1, dtype="i8"), array("half_order", len(half_contacts.body), dtype="i8")

    def _make_half_contacts(self, m):
        types = {"body": "i4", "partner": "i4", "other": "i8", "feature": "i4", "counts": "?"}
        columns = {"normal": (3,), "arm": (3,), "partner_arm": (3,), "velocity": (3,), "give": (2,), "last": (3,)}
        array = self.buffers.array
        return HalfContacts(*(array(f"half_{name}", m, columns.get(name, ()), types.get(name, "f8")) for name in HalfContacts._fields))
