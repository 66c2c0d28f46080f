"""Whether two bodies may touch, by their bounds: the test that all broad phases share, in double precision."""

import warp as wp

from gravel.formulas.bounds import MOVES
from gravel.gpu.structs import Proxies
from gravel.shapes import BOX, PLANE
from gravel.state import GROUP, SHAPE

FEW = 16  # partners of a body that the first search keeps, so that there need be no second
zero = wp.constant(wp.float64(0.0))
one, two = wp.constant(wp.float64(1.0)), wp.constant(wp.float64(2.0))


@wp.func
def may_touch(i: int, j: int, proxies: Proxies):
    """Whether the bounds of two bodies overlap."""
    sphere, half = proxies.sphere, proxies.half
    dx, dy, dz = sphere[j, 0] - sphere[i, 0], sphere[j, 1] - sphere[i, 1], sphere[j, 2] - sphere[i, 2]
    r = sphere[i, 3] + sphere[j, 3]
    if dx * dx + dy * dy + dz * dz > r * r:
        return False
    if half.shape[0] == 0:
        return True
    return wp.abs(dx) <= half[i, 0] + half[j, 0] and wp.abs(dy) <= half[i, 1] + half[j, 1] and wp.abs(dz) <= half[i, 2] + half[j, 2]


@wp.func
def may_collide(i: int, j: int, proxies: Proxies, ignored: wp.array2d(dtype=wp.uint8)):
    """Whether one of two bodies can move and they are not meant to ignore each other."""
    tag = proxies.tag
    return tag[i, MOVES] + tag[j, MOVES] > 0 and ignored[tag[i, GROUP], tag[j, GROUP]] == wp.uint8(0)


@wp.func
def beside_box(j: int, dx: wp.float64, dy: wp.float64, dz: wp.float64, proxies: Proxies):
    """Square of the distance from box j to a point that lies (dx, dy, dz) from its centre."""
    q = proxies.quaternion
    w, x, y, z = q[j, 0], q[j, 1], q[j, 2], q[j, 3]
    lx = (one - two * (y * y + z * z)) * dx + two * (x * y + w * z) * dy + two * (x * z - w * y) * dz
    ly = two * (x * y - w * z) * dx + (one - two * (x * x + z * z)) * dy + two * (y * z + w * x) * dz
    lz = two * (x * z + w * y) * dx + two * (y * z - w * x) * dy + (one - two * (x * x + y * y)) * dz
    ex = wp.max(wp.abs(lx) - proxies.extent[j, 0], zero)
    ey = wp.max(wp.abs(ly) - proxies.extent[j, 1], zero)
    ez = wp.max(wp.abs(lz) - proxies.extent[j, 2], zero)
    return ex * ex + ey * ey + ez * ez


@wp.func
def may_touch_huge(i: int, j: int, proxies: Proxies):
    """Whether the ball around body i overlaps a huge body j, by its shape."""
    sphere, extent, shape = proxies.sphere, proxies.extent, proxies.tag[j, SHAPE]
    if shape != PLANE and shape != BOX:
        return may_touch(i, j, proxies)
    dx, dy, dz = sphere[i, 0] - sphere[j, 0], sphere[i, 1] - sphere[j, 1], sphere[i, 2] - sphere[j, 2]
    r = sphere[i, 3] + extent[j, 3]
    if shape == PLANE:
        return dx * extent[j, 0] + dy * extent[j, 1] + dz * extent[j, 2] <= r
    return beside_box(j, dx, dy, dz, proxies) <= r * r


@wp.func
def may_meet(i: int, j: int, proxies: Proxies, ignored: wp.array2d(dtype=wp.uint8)):
    """Whether two bodies are a candidate pair, whatever they are."""
    if not may_collide(i, j, proxies, ignored):
        return False
    if proxies.tag[i, SHAPE] == PLANE:
        return may_touch_huge(j, i, proxies)
    if proxies.tag[j, SHAPE] == PLANE:
        return may_touch_huge(i, j, proxies)
    return may_touch(i, j, proxies)


@wp.func
def keep_partner(
    i: int, j: int, count: int, near: wp.array2d(dtype=int), first: wp.array(dtype=int), a: wp.array(dtype=int), b: wp.array(dtype=int)
):
    """Body i has found its partner j, after ``count`` others: kept with the body or, with room for all pairs, as a pair."""
    if a.shape[0] > 0:
        a[first[i] + count] = i
        b[first[i] + count] = j
    elif count < FEW:
        near[i, count] = j


@wp.func
def has_kept_all(
    i: int, found: int, near: wp.array2d(dtype=int), first: wp.array(dtype=int), a: wp.array(dtype=int), b: wp.array(dtype=int)
):
    """With room for pairs, whether those of body i were all kept; then they are written down."""
    if a.shape[0] == 0 or found > FEW:
        return False
    for k in range(found):
        a[first[i] + k] = i
        b[first[i] + k] = near[i, k]
    return True
