"""Sleep: bodies that have stayed where they are for a while cost nearly nothing until something disturbs them.

In: the poses of the bodies at a few moments (``SleepTracker``), the contacts of a step, who is driven. Out: the islands that fall asleep,
bodies that touch each other or are joined, if all of them are at rest (``islands_at_rest``); and the sleepers that something with a motion
of its own comes near to (``Movers``). The engine makes them sleep and wakes them; ``SleepControl`` says when.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from gravel import checks
from gravel.running.bodies import typical_radius
from gravel.state import ANGULAR, IMMOVABLE, LINEAR, MOVABLE, SLEEPING, STATUS

if TYPE_CHECKING:
    from gravel.contacts import ContactTable
    from gravel.engine import Driven, Engine
    from gravel.joints.mechanism import Mechanism
    from gravel.model.cell import Cell
    from gravel.running.prescribed import Prescribed

SHARE = 0.01  # of sqrt(g r): the default speed
LOOKS = (0.17, 0.42, 0.71, 1.0)  # of the time: what swings to and fro is not where it was at all of these moments


@dataclass(frozen=True)
class Sleep:
    """When bodies at rest may sleep: ``Simulation(scene, dt, sleep=Sleep())``.

    A body is at rest if it has moved by less than ``speed`` times ``time`` in the last ``time`` s, and was slower than ``speed`` m/s
    whenever it was looked at (four times); its turning counts at its bounding radius. ``speed`` None: 1 % of the speed sqrt(g r) that
    falling by half a typical radius r gives, 3 mm/s for balls of 1 cm; where there is no gravity, no body sleeps unless ``speed`` is given.

    Bodies that touch, or that joints connect, form an island, which falls asleep as a whole: its velocities become zero, and it stays as
    it is to the last bit. Islands stay awake that touch a moving surface or are within the bounding ball of a body that moves by its
    motion, and machines with a motor or a spring; in a cell that deforms no body sleeps.

    An island wakes in the step in which a body that is awake touches it, with the impulses that it fell asleep with, so that momentum is
    kept as if it had never slept. What comes in other ways wakes it, too: a body with a motion, what users write into positions,
    velocities or forces of its bodies. All wake when a setting, a pair of materials, a motion, a surface velocity or a joint changes, when
    a fixed body is moved or comes, when any body is removed, and by ``Simulation.wake()``.

    Sleepers have no contacts: they are not in ``Simulation.contacts``, nor in what is measured of these. A ball that spins about the
    normal of its one contact is not at rest: without ``spinning_friction`` nothing stops it.
    """

    speed: float | None = None
    time: float = 0.5

    def __post_init__(self):
        if self.speed is not None:
            object.__setattr__(self, "speed", checks.number("Sleep speed", self.speed, above=0.0))
        object.__setattr__(self, "time", checks.number("Sleep time", self.time, above=0.0))

    def speed_for(self, gravity: np.ndarray, radius: float) -> float:
        """m/s, of bodies of a typical radius (m)."""
        return SHARE * math.sqrt(math.hypot(*gravity) * radius) if self.speed is None else self.speed


class SleepTracker:
    """Who has stayed where it was since a moment: the ids and poses of those that are still candidates."""

    def __init__(self):
        self.since, self.looks = -math.inf, len(LOOKS) - 1
        self.ids, self.position, self.quaternion = np.empty(0, np.int64), np.empty((0, 3)), np.empty((0, 4))

    def is_due(self, now: float, time: float) -> bool:
        """Whether to look now."""
        return now >= self.since + LOOKS[self.looks] * time

    def look(self, engine: "Engine", speed: float, time: float) -> bool:
        """Strike out who has moved; returns whether the time is over, so that ``ids`` have been at rest for all of it."""
        self.looks += 1
        position, quaternion, velocity = (engine.pick(name, self.ids) for name in ("position", "quaternion", "velocity"))
        radius, status = engine.pick("extent", self.ids)[:, 3], engine.pick("tag", self.ids)[:, STATUS]
        turned = np.minimum(*(np.linalg.norm(quaternion + sign * self.quaternion, axis=1) for sign in (-1.0, 1.0)))
        way = np.linalg.norm(position - self.position, axis=1) + 2.0 * radius * turned
        pace = np.linalg.norm(velocity[:, LINEAR], axis=1) + radius * np.linalg.norm(velocity[:, ANGULAR], axis=1)
        rests = (way < speed * time) & (pace < speed) & (status == MOVABLE)
        self.ids, self.position, self.quaternion = self.ids[rests], self.position[rests], self.quaternion[rests]
        return self.looks == len(LOOKS)

    def restart(self, engine: "Engine", now: float) -> None:
        """All that are awake are candidates from now on."""
        self.since, self.looks, self.ids = now, 0, awake_ids(engine)
        self.position, self.quaternion = engine.pick("position", self.ids), engine.pick("quaternion", self.ids)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """For a file."""
        clock = np.array([self.since, float(self.looks)])
        return {"clock": clock, "ids": self.ids, "position": self.position, "quaternion": self.quaternion}

    def from_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over what ``to_arrays`` gave."""
        self.since, self.looks = float(arrays["clock"][0]), int(arrays["clock"][1])
        self.ids, self.position, self.quaternion = (arrays[name] for name in ("ids", "position", "quaternion"))


