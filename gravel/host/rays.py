"""Rays and boxes: where a ray first crosses the surface of a body, and the axis-aligned box of a body.

The shapes are pure functions in the frame of the body. A convex solid gives the interval (t_in, t_out) in which a ray is inside
it, empty if t_in > t_out; the hit is the first end of it that lies ahead. A ray that starts inside thus hits the surface where
it leaves. Rays are moved along themselves to their point nearest to the body first, so that distant ones lose no digits.
Bodies are found in the tree of ``gravel.host.tree``, triangles in that of their mesh, both with a stack, the nearer node first.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.host.threads import ALLOCATING, INNER, Kernel
from gravel.host.tree import LEAF, build_tree, leaf_room_of
from gravel.host.vectors import rotate, rotate_back, to_matrix
from gravel.shapes import BOX, CAPSULE, COMPOUND, CONE, CYLINDER, ELLIPSOID, HULL, MESH, PLANE, ROUNDED_BOX, SPHERE
from gravel.shapes.geometry import LEAF as TRIANGLES
from gravel.state import SHAPE

CHUNK = 64  # rays or bodies


class Ray(NamedTuple):
    """x + t d; d has length one, so t is in m."""

    x: float
    y: float
    z: float
    dx: float
    dy: float
    dz: float


class Surfaces(NamedTuple):
    """What rays need of the geometries, in few arrays: a call hands over each of them."""

    first: np.ndarray  # (geometries + 1, 4) first face, triangle, box and child of each
    faces: np.ndarray  # (f, 4) hulls: normal, distance from the origin
    corners: np.ndarray  # (t, 3, 3) triangles of meshes
    normals: np.ndarray  # (t, 3)
    boxes: np.ndarray  # (b, 6) of the trees of meshes
    children: np.ndarray  # (c, 11) position, quaternion, size, bounding radius
    child_tag: np.ndarray  # (c, 2) kind, geometry


class Queried(NamedTuple):
    """The bodies that rays meet, in the order of their tree."""

    order: np.ndarray  # (n,) ids
    pose: np.ndarray  # (n, 11) position, quaternion, size, bounding radius
    tag: np.ndarray  # (n, 2) kind, geometry
    boxes: np.ndarray  # (n, 6) lowest and highest corner


def surfaces_of(library):
    """The surfaces of a ``gravel.shapes.geometry.Library``."""
    firsts = (library.first_face, library.first_triangle, library.first_box, library.first_child)
    inside = library.vertices[library.face_corners[library.face_start[:-1]]]
    offset = np.einsum("fi,fi->f", library.face_normals, inside)
    return Surfaces(
        np.column_stack(firsts),
        np.column_stack([library.face_normals, offset]),
        np.ascontiguousarray(library.vertices[library.triangles]),
        library.normals,
        library.boxes,
        np.column_stack([library.child_position, library.child_quaternion, library.child_size, library.child_radius]),
        np.column_stack([library.child_kind, library.child_geometry]),
    )


@njit(**INNER)
def seen_from(ray, m, x, y, z):
    """A ray in the frame that is turned by m and lies at (x, y, z)."""
    px, py, pz = rotate_back(m, ray.x - x, ray.y - y, ray.z - z)
    dx, dy, dz = rotate_back(m, ray.dx, ray.dy, ray.dz)
    return Ray(px, py, pz, dx, dy, dz)


@njit(**INNER)
def point_at(ray, t):
    return ray.x + t * ray.dx, ray.y + t * ray.dy, ray.z + t * ray.dz


# --- intervals of convex solids


@njit(**INNER)
def below_zero(a, b, c):
    """Where a t^2 + 2 b t + c <= 0, for a > 0."""
    square = b * b - a * c
    if not square >= 0.0:
        return math.inf, -math.inf
    q = -(b + math.copysign(math.sqrt(square), b))
    if q == 0.0:
        return 0.0, 0.0
    one, two = q / a, c / q
    return min(one, two), max(one, two)


@njit(**INNER)
def in_slab(x, d, low, high):
    """Where low <= x + t d <= high."""
    if d == 0.0:
        return (-math.inf, math.inf) if low <= x <= high else (math.inf, -math.inf)
    one, two = (low - x) / d, (high - x) / d
    return min(one, two), max(one, two)


@njit(**INNER)
def in_ball(ray, z, radius):
    """Where a ray is inside a ball about (0, 0, z)."""
    pz = ray.z - z
    return below_zero(1.0, ray.x * ray.dx + ray.y * ray.dy + pz * ray.dz, ray.x**2 + ray.y**2 + pz**2 - radius**2)


@njit(**INNER)
def in_ellipsoid(ray, a, b, c):
    x, y, z, dx, dy, dz = ray.x / a, ray.y / b, ray.z / c, ray.dx / a, ray.dy / b, ray.dz / c
    return below_zero(dx * dx + dy * dy + dz * dz, x * dx + y * dy + z * dz, x * x + y * y + z * z - 1.0)


@njit(**INNER)
def in_cylinder(ray, radius, half_length):
    low, high = in_slab(ray.z, ray.dz, -half_length, half_length)
    across, c = ray.dx**2 + ray.dy**2, ray.x**2 + ray.y**2 - radius**2
    if across == 0.0:
        return (low, high) if c <= 0.0 else (math.inf, -math.inf)
    one, two = below_zero(across, ray.x * ray.dx + ray.y * ray.dy, c)
    return max(low, one), min(high, two)


@njit(**INNER)
def in_capsule(ray, radius, half_length):
    """The whole is convex, so its interval reaches from the first to the last end of its parts'."""
    low, high = in_cylinder(ray, radius, half_length)
    if low > high:
        low, high = math.inf, -math.inf
    for z in (-half_length, half_length):
        one, two = in_ball(ray, z, radius)
        if one <= two:
            low, high = min(low, one), max(high, two)
    return low, high


