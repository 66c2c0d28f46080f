"""Gauges: the scalars that joints hold at zero or leave free, and their gradients.

In: joints (``Anchors``), poses of the bodies that have joints (``Members``). Out: the value of a gauge and its gradient on the
velocities of the two bodies, J = [-l, w_a | l, w_b] on (v_a, omega_a | v_b, omega_b).

With p_a = x_a + r_a and p_b = x_b + r_b the joint's points, d = p_b - p_a, frames a_i and b_j fixed in the bodies:

    OFFSET i    d . a_i        l = a_i    w_a = -(r_a + d) x a_i    w_b = r_b x a_i
    DOT ij      a_i . b_j      l = 0      w_a = -b_j x a_i          w_b = b_j x a_i
    DISTANCE    |d|            l = d/|d|  w_a = -r_a x l            w_b = r_b x l
    REACH i     d . b_i        l = b_i    w_a = -r_a x b_i          w_b = (r_b - d) x b_i
    SWING       of d about a_3 l = a_3 x d / |a_3 x d|^2            w_a = -(r_a + d) x l    w_b = r_b x l
    ANGLE       of b_1 to a_1  l = 0      w_a = -a_3                w_b = a_3        (exact where a_3 = b_3)
    TURN i      rotation vector from a to b, along a_i: w_a = -a_i, w_b = a_i        (for small turns)
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from gravel.host.free_rotation import carry_momentum, turn_freely
from gravel.host.threads import ALLOCATING, INNER
from gravel.host.vectors import cross, rotate, to_matrix, turn
from gravel.joints.kinds import ANGLE, DISTANCE, DOT, REACH_X, SWING, TURN_X, TURNS
from gravel.joints.rows import HOLD
from gravel.state import MOVABLE, REMOVED, STATUS

# a joint as it is seen at some poses: arms, vector d between its points, axes of its frames, quaternion of the turn from a to b
ARM_A, ARM_B, APART, AXES_A, AXES_B, TURNED, SEEN = 0, 3, 6, 9, 18, 27, 31
STIFF = 1.0  # (w h)^2 from which on links count as stiff
NEAR = 0.1  # of that: forces may well make them stiff within a step
FORBIDDEN = 1e9  # times its inertia: what a turn counts for that a row does not allow at all
LENT_INERTIA = 0.05  # of a body's inertia: what may count for the bodies that it is joined with
CALM = 0.2  # of the added inertia's momentum relative to the links around: what a step takes from a stiff link


class Anchors(NamedTuple):
    """One row per joint."""

    member_a: np.ndarray  # (j,) index among the members, -1: the world
    member_b: np.ndarray
    point_a: np.ndarray  # (j, 3) m, in the frame of the body
    point_b: np.ndarray
    frame_a: np.ndarray  # (j, 4) quaternion, in the frame of the body
    frame_b: np.ndarray
    angle: np.ndarray  # (j,) rad, as last seen, so that full turns are counted
    broken: np.ndarray  # (j,) u1


class Members(NamedTuple):
    """The bodies that have joints, one row each."""

    id: np.ndarray  # (k,)
    state_row: np.ndarray  # (k,) row in the engine's state, -1: the body is gone
    velocity_row: np.ndarray  # (k,) row of its velocity in the solver
    status: np.ndarray  # (k,)
    position: np.ndarray  # (k, 3)
    quaternion: np.ndarray  # (k, 4)
    velocity: np.ndarray  # (k, 6) linear, angular
    ahead_position: np.ndarray  # (k, 3) where they would be a step later with these velocities
    ahead_quaternion: np.ndarray  # (k, 4)
    inverse_mass: np.ndarray  # (k,)
    inverse_moments: np.ndarray  # (k, 3) about the principal axes
    inverse_inertia: np.ndarray  # (k, 6) xx xy xz yy yz zz, world frame
    mass: np.ndarray  # (k,)
    inertia: np.ndarray  # (k, 6)
    calming: np.ndarray  # (k, 3) what the angular velocities of stiff ones change by before the step


def make_members(identity):
    k = len(identity)
    return Members(
        np.array(identity, np.int64),
        np.zeros(k, np.int64),
        np.zeros(k, np.int64),
        np.zeros(k, np.int64),
        np.zeros((k, 3)),
        np.zeros((k, 4)),
        np.zeros((k, 6)),
        np.zeros((k, 3)),
        np.zeros((k, 4)),
        np.zeros(k),
        np.zeros((k, 3)),
        np.zeros((k, 6)),
        np.zeros(k),
        np.zeros((k, 6)),
        np.zeros((k, 3)),
    )


@njit(**INNER)
def turned_tensor(m, x, y, z, out, k):
    """out[k] := upper half of m diag(x, y, z) m^T"""
    c = 0
    for row in range(3):
        for column in range(row, 3):
            out[k, c] = m[row][0] * x * m[column][0] + m[row][1] * y * m[column][1] + m[row][2] * z * m[column][2]
            c += 1


@njit(**INNER)
def gather_members(tag, position, quaternion, velocity, inverse_mass, step, members):
    """Fill the members' poses, masses and velocities, and where they would be after ``step``."""
    for k in range(members.state_row.size):
        b = members.state_row[k]
        if b < 0:
            members.status[k] = REMOVED
            members.inverse_mass[k] = members.mass[k] = 0.0
            members.velocity[k], members.inverse_inertia[k], members.inertia[k] = 0.0, 0.0, 0.0
            continue
        members.status[k] = min(tag[b, STATUS], MOVABLE)  # machines sleep as a whole: to their joints nothing changes
        for c in range(3):
            members.position[k, c] = position[b, c]
            members.velocity[k, c] = velocity[b, c]
            members.velocity[k, 3 + c] = velocity[b, 4 + c]
            members.inverse_moments[k, c] = inverse_mass[b, 1 + c]
            members.ahead_position[k, c] = position[b, c] + step * velocity[b, c]
        for c in range(4):
            members.quaternion[k, c] = quaternion[b, c]
            members.ahead_quaternion[k, c] = quaternion[b, c]
        x, y, z = members.velocity[k, 3], members.velocity[k, 4], members.velocity[k, 5]
        ix, iy, iz = inverse_mass[b, 1], inverse_mass[b, 2], inverse_mass[b, 3]
        if members.status[k] == MOVABLE:
            m = to_matrix(quaternion[b])
            members.inverse_mass[k], members.mass[k] = inverse_mass[b, 0], 1.0 / inverse_mass[b, 0]
            turned_tensor(m, ix, iy, iz, members.inverse_inertia, k)
            turned_tensor(m, 1.0 / ix, 1.0 / iy, 1.0 / iz, members.inertia, k)
            turn_ahead(members.ahead_quaternion, k, ix, iy, iz, x, y, z, step, 1)
        else:
            members.inverse_mass[k] = members.mass[k] = 0.0
            members.inverse_inertia[k] = 0.0
            members.inertia[k] = 0.0
            turn(members.ahead_quaternion, k, step * x, step * y, step * z)


