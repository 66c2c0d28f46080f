"""Velocities and positions: what happens to the bodies before and after the cone problem.

``add_forces``  free velocities: v + h f / m, w + h J^-1 torque
``inspect``     the lowest id of a body whose new velocity or position is not finite or out of bounds, before anything changes
                (compiled without fastmath, which would remove such tests)
``commit``      positions with the new velocities; turns by the exponential map. A body whose moments of inertia differ
                turns as a free top does (``gravel.host.free_rotation``).
"""

import numpy as np
from numba import njit, prange

from gravel.formulas.bounds import MOVES
from gravel.host.arrays import CHUNK
from gravel.host.free_rotation import carry_momentum, turn_freely
from gravel.host.threads import INNER, Kernel, named
from gravel.host.vectors import rotate, rotate_back, to_matrix, turn
from gravel.state import MOVABLE, STATUS


@njit(**INNER)
def add_gravity_of_chunk(chunk, tag, gravity, step, velocity):
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, tag.shape[0])):
        if tag[i, MOVES]:
            for k in range(3):
                velocity[i, k] += step * gravity[k]


@Kernel
def add_gravity(tag, gravity, step, velocity):
    """``velocity`` rows of the proxies that can move get gravity."""
    for chunk in prange((tag.shape[0] + CHUNK - 1) // CHUNK):
        add_gravity_of_chunk(np.int64(chunk), tag, gravity, step, velocity)


@njit(**INNER)
def add_forces_of_chunk(chunk, order, tag, inverse_mass, quaternion, force, torque, step, velocity):
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, order.size)):
        if tag[i, MOVES] == 0:
            continue
        b = order[i]
        for k in range(3):
            velocity[i, k] += step * force[b, k] * inverse_mass[b, 0]
        m = to_matrix(quaternion[b])
        x, y, z = rotate_back(m, torque[b, 0], torque[b, 1], torque[b, 2])
        x, y, z = rotate(m, inverse_mass[b, 1] * x, inverse_mass[b, 2] * y, inverse_mass[b, 3] * z)
        velocity[i, 4] += step * x
        velocity[i, 5] += step * y
        velocity[i, 6] += step * z


@Kernel
def add_forces(order, tag, inverse_mass, quaternion, force, torque, step, velocity):
    """And the forces and torques that were given for them."""
    for chunk in prange((order.size + CHUNK - 1) // CHUNK):
        add_forces_of_chunk(np.int64(chunk), order, tag, inverse_mass, quaternion, force, torque, step, velocity)


@njit(**INNER)
def inspect_chunk(chunk, order, bodies, owner, rank, velocity, step, bounds):
    """Lowest id of a body of the chunk that would get a velocity that is not finite or leave the bounds; -1: none."""
    position, tag, identity = bodies.position, bodies.tag, bodies.id
    fault = np.int64(-1)
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, order.size)):
        b = order[i]
        if b >= tag.shape[0] or tag[b, STATUS] != MOVABLE or owner[b] != rank:  # an image, a body that stays or is another's
            continue
        total = 0.0
        for k in range(8):
            total += velocity[i, k] - velocity[i, k]  # zero, or not a number
        sound = total == 0.0
        for k in range(3):
            x = position[b, k] + step * velocity[i, k]
            sound = sound & (x >= bounds[0, k]) & (x <= bounds[1, k])
        if not sound and (fault < 0 or identity[b] < fault):
            fault = identity[b]
    return fault


@njit(**INNER)
def lowest_fault(faults):
    fault = np.int64(-1)
    for chunk in range(faults.size):
        if faults[chunk] >= 0 and (fault < 0 or faults[chunk] < fault):
            fault = faults[chunk]
    return fault


