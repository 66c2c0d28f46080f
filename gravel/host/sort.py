"""Order of bodies along the cells: a stable radix sort of integer keys.

In: keys (n,), int32, non-negative. Out: ``order`` such that keys[order] ascends, equal keys in their first order.
The work is cut into chunks of fixed size, so the result and the rounding of nothing depend on the number of threads.
"""

import numpy as np
from numba import njit, prange

from gravel.host.threads import INNER

CHUNK = 16384
BITS = 12


@njit(**INNER)
def insertion_sort(keys, order):
    for i in range(keys.size):
        k = i
        while k > 0 and keys[order[k - 1]] > keys[i]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = i


@njit(inline="always")  # so that its loops have threads where those of its callers have
def radix_sort(keys, largest, order, spare):
    """``order`` := stable sorting permutation of keys, all <= largest; ``spare`` is scratch of the same size."""
    n = keys.size
    if n <= 64:
        insertion_sort(keys, order)
        return
    chunks = (n + CHUNK - 1) // CHUNK
    passes = 1
    while (largest >> (BITS * passes)) > 0:
        passes += 1
    bits = 1
    while (largest >> (bits * passes)) > 0:
        bits += 1
    buckets = 1 << bits
    histogram = np.empty((chunks, buckets), np.int32)
    source, target = spare, order
    for i in range(n):
        source[i] = i
    for step in range(passes):
        shift, mask = bits * step, buckets - 1
        for chunk in prange(chunks):
            row = histogram[chunk]
            row[:] = 0
            for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, n)):
                row[(keys[source[i]] >> shift) & mask] += 1
        total = 0
        for bucket in range(buckets):
            for chunk in range(chunks):
                count = histogram[chunk, bucket]
                histogram[chunk, bucket] = total
                total += count
        for chunk in prange(chunks):
            row = histogram[chunk]
            for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, n)):
                bucket = (keys[source[i]] >> shift) & mask
                target[row[bucket]] = source[i]
                row[bucket] += 1
        source, target = target, source
    if passes % 2 == 0:
        for i in range(n):
            order[i] = spare[i]
