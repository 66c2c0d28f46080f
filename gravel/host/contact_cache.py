"""The contact cache: contacts of the last step with their impulses, from which the next step starts (warm start).

In: what the stage ``match`` of an engine has put there. Out: the cached contacts of some rows. Bodies go by their ids.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numba import njit


class ContactCache(NamedTuple):
    """Contacts of the last step. Bodies go by their ids; which contacts a body found is kept with its row."""

    a: np.ndarray  # (c,) ids
    b: np.ndarray
    feature: np.ndarray
    impulse: np.ndarray  # (c, 3) real, on b, world frame
    torque: np.ndarray  # (c, 3) real, rolling and spinning; empty where there is none
    first: np.ndarray  # (rows,) first contact that each body found; rows of later bodies are missing
    number: np.ndarray  # (rows,) and how many


@njit(nogil=True, error_model="numpy", cache=True)
def listed(first: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Indices of the cached contacts of all rows, in the order of the rows."""
    indices, k = np.empty(number.sum(), np.int64), 0
    for row in range(number.size):
        for c in range(first[row], first[row] + number[row]):
            indices[k] = c
            k += 1
    return indices


def empty_cache(array: Callable[..., np.ndarray], contacts: int, rows: int, rolling: bool) -> ContactCache:
    """A cache with room for so many contacts of so many rows; ``array(name, rows, columns, dtype)`` gives its arrays."""
    return ContactCache(
        array("memory_a", contacts, dtype="i8"),
        array("memory_b", contacts, dtype="i8"),
        array("memory_feature", contacts, dtype="i4"),
        array("memory_impulse", contacts, (3,)),
        array("memory_torque", contacts if rolling else 0, (3,)),
        array("memory_first", rows, dtype="i4"),
        array("memory_number", rows, dtype="i4"),
    )


def taken_by_rows(cache: ContactCache, holes: np.ndarray, moved: np.ndarray, count: int) -> ContactCache:
    """The cache after rows were removed: the ``moved`` rows fill the ``holes``, and ``count`` are left."""
    first, number = cache.first, cache.number
    known = len(first)  # rows of later bodies have no contacts yet
    first[holes[holes < known]], number[holes[holes < known]] = 0, 0
    both = (holes < known) & (moved < known)
    first[holes[both]], number[holes[both]] = first[moved[both]], number[moved[both]]
    return cache._replace(first=first[:count], number=number[:count])


def cached_by_row(cache: ContactCache, rows: int) -> dict[str, np.ndarray]:
    """For a file: contacts in the order of the rows that found them, and their ``number`` for each row."""
    number = np.zeros(rows, np.int32)
    number[: len(cache.number)] = cache.number
    indices = listed(cache.first, cache.number)
    columns = {name: getattr(cache, name) for name in ("a", "b", "feature", "impulse", "torque")}
    return {"number": number, **{name: values[indices] if len(values) else values for name, values in columns.items()}}


def from_listed(listed: Mapping[str, np.ndarray], real: np.dtype) -> ContactCache:
    """The cache that ``cached_by_row`` has put into a file."""
    number = listed["number"].astype(np.int32)
    first = np.concatenate([[0], np.cumsum(number)[:-1]]).astype(np.int32) if len(number) else number
    impulses = listed["impulse"].astype(real), listed["torque"].astype(real)
    return ContactCache(listed["a"], listed["b"], listed["feature"], *impulses, first, number)
