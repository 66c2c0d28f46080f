"""The contact table: contacts out of tiles, into arrays that users read.

In: contacts tile by tile, and what the step made of them. Out: columns sorted by body_a < body_b and feature. The contacts are
sorted by counting: each goes to the others of its lower id, and those few are put in order.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.contacts import ContactTable
from gravel.formulas.bounds import MOVES
from gravel.host.threads import INNER, Kernel

CHUNK = 4096
SLIDING = 0.999  # of what friction can bear
MANY = 64  # contacts of one lower id


class Columns(NamedTuple):
    """What is filled, see ``gravel.contacts.ContactTable``."""

    body_a: np.ndarray
    body_b: np.ndarray
    point: np.ndarray
    normal: np.ndarray
    gap: np.ndarray
    impulse: np.ndarray
    sliding: np.ndarray


class Solved(NamedTuple):
    """What a step has made of its contacts."""

    impulse: np.ndarray  # (c, 3) of the cone problem
    of_impacts: np.ndarray  # (c, 3) impulse of impacts; empty where nothing bounces
    friction: np.ndarray  # (c, 2) coefficient of friction, cohesive impulse


@njit(nogil=True, error_model="numpy", cache=True)
def sort_contacts(contacts, identity, key, keys):
    """(end of the contacts of each lower id, contacts in that order, their higher ids). ``key``: number of each proxy in the
    order of ids, below ``keys``."""
    end = np.zeros(keys + 1, np.int64)
    for tile in range(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            end[min(key[contacts.a[c]], key[contacts.b[c]]) + 1] += 1
    for k in range(keys):
        end[k + 1] += end[k]
    contact, high = np.empty(end[keys], np.int32), np.empty(end[keys], np.int64)
    for tile in range(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            a, b = contacts.a[c], contacts.b[c]
            k = min(key[a], key[b])
            contact[end[k]], high[end[k]] = c, max(identity[a], identity[b])
            end[k] += 1
    return end, contact, high


@njit(**INNER)
def insert_in_order(first, last, contact, high, feature):
    """Contacts first to last by their higher id and feature; quick where they are few, or nearly in order."""
    for i in range(first + 1, last):
        c, other, j = contact[i], high[i], i
        while j > first and (other < high[j - 1] or (other == high[j - 1] and feature[c] < feature[contact[j - 1]])):
            contact[j], high[j] = contact[j - 1], high[j - 1]
            j -= 1
        contact[j], high[j] = c, other


@njit(**INNER)
def order_chunk(chunk, end, contact, high, feature):
    """Put the contacts of each lower id in order."""
    for k in range(chunk * CHUNK, min((chunk + 1) * CHUNK, end.size - 1)):
        insert_in_order(end[k - 1] if k > 0 else 0, end[k], contact, high, feature)


@njit(**INNER)
def fill_chunk(chunk, contact, high, contacts, identity, sphere, solved, columns):
    normals, arms, gaps = contacts.normal, contacts.arm, contacts.gap
    frictions, impact_impulse, impulses = solved.friction, solved.of_impacts, solved.impulse
    body_a, body_b, point, normal, gap = columns.body_a, columns.body_b, columns.point, columns.normal, columns.gap
    impulse, sliding = columns.impulse, columns.sliding
    for r in range(chunk * CHUNK, min((chunk + 1) * CHUNK, contact.size)):
        c = contact[r]
        a = contacts.a[c]
        turned = identity[a] == high[r]  # a has the higher id
        sign = -1.0 if turned else 1.0
        body_a[r], body_b[r], gap[r] = identity[contacts.b[c]] if turned else identity[a], high[r], gaps[c]
        for k in range(3):
            point[r, k] = sphere[a, k] + float(arms[c, k])
            normal[r, k] = sign * normals[c, k]
        if frictions.size == 0:
            continue
        px, py, pz = float(impulses[c, 0]), float(impulses[c, 1]), float(impulses[c, 2])
        nx, ny, nz = float(normals[c, 0]), float(normals[c, 1]), float(normals[c, 2])
        push = px * nx + py * ny + pz * nz
        friction, load = float(frictions[c, 0]), push + float(frictions[c, 1])
        tx, ty, tz = px - push * nx, py - push * ny, pz - push * nz
        sliding[r] = load > 0.0 and np.sqrt(tx * tx + ty * ty + tz * tz) >= SLIDING * friction * load
        if impact_impulse.size > 0:
            px, py, pz = px + float(impact_impulse[c, 0]), py + float(impact_impulse[c, 1]), pz + float(impact_impulse[c, 2])
        impulse[r, 0], impulse[r, 1], impulse[r, 2] = sign * px, sign * py, sign * pz


@Kernel
def fill_table(end, contact, high, contacts, identity, sphere, solved, columns):
    for chunk in prange((end.size + CHUNK - 1) // CHUNK):
        order_chunk(np.int64(chunk), end, contact, high, contacts.feature)
    for chunk in prange((contact.size + CHUNK - 1) // CHUNK):
        fill_chunk(np.int64(chunk), contact, high, contacts, identity, sphere, solved, columns)


def order_hubs(end, contact, high):
    """The contacts of lower ids that have very many (a floor, a drum) are put in order beforehand: inserting them would take the square
    of their number."""
    for k in np.flatnonzero(np.diff(end, prepend=0) > MANY):
        own = slice(end[k - 1] if k > 0 else 0, end[k])
        order = np.argsort(high[own], kind="stable")
        contact[own], high[own] = contact[own][order], high[own][order]


def make_table(contacts, folded, proxies, solved=None):
    """A ``ContactTable`` of the contacts (``folded``: with bodies instead of images), with the impulses where there was a step."""
    identity, n = proxies.id, len(proxies.id)
    limit = int(identity.max(initial=-1)) + 1
    if limit <= 4 * n + 1024:
        key, keys = identity, limit
    else:  # few of many ids are left
        key, keys = np.empty(n, np.int64), n
        key[np.argsort(identity)] = np.arange(n)
    end, contact, high = sort_contacts(folded, identity, key, keys)
    order_hubs(end, contact, high)
    total, none = len(contact), np.empty((0, 3), contacts.gap.dtype)
    if solved is None:
        solved = Solved(none, none, none[:, :2])
    columns = Columns(
        np.empty(total, np.int64),
        np.empty(total, np.int64),
        np.empty((total, 3)),
        np.empty((total, 3)),
        np.empty(total),
        np.zeros((total, 3)),
        np.zeros(total, bool),
    )
    fill_table(end, contact, high, contacts, identity, proxies.sphere, solved, columns)
    return ContactTable(*columns)


@njit(nogil=True, error_model="numpy", cache=True)
def virial(contacts, tag, sphere, impulse, impact_impulse):
    """(3, 3) sum over the contacts of impulse times the vector between the two centres; to the contact, of what cannot move."""
    total = np.zeros((3, 3))
    for tile in range(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            a, b = contacts.a[c], contacts.b[c]
            for column in range(3):
                arm = float(contacts.arm[c, column])
                way = arm if tag[a, MOVES] else 0.0
                way += sphere[b, column] - sphere[a, column] - arm if tag[b, MOVES] else 0.0
                for row in range(3):
                    push = float(impulse[c, row]) + (float(impact_impulse[c, row]) if impact_impulse.size > 0 else 0.0)
                    total[row, column] += push * way
    return total
