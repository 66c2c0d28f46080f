"""Fast frictional dynamics: every body by itself finds the velocity that its contacts leave it (paper 004, Algorithm 2, after Kaufman,
Edmunds and Pai 2005).

In: contacts, and the velocities after forces. Out: velocities after contact, and the impulses that each side of a contact has found.

A contact is seen twice, once by each of its bodies that can move: a half contact. Its body shall part from the other at least as fast
as the common velocity of the two there, which is that of their perceived masses 1 / (N M^-1 N) after a blow without bounce; of what
cannot move, simply its velocity. With phi the velocity of the body and N = (n, x x n),

    N . phi >= bound = N . phi_free - s (u_n + b),     s = own response / both responses

where u_n is the relative velocity and b the bias of the cone problem. Half contacts with what can move count only where they are violated
at phi_free; what cannot move is never passed, so it counts always. Then, per body, in the metric of its kinetic energy:

    phi*  nearest to phi_free that meets all bounds (``nearest``), with the loads lambda of what holds it there
    phi'  = phi* + sum e lambda M^-1 N: contacts that bounce throw back with the share e of their load
    phi+  = phi' + sum M^-1 S f: friction

Friction impulses f minimise the kinetic energy against the velocities that the two surfaces would have in common, each within a polygon
around the disc |f| <= mu (1 + e) lambda: S . f <= mu (1 + e) lambda for some directions S around the normal, the first of them against the slip. A few
sweeps over the loaded contacts (never more than six), each a step that cannot overshoot and a projection: every one of them takes energy
out. A contact that hits the other's surface within the step, faster than the threshold, bounces: its bound has no bias then, and e is such
that the forces of the step act half before the blow and half after it.

All that a body does follows from its half contacts in the order of the other's id and the feature, in double precision: the result does
not depend on where they stand in memory, on tiles or threads.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.cpu.collide.bounds import BALL, MOVES, margin_of
from gravel.cpu.solve.assemble import FRICTION_COLUMN, bias_of, response, tangents
from gravel.cpu.solve.blocks import WIDTH
from gravel.cpu.solve.impacts import RESTITUTION_COLUMN
from gravel.cpu.solve.nearest import DIRECTIONS, Face, empty_face, find_nearest
from gravel.cpu.threads import INNER, Kernel
from gravel.cpu.vectors import cross, rotate, rotate_back, to_matrix
from gravel.state import MATERIAL

CHUNK = 256  # bodies
SWEEPS = 10  # over the friction of a body
SETTLED = 1e-6  # of the first slip: changes below it end the sweeps
GAPS = 701, 301, 132, 57, 23, 10, 4, 1  # of Shell's sort (Ciura 2001)


class HalfContacts(NamedTuple):
    """Contacts as one of their bodies sees them, a column each. What a process needs to know to move a body that it owns."""

    body: np.ndarray  # (m,) i4, its place in the arranged order
    other: np.ndarray  # (m,) i8, id of the other
    feature: np.ndarray  # (m,) i4
    normal: np.ndarray  # (m, 3) pushes the body away from the other
    arm: np.ndarray  # (m, 3) m, from the body's centre
    bound: np.ndarray  # (m,) m/s, of the velocity along the normal
    common: np.ndarray  # (m, 3) m/s, what both surfaces would move at if they stuck
    friction: np.ndarray  # (m,)
    restitution: np.ndarray  # (m,) of this very blow; 0 where it does not bounce
    firm: np.ndarray  # (m,) bool, whether the other cannot move


class Sight(NamedTuple):
    """What half contacts are made from."""

    contacts: tuple  # ``Contacts``, perhaps with images
    touching: tuple  # the same with the bodies themselves
    arranged: tuple
    row: np.ndarray  # of each arranged body among the bodies
    before: np.ndarray  # (rows, 8) velocities before the forces of the step
    inertia: np.ndarray  # world frame, see ``blocks.Unknowns``
    carry: np.ndarray
    contact_values: np.ndarray
    margin: tuple
    scalars: tuple
    threshold: float
    deep: np.ndarray


class Meeting(NamedTuple):
    """A contact about to be solved: relative velocity of b, its normal part and bias, and how it would bounce."""

    ux: float
    uy: float
    uz: float
    missing: float  # by how much the relative velocity must grow along the normal
    restitution: float


@njit(**INNER)
def arms_of(c, contacts, reach):
    """From the centres of a and b to contact c."""
    a, b = contacts.a[c], contacts.b[c]
    x, y, z = float(contacts.arm[c, 0]), float(contacts.arm[c, 1]), float(contacts.arm[c, 2])
    return x, y, z, x + reach[a, 0] - reach[b, 0], y + reach[a, 1] - reach[b, 1], z + reach[a, 2] - reach[b, 2]


@njit(**INNER)
def surface(v, i, x, y, z):
    """Velocity of a row at an arm."""
    wx, wy, wz = cross(float(v[i, 4]), float(v[i, 5]), float(v[i, 6]), x, y, z)
    return v[i, 0] + wx, v[i, 1] + wy, v[i, 2] + wz


@njit(**INNER)
def along_normal(c, contacts, x, y, z):
    n = contacts.normal
    return x * float(n[c, 0]) + y * float(n[c, 1]) + z * float(n[c, 2])


@njit(**INNER)
def meeting_of(c, sight):
    """What contact c asks for; nothing is missing where its bodies part, or do not reach each other within the step."""
    contacts, touching, arranged, carry = sight.contacts, sight.touching, sight.arranged, sight.carry
    ax, ay, az, bx, by, bz = arms_of(c, contacts, arranged.reach)
    a, b, step = touching.a[c], touching.b[c], sight.scalars.step
    sx, sy, sz = surface(arranged.velocity, a, ax, ay, az)
    ux, uy, uz = surface(arranged.velocity, b, bx, by, bz)
    ux, uy, uz = ux - sx, uy - sy, uz - sz
    if carry.size > 0:
        ux, uy, uz = ux + carry[c, 0], uy + carry[c, 1], uz + carry[c, 2]
    closing, gap = -along_normal(c, contacts, ux, uy, uz), float(contacts.gap[c])
    restitution = sight.contact_values[arranged.tag[a, MATERIAL], arranged.tag[b, MATERIAL], RESTITUTION_COLUMN]
    if restitution > 0.0:
        px, py, pz = surface(sight.before, sight.row[a], ax, ay, az)
        qx, qy, qz = surface(sight.before, sight.row[b], bx, by, bz)
        px, py, pz = qx - px, qy - py, qz - pz
        if carry.size > 0:
            px, py, pz = px + carry[c, 0], py + carry[c, 1], pz + carry[c, 2]
        before = -along_normal(c, contacts, px, py, pz)
        if before > sight.threshold and closing > 0.0:
            half = 0.5 * (closing - before)  # the forces act half before the blow, half after it
            share = max(restitution * (before + half) - half, 0.0) / closing
            return Meeting(ux, uy, uz, closing if gap <= step * closing else 0.0, share)
    near = margin_of(sight.margin, contacts.a[c], contacts.b[c], arranged.reach, arranged.extent, arranged.tag)
    return Meeting(ux, uy, uz, closing - bias_of(c, gap, near, touching, sight.scalars, sight.deep), 0.0)


@njit(**INNER)
def sides_of(c, sight):
    """How many of the bodies of contact c can move, and whether it counts."""
    tag = sight.arranged.tag
    sides = (tag[sight.contacts.a[c], MOVES] > 0) + (tag[sight.contacts.b[c], MOVES] > 0)
    return sides if sides == 1 or meeting_of(c, sight).missing > 0.0 else 0


@njit(**INNER)
def count_of_tile(tile, sight):
    total = 0
    for c in range(sight.contacts.start[tile], sight.contacts.start[tile] + sight.contacts.count[tile]):
        total += sides_of(c, sight)
    return total


@Kernel
def count_halves(sight, start):
    """start (tiles + 1,) := half contacts before each tile, and of all; returns the last."""
    tiles = sight.contacts.count.size
    for tile in prange(tiles):
        start[tile + 1] = count_of_tile(np.int64(tile), sight)
    start[0] = 0
    for tile in range(tiles):
        start[tile + 1] += start[tile]
    return start[tiles]


@njit(**INNER)
def response_of(i, sight, x, y, z, dx, dy, dz):
    """Velocity along d at an arm of an arranged body after a unit impulse along d there."""
    tag, mass, inertia = sight.arranged.tag, sight.arranged.mass, sight.inertia
    if tag[i, MOVES] == 0:
        return 0.0
    if inertia.size == 0 or tag[i, MOVES] == BALL:
        tx, ty, tz = cross(x, y, z, dx, dy, dz)
        return mass[i, 0] + mass[i, 1] * (tx * tx + ty * ty + tz * tz)
    tx, ty, tz = response(inertia, i, x, y, z, dx, dy, dz)
    return mass[i, 0] + (tx * dx + ty * dy + tz * dz)


@njit(**INNER)
def fill_tile(tile, sight, start, halves, place):
    """The two sides of a contact stand together, that of a first."""
    contacts, touching, arranged = sight.contacts, sight.touching, sight.arranged
    tag, k = arranged.tag, start[tile]
    for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
        if sides_of(c, sight) == 0:
            place[c] = -1
            continue
        place[c] = k
        m = meeting_of(c, sight)
        i, j = contacts.a[c], contacts.b[c]
        a, b = touching.a[c], touching.b[c]
        nx, ny, nz = float(contacts.normal[c, 0]), float(contacts.normal[c, 1]), float(contacts.normal[c, 2])
        ax, ay, az, bx, by, bz = arms_of(c, contacts, arranged.reach)
        un = m.ux * nx + m.uy * ny + m.uz * nz
        tx, ty, tz = m.ux - un * nx, m.uy - un * ny, m.uz - un * nz
        slip = math.sqrt(tx * tx + ty * ty + tz * tz)
        dx, dy, dz = (tx / slip, ty / slip, tz / slip) if slip > 0.0 else (0.0, 0.0, 0.0)
        na, nb = response_of(i, sight, ax, ay, az, nx, ny, nz), response_of(j, sight, bx, by, bz, nx, ny, nz)
        ta, tb = response_of(i, sight, ax, ay, az, dx, dy, dz), response_of(j, sight, bx, by, bz, dx, dy, dz)
        friction = sight.contact_values[tag[a, MATERIAL], tag[b, MATERIAL], FRICTION_COLUMN]
        for side in range(2):
            own, other, sign = (a, b, -1.0) if side == 0 else (b, a, 1.0)
            if tag[own, MOVES] == 0:
                continue
            x, y, z = (ax, ay, az) if side == 0 else (bx, by, bz)
            vx, vy, vz = surface(arranged.velocity, own, x, y, z)
            along, across = (na / (na + nb), ta / (ta + tb)) if side == 0 else (nb / (na + nb), tb / (ta + tb))
            halves.body[k], halves.other[k], halves.feature[k] = own, arranged.id[other], contacts.feature[c]
            halves.normal[k, 0], halves.normal[k, 1], halves.normal[k, 2] = sign * nx, sign * ny, sign * nz
            halves.arm[k, 0], halves.arm[k, 1], halves.arm[k, 2] = x, y, z
            halves.bound[k] = sign * (vx * nx + vy * ny + vz * nz) + along * m.missing
            halves.common[k, 0] = vx - sign * across * tx
            halves.common[k, 1] = vy - sign * across * ty
            halves.common[k, 2] = vz - sign * across * tz
            halves.friction[k], halves.restitution[k], halves.firm[k] = friction, m.restitution, tag[other, MOVES] == 0
            k += 1


@Kernel
def fill_halves(sight, start, halves, place):
    """Fill ``halves``; place (contacts,) := the first half of each contact, -1 where it has none."""
    for tile in prange(sight.contacts.count.size):
        fill_tile(np.int64(tile), sight, start, halves, place)


@njit(**INNER)
def comes_before(i, j, halves):
    """The order in which a body takes its half contacts. (Two of one feature are told apart by where they are.)"""
    if halves.other[i] != halves.other[j]:
        return halves.other[i] < halves.other[j]
    if halves.feature[i] != halves.feature[j]:
        return halves.feature[i] < halves.feature[j]
    for k in range(3):
        if halves.arm[i, k] != halves.arm[j, k]:
            return halves.arm[i, k] < halves.arm[j, k]
    return False


@njit(**INNER)
def sort_own(order, halves):
    """Shell's sort of the half contacts of one body: a few, or those of a hub."""
    for gap in GAPS:
        for i in range(gap, order.size):
            k, j = order[i], i
            while j >= gap and comes_before(k, order[j - gap], halves):
                order[j] = order[j - gap]
                j -= gap
            order[j] = k


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
def write_row(root, x, y, z, dx, dy, dz, row):
    """row (6,) := L^T (d, arm x d)."""
    tx, ty, tz = cross(x, y, z, dx, dy, dz)
    tx, ty, tz = rotate_back(root.rotation, tx, ty, tz)
    row[0], row[1], row[2] = root.linear * dx, root.linear * dy, root.linear * dz
    row[3], row[4], row[5] = root.turning[0] * tx, root.turning[1] * ty, root.turning[2] * tz


