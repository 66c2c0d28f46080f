"""Match: contacts of this step find the impulses they had in the last one.

In: contacts, and ``ContactCache`` of the last step. Out: starting impulses. A pair may have been found from either side, so the
contacts that either body found are searched; they are few and lie side by side.
"""

import numpy as np
from numba import njit, prange

from gravel.host.threads import INNER, Kernel


@njit(**INNER)
def find_cached(owner, a, b, feature, old_a, old_b, old_feature, first, number):
    """Index of the cached contact between ids a and b that the body in row ``owner`` found, or -1."""
    if owner >= first.size:
        return -1
    for c in range(first[owner], first[owner] + number[owner]):
        same = (old_a[c] == a and old_b[c] == b) or (old_a[c] == b and old_b[c] == a)
        if same and old_feature[c] == feature:
            return c
    return -1


@njit(**INNER)
def match_tile(tile, contact_a, contact_b, feature, start, count, order, identity, cache, impulse, torque):
    old_a, old_b, old_feature, first, number = cache.a, cache.b, cache.feature, cache.first, cache.number
    old_impulse, old_torque = cache.impulse, cache.torque
    for c in range(start[tile], start[tile] + count[tile]):
        a, b = identity[contact_a[c]], identity[contact_b[c]]
        old = find_cached(order[contact_a[c]], a, b, feature[c], old_a, old_b, old_feature, first, number)
        if old < 0:
            old = find_cached(order[contact_b[c]], a, b, feature[c], old_a, old_b, old_feature, first, number)
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
def match_contacts(contact_a, contact_b, feature, start, count, order, identity, cache, impulse, torque):
    """``impulse`` (and ``torque``) := what the cache holds for each contact, else zero."""
    for tile in prange(count.size):
        match_tile(np.int64(tile), contact_a, contact_b, feature, start, count, order, identity, cache, impulse, torque)


@njit(**INNER)
def store_tile(tile, tile_size, contacts, order, identity, blocks_impulse, blocks_torque, slot, width, cache):
    contact_a, contact_b, feature, start, count = contacts.a, contacts.b, contacts.feature, contacts.start, contacts.count
    new_a, new_b, new_feature, impulse, torque = cache.a, cache.b, cache.feature, cache.impulse, cache.torque
    for c in range(start[tile], start[tile] + count[tile]):
        new_a[c], new_b[c] = identity[contact_a[c]], identity[contact_b[c]]
        new_feature[c] = feature[c]
        at = (slot[c] // width) * 3 * width + slot[c] % width
        for k in range(3):
            impulse[c, k] = blocks_impulse[at + k * width]
            if blocks_torque.size > 0:
                torque[c, k] = blocks_torque[at + k * width]
    for i in range(tile * tile_size, min((tile + 1) * tile_size, order.size)):
        if order[i] < cache.first.size:  # no image: those find nothing
            cache.first[order[i]] = contacts.first[i]
            cache.number[order[i]] = contacts.number[i]


@Kernel
def store_impulses(tile_size, contacts, order, identity, blocks_impulse, blocks_torque, slot, width, cache):
    """The cache := this step's contacts and the impulses that the solver left in its blocks."""
    for tile in prange(contacts.count.size):
        store_tile(np.int64(tile), tile_size, contacts, order, identity, blocks_impulse, blocks_torque, slot, width, cache)
