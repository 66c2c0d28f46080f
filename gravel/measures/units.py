"""The unit of a measure and the shape of its numbers, which its function carries, for tables and plots."""

import functools
from typing import Any


class NothingToMeasure(ValueError):
    """There is nothing of which a measure could be, at this time: no body or no contact in its region. ``shape``: of its numbers, if that
    is known."""

    shape: tuple[int, ...] | None = None


class DoesNotFit(NothingToMeasure):
    """What there is at this time has no such number: a bed that has no slope yet, a heap that is flat."""

    shape = ()


def measured_in(unit: str, shape: tuple[int, ...] = ()):
    """Mark a measure with the unit and the shape of its numbers."""

    def mark(function: Any):
        function.unit, function.shape = unit, shape
        return function

    return mark


def unit_of(measure: Any) -> str:
    """The unit of a measure, also of one with some arguments given (``functools.partial``); empty if it has none."""
    return str(getattr(_function_of(measure), "unit", ""))


def shape_of(measure: Any) -> tuple[int, ...] | None:
    """The shape of a measure's numbers, likewise; None if it does not tell."""
    return getattr(_function_of(measure), "shape", None)


def _function_of(measure):
    while isinstance(measure, functools.partial):
        measure = measure.func
    return measure
