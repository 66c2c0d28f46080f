"""Contact geometry of two shapes: pure functions, one per pair of kinds, testable alone.

Each works in the frame whose origin is the centre of the first body, a, with d = centre of b - centre of a, and writes
contacts as rows (normal from a to b, point, gap) into ``out``; the point lies halfway between the two surfaces. Returns
the number of rows. ``limit``: gaps above it need not be reported. ``feature`` tells the rows of one pair apart, so that a
contact is known again in the next step.
"""

import math

import numpy as np
from numba import njit

from gravel.cpu.formulas import FORMS
from gravel.cpu.vectors import cross, rotate, rotate_back, to_matrix
from gravel.formulas import contact_rows

MOST_POINTS = 8  # of one pair
write_contact = FORMS.of(contact_rows).write_contact


@njit(nogil=True, error_model="numpy")
def parted(i, j):
    """A tiny vector between two balls in one place, by their ids. Were it the same for all, many of them would line up, each pushed by
    the last, and those at the ends fly off."""
    turn, x, y, z = 2.399963229728653, 0.0, 0.0, 0.0  # the golden angle: ids that follow each other point far apart
    for sign, k in ((-1.0, i), (1.0, j)):
        height = 2.0 * ((0.6180339887498949 * (k + 0.5)) % 1.0) - 1.0
        across = math.sqrt(1.0 - height * height)
        x, y, z = x + sign * across * math.cos(turn * k), y + sign * across * math.sin(turn * k), z + sign * height
    return 1e-100 * x, 1e-100 * y, 1e-100 * z


@njit(nogil=True, error_model="numpy")
def between_spheres(radius_a, radius_b, dx, dy, dz):
    """The row of two spheres, as a tuple: they are too many to go by way of ``out``."""
    distance = math.sqrt(dx * dx + dy * dy + dz * dz)
    nx, ny, nz = 0.0, 0.0, 1.0  # same centre: any direction serves
    if distance > 0.0:
        scale = 1.0 / distance
        nx, ny, nz = scale * dx, scale * dy, scale * dz
    gap = distance - radius_a - radius_b
    arm = radius_a + 0.5 * gap
    return nx, ny, nz, arm * nx, arm * ny, arm * nz, gap


@njit(nogil=True, error_model="numpy")
def sphere_plane(radius, normal, dx, dy, dz, out, feature):
    nx, ny, nz = normal[0], normal[1], normal[2]
    gap = -(dx * nx + dy * ny + dz * nz) - radius
    arm = radius + 0.5 * gap
    return write_contact(out, feature, 0, 0, -nx, -ny, -nz, -arm * nx, -arm * ny, -arm * nz, gap)


@njit(nogil=True, error_model="numpy")
def sphere_box(radius, half, quaternion, dx, dy, dz, out, feature):
    m = to_matrix(quaternion)
    x, y, z = rotate_back(m, -dx, -dy, -dz)  # the ball's centre in the box frame
    cx, cy, cz = min(max(x, -half[0]), half[0]), min(max(y, -half[1]), half[1]), min(max(z, -half[2]), half[2])
    ex, ey, ez = cx - x, cy - y, cz - z
    distance = math.sqrt(ex * ex + ey * ey + ez * ez)
    if distance > 0.0:
        nx, ny, nz = ex / distance, ey / distance, ez / distance
    else:  # the centre is inside: out through the nearest face
        depth_x, depth_y, depth_z = half[0] - abs(x), half[1] - abs(y), half[2] - abs(z)
        nx, ny, nz = 0.0, 0.0, 0.0
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


@njit(nogil=True, error_model="numpy")
def ellipsoid_plane(radii, quaternion, normal, dx, dy, dz, out, feature):
    """The point of the ellipsoid whose normal is the plane's: R^2 n / |R n| in its own frame (paper 002, eq. A-13)."""
    m, nx, ny, nz = to_matrix(quaternion), normal[0], normal[1], normal[2]
    x, y, z = rotate_back(m, -nx, -ny, -nz)
    x, y, z = radii[0] * x, radii[1] * y, radii[2] * z
    height = math.sqrt(x * x + y * y + z * z)
    x, y, z = rotate(m, radii[0] * x / height, radii[1] * y / height, radii[2] * z / height)
    gap = -(dx * nx + dy * ny + dz * nz) - height
    shift = -0.5 * gap
    return write_contact(out, feature, 0, 0, -nx, -ny, -nz, x + shift * nx, y + shift * ny, z + shift * nz, gap)


