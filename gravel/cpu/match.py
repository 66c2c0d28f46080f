"""Match: contacts of this step find the impulses they had in the last one.

In: contacts, and ``Memory`` of the last step. Out: starting impulses. A pair may have been found from either side, so the
contacts that either body found are searched; they are few and lie side by side.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange


class Memory(NamedTuple):
    """Contacts of the last step, by body id."""

    a: np.ndarray  # (c,) ids
    b: np.ndarray
    feature: np.ndarray
    impulse: np.ndarray  # (c, 3) real, on b, world frame
    torque: np.ndarray  # (c, 3) real, rolling and spinning; empty where there is none
    first: np.ndarray  # (bodies,) first contact that each body found
    number: np.ndarray  # (bodies,) and how many


@njit(nogil=True)
def recall(memory, owner, a, b, feature):
    """Index of the remembered contact between ids a and b that ``owner`` found, or -1."""
    if owner >= memory.first.size:
        return -1
    for c in range(memory.first[owner], memory.first[owner] + memory.number[owner]):
        if memory.feature[c] == feature:
            if (memory.a[c] == a and memory.b[c] == b) or (memory.a[c] == b and memory.b[c] == a):
                return c
    return -1


@njit(nogil=True)
def match_contact(c, contacts, order, memory, impulse, torque):
    a, b = order[contacts.a[c]], order[contacts.b[c]]
    old = recall(memory, a, a, b, contacts.feature[c])
    if old < 0:
        old = recall(memory, b, a, b, contacts.feature[c])
    sign = 0 if old < 0 else 1 if memory.a[old] == a else -1
    for k in range(3):
        impulse[c, k] = sign * memory.impulse[max(old, 0), k] if sign else 0
        if torque.size > 0:
            torque[c, k] = sign * memory.torque[max(old, 0), k] if sign else 0


@njit(parallel=True, nogil=True, cache=True)
def match_contacts(contacts, order, memory, impulse, torque):
    """``impulse`` (and ``torque``) := what the memory holds for each contact, else zero."""
    for tile in prange(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            match_contact(c, contacts, order, memory, impulse, torque)


@njit(nogil=True)
def remember_contact(c, contacts, order, blocks_impulse, blocks_torque, slot, width, memory):
    memory.a[c], memory.b[c] = order[contacts.a[c]], order[contacts.b[c]]
    memory.feature[c] = contacts.feature[c]
    at = (slot[c] // width) * 3 * width + slot[c] % width
    for k in range(3):
        memory.impulse[c, k] = blocks_impulse[at + k * width]
        if blocks_torque.size > 0:
            memory.torque[c, k] = blocks_torque[at + k * width]


@njit(nogil=True)
def remember_body(i, contacts, order, memory):
    memory.first[order[i]] = contacts.first[i]
    memory.number[order[i]] = contacts.number[i]


@njit(parallel=True, nogil=True, cache=True)
def remember(contacts, order, blocks_impulse, blocks_torque, slot, width, memory):
    """The memory := this step's contacts and the impulses that the solver left in its blocks."""
    memory.number[:] = 0
    for tile in prange(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            remember_contact(c, contacts, order, blocks_impulse, blocks_torque, slot, width, memory)
    for chunk in prange((order.size + 4095) // 4096):
        for i in range(chunk * 4096, min((chunk + 1) * 4096, order.size)):
            remember_body(i, contacts, order, memory)


@njit(nogil=True, cache=True)
def deepest(contacts):
    """The largest penetration, m."""
    depth = 0.0
    for tile in range(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            depth = max(depth, -contacts.gap[c])
    return depth