@njit(**INNER)
def in_cone(ray, radius, height):
    """Within the slab from the base to the tip: x^2 + y^2 <= k^2 (tip - z)^2, k = radius / height."""
    tip, k = 0.75 * height, radius / height
    first, last = in_slab(ray.z, ray.dz, -0.25 * height, tip)
    low, high = math.inf, -math.inf
    if not first <= last:
        return low, high
    for t in (first, last):
        x, y, z = point_at(ray, t)
        if abs(t) < math.inf and math.sqrt(x * x + y * y) <= k * (tip - z):
            low, high = min(low, t), max(high, t)
    a = ray.dx**2 + ray.dy**2 - (k * ray.dz) ** 2
    b = ray.x * ray.dx + ray.y * ray.dy + k * k * (tip - ray.z) * ray.dz
    c = ray.x**2 + ray.y**2 - (k * (tip - ray.z)) ** 2
    square = b * b - a * c
    if square >= 0.0:
        q = -(b + math.copysign(math.sqrt(square), b))
        for t in (q / a if a != 0.0 else math.inf, c / q if q != 0.0 else math.inf):
            if first <= t <= last:
                low, high = min(low, t), max(high, t)
    return low, high


@njit(**INNER)
def in_box(ray, x, y, z):
    ax, bx = in_slab(ray.x, ray.dx, -x, x)
    ay, by = in_slab(ray.y, ray.dy, -y, y)
    az, bz = in_slab(ray.z, ray.dz, -z, z)
    return max(ax, ay, az), min(bx, by, bz)


@njit(**INNER)
def rounding_of(size):
    """The radius around the core of a rounded box."""
    return max(size[3] - math.sqrt(size[0] ** 2 + size[1] ** 2 + size[2] ** 2), 0.0)


@njit(**INNER)
def hull_of(one, other):
    """The interval from the first to the last end of two intervals that may be empty."""
    if one[0] > one[1]:
        return other
    if other[0] > other[1]:
        return one
    return min(one[0], other[0]), max(one[1], other[1])


