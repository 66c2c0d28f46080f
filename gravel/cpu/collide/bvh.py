"""Broad phase by a tree of boxes (bounding volume hierarchy), after paper 003, sections 3.2.2 to 3.2.4.

In: the proxies and their tree (``gravel.host.tree``). Out: candidate pairs, each once, in an order that no thread count changes.

- Pairs: from a leaf up to the root, all nodes to the right of the path hold what comes after the leaf; those that overlap it
  are searched with a stack. Leaves thus meet each other once, and in the order of the bodies.
- Bodies without end (planes) are in no tree: they are tested by their shape.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.cpu.collide.grid import may_collide, may_touch, may_touch_huge
from gravel.formulas.bounds import MOVES
from gravel.host.threads import ALLOCATING, INNER, Kernel
from gravel.host.tree import LEAF, build_tree, leaf_room_of, lower_end, upper_end
from gravel.shapes import BOX, SPHERE
from gravel.state import SHAPE

# --- pairs


@njit(**INNER)
def overlaps(boxes, k, box):
    """Whether node k overlaps a box (lowest, highest corner); one branch, for it cannot be foreseen which side is apart."""
    k = np.uint64(k)
    below = (boxes[k, 0] <= box[3]) & (boxes[k, 1] <= box[4]) & (boxes[k, 2] <= box[5])
    above = (box[0] <= boxes[k, 3]) & (box[1] <= boxes[k, 4]) & (box[2] <= boxes[k, 5])
    return below & above


@njit(**INNER)
def box_at(boxes, k):
    return boxes[k, 0], boxes[k, 1], boxes[k, 2], boxes[k, 3], boxes[k, 4], boxes[k, 5]


@njit(**INNER)
def later_leaves(leaf, room, boxes, stack, later):
    """Leaves after this one that overlap it, in their order; returns how many."""
    node, found = room + leaf, 0
    box = box_at(boxes, node)
    while node > 1:
        if node & 1 == 0 and overlaps(boxes, node + 1, box):
            stack[0] = node + 1
            top = 1
            while top > 0:
                top -= 1
                k = stack[top]
                if k >= room:
                    later[found] = k - room
                    found += 1
                    continue
                k *= 2
                if overlaps(boxes, k + 1, box):
                    stack[top] = k + 1
                    top += 1
                if overlaps(boxes, k, box):
                    stack[top] = k
                    top += 1
        node >>= 1
    return found


@njit(**INNER)
def near(i, j, sphere, half, extent, tag, quaternion, balls):
    """Whether the bounds of two bodies in the tree overlap. Among balls, boxes are tested by their shape: all that is known
    of them there is the ball around them, and a floor's holds everything."""
    if not may_touch(i, j, sphere, half, balls):
        return False
    if not balls or (tag[i, SHAPE] != BOX and tag[j, SHAPE] != BOX):
        return True
    if tag[j, SHAPE] != BOX:
        i, j = j, i
    return may_touch_huge(i, j, sphere, half, extent, tag, quaternion, balls)


@njit(**INNER)
def gather(leaf, later, number, in_tree, room, boxes, sphere, half, balls, ids, others):
    """Bodies that those of a leaf may touch: first its own, then those of later leaves that overlap its box. ``ids`` and
    ``others`` (4, ...) := their spheres; returns how many."""
    box = box_at(boxes, room + leaf)
    flat, sizes = sphere.reshape(-1), sphere.reshape(-1) if balls else half.reshape(-1)
    stride, offset, step = np.uint64(4 if balls else 3), np.uint64(3 if balls else 0), np.uint64(0 if balls else 1)
    count = 0
    for m in range(-1, number):
        first = LEAF * (leaf if m < 0 else np.int64(later[m]))
        for j in range(np.uint64(first), np.uint64(min(first + LEAF, in_tree))):
            k, h = j * np.uint64(4), j * stride + offset
            x, y, z, r = flat[k], flat[k + np.uint64(1)], flat[k + np.uint64(2)], flat[k + np.uint64(3)]
            hx, hy, hz = sizes[h], sizes[h + step], sizes[h + np.uint64(2) * step]
            apart = (lower_end(x, hx) > box[3]) | (lower_end(y, hy) > box[4]) | (lower_end(z, hz) > box[5])
            apart |= (upper_end(x, hx) < box[0]) | (upper_end(y, hy) < box[1]) | (upper_end(z, hz) < box[2])
            ids[count] = j
            others[0, count], others[1, count], others[2, count], others[3, count] = x, y, z, r
            count += m < 0 or not apart
    return count


