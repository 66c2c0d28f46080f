"""Laws: from the gauges of joints to rows of the cone problem.

In: joints and members (``gauges``), one ``Laws`` entry per row. Out: ``JointRows`` with J, bias b, bounds of the impulse and
compliance c of each row, so that the solver finds J v + b + c p = 0, or p at a bound; and explicit impulses, which are known before the
solve.

With x the gauge at the pose where the step looks at it, x^ where it would be a step later with the velocities v that the bodies
have now, J v its rate, h the step:

    HOLD      b = x / h + (x^ - x) / h - J v: after the step the gauge is zero, its curvature taken in; what x itself adds is at
              most ``recovery_speed``
    SPEED     b = -speed, |p| <= h limit
    POSITION  b = (x^ - x_wanted) / h - J v, |p| <= h limit; or a spring towards x_wanted
    LIMIT     on the nearer side: b = (x^ - bound) / h - J v, p >= 0 (lower) or <= 0 (upper); b = e J v for a bounce
    FRICTION  b = 0, |p| <= h limit
    FORCE explicit impulse h force
    SPRING    force f(x, x') with stiffness k and damping c, in the rule of average acceleration (unconditionally stable, keeps
              energy, second order): p = h f - h (k h / 4 + theta c) (J v+ - J v), theta = 1/2 up to the damping at which that
              would overshoot

b with x^ from the velocities before the step is a Newton step of SHAKE (Ryckaert et al. 1977). It leaves joints open by some h^2 a w,
and what closes them in the next step drives the machine: a double pendulum gains 0.4 % of its energy in 100 s. So ``renew_bias`` takes x^
and J v from the velocities that the solver has found, until they no longer change b: then the step is symplectic, and no energy drifts.

Rows that are angles are scaled by a length of the joint's bodies, so that all are in m, m/s and N s.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from gravel.host.joints.gauges import (
    SEEN,
    Anchors,
    angle_near,
    dead_joints,
    find_rows,
    gather_members,
    gauge_of,
    gauge_rate,
    joint_frame_of,
    look_ahead,
    measure_coordinates,
    see_joint,
    stiffen_members,
    write_inertia,
)
from gravel.host.joints.rows import row_velocity
from gravel.host.threads import ALLOCATING, INNER
from gravel.joints.kinds import TURNS
from gravel.joints.rows import FORCE, FRICTION, HOLD, LIMIT, POSITION, SPEED, SPRING


class Laws(NamedTuple):
    """One entry per row."""

    joint: np.ndarray  # (m,)
    gauge: np.ndarray
    joint_2: np.ndarray  # (m,) -1, or: the row holds ratio gauge - gauge_2 of joint_2
    gauge_2: np.ndarray
    ratio: np.ndarray
    owner: np.ndarray  # (m,) the joint that the row belongs to
    role: np.ndarray
    scale: np.ndarray  # (m,) m for angles, else 1
    start: np.ndarray  # (m,) what users see of a coordinate is gauge + start
    value: np.ndarray  # (m,) speed, position, force, rest, length
    ahead: np.ndarray  # (m,) the wanted position a step later
    limit: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    restitution: np.ndarray
    entry: np.ndarray  # (m, 4) entries of the row for a and b of joint, a and b of joint_2; -1: the world


class Measured(NamedTuple):
    """What the gauges of the rows are, scaled."""

    gauges: np.ndarray  # (m, 2) of joint and joint_2, not scaled
    value: np.ndarray  # (m,)
    ahead: np.ndarray  # (m,) a step later, with the velocities as they are
    rate: np.ndarray  # (m,) J v
    explicit_impulse: np.ndarray  # (m,) impulse that is known before
    flat: np.ndarray  # (m,) the bias without its curvature
    curved: np.ndarray  # (m,) 1: x^ / h - J v are part of the bias; 0: they are not


class Target(NamedTuple):
    """What a row is driven to, as in ``Laws``."""

    value: float
    ahead: float
    start: float
    limit: float


class Coefficients(NamedTuple):
    """As in ``Laws``."""

    stiffness: float
    damping: float
    lower: float
    upper: float
    restitution: float


class Curves(NamedTuple):
    """What the curvature of the rows' bias follows from: of ``Laws`` and ``Measured`` (few arrays, as each costs time at a call)."""

    anchors: Anchors
    joint: np.ndarray
    gauge: np.ndarray
    joint_2: np.ndarray
    gauge_2: np.ndarray
    ratio: np.ndarray
    scale: np.ndarray
    gauges: np.ndarray
    flat: np.ndarray
    curved: np.ndarray


