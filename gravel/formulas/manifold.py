"""Contact points of two convex solids that touch along a face or an edge.

In: the normal and the nearest points. Out: rows as in ``contact_rows``. The faces of both that look at each other are laid
over each other: the corners of what they share are the contacts, each with its own gap along the normal. At most eight are
kept, the outermost in each of eight sectors around their middle; the sector, counted in the frame of one of the bodies, is
also the name by which a contact is known again in the next step.
"""

from __future__ import annotations

import math

from gravel.formulas.contact_rows import write_contact
from gravel.formulas.gjk import Work, distance_of_cores
from gravel.formulas.kinds import Matrix, Names, Table, Tables, Vector
from gravel.formulas.solids import Hulls, Solid, set_corner, support, support_face
from gravel.formulas.vectors import cross, rotate, rotate_back, vector
from gravel.shapes import HULL, SPHERE

SECTORS = 8
PARALLEL_SIDES = 0.02  # rad: straight sides that cross at less touch along their length
ALONE = 255  # name of a contact that is its pair's only one
COINCIDENT = 1e-9  # of their length: edges this near do not cut each other


def face_of(polygon: Table, solid: Solid, m: Matrix, x: float, y: float, z: float, nx: float, ny: float, nz: float, hulls: Hulls):
    """The face of a solid that looks most along n, seen from the centre of a, with the solid at (x, y, z); its corners."""
    lx, ly, lz = rotate_back(m, nx, ny, nz)
    count = support_face(polygon, solid, hulls, lx, ly, lz)
    for k in range(count):
        px, py, pz = rotate(m, polygon[k, 0], polygon[k, 1], polygon[k, 2])
        set_corner(polygon, k, px + x, py + y, pz + z)
    return count


def face_normal(polygon: Table, count: int):
    """Unit normal of a polygon by Newell's method."""
    x, y, z = float(0.0), float(0.0), float(0.0)
    for k in range(count):
        after = (k + 1) % count
        x += (polygon[k, 1] - polygon[after, 1]) * (polygon[k, 2] + polygon[after, 2])
        y += (polygon[k, 2] - polygon[after, 2]) * (polygon[k, 0] + polygon[after, 0])
        z += (polygon[k, 0] - polygon[after, 0]) * (polygon[k, 1] + polygon[after, 1])
    length = math.sqrt(x * x + y * y + z * z)
    if not length > 0.0:
        return 0.0, 0.0, 0.0
    return x / length, y / length, z / length


def clip(polygon: Table, count: int, px: float, py: float, pz: float, ex: float, ey: float, ez: float, closed: bool, result: Table):
    """result := the part of a polygon (or of a segment) with (x - p) . e <= 0; returns its corners."""
    left = int(0)
    for k in range(count if closed else count - 1):
        after = (k + 1) % count
        da = (polygon[k, 0] - px) * ex + (polygon[k, 1] - py) * ey + (polygon[k, 2] - pz) * ez
        db = (polygon[after, 0] - px) * ex + (polygon[after, 1] - py) * ey + (polygon[after, 2] - pz) * ez
        if da <= 0.0 and left < result.shape[0]:
            for axis in range(3):
                result[left, axis] = polygon[k, axis]
            left += 1
        if (da <= 0.0) != (db <= 0.0) and left < result.shape[0]:
            share = da / (da - db)
            for axis in range(3):
                result[left, axis] = polygon[k, axis] + share * (polygon[after, axis] - polygon[k, axis])
            left += 1
        if not closed and db <= 0.0 and left < result.shape[0]:
            for axis in range(3):
                result[left, axis] = polygon[after, axis]
            left += 1
    return left


