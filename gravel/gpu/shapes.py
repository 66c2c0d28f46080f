"""Solids, and what the library holds of hulls and meshes, on the device; and the scratch of those who work on them."""

import math

import warp as wp

from gravel.shapes.geometry import Library, links_of


@wp.struct
class Solid:
    """See ``gravel.formulas.solids.Solid``."""

    kind: int
    x: float
    y: float
    z: float
    radius: float
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


MOST_VERTICES, MOST_FACES = 64, 160  # of a polytope: rounding ends its growth sooner
ROWS = 256  # a worker has found at most; of more the deepest are kept
WHOLE = {"faces", "edges", "stack", "found", "names", "feature"}


def make_scratch(workers: int, meshes: bool, arrays) -> Scratch:
    """Scratch for a number of workers from ``DeviceBuffers``: 20 kB for each, or 45 kB where they may meet ``meshes``."""
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
        "stack": (triangles // 8,),
        "found": (triangles,),
        "rows": (contacts + 64, 7),
        "names": (contacts,),
        "out": (ROWS, 7),
        "feature": (ROWS,),
    }
    scratch = Scratch()
    for name, shape in shapes.items():
        flat = arrays.array(f"scratch_{name}", workers * math.prod(shape), dtype=wp.int32 if name in WHOLE else wp.float32)
        # a place's numbers of all workers side by side: those who go in step read what lies together
        setattr(scratch, name, flat.reshape((*shape, workers)).transpose((len(shape), *range(len(shape)))))
    return scratch


def make_hulls(library: Library, device: str) -> Hulls:
    """The hulls of a library, on a device."""
    return _copied(Hulls, {**library._asdict(), "links": links_of(library)}, device)


def make_meshes(library: Library, device: str) -> Meshes:
    """The meshes of a library, on a device."""
    return _copied(Meshes, library._asdict(), device)


def _copied(struct, arrays, device):
    made = struct()
    for name, field in struct.vars.items():
        setattr(made, name, wp.array(arrays[name], dtype=field.type.dtype, ndim=field.type.ndim, device=device))
    return made
