"""A log of measures while a run goes on, as CSV or HDF5. Every row is flushed: a run that is killed keeps those it had."""

import csv
import math
import os
from typing import Any

import h5py
import numpy as np

from gravel import checks
from gravel.interrupts import DeferInterrupt
from gravel.io.outputs import check_writable, replaced
from gravel.measures.units import NothingToMeasure, shape_of, unit_of

ENDINGS = (".csv", ".h5", ".hdf5")
AXES = "xyz"
LONGEST_LINE = 1_000_000  # characters
HAIR = 1e-9  # s: rows nearer to a time count as of that time


class Log:
    """Writes named measures to a file: ``observers=[Log("log.csv", every=0.01, energy=kinetic_energy, stress=stress)]``.

    ``path`` ends with .csv, or with .h5 or .hdf5; a log that is there is replaced when the first row comes, any other file is
    refused. ``every``: simulated seconds between rows; None: a row at each call. Measures are functions of the simulation that give a
    number, a vector, a tensor or a named tuple; each of its numbers is a column: ``energy_total``, ``stress_xx``. Give arguments with
    ``functools.partial``.

    Where a measure finds nothing to measure, no contact, no body, no slope yet, its numbers are NaN.

    CSV: the first line names the columns, the second is a comment with their units (# s,J,...), which NumPy and pandas
    (comment="#") pass over. HDF5: a dataset per column, with the attribute ``unit``."""

    def __init__(self, path: str | os.PathLike, every: float | None = None, **measures: Any):
        self.path = check_writable(path)
        if self.path.suffix.lower() not in ENDINGS:
            raise ValueError(f"path of a log must end with one of {', '.join(ENDINGS)}, not {os.fspath(path)!r}")
        if not _may_be_replaced(self.path):
            raise ValueError(f"output {self.path} is there already and is no log of gravel; remove it or give another name")
        self.every = None if every is None else checks.number("every", every, above=0.0)
        if not measures:
            raise ValueError("a log needs at least one measure, such as energy=kinetic_energy")
        for name, measure in measures.items():
            if not callable(measure):
                raise TypeError(f"measure {name} must be a function of the simulation, not {measure!r}")
        if "time" in measures:
            raise ValueError("a measure cannot be named time: that is the first column of every log")
        self.measures = measures
        self.columns: list[str] = []  # known with the first row
        self._file: _Csv | _Hdf5 | None = None
        self._start, self._done = 0.0, 0
        self._goes_on = False

    def go_on(self) -> "Log":
        """Of a file that is there keep the rows before the time of the first new one, as a run that goes on wants it; returns the log."""
        self._goes_on = True
        return self

    def __repr__(self) -> str:
        return f"Log({os.fspath(self.path)!r}, {', '.join(self.measures)})"

    def __call__(self, sim: Any) -> None:
        """Write a row, if one is due."""
        if not self._due(sim.time):
            return
        columns, units, values = ["time"], ["s"], [float(sim.time)]
        for name, measure in self.measures.items():
            names, numbers = measured(name, measure, sim)
            columns += names
            units += [unit_of(measure)] * len(names)
            values += numbers
        if self._file is None:
            since = values[0] if self._goes_on and self.path.exists() else None
            self._file = (_Csv if self.path.suffix.lower() == ".csv" else _Hdf5)(self.path, columns, units, since)
            self.columns = columns
        elif columns != self.columns:
            raise ValueError(f"measures must give the same numbers in every row, but {self.path} has the columns {', '.join(self.columns)}")
        with DeferInterrupt():  # a row is written whole
            self._file.add(values)

    def _due(self, time):
        if self._file is None or self.every is None:
            self._start = time
            return True
        due = math.floor((time - self._start) / self.every + 1e-9)
        if due <= self._done:
            return False
        self._done = due
        return True

    def close(self) -> None:
        """Close the file; it can be read before, too."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def _may_be_replaced(path):
    """Whether there is no file at a path, an empty one, or a log: of CSV, the two first lines tell, of HDF5 the column of times."""
    if not path.exists() or path.stat().st_size == 0:
        return True
    try:
        if path.suffix.lower() == ".csv":
            with open(path, encoding="utf-8") as file:
                names, units = file.readline(LONGEST_LINE).strip(), file.readline(LONGEST_LINE)
            return names.split(",")[0] == "time" and units.startswith("# s")
        with h5py.File(path, "r") as file:
            return isinstance(file.get("time", getlink=True), h5py.HardLink) and file["time"].attrs.get("unit") == "s"
    except (OSError, ValueError, RuntimeError, KeyError, AttributeError):  # it can be read as neither
        return False


def measured(name: str, measure: Any, sim: Any) -> tuple[list[str], list[float]]:
    """The columns of a measure of a simulation: NaN where there is nothing to measure."""
    try:
        return flattened(name, measure(sim))
    except NothingToMeasure as error:
        shape = error.shape if shape_of(measure) is None else shape_of(measure)
        if shape is None:
            raise
        names, numbers = flattened(name, np.zeros(shape))
        return names, [math.nan] * len(numbers)


def flattened(name: str, value: Any) -> tuple[list[str], list[float]]:
    """The columns that a measure becomes: their names and numbers."""
    if hasattr(value, "_fields"):
        parts = [flattened(f"{name}_{part}", number) for part, number in zip(value._fields, value)]
        return [column for names, _ in parts for column in names], [number for _, numbers in parts for number in numbers]
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"measure {name} must give numbers, not {value!r:.80}") from None
    if not np.isfinite(array).all():
        raise ValueError(f"measure {name} must give finite numbers, not {array.ravel()[~np.isfinite(array.ravel())][0]}")
    axes = [AXES if length == 3 else list(map(str, range(length))) for length in array.shape]
    names = [name]
    for k, axis in enumerate(axes):
        names = [f"{start}{'_' if k == 0 else ''}{end}" for start in names for end in axis]
    return names, array.ravel().tolist()


class _Csv:
    """``since``: rows before this time stay; None: the file is new."""

    def __init__(self, path, columns, units, since):
        kept = [] if since is None else self._before(path, columns, since)
        with replaced(path) as whole, open(whole, "w", newline="", encoding="utf-8") as file:  # rows of before are never lost
            csv.writer(file, lineterminator="\n").writerows([columns, ["# " + units[0], *units[1:]], *kept])
        self.file = open(path, "a", newline="", encoding="utf-8")  # noqa: SIM115 -- it stays open from row to row
        self.rows = csv.writer(self.file, lineterminator="\n")

    def _before(self, path, columns, since):
        with open(path, newline="", encoding="utf-8") as file:
            rows = [row for row in csv.reader(file) if row]
        if not rows or rows[0] != columns:
            raise ValueError(f"log {path} cannot go on: its columns are not {', '.join(columns)}")
        whole = [row for row in rows[1:] if len(row) == len(columns) and not row[0].startswith("#")]
        return [row for row in whole if float(row[0]) < since - HAIR]

    def add(self, values):
        self.rows.writerow(map(repr, values))
        self.file.flush()

    def close(self):
        self.file.close()


class _Hdf5:
    """``since``: rows before this time stay; None: the file is new."""

    def __init__(self, path, columns, units, since):
        self.file = h5py.File(path, "w" if since is None else "r+")
        if since is not None:
            self.columns = self._before(path, columns, since)
            return
        self.columns = [self.file.create_dataset(name, (0,), "f8", maxshape=(None,), chunks=(1024,)) for name in columns]
        for data, unit in zip(self.columns, units):
            data.attrs["unit"] = unit

    def _before(self, path, columns, since):
        if set(self.file) != set(columns):
            self.file.close()
            raise ValueError(f"log {path} cannot go on: its columns are not {', '.join(columns)}")
        kept = int(np.count_nonzero(self.file["time"][:] < since - HAIR))
        for name in columns:
            self.file[name].resize(min(kept, len(self.file[name])), axis=0)
        return [self.file[name] for name in columns]

    def add(self, values):
        for data, value in zip(self.columns, values):
            data.resize(len(data) + 1, axis=0)
            data[-1] = value
        self.file.flush()

    def close(self):
        self.file.close()
