"""The processes that share a scene, as files and the run see them: who am I, what do the others say.

``Communicator`` is what they need of MPI, five calls, so that they know nothing of it (``gravel.running.processes`` fulfils it). Every call
is made by all processes, in the same order. ``call_on_all_ranks`` calls a function on all of them: what one of them raises, all raise, so
that none is left waiting for one that is gone.
"""

import builtins
from collections.abc import Callable
from typing import Any, Protocol


class Communicator(Protocol):
    """Processes with the numbers (ranks) 0 to size - 1."""

    rank: int
    size: int

    def gather(self, value: Any) -> list | None:
        """The values of all ranks, in their order, on rank 0; None elsewhere."""

    def broadcast(self, value: Any) -> Any:
        """The value of rank 0, on all."""

    def all(self, flag: bool) -> bool:
        """Whether all say yes."""

    def any(self, flag: bool) -> bool:
        """Whether one says yes."""

    def barrier(self) -> None:
        """Wait until all have come here."""


def call_on_all_ranks(team: Communicator, function: Callable, *arguments: Any) -> Any:
    """What a function returns on this process, if it went well on all; else all raise the error of the lowest rank on which it did not."""
    if team.size == 1:
        return function(*arguments)
    value, error = None, None
    try:
        value = function(*arguments)
    except Exception as raised:
        error = raised
    raise_on_all_ranks(team, error)
    return value


def raise_on_all_ranks(team: Communicator, error: Exception | None) -> None:
    """Raise on all processes what went wrong on one; None: nothing did here."""
    if team.all(error is None):
        return
    told = team.gather(None if error is None else (type(error).__name__, " ".join(str(error).split())))
    first = team.broadcast(next(((rank, *words) for rank, words in enumerate(told) if words), None) if told else None)
    rank, kind, words = first
    if error is not None and rank == team.rank:
        raise error
    raise _kind(kind)(f"rank {rank}: {words}") from error


def _kind(name: str) -> type[Exception]:
    """The class of an error by its name, where Python has it: those of modules may ask for more than words."""
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, (ValueError, TypeError, OSError)) and not issubclass(kind, UnicodeError):
        return kind
    return RuntimeError