def clip_to_prism(incident: Table, count: int, reference: Table, sides: int, nx: float, ny: float, nz: float, spare: Table):
    """The incident polygon within the prism of the reference polygon along n, in either of the two arrays: (corners, which)."""
    px, py, pz = face_normal(reference, sides)
    sense = 1.0 if px * nx + py * ny + pz * nz >= 0.0 else -1.0
    closed, here = count > 2, int(0)
    for k in range(sides):
        after = (k + 1) % sides
        ex, ey, ez = cross(
            reference[after, 0] - reference[k, 0],
            reference[after, 1] - reference[k, 1],
            reference[after, 2] - reference[k, 2],
            sense * nx,
            sense * ny,
            sense * nz,
        )
        length = math.sqrt(ex * ex + ey * ey + ez * ez)
        if not length > 0.0:
            continue
        ex, ey, ez = ex / length, ey / length, ez / length
        hair = COINCIDENT * length
        x, y, z = reference[k, 0] + hair * ex, reference[k, 1] + hair * ey, reference[k, 2] + hair * ez
        if here == 0:
            count = clip(incident, count, x, y, z, ex, ey, ez, closed, spare)
        else:
            count = clip(spare, count, x, y, z, ex, ey, ez, closed, incident)
        here = 1 - here
        if count == 0:
            break
        if count < 3:
            closed = False
            if count == 1:
                break
    return count, here


def clip_segments(incident: Table, reference: Table, nx: float, ny: float, nz: float):
    """Two segments that lie side by side: the incident one cut to the length of the other; its corners, 0 if they cross."""
    rx, ry, rz = reference[1, 0] - reference[0, 0], reference[1, 1] - reference[0, 1], reference[1, 2] - reference[0, 2]
    ix, iy, iz = incident[1, 0] - incident[0, 0], incident[1, 1] - incident[0, 1], incident[1, 2] - incident[0, 2]
    length, other = math.sqrt(rx * rx + ry * ry + rz * rz), math.sqrt(ix * ix + iy * iy + iz * iz)
    x, y, z = cross(rx, ry, rz, ix, iy, iz)
    if not length > 0.0 or not other > 0.0 or abs(x * nx + y * ny + z * nz) > PARALLEL_SIDES * length * other:
        return 0
    rx, ry, rz = rx / length, ry / length, rz / length
    ta = (incident[0, 0] - reference[0, 0]) * rx + (incident[0, 1] - reference[0, 1]) * ry + (incident[0, 2] - reference[0, 2]) * rz
    tb = (incident[1, 0] - reference[0, 0]) * rx + (incident[1, 1] - reference[0, 1]) * ry + (incident[1, 2] - reference[0, 2]) * rz
    if max(ta, tb) < 0.0 or min(ta, tb) > length or ta == tb:
        return 0
    first, last = (min(max(ta, 0.0), length) - ta) / (tb - ta), (min(max(tb, 0.0), length) - ta) / (tb - ta)
    px = float(incident[0, 0])
    py = float(incident[0, 1])
    pz = float(incident[0, 2])
    set_corner(incident, 0, px + first * ix, py + first * iy, pz + first * iz)
    set_corner(incident, 1, px + last * ix, py + last * iy, pz + last * iz)
    return 2


def around(m: Matrix, nx: float, ny: float, nz: float):
    """Two axes across n, the first near an axis of the rotation m, so that they turn with the body."""
    ax, ay, az = rotate_back(m, nx, ny, nz)
    k = 0 if abs(ax) <= abs(ay) and abs(ax) <= abs(az) else (1 if abs(ay) <= abs(az) else 2)
    ux, uy, uz = m[0][k], m[1][k], m[2][k]
    vx, vy, vz = cross(nx, ny, nz, ux, uy, uz)
    return ux, uy, uz, vx, vy, vz


def sector_of(ux: float, uy: float, uz: float, vx: float, vy: float, vz: float, x: float, y: float, z: float):
    """Which of eight sectors the direction (x, y, z) lies in, counted from the first of two axes."""
    angle = math.atan2(x * vx + y * vy + z * vz, x * ux + y * uy + z * uz)
    return int(math.floor(angle * (4.0 / math.pi) + 0.5)) & 7


def square_of(x: float, y: float, z: float):
    return x * x + y * y + z * z


def square_between(out: Table, p: int, q: int):
    """Square distance of two contact points."""
    return square_of(out[p, 3] - out[q, 3], out[p, 4] - out[q, 4], out[p, 5] - out[q, 5])


def middle(out: Table, count: int):
    """The mean of contact points."""
    x, y, z, points = float(0.0), float(0.0), float(0.0), float(count)
    for k in range(count):
        x, y, z = x + out[k, 3], y + out[k, 4], z + out[k, 5]
    return x / points, y / points, z / points