@njit(**INNER)
def in_rounded_box(ray, x, y, z, radius):
    """As in a capsule: from the first to the last end of its parts, which are boxes, cylinders on the edges and balls on the corners."""
    o, d, core = (ray.x, ray.y, ray.z), (ray.dx, ray.dy, ray.dz), (x, y, z)
    found = hull_of(in_box(ray, x + radius, y, z), in_box(ray, x, y + radius, z))
    found = hull_of(found, in_box(ray, x, y, z + radius))
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        for s in (-1.0, 1.0):
            for t in (-1.0, 1.0):
                beside = Ray(o[i] - s * core[i], o[j] - t * core[j], o[k], d[i], d[j], d[k])
                found = hull_of(found, in_cylinder(beside, radius, core[k]))
                if k == 2:
                    found = hull_of(found, in_ball(beside, -z, radius))
                    found = hull_of(found, in_ball(beside, z, radius))
    return found


@njit(**INNER)
def in_plane(ray, x, y, z):
    """Half space of the points whose product with the normal (x, y, z) is not positive."""
    height, speed = ray.x * x + ray.y * y + ray.z * z, ray.dx * x + ray.dy * y + ray.dz * z
    if speed == 0.0:
        return (-math.inf, math.inf) if height <= 0.0 else (math.inf, -math.inf)
    return (-height / speed, math.inf) if speed < 0.0 else (-math.inf, -height / speed)


@njit(**INNER)
def in_hull(ray, geometry, scale, surfaces):
    low, high, faces = -math.inf, math.inf, surfaces.faces
    for face in range(surfaces.first[geometry, 0], surfaces.first[geometry + 1, 0]):
        x, y, z, offset = faces[face, 0], faces[face, 1], faces[face, 2], scale * faces[face, 3]
        height, speed = ray.x * x + ray.y * y + ray.z * z - offset, ray.dx * x + ray.dy * y + ray.dz * z
        if speed < 0.0:
            low = max(low, -height / speed)
        elif speed > 0.0:
            high = min(high, -height / speed)
        elif height > 0.0:
            return math.inf, -math.inf
    return low, high


@njit(**INNER)
def in_solid(ray, kind, size, geometry, surfaces):
    """The interval of any convex solid with three sizes and a bounding radius."""
    x, y, z, _ = size
    if kind == SPHERE:
        return in_ball(ray, 0.0, x)
    if kind == ELLIPSOID:
        return in_ellipsoid(ray, x, y, z)
    if kind == CAPSULE:
        return in_capsule(ray, x, y)
    if kind == CYLINDER:
        return in_cylinder(ray, x, y)
    if kind == CONE:
        return in_cone(ray, x, y)
    if kind == BOX:
        return in_box(ray, x, y, z)
    if kind == ROUNDED_BOX:
        return in_rounded_box(ray, x, y, z, rounding_of(size))
    if kind == PLANE:
        return in_plane(ray, x, y, z)
    if kind == HULL:
        return in_hull(ray, geometry, x, surfaces)
    return math.inf, -math.inf


@njit(**INNER)
def first_ahead(low, high, least):
    """The first end of an interval from ``least`` on, or inf."""
    if low > high:
        return math.inf
    if low >= least:
        return low
    return high if high >= least else math.inf


# --- outward normals


@njit(**INNER)
def normal_of_box(x, y, z, px, py, pz):
    """Of the face that is nearest to a point on the surface."""
    ex, ey, ez = abs(px) - x, abs(py) - y, abs(pz) - z
    if ex >= ey and ex >= ez:
        return math.copysign(1.0, px), 0.0, 0.0
    if ey >= ez:
        return 0.0, math.copysign(1.0, py), 0.0
    return 0.0, 0.0, math.copysign(1.0, pz)


@njit(**INNER)
def normal_of_hull(geometry, scale, surfaces, px, py, pz):
    faces, first, last = surfaces.faces, surfaces.first[geometry, 0], surfaces.first[geometry + 1, 0]
    nearest, most = first, -math.inf
    for face in range(first, last):
        height = faces[face, 0] * px + faces[face, 1] * py + faces[face, 2] * pz - scale * faces[face, 3]
        if height > most:
            nearest, most = face, height
    return faces[nearest, 0], faces[nearest, 1], faces[nearest, 2]


