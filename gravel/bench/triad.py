"""The speed of memory: a(i) = b(i) + s c(i) over arrays that no cache holds."""

import numpy as np
from numba import njit, prange

from gravel.bench.collide import best
from gravel.host.threads import PARALLEL


@njit(parallel=PARALLEL, nogil=True, cache=True)
def triad_kernel(a, b, c, s):
    for i in prange(a.size):
        a[i] = b[i] + s * c[i]


def triad(n=16_000_000):
    """Bytes per second of a triad in single precision, three arrays."""
    a, b, c = (np.ones(n, np.float32) for _ in range(3))
    triad_kernel(a, b, c, np.float32(2))
    return 12 * n / best(lambda: triad_kernel(a, b, c, np.float32(2)), 5)