def drop_doubles(out: Table, count: int, cx: float, cy: float, cz: float):
    """Contacts that lie at one place, seen from the middle c, become one, the deeper."""
    farthest = float(0.0)
    for k in range(count):
        farthest = max(farthest, square_of(out[k, 3] - cx, out[k, 4] - cy, out[k, 5] - cz))
    left = int(0)
    for k in range(count):
        at = left
        for p in range(left):
            if square_between(out, k, p) <= 1e-4 * farthest:
                at = p
        if at == left or out[k, 6] < out[at, 6]:
            for column in range(7):
                out[at, column] = out[k, column]
        left = max(left, at + 1)
    return left


def outermost(out: Table, feature: Names, count: int, ux: float, uy: float, uz: float, vx: float, vy: float, vz: float):
    """Of many contacts keep those that reach farthest in eight directions, so that what they span stays as wide, and the deepest."""
    kept, deepest = int(0), int(0)
    for k in range(count):
        if out[k, 6] < out[deepest, 6]:
            deepest = k
    for sector in range(SECTORS):
        angle = 0.25 * math.pi * float(sector)
        cosine, sine = math.cos(angle), math.sin(angle)
        x, y, z = cosine * ux + sine * vx, cosine * uy + sine * vy, cosine * uz + sine * vz
        best, farthest = int(0), float(-math.inf)
        for k in range(count):
            along = out[k, 3] * x + out[k, 4] * y + out[k, 5] * z
            if along > farthest:
                best = k
                farthest = along
        kept += 1 if feature[best] & SECTORS == 0 else 0
        feature[best] = feature[best] | SECTORS
    if feature[deepest] & SECTORS == 0:
        if kept < SECTORS:
            feature[deepest] = feature[deepest] | SECTORS
        else:
            replace_neighbour(out, feature, count, deepest)
    left = int(0)
    for k in range(count):
        if feature[k] & SECTORS != 0:
            for column in range(7):
                out[left, column] = out[k, column]
            feature[left] = feature[k] & 7
            left += 1
    return left


def replace_neighbour(out: Table, feature: Names, count: int, deepest: int):
    """Let the deepest contact take the place of the nearest one that is kept, unless their gaps are the same but for a hair."""
    nearest = deepest
    least, most = float(math.inf), float(0.0)
    for k in range(count):
        square = square_between(out, k, deepest)
        most = max(most, square)
        if feature[k] & SECTORS != 0 and square < least:
            nearest = k
            least = square
    if out[deepest, 6] < out[nearest, 6] - 1e-5 * math.sqrt(most):
        feature[nearest] = feature[nearest] & 7
        feature[deepest] = feature[deepest] | SECTORS


def thin_out(out: Table, feature: Names, count: int, m: Matrix, name: int):
    """Contacts with one normal: at most eight are kept, named by the sector around their middle in which they lie."""
    if count == 0:
        return 0
    cx, cy, cz = middle(out, count)
    if count > 1:
        count = drop_doubles(out, count, cx, cy, cz)
    if count == 1:
        feature[0] = name + ALONE
        return 1
    ux, uy, uz, vx, vy, vz = around(m, out[0, 0], out[0, 1], out[0, 2])
    for k in range(count):
        feature[k] = sector_of(ux, uy, uz, vx, vy, vz, out[k, 3] - cx, out[k, 4] - cy, out[k, 5] - cz)
    if count > SECTORS:
        count = outermost(out, feature, count, ux, uy, uz, vx, vy, vz)
    for below in range(count):
        k = count - 1 - below
        rank = int(0)
        for other in range(k):
            rank += 1 if feature[other] == feature[k] else 0
        feature[k] = name + SECTORS * rank + feature[k]
    return count


def is_beyond_a_face(hull: Solid, x: float, y: float, z: float, far: float, hulls: Hulls):
    """Whether a point, in the hull's frame, lies farther than this outside one of its faces: most balls in a large hull's box do, and
    need not be measured."""
    n, v, scale = hulls.face_normals, hulls.vertices, hull.x
    for f in range(hulls.first_face[hull.k], hulls.first_face[hull.k + 1]):
        k = hulls.face_corners[hulls.face_start[f]]
        if n[f, 0] * (x - scale * v[k, 0]) + n[f, 1] * (y - scale * v[k, 1]) + n[f, 2] * (z - scale * v[k, 2]) > far:
            return True
    return False


