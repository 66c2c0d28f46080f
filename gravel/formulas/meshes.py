"""Contacts with meshes: balls, convex solids and other meshes against triangles.

The triangles near a body are found in the mesh's tree (``gravel.shapes.geometry.tree_of``). What keeps a floor of triangles as
smooth as a plane is a rule for contacts at edges and corners, which must not catch a body that slides over them:

- balls: the nearest point of a triangle counts only if no other triangle that shares that edge or corner is nearer (it is
  then a nearest point of the whole surface, not of one triangle only);
- other solids: the normal must lie between those of the two triangles at an edge over which it leans; flat and hollow
  edges admit no such normal.

Contacts of one body with a mesh are thinned out among those with nearly the same normal, and named by their normal, which
stays the same from triangle to triangle.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gravel.formulas.contact_rows import write_contact
from gravel.formulas.gjk import Work, distance_of_cores
from gravel.formulas.kinds import Corners, Marks, Matrix, Names, Table, Vector, whole
from gravel.formulas.manifold import manifold, square_of, thin_out
from gravel.formulas.solids import TRIANGLE, Hulls, Solid, support
from gravel.formulas.vectors import cross, rotate, rotate_back, vector
from gravel.shapes.geometry import LEAF

FACE = 0  # where the nearest point of a triangle lies: 1 to 3 on the edge after corner 0 to 2, 4 to 6 on a corner
SINKING = 0.5  # of its radius: so far may a ball's centre lie behind a triangle and still be pushed back
ALIKE = 0.985  # cosine between normals of contacts that are thinned out together
LEAN = 1e-3  # sine of an angle that is none
SHALLOW = 0.05  # of a solid's size: so deep may its lowest point be below a triangle that contains it for n to be plain
AWAY, ABOVE, BESIDE = range(3)
BLUNT = 0.02  # rad by which a normal may lean too far
SAME = 1e-12  # by which rounding may part square distances, or cosines, that are the same
SAME_GAP = 1e-9  # of a ball's radius


class Meshes(NamedTuple):
    """What the library holds of meshes."""

    vertices: Table
    first_triangle: Names
    triangles: Corners
    adjacent: Corners
    normals: Table
    first_box: Names
    boxes: Table
    one_sided: Marks


def find_triangles(geometry: int, meshes: Meshes, low: Vector, high: Vector, stack: Names, top: int, found: Names):
    """found := more triangles whose boxes overlap the box low to high, in the mesh's own frame, unscaled. Returns (their number,
    top of the stack): begin with top = 0 and stack[0] = 0, and go on until the top is below 0."""
    first, boxes = meshes.first_box[geometry], meshes.boxes
    inner = (meshes.first_box[geometry + 1] - first) // 2  # nodes above the leaves
    first_triangle, last = meshes.first_triangle[geometry], meshes.first_triangle[geometry + 1]
    count = int(0)
    while top >= 0 and count + LEAF <= found.shape[0]:
        node = int(stack[top])
        top -= 1
        k = first + node
        apart = bool(False)
        for axis in range(3):
            apart = apart or boxes[k, axis] > high[axis] or boxes[k, axis + 3] < low[axis]
        if apart:
            continue
        if node < inner:
            stack[top + 1] = 2 * node + 2
            stack[top + 2] = 2 * node + 1
            top += 2
        else:
            start = first_triangle + (node - inner) * LEAF
            for triangle in range(start, min(start + LEAF, last)):
                found[count] = triangle
                count += 1
    return count, top


def nearest_on_triangle(px: float, py: float, pz: float, v: Table, i: int, j: int, k: int, scale: float):
    """(nearest point of a triangle to p, where it lies), after Ericson 2005, section 5.1.5."""
    ax, ay, az = scale * v[i, 0], scale * v[i, 1], scale * v[i, 2]
    ux, uy, uz = scale * v[j, 0] - ax, scale * v[j, 1] - ay, scale * v[j, 2] - az
    wx, wy, wz = scale * v[k, 0] - ax, scale * v[k, 1] - ay, scale * v[k, 2] - az
    x, y, z = px - ax, py - ay, pz - az
    d1, d2 = ux * x + uy * y + uz * z, wx * x + wy * y + wz * z
    if d1 <= 0.0 and d2 <= 0.0:
        return ax, ay, az, 4
    uu, uw, ww = ux * ux + uy * uy + uz * uz, ux * wx + uy * wy + uz * wz, wx * wx + wy * wy + wz * wz
    d3, d4 = d1 - uu, d2 - uw
    if d3 >= 0.0 and d4 <= d3:
        return ax + ux, ay + uy, az + uz, 5
    d5, d6 = d1 - uw, d2 - ww
    if d6 >= 0.0 and d5 <= d6:
        return ax + wx, ay + wy, az + wz, 6
    vc = d1 * d4 - d3 * d2
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        t = d1 / (d1 - d3)
        return ax + t * ux, ay + t * uy, az + t * uz, 1
    vb = d5 * d2 - d1 * d6
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        t = d2 / (d2 - d6)
        return ax + t * wx, ay + t * wy, az + t * wz, 3
    va = d3 * d6 - d5 * d4
    if va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        t = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        return ax + ux + t * (wx - ux), ay + uy + t * (wy - uy), az + uz + t * (wz - uz), 2
    t, s = vb / (va + vb + vc), vc / (va + vb + vc)
    return ax + t * ux + s * wx, ay + t * uy + s * wy, az + t * uz + s * wz, FACE


def square_distance(x: float, y: float, z: float, t: int, scale: float, meshes: Meshes):
    """(square distance of a point from triangle t, where its nearest point lies)"""
    i, j, k = meshes.triangles[t, 0], meshes.triangles[t, 1], meshes.triangles[t, 2]
    px, py, pz, place = nearest_on_triangle(x, y, z, meshes.vertices, i, j, k, scale)
    return square_of(x - px, y - py, z - pz), place


def gives_way(x: float, y: float, z: float, t: int, square: float, other: int, scale: float, meshes: Meshes):
    """Whether the nearest point of triangle t, on an edge or a corner, leaves the contact to another triangle there."""
    other_square, place = square_distance(x, y, z, other, scale, meshes)
    if other_square < square * (1.0 - SAME):
        return True
    return other_square <= square * (1.0 + SAME) and (place == FACE or other < t)


def is_nearest(x: float, y: float, z: float, t: int, place: int, square: float, scale: float, meshes: Meshes):
    """Whether the nearest point of triangle t is one of the whole surface: no triangle that shares it is nearer."""
    triangles, adjacent = meshes.triangles, meshes.adjacent
    if place == FACE:
        return True
    if place <= 3:
        other = adjacent[t, place - 1]
        return other < 0 or not gives_way(x, y, z, t, square, other, scale, meshes)
    corner = triangles[t, place - 4]
    for sense in range(2):  # around the corner one way, and the other way where the fan is open
        here = t
        steps = int(0)
        while steps < 1000:
            k = 0 if triangles[here, 0] == corner else (1 if triangles[here, 1] == corner else 2)
            here = adjacent[here, k if sense == 0 else (k + 2) % 3]
            if here < 0 or here == t:
                break
            if gives_way(x, y, z, t, square, here, scale, meshes):
                return False
            steps += 1
        if here == t:
            break
    return True


def name_of_normal(nx: float, ny: float, nz: float):
    """A number for about the direction of a normal."""
    x, y, z = int(math.floor(4.0 * nx + 4.5)), int(math.floor(4.0 * ny + 4.5)), int(math.floor(4.0 * nz + 4.5))
    return ((x * 9 + y) * 9 + z) * 512


def outward(
    x: float,
    y: float,
    z: float,
    px: float,
    py: float,
    pz: float,
    t: int,
    place: int,
    square: float,
    radius: float,
    geometry: int,
    meshes: Meshes,
):
    """(normal out of the mesh, signed distance) of a point near p of triangle t; infinite where it lies too deep inside."""
    normals = meshes.normals
    ex, ey, ez, distance = x - px, y - py, z - pz, math.sqrt(square)
    tx, ty, tz = float(normals[t, 0]), float(normals[t, 1]), float(normals[t, 2])
    if place > 0 and place <= 3 and meshes.adjacent[t, place - 1] >= 0:  # at an edge, both triangles say what is outside
        other = meshes.adjacent[t, place - 1]
        tx, ty, tz = tx + normals[other, 0], ty + normals[other, 1], tz + normals[other, 2]
    behind = ex * tx + ey * ty + ez * tz < 0.0
    if place == FACE:
        side = -1.0 if behind and not meshes.one_sided[geometry] else 1.0
        ex, ey, ez = side * tx, side * ty, side * tz
    elif distance > 0.0:
        ex, ey, ez = ex / distance, ey / distance, ez / distance
    else:
        ex, ey, ez = float(normals[t, 0]), float(normals[t, 1]), float(normals[t, 2])
    if behind and meshes.one_sided[geometry]:
        distance = -distance if place == FACE and distance <= SINKING * radius else math.inf
    return ex, ey, ez, distance


def place_for(gap: float, out: Table, count: int):
    """Row for one more contact: the next one, or, where all are taken, that of the shallowest if it is shallower."""
    if count < out.shape[0]:
        return count
    shallowest = int(0)
    for k in range(count):
        if out[k, 6] > out[shallowest, 6]:
            shallowest = k
    return shallowest if out[shallowest, 6] > gap else -1


def known(nx: float, ny: float, nz: float, gap: float, radius: float, out: Table, count: int):
    """Whether a ball has this contact already: exactly over an edge, rounding may put the nearest point inside both triangles."""
    for k in range(count):
        if abs(out[k, 6] - gap) <= SAME_GAP * radius and out[k, 0] * nx + out[k, 1] * ny + out[k, 2] * nz > 1.0 - SAME:
            return True
    return False


def sphere_mesh(
    radius: float,
    x: float,
    y: float,
    z: float,
    scale: float,
    geometry: int,
    mb: Matrix,
    limit: float,
    meshes: Meshes,
    work: Work,
    out: Table,
    feature: Names,
):
    """Contacts of a ball with a mesh; (x, y, z): its centre in the mesh's frame. Of very many, the deepest are kept."""
    reach = (radius + limit) / scale
    low = vector(x / scale - reach, y / scale - reach, z / scale - reach)
    high = vector(x / scale + reach, y / scale + reach, z / scale + reach)
    stack, found, v, triangles = work.stack, work.found, meshes.vertices, meshes.triangles
    contacts, top = int(0), int(0)
    stack[0] = 0
    while top >= 0:
        count, top = find_triangles(geometry, meshes, low, high, stack, top, found)
        for c in range(count):
            t = int(found[c])
            px, py, pz, place = nearest_on_triangle(x, y, z, v, triangles[t, 0], triangles[t, 1], triangles[t, 2], scale)
            square = square_of(x - px, y - py, z - pz)
            if square > (radius + limit) * (radius + limit) or not is_nearest(x, y, z, t, place, square, scale, meshes):
                continue
            ex, ey, ez, distance = outward(x, y, z, px, py, pz, t, place, square, radius, geometry, meshes)
            gap = distance - radius
            nx, ny, nz = rotate(mb, -ex, -ey, -ez)
            if gap > limit or known(nx, ny, nz, gap, radius, out, contacts):
                continue
            k = place_for(gap, out, contacts)
            if k >= 0:
                arm = radius + 0.5 * gap
                write_contact(out, feature, k, name_of_normal(ex, ey, ez), nx, ny, nz, arm * nx, arm * ny, arm * nz, gap)
                contacts = max(contacts, k + 1)
    return contacts


