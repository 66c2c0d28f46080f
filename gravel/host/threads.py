"""Threads of the CPU engine: which threading layer Numba uses, and how many threads.

``omp`` starts a parallel region in a few microseconds, where Numba's other layers take a hundred times as long: the solver
starts hundreds of regions a step. It needs libgomp, which Linux brings; without it the engine runs, more slowly.

Kernels come in two parts: a plain function for one tile or chunk, and a driver of a few lines that runs it for all of them
in parallel. Numba drops writes to arrays inside named tuples when they stand in the parallel loop itself.

A process that is forked off one whose threads have started has none of them, and OpenMP cannot start others there: such a process
runs on one thread, in the forms of the kernels that know nothing of threads. The bits are the same.
"""

import os
import time
import types
import warnings
from concurrent.futures import ThreadPoolExecutor

import numba
from numba import njit

from gravel.interrupts import DeferInterrupt

try:
    import resource
except ImportError:  # no such counter on this system
    resource = None  # type: ignore[assignment]

# Loops run in parallel only where they say so (prange); array expressions do not. That more than halves the compile time.
PARALLEL = {
    name: name == "prange" for name in ("comprehension", "prange", "numpy", "inplace_binop", "reduction", "setitem", "stencil", "fusion")
}

# Functions that only other compiled functions call need no entry for Python: that saves a tenth of the compile time. ``ALLOCATING`` is for
# those that make arrays, or get new ones from others. All others are ``INNER``: they do not count who holds which array. Numba's counters
# are atomic and shared by all threads, and in loops over bodies they took longer than the work.
ALLOCATING = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": True}
INNER = {**ALLOCATING, "_nrt": False}


def named(*words):
    """Give a function that a factory makes a name of its own.

    Numba links compiled functions by their names and a number that counts within the process that compiled them. Two functions
    of one name that come from the cache, compiled by two processes, may have one number too: then one is run in place of the other."""

    def rename(function):
        function.__name__ = function.__qualname__ = "_".join([function.__name__, *map(str, words)])
        return function

    return rename


class Kernel:
    """A compiled function in two forms, with threads and without; each is compiled when it is first called. Small scenes run on one
    thread: the form without threads compiles in two thirds of the time and starts at once."""

    one_thread = True  # which form is called; see ``use_threads``
    forked = False  # whether this process was forked off one whose threads had started

    def __init__(self, function):
        serial = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
        serial.__qualname__, serial.__doc__ = function.__qualname__, function.__doc__
        self.name, self.__doc__ = function.__name__, function.__doc__
        self.serial = njit(nogil=True, error_model="numpy", cache=True)(named("serial")(serial))
        self.parallel = njit(parallel=PARALLEL, nogil=True, error_model="numpy", cache=True)(function)

    def __call__(self, *arguments):
        return (self.serial if Kernel.one_thread else self.parallel)(*arguments)


SMALL = 1500  # bodies: below, starting threads takes longer than it saves


def choose_layer():
    """Select the OpenMP layer unless the user chose one by NUMBA_THREADING_LAYER."""
    if "NUMBA_THREADING_LAYER" in os.environ:
        return
    # A thread that waits for work spins for a few microseconds, then sleeps. Without this it spins for milliseconds, and on a
    # busy machine each of the many short parallel regions waits for a whole time slice of another process.
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")
    try:
        from numba.np.ufunc import omppool  # noqa: F401
    except ImportError:
        warnings.warn("Numba's OpenMP threading layer is not available here; gravel runs, but more slowly on several threads", stacklevel=2)
        return
    numba.config.THREADING_LAYER = "omp"


def layer():
    return numba.config.THREADING_LAYER


class AdaptiveThreadCount:
    """How many threads to use on a busy machine. Threads that work in step wait for the slowest: where another process has taken a
    core, all of them wait for its time slice, hundreds of times a step, and one thread alone would be ten times as fast.

    The operating system counts how often it took a core away from us, and how long we had one. Where it is often and our threads
    had much less than their number of cores, half the threads are left; after a while all of them are tried again, and after a
    longer one each time that this fails. Results do not depend on it. (Measured on 2 cores, 2 threads: alone 32 times a second and
    1.97 cores, beside one busy process 100 to 140 times and 1.0 cores.)"""

    OFTEN = 30.0  # times a second and thread
    LITTLE = 0.8  # of the cores that our threads could use
    WINDOW = 0.25  # s, at least, between two looks
    PATIENCE = 0.5, 30.0  # s until all threads are tried again: at first, and at most

    def __init__(self):
        self.share, self.patience = 1.0, self.PATIENCE[0]
        self.look_again, self.since, self.usage = 0.0, time.perf_counter(), self._usage()

    def threads(self, n):
        """How many of n threads to use now."""
        now = time.perf_counter()
        if now - self.since >= self.WINDOW:
            (taken, had), wall, used = self._usage(), now - self.since, max(1, int(self.share * n))
            crowded = taken - self.usage[0] > self.OFTEN * used * wall and had - self.usage[1] < self.LITTLE * used * wall
            self.since, self.usage = now, (taken, had)
            if crowded and used > 1:
                self.share, self.look_again = 0.5 * self.share, now + self.patience
                self.patience = min(2.0 * self.patience, self.PATIENCE[1])
            elif self.share < 1.0 and now > self.look_again:
                self.share = 1.0
            elif self.share == 1.0 and now > self.look_again + self.PATIENCE[0]:
                self.patience = self.PATIENCE[0]
        return max(1, int(self.share * n))

    @staticmethod
    def _usage():
        """How often a core was taken away from us, and s of cores that we had."""
        if resource is None:
            return 0, 0.0
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_nivcsw, usage.ru_utime + usage.ru_stime


thread_count = AdaptiveThreadCount()


def use_threads(n, threaded=True):
    """Run with n threads from here on, and with the kernels' form that has threads or the other, which has one; in a forked process
    without."""
    Kernel.one_thread = Kernel.forked or not threaded
    if Kernel.one_thread:
        return
    n = thread_count.threads(n) if n > 1 else n
    with DeferInterrupt():  # Numba takes a lock, which an interrupt at the wrong moment would leave closed for ever
        if numba.get_num_threads() != n:
            numba.set_num_threads(n)


def threads_in_use():
    """How many threads ``use_threads`` has chosen."""
    if Kernel.one_thread:
        return 1
    with DeferInterrupt():
        return numba.get_num_threads()


def _after_fork():
    """In a forked process: no threads here if those of its parent had started."""
    try:
        numba.threading_layer()
    except ValueError:  # they had not
        return
    Kernel.forked = Kernel.one_thread = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Workers:
    """Threads of Python for functions that let go of the interpreter (nogil) and work on a range of tiles."""

    SHARE = 4  # ranges per thread: tiles differ in work

    def __init__(self):
        self.pool, self.size = None, 0

    def run(self, function, tiles, *arguments):
        """function(first, last, *arguments) for ranges that cover all tiles."""
        threads = threads_in_use()
        if threads == 1 or tiles == 1:
            function(0, tiles, *arguments)
            return
        if self.size != threads:
            self.pool, self.size = ThreadPoolExecutor(threads), threads
        ranges = min(tiles, self.SHARE * threads)
        cuts = [tiles * k // ranges for k in range(ranges + 1)]
        for done in [self.pool.submit(function, a, b, *arguments) for a, b in zip(cuts, cuts[1:])]:
            done.result()