@njit(**INNER)
def turn_ahead(quaternion, k, ix, iy, iz, x, y, z, step, parts):
    """Turn a body that can move as the steps will: ``step`` in so many parts, of which each splits the turn anew."""
    if ix == iy and iy == iz:
        turn(quaternion, k, step * x, step * y, step * z)
        return
    for part in range(parts):
        before = to_matrix(quaternion[k])
        turn_freely(quaternion, k, ix, iy, iz, x, y, z, step / parts)
        if part + 1 < parts:
            x, y, z = carry_momentum(before, to_matrix(quaternion[k]), ix, iy, iz, x, y, z)


@njit(**INNER)
def look_ahead(members, velocity, step, parts):
    """Where members that can move would be after ``step`` with velocities (8 numbers a member) that a solver has found. (Where the step
    is taken in two halves, a turn in one part differs by h^3: enough for a machine in space to lose 1e-4 of its energy in 30 s.)"""
    position, quaternion, moments = members.ahead_position, members.ahead_quaternion, members.inverse_moments
    for k in range(members.state_row.size):
        if members.status[k] != MOVABLE:
            continue
        i = 8 * k
        for c in range(3):
            position[k, c] = members.position[k, c] + step * velocity[i + c]
        for c in range(4):
            quaternion[k, c] = members.quaternion[k, c]
        x, y, z = velocity[i + 4], velocity[i + 5], velocity[i + 6]
        turn_ahead(quaternion, k, moments[k, 0], moments[k, 1], moments[k, 2], x, y, z, step, parts)


