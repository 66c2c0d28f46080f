"""Narrow phase: candidate pairs to contacts, as ``gravel.cpu.collide.narrow``. Here: which gaps count, and pairs of balls and planes.

The vector between two bodies is formed in double precision, geometry runs in single: a grain far from the origin loses nothing. Scenes
with other shapes go by way of ``jobs``.
"""

import warp as wp

from gravel.cpu.collide.bounds import HASTE, MOVES
from gravel.gpu.launch import last_of, run, scan
from gravel.gpu.structs import Arranged, Contacts, Margin, Pairs
from gravel.shapes import PLANE, SPHERE
from gravel.state import SHAPE

wp.set_module_options({"enable_backward": False, "max_unroll": 0})
GOLDEN_ANGLE = wp.constant(wp.float64(2.399963229728653))
GOLDEN_SHARE = wp.constant(wp.float64(0.6180339887498949))


@wp.func
def margin_of(margin: Margin, a: int, b: int, arranged: Arranged):
    """The gap below which two bodies count as touching."""
    near = margin.absolute
    if arranged.tag[a, MOVES] > 0:
        near += margin.share * float(arranged.reach[a, 3] - arranged.extent[a, 3])
    if arranged.tag[b, MOVES] > 0:
        near += margin.share * float(arranged.reach[b, 3] - arranged.extent[b, 3])
    return near


@wp.func
def between(a: int, b: int, arranged: Arranged):
    """From the centre of a to that of b; to a plane, the shortest way: its point may lie far off."""
    r = arranged.reach
    dx, dy, dz = r[b, 0] - r[a, 0], r[b, 1] - r[a, 1], r[b, 2] - r[a, 2]
    if arranged.tag[b, SHAPE] == PLANE:
        n = arranged.extent
        along = dx * n[b, 0] + dy * n[b, 1] + dz * n[b, 2]
        dx, dy, dz = along * n[b, 0], along * n[b, 1], along * n[b, 2]
    return wp.vec3(float(dx), float(dy), float(dz))


@wp.func
def linear(velocity: wp.array2d(dtype=float), i: int):
    return wp.vec3(velocity[i, 0], velocity[i, 1], velocity[i, 2])


@wp.func
def angular(velocity: wp.array2d(dtype=float), i: int):
    return wp.vec3(velocity[i, 4], velocity[i, 5], velocity[i, 6])


@wp.func
def may_close(gap: float, near: float, step: float, a: int, b: int, arm: wp.vec3, arranged: Arranged):
    """Whether a gap is within the margin, or could be closed within the step."""
    if gap <= near:
        return True
    if step <= 0.0:
        return False
    r, v = arranged.reach, arranged.velocity
    other = arm + wp.vec3(float(r[a, 0] - r[b, 0]), float(r[a, 1] - r[b, 1]), float(r[a, 2] - r[b, 2]))
    va = linear(v, a) + wp.cross(angular(v, a), arm)
    vb = linear(v, b) + wp.cross(angular(v, b), other)
    u = vb - va
    speed = wp.sqrt(wp.max(wp.max(wp.dot(u, u), wp.dot(va, va)), wp.dot(vb, vb)))
    return gap <= near + step * HASTE * speed


@wp.func
def comes_first(a: int, b: int, arranged: Arranged):
    """Whether a contact has a for its first body: the lower kind, and of two alike the lower id."""
    kind_a, kind_b = arranged.tag[a, SHAPE], arranged.tag[b, SHAPE]
    return kind_a < kind_b or (kind_a == kind_b and arranged.id[a] <= arranged.id[b])


@wp.func
def in_order(a: int, b: int, arranged: Arranged):
    """The two bodies of a pair as its contacts have them."""
    if comes_first(a, b, arranged):
        return a, b
    return b, a


@wp.func
def direction_of(k: wp.int64):
    """A direction by an id; ids that follow each other point far apart."""
    number = wp.float64(k)
    share = GOLDEN_SHARE * (number + wp.float64(0.5))
    height = wp.float64(2.0) * (share - wp.floor(share)) - wp.float64(1.0)
    across = wp.sqrt(wp.float64(1.0) - height * height)
    return wp.vec3(float(across * wp.cos(GOLDEN_ANGLE * number)), float(across * wp.sin(GOLDEN_ANGLE * number)), float(height))


@wp.func
def parted(i: wp.int64, j: wp.int64):
    """A tiny vector between two balls in one place, by their ids."""
    return 1.0e-30 * (direction_of(j) - direction_of(i))


