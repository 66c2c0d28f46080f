"""Incidence: the contacts of each body side by side, so that a body's impulses are summed in a fixed order without atomic additions
(the reduction buffer of paper 000, Algorithm 1)."""

import warp as wp

from gravel.gpu.launch import run, scan
from gravel.gpu.structs import Rows

wp.set_module_options({"enable_backward": False, "max_unroll": 0})


@wp.kernel
def list_ends(rows: Rows, bodies: int, key: wp.array(dtype=int), end: wp.array(dtype=int), count: wp.array(dtype=int)):
    """Two ends a contact: 2 i is a's, 2 i + 1 is b's; those of bodies that do not move come behind all others."""
    i = wp.tid()
    key[2 * i] = bodies
    key[2 * i + 1] = bodies
    if rows.mass[i][0] > 0.0:
        key[2 * i] = rows.a[i]
        wp.atomic_add(count, rows.a[i], 1)
    if rows.mass[i][1] > 0.0:
        key[2 * i + 1] = rows.b[i]
        wp.atomic_add(count, rows.b[i], 1)
    end[2 * i] = 2 * i
    end[2 * i + 1] = 2 * i + 1


def find_incidence(rows, contacts, bodies, buffers):
    """(first (bodies + 1,), ends): the ends of body k are those from first[k] to first[k + 1]."""
    array = buffers.array
    key, end = array("end_key", 4 * contacts, dtype=wp.int32), array("ends", 4 * contacts, dtype=wp.int32)
    count, first = array("end_count", bodies, dtype=wp.int32), array("end_first", bodies + 1, dtype=wp.int32)
    count.zero_()
    first.zero_()
    run(list_ends, contacts, [rows, bodies, key, end, count], buffers.device)
    if contacts:
        wp.utils.radix_sort_pairs(key, end, 2 * contacts)
        scan(count, first)
    return first, end
