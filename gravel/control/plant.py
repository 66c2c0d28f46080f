"""The plant: the machine that a controller drives, a simulation with its observers, whose state can be kept and taken up again.

``snapshot`` holds all that decides the future: the simulation as a checkpoint in memory, and copies of the observers. Python functions
(motors, motions) are not copied: they are those of the plant. ``Snapshot.to_bytes`` writes it down, without these functions.
"""

import copy
import io
import json
import pickle
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gravel import checks
from gravel.control.variables import Progress, Reading, Variable
from gravel.io.checkpoint import MOTIONS, from_bytes, to_bytes
from gravel.model.materials import Material

if TYPE_CHECKING:
    from gravel.simulation import Simulation

SIMULATION, OBSERVERS, ABOUT = "simulation.h5", "observers.pickle", "about.json"  # parts of a snapshot in bytes


@dataclass
class Watcher:
    """An observer that is called when ``seconds`` of simulated time have passed since ``start`` or a multiple of them, as in a run."""

    function: Callable
    seconds: float
    start: float
    done: int = 0

    def __call__(self, simulation: "Simulation") -> None:
        due = int(np.floor((simulation.time - self.start) / self.seconds + 1e-9)) if self.seconds else self.done + 1
        if due > self.done:
            self.done = due
            self.function(simulation)


@dataclass(frozen=True)
class Snapshot:
    """The state of a plant at a moment. ``materials``: those of the simulation, which observers may refer to."""

    simulation: bytes
    watchers: list
    materials: list
    progress: Progress
    functions: tuple | None = None  # motions, laws of joints and surfaces that are Python functions; None: those of the plant

    def to_bytes(self) -> bytes:
        """Everything but Python functions that the simulation follows."""
        observers = io.BytesIO()
        _Pickler(observers, self.materials).dump(self.watchers)
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as file:
            file.writestr(SIMULATION, self.simulation)
            file.writestr(OBSERVERS, observers.getvalue())
            file.writestr(ABOUT, json.dumps(asdict(self.progress)))
        return content.getvalue()


class Plant:
    """A simulation with its observers. ``observers``: functions of the simulation, or pairs (function, seconds between calls)."""

    def __init__(self, simulation: "Simulation", observers: Iterable = ()):
        if simulation.processes.size > 1:
            raise ValueError("a machine that a controller drives must be simulated by one process, without mpiexec")
        pairs = [given if isinstance(given, tuple) else (given, 0.0) for given in observers]
        for function, seconds in pairs:
            if not callable(function):
                raise TypeError(f"observers must hold functions or (function, seconds) pairs, not {function!r}")
            checks.number("seconds of an observer", seconds, minimum=0.0)
        self.simulation, self.progress, self.functions = simulation, Progress(), functions_of(simulation)
        self.watchers = [Watcher(function, seconds, simulation.time) for function, seconds in pairs]

    # --- stepping
    def advance(self, steps: int) -> None:
        """So many steps; observers are called after each."""
        progress = Progress()
        try:
            for _ in range(steps):
                progress = progress.after(self.simulation.step())
                for watcher in self.watchers:
                    watcher(self.simulation)
        finally:
            self.progress = progress

    def reading(self) -> Reading:
        """The plant at this moment, for variables to be read of."""
        return Reading(self.simulation, self.progress)

    def read(self, variables: Iterable[Variable]) -> np.ndarray:
        """The numbers of some variables, end to end."""
        now = self.reading()
        return np.concatenate([np.empty(0), *(variable.value(now) for variable in variables)])

    # --- state
    def snapshot(self) -> Snapshot:
        """All that decides the future, to be taken up by ``restore``."""
        materials = list(self.simulation.materials.kinds)
        own = {id(material): material for material in materials}  # not copied: bodies are made of these very objects
        watchers, functions = copy.deepcopy(self.watchers, dict(own)), functions_of(self.simulation)
        return Snapshot(to_bytes(self.simulation), watchers, materials, self.progress, functions)

    def restore(self, snapshot: Snapshot) -> None:
        """Take up a state of this plant; its future is the same as then, bit for bit."""
        self.simulation = from_bytes(snapshot.simulation, self.simulation.threads, *(snapshot.functions or self.functions))
        twins = {id(old): new for old, new in zip(snapshot.materials, self.simulation.materials.kinds)}
        self.watchers, self.progress = copy.deepcopy(snapshot.watchers, dict(twins)), replace(snapshot.progress)


def functions_of(simulation: "Simulation") -> tuple[dict, dict, dict]:
    """Motions, laws of joints and surface velocities that are Python functions, as ``Simulation.load`` takes them."""
    motions = {body: motion for body, motion in simulation.motions.items() if type(motion).__name__ not in MOTIONS}
    surfaces = {body: surface for body, surface in simulation.surfaces.items() if callable(surface)}
    return motions, simulation.mechanism.function_laws(), surfaces


def snapshot_from(content: bytes) -> Snapshot:
    """The snapshot that ``Snapshot.to_bytes`` wrote. As with any pickle, only for bytes of one's own."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            simulation, observers, about = file.read(SIMULATION), file.read(OBSERVERS), json.loads(file.read(ABOUT))
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ValueError(f"the state of a machine is damaged, or none of gravel's: {error}") from None
    stands_for: dict[int, Material] = {}
    watchers = _Unpickler(io.BytesIO(observers), stands_for).load()
    most = max(stands_for, default=-1)
    return Snapshot(simulation, watchers, [stands_for.get(k) for k in range(most + 1)], Progress(**about))


class _Pickler(pickle.Pickler):
    """Writes materials of the simulation as their numbers; refuses functions that nobody else could import."""

    def __init__(self, file, materials):
        super().__init__(file)
        self.numbers = {id(material): k for k, material in enumerate(materials)}

    def persistent_id(self, thing: Any) -> int | None:
        return self.numbers.get(id(thing)) if isinstance(thing, Material) else None

    def reducer_override(self, thing: Any) -> Any:
        refuse_own_code(thing)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    """Reads materials by their numbers: objects that stand for those of the simulation, until ``Plant.restore`` puts these in place."""

    def __init__(self, file, stands_for):
        super().__init__(file)
        self.stands_for = stands_for

    def persistent_load(self, number: int) -> Material:
        return self.stands_for.setdefault(number, Material())


def refuse_own_code(thing: Any) -> None:
    """Refuse functions and classes that pickle writes by name, but that other programs could not import."""
    by_name = isinstance(thing, type) or (callable(thing) and hasattr(thing, "__qualname__"))
    if by_name and (thing.__module__ == "__main__" or "<" in thing.__qualname__):
        name = thing.__qualname__.replace(".<locals>", "")
        raise ValueError(
            f"{name!r} is Python code of a script, which a file cannot hold: make its motor or motion an input, or move the code to a "
            "module that can be imported where the file is used"
        )


def pickled(thing: Any) -> bytes:
    """Python objects for a file, their code by name."""
    content = io.BytesIO()
    _Pickler(content, []).dump(thing)
    return content.getvalue()
