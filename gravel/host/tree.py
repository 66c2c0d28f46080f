"""A tree of boxes over bodies (bounding volume hierarchy), after paper 003, sections 3.2.2 to 3.2.4: for broad phases and rays.

In: ``sphere`` of each body, centre and radius. Out: their order along a space-filling curve, and the boxes of the tree's nodes.

- Order: bodies are sorted along a space-filling curve of their centres. Where the sizes differ, so do their places on the
  curve: the size counts as a fourth coordinate (an extended Morton code), or a boulder would swell the box of the grains
  around it. The frame of the curve is found from means, so bodies that are lost far away do not make its cells coarse.
- Tree: LEAF bodies that follow each other make a leaf, two neighbours make the node above, level by level to the root. Node k
  holds the nodes 2 k and 2 k + 1, so there are no pointers.
- Bodies far larger than the mean come after the others on the curve, so that each small body finds them, not they thousands of
  small ones: the lists of pairs are as long as the longest. Bodies without end (planes) come last and are in no tree.
"""

import math

import numpy as np
from numba import njit, prange

from gravel.host.arrays import CHUNK
from gravel.host.sort import radix_sort
from gravel.host.threads import ALLOCATING, INNER, Kernel

LEAF = 8  # bodies in a leaf; tiles hold whole leaves
SUBTREE = 256  # leaves of a part of the tree that one thread builds
BITS, AXIS_BITS = 29, 16  # of a code along the curve, and of one coordinate in it at most
SIZE_WEIGHT = 2.0  # a difference in radius separates bodies as one in position so many times as long
LARGE = 8.0  # times the mean radius
HAIR = 2e-15  # relative: some roundings of a double
SPREAD, ROUNDS = 6.0, 6  # mean deviations from the mean within which codes differ; rounds to find them
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
def sums_of_chunk(chunk, sphere, frame, sums, low, high):
    """Of the coordinates x of the bodies within the frame: sums of x and of |x - mean|, least, most; and their number."""
    for k in range(4):
        sums[chunk, k], sums[chunk, 4 + k], low[chunk, k], high[chunk, k] = 0.0, 0.0, math.inf, -math.inf
    sums[chunk, 8] = 0.0
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, sphere.shape[0])):
        inside = True
        for k in range(4):
            inside &= (sphere[i, k] >= frame[0, k]) & (sphere[i, k] <= frame[1, k])
        if not inside:
            continue
        sums[chunk, 8] += 1.0
        for k in range(4):
            x = sphere[i, k]
            sums[chunk, k] += x
            sums[chunk, 4 + k] += abs(x - frame[2, k])
            low[chunk, k], high[chunk, k] = min(low[chunk, k], x), max(high[chunk, k], x)


@njit(**ALLOCATING)
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
def frame_of(sphere):
    """The range in which most bodies lie, of x, y, z and radius: rows lowest, highest, mean, mean deviation."""
    chunks = (sphere.shape[0] + CHUNK - 1) // CHUNK
    sums, low, high, frame = np.empty((chunks, 9)), np.empty((chunks, 4)), np.empty((chunks, 4)), np.zeros((4, 4))
    frame[0], frame[1] = -FINITE, FINITE
    if chunks == 0:
        return np.zeros((4, 4))
    for turn in range(ROUNDS):
        for chunk in prange(chunks):
            sums_of_chunk(np.int64(chunk), sphere, frame, sums, low, high)
        if not narrow_frame(turn, sums, low, high, frame):
            break
    return frame


@njit(**ALLOCATING)
def split_axes(width, total, sequence):
    """Which coordinate each bit of a code divides, the widest cell side first; returns the number of bits."""
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