def bounds_in_mesh(
    a: Solid, ma: Matrix, mb: Matrix, dx: float, dy: float, dz: float, scale: float, limit: float, vertices: Table, links: Names
):
    """Box (low, high) around solid a in the unscaled frame of mesh b, with the limit around it."""
    radius = a.radius + limit
    low_x, high_x = extreme(a, ma, mb[0][0], mb[1][0], mb[2][0], vertices, links)
    low_y, high_y = extreme(a, ma, mb[0][1], mb[1][1], mb[2][1], vertices, links)
    low_z, high_z = extreme(a, ma, mb[0][2], mb[1][2], mb[2][2], vertices, links)
    x, y, z = rotate_back(mb, dx, dy, dz)
    low = vector((low_x - x - radius) / scale, (low_y - y - radius) / scale, (low_z - z - radius) / scale)
    high = vector((high_x - x + radius) / scale, (high_y - y + radius) / scale, (high_z - z + radius) / scale)
    return low, high


def extreme(a: Solid, ma: Matrix, x: float, y: float, z: float, vertices: Table, links: Names):
    """(lowest, highest) extent of a core along a direction."""
    lx, ly, lz = rotate_back(ma, x, y, z)
    px, py, pz = support(a, vertices, links, -lx, -ly, -lz)
    qx, qy, qz = support(a, vertices, links, lx, ly, lz)
    return px * lx + py * ly + pz * lz, qx * lx + qy * ly + qz * lz


