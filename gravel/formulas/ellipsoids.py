"""Two ellipsoids (paper 002): how far apart or how deep, along which normal.

In: the matrices M = A R^2 A^T of both (eq. A-11; A the rotation, R the radii) and c, from the centre of a to that of b.
Out: the unit normal n from a to b, the points P_a and P_b of the surfaces with that normal, and their signed distance.

OpM. The paper minimises |P_a - P_b|^2 over the two angles of n, by 16 steps of gradient descent. With its derivatives
dP/dn = (M - P P^T) / h, h = sqrt(n^T M n) (eq. A-17, with 2 lambda = h), the condition that P_b - P_a is parallel to n is
the same as that of the maximum of

    g(n) = n . c - h_a(n) - h_b(n),

the signed distance of the two tangent planes, whose largest value is the distance (or minus the depth). g is the better
function: where the ellipsoids are apart it has one maximum only, any n with g(n) > 0 proves that they are, and a Newton
step for it needs only the first derivatives of P. The two angles are counted from the present n, so there are no poles.
Deep overlaps have several local maxima: then several starts are tried.

ChM. det(xi Q_a + Q_b) has two different positive roots if and only if a plane separates the ellipsoids. In coordinates
that make a the unit ball this is a polynomial with the coefficients below; since it is positive at 0 and always has two
negative roots, it suffices to look at its sign at the largest root of its derivative.

Method-1 is OpM for every pair; Method-2 asks ChM first. ``DIRECT``, the default, is OpM that stops at the first plane
that proves the pair farther apart than ``limit``: quicker than either.
"""

from __future__ import annotations

import math

from gravel.formulas.contact_rows import write_contact
from gravel.formulas.kinds import Matrix, Names, Symmetric, Table, Turn, Vector
from gravel.formulas.vectors import quaternion_of, rotate_back, tangents, to_matrix, vector
from gravel.shapes import SPHERE

DIRECT, METHOD_1, METHOD_2 = 0, 1, 2
STEPS = 40  # Newton steps at most; five or six are usual
CUTS = 30  # of a step that gains nothing
ALIGNED = 1e-8  # of the size: how parallel P_b - P_a and n are in the end
SAME_WAY = 0.95  # a start that comes within this cosine of the direction known so far leads nowhere else
LEAST_CURVED = 1e-9  # of the curvature: what is less may be rounding
AS_HIGH = 1e-12  # of the size: values of g that differ by less are the same


# --- symmetric matrices: devices of less precision keep M in another form, and bring twins of these four
def matrix_of(size: Vector, turn: Turn):
    """M = A R^2 A^T as (xx, xy, xz, yy, yz, zz)."""
    m = to_matrix(turn)
    x, y, z = size[0] * size[0], size[1] * size[1], size[2] * size[2]
    return (
        m[0][0] * m[0][0] * x + m[0][1] * m[0][1] * y + m[0][2] * m[0][2] * z,
        m[0][0] * m[1][0] * x + m[0][1] * m[1][1] * y + m[0][2] * m[1][2] * z,
        m[0][0] * m[2][0] * x + m[0][1] * m[2][1] * y + m[0][2] * m[2][2] * z,
        m[1][0] * m[1][0] * x + m[1][1] * m[1][1] * y + m[1][2] * m[1][2] * z,
        m[1][0] * m[2][0] * x + m[1][1] * m[2][1] * y + m[1][2] * m[2][2] * z,
        m[2][0] * m[2][0] * x + m[2][1] * m[2][1] * y + m[2][2] * m[2][2] * z,
    )


def times(m: Symmetric, x: float, y: float, z: float):
    """M v"""
    return m[0] * x + m[1] * y + m[2] * z, m[1] * x + m[3] * y + m[4] * z, m[2] * x + m[4] * y + m[5] * z