@njit(**INNER)
def normal_of_solid(kind, size, geometry, surfaces, px, py, pz):
    """Outward normal at a point on the surface of a convex solid; its length is arbitrary."""
    x, y, z, _ = size
    if kind == SPHERE:
        return px, py, pz
    if kind == ELLIPSOID:
        return px / x**2, py / y**2, pz / z**2
    if kind == CAPSULE:
        return px, py, pz - min(max(pz, -y), y)
    if kind == CYLINDER:
        if abs(pz) - y > math.sqrt(px * px + py * py) - x:
            return 0.0, 0.0, pz
        return px, py, 0.0
    if kind == CONE:
        across, slant = math.sqrt(px * px + py * py), math.sqrt(x * x + y * y)
        side = (across - x / y * (0.75 * y - pz)) * y / slant
        if -0.25 * y - pz > side or across == 0.0:
            return 0.0, 0.0, -1.0 if pz < 0.0 else 1.0
        return px / across * y, py / across * y, x
    if kind == BOX:
        return normal_of_box(x, y, z, px, py, pz)
    if kind == ROUNDED_BOX:
        return px - min(max(px, -x), x), py - min(max(py, -y), y), pz - min(max(pz, -z), z)
    if kind == PLANE:
        return x, y, z
    return normal_of_hull(geometry, x, surfaces, px, py, pz)


# --- trees


@njit(**INNER)
def enters(boxes, k, ray, ix, iy, iz, least, most):
    """Where between ``least`` and ``most`` a ray enters a box, or inf; ix, iy, iz: one divided by its direction. A ray in the
    plane of a face gives no number there, and the comparisons let it pass."""
    low, high = least, most
    x, y, z = (boxes[k, 0] - ray.x) * ix, (boxes[k, 1] - ray.y) * iy, (boxes[k, 2] - ray.z) * iz
    ux, uy, uz = (boxes[k, 3] - ray.x) * ix, (boxes[k, 4] - ray.y) * iy, (boxes[k, 5] - ray.z) * iz
    for near, far, inverse in ((x, ux, ix), (y, uy, iy), (z, uz, iz)):
        if inverse < 0.0:
            near, far = far, near
        if near > low:
            low = near
        if far < high:
            high = far
    return low if low - abs(low) * 1e-14 <= high + abs(high) * 1e-14 else math.inf


@njit(**INNER)
def inverse_of(d):
    return math.inf if d == 0.0 else 1.0 / d


@njit(**INNER)
def on_triangle(ray, corners, t):
    """Where a ray crosses a triangle, from either side, or inf. Edges belong to both their triangles: no ray slips between
    (Woop, Benthin, Wald 2013: the ray becomes the z axis by a shear, and the signs of three areas decide)."""
    k = 2
    if abs(ray.dx) >= abs(ray.dy) and abs(ray.dx) >= abs(ray.dz):
        k = 0
    elif abs(ray.dy) >= abs(ray.dz):
        k = 1
    o, d = (ray.x, ray.y, ray.z, ray.x, ray.y), (ray.dx, ray.dy, ray.dz, ray.dx, ray.dy)
    i, j = (k + 1) % 3, (k + 2) % 3
    sx, sy = d[i] / d[k], d[j] / d[k]
    az, bz, cz = corners[t, 0, k] - o[k], corners[t, 1, k] - o[k], corners[t, 2, k] - o[k]
    ax, ay = corners[t, 0, i] - o[i] - sx * az, corners[t, 0, j] - o[j] - sy * az
    bx, by = corners[t, 1, i] - o[i] - sx * bz, corners[t, 1, j] - o[j] - sy * bz
    cx, cy = corners[t, 2, i] - o[i] - sx * cz, corners[t, 2, j] - o[j] - sy * cz
    u, v, w = cx * by - cy * bx, ax * cy - ay * cx, bx * ay - by * ax
    if (u < 0.0 or v < 0.0 or w < 0.0) and (u > 0.0 or v > 0.0 or w > 0.0):
        return math.inf
    area = u + v + w
    if area == 0.0:
        return math.inf
    return (u * az + v * bz + w * cz) / (area * d[k])


