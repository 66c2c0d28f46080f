"""Formulas compiled for the CPU."""

from numba import njit

from gravel.cpu.threads import INNER
from gravel.formulas.forms import Forms

FORMS = Forms(njit(**INNER), {})
