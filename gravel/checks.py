"""Checks of what users pass in. Each refuses with one sentence: the argument, the value, what is allowed."""

import difflib
import math
from collections.abc import Collection
from typing import Any

import numpy as np


def number(name: str, value: Any, minimum: float | None = None, above: float | None = None, maximum: float | None = None) -> float:
    """A finite float within bounds."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        result = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, not {value!r}") from None
    if not math.isfinite(result):
        raise ValueError(f"{name} must be finite, not {value!r}")
    if minimum is not None and result < minimum:
        raise ValueError(f"{name} must be at least {minimum:g}, not {value!r}")
    if above is not None and result <= above:
        raise ValueError(f"{name} must be greater than {above:g}, not {value!r}")
    if maximum is not None and result > maximum:
        raise ValueError(f"{name} must be at most {maximum:g}, not {value!r}")
    return result


def count(name: str, value: Any, minimum: int = 0) -> int:
    """A whole number of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, not {value}")
    return int(value)


def bound(name: str, value: Any, above: float | None = None) -> float:
    """A number that may be infinite."""
    if isinstance(value, (float, np.floating)) and math.isinf(value) and (above is None or value > above):
        return float(value)
    return number(name, value, above=above)


def array(
    name: str, value: Any, shape: tuple[int | None, ...], above: float | None = None, dtype: Any = np.float64, copy: bool = True
) -> np.ndarray:
    """A finite array of the given shape (None: any length), contiguous; a new one unless ``copy`` is False."""
    try:
        given = np.asarray(value)
        if given.dtype.kind in "cSU" or (np.dtype(dtype).kind == "i" and given.size and given.dtype.kind not in "iu"):
            raise TypeError
        result = np.array(value, dtype=dtype, order="C") if copy else np.ascontiguousarray(value, dtype)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be an array of numbers of shape {_written(shape)}, not {value!r:.80}") from None
    if result.ndim != len(shape) or any(want not in (None, have) for want, have in zip(shape, result.shape)):
        raise ValueError(f"{name} must have shape {_written(shape)}, not {result.shape}")
    bad = ~np.isfinite(result)
    reason = "be finite"
    if above is not None and not bad.any():
        bad, reason = result <= above, f"be greater than {above:g}"
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        where = f"[{', '.join(map(str, index))}]" if index else ""
        raise ValueError(f"{name} must {reason}, but {name}{where} is {result[index]}")
    return result


def unit(name: str, value: Any) -> np.ndarray:
    """A vector of length one from any vector that has a direction."""
    vector = array(name, value, (3,))
    length = np.linalg.norm(vector)
    if length < 1e-12:
        raise ValueError(f"{name} must have a direction, not {tuple(vector.tolist())}")
    return vector / length


def choice(name: str, value: Any, allowed: Collection[str]) -> Any:
    """One of some names; a wrong one gets the nearest suggested."""
    if value in allowed:
        return value
    begun = [name for name in allowed if str(value) and name.startswith(str(value))]
    near = begun or difflib.get_close_matches(str(value), list(allowed), 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}{hint}")


def _written(shape: tuple[int | None, ...]) -> str:
    return "(" + ", ".join("N" if n is None else str(n) for n in shape) + ("," if len(shape) == 1 else "") + ")"
