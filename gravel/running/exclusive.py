"""Exclusive access to an engine: whatever changes it does so alone.

Neither another thread nor a function that a step calls (a motion, a motor, an observer) can come in between: the second claim is refused.
"""

import os
import threading
import weakref
from collections.abc import Callable

from gravel.errors import SimulationError

_gate = threading.Lock()  # held while a claim looks whether there is another, and says that it is there now
if hasattr(os, "register_at_fork"):  # nobody holds the gate while the process is doubled
    os.register_at_fork(before=_gate.acquire, after_in_parent=_gate.release, after_in_child=_gate.release)


def _nobody() -> None:
    return None


class ExclusiveAccess:
    """``with access.claim():`` the block changes the engine alone. A claim while another one holds is refused."""

    def __init__(self):
        self.holder: Callable[[], Claim | None] = _nobody  # the claim that holds, by a weak reference, if there is one

    def claim(self) -> "Claim":
        return Claim(self)


class Claim:
    """The right of one block to change the engine.

    An interrupt may come at any moment, also while the block is being left. The access knows its claim by a weak reference, so the mark
    goes away with the claim itself, where a lock would stay closed."""

    def __init__(self, access: ExclusiveAccess):
        self.access = access

    def __enter__(self) -> "Claim":
        with _gate:
            if self.access.holder() is not None:
                raise SimulationError("a step of this simulation is under way, in another thread or around this call: wait for its end")
            self.access.holder = weakref.ref(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.access.holder = _nobody
