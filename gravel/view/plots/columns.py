"""Tables over time, a panel for each measure: logs of measures in CSV, and the curves that scenes leave.

A log has the names of its columns in its first line, time first, and their units as a comment in the second (``gravel.measures.Log``). A
curve (``gravel.scenes.setup.Curve``) has names with units in its first line, as in "stress Pa"; its first column is what the others are
drawn over.
"""

import csv

import numpy as np

from gravel.view.plots.style import dots


def log_panels(path):
    """The panels of a log or of a curve."""
    return column_panels(*read_log(path))


def read_log(path):
    """The names, units and rows of a log or of a curve in CSV."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            names, *rows = csv.reader(file)
        units = rows.pop(0) if rows and rows[0][0].startswith("# ") else None
        if units is None and all(" " in name for name in names):  # a curve
            names, units = zip(*(name.rsplit(" ", 1) for name in names))
            units = ["# " + units[0], *units[1:]]
        elif units is None or names[0] != "time" or len(units) != len(names):
            raise ValueError("its first lines must name columns, time first, and their units")
        if len(names) < 2:
            raise ValueError("it has no column beside time")
        if uneven := [number for number, row in enumerate(rows, 1) if len(row) != len(names)]:
            raise ValueError(f"its row {uneven[0]} has {len(rows[uneven[0] - 1])} numbers for {len(names)} columns")
        values = np.array(rows, float).reshape(-1, len(names))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no log {path}") from None
    except (ValueError, IndexError, csv.Error) as error:  # UnicodeDecodeError is a ValueError
        raise ValueError(f"{path} cannot be read as a log of measures: {' '.join(str(error).split())}") from None
    if not len(values):
        raise ValueError(f"{path} holds no rows to plot")
    return list(names), [units[0].removeprefix("# "), *units[1:]], values


def column_panels(names, units, values):
    """A panel for each measure: columns whose names begin alike, over the first column."""
    panels = {}
    for k, name in enumerate(names[1:], 1):
        panels.setdefault((name.rsplit("_", 1)[0], units[k]), []).append(k)
    over = _labelled(names[0], units[0])

    def panel(title, unit, columns):
        def draw(axes):
            for k in columns:
                axes.plot(values[:, 0], values[:, k], marker=dots(len(values)), label=names[k].replace("_", " "))
            axes.set(xlabel=over, ylabel=_labelled(title if len(columns) > 1 else names[columns[0]], unit))
            if len(columns) > 1:
                axes.legend(ncols=1 + (len(columns) > 4))

        return draw

    return tuple(panel(title, unit, columns) for (title, unit), columns in panels.items())


def _labelled(name, unit):
    return name.replace("_", " ") + (f", {unit}" if unit not in ("", "1", "-") else "")