class Movers(NamedTuple):
    """Balls that hold the bodies that move by their motion in a step, wherever they are in it."""

    position: np.ndarray  # (k, 3) m
    swept_radius: np.ndarray  # (k,) m

    def near(self, engine: "Engine", ids: np.ndarray) -> np.ndarray:
        """Mask of the bodies whose bounding balls meet one of these."""
        position, radius = engine.pick("position", ids), engine.pick("extent", ids)[:, 3]
        near = np.zeros(len(ids), bool)
        for centre, swept_radius in zip(self.position, self.swept_radius):
            near |= np.linalg.norm(position - centre, axis=1) <= radius + swept_radius
        return near


NO_MOVERS = Movers(np.empty((0, 3)), np.empty(0))


def movers_of(driven: "Driven", engine: "Engine", dt: float, periodic: bool) -> Movers:
    """Those of the bodies with a motion that move in a step; where space is ``periodic``, they are everywhere."""
    position, quaternion = engine.pick("position", driven.id), engine.pick("quaternion", driven.id)
    moves = driven.velocity.any(axis=1)
    for now, then in ((position, driven.end_position), (quaternion, driven.end_quaternion)):
        moves |= (now != then).any(axis=1)
    way = np.maximum(*(np.linalg.norm(then - position, axis=1) for then in (driven.position, driven.end_position)))
    way += dt * np.linalg.norm(driven.velocity[:, :3], axis=1)
    swept_radius = np.full(len(way), np.inf) if periodic else engine.pick("extent", driven.id)[:, 3] + way
    return Movers(position[moves], swept_radius[moves])


def awake_ids(engine: "Engine") -> np.ndarray:
    """Ids of the bodies that forces can move and that are awake, sorted."""
    return np.sort(engine.ids()[engine.field("tag")[:, STATUS] == MOVABLE])


def carrying_ids(engine: "Engine", surfaces: Collection[int]) -> np.ndarray:
    """Ids of the bodies that carry along what touches them: those with a surface that moves, and those that move whatever touches them."""
    moves = (engine.field("tag")[:, STATUS] == IMMOVABLE) & engine.field("velocity").any(axis=1)
    return np.union1d(engine.ids()[moves], np.array(list(surfaces), np.int64))