def curves_of(anchors, laws, measured):
    links = laws.joint, laws.gauge, laws.joint_2, laws.gauge_2, laws.ratio, laws.scale
    return Curves(anchors, *links, measured.gauges, measured.flat, measured.curved)


@njit(**INNER)
def add_entry(jacobian, e, sign, factor, line, turn):
    if e >= 0:
        for c in range(3):
            jacobian[e, c] += sign * factor * line[c]
            jacobian[e, 3 + c] += factor * turn[c]


@njit(**INNER)
def look_at(joint, anchors, members, now, ahead):
    """``now`` and ``ahead`` := the joint as the members stand, and as they would a step later."""
    see_joint(joint, anchors, members.position, members.quaternion, now)
    see_joint(joint, anchors, members.ahead_position, members.ahead_quaternion, ahead)


@njit(**INNER)
def measure_gauge(gauge, a, b, angle, factor, step, velocity, now, ahead, entry_a, entry_b, jacobian):
    """One gauge between members a and b: (gauge; times ``factor``: ahead, rate); its gradient is added to the row's entries. Few
    arrays: the compiler counts references to each of those that are handed on, and would take longer for that than for the rest."""
    x, line, turn_a, turn_b = gauge_of(gauge, now, angle)
    rate = gauge_rate(a, b, velocity, line, turn_a, turn_b)
    later, _, _, _ = gauge_of(gauge, ahead, x + step * rate)
    add_entry(jacobian, entry_a, -1.0, factor, line, turn_a)
    add_entry(jacobian, entry_b, 1.0, factor, line, turn_b)
    return x, factor * later, factor * rate


@njit(**ALLOCATING)
def measure_gauges(anchors, members, laws, step, rows, measured):
    """Fill the rows' J and their velocity rows, and the values of the gauges."""
    jacobian, entry, velocity, member_a, member_b = rows.jacobian, laws.entry, members.velocity, anchors.member_a, anchors.member_b
    jacobian[:] = 0.0
    for e in range(rows.member.size):
        rows.body[e] = members.velocity_row[rows.member[e]]
    now, ahead, now_2, ahead_2, last = np.empty(SEEN), np.empty(SEEN), np.empty(SEEN), np.empty(SEEN), -1
    for k in range(laws.joint.size):
        scale, j = laws.scale[k], laws.joint[k]
        factor = scale if laws.joint_2[k] < 0 else scale * laws.ratio[k]
        if j != last:  # rows of a joint follow each other
            look_at(j, anchors, members, now, ahead)
            last = j
        ends = member_a[j], member_b[j], anchors.angle[j]
        x, later, rate = measure_gauge(laws.gauge[k], *ends, factor, step, velocity, now, ahead, entry[k, 0], entry[k, 1], jacobian)
        value, measured.gauges[k, 0] = factor * x, x
        if laws.joint_2[k] >= 0:
            j = laws.joint_2[k]
            look_at(j, anchors, members, now_2, ahead_2)
            ends = member_a[j], member_b[j], anchors.angle[j]
            y, later_y, y_rate = measure_gauge(
                laws.gauge_2[k], *ends, -scale, step, velocity, now_2, ahead_2, entry[k, 2], entry[k, 3], jacobian
            )
            value, later, rate, measured.gauges[k, 1] = value - scale * y, later + later_y, rate + y_rate, y
        measured.value[k], measured.ahead[k], measured.rate[k] = value, later, rate


@njit(**INNER)
def find_responses(members, rows):
    """Fill the rows' M^-1 J^T."""
    t, jacobian, delta, inverse_mass = members.inverse_inertia, rows.jacobian, rows.delta, members.inverse_mass
    for e in range(rows.member.size):
        b = rows.member[e]
        x, y, z = jacobian[e, 3], jacobian[e, 4], jacobian[e, 5]
        for c in range(3):
            delta[e, c] = inverse_mass[b] * jacobian[e, c]
        delta[e, 3] = t[b, 0] * x + t[b, 1] * y + t[b, 2] * z
        delta[e, 4] = t[b, 1] * x + t[b, 3] * y + t[b, 4] * z
        delta[e, 5] = t[b, 2] * x + t[b, 4] * y + t[b, 5] * z