def admissible(t: int, side: float, nx: float, ny: float, nz: float, meshes: Meshes):
    """Whether a contact with normal n (out of the mesh, in its frame) may belong to triangle t, seen from a side (+1, -1)."""
    triangles, normals, v = meshes.triangles, meshes.normals, meshes.vertices
    tx, ty, tz = side * normals[t, 0], side * normals[t, 1], side * normals[t, 2]
    upright = nx * tx + ny * ty + nz * tz
    for k in range(3):
        i, j = triangles[t, k], triangles[t, (k + 1) % 3]
        mx, my, mz = cross(v[j, 0] - v[i, 0], v[j, 1] - v[i, 1], v[j, 2] - v[i, 2], normals[t, 0], normals[t, 1], normals[t, 2])
        scale = 1.0 / math.sqrt(mx * mx + my * my + mz * mz)
        lean = scale * (nx * mx + ny * my + nz * mz)
        other = meshes.adjacent[t, k]
        if lean <= LEAN or other < 0:
            continue
        ox, oy, oz = side * normals[other, 0], side * normals[other, 1], side * normals[other, 2]
        other_lean, other_upright = scale * (ox * mx + oy * my + oz * mz), ox * tx + oy * ty + oz * tz
        if other_lean <= LEAN or math.atan2(lean, upright) > math.atan2(other_lean, other_upright) + BLUNT:
            return False
    return True


