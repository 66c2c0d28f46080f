"""Broad phase by a tree of boxes (bounding volume hierarchy), after paper 003, sections 3.2.2 to 3.2.4.

In: ``reach`` of each body and the arranged bodies. Out: candidate pairs, each once, in an order that no thread count changes.

- Order: bodies are sorted along a space-filling curve of their centres. Where the sizes differ, so do their places on the
  curve: the size counts as a fourth coordinate (an extended Morton code), or a boulder would swell the box of the grains
  around it. The frame of the curve is found from means, so bodies that are lost far away do not make its cells coarse.
- Tree: LEAF bodies that follow each other make a leaf, two neighbours make the node above, level by level to the root. Node k
  holds the nodes 2 k and 2 k + 1, so there are no pointers.
- Pairs: from a leaf up to the root, all nodes to the right of the path hold what comes after the leaf; those that overlap it
  are searched with a stack. Leaves thus meet each other once, and in the order of the bodies.
- Bodies far larger than the mean come after the others on the curve, so that each small body finds them, not they thousands of
  small ones: the lists of pairs are as long as the longest. Bodies without end (planes) come last and are in no tree: they are
  tested by their shape.
"""

import math

import numpy as np
from numba import njit, prange

from gravel.cpu.collide.grid import may_collide, may_touch, may_touch_huge
from gravel.host.arrays import CHUNK
from gravel.host.sort import radix_sort
from gravel.host.threads import INNER, Kernel
from gravel.shapes import BOX
from gravel.state import SHAPE

LEAF = 8  # bodies in a leaf; tiles hold whole leaves
SUBTREE = 256  # leaves of a part of the tree that one thread builds
BITS, AXIS_BITS = 29, 16  # of a place on the curve, and of one coordinate in it at most
SIZE_WEIGHT = 2.0  # a difference in reach separates bodies as one so many times as long in place
LARGE = 8.0  # times the mean reach
HAIR = 2e-15  # relative: some roundings of a double
SPREAD, ROUNDS = 6.0, 6  # mean deviations from the mean within which places are told apart; rounds to find them
FINITE = 1e300  # what lies further away is out of this world


def tree_rows(n):
    """How many boxes the tree of n bodies has; its root is in row 1."""
    return 2 * leaf_room(n)


def leaf_room(n):
    """Leaves of the tree of n bodies, a power of two; those past the end are empty."""
    room = 1
    while room * LEAF < n:
        room *= 2
    return room


leaf_room_of = njit(**INNER)(leaf_room)


# --- order


@njit(**INNER)
def sums_of_chunk(chunk, reach, frame, sums, low, high):
    """Of the coordinates x of the bodies within the frame: sums of x and of |x - mean|, least, most; and their number."""
    for k in range(4):
        sums[chunk, k], sums[chunk, 4 + k], low[chunk, k], high[chunk, k] = 0.0, 0.0, math.inf, -math.inf
    sums[chunk, 8] = 0.0
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, reach.shape[0])):
        inside = True
        for k in range(4):
            inside &= (reach[i, k] >= frame[0, k]) & (reach[i, k] <= frame[1, k])
        if not inside:
            continue
        sums[chunk, 8] += 1.0
        for k in range(4):
            x = reach[i, k]
            sums[chunk, k] += x
            sums[chunk, 4 + k] += abs(x - frame[2, k])
            low[chunk, k], high[chunk, k] = min(low[chunk, k], x), max(high[chunk, k], x)


@njit(**INNER)
def narrow_frame(turn, sums, low, high, frame):
    """The frame around the bodies that were summed up, within some mean deviations; True where it got much narrower. In the
    first turn there is only the mean, from which bodies deviate."""
    number, shrunk = max(sums[:, 8].sum(), 1.0), turn == 0
    for k in range(4):
        if turn == 0:
            frame[2, k] = sums[:, k].sum() / number
            continue
        lowest, highest = low[:, k].min(), high[:, k].max()
        frame[3, k] = sums[:, 4 + k].sum() / number
        frame[0, k] = max(lowest, frame[2, k] - SPREAD * frame[3, k])
        frame[1, k] = min(highest, frame[2, k] + SPREAD * frame[3, k])
        frame[2, k] = sums[:, k].sum() / number
        shrunk |= frame[1, k] - frame[0, k] < 0.5 * (highest - lowest)
    return shrunk


@njit(inline="always")  # so that its loop has threads where those of its callers have
def frame_of(reach):
    """The range in which most bodies lie, of x, y, z and reach: rows lowest, highest, mean, mean deviation."""
    chunks = (reach.shape[0] + CHUNK - 1) // CHUNK
    sums, low, high, frame = np.empty((chunks, 9)), np.empty((chunks, 4)), np.empty((chunks, 4)), np.zeros((4, 4))
    frame[0], frame[1] = -FINITE, FINITE
    if chunks == 0:
        return np.zeros((4, 4))
    for turn in range(ROUNDS):
        for chunk in prange(chunks):
            sums_of_chunk(np.int64(chunk), reach, frame, sums, low, high)
        if not narrow_frame(turn, sums, low, high, frame):
            break
    return frame


