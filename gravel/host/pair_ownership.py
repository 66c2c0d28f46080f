"""Pair ownership: which contacts this process solves, where several share space (``gravel.engine.Partition``).

In: candidate pairs, whose bodies are owned by this process, by others, or known to all. Out: the pairs that are this one's.

Two bodies of one process are its own business wherever they touch; a body that all know belongs to whoever owns the other one. For two
bodies of different processes the middle of what their bounding cubes have in common decides: the process in whose part it lies knows
both, since both reach there. All who know both compute it from the same numbers in the same order, so no pair is missed or doubled.
"""

import math

import numpy as np
from numba import njit, prange

from gravel.host.arrays import CHUNK, slack_of
from gravel.host.periodic_images import windings_of
from gravel.host.threads import ALLOCATING, INNER, Kernel
from gravel.state import MOVABLE, REPLICATED, SHAPE, STALE_GHOST, STATUS

AMPLE = 1.01  # times a body's slack: what a top's angular velocity may grow by until the middle of a step


@njit(**INNER)
def owner_at(partition, point):
    """Rank of the process to whose part a point belongs."""
    best, nearest = np.int64(0), math.inf
    if partition.centre.shape[0] > 0:
        for rank in range(partition.centre.shape[0]):
            x = (point[0] - partition.centre[rank, 0]) * partition.plain[0]
            y = (point[1] - partition.centre[rank, 1]) * partition.plain[1]
            z = (point[2] - partition.centre[rank, 2]) * partition.plain[2]
            away = x * x + y * y + z * z
            if away < nearest:
                best, nearest = np.int64(rank), away
        return best
    node = np.int64(0 if partition.axis.size > 0 else -1)
    while node >= 0:
        node = partition.child[node, 1 if point[partition.axis[node]] >= partition.cut[node] else 0]
    return -1 - node


@njit(**INNER)
def owner_of_pair(a, b, sphere, owner_a, owner_b, partition, lattice, point, k):
    """Rank of the process that solves the contacts of two proxies; -1: none does here."""
    if owner_a <= STALE_GHOST or owner_b <= STALE_GHOST:
        return np.int64(-1)
    if owner_a == owner_b or owner_b == REPLICATED:
        return np.int64(owner_a)
    if owner_a == REPLICATED:
        return np.int64(owner_b)
    for axis in range(3):
        low = max(sphere[a, axis] - sphere[a, 3], sphere[b, axis] - sphere[b, 3])
        high = min(sphere[a, axis] + sphere[a, 3], sphere[b, axis] + sphere[b, 3])
        point[axis] = 0.5 * (low + high)
    windings_of(point, lattice, k)
    return owner_at(partition, point)


@njit(**ALLOCATING)
def keep_own_in_tile(tile, capacity, row, owner, sphere, partition, lattice, pairs):
    point, k = np.empty(3), np.zeros(3, np.int64)
    first, kept = tile * capacity, 0
    pair_a, pair_b, rank = pairs.a, pairs.b, partition.rank
    for p in range(first, first + pairs.count[tile]):
        a, b = pair_a[p], pair_b[p]
        owner_a, owner_b = owner[row[a]], owner[row[b]]
        if owner_a == owner_b or owner_b == REPLICATED:  # most are
            mine = owner_a == rank
        else:
            mine = owner_of_pair(a, b, sphere, owner_a, owner_b, partition, lattice, point, k) == rank
        if mine:
            pair_a[first + kept], pair_b[first + kept] = a, b
            kept += 1
    pairs.count[tile] = kept


@Kernel
def keep_own_pairs(capacity, row, owner, sphere, partition, lattice, pairs):
    """Pairs that others solve are taken out. ``row`` of each proxy, ``owner`` of each row."""
    for tile in prange(pairs.count.size):
        keep_own_in_tile(np.int64(tile), capacity, row, owner, sphere, partition, lattice, pairs)