@njit(**INNER)
def add_leverage(member, arm, fx, fy, fz, leverage):
    """A force f at an arm r resists turns of its body with the stiffness (r . f) 1 - (r f^T + f r^T) / 2."""
    if member < 0:
        return
    k = leverage[member]
    x, y, z = arm
    along = x * fx + y * fy + z * fz
    k[0, 0] += along - x * fx
    k[1, 1] += along - y * fy
    k[2, 2] += along - z * fz
    for i, j, value in ((0, 1, x * fy + y * fx), (0, 2, x * fz + z * fx), (1, 2, y * fz + z * fy)):
        k[i, j] -= 0.5 * value
        k[j, i] -= 0.5 * value


@njit(**ALLOCATING)
def gather_leverage(anchors, members, force):
    """(k, 3, 3) what the forces of the joints resist turns of the members with."""
    leverage = np.zeros((members.state_row.size, 3, 3))
    for j in range(anchors.member_a.size):
        fx, fy, fz = force[j, 0], force[j, 1], force[j, 2]
        if anchors.broken[j] == 0 and fx * fx + fy * fy + fz * fz > 0.0:
            a, b = anchors.member_a[j], anchors.member_b[j]
            _, arm_a, _ = joint_frame_of(a, anchors.point_a[j], anchors.frame_a[j], members.position, members.quaternion)
            _, arm_b, _ = joint_frame_of(b, anchors.point_b[j], anchors.frame_b[j], members.position, members.quaternion)
            add_leverage(a, arm_a, -fx, -fy, -fz, leverage)
            add_leverage(b, arm_b, fx, fy, fz, leverage)
    return leverage


@njit(**INNER)
def quadratic(t, x, y, z):
    """x^T T x with the upper half t of T."""
    return t[0] * x * x + t[3] * y * y + t[5] * z * z + 2.0 * (t[1] * x * y + t[2] * x * z + t[4] * y * z)


@njit(**ALLOCATING)
def share_masses(anchors, members, laws, rows):
    """(m,) whether a row holds its bodies whatever it takes; (k,) into how many shares each member's mass, and its inertia, go, so that
    each such row can count one for each body that it acts on. Rows at right angles to each other count different motions of a mass."""
    dead, count = dead_joints(anchors, members), members.state_row.size
    holds, along, turns = np.zeros(laws.role.size, np.bool_), np.zeros((count, 3, 3)), np.zeros(count)
    for k in range(laws.role.size):
        gone = dead[laws.joint[k]] or anchors.broken[laws.owner[k]] > 0 or (laws.joint_2[k] >= 0 and dead[laws.joint_2[k]])
        holds[k] = laws.role[k] == HOLD and not gone
        if not holds[k]:
            continue
        users = 0
        for e in range(rows.start[k], rows.start[k + 1]):
            users += members.status[rows.member[e]] == MOVABLE
        for e in range(rows.start[k], rows.start[k + 1]):
            b, line, w = rows.member[e], rows.jacobian[e, :3], rows.jacobian[e, 3:]
            square = line[0] * line[0] + line[1] * line[1] + line[2] * line[2]
            for i in range(3):
                for j in range(3):
                    along[b, i, j] += users * line[i] * line[j] / square if square > 0.0 else 0.0
            turns[b] += users if w[0] != 0.0 or w[1] != 0.0 or w[2] != 0.0 else 0
    lines = np.zeros(count)
    for k in range(count):
        for i in range(3):
            lines[k] = max(lines[k], np.abs(along[k, i]).sum())  # no less than the largest eigenvalue
    return holds, lines, turns