@njit(**INNER)
def spring_row(force, stiffness, damping, response, rate, step):
    """``row_of`` for a spring which pushes with ``force`` now."""
    theta = max(0.5, 1.0 - 1.0 / max(step * damping * response, 1e-300))
    strength = step * (0.25 * step * stiffness + theta * damping)
    if strength > 0.0:
        return -np.inf, np.inf, -rate - step * force / strength, 0.0, 1.0 / strength, 0.0
    return 0.0, 0.0, 0.0, 0.0, 0.0, step * force


@njit(**INNER)
def limit_row(low, high, value, rate, stiffness, damping, restitution, response, step, recovery_speed, threshold):
    """``row_of`` for a limit: the nearer side, if there is one."""
    below = value - low <= high - value
    bound, sign = (low, 1.0) if below else (high, -1.0)
    gap, closing = sign * (value - bound), sign * rate
    free = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    if not np.isfinite(bound):
        return free
    lower, upper = (0.0, np.inf) if below else (-np.inf, 0.0)
    if stiffness > 0.0:
        if gap + step * closing >= 0.0 and gap >= 0.0:
            return free
        force = -stiffness * (value - bound) - damping * rate
        _, _, bias, _, compliance, explicit_impulse = spring_row(force, stiffness, damping, response, rate, step)
        return lower, upper, bias, 0.0, compliance, explicit_impulse
    if restitution > 0.0 and closing < -threshold and gap + step * closing <= 0.0:
        return lower, upper, restitution * rate, 0.0, 0.0, 0.0
    return lower, upper, sign * max(gap / step, -recovery_speed) - value / step, 1.0, 0.0, 0.0


@njit(**INNER)
def row_of(role, scale, value, rate, target, coefficients, response, step, recovery_speed, threshold):
    """(lower, upper, flat, curved, compliance, explicit_impulse) of a row that acts, as in ``Measured``. ``target`` and ``coefficients``
    are its entries of ``Laws``."""
    wanted, wanted_ahead, start, limit = target.value, target.ahead, target.start, target.limit
    stiffness, damping = coefficients.stiffness / scale**2, coefficients.damping / scale**2
    most = step * limit / scale
    if role == HOLD:
        speed = min(max((value - wanted) / step, -recovery_speed), recovery_speed)
        return -np.inf, np.inf, speed - value / step, 1.0, 0.0, 0.0
    if role == SPEED:
        return -most, most, -scale * wanted, 0.0, 0.0, 0.0
    if role == POSITION:
        now, later = scale * (wanted - start), scale * (wanted_ahead - start)
        if coefficients.stiffness == 0.0:
            return -most, most, -later / step, 1.0, 0.0, 0.0
        force = -stiffness * (value - now) - damping * (rate - (later - now) / step)
        lower, upper, bias, _, compliance, explicit_impulse = spring_row(force, stiffness, damping, response, rate, step)
        return max(lower, -most), min(upper, most), bias, 0.0, compliance, explicit_impulse
    if role == FORCE:
        return 0.0, 0.0, 0.0, 0.0, 0.0, step * wanted / scale
    if role == LIMIT:
        low, high = scale * (coefficients.lower - start), scale * (coefficients.upper - start)
        limit_arguments = stiffness, damping, coefficients.restitution, response, step, recovery_speed, threshold
        return limit_row(low, high, value, rate, *limit_arguments)
    if role == FRICTION:
        return -most, most, 0.0, 0.0, 0.0, 0.0
    force = wanted / scale
    if role == SPRING:
        force = -stiffness * (value - scale * (wanted - start)) - damping * rate
    return spring_row(force, stiffness, damping, response, rate, step)