@njit(**INNER)
def dot(a, b):
    total = 0.0
    for k in range(DIRECTIONS):
        total += a[k] * b[k]
    return total


class Scratch(NamedTuple):
    """Room for one body; the first five for as many half contacts as a body may have."""

    rows: np.ndarray  # (most, 6) L^T N, made of length one
    length: np.ndarray  # (most,) that they had
    lacking: np.ndarray  # (most,)
    firm: np.ndarray
    state: np.ndarray
    face: Face
    before: Face
    along: np.ndarray
    rest: np.ndarray
    relief: np.ndarray
    tangent: np.ndarray  # (6, 2, 6) L^T S of two directions of each loaded contact: against the slip, and across
    directions: np.ndarray  # (6, 2, 3) these
    slip: np.ndarray  # (6, 2) m/s, without friction
    rubbing: np.ndarray  # (6, 2) N s, friction along the two
    moved: np.ndarray  # (6,) z with friction


@njit(**INNER)
def make_scratch(most):
    return Scratch(
        np.empty((most, DIRECTIONS)),
        np.empty(most),
        np.empty(most),
        np.empty(most, np.bool_),
        np.empty(most, np.uint8),
        empty_face(),
        empty_face(),
        np.empty(DIRECTIONS),
        np.empty(DIRECTIONS),
        np.empty(DIRECTIONS),
        np.empty((DIRECTIONS, 2, DIRECTIONS)),
        np.empty((DIRECTIONS, 2, 3)),
        np.empty((DIRECTIONS, 2)),
        np.zeros((DIRECTIONS, 2)),
        np.empty(DIRECTIONS),
    )