@wp.func
def between_balls(radius_a: float, radius_b: float, d: wp.vec3):
    """(normal, gap) of two balls."""
    distance = wp.length(d)
    n = wp.vec3(0.0, 0.0, 1.0)  # same centre: any direction serves
    if distance > 1.0e-18:
        n = d / distance
    elif wp.max(wp.max(wp.abs(d[0]), wp.abs(d[1])), wp.abs(d[2])) > 0.0:
        n = wp.normalize(d * 1.0e30)
    return n, distance - radius_a - radius_b


@wp.func
def ball_contact(a: int, b: int, arranged: Arranged):
    """(normal, gap) of a ball a with a ball or plane b."""
    radius = float(arranged.extent[a, 0])
    d = between(a, b, arranged)
    if arranged.tag[b, SHAPE] == PLANE:
        n = wp.vec3(float(arranged.extent[b, 0]), float(arranged.extent[b, 1]), float(arranged.extent[b, 2]))
        return -n, -wp.dot(d, n) - radius
    if d[0] == 0.0 and d[1] == 0.0 and d[2] == 0.0:
        d = parted(arranged.id[a], arranged.id[b])
    return between_balls(radius, float(arranged.extent[b, 0]), d)


@wp.kernel
def look_at_pairs(arranged: Arranged, pairs: Pairs, margin: Margin, step: float, keep: wp.array(dtype=int), rows: wp.array(dtype=wp.vec4)):
    """Of each pair of a ball and a ball or plane: whether it is a contact, its normal and gap."""
    k = wp.tid()
    a, b = in_order(pairs.a[k], pairs.b[k], arranged)
    n, gap = ball_contact(a, b, arranged)
    keep[k] = 0
    arm = (float(arranged.extent[a, 0]) + 0.5 * gap) * n
    if may_close(gap, margin_of(margin, a, b, arranged), step, a, b, arm, arranged):
        keep[k] = 1
    rows[k] = wp.vec4(n[0], n[1], n[2], gap)


@wp.kernel
def write_contacts(
    arranged: Arranged,
    pairs: Pairs,
    keep: wp.array(dtype=int),
    before: wp.array(dtype=int),
    rows: wp.array(dtype=wp.vec4),
    contacts: Contacts,
):
    k = wp.tid()
    if keep[k] == 0:
        return
    a, b = in_order(pairs.a[k], pairs.b[k], arranged)
    c = before[k]
    arm = float(arranged.extent[a, 0]) + 0.5 * rows[k][3]
    contacts.a[c] = a
    contacts.b[c] = b
    contacts.feature[c] = 0
    contacts.gap[c] = rows[k][3]
    for axis in range(3):
        contacts.normal[c, axis] = rows[k][axis]
        contacts.arm[c, axis] = arm * rows[k][axis]


@wp.kernel
def find_ranges(pairs: Pairs, before: wp.array(dtype=int), first: wp.array(dtype=int), number: wp.array(dtype=int)):
    """The contacts that each body has found, from how many there are before each pair."""
    i = wp.tid()
    first[i] = before[pairs.first[i]]
    number[i] = before[pairs.first[i + 1]] - first[i]


def make_contacts(buffers, total):
    """Room for so many contacts."""
    array, contacts = buffers.array, Contacts()
    contacts.a, contacts.b = array("contact_a", total, dtype=wp.int32), array("contact_b", total, dtype=wp.int32)
    contacts.feature, contacts.gap = array("contact_feature", total, dtype=wp.int32), array("contact_gap", total)
    contacts.normal, contacts.arm = array("contact_normal", total, (3,)), array("contact_arm", total, (3,))
    return contacts


def find_ball_contacts(arranged, pairs, count, n, margin, step, buffers):
    """(contacts, first, number, total) where every pair is a ball with a ball or a plane."""
    array, device = buffers.array, buffers.device
    keep, before, rows = (
        array("pair_keep", count, dtype=wp.int32),
        array("pair_before", count + 1, dtype=wp.int32),
        array("pair_row", count, dtype=wp.vec4),
    )
    run(look_at_pairs, count, [arranged, pairs, margin, step, keep, rows], device)
    before[:1].zero_()
    scan(keep, before)
    total = last_of(before) if count else 0
    contacts = make_contacts(buffers, total)
    run(write_contacts, count, [arranged, pairs, keep, before, rows, contacts], device)
    first, number = array("body_first", n, dtype=wp.int32), array("body_number", n, dtype=wp.int32)
    run(find_ranges, n, [pairs, before, first, number], device)
    return contacts, first, number, total
