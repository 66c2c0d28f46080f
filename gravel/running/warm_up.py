"""Before its first step an engine prepares, which may mean to compile kernels."""

import contextlib
from collections.abc import Callable, Iterator

from gravel.engine import Engine
from gravel.running.machines import Machines
from gravel.running.processes import Processes
from gravel.running.rules import RulesUpload

READY = contextlib.nullcontext()


class WarmUp:
    """``with warm_up.before_first_step(tell):`` the engine is prepared in the first such block; ``tell`` is told in words what takes a
    while."""

    def __init__(self, engine: Engine, processes: Processes, rules: RulesUpload, machines: Machines):
        self.engine, self.processes, self.rules, self.machines = engine, processes, rules, machines
        self.stepped = False  # whether a step was taken

    def begin(self, tell: Callable[[str], None]) -> Callable[[], None]:
        """Prepare; returns what ends the telling."""
        self.rules.upload()
        return self.engine.warm_up(tell, self.machines.solved_here, self.processes.size > 1)

    def compile(self) -> None:
        """Compile all kernels that the steps need, for later runs."""
        self.rules.upload()
        self.engine.compile(self.machines.solved_here)

    def before_first_step(self, tell: Callable[[str], None]) -> contextlib.AbstractContextManager:
        return READY if self.stepped else self._first_step(tell)

    @contextlib.contextmanager
    def _first_step(self, tell) -> Iterator[None]:
        end = self.begin(tell)
        try:
            yield
            self.stepped = True
        finally:
            end()