@njit(**INNER)
def support_members(anchors, members, laws, rows, doubted, inertia):
    """inertia (k, 3, 3) of ``doubted`` members += at the least what a turn must move beside the body itself.

    A row that holds, w . omega + J' v' = 0 with all else that it acts on in J' v', lets a body turn only as something else moves: the
    kinetic energy of that is (w . omega)^2 / (2 J' M^-1 J'^T) or more (Cauchy and Schwarz), as if the body had w w^T / (J' M^-1 J'^T)
    more of inertia. On a hinge at an arm r that is m r^2; between bodies that turn along, next to nothing. Where a whole chain sways,
    the sum over its members must not exceed the energy there is, so each row gets its share of M only: of masses, which count for
    nothing else, the whole is shared out; of moments of inertia, which count for their own body, the part ``LENT_INERTIA``. (Were it the
    whole, (w h)^2 could be 2: stable as long as forces stay, but a chain that whips breaks.)"""
    holds, lines, turns = share_masses(anchors, members, laws, rows)
    for k in range(holds.size):
        if not holds[k]:
            continue
        whole = 0.0
        for e in range(rows.start[k], rows.start[k + 1]):
            b, (lx, ly, lz, x, y, z) = rows.member[e], rows.jacobian[e]
            whole += lines[b] * members.inverse_mass[b] * (lx * lx + ly * ly + lz * lz)
            whole += turns[b] / LENT_INERTIA * quadratic(members.inverse_inertia[b], x, y, z)
        for e in range(rows.start[k], rows.start[k + 1]):
            b, w = rows.member[e], rows.jacobian[e, 3:]
            turn = quadratic(members.inverse_inertia[b], w[0], w[1], w[2])
            if doubted[b] and turn > 0.0:
                remainder = max(whole - turns[b] / LENT_INERTIA * turn, turn / FORBIDDEN)
                for i in range(3):
                    for j in range(3):
                        inertia[b, i, j] += w[i] * w[j] / remainder


@njit(**ALLOCATING)
def stiffen_members(anchors, members, laws, rows, force, step):
    """Inertia of members that a pull at their joints makes stiff against turning gets the least addition that keeps the step
    stable; returns how many, and whether any member is at least near it. ``rows`` have their gradients.

    A light link under a tension T turns back with the frequency w = sqrt(12 T / (m l)). Evaluated where the step looks, that
    stiffness K is stable up to w h = 2 only. With h^2 K added to the inertia w h stays below 1 (Tournier et al. 2015). It is added
    where and as far as h^2 K exceeds the inertia that a turn must move, so that mechanisms that are not stiff move, and keep their
    angular momentum, exactly as without. (h^2 K / 4, the rule of average acceleration, is stable too, but just so: K follows from
    forces that are not quite those of the step, and where these grow it is too small.)"""
    count = members.state_row.size
    leverage, moved = gather_leverage(anchors, members, force), np.zeros((count, 3, 3))
    doubted, doubts, near = np.zeros(count, np.bool_), 0, False
    for k in range(count):
        t = members.inverse_inertia[k]
        size = math.sqrt((leverage[k] * leverage[k]).sum())
        square = step * step * size * (t[0] + t[3] + t[5])  # (w h)^2 at the most
        near |= members.status[k] == MOVABLE and square > NEAR * STIFF
        if members.status[k] == MOVABLE and square > STIFF:
            doubted[k], doubts = True, doubts + 1
            copy_tensor(members.inertia[k], moved[k])
    if doubts == 0:
        return 0, near
    support_members(anchors, members, laws, rows, doubted, moved)
    stiff, added, weight = 0, np.zeros((count, 3, 3)), np.zeros(count)
    for k in range(count):
        if not doubted[k]:
            continue
        values, axes = np.linalg.eigh(step * step * leverage[k] - STIFF * moved[k])
        if values[2] <= 0.0:
            continue
        stiff += 1
        for c in range(3):
            for i in range(3):
                for j in range(3):
                    added[k, i, j] += max(values[c], 0.0) * axes[i, c] * axes[j, c]
        weight[k] = max(values[0], 0.0) + max(values[1], 0.0) + values[2]
        add_inertia(members, k, added[k])
    if stiff > 0:
        calm_members(anchors, members, added, weight)
    return stiff, near


