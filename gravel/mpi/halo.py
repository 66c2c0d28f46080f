"""The halo: bodies go to the process in whose part their centre lies, and every process into whose part they reach has a copy.

One exchange of letters a step does it all (paper 004 needs two and sends bodies back and forth). The old owner of a body says who owns it
from now on, and tells everybody whom it reaches, the new owner among them: whole, if they do not know it yet, else what changes from step
to step. Which those are follows from the body alone, so the new owner knows who has copies without being told. A copy of which nobody
writes is forgotten, one step later: until then it can be asked where its contacts went.

Letters are raw bytes: two counts, then records of whole bodies and of updates, whose layout follows from ``gravel.state.FIELDS``.
"""

import itertools
from typing import NamedTuple

import numpy as np

from gravel.errors import SimulationError
from gravel.mpi.domain import owners, reached
from gravel.state import FIELDS, LEAVING


def _record(fields, real):
    """The layout of one body in a letter."""
    return np.dtype([(f.name, real if f.dtype == "real" else f.dtype, f.shape) for f in fields] + [("reach", "f8")])


NONE = np.empty(0, np.int64)
JOINT_RANK = 0  # the process that owns all bodies with joints, and solves these


class Halo:
    def __init__(self, post):
        self.post, self.rank = post, post.rank
        self.joined = set()  # ids of the bodies with joints
        self.held_by = {}  # rank -> sorted ids of own bodies of which it has copies
        self.copies_of = {}  # rank -> sorted ids of its bodies of which this process has copies
        self.leaving = NONE  # ids of copies that will be forgotten
        self.near_border = NONE  # ids of bodies that reach over a border, or are others'
        self.lattice = None  # by which space repeats itself

    @property
    def copies(self):
        return sum(map(len, self.copies_of.values()))

    def forget(self, ids):
        """These bodies are gone."""
        for lists in (self.held_by, self.copies_of):
            for other in lists:
                lists[other] = np.setdiff1d(lists[other], ids)
        self.leaving = np.setdiff1d(self.leaving, ids)

    def renew(self, engine):
        """Before a step: bodies to their owners, copies to those whom they reach."""
        real = engine.field("velocity").dtype
        layouts = _record(FIELDS, real), _record([f for f in FIELDS if f.sync == "step" or f.name == "id"], real)
        engine.remove(self.leaving)
        own = self._look_around(engine, layouts[0])
        letters = {}
        for other in np.unique(own.rank).tolist():
            if other != self.rank:
                some = own.place[own.rank == other]
                known = np.isin(own.records["id"][some], self.held_by.get(other, NONE), assume_unique=True)
                letters[other] = _letter(own.records[some[~known]], own.records[some[known]], layouts[1])
        came = self.post.exchange(letters)
        opened = [_opened(came[other], *layouts) for other in sorted(came)]
        self._take_in(engine, own, [np.concatenate(records) for records in zip(*opened)])

    def _look_around(self, engine, layout):
        """Own bodies that reach beyond this part, in the order of their ids."""
        rows, reach = engine.border()
        ids = engine.ids()
        if self.joined and self.rank == JOINT_RANK:
            more = np.setdiff1d(np.flatnonzero(np.isin(ids, list(self.joined))), rows)
            rows, reach = np.concatenate([rows, more]), np.concatenate([reach, np.zeros(len(more))])
        order = np.argsort(ids[rows])
        records = np.empty(len(rows), layout)
        for field in FIELDS:
            records[field.name] = engine.pick(field.name, ids[rows[order]])
        records["reach"] = reach[order]
        records["rank"] = self._owners(records)
        return Outlook(records, *self._reached(records))

    def _owners(self, records):
        place = records["position"]
        owner = owners(self.partition, place if self.lattice is None else folded(place, self.lattice))
        if self.joined:
            owner[np.isin(records["id"], list(self.joined))] = JOINT_RANK
        return owner

    def _reached(self, records):
        """(place, rank) of the processes that must know these bodies, by rank and place: those that they reach, and their owners. It
        follows from each body alone: whoever asks finds the same."""
        place, reach, shifts = records["position"], records["reach"][:, None], np.zeros((1, 3))
        if self.lattice is not None:
            place, shifts = folded(place, self.lattice), shifts_of(self.lattice)
        found = [reached(self.partition, place + shift - reach, place + shift + reach) for shift in shifts]
        found.append((np.arange(len(records)), records["rank"].astype(np.int64)))
        pairs = np.unique(np.concatenate([rank << 40 | box for box, rank in found]))
        return pairs & (1 << 40) - 1, pairs >> 40

    def _take_in(self, engine, own, came):
        """``came``: records of whole bodies, and of updates."""
        updates = came[1]["id"]
        lost = updates[engine.pick("id", updates) < 0]
        if len(lost):
            raise SimulationError(f"process {self.rank} was told of body {lost[0]}, which it does not know")
        given = own.records[own.records["rank"] != self.rank]  # they go to others; some stay as copies
        engine.put({"id": given["id"], "rank": given["rank"]})
        for records in came:
            engine.put({name: records[name] for name in records.dtype.names if name != "reach"})
        self._note_holders(own, came)
        self._note_copies(engine, own, given, came)
        self.near_border = np.unique(np.concatenate([own.records["id"], *(records["id"] for records in came), self.leaving]))

    def _note_holders(self, own, came):
        """Who has copies of own bodies: of those that stay, and of those that have just come."""
        held = {}
        for records, place, rank in (own, *((records, *self._reached(records)) for records in came)):
            mine = (records["rank"][place] == self.rank) & (rank != self.rank)
            for other in np.unique(rank[mine]).tolist():
                held.setdefault(other, []).append(records["id"][place[mine & (rank == other)]])
        self.held_by = {other: np.sort(np.concatenate(lists)) for other, lists in held.items()}

    def _note_copies(self, engine, own, given, came):
        """Copies are what others told of, and what was given away and still reaches here; others are not needed any more."""
        before = np.concatenate([NONE, *self.copies_of.values(), given["id"]])
        here = own.records[own.place[own.rank == self.rank]]
        ids, owner = (np.concatenate([records[name] for records in (here, *came)]) for name in ("id", "rank"))
        copies = owner != self.rank
        self.copies_of = {int(other): np.sort(ids[owner == other]) for other in np.unique(owner[copies])}
        self.leaving = np.setdiff1d(before, ids)
        engine.put({"id": self.leaving, "rank": LEAVING - engine.pick("rank", self.leaving)})


