"""Bounds: the swept bounding sphere of each body in this step, and what detection and the solver want to know of it.

As ``gravel.cpu.collide.bounds``, body by body; here the bodies keep the order of the rows.
"""

import warp as wp

from gravel.formulas import bounds, vectors
from gravel.formulas.bounds import BALL, HASTE, MOVES, OTHER
from gravel.gpu.formulas import FORMS, to_matrix
from gravel.gpu.structs import Bodies, Margin, Proxies
from gravel.shapes import PLANE, SPHERE
from gravel.state import MOVABLE, SHAPE, STATUS

wp.set_module_options({"enable_backward": False, "max_unroll": 0})
ROUNDED_UP = 1.000001  # a box in single precision must hold its body
rotate, half_extents = FORMS.of(vectors).rotate, FORMS.of(bounds).half_extents


@wp.func
def turn_of(quaternion: wp.array2d(dtype=wp.float64), i: int):
    return wp.vec4(float(quaternion[i, 0]), float(quaternion[i, 1]), float(quaternion[i, 2]), float(quaternion[i, 3]))


@wp.func
def slack_of(i: int, bodies: Bodies, margin: Margin, step: float):
    """Margin share and travel of one body, m."""
    radius, v = float(bodies.extent[i, 3]), bodies.velocity
    slack = 0.5 * margin.absolute
    if bodies.tag[i, STATUS] == MOVABLE:
        slack += margin.share * radius
    speed = wp.sqrt(v[i, 0] * v[i, 0] + v[i, 1] * v[i, 1] + v[i, 2] * v[i, 2])
    if wp.isfinite(radius) and bodies.tag[i, SHAPE] != SPHERE:  # a corner may travel with the turning
        speed += wp.sqrt(v[i, 4] * v[i, 4] + v[i, 5] * v[i, 5] + v[i, 6] * v[i, 6]) * radius
    return slack + step * HASTE * speed


@wp.func
def is_ball(i: int, bodies: Bodies):
    mass = bodies.inverse_mass
    return bodies.tag[i, SHAPE] == SPHERE and mass[i, 1] == mass[i, 2] and mass[i, 2] == mass[i, 3]


@wp.kernel
def make_proxies(
    bodies: Bodies,
    jointed: wp.array(dtype=wp.uint8),
    margin: Margin,
    step: float,
    half: wp.array2d(dtype=float),
    proxies: Proxies,
):
    """``proxies`` := the bodies; ``half``: half extents of the geometries."""
    i = wp.tid()
    shape = bodies.tag[i, SHAPE]
    slack = wp.float64(slack_of(i, bodies, margin, step))
    r = bodies.extent[i, 3] + slack
    proxies.id[i] = bodies.id[i]
    for k in range(3):
        proxies.sphere[i, k] = bodies.position[i, k]
        proxies.extent[i, k] = bodies.extent[i, k]
        proxies.tag[i, k] = bodies.tag[i, k]
    proxies.sphere[i, 3] = r
    proxies.extent[i, 3] = slack
    for k in range(8):
        proxies.velocity[i, k] = bodies.velocity[i, k] if step > 0.0 else 0.0
    moves = int(0)
    if bodies.tag[i, STATUS] == MOVABLE:
        moves = OTHER
        if is_ball(i, bodies):
            moves = BALL
        if jointed.shape[0] > 0:  # joints act beside a ball's middle, so what has one is no ball
            if jointed[i] > wp.uint8(0):
                moves = OTHER
    proxies.tag[i, MOVES] = moves
    proxies.mass[i, 0] = float(bodies.inverse_mass[i, 0])
    proxies.mass[i, 1] = float(bodies.inverse_mass[i, 1])
    if shape == PLANE:
        x, y, z = rotate(
            to_matrix(turn_of(bodies.quaternion, i)), float(bodies.extent[i, 0]), float(bodies.extent[i, 1]), float(bodies.extent[i, 2])
        )
        proxies.extent[i, 0] = wp.float64(x)
        proxies.extent[i, 1] = wp.float64(y)
        proxies.extent[i, 2] = wp.float64(z)
    if proxies.quaternion.shape[0] > 0:
        for k in range(4):
            proxies.quaternion[i, k] = bodies.quaternion[i, k]
    if proxies.geometry.shape[0] > 0:
        proxies.geometry[i] = bodies.geometry[i]
    if proxies.half.shape[0] > 0:
        turn, size = turn_of(bodies.quaternion, i), bodies.extent
        radius, number = float(size[i, 3]), bodies.geometry[i]
        x, y, z = half_extents(shape, float(size[i, 0]), float(size[i, 1]), float(size[i, 2]), radius, turn, number, half)
        proxies.half[i, 0] = wp.float64(ROUNDED_UP * x) + slack
        proxies.half[i, 1] = wp.float64(ROUNDED_UP * y) + slack
        proxies.half[i, 2] = wp.float64(ROUNDED_UP * z) + slack
