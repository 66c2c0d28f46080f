"""The halo: bodies migrate to the process in whose part their centre lies, and every process into whose part they reach has a ghost.

One halo exchange a step does it all (paper 004 needs two and sends bodies back and forth). The previous owner of a body sends the
ownership change to all ranks that the body reaches, the new owner among them: the whole body to those that do not know it yet, to the
others the fields that change from step to step. The set of these ranks follows from the body alone, so the new owner knows who has ghosts
without being told. A ghost that is in no message is removed one step later: until then it can be asked where its contacts went.

Messages are raw bytes: two counts, then records of whole bodies and of updates, whose layout follows from ``gravel.state.FIELDS``.
"""

import itertools
from typing import NamedTuple

import numpy as np

from gravel.errors import SimulationError
from gravel.mpi.domain import owners, reached
from gravel.state import FIELDS, STALE_GHOST


def _record(fields, real):
    """The layout of one body in a message."""
    return np.dtype([(f.name, real if f.dtype == "real" else f.dtype, f.shape) for f in fields] + [("radius", "f8")])


NONE = np.empty(0, np.int64)
JOINT_RANK = 0  # the process that owns all bodies with joints, and solves these


class Halo:
    def __init__(self, messenger):
        self.messenger, self.rank = messenger, messenger.rank
        self.joined = set()  # ids of the bodies with joints
        self.ghosted_on = {}  # rank -> sorted ids of own bodies of which it has ghosts
        self.ghosts_of = {}  # rank -> sorted ids of its bodies of which this process has ghosts
        self.stale = NONE  # ids of ghosts that will be removed
        self.near_border = NONE  # ids of bodies that reach over a border, or are others'
        self.lattice = None  # by which space repeats itself

    @property
    def ghosts(self):
        return sum(map(len, self.ghosts_of.values()))

    def remove(self, ids):
        """These bodies are gone."""
        for lists in (self.ghosted_on, self.ghosts_of):
            for other in lists:
                lists[other] = np.setdiff1d(lists[other], ids)
        self.stale = np.setdiff1d(self.stale, ids)

    def exchange(self, engine):
        """Before a step: bodies migrate to their owners, ghosts go to the ranks that they reach."""
        real = engine.field("velocity").dtype
        layouts = _record(FIELDS, real), _record([f for f in FIELDS if f.sync == "step" or f.name == "id"], real)
        engine.remove(self.stale)
        own = self._border_bodies(engine, layouts[0])
        messages = {}
        for other in np.unique(own.rank).tolist():
            if other != self.rank:
                some = own.index[own.rank == other]
                known = np.isin(own.records["id"][some], self.ghosted_on.get(other, NONE), assume_unique=True)
                messages[other] = _packed(own.records[some[~known]], own.records[some[known]], layouts[1])
        received = self.messenger.exchange(messages)
        unpacked = [_unpacked(received[other], *layouts) for other in sorted(received)]
        self._apply_received(engine, own, [np.concatenate(records) for records in zip(*unpacked)])

    def _border_bodies(self, engine, layout):
        """Own bodies that reach beyond this part, in the order of their ids."""
        rows, radius = engine.border()
        ids = engine.ids()
        if self.joined and self.rank == JOINT_RANK:
            more = np.setdiff1d(np.flatnonzero(np.isin(ids, list(self.joined))), rows)
            rows, radius = np.concatenate([rows, more]), np.concatenate([radius, np.zeros(len(more))])
        order = np.argsort(ids[rows])
        records = np.empty(len(rows), layout)
        for field in FIELDS:
            records[field.name] = engine.pick(field.name, ids[rows[order]])
        records["radius"] = radius[order]
        records["rank"] = self._owners(records)
        return HaloSendList(records, *self._reached(records))

    def _owners(self, records):
        point = records["position"]
        owner = owners(self.partition, point if self.lattice is None else folded(point, self.lattice))
        if self.joined:
            owner[np.isin(records["id"], list(self.joined))] = JOINT_RANK
        return owner

    def _reached(self, records):
        """(index, rank) of the processes that must know these bodies, by rank and index: those that they reach, and their owners. It
        follows from each body alone: whoever asks finds the same."""
        point, radius, shifts = records["position"], records["radius"][:, None], np.zeros((1, 3))
        if self.lattice is not None:
            point, shifts = folded(point, self.lattice), shifts_of(self.lattice)
        found = [reached(self.partition, point + shift - radius, point + shift + radius) for shift in shifts]
        found.append((np.arange(len(records)), records["rank"].astype(np.int64)))
        pairs = np.unique(np.concatenate([rank << 40 | box for box, rank in found]))
        return pairs & (1 << 40) - 1, pairs >> 40

    def _apply_received(self, engine, own, received):
        """``received``: records of whole bodies, and of updates."""
        updates = received[1]["id"]
        lost = updates[engine.pick("id", updates) < 0]
        if len(lost):
            raise SimulationError(f"process {self.rank} was told of body {lost[0]}, which it does not know")
        given_away = own.records[own.records["rank"] != self.rank]  # they migrate; some stay as ghosts
        engine.put({"id": given_away["id"], "rank": given_away["rank"]})
        for records in received:
            engine.put({name: records[name] for name in records.dtype.names if name != "radius"})
        self._update_ghost_holders(own, received)
        self._update_ghosts(engine, own, given_away, received)
        self.near_border = np.unique(np.concatenate([own.records["id"], *(records["id"] for records in received), self.stale]))

    def _update_ghost_holders(self, own, received):
        """Which ranks have ghosts of own bodies: of those that stay, and of those that have just migrated here."""
        held = {}
        for records, index, rank in (own, *((records, *self._reached(records)) for records in received)):
            mine = (records["rank"][index] == self.rank) & (rank != self.rank)
            for other in np.unique(rank[mine]).tolist():
                held.setdefault(other, []).append(records["id"][index[mine & (rank == other)]])
        self.ghosted_on = {other: np.sort(np.concatenate(lists)) for other, lists in held.items()}

    def _update_ghosts(self, engine, own, given_away, received):
        """Ghosts are the bodies that others sent, and those that migrated away and still reach here; other ghosts are stale."""
        before = np.concatenate([NONE, *self.ghosts_of.values(), given_away["id"]])
        here = own.records[own.index[own.rank == self.rank]]
        ids, owner = (np.concatenate([records[name] for records in (here, *received)]) for name in ("id", "rank"))
        ghosts = owner != self.rank
        self.ghosts_of = {int(other): np.sort(ids[owner == other]) for other in np.unique(owner[ghosts])}
        self.stale = np.setdiff1d(before, ids)
        engine.put({"id": self.stale, "rank": STALE_GHOST - engine.pick("rank", self.stale)})