@njit(**INNER)
def find_loads(i, own, halves, velocity, root, s):
    """The nearest velocity that meets all bounds, as ``s.face``."""
    for k in range(own.size):
        h = own[k]
        n, x = halves.normal[h], halves.arm[h]
        write_row(root, x[0], x[1], x[2], n[0], n[1], n[2], s.rows[k])
        s.length[k] = math.sqrt(dot(s.rows[k], s.rows[k]))
        vx, vy, vz = surface(velocity, i, x[0], x[1], x[2])
        s.lacking[k] = (halves.bound[h] - (vx * n[0] + vy * n[1] + vz * n[2])) / s.length[k]
        s.firm[k] = halves.firm[h]
        for j in range(DIRECTIONS):
            s.rows[k, j] /= s.length[k]
    find_nearest(own.size, s.rows, s.lacking, s.firm, s.state, s.face, s.before, s.along, s.rest, s.relief)


@njit(**INNER)
def sort_active(face):
    """The loaded contacts in the order of the body's."""
    for i in range(1, face.count[0]):
        k, load, j = face.active[i], face.load[i], i
        while j > 0 and face.active[j - 1] > k:
            face.active[j], face.load[j] = face.active[j - 1], face.load[j - 1]
            j -= 1
        face.active[j], face.load[j] = k, load


