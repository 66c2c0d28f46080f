"""Messages between processes, and a count of them.

Sizes that a receiver cannot know are found by probing (paper 004, Algorithm 1); within a step the sizes stay, so its iterations use
persistent requests. Whoever waits here is not working: the time is taken down.
"""

import math
import time

import numpy as np
from mpi4py import MPI

EXCHANGE, REPLY, ITERATE, BROADCAST = range(1, 5)  # tags: what a message is about
NOTHING = np.empty(0, np.uint8)
FEW = 64  # processes, that can all tell each other two numbers


class Messenger:
    def __init__(self, comm):
        self.comm, self.rank, self.size = comm, comm.rank, comm.size
        self.messages, self.bytes, self.waited = 0, 0, 0.0
        self.neighbours = [r for r in range(comm.size) if r != comm.rank]  # who always write to each other
        self.all_near = True  # whether all are neighbours of all
        self._pairs = np.empty((comm.size, 2))
        self._in, self._out = np.empty(32), np.empty(32)  # numbers of a sum or maximum

    # --- messages of any size
    def exchange(self, messages):
        """Send bytes (rank -> array) and return what came, by rank. Neighbours always write, if only that there is nothing; where anybody
        writes to somebody else, all do."""
        far = [rank for rank in messages if rank not in self.neighbours]
        partners = self.neighbours
        if not self.all_near and self.largest(float(len(far) > 0))[0] > 0:
            partners = [rank for rank in range(self.size) if rank != self.rank]
        return self.swap(partners, partners, messages, EXCHANGE)

    def swap(self, to, sources, messages, tag):
        """Send one message to each of ``to`` (what ``messages`` has for it, or nothing) and receive one from each of ``sources``."""
        started = time.perf_counter()
        out = [messages.get(rank, NOTHING).view(np.uint8).reshape(-1) for rank in to]
        sent = [self.comm.Isend(message, rank, tag) for rank, message in zip(to, out)]
        status, received = MPI.Status(), {}
        for rank in sources:
            message = self.comm.Mprobe(rank, tag, status)
            received[rank] = np.empty(status.Get_count(MPI.BYTE), np.uint8)
            message.Recv(received[rank])
        MPI.Request.Waitall(sent)
        self._count(out)
        self.waited += time.perf_counter() - started
        return received

    def _count(self, out):
        self.messages += len(out)
        self.bytes += sum(message.nbytes for message in out)

    # --- numbers
    def total(self, *numbers):
        return self._reduce(numbers, MPI.SUM)

    def largest(self, *numbers):
        """What is not a number counts as infinite: maxima of such would differ from process to process."""
        return self._reduce([math.inf if math.isnan(number) else number for number in numbers], MPI.MAX)

    def total_and_largest(self, total, largest):
        """In one message where there are few processes: it is needed in every iteration."""
        if self.size > FEW:
            return self.total(total)[0], self.largest(largest)[0]
        started = time.perf_counter()
        self._in[:2] = total, math.inf if math.isnan(largest) else largest
        self.comm.Allgather(self._in[:2], self._pairs)
        self.waited += time.perf_counter() - started
        return math.fsum(self._pairs[:, 0]), float(self._pairs[:, 1].max())

    def _reduce(self, numbers, operation):
        started, n = time.perf_counter(), len(numbers)
        self._in[:n] = numbers
        self.comm.Allreduce(self._in[:n], self._out[:n], operation)
        self.waited += time.perf_counter() - started
        return tuple(self._out[:n].tolist())


class PersistentExchange:
    """Arrays that go to and come from some processes again and again, with persistent requests."""

    def __init__(self, messenger, out, into, tag):
        """``out`` and ``into``: rank -> array, whose memory is used from now on."""
        self.messenger, self.bytes = messenger, sum(array.nbytes for array in out.values())
        self.requests = [messenger.comm.Recv_init(array, rank, tag) for rank, array in into.items()]
        self.requests += [messenger.comm.Send_init(array, rank, tag) for rank, array in out.items()]
        self.number = len(out)

    def run(self):
        """Send all and receive all."""
        if self.requests:
            started = time.perf_counter()
            MPI.Prequest.Startall(self.requests)
            MPI.Request.Waitall(self.requests)
            self.messenger.messages += self.number
            self.messenger.bytes += self.bytes
            self.messenger.waited += time.perf_counter() - started

    def close(self):
        for request in self.requests:
            request.Free()
        self.requests = []
