"""A ball against a capsule, a cylinder or a cone: nearest points in closed form.

All three are round about their z axis, so the question is one of the plane: the ball's centre at (distance from the axis,
height) against a segment, a rectangle or a triangle. The frame, and what is returned, are those of ``pair_geometry``.
"""

import math

from numba import njit

from gravel.cpu.collide.pair_geometry import write_contact
from gravel.cpu.threads import INNER
from gravel.cpu.vectors import rotate, rotate_back, to_matrix
from gravel.shapes import CAPSULE, CYLINDER


@njit(**INNER)
def nearest_of_cylinder(radius, half, rho, z):
    """(outward normal in the half plane, signed distance) of a point from a cylinder's surface."""
    out_r, out_z = rho - radius, abs(z) - half
    side = math.copysign(1.0, z)
    if out_r <= 0.0 and out_z <= 0.0:
        return (1.0, 0.0, out_r) if out_r > out_z else (0.0, side, out_z)
    er, ez = max(out_r, 0.0), max(out_z, 0.0)
    distance = math.sqrt(er * er + ez * ez)
    return er / distance, side * ez / distance, distance


@njit(**INNER)
def nearest_of_cone(radius, height, rho, z):
    """The same for a cone: its base at -height / 4, its tip at 3 / 4 height."""
    z += 0.25 * height
    slant = math.sqrt(radius * radius + height * height)
    side_r, side_z = height / slant, radius / slant  # outward normal of the mantle
    off = (rho - radius) * side_r + z * side_z  # signed distance from the mantle's line
    along = ((radius - rho) * radius + z * height) / (slant * slant)  # 0 at the rim, 1 at the tip
    if off <= 0.0 and z >= 0.0:  # inside
        return (side_r, side_z, off) if off > -z else (0.0, -1.0, -z)
    if z < 0.0 and rho <= radius:
        return 0.0, -1.0, -z
    if off > 0.0 and along >= 0.0 and along <= 1.0:
        return side_r, side_z, off
    pr, pz = (0.0, height) if along > 1.0 else (radius, 0.0)
    er, ez = rho - pr, z - pz
    distance = math.sqrt(er * er + ez * ez)
    return (er / distance, ez / distance, distance) if distance > 0.0 else (side_r, side_z, 0.0)


@njit(**INNER)
def sphere_round(radius, kind, size, quaternion, dx, dy, dz, out, feature):
    """Contact of a ball a with a capsule, cylinder or cone b."""
    m = to_matrix(quaternion)
    x, y, z = rotate_back(m, -dx, -dy, -dz)
    rho = math.sqrt(x * x + y * y)
    cosine, sine = (x / rho, y / rho) if rho > 0.0 else (1.0, 0.0)
    if kind == CAPSULE:
        ez = z - min(max(z, -size[1]), size[1])
        distance = math.sqrt(rho * rho + ez * ez)
        er, ez = (rho / distance, ez / distance) if distance > 0.0 else (1.0, 0.0)
        distance -= size[0]
    elif kind == CYLINDER:
        er, ez, distance = nearest_of_cylinder(size[0], size[1], rho, z)
    else:
        er, ez, distance = nearest_of_cone(size[0], size[1], rho, z)
    nx, ny, nz = rotate(m, -er * cosine, -er * sine, -ez)
    gap = distance - radius
    arm = radius + 0.5 * gap
    return write_contact(out, feature, 0, 0, nx, ny, nz, arm * nx, arm * ny, arm * nz, gap)
