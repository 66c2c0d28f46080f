"""Carry: surfaces that move while their bodies stay (belts, rolls), and copies of a sheared cell that move past each other.

In: contacts, surface velocities of bodies, drifts of images. Out: for each contact the velocity that b's surface has there beyond what b's
own motion gives it, less that of a's; it joins the bias of the cone problem.

A surface moves along itself: what its velocity has along the contact's normal does not count.
"""

import numpy as np
from numba import njit, prange

from gravel.host.threads import INNER, Kernel
from gravel.host.vectors import cross, rotate, to_matrix


@njit(**INNER)
def surface_velocity(row, surface, quaternion, x, y, z):
    """Velocity of a body's surface at (x, y, z) from its centre; ``surface`` holds linear and angular velocities in the body's frame."""
    m = to_matrix(quaternion[row])
    vx, vy, vz = rotate(m, surface[row, 0], surface[row, 1], surface[row, 2])
    wx, wy, wz = rotate(m, surface[row, 3], surface[row, 4], surface[row, 5])
    tx, ty, tz = cross(wx, wy, wz, x, y, z)
    return vx + tx, vy + ty, vz + tz


@njit(**INNER)
def carry_of_tile(tile, contacts, order, row, quaternion, reach, surface, drift, carry):
    for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
        a, b = contacts.a[c], contacts.b[c]
        x, y, z = 0.0, 0.0, 0.0
        if surface.size > 0:
            ax, ay, az = contacts.arm[c, 0], contacts.arm[c, 1], contacts.arm[c, 2]
            bx, by, bz = ax + reach[a, 0] - reach[b, 0], ay + reach[a, 1] - reach[b, 1], az + reach[a, 2] - reach[b, 2]
            x, y, z = surface_velocity(row[b], surface, quaternion, bx, by, bz)
            ux, uy, uz = surface_velocity(row[a], surface, quaternion, ax, ay, az)
            x, y, z = x - ux, y - uy, z - uz
            nx, ny, nz = contacts.normal[c, 0], contacts.normal[c, 1], contacts.normal[c, 2]
            along = x * nx + y * ny + z * nz
            x, y, z = x - along * nx, y - along * ny, z - along * nz
        if drift.size > 0:
            x += drift[order[b], 0] - drift[order[a], 0]
            y += drift[order[b], 1] - drift[order[a], 1]
            z += drift[order[b], 2] - drift[order[a], 2]
        carry[c, 0], carry[c, 1], carry[c, 2] = x, y, z


@Kernel
def find_carry(contacts, order, row, quaternion, reach, surface, drift, carry):
    """``carry`` (c, 3). ``order``: row of each arranged body in what detection sees, ``row``: its row among the bodies; ``surface`` by the
    latter, ``drift`` by the former; either may be empty."""
    for tile in prange(contacts.count.size):
        carry_of_tile(np.int64(tile), contacts, order, row, quaternion, reach, surface, drift, carry)
