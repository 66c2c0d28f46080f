"""The processes of an MPI job that share a simulation: ``gravel.running.processes.Processes`` on mpi4py."""

import os
import sys
import time

import numpy as np
from mpi4py import MPI

from gravel.errors import SimulationError
from gravel.mpi.domain import DOMAINS, Bisection, half_spaces, neighbours, owners
from gravel.mpi.halo import JOINT_RANK, Halo, shifts_of
from gravel.mpi.messenger import Messenger
from gravel.mpi.shared_bodies import SharedBodies
from gravel.running.processes import OneProcess, Traffic, threads_for
from gravel.state import FIELD, REMOVED, REPLICATED, STATUS, can_move

SAMPLE = 400_000  # bodies whose positions decide where to cut, of all processes
NEAR = 4.0  # times the largest radius: parts that come nearer to each other than this are neighbours
MOST_PATIENCE = 64  # times ``Bisection.every``


def many_processes(domain):
    """The processes that mpiexec started, with space shared out as ``domain`` says."""
    domain = Bisection() if isinstance(domain, str) and domain == "auto" else domain
    if not isinstance(domain, DOMAINS):
        raise TypeError(f'domain must be a Grid, a Hexagons, a Bisection, "auto" or None, not {domain!r}')
    if MPI.COMM_WORLD.size == 1:
        domain.cut(np.zeros((1, 3)), np.ones(1), 1)  # refuse a grid of several boxes
        return OneProcess()
    _end_all_on_error()
    return ManyProcesses(MPI.COMM_WORLD.Dup(), domain)


def _end_all_on_error():
    """An uncaught error ends the whole job: the others would wait for this process for ever."""
    if getattr(sys.excepthook, "ends_all", False):
        return
    before = sys.excepthook

    def hook(kind, error, trace):
        before(kind, error, trace)
        sys.stderr.write(f"process {MPI.COMM_WORLD.rank} of {MPI.COMM_WORLD.size} failed with {kind.__name__}: the job ends\n")
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)

    hook.ends_all = True
    sys.excepthook = hook


