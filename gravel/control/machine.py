"""The machine inside a co-simulation unit: what both versions of FMI ask of it, with value references for names.

In: the folder of resources of the unit (``fmu`` writes it). References count from 0, the time; then the inputs and the outputs, number by
number. Inputs are kept and applied when the next step is taken, so that nothing can fail where a tool only sets a value.
"""

import json
import math
import pathlib
import pickle
import struct
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gravel.control.plant import Plant, Snapshot, snapshot_from
from gravel.control.variables import Names, Variable, Variables
from gravel.simulation import Simulation

CHECKPOINT, DESCRIPTION, FUNCTIONS = "machine.h5", "machine.json", "functions.pickle"
ROUNDING = 1e-6  # of a step, by which a communication step may miss a multiple of it, and a time the end of the last step
HEADER = struct.Struct("<32sqdq")  # of a state in bytes: whose it is, steps since the start, the tool's time at the start, bytes of inputs


@dataclass(frozen=True)
class State:
    """A state of the machine: its plant, the inputs that are set, and where the tool's time begins."""

    token: str  # of the unit that it is a state of
    snapshot: Snapshot
    inputs: np.ndarray
    steps: int
    origin: float  # NaN: not known yet

    @cached_property
    def content(self) -> bytes:
        """The state in bytes: header, inputs, snapshot."""
        inputs = self.inputs.tobytes()
        return HEADER.pack(self.token.encode(), self.steps, self.origin, len(inputs)) + inputs + self.snapshot.to_bytes()


def state_from(content: bytes) -> State:
    """The state that ``State.content`` wrote."""
    if len(content) < HEADER.size:
        raise ValueError(f"the state of a machine is damaged: it has {len(content)} bytes only")
    token, steps, origin, length = HEADER.unpack_from(content)
    first = HEADER.size
    if not 0 <= length <= len(content) - first or length % 8:
        raise ValueError("the state of a machine is damaged: its inputs do not fit")
    inputs = np.frombuffer(content[first : first + length], float).copy()
    return State(token.decode(errors="replace"), snapshot_from(content[first + length :]), inputs, steps, origin)


