"""The contact table: what users see of contacts, as arrays, one row each. Engines fill it."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from gravel.printing import formatting, tables

if TYPE_CHECKING:
    import pandas

UNITS = {"point": "m", "gap": "m", "impulse": "N s"}


@dataclass(frozen=True, repr=False)
class ContactTable:
    """Each pair's contacts once; body_a < body_b. Sorted by body_a, body_b and feature. All vectors are in the world frame.

    - ``body_a``, ``body_b`` (n,): ids of the two bodies
    - ``point`` (n, 3) m, halfway between the surfaces
    - ``normal`` (n, 3), of length one, from a to b
    - ``gap`` (n,) m, negative in penetration
    - ``impulse`` (n, 3) N s on b in the last step; the mean force in N is this over dt
    - ``sliding`` (n,): True where friction is at its limit
    """

    body_a: np.ndarray
    body_b: np.ndarray
    point: np.ndarray
    normal: np.ndarray
    gap: np.ndarray
    impulse: np.ndarray
    sliding: np.ndarray

    def __len__(self) -> int:
        return len(self.body_a)

    def __repr__(self) -> str:
        pushes = formatting.span(np.linalg.norm(self.impulse, axis=1))
        gaps = formatting.span(self.gap)
        return f"ContactTable({len(self)} contacts" + (f", gaps {gaps} m, impulses {pushes} N s)" if len(self) else ")")

    def __getitem__(self, rows: Any) -> "ContactTable":
        """The same table with some of the rows: an index array, a mask or a slice."""
        return ContactTable(*(getattr(self, f.name)[rows] for f in fields(self)))

    def to_pandas(self) -> "pandas.DataFrame":
        """A pandas DataFrame with a row for each contact; vectors are columns such as ``point_x``, and ``attrs["units"]`` has their
        units."""
        return tables.data_frame(self._columns(), UNITS)

    def _repr_html_(self) -> str:
        return tables.html(self._columns(), UNITS, repr(self))

    def _columns(self) -> dict[str, np.ndarray]:
        return {f.name: np.atleast_1d(getattr(self, f.name)) for f in fields(self)}

    @staticmethod
    def empty() -> "ContactTable":
        """A table without contacts."""
        none, vectors = np.empty(0, np.int64), np.empty((0, 3))
        return ContactTable(none, none, vectors, vectors, np.empty(0), vectors, np.empty(0, bool))


def join_tables(tables: "list[ContactTable]") -> ContactTable:
    """Several tables as one, sorted as they are. Contacts of one pair keep their order."""
    columns = {f.name: np.concatenate([getattr(table, f.name) for table in tables]) for f in fields(ContactTable)}
    order = np.lexsort((columns["body_b"], columns["body_a"]))
    return ContactTable(*(values[order] for values in columns.values()))