def times_sum(ia: float, ma: Symmetric, ib: float, mb: Symmetric, x: float, y: float, z: float):
    """(ia M_a + ib M_b) v"""
    xx, xy, xz = ia * ma[0] + ib * mb[0], ia * ma[1] + ib * mb[1], ia * ma[2] + ib * mb[2]
    yy, yz, zz = ia * ma[3] + ib * mb[3], ia * ma[4] + ib * mb[4], ia * ma[5] + ib * mb[5]
    return xx * x + xy * y + xz * z, xy * x + yy * y + yz * z, xz * x + yz * y + zz * z


def sum_of(ma: Symmetric, mb: Symmetric):
    """M_a + M_b as (xx, xy, xz, yy, yz, zz)."""
    return ma[0] + mb[0], ma[1] + mb[1], ma[2] + mb[2], ma[3] + mb[3], ma[4] + mb[4], ma[5] + mb[5]


# --- OpM
def signed_distance(ma: Symmetric, mb: Symmetric, cx: float, cy: float, cz: float, nx: float, ny: float, nz: float):
    """g(n)"""
    ax, ay, az = times(ma, nx, ny, nz)
    bx, by, bz = times(mb, nx, ny, nz)
    return nx * cx + ny * cy + nz * cz - math.sqrt(nx * ax + ny * ay + nz * az) - math.sqrt(nx * bx + ny * by + nz * bz)


def newton_step(ma: Symmetric, mb: Symmetric, cx: float, cy: float, cz: float, nx: float, ny: float, nz: float):
    """(g, |tangential residual|^2, step): the step (x, y, z), in the tangent plane of n, that would bring g to its maximum."""
    ax, ay, az = times(ma, nx, ny, nz)
    bx, by, bz = times(mb, nx, ny, nz)
    ha, hb = math.sqrt(nx * ax + ny * ay + nz * az), math.sqrt(nx * bx + ny * by + nz * bz)
    ia, ib = 1.0 / ha, 1.0 / hb
    ax, ay, az, bx, by, bz = ia * ax, ia * ay, ia * az, ib * bx, ib * by, ib * bz
    dx, dy, dz = cx - ax - bx, cy - ay - by, cz - az - bz
    g = nx * dx + ny * dy + nz * dz
    ux, uy, uz, wx, wy, wz = tangents(nx, ny, nz)
    ru, rw = dx * ux + dy * uy + dz * uz, dx * wx + dy * wy + dz * wz
    # the curvature H of h_a + h_b in the tangent plane, plus g: minus the second derivative of g on the sphere
    px, py, pz = times_sum(ia, ma, ib, mb, ux, uy, uz)
    qx, qy, qz = times_sum(ia, ma, ib, mb, wx, wy, wz)
    au, aw = ax * ux + ay * uy + az * uz, ax * wx + ay * wy + az * wz
    bu, bw = bx * ux + by * uy + bz * uz, bx * wx + by * wy + bz * wz
    uu = px * ux + py * uy + pz * uz - ia * au * au - ib * bu * bu
    uw = px * wx + py * wy + pz * wz - ia * au * aw - ib * bu * bw
    ww = qx * wx + qy * wy + qz * wz - ia * aw * aw - ib * bw * bw
    trace = uu + ww
    uu, ww = uu + g, ww + g
    # overlaps: raise the smaller eigenvalue to a share of the curvature where it is not positive
    lowest = 0.5 * (uu + ww) - math.sqrt(0.25 * ((uu - ww) * (uu - ww)) + uw * uw)
    if lowest < LEAST_CURVED * trace:
        uu, ww = uu + 0.02 * trace - lowest, ww + 0.02 * trace - lowest
    scale = 1.0 / (uu * ww - uw * uw)
    su, sw = scale * (ww * ru - uw * rw), scale * (uu * rw - uw * ru)
    return g, ru * ru + rw * rw, su * ux + sw * wx, su * uy + sw * wy, su * uz + sw * wz


