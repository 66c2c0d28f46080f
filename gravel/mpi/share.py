"""The share of a cone problem: velocities of bodies that several processes act on, added up after every sweep.

A body's group are its owner and all processes whose contacts act on it. Before a step's iterations every owner asks those who have copies
whether they act on them, and tells the group who is in it. In an iteration each member sends its changes to all others in one message,
and all add up the same numbers in the order of ranks: one round of messages, where passing by the owner takes two, and the same bits
everywhere.
"""

import numpy as np

from gravel.mpi.post import ITERATE, PUBLISH, REPLY, Lines

NO_PLACES = np.empty(0, np.int64)


class SharedBodies:
    alone = False

    def __init__(self, post):
        self.post, self.rank = post, post.rank
        self.places, self.parts = NO_PLACES, NO_PLACES
        self.lines = self.news = self.spreading = None

    def total(self, *numbers):
        return self.post.total(*numbers)

    def largest(self, *numbers):
        return self.post.largest(*numbers)

    def both(self, total, largest):
        return self.post.both(total, largest)

    # --- before the iterations
    def meet(self, engine, halo):
        """Find the groups of this step, and lay the lines to their members."""
        self.close()
        ids, owner, start, member = self._groups(engine, halo)
        places = engine.places_of(ids)
        group = np.repeat(np.arange(len(ids)), np.diff(start))
        acts = np.zeros(len(ids), bool)
        acts[group[member == self.rank]] = True
        self.places, self.parts, self.owner, self.acts, self.ids = places, np.diff(start), owner, acts, ids
        self.group, self.start, self.member = group, start[:-1], member
        real = engine.field("velocity").dtype
        self._lay_lines(acts, owner, group, start, member, real)
        joined = np.isin(ids, list(halo.joined)) if halo.joined else np.zeros(len(ids), bool)
        self.news = _News(self, joined, real) if joined.any() else None
        self.real, self.spreading = real, None

    def _groups(self, engine, halo):
        """(ids, owner, start, member): bodies that several processes have to do with, by id; the ranks of those who act on body k are
        member[start[k] : start[k + 1]], in order."""
        asked = {other: engine.touched(ids) for other, ids in halo.copies_of.items()}
        answers = self.post.swap(list(asked), list(halo.held_by), asked, REPLY)
        own, by = [], []
        for other, mask in answers.items():
            ids = halo.held_by[other][mask > 0]
            own.append(ids)
            by.append(np.full(len(ids), other))
        own, by = (np.concatenate(lists) if lists else NO_PLACES for lists in (own, by))
        shared = np.unique(own)
        mine = shared[engine.touched(shared) > 0]
        own, by = np.concatenate([own, mine]), np.concatenate([by, np.full(len(mine), self.rank)])
        order = np.lexsort((by, own))
        own, by = own[order], by[order]
        start = np.searchsorted(own, shared)
        count = np.diff(np.append(start, len(own)))
        told = {}
        for other in halo.held_by:
            some = np.flatnonzero(np.isin(shared, own[by == other]))
            told[other] = np.concatenate([[len(some)], count[some], by[_ranges(start[some], count[some])]]).astype(np.int64)
        news = self.post.swap(list(halo.held_by), list(halo.copies_of), told, REPLY)
        ids, owner, counts, members = [shared], [np.full(len(shared), self.rank)], [count], [by]
        for other, letter in news.items():
            numbers = letter.view(np.int64)
            n = int(numbers[0])
            mine = halo.copies_of[other][asked[other] > 0]
            ids.append(mine)
            owner.append(np.full(n, other))
            counts.append(numbers[1 : n + 1])
            members.append(numbers[n + 1 :])
        ids, owner, counts, members = (np.concatenate(lists) for lists in (ids, owner, counts, members))
        order, first = np.argsort(ids), np.cumsum(counts) - counts
        members = members[_ranges(first[order], counts[order])]
        return ids[order], owner[order], np.append(0, np.cumsum(counts[order])), members

    def _lay_lines(self, acts, owner, group, start, member, real):
        """What goes to whom in an iteration, and how what comes is added up."""
        n = len(acts)
        others = [r for r in np.unique(np.concatenate([member, owner])).tolist() if r != self.rank]
        has = {r: np.zeros(n, bool) for r in others}
        for r in others:
            has[r][group[member == r]] = True
        self.out_places = {r: np.flatnonzero(acts & (has[r] | (owner == r))) for r in others}
        self.out_places = {r: some for r, some in self.out_places.items() if len(some)}
        into = {r: int(np.count_nonzero(has[r])) for r in others if has[r].any()}
        self.coming = into
        self.heap = np.zeros((n + sum(into.values()), 8), real)  # own changes, then what came
        self.base = np.zeros((n, 8), real)
        source, at, incoming = np.where(member == self.rank, group, 0), n, {}
        for r, count in into.items():
            source[member == r] = at + np.arange(count)
            incoming[r] = self.heap[at : at + count]
            at += count
        self.source = source
        self.out = {r: np.empty((len(some), 8), real) for r, some in self.out_places.items()}
        self.lines = Lines(self.post, self.out, incoming, ITERATE)
        self.share_of = (1.0 / np.maximum(np.diff(start), 1)).astype(real)[:, None]

    def close(self):
        for lines in (self.lines, self.news, self.spreading):
            if lines is not None:
                lines.close()
        self.lines = self.news = self.spreading = None

    # --- in the iterations
    def note(self, values):
        np.take(values.reshape(-1, 8), self.places, axis=0, out=self.base)

    def add(self, values, split=False):
        if not len(self.places):
            return
        values, n = values.reshape(-1, 8), len(self.places)
        np.subtract(np.take(values, self.places, axis=0), self.base, out=self.heap[:n])
        if split:
            self.heap[:n] *= self.share_of
        for r, some in self.out_places.items():
            np.take(self.heap, some, axis=0, out=self.out[r])
        self.lines.run()
        values[self.places] = self.base + np.add.reduceat(np.take(self.heap, self.source, axis=0), self.start)

    def barred(self, turn):
        """In each turn the processes have another order; of those that act on a body, the first has it."""
        if not len(self.places):
            return self.places
        order = (self.member * 0x9E3779B1 + turn * 0x85EBCA77) % 0xFFFFFFFB * self.post.size + self.member
        first = np.minimum.reduceat(order, self.start) % self.post.size
        return self.places[first != self.rank]

    def publish(self, values):
        if self.news is not None:
            self.news.run(values)

    def spread(self, values):
        if len(self.places):
            if self.spreading is None:
                self.spreading = _News(self, np.ones(len(self.places), bool), self.real)
            self.spreading.run(values)

    # --- once a step
    def sums(self, sums):
        """Whole numbers: the order in which they are added does not matter."""
        if not len(self.places):
            return
        letters = {r: np.ascontiguousarray(sums[self.places[some]]) for r, some in self.out_places.items()}
        came = self.post.swap(list(letters), list(self.coming), letters, REPLY)
        mine = np.where(self.acts[:, None], sums[self.places], 0)
        for r, letter in came.items():
            mine[self.group[self.member == r]] += letter.view(sums.dtype).reshape(-1, sums.shape[1])
        sums[self.places] = mine

    def constraints(self, halves):
        """Half contacts go to the owners of their bodies, as records."""
        known = np.full(int(halves.body.max(initial=-1)) + 1, -1)
        shared = self.places[self.places < len(known)]
        known[shared] = np.flatnonzero(self.places < len(known))
        place = known[halves.body]
        owner = np.where(place >= 0, self.owner[place] if len(self.owner) else self.rank, self.rank)
        layout = np.dtype([(name, column.dtype, column.shape[1:]) for name, column in zip(halves._fields, halves)] + [("id", "i8")])
        self.sent = {int(r): np.flatnonzero(owner == r) for r in np.unique(owner) if r != self.rank}
        letters = {}
        for r, some in self.sent.items():
            letters[r] = np.empty(len(some), layout)
            for name, column in zip(halves._fields, halves):
                letters[r][name] = column[some]
            letters[r]["id"] = self.ids[place[some]]
        mine = self.owner[self.group] == self.rank
        self.asking = sorted(set(self.member[mine].tolist()) - {self.rank})
        came = self.post.swap(list(letters), self.asking, letters, REPLY)
        self.kept = np.flatnonzero(owner == self.rank)
        records = [came[r].view(layout) for r in self.asking]
        self.counts = [len(some) for some in records]
        columns = []
        for name, column in zip(halves._fields, halves):
            columns.append(np.concatenate([column[self.kept], *(some[name] for some in records)]))
        result = halves._replace(**dict(zip(halves._fields, columns)))
        if records:
            ids = np.concatenate([some["id"] for some in records])
            result.body[len(self.kept) :] = self.places[np.searchsorted(self.ids, ids)]
        return result

    def impulses(self, impulse):
        replies, at = {}, len(self.kept)
        for r, count in zip(self.asking, self.counts):
            replies[r] = np.ascontiguousarray(impulse[at : at + count])
            at += count
        came = self.post.swap(self.asking, list(self.sent), replies, REPLY)
        found = np.empty((len(self.kept) + sum(map(len, self.sent.values())), 3))
        found[self.kept] = impulse[: len(self.kept)]
        for r, some in self.sent.items():
            found[some] = came[r].view(np.float64).reshape(-1, 3)
        return found


