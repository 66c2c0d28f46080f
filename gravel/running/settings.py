"""Settings of a simulation that may change while it runs, each with the check that it passes whenever it is given; and what cannot
be changed once there is one."""

import difflib
import math
from typing import Any

import numpy as np

from gravel import checks
from gravel.engine import ELLIPSOID_METHODS
from gravel.running.sleep import Sleep
from gravel.running.step_times import StepTimes
from gravel.solvers import GaussSeidel, Solver


def _solver(value):
    value = GaussSeidel() if value is None else value
    if not isinstance(value, Solver):
        raise TypeError(f"solver must be a solver such as GaussSeidel(), not {value!r}")
    return value


def _gravity(value):
    gravity = checks.array("gravity", value, (3,))
    gravity.flags.writeable = False  # a number written into it would not be seen
    return gravity


def _speed(value):
    return math.inf if isinstance(value, float) and value == math.inf else checks.number("recovery_speed", value, above=0.0)


def _sleep(value):
    if value is not None and not isinstance(value, Sleep):
        raise TypeError(f"sleep must be None or Sleep(), not {value!r}")
    return value


def _yes_or_no(name):
    def check(value):
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name} must be True or False, not {value!r}")
        return bool(value)

    return check


def _maybe(name):
    return lambda value: None if value is None else checks.number(name, value, minimum=0.0)


CHANGEABLE = {
    "dt": lambda value: checks.number("dt", value, above=0.0),
    "solver": _solver,
    "gravity": _gravity,
    "friction": lambda value: checks.choice("friction", value, ("cone", "coulomb")),
    "ellipsoid_method": lambda value: checks.choice("ellipsoid_method", value, ELLIPSOID_METHODS),
    "integrator": lambda value: checks.choice("integrator", value, ("midpoint", "euler")),
    "margin": _maybe("margin"),
    "recovery": lambda value: checks.number("recovery", value, minimum=0.0, maximum=1.0),
    "recovery_speed": _speed,
    "warm_start": _yes_or_no("warm_start"),
    "restitution_threshold": _maybe("restitution_threshold"),
    "sleep": _sleep,
}
FOR_LIFE = ("scene", "engine", "device", "precision", "threads", "broad_phase", "joint_mode", "time", "tolerance")
INSTEAD = {
    "time": "it follows from the steps taken",
    "tolerance": "it is the solver's: sim.solver = gv.GaussSeidel(tolerance=…)",
    "joint_mode": "give joints= when the simulation is made",
}


def refuse_unknown(name, known):
    """The error for an attribute that a simulation does not have, or that is not to be replaced."""
    if name in FOR_LIFE:
        raise AttributeError(f"{name} of a simulation cannot be changed: {INSTEAD.get(name, f'give {name}= when it is made')}")
    if name in known:
        raise AttributeError(f"{name} of a simulation cannot be replaced; write into it: sim.{name}[:] = …")
    near = difflib.get_close_matches(name, known, 1)
    raise AttributeError(f"a simulation has no attribute {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


class Settings:
    """The settings in ``CHANGEABLE``, checked whenever one is given. ``version`` counts the changes."""

    dt: float
    solver: Solver
    gravity: np.ndarray
    friction: str
    ellipsoid_method: str
    integrator: str
    margin: float | None
    recovery: float
    recovery_speed: float
    warm_start: bool
    restitution_threshold: float | None
    sleep: Sleep | None
    version: int = 0

    def __init__(self, **values: Any):
        """A value for every one of them."""
        for name in CHANGEABLE:
            setattr(self, name, values.pop(name))
        assert not values, f"no settings: {', '.join(values)}"

    def __setattr__(self, name, value):
        super().__setattr__(name, CHANGEABLE[name](value))
        super().__setattr__("version", self.version + 1)

    @property
    def midpoint(self) -> bool:
        """Whether the step looks half a step ahead."""
        return self.integrator == "midpoint"

    def times(self, start: float) -> StepTimes:
        """The moments of a step that starts at ``start`` s."""
        return StepTimes(start, self.dt, 0.5 * self.dt if self.midpoint else 0.0)


class Setting:
    """A setting as an attribute of a simulation, which hears of each change."""

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, simulation, kind=None):
        return self if simulation is None else getattr(simulation._settings, self.name)

    def __set__(self, simulation, value):
        simulation._change_setting(self.name, value)


def setting() -> Any:
    """A ``Setting``, to type checkers the value that it gives."""
    return Setting()
