"""How cases run: solved well, in double precision, on one thread; and what they note on their way."""

from collections.abc import Callable

import numpy as np

from gravel.materials import Material
from gravel.scene import Scene
from gravel.shapes import Plane
from gravel.simulation import Simulation
from gravel.solvers import GaussSeidel

G, DT = 9.81, 1e-3  # m/s2, s


def simulate(scene: Scene, dt: float = DT, **options) -> Simulation:
    """A simulation whose own errors are those of the step, not those of the solver."""
    solver = GaussSeidel(iterations=1000, tolerance=1e-10)
    return Simulation(scene, dt, **{"solver": solver, "precision": "double", "threads": 1, **options})


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
