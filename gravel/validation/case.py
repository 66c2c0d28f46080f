"""Cases of validation: each compares a simulation with a formula.

A case is a short function without arguments that returns an ``Outcome``: curves of formula and simulation at the same abscissas, an
error and its bound. It runs twice, at default settings and at tight ones (``gravel.validation.running``), unless it is marked as
``only`` one of them. Its docstring gives the formula and its source, in Markdown with TeX between dollar signs; the page of figures
prints it. If the bound at defaults differs, the docstring says why.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gravel.validation.running import SETTINGS, at

FAMILIES = {
    "motion": "Motion without contact",
    "friction": "Friction",
    "sliding": "Blocks set sliding",
    "rolling": "Rolling on a rim",
    "impacts": "Impacts",
    "gases": "Gases",
    "loads": "Loads at rest",
    "stacks": "Stacks and walls",
    "machines": "Machines",
    "grains": "Grains",
    "shear": "Sheared cells",
    "drum": "Rotating drum",
    "flows": "Columns that collapse",
}
CASES: dict[str, "Case"] = {}


@dataclass(frozen=True)
class Curve:
    """One curve: ``formula`` and ``simulation`` at the same ``x``, arrays of one length."""

    label: str
    x: np.ndarray
    formula: np.ndarray
    simulation: np.ndarray

    def difference(self) -> np.ndarray:
        return np.asarray(self.simulation, float) - np.asarray(self.formula, float)


@dataclass(frozen=True)
class Outcome:
    """The result of a case: the labels of both axes with their units, the curves, the error, its unit or scale, and its bound, with
    the bound at default settings if it differs."""

    across: str
    up: str
    curves: Sequence[Curve]
    error: float
    measure: str
    bound: float
    at_defaults: float | None = None  # bound there; None: the same
    log: bool = False  # both axes

    @property
    def passed(self) -> bool:
        return bool(self.error <= self.bound)


@dataclass(frozen=True)
class Case:
    """A named case. ``slow``: it takes more than a few seconds, and the normal tests skip it. ``settings``: those at which it runs."""

    name: str
    title: str
    family: str
    function: Callable[[], Outcome]
    slow: bool
    settings: tuple[str, ...]

    @property
    def text(self) -> str:
        return inspect.getdoc(self.function) or ""

    def run(self, settings: str = "defaults") -> Outcome:
        """The outcome at the given settings, with the ``bound`` that holds there."""
        with at(settings):
            outcome = self.function()
        if settings == "defaults" and outcome.at_defaults is not None:
            return replace(outcome, bound=outcome.at_defaults)
        return outcome

    def run_all(self) -> dict[str, Outcome]:
        """By settings."""
        return {settings: self.run(settings) for settings in self.settings}


def case(title: str, slow: bool = False, only: str | None = None):
    """Registers a function as a case. Its name is the function's with hyphens, its family the file's. ``only``: the settings at which
    it runs, if the others make no difference or would take hours."""

    def register(function):
        name, family = function.__name__.replace("_", "-"), function.__module__.rsplit(".", 1)[1]
        CASES[name] = Case(name, title, family, function, slow, tuple(SETTINGS) if only is None else (only,))
        return function

    return register


def largest(
    across: str, up: str, curves: Sequence[Curve], scale: float, measure: str, bound: float, at_defaults: float | None = None
) -> Outcome:
    """The outcome whose error is the largest difference of all curves over ``scale``."""
    error = float(np.max([np.abs(curve.difference()).max() for curve in curves])) / scale  # NaN stays NaN
    return Outcome(across, up, curves, error, measure, bound, at_defaults)