@njit(**INNER)
def split_axes(width, total, sequence):
    """Which coordinate each bit of a place divides, the widest cell side first; returns the number of bits."""
    used = np.zeros(4, np.int64)
    for bit in range(total):
        widest = -1
        for k in range(4):
            if used[k] < AXIS_BITS and width[k] > 0.0 and (widest < 0 or width[k] > width[widest]):
                widest = k
        if widest < 0:
            return bit
        sequence[bit] = widest
        used[widest] += 1
        width[widest] *= 0.5
    return total


@njit(**INNER)
def spread_bits(sequence, total, table):
    """table[k, 0 | 1, byte]: where the bits of the low or the high byte of coordinate k go in a place on the curve."""
    table[:] = 0
    place = np.zeros(4, np.int64)
    for bit in range(total - 1, -1, -1):  # from the finest
        k = sequence[bit]
        half, within = place[k] >> 3, place[k] & 7
        for byte in range(256):
            if (byte >> within) & 1:
                table[k, half, byte] |= 1 << (total - 1 - bit)
        place[k] += 1


@njit(**INNER)
def places_of_chunk(chunk, reach, low, scale, top, table, large, total, keys, count):
    """keys := place on the curve, of large bodies after all others; bodies without end come last."""
    finite = 0
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, keys.size)):
        if not reach[i, 3] < math.inf:
            keys[i] = 2 << total
            continue
        finite += 1
        place = (1 << total) if reach[i, 3] > large else 0
        for k in range(4):
            v = (reach[i, k] - low[k]) * scale[k]
            q = 0 if not v > 0.0 else (top[k] if v >= top[k] else np.int64(v))
            place |= table[k, 0, q & 255] | table[k, 1, q >> 8]
        keys[i] = place
    count[chunk] = finite


@Kernel
def sort_along_curve(reach, keys, order, spare):
    """Sort the bodies along the curve (``order``; ``keys``: their places); returns how many have an end."""
    chunks = (keys.size + CHUNK - 1) // CHUNK
    frame = frame_of(reach)
    width, scale, top = frame[1] - frame[0], np.zeros(4), np.zeros(4, np.int64)
    width[3] *= SIZE_WEIGHT
    sequence, table = np.empty(BITS, np.int64), np.empty((4, 2, 256), np.int64)
    total = split_axes(width, BITS, sequence)
    spread_bits(sequence, total, table)
    for k in range(4):
        cells = 1
        for bit in range(total):
            cells *= 2 if sequence[bit] == k else 1
        top[k] = cells - 1
        scale[k] = cells / (frame[1, k] - frame[0, k]) if cells > 1 else 0.0
    count = np.zeros(chunks, np.int64)
    for chunk in prange(chunks):
        places_of_chunk(np.int64(chunk), reach, frame[0], scale, top, table, LARGE * frame[2, 3], total, keys, count)
    radix_sort(keys, 2 << total, order, spare)
    return count.sum()


# --- tree


@njit(**INNER)
def lower_end(x, h):
    """Lower end of a body at x that reaches h far, a hair below: bodies that touch up to rounding have bounds that overlap."""
    return x - h - HAIR * (abs(x) + h)


@njit(**INNER)
def upper_end(x, h):
    return x + h + HAIR * (abs(x) + h)


@njit(**INNER)
def half_of(i, reach, half, balls):
    """Half extents of the box of arranged body i."""
    if balls:
        return reach[i, 3], reach[i, 3], reach[i, 3]
    return half[i, 0], half[i, 1], half[i, 2]


@njit(**INNER)
def merge(boxes, node):
    """The box of a node from the two below."""
    a, b = 2 * node, 2 * node + 1
    for k in range(3):
        boxes[node, k] = min(boxes[a, k], boxes[b, k])
        boxes[node, 3 + k] = max(boxes[a, 3 + k], boxes[b, 3 + k])


@njit(**INNER)
def box_of_leaf(leaf, node, n, reach, half, balls, boxes):
    lx, ly, lz, hx, hy, hz = math.inf, math.inf, math.inf, -math.inf, -math.inf, -math.inf
    for i in range(leaf * LEAF, min((leaf + 1) * LEAF, n)):
        x, y, z = half_of(i, reach, half, balls)
        lx, ly, lz = min(lx, lower_end(reach[i, 0], x)), min(ly, lower_end(reach[i, 1], y)), min(lz, lower_end(reach[i, 2], z))
        hx, hy, hz = max(hx, upper_end(reach[i, 0], x)), max(hy, upper_end(reach[i, 1], y)), max(hz, upper_end(reach[i, 2], z))
    boxes[node, 0], boxes[node, 1], boxes[node, 2] = lx, ly, lz
    boxes[node, 3], boxes[node, 4], boxes[node, 5] = hx, hy, hz


