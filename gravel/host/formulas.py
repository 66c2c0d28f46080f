"""Formulas compiled for the CPU."""

from numba import njit

from gravel.formulas.forms import Forms
from gravel.host.threads import INNER

# What the compiler may assume: nothing that changes how results are rounded. With all of fastmath, a kernel that comes from
# the cache gives other bits than the one that was just compiled: it is optimised once more, and fuses other operations.
SAFE_MATH = {"nnan", "ninf", "nsz"}

FORMS = Forms(njit(**INNER), {})
LANE_FORMS = Forms(njit(fastmath=SAFE_MATH, **INNER), {})  # for loops over the lanes of a block, so that they are vectorised