@njit(nogil=True, error_model="numpy", cache=True)
def apply_laws(anchors, members, laws, step, recovery_speed, threshold, softness, yielding, firm, rows, measured):
    """Fill the rows' bias, bounds, compliance and eta, and the explicit impulses. Every row yields at least by ``softness`` of its
    response, rows with bounds by ``yielding``; under a load less: by that of the share ``firm``[0] (m,) of its response, or of the
    response ``firm``[1] (m,) if that is less."""
    dead, owner, joint, joint_2 = dead_joints(anchors, members), laws.owner, laws.joint, laws.joint_2
    jacobian, delta = rows.jacobian, rows.delta
    for k in range(laws.joint.size):
        response = 0.0
        for e in range(rows.start[k], rows.start[k + 1]):
            for c in range(6):
                response += jacobian[e, c] * delta[e, c]
        gone = dead[joint[k]] or anchors.broken[owner[k]] > 0 or (joint_2[k] >= 0 and dead[joint_2[k]])
        lower, upper, flat, curved, compliance, explicit_impulse = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        if not gone and response > 0.0:
            target = Target(laws.value[k], laws.ahead[k], laws.start[k], laws.limit[k])
            coefficients = Coefficients(laws.stiffness[k], laws.damping[k], laws.lower[k], laws.upper[k], laws.restitution[k])
            state, of_step = (measured.value[k], measured.rate[k]), (response, step, recovery_speed, threshold)
            lower, upper, flat, curved, compliance, explicit_impulse = row_of(
                laws.role[k], laws.scale[k], *state, target, coefficients, *of_step
            )
        rows.lower[k], rows.upper[k], measured.explicit_impulse[k], measured.flat[k], measured.curved[k] = (
            lower,
            upper,
            explicit_impulse,
            flat,
            curved,
        )
        rows.bias[k] = flat + curved * (measured.ahead[k] / step - measured.rate[k])
        bounded = np.isfinite(lower) or np.isfinite(upper)
        share = min(softness, yielding) if bounded else softness
        rows.softness[k], rows.least[k] = share * response, share * min(firm[0, k] * response, firm[1, k])
        rows.compliance[k] = compliance + rows.softness[k]
        rows.eta[k] = 1.0 / (response + rows.compliance[k]) if response > 0.0 else 1.0


@njit(**INNER)
def gauge_ahead(gauge, x, a, b, ahead, velocity, step):
    """A gauge that is x now as it is seen ``ahead``, where members a and b come with their velocities (8 numbers a member)."""
    later, line, turn_a, turn_b = gauge_of(gauge, ahead, x)
    if gauge not in TURNS:
        return later
    rate = 0.0
    for c in range(3):
        rate += turn_a[c] * velocity[8 * a + 4 + c] - line[c] * velocity[8 * a + c] if a >= 0 else 0.0
        rate += turn_b[c] * velocity[8 * b + 4 + c] + line[c] * velocity[8 * b + c] if b >= 0 else 0.0
    return angle_near(later, x + step * rate)  # it may turn by more than half a turn


@njit(**ALLOCATING)
def renew_bias(curves, members, step, parts, rows, velocity):
    """The bias of the rows with its curvature as it follows from velocities (8 numbers a member) that a solver has found; returns the
    largest change, m/s. ``rows`` refer to members; bodies go their way in so many ``parts``."""
    anchors, gauges, curved, bias, joint, joint_2 = curves.anchors, curves.gauges, curves.curved, rows.bias, curves.joint, curves.joint_2
    worst, ahead, last, position, quaternion = 0.0, np.empty(SEEN), -1, members.ahead_position, members.ahead_quaternion
    look_ahead(members, velocity, step, parts)
    for k in range(joint.size):
        if curved[k] == 0.0:
            continue
        j, scale = joint[k], curves.scale[k]
        if j != last:  # rows of a joint follow each other
            see_joint(j, anchors, position, quaternion, ahead)
            last = j
        a, b = anchors.member_a[j], anchors.member_b[j]
        later = scale * gauge_ahead(curves.gauge[k], gauges[k, 0], a, b, ahead, velocity, step)
        if joint_2[k] >= 0:
            j = last = joint_2[k]
            see_joint(j, anchors, position, quaternion, ahead)
            a, b = anchors.member_a[j], anchors.member_b[j]
            later = curves.ratio[k] * later - scale * gauge_ahead(curves.gauge_2[k], gauges[k, 1], a, b, ahead, velocity, step)
        rate = row_velocity(rows, k, 0.0, velocity) - bias[k]
        new = curves.flat[k] + later / step - rate
        worst = max(worst, abs(new - bias[k]))
        bias[k] = new
    return worst


