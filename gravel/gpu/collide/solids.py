"""Contacts of convex solids and of meshes on the device.

Out: rows (normal, point, gap) as in ``gravel.formulas.contact_rows``, written to the worker's ``out`` and ``feature``; the functions return
how many there are. The kind of a is not behind that of b.
"""

import warp as wp

from gravel.formulas import manifold, meshes, solids, vectors
from gravel.gpu.collide.pieces import SEPARATE, Children, Job, Jobs, Kept, Rows, Task, job_of, keep_rows
from gravel.gpu.formulas import FORMS, to_matrix
from gravel.gpu.shapes import Hulls, Meshes, Scratch, Solid, Work, make_hulls, make_meshes, make_scratch
from gravel.gpu.structs import Arranged, Pairs
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
def convex_rows(job: Job, hulls: Hulls, work: Work, out: wp.array2d(dtype=float), feature: wp.array(dtype=int)):
    """Any two convex shapes, or one, or a mesh, and a plane, whose size is its normal."""
    ma, mb, d = to_matrix(job.turn_a), to_matrix(job.turn_b), job.d
    a = solid_of(job.kind_a, job.size_a, job.radius_a, job.number_a, hulls)
    if job.kind_b == PLANE:
        if job.kind_a == MESH:
            a = Solid(a.kind, a.x, a.y, a.z, a.radius, hulls.first_vertex[job.number_a], hulls.first_vertex[job.number_a + 1], a.k)
        return convex_plane(a, ma, job.size_b, d[0], d[1], d[2], 1.0, job.limit, hulls, work, out, feature)
    b = solid_of(job.kind_b, job.size_b, job.radius_b, job.number_b, hulls)
    return convex_convex(a, ma, b, mb, d[0], d[1], d[2], 1.0, job.limit, hulls, work, out, feature)


@wp.func
def mesh_rows(job: Job, hulls: Hulls, meshes: Meshes, work: Work, out: wp.array2d(dtype=float), feature: wp.array(dtype=int)):
    """Any other shape with a mesh."""
    ma, mb, d, scale, number = to_matrix(job.turn_a), to_matrix(job.turn_b), job.d, job.size_b[0], job.number_b
    if job.kind_a == SPHERE:
        x, y, z = rotate_back(mb, -d[0], -d[1], -d[2])
        return sphere_mesh(job.size_a[0], x, y, z, scale, number, mb, job.limit, meshes, work, out, feature)
    a = solid_of(job.kind_a, job.size_a, job.radius_a, job.number_a, hulls)
    count = collect(a, ma, 1.0, d[0], d[1], d[2], scale, number, mb, job.limit, hulls, meshes, work, 0, out, feature)
    return thin_out_by_normal(work.rows, work.names, count, mb, out, feature)


@wp.func
def mesh_pair_rows(job: Job, hulls: Hulls, meshes: Meshes, work: Work, out: wp.array2d(dtype=float), feature: wp.array(dtype=int)):
    """Two meshes."""
    ma, mb, d, scale_a, scale_b = to_matrix(job.turn_a), to_matrix(job.turn_b), job.d, job.size_a[0], job.size_b[0]
    count = mesh_mesh(
        scale_a, job.number_a, ma, scale_b, job.number_b, mb, d[0], d[1], d[2], 1.0, job.limit, hulls, meshes, work, out, feature
    )
    return thin_out_by_normal(work.rows, work.names, count, mb, out, feature)


# --- the tables
@wp.func
def in_units_of_size(job: Job):
    """The same job with its size as the unit of length: powers of it must not leave the range of single precision."""
    unit = 1.0 / job.size
    job.size_a = unit * job.size_a
    job.radius_a = unit * job.radius_a
    if job.kind_b != PLANE:
        job.size_b = unit * job.size_b
        job.radius_b = unit * job.radius_b
    job.d = unit * job.d
    job.limit = unit * job.limit
    return job


@wp.func
def keep_in_units(number: int, job: Job, found: int, out: wp.array2d(dtype=float), feature: wp.array(dtype=int), jobs: Jobs, rows: Rows):
    for k in range(wp.min(found, out.shape[0])):
        for column in range(3, 7):
            out[k, column] = job.size * out[k, column]
    keep_rows(number, job, found, out, feature, jobs, rows)


@wp.kernel(**SEPARATE)
def fill_convex_rows(
    first: int,
    count: int,
    workers: int,
    order: wp.array(dtype=int),
    arranged: Arranged,
    pairs: Pairs,
    children: Children,
    hulls: Hulls,
    scratch: Scratch,
    jobs: Jobs,
    rows: Rows,
):
    worker = wp.tid()
    work, out, feature = work_of(scratch, worker), scratch.out[worker], scratch.feature[worker]
    for k in range(worker, count, workers):
        number = order[first + k]
        job = in_units_of_size(job_of(number, arranged, pairs, children, jobs))
        found = convex_rows(job, hulls, work, out, feature)
        keep_in_units(number, job, found, out, feature, jobs, rows)


@wp.kernel(**SEPARATE)
def fill_mesh_rows(
    first: int,
    count: int,
    workers: int,
    order: wp.array(dtype=int),
    arranged: Arranged,
    pairs: Pairs,
    children: Children,
    hulls: Hulls,
    meshes: Meshes,
    scratch: Scratch,
    jobs: Jobs,
    rows: Rows,
):
    worker = wp.tid()
    work, out, feature = work_of(scratch, worker), scratch.out[worker], scratch.feature[worker]
    for k in range(worker, count, workers):
        number = order[first + k]
        job = in_units_of_size(job_of(number, arranged, pairs, children, jobs))
        found = mesh_rows(job, hulls, meshes, work, out, feature)
        keep_in_units(number, job, found, out, feature, jobs, rows)


@wp.kernel(**SEPARATE)
def fill_mesh_pair_rows(
    first: int,
    count: int,
    workers: int,
    order: wp.array(dtype=int),
    arranged: Arranged,
    pairs: Pairs,
    children: Children,
    hulls: Hulls,
    meshes: Meshes,
    scratch: Scratch,
    jobs: Jobs,
    rows: Rows,
):
    worker = wp.tid()
    work, out, feature = work_of(scratch, worker), scratch.out[worker], scratch.feature[worker]
    for k in range(worker, count, workers):
        number = order[first + k]
        job = in_units_of_size(job_of(number, arranged, pairs, children, jobs))
        found = mesh_pair_rows(job, hulls, meshes, work, out, feature)
        keep_in_units(number, job, found, out, feature, jobs, rows)


WORKERS = 8192  # at most, and half of them where there are meshes: some 160 MB of scratch


def _fill(kernel, task: Task, meshes: bool) -> None:
    """A processor's threads take turns, so there one worker does all."""
    most = 1 if task.device == "cpu" else WORKERS // 2 if meshes else WORKERS
    workers = min(task.count, most)
    library = task.shapes.library
    shapes = [hulls_on(library, task.device), meshes_on(library, task.device)] if meshes else [hulls_on(library, task.device)]
    things = task.order, task.arranged, task.pairs, task.children, *shapes, make_scratch(workers, meshes, task.arrays)
    wp.launch(kernel, workers, inputs=[task.first, task.count, workers, *things, task.jobs, task.rows], device=task.device)


def fill_convex(task: Task) -> None:
    _fill(fill_convex_rows, task, False)


def fill_meshes(task: Task) -> None:
    _fill(fill_mesh_rows, task, True)


def fill_mesh_pairs(task: Task) -> None:
    _fill(fill_mesh_pair_rows, task, True)