@njit(**INNER)
def throw_back(own, halves, s):
    """``s.moved`` := the change of velocity by loads and bounces, as z."""
    s.moved[:] = 0.0
    for i in range(s.face.count[0]):
        k = s.face.active[i]
        for j in range(DIRECTIONS):
            s.moved[j] += (1.0 + halves.restitution[own[k]]) * s.face.load[i] * s.rows[k, j]


@njit(**INNER)
def look_at_slip(i, own, halves, velocity, root, s):
    """Slip of the loaded contacts, along two directions each, the first against it; returns the largest, m/s."""
    largest = 0.0
    z = s.moved
    m, w = root.rotation, root.turning
    gx, gy, gz = rotate(m, w[0] * z[3], w[1] * z[4], w[2] * z[5])
    for a in range(s.face.count[0]):
        h = own[s.face.active[a]]
        n, x, common = halves.normal[h], halves.arm[h], halves.common[h]
        vx, vy, vz = surface(velocity, i, x[0], x[1], x[2])
        tx, ty, tz = cross(gx, gy, gz, x[0], x[1], x[2])
        ux, uy, uz = vx + root.linear * z[0] + tx - common[0], vy + root.linear * z[1] + ty - common[1], vz + root.linear * z[2] + tz - common[2]
        un = ux * n[0] + uy * n[1] + uz * n[2]
        ux, uy, uz = ux - un * n[0], uy - un * n[1], uz - un * n[2]
        slip = math.sqrt(ux * ux + uy * uy + uz * uz)
        if slip > 0.0:
            dx, dy, dz = -ux / slip, -uy / slip, -uz / slip
        else:
            dx, dy, dz, _, _, _ = tangents(n[0], n[1], n[2])
        ex, ey, ez = cross(n[0], n[1], n[2], dx, dy, dz)
        s.directions[a, 0, 0], s.directions[a, 0, 1], s.directions[a, 0, 2] = dx, dy, dz
        s.directions[a, 1, 0], s.directions[a, 1, 1], s.directions[a, 1, 2] = ex, ey, ez
        write_row(root, x[0], x[1], x[2], dx, dy, dz, s.tangent[a, 0])
        write_row(root, x[0], x[1], x[2], ex, ey, ez, s.tangent[a, 1])
        s.slip[a, 0], s.slip[a, 1] = -slip - dot(s.tangent[a, 0], z), -dot(s.tangent[a, 1], z)
        s.rubbing[a, 0] = s.rubbing[a, 1] = 0.0
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
def rub(own, halves, samples, largest, s):
    """Friction of the loaded contacts, a few sweeps over them."""
    for _ in range(SWEEPS):
        change = 0.0
        for a in range(s.face.count[0]):
            k = s.face.active[a]
            h = own[k]
            most = halves.friction[h] * (1.0 + halves.restitution[h]) * s.face.load[a] / s.length[k]
            if most == 0.0:
                continue
            t, o = s.tangent[a, 0], s.tangent[a, 1]
            tt, oo, to = dot(t, t), dot(o, o), dot(t, o)
            stiff = 0.5 * (tt + oo) + math.sqrt(0.25 * (tt - oo) ** 2 + to * to)  # the largest response
            x = s.rubbing[a, 0] - (s.slip[a, 0] + dot(t, s.moved)) / stiff
            y = s.rubbing[a, 1] - (s.slip[a, 1] + dot(o, s.moved)) / stiff
            x, y = into_polygon(x, y, most, samples)
            dx, dy = x - s.rubbing[a, 0], y - s.rubbing[a, 1]
            s.rubbing[a, 0], s.rubbing[a, 1] = x, y
            for j in range(DIRECTIONS):
                s.moved[j] += dx * t[j] + dy * o[j]
            change = max(change, stiff * math.sqrt(dx * dx + dy * dy))
        if change <= SETTLED * largest:
            break


