"""Formulas compiled for the device, in single precision."""

import warp as wp

from gravel.formulas.forms import Forms
from gravel.gpu.shapes import Hulls, Meshes, Solid, Work

KINDS = {
    "float": float,
    "int": int,
    "bool": bool,
    "Matrix": wp.mat33,
    "Vector": wp.vec3,
    "Turn": wp.vec4,
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
    "COARSE": True,
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
def hypot(x: float, y: float):
    return wp.sqrt(x * x + y * y)


def for_device(function):
    """A formula as a function of Warp's."""
    function.__annotations__ = {name: KINDS[kind] for name, kind in function.__annotations__.items() if name != "return"}
    return wp.func(function)


OWN = {"to_matrix": to_matrix, "vector": wp.vec3, "whole": wp.int32, "hypot": hypot, "Solid": Solid}
FORMS = Forms(for_device, {**OWN, **PRECISION})
