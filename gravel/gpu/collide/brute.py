"""Brute force broad phase: every pair. For few bodies, and the twin that the other broad phases are tested against."""

import warp as wp

from gravel.gpu.collide.near import may_meet
from gravel.gpu.launch import run
from gravel.gpu.structs import Arranged

wp.set_module_options({"enable_backward": False, "max_unroll": 0})


@wp.kernel
def find_all_pairs(
    arranged: Arranged,
    ignored: wp.array2d(dtype=wp.uint8),
    n: int,
    found: wp.array(dtype=int),
    first: wp.array(dtype=int),
    a: wp.array(dtype=int),
    b: wp.array(dtype=int),
):
    """``found`` := candidates of each body among those behind it, which with room for them are written down."""
    i = wp.tid()
    count = int(0)
    for j in range(i + 1, n):
        if may_meet(i, j, arranged, ignored):
            if a.shape[0] > 0:
                a[first[i] + count] = i
                b[first[i] + count] = j
            count += 1
    if a.shape[0] == 0:
        found[i] = count


class Brute:
    def __init__(self, buffers):
        self.buffers = buffers

    def sort(self, arranged, n):
        """Nothing to sort."""

    def find(self, arranged, n, ignored, found, first, a, b):
        run(find_all_pairs, n, [arranged, ignored, n, found, first, a, b], self.buffers.device)

    def order(self, n):
        return None