@njit(nogil=True, error_model="numpy", cache=True)
def reactions(anchors, members, laws, rows, measured, impulse, step, force, torque, motor):
    """force, torque (j, 3) := what each joint does to its body b, about the joint's point, motors left out; motor (j, 2) := effort of
    its motors on a slide and on an angle."""
    force[:] = 0.0
    torque[:] = 0.0
    motor[:] = 0.0
    for k in range(laws.joint.size):
        j, role = laws.owner[k], laws.role[k]
        p = (impulse[k] + measured.explicit_impulse[k]) / step
        if role in (SPEED, POSITION, FORCE):
            motor[j, 1 if laws.gauge[k] in TURNS else 0] += p * laws.scale[k]
            continue
        if laws.joint_2[k] >= 0 and laws.joint_2[k] != j:  # a gear: what it does to the second joint
            motor[j, 1 if laws.gauge_2[k] in TURNS else 0] -= p * laws.scale[k]
            continue
        # what acts on b, or the opposite of what acts on a where b is the world
        side, sign = (1, 1.0) if laws.entry[k, 1] >= 0 else (0, -1.0)
        e = laws.entry[k, side]
        for c in range(3):
            force[j, c] += sign * p * rows.jacobian[e, c]
            torque[j, c] += sign * p * rows.jacobian[e, 3 + c]
    for j in range(anchors.member_a.size):
        b, a = anchors.member_b[j], anchors.member_a[j]
        member = b if b >= 0 else a
        if member < 0:
            continue
        # from the body's centre to the joint's point: moment of the force taken out
        centre, arm, _ = joint_frame_of(b, anchors.point_b[j], anchors.frame_b[j], members.position, members.quaternion)
        x, y, z = centre[0] + arm[0], centre[1] + arm[1], centre[2] + arm[2]
        x, y, z = x - members.position[member, 0], y - members.position[member, 1], z - members.position[member, 2]
        fx, fy, fz = force[j, 0], force[j, 1], force[j, 2]
        torque[j, 0] -= y * fz - z * fy
        torque[j, 1] -= z * fx - x * fz
        torque[j, 2] -= x * fy - y * fx


@njit(**ALLOCATING)
def measure_violations(anchors, members, laws, violation):
    """violation (j,) := the largest error of what each joint holds, m; returns the largest of all."""
    violation[:] = 0.0
    worst, seen, last, dead = 0.0, np.empty(SEEN), -1, dead_joints(anchors, members)
    for k in range(laws.joint.size):
        j, i = laws.owner[k], laws.joint[k]
        if laws.role[k] != HOLD or anchors.broken[j] > 0 or dead[i]:
            continue
        if i != last:
            see_joint(i, anchors, members.position, members.quaternion, seen)
        x, last = gauge_of(laws.gauge[k], seen, anchors.angle[i])[0], i
        if laws.joint_2[k] >= 0:
            i = last = laws.joint_2[k]
            if dead[i]:
                continue
            see_joint(i, anchors, members.position, members.quaternion, seen)
            x = laws.ratio[k] * x - gauge_of(laws.gauge_2[k], seen, anchors.angle[i])[0]
        error = abs(laws.scale[k] * x - laws.value[k])
        violation[j] = max(violation[j], error)
        worst = max(worst, error)
    return worst


# What Python calls: small machines take thousands of steps a second, and each call costs as much as a dozen rows.
@njit(nogil=True, error_model="numpy", cache=True)
def gather(bodies, step, members):
    """The members' state is that of the bodies."""
    gather_members(*bodies, step, members)


@njit(nogil=True, error_model="numpy", cache=True)
def measure(bodies, order, index_of_row, step, anchors, force, members, laws, rows, measured, inertia, again):
    """Members, gauges and gradients of all rows where the bodies are; ``inertia`` (of all bodies) gets what stiff members
    add by the pull of ``force``. Returns how many are stiff, and whether any is near it. ``again``: not for the first time in this step."""
    gather_members(*bodies, step, members)
    find_rows(order, index_of_row, members)
    measure_gauges(anchors, members, laws, step, rows, measured)
    stiff, near = stiffen_members(anchors, members, laws, rows, force, step)
    if stiff > 0 or again:
        write_inertia(members, inertia)
    find_responses(members, rows)
    return stiff, near


@njit(nogil=True, error_model="numpy", cache=True)
def measure_rows(anchors, members, laws, step, rows, measured):
    """Gauges, gradients and responses of all rows where the members are."""
    measure_gauges(anchors, members, laws, step, rows, measured)
    find_responses(members, rows)


@njit(nogil=True, error_model="numpy", cache=True)
def look(bodies, anchors, members, laws, joints, gauges, values, rates, violation):
    """Coordinates, rates and violations where the bodies are; returns the largest violation."""
    gather_members(*bodies, 0.0, members)
    measure_coordinates(anchors, members, joints, gauges, values, rates)
    return measure_violations(anchors, members, laws, violation)
