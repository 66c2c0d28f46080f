"""Small vector and quaternion functions for the kernels; all are inlined by the compiler."""

import math

from numba import njit

from gravel.formulas import vectors
from gravel.host.formulas import FORMS
from gravel.host.threads import INNER

_vectors = FORMS.of(vectors)
cross, rotate, rotate_back = _vectors.cross, _vectors.rotate, _vectors.rotate_back
tangents, to_matrix = _vectors.tangents, _vectors.to_matrix


@njit(**INNER)
def turn(quaternion, b, x, y, z):
    """Row b of quaternion := exp(x, y, z) row b, normalised: a rotation vector in the world frame is added to it."""
    a = 0.25 * (x * x + y * y + z * z)  # square of half the angle
    if a < 0.01:  # series to the last bit of a double, where the functions take longest
        c = 1 - a / 2 * (1 - a / 12 * (1 - a / 30 * (1 - a / 56 * (1 - a / 90))))
        s = 0.5 * (1 - a / 6 * (1 - a / 20 * (1 - a / 42 * (1 - a / 72 * (1 - a / 110)))))
    else:
        half = math.sqrt(a)
        c, s = math.cos(half), 0.5 * math.sin(half) / half
    x, y, z = s * x, s * y, s * z
    w0, x0, y0, z0 = quaternion[b, 0], quaternion[b, 1], quaternion[b, 2], quaternion[b, 3]
    w1 = c * w0 - x * x0 - y * y0 - z * z0
    x1 = c * x0 + x * w0 + y * z0 - z * y0
    y1 = c * y0 - x * z0 + y * w0 + z * x0
    z1 = c * z0 + x * y0 - y * x0 + z * w0
    scale = 1.0 / math.sqrt(w1 * w1 + x1 * x1 + y1 * y1 + z1 * z1)
    quaternion[b, 0], quaternion[b, 1], quaternion[b, 2], quaternion[b, 3] = w1 * scale, x1 * scale, y1 * scale, z1 * scale
