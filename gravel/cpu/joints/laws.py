"""Laws: from the gauges of joints to rows of the cone problem.

In: joints and members (``gauges``), one ``Laws`` entry per row. Out: ``JointRows`` with J, bias b, bounds of the impulse and
compliance c of each row, so that the solver finds J v + b + c p = 0, or p at a bound; and kicks, impulses that are known before.

With x the gauge at the pose where the step looks at it, x^ where it would be a step later with the velocities v that the bodies
have now, J v its rate, h the step:

    HOLD      b = x / h + (x^ - x) / h - J v: after the step the gauge is zero, its curvature taken in (a Newton step of SHAKE
              from the last velocities); what x itself adds is at most ``recovery_speed``
    SPEED     b = -speed, |p| <= h limit
    POSITION  b = (x^ - x_wanted) / h - J v, |p| <= h limit; or a spring towards x_wanted
    LIMIT     on the nearer side: b = (x^ - bound) / h - J v, p >= 0 (lower) or <= 0 (upper); b = e J v for a bounce
    FRICTION  b = 0, |p| <= h limit
    FORCE     a kick h force
    SPRING    force f(x, x') with stiffness k and damping c, in the rule of average acceleration (unconditionally stable, keeps
              energy, second order): p = h f - h (k h / 4 + theta c) (J v+ - J v), theta = 1/2 up to the damping at which that
              would overshoot

Rows that are angles are scaled by a length of the joint's bodies, so that all are in m, m/s and N s.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from gravel.cpu.joints.gauges import gauge_of, gauge_rate, is_dead, place
from gravel.cpu.threads import INNER
from gravel.joints.kinds import ANGLE
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

    value: np.ndarray  # (m,)
    ahead: np.ndarray  # (m,) a step later, with the velocities as they are
    rate: np.ndarray  # (m,) J v
    kick: np.ndarray  # (m,) impulse that is known before


@njit(**INNER)
def add_entry(jacobian, e, sign, factor, line, turn):
    if e >= 0:
        for c in range(3):
            jacobian[e, c] += sign * factor * line[c]
            jacobian[e, 3 + c] += factor * turn[c]


@njit(**INNER)
def measure_gauge(k, gauge, joint, side, factor, anchors, members, step, laws, jacobian):
    """One gauge of row k, times ``factor``: (value, ahead, rate); its gradient is added to the row's entries."""
    x, line, turn_a, turn_b = gauge_of(gauge, joint, anchors, members.position, members.quaternion, anchors.angle[joint])
    rate = gauge_rate(joint, anchors, members.velocity, line, turn_a, turn_b)
    ahead, _, _, _ = gauge_of(gauge, joint, anchors, members.ahead_position, members.ahead_quaternion, x + step * rate)
    add_entry(jacobian, laws.entry[k, side], -1.0, factor, line, turn_a)
    add_entry(jacobian, laws.entry[k, side + 1], 1.0, factor, line, turn_b)
    return factor * x, factor * ahead, factor * rate


@njit(nogil=True, error_model="numpy", cache=True)
def measure_rows(anchors, members, laws, step, rows, measured):
    """Fill the rows' J, M^-1 J^T and their velocity places, and what the gauges are."""
    rows.jacobian[:] = 0.0
    for e in range(rows.member.size):
        rows.body[e] = members.row[rows.member[e]]
    for k in range(laws.joint.size):
        scale = laws.scale[k]
        factor = scale if laws.joint_2[k] < 0 else scale * laws.ratio[k]
        x, ahead, rate = measure_gauge(k, laws.gauge[k], laws.joint[k], 0, factor, anchors, members, step, laws, rows.jacobian)
        if laws.joint_2[k] >= 0:
            y, next_y, y_rate = measure_gauge(k, laws.gauge_2[k], laws.joint_2[k], 2, -scale, anchors, members, step, laws, rows.jacobian)
            x, ahead, rate = x + y, ahead + next_y, rate + y_rate
        measured.value[k], measured.ahead[k], measured.rate[k] = x, ahead, rate
    for e in range(rows.member.size):
        j, d, b = rows.jacobian[e], rows.delta[e], rows.member[e]
        t = members.inverse_inertia[b]
        for c in range(3):
            d[c] = members.inverse_mass[b] * j[c]
        d[3] = t[0] * j[3] + t[1] * j[4] + t[2] * j[5]
        d[4] = t[1] * j[3] + t[3] * j[4] + t[4] * j[5]
        d[5] = t[2] * j[3] + t[4] * j[4] + t[5] * j[5]


