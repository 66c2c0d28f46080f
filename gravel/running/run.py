"""The run: many steps, with files, a progress bar and observers around them.

Where many processes share the scene, each of them runs this. They go on together: what one raises outside of a step, or Ctrl-C on one of
them, ends the run on all after the same step (``gravel.running.communicator``).
"""

import contextlib
import math
import os
import time
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from tqdm import tqdm

from gravel import checks
from gravel.errors import SimulationError
from gravel.interrupts import DeferInterrupt
from gravel.io.checkpoint import check_path as check_checkpoint
from gravel.io.checkpoint import save as save_checkpoint
from gravel.io.parts import result_writer
from gravel.printing import formatting, tables
from gravel.running.communicator import Communicator, call_on_all_ranks, raise_on_all_ranks

if TYPE_CHECKING:
    from gravel.simulation import Simulation


UNITS = {
    **dict.fromkeys(("time", "seconds", "first_seconds", "dt"), "s"),
    **dict.fromkeys(("residual", "tolerance", "rms_tolerance", "median_residual"), "m/s"),
    **dict.fromkeys(("max_penetration", "joint_violation", "radius"), "m"),
}


@dataclass(frozen=True, repr=False)
class RunReport:
    """How a run went.

    - ``steps``: how many were taken
    - ``time`` s, simulated, that was reached
    - ``seconds`` s of wall clock
    - ``contacts``: how many there were in the last step
    - ``residual`` m/s, the worst of all steps
    - ``max_penetration`` m, the worst of all steps
    - ``joint_violation`` m, the worst of all steps
    - ``unconverged``: how many steps' residuals stayed above the tolerances
    - ``interrupted``: whether Ctrl-C stopped it
    - ``tolerance`` m/s, up to which a step's largest residual counts as converged
    - ``rms_tolerance`` m/s, the same of the residuals' root mean square; infinite where the solver has a tolerance of its own
    - ``median_residual`` m/s, over all steps
    - ``first_seconds`` s of wall clock, for the first step: it may compile
    - ``dt`` s, the time step
    - ``radius`` m, the median bounding radius of the bodies that can move
    """

    steps: int
    time: float
    seconds: float
    contacts: int
    residual: float
    max_penetration: float
    joint_violation: float
    unconverged: int
    interrupted: bool
    tolerance: float
    rms_tolerance: float
    median_residual: float
    first_seconds: float
    dt: float
    radius: float

    def __repr__(self) -> str:
        values = ((entry.name, getattr(self, entry.name)) for entry in fields(self))
        return formatting.call(self, **{name: formatting.rough(value) if isinstance(value, float) else value for name, value in values})

    def __str__(self) -> str:
        pace = f", {1e3 * self.seconds / self.steps:.3g} ms a step" if self.steps else ""
        end = "interrupted" if self.interrupted else "reached"
        joints = f", joints open by {self.joint_violation:.1e} m at worst" if self.joint_violation else ""
        return (
            f"t = {self.time:g} s {end} after {self.steps} steps in {self.seconds:.3g} s{pace}; {self.contacts} contacts, deepest "
            f"penetration {self.max_penetration:.1e} m{joints}; {self.convergence()}"
        )

    def _repr_html_(self) -> str:
        return tables.pairs_html({entry.name: getattr(self, entry.name) for entry in fields(self)}, UNITS, str(self))

    def convergence(self) -> str:
        """One sentence: how many steps converged, how far, and what that is in lengths."""
        good = self.steps - self.unconverged
        share = "all" if self.unconverged == 0 else f"{100 * good / max(self.steps, 1):.1f} % of"
        off = self.residual * self.dt
        length = f"{off:.1e} m in a step" + (f" or {100 * off / self.radius:.2g} % of a radius" if self.radius else "")
        return (
            f"{share} {self.steps} steps converged to {self.goal()}: largest residual {self.median_residual:.1e} m/s in the median, "
            f"{self.residual:.1e} at worst, {length}"
        )

    def goal(self) -> str:
        """What a step must reach to have converged."""
        return f"{self.tolerance:.2g} m/s" + (f" (rms {self.rms_tolerance:.2g})" if math.isfinite(self.rms_tolerance) else "")


