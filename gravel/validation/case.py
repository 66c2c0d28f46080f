"""Cases of validation: a simulation beside the formula that it must follow.

A case is a short function without arguments that returns an ``Outcome``: curves of formula and simulation at the same places, an error
and the bound it must keep. Its docstring says the formula and where it comes from, in Markdown with TeX between dollar signs; the page
of figures prints it.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

FAMILIES = {
    "motion": "Motion without contact",
    "friction": "Friction",
    "impacts": "Impacts",
    "loads": "Loads at rest",
    "machines": "Machines",
    "grains": "Grains",
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
    """What a case found: the words of both axes with their units, the curves, the error, what it is measured by, and its bound."""

    across: str
    up: str
    curves: Sequence[Curve]
    error: float
    measure: str
    bound: float
    log: bool = False  # both axes

    @property
    def passed(self) -> bool:
        return bool(self.error <= self.bound)


@dataclass(frozen=True)
class Case:
    """A named case; ``slow``: it takes more than a few seconds, and the normal tests leave it out."""

    name: str
    title: str
    family: str
    run: Callable[[], Outcome]
    slow: bool

    @property
    def text(self) -> str:
        return inspect.getdoc(self.run) or ""


def case(title: str, slow: bool = False):
    """Makes a function a case: its name is the function's with hyphens, its family the file's."""

    def register(function):
        name, family = function.__name__.replace("_", "-"), function.__module__.rsplit(".", 1)[1]
        CASES[name] = Case(name, title, family, function, slow)
        return function

    return register


def largest(across: str, up: str, curves: Sequence[Curve], scale: float, measure: str, bound: float) -> Outcome:
    """The outcome of which the error is the largest difference of all curves over ``scale``."""
    error = float(np.max([np.abs(curve.difference()).max() for curve in curves])) / scale  # NaN stays NaN
    return Outcome(across, up, curves, error, measure, bound)