def convex_convex(
    a: Solid,
    ma: Matrix,
    b: Solid,
    mb: Matrix,
    dx: float,
    dy: float,
    dz: float,
    size: float,
    limit: float,
    hulls: Hulls,
    work: Work,
    out: Table,
    feature: Names,
):
    """Contacts of any two convex solids with rotation matrices ma and mb. ``size``: a length of their order. ``out`` must have
    room for 64 rows, of which at most eight are returned."""
    radius_a, radius_b = a.radius, b.radius
    if a.kind == SPHERE and b.kind == HULL:
        x, y, z = rotate_back(mb, -dx, -dy, -dz)
        if is_beyond_a_face(b, x, y, z, limit + radius_a, hulls):
            return 0
    d = vector(dx, dy, dz)
    near, nx, ny, nz, px, py, pz, distance = distance_of_cores(
        a, b, ma, mb, d, limit + radius_a + radius_b, size, hulls.vertices, hulls.links, work
    )
    gap = distance - radius_a - radius_b
    if not near or gap > limit:
        return 0
    return manifold(a, ma, b, mb, d, nx, ny, nz, px, py, pz, gap, size, limit, hulls, work.polygons, out, feature)


def manifold(
    a: Solid,
    ma: Matrix,
    b: Solid,
    mb: Matrix,
    d: Vector,
    nx: float,
    ny: float,
    nz: float,
    px: float,
    py: float,
    pz: float,
    gap: float,
    size: float,
    limit: float,
    hulls: Hulls,
    polygons: Tables,
    out: Table,
    feature: Names,
):
    """All contacts along n, from the deepest point p of a's core and its gap."""
    radius_a, radius_b = a.radius, b.radius
    face_a = polygons[0]
    face_b = polygons[1]
    count = int(0)
    count_a = face_of(face_a, a, ma, 0.0, 0.0, 0.0, nx, ny, nz, hulls)
    count_b = face_of(face_b, b, mb, d[0], d[1], d[2], -nx, -ny, -nz, hulls)
    if count_a > 1 and count_b > 1:
        count = shared_points(face_a, count_a, face_b, count_b, polygons[2], nx, ny, nz, radius_a, radius_b, limit, out, feature)
        count = drop_false(out, count, gap, size)
    if not_shown(out, count, gap, size, limit):
        shift = radius_a + 0.5 * gap
        count = write_contact(out, feature, count, 0, nx, ny, nz, px + shift * nx, py + shift * ny, pz + shift * nz, gap)
    return thin_out(out, feature, count, ma, 0)


def drop_false(out: Table, count: int, gap: float, size: float):
    """No point is deeper than the deepest: where a round side stands for a face it does not have, points beyond it do."""
    left = int(0)
    for k in range(count):
        if out[k, 6] >= gap - 1e-3 * size:
            for column in range(7):
                out[left, column] = out[k, column]
            out[left, 6] = max(out[left, 6], gap)
            left += 1
    return left


def not_shown(out: Table, count: int, gap: float, size: float, limit: float):
    """Whether the faces do not show the deepest point: it is a corner, or the solid is round there."""
    least = float(math.inf)
    for k in range(count):
        least = min(least, out[k, 6])
    return least > gap + min(0.1 * (limit - gap), 1e-5 * size)


