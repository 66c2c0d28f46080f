"""Convex solids and meshes on the device, in single precision, against the CPU's in double."""

import numpy as np
import pytest
import warp as wp
from solid_pairs import MANY, ON_CPU, Found, cases_of, found_by_cpu, size_of

from gravel.cpu.collide.jobs import CONVEX, MESHES, MESH_PAIRS, table_of
from gravel.gpu.collide.solids import convex_rows, mesh_pair_rows, mesh_rows, work_of
from gravel.gpu.formulas import to_matrix
from gravel.gpu.shapes import Hulls, Meshes, Scratch, hulls_on, make_scratch, meshes_on

wp.set_module_options({"enable_backward": False, "max_unroll": 0})


@wp.struct
class Pair:
    kind: wp.vec2i
    number: wp.vec2i
    size: wp.array2d(dtype=wp.vec3)
    turn: wp.array2d(dtype=wp.vec4)
    d: wp.array(dtype=wp.vec3)
    scale: float
    limit: float


@wp.func
def take(scratch: Scratch, found: int, i: int, count: wp.array(dtype=int), rows: wp.array3d(dtype=float), names: wp.array2d(dtype=int)):
    count[i] = found
    for k in range(min(found, rows.shape[1])):
        for column in range(7):
            rows[i, k, column] = scratch.out[0, k, column]
        names[i, k] = scratch.feature[0, k]


@wp.kernel(module="unique", enable_backward=False, module_options={"max_unroll": 0})
def find_convex(
    pair: Pair, hulls: Hulls, scratch: Scratch, count: wp.array(dtype=int), rows: wp.array3d(dtype=float), names: wp.array2d(dtype=int)
):
    work = work_of(scratch, 0)
    for i in range(count.shape[0]):
        ma = to_matrix(pair.turn[i, 0])
        mb = to_matrix(pair.turn[i, 1])
        found = convex_rows(
            pair.kind[0], pair.size[i, 0], pair.number[0], ma, pair.kind[1], pair.size[i, 1], pair.number[1], mb,
            pair.d[i], pair.scale, pair.limit, hulls, work, scratch.out[0], scratch.feature[0],
        )  # fmt: skip
        take(scratch, found, i, count, rows, names)


@wp.kernel(module="unique", enable_backward=False, module_options={"max_unroll": 0})
def find_on_mesh(
    pair: Pair,
    hulls: Hulls,
    meshes: Meshes,
    scratch: Scratch,
    count: wp.array(dtype=int),
    rows: wp.array3d(dtype=float),
    names: wp.array2d(dtype=int),
):
    work = work_of(scratch, 0)
    for i in range(count.shape[0]):
        ma = to_matrix(pair.turn[i, 0])
        mb = to_matrix(pair.turn[i, 1])
        scale = pair.size[i, 1]
        found = mesh_rows(
            pair.kind[0], pair.size[i, 0], pair.number[0], ma, scale[0], pair.number[1], mb,
            pair.d[i], pair.scale, pair.limit, hulls, meshes, work, scratch.out[0], scratch.feature[0],
        )  # fmt: skip
        take(scratch, found, i, count, rows, names)


@wp.kernel(module="unique", enable_backward=False, module_options={"max_unroll": 0})
def find_of_meshes(
    pair: Pair,
    hulls: Hulls,
    meshes: Meshes,
    scratch: Scratch,
    count: wp.array(dtype=int),
    rows: wp.array3d(dtype=float),
    names: wp.array2d(dtype=int),
):
    work = work_of(scratch, 0)
    for i in range(count.shape[0]):
        ma = to_matrix(pair.turn[i, 0])
        mb = to_matrix(pair.turn[i, 1])
        scale_a = pair.size[i, 0]
        scale_b = pair.size[i, 1]
        found = mesh_pair_rows(
            scale_a[0], pair.number[0], ma, scale_b[0], pair.number[1], mb,
            pair.d[i], pair.scale, pair.limit, hulls, meshes, work, scratch.out[0], scratch.feature[0],
        )  # fmt: skip
        take(scratch, found, i, count, rows, names)


HULLS, TRIANGLES = hulls_on("cpu", ON_CPU.hulls), meshes_on("cpu", ON_CPU.meshes)


def found_by_device(cases):
    n, table, pair = len(cases.d), int(table_of.py_func(*cases.kind)), Pair()
    pair.kind, pair.number = wp.vec2i(*cases.kind), wp.vec2i(*cases.number)
    pair.size = wp.array(np.stack(cases.size, axis=1).astype(np.float32), dtype=wp.vec3, device="cpu")
    pair.turn = wp.array(np.stack(cases.turn, axis=1).astype(np.float32), dtype=wp.vec4, device="cpu")
    pair.d = wp.array(cases.d.astype(np.float32), dtype=wp.vec3, device="cpu")
    pair.scale, pair.limit = size_of(cases), cases.limit
    results = wp.zeros(n, dtype=int, device="cpu"), wp.zeros((n, MANY, 7), device="cpu"), wp.zeros((n, MANY), dtype=int, device="cpu")
    kernel = {CONVEX: find_convex, MESHES: find_on_mesh, MESH_PAIRS: find_of_meshes}[table]
    library = [HULLS] if table == CONVEX else [HULLS, TRIANGLES]
    wp.launch(kernel, 1, [pair, *library, make_scratch(1, table != CONVEX, "cpu"), *results], device="cpu")
    return Found(*(array.numpy() for array in results))