@njit(**INNER)
def on_mesh(ray, geometry, surfaces, least, most, nodes):
    """(where a ray first crosses the triangles of a mesh, or inf; which triangle)."""
    first, boxes, corners = surfaces.first, surfaces.boxes, surfaces.corners
    root = first[geometry, 2]
    inner = (first[geometry + 1, 2] - root) // 2
    ix, iy, iz = inverse_of(ray.dx), inverse_of(ray.dy), inverse_of(ray.dz)
    best, hit, top = math.inf, np.int64(-1), 0
    nodes[0] = 0
    while top >= 0:
        node = nodes[top]
        top -= 1
        if enters(boxes, root + node, ray, ix, iy, iz, least, min(best, most)) == math.inf:
            continue
        if node < inner:
            near, far = 2 * node + 1, 2 * node + 2
            if enters(boxes, root + far, ray, ix, iy, iz, least, most) < enters(boxes, root + near, ray, ix, iy, iz, least, most):
                near, far = far, near
            nodes[top + 1], nodes[top + 2] = far, near
            top += 2
            continue
        start = first[geometry, 1] + (node - inner) * TRIANGLES
        for k in range(start, min(start + TRIANGLES, first[geometry + 1, 1])):
            t = on_triangle(ray, corners, k)
            if least <= t < best:
                best, hit = t, k
    return best, hit


# --- bodies


@njit(**INNER)
def frame_at(poses, i, scale):
    """(matrix, position, size) of row i of an array of positions, quaternions and four sizes, the lengths scaled."""
    p = poses[i]
    size = scale * p[7], scale * p[8], scale * p[9], scale * p[10]
    return to_matrix(p[3:7]), (scale * p[0], scale * p[1], scale * p[2]), size


@njit(**INNER)
def on_compound(ray, geometry, scale, surfaces, least):
    """(where a ray first crosses the surface of a child, or inf; which child)."""
    best, hit, tag = math.inf, np.int64(-1), surfaces.child_tag
    for child in range(surfaces.first[geometry, 3], surfaces.first[geometry + 1, 3]):
        m, place, size = frame_at(surfaces.children, child, scale)
        local = seen_from(ray, m, place[0], place[1], place[2])
        low, high = in_solid(local, tag[child, 0], size, tag[child, 1], surfaces)
        t = first_ahead(low, high, least)
        if t < best:
            best, hit = t, child
    return best, hit


@njit(**INNER)
def on_body(ray, i, bodies, surfaces, most, nodes):
    """(where a ray first crosses the surface of a body, or inf; triangle or child)."""
    kind, geometry = bodies.tag[i, 0], bodies.tag[i, 1]
    m, place, size = frame_at(bodies.pose, i, 1.0)
    local = seen_from(ray, m, place[0], place[1], place[2])
    shift = -(local.x * local.dx + local.y * local.dy + local.z * local.dz)
    x, y, z = point_at(local, shift)
    local, part = Ray(x, y, z, local.dx, local.dy, local.dz), np.int64(-1)
    if kind == MESH:
        scale = size[0]
        unscaled = Ray(x / scale, y / scale, z / scale, local.dx, local.dy, local.dz)
        t, part = on_mesh(unscaled, geometry, surfaces, -shift / scale, (most - shift) / scale, nodes)
        t *= scale
    elif kind == COMPOUND:
        t, part = on_compound(local, geometry, size[0], surfaces, -shift)
    else:
        low, high = in_solid(local, kind, size, geometry, surfaces)
        t = first_ahead(low, high, -shift)
    return max(t + shift, 0.0), part