def shared_points(
    face_a: Table,
    count_a: int,
    face_b: Table,
    count_b: int,
    spare: Table,
    nx: float,
    ny: float,
    nz: float,
    radius_a: float,
    radius_b: float,
    limit: float,
    out: Table,
    feature: Names,
):
    """Corners of what two faces share, seen along n, as contacts."""
    ax, ay, az = face_normal(face_a, count_a)
    bx, by, bz = face_normal(face_b, count_b)
    along_a, along_b = ax * nx + ay * ny + az * nz, bx * nx + by * ny + bz * nz
    if count_a == 2 and count_b == 2:
        corners = clip_segments(face_b, face_a, nx, ny, nz)
        tx, ty, tz = face_a[1, 0] - face_a[0, 0], face_a[1, 1] - face_a[0, 1], face_a[1, 2] - face_a[0, 2]
        sx, sy, sz = cross(tx, ty, tz, nx, ny, nz)
        ax, ay, az = cross(sx, sy, sz, tx, ty, tz)  # the plane through segment a that holds the direction across n
        along = ax * nx + ay * ny + az * nz
        if corners == 0 or not along > 0.0:
            return 0
        return contacts_on(face_b, corners, face_a, ax, ay, az, along, nx, ny, nz, 1.0, radius_a, radius_b, limit, out, feature)
    on_a = count_b == 2 or (count_a > 2 and along_a >= -along_b - 1e-6)
    if on_a:
        if along_a < 0.1:
            return 0
        corners, here = clip_to_prism(face_b, count_b, face_a, count_a, nx, ny, nz, spare)
        clipped = spare if here == 1 else face_b
        return contacts_on(clipped, corners, face_a, ax, ay, az, along_a, nx, ny, nz, 1.0, radius_a, radius_b, limit, out, feature)
    if along_b > -0.1:
        return 0
    corners, here = clip_to_prism(face_a, count_a, face_b, count_b, nx, ny, nz, spare)
    clipped = spare if here == 1 else face_a
    return contacts_on(clipped, corners, face_b, bx, by, bz, along_b, nx, ny, nz, -1.0, radius_a, radius_b, limit, out, feature)


def contacts_on(
    clipped: Table,
    corners: int,
    reference: Table,
    mx: float,
    my: float,
    mz: float,
    along: float,
    nx: float,
    ny: float,
    nz: float,
    sense: float,
    radius_a: float,
    radius_b: float,
    limit: float,
    out: Table,
    feature: Names,
):
    """Contacts of the corners that are near the plane (m) of the reference face; sense +1: that face is a's."""
    count = int(0)
    for k in range(corners):
        x, y, z = clipped[k, 0], clipped[k, 1], clipped[k, 2]
        height = ((x - reference[0, 0]) * mx + (y - reference[0, 1]) * my + (z - reference[0, 2]) * mz) / along
        gap = sense * height - radius_a - radius_b
        if gap <= limit and count < out.shape[0] - 1:
            # from the corner to halfway between the surfaces
            shift = -(0.5 * gap + radius_b) if sense > 0.0 else 0.5 * gap + radius_a
            count = write_contact(out, feature, count, 0, nx, ny, nz, x + shift * nx, y + shift * ny, z + shift * nz, gap)
    return count


def convex_plane(
    a: Solid,
    m: Matrix,
    normal: Vector,
    dx: float,
    dy: float,
    dz: float,
    size: float,
    limit: float,
    hulls: Hulls,
    work: Work,
    out: Table,
    feature: Names,
):
    """Contacts of a convex solid with a half space: the corners of its lowest face, and its lowest point."""
    nx, ny, nz = -normal[0], -normal[1], -normal[2]
    radius, count, vertices = a.radius, int(0), hulls.vertices
    polygon = work.polygons[0]
    base = dx * nx + dy * ny + dz * nz - radius
    hull = a.j > a.i  # all vertices of a hull, or of a mesh, are tried: the plane may touch several faces
    corners = a.j - a.i if hull else face_of(polygon, a, m, 0.0, 0.0, 0.0, nx, ny, nz, hulls)
    for k in range(corners):
        if hull:
            x, y, z = rotate(m, a.x * vertices[a.i + k, 0], a.x * vertices[a.i + k, 1], a.x * vertices[a.i + k, 2])
        else:
            x = polygon[k, 0]
            y = polygon[k, 1]
            z = polygon[k, 2]
        gap = base - (x * nx + y * ny + z * nz)
        if gap <= limit:
            if count == out.shape[0] - 1:
                count = thin_out(out, feature, count, m, 0)
            shift = radius + 0.5 * gap
            count = write_contact(out, feature, count, 0, nx, ny, nz, x + shift * nx, y + shift * ny, z + shift * nz, gap)
    lx, ly, lz = rotate_back(m, nx, ny, nz)
    x, y, z = support(a, vertices, hulls.links, lx, ly, lz)
    x, y, z = rotate(m, x, y, z)
    gap = base - (x * nx + y * ny + z * nz)
    if gap <= limit and not_shown(out, count, gap, size, limit):
        shift = radius + 0.5 * gap
        count = write_contact(out, feature, count, 0, nx, ny, nz, x + shift * nx, y + shift * ny, z + shift * nz, gap)
    return thin_out(out, feature, count, m, 0)
