"""Formulas compiled for the device, in single precision."""

import warp as wp

from gravel.formulas.forms import Forms

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


def for_device(function):
    """A formula as a function of Warp's."""
    function.__annotations__ = {name: KINDS[kind] for name, kind in function.__annotations__.items() if name != "return"}
    return wp.func(function)


FORMS = Forms(for_device, {"to_matrix": to_matrix})
