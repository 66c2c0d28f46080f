"""Tables as CSV: a row for each body of each frame, or for each contact.

The first line names the columns, the second is a comment with their units (# no unit is empty), which pandas passes over with
``comment="#"``. Planes, which have no place, are not among the bodies.
"""

import contextlib
import csv

import numpy as np

from gravel.io.outputs import replaced
from gravel.shapes.described import names_of_kinds

ENDINGS = (".csv",)
AXES = ("x", "y", "z")


def _vector(name, axes=AXES):
    return [f"{name}_{axis}" for axis in axes]


BODIES = {  # what frames hold -> (columns, unit)
    "id": (["id"], ""),
    "position": (list(AXES), "m"),
    "quaternion": (_vector("quaternion", ("w", *AXES)), ""),
    "velocity": (_vector("velocity"), "m/s"),
    "angular_velocity": (_vector("angular_velocity"), "rad/s"),
    "radius": (["radius"], "m"),
    "extent": (_vector("extent", ("1", "2", "3")), "m"),
    "mass": (["mass"], "kg"),
    "inertia": (_vector("inertia", ("1", "2", "3")), "kg m2"),
    "material": (["material"], ""),
    "movable": (["movable"], ""),
    "rank": (["rank"], ""),
}
CONTACTS = {
    "body_a": (["body_a"], ""),
    "body_b": (["body_b"], ""),
    "point": (list(AXES), "m"),
    "normal": (_vector("normal"), ""),
    "gap": (["gap"], "m"),
    "impulse": (_vector("impulse"), "N s"),
    "force": (_vector("force"), "N"),
    "sliding": (["sliding"], ""),
}


def write(chosen, output):
    """One table of all frames, or one for each (``chosen.split``); contacts in tables of their own, NAME_contacts.csv."""
    width, done, together = max(len(str(max(chosen.numbers))), 4), [], contextlib.ExitStack()
    with together:
        tables = None
        for number, data in chosen:
            if tables is None or chosen.split:
                together.close()
                name = f"{output.stem}_{number:0{width}d}" if chosen.split else output.stem
                paths = [output.with_name(f"{name}{ending}.csv") for ending in ("", *(["_contacts"] if chosen.with_contacts else []))]
                tables = [together.enter_context(_Table(path, kind)) for path, kind in zip(paths, (BODIES, CONTACTS))]
                done += paths
            _write_frame(tables, number, data, chosen.contacts(number))
            yield
    return done


def _write_frame(tables, number, data, contacts):
    shapes = names_of_kinds(data["shape"], np.ones(len(data["id"]), bool))
    tables[0].add(number, data["time"], data, shapes)
    if contacts is not None:
        columns = {name: getattr(contacts, name) for name in CONTACTS if name != "force"}
        tables[1].add(number, data["time"], {**columns, "force": contacts.impulse / data["frame_dt"]})


class _Table:
    """A CSV file, in place at the end of its ``with`` block."""

    def __init__(self, path, columns):
        self.columns, self.replaced = columns, replaced(path)

    def __enter__(self):
        self.file = open(self.replaced.__enter__(), "w", newline="")  # noqa: SIM115  # closed by __exit__
        self.rows = csv.writer(self.file, lineterminator="\n")
        shape = [("shape", "")] if self.columns is BODIES else []
        names = [(name, unit) for group, unit in self.columns.values() for name in group]
        titles, units = zip(("frame", ""), ("time", "s"), *names, *shape)
        self.rows.writerow(titles)
        self.rows.writerow(["# " + units[0], *units[1:]])
        return self

    def add(self, number, time, data, shapes=None):
        """The rows of one frame."""
        columns = [column for name in self.columns for column in _texts(data[name])]
        columns += [] if shapes is None else [shapes.tolist()]
        self.rows.writerows((number, time, *row) for row in zip(*columns))

    def __exit__(self, *error):
        self.file.close()
        return self.replaced.__exit__(*error)


def _texts(values):
    """The columns of an array, as the shortest texts that give the same numbers."""
    values = np.asarray(values)
    values = values.astype("u1") if values.dtype == bool else values
    columns = values.T if values.ndim > 1 else [values]
    return [column.astype(str).tolist() if column.dtype.kind == "f" else column.tolist() for column in columns]
