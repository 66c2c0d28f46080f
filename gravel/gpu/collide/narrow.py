"""Narrow phase where every pair is a ball with a ball or a plane: candidate pairs to contacts in one pass. Scenes with other shapes go by
``shape_pairs``.

The vector between two bodies is formed in double precision, geometry runs in single: a grain far from the origin loses nothing.
"""

import warp as wp

from gravel.gpu.collide.shape_pair_types import in_order, narrowed, row3
from gravel.gpu.collide.shape_pairs import between_balls, contacts_of_bodies, contacts_with_room, margin_of, may_close
from gravel.gpu.launch import last_of, run, scan
from gravel.gpu.structs import Contacts, Margin, Pairs, Proxies
from gravel.shapes import PLANE
from gravel.state import SHAPE

wp.set_module_options({"enable_backward": False, "max_unroll": 0})


@wp.func
def ball_contact(a: int, b: int, proxies: Proxies):
    """(normal, arm, gap) of a ball a with a ball or plane b. The distance from a plane, whose point may lie far off, is found in double
    precision."""
    if proxies.tag[b, SHAPE] == PLANE:
        n = row3(proxies.extent, b)
        over = wp.dot(row3(proxies.sphere, a) - row3(proxies.sphere, b), n)
        gap = float(over - proxies.extent[a, 0])
        normal = -narrowed(n)
        return normal, (float(proxies.extent[a, 0]) + 0.5 * gap) * normal, gap
    return between_balls(a, b, proxies)


@wp.kernel
def look_at_pairs(proxies: Proxies, pairs: Pairs, margin: Margin, step: float, keep: wp.array(dtype=int), rows: wp.array(dtype=wp.vec4)):
    """Of each pair: whether it is a contact, its normal and gap."""
    k = wp.tid()
    a, b = in_order(k, pairs, proxies)
    normal, arm, gap = ball_contact(a, b, proxies)
    keep[k] = 0
    if may_close(gap, margin_of(margin, a, b, proxies), step, a, b, arm, proxies):
        keep[k] = 1
    rows[k] = wp.vec4(normal[0], normal[1], normal[2], gap)


@wp.kernel
def write_contacts(
    proxies: Proxies,
    pairs: Pairs,
    keep: wp.array(dtype=int),
    before: wp.array(dtype=int),
    rows: wp.array(dtype=wp.vec4),
    contacts: Contacts,
):
    k = wp.tid()
    if keep[k] == 0:
        return
    a, b = in_order(k, pairs, proxies)
    c, row = before[k], rows[k]
    arm = float(proxies.extent[a, 0]) + 0.5 * row[3]
    contacts.a[c] = a
    contacts.b[c] = b
    contacts.feature[c] = 0
    contacts.gap[c] = row[3]
    for axis in range(3):
        contacts.normal[c, axis] = row[axis]
        contacts.arm[c, axis] = arm * row[axis]


def find_ball_contacts(proxies, pairs, count, n, margin, step, buffers):
    """(contacts, first, number, total), as ``shape_pairs.find_contacts_by_shape_pairs``."""
    array, device = buffers.array, buffers.device
    keep, before = array("pair_keep", count, dtype=wp.int32), array("pair_before", count + 1, dtype=wp.int32)
    rows = array("pair_row", count, dtype=wp.vec4)
    run(look_at_pairs, count, [proxies, pairs, margin, step, keep, rows], device)
    before.zero_()
    scan(keep, before)
    total = last_of(before)
    contacts = contacts_with_room(buffers, total)
    run(write_contacts, count, [proxies, pairs, keep, before, rows, contacts], device)
    first, number = array("body_first", n, dtype=wp.int32), array("body_number", n, dtype=wp.int32)
    run(contacts_of_bodies, n, [pairs, before, first, number], device)
    return contacts, first, number, total
