"""Velocities and positions: what happens to the bodies before and after the cone problem, as ``gravel.cpu.integrate``. Poses are in double
precision; so is all that turns them."""

import warp as wp

from gravel.formulas.bounds import MOVES
from gravel.gpu.devices import sent
from gravel.gpu.launch import run
from gravel.gpu.structs import Bodies, Proxies
from gravel.state import MOVABLE, STATUS

wp.set_module_options({"enable_backward": False, "max_unroll": 0})
double = wp.float64
d0, d1, d2, half, quarter = (wp.constant(wp.float64(x)) for x in (0.0, 1.0, 2.0, 0.5, 0.25))
SMALL = wp.constant(wp.float64(0.01))


@wp.func
def matrix_of(q: wp.vec4d):
    """Rotation matrix of a quaternion (w, x, y, z)."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    return wp.mat33d(
        d1 - d2 * (y * y + z * z),
        d2 * (x * y - w * z),
        d2 * (x * z + w * y),
        d2 * (x * y + w * z),
        d1 - d2 * (x * x + z * z),
        d2 * (y * z - w * x),
        d2 * (x * z - w * y),
        d2 * (y * z + w * x),
        d1 - d2 * (x * x + y * y),
    )


@wp.func
def quaternion_of(quaternion: wp.array2d(dtype=wp.float64), i: int):
    return wp.vec4d(quaternion[i, 0], quaternion[i, 1], quaternion[i, 2], quaternion[i, 3])


@wp.func
def turned(q: wp.vec4d, r: wp.vec3d):
    """exp(r) q, normalised: a rotation vector in the world frame is added to it."""
    a = quarter * wp.dot(r, r)  # square of half the angle
    c = d1 - a / d2 * (d1 - a / double(12.0) * (d1 - a / double(30.0) * (d1 - a / double(56.0) * (d1 - a / double(90.0)))))
    s = half * (
        d1 - a / double(6.0) * (d1 - a / double(20.0) * (d1 - a / double(42.0) * (d1 - a / double(72.0) * (d1 - a / double(110.0)))))
    )
    if a >= SMALL:
        angle = wp.sqrt(a)
        c = wp.cos(angle)
        s = half * wp.sin(angle) / angle
    v, u = s * r, wp.vec3d(q[1], q[2], q[3])
    new = c * u + q[0] * v + wp.cross(v, u)
    return wp.normalize(wp.vec4d(c * q[0] - wp.dot(v, u), new[0], new[1], new[2]))


@wp.func
def momentum_of(m: wp.mat33d, inverse: wp.vec3d, w: wp.vec3d):
    """Angular momentum at angular velocity w."""
    return m * wp.cw_div(wp.transpose(m) * w, inverse)


@wp.func
def turned_freely(q: wp.vec4d, inverse: wp.vec3d, w: wp.vec3d, step: wp.float64):
    """The turn after ``step`` with constant angular momentum: axis by axis, Strang splitting (McLachlan 1993)."""
    momentum = momentum_of(matrix_of(q), inverse, w)
    for stage in range(5):
        axis = stage
        share = half
        if stage > 2:
            axis = 4 - stage
        if stage == 2:
            share = d1
        m = matrix_of(q)
        along = wp.vec3d(m[0, axis], m[1, axis], m[2, axis])
        angle = share * step * wp.dot(along, momentum) * inverse[axis]
        q = turned(q, angle * along)
    return q


@wp.func
def inverse_inertia(bodies: Bodies, i: int):
    return wp.vec3d(bodies.inverse_mass[i, 1], bodies.inverse_mass[i, 2], bodies.inverse_mass[i, 3])


@wp.func
def same(v: wp.vec3d):
    return v[0] == v[1] and v[1] == v[2]


@wp.kernel
def drift(
    bodies: Bodies,
    step: wp.float64,
    position: wp.array2d(dtype=wp.float64),
    quaternion: wp.array2d(dtype=wp.float64),
    velocity: wp.array2d(dtype=float),
):
    """Poses and velocities after the bodies moved on freely for ``step``."""
    i = wp.tid()
    q = quaternion_of(bodies.quaternion, i)
    for k in range(8):
        velocity[i, k] = bodies.velocity[i, k]
    time = d0
    if bodies.tag[i, STATUS] == MOVABLE:
        time = step
        inverse = inverse_inertia(bodies, i)
        w = wp.vec3d(double(bodies.velocity[i, 4]), double(bodies.velocity[i, 5]), double(bodies.velocity[i, 6]))
        if same(inverse):
            q = turned(q, step * w)
        else:
            momentum = momentum_of(matrix_of(q), inverse, w)
            q = turned_freely(q, inverse, w, step)
            m = matrix_of(q)
            w = m * wp.cw_mul(wp.transpose(m) * momentum, inverse)
            for k in range(3):
                velocity[i, 4 + k] = float(w[k])
    for k in range(3):
        position[i, k] = bodies.position[i, k] + time * double(bodies.velocity[i, k])
    for k in range(4):
        quaternion[i, k] = q[k]


@wp.kernel
def set_driven(
    rows: wp.array(dtype=int),
    pose: wp.array2d(dtype=wp.float64),
    speed: wp.array2d(dtype=wp.float64),
    position: wp.array2d(dtype=wp.float64),
    quaternion: wp.array2d(dtype=wp.float64),
    velocity: wp.array2d(dtype=float),
):
    """Rows that follow a motion get its poses (7 numbers, or none) and velocities (6)."""
    k = wp.tid()
    i = rows[k]
    if pose.shape[0] > 0:
        for c in range(3):
            position[i, c] = pose[k, c]
        for c in range(4):
            quaternion[i, c] = pose[k, 3 + c]
    for c in range(3):
        velocity[i, c] = float(speed[k, c])
        velocity[i, 4 + c] = float(speed[k, 3 + c])


@wp.kernel
def add_forces(
    proxies: Proxies,
    bodies: Bodies,
    gravity: wp.vec3d,
    force: wp.array2d(dtype=wp.float64),
    torque: wp.array2d(dtype=wp.float64),
    step: wp.float64,
):
    """Free velocities: gravity and, where there are any, forces and torques."""
    i = wp.tid()
    if proxies.tag[i, MOVES] == 0:
        return
    for k in range(3):
        proxies.velocity[i, k] = float(double(proxies.velocity[i, k]) + step * gravity[k])
    if force.shape[0] > 0:
        m = matrix_of(quaternion_of(bodies.quaternion, i))
        t = wp.vec3d(torque[i, 0], torque[i, 1], torque[i, 2])
        w = m * wp.cw_mul(wp.transpose(m) * t, inverse_inertia(bodies, i))
        for k in range(3):
            proxies.velocity[i, k] = float(double(proxies.velocity[i, k]) + step * force[i, k] * bodies.inverse_mass[i, 0])
            proxies.velocity[i, 4 + k] = float(double(proxies.velocity[i, 4 + k]) + step * w[k])


@wp.kernel
def inspect(
    bodies: Bodies,
    owner: wp.array(dtype=int),
    rank: int,
    velocity: wp.array2d(dtype=float),
    step: wp.float64,
    world: wp.array2d(dtype=wp.float64),
    fault: wp.array(dtype=wp.int64),
):
    """The lowest id of a body that would get a velocity that is not finite or leave the world."""
    i = wp.tid()
    if bodies.tag[i, STATUS] != MOVABLE or owner[i] != rank:
        return
    sound = bool(True)
    for k in range(8):
        sound = sound and wp.isfinite(velocity[i, k])
    for k in range(3):
        x = bodies.position[i, k] + step * double(velocity[i, k])
        sound = sound and x >= world[0, k] and x <= world[1, k]
    if not sound:
        wp.atomic_min(fault, 0, bodies.id[i])


@wp.kernel
def commit(
    bodies: Bodies,
    owner: wp.array(dtype=int),
    rank: int,
    solved: wp.array2d(dtype=float),
    step: wp.float64,
    position: wp.array2d(dtype=wp.float64),
    quaternion: wp.array2d(dtype=wp.float64),
    velocity: wp.array2d(dtype=float),
    energy: wp.array(dtype=wp.float64),
):
    """The bodies that this process owns after they have advanced with the new velocities, and their kinetic energies."""
    i = wp.tid()
    energy[i] = d0
    if bodies.tag[i, STATUS] != MOVABLE or owner[i] != rank:
        return
    q = quaternion_of(bodies.quaternion, i)
    v = wp.vec3d(double(solved[i, 0]), double(solved[i, 1]), double(solved[i, 2]))
    w = wp.vec3d(double(solved[i, 4]), double(solved[i, 5]), double(solved[i, 6]))
    inverse = inverse_inertia(bodies, i)
    turning = wp.dot(w, w) / inverse[0]
    if same(inverse):
        if turning > d0:
            q = turned(q, step * w)
    else:
        momentum = momentum_of(matrix_of(q), inverse, w)
        q = turned_freely(q, inverse, w, step)
        m = matrix_of(q)
        own = wp.cw_mul(wp.transpose(m) * momentum, inverse)
        turning = wp.dot(wp.cw_div(own, inverse), own)
        w = m * own
    for k in range(3):
        position[i, k] = bodies.position[i, k] + step * v[k]
        velocity[i, k] = solved[i, k]
        velocity[i, 4 + k] = float(w[k])
    for k in range(4):
        quaternion[i, k] = q[k]
    energy[i] = half * (wp.dot(v, v) / bodies.inverse_mass[i, 0] + turning)


@wp.kernel
def add_up(values: wp.array(dtype=wp.float64), share: int, sums: wp.array(dtype=wp.float64)):
    """Sums of stretches."""
    t = wp.tid()
    total = d0
    for k in range(t * share, wp.min((t + 1) * share, values.shape[0])):
        total += values[k]
    sums[t] = total


@wp.kernel
def shift_bodies(shift: wp.array2d(dtype=wp.float64), position: wp.array2d(dtype=wp.float64)):
    """What the way of bodies that bounced differs from that at their new velocity."""
    i = wp.tid()
    for k in range(3):
        position[i, k] = position[i, k] + shift[i, k]


def sent_drive(rows, pose, velocity, device):
    """What ``drive`` takes, on the device: (k,) rows, (k, 7) poses or none, (k, 6) velocities of bodies with a motion."""
    return [sent(values, dtype, device) for values, dtype in ((rows, wp.int32), (pose, wp.float64), (velocity, wp.float64))]


def drive(given, bodies, device):
    """Bodies with a motion get their poses and velocities."""
    run(set_driven, given[0].shape[0], [*given, bodies.position, bodies.quaternion, bodies.velocity], device)