def ascend(
    ma: Symmetric,
    mb: Symmetric,
    cx: float,
    cy: float,
    cz: float,
    start_x: float,
    start_y: float,
    start_z: float,
    limit: float,
    size: float,
    kx: float,
    ky: float,
    kz: float,
):
    """(n, g) at a local maximum of g from a start; ends early where g exceeds ``limit``, or near the known direction k."""
    nx, ny, nz = float(start_x), float(start_y), float(start_z)
    g, residual, sx, sy, sz = newton_step(ma, mb, cx, cy, cz, nx, ny, nz)
    for _ in range(STEPS):
        if g > limit or residual <= (ALIGNED * size) * (ALIGNED * size) or nx * kx + ny * ky + nz * kz > SAME_WAY:
            break
        length = math.sqrt(sx * sx + sy * sy + sz * sz)
        share = min(1.0, 1.0 / length)
        found = bool(False)
        for _ in range(CUTS):
            x, y, z = nx + share * sx, ny + share * sy, nz + share * sz
            scale = 1.0 / math.sqrt(x * x + y * y + z * z)
            x, y, z = scale * x, scale * y, scale * z
            next_g, next_residual, tx, ty, tz = newton_step(ma, mb, cx, cy, cz, x, y, z)
            if next_g > g or (next_residual < 0.25 * residual and next_g > g - AS_HIGH * size):
                found = True
                break
            share *= 0.3
        if not found:  # rounding: no step gains
            break
        nx, ny, nz, g, residual, sx, sy, sz = x, y, z, next_g, next_residual, tx, ty, tz
    return nx, ny, nz, g


def first_direction(ma: Symmetric, mb: Symmetric, cx: float, cy: float, cz: float):
    """(M_a + M_b)^-1 c, the answer where the two ellipsoids are similar."""
    xx, xy, xz, yy, yz, zz = sum_of(ma, mb)
    ax, ay, az = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
    x = ax * cx + ay * cy + az * cz
    y = ay * cx + (xx * zz - xz * xz) * cy + (xy * xz - xx * yz) * cz
    z = az * cx + (xy * xz - xx * yz) * cy + (xx * yy - xy * xy) * cz
    length = math.sqrt(x * x + y * y + z * z)
    if not length > 0.0:
        return 0.0, 0.0, 1.0
    return x / length, y / length, z / length


def axis_direction(m: Matrix, k: int, cx: float, cy: float, cz: float):
    """Axis k of a rotation, towards c."""
    x, y, z = m[0][k], m[1][k], m[2][k]
    sign = 1.0 if x * cx + y * cy + z * cz >= 0.0 else -1.0
    return sign * x, sign * y, sign * z


def deepest_direction(
    turn_a: Matrix,
    turn_b: Matrix,
    ma: Symmetric,
    mb: Symmetric,
    cx: float,
    cy: float,
    cz: float,
    known_x: float,
    known_y: float,
    known_z: float,
    known: float,
    size: float,
):
    """(n, g): the best of the local maxima from the axes of both and from what was found already."""
    nx, ny, nz, g = float(known_x), float(known_y), float(known_z), float(known)
    for k in range(6):
        if k < 3:
            x, y, z = axis_direction(turn_a, k, cx, cy, cz)
        else:
            x, y, z = axis_direction(turn_b, k - 3, cx, cy, cz)
        x, y, z, other = ascend(ma, mb, cx, cy, cz, x, y, z, math.inf, size, nx, ny, nz)
        if other > g + AS_HIGH * size:
            nx, ny, nz, g = x, y, z, other
    return nx, ny, nz, g


def optimise(size_a: Vector, turn_a: Turn, size_b: Vector, turn_b: Turn, cx: float, cy: float, cz: float, limit: float):
    """OpM: (n, g). Where g > limit, n is only a direction that proves it."""
    ma, mb = matrix_of(size_a, turn_a), matrix_of(size_b, turn_b)
    least_a, least_b = min(min(size_a[0], size_a[1]), size_a[2]), min(min(size_b[0], size_b[1]), size_b[2])
    most_a, most_b = max(max(size_a[0], size_a[1]), size_a[2]), max(max(size_b[0], size_b[1]), size_b[2])
    size, distance = most_a + most_b, math.sqrt(cx * cx + cy * cy + cz * cz)
    nx, ny, nz = first_direction(ma, mb, cx, cy, cz)
    if distance > 0.0:
        x, y, z = cx / distance, cy / distance, cz / distance
        straight = signed_distance(ma, mb, cx, cy, cz, x, y, z)
        if straight > limit:
            return x, y, z, straight
        if straight > signed_distance(ma, mb, cx, cy, cz, nx, ny, nz):
            nx, ny, nz = x, y, z
    nx, ny, nz, g = ascend(ma, mb, cx, cy, cz, nx, ny, nz, limit, size, 0.0, 0.0, 0.0)
    # a depth below the smallest radius of curvature leaves room for one maximum only
    if -g > 0.5 * (least_a * least_a / most_a + least_b * least_b / most_b):
        nx, ny, nz, g = deepest_direction(to_matrix(turn_a), to_matrix(turn_b), ma, mb, cx, cy, cz, nx, ny, nz, g, size)
    return nx, ny, nz, g


