"""Contact geometry of balls and planes with simple shapes: pure functions, one per pair of kinds, testable alone.

Each works in the frame whose origin is the centre of the first body, a, with d = centre of b - centre of a, and writes
contacts as rows (normal from a to b, point, gap) into ``out``; the point lies halfway between the two surfaces. Returns
the number of rows. ``limit``: gaps above it need not be reported. ``feature`` tells the rows of one pair apart, so that a
contact is known again in the next step.
"""

from __future__ import annotations

import math

from gravel.formulas.contact_rows import write_contact
from gravel.formulas.kinds import Matrix, Names, Table, Turn, Vector
from gravel.formulas.vectors import rotate, rotate_back, to_matrix


def between_spheres(radius_a: float, radius_b: float, dx: float, dy: float, dz: float):
    """The row of two spheres, as a tuple: they are too many to go by way of ``out``."""
    distance = math.sqrt(dx * dx + dy * dy + dz * dz)
    nx, ny, nz = float(0.0), float(0.0), float(1.0)  # same centre: any direction serves
    if distance > 0.0:
        scale = 1.0 / distance
        nx, ny, nz = scale * dx, scale * dy, scale * dz
    gap = distance - radius_a - radius_b
    arm = radius_a + 0.5 * gap
    return nx, ny, nz, arm * nx, arm * ny, arm * nz, gap


def sphere_plane(radius: float, normal: Vector, dx: float, dy: float, dz: float, out: Table, feature: Names):
    nx, ny, nz = normal[0], normal[1], normal[2]
    gap = -(dx * nx + dy * ny + dz * nz) - radius
    arm = radius + 0.5 * gap
    return write_contact(out, feature, 0, 0, -nx, -ny, -nz, -arm * nx, -arm * ny, -arm * nz, gap)


def sphere_box(radius: float, half: Vector, turn: Turn, dx: float, dy: float, dz: float, out: Table, feature: Names):
    m = to_matrix(turn)
    x, y, z = rotate_back(m, -dx, -dy, -dz)  # the ball's centre in the box frame
    cx, cy, cz = min(max(x, -half[0]), half[0]), min(max(y, -half[1]), half[1]), min(max(z, -half[2]), half[2])
    depth_x, depth_y, depth_z = half[0] - abs(x), half[1] - abs(y), half[2] - abs(z)
    return sphere_at_box(radius, m, x, y, z, cx - x, cy - y, cz - z, depth_x, depth_y, depth_z, out, feature)


def sphere_at_box(
    radius: float,
    m: Matrix,
    x: float,
    y: float,
    z: float,
    ex: float,
    ey: float,
    ez: float,
    depth_x: float,
    depth_y: float,
    depth_z: float,
    out: Table,
    feature: Names,
):
    """Contact of a ball, its centre at (x, y, z) in the frame of a box whose turn is m, with the point of the box that is nearest to it,
    at e from the centre; how deep the centre lies below the faces counts where it is inside, and e is zero."""
    distance = math.sqrt(ex * ex + ey * ey + ez * ez)
    nx, ny, nz = float(0.0), float(0.0), float(0.0)
    if distance > 0.0:
        nx, ny, nz = ex / distance, ey / distance, ez / distance
    else:  # the centre is inside: out through the nearest face
        if depth_x <= depth_y and depth_x <= depth_z:
            distance, nx = -depth_x, -math.copysign(1.0, x)
        elif depth_y <= depth_z:
            distance, ny = -depth_y, -math.copysign(1.0, y)
        else:
            distance, nz = -depth_z, -math.copysign(1.0, z)
    nx, ny, nz = rotate(m, nx, ny, nz)
    gap = distance - radius
    arm = radius + 0.5 * gap
    return write_contact(out, feature, 0, 0, nx, ny, nz, arm * nx, arm * ny, arm * nz, gap)


def ellipsoid_plane(radii: Vector, turn: Turn, normal: Vector, dx: float, dy: float, dz: float, out: Table, feature: Names):
    """The point of the ellipsoid whose normal is the plane's: R^2 n / |R n| in its own frame (paper 002, eq. A-13)."""
    m, nx, ny, nz = to_matrix(turn), normal[0], normal[1], normal[2]
    x, y, z = rotate_back(m, -nx, -ny, -nz)
    x, y, z = radii[0] * x, radii[1] * y, radii[2] * z
    height = math.sqrt(x * x + y * y + z * z)
    x, y, z = rotate(m, radii[0] * x / height, radii[1] * y / height, radii[2] * z / height)
    gap = -(dx * nx + dy * ny + dz * nz) - height
    shift = -0.5 * gap
    return write_contact(out, feature, 0, 0, -nx, -ny, -nz, x + shift * nx, y + shift * ny, z + shift * nz, gap)


def box_plane(half: Vector, turn: Turn, normal: Vector, dx: float, dy: float, dz: float, limit: float, out: Table, feature: Names):
    """The corners of the box near the plane."""
    m = to_matrix(turn)
    nx, ny, nz = normal[0], normal[1], normal[2]
    k = int(0)
    for corner in range(8):
        x = half[0] if (corner & 1) != 0 else -half[0]
        y = half[1] if (corner & 2) != 0 else -half[1]
        z = half[2] if (corner & 4) != 0 else -half[2]
        x, y, z = rotate(m, x, y, z)
        gap = (x - dx) * nx + (y - dy) * ny + (z - dz) * nz
        if gap <= limit:
            shift = -0.5 * gap
            k = write_contact(out, feature, k, corner, -nx, -ny, -nz, x + shift * nx, y + shift * ny, z + shift * nz, gap)
    return k
