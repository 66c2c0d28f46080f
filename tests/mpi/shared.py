"""Processes that share a scene, for tests of their files: a team by mpi4py, and simulations that are the same on all ranks, of which each
writes its share. What they write together must be what one of them would write alone."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import gravel as gv
from gravel.state import STATUS, can_move

HERE = pathlib.Path(__file__).parent


class MpiTeam:
    """``gravel.team.Team`` of all processes that mpiexec has started."""

    def __init__(self):
        from mpi4py import MPI

        self.world, self.yes, self.no = MPI.COMM_WORLD, MPI.LAND, MPI.LOR
        self.rank, self.size = self.world.rank, self.world.size

    def gather(self, value):
        return self.world.gather(value)

    def broadcast(self, value):
        return self.world.bcast(value)

    def all(self, flag):
        return self.world.allreduce(bool(flag), self.yes)

    def any(self, flag):
        return self.world.allreduce(bool(flag), self.no)

    def barrier(self):
        self.world.barrier()


class Shared(gv.Simulation):
    """All bodies on all ranks; body k is written by rank k modulo their number, fixed ones by rank 0."""

    def owner_of(self, ids):
        movable = can_move(self.engine.pick("tag", ids)[:, STATUS])
        return np.where(movable, ids % self.team.size, 0)

    def own_ids(self):
        ids = self.engine.ids()
        return ids[self.owner_of(ids) == self.team.rank]

    def owns_contacts(self, a, b):
        """Whose contact it is: that of the body that can move, of two the second's."""
        owner = np.where(can_move(self.engine.pick("tag", b)[:, STATUS]), self.owner_of(b), self.owner_of(a))
        return owner == self.team.rank

    @property
    def contacts(self):
        table = super().contacts
        return table[self.owns_contacts(table.body_a, table.body_b)]

    def memory(self):
        """The engine's memory, of the own contacts."""
        memory = type(self.engine).memory(self.engine)
        row = np.repeat(np.arange(len(memory["number"])), memory["number"])
        own = self.owns_contacts(memory["a"], memory["b"])
        for name in ("a", "b", "feature", "impulse", "torque"):
            memory[name] = memory[name][own] if len(memory[name]) else memory[name]
        return {**memory, "number": np.bincount(row[own], minlength=len(memory["number"])).astype(np.int32)}


def shared(simulation, team):
    """The same simulation, as one of a team."""
    simulation.__class__ = type("SharedByTeam", (Shared,), {"team": team})
    simulation.engine.memory = simulation.memory
    return simulation


def run_ranks(ranks, script, folder, *arguments, fails=False):
    """Run Python on so many processes, in a folder; what they print. ``team`` and ``shared`` are there."""
    pytest.importorskip("mpi4py")
    begin = f"import sys\nsys.path[:0] = [{str(HERE)!r}, {str(HERE.parent / 'io')!r}, {str(HERE.parent)!r}]\n"
    begin += "import os, signal\nimport numpy as np\nimport gravel as gv\nfrom shared import MpiTeam, shared\nteam = MpiTeam()\n"
    command = ["mpiexec", "-n", str(ranks), sys.executable, "-m", "mpi4py", "-c", begin + script, *map(str, arguments)]
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr
