"""Bodies that sleep: which of them are touched by one that is awake, and the impulses of their contacts until they wake.

A sleeper's proxy is that of a body that cannot move: pairs of sleepers, or of a sleeper and a fixed body, are not listed. What the last
step knew of their contacts (``contact_cache``) would be lost; it is kept aside by ids (``Slept``) and given back to those that wake, so
that they start as they stopped.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from gravel.formulas.bounds import MOVES
from gravel.host.contact_cache import ContactCache, listed
from gravel.state import SLEEPING, STATUS


class Slept(NamedTuple):
    """Contacts of sleeping bodies, as in ``contact_cache.ContactCache``; torques are always there."""

    a: np.ndarray
    b: np.ndarray
    feature: np.ndarray
    impulse: np.ndarray
    torque: np.ndarray


def nothing_slept(real):
    whole, vectors = np.empty(0, np.int64), np.empty((0, 3), real)
    return Slept(whole, whole, np.empty(0, np.int32), vectors, vectors)


@njit(nogil=True, error_model="numpy", cache=True)
def find_touched(contacts, moves, row, tag, touched):
    """touched[row] := 1 for sleepers that have a contact with a body that is awake and can move. ``moves``: tags of the proxies,
    ``row``: their rows, ``tag``: of the rows."""
    for tile in range(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            a, b = contacts.a[c], contacts.b[c]
            if moves[a, MOVES] and tag[row[b], STATUS] == SLEEPING:
                touched[row[b]] = 1
            if moves[b, MOVES] and tag[row[a], STATUS] == SLEEPING:
                touched[row[a]] = 1


def put_aside(slept, last, asleep, rows_of):
    """``slept`` and what the cache of the ``last`` step holds of the rows that are ``asleep`` (a mask)."""
    indices = listed(last.first, last.number)
    of_sleepers = [_marked(asleep, rows_of(ends[indices])) for ends in (last.a, last.b)]
    indices = indices[of_sleepers[0] | of_sleepers[1]]
    torque = last.torque if len(last.torque) else np.zeros((len(last.a), 3), last.impulse.dtype)
    own = (last.a, last.b, last.feature, last.impulse, torque)
    return Slept(*(np.concatenate([old, new[indices]]) for old, new in zip(slept, own)))


def give_back(slept, last, woken, rows_of):
    """(what is left of ``slept``, the cache of the ``last`` step with the contacts of the rows that have ``woken``, a mask). Contacts that
    were in the cache keep their indices: tables of the last step refer to them."""
    rows = [rows_of(ends) for ends in (slept.a, slept.b)]
    of_a, of_b = (_marked(woken, of) for of in rows)
    back, owner = of_a | of_b, np.where(of_a, *rows)
    order = np.flatnonzero(back)[np.argsort(owner[back], kind="stable")]
    number, first = np.zeros(len(woken), np.int32), np.zeros(len(woken), np.int32)
    number[: len(last.number)], first[: len(last.first)] = last.number, last.first
    number[woken] = np.bincount(owner[order], minlength=len(woken))[woken]
    ends = len(last.a) + np.cumsum(np.where(woken, number, 0))
    first[woken] = (ends - number)[woken]
    torque = last.torque if len(last.torque) else np.zeros((len(last.a), 3), last.impulse.dtype)
    own = (last.a, last.b, last.feature, last.impulse, torque)
    columns = (np.concatenate([old, new[order]]) for old, new in zip(own, slept))
    return Slept(*(values[~back] for values in slept)), ContactCache(*columns, first, number)


def _marked(mask, rows):
    """Whether rows are marked; -1 is none."""
    return (rows >= 0) & mask[rows]
