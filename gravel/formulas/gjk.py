"""Distance and depth of two convex solids.

In: solids a and b with their rotation matrices, and d = centre of b - centre of a. Out: the unit normal n from a to b, the
nearest (or deepest) point of a's core and the signed distance of the cores.

All is said about C = B - A, the set of differences of their points: apart, its point nearest to the origin is v = distance n
(Gilbert, Johnson and Keerthi 1988; the nearest point of the simplex by signed volumes, Montanari et al. 2017). Where C holds
the origin, a polytope inside C grows until its face nearest to the origin is one of C's (van den Bergen 2001): the depth.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gravel.formulas.kinds import Corners, Matrix, Names, Numbers, Table, Tables, Vector
from gravel.formulas.solids import Solid, support
from gravel.formulas.vectors import cross, rotate, rotate_back
from gravel.shapes import CONE, CYLINDER, ELLIPSOID

STEPS = 64
MOST_VERTICES, MOST_FACES = 100, 400
NEAR = 1e-6  # of the size: distances below it are left to the polytope, whose directions do not depend on the distance
PRECISE = 1e-9  # of the size, and PRECISE_DIRECTION of the distance: when the nearest points are known
PRECISE_DIRECTION = 1e-6
PRECISE_LENGTH = 1e-12
PRECISE_DEPTH = 1e-8
SAME_POINT = 0.0  # of the size: points so near each other are one
FLAT = 1e-9  # of the size: so thick must a tetrahedron be
COARSE = False  # numbers are single: distances alone do not tell n well enough
UNSURE = 1e-5  # of the size, between two bounds of the distance
VISIBLE = 1e-12  # of the size: so far must a point lie above a face to see it


class Work(NamedTuple):
    """Scratch of one thread."""

    simplex: Table  # (4, 6) point of C, point of a
    weight: Numbers  # (4,)
    trial: Numbers  # (4,)
    vertices: Table  # (MOST_VERTICES, 6)
    faces: Corners  # (MOST_FACES, 3) corners; the first is NONE where the face is gone
    planes: Table  # (MOST_FACES, 4) outward normal, distance from the origin
    edges: Corners  # (MOST_FACES, 2)
    polygons: Tables  # (3, 64, 3)
    stack: Names  # (128,) nodes of a mesh's tree
    found: Names  # (1024,) triangles
    rows: Table  # (512 + 64, 7) contacts with a mesh before they are thinned out
    names: Names  # (512,)
    sizes: Table  # (2, 4) of children of compounds, with their bounding radii
    turns: Table  # (2, 4)


def difference(a: Solid, b: Solid, ma: Matrix, mb: Matrix, d: Vector, vertices: Table, links: Names, x: float, y: float, z: float):
    """The point of C farthest along (x, y, z), and the point of a that it comes from."""
    ax, ay, az = rotate_back(ma, -x, -y, -z)
    ax, ay, az = support(a, vertices, links, ax, ay, az)
    ax, ay, az = rotate(ma, ax, ay, az)
    bx, by, bz = rotate_back(mb, x, y, z)
    bx, by, bz = support(b, vertices, links, bx, by, bz)
    bx, by, bz = rotate(mb, bx, by, bz)
    return bx + d[0] - ax, by + d[1] - ay, bz + d[2] - az, ax, ay, az


def put(rows: Table, k: int, x: float, y: float, z: float, ax: float, ay: float, az: float):
    """Row k := a point of C and its point of a."""
    rows[k, 0] = x
    rows[k, 1] = y
    rows[k, 2] = z
    rows[k, 3] = ax
    rows[k, 4] = ay
    rows[k, 5] = az


def on_segment(w: Table, i: int, j: int, weight: Numbers):
    """Weights of the point of segment i j nearest to the origin; returns its square distance."""
    ex, ey, ez = w[j, 0] - w[i, 0], w[j, 1] - w[i, 1], w[j, 2] - w[i, 2]
    square = ex * ex + ey * ey + ez * ez
    t = -(w[i, 0] * ex + w[i, 1] * ey + w[i, 2] * ez) / square if square > 0.0 else 0.0
    t = min(max(t, 0.0), 1.0)
    weight[i] = 1.0 - t
    weight[j] = t
    x, y, z = w[i, 0] + t * ex, w[i, 1] + t * ey, w[i, 2] + t * ez
    return x * x + y * y + z * z


def on_triangle(w: Table, i: int, j: int, k: int, weight: Numbers):
    """The same for triangle i j k."""
    nx, ny, nz = cross(w[j, 0] - w[i, 0], w[j, 1] - w[i, 1], w[j, 2] - w[i, 2], w[k, 0] - w[i, 0], w[k, 1] - w[i, 1], w[k, 2] - w[i, 2])
    square = nx * nx + ny * ny + nz * nz
    if square > 0.0:
        height = (w[i, 0] * nx + w[i, 1] * ny + w[i, 2] * nz) / square
        px, py, pz = height * nx, height * ny, height * nz  # the origin's foot in the plane
        ax, ay, az = w[i, 0] - px, w[i, 1] - py, w[i, 2] - pz
        bx, by, bz = w[j, 0] - px, w[j, 1] - py, w[j, 2] - pz
        cx, cy, cz = w[k, 0] - px, w[k, 1] - py, w[k, 2] - pz
        x, y, z = cross(bx, by, bz, cx, cy, cz)
        wi = (x * nx + y * ny + z * nz) / square
        x, y, z = cross(cx, cy, cz, ax, ay, az)
        wj = (x * nx + y * ny + z * nz) / square
        wk = 1.0 - wi - wj
        if wi >= 0.0 and wj >= 0.0 and wk >= 0.0:
            weight[i] = wi
            weight[j] = wj
            weight[k] = wk
            return px * px + py * py + pz * pz
    best, bi, bj, bk = float(math.inf), float(0.0), float(0.0), float(0.0)
    for side in range(3):
        p, q = i if side == 0 else (j if side == 1 else k), j if side == 0 else (k if side == 1 else i)
        square = on_segment(w, p, q, weight)
        if square < best:
            best = square
            bi = weight[i] if side != 1 else 0.0
            bj = weight[j] if side != 2 else 0.0
            bk = weight[k] if side != 0 else 0.0
    weight[i] = bi
    weight[j] = bj
    weight[k] = bk
    return best


def volume(w: Table, i: int, j: int, k: int):
    """Six times the signed volume of the origin with triangle i j k."""
    x, y, z = cross(w[j, 0], w[j, 1], w[j, 2], w[k, 0], w[k, 1], w[k, 2])
    return w[i, 0] * x + w[i, 1] * y + w[i, 2] * z


def on_tetrahedron(w: Table, weight: Numbers, trial: Numbers):
    """The same for all four points; zero where the origin is inside."""
    v0, v1, v2, v3 = volume(w, 1, 3, 2), volume(w, 0, 2, 3), volume(w, 0, 3, 1), volume(w, 0, 1, 2)
    total = v0 + v1 + v2 + v3
    if total != 0.0 and v0 / total >= 0.0 and v1 / total >= 0.0 and v2 / total >= 0.0 and v3 / total >= 0.0:
        weight[0] = v0 / total
        weight[1] = v1 / total
        weight[2] = v2 / total
        weight[3] = v3 / total
        return 0.0
    best = float(math.inf)
    for out in range(4):
        i, j, k = (1 if out == 0 else 0), (2 if out <= 1 else 1), (3 if out <= 2 else 2)
        square = on_triangle(w, i, j, k, trial)
        if square < best:
            best = square
            weight[i] = trial[i]
            weight[j] = trial[j]
            weight[k] = trial[k]
            weight[out] = 0.0
    return best


def reduce_simplex(w: Table, weight: Numbers, trial: Numbers, count: int):
    """Keep what the nearest point of the simplex needs: (points left, nearest point)."""
    if count == 1:
        weight[0] = 1.0
    elif count == 2:
        on_segment(w, 0, 1, weight)
    elif count == 3:
        on_triangle(w, 0, 1, 2, weight)
    else:
        on_tetrahedron(w, weight, trial)
    left, x, y, z = int(0), float(0.0), float(0.0), float(0.0)
    for i in range(count):
        if weight[i] > 0.0:
            x, y, z = x + weight[i] * w[i, 0], y + weight[i] * w[i, 1], z + weight[i] * w[i, 2]
            for k in range(6):
                w[left, k] = w[i, k]
            weight[left] = weight[i]
            left += 1
    return left, x, y, z


def nearest(
    a: Solid,
    b: Solid,
    ma: Matrix,
    mb: Matrix,
    d: Vector,
    limit: float,
    size: float,
    vertices: Table,
    links: Names,
    w: Table,
    weight: Numbers,
    trial: Numbers,
):
    """(points of the simplex, v): v is the shortest vector from core a to core b, zero for an overlap. No points: the cores
    are farther apart than ``limit`` along v."""
    x = float(d[0])
    y = float(d[1])
    z = float(d[2])
    hair, same = 1e-6 * size, SAME_POINT * size
    if x * x + y * y + z * z < hair * hair:
        x, y, z = 1.0, 0.0, 0.0
    count, length = int(0), float(math.inf)
    for _ in range(STEPS):
        scale = -1.0 / math.sqrt(x * x + y * y + z * z)
        cx, cy, cz, ax, ay, az = difference(a, b, ma, mb, d, vertices, links, scale * x, scale * y, scale * z)
        along = -scale * (cx * x + cy * y + cz * z)
        if along > limit:
            return 0, x, y, z
        if count > 0 and length - along <= max(min(PRECISE * size, PRECISE_DIRECTION * length), PRECISE_LENGTH * length):
            return count, x, y, z
        known = bool(False)
        for i in range(count):
            known = known or (abs(w[i, 0] - cx) <= same and abs(w[i, 1] - cy) <= same and abs(w[i, 2] - cz) <= same)
        if known:
            return count, x, y, z
        put(w, count, cx, cy, cz, ax, ay, az)
        count, x, y, z = reduce_simplex(w, weight, trial, count + 1)
        before = length
        length = math.sqrt(x * x + y * y + z * z)
        if count == 4 or length <= NEAR * size:
            return count, 0.0, 0.0, 0.0
        if length >= before:  # rounding: no nearer any more
            break
    return count, x, y, z


def add_face(v: Table, corners: Corners, planes: Table, faces: int, i: int, j: int, k: int):
    """One more face of the polytope, its plane turned outward by the order of its corners; returns their number."""
    nx, ny, nz = cross(v[j, 0] - v[i, 0], v[j, 1] - v[i, 1], v[j, 2] - v[i, 2], v[k, 0] - v[i, 0], v[k, 1] - v[i, 1], v[k, 2] - v[i, 2])
    length = math.sqrt(nx * nx + ny * ny + nz * nz)
    corners[faces, 0] = i
    corners[faces, 1] = j
    corners[faces, 2] = k
    distance = math.inf  # a sliver closes the polytope but is nobody's nearest face
    if length > 0.0:
        nx, ny, nz = nx / length, ny / length, nz / length
        distance = nx * v[i, 0] + ny * v[i, 1] + nz * v[i, 2]
    planes[faces, 0] = nx
    planes[faces, 1] = ny
    planes[faces, 2] = nz
    planes[faces, 3] = distance
    return faces + 1


def complete_simplex(
    a: Solid, b: Solid, ma: Matrix, mb: Matrix, d: Vector, count: int, size: float, vertices: Table, links: Names, w: Table
):
    """Grow the simplex to a tetrahedron with volume; returns its number of points, below four where C is flat."""
    hair = FLAT * size
    for trial in range(14):
        if count == 4:
            break
        x, y, z = 0.0, 0.0, 0.0
        if count <= 1:
            axis = trial // 2 % 3
            x, y, z = 1.0 if axis == 0 else 0.0, 1.0 if axis == 1 else 0.0, 1.0 if axis == 2 else 0.0
        elif count == 2:
            ex, ey, ez = w[1, 0] - w[0, 0], w[1, 1] - w[0, 1], w[1, 2] - w[0, 2]
            least = 0 if abs(ex) <= abs(ey) and abs(ex) <= abs(ez) else (1 if abs(ey) <= abs(ez) else 2)
            x, y, z = cross(ex, ey, ez, 1.0 if least == 0 else 0.0, 1.0 if least == 1 else 0.0, 1.0 if least == 2 else 0.0)
            if trial % 4 >= 2:
                x, y, z = cross(ex, ey, ez, x, y, z)
        else:
            x, y, z = cross(
                w[1, 0] - w[0, 0],
                w[1, 1] - w[0, 1],
                w[1, 2] - w[0, 2],
                w[2, 0] - w[0, 0],
                w[2, 1] - w[0, 1],
                w[2, 2] - w[0, 2],
            )
        sense = 1.0 if trial % 2 == 0 else -1.0
        length = math.sqrt(x * x + y * y + z * z)
        if not length > 0.0:
            count -= 1
            continue
        scale = sense / length
        cx, cy, cz, ax, ay, az = difference(a, b, ma, mb, d, vertices, links, scale * x, scale * y, scale * z)
        put(w, count, cx, cy, cz, ax, ay, az)
        if spread(w, count) > hair:
            count += 1
    return count


def spread(w: Table, count: int):
    """How far point ``count`` lies from what the points before it span (a point, a line, a plane)."""
    px, py, pz = w[count, 0] - w[0, 0], w[count, 1] - w[0, 1], w[count, 2] - w[0, 2]
    if count == 1:
        return math.sqrt(px * px + py * py + pz * pz)
    ex, ey, ez = w[1, 0] - w[0, 0], w[1, 1] - w[0, 1], w[1, 2] - w[0, 2]
    if count == 2:
        x, y, z = cross(ex, ey, ez, px, py, pz)
        return math.sqrt((x * x + y * y + z * z) / (ex * ex + ey * ey + ez * ez))
    x, y, z = cross(ex, ey, ez, w[2, 0] - w[0, 0], w[2, 1] - w[0, 1], w[2, 2] - w[0, 2])
    return abs(x * px + y * py + z * pz) / math.sqrt(x * x + y * y + z * z)


def first_polytope(w: Table, v: Table, corners: Corners, planes: Table):
    """The tetrahedron of the simplex, faces outward; returns its number of faces."""
    for i in range(4):
        for k in range(6):
            v[i, k] = w[i, k]
    x, y, z = cross(v[1, 0] - v[0, 0], v[1, 1] - v[0, 1], v[1, 2] - v[0, 2], v[2, 0] - v[0, 0], v[2, 1] - v[0, 1], v[2, 2] - v[0, 2])
    inward = x * (v[3, 0] - v[0, 0]) + y * (v[3, 1] - v[0, 1]) + z * (v[3, 2] - v[0, 2]) > 0.0
    p, q = 2 if inward else 1, 1 if inward else 2
    faces = add_face(v, corners, planes, 0, 0, p, q)
    faces = add_face(v, corners, planes, faces, 0, 3, p)
    faces = add_face(v, corners, planes, faces, p, 3, q)
    return add_face(v, corners, planes, faces, q, 3, 0)


def nearest_face(corners: Corners, planes: Table, faces: int):
    best, least = int(-1), float(math.inf)
    for face in range(faces):
        if corners[face, 0] >= 0 and planes[face, 3] < least:
            best = face
            least = planes[face, 3]
    return best


def toggle_edge(rim: Corners, edges: int, i: int, j: int):
    """Add an edge to the rim, or take it off if its twin is there: both faces at it are gone."""
    for k in range(edges):
        if rim[k, 0] == j and rim[k, 1] == i:
            edges -= 1
            rim[k, 0] = rim[edges, 0]
            rim[k, 1] = rim[edges, 1]
            return edges
    if edges < MOST_FACES:
        rim[edges, 0] = i
        rim[edges, 1] = j
    return edges + 1


def borders(corners: Corners, face: int, rim: Corners, edges: int):
    """Whether a face has an edge at the rim."""
    i, j, k = corners[face, 0], corners[face, 1], corners[face, 2]
    for e in range(edges):
        p, q = rim[e, 0], rim[e, 1]
        if (p == j and q == i) or (p == k and q == j) or (p == i and q == k):
            return True
    return False


def grow(v: Table, corners: Corners, planes: Table, rim: Corners, newest: int, nearest: int, faces: int, hair: float):
    """Put the newest vertex into the polytope: faces that it can see go, and it is joined to their rim; returns the number of
    faces, or -1 where it fails by rounding or for want of room. Where rounding may show it faces elsewhere, only those go that hang
    together with the ``nearest``, for which it was added."""
    x, y, z, edges = v[newest, 0], v[newest, 1], v[newest, 2], int(0)
    looking = bool(True)
    while looking:
        looking = bool(False)
        for face in range(faces):
            if corners[face, 0] < 0:
                continue
            sliver = planes[face, 3] == math.inf
            if sliver or planes[face, 0] * x + planes[face, 1] * y + planes[face, 2] * z - planes[face, 3] > hair:
                if COARSE:
                    if face != nearest and not borders(corners, face, rim, edges):
                        continue
                    looking = bool(True)
                i, j, k = int(corners[face, 0]), int(corners[face, 1]), int(corners[face, 2])
                edges = toggle_edge(rim, edges, i, j)
                edges = toggle_edge(rim, edges, j, k)
                edges = toggle_edge(rim, edges, k, i)
                corners[face, 0] = -1
    if edges < 3 or edges >= MOST_FACES:
        return -1
    free = int(0)
    for e in range(edges):
        while free < faces and corners[free, 0] >= 0:
            free += 1
        if free >= MOST_FACES:
            return -1
        add_face(v, corners, planes, free, rim[e, 0], rim[e, 1], newest)
        faces = max(faces, free + 1)
    return faces


def flat_depth(a: Solid, b: Solid, ma: Matrix, mb: Matrix, d: Vector, count: int, vertices: Table, links: Names, w: Table):
    """(n, point of a, distance) where C has no volume: its flat direction, in which the two only touch."""
    x, y, z = 0.0, 0.0, 1.0
    if count >= 2:
        ex, ey, ez = w[1, 0] - w[0, 0], w[1, 1] - w[0, 1], w[1, 2] - w[0, 2]
        if count == 3:
            x, y, z = cross(ex, ey, ez, w[2, 0] - w[0, 0], w[2, 1] - w[0, 1], w[2, 2] - w[0, 2])
        elif abs(ex) <= max(abs(ey), abs(ez)):
            x, y, z = cross(ex, ey, ez, 1.0, 0.0, 0.0)
        else:
            x, y, z = cross(ex, ey, ez, 0.0, 1.0, 0.0)
    length = math.sqrt(x * x + y * y + z * z)
    if length > 0.0:
        x, y, z = x / length, y / length, z / length
    else:
        x, y, z = 0.0, 0.0, 1.0
    if x * d[0] + y * d[1] + z * d[2] < 0.0:
        x, y, z = -x, -y, -z
    cx, cy, cz, ax, ay, az = difference(a, b, ma, mb, d, vertices, links, -x, -y, -z)
    return x, y, z, ax, ay, az, cx * x + cy * y + cz * z


def point_of_face(v: Table, corners: Corners, planes: Table, face: int, w: Table, weight: Numbers):
    """The point of a that belongs to the foot of the origin on a face."""
    for i in range(3):
        for k in range(6):
            w[i, k] = v[corners[face, i], k]
        for k in range(3):  # seen from the foot, which so becomes the origin
            w[i, k] = w[i, k] - planes[face, 3] * planes[face, k]
    on_triangle(w, 0, 1, 2, weight)
    x, y, z = float(0.0), float(0.0), float(0.0)
    for i in range(3):
        x, y, z = x + weight[i] * w[i, 3], y + weight[i] * w[i, 4], z + weight[i] * w[i, 5]
    return x, y, z


def deepest(
    a: Solid,
    b: Solid,
    ma: Matrix,
    mb: Matrix,
    d: Vector,
    count: int,
    size: float,
    vertices: Table,
    links: Names,
    w: Table,
    weight: Numbers,
    v: Table,
    corners: Corners,
    planes: Table,
    rim: Corners,
):
    """(n, point of a, distance <= 0) of cores that overlap; n is the direction of least depth."""
    count = complete_simplex(a, b, ma, mb, d, count, size, vertices, links, w)
    if count < 4:
        return flat_depth(a, b, ma, mb, d, count, vertices, links, w)
    faces, newest = first_polytope(w, v, corners, planes), int(3)
    best_x, best_y, best_z, best_depth = float(0.0), float(0.0), float(1.0), float(math.inf)
    px, py, pz = float(0.0), float(0.0), float(0.0)
    while True:
        face = nearest_face(corners, planes, faces)
        if face < 0:
            break
        mx = planes[face, 0]
        my = planes[face, 1]
        mz = planes[face, 2]
        distance = planes[face, 3]
        cx, cy, cz, ax, ay, az = difference(a, b, ma, mb, d, vertices, links, mx, my, mz)
        height = cx * mx + cy * my + cz * mz
        if height < best_depth:
            best_x, best_y, best_z, best_depth = mx, my, mz, height
            px, py, pz = point_of_face(v, corners, planes, face, w, weight)
        newest += 1
        if best_depth - distance <= PRECISE_DEPTH * size or newest >= MOST_VERTICES:
            break
        put(v, newest, cx, cy, cz, ax, ay, az)
        faces = grow(v, corners, planes, rim, newest, face, faces, VISIBLE * size)
        if faces < 0:
            break
    return -best_x, -best_y, -best_z, px, py, pz, -best_depth


def chord(
    a: Solid,
    b: Solid,
    ma: Matrix,
    mb: Matrix,
    d: Vector,
    nx: float,
    ny: float,
    nz: float,
    ux: float,
    uy: float,
    uz: float,
    angle: float,
    vertices: Table,
    links: Names,
):
    """How far the point of C that is lowest along n moves as n turns by an angle, from as much against u to as much towards it."""
    x, y, z = angle * ux, angle * uy, angle * uz
    cx, cy, cz, ax, ay, az = difference(a, b, ma, mb, d, vertices, links, -nx - x, -ny - y, -nz - z)
    ex, ey, ez, ax, ay, az = difference(a, b, ma, mb, d, vertices, links, x - nx, y - ny, z - nz)
    return cx - ex, cy - ey, cz - ez


def unit(x: float, y: float, z: float):
    scale = 1.0 / math.sqrt(x * x + y * y + z * z)
    return scale * x, scale * y, scale * z


def across(nx: float, ny: float, nz: float):
    """A unit vector across n."""
    x, y, z = cross(nx, ny, nz, 1.0, 0.0, 0.0)
    if abs(nx) > 0.7:
        x, y, z = cross(nx, ny, nz, 0.0, 1.0, 0.0)
    return unit(x, y, z)


def is_curved(solid: Solid):
    return solid.kind == ELLIPSOID or solid.kind == CYLINDER or solid.kind == CONE


def sharpened(
    a: Solid,
    b: Solid,
    ma: Matrix,
    mb: Matrix,
    d: Vector,
    nx: float,
    ny: float,
    nz: float,
    px: float,
    py: float,
    pz: float,
    angle: float,
    vertices: Table,
    links: Names,
):
    """(n, point of a, distance) from an n that is off by less than an ``angle``.

    Distances are known to the precision of the numbers, so the n of the largest distance only to the root of it. The lowest point of C
    is known better: where C is round it must lie below the origin, which one step of Newton's method brings about; where C is flat it
    jumps along an edge or over a face, which must be level."""
    ux, uy, uz = across(nx, ny, nz)
    vx, vy, vz = cross(nx, ny, nz, ux, uy, uz)
    ex, ey, ez = chord(a, b, ma, mb, d, nx, ny, nz, ux, uy, uz, angle, vertices, links)
    fx, fy, fz = chord(a, b, ma, mb, d, nx, ny, nz, vx, vy, vz, angle, vertices, links)
    wx, wy, wz = fx, fy, fz
    if ex * ex + ey * ey + ez * ez >= fx * fx + fy * fy + fz * fz:
        wx, wy, wz = ex, ey, ez
    width = math.sqrt(wx * wx + wy * wy + wz * wz)
    if width > 0.0:  # it may have jumped along an edge
        wx, wy, wz = wx / width, wy / width, wz / width
        rise = nx * wx + ny * wy + nz * wz
        mx, my, mz = unit(nx - rise * wx, ny - rise * wy, nz - rise * wz)
        hair = 0.125 * angle
        cx, cy, cz, ax, ay, az = difference(a, b, ma, mb, d, vertices, links, -mx - hair * wx, -my - hair * wy, -mz - hair * wz)
        gx, gy, gz, qx, qy, qz = difference(a, b, ma, mb, d, vertices, links, hair * wx - mx, hair * wy - my, hair * wz - mz)
        gx, gy, gz = cx - gx, cy - gy, cz - gz
        length = math.sqrt(gx * gx + gy * gy + gz * gz)
        if length > 0.5 * width:
            wx, wy, wz = gx / length, gy / length, gz / length
            rise = mx * wx + my * wy + mz * wz
            nx, ny, nz = unit(mx - rise * wx, my - rise * wy, mz - rise * wz)
            return along_edge(a, b, ma, mb, d, nx, ny, nz, wx, wy, wz, length, cx, cy, cz, px, py, pz, angle, vertices, links)
    cx, cy, cz, ax, ay, az = difference(a, b, ma, mb, d, vertices, links, -nx, -ny, -nz)
    height = cx * nx + cy * ny + cz * nz
    suu = height - (ex * ux + ey * uy + ez * uz) / (2.0 * angle)
    svv = height - (fx * vx + fy * vy + fz * vz) / (2.0 * angle)
    suv = -(ex * vx + ey * vy + ez * vz + fx * ux + fy * uy + fz * uz) / (4.0 * angle)
    tu, tv = cx * ux + cy * uy + cz * uz, cx * vx + cy * vy + cz * vz
    determinant = suu * svv - suv * suv
    if suu > 0.0 and determinant > 0.0:
        su = min(max((svv * tu - suv * tv) / determinant, -angle), angle)
        sv = min(max((suu * tv - suv * tu) / determinant, -angle), angle)
        nx, ny, nz = unit(nx + su * ux + sv * vx, ny + su * uy + sv * vy, nz + su * uz + sv * vz)
        cx, cy, cz, ax, ay, az = difference(a, b, ma, mb, d, vertices, links, -nx, -ny, -nz)
        px, py, pz = ax, ay, az
    return nx, ny, nz, px, py, pz, cx * nx + cy * ny + cz * nz


def along_edge(
    a: Solid,
    b: Solid,
    ma: Matrix,
    mb: Matrix,
    d: Vector,
    nx: float,
    ny: float,
    nz: float,
    wx: float,
    wy: float,
    wz: float,
    length: float,
    ex: float,
    ey: float,
    ez: float,
    px: float,
    py: float,
    pz: float,
    angle: float,
    vertices: Table,
    links: Names,
):
    """The same from an n across an edge of C along w, of a length and with its end at e: C is flat both ways, or round about it."""
    hair = max(angle * angle, 3e-5)  # the ends once more, before what is round about them has moved much
    fx, fy, fz, ax, ay, az = difference(a, b, ma, mb, d, vertices, links, -nx - hair * wx, -ny - hair * wy, -nz - hair * wz)
    gx, gy, gz, ax, ay, az = difference(a, b, ma, mb, d, vertices, links, hair * wx - nx, hair * wy - ny, hair * wz - nz)
    gx, gy, gz = fx - gx, fy - gy, fz - gz
    straight = math.sqrt(gx * gx + gy * gy + gz * gz)
    if straight > 0.5 * length:
        length = straight
        ex, ey, ez = fx, fy, fz
        wx, wy, wz = gx / length, gy / length, gz / length
        rise = nx * wx + ny * wy + nz * wz
        nx, ny, nz = unit(nx - rise * wx, ny - rise * wy, nz - rise * wz)
    ux, uy, uz = cross(wx, wy, wz, nx, ny, nz)
    hair = 0.125 * angle
    tx, ty, tz = nx + hair * wx, ny + hair * wy, nz + hair * wz  # so that it is always the same end
    fx, fy, fz = chord(a, b, ma, mb, d, tx, ty, tz, ux, uy, uz, angle, vertices, links)
    width = -(fx * ux + fy * uy + fz * uz)
    if width > 0.0:
        mx, my, mz = cross(wx, wy, wz, fx, fy, fz)
        mx, my, mz = unit(mx, my, mz)
        gx, gy, gz = chord(a, b, ma, mb, d, mx, my, mz, ux, uy, uz, hair, vertices, links)
        if -(gx * ux + gy * uy + gz * uz) > 0.5 * width:
            cx, cy, cz, ax, ay, az = difference(a, b, ma, mb, d, vertices, links, -mx, -my, -mz)
            lift = (ax - px) * mx + (ay - py) * my + (az - pz) * mz
            return mx, my, mz, px + lift * mx, py + lift * my, pz + lift * mz, cx * mx + cy * my + cz * mz
    tx, ty, tz = nx - hair * wx, ny - hair * wy, nz - hair * wz
    gx, gy, gz = chord(a, b, ma, mb, d, tx, ty, tz, ux, uy, uz, angle, vertices, links)
    along = ex * wx + ey * wy + ez * wz  # from the point of the edge nearest to the origin, where it is as round as
    share = min(max(along / length, 0.0), 1.0)  # its ends (of a cone: the rim and the tip) by their shares
    width = (1.0 - share) * width - share * (gx * ux + gy * uy + gz * uz)
    side = (ex - along * wx) * ux + (ey - along * wy) * uy + (ez - along * wz) * uz
    slope = width / (2.0 * angle) + ex * nx + ey * ny + ez * nz
    if slope > 0.0:
        turn = min(max(side / slope, -angle), angle)
        nx, ny, nz = unit(nx + turn * ux, ny + turn * uy, nz + turn * uz)
    cx, cy, cz, ax, ay, az = difference(a, b, ma, mb, d, vertices, links, -nx, -ny, -nz)
    lift = (ax - px) * nx + (ay - py) * ny + (az - pz) * nz
    px, py, pz = px + lift * nx, py + lift * ny, pz + lift * nz
    shift = (ax - px) * ux + (ay - py) * uy + (az - pz) * uz
    return nx, ny, nz, px + shift * ux, py + shift * uy, pz + shift * uz, cx * nx + cy * ny + cz * nz


def distance_of_cores(
    a: Solid, b: Solid, ma: Matrix, mb: Matrix, d: Vector, limit: float, size: float, vertices: Table, links: Names, work: Work
):
    """(near, n, point of a, distance): near is False where the cores are farther apart than ``limit``."""
    w, weight = work.simplex, work.weight
    count, x, y, z = nearest(a, b, ma, mb, d, limit, size, vertices, links, w, weight, work.trial)
    if count == 0:
        return False, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, limit
    length = math.sqrt(x * x + y * y + z * z)
    px, py, pz = float(0.0), float(0.0), float(0.0)
    apart = length > 0.0
    if apart:
        x, y, z = x / length, y / length, z / length
        for i in range(count):
            px, py, pz = px + weight[i] * w[i, 3], py + weight[i] * w[i, 4], pz + weight[i] * w[i, 5]
        if COARSE:  # rounding may have ended the search: the distance along n tells
            cx, cy, cz, ax, ay, az = difference(a, b, ma, mb, d, vertices, links, -x, -y, -z)
            along = cx * x + cy * y + cz * z
            apart = length - along <= UNSURE * size
            length = along
    if not apart:
        nx, ny, nz, qx, qy, qz, distance = deepest(
            a, b, ma, mb, d, count, size, vertices, links, w, weight, work.vertices, work.faces, work.planes, work.edges
        )
        if not COARSE or length == 0.0 or distance > length:
            x, y, z, px, py, pz, length = nx, ny, nz, qx, qy, qz, distance
    if COARSE:
        curved = is_curved(a) or is_curved(b)
        angle = 0.03 if curved else 0.002
        for _ in range(3 if curved else 1):
            nx, ny, nz, qx, qy, qz, distance = sharpened(a, b, ma, mb, d, x, y, z, px, py, pz, angle, vertices, links)
            if distance > length - PRECISE * size:
                x, y, z, px, py, pz, length = nx, ny, nz, qx, qy, qz, distance
            angle = 0.25 * angle
        if a.kind == ELLIPSOID:  # its point for n is the only one
            cx, cy, cz, px, py, pz = difference(a, b, ma, mb, d, vertices, links, -x, -y, -z)
    return True, x, y, z, px, py, pz, length