@njit(**INNER)
def copy_tensor(t, out):
    """out (3, 3) := the tensor with the upper half t"""
    c = 0
    for i in range(3):
        for j in range(i, 3):
            out[i, j] = out[j, i] = t[c]
            c += 1


@njit(**ALLOCATING)
def add_inertia(members, k, added):
    inertia = np.empty((3, 3))
    copy_tensor(members.inertia[k], inertia)
    inertia += added
    back, c = np.linalg.inv(inertia), 0
    for i in range(3):
        for j in range(i, 3):
            members.inertia[k, c], members.inverse_inertia[k, c] = inertia[i, j], 0.5 * (back[i, j] + back[j, i])
            c += 1


@njit(**INNER)
def first_of(group, k):
    """The first of a member's group, along ever shorter ways (union-find)."""
    while group[k] != k:
        group[k] = group[group[k]]
        k = group[k]
    return k


@njit(**ALLOCATING)
def group_stiff(anchors, weight):
    """(k,) the first of the stiff members (those with a ``weight``) that joints connect with each, by way of stiff members."""
    group = np.arange(weight.size)
    for j in range(anchors.member_a.size):
        a, b = anchors.member_a[j], anchors.member_b[j]
        if a >= 0 and b >= 0 and anchors.broken[j] == 0 and weight[a] > 0.0 and weight[b] > 0.0:
            a, b = first_of(group, a), first_of(group, b)
            group[max(a, b)] = min(a, b)
    for k in range(weight.size):
        group[k] = first_of(group, k)
    return group


@njit(**ALLOCATING)
def calm_members(anchors, members, added, weight):
    """``members.calming`` := what the angular velocities of stiff members change by, so that a taut chain does not tremble.

    Links that swing across the chain pull at its ends twice in a period. The ``added`` inertia follows that pull a step late, and
    inertia that grows while a body turns fastest gives it energy: the swing grows until the chain breaks. So some of the added
    inertia's momentum is taken, relative to the mean of the stiff members around. For a chain that mean is the turn of the line
    between its ends: what the chain carries keeps its motion."""
    group = group_stiff(anchors, weight)
    total, mean = np.zeros(weight.size), np.zeros((weight.size, 3))
    for k in range(weight.size):
        total[group[k]] += weight[k]
        for c in range(3):
            mean[group[k], c] += weight[k] * members.velocity[k, 3 + c]
    members.calming[:] = 0.0
    for k in range(weight.size):
        if weight[k] > 0.0:
            t, excess, taken = members.inverse_inertia[k], members.velocity[k, 3:] - mean[group[k]] / total[group[k]], np.zeros(3)
            for i in range(3):
                for j in range(3):
                    taken[i] += CALM * added[k, i, j] * excess[j]
            x, y, z = taken
            members.calming[k, 0] = -(t[0] * x + t[1] * y + t[2] * z)
            members.calming[k, 1] = -(t[1] * x + t[3] * y + t[4] * z)
            members.calming[k, 2] = -(t[2] * x + t[4] * y + t[5] * z)


@njit(**INNER)
def write_inertia(members, inertia):
    """The members' inverse inertia, as the contacts see it too."""
    for k in range(members.state_row.size):
        if members.status[k] == MOVABLE:
            for c in range(6):
                inertia[8 * members.velocity_row[k] + c] = members.inverse_inertia[k, c]


@njit(**INNER)
def find_rows(order, index_of_row, members):
    """``members.velocity_row`` := index of each member in ``order``; those that are gone get the dummy's behind the last."""
    for i in range(order.size):
        index_of_row[order[i]] = i
    for k in range(members.state_row.size):
        members.velocity_row[k] = index_of_row[members.state_row[k]] if members.state_row[k] >= 0 else order.size


@njit(**INNER)
def product(p, q):
    """Quaternion p q."""
    return (
        p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3],
        p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2],
        p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1],
        p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0],
    )