@njit(**INNER)
def write_velocity(i, velocity, root, z):
    wx, wy, wz = rotate(root.rotation, root.turning[0] * z[3], root.turning[1] * z[4], root.turning[2] * z[5])
    for k in range(3):
        velocity[i, k] += root.linear * z[k]
    velocity[i, 4] += wx
    velocity[i, 5] += wy
    velocity[i, 6] += wz


@njit(**INNER)
def write_impulses(own, halves, s, impulse):
    for k in range(own.size):
        for axis in range(3):
            impulse[own[k], axis] = 0.0
    for a in range(s.face.count[0]):
        k = s.face.active[a]
        h = own[k]
        push = (1.0 + halves.restitution[h]) * s.face.load[a] / s.length[k]
        for axis in range(3):
            rubs = s.rubbing[a, 0] * s.directions[a, 0, axis] + s.rubbing[a, 1] * s.directions[a, 1, axis]
            impulse[h, axis] = push * halves.normal[h, axis] + rubs


@njit(**INNER)
def solve_chunk(chunk, most, first, order, halves, row, bodies, samples, velocity, impulse):
    s = make_scratch(most)
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, row.size)):
        if first[i] == first[i + 1]:
            continue
        own = order[first[i] : first[i + 1]]
        sort_own(own, halves)
        root = root_of(row[i], bodies.inverse_mass, bodies.quaternion)
        find_loads(i, own, halves, velocity, root, s)
        sort_active(s.face)
        throw_back(own, halves, s)
        rub(own, halves, samples, look_at_slip(i, own, halves, velocity, root, s), s)
        write_impulses(own, halves, s, impulse)
        write_velocity(i, velocity, root, s.moved)


