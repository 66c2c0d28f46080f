"""Things in one line, as ``repr`` prints them: numbers as short as they are exact, long arrays by their size and range.

In come values and objects of any kind, out go texts. Nothing here looks at more than an array's least and greatest number.
"""

from dataclasses import MISSING, fields
from typing import Any

import numpy as np

SHOWN = 6  # numbers of an array that are written out; more are told by their range


def call(name: Any, /, **values: Any) -> str:
    """``Name(a=1, b=(0, 0, 2))``. ``name``: a text, or the object whose class it is; values as ``text`` writes them."""
    kind = name if isinstance(name, str) else type(name).__name__
    return f"{kind}({', '.join(f'{key}={text(value)}' for key, value in values.items())})"


def of_fields(thing: Any) -> str:
    """A dataclass as the call that makes it, without what is as it is by default."""
    shown = {}
    for entry in fields(thing):
        value = getattr(thing, entry.name)
        if entry.repr and entry.init and (entry.default is MISSING or not _same(value, entry.default)):
            shown[entry.name] = value
    return call(thing, **shown)


def text(value: Any) -> str:
    """A value in a line: numbers, vectors and short arrays exactly, long arrays as ``<1000 from 0.02 to 0.04>``."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (float, np.floating)):
        return number(float(value))
    if isinstance(value, np.integer):
        return str(int(value))
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return f"({', '.join(map(text, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def number(value: float) -> str:
    """The shortest text from which Python reads the same number: 1 for 1.0, 0.1 for 0.1."""
    short = f"{value:g}"
    return short if float(short) == value or value != value else repr(float(value))


def rough(value: float) -> float:
    """A number to four digits, for what is measured and not given."""
    return float(f"{value:.4g}")


def span(values: np.ndarray) -> str:
    """The range of an array: ``0.02 to 0.04``, without what is not a number; empty if nothing is left."""
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    if not finite.size:
        return ""
    low, high = finite.min(), finite.max()
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def _array(values: np.ndarray) -> str:
    if values.ndim == 0:
        return text(values.item())
    if values.ndim == 1 and len(values) <= SHOWN:
        return text(tuple(values.tolist()))
    size = " x ".join(map(str, values.shape))
    between = span(values) if values.dtype.kind in "fiu" else ""
    return f"<{size} from {between}>" if " to " in between else f"<{size} of {between}>" if between else f"<{size}>"


def _same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    if value is None or default is None or callable(value):
        return False
    if isinstance(value, (np.ndarray, tuple)) or isinstance(default, (np.ndarray, tuple)):
        return np.shape(value) == np.shape(default) and bool(np.all(np.asarray(value) == np.asarray(default)))
    return bool(value == default)
