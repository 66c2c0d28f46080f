"""Tree broad phase for bodies of very different sizes: Warp's bounding volume hierarchy, built on the device.

A pair belongs to the smaller of its bodies, so that no body, however large, has many; the partners of a body are brought into the order
of the rows, whatever the tree looks like.
"""

import warp as wp

from gravel.gpu.collide.near import has_kept_all, keep_partner, may_collide, may_meet, may_touch_huge
from gravel.gpu.launch import run, scan
from gravel.gpu.structs import Proxies

wp.set_module_options({"enable_backward": False, "max_unroll": 0})
ROUNDED = 1e-6  # of its coordinates, that a box is wider than its body


@wp.kernel
def find_boxes(
    proxies: Proxies,
    lower: wp.array(dtype=wp.vec3),
    upper: wp.array(dtype=wp.vec3),
    endless: wp.array(dtype=int),
):
    """Boxes of the bodies; endless ones (planes) get an empty box and are listed in order later."""
    i = wp.tid()
    r = float(proxies.sphere[i, 3])
    low, high = wp.vec3(), wp.vec3()
    for k in range(3):
        x = float(proxies.sphere[i, k])
        h = r
        if proxies.half.shape[0] > 0:
            h = float(proxies.half[i, k])
        hair = ROUNDED * (wp.abs(x) + h)
        low[k] = x - h - hair
        high[k] = x + h + hair
    endless[i] = 0
    if not wp.isfinite(r) or not wp.isfinite(low[0] + low[1] + low[2]):
        low, high = wp.vec3(), wp.vec3()
        endless[i] = 1
    lower[i] = low
    upper[i] = high


@wp.kernel
def list_endless(endless: wp.array(dtype=int), before: wp.array(dtype=int), listed: wp.array(dtype=int)):
    i = wp.tid()
    if endless[i] > 0:
        listed[before[i]] = i


@wp.func
def comes_first(i: int, j: int, proxies: Proxies):
    """Whether the pair belongs to i: the smaller, or the first of two equals."""
    ri, rj = proxies.sphere[i, 3], proxies.sphere[j, 3]
    return ri < rj or (ri == rj and i < j)


@wp.func
def sort_partners(begin: int, end: int, b: wp.array(dtype=int)):
    """Partners in the order of the rows, whatever the tree looks like."""
    for k in range(begin + 1, end):
        j = int(b[k])
        p = int(k)
        while p > begin and b[wp.max(p - 1, 0)] > j:
            b[p] = b[p - 1]
            p -= 1
        b[p] = j


@wp.kernel
def find_pairs(
    proxies: Proxies,
    tree: wp.uint64,
    lower: wp.array(dtype=wp.vec3),
    upper: wp.array(dtype=wp.vec3),
    is_endless: wp.array(dtype=int),
    endless: wp.array(dtype=int),
    ignored: wp.array2d(dtype=wp.uint8),
    found: wp.array(dtype=int),
    near: wp.array2d(dtype=int),
    first: wp.array(dtype=int),
    a: wp.array(dtype=int),
    b: wp.array(dtype=int),
):
    i = wp.tid()
    if has_kept_all(i, found[i], near, first, a, b):
        sort_partners(first[i], first[i + 1], b)
        return
    count = int(0)
    if is_endless[i] == 0:
        query = wp.bvh_query_aabb(tree, lower[i], upper[i])
        j = int(0)
        while wp.bvh_query_next(query, j):
            if j != i and is_endless[j] == 0:
                if comes_first(i, j, proxies):
                    if may_meet(i, j, proxies, ignored):
                        keep_partner(i, j, count, near, first, a, b)
                        count += 1
        for p in range(endless.shape[0]):
            j = endless[p]
            if may_collide(i, j, proxies, ignored):
                if may_touch_huge(i, j, proxies):
                    keep_partner(i, j, count, near, first, a, b)
                    count += 1
    found[i] = count
    if a.shape[0] > 0:
        sort_partners(first[i], first[i + 1], b)


class Tree:
    """The tree of a detector. It is built when bodies have come or gone, and follows them in between until it has aged."""

    AGE = 32  # steps

    def __init__(self, buffers):
        self.buffers, self.tree, self.age = buffers, None, 0

    def sort(self, proxies, n):
        array, device = self.buffers.array, self.buffers.device
        if self.tree is None or self.lower.shape[0] != n:
            self.lower, self.upper = (wp.zeros(n, dtype=wp.vec3, device=device) for _ in range(2))
            self.tree = None
        flag, before = array("endless", n, dtype=wp.int32), array("endless_before", n + 1, dtype=wp.int32)
        run(find_boxes, n, [proxies, self.lower, self.upper, flag], device)
        before.zero_()
        scan(flag, before)
        self.endless = array("endless_list", int(before[n:].numpy()[0]), dtype=wp.int32)
        run(list_endless, n, [flag, before, self.endless], device)
        if n == 0:
            return
        if self.tree is None or self.age >= self.AGE:
            self.tree, self.age = wp.Bvh(self.lower, self.upper), 0
        else:
            self.tree.refit()
        self.age += 1

    def find(self, proxies, n, ignored, *out):
        if n == 0:
            return
        boxes = self.lower, self.upper, self.buffers.array("endless", n, dtype=wp.int32), self.endless
        run(find_pairs, n, [proxies, self.tree.id, *boxes, ignored, *out], self.buffers.device)

    def order(self, n):
        return None