@Kernel
def solve_bodies(halves, row, bodies, samples, first, order, velocity, impulse):
    """``velocity`` rows of the arranged bodies := those after contact; impulse (m, 3) := what each half contact gives its body, N s.
    ``samples`` (k, 2): cosine and sine of the directions of friction. ``first``, ``order``: scratch, bodies + 1 and half contacts."""
    most = group_by_body(halves.body, first, order)
    for chunk in prange((row.size + CHUNK - 1) // CHUNK):
        solve_chunk(np.int64(chunk), most, first, order, halves, row, bodies, samples, velocity, impulse)


@njit(**INNER)
def share_tile(tile, contacts, tag, place, impulse, slot, block_impulse):
    for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
        at = (slot[c] // WIDTH) * 3 * WIDTH + slot[c] % WIDTH
        first, second = tag[contacts.a[c], MOVES] > 0, tag[contacts.b[c], MOVES] > 0
        for axis in range(3):
            push = 0.0
            if place[c] >= 0 and first:
                push -= impulse[place[c], axis]
            if place[c] >= 0 and second:
                push += impulse[place[c] + first, axis]
            block_impulse[at + axis * WIDTH] = 0.5 * push if first and second else push


@Kernel
def share_impulses(contacts, tag, place, impulse, slot, block_impulse):
    """The impulse of each contact := the mean of what its two sides have found, or what the one has that can move."""
    for tile in prange(contacts.count.size):
        share_tile(np.int64(tile), contacts, tag, place, impulse, slot, block_impulse)


def directions(samples):
    """(samples, 2) cosine and sine of as many directions, evenly around."""
    turn = 2.0 * math.pi / samples
    return np.array([(math.cos(turn * k), math.sin(turn * k)) for k in range(samples)])


class BodyByBody:
    """What a step of FFD needs of the engine, kept by its cone problem."""

    def __init__(self, sight, bodies, slot, contacts, buffers, share):
        self.sight, self.bodies, self.slot, self.contacts, self.buffers, self.share = sight, bodies, slot, contacts, buffers, share

    def solve(self, samples, block_impulse):
        """New velocities of all bodies, and the impulses of the blocks."""
        if self.contacts == 0 and self.share.alone:
            return
        arranged = self.sight.arranged
        halves, place = self.half_contacts()
        own = self.share.constraints(halves)
        impulse = np.empty((len(own.body), 3))
        first, order = self.buffers.array("half_first", len(arranged.id) + 1, dtype="i8"), np.empty(len(own.body), np.int64)
        solve_bodies(own, self.sight.row, self.bodies, directions(samples), first, order, arranged.velocity, impulse)
        impulse = self.share.impulses(impulse)
        share_impulses(self.sight.contacts, arranged.tag, place, impulse, self.slot, block_impulse)

    def half_contacts(self):
        """(half contacts, place of the first of each contact)."""
        contacts, array = self.sight.contacts, self.buffers.array
        start = array("half_start", len(contacts.count) + 1, dtype="i8")
        m = int(count_halves(self.sight, start))
        place = array("half_place", len(contacts.a), dtype="i8")
        names = ("body", "i4"), ("other", "i8"), ("feature", "i4")
        numbers = ("friction", "f8"), ("restitution", "f8"), ("firm", "?")
        column = lambda name, dtype, columns=(): array(f"half_{name}", m, columns, dtype)  # noqa: E731
        vectors = [column(name, "f8", columns) for name, columns in (("normal", (3,)), ("arm", (3,)), ("bound", ()), ("common", (3,)))]
        halves = HalfContacts(*(column(*name) for name in names), *vectors, *(column(*name) for name in numbers))
        fill_halves(self.sight, start, halves, place)
        return halves, place
