"""Contacts of convex solids and of meshes on the device.

Out: rows (normal, point, gap) as in ``gravel.formulas.contact_rows``, written to the worker's ``out`` and ``feature``; the functions return
how many there are. The kind of a is not above that of b.
"""

import warp as wp

from gravel.formulas import manifold, meshes, solids, vectors
from gravel.gpu.formulas import FORMS
from gravel.gpu.shapes import Hulls, Meshes, Scratch, Solid, Work
from gravel.shapes import MESH, PLANE, SPHERE

wp.set_module_options({"enable_backward": False, "max_unroll": 0})

rotate_back, solid_of = FORMS.of(vectors).rotate_back, FORMS.of(solids).solid_of
convex_convex, convex_plane = FORMS.of(manifold).convex_convex, FORMS.of(manifold).convex_plane
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
def convex_rows(
    kind_a: int,
    size_a: wp.vec3,
    number_a: int,
    ma: wp.mat33,
    kind_b: int,
    size_b: wp.vec3,
    number_b: int,
    mb: wp.mat33,
    d: wp.vec3,
    size: float,
    limit: float,
    hulls: Hulls,
    work: Work,
    out: wp.array2d(dtype=float),
    feature: wp.array(dtype=int),
):
    """Any two convex shapes, or one, or a mesh, and a plane, whose size is its normal."""
    a = solid_of(kind_a, size_a, number_a, hulls)
    if kind_b == PLANE:
        if kind_a == MESH:
            a = Solid(a.kind, a.x, a.y, a.z, hulls.first_vertex[number_a], hulls.first_vertex[number_a + 1], a.k)
        return convex_plane(a, ma, size_b, d[0], d[1], d[2], size, limit, hulls, work, out, feature)
    b = solid_of(kind_b, size_b, number_b, hulls)
    return convex_convex(a, ma, b, mb, d[0], d[1], d[2], size, limit, hulls, work, out, feature)


@wp.func
def mesh_rows(
    kind_a: int,
    size_a: wp.vec3,
    number_a: int,
    ma: wp.mat33,
    scale: float,
    number_b: int,
    mb: wp.mat33,
    d: wp.vec3,
    size: float,
    limit: float,
    hulls: Hulls,
    meshes: Meshes,
    work: Work,
    out: wp.array2d(dtype=float),
    feature: wp.array(dtype=int),
):
    """Any other shape with a mesh."""
    if kind_a == SPHERE:
        x, y, z = rotate_back(mb, -d[0], -d[1], -d[2])
        return sphere_mesh(size_a[0], x, y, z, scale, number_b, mb, limit, meshes, work, out, feature)
    a = solid_of(kind_a, size_a, number_a, hulls)
    count = collect(a, ma, size, d[0], d[1], d[2], scale, number_b, mb, limit, hulls, meshes, work, 0, out, feature)
    return thin_out_by_normal(work.rows, work.names, count, mb, out, feature)


@wp.func
def mesh_pair_rows(
    scale_a: float,
    number_a: int,
    ma: wp.mat33,
    scale_b: float,
    number_b: int,
    mb: wp.mat33,
    d: wp.vec3,
    size: float,
    limit: float,
    hulls: Hulls,
    meshes: Meshes,
    work: Work,
    out: wp.array2d(dtype=float),
    feature: wp.array(dtype=int),
):
    """Two meshes."""
    count = mesh_mesh(scale_a, number_a, ma, scale_b, number_b, mb, d[0], d[1], d[2], size, limit, hulls, meshes, work, out, feature)
    return thin_out_by_normal(work.rows, work.names, count, mb, out, feature)