def run(
    simulation: "Simulation",
    until: float,
    save: str | os.PathLike | None = None,
    every: float | None = None,
    progress: bool = False,
    observers: Iterable = (),
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: float | None = None,
    contacts: bool = False,
    surfaces: bool | str = "auto",
    interrupt: str = "raise",
) -> RunReport:
    """Step until the time ``until``, s; returns a ``RunReport``: steps, time and seconds, contacts, the worst residual
    and penetration, how many steps did not converge.

    - ``until`` s, later than the present time
    - ``save``: a result file (.vtkhdf). If it holds an earlier part of this very run, frames are appended; those from the present time on,
      which a killed run has written after its last checkpoint, are cut off and written again. A result of another run is replaced, and a
      file that is not a result of gravel is refused
    - ``every`` s between two frames of it (default: 50 frames)
    - ``progress``: whether to show a progress bar
    - ``observers``: functions of the simulation, called after each step, or pairs (function, seconds between calls)
    - ``checkpoint``: a file (.h5), written at the end, from which ``Simulation.load`` continues
    - ``checkpoint_every`` s: the checkpoint is also written this often
    - ``contacts``: whether each frame holds the contacts of its step, with their forces
    - ``surfaces``: whether bodies other than spheres are also written as surfaces, for ParaView and the like: True, False, or "auto": up
      to 500 000 vertices per frame
    - ``interrupt``: what Ctrl-C does after the step is done and the files are complete: "raise" ``KeyboardInterrupt``, which ends the
      script, or "return" the report, whose ``interrupted`` is True

    If a step fails, the last good state is written before the error is raised. Of many processes, each writes its part beside these files
    (``gravel.io.parts``, ``gravel.io.checkpoint_parts``) and calls its own observers.
    """
    checks.choice("interrupt", interrupt, ("raise", "return"))
    until = checks.number("until", until)
    if until <= simulation.time:
        raise ValueError(f"until must be later than the present time {simulation.time:g} s, not {until:g}")
    every = (until - simulation.time) / 50 if every is None else checks.number("every", every, above=0.0)
    files = _Files(simulation, save, every, checkpoint, checkpoint_every, contacts, surfaces)
    calls = [_Periodic(function, seconds, simulation) for function, seconds in map(_observer, observers)]
    simulation.until = until
    tally, started = _Tally(simulation), time.perf_counter()
    steps = math.ceil((until - simulation.time) / simulation.dt - 1e-6)
    look = {"disable": not progress or simulation.team.rank > 0, "unit": "step", "smoothing": 0.1, "dynamic_ncols": True}
    with DeferInterrupt() if simulation.team.size > 1 else contextlib.nullcontext() as held:
        try:
            files.open()
            with tqdm(total=steps, **look) as bar:
                _take_steps(simulation, steps, bar, calls, files, tally, held)
        except KeyboardInterrupt:
            tally.interrupted = True
        except SimulationError:
            files.apart = False  # a step is refused by all
            simulation.views.refresh()  # what was written and refused is not part of the last good state
            raise
        finally:  # also when a step failed: the state is the last good one
            tally.catch_up(simulation, files)
            files.close()
            simulation.refresh_pages()
    report = tally.report(simulation, time.perf_counter() - started)
    if report.interrupted and interrupt == "raise":
        raise KeyboardInterrupt(str(report))
    return report


def _take_steps(simulation, steps, bar, calls, files, tally, held):
    """So many steps, with all that comes after each of them."""
    if not bar.disable:
        simulation.on_status = bar.set_postfix_str
    for _ in range(steps):
        begun = time.perf_counter()
        files.apart = simulation.team.size > 1
        report = simulation.step()
        files.apart = False
        tally.add(report, time.perf_counter() - begun, files)
        error = _observed(calls, simulation, simulation.team)
        files.write()
        if held is not None:
            _stop_together(simulation.team, held, error)
        bar.update()
        words = f"t = {report.time:.3f} s, contacts {report.contacts}, residual {report.residual:.1e} m/s"
        bar.set_postfix_str(words, refresh=False)


