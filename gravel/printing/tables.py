"""Tables for other libraries and for the eye: columns of numbers to a pandas DataFrame, or to a small HTML table.

In come arrays by name, one row each, with their units; vectors become a column for each of their numbers. Out goes a DataFrame whose
``attrs["units"]`` tell the unit of each column, or a text in HTML. The libraries are imported when they are asked for.
"""

import html as html_module
import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

AXES = {3: "xyz", 4: "wxyz"}  # endings of the columns of a vector, and of a quaternion
ROWS = 8  # of a table that are shown in a notebook; more are cut out of the middle
STYLE = "text-align:right;padding:1px 8px"
BODIES = {  # column of a table of bodies -> (array of a simulation or a frame, unit)
    "shape": ("shapes", ""),
    "movable": ("movable", ""),
    "radius": ("radii", "m"),
    "mass": ("masses", "kg"),
    "position": ("positions", "m"),
    "quaternion": ("quaternions", ""),
    "velocity": ("velocities", "m/s"),
    "angular_velocity": ("angular_velocities", "rad/s"),
}
BODY_UNITS = {name: unit for name, (_, unit) in BODIES.items()}


def need(library: str, purpose: str) -> Any:
    """Import a library that gravel works without, or say how to get it."""
    try:
        return importlib.import_module(library)
    except ImportError:
        raise ImportError(f"{purpose} needs {library}, which is not installed: pip install {library}") from None


def flat(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Columns of one number a row: ``point`` (n, 3) becomes ``point_x``, ``point_y`` and ``point_z``."""
    result = {}
    for name, values in columns.items():
        if values.ndim == 1:
            result[name] = values
        else:
            result.update({f"{name}_{axis}": values[:, k] for k, axis in enumerate(AXES[values.shape[1]])})
    return result


def flat_units(columns: Mapping[str, np.ndarray], units: Mapping[str, str]) -> dict[str, str]:
    """The units of the columns of ``flat``, by their names; without those that have none."""
    return {part: units[name] for name, values in columns.items() if units.get(name) for part in flat({name: values})}


def data_frame(columns: Mapping[str, np.ndarray], units: Mapping[str, str], index: Any = None, purpose: str = "to_pandas") -> Any:
    """A pandas DataFrame of columns of one length, (n,) or (n, 3) each; ``index``: what its rows are called."""
    pandas = need("pandas", purpose)
    table = pandas.DataFrame(flat(columns), index=index)
    table.attrs["units"] = flat_units(columns, units)
    return table


def html(columns: Mapping[str, np.ndarray], units: Mapping[str, str], caption: str, row_name: Callable[[int], str] = str) -> str:
    """A table in HTML: a line for each row, at most ROWS of them, with ``caption`` above; ``row_name``: what a row is called."""
    count = len(next(iter(columns.values())))
    short = count <= ROWS
    chosen = list(range(count)) if short else [*range(ROWS // 2), *range(count - ROWS // 2, count)]
    numbers, told = flat({name: values[chosen] for name, values in columns.items()}), flat_units(columns, units)
    heads = [f"{name}{', ' + told[name] if name in told else ''}" for name in numbers]
    lines = [[row_name(k), *(_cell(values[row]) for values in numbers.values())] for row, k in enumerate(chosen)]
    if not short:
        lines.insert(ROWS // 2, ["…"] * (len(heads) + 1))
    return _table(caption, ["", *heads], lines)


def pairs_html(values: Mapping[str, Any], units: Mapping[str, str], caption: str) -> str:
    """A table in HTML of single values, a line each."""
    lines = [[name.replace("_", " "), _cell(value), units.get(name, "")] for name, value in values.items()]
    return _table(caption, [], lines)


def _table(caption: str, heads: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    write = lambda tag, texts: "".join(f'<{tag} style="{STYLE}">{html_module.escape(text)}</{tag}>' for text in texts)  # noqa: E731
    head = write("th", heads)
    body = "".join(f"<tr>{write('td', line)}</tr>" for line in lines)
    return f"<div>{html_module.escape(caption)}</div><table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)
