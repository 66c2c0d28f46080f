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

from numba import njit, prange

from gravel.cpu.bounds import CHUNK
from gravel.cpu.vectors import rotate, rotate_back, to_matrix, turn
from gravel.state import MOVABLE


@njit(parallel=True, nogil=True, cache=True)
def add_forces(order, arranged, bodies, forces, torques, gravity, step, velocity):
    """``velocity`` rows of the arranged bodies get gravity and the applied forces; ``forces`` may be empty."""
    for chunk in prange((order.size + CHUNK - 1) // CHUNK):
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, order.size)):
            if not arranged.movable[i]:
                continue
            for k in range(3):
                velocity[i, k] += step * gravity[k]
            if forces.shape[0] > 0:
                b = order[i]
                for k in range(3):
                    velocity[i, k] += step * forces[b, k] * bodies.inverse_mass[b]
                m = to_matrix(bodies.quaternion[b])
                x, y, z = rotate_back(m, torques[b, 0], torques[b, 1], torques[b, 2])
                j = bodies.inverse_inertia[b]
                x, y, z = rotate(m, j[0] * x, j[1] * y, j[2] * z)
                velocity[i, 4] += step * x
                velocity[i, 5] += step * y
                velocity[i, 6] += step * z


@njit(nogil=True)
def turn_about_axis(q, axis, angle):
    """Turn a body by an angle about one of its own axes."""
    x, y, z = rotate(to_matrix(q), 1.0 if axis == 0 else 0.0, 1.0 if axis == 1 else 0.0, 1.0 if axis == 2 else 0.0)
    turn(q, angle * x, angle * y, angle * z)


@njit(nogil=True)
def turn_freely(q, inverse_inertia, velocity, step):
    """Turn a body with constant angular momentum L: axis by axis, the rate about axis k being (R^T L)_k / I_k."""
    m = to_matrix(q)
    x, y, z = rotate_back(m, velocity[4], velocity[5], velocity[6])
    lx, ly, lz = rotate(m, x / inverse_inertia[0], y / inverse_inertia[1], z / inverse_inertia[2])
    for stage in range(5):
        axis = stage if stage < 3 else 4 - stage
        share = 1.0 if stage == 2 else 0.5
        body = rotate_back(to_matrix(q), lx, ly, lz)
        turn_about_axis(q, axis, share * step * body[axis] * inverse_inertia[axis])


@njit(nogil=True)
def carry_momentum(before, after, inverse_inertia, velocity):
    """Angular velocity of a body whose turn changes from matrix ``before`` to ``after`` while its momentum stays."""
    x, y, z = rotate_back(before, velocity[4], velocity[5], velocity[6])
    lx, ly, lz = rotate(before, x / inverse_inertia[0], y / inverse_inertia[1], z / inverse_inertia[2])
    x, y, z = rotate_back(after, lx, ly, lz)
    return rotate(after, x * inverse_inertia[0], y * inverse_inertia[1], z * inverse_inertia[2])


@njit(parallel=True, nogil=True, cache=True)
def inspect(order, bodies, moving, final, step, bounds, faults):
    """faults[chunk] := lowest id of a body that would get a velocity that is not finite or leave the bounds; -1: none."""
    for chunk in prange((order.size + CHUNK - 1) // CHUNK):
        fault = -1
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, order.size)):
            b = order[i]
            if bodies.status[b] != MOVABLE:
                continue
            sound = True
            for k in range(8):
                sound = sound and math.isfinite(moving[i, k]) and math.isfinite(final[i, k])
            for k in range(3):
                x = bodies.position[b, k] + step * moving[i, k]
                sound = sound and x >= bounds[0, k] and x <= bounds[1, k]
            if not sound and (fault < 0 or b < fault):
                fault = b
        faults[chunk] = fault


@njit(nogil=True)
def commit_body(b, bodies, v, w, step):
    """One body takes the step; returns its kinetic energy."""
    j, q = bodies.inverse_inertia[b], bodies.quaternion[b]
    for k in range(3):
        bodies.position[b, k] += step * v[k]
        bodies.velocity[b, k] = w[k]
        bodies.velocity[b, 4 + k] = w[4 + k]
    square = float(w[0]) ** 2 + float(w[1]) ** 2 + float(w[2]) ** 2
    if j[0] == j[1] and j[1] == j[2]:
        turn(q, step * v[4], step * v[5], step * v[6])
        turning = (float(w[4]) ** 2 + float(w[5]) ** 2 + float(w[6]) ** 2) / j[0]
    else:
        before = to_matrix(q)
        turn_freely(q, j, v, step)
        x, y, z = carry_momentum(before, to_matrix(q), j, w)
        bodies.velocity[b, 4], bodies.velocity[b, 5], bodies.velocity[b, 6] = x, y, z
        x, y, z = rotate_back(to_matrix(q), x, y, z)
        turning = x * x / j[0] + y * y / j[1] + z * z / j[2]
    return 0.5 * (square / bodies.inverse_mass[b] + turning)


@njit(parallel=True, nogil=True, cache=True)
def commit(order, bodies, moving, final, step, energies):
    """Poses advance with the ``moving`` velocities, the ``final`` ones are kept; kinetic energy of each chunk."""
    for chunk in prange((order.size + CHUNK - 1) // CHUNK):
        energy = 0.0
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, order.size)):
            if bodies.status[order[i]] == MOVABLE:
                energy += commit_body(order[i], bodies, moving[i], final[i], step)
        energies[chunk] = energy
