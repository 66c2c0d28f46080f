"""Synchronisation of a cone problem: velocity increments of the bodies that several processes act on, added up after every sweep.

A body's group are its owner and all processes whose contacts act on it. Before a step's iterations every owner asks those who have ghosts
whether they act on them, and tells the group who is in it. In an iteration each member sends its changes to all others in one message,
and all add up the same numbers in the order of ranks: one round of messages, where passing by the owner takes two, and the same bits
everywhere.
"""

import numpy as np

from gravel.mpi.messenger import BROADCAST, ITERATE, REPLY, PersistentExchange

NO_INDICES = np.empty(0, np.int64)


class SharedBodies:
    single_process = False

    def __init__(self, messenger):
        self.messenger, self.rank = messenger, messenger.rank
        self.indices, self.parts = NO_INDICES, NO_INDICES
        self.exchange = self.joint_broadcast = self.owner_broadcast = None

    def total(self, *numbers):
        return self.messenger.total(*numbers)

    def largest(self, *numbers):
        return self.messenger.largest(*numbers)

    def total_and_largest(self, total, largest):
        return self.messenger.total_and_largest(total, largest)

    # --- before the iterations
    def build_groups(self, engine, halo):
        """Find the groups of this step, and set up the exchange with their members."""
        self.close()
        ids, owner, start, member = self._groups(engine, halo)
        indices = engine.problem_indices(ids)
        group = np.repeat(np.arange(len(ids)), np.diff(start))
        acts = np.zeros(len(ids), bool)
        acts[group[member == self.rank]] = True
        self.indices, self.parts, self.owner, self.acts, self.ids = indices, np.diff(start), owner, acts, ids
        self.group, self.start, self.member = group, start[:-1], member
        real = engine.field("velocity").dtype
        self._plan_exchange(acts, owner, group, start, member, real)
        joined = np.isin(ids, list(halo.joined)) if halo.joined else np.zeros(len(ids), bool)
        self.joint_broadcast = _OwnerBroadcast(self, joined, real) if joined.any() else None
        self.real, self.owner_broadcast = real, None

    def _groups(self, engine, halo):
        """(ids, owner, start, member): bodies that several processes have to do with, by id; the ranks of those who act on body k are
        member[start[k] : start[k + 1]], in order."""
        asked = {other: engine.touched(ids) for other, ids in halo.ghosts_of.items()}
        answers = self.messenger.swap(list(asked), list(halo.ghosted_on), asked, REPLY)
        own, by = [], []
        for other, mask in answers.items():
            ids = halo.ghosted_on[other][mask > 0]
            own.append(ids)
            by.append(np.full(len(ids), other))
        own, by = (np.concatenate(lists) if lists else NO_INDICES for lists in (own, by))
        shared = np.unique(own)
        mine = shared[engine.touched(shared) > 0]
        own, by = np.concatenate([own, mine]), np.concatenate([by, np.full(len(mine), self.rank)])
        order = np.lexsort((by, own))
        own, by = own[order], by[order]
        start = np.searchsorted(own, shared)
        count = np.diff(np.append(start, len(own)))
        told = {}
        for other in halo.ghosted_on:
            some = np.flatnonzero(np.isin(shared, own[by == other]))
            told[other] = np.concatenate([[len(some)], count[some], by[_ranges(start[some], count[some])]]).astype(np.int64)
        membership = self.messenger.swap(list(halo.ghosted_on), list(halo.ghosts_of), told, REPLY)
        ids, owner, counts, members = [shared], [np.full(len(shared), self.rank)], [count], [by]
        for other, message in membership.items():
            numbers = message.view(np.int64)
            n = int(numbers[0])
            mine = halo.ghosts_of[other][asked[other] > 0]
            ids.append(mine)
            owner.append(np.full(n, other))
            counts.append(numbers[1 : n + 1])
            members.append(numbers[n + 1 :])
        ids, owner, counts, members = (np.concatenate(lists) for lists in (ids, owner, counts, members))
        order, first = np.argsort(ids), np.cumsum(counts) - counts
        members = members[_ranges(first[order], counts[order])]
        return ids[order], owner[order], np.append(0, np.cumsum(counts[order])), members

    def _plan_exchange(self, acts, owner, group, start, member, real):
        """What goes to whom in an iteration, and how what comes is added up."""
        n = len(acts)
        others = [r for r in np.unique(np.concatenate([member, owner])).tolist() if r != self.rank]
        has = {r: np.zeros(n, bool) for r in others}
        for r in others:
            has[r][group[member == r]] = True
        self.outgoing_indices = {r: np.flatnonzero(acts & (has[r] | (owner == r))) for r in others}
        self.outgoing_indices = {r: some for r, some in self.outgoing_indices.items() if len(some)}
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
        self.out = {r: np.empty((len(some), 8), real) for r, some in self.outgoing_indices.items()}
        self.exchange = PersistentExchange(self.messenger, self.out, incoming, ITERATE)
        self.share_of = (1.0 / np.maximum(np.diff(start), 1)).astype(real)[:, None]

    def close(self):
        for exchange in (self.exchange, self.joint_broadcast, self.owner_broadcast):
            if exchange is not None:
                exchange.close()
        self.exchange = self.joint_broadcast = self.owner_broadcast = None

    # --- in the iterations
    def snapshot(self, values):
        np.take(values.reshape(-1, 8), self.indices, axis=0, out=self.base)

    def allreduce_increments(self, values, split=False):
        if not len(self.indices):
            return
        values, n = values.reshape(-1, 8), len(self.indices)
        np.subtract(np.take(values, self.indices, axis=0), self.base, out=self.heap[:n])
        if split:
            self.heap[:n] *= self.share_of
        for r, some in self.outgoing_indices.items():
            np.take(self.heap, some, axis=0, out=self.out[r])
        self.exchange.run()
        values[self.indices] = self.base + np.add.reduceat(np.take(self.heap, self.source, axis=0), self.start)

    def locked_bodies(self, turn):
        """In each turn the processes have another order; of those that act on a body, the first has it."""
        if not len(self.indices):
            return self.indices
        order = (self.member * 0x9E3779B1 + turn * 0x85EBCA77) % 0xFFFFFFFB * self.messenger.size + self.member
        first = np.minimum.reduceat(order, self.start) % self.messenger.size
        return self.indices[first != self.rank]

    def broadcast_joint_bodies(self, values):
        if self.joint_broadcast is not None:
            self.joint_broadcast.run(values)

    def broadcast_from_owner(self, values):
        if len(self.indices):
            if self.owner_broadcast is None:
                self.owner_broadcast = _OwnerBroadcast(self, np.ones(len(self.indices), bool), self.real)
            self.owner_broadcast.run(values)

    # --- once a step
    def allreduce_sums(self, sums):
        """Whole numbers: the order in which they are added does not matter."""
        if not len(self.indices):
            return
        messages = {r: np.ascontiguousarray(sums[self.indices[some]]) for r, some in self.outgoing_indices.items()}
        received = self.messenger.swap(list(messages), list(self.coming), messages, REPLY)
        mine = np.where(self.acts[:, None], sums[self.indices], 0)
        for r, message in received.items():
            mine[self.group[self.member == r]] += message.view(sums.dtype).reshape(-1, sums.shape[1])
        sums[self.indices] = mine

    def gather_half_contacts(self, half_contacts):
        """Half contacts go to the owners of their bodies, as records."""
        known = np.full(int(half_contacts.body.max(initial=-1)) + 1, -1)
        shared = self.indices[self.indices < len(known)]
        known[shared] = np.flatnonzero(self.indices < len(known))
        index = known[half_contacts.body]
        owner = np.where(index >= 0, self.owner[index] if len(self.owner) else self.rank, self.rank)
        layout = np.dtype(
            [(name, column.dtype, column.shape[1:]) for name, column in zip(half_contacts._fields, half_contacts)] + [("id", "i8")]
        )
        self.sent = {int(r): np.flatnonzero(owner == r) for r in np.unique(owner) if r != self.rank}
        messages = {}
        for r, some in self.sent.items():
            messages[r] = np.empty(len(some), layout)
            for name, column in zip(half_contacts._fields, half_contacts):
                messages[r][name] = column[some]
            messages[r]["id"] = self.ids[index[some]]
        mine = self.owner[self.group] == self.rank
        self.asking = sorted(set(self.member[mine].tolist()) - {self.rank})
        received = self.messenger.swap(list(messages), self.asking, messages, REPLY)
        self.kept = np.flatnonzero(owner == self.rank)
        records = [received[r].view(layout) for r in self.asking]
        self.counts = [len(some) for some in records]
        columns = []
        for name, column in zip(half_contacts._fields, half_contacts):
            columns.append(np.concatenate([column[self.kept], *(some[name] for some in records)]))
        result = half_contacts._replace(**dict(zip(half_contacts._fields, columns)))
        if records:
            ids = np.concatenate([some["id"] for some in records])
            result.body[len(self.kept) :] = self.indices[np.searchsorted(self.ids, ids)]
        return result

    def return_impulses(self, impulse):
        replies, at = {}, len(self.kept)
        for r, count in zip(self.asking, self.counts):
            replies[r] = np.ascontiguousarray(impulse[at : at + count])
            at += count
        received = self.messenger.swap(self.asking, list(self.sent), replies, REPLY)
        found = np.empty((len(self.kept) + sum(map(len, self.sent.values())), 3))
        found[self.kept] = impulse[: len(self.kept)]
        for r, some in self.sent.items():
            found[some] = received[r].view(np.float64).reshape(-1, 3)
        return found