class _News:
    """Lines from the owners of some of the shared bodies (a mask) to all others who act on them."""

    def __init__(self, share, some, real):
        group, member, owner = share.group, share.member, share.owner[share.group]
        told = some[group] & (member != owner)
        mine, places = told & (owner == share.rank), share.places
        self.out = {r: places[group[mine & (member == r)]] for r in np.unique(member[mine]).tolist()}
        heard = told & (member == share.rank)
        self.into = {r: places[group[heard & (owner == r)]] for r in np.unique(owner[heard]).tolist()}
        self.told = {r: np.empty((len(some), 8), real) for r, some in self.out.items()}
        self.heard = {r: np.empty((len(some), 8), real) for r, some in self.into.items()}
        self.lines = Lines(share.post, self.told, self.heard, PUBLISH)

    def run(self, values):
        values = values.reshape(-1, 8)
        for r, places in self.out.items():
            np.take(values, places, axis=0, out=self.told[r])
        self.lines.run()
        for r, places in self.into.items():
            values[places] = self.heard[r]

    def close(self):
        self.lines.close()


def _ranges(first, count):
    """Indices first[k] to first[k] + count[k], one range after the other."""
    total = int(count.sum())
    ends = np.cumsum(count)
    return np.arange(total) + np.repeat(first - (ends - count), count)
