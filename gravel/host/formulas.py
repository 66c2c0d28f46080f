"""Formulas compiled for the CPU."""

from numba import njit

from gravel.formulas.forms import Forms
from gravel.host.threads import INNER

FORMS = Forms(njit(**INNER), {})
