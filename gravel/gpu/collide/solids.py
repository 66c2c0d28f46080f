"""Contacts of convex solids and of meshes on the device.

Out: rows (normal, point, gap) as in ``gravel.formulas.contact_rows``, written to the worker's ``out`` and ``feature``; the functions return
how many there are. The kind of a is not behind that of b.
"""

import warp as wp

from gravel.formulas import manifold, meshes, solids, vectors
from gravel.gpu.collide.shape_pair_types import SEPARATE, Children, Kept, Rows, ShapePair, ShapePairs, Task, keep_rows, shape_pair_of
from gravel.gpu.formulas import FORMS, to_matrix
from gravel.gpu.shapes import Hulls, Meshes, Scratch, Solid, Work, make_hulls, make_meshes, make_scratch
from gravel.gpu.structs import Pairs, Proxies
from gravel.shapes import MESH, PLANE, SPHERE

wp.set_module_options({"enable_backward": False, "max_unroll": 0})

rotate_back, solid_of = FORMS.of(vectors).rotate_back, FORMS.of(solids).solid_of
convex_convex, convex_plane = FORMS.of(manifold).convex_convex, FORMS.of(manifold).convex_plane
hulls_on, meshes_on = Kept(make_hulls), Kept(make_meshes)
_meshes = FORMS.of(meshes)
collect, mesh_mesh, sphere_mesh, thin_out_by_normal = _meshes.collect, _meshes.mesh_mesh, _meshes.sphere_mesh, _meshes.thin_out_by_normal


@wp.func
def work_of(scratch: Scratch, worker: int):
    """A worker's part of the scratch."""
    work = Work()
    work.simplex = scratch.simplex[worker]
    work.weight = scratch.weight[worker]
    work.trial = scratch.trial[worker]
    work.vertices = scratch.vertices[worker]
    work.faces = scratch.faces[worker]
    work.planes = scratch.planes[worker]
    work.edges = scratch.edges[worker]
    work.polygons = scratch.polygons[worker]
    work.stack = scratch.stack[worker]
    work.found = scratch.found[worker]
    work.rows = scratch.rows[worker]
    work.names = scratch.names[worker]
    return work


@wp.func
def convex_rows(shape_pair: ShapePair, hulls: Hulls, work: Work, out: wp.array2d(dtype=float), feature: wp.array(dtype=int)):
    """Any two convex shapes, or one, or a mesh, and a plane, whose size is its normal."""
    ma, mb, d = to_matrix(shape_pair.turn_a), to_matrix(shape_pair.turn_b), shape_pair.d
    a = solid_of(shape_pair.kind_a, shape_pair.size_a, shape_pair.radius_a, shape_pair.number_a, hulls)
    if shape_pair.kind_b == PLANE:
        if shape_pair.kind_a == MESH:
            a = Solid(
                a.kind, a.x, a.y, a.z, a.radius, hulls.first_vertex[shape_pair.number_a], hulls.first_vertex[shape_pair.number_a + 1], a.k
            )
        return convex_plane(a, ma, shape_pair.size_b, d[0], d[1], d[2], 1.0, shape_pair.limit, hulls, work, out, feature)
    b = solid_of(shape_pair.kind_b, shape_pair.size_b, shape_pair.radius_b, shape_pair.number_b, hulls)
    return convex_convex(a, ma, b, mb, d[0], d[1], d[2], 1.0, shape_pair.limit, hulls, work, out, feature)


@wp.func
def mesh_rows(shape_pair: ShapePair, hulls: Hulls, meshes: Meshes, work: Work, out: wp.array2d(dtype=float), feature: wp.array(dtype=int)):
    """Any other shape with a mesh."""
    ma, mb, d, scale, number = (
        to_matrix(shape_pair.turn_a),
        to_matrix(shape_pair.turn_b),
        shape_pair.d,
        shape_pair.size_b[0],
        shape_pair.number_b,
    )
    if shape_pair.kind_a == SPHERE:
        x, y, z = rotate_back(mb, -d[0], -d[1], -d[2])
        return sphere_mesh(shape_pair.size_a[0], x, y, z, scale, number, mb, shape_pair.limit, meshes, work, out, feature)
    a = solid_of(shape_pair.kind_a, shape_pair.size_a, shape_pair.radius_a, shape_pair.number_a, hulls)
    count = collect(a, ma, 1.0, d[0], d[1], d[2], scale, number, mb, shape_pair.limit, hulls, meshes, work, 0, out, feature)
    return thin_out_by_normal(work.rows, work.names, count, mb, out, feature)


@wp.func
def mesh_pair_rows(
    shape_pair: ShapePair, hulls: Hulls, meshes: Meshes, work: Work, out: wp.array2d(dtype=float), feature: wp.array(dtype=int)
):
    """Two meshes."""
    ma, mb, d, scale_a, scale_b = (
        to_matrix(shape_pair.turn_a),
        to_matrix(shape_pair.turn_b),
        shape_pair.d,
        shape_pair.size_a[0],
        shape_pair.size_b[0],
    )
    count = mesh_mesh(
        scale_a,
        shape_pair.number_a,
        ma,
        scale_b,
        shape_pair.number_b,
        mb,
        d[0],
        d[1],
        d[2],
        1.0,
        shape_pair.limit,
        hulls,
        meshes,
        work,
        out,
        feature,
    )
    return thin_out_by_normal(work.rows, work.names, count, mb, out, feature)