class ManyProcesses:
    def __init__(self, comm, domain):
        self.comm, self.domain = comm, domain
        self.rank, self.size = comm.rank, comm.size
        machine = comm.Split_type(MPI.COMM_TYPE_SHARED)
        self.neighbours_here = machine.size  # processes on this machine
        machine.Free()
        self.messenger = Messenger(comm)
        self.halo, self.sync = Halo(self.messenger), SharedBodies(self.messenger)
        self.bodies = 0  # how many there must be
        self.spent, self.patience = [], 1  # s of work in the steps since the last look; how long to wait for the next

    # --- all of them together
    def gather(self, value):
        return self.comm.gather(value)

    def broadcast(self, value):
        return self.comm.bcast(value)

    def allgather(self, value):
        return self.comm.allgather(value)

    def broadcast_from_joint_rank(self, *values):
        return self.comm.bcast(values, JOINT_RANK)

    def total(self, *numbers):
        return self.messenger.total(*numbers)

    def largest(self, *numbers):
        return self.messenger.largest(*numbers)

    def all(self, flag):
        return self.messenger.total(not flag)[0] == 0

    def any(self, flag):
        return self.messenger.total(bool(flag))[0] > 0

    def barrier(self):
        self.comm.Barrier()

    def threads(self):
        return None if "OMP_NUM_THREADS" in os.environ else threads_for(self.neighbours_here)

    @property
    def solves_joints(self):
        return self.rank == JOINT_RANK

    # --- bodies
    def distribute_bodies(self, engine, block, replicated, joined, common):
        movable, own = can_move(_column(block["tag"], STATUS, len(replicated))), np.arange(len(replicated)) >= common
        positions = block["position"][movable & ~replicated & ~own]
        if self.any(own.any()):
            some = block["position"][movable & own]
            most = int(self.messenger.largest(len(some))[0])
            positions = np.concatenate([positions, *self.comm.allgather(some[:: max(1, most * self.size // SAMPLE)])])
        (self.largest_radius,) = self.messenger.largest(float(_column(block["extent"], 3, len(replicated))[movable].max(initial=0.0)))
        self._cut(engine, positions, np.ones(len(positions)))
        self.halo.joined = {int(i) for i in np.asarray(block["id"])[joined & movable]}
        for local, some in ((False, ~own), (True, own)):
            if self.any(some.any()):
                self.add_bodies(engine, {name: values[some] for name, values in block.items()}, replicated[some], local)

    def _cut(self, engine, positions, weights):
        """Partition space for bodies at these positions, which are the same on all processes."""
        partition = self.domain.cut(positions, weights, self.size)
        self.partition = partition._replace(rank=self.rank, border=half_spaces(partition, self.rank))
        engine.set_partition(self.partition, self.sync)
        self.halo.partition = self.partition
        self._find_neighbours()

    def _find_neighbours(self):
        """Processes whose parts are near always write to each other; what goes further is rare."""
        lattice, low, high, shifts = self.halo.lattice, np.full(3, -np.inf), np.full(3, np.inf), np.zeros((1, 3))
        if lattice is not None:
            repeats = np.isfinite(lattice.length)
            low[repeats], high[repeats] = lattice.low[repeats], (lattice.low + lattice.length)[repeats]
            shifts = shifts_of(lattice)
        near = neighbours(self.partition, self.rank, NEAR * self.largest_radius, low, high, shifts)
        listed = self.comm.allgather(near)
        self.messenger.neighbours = sorted(near | {rank for rank, theirs in enumerate(listed) if self.rank in theirs})
        self.messenger.all_near = all(len(theirs) == self.size - 1 for theirs in listed)

    def count_new(self, number, local):
        if not local:
            if len(set(self.comm.allgather(number))) > 1:
                raise ValueError("bodies that all processes add must be the same on all; those of one process need local=True")
            return 0, number
        counts = self.comm.allgather(number)
        return sum(counts[: self.rank]), sum(counts)

    def add_bodies(self, engine, block, replicated, local):
        """Local bodies may lie anywhere: the next step takes them to their owners."""
        n = len(block["position"])
        rank = np.full(n, self.rank) if local else owners(self.partition, np.asarray(block["position"]))
        if local and np.any(replicated):
            raise ValueError("fixed bodies that are large must be added by all processes alike, not with local=True")
        rank[np.isin(np.asarray(block["id"]), list(self.halo.joined))] = JOINT_RANK
        rank[replicated] = REPLICATED
        new = int(np.count_nonzero(rank != REPLICATED))
        self.bodies += int(self.messenger.total(new)[0]) if local else new
        here = (rank == self.rank) | replicated
        kept = {name: values[here] if _is_by_body(name, values, n) else values for name, values in block.items()}
        engine.add({**kept, "rank": rank[here].astype(np.int32)})

    # --- the step
    def exchange_halo(self, engine):
        self.begun = time.perf_counter(), self.messenger.waited
        self.halo.exchange(engine)

    def build_shared_body_groups(self, engine):
        self.sync.build_groups(engine, self.halo)

    def migrate_warm_start(self, engine):
        """Raw bytes again, one record a contact."""
        target, known = engine.moved_contacts(self.halo.near_border)
        real = known[3].dtype
        layout = np.dtype([("a", "i8"), ("b", "i8"), ("feature", "i4"), ("impulse", real, 3), ("torque", real, 3)])
        records = np.empty(len(target), layout)
        for name, values in zip(layout.names, known):
            records[name] = values
        messages = {int(rank): records[target == rank] for rank in np.unique(target)}
        received = self.messenger.exchange(messages)
        told = np.concatenate([received[rank].view(layout) for rank in sorted(received)])
        engine.adopt(tuple(np.ascontiguousarray(told[name]) for name in layout.names))

    def set_cell(self, lattice):
        first, self.halo.lattice = self.halo.lattice is None, lattice
        if first:
            self._find_neighbours()

    def union(self, ids):
        return np.unique(np.concatenate(self.comm.allgather(ids)))

    def remove(self, engine, ids):
        mine = int(np.count_nonzero(engine.pick("rank", ids[engine.pick("tag", ids)[:, STATUS] != REMOVED]) == self.rank))
        engine.remove(ids)
        self.halo.remove(ids)
        self.bodies -= int(self.messenger.total(mine)[0])

    def apply_mass_splitting(self, problem):
        if len(self.sync.indices):
            problem.split(self.sync.indices, self.sync.parts)

    def finish_step(self, engine):
        own = int(np.count_nonzero(engine.field("rank") == self.rank))
        spent = time.perf_counter() - self.begun[0] - (self.messenger.waited - self.begun[1])
        numbers = self.messenger.total(own, self.halo.ghosts, self.messenger.messages, self.messenger.bytes, spent)
        (slowest,) = self.messenger.largest(spent)
        self.messenger.messages = self.messenger.bytes = 0
        if int(numbers[0]) != self.bodies:
            raise SimulationError(
                f"there must be {self.bodies} bodies, but the processes have {int(numbers[0])}: a body was lost or doubled"
            )
        self.spent.append(spent)
        if isinstance(self.domain, Bisection) and self.domain.balance is not None:
            self._balance(engine)
        return Traffic(int(numbers[1]), int(numbers[2]), int(numbers[3]), slowest * self.size / max(numbers[4], 1e-12))

    # --- balance
    def _balance(self, engine):
        """Cut anew if the slowest process was too slow for long enough. Where that did not help the last time, wait twice as long."""
        if len(self.spent) < self.domain.every * self.patience:
            return
        cost = float(np.median(self.spent))
        self.spent = []
        (slowest,), (total,) = self.messenger.largest(cost), self.messenger.total(cost)
        if slowest <= (1.0 + self.domain.balance) * total / self.size:
            self.patience = 1
            return
        self.patience = min(2 * self.patience, MOST_PATIENCE)
        self.cut_by_cost(engine, cost)

    def cut_by_cost(self, engine, cost):
        """Share out space anew, where the bodies of this process cost so much together."""
        mine = (engine.field("rank") == self.rank) & can_move(engine.field("tag")[:, STATUS])
        rows = np.flatnonzero(mine)[np.argsort(engine.ids()[mine])]
        rows = rows[:: max(1, int(self.messenger.largest(len(rows))[0]) * self.size // SAMPLE)]
        weights = np.full(len(rows), cost / max(len(rows), 1))
        pieces = self.comm.allgather((engine.field("position")[rows], weights))
        self._cut(engine, *(np.concatenate(column) for column in zip(*pieces)))


def _column(tag, column, n):
    return np.broadcast_to(np.asarray(tag), (n, 4))[:, column]


def _is_by_body(name, values, n):
    """Whether an array has a row for each of n bodies, and not one for all."""
    return np.ndim(values) == 1 + len(FIELD[name].shape) and len(values) == n
