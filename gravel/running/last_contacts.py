"""The contacts of the last step: the engine's, those that a file or another simulation gave, or none before the first step.

While a step is under way, and after one that was refused, the engine holds contacts of no step that was taken.
"""

from gravel.contacts import ContactTable
from gravel.engine import Engine
from gravel.errors import SimulationError


class LastContacts:
    def __init__(self, engine: Engine):
        self.engine, self.known = engine, True
        self._given: ContactTable | None = ContactTable.empty()  # None: the engine has them

    def table(self) -> ContactTable:
        if not self.known:
            raise SimulationError("contacts are not known after a refused step: take a good step first")
        return self.engine.contacts() if self._given is None else self._given

    def give(self, table: ContactTable) -> None:
        """They are these, until the next step."""
        self._given = table

    def step_begins(self) -> None:
        self.known = False

    def step_taken(self) -> None:
        self.known, self._given = True, None