class _OwnerBroadcast:
    """Broadcast from the owners of some of the shared bodies (a mask) to all others that act on them."""

    def __init__(self, sync, some, real):
        group, member, owner = sync.group, sync.member, sync.owner[sync.group]
        told = some[group] & (member != owner)
        mine, indices = told & (owner == sync.rank), sync.indices
        self.out = {r: indices[group[mine & (member == r)]] for r in np.unique(member[mine]).tolist()}
        heard = told & (member == sync.rank)
        self.into = {r: indices[group[heard & (owner == r)]] for r in np.unique(owner[heard]).tolist()}
        self.outgoing = {r: np.empty((len(some), 8), real) for r, some in self.out.items()}
        self.incoming = {r: np.empty((len(some), 8), real) for r, some in self.into.items()}
        self.exchange = PersistentExchange(sync.messenger, self.outgoing, self.incoming, BROADCAST)

    def run(self, values):
        values = values.reshape(-1, 8)
        for r, indices in self.out.items():
            np.take(values, indices, axis=0, out=self.outgoing[r])
        self.exchange.run()
        for r, indices in self.into.items():
            values[indices] = self.incoming[r]

    def close(self):
        self.exchange.close()


def _ranges(first, count):
    """Indices first[k] to first[k] + count[k], one range after the other."""
    total = int(count.sum())
    ends = np.cumsum(count)
    return np.arange(total) + np.repeat(first - (ends - count), count)
