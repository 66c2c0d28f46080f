"""Contacts in result files: the group ``gravel/contact_table``, and the block ``contacts``, in which VTK finds the same arrays.

The contacts of all frames stand end to end in ``body_a``, ``body_b`` (ids), ``point`` (m), ``normal`` (from a to b), ``gap`` (m),
``impulse`` (N s on b in the step before the frame), ``force`` (N, the impulse over that step's length: its mean) and ``sliding``.
``frame`` says which frames have contacts and ``count`` how many each: those of frame ``frame[k]`` are the ``count[k]`` rows after
the first sum(count[:k]). A frame before the first step has none; one that was written after a step was refused is left out.
"""

import numpy as np

from gravel.contacts import ContactTable
from gravel.errors import SimulationError
from gravel.io.blocks import ROOT, Block, Form, append, block_lengths, grow
from gravel.io.joined import is_index, joined_contacts
from gravel.io.validate_file import all_rows, need, rows_of, within

GROUP, BLOCK = "contact_table", "contacts"
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
MOST_IDS = 2**31  # ids are whole numbers of four bytes
ROW_BYTES = sum(np.dtype(dtype).itemsize * int(np.prod(shape)) for shape, dtype in COLUMNS.values())
SPARE_BYTES = 2 * 16384 * ROW_BYTES  # for chunks that are begun
FORM = Form({"Vertices": 1}, {name: of for name, of in COLUMNS.items() if name != "point"}, linked=True)


class ContactsGroup:
    """Writes the contacts of frames into a result file; goes on with what it holds already."""

    def __init__(self, own, root, common):
        """``own``, ``root``: the groups ``gravel`` and ``VTKHDF``."""
        self.group = own.require_group(GROUP)
        for name, (shape, dtype) in {**COLUMNS, "frame": ((), "i8"), "count": ((), "i8")}.items():
            if name not in self.group:
                grow(self.group, name, shape, dtype)
        self.arrays = {name: self.group[name] for name in COLUMNS}
        self.block = Block(root, BLOCK, common, FORM, links_to(self.group))

    def write(self, frame, simulation, reserve):
        """The contacts of the last step become those of a frame; ``reserve`` is asked for their room first. Returns how many there are,
        or None if that is not known, or if they are not to be written any more (no ``simulation``)."""
        at = len(self.arrays["gap"])
        try:
            table = simulation.contacts if simulation is not None else None
        except SimulationError:  # a step was refused: nobody knows the contacts of the state that is kept
            table = None
        if table is None:
            self.block.point_at(at, 0)
            return None
        reserve.ask(SPARE_BYTES + ROW_BYTES * len(table))
        for name, data in self.arrays.items():
            append(data, table.impulse / simulation.dt if name == "force" else getattr(table, name))
        append(self.group["frame"], [frame])
        append(self.group["count"], [len(table)])
        self.block.point_at(at, len(table))
        return len(table)


def links_to(group):
    """The arrays of a table of contacts by the names that they have in a block."""
    return {"Points" if name == "point" else name: group[name] for name in COLUMNS}


def contact_lengths(file, frames):
    """(array, rows of it that belong to the first so many frames), for all arrays of the group and the block, where there are some."""
    if GROUP not in file["gravel"]:
        return
    yield from block_lengths(file[ROOT][BLOCK], FORM, frames)
    group = file["gravel"][GROUP]
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
    for name in ("body_a", "body_b"):
        within(name, columns[name], 0, MOST_IDS)
    sliding = columns.pop("sliding") > 0
    doubles = {name: columns[name].astype(np.float64) for name in ("normal", "gap", "impulse")}
    return ContactTable(**{**columns, **doubles}, sliding=sliding)
