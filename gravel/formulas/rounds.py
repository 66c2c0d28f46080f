"""A ball against a capsule, a cylinder or a cone: nearest points in closed form.

All three are round about their z axis, so the question is one of the plane: the ball's centre at (distance from the axis,
height) against a segment, a rectangle or a triangle. The frame, and what is returned, are those of ``pair_geometry``.
"""

from __future__ import annotations

import math

from gravel.formulas.contact_rows import write_contact
from gravel.formulas.kinds import Names, Table, Turn, Vector
from gravel.formulas.vectors import rotate, rotate_back, to_matrix
from gravel.shapes import CAPSULE, CYLINDER


def nearest_of_capsule(radius: float, half: float, rho: float, z: float):
    """(outward normal in the half plane, signed distance) of a point from a capsule's surface."""
    ez = z - min(max(z, -half), half)
    distance = math.sqrt(rho * rho + ez * ez)
    if distance > 0.0:
        return rho / distance, ez / distance, distance - radius
    return 1.0, 0.0, distance - radius


def nearest_of_cylinder(radius: float, half: float, rho: float, z: float):
    """The same for a cylinder."""
    out_r, out_z = rho - radius, abs(z) - half
    side = math.copysign(1.0, z)
    if out_r <= 0.0 and out_z <= 0.0:
        if out_r > out_z:
            return 1.0, 0.0, out_r
        return 0.0, side, out_z
    er, ez = max(out_r, 0.0), max(out_z, 0.0)
    distance = math.sqrt(er * er + ez * ez)
    return er / distance, side * ez / distance, distance


def nearest_of_cone(radius: float, height: float, rho: float, z: float):
    """The same for a cone: its base at -height / 4, its tip at 3 / 4 height."""
    up = z + 0.25 * height
    slant = math.sqrt(radius * radius + height * height)
    side_r, side_z = height / slant, radius / slant  # outward normal of the mantle
    off = (rho - radius) * side_r + up * side_z  # signed distance from the mantle's line
    along = ((radius - rho) * radius + up * height) / (slant * slant)  # 0 at the rim, 1 at the tip
    if off <= 0.0 and up >= 0.0:  # inside
        if off > -up:
            return side_r, side_z, off
        return 0.0, -1.0, -up
    if up < 0.0 and rho <= radius:
        return 0.0, -1.0, -up
    if off > 0.0 and along >= 0.0 and along <= 1.0:
        return side_r, side_z, off
    er, ez = rho - (0.0 if along > 1.0 else radius), up - (height if along > 1.0 else 0.0)
    distance = math.sqrt(er * er + ez * ez)
    if distance > 0.0:
        return er / distance, ez / distance, distance
    return side_r, side_z, 0.0


def sphere_round(radius: float, kind: int, size: Vector, turn: Turn, dx: float, dy: float, dz: float, out: Table, feature: Names):
    """Contact of a ball a with a capsule, cylinder or cone b."""
    m = to_matrix(turn)
    x, y, z = rotate_back(m, -dx, -dy, -dz)
    rho = math.sqrt(x * x + y * y)
    cosine, sine = float(1.0), float(0.0)
    if rho > 0.0:
        cosine, sine = x / rho, y / rho
    if kind == CAPSULE:
        er, ez, distance = nearest_of_capsule(size[0], size[1], rho, z)
    elif kind == CYLINDER:
        er, ez, distance = nearest_of_cylinder(size[0], size[1], rho, z)
    else:
        er, ez, distance = nearest_of_cone(size[0], size[1], rho, z)
    nx, ny, nz = rotate(m, -er * cosine, -er * sine, -ez)
    gap = distance - radius
    arm = radius + 0.5 * gap
    return write_contact(out, feature, 0, 0, nx, ny, nz, arm * nx, arm * ny, arm * nz, gap)