@njit(nogil=True, error_model="numpy")
def box_plane(half, quaternion, normal, dx, dy, dz, limit, out, feature):
    """The corners of the box near the plane."""
    m = to_matrix(quaternion)
    nx, ny, nz = normal[0], normal[1], normal[2]
    k = 0
    for corner in range(8):
        x = half[0] if corner & 1 else -half[0]
        y = half[1] if corner & 2 else -half[1]
        z = half[2] if corner & 4 else -half[2]
        x, y, z = rotate(m, x, y, z)
        gap = (x - dx) * nx + (y - dy) * ny + (z - dz) * nz
        if gap <= limit:
            shift = -0.5 * gap
            k = write_contact(out, feature, k, corner, -nx, -ny, -nz, x + shift * nx, y + shift * ny, z + shift * nz, gap)
    return k


@njit(nogil=True, error_model="numpy")
def column(m, k):
    return m[0][k], m[1][k], m[2][k]


@njit(nogil=True, error_model="numpy")
def extent_along(m, half, nx, ny, nz):
    """Half the width of a box along a direction."""
    x, y, z = rotate_back(m, nx, ny, nz)
    return abs(x) * half[0] + abs(y) * half[1] + abs(z) * half[2]


@njit(nogil=True, error_model="numpy")
def box_box(half_a, quaternion_a, half_b, quaternion_b, dx, dy, dz, limit, out, feature):
    """Separating axes, then the incident face clipped to the reference face, or the nearest points of two edges."""
    ma, mb = to_matrix(quaternion_a), to_matrix(quaternion_b)
    best, axis, bx, by, bz = -math.inf, -1, 0.0, 0.0, 0.0
    smallest = min(half_a[0], half_a[1], half_a[2], half_b[0], half_b[1], half_b[2])
    for k in range(6):
        nx, ny, nz = column(ma, k) if k < 3 else column(mb, k - 3)
        distance = dx * nx + dy * ny + dz * nz
        sign = 1.0 if distance >= 0.0 else -1.0
        other = extent_along(mb, half_b, nx, ny, nz) + half_a[k] if k < 3 else extent_along(ma, half_a, nx, ny, nz) + half_b[k - 3]
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
            if length < 1e-6:
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
    if axis < 3:
        found = clip_faces(ma, half_a, mb, half_b, axis, 0.0, 0.0, 0.0, dx, dy, dz, bx, by, bz, 1.0, limit, axis * 256, out, feature)
        if found > 0:
            return found
        x, y, z = nearest_corner(mb, half_b, -bx, -by, -bz)  # boxes apart, past each other's edges
        x, y, z, shift = x + dx, y + dy, z + dz, -0.5 * best
    else:
        found = clip_faces(
            mb, half_b, ma, half_a, axis - 3, dx, dy, dz, 0.0, 0.0, 0.0, -bx, -by, -bz, -1.0, limit, axis * 256, out, feature
        )
        if found > 0:
            return found
        x, y, z = nearest_corner(ma, half_a, bx, by, bz)
        shift = 0.5 * best
    return write_contact(out, feature, 0, 8192 + axis, bx, by, bz, x + shift * bx, y + shift * by, z + shift * bz, best)


@njit(nogil=True, error_model="numpy")
def nearest_corner(m, half, nx, ny, nz):
    """The corner of a box that lies farthest along a direction."""
    x, y, z = rotate_back(m, nx, ny, nz)
    return rotate(m, math.copysign(half[0], x), math.copysign(half[1], y), math.copysign(half[2], z))


@njit(nogil=True, error_model="numpy")
def edge_edge(ma, half_a, mb, half_b, i, j, dx, dy, dz, nx, ny, nz, gap, out, feature):
    """One contact between the two edges that face each other along n."""
    x, y, z = rotate_back(ma, nx, ny, nz)
    px = 0.0 if i == 0 else math.copysign(half_a[0], x)
    py = 0.0 if i == 1 else math.copysign(half_a[1], y)
    pz = 0.0 if i == 2 else math.copysign(half_a[2], z)
    px, py, pz = rotate(ma, px, py, pz)
    x, y, z = rotate_back(mb, -nx, -ny, -nz)
    qx = 0.0 if j == 0 else math.copysign(half_b[0], x)
    qy = 0.0 if j == 1 else math.copysign(half_b[1], y)
    qz = 0.0 if j == 2 else math.copysign(half_b[2], z)
    qx, qy, qz = rotate(mb, qx, qy, qz)
    ax, ay, az = column(ma, i)
    bx, by, bz = column(mb, j)
    # nearest points of the lines p + s a and d + q + t b
    rx, ry, rz = dx + qx - px, dy + qy - py, dz + qz - pz
    ab = ax * bx + ay * by + az * bz
    ra, rb = rx * ax + ry * ay + rz * az, rx * bx + ry * by + rz * bz
    s = (ra - ab * rb) / max(1.0 - ab * ab, 1e-12)
    s = min(max(s, -half_a[i]), half_a[i])
    shift = 0.5 * gap
    return write_contact(
        out, feature, 0, 4096 + 3 * i + j, nx, ny, nz, px + s * ax + shift * nx, py + s * ay + shift * ny, pz + s * az + shift * nz, gap
    )


