"""The halo: bodies go to the process in whose part their centre lies, and every process into whose part they reach has a copy.

One exchange of letters a step does it all (paper 004 needs two and sends bodies back and forth). The old owner of a body says who owns it
from now on, and tells everybody whom it reaches, the new owner among them: whole, if they do not know it yet, else what changes from step
to step. Which those are follows from the body alone, so the new owner knows who has copies without being told. A copy of which nobody
writes is forgotten, one step later: until then it can be asked where its contacts went.

Letters are raw bytes: two counts, then records of whole bodies and of updates, whose layout follows from ``gravel.state.FIELDS``.
"""

import itertools

import numpy as np

from gravel.errors import SimulationError
from gravel.mpi.domain import owners, reached
from gravel.state import FIELDS, LEAVING


def _record(fields, real):
    """The layout of one body in a letter."""
    return np.dtype([(f.name, real if f.dtype == "real" else f.dtype, f.shape) for f in fields] + [("reach", "f8")])


NONE = np.empty(0, np.int64)
JOINT_RANK = 0  # the process that owns all bodies with joints, and solves these
AMPLE = 0.01  # of the largest reach: what a periodic cell may change until the middle of a step


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
        real = engine.field("velocity").dtype
        whole = _record(FIELDS, real)
        update = _record([f for f in FIELDS if f.sync == "step" or f.name == "id"], real)
        engine.remove(self.leaving)
        ids, owner, boxes, rank, records = self._look_around(engine, whole)
        letters, staying = {}, {}
        for other in np.unique(rank).tolist():
            some = boxes[rank == other]
            if other == self.rank:
                staying = some
                continue
            known = np.isin(ids[some], self.held_by.get(other, NONE), assume_unique=True)
            letters[other] = _letter(records[some[~known]], records[some[known]], update)
        came = self.post.exchange(letters)
        self._take_in(engine, came, whole, update, ids, owner, boxes, rank, staying)

    def _look_around(self, engine, whole):
        """Own bodies that reach beyond this part: their ids, who owns each from now on, whom each reaches (pairs of place in the list and
        rank), and their records."""
        rows, reach = engine.border()
        ids = engine.ids()
        if self.joined and self.rank == JOINT_RANK:
            more = np.flatnonzero(np.isin(ids, list(self.joined)) & ~np.isin(np.arange(len(ids)), rows))
            rows, reach = np.concatenate([rows, more]), np.concatenate([reach, np.zeros(len(more))])
        order = np.argsort(ids[rows])
        rows, reach = rows[order].copy(), reach[order].copy()
        records = np.empty(len(rows), whole)
        for field in FIELDS:
            records[field.name] = engine.field(field.name)[rows]
        records["reach"] = reach
        owner = self._owners(records)
        records["rank"] = owner
        boxes, rank = self._reached(records)
        return records["id"], owner, boxes, rank, records

    def _owners(self, records):
        place = records["position"]
        owner = owners(self.partition, place if self.lattice is None else folded(place, self.lattice))
        if self.joined:
            owner[np.isin(records["id"], list(self.joined))] = JOINT_RANK
        return owner.astype(np.int32)

    def _reached(self, records):
        """(place, rank) of the processes that must know these bodies, by rank and place: those that they reach, and their owners."""
        place, reach, shifts = records["position"], records["reach"][:, None], np.zeros((1, 3))
        if self.lattice is not None:
            place, reach, shifts = folded(place, self.lattice), reach + AMPLE * reach.max(initial=0.0), shifts_of(self.lattice)
        found = [reached(self.partition, place + shift - reach, place + shift + reach) for shift in shifts]
        found.append((np.arange(len(records)), records["rank"].astype(np.int64)))
        pairs = np.unique(np.concatenate([rank << 40 | box for box, rank in found]))
        return pairs & (1 << 40) - 1, pairs >> 40

    def _take_in(self, engine, came, whole, update, ids, owner, boxes, rank, staying):
        new, updates = [], []
        for other in sorted(came):
            bodies, changes = _opened(came[other], whole, update)
            new.append(bodies)
            updates.append(changes)
        new, updates = np.concatenate(new) if new else np.empty(0, whole), np.concatenate(updates) if updates else np.empty(0, update)
        lost = updates["id"][~np.isin(updates["id"], engine.ids())]
        if len(lost):
            raise SimulationError(f"process {self.rank} was told of body {lost[0]}, which it does not know")
        given = ids[owner != self.rank]  # bodies that go to others; some stay as copies
        if len(given):
            engine.put({"id": given, "rank": owner[owner != self.rank]})
        for records in (new, updates):
            if len(records):
                engine.put({name: records[name] for name in records.dtype.names if name != "reach"})
        self._note_holders(ids, owner, boxes, rank, new, updates)
        self._note_copies(engine, ids, owner, staying, new, updates)
        self.near_border = np.unique(np.concatenate([ids, new["id"], updates["id"], self.leaving]))

    def _note_holders(self, ids, owner, boxes, rank, new, updates):
        """Who has copies of own bodies: of those that stay, and of those that have just come."""
        held = {}
        mine = owner[boxes] == self.rank
        for other in np.unique(rank[mine]).tolist():
            held[other] = [ids[boxes[mine & (rank == other)]]]
        for records in (new, updates):
            records = records[records["rank"] == self.rank]
            if len(records):
                boxes, rank = self._reached(records)
                for other in np.unique(rank).tolist():
                    held.setdefault(other, []).append(records["id"][boxes[rank == other]])
        held.pop(self.rank, None)
        self.held_by = {other: np.sort(np.concatenate(lists)) for other, lists in held.items()}

    def _note_copies(self, engine, ids, owner, staying, new, updates):
        before = np.concatenate([NONE, *self.copies_of.values(), ids[owner != self.rank]])
        staying = staying[owner[staying] != self.rank] if len(staying) else NONE
        now = [(ids[staying], owner[staying])] if len(staying) else []
        now += [(records["id"], records["rank"]) for records in (new, updates)]
        held = np.concatenate([some for some, _ in now]) if now else NONE
        of = np.concatenate([rank for _, rank in now]) if now else NONE
        copies = of != self.rank
        held, of = held[copies], of[copies]
        self.copies_of = {int(other): np.sort(held[of == other]) for other in np.unique(of)}
        came_home = np.concatenate([records["id"][records["rank"] == self.rank] for records in (new, updates)])
        self.leaving = np.setdiff1d(before, np.concatenate([held, came_home]))
        if len(self.leaving):
            engine.put({"id": self.leaving, "rank": LEAVING - engine.pick("rank", self.leaving)})


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
