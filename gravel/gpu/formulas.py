"""Formulas compiled for the device, in single precision, and twins of those that its compiler or its precision does not suit."""

import warp as wp

from gravel.formulas.forms import Forms
from gravel.gpu.shapes import MOST_FACES, MOST_VERTICES, Hulls, Meshes, Solid, Work

vec6 = wp.types.vector(length=6, dtype=wp.float32)

KINDS = {
    "float": float,
    "int": int,
    "bool": bool,
    "Matrix": wp.mat33,
    "Vector": wp.vec3,
    "Turn": wp.vec4,
    "Symmetric": wp.mat33,
    "Inertia": vec6,
    "Numbers": wp.array(dtype=float),
    "Table": wp.array2d(dtype=float),
    "Names": wp.array(dtype=int),
    "Corners": wp.array2d(dtype=int),
    "Marks": wp.array(dtype=bool),
    "Tables": wp.array3d(dtype=float),
    "Solid": Solid,
    "Hulls": Hulls,
    "Meshes": Meshes,
    "Work": Work,
}

# What rounding leaves of these in single precision: they end what would go on for ever, or tell what is the same from what is not.
PRECISION = {
    # of convex solids and meshes
    "COARSE": True,
    "MOST_VERTICES": MOST_VERTICES,
    "MOST_FACES": MOST_FACES,
    "NEAR": 1e-5,
    "PRECISE": 5e-7,
    "PRECISE_DIRECTION": 1e-5,
    "PRECISE_LENGTH": 1e-6,
    "PRECISE_DEPTH": 1e-6,
    "SAME_POINT": 1e-5,
    "FLAT": 1e-5,
    "VISIBLE": 5e-7,
    "COINCIDENT": 1e-6,
    "SAME": 1e-6,
    "SAME_GAP": 1e-5,
    # of boxes and ellipsoids
    "PARALLEL": 1e-3,
    "HAIR": 2e-6,
    "CUTS": 14,
    "ALIGNED": 5e-7,
    "LEAST_CURVED": 1e-6,
    "AS_HIGH": 2e-7,
}


@wp.func
def to_matrix(q: wp.vec4):
    """Rotation matrix of a quaternion (w, x, y, z)."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    return wp.mat33(
        1.0 - 2.0 * (y * y + z * z),
        2.0 * (x * y - w * z),
        2.0 * (x * z + w * y),
        2.0 * (x * y + w * z),
        1.0 - 2.0 * (x * x + z * z),
        2.0 * (y * z - w * x),
        2.0 * (x * z - w * y),
        2.0 * (y * z + w * x),
        1.0 - 2.0 * (x * x + y * y),
    )


@wp.func
def like(x: float, number: float):
    """There is one precision here."""
    return number


@wp.func
def hypot(x: float, y: float):
    return wp.sqrt(x * x + y * y)


# --- boxes
@wp.func
def along_first(rx: float, ry: float, rz: float, ax: float, ay: float, az: float, bx: float, by: float, bz: float):
    """As in ``boxes``; 1 - (a . b)^2 has no digits left where a and b are nearly parallel, |a x b|^2 has."""
    b = wp.vec3(bx, by, bz)
    across = wp.cross(wp.vec3(ax, ay, az), b)
    return wp.dot(wp.cross(wp.vec3(rx, ry, rz), b), across) / wp.max(wp.dot(across, across), 1.0e-12)


# --- ellipsoids: M = B^T B, B = R A^T. Of a thin one, n . M n has lost its digits where n is along the thin way, |B n| has not
@wp.func
def matrix_of(size: wp.vec3, turn: wp.vec4):
    """B"""
    return wp.diag(size) * wp.transpose(to_matrix(turn))


@wp.func
def times(m: wp.mat33, x: float, y: float, z: float):
    v = wp.transpose(m) * (m * wp.vec3(x, y, z))
    return v[0], v[1], v[2]


@wp.func
def times_sum(ia: float, ma: wp.mat33, ib: float, mb: wp.mat33, x: float, y: float, z: float):
    u = wp.vec3(x, y, z)
    v = ia * (wp.transpose(ma) * (ma * u)) + ib * (wp.transpose(mb) * (mb * u))
    return v[0], v[1], v[2]


@wp.func
def sum_of(ma: wp.mat33, mb: wp.mat33):
    m = wp.transpose(ma) * ma + wp.transpose(mb) * mb
    return m[0][0], m[0][1], m[0][2], m[1][1], m[1][2], m[2][2]


@wp.func
def surely_negative(value: float, of: float):
    """As in ``ellipsoids``; where rounding may have the sign, it is not sure."""
    return value < -2.0e-6 * of


# Large ones that are called from many places: copied into each of them, a kernel would take minutes to compile.
APART = {"difference", "support_face", "distance_of_cores", "manifold", "thin_out"}


def for_device(function):
    """A formula as a function of Warp's."""
    function.__annotations__ = {name: KINDS[kind] for name, kind in function.__annotations__.items() if name != "return"}
    return wp.func(function, inline=False if function.__name__ in APART else None)


OWN = {"to_matrix": to_matrix, "vector": wp.vec3, "quaternion_of": wp.vec4, "whole": wp.int32, "hypot": hypot, "like": like, "Solid": Solid}
OF_BOXES = {"along_first": along_first}
OF_ELLIPSOIDS = {"matrix_of": matrix_of, "times": times, "times_sum": times_sum, "sum_of": sum_of, "surely_negative": surely_negative}
FORMS = Forms(for_device, {**OWN, **OF_BOXES, **OF_ELLIPSOIDS, **PRECISION})
