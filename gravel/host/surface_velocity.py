"""Surface velocities: surfaces that move while their bodies stay (belts, rolls), and periodic images of a sheared cell that move past each
other.

In: contacts, surface velocities of bodies, drifts of images. Out: for each contact the velocity that b's surface has there beyond what b's
own motion gives it, less that of a's; it joins the bias of the cone problem.

A surface moves along itself: what its velocity has along the contact's normal does not count.
"""

import numpy as np
from numba import njit, prange

from gravel.host.threads import INNER, Kernel
from gravel.host.vectors import cross, rotate, to_matrix


@njit(**INNER)
def velocity_of_surface(row, surface, quaternion, x, y, z):
    """Velocity of a body's surface at (x, y, z) from its centre; ``surface`` holds linear and angular velocities in the body's frame."""
    m = to_matrix(quaternion[row])
    vx, vy, vz = rotate(m, surface[row, 0], surface[row, 1], surface[row, 2])
    wx, wy, wz = rotate(m, surface[row, 3], surface[row, 4], surface[row, 5])
    tx, ty, tz = cross(wx, wy, wz, x, y, z)
    return vx + tx, vy + ty, vz + tz


@njit(**INNER)
def surface_velocity_of_tile(tile, contacts, order, row, quaternion, sphere, surface, drift, surface_velocity):
    for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
        a, b = contacts.a[c], contacts.b[c]
        x, y, z = 0.0, 0.0, 0.0
        if surface.size > 0:
            ax, ay, az = contacts.arm[c, 0], contacts.arm[c, 1], contacts.arm[c, 2]
            bx, by, bz = ax + sphere[a, 0] - sphere[b, 0], ay + sphere[a, 1] - sphere[b, 1], az + sphere[a, 2] - sphere[b, 2]
            x, y, z = velocity_of_surface(row[b], surface, quaternion, bx, by, bz)
            ux, uy, uz = velocity_of_surface(row[a], surface, quaternion, ax, ay, az)
            x, y, z = x - ux, y - uy, z - uz
            nx, ny, nz = contacts.normal[c, 0], contacts.normal[c, 1], contacts.normal[c, 2]
            along = x * nx + y * ny + z * nz
            x, y, z = x - along * nx, y - along * ny, z - along * nz
        if drift.size > 0:
            x += drift[order[b], 0] - drift[order[a], 0]
            y += drift[order[b], 1] - drift[order[a], 1]
            z += drift[order[b], 2] - drift[order[a], 2]
        surface_velocity[c, 0], surface_velocity[c, 1], surface_velocity[c, 2] = x, y, z


@Kernel
def find_surface_velocity(contacts, order, row, quaternion, sphere, surface, drift, surface_velocity):
    """``surface_velocity`` (c, 3). ``order``: row of each proxy in what detection sees, ``row``: its row among the bodies; ``surface`` by
    the latter, ``drift`` by the former; either may be empty."""
    for tile in prange(contacts.count.size):
        surface_velocity_of_tile(np.int64(tile), contacts, order, row, quaternion, sphere, surface, drift, surface_velocity)


def any_moves(surface, lattice):
    """Whether surfaces, or copies of a cell that deforms, move by themselves."""
    return _flows(lattice) or len(surface) > 0


def _flows(lattice):
    return lattice is not None and (lattice.tilt_rate != 0.0 or bool(np.any(lattice.rate)))


def find_at_contacts(found, quaternion, surface, lattice, surface_velocity):
    """``surface_velocity`` (c, 3) for the contacts that a detector has ``found``; ``quaternion`` and ``surface`` by row."""
    drift = found.periodic.drift if _flows(lattice) else np.empty((0, 3))
    find_surface_velocity(found.contacts, found.order, found.row, quaternion, found.proxies.sphere, surface, drift, surface_velocity)