@njit(**INNER)
def flag_near(x, y, z, r, others_x, others_y, others_z, others_r, first, last, flags):
    """flags := whether the balls around bodies overlap that of one; a loop of its own, which the compiler turns into vectors."""
    for m in range(np.uint64(first), np.uint64(last)):
        dx, dy, dz, limit = others_x[m] - x, others_y[m] - y, others_z[m] - z, others_r[m] + r
        flags[m] = dx * dx + dy * dy + dz * dz <= limit * limit


class Gathered(NamedTuple):
    """Bodies that those of a leaf may touch."""

    ids: np.ndarray  # which
    others: np.ndarray  # (4, ...) their spheres
    flags: np.ndarray  # room for a mark each
    count: int


@njit(**INNER)
def is_plain(first, last, tag):
    """Whether distance alone decides on pairs of these bodies, if groups do not: balls that can move."""
    plain = True
    for i in range(first, last):
        plain &= (tag[i, SHAPE] == SPHERE) & (tag[i, MOVES] > 0)
    return plain


@njit(**INNER)
def pairs_of_leaf(begin, gathered, proxies, in_tree, ignored, plain, balls, pairs, found, end):
    """Pairs of the bodies of a leaf with those that were gathered around it, and with those without end; returns the number of pairs so
    far, even those that had no room."""
    ids, others, flags, count = gathered.ids, gathered.others, gathered.flags, gathered.count
    pair_a, pair_b = pairs.a, pairs.b
    sphere, half, extent, tag, quaternion = proxies.sphere, proxies.half, proxies.extent, proxies.tag, proxies.quaternion
    x, y, z, r, n = others[0], others[1], others[2], others[3], proxies.order.size
    for i in range(begin, min(begin + LEAF, n)):
        first = i - begin + 1
        last = count if i < in_tree else first
        flag_near(sphere[i, 0], sphere[i, 1], sphere[i, 2], sphere[i, 3], x, y, z, r, first, last, flags)
        if plain and found + last - first <= end:
            at = np.uint64(found)
            for m in range(np.uint64(first), np.uint64(last)):  # each is written, and the next one over it unless the two touch
                pair_a[at], pair_b[at] = i, ids[m]
                at += np.uint64(flags[m])
            found = np.int64(at)
        else:
            for m in range(first, last):
                if flags[m] and near(i, ids[m], sphere, half, extent, tag, quaternion, balls) and may_collide(i, ids[m], tag, ignored):
                    if found < end:
                        pair_a[found], pair_b[found] = i, ids[m]
                    found += 1
        for j in range(max(in_tree, i + 1), n):
            if may_touch_huge(i, j, sphere, half, extent, tag, quaternion, balls) and may_collide(i, j, tag, ignored):
                if found < end:
                    pair_a[found], pair_b[found] = i, j
                found += 1
    return found


@njit(**ALLOCATING)
def pairs_of_tile(tile, proxies, in_tree, boxes, ignored, plain, tile_size, capacity, balls, pairs):
    n, room, end, found = proxies.order.size, leaf_room_of(in_tree), (tile + 1) * capacity, tile * capacity
    stack, later = np.empty(64, np.int64), np.empty(room, np.int32)
    ids, others, flags = np.empty(1024, np.int32), np.empty((4, 1024)), np.empty(1024, np.bool_)
    for begin in range(tile * tile_size, min((tile + 1) * tile_size, n), LEAF):
        count = 0
        if begin < in_tree:
            number = later_leaves(begin // LEAF, room, boxes, stack, later)
            most = LEAF * (number + 1)
            if most > ids.size:
                ids, others, flags = np.empty(2 * most, np.int32), np.empty((4, 2 * most)), np.empty(2 * most, np.bool_)
            count = gather(begin // LEAF, later, number, in_tree, room, boxes, proxies.sphere, proxies.half, balls, ids, others)
        gathered = Gathered(ids, others, flags, count)
        found = pairs_of_leaf(begin, gathered, proxies, in_tree, ignored, plain, balls, pairs, found, end)
    pairs.count[tile] = found - tile * capacity


@Kernel
def find_pairs(proxies, in_tree, boxes, ignored, tile_size, capacity, balls, pairs):
    """Build the tree (``boxes``) over the bodies that have an end and fill the pairs of each tile; returns the largest count,
    which above the capacity tells that a tile did not fit."""
    build_tree(in_tree, proxies.sphere, proxies.half, balls, boxes)
    tiles = pairs.count.size
    plain_tiles = np.empty(tiles, np.bool_)
    for tile in prange(tiles):
        plain_tiles[tile] = is_plain(tile * tile_size, min((tile + 1) * tile_size, in_tree), proxies.tag)
    plain = balls and plain_tiles.all() and not ignored.any()
    for tile in prange(tiles):
        pairs_of_tile(np.int64(tile), proxies, in_tree, boxes, ignored, plain, tile_size, capacity, balls, pairs)
    return pairs.count.max()