def against_plane(
    a: Solid,
    ma: Matrix,
    dx: float,
    dy: float,
    dz: float,
    size_a: float,
    scale: float,
    t: int,
    mb: Matrix,
    limit: float,
    one_sided: bool,
    hulls: Hulls,
    meshes: Meshes,
):
    """(place, side, n, point of a's core, gap): solid a against the plane of triangle t. AWAY: a is out of reach of it. ABOVE: the
    point of a that is lowest over the plane lies within the triangle and not deep below, so that n is the triangle's normal
    and nothing else need be asked. BESIDE: the nearest points are to be found."""
    v, i, j, k = meshes.vertices, meshes.triangles[t, 0], meshes.triangles[t, 1], meshes.triangles[t, 2]
    tx, ty, tz = meshes.normals[t, 0], meshes.normals[t, 1], meshes.normals[t, 2]
    radius = a.radius
    x, y, z = rotate_back(mb, -dx, -dy, -dz)  # the centre of a in the mesh's frame
    over = (x - scale * v[i, 0]) * tx + (y - scale * v[i, 1]) * ty + (z - scale * v[i, 2]) * tz
    side = -1.0 if over < 0.0 and not one_sided else 1.0
    wx, wy, wz = rotate(mb, side * tx, side * ty, side * tz)
    lx, ly, lz = rotate_back(ma, -wx, -wy, -wz)
    px, py, pz = support(a, hulls.vertices, hulls.links, lx, ly, lz)
    gap = side * over - (px * lx + py * ly + pz * lz) - radius
    if gap > limit:
        return AWAY, side, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, gap
    px, py, pz = rotate(ma, px, py, pz)
    qx, qy, qz = rotate_back(mb, px, py, pz)
    qx, qy, qz = x + qx, y + qy, z + qz
    inside = over * side > 0.0 and gap > -SHALLOW * size_a
    for corner in range(3):
        p, q = i if corner == 0 else (j if corner == 1 else k), j if corner == 0 else (k if corner == 1 else i)
        ex, ey, ez = v[q, 0] - v[p, 0], v[q, 1] - v[p, 1], v[q, 2] - v[p, 2]
        ex, ey, ez = cross(tx, ty, tz, ex, ey, ez)  # inward, across the edge
        inside = inside and (qx - scale * v[p, 0]) * ex + (qy - scale * v[p, 1]) * ey + (qz - scale * v[p, 2]) * ez >= 0.0
    place = ABOVE if inside else BESIDE
    return place, side, -wx, -wy, -wz, px, py, pz, gap


