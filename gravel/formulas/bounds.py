"""How far bodies reach: boxes around them, and what is looked for beyond."""

from __future__ import annotations

import math

from gravel.formulas.kinds import Matrix, Table, Turn
from gravel.formulas.vectors import to_matrix
from gravel.shapes import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, PLANE, ROUNDED_BOX, SPHERE

MOVES = 3  # column of a proxy's tag: whether forces can move it
BALL, OTHER = 1, 2  # it can, and is a ball for the solver (inertia a number, arms along normals) or something else
HASTE = 2.0  # an impact may make a body faster within the step: its neighbours are looked for as if it had been by so much


def scale_of(radius_a: float, radius_b: float):
    """The length by which the precision of a pair is measured: the smaller one's size, unless the other is far too large."""
    larger = max(radius_a, radius_b)
    return max(2.0 * min(radius_a, radius_b), 1e-6 * larger if larger < math.inf else 0.0)


def half_of_ellipsoid(m: Matrix, x: float, y: float, z: float):
    """Half extents of an ellipsoid's axis-aligned box (paper 002, eq. 12)."""
    return (
        math.sqrt((m[0][0] * x) * (m[0][0] * x) + (m[0][1] * y) * (m[0][1] * y) + (m[0][2] * z) * (m[0][2] * z)),
        math.sqrt((m[1][0] * x) * (m[1][0] * x) + (m[1][1] * y) * (m[1][1] * y) + (m[1][2] * z) * (m[1][2] * z)),
        math.sqrt((m[2][0] * x) * (m[2][0] * x) + (m[2][1] * y) * (m[2][1] * y) + (m[2][2] * z) * (m[2][2] * z)),
    )


def half_of_cone(radius: float, height: float, x: float, y: float, z: float):
    """Half extents of a cone whose axis is (x, y, z), even about its centre."""
    tip, base = 0.75 * height, 0.25 * height
    return (
        max(tip * abs(x), base * abs(x) + radius * math.sqrt(max(1.0 - x * x, 0.0))),
        max(tip * abs(y), base * abs(y) + radius * math.sqrt(max(1.0 - y * y, 0.0))),
        max(tip * abs(z), base * abs(z) + radius * math.sqrt(max(1.0 - z * z, 0.0))),
    )


def half_of_cylinder(radius: float, half: float, x: float, y: float, z: float):
    """Half extents of a cylinder whose axis is (x, y, z), all of them positive."""
    return (
        half * x + radius * math.sqrt(max(1.0 - x * x, 0.0)),
        half * y + radius * math.sqrt(max(1.0 - y * y, 0.0)),
        half * z + radius * math.sqrt(max(1.0 - z * z, 0.0)),
    )


def half_of_box(m: Matrix, x: float, y: float, z: float):
    """Half extents of a turned box."""
    return (
        abs(m[0][0]) * x + abs(m[0][1]) * y + abs(m[0][2]) * z,
        abs(m[1][0]) * x + abs(m[1][1]) * y + abs(m[1][2]) * z,
        abs(m[2][0]) * x + abs(m[2][1]) * y + abs(m[2][2]) * z,
    )


def half_extents(shape: int, x: float, y: float, z: float, radius: float, turn: Turn, geometry: int, half: Table):
    """Half extents of a body's axis-aligned box: of its kind of shape, size (x, y, z) and bounding radius; ``half`` has those of the
    geometries, of which ``geometry`` is its own."""
    if shape == SPHERE or shape == PLANE:
        return radius, radius, radius
    m = to_matrix(turn)
    if shape == ELLIPSOID:
        return half_of_ellipsoid(m, x, y, z)
    if shape == CONE:
        return half_of_cone(x, y, m[0][2], m[1][2], m[2][2])
    if shape == CAPSULE:
        return x + y * abs(m[0][2]), x + y * abs(m[1][2]), x + y * abs(m[2][2])
    if shape == CYLINDER:
        return half_of_cylinder(x, y, abs(m[0][2]), abs(m[1][2]), abs(m[2][2]))
    if shape == BOX:
        return half_of_box(m, x, y, z)
    if shape == ROUNDED_BOX:
        rounding = radius - math.sqrt(x * x + y * y + z * z)
        core_x, core_y, core_z = half_of_box(m, x, y, z)
        return core_x + rounding, core_y + rounding, core_z + rounding
    return half_of_box(m, x * half[geometry, 0], x * half[geometry, 1], x * half[geometry, 2])