@njit(**INNER)
def build_subtree(part, room, leaves, n, reach, half, balls, boxes):
    """Leaves of one part of the tree, and what is above them up to the root of the part."""
    first, last = room + part * leaves, room + (part + 1) * leaves
    for node in range(first, last):
        box_of_leaf(node - room, node, n, reach, half, balls, boxes)
    while last - first > 1:
        first, last = first // 2, last // 2
        for node in range(first, last):
            merge(boxes, node)


@njit(inline="always")  # so that its loop has threads where those of its callers have
def build_tree(n, reach, half, balls, boxes):
    """Boxes of all nodes over the first n arranged bodies."""
    room = leaf_room_of(n)
    leaves = min(room, SUBTREE)
    for part in prange(room // leaves):
        build_subtree(np.int64(part), room, leaves, n, reach, half, balls, boxes)
    for node in range(room // leaves - 1, 0, -1):
        merge(boxes, node)


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
def near(i, j, reach, half, extent, tag, quaternion, balls):
    """Whether the bounds of two bodies in the tree overlap. Among balls, boxes are tested by their shape: all that is known
    of them there is the ball around them, and a floor's holds everything."""
    if not may_touch(i, j, reach, half, balls):
        return False
    if not balls or (tag[i, SHAPE] != BOX and tag[j, SHAPE] != BOX):
        return True
    if tag[j, SHAPE] != BOX:
        i, j = j, i
    return may_touch_huge(i, j, reach, half, extent, tag, quaternion, balls)


@njit(**INNER)
def gather(leaf, later, number, in_tree, room, boxes, reach, half, balls, ids, others):
    """Bodies that those of a leaf may touch: first its own, then those of later leaves that overlap its box. ``ids`` and
    ``others`` (4, ...) := their places in the order and their reach; returns how many."""
    box = box_at(boxes, room + leaf)
    flat, sizes = reach.reshape(-1), reach.reshape(-1) if balls else half.reshape(-1)
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


@njit(**INNER)
def pairs_of_tile(tile, arranged, in_tree, boxes, ignored, tile_size, capacity, balls, pairs):
    n, room = arranged.order.size, leaf_room_of(in_tree)
    reach, half, extent, tag, quaternion = arranged.reach, arranged.half, arranged.extent, arranged.tag, arranged.quaternion
    pair_a, pair_b, end, found = pairs.a, pairs.b, (tile + 1) * capacity, tile * capacity
    stack, later = np.empty(64, np.int64), np.empty(room, np.int32)
    ids, others, flags = np.empty(1024, np.int32), np.empty((4, 1024)), np.empty(1024, np.bool_)
    for begin in range(tile * tile_size, min((tile + 1) * tile_size, n), LEAF):
        count = 0
        if begin < in_tree:
            number = later_leaves(begin // LEAF, room, boxes, stack, later)
            most = LEAF * (number + 1)
            if most > ids.size:
                ids, others, flags = np.empty(2 * most, np.int32), np.empty((4, 2 * most)), np.empty(2 * most, np.bool_)
            count = gather(begin // LEAF, later, number, in_tree, room, boxes, reach, half, balls, ids, others)
        x, y, z, r = others[0], others[1], others[2], others[3]
        for i in range(begin, min(begin + LEAF, n)):
            first = i - begin + 1
            last = count if i < in_tree else first
            flag_near(reach[i, 0], reach[i, 1], reach[i, 2], reach[i, 3], x, y, z, r, first, last, flags)
            for m in range(first, last):
                if flags[m] and near(i, ids[m], reach, half, extent, tag, quaternion, balls) and may_collide(i, ids[m], tag, ignored):
                    if found < end:
                        pair_a[found], pair_b[found] = i, ids[m]
                    found += 1
            for j in range(max(in_tree, i + 1), n):
                if may_touch_huge(i, j, reach, half, extent, tag, quaternion, balls) and may_collide(i, j, tag, ignored):
                    if found < end:
                        pair_a[found], pair_b[found] = i, j
                    found += 1
    pairs.count[tile] = found - tile * capacity


@Kernel
def find_pairs(arranged, in_tree, boxes, ignored, tile_size, capacity, balls, pairs):
    """Build the tree (``boxes``) over the bodies that have an end and fill the pairs of each tile; returns the largest count,
    which above the capacity tells that a tile did not fit."""
    build_tree(in_tree, arranged.reach, arranged.half, balls, boxes)
    for tile in prange(pairs.count.size):
        pairs_of_tile(np.int64(tile), arranged, in_tree, boxes, ignored, tile_size, capacity, balls, pairs)
    return pairs.count.max()