class HaloSendList(NamedTuple):
    """Bodies that reach beyond the part of their process."""

    records: np.ndarray  # the bodies, with their owners from now on
    index: np.ndarray  # (k,) among the records, and ...
    rank: np.ndarray  # (k,) ... a process that must know that body


def folded(point, lattice):
    """Positions folded into a periodic cell."""
    point = point.copy()
    for axis in ((lattice.gradient + turn) % 3 for turn in range(3)):
        if np.isfinite(lattice.length[axis]):
            times = np.floor((point[:, axis] - lattice.low[axis]) / lattice.length[axis])
            point[:, axis] -= times * lattice.length[axis]
            if axis == lattice.gradient:
                point[:, lattice.direction] -= times * lattice.tilt
    return point


def shifts_of(lattice):
    """(27, 3) Shifts to the neighbouring images of a periodic cell; fewer where it is not periodic along all axes."""
    times = [(-1, 0, 1) if np.isfinite(length) else (0,) for length in lattice.length]
    length = np.where(np.isfinite(lattice.length), lattice.length, 0.0)
    shifts = []
    for k in itertools.product(*times):
        shift = np.array(k) * length
        shift[lattice.direction] += k[lattice.gradient] * lattice.tilt
        shifts.append(shift)
    return np.array(shifts)


def _packed(bodies, known, update):
    changes = np.empty(len(known), update)
    for name in update.names:
        changes[name] = known[name]
    counts = np.array([len(bodies), len(changes)], np.int64)
    return np.concatenate([part.view(np.uint8).reshape(-1) for part in (counts, bodies, changes)])


def _unpacked(message, whole, update):
    if not len(message):
        return np.empty(0, whole), np.empty(0, update)
    counts = message[:16].view(np.int64)
    middle = 16 + int(counts[0]) * whole.itemsize
    return message[16:middle].view(whole), message[middle:].view(update)
