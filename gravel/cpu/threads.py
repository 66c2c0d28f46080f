"""Threads of the CPU engine: which threading layer Numba uses, and how many threads.

``omp`` starts a parallel region in a few microseconds, where Numba's other layers take a hundred times as long: the solver
starts hundreds of regions a step. It needs libgomp, which Linux brings; without it the engine runs, more slowly.
"""

import os
import warnings

import numba


def choose_layer():
    """Select the OpenMP layer unless the user chose one by NUMBA_THREADING_LAYER."""
    if "NUMBA_THREADING_LAYER" in os.environ:
        return
    try:
        from numba.np.ufunc import omppool  # noqa: F401
    except ImportError:
        warnings.warn("Numba's OpenMP threading layer is not available here; gravel runs, but more slowly on several threads", stacklevel=2)
        return
    numba.config.THREADING_LAYER = "omp"


def largest_thread_count():
    return numba.config.NUMBA_NUM_THREADS


def use_threads(n):
    if numba.get_num_threads() != n:
        numba.set_num_threads(n)
