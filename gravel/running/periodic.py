"""The periodic cell in a step: where space repeats itself, and how the cell deforms.

In: a ``model.cell.Cell`` (None: space does not repeat itself) and the moments of a step. Out: its lattice for the engine and the processes
before the step; the cell a step later after it. Where the cell follows a stress, its strain rates answer to the stress of the step,

    sigma = (1/V) (sum over contacts of f l + sum over bodies of m v v), tension negative

(the virial with the kinetic term), over all processes.
"""

import numpy as np

from gravel.engine import Engine
from gravel.model.cell import Cell
from gravel.running.processes import Processes
from gravel.running.step_times import StepTimes
from gravel.state import LINEAR, STATUS, can_move


def upload_cell(cell: Cell | None, engine: Engine, processes: Processes, times: StepTimes) -> None:
    """The engine and the processes are told of the cell where the step looks and at its end."""
    if cell is not None:
        cell.check_step(times.dt)
        now = cell.lattice(times.offset)
        engine.set_cell(now, cell.lattice(times.dt))
        processes.set_cell(now)


def advance_cell(cell: Cell | None, engine: Engine, processes: Processes, dt: float) -> None:
    """The cell a step later; where it follows a stress, at the rates that this step's stress gives it."""
    if cell is None:
        return
    cell.advance(dt)
    law = cell.deformation
    if law is None or not law.controls_stress:
        return
    velocity, status = engine.field("velocity")[:, LINEAR], engine.field("tag")[:, STATUS]
    movable = can_move(status) & (engine.field("rank") == processes.rank)
    mass = 1.0 / engine.field("inverse_mass")[movable, 0]
    velocity = velocity[movable].astype(float)
    all_mass, *momentum = processes.total(mass.sum(), *(mass @ velocity))
    velocity -= np.array(momentum) / all_mass
    total = engine.virial() / dt + np.einsum("n,ni,nj->ij", mass, velocity, velocity)
    cell.follow(np.array(processes.total(*np.diagonal(total))) / cell.volume, float(all_mass), dt)