@njit(**INNER)
def soften(k, force, stiffness, damping, response, rate, step, rows, measured):
    """Row k becomes a spring that pushes with ``force`` now."""
    theta = max(0.5, 1.0 - 1.0 / max(step * damping * response, 1e-300))
    strength = step * (0.25 * step * stiffness + theta * damping)
    if strength > 0.0:
        rows.compliance[k] = 1.0 / strength
        rows.bias[k] = -rate - step * force / strength
    else:
        measured.kick[k] = step * force
        rows.lower[k] = rows.upper[k] = 0.0


@njit(**INNER)
def limit_row(k, laws, response, step, recovery_speed, threshold, rows, measured):
    """The row of a limit: the nearer side, if there is one."""
    scale, value, rate = laws.scale[k], measured.value[k], measured.rate[k]
    low, high = scale * (laws.lower[k] - laws.start[k]), scale * (laws.upper[k] - laws.start[k])
    below = value - low <= high - value
    bound, sign = (low, 1.0) if below else (high, -1.0)
    gap, closing = sign * (value - bound), sign * rate
    if not np.isfinite(bound):
        rows.lower[k] = rows.upper[k] = 0.0
        return
    if below:
        rows.lower[k] = 0.0
    else:
        rows.upper[k] = 0.0
    if laws.stiffness[k] > 0.0:
        if gap + step * closing >= 0.0 and gap >= 0.0:
            rows.lower[k] = rows.upper[k] = 0.0
            return
        stiffness, damping = laws.stiffness[k] / scale**2, laws.damping[k] / scale**2
        soften(k, -stiffness * (value - bound) - damping * rate, stiffness, damping, response, rate, step, rows, measured)
    elif laws.restitution[k] > 0.0 and closing < -threshold and gap + step * closing <= 0.0:
        rows.bias[k] = laws.restitution[k] * rate
    else:
        speed = sign * max(gap / step, -recovery_speed)
        rows.bias[k] = speed + (measured.ahead[k] - value) / step - rate


@njit(nogil=True, error_model="numpy", cache=True)
def apply_laws(anchors, members, laws, step, recovery_speed, threshold, softness, yielding, rows, measured):
    """Fill the rows' bias, bounds, compliance and eta, and the kicks. Every row yields at least by ``softness`` of its
    response, rows with bounds by ``yielding``."""
    for k in range(laws.joint.size):
        scale, role, rate, value = laws.scale[k], laws.role[k], measured.rate[k], measured.value[k]
        dead = is_dead(laws.joint[k], anchors, members) or anchors.broken[laws.owner[k]] > 0
        if laws.joint_2[k] >= 0:
            dead = dead or is_dead(laws.joint_2[k], anchors, members)
        response = 0.0
        for e in range(rows.start[k], rows.start[k + 1]):
            for c in range(6):
                response += rows.jacobian[e, c] * rows.delta[e, c]
        measured.kick[k] = rows.bias[k] = rows.compliance[k] = 0.0
        rows.lower[k], rows.upper[k] = -np.inf, np.inf
        most = step * laws.limit[k] / scale
        if dead or response <= 0.0:
            rows.lower[k] = rows.upper[k] = 0.0
        elif role == HOLD:
            gap = value - laws.value[k]
            speed = min(max(gap / step, -recovery_speed), recovery_speed)
            rows.bias[k] = speed + (measured.ahead[k] - value) / step - rate
        elif role == SPEED:
            rows.bias[k] = -scale * laws.value[k]
            rows.lower[k], rows.upper[k] = -most, most
        elif role == POSITION:
            rows.lower[k], rows.upper[k] = -most, most
            wanted = scale * (laws.ahead[k] - laws.start[k])
            if laws.stiffness[k] > 0.0:
                now = scale * (laws.value[k] - laws.start[k])
                stiffness, damping = laws.stiffness[k] / scale**2, laws.damping[k] / scale**2
                force = -stiffness * (value - now) - damping * (rate - (wanted - now) / step)
                soften(k, force, stiffness, damping, response, rate, step, rows, measured)
            else:
                rows.bias[k] = (measured.ahead[k] - wanted) / step - rate
        elif role == FORCE:
            measured.kick[k] = step * laws.value[k] / scale
            rows.lower[k] = rows.upper[k] = 0.0
        elif role == LIMIT:
            limit_row(k, laws, response, step, recovery_speed, threshold, rows, measured)
        elif role == FRICTION:
            rows.lower[k], rows.upper[k] = -most, most
        else:
            stiffness, damping = laws.stiffness[k] / scale**2, laws.damping[k] / scale**2
            force = laws.value[k] / scale
            if role == SPRING:
                force = -stiffness * (value - scale * (laws.value[k] - laws.start[k])) - damping * rate
            soften(k, force, stiffness, damping, response, rate, step, rows, measured)
        bounded = np.isfinite(rows.lower[k]) or np.isfinite(rows.upper[k])
        rows.compliance[k] += (min(softness, yielding) if bounded else softness) * response
        rows.eta[k] = 1.0 / (response + rows.compliance[k]) if response > 0.0 else 1.0