@njit(**INNER)
def normal_on_body(x, y, z, i, part, bodies, surfaces):
    """Outward normal of a body at a point of its surface, in the world frame."""
    kind, geometry = bodies.tag[i, 0], bodies.tag[i, 1]
    m, place, size = frame_at(bodies.pose, i, 1.0)
    if kind == MESH:
        nx, ny, nz = surfaces.normals[part, 0], surfaces.normals[part, 1], surfaces.normals[part, 2]
    else:
        px, py, pz = rotate_back(m, x - place[0], y - place[1], z - place[2])
        if kind == COMPOUND:
            turn, place, size = frame_at(surfaces.children, part, size[0])
            kind, geometry = surfaces.child_tag[part, 0], surfaces.child_tag[part, 1]
            m = product(m, turn)
            px, py, pz = rotate_back(turn, px - place[0], py - place[1], pz - place[2])
        nx, ny, nz = normal_of_solid(kind, size, geometry, surfaces, px, py, pz)
    nx, ny, nz = rotate(m, nx, ny, nz)
    length = math.sqrt(nx * nx + ny * ny + nz * nz)
    return nx / length, ny / length, nz / length


@njit(**INNER)
def product(a, b):
    """a b, matrices row by row."""
    x, y, z = rotate(a, b[0][0], b[1][0], b[2][0]), rotate(a, b[0][1], b[1][1], b[2][1]), rotate(a, b[0][2], b[1][2], b[2][2])
    return (x[0], y[0], z[0]), (x[1], y[1], z[1]), (x[2], y[2], z[2])


@njit(**INNER)
def cast_ray(ray, reach, bodies, in_tree, tree, surfaces, nodes, mesh_nodes):
    """(distance to the first surface ahead or inf, index of the body in the order or -1, its triangle or child). Of surfaces at
    one distance, the body with the lowest id counts."""
    order, boxes, n, room = bodies.order, bodies.boxes, bodies.order.size, leaf_room_of(in_tree)
    ix, iy, iz = inverse_of(ray.dx), inverse_of(ray.dy), inverse_of(ray.dz)
    best, hit, hit_part, top = math.inf, np.int64(-1), np.int64(-1), 0
    nodes[0] = 1
    extra = in_tree  # bodies without end, after those of the tree
    while top >= 0 or extra < n:
        if extra < n:
            first, last = extra, n
            extra = n
        else:
            node = nodes[top]
            top -= 1
            if enters(tree, node, ray, ix, iy, iz, 0.0, min(best, reach)) == math.inf:
                continue
            if node < room:
                near, far = 2 * node, 2 * node + 1
                if enters(tree, far, ray, ix, iy, iz, 0.0, reach) < enters(tree, near, ray, ix, iy, iz, 0.0, reach):
                    near, far = far, near
                nodes[top + 1], nodes[top + 2] = far, near
                top += 2
                continue
            first, last = (node - room) * LEAF, min((node - room + 1) * LEAF, in_tree)
        for i in range(first, last):
            if enters(boxes, i, ray, ix, iy, iz, 0.0, min(best, reach)) == math.inf:
                continue
            t, part = on_body(ray, i, bodies, surfaces, min(best, reach), mesh_nodes)
            if t <= reach and (t < best or (t == best and t < math.inf and order[i] < order[hit])):
                best, hit, hit_part = t, i, part
    return best, hit, hit_part


@njit(**ALLOCATING)
def rays_of_chunk(chunk, origins, directions, reach, bodies, in_tree, tree, surfaces, body, distance, point, normal):
    nodes, mesh_nodes = np.empty(128, np.int64), np.empty(128, np.int64)
    for k in range(chunk * CHUNK, min((chunk + 1) * CHUNK, body.size)):
        o, d = origins[k], directions[k]
        ray = Ray(o[0], o[1], o[2], d[0], d[1], d[2])
        t, i, part = cast_ray(ray, reach, bodies, in_tree, tree, surfaces, nodes, mesh_nodes)
        body[k], distance[k] = -1, math.inf
        point[k], normal[k] = math.nan, math.nan
        if i >= 0:
            body[k], distance[k] = bodies.order[i], t
            x, y, z = point_at(ray, t)
            point[k, 0], point[k, 1], point[k, 2] = x, y, z
            normal[k, 0], normal[k, 1], normal[k, 2] = normal_on_body(x, y, z, i, part, bodies, surfaces)


