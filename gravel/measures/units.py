"""The unit of a measure, which its function carries, for tables and plots."""

import functools
from typing import Any


def measured_in(unit: str):
    """Mark a measure with the unit of its numbers."""

    def mark(function: Any):
        function.unit = unit
        return function

    return mark


def unit_of(measure: Any) -> str:
    """The unit of a measure, also of one with some arguments given (``functools.partial``); empty if it has none."""
    while isinstance(measure, functools.partial):
        measure = measure.func
    return str(getattr(measure, "unit", ""))