@njit(**INNER)
def joint_frame_of(member, point, frame, position, quaternion):
    """(position of the body, arm r, quaternion of the joint's frame) on one side, world frame."""
    if member < 0:
        return (0.0, 0.0, 0.0), (point[0], point[1], point[2]), (frame[0], frame[1], frame[2], frame[3])
    x = position[member]
    arm = rotate(to_matrix(quaternion[member]), point[0], point[1], point[2])
    return (x[0], x[1], x[2]), arm, product(quaternion[member], frame)


@njit(**INNER)
def angle_near(angle, near):
    """The angle, with the full turns that bring it nearest to another."""
    return angle + 2.0 * math.pi * round((near - angle) / (2.0 * math.pi))


@njit(**INNER)
def see_joint(joint, anchors, position, quaternion, seen):
    """seen (SEEN,) := all that the gauges of a joint follow from, at the given poses of the members."""
    xa, ra, qa = joint_frame_of(anchors.member_a[joint], anchors.point_a[joint], anchors.frame_a[joint], position, quaternion)
    xb, rb, qb = joint_frame_of(anchors.member_b[joint], anchors.point_b[joint], anchors.frame_b[joint], position, quaternion)
    a, b = to_matrix(qa), to_matrix(qb)
    for i in range(3):
        seen[ARM_A + i], seen[ARM_B + i], seen[APART + i] = ra[i], rb[i], xb[i] + rb[i] - xa[i] - ra[i]
        for j in range(3):
            seen[AXES_A + 3 * j + i], seen[AXES_B + 3 * j + i] = a[i][j], b[i][j]
    w, x, y, z = product((qa[0], -qa[1], -qa[2], -qa[3]), qb)
    seen[TURNED], seen[TURNED + 1], seen[TURNED + 2], seen[TURNED + 3] = w, x, y, z


@njit(**INNER)
def vector(seen, first):
    return seen[first], seen[first + 1], seen[first + 2]


@njit(**INNER)
def rod_gauge(gauge, seen, near):
    """``gauge_of`` for SWING and REACH, the gauges of rods that have no body."""
    (rx, ry, rz), (sx, sy, sz), (dx, dy, dz) = vector(seen, ARM_A), vector(seen, ARM_B), vector(seen, APART)
    if gauge >= REACH_X:
        bx, by, bz = vector(seen, AXES_B + 3 * (gauge - REACH_X))
        wx, wy, wz = cross(rx, ry, rz, bx, by, bz)
        return dx * bx + dy * by + dz * bz, (bx, by, bz), (-wx, -wy, -wz), cross(sx - dx, sy - dy, sz - dz, bx, by, bz)
    (ax, ay, az), (ox, oy, oz) = vector(seen, AXES_A), vector(seen, AXES_A + 3)
    nx, ny, nz = vector(seen, AXES_A + 6)
    angle = math.atan2(dx * ox + dy * oy + dz * oz, dx * ax + dy * ay + dz * az)
    lx, ly, lz = cross(nx, ny, nz, dx, dy, dz)
    square = max(lx * lx + ly * ly + lz * lz, 1e-24)  # a rod along its own axis has no angle
    lx, ly, lz = lx / square, ly / square, lz / square
    wx, wy, wz = cross(rx + dx, ry + dy, rz + dz, lx, ly, lz)
    return angle_near(angle, near), (lx, ly, lz), (-wx, -wy, -wz), cross(sx, sy, sz, lx, ly, lz)