class Machine:
    """A plant with its inputs and outputs as numbers."""

    def __init__(self, folder: str | pathlib.Path):
        folder = pathlib.Path(folder)
        about = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        functions: tuple = ({}, {}, {})
        observers: list = []
        if (folder / FUNCTIONS).exists():
            functions, observers = pickle.loads((folder / FUNCTIONS).read_bytes())
        motions, laws, surfaces = functions
        simulation = Simulation.load(folder / CHECKPOINT, motions=motions, laws=laws, surfaces=surfaces, domain=None)
        self.name, self.about = about["name"], about
        self.plant = Plant(simulation, observers)
        names = Names(about["bodies"], about["joints"], about["groups"])
        variables = Variables(simulation, names, "the model description")
        self.inputs, self.outputs = (variables.select(side, about[side]) for side in ("inputs", "outputs"))
        self.set = self.plant.read(self.inputs)  # what is set, and ...
        self.applied = self.set.copy()  # ... what the simulation was told
        self.origin: float | None = None  # the tool's time at the start, known with the first step
        self.steps = 0

    @cached_property
    def numbers(self) -> list[tuple[str, Variable]]:
        """(name, variable) of each number, in the order of references, from 1 on."""
        return [(name, variable) for variable in (*self.inputs, *self.outputs) for name in variable.names]

    # --- values
    @property
    def time(self) -> float:
        """s, as the tool counts."""
        return (self.origin or 0.0) + self.steps * self.plant.simulation.dt

    def get(self, references: Sequence[int]) -> list[float]:
        """The values of some numbers; inputs as they were set."""
        every = [self.time, *self.set, *self._outputs]
        return [float(every[reference]) for reference in references]

    def put(self, references: Sequence[int], values: Sequence[float]) -> None:
        """Set inputs, which hold from the next step on."""
        for reference, value in zip(references, values):
            if not 1 <= reference <= len(self.set):
                raise ValueError(f"value reference {reference} must be that of an input, from 1 to {len(self.set)}")
            self.set[reference - 1] = value

    @cached_property
    def _outputs(self):
        return self.plant.read(self.outputs)

    # --- steps
    def step(self, time: float, size: float) -> list[str]:
        """A communication step of ``size`` s from the ``time`` on; returns warnings. Refused in one sentence where it is no multiple of the
        machine's own step, or does not begin where the last one ended."""
        dt = self.plant.simulation.dt
        steps = round(size / dt) if np.isfinite(size) else 0
        if steps < 1 or abs(size - steps * dt) > ROUNDING * steps * dt:
            raise ValueError(f"the communication step must be a multiple of the machine's own step, {dt:g} s, not {size!r} s")
        origin = time if self.origin is None else self.origin
        due = origin + self.steps * dt
        if abs(time - due) > ROUNDING * (dt + abs(due)):
            raise ValueError(f"the communication step must begin where the last one ended, at {due:g} s, not at {time!r} s")
        self._apply()
        self.origin = origin
        before = self.plant.simulation.steps
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self.plant.advance(steps)
        finally:
            self.steps += self.plant.simulation.steps - before
            self.__dict__.pop("_outputs", None)
        return [str(warning.message) for warning in caught]

    def _apply(self):
        """The simulation is told of inputs that have changed."""
        bad = np.flatnonzero(~np.isfinite(self.set))
        if len(bad):
            raise ValueError(f"{self.numbers[bad[0]][0]} must be finite, not {self.set[bad[0]]}")
        first = 0
        for variable in self.inputs:
            part = slice(first, first + variable.size)
            first += variable.size
            if not np.array_equal(self.set[part], self.applied[part]):
                variable.write(self.plant.simulation, self.set[part].copy())  # type: ignore[misc]
                self.applied[part] = self.set[part]

    # --- state
    def state(self) -> State:
        """All that decides the future."""
        self._apply()
        origin = math.nan if self.origin is None else self.origin
        return State(self.about["token"], self.plant.snapshot(), self.set.copy(), self.steps, origin)

    def restore(self, state: State) -> None:
        """Take up a state of this machine."""
        if state.token != self.about["token"] or len(state.inputs) != len(self.set):
            raise ValueError("the state must be one of this very unit, but it is of another")
        self.plant.restore(state.snapshot)
        self.set, self.applied, self.steps = state.inputs.copy(), state.inputs.copy(), state.steps
        self.origin = None if math.isnan(state.origin) else state.origin
        self.__dict__.pop("_outputs", None)


class Unit:
    """A machine as the interface calls it. Nothing is raised here: the interface would take the whole unit down, and the tool with it. What
    is wrong is told, and steps fail until it is right. ``tell``: takes a sentence, and whether it is an error."""

    def __init__(self, folder: str | pathlib.Path, tell: Callable[[str, bool], None]):
        self.machine, self.tell = Machine(folder), tell
        self.fault: str | None = None  # why the next step must fail

    def get(self, references: Sequence[int]) -> list[float]:
        """The values of some numbers; NaN where they cannot be known."""
        try:
            return self.machine.get(references)
        except Exception as error:
            self._fail(error)
            return [math.nan] * len(references)

    def get_whole(self, references: Sequence[int]) -> list[int]:
        """The same of counts and truth values; 0 where they cannot be known."""
        return [0 if math.isnan(value) else int(value) for value in self.get(references)]

    def put(self, references: Sequence[int], values: Sequence[float]) -> None:
        """Set inputs."""
        try:
            self.machine.put(references, values)
        except Exception as error:
            self._fail(error)

    def step(self, time: float, size: float) -> bool:
        """A communication step; returns whether it was taken."""
        try:
            if self.fault is not None:
                raise ValueError(self.fault)
            for words in self.machine.step(time, size):
                self.tell(words, False)
        except Exception as error:
            self.tell(str(error), True)
            return False
        return True

    def state(self) -> State | None:
        """The state, or None where it cannot be kept."""
        try:
            return self.machine.state()
        except Exception as error:
            self._fail(error)
            return None

    def restore(self, state: State | bytes | None) -> None:
        """Take up a state, as an object or in bytes."""
        try:
            if state is None:
                raise ValueError("there is no state to take up")
            self.machine.restore(state_from(state) if isinstance(state, bytes) else state)
            self.fault = None
        except Exception as error:
            self._fail(error)

    def _fail(self, error):
        self.fault = str(error)
        self.tell(self.fault, True)
