"""Contacts in result files: the group ``gravel/contact_table``, beside ``VTKHDF``, which ParaView leaves alone.

The contacts of all frames stand end to end in ``body_a``, ``body_b`` (ids), ``point`` (m), ``normal`` (from a to b), ``gap`` (m),
``impulse`` (N s on b in the step before the frame), ``force`` (N, the impulse over that step's length: its mean) and ``sliding``.
``frame`` says which frames have contacts and ``count`` how many each: those of frame ``frame[k]`` are the ``count[k]`` rows after
the first sum(count[:k]). A frame before the first step has none; one that was written after a step was refused is left out.
"""

import numpy as np

from gravel.contacts import ContactTable
from gravel.errors import SimulationError
from gravel.io.joined import is_index, joined_contacts
from gravel.io.sound import all_rows, need, rows_of

GROUP = "contact_table"
COLUMNS = {
    "body_a": ((), "i8"),
    "body_b": ((), "i8"),
    "point": ((3,), "f8"),
    "normal": ((3,), "f4"),
    "gap": ((), "f4"),
    "impulse": ((3,), "f4"),
    "force": ((3,), "f4"),
    "sliding": ((), "u1"),
}
ROW_BYTES = sum(np.dtype(dtype).itemsize * int(np.prod(shape)) for shape, dtype in COLUMNS.values())
CHUNK = 16384  # rows
SPARE_BYTES = 2 * CHUNK * ROW_BYTES  # for chunks that are begun


class ContactsGroup:
    """Writes the contacts of frames into the group ``gravel`` of a result file; goes on with what it holds already."""

    def __init__(self, own):
        self.group = own.require_group(GROUP)
        for name, (shape, dtype) in {**COLUMNS, "frame": ((), "i8"), "count": ((), "i8")}.items():
            if name not in self.group:
                self.group.create_dataset(name, (0, *shape), dtype, maxshape=(None, *shape), chunks=(CHUNK, *shape))

    def write(self, frame, simulation, reserve):
        """The contacts of the last step become those of a frame; ``reserve`` is asked for their room first. Returns how many there are,
        or None if that is not known."""
        try:
            table = simulation.contacts
        except SimulationError:  # a step was refused: nobody knows the contacts of the state that is kept
            return None
        reserve.ask(SPARE_BYTES + ROW_BYTES * len(table))
        for name in COLUMNS:
            self._append(name, table.impulse / simulation.dt if name == "force" else getattr(table, name))
        self._append("frame", [frame])
        self._append("count", [len(table)])
        return len(table)

    def _append(self, name, values):
        data = self.group[name]
        before = len(data)
        data.resize(before + len(values), axis=0)
        data[before:] = values


def contact_lengths(own, frames):
    """(array, rows of it that belong to the first so many frames), for all arrays of the group, where there is one."""
    if GROUP not in own:
        return
    group = own[GROUP]
    kept = int(np.count_nonzero(all_rows(group, "frame", (), "i8") < frames))
    for name in ("frame", "count"):
        yield group[name], kept
    for name in COLUMNS:
        yield group[name], int(group["count"][:kept].sum())


def contacts_in(file, frame):
    """The ``ContactTable`` of a frame of an open result file, or None if the file does not hold it."""
    if GROUP not in file["gravel"]:
        return None
    if is_index(file):
        return joined_contacts(file, frame, contacts_in)
    group = file["gravel"][GROUP]
    frames, counts = all_rows(group, "frame", (), "i8"), all_rows(group, "count", (), "i8")
    need(len(frames) == len(counts) and (counts >= 0).all(), "the contacts of its frames are not counted")
    places = np.flatnonzero(frames == frame)
    if not len(places):
        return None
    first = int(counts[: places[-1]].sum())
    rows = slice(first, first + int(counts[places[-1]]))
    columns = {name: rows_of(group, name, rows, *of) for name, of in COLUMNS.items() if name != "force"}
    sliding = columns.pop("sliding") > 0
    doubles = {name: columns[name].astype(np.float64) for name in ("normal", "gap", "impulse")}
    return ContactTable(**{**columns, **doubles}, sliding=sliding)