@njit(**INNER)
def gauge_of(gauge, seen, near):
    """(value, l, w_a, w_b) of a gauge of a joint (``see_joint``); an angle comes with the full turns that bring it nearest to
    ``near``."""
    none = (0.0, 0.0, 0.0)
    if gauge < DOT:
        ax, ay, az = vector(seen, AXES_A + 3 * gauge)
        (rx, ry, rz), (sx, sy, sz), (dx, dy, dz) = vector(seen, ARM_A), vector(seen, ARM_B), vector(seen, APART)
        wx, wy, wz = cross(rx + dx, ry + dy, rz + dz, ax, ay, az)
        return dx * ax + dy * ay + dz * az, (ax, ay, az), (-wx, -wy, -wz), cross(sx, sy, sz, ax, ay, az)
    if gauge == DISTANCE:
        (rx, ry, rz), (sx, sy, sz), (dx, dy, dz) = vector(seen, ARM_A), vector(seen, ARM_B), vector(seen, APART)
        length = math.sqrt(dx * dx + dy * dy + dz * dz)
        nx, ny, nz = (dx / length, dy / length, dz / length) if length > 1e-12 else vector(seen, AXES_A + 6)
        wx, wy, wz = cross(rx, ry, rz, nx, ny, nz)
        return length, (nx, ny, nz), (-wx, -wy, -wz), cross(sx, sy, sz, nx, ny, nz)
    if gauge < DISTANCE:
        ax, ay, az = vector(seen, AXES_A + 3 * ((gauge - DOT) // 3))
        bx, by, bz = vector(seen, AXES_B + 3 * ((gauge - DOT) % 3))
        wx, wy, wz = cross(bx, by, bz, ax, ay, az)
        return ax * bx + ay * by + az * bz, none, (-wx, -wy, -wz), (wx, wy, wz)
    if gauge == ANGLE:
        sine, cosine = 0.0, 0.0
        for i in range(3):
            sine += seen[AXES_A + 3 + i] * seen[AXES_B + i] - seen[AXES_A + i] * seen[AXES_B + 3 + i]
            cosine += seen[AXES_A + i] * seen[AXES_B + i] + seen[AXES_A + 3 + i] * seen[AXES_B + 3 + i]
        nx, ny, nz = vector(seen, AXES_A + 6)
        return angle_near(math.atan2(sine, cosine), near), none, (-nx, -ny, -nz), (nx, ny, nz)
    if gauge >= SWING:
        return rod_gauge(gauge, seen, near)
    w, (x, y, z) = seen[TURNED], vector(seen, TURNED + 1)
    sine = math.sqrt(x * x + y * y + z * z)
    factor = 2.0 * math.atan2(sine, abs(w)) / sine if sine > 1e-12 else 2.0
    nx, ny, nz = vector(seen, AXES_A + 3 * (gauge - TURN_X))
    return (factor if w >= 0.0 else -factor) * seen[TURNED + 1 + gauge - TURN_X], none, (-nx, -ny, -nz), (nx, ny, nz)


@njit(**INNER)
def gauge_rate(a, b, velocity, line, turn_a, turn_b):
    """J v of a gauge between members a and b."""
    rate = 0.0
    for c in range(3):
        if a >= 0:
            rate += turn_a[c] * velocity[a, 3 + c] - line[c] * velocity[a, c]
        if b >= 0:
            rate += turn_b[c] * velocity[b, 3 + c] + line[c] * velocity[b, c]
    return rate


@njit(**ALLOCATING)
def dead_joints(anchors, members):
    """(j,) whether a joint is broken, or one of its bodies was removed."""
    dead = np.zeros(anchors.broken.size, np.bool_)
    for j in range(dead.size):
        a, b = anchors.member_a[j], anchors.member_b[j]
        gone = (a >= 0 and members.status[a] == REMOVED) or (b >= 0 and members.status[b] == REMOVED)
        dead[j] = gone or anchors.broken[j] > 0
    return dead


@njit(**ALLOCATING)
def measure_coordinates(anchors, members, joints, gauges, values, rates):
    """Values and rates of some gauges of some joints at the members' poses; angles take note of their turns."""
    seen = np.empty(SEEN)
    for k in range(joints.size):
        j = joints[k]
        see_joint(j, anchors, members.position, members.quaternion, seen)
        value, line, turn_a, turn_b = gauge_of(gauges[k], seen, anchors.angle[j])
        values[k] = value
        rates[k] = gauge_rate(anchors.member_a[j], anchors.member_b[j], members.velocity, line, turn_a, turn_b)
        if gauges[k] in TURNS:
            anchors.angle[j] = value
