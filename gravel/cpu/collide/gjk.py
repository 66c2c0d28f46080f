"""Scratch for ``gravel.formulas.gjk`` and what is built on it, one for each thread."""

import numpy as np
from numba import njit

from gravel.formulas.gjk import MOST_FACES, MOST_VERTICES, Work
from gravel.host.threads import ALLOCATING


@njit(**ALLOCATING)
def make_work():
    return Work(
        np.empty((4, 6)),
        np.empty(4),
        np.empty(4),
        np.empty((MOST_VERTICES, 6)),
        np.empty((MOST_FACES, 3), np.int64),
        np.empty((MOST_FACES, 4)),
        np.empty((MOST_FACES, 2), np.int64),
        np.empty((3, 64, 3)),
        np.empty(128, np.int64),
        np.empty(1024, np.int64),
        np.empty((512 + 64, 7)),
        np.empty(512, np.int32),
        np.empty((2, 4)),
        np.empty((2, 4)),
    )
