"""Pair ownership: which bodies of this process reach beyond its part of space, and which its contacts act on; as
``gravel.host.pair_ownership``."""

import warp as wp

from gravel.gpu.collide.bounds import slack_of
from gravel.gpu.structs import Bodies, Contacts, Margin
from gravel.host.pair_ownership import AMPLE
from gravel.state import MOVABLE, STATUS

wp.set_module_options({"enable_backward": False, "max_unroll": 0})
ROUNDED_UP = 1.000001  # reaches are found in single precision


@wp.kernel
def find_border(
    bodies: Bodies,
    owner: wp.array(dtype=int),
    rank: int,
    margin: Margin,
    step: float,
    border: wp.array2d(dtype=wp.float64),
    low: wp.vec3d,
    length: wp.vec3d,
    radius: wp.array(dtype=wp.float64),
):
    """reach (n,) := how far a body of this process, and all that it may touch in the next step, reaches, if that is beyond this part; else
    -1. ``low`` and ``length``: of a periodic cell, endless where there is none."""
    i = wp.tid()
    radius[i] = wp.float64(-1.0)
    if owner[i] != rank:
        return
    v, x = bodies.velocity, wp.vec3d(bodies.position[i, 0], bodies.position[i, 1], bodies.position[i, 2])
    way = float(0.0)
    if bodies.tag[i, STATUS] == MOVABLE:
        way = step * wp.sqrt(v[i, 0] * v[i, 0] + v[i, 1] * v[i, 1] + v[i, 2] * v[i, 2])
    far = ROUNDED_UP * (float(bodies.extent[i, 3]) + AMPLE * slack_of(i, bodies, margin, step) + way)
    r = wp.float64(far) + wp.float64(1.0e-12) * wp.max(wp.max(wp.abs(x[0]), wp.abs(x[1])), wp.abs(x[2]))
    inside = bool(True)
    for f in range(border.shape[0]):
        n = wp.vec3d(border[f, 0], border[f, 1], border[f, 2])
        inside = inside and wp.dot(n, x) + r * (wp.abs(n[0]) + wp.abs(n[1]) + wp.abs(n[2])) < border[f, 3]
    for axis in range(3):  # what reaches beyond a periodic cell comes in on its other side
        if wp.isfinite(length[axis]):
            inside = inside and x[axis] - r > low[axis] and x[axis] + r < low[axis] + length[axis]
    if not inside:
        radius[i] = r


@wp.kernel
def list_touched(folded: Contacts, touched: wp.array(dtype=wp.uint8)):
    """touched := 1 for bodies that contacts of this process act on."""
    c = wp.tid()
    touched[folded.a[c]] = wp.uint8(1)
    touched[folded.b[c]] = wp.uint8(1)