def collect(
    a: Solid,
    ma: Matrix,
    size_a: float,
    dx: float,
    dy: float,
    dz: float,
    scale: float,
    geometry: int,
    mb: Matrix,
    limit: float,
    hulls: Hulls,
    meshes: Meshes,
    work: Work,
    count: int,
    out: Table,
    feature: Names,
):
    """Add the contacts of convex solid a with mesh b to the scratch's rows (normal, point, gap) and names; returns their
    number. ``out`` and ``feature`` are only used on the way."""
    low, high = bounds_in_mesh(a, ma, mb, dx, dy, dz, scale, limit, hulls.vertices, hulls.links)
    stack, found, rows, names, triangles = work.stack, work.found, work.rows, work.names, meshes.triangles
    d, radius, polygons = vector(dx, dy, dz), a.radius, work.polygons
    worst, worst_gap, worst_side, good, top = int(-1), float(0.0), float(1.0), bool(False), int(0)
    stack[0] = 0
    while top >= 0:
        near, top = find_triangles(geometry, meshes, low, high, stack, top, found)
        for c in range(near):
            t = int(found[c])
            i, j, k = whole(triangles[t, 0]), whole(triangles[t, 1]), whole(triangles[t, 2])
            triangle = Solid(whole(TRIANGLE), scale, scale, scale, 0.0, i, j, k)
            place, side, nx, ny, nz, px, py, pz, gap = against_plane(
                a, ma, dx, dy, dz, size_a, scale, t, mb, limit, meshes.one_sided[geometry], hulls, meshes
            )
            if place == AWAY:
                continue
            if place == BESIDE:
                touching, nx, ny, nz, px, py, pz, distance = distance_of_cores(
                    a, triangle, ma, mb, d, limit + radius, size_a, hulls.vertices, hulls.links, work
                )
                gap = distance - radius
                if not touching or gap > limit:
                    continue
            ex, ey, ez = rotate_back(mb, -nx, -ny, -nz)
            upright = ex * meshes.normals[t, 0] + ey * meshes.normals[t, 1] + ez * meshes.normals[t, 2]
            if place == BESIDE:
                side = -1.0 if upright < 0.0 and not meshes.one_sided[geometry] else 1.0
            if place == BESIDE and (upright * side < -LEAN or not admissible(t, side, ex, ey, ez, meshes)):
                if gap < worst_gap and upright * side > -0.5:
                    worst, worst_gap, worst_side = t, gap, side
                continue
            good = True
            new = manifold(a, ma, triangle, mb, d, nx, ny, nz, px, py, pz, gap, size_a, limit, hulls, polygons, out, feature)
            count = keep(out, new, name_of_normal(ex, ey, ez), rows, names, count, mb, feature)
    if not good and worst >= 0:
        push_out(a, ma, dx, dy, dz, scale, worst, worst_side, mb, hulls, meshes, out, feature)
        count = keep(out, 1, 0, rows, names, count, mb, feature)
    return count


def keep(out: Table, new: int, name: int, rows: Table, names: Names, count: int, mb: Matrix, feature: Names):
    """Move new contacts from ``out`` to the rows, after thinning these out where they would not fit."""
    room = names.shape[0]
    if count + new > room:
        for k in range(new):  # aside, at the end, for thinning needs ``out``
            for column in range(7):
                rows[room + k, column] = out[k, column]
        left = thin_out_by_normal(rows, names, count, mb, out, feature)
        for k in range(left):
            for column in range(7):
                rows[k, column] = out[k, column]
            names[k] = feature[k] & ~511
        count = min(left, room - new)
        for k in range(new):
            for column in range(7):
                out[k, column] = rows[room + k, column]
    for k in range(new):
        for column in range(7):
            rows[count, column] = out[k, column]
        names[count] = name
        count += 1
    return count


