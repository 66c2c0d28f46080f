"""The tables ROUND and BOXES: shapes whose contacts have a closed form, or Newton's method."""

import warp as wp

from gravel.formulas import boxes, contact_rows, ellipsoids, pair_geometry, rounds
from gravel.gpu.collide.shape_pair_types import SEPARATE, Children, Rows, ShapePair, ShapePairs, Task, keep_rows, narrowed, shape_pair_of
from gravel.gpu.formulas import FORMS, to_matrix
from gravel.gpu.structs import Pairs, Proxies
from gravel.shapes import BOX, ELLIPSOID, PLANE, SPHERE

wp.set_module_options({"enable_backward": False, "max_unroll": 0})

write_contact = FORMS.of(contact_rows).write_contact
_simple = FORMS.of(pair_geometry)
between_spheres, sphere_plane, sphere_at_box = _simple.between_spheres, _simple.sphere_plane, _simple.sphere_at_box
ellipsoid_plane, box_plane, box_box = _simple.ellipsoid_plane, _simple.box_plane, FORMS.of(boxes).box_box
sphere_round, between_ellipsoids = FORMS.of(rounds).sphere_round, FORMS.of(ellipsoids).between_ellipsoids


@wp.func
def sphere_box(shape_pair: ShapePair, out: wp.array2d(dtype=float), feature: wp.array(dtype=int)):
    """A ball and a box. Where the box is a floor, places on it have few digits left in single precision: the way from the ball's centre
    to the nearest point of the box is found in double."""
    p, half = shape_pair.place, shape_pair.half
    nearest = wp.vec3d(wp.clamp(p[0], -half[0], half[0]), wp.clamp(p[1], -half[1], half[1]), wp.clamp(p[2], -half[2], half[2]))
    x, e, depth = narrowed(p), narrowed(nearest - p), narrowed(half - wp.vec3d(wp.abs(p[0]), wp.abs(p[1]), wp.abs(p[2])))
    m = to_matrix(shape_pair.turn_b)
    return sphere_at_box(shape_pair.size_a[0], m, x[0], x[1], x[2], e[0], e[1], e[2], depth[0], depth[1], depth[2], out, feature)


@wp.func
def ellipsoids_to_scale(shape_pair: ShapePair, method: int, out: wp.array2d(dtype=float), feature: wp.array(dtype=int)):
    """Contact of two ellipsoids, or of a ball and an ellipsoid, in units of their size: fourth powers of it must not leave the range of
    single precision."""
    size = wp.max(shape_pair.size_b)
    size += shape_pair.size_a[0] if shape_pair.kind_a == SPHERE else wp.max(shape_pair.size_a)
    unit = 1.0 / size
    d, a, b = unit * shape_pair.d, unit * shape_pair.size_a, unit * shape_pair.size_b
    found = between_ellipsoids(
        shape_pair.kind_a,
        a,
        shape_pair.turn_a,
        shape_pair.kind_b,
        b,
        shape_pair.turn_b,
        d[0],
        d[1],
        d[2],
        unit * shape_pair.limit,
        method,
        out,
        feature,
    )
    if found > 0:
        for k in range(3, 7):
            out[0, k] = size * out[0, k]
    return found


@wp.func
def round_rows(shape_pair: ShapePair, method: int, out: wp.array2d(dtype=float), feature: wp.array(dtype=int)):
    """A ball, or an ellipsoid, against what has a closed form or Newton's method."""
    d, radius = shape_pair.d, shape_pair.size_a[0]
    if shape_pair.kind_b == SPHERE:
        nx, ny, nz, x, y, z, gap = between_spheres(radius, shape_pair.size_b[0], d[0], d[1], d[2])
        return write_contact(out, feature, 0, 0, nx, ny, nz, x, y, z, gap)
    if shape_pair.kind_b == ELLIPSOID:
        return ellipsoids_to_scale(shape_pair, method, out, feature)
    if shape_pair.kind_a == ELLIPSOID:
        return ellipsoid_plane(shape_pair.size_a, shape_pair.turn_a, shape_pair.size_b, d[0], d[1], d[2], out, feature)
    if shape_pair.kind_b == PLANE:
        return sphere_plane(radius, shape_pair.size_b, d[0], d[1], d[2], out, feature)
    if shape_pair.kind_b == BOX:
        return sphere_box(shape_pair, out, feature)
    return sphere_round(radius, shape_pair.kind_b, shape_pair.size_b, shape_pair.turn_b, d[0], d[1], d[2], out, feature)


@wp.func
def box_rows(
    shape_pair: ShapePair,
    polygon: wp.array2d(dtype=float),
    clipped: wp.array2d(dtype=float),
    out: wp.array2d(dtype=float),
    feature: wp.array(dtype=int),
):
    """Two boxes, or a box and a plane."""
    d = shape_pair.d
    if shape_pair.kind_b == PLANE:
        return box_plane(shape_pair.size_a, shape_pair.turn_a, shape_pair.size_b, d[0], d[1], d[2], shape_pair.limit, out, feature)
    return box_box(
        shape_pair.size_a,
        shape_pair.turn_a,
        shape_pair.size_b,
        shape_pair.turn_b,
        d[0],
        d[1],
        d[2],
        shape_pair.limit,
        polygon,
        clipped,
        out,
        feature,
    )


@wp.kernel(**SEPARATE)
def fill_round_rows(
    first: int,
    order: wp.array(dtype=int),
    proxies: Proxies,
    pairs: Pairs,
    children: Children,
    method: int,
    shape_pairs: ShapePairs,
    rows: Rows,
):
    number = order[first + wp.tid()]
    shape_pair = shape_pair_of(number, proxies, pairs, children, shape_pairs)
    out, feature = wp.zeros(shape=(1, 7), dtype=float), wp.zeros(shape=(1,), dtype=int)
    keep_rows(number, shape_pair, round_rows(shape_pair, method, out, feature), out, feature, shape_pairs, rows)


@wp.kernel(**SEPARATE)
def fill_box_rows(
    first: int, order: wp.array(dtype=int), proxies: Proxies, pairs: Pairs, children: Children, shape_pairs: ShapePairs, rows: Rows
):
    number = order[first + wp.tid()]
    shape_pair = shape_pair_of(number, proxies, pairs, children, shape_pairs)
    polygon, clipped = wp.zeros(shape=(16, 3), dtype=float), wp.zeros(shape=(16, 3), dtype=float)
    out, feature = wp.zeros(shape=(8, 7), dtype=float), wp.zeros(shape=(8,), dtype=int)
    keep_rows(number, shape_pair, box_rows(shape_pair, polygon, clipped, out, feature), out, feature, shape_pairs, rows)


def fill_round(task: Task) -> None:
    shapes_and_rows = task.children, task.shapes.method, task.shape_pairs, task.rows
    wp.launch(fill_round_rows, task.count, inputs=[task.first, task.order, task.proxies, task.pairs, *shapes_and_rows], device=task.device)


def fill_boxes(task: Task) -> None:
    shapes_and_rows = task.children, task.shape_pairs, task.rows
    wp.launch(fill_box_rows, task.count, inputs=[task.first, task.order, task.proxies, task.pairs, *shapes_and_rows], device=task.device)