@Kernel
def cast_rays(origins, directions, reach, bodies, in_tree, centre, half, tree, surfaces, body, distance, point, normal):
    """Build the tree over the first bodies, from the centres and half extents of their boxes, and find the first hit of each
    ray."""
    build_tree(in_tree, centre, half, False, tree)
    for chunk in prange((body.size + CHUNK - 1) // CHUNK):
        rays_of_chunk(np.int64(chunk), origins, directions, reach, bodies, in_tree, tree, surfaces, body, distance, point, normal)


# --- boxes of bodies


@njit(**INNER)
def vertices_along(geometry, scale, library, x, y, z):
    low, high, v = math.inf, -math.inf, library.vertices
    for k in range(library.first_vertex[geometry], library.first_vertex[geometry + 1]):
        along = v[k, 0] * x + v[k, 1] * y + v[k, 2] * z
        low, high = min(low, along), max(high, along)
    return scale * low, scale * high


@njit(**INNER)
def solid_along(kind, size, geometry, library, x, y, z):
    """(lowest, highest) extent of a solid along a direction (x, y, z) of length one, in its frame."""
    a, b, c, _ = size
    aside = math.sqrt(max(1.0 - z * z, 0.0))
    if kind == CONE:
        base, tip = -0.25 * b * z, 0.75 * b * z
        return min(base - a * aside, tip), max(base + a * aside, tip)
    if kind in (HULL, MESH):
        return vertices_along(geometry, a, library, x, y, z)
    far = a
    if kind == ELLIPSOID:
        far = math.sqrt((a * x) ** 2 + (b * y) ** 2 + (c * z) ** 2)
    elif kind == CAPSULE:
        far = a + b * abs(z)
    elif kind == CYLINDER:
        far = a * aside + b * abs(z)
    elif kind in (BOX, ROUNDED_BOX):
        far = a * abs(x) + b * abs(y) + c * abs(z)
        far += rounding_of(size) if kind == ROUNDED_BOX else 0.0
    return -far, far


@njit(**INNER)
def compound_along(geometry, scale, library, x, y, z):
    low, high, sizes, radii = math.inf, -math.inf, library.child_size, library.child_radius
    for child in range(library.first_child[geometry], library.first_child[geometry + 1]):
        m, p = to_matrix(library.child_quaternion[child]), library.child_position[child]
        dx, dy, dz = rotate_back(m, x, y, z)
        size = scale * sizes[child, 0], scale * sizes[child, 1], scale * sizes[child, 2], scale * radii[child]
        one, two = solid_along(library.child_kind[child], size, library.child_geometry[child], library, dx, dy, dz)
        middle = scale * (p[0] * x + p[1] * y + p[2] * z)
        low, high = min(low, middle + one), max(high, middle + two)
    return low, high


@njit(**INNER)
def boxes_of_chunk(chunk, position, quaternion, extent, tag, geometry, library, low, high):
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, position.shape[0])):
        kind, m = tag[i, SHAPE], to_matrix(quaternion[i])
        size = extent[i, 0], extent[i, 1], extent[i, 2], extent[i, 3]
        for k in range(3):
            if kind == PLANE:
                one, two = -math.inf, math.inf
            elif kind == COMPOUND:
                one, two = compound_along(geometry[i], size[0], library, m[k][0], m[k][1], m[k][2])
            else:
                one, two = solid_along(kind, size, geometry[i], library, m[k][0], m[k][1], m[k][2])
            low[i, k], high[i, k] = position[i, k] + one, position[i, k] + two


@Kernel
def boxes_of_bodies(position, quaternion, extent, tag, geometry, library, low, high):
    """The tight axis-aligned box of each body; planes have none that ends."""
    for chunk in prange((position.shape[0] + CHUNK - 1) // CHUNK):
        boxes_of_chunk(np.int64(chunk), position, quaternion, extent, tag, geometry, library, low, high)
