"""Gathered data of a simulation that several processes share: its arrays by id, as on one process.

``gather`` brings some of them to the first process. ``gathered`` is for functions that were written for one process, scenes' checks above
all: they read arrays of all bodies, and every process gets the same ones.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from gravel import checks
from gravel.contacts import join_tables
from gravel.state import FIELD, REMOVED, STATUS

if TYPE_CHECKING:
    from gravel.simulation import Simulation

WRITABLE = ("positions", "quaternions", "velocities", "angular_velocities", "forces", "torques")
READ = ("masses", "inertias", "radii", "shapes", "windings", "unwrapped_positions", "alive", "movable")
GONE = {  # what arrays say of bodies that were removed
    **dict.fromkeys(("positions", "quaternions", "unwrapped_positions"), np.nan),
    **dict.fromkeys(("velocities", "angular_velocities", "forces", "torques", "masses", "inertias", "radii", "windings"), 0),
    **dict.fromkeys(("alive", "movable"), False),
    "shapes": "",
}


def gather(simulation: "Simulation", names: tuple[str, ...], everywhere: bool = False) -> Any:
    """Arrays of all bodies by id, ``contacts`` or ``joints``, by their names; None on all but the first process, unless ``everywhere``."""
    for name in names:
        checks.choice("name", name, (*WRITABLE, *READ, "contacts", "joints"))
    if not names:
        raise TypeError("gather must be told what to bring, for example gather('positions', 'velocities')")
    found = [_gathered(simulation, name, everywhere) for name in names]
    return found[0] if len(found) == 1 else tuple(found)


def _gathered(simulation, name, everywhere):
    processes = simulation.processes
    if processes.size == 1:
        return getattr(simulation, name)
    if name == "joints":
        (table,) = processes.broadcast_from_joint_rank(simulation.joints if processes.solves_joints else None)
        return table if everywhere or processes.rank == 0 else None
    bring = processes.allgather if everywhere else processes.gather
    if name == "contacts":
        tables = bring(simulation.contacts)
        return None if tables is None else join_tables(tables)
    pieces = bring((simulation.ids, getattr(simulation, name)))
    return None if pieces is None else _by_id(pieces, simulation.count, GONE[name])


def _by_id(pieces, count, gone):
    first = pieces[0][1]
    result = np.full((count, *first.shape[1:]), gone, first.dtype)
    for ids, values in pieces:
        result[ids] = values
    result.flags.writeable = False
    return result


def gathered(simulation: "Simulation") -> Any:
    """The simulation with arrays of all bodies, on every process; on one process itself. All processes must ask for the same."""
    return simulation if simulation.processes.size == 1 else GatheredSimulation(simulation)


class GatheredSimulation:
    """Reads of a simulation that go beyond this process; what else is asked for, or done, is the simulation's own."""

    def __init__(self, simulation):
        self._simulation, self._known, self._step = simulation, {}, -1

    def __getattr__(self, name):
        simulation = self._simulation
        if name in (*WRITABLE, *READ, "contacts", "joints"):
            return self._once(name, lambda: gather(simulation, (name,), everywhere=True))
        if name == "bodies":
            return WholeBodies(self)
        if name == "views":
            return WholeViews(self)
        return getattr(simulation, name)

    def _once(self, name, bring):
        """What was brought since the last step is still good."""
        if self._step != self._simulation.steps:
            self._known, self._step = {}, self._simulation.steps
        if name not in self._known:
            self._known[name] = bring()
        return self._known[name]

    def field(self, name):
        """A field of all bodies by id."""
        simulation = self._simulation

        def bring():
            simulation.views.flush_writes()
            pieces = simulation.processes.allgather((simulation.ids, getattr(simulation.views, name)))
            return _by_id(pieces, simulation.count, FIELD[name].gone)

        return self._once(f"field {name}", bring)


class WholeBodies:
    def __init__(self, whole):
        self._whole = whole

    def __getattr__(self, name):
        if name not in FIELD:
            raise AttributeError(name)
        return self._whole.field(name)


class WholeViews(WholeBodies):
    @property
    def status(self):
        return self.tag[:, STATUS]

    def present(self, *names):
        """Fields of the bodies that are there, in the order of their ids."""
        there = np.flatnonzero(self.status != REMOVED)
        return {name: self._whole.field(name)[there] for name in names}
