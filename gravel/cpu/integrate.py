"""Velocities and positions: what happens to the bodies before and after the cone problem.

``add_forces``  free velocities: v + h f / m, w + h J^-1 torque
``inspect``     the first body whose new velocity or position is not finite or out of bounds, before anything is changed
                (compiled without fastmath, which would remove such tests)
``commit``      positions with the new velocities; turns by the exponential map. A body whose moments of inertia differ
                turns as a free top does: its angular momentum stays, its angular velocity does not (the gyroscopic
                term). Strang splitting into turns about the principal axes keeps the momentum exactly and the energy
                within a bound that does not grow (McLachlan 1993), where an explicit gyroscopic torque gains energy.
"""

import math

import numpy as np
from numba import njit, prange

from gravel.cpu.bounds import CHUNK
from gravel.cpu.threads import INNER, PARALLEL
from gravel.cpu.vectors import rotate, rotate_back, to_matrix, turn
from gravel.state import MOVABLE, STATUS


@njit(parallel=PARALLEL, nogil=True, error_model="numpy", cache=True)
def add_forces(order, arranged, bodies, forces, torques, gravity, step, velocity):
    """``velocity`` rows of the arranged bodies get gravity and the applied forces; ``forces`` may be empty."""
    for chunk in prange((order.size + CHUNK - 1) // CHUNK):
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, order.size)):
            if arranged.tag[i, 3] == 0:
                continue
            for k in range(3):
                velocity[i, k] += step * gravity[k]
            if forces.shape[0] > 0:
                b = order[i]
                for k in range(3):
                    velocity[i, k] += step * forces[b, k] * bodies.inverse_mass[b, 0]
                m = to_matrix(bodies.quaternion[b])
                x, y, z = rotate_back(m, torques[b, 0], torques[b, 1], torques[b, 2])
                j = bodies.inverse_mass
                x, y, z = rotate(m, j[b, 1] * x, j[b, 2] * y, j[b, 3] * z)
                velocity[i, 4] += step * x
                velocity[i, 5] += step * y
                velocity[i, 6] += step * z


@njit(**INNER)
def turn_freely(quaternion, b, ix, iy, iz, wx, wy, wz, step):
    """Turn body b with constant angular momentum L: axis by axis, the rate about axis k being (R^T L)_k / I_k."""
    m = to_matrix(quaternion[b])
    x, y, z = rotate_back(m, wx, wy, wz)
    lx, ly, lz = rotate(m, x / ix, y / iy, z / iz)
    for stage in range(5):
        axis = stage if stage < 3 else 4 - stage
        m = to_matrix(quaternion[b])
        body, inverse = rotate_back(m, lx, ly, lz), (ix, iy, iz)
        angle = (1.0 if stage == 2 else 0.5) * step * body[axis] * inverse[axis]
        turn(quaternion, b, angle * m[0][axis], angle * m[1][axis], angle * m[2][axis])


@njit(**INNER)
def carry_momentum(before, after, ix, iy, iz, wx, wy, wz):
    """Angular velocity of a body whose turn changes from matrix ``before`` to ``after`` while its momentum stays."""
    x, y, z = rotate_back(before, wx, wy, wz)
    lx, ly, lz = rotate(before, x / ix, y / iy, z / iz)
    x, y, z = rotate_back(after, lx, ly, lz)
    return rotate(after, x * ix, y * iy, z * iz)


@njit(nogil=True, error_model="numpy", cache=True)
def inspect(order, bodies, velocity, step, bounds):
    """Lowest id of a body that would get a velocity that is not finite or leave the bounds; -1: none."""
    fault = -1
    for i in range(order.size):
        b = order[i]
        if bodies.tag[b, STATUS] != MOVABLE:
            continue
        sound = True
        for k in range(8):
            sound = sound and math.isfinite(velocity[i, k])
        for k in range(3):
            x = bodies.position[b, k] + step * velocity[i, k]
            sound = sound and x >= bounds[0, k] and x <= bounds[1, k]
        if not sound and (fault < 0 or b < fault):
            fault = b
    return fault


@njit(**INNER)
def commit_chunk(chunk, order, bodies, new, step, energies):
    position, quaternion, velocity = bodies.position, bodies.quaternion, bodies.velocity
    inverse_mass, tag = bodies.inverse_mass, bodies.tag
    energy = 0.0
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, order.size)):
        b = order[i]
        if tag[b, STATUS] != MOVABLE:
            continue
        ix, iy, iz = inverse_mass[b, 1], inverse_mass[b, 2], inverse_mass[b, 3]
        x, y, z = float(new[i, 4]), float(new[i, 5]), float(new[i, 6])
        for k in range(3):
            position[b, k] += step * new[i, k]
        if ix == iy and iy == iz:
            turn(quaternion, b, step * new[i, 4], step * new[i, 5], step * new[i, 6])
            turning = (x * x + y * y + z * z) / ix
        else:
            before = to_matrix(quaternion[b])
            turn_freely(quaternion, b, ix, iy, iz, x, y, z, step)
            after = to_matrix(quaternion[b])
            x, y, z = carry_momentum(before, after, ix, iy, iz, x, y, z)
            bx, by, bz = rotate_back(after, x, y, z)
            turning = bx * bx / ix + by * by / iy + bz * bz / iz
        velocity[b, 0], velocity[b, 1], velocity[b, 2] = new[i, 0], new[i, 1], new[i, 2]
        velocity[b, 4], velocity[b, 5], velocity[b, 6] = x, y, z
        square = float(new[i, 0]) ** 2 + float(new[i, 1]) ** 2 + float(new[i, 2]) ** 2
        energy += 0.5 * (square / inverse_mass[b, 0] + turning)
    energies[chunk] = energy


@njit(parallel=PARALLEL, nogil=True, error_model="numpy", cache=True)
def commit(order, bodies, velocity, step, energies):
    """The bodies take the new velocities and advance with them; kinetic energy of each chunk."""
    for chunk in prange((order.size + CHUNK - 1) // CHUNK):
        commit_chunk(np.int64(chunk), order, bodies, velocity, step, energies)