class _Files:
    """The result and the checkpoint of a run: checked first, then opened, written now and then, and closed with the last state. What
    is written is written to the end: HDF5 swallows an interrupt that comes in between."""

    def __init__(self, simulation, save, every, checkpoint, checkpoint_every, contacts, surfaces):
        if not isinstance(contacts, bool):
            raise TypeError(f"contacts must be True or False, not {contacts!r}")
        if contacts and save is None:
            raise ValueError("contacts=True goes with a result file, but save is None")
        if not (isinstance(surfaces, bool) or surfaces == "auto"):
            raise ValueError(f'surfaces must be True, False or "auto", not {surfaces!r}')
        if None not in (save, checkpoint) and os.path.realpath(save) == os.path.realpath(checkpoint):
            raise ValueError(f"save and checkpoint must be two files, but both are {os.fspath(save)}")
        if checkpoint is None and checkpoint_every is not None:
            raise ValueError(f"checkpoint_every={checkpoint_every!r} goes with a checkpoint file, but checkpoint is None")
        if checkpoint is not None:
            call_on_all_ranks(simulation.team, check_checkpoint, checkpoint, simulation.team.size > 1)
            if checkpoint_every is not None:
                checkpoint_every = checks.number("checkpoint_every", checkpoint_every, above=0.0)
        self.simulation, self.save, self.checkpoint = simulation, save, checkpoint
        self.every, self.checkpoint_every, self.with_parts = every, checkpoint_every, (contacts, surfaces)
        self.writer, self.opened = None, False
        self.apart = False  # whether this process may be where the others are not: in the middle of a step

    def open(self):
        """Begin the files, with the first frame of the result."""
        with DeferInterrupt():
            if self.save is not None:
                self.writer = result_writer(self.save, self.simulation, *self.with_parts)
            self.frames = _Periodic(self._write_frame, self.every, self.simulation)
            self.checkpoints = _Periodic(self._write_checkpoint, self.checkpoint_every, self.simulation)
            self.opened = True
            self._write_frame(self.simulation)

    def write(self):
        """After a step, what is due."""
        with DeferInterrupt():
            if self.checkpoint is not None and self.checkpoint_every is not None:
                self.checkpoints(self.simulation)
            if self.writer:
                self.frames(self.simulation)

    def observe(self, report):
        if self.writer:
            self.writer.observe(report)

    def _write_frame(self, simulation):
        if self.writer:
            self.writer.write_frame()

    def _write_checkpoint(self, simulation):
        save_checkpoint(simulation, self.checkpoint)

    def close(self):
        """The last state, unless it is there already; where processes have come apart, what was written stays."""
        if not self.opened:
            return
        if self.apart and self.writer:
            self.writer.abandon()
        elif self.writer:
            try:
                if not self.frames.just_called(self.simulation):
                    self.writer.write_frame()
            finally:
                self.writer.close()
        if self.checkpoint is not None and not self.apart:
            save_checkpoint(self.simulation, self.checkpoint)


def _observed(calls, simulation, team):
    """Call the observers; of many processes, what one raises is returned, for the others are to hear of it first."""
    try:
        for call in calls:
            call(simulation)
    except Exception as error:
        if team.size == 1:
            raise
        return error
    return None


def _stop_together(team: Communicator, held, error):
    """End the run on all processes if one was interrupted, or has met with an error."""
    if team.any(held.came or error is not None):
        raise_on_all_ranks(team, error)
        held.came = False  # it is heard
        raise KeyboardInterrupt


class _Tally:
    """What a run has come to: the worst of all steps."""

    def __init__(self, simulation):
        self.first = simulation.steps
        self.steps = self.contacts = self.unconverged = 0
        self.residual = self.penetration = self.violation = self.first_seconds = 0.0
        self.residuals = array("d")
        self.interrupted = False

    def add(self, report, seconds, files):
        with DeferInterrupt():
            if self.steps == 0:
                self.first_seconds = seconds
            self.steps += 1
            self.residuals.append(report.residual)
            self.contacts = report.contacts
            self.unconverged += not report.converged
            self.residual = max(self.residual, report.residual)
            self.penetration = max(self.penetration, report.max_penetration)
            self.violation = max(self.violation, report.joint_violation)
            files.observe(report)

    def catch_up(self, simulation, files):
        """The last step counts, though an interrupt or a warning came before its record."""
        if simulation.steps > self.first + self.steps:
            self.add(simulation.report, 0.0, files)

    def report(self, simulation, seconds):
        return RunReport(
            steps=self.steps,
            time=simulation.time,
            seconds=seconds,
            contacts=self.contacts,
            residual=self.residual,
            max_penetration=self.penetration,
            joint_violation=self.violation,
            unconverged=self.unconverged,
            interrupted=self.interrupted,
            tolerance=simulation.tolerance,
            rms_tolerance=simulation.rms_tolerance,
            median_residual=float(np.median(self.residuals)) if self.steps else 0.0,
            first_seconds=self.first_seconds,
            dt=simulation.dt,
            radius=simulation.typical_radius,
        )


class _Periodic:
    """Calls a function when at least ``seconds`` of simulated time have passed since the last multiple of them."""

    def __init__(self, function, seconds, simulation):
        self.function, self.seconds, self.start = function, seconds, simulation.time
        self.done, self.last_step = 0, simulation.steps

    def __call__(self, simulation):
        due = math.floor((simulation.time - self.start) / self.seconds + 1e-9) if self.seconds else self.done + 1
        if due > self.done:
            self.done, self.last_step = due, simulation.steps
            self.function(simulation)

    def just_called(self, simulation):
        return self.last_step == simulation.steps


def _observer(given) -> tuple[Callable, float]:
    function, seconds = given if isinstance(given, tuple) else (given, 0.0)
    if not callable(function):
        raise TypeError(f"observers must hold functions or (function, seconds) pairs, not {given!r}")
    return function, checks.number("seconds of an observer", seconds, minimum=0.0)
