"""The fields of a body: one table says name, shape, type, unit and frame, and who keeps them in step across processes.

``Bodies`` holds the fields as arrays that grow. Rows are never moved or used again: the row of a body is its id for
life, so the arrays are what users see, without a copy. Positions and turns are always in double precision, so that a
grain far from the origin keeps its exact place; ``real`` is the precision of the simulation.
"""

from typing import NamedTuple

import numpy as np

REMOVED, IMMOVABLE, MOVABLE = 0, 1, 2


class Field(NamedTuple):
    name: str
    shape: tuple
    dtype: str  # "real": single or double, as the simulation asks
    unit: str
    frame: str
    sync: str  # "once": when a body enters a process; "step": refreshed for ghosts in every step; "owner": not shared


FIELDS = (
    Field("position", (3,), "f8", "m", "world", "step"),
    Field("quaternion", (4,), "f8", "w x y z", "body to world", "step"),
    Field("velocity", (8,), "real", "m/s, -, rad/s, -", "world", "step"),
    Field("inverse_mass", (4,), "f8", "1/kg, 1/(kg m2)", "body, principal moments", "once"),
    Field("extent", (4,), "f8", "m", "body: size of the shape, bounding radius", "once"),
    Field("tag", (4,), "i4", "shape, material, group, status", "-", "step"),
    Field("geometry", (), "i4", "number in the scene's geometries, or -1", "-", "once"),
)
SHAPE, MATERIAL, GROUP, STATUS = range(4)  # columns of a tag; fields that are read together lie together


class Bodies:
    """The fields of all bodies, as arrays of ``count`` rows: ``bodies.position`` and so on."""

    def __init__(self, real=np.float64):
        self.real = np.dtype(real)
        self.count = 0
        self._store = {field.name: self._empty(field, 0) for field in FIELDS}
        self._refresh()

    def append(self, block):
        """Add the rows of ``block`` (name -> array of n rows); returns the new ids."""
        n = len(block["position"])
        first, last = self.count, self.count + n
        for field in FIELDS:
            store = self._store[field.name]
            if last > len(store):
                larger = self._empty(field, max(last, 2 * len(store)) if first else last)
                larger[:first] = store[:first]
                self._store[field.name] = store = larger
            store[first:last] = block[field.name]
        self.count = last
        self._refresh()
        return np.arange(first, last)

    def copy(self, real):
        """The same bodies in another table, with velocities of type ``real``."""
        twin = Bodies(real)
        if self.count:
            twin.append({field.name: getattr(self, field.name) for field in FIELDS})
        return twin

    def _empty(self, field, n):
        return np.zeros((n, *field.shape), self.real if field.dtype == "real" else field.dtype)

    def _refresh(self):
        for name, store in self._store.items():
            setattr(self, name, store[: self.count])
        self.status, self.shape = self.tag[:, STATUS], self.tag[:, SHAPE]
