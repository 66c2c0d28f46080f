"""Match: contacts of this step find the impulses they had in the last one.

In: contacts, and ``Memory`` of the last step. Out: starting impulses. A pair may have been found from either side, so the
contacts that either body found are searched; they are few and lie side by side.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.host.threads import INNER, Kernel


class Memory(NamedTuple):
    """Contacts of the last step. Bodies go by their ids; which contacts a body found is kept with its row."""

    a: np.ndarray  # (c,) ids
    b: np.ndarray
    feature: np.ndarray
    impulse: np.ndarray  # (c, 3) real, on b, world frame
    torque: np.ndarray  # (c, 3) real, rolling and spinning; empty where there is none
    first: np.ndarray  # (rows,) first contact that each body found; rows of later bodies are missing
    number: np.ndarray  # (rows,) and how many


@njit(**INNER)
def recall(owner, a, b, feature, old_a, old_b, old_feature, first, number):
    """Index of the remembered contact between ids a and b that the body in row ``owner`` found, or -1."""
    if owner >= first.size:
        return -1
    for c in range(first[owner], first[owner] + number[owner]):
        same = (old_a[c] == a and old_b[c] == b) or (old_a[c] == b and old_b[c] == a)
        if same and old_feature[c] == feature:
            return c
    return -1


@njit(**INNER)
def match_tile(tile, contact_a, contact_b, feature, start, count, order, identity, memory, impulse, torque):
    old_a, old_b, old_feature, first, number = memory.a, memory.b, memory.feature, memory.first, memory.number
    old_impulse, old_torque = memory.impulse, memory.torque
    for c in range(start[tile], start[tile] + count[tile]):
        a, b = identity[contact_a[c]], identity[contact_b[c]]
        old = recall(order[contact_a[c]], a, b, feature[c], old_a, old_b, old_feature, first, number)
        if old < 0:
            old = recall(order[contact_b[c]], a, b, feature[c], old_a, old_b, old_feature, first, number)
        for k in range(3):
            impulse[c, k] = 0
            if torque.size > 0:
                torque[c, k] = 0
        if old >= 0:
            sign = 1 if old_a[old] == a else -1
            for k in range(3):
                impulse[c, k] = sign * old_impulse[old, k]
                if torque.size > 0 and old_torque.size > 0:  # the last step may have known no rolling friction
                    torque[c, k] = sign * old_torque[old, k]


@Kernel
def match_contacts(contact_a, contact_b, feature, start, count, order, identity, memory, impulse, torque):
    """``impulse`` (and ``torque``) := what the memory holds for each contact, else zero."""
    for tile in prange(count.size):
        match_tile(np.int64(tile), contact_a, contact_b, feature, start, count, order, identity, memory, impulse, torque)


@njit(**INNER)
def remember_tile(tile, tile_size, contacts, order, identity, blocks_impulse, blocks_torque, slot, width, memory):
    contact_a, contact_b, feature, start, count = contacts.a, contacts.b, contacts.feature, contacts.start, contacts.count
    new_a, new_b, new_feature, impulse, torque = memory.a, memory.b, memory.feature, memory.impulse, memory.torque
    for c in range(start[tile], start[tile] + count[tile]):
        new_a[c], new_b[c] = identity[contact_a[c]], identity[contact_b[c]]
        new_feature[c] = feature[c]
        at = (slot[c] // width) * 3 * width + slot[c] % width
        for k in range(3):
            impulse[c, k] = blocks_impulse[at + k * width]
            if blocks_torque.size > 0:
                torque[c, k] = blocks_torque[at + k * width]
    for i in range(tile * tile_size, min((tile + 1) * tile_size, order.size)):
        if order[i] < memory.first.size:  # no image: those find nothing
            memory.first[order[i]] = contacts.first[i]
            memory.number[order[i]] = contacts.number[i]


@Kernel
def remember(tile_size, contacts, order, identity, blocks_impulse, blocks_torque, slot, width, memory):
    """The memory := this step's contacts and the impulses that the solver left in its blocks."""
    for tile in prange(contacts.count.size):
        remember_tile(np.int64(tile), tile_size, contacts, order, identity, blocks_impulse, blocks_torque, slot, width, memory)


@njit(nogil=True, error_model="numpy", cache=True)
def summarise(start, count, gap):
    """(number of contacts, largest penetration in m)."""
    total, depth = 0, 0.0
    for tile in range(count.size):
        total += count[tile]
        for c in range(start[tile], start[tile] + count[tile]):
            depth = max(depth, -gap[c])
    return total, depth


@njit(nogil=True, error_model="numpy", cache=True)
def listed(first, number):
    """The remembered contacts that rows have, in the order of the rows: their places."""
    places, k = np.empty(number.sum(), np.int64), 0
    for row in range(number.size):
        for c in range(first[row], first[row] + number[row]):
            places[k] = c
            k += 1
    return places
