"""How cases run: at default settings and at tight ones; and how they record values.

A case calls ``simulate(scene, dt)`` without knowing the settings: ``at("defaults")`` or ``at("tight")`` around the call selects them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.shapes import Plane
from gravel.simulation import Simulation
from gravel.solvers import GaussSeidel

G, DT = 9.81, 1e-3  # m/s2, s
SINGLE = 2.0**-24  # half of the spacing of numbers in single precision, of which velocities and impulses are by default
TIGHT = {"solver": GaussSeidel(iterations=1000, tolerance=1e-10), "precision": "double", "threads": 1}
SETTINGS: dict[str, dict] = {"defaults": {}, "tight": TIGHT}  # options of Simulation; tight: errors are the step's own, not the solver's
_now: ContextVar[str] = ContextVar("settings", default="tight")


@contextmanager
def at(settings: str) -> Iterator[None]:
    """Within it, ``simulate`` takes these settings, "defaults" or "tight"."""
    token = _now.set(settings)
    try:
        yield
    finally:
        _now.reset(token)


def simulate(scene: Scene, dt: float = DT, **options) -> Simulation:
    """A simulation at the settings of the moment; ``options`` that a case is about, such as the friction model, go before them."""
    return Simulation(scene, dt, **{**SETTINGS[_now.get()], **options})


def rounding(steps: float, size: float) -> float:
    """What so many steps can make of single precision at most: each rounds a number of this size by half of a spacing, all one way."""
    return steps * SINGLE * size


def on_floor(material: Material, gravity=(0.0, 0.0, -G), **options) -> Scene:
    """A scene whose body 0 is a floor at z = 0; ``options``: a motion of it (default: fixed)."""
    scene = Scene(gravity=gravity)
    scene.add_body(Plane(), material=material, **(options or {"fixed": True}))
    return scene


def record(sim: Simulation, seconds: float, what: Callable[[Simulation], object], every: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Times and values at the start and after every so many steps."""
    times, values = [sim.time], [np.array(what(sim), float)]
    for k in range(1, round(seconds / sim.dt) + 1):
        sim.step()
        if k % every == 0:
            times.append(sim.time)
            values.append(np.array(what(sim), float))
    return np.array(times), np.array(values)


def advance(sim: Simulation, seconds: float) -> Simulation:
    """So many seconds further."""
    for _ in range(round(seconds / sim.dt)):
        sim.step()
    return sim
