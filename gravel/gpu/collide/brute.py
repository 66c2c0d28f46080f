"""Brute force broad phase: every pair. For few bodies, and the twin that the other broad phases are tested against."""

import warp as wp

from gravel.gpu.collide.near import has_kept_all, keep_partner, may_meet
from gravel.gpu.launch import run
from gravel.gpu.structs import Proxies

wp.set_module_options({"enable_backward": False, "max_unroll": 0})


@wp.kernel
def find_all_pairs(
    proxies: Proxies,
    ignored: wp.array2d(dtype=wp.uint8),
    n: int,
    found: wp.array(dtype=int),
    near: wp.array2d(dtype=int),
    first: wp.array(dtype=int),
    a: wp.array(dtype=int),
    b: wp.array(dtype=int),
):
    """``found`` := candidates of each body among those behind it, of which ``near`` gets the first few; with room for pairs, all are
    written down."""
    i = wp.tid()
    if has_kept_all(i, found[i], near, first, a, b):
        return
    count = int(0)
    for j in range(i + 1, n):
        if may_meet(i, j, proxies, ignored):
            keep_partner(i, j, count, near, first, a, b)
            count += 1
    found[i] = count


class Brute:
    def __init__(self, buffers):
        self.buffers = buffers

    def sort(self, proxies, n):
        """Nothing to sort."""

    def find(self, proxies, n, ignored, *out):
        run(find_all_pairs, n, [proxies, ignored, n, *out], self.buffers.device)

    def order(self, n):
        return None
