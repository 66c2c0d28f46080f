"""What the bodies of a simulation are made of.

Materials are told apart by object and numbered; ``BodyMaterials`` knows the number of each body's. Equal materials share a row of the table
of contact values (``model.materials.Materials``); the engine knows each body's row, as a column of its tag.
"""

from array import array
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from gravel import checks
from gravel.engine import Engine
from gravel.model.materials import Material, Materials
from gravel.state import MATERIAL, REMOVED, STATUS

Check = Callable[[np.ndarray], None]  # refuses contact values


class BodyMaterials:
    """The materials of a simulation, and the number of each body's. ``version`` counts the changes of what bodies do at contacts."""

    def __init__(self, engine: Engine, table: Materials, numbers: array):
        """``numbers``: of the material of each body, by id; -1 where an id was never used."""
        self.engine, self.table, self.version = engine, table, 0
        self._numbers = numbers
        self._mark()

    def __len__(self) -> int:
        """How many ids are known."""
        return len(self._numbers)

    def contact_values(self) -> np.ndarray:
        """(rows, rows, 5), see ``Materials.contact_values``."""
        return self.table.contact_values()

    def numbers(self, count: int) -> np.ndarray:
        """(count,) numbers by id, to be read; -1 where an id was never used."""
        numbers = np.full(count, -1, np.int32)
        numbers[: len(self._numbers)] = np.frombuffer(self._numbers, np.int32)
        numbers.flags.writeable = False
        return numbers

    def material_of(self, body: int) -> Material:
        if checks.count("body", body) >= len(self._numbers) or self._numbers[body] < 0:
            raise ValueError(f"body must be one that is there, but {body} is not")
        return self.table[self._numbers[body]]

    def number_of(self, material: Material) -> int:
        """The number of a material; a new one is added."""
        known = len(self.table.kinds)
        number = self.table.number_of(material)
        self.version += len(self.table.kinds) > known
        return number

    def append(self, first: int, runs: Iterable[tuple[int, int]]) -> None:
        """New bodies have the ids from ``first`` on: runs of so many bodies of the material with this number."""
        self._numbers += array("i", [-1]) * (first - len(self._numbers))
        for many, number in runs:
            self._numbers += array("i", [number]) * many

    def set_pair(self, material_a: Material, material_b: Material, values: Mapping[str, float], check: Check) -> None:
        """Change the contact values of a pair. ``check`` may refuse the outcome; then all is as before."""
        for name, material in (("material_a", material_a), ("material_b", material_b)):
            if isinstance(material, Material) and material not in self.table and material in self.table.kinds:
                raise ValueError(f"{name} must be what material_of(body) gives, not another Material that is equal to it")
        self._change(lambda: self.table.set_pair(material_a, material_b, values), check)

    def set_material(self, bodies: np.ndarray, material: Material, check: Check) -> None:
        """Bodies (ids) are made of another material from now on. ``check`` may refuse the outcome; then all is as before."""
        removed = self.engine.pick("tag", bodies)[:, STATUS] == REMOVED
        if removed.any():
            raise ValueError(f"ids must be those of bodies that are there, but body {bodies[removed][0]} was removed")

        def change():
            number = self.table.number_of(material)
            for body in bodies.tolist():
                self._numbers[body] = number

        self._change(change, check)

    def copy_from(self, other: "BodyMaterials") -> None:
        """The materials of another simulation with the same bodies, the objects themselves."""
        self.table, self._numbers = other.table.copy(), other._numbers[:]

    def _change(self, change, check):
        before = self.table, self._numbers
        self.table, self._numbers = self.table.copy(), self._numbers[:]
        try:
            change()
            self._mark()
            check(self.contact_values())
        except BaseException:
            self.table, self._numbers = before
            self._mark()
            raise
        self.version += 1

    def _mark(self):
        """The engine is told the row of each body's material in the table of contact values."""
        number = np.frombuffer(self._numbers, np.int32)[self.engine.ids()]
        self.engine.set_field("tag", slice(MATERIAL, MATERIAL + 1), np.array(self.table.row, np.int32)[number, None])