def push_out(
    a: Solid,
    ma: Matrix,
    dx: float,
    dy: float,
    dz: float,
    scale: float,
    t: int,
    side: float,
    mb: Matrix,
    hulls: Hulls,
    meshes: Meshes,
    rows: Table,
    feature: Names,
):
    """The first row := a contact of a solid that only edges would push aside: straight out of the triangle instead."""
    tx, ty, tz = rotate(mb, side * meshes.normals[t, 0], side * meshes.normals[t, 1], side * meshes.normals[t, 2])
    corner = meshes.triangles[t, 0]
    vx, vy, vz = rotate(mb, scale * meshes.vertices[corner, 0], scale * meshes.vertices[corner, 1], scale * meshes.vertices[corner, 2])
    lx, ly, lz = rotate_back(ma, -tx, -ty, -tz)
    px, py, pz = support(a, hulls.vertices, hulls.links, lx, ly, lz)
    px, py, pz = rotate(ma, px, py, pz)
    radius = a.radius
    gap = (px - dx - vx) * tx + (py - dy - vy) * ty + (pz - dz - vz) * tz - radius
    shift = radius + 0.5 * gap
    write_contact(rows, feature, 0, 0, -tx, -ty, -tz, px - shift * tx, py - shift * ty, pz - shift * tz, gap)


def thin_out_by_normal(rows: Table, names: Names, count: int, mb: Matrix, out: Table, feature: Names):
    """Contacts with a mesh, those with nearly the same normal thinned out together: the deepest first, then what is like it."""
    total = int(0)
    while True:
        deepest = int(-1)
        for k in range(count):
            if names[k] >= 0 and (deepest < 0 or rows[k, 6] < rows[deepest, 6]):
                deepest = k
        if deepest < 0 or total >= out.shape[0]:
            return total
        name = int(names[deepest])
        nx, ny, nz, group = rows[deepest, 0], rows[deepest, 1], rows[deepest, 2], int(0)
        for k in range(count):
            alike = rows[k, 0] * nx + rows[k, 1] * ny + rows[k, 2] * nz > ALIKE
            if names[k] >= 0 and alike and total + group < out.shape[0]:
                for column in range(7):
                    out[total + group, column] = rows[k, column]
                names[k] = -1
                group += 1
        total += thin_out(out[total:], feature[total:], group, mb, name)


def mesh_mesh(
    scale_a: float,
    number_a: int,
    ma: Matrix,
    scale_b: float,
    number_b: int,
    mb: Matrix,
    dx: float,
    dy: float,
    dz: float,
    size: float,
    limit: float,
    hulls: Hulls,
    meshes: Meshes,
    work: Work,
    out: Table,
    feature: Names,
):
    """Add the contacts of two meshes to the scratch's rows: of every triangle of a that is near b, as a thin solid."""
    boxes, whole_b = meshes.boxes, meshes.first_box[number_b]
    triangles, v, count = meshes.triangles, meshes.vertices, int(0)
    for t in range(meshes.first_triangle[number_a], meshes.first_triangle[number_a + 1]):
        i, j, k = whole(triangles[t, 0]), whole(triangles[t, 1]), whole(triangles[t, 2])
        thin = Solid(whole(TRIANGLE), scale_a, scale_a, scale_a, 0.0, i, j, k)
        below, above = bounds_in_mesh(thin, ma, mb, dx, dy, dz, scale_b, limit, v, hulls.links)
        apart = bool(False)
        for axis in range(3):
            apart = apart or below[axis] > boxes[whole_b, axis + 3] or above[axis] < boxes[whole_b, axis]
        if apart:
            continue
        before = count
        count = collect(thin, ma, size, dx, dy, dz, scale_b, number_b, mb, limit, hulls, meshes, work, count, out, feature)
        count = drop_false(t, meshes.one_sided[number_a], ma, meshes, work.rows, work.names, before, count)
    return count


def drop_false(t: int, one_sided: bool, ma: Matrix, meshes: Meshes, rows: Table, names: Names, first: int, count: int):
    """Of contacts of triangle t of mesh a, keep those whose normal may belong to it, as ``collect`` does for the other mesh."""
    left = min(first, count)
    for k in range(left, count):
        ex, ey, ez = rotate_back(ma, rows[k, 0], rows[k, 1], rows[k, 2])
        upright = ex * meshes.normals[t, 0] + ey * meshes.normals[t, 1] + ez * meshes.normals[t, 2]
        side = -1.0 if upright < 0.0 and not one_sided else 1.0
        if upright * side > -LEAN and admissible(t, side, ex, ey, ez, meshes):
            for column in range(7):
                rows[left, column] = rows[k, column]
            names[left] = names[k]
            left += 1
    return left
