"""Contacts of two boxes. The frame, and what is returned, are those of ``pair_geometry``."""

from __future__ import annotations

import math

from gravel.formulas.contact_rows import write_contact
from gravel.formulas.kinds import Matrix, Names, Table, Turn, Vector
from gravel.formulas.vectors import cross, rotate, rotate_back, to_matrix

MOST_POINTS = 8  # of one pair
MOST_CORNERS = 16  # of a face while it is clipped
PARALLEL = 1e-6  # sine of the angle below which the direction across two edges is made of rounding
HAIR = 1e-9  # of a half extent: edges that coincide do not cut each other


def column(m: Matrix, k: int):
    return m[0][k], m[1][k], m[2][k]


def extent_along(m: Matrix, half: Vector, nx: float, ny: float, nz: float):
    """Half the width of a box along a direction."""
    x, y, z = rotate_back(m, nx, ny, nz)
    return abs(x) * half[0] + abs(y) * half[1] + abs(z) * half[2]


def box_box(
    half_a: Vector,
    turn_a: Turn,
    half_b: Vector,
    turn_b: Turn,
    dx: float,
    dy: float,
    dz: float,
    limit: float,
    polygon: Table,
    clipped: Table,
    out: Table,
    feature: Names,
):
    """Separating axes, then the incident face clipped to the reference face, or the nearest points of two edges.
    ``polygon`` and ``clipped`` are scratch, (MOST_CORNERS, 3)."""
    ma, mb = to_matrix(turn_a), to_matrix(turn_b)
    best, axis, bx, by, bz = float(-math.inf), int(-1), float(0.0), float(0.0), float(0.0)
    smallest = min(min(min(half_a[0], half_a[1]), half_a[2]), min(min(half_b[0], half_b[1]), half_b[2]))
    for k in range(6):
        if k < 3:
            nx, ny, nz = column(ma, k)
            other = extent_along(mb, half_b, nx, ny, nz) + half_a[k]
        else:
            nx, ny, nz = column(mb, k - 3)
            other = extent_along(ma, half_a, nx, ny, nz) + half_b[k - 3]
        distance = dx * nx + dy * ny + dz * nz
        sign = 1.0 if distance >= 0.0 else -1.0
        gap = abs(distance) - other
        if gap > limit:
            return 0
        # faces of a are preferred to those of b, and faces to edges, by a hair: a resting box keeps its feature
        if gap > best + (1e-3 * smallest if k >= 3 and axis < 3 else 0.0):
            best, axis, bx, by, bz = gap, k, sign * nx, sign * ny, sign * nz
    edge_best = best + 1e-2 * abs(best) + 1e-3 * smallest
    for i in range(3):
        ax, ay, az = column(ma, i)
        for j in range(3):
            ox, oy, oz = column(mb, j)
            nx, ny, nz = cross(ax, ay, az, ox, oy, oz)
            length = math.sqrt(nx * nx + ny * ny + nz * nz)
            if length < PARALLEL:
                continue
            nx, ny, nz = nx / length, ny / length, nz / length
            distance = dx * nx + dy * ny + dz * nz
            gap = abs(distance) - extent_along(ma, half_a, nx, ny, nz) - extent_along(mb, half_b, nx, ny, nz)
            if gap > limit:
                return 0
            if gap > edge_best:
                sign = 1.0 if distance >= 0.0 else -1.0
                edge_best, best, axis, bx, by, bz = gap, gap, 6 + 3 * i + j, sign * nx, sign * ny, sign * nz
    if axis >= 6:
        return edge_edge(ma, half_a, mb, half_b, (axis - 6) // 3, (axis - 6) % 3, dx, dy, dz, bx, by, bz, best, out, feature)
    name = axis * 256
    if axis < 3:
        found = clip_faces(
            ma, half_a, mb, half_b, axis, 0.0, 0.0, 0.0, dx, dy, dz, bx, by, bz, 1.0, limit, name, polygon, clipped, out, feature
        )
        if found > 0:
            return found
        x, y, z = nearest_corner(mb, half_b, -bx, -by, -bz)  # boxes apart, past each other's edges
        x, y, z, shift = x + dx, y + dy, z + dz, -0.5 * best
    else:
        found = clip_faces(
            mb, half_b, ma, half_a, axis - 3, dx, dy, dz, 0.0, 0.0, 0.0, -bx, -by, -bz, -1.0, limit, name, polygon, clipped, out, feature
        )
        if found > 0:
            return found
        x, y, z = nearest_corner(ma, half_a, bx, by, bz)
        shift = 0.5 * best
    return write_contact(out, feature, 0, 8192 + axis, bx, by, bz, x + shift * bx, y + shift * by, z + shift * bz, best)


def nearest_corner(m: Matrix, half: Vector, nx: float, ny: float, nz: float):
    """The corner of a box that lies farthest along a direction."""
    x, y, z = rotate_back(m, nx, ny, nz)
    return rotate(m, math.copysign(half[0], x), math.copysign(half[1], y), math.copysign(half[2], z))


def middle_of_edge(m: Matrix, half: Vector, i: int, nx: float, ny: float, nz: float):
    """The middle of that edge of a box along its axis i which lies farthest along n."""
    x, y, z = rotate_back(m, nx, ny, nz)
    px = 0.0 if i == 0 else math.copysign(half[0], x)
    py = 0.0 if i == 1 else math.copysign(half[1], y)
    pz = 0.0 if i == 2 else math.copysign(half[2], z)
    return rotate(m, px, py, pz)


def along_first(rx: float, ry: float, rz: float, ax: float, ay: float, az: float, bx: float, by: float, bz: float):
    """s of that point s a of a line which is nearest to the line r + t b; a and b are unit vectors."""
    ab = ax * bx + ay * by + az * bz
    ra, rb = rx * ax + ry * ay + rz * az, rx * bx + ry * by + rz * bz
    return (ra - ab * rb) / max(1.0 - ab * ab, 1e-12)


def edge_edge(
    ma: Matrix,
    half_a: Vector,
    mb: Matrix,
    half_b: Vector,
    i: int,
    j: int,
    dx: float,
    dy: float,
    dz: float,
    nx: float,
    ny: float,
    nz: float,
    gap: float,
    out: Table,
    feature: Names,
):
    """One contact between the two edges that face each other along n."""
    px, py, pz = middle_of_edge(ma, half_a, i, nx, ny, nz)
    qx, qy, qz = middle_of_edge(mb, half_b, j, -nx, -ny, -nz)
    ax, ay, az = column(ma, i)
    bx, by, bz = column(mb, j)
    s = along_first(dx + qx - px, dy + qy - py, dz + qz - pz, ax, ay, az, bx, by, bz)
    s = min(max(s, -half_a[i]), half_a[i])
    shift = 0.5 * gap
    return write_contact(
        out, feature, 0, 4096 + 3 * i + j, nx, ny, nz, px + s * ax + shift * nx, py + s * ay + shift * ny, pz + s * az + shift * nz, gap
    )


def clip(polygon: Table, size: int, ex: float, ey: float, ez: float, half: float, clipped: Table):
    """That part of a polygon which lies below ``half`` along e; returns its number of corners."""
    count, hair = int(0), HAIR * half
    for corner in range(size):
        after = (corner + 1) % size
        da = polygon[corner, 0] * ex + polygon[corner, 1] * ey + polygon[corner, 2] * ez - half - hair
        db = polygon[after, 0] * ex + polygon[after, 1] * ey + polygon[after, 2] * ez - half - hair
        if da <= 0.0:
            for axis in range(3):
                clipped[count, axis] = polygon[corner, axis]
            count += 1
        if (da <= 0.0) != (db <= 0.0):
            fraction = min(max((da + hair) / (da - db), 0.0), 1.0)
            for axis in range(3):
                clipped[count, axis] = polygon[corner, axis] + fraction * (polygon[after, axis] - polygon[corner, axis])
            count += 1
    return count


def clip_faces(
    mr: Matrix,
    half_r: Vector,
    mi: Matrix,
    half_i: Vector,
    axis: int,
    rx: float,
    ry: float,
    rz: float,
    ix: float,
    iy: float,
    iz: float,
    nx: float,
    ny: float,
    nz: float,
    flip: float,
    limit: float,
    name: int,
    polygon: Table,
    clipped: Table,
    out: Table,
    feature: Names,
):
    """Contacts of a reference face (box r at (rx, ry, rz), axis, outward normal n) with the other box's facing face.

    ``flip`` is +1 where the reference box is a and -1 where it is b: contact normals go from a to b.
    """
    # the incident face: of the other box, the one whose outward normal is most against n
    lx, ly, lz = rotate_back(mi, nx, ny, nz)
    face = 0 if abs(lx) >= abs(ly) and abs(lx) >= abs(lz) else (1 if abs(ly) >= abs(lz) else 2)
    toward = lx if face == 0 else (ly if face == 1 else lz)
    side = -1.0 if toward > 0.0 else 1.0
    p, q = (face + 1) % 3, (face + 2) % 3
    cx, cy, cz = column(mi, face)
    ux, uy, uz = column(mi, p)
    vx, vy, vz = column(mi, q)
    depth = side * half_i[face]
    for corner in range(4):
        s = half_i[p] if corner == 0 or corner == 3 else -half_i[p]
        t = half_i[q] if corner < 2 else -half_i[q]
        polygon[corner, 0] = ix - rx + depth * cx + s * ux + t * vx
        polygon[corner, 1] = iy - ry + depth * cy + s * uy + t * vy
        polygon[corner, 2] = iz - rz + depth * cz + s * uz + t * vz
    # clip to the four sides of the reference face
    size, k = int(4), (axis + 1) % 3
    for _ in range(2):
        ex, ey, ez = column(mr, k)
        size = clip(polygon, size, ex, ey, ez, half_r[k], clipped)
        size = clip(clipped, size, -ex, -ey, -ez, half_r[k], polygon)
        k = (axis + 2) % 3
    return write_face_contacts(polygon, size, mr, half_r, axis, rx, ry, rz, nx, ny, nz, flip, limit, name, out, feature)


def write_face_contacts(
    polygon: Table,
    size: int,
    mr: Matrix,
    half_r: Vector,
    axis: int,
    rx: float,
    ry: float,
    rz: float,
    nx: float,
    ny: float,
    nz: float,
    flip: float,
    limit: float,
    name: int,
    out: Table,
    feature: Names,
):
    """The corners of the clipped polygon that are near enough, without doubles.

    Where edges of two boxes coincide, rounding decides which of them clips the other, and how often; a corner is therefore
    known again by the direction in which it lies from the middle, in eight sectors of the reference face.
    """
    nearest = 1e-2 * min(min(half_r[0], half_r[1]), half_r[2])
    k, sx, sy, sz = int(0), float(0.0), float(0.0), float(0.0)
    for corner in range(size):
        x, y, z = polygon[corner, 0], polygon[corner, 1], polygon[corner, 2]
        gap = x * nx + y * ny + z * nz - half_r[axis]
        double = bool(False)
        for p in range(k):
            ex, ey, ez = polygon[p, 0] - x, polygon[p, 1] - y, polygon[p, 2] - z
            if ex * ex + ey * ey + ez * ez < nearest * nearest:
                double = True
        if gap <= limit and not double and k < MOST_POINTS:
            polygon[k, 0] = x
            polygon[k, 1] = y
            polygon[k, 2] = z
            shift = -0.5 * gap
            sx, sy, sz = sx + x, sy + y, sz + z
            k = write_contact(
                out, feature, k, 0, flip * nx, flip * ny, flip * nz, rx + x + shift * nx, ry + y + shift * ny, rz + z + shift * nz, gap
            )
    ux, uy, uz = column(mr, (axis + 1) % 3)
    vx, vy, vz = column(mr, (axis + 2) % 3)
    for p in range(k):
        dx, dy, dz = polygon[p, 0] - sx / float(k), polygon[p, 1] - sy / float(k), polygon[p, 2] - sz / float(k)
        angle = math.atan2(dx * vx + dy * vy + dz * vz, dx * ux + dy * uy + dz * uz)
        sector = int(math.floor(angle * (4.0 / math.pi) + 0.5)) & 7
        rank = int(0)
        for q in range(p):
            if feature[q] >> 3 == (name >> 3) + sector:
                rank += 1
        feature[p] = name + 8 * sector + rank
    return k