@njit(nogil=True, error_model="numpy", cache=True)
def reactions(anchors, members, laws, rows, measured, impulse, step, force, torque, motor):
    """force, torque (j, 3) := what each joint does to its body b, about the joint's point, motors left out; motor (j, 2) := effort of
    its motors on a slide and on an angle."""
    force[:] = 0.0
    torque[:] = 0.0
    motor[:] = 0.0
    for k in range(laws.joint.size):
        j, role = laws.owner[k], laws.role[k]
        p = (impulse[k] + measured.kick[k]) / step
        if role in (SPEED, POSITION, FORCE):
            motor[j, 1 if laws.gauge[k] == ANGLE else 0] += p * laws.scale[k]
            continue
        if laws.joint_2[k] >= 0 and laws.joint_2[k] != j:  # a gear: what it does to the second joint
            motor[j, 1 if laws.gauge_2[k] == ANGLE else 0] -= p * laws.scale[k]
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
        centre, arm, _ = place(b, anchors.point_b[j], anchors.frame_b[j], members.position, members.quaternion)
        x, y, z = centre[0] + arm[0], centre[1] + arm[1], centre[2] + arm[2]
        x, y, z = x - members.position[member, 0], y - members.position[member, 1], z - members.position[member, 2]
        fx, fy, fz = force[j, 0], force[j, 1], force[j, 2]
        torque[j, 0] -= y * fz - z * fy
        torque[j, 1] -= z * fx - x * fz
        torque[j, 2] -= x * fy - y * fx


@njit(nogil=True, error_model="numpy", cache=True)
def measure_violations(anchors, members, laws, violation):
    """violation (j,) := the largest error of what each joint holds, m; returns the largest of all."""
    violation[:] = 0.0
    worst = 0.0
    for k in range(laws.joint.size):
        j = laws.owner[k]
        if laws.role[k] != HOLD or anchors.broken[j] > 0 or is_dead(laws.joint[k], anchors, members):
            continue
        i = laws.joint[k]
        x, _, _, _ = gauge_of(laws.gauge[k], i, anchors, members.position, members.quaternion, anchors.angle[i])
        if laws.joint_2[k] >= 0:
            i = laws.joint_2[k]
            if is_dead(i, anchors, members):
                continue
            y, _, _, _ = gauge_of(laws.gauge_2[k], i, anchors, members.position, members.quaternion, anchors.angle[i])
            x = laws.ratio[k] * x - y
        error = abs(laws.scale[k] * x - laws.value[k])
        violation[j] = max(violation[j], error)
        worst = max(worst, error)
    return worst
