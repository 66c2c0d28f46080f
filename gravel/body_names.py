"""Names of bodies: ``scene.add_body(..., name="drum")`` and ``scene.body_names["drum"]``.

A name stands for one body, or for all that one call of ``add_bodies`` has made. Like ids, names are not used again: that of a body that was
removed stays its own. Names are the same on all processes, which add named bodies in the same order.
"""

import difflib
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

LONGEST = 60  # letters of a name
SHOWN = 4  # names that a repr tells

Ids = int | range


class BodyNames(Mapping[str, Any]):
    """Name -> id of a body, or ids (n,) of the bodies that were added together; in the order in which they were given.

    >>> sim.positions[sim.body_names["drum"]]
    """

    def __init__(self, ids: Mapping[str, Ids] | None = None):
        self._ids: dict[str, Ids] = dict(ids or {})

    def __getitem__(self, name: str) -> Any:
        if name not in self._ids:
            raise KeyError(self.unknown(name))
        ids = self._ids[name]
        return np.arange(ids.start, ids.stop) if isinstance(ids, range) else ids

    def __contains__(self, name: object) -> bool:
        return name in self._ids

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def __repr__(self) -> str:
        told = ", ".join(f"{name!r}: {_words(ids)}" for name, ids in self._ids.items())
        return f"BodyNames({{{told}}})"

    def __eq__(self, other: object) -> bool:
        return self._ids == other._ids if isinstance(other, BodyNames) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it grows

    def unknown(self, name: str) -> str:
        """That a name is not one of these, in words."""
        near = difflib.get_close_matches(str(name), list(self._ids), 1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {self.brief}" if self._ids else ": none has a name"
        return f"no body is called {name!r:.80}{hint}"

    @property
    def ranges(self) -> dict[str, Ids]:
        """Name -> id, or range of ids."""
        return dict(self._ids)

    @property
    def brief(self) -> str:
        """The first few in words, for reprs."""
        more = len(self) - SHOWN
        return ", ".join(list(self)[:SHOWN]) + (f" and {more} more" if more > 0 else "")

    def check(self, name: Any) -> None:
        """Refuse what cannot be the name of new bodies."""
        if not isinstance(name, str):
            raise TypeError(f"name must be a text, not {name!r:.80}")
        if not is_name(name):
            raise ValueError(f"name must be a text of one line, of 1 to {LONGEST} letters, without blanks at its ends, not {name!r:.80}")
        if name in self._ids:
            raise ValueError(f"name must be another than {name!r}, which {_words(self._ids[name])} of this scene already has")

    def add(self, name: str, ids: Ids) -> None:
        """A name that was checked is given."""
        self._ids[name] = ids

    def free(self, name: str) -> str:
        """The name, or the next one that is not taken: "arm", "arm 2" and so on; cut to the length that names may have."""
        name = " ".join("".join(c if c.isprintable() else " " for c in name).split()) or "body"
        candidate, number = name[:LONGEST].strip(), 1
        while candidate in self._ids:
            number += 1
            ending = f" {number}"
            candidate = name[: LONGEST - len(ending)].strip() + ending
        return candidate

    def copy(self) -> "BodyNames":
        """The same names, that go their own way."""
        return BodyNames(self._ids)

    def renumbered(self, old_ids: np.ndarray) -> "BodyNames":
        """The names where body ``old_ids[k]``, of ``old_ids`` (n,) that rise, becomes body k; those of which none is left are left out."""
        place = lambda body: int(np.searchsorted(old_ids, body))  # noqa: E731
        kept: dict[str, Ids] = {}
        for name, ids in self._ids.items():
            first, stop = (ids.start, ids.stop) if isinstance(ids, range) else (ids, ids + 1)
            some = range(place(first), place(stop))
            if len(some):
                kept[name] = some if isinstance(ids, range) else some.start
        return BodyNames(kept)

    def of(self, body: int) -> str:
        """What a body is called: "drum", or "grains[3]" for the fourth of a group; empty if it has no name. A name of its own goes before
        that of a group; several bodies of a robot's file that are one have several names."""
        own = [name for name, ids in self._ids.items() if not isinstance(ids, range) and ids == body]
        groups = [f"{name}[{body - ids.start}]" for name, ids in self._ids.items() if isinstance(ids, range) and body in ids]
        return ", ".join(own or groups[:1])

    def labels(self, bodies: np.ndarray) -> np.ndarray:
        """(n,) of many bodies at once, texts: their names without numbers, empty where they have none."""
        found = np.full(len(bodies), "", object)
        bodies = np.asarray(bodies)
        for name, ids in self._ids.items():
            here = (bodies >= ids.start) & (bodies < ids.stop) if isinstance(ids, range) else bodies == ids
            found[here] = [f"{earlier}, {name}" if earlier else name for earlier in found[here]]
        return found

    # --- in files
    def to_values(self) -> dict[str, Any]:
        """For JSON: name -> id, or [first id, behind the last]."""
        return {name: [ids.start, ids.stop] if isinstance(ids, range) else ids for name, ids in self._ids.items()}

    @classmethod
    def from_values(cls, values: Any, count: float = math.inf) -> "BodyNames":
        """The names of ``to_values``; refuses what cannot be those of bodies below ``count``."""
        if not isinstance(values, dict) or not all(is_name(name) and _can_be(ids, count) for name, ids in values.items()):
            raise ValueError("its names of bodies do not fit its bodies")
        return cls({name: range(*ids) if isinstance(ids, list) else ids for name, ids in values.items()})


def rows_among(ids: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """(n,) the places among ``ids`` of those that are wanted, in their order; those that are not there are left out."""
    if not len(ids):
        return np.empty(0, np.int64)
    order = np.argsort(ids, kind="stable")
    place = order[np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)]
    return place[ids[place] == wanted]


def is_name(name: str) -> bool:
    """Whether a text can be the name of bodies."""
    return name == name.strip() and name.isprintable() and 0 < len(name) <= LONGEST


def _can_be(ids, count):
    whole = lambda value: isinstance(value, int) and not isinstance(value, bool)  # noqa: E731
    if isinstance(ids, list):
        return len(ids) == 2 and all(map(whole, ids)) and 0 <= ids[0] <= ids[1] <= count
    return whole(ids) and 0 <= ids < count


def _words(ids):
    if not isinstance(ids, range):
        return f"body {ids}"
    return f"bodies {ids.start} to {ids.stop - 1}" if len(ids) else "a group without bodies"
