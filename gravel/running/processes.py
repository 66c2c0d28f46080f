"""The processes that share a simulation, as ``Simulation`` sees them: one, or many (``gravel.mpi``).

The step asks here, and nowhere else knows how many there are. One process answers each question by itself.
"""

import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from gravel.engine import available_cores

if TYPE_CHECKING:
    from gravel.engine import Engine, Lattice, Problem

LAUNCHERS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS")  # how launchers say how many
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK")  # and which of them this is


class Traffic(NamedTuple):
    """Messages and ghosts of one step, of all processes together."""

    copies: int = 0  # ghosts, summed over the processes
    messages: int = 0
    bytes: int = 0
    balance: float = 1.0  # work of the busiest process over the mean of all


class Processes(Protocol):
    rank: int  # of this one
    size: int  # how many there are
    solves_joints: bool  # whether this process does

    def threads(self) -> int | None:
        """How many threads this process should use; None: as many as it likes."""

    def gather(self, value: Any) -> list | None:
        """The values of all processes on the first one, None elsewhere."""

    def broadcast(self, value: Any) -> Any:
        """The value of the first process on all."""

    def allgather(self, value: Any) -> list:
        """The values of all processes, on all."""

    def broadcast_from_joint_rank(self, *values: Any) -> tuple:
        """What the process that solves the joints has, on all."""

    def total(self, *numbers: float) -> tuple[float, ...]:
        """Sums over the processes."""

    def largest(self, *numbers: float) -> tuple[float, ...]:
        """Maxima over the processes."""

    def all(self, flag: bool) -> bool:
        """Whether all say yes."""

    def any(self, flag: bool) -> bool:
        """Whether one says yes."""

    def barrier(self) -> None:
        """All have come here before any goes on."""

    def distribute_bodies(
        self, engine: "Engine", block: Mapping[str, Any], replicated: np.ndarray, joined: np.ndarray, common: int
    ) -> None:
        """The engine gets those of the first bodies that this process knows. ``replicated``: mask of bodies that all shall know;
        ``joined``: of those that have joints. The first ``common`` bodies are the same on all processes, the others are this one's."""

    def count_new(self, number: int, local: bool) -> tuple[int, int]:
        """How many new bodies come before those of this process, and how many there are; ``local``: each has its own."""

    def add_bodies(self, engine: "Engine", block: Mapping[str, Any], replicated: np.ndarray, local: bool) -> None:
        """The engine gets those of new bodies that this process shall know."""

    def exchange_halo(self, engine: "Engine") -> None:
        """Before a step: halo exchange. Bodies migrate to their owners, and ghosts are refreshed."""

    def build_shared_body_groups(self, engine: "Engine") -> None:
        """After detection: find out which ranks act on which bodies."""

    def migrate_warm_start(self, engine: "Engine") -> None:
        """Contacts that another process solves from now on start there from the impulses cached here."""

    def set_cell(self, lattice: "Lattice") -> None:
        """Space repeats itself so, where the next step looks."""

    def union(self, ids: np.ndarray) -> np.ndarray:
        """The ids that any process names."""

    def remove(self, engine: "Engine", ids: np.ndarray) -> None:
        """Bodies are taken out, on all processes."""

    def apply_mass_splitting(self, problem: "Problem") -> None:
        """Bodies that several ranks act on enter the problem with their share of the mass."""

    def finish_step(self, engine: "Engine") -> Traffic:
        """After a step."""


class OneProcess:
    rank, size, solves_joints = 0, 1, True

    def threads(self):
        return None

    def gather(self, value):
        return [value]

    def broadcast(self, value):
        return value

    def allgather(self, value):
        return [value]

    def broadcast_from_joint_rank(self, *values):
        return values

    def total(self, *numbers):
        return numbers

    def largest(self, *numbers):
        return numbers

    def all(self, flag):
        return flag

    def any(self, flag):
        return flag

    def barrier(self):
        pass

    def distribute_bodies(self, engine, block, replicated, joined, common):
        engine.add(block)

    def count_new(self, number, local):
        return 0, number

    def add_bodies(self, engine, block, replicated, local):
        engine.add(block)

    def exchange_halo(self, engine):
        pass

    def build_shared_body_groups(self, engine):
        pass

    def migrate_warm_start(self, engine):
        pass

    def set_cell(self, lattice):
        pass

    def union(self, ids):
        return ids

    def remove(self, engine, ids):
        engine.remove(ids)

    def apply_mass_splitting(self, problem):
        pass

    def finish_step(self, engine):
        return Traffic()


def launched() -> bool:
    """Whether this process was started as one of several, by mpiexec or the like, or as ``python -m mpi4py``."""
    return "mpi4py.MPI" in sys.modules or any(
        os.environ.get(name, "1").isdigit() and int(os.environ.get(name, "1")) > 1 for name in LAUNCHERS
    )


def make_processes(domain: Any) -> Processes:
    """Who shares a simulation. ``domain``: how space is shared out; "auto": by bisection where several processes were started; None: this
    process works alone."""
    if domain is None or (isinstance(domain, str) and domain == "auto" and not launched()):
        return OneProcess()
    try:
        from gravel.mpi.processes import many_processes
    except ImportError as error:
        raise ImportError(
            f'several processes need mpi4py and an MPI ({error}): pip install "gravel[mpi]", or mpi4py with the MPI of your cluster'
        ) from error
    return many_processes(domain)


def wait_for_the_first() -> None:
    """Of several processes that have met with an error, give the first one time to say so and to end the job: mostly all have the same."""
    rank = next((os.environ[name] for name in RANKS if name in os.environ), "0")
    if launched() and rank != "0":
        time.sleep(2.0)


def number_new(number: int) -> tuple[int, int]:
    """How many new bodies come before the ``number`` of this process, and how many there are, where each process has its own."""
    if not launched():
        return 0, number
    from mpi4py import MPI

    counts = MPI.COMM_WORLD.allgather(number)
    return sum(counts[: MPI.COMM_WORLD.rank]), sum(counts)


def threads_for(processes: int) -> int:
    """Threads of each of so many processes on this machine."""
    return max(1, available_cores() // processes)