# --- ChM
def largest_critical_point(b3: float, b2: float, b1: float):
    """The largest real root of 4 x^3 + 3 b3 x^2 + 2 b2 x + b1."""
    a2, a1, a0 = 0.75 * b3, 0.5 * b2, 0.25 * b1
    q, r = (a2 * a2 - 3.0 * a1) / 9.0, (2.0 * (a2 * a2 * a2) - 9.0 * a2 * a1 + 27.0 * a0) / 54.0
    cube = q * q * q
    if q > 0.0 and r * r < cube:
        s = math.sqrt(q)
        return 2.0 * s * math.cos((math.pi - math.acos(min(max(r / (s * q), -1.0), 1.0))) / 3.0) - a2 / 3.0
    e = -math.copysign((abs(r) + math.sqrt(max(r * r - cube, 0.0))) ** (1.0 / 3.0), r)
    return e + (q / e if e != 0.0 else 0.0) - a2 / 3.0


def surely_negative(value: float, of: float):
    """Whether a sum of terms of the size ``of`` is negative. (Devices of less precision bring a twin that allows for rounding.)"""
    return value < 0.0


def separated(size_a: Vector, turn_a: Turn, size_b: Vector, turn_b: Turn, cx: float, cy: float, cz: float):
    """ChM: whether a plane lies between the two ellipsoids."""
    ma, mb = to_matrix(turn_a), to_matrix(turn_b)
    ix, iy, iz = 1.0 / (size_b[0] * size_b[0]), 1.0 / (size_b[1] * size_b[1]), 1.0 / (size_b[2] * size_b[2])
    ax, ay, az = size_a[0], size_a[1], size_a[2]
    # in coordinates where a is the unit ball: b is (y - c)^T B (y - c) = 1
    xx, xy, xz = rotate_back(ma, mb[0][0], mb[1][0], mb[2][0])
    yx, yy, yz = rotate_back(ma, mb[0][1], mb[1][1], mb[2][1])
    zx, zy, zz = rotate_back(ma, mb[0][2], mb[1][2], mb[2][2])
    xx, xy, xz, yx, yy, yz, zx, zy, zz = ax * xx, ay * xy, az * xz, ax * yx, ay * yy, az * yz, ax * zx, ay * zy, az * zz
    b00 = ix * xx * xx + iy * yx * yx + iz * zx * zx
    b01 = ix * xx * xy + iy * yx * yy + iz * zx * zy
    b02 = ix * xx * xz + iy * yx * yz + iz * zx * zz
    b11 = ix * xy * xy + iy * yy * yy + iz * zy * zy
    b12 = ix * xy * xz + iy * yy * yz + iz * zy * zz
    b22 = ix * xz * xz + iy * yz * yz + iz * zz * zz
    x, y, z = rotate_back(ma, cx, cy, cz)
    x, y, z = x / ax, y / ay, z / az
    px, py, pz = b00 * x + b01 * y + b02 * z, b01 * x + b11 * y + b12 * z, b02 * x + b12 * y + b22 * z
    t1 = b00 + b11 + b22
    t2 = b00 * b11 - b01 * b01 + b00 * b22 - b02 * b02 + b11 * b22 - b12 * b12
    t3 = (ax * ay * az) * (ax * ay * az) * ix * iy * iz
    s0, s1, s2 = x * x + y * y + z * z, x * px + y * py + z * pz, px * px + py * py + pz * pz
    b3, b2, b1 = 1.0 + t1 - s1, t1 + t2 - t1 * s1 + s2, t2 + t3 - t3 * s0
    if b3 >= 0.0 and b2 >= 0.0 and b1 >= 0.0:  # no change of sign: no positive root
        return False
    xi = largest_critical_point(b3, b2, b1)
    if xi <= 0.0:
        return False
    # the same sum with all its terms positive
    t2 = b00 * b11 + b00 * b22 + b11 * b22 + b01 * b01 + b02 * b02 + b12 * b12
    of = (((xi + 1.0 + t1 + s1) * xi + t1 + t2 + t1 * s1 + s2) * xi + t2 + t3 + t3 * s0) * xi + t3
    return surely_negative((((xi + b3) * xi + b2) * xi + b1) * xi + t3, of)


def swollen(size: Vector, limit: float):
    """Radii of a similar ellipsoid that holds all points within half the limit of the given one."""
    grow = 1.0 + 0.5 * limit / min(min(size[0], size[1]), size[2])
    return vector(grow * size[0], grow * size[1], grow * size[2])


# --- both
def ellipsoid_ellipsoid(
    size_a: Vector, turn_a: Turn, size_b: Vector, turn_b: Turn, cx: float, cy: float, cz: float, limit: float, method: int
):
    """(n, point from the centre of a, gap); the gap is above the limit where there is no contact."""
    if method == METHOD_2 and separated(swollen(size_a, limit), turn_a, swollen(size_b, limit), turn_b, cx, cy, cz):
        return 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, math.inf
    stop = math.inf if method == METHOD_1 else limit
    nx, ny, nz, g = optimise(size_a, turn_a, size_b, turn_b, cx, cy, cz, stop)
    if g > limit:
        return nx, ny, nz, 0.0, 0.0, 0.0, g
    ma, mb = matrix_of(size_a, turn_a), matrix_of(size_b, turn_b)
    ax, ay, az = times(ma, nx, ny, nz)
    bx, by, bz = times(mb, nx, ny, nz)
    ha, hb = math.sqrt(nx * ax + ny * ay + nz * az), math.sqrt(nx * bx + ny * by + nz * bz)
    if -g >= 2.0 * min(ha, hb):  # one covers the other: the centre of the inner one, as in the paper
        share = 0.0 if ha <= hb else 1.0
        return nx, ny, nz, share * cx, share * cy, share * cz, g
    ax, ay, az, bx, by, bz = ax / ha, ay / ha, az / ha, cx - bx / hb, cy - by / hb, cz - bz / hb
    return nx, ny, nz, 0.5 * (ax + bx), 0.5 * (ay + by), 0.5 * (az + bz), g


def radii_of(kind: int, size: Vector):
    """The radii of a ball or an ellipsoid."""
    if kind == SPHERE:
        return vector(size[0], size[0], size[0])
    return vector(size[0], size[1], size[2])


def turn_of(kind: int, turn: Turn):
    """The turn of an ellipsoid; a ball has none."""
    if kind == SPHERE:
        return quaternion_of(1.0, 0.0, 0.0, 0.0)
    return quaternion_of(turn[0], turn[1], turn[2], turn[3])


def between_ellipsoids(
    kind_a: int,
    size_a: Vector,
    turn_a: Turn,
    kind_b: int,
    size_b: Vector,
    turn_b: Turn,
    dx: float,
    dy: float,
    dz: float,
    limit: float,
    method: int,
    out: Table,
    feature: Names,
):
    """Contact of two ellipsoids, or of a ball and an ellipsoid."""
    nx, ny, nz, x, y, z, gap = ellipsoid_ellipsoid(
        radii_of(kind_a, size_a), turn_of(kind_a, turn_a), radii_of(kind_b, size_b), turn_of(kind_b, turn_b), dx, dy, dz, limit, method
    )
    if gap <= limit:
        return write_contact(out, feature, 0, 0, nx, ny, nz, x, y, z, gap)
    return 0