@njit(**ALLOCATING)
def spread_bits(sequence, total, table):
    """table[k, 0 | 1, byte]: where the bits of the low or the high byte of coordinate k go in a code along the curve."""
    table[:] = 0
    code = np.zeros(4, np.int64)
    for bit in range(total - 1, -1, -1):  # from the finest
        k = sequence[bit]
        half, within = code[k] >> 3, code[k] & 7
        for byte in range(256):
            if (byte >> within) & 1:
                table[k, half, byte] |= 1 << (total - 1 - bit)
        code[k] += 1


@njit(**INNER)
def codes_of_chunk(chunk, sphere, low, scale, top, table, large, total, keys, count):
    """keys := code along the curve, of large bodies after all others; bodies without end come last."""
    finite = 0
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, keys.size)):
        if not sphere[i, 3] < math.inf:
            keys[i] = 2 << total
            continue
        finite += 1
        code = (1 << total) if sphere[i, 3] > large else 0
        for k in range(4):
            v = (sphere[i, k] - low[k]) * scale[k]
            q = 0 if not v > 0.0 else (top[k] if v >= top[k] else np.int64(v))
            code |= table[k, 0, q & 255] | table[k, 1, q >> 8]
        keys[i] = code
    count[chunk] = finite


@Kernel
def sort_along_curve(sphere, keys, order, spare):
    """Sort the bodies along the curve (``order``; ``keys``: their codes); returns how many have an end."""
    chunks = (keys.size + CHUNK - 1) // CHUNK
    frame = frame_of(sphere)
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
        codes_of_chunk(np.int64(chunk), sphere, frame[0], scale, top, table, LARGE * frame[2, 3], total, keys, count)
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
def half_of(i, sphere, half, balls):
    """Half extents of the box of proxy i."""
    if balls:
        return sphere[i, 3], sphere[i, 3], sphere[i, 3]
    return half[i, 0], half[i, 1], half[i, 2]


@njit(**INNER)
def merge(boxes, node):
    """The box of a node from the two below."""
    a, b = 2 * node, 2 * node + 1
    for k in range(3):
        boxes[node, k] = min(boxes[a, k], boxes[b, k])
        boxes[node, 3 + k] = max(boxes[a, 3 + k], boxes[b, 3 + k])


@njit(**INNER)
def box_of_leaf(leaf, node, n, sphere, half, balls, boxes):
    lx, ly, lz, hx, hy, hz = math.inf, math.inf, math.inf, -math.inf, -math.inf, -math.inf
    for i in range(leaf * LEAF, min((leaf + 1) * LEAF, n)):
        x, y, z = half_of(i, sphere, half, balls)
        lx, ly, lz = min(lx, lower_end(sphere[i, 0], x)), min(ly, lower_end(sphere[i, 1], y)), min(lz, lower_end(sphere[i, 2], z))
        hx, hy, hz = max(hx, upper_end(sphere[i, 0], x)), max(hy, upper_end(sphere[i, 1], y)), max(hz, upper_end(sphere[i, 2], z))
    boxes[node, 0], boxes[node, 1], boxes[node, 2] = lx, ly, lz
    boxes[node, 3], boxes[node, 4], boxes[node, 5] = hx, hy, hz


@njit(**INNER)
def build_subtree(part, room, leaves, n, sphere, half, balls, boxes):
    """Leaves of one part of the tree, and what is above them up to the root of the part."""
    first, last = room + part * leaves, room + (part + 1) * leaves
    for node in range(first, last):
        box_of_leaf(node - room, node, n, sphere, half, balls, boxes)
    while last - first > 1:
        first, last = first // 2, last // 2
        for node in range(first, last):
            merge(boxes, node)


@njit(inline="always")  # so that its loop has threads where those of its callers have
def build_tree(n, sphere, half, balls, boxes):
    """Boxes of all nodes over the first n proxies."""
    room = leaf_room_of(n)
    leaves = min(room, SUBTREE)
    for part in prange(room // leaves):
        build_subtree(np.int64(part), room, leaves, n, sphere, half, balls, boxes)
    for node in range(room // leaves - 1, 0, -1):
        merge(boxes, node)
