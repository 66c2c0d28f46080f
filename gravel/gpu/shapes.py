"""Solids, and what the library holds of hulls and meshes, on the device; and the scratch of those who work on them."""

import numpy as np
import warp as wp

from gravel.formulas.gjk import MOST_FACES, MOST_VERTICES


@wp.struct
class Solid:
    """See ``gravel.formulas.solids.Solid``."""

    kind: int
    x: float
    y: float
    z: float
    i: int
    j: int
    k: int


@wp.struct
class Hulls:
    """See ``gravel.formulas.solids.Hulls``."""

    first_vertex: wp.array(dtype=int)
    vertices: wp.array2d(dtype=float)
    links: wp.array(dtype=int)
    first_face: wp.array(dtype=int)
    face_start: wp.array(dtype=int)
    face_corners: wp.array(dtype=int)
    face_normals: wp.array2d(dtype=float)


@wp.struct
class Meshes:
    """See ``gravel.formulas.meshes.Meshes``."""

    vertices: wp.array2d(dtype=float)
    first_triangle: wp.array(dtype=int)
    triangles: wp.array2d(dtype=int)
    adjacent: wp.array2d(dtype=int)
    normals: wp.array2d(dtype=float)
    first_box: wp.array(dtype=int)
    boxes: wp.array2d(dtype=float)
    one_sided: wp.array(dtype=bool)


@wp.struct
class Work:
    """Scratch of one worker: see ``gravel.formulas.gjk.Work``."""

    simplex: wp.array2d(dtype=float)
    weight: wp.array(dtype=float)
    trial: wp.array(dtype=float)
    vertices: wp.array2d(dtype=float)
    faces: wp.array2d(dtype=int)
    planes: wp.array2d(dtype=float)
    edges: wp.array2d(dtype=int)
    polygons: wp.array3d(dtype=float)
    stack: wp.array(dtype=int)
    found: wp.array(dtype=int)
    rows: wp.array2d(dtype=float)
    names: wp.array(dtype=int)


@wp.struct
class Scratch:
    """Scratch of all workers, the numbers of one place side by side: each worker's ``Work`` is a slice of it."""

    simplex: wp.array3d(dtype=float)
    weight: wp.array2d(dtype=float)
    trial: wp.array2d(dtype=float)
    vertices: wp.array3d(dtype=float)
    faces: wp.array3d(dtype=int)
    planes: wp.array3d(dtype=float)
    edges: wp.array3d(dtype=int)
    polygons: wp.array4d(dtype=float)
    stack: wp.array2d(dtype=int)
    found: wp.array2d(dtype=int)
    rows: wp.array3d(dtype=float)
    names: wp.array2d(dtype=int)
    out: wp.array3d(dtype=float)
    feature: wp.array2d(dtype=int)


ROWS = {False: 64, True: 256}  # a worker has found at most, without meshes and with them; of more the deepest are kept


def make_scratch(workers: int, meshes: bool, device: str) -> Scratch:
    """Scratch for a number of workers, some 20 kB each, or 50 kB where they may meet ``meshes``."""
    triangles, contacts = (1024, 512) if meshes else (0, 0)
    shapes = {
        "simplex": (4, 6),
        "weight": (4,),
        "trial": (4,),
        "vertices": (MOST_VERTICES, 6),
        "faces": (MOST_FACES, 3),
        "planes": (MOST_FACES, 4),
        "edges": (MOST_FACES, 2),
        "polygons": (3, 64, 3),
        "stack": (128 if meshes else 0,),
        "found": (triangles,),
        "rows": (contacts + 64 if meshes else 0, 7),
        "names": (contacts,),
        "out": (ROWS[meshes], 7),
        "feature": (ROWS[meshes],),
    }
    whole = {"faces", "edges", "stack", "found", "names", "feature"}
    scratch = Scratch()
    for name, shape in shapes.items():
        dtype = wp.int32 if name in whole else wp.float32
        # workers last in memory, so that those who go in step read side by side
        array = wp.empty((*shape, workers), dtype=dtype, device=device)
        setattr(scratch, name, array.transpose((len(shape), *range(len(shape)))))
    return scratch


def hulls_on(device: str, hulls) -> Hulls:
    """``gravel.cpu.collide.support.Hulls`` on the device."""
    return _copied(Hulls(), hulls, device)


def meshes_on(device: str, meshes) -> Meshes:
    """``gravel.cpu.collide.meshes.Meshes`` on the device."""
    return _copied(Meshes(), meshes, device)


def _copied(struct, arrays, device):
    for name, values in arrays._asdict().items():
        kind = {"f": np.float32, "i": np.int32, "b": np.bool_}[values.dtype.kind]
        setattr(struct, name, wp.array(np.ascontiguousarray(values, kind), device=device))
    return struct