class Outlook(NamedTuple):
    """Bodies that reach beyond the part of their process."""

    records: np.ndarray  # the bodies, with their owners from now on
    place: np.ndarray  # (k,) among the records, and ...
    rank: np.ndarray  # (k,) ... a process that must know that body


def folded(place, lattice):
    """Places within a periodic cell."""
    place = place.copy()
    for axis in ((lattice.gradient + turn) % 3 for turn in range(3)):
        if np.isfinite(lattice.length[axis]):
            times = np.floor((place[:, axis] - lattice.low[axis]) / lattice.length[axis])
            place[:, axis] -= times * lattice.length[axis]
            if axis == lattice.gradient:
                place[:, lattice.direction] -= times * lattice.tilt
    return place


def shifts_of(lattice):
    """(27, 3) by which the copies of a periodic cell around it lie beside it; less where it does not repeat itself along all axes."""
    times = [(-1, 0, 1) if np.isfinite(length) else (0,) for length in lattice.length]
    length = np.where(np.isfinite(lattice.length), lattice.length, 0.0)
    shifts = []
    for k in itertools.product(*times):
        shift = np.array(k) * length
        shift[lattice.direction] += k[lattice.gradient] * lattice.tilt
        shifts.append(shift)
    return np.array(shifts)


def _letter(bodies, known, update):
    changes = np.empty(len(known), update)
    for name in update.names:
        changes[name] = known[name]
    counts = np.array([len(bodies), len(changes)], np.int64)
    return np.concatenate([part.view(np.uint8).reshape(-1) for part in (counts, bodies, changes)])


def _opened(letter, whole, update):
    if not len(letter):
        return np.empty(0, whole), np.empty(0, update)
    counts = letter[:16].view(np.int64)
    middle = 16 + int(counts[0]) * whole.itemsize
    return letter[16:middle].view(whole), letter[middle:].view(update)
