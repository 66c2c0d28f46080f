"""Validation: simulations compared with formulas, as curves, errors and figures (``gravel validate``)."""

from gravel.validation import (  # noqa: F401  # they register their cases
    drum,
    flows,
    friction,
    gases,
    grains,
    impacts,
    loads,
    machines,
    motion,
    rolling,
    shear,
    sliding,
    stacks,
)
from gravel.validation.case import CASES, Case, Curve, Outcome
from gravel.validation.misses import KNOWN_MISSES
from gravel.validation.page import validate

__all__ = ["CASES", "KNOWN_MISSES", "Case", "Curve", "Outcome", "validate"]