# --- the tables
@wp.func
def in_units_of_size(shape_pair: ShapePair):
    """The same shape pair with its size as the unit of length: powers of it must not leave the range of single precision."""
    unit = 1.0 / shape_pair.size
    shape_pair.size_a = unit * shape_pair.size_a
    shape_pair.radius_a = unit * shape_pair.radius_a
    if shape_pair.kind_b != PLANE:
        shape_pair.size_b = unit * shape_pair.size_b
        shape_pair.radius_b = unit * shape_pair.radius_b
    shape_pair.d = unit * shape_pair.d
    shape_pair.limit = unit * shape_pair.limit
    return shape_pair


@wp.func
def keep_in_units(
    number: int,
    shape_pair: ShapePair,
    found: int,
    out: wp.array2d(dtype=float),
    feature: wp.array(dtype=int),
    shape_pairs: ShapePairs,
    rows: Rows,
):
    for k in range(wp.min(found, out.shape[0])):
        for column in range(3, 7):
            out[k, column] = shape_pair.size * out[k, column]
    keep_rows(number, shape_pair, found, out, feature, shape_pairs, rows)


@wp.kernel(**SEPARATE)
def fill_convex_rows(
    first: int,
    count: int,
    workers: int,
    order: wp.array(dtype=int),
    proxies: Proxies,
    pairs: Pairs,
    children: Children,
    hulls: Hulls,
    scratch: Scratch,
    shape_pairs: ShapePairs,
    rows: Rows,
):
    worker = wp.tid()
    work, out, feature = work_of(scratch, worker), scratch.out[worker], scratch.feature[worker]
    for k in range(worker, count, workers):
        number = order[first + k]
        shape_pair = in_units_of_size(shape_pair_of(number, proxies, pairs, children, shape_pairs))
        found = convex_rows(shape_pair, hulls, work, out, feature)
        keep_in_units(number, shape_pair, found, out, feature, shape_pairs, rows)


@wp.kernel(**SEPARATE)
def fill_mesh_rows(
    first: int,
    count: int,
    workers: int,
    order: wp.array(dtype=int),
    proxies: Proxies,
    pairs: Pairs,
    children: Children,
    hulls: Hulls,
    meshes: Meshes,
    scratch: Scratch,
    shape_pairs: ShapePairs,
    rows: Rows,
):
    worker = wp.tid()
    work, out, feature = work_of(scratch, worker), scratch.out[worker], scratch.feature[worker]
    for k in range(worker, count, workers):
        number = order[first + k]
        shape_pair = in_units_of_size(shape_pair_of(number, proxies, pairs, children, shape_pairs))
        found = mesh_rows(shape_pair, hulls, meshes, work, out, feature)
        keep_in_units(number, shape_pair, found, out, feature, shape_pairs, rows)


@wp.kernel(**SEPARATE)
def fill_mesh_pair_rows(
    first: int,
    count: int,
    workers: int,
    order: wp.array(dtype=int),
    proxies: Proxies,
    pairs: Pairs,
    children: Children,
    hulls: Hulls,
    meshes: Meshes,
    scratch: Scratch,
    shape_pairs: ShapePairs,
    rows: Rows,
):
    worker = wp.tid()
    work, out, feature = work_of(scratch, worker), scratch.out[worker], scratch.feature[worker]
    for k in range(worker, count, workers):
        number = order[first + k]
        shape_pair = in_units_of_size(shape_pair_of(number, proxies, pairs, children, shape_pairs))
        found = mesh_pair_rows(shape_pair, hulls, meshes, work, out, feature)
        keep_in_units(number, shape_pair, found, out, feature, shape_pairs, rows)


WORKERS = 8192  # at most, and half of them where there are meshes: some 160 MB of scratch


def _fill(kernel, task: Task, meshes: bool) -> None:
    """A processor's threads take turns, so there one worker does all."""
    most = 1 if task.device == "cpu" else WORKERS // 2 if meshes else WORKERS
    workers = min(task.count, most)
    library = task.shapes.library
    shapes = [hulls_on(library, task.device), meshes_on(library, task.device)] if meshes else [hulls_on(library, task.device)]
    things = task.order, task.proxies, task.pairs, task.children, *shapes, make_scratch(workers, meshes, task.arrays)
    wp.launch(kernel, workers, inputs=[task.first, task.count, workers, *things, task.shape_pairs, task.rows], device=task.device)


def fill_convex(task: Task) -> None:
    _fill(fill_convex_rows, task, False)


def fill_meshes(task: Task) -> None:
    _fill(fill_mesh_rows, task, True)


def fill_mesh_pairs(task: Task) -> None:
    _fill(fill_mesh_pair_rows, task, True)