def islands_at_rest(
    awake: np.ndarray, restless: np.ndarray, table: "ContactTable", carrying: np.ndarray, machine: Mapping[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Ids of the bodies that can fall asleep, and the numbers of their islands.

    ``awake`` (n,) ids, sorted, of which some are ``restless`` (a mask), and so is whatever touches a body that is ``carrying`` (ids);
    ``machine``: body -> number of the machine it belongs to."""
    ends = np.stack([table.body_a, table.body_b])
    among, carries = np.isin(ends, awake), np.isin(ends, carrying)
    place = np.searchsorted(awake, ends)
    restless = restless | np.isin(awake, carrying)
    for one, other in ((0, 1), (1, 0)):
        restless[place[one, among[one] & carries[other]]] = True
    links = [place[:, among.all(axis=0)]]
    bodies = np.array(sorted(set(machine) & set(awake.tolist())), np.int64)
    if len(bodies):
        _, first, number = np.unique([machine[int(b)] for b in bodies], return_index=True, return_inverse=True)
        links.append(np.searchsorted(awake, np.stack([bodies, bodies[first][number]])))
    joined = np.hstack(links)
    graph = scipy.sparse.coo_matrix((np.ones(joined.shape[1]), joined), shape=(len(awake),) * 2)
    _, label = scipy.sparse.csgraph.connected_components(graph, directed=False)
    _, lowest, label = np.unique(label, return_index=True, return_inverse=True)
    rests = ~np.isin(label, label[restless])
    return awake[rests], awake[lowest][label[rests]] + 1


class SleepControl:
    """Who falls asleep and who wakes in a simulation."""

    def __init__(self, engine: "Engine", mechanism: "Mechanism", prescribed: "Prescribed", cell: "Cell | None"):
        self.engine, self.mechanism, self.prescribed, self.cell = engine, mechanism, prescribed, cell
        self.watch = SleepTracker()
        self.movers = NO_MOVERS  # bodies with a motion that move in the present step
        self.wake_all_pending = False  # whether something has changed that wakes all: they do before the next step

    def restart(self) -> None:
        """Nobody has been at rest yet."""
        self.watch = SleepTracker()

    # --- waking
    def wake_pending(self) -> None:
        """All wake if something has changed that wakes all."""
        if self.wake_all_pending:
            self.engine.wake(None)
            self.wake_all_pending = False

    def wake(self, ids: np.ndarray | None) -> None:
        """Bodies wake, with their islands; None: all."""
        self.engine.wake(None if ids is None else np.unique(self.engine.pick("island", ids)))

    def wake_disturbed(self, sleep: Sleep | None, driven: "Driven | None", dt: float) -> None:
        """Before detection: bodies wake that one with a motion comes near to in this step; all where something has changed."""
        self.wake_pending()
        if sleep is None:
            return
        self.movers = NO_MOVERS if driven is None else movers_of(driven, self.engine, dt, self.cell is not None)
        if len(self.movers.swept_radius):
            sleepers = self.engine.ids()[self.engine.field("tag")[:, STATUS] == SLEEPING]
            self.wake(sleepers[self.movers.near(self.engine, sleepers)])

    # --- falling asleep
    def let_sleep(self, sleep: Sleep | None, gravity: np.ndarray, time: float) -> None:
        """At the end of a step, at ``time`` s: islands that have been at rest for long enough fall asleep."""
        if sleep is None or not self.watch.is_due(time, sleep.time):
            return
        if self.watch.look(self.engine, sleep.speed_for(gravity, typical_radius(self.engine)), sleep.time):
            if len(self.watch.ids) and (self.cell is None or self.cell.deformation is None):
                self._put_to_sleep(self.watch.ids)
            self.watch.restart(self.engine, time)

    def _put_to_sleep(self, at_rest):
        """``at_rest``: ids of the bodies that have been at rest."""
        engine, carrying = self.engine, carrying_ids(self.engine, self.prescribed.surfaces)
        awake = awake_ids(engine)
        restless, machine = ~np.isin(awake, at_rest) | self.movers.near(engine, awake), {}
        if len(self.mechanism):
            state = engine.joint_state()
            machine, driven = self.mechanism.machine_of_bodies(state), {*self.prescribed.motions, *carrying.tolist()}
            driven = self.mechanism.driven_machines(state, driven)
            restless |= np.isin(awake, [body for body, number in machine.items() if number in driven])
        engine.sleep(*islands_at_rest(awake, restless, engine.contacts(), carrying, machine))