@njit(**INNER)
def border_of_chunk(chunk, bodies, owner, margin, step, partition, lattice, radius):
    """reach (n,) := how far a body of this process, and all that it may touch in the next step, reaches from where it is at the step's
    start, if that is beyond this part; else -1. Returns how many do."""
    count, border, rank = 0, partition.border, partition.rank
    position, velocity, extent, tag, low, length = bodies.position, bodies.velocity, bodies.extent, bodies.tag, lattice.low, lattice.length
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, owner.size)):
        radius[i] = -1.0
        if owner[i] != rank:
            continue
        x, y, z = position[i, 0], position[i, 1], position[i, 2]
        slack = slack_of(margin, step, extent[i, 3], velocity, i, tag[i, STATUS], tag[i, SHAPE])
        way = 0.0
        if tag[i, STATUS] == MOVABLE:
            way = step * math.sqrt(velocity[i, 0] ** 2 + velocity[i, 1] ** 2 + velocity[i, 2] ** 2)
        r, inside = (extent[i, 3] + AMPLE * slack + way) * (1.0 + 1e-9) + 1e-12 * max(abs(x), abs(y), abs(z)), True
        for f in range(border.shape[0]):
            n0, n1, n2 = border[f, 0], border[f, 1], border[f, 2]
            inside &= n0 * x + n1 * y + n2 * z + r * (abs(n0) + abs(n1) + abs(n2)) < border[f, 3]
        for axis in range(3):  # what reaches beyond a periodic cell comes in on its other side
            if length[axis] < math.inf:
                inside &= position[i, axis] - r > low[axis] and position[i, axis] + r < low[axis] + length[axis]
        if not inside:
            radius[i] = r
            count += 1
    return count


@Kernel
def find_border(bodies, owner, margin, step, partition, lattice, count, radius):
    """reach (n,) := how far bodies reach that reach beyond this part, else -1; ``count`` (chunks,): how many of each chunk do."""
    for chunk in prange(count.size):
        count[chunk] = border_of_chunk(np.int64(chunk), bodies, owner, margin, step, partition, lattice, radius)


@njit(nogil=True, error_model="numpy", cache=True)
def list_touched(contacts, touched):
    """touched (bodies,) := 1 for those that contacts of this process act on."""
    touched[:] = 0
    for tile in range(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            touched[contacts.a[c]] = touched[contacts.b[c]] = 1


@njit(nogil=True, error_model="numpy", cache=True)
def list_moved_contacts(cache, rows, owner, row_of_id, sphere, partition, lattice, contact, target):
    """Cached contacts that another process solves from now on, and its rank; only bodies at the border, ghosts and replicated bodies
    (``rows``) can have found one. Returns how many, even those that have no room. Across the border of a periodic cell none migrates."""
    point, k, count = np.empty(3), np.zeros(3, np.int64), 0
    for i in rows:
        if i >= cache.first.size:
            continue
        for c in range(cache.first[i], cache.first[i] + cache.number[i]):
            a, b = row_of_id[cache.a[c]], row_of_id[cache.b[c]]
            if a < 0 or b < 0:
                continue
            owner_a, owner_b = owner[a], owner[b]
            owner_a, owner_b = (
                owner_a if owner_a > STALE_GHOST else STALE_GHOST - owner_a,
                owner_b if owner_b > STALE_GHOST else STALE_GHOST - owner_b,
            )
            rank = owner_of_pair(a, b, sphere, owner_a, owner_b, partition, lattice, point, k)
            if rank != partition.rank:
                if count < target.size:
                    contact[count], target[count] = c, rank
                count += 1
    return count


@njit(nogil=True, error_model="numpy", cache=True)
def adopt_contacts(known, place_of, contacts, identity, impulse, torque):
    """``impulse`` and ``torque`` of this step's contacts := those that other processes have cached (``known``: ids a and b, features,
    impulses, torques; ``place_of`` (k, 2) their bodies among the proxies, or -1)."""
    a, b, feature, old_impulse, old_torque = known
    for k in range(a.size):
        for side in range(2):
            i = place_of[k, side]
            if i < 0:
                continue
            for c in range(contacts.first[i], contacts.first[i] + contacts.number[i]):
                one, other = identity[contacts.a[c]], identity[contacts.b[c]]
                same = one == a[k] and other == b[k]
                if contacts.feature[c] != feature[k] or not (same or (one == b[k] and other == a[k])):
                    continue
                sign = 1 if same else -1
                for axis in range(3):
                    impulse[c, axis] = sign * old_impulse[k, axis]
                    if torque.size > 0:
                        torque[c, axis] = sign * old_torque[k, axis]


def moved_contacts(cache, rows, *of_pairs):
    """(places in the cache, ranks) of the contacts that another process solves from now on; see ``list_moved_contacts``."""
    room = 256
    while True:
        contact, target = np.empty(room, np.int64), np.empty(room, np.int64)
        found = int(list_moved_contacts(cache, rows, *of_pairs, contact, target))
        if found <= room:
            return contact[:found], target[:found]
        room = 2 * found