def make_commit(general):
    """The work on one chunk: where every movable body is a ball, nothing turns as a top (compiled only where needed)."""

    @njit(**INNER)
    @named("any" if general else "balls")
    def commit_chunk(chunk, order, bodies, owner, rank, new, step, to, energies):
        position, quaternion = bodies.position, bodies.quaternion
        to_position, to_quaternion, velocity = to.position, to.quaternion, to.velocity
        inverse_mass, tag = bodies.inverse_mass, bodies.tag
        energy = 0.0
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, order.size)):
            b = order[i]
            if b >= tag.shape[0] or tag[b, STATUS] != MOVABLE or owner[b] != rank:
                continue
            ix, iy, iz = inverse_mass[b, 1], inverse_mass[b, 2], inverse_mass[b, 3]
            x, y, z = float(new[i, 4]), float(new[i, 5]), float(new[i, 6])
            for k in range(3):
                to_position[b, k] = position[b, k] + step * new[i, k]
            for k in range(4):
                to_quaternion[b, k] = quaternion[b, k]
            if not general or (ix == iy and iy == iz):
                turning = (x * x + y * y + z * z) / ix
                if turning > 0.0:
                    turn(to_quaternion, b, step * new[i, 4], step * new[i, 5], step * new[i, 6])
            else:
                before = to_matrix(quaternion[b])
                turn_freely(to_quaternion, b, ix, iy, iz, x, y, z, step)
                after = to_matrix(to_quaternion[b])
                x, y, z = carry_momentum(before, after, ix, iy, iz, x, y, z)
                bx, by, bz = rotate_back(after, x, y, z)
                turning = bx * bx / ix + by * by / iy + bz * bz / iz
            velocity[b, 0], velocity[b, 1], velocity[b, 2] = new[i, 0], new[i, 1], new[i, 2]
            velocity[b, 4], velocity[b, 5], velocity[b, 6] = x, y, z
            square = float(new[i, 0]) ** 2 + float(new[i, 1]) ** 2 + float(new[i, 2]) ** 2
            energy += 0.5 * (square / inverse_mass[b, 0] + turning)
        energies[chunk] = energy

    return commit_chunk


commit_ball_chunk = make_commit(False)
commit_any_chunk = make_commit(True)


@Kernel
def inspect(order, bodies, owner, rank, velocity, step, bounds, faults):
    """The lowest id of a body with a fault, or -1. Only the bodies that this process (``rank``) owns are looked at."""
    for chunk in prange(faults.size):
        faults[chunk] = inspect_chunk(np.int64(chunk), order, bodies, owner, rank, velocity, step, bounds)
    return lowest_fault(faults)


@Kernel
def commit_balls(order, bodies, owner, rank, velocity, step, to, energies):
    """``to`` := the bodies that this process owns after they have advanced with the new velocities; ``energies`` := kinetic energy of each
    chunk."""
    for chunk in prange(energies.size):
        commit_ball_chunk(np.int64(chunk), order, bodies, owner, rank, velocity, step, to, energies)


@Kernel
def commit_any(order, bodies, owner, rank, velocity, step, to, energies):
    """The same for bodies of any shape."""
    for chunk in prange(energies.size):
        commit_any_chunk(np.int64(chunk), order, bodies, owner, rank, velocity, step, to, energies)


@njit(**INNER)
def drift_chunk(chunk, bodies, step, to):
    position, quaternion, velocity = bodies.position, bodies.quaternion, bodies.velocity
    inverse_mass, tag = bodies.inverse_mass, bodies.tag
    to_position, to_quaternion, to_velocity = to.position, to.quaternion, to.velocity
    for b in range(chunk * CHUNK, min((chunk + 1) * CHUNK, position.shape[0])):
        moves = step if tag[b, STATUS] == MOVABLE else 0.0
        for k in range(3):
            to_position[b, k] = position[b, k] + moves * velocity[b, k]
        for k in range(4):
            to_quaternion[b, k] = quaternion[b, k]
        for k in range(8):
            to_velocity[b, k] = velocity[b, k]
        if moves == 0.0:
            continue
        ix, iy, iz = inverse_mass[b, 1], inverse_mass[b, 2], inverse_mass[b, 3]
        x, y, z = float(velocity[b, 4]), float(velocity[b, 5]), float(velocity[b, 6])
        if ix == iy and iy == iz:
            turn(to_quaternion, b, step * x, step * y, step * z)
        else:
            turn_freely(to_quaternion, b, ix, iy, iz, x, y, z, step)
            before, after = to_matrix(quaternion[b]), to_matrix(to_quaternion[b])
            to_velocity[b, 4], to_velocity[b, 5], to_velocity[b, 6] = carry_momentum(before, after, ix, iy, iz, x, y, z)


@Kernel
def drift(bodies, step, to):
    """``to`` := the bodies' poses and velocities after they moved on freely for ``step``."""
    for chunk in prange((bodies.position.shape[0] + CHUNK - 1) // CHUNK):
        drift_chunk(np.int64(chunk), bodies, step, to)
