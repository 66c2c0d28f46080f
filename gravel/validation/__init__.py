"""Validation: simulations beside the formulas they must follow, as curves, errors and figures (``gravel validate``)."""

from gravel.validation import friction, grains, impacts, loads, machines, motion  # noqa: F401  # they register their cases
from gravel.validation.case import CASES, Case, Curve, Outcome
from gravel.validation.page import validate

__all__ = ["CASES", "Case", "Curve", "Outcome", "validate"]