@njit(nogil=True, error_model="numpy")
def clip_faces(mr, half_r, mi, half_i, axis, rx, ry, rz, ix, iy, iz, nx, ny, nz, flip, limit, name, out, feature):
    """Contacts of a reference face (box r at (rx, ry, rz), axis, outward normal n) with the other box's facing face.

    ``flip`` is +1 where the reference box is a and -1 where it is b: contact normals go from a to b.
    """
    polygon, clipped = np.empty((16, 3)), np.empty((16, 3))
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
    size = 4
    # clip to the four sides of the reference face
    for side_index in range(4):
        k = (axis + 1 + side_index // 2) % 3
        sign = 1.0 if side_index % 2 == 0 else -1.0
        ex, ey, ez = column(mr, k)
        ex, ey, ez = sign * ex, sign * ey, sign * ez
        count, hair = 0, 1e-9 * half_r[k]  # edges that coincide do not cut each other
        for corner in range(size):
            after = (corner + 1) % size
            da = polygon[corner, 0] * ex + polygon[corner, 1] * ey + polygon[corner, 2] * ez - half_r[k] - hair
            db = polygon[after, 0] * ex + polygon[after, 1] * ey + polygon[after, 2] * ez - half_r[k] - hair
            if da <= 0.0:
                clipped[count] = polygon[corner]
                count += 1
            if (da <= 0.0) != (db <= 0.0):
                fraction = min(max((da + hair) / (da - db), 0.0), 1.0)
                clipped[count] = polygon[corner] + fraction * (polygon[after] - polygon[corner])
                count += 1
        polygon, clipped = clipped, polygon
        size = count
    return write_face_contacts(polygon, size, mr, half_r, axis, rx, ry, rz, nx, ny, nz, flip, limit, name, out, feature)


@njit(nogil=True, error_model="numpy")
def write_face_contacts(polygon, size, mr, half_r, axis, rx, ry, rz, nx, ny, nz, flip, limit, name, out, feature):
    """The corners of the clipped polygon that are near enough, without doubles.

    Where edges of two boxes coincide, rounding decides which of them clips the other, and how often; a corner is therefore
    known again by the direction in which it lies from the middle, in eight sectors of the reference face.
    """
    nearest = 1e-2 * min(half_r[0], half_r[1], half_r[2])
    k, sx, sy, sz = 0, 0.0, 0.0, 0.0
    for corner in range(size):
        x, y, z = polygon[corner, 0], polygon[corner, 1], polygon[corner, 2]
        gap = x * nx + y * ny + z * nz - half_r[axis]
        double = False
        for p in range(k):
            ex, ey, ez = polygon[p, 0] - x, polygon[p, 1] - y, polygon[p, 2] - z
            double = double or ex * ex + ey * ey + ez * ez < nearest * nearest
        if gap <= limit and not double and k < MOST_POINTS:
            polygon[k, 0], polygon[k, 1], polygon[k, 2] = x, y, z
            shift = -0.5 * gap
            sx, sy, sz = sx + x, sy + y, sz + z
            k = write_contact(
                out, feature, k, 0, flip * nx, flip * ny, flip * nz, rx + x + shift * nx, ry + y + shift * ny, rz + z + shift * nz, gap
            )
    ux, uy, uz = column(mr, (axis + 1) % 3)
    vx, vy, vz = column(mr, (axis + 2) % 3)
    for p in range(k):
        dx, dy, dz = polygon[p, 0] - sx / k, polygon[p, 1] - sy / k, polygon[p, 2] - sz / k
        angle = math.atan2(dx * vx + dy * vy + dz * vz, dx * ux + dy * uy + dz * uz)
        sector = int(math.floor(angle * (4.0 / math.pi) + 0.5)) & 7
        rank = 0
        for q in range(p):
            rank += feature[q] >> 3 == (name >> 3) + sector
        feature[p] = name + 8 * sector + rank
    return k
