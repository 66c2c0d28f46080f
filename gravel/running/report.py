"""The report of a step, and the record that gathers it while the step is under way.

In: what the stages of a step return, with the time that each took. Out: a ``StepReport``, of all processes together.
"""

import time
from dataclasses import dataclass, field, fields

from gravel.engine import Commit, Detection, Engine
from gravel.printing import formatting, tables
from gravel.running.processes import Processes, Traffic
from gravel.solvers import Goal, Outcome

UNITS = {
    "time": "s",
    "residual": "m/s",
    "residual_rms": "m/s",
    "max_penetration": "m",
    "kinetic_energy": "J",
    "joint_violation": "m",
}


@dataclass(frozen=True, repr=False)
class StepReport:
    """How one step went.

    - ``step``: its number, from 1 on
    - ``time`` s, simulated, at the end of the step
    - ``contacts``: how many there were, gaps within the margin included
    - ``iterations`` of the solver
    - ``residual`` m/s: what is left of the error, the largest over contacts and joint rows
    - ``residual_rms`` m/s: the root mean square of the same
    - ``converged``: whether the residuals are at most the tolerances (``Simulation.tolerance``, ``Simulation.rms_tolerance``)
    - ``max_penetration`` m, found at the start of the step; contacts that an impact with restitution separates in it do not count
    - ``kinetic_energy`` J, at its end
    - ``impacts``: how many collisions with restitution there were
    - ``joint_violation`` m: the largest error of what a joint holds, at the end of the step
    - ``broken``: how many joints broke
    - ``broad_phase``: the name of the one that found the pairs
    - ``bodies``: how many there are
    - ``traffic``: messages and ghosts of several processes, a ``Traffic``
    - ``seconds`` s of wall clock, by stage
    """

    step: int
    time: float
    contacts: int
    iterations: int
    residual: float
    residual_rms: float
    converged: bool
    max_penetration: float
    kinetic_energy: float
    impacts: int
    joint_violation: float
    broken: int
    broad_phase: str
    bodies: int
    traffic: Traffic
    seconds: dict = field(repr=False)

    def __repr__(self) -> str:
        shown = ("step", "time", "bodies", "contacts", "iterations", "residual", "converged", "max_penetration", "kinetic_energy")
        seldom = ("impacts", "joint_violation", "broken")  # told where there are any
        values = {name: getattr(self, name) for name in (*shown, *(name for name in seldom if getattr(self, name)))}
        rounded = {name: formatting.rough(value) if isinstance(value, float) else value for name, value in values.items()}
        return formatting.call(self, **rounded)

    def _repr_html_(self) -> str:
        values = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name not in ("traffic", "seconds")}
        stages = {f"{name} took": seconds for name, seconds in self.seconds.items()}
        return tables.pairs_html({**values, **stages}, {**UNITS, **dict.fromkeys(stages, "s")}, f"step {self.step}")


class StepRecord:
    """What the stages of a step return, as they are run, and the seconds that each took."""

    found: Detection
    outcome: Outcome
    commit: Commit

    def __init__(self) -> None:
        self.impacts, self.penetration, self.broken = 0, 0.0, 0
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """The stopwatch: the seconds since its last call belong to this stage."""
        now = time.perf_counter()
        self.seconds[stage], self._last = self.seconds.get(stage, 0.0) + now - self._last, now

    def bounced(self, impacts: int, penetration: float) -> None:
        """How many impacts with restitution there were, and the largest penetration, m, that they leave."""
        self.impacts, self.penetration = impacts, penetration
        self.lap("impacts")

    def solved(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.lap("solve")

    def report(self, step: int, time: float, goal: Goal, own_bodies: int, engine: Engine, processes: Processes) -> StepReport:
        """The report of the step that ends here, over all ``processes``, for which this is its end, too. ``time`` s; ``own_bodies``: how
        many bodies belong to this process."""
        self.lap("positions")
        contacts, energy, impacts, bodies = processes.total(self.found.contacts, self.commit.energy, self.impacts, own_bodies)
        penetration, violation = processes.largest(self.penetration, self.commit.violation)
        return StepReport(
            step=step,
            time=time,
            contacts=int(contacts),
            iterations=self.outcome.iterations,
            residual=self.outcome.residual,
            residual_rms=self.outcome.residual_rms,
            converged=goal.excess(self.outcome.residual, self.outcome.residual_rms) <= 1.0,
            max_penetration=penetration,
            kinetic_energy=energy,
            impacts=int(impacts),
            joint_violation=violation,
            broken=self.broken,
            broad_phase=self.found.broad_phase,
            bodies=int(bodies),
            traffic=processes.finish_step(engine),
            seconds=self.seconds,
        )
