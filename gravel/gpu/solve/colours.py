"""Colours: contacts of one colour share no body that can move, so all of them can be solved at once.

Round by round (Jones and Plassmann 1993), a contact that comes first at both its bodies among those without a colour takes the lowest
one that neither has. Who comes first is told by a number made from the contact's place, so colours do not depend on threads. Bodies with
very many contacts (hubs) would need as many colours; what is left after the last round is solved one by one, by one thread.
"""

import numpy as np
import warp as wp

from gravel.gpu.launch import last_of, run, scan
from gravel.gpu.structs import Contacts

wp.set_module_options({"enable_backward": False, "max_unroll": 0})
COLOURS = 48  # more are not given; contacts without one are REST
REST = COLOURS
AT_ONCE = 4  # rounds between two looks at which contacts are left
ROUNDS = 60  # then what is left is the contacts of hubs, which take one round each


FIRST_FACTOR, SECOND_FACTOR = wp.constant(wp.uint32(2654435769)), wp.constant(wp.uint32(2246822519))


@wp.func
def priority(c: int):
    """A number that tells contacts apart, in no order; never 0."""
    x = wp.uint32(c) * FIRST_FACTOR
    x = (x ^ (x >> wp.uint32(15))) * SECOND_FACTOR
    return int((x ^ (x >> wp.uint32(13))) & wp.uint32(0x7FFFFFFF)) | 1


@wp.func
def moves(i: int, mass: wp.array2d(dtype=float)):
    return mass[i, 0] > 0.0


@wp.kernel
def nominate(
    mass: wp.array2d(dtype=float),
    folded: Contacts,
    left: wp.array(dtype=int),
    colour: wp.array(dtype=int),
    first: wp.array(dtype=wp.int64),
):
    """``first`` := of each body, the contact that comes first among those without a colour."""
    c = left[wp.tid()]
    if colour[c] >= 0:
        return
    own = (wp.int64(priority(c)) << wp.int64(32)) | wp.int64(c)
    a, b = folded.a[c], folded.b[c]
    if moves(a, mass):
        wp.atomic_max(first, a, own)
    if moves(b, mass):
        wp.atomic_max(first, b, own)


@wp.func
def lowest_free(taken: wp.uint64):
    for k in range(COLOURS):
        if (taken >> wp.uint64(k)) & wp.uint64(1) == wp.uint64(0):
            return k
    return REST


@wp.kernel
def choose(
    mass: wp.array2d(dtype=float),
    folded: Contacts,
    left: wp.array(dtype=int),
    first: wp.array(dtype=wp.int64),
    taken: wp.array(dtype=wp.uint64),
    colour: wp.array(dtype=int),
):
    """Contacts that come first at both bodies take a colour. Nobody else reads or writes what these bodies have taken in this round."""
    c = left[wp.tid()]
    if colour[c] >= 0:
        return
    own = (wp.int64(priority(c)) << wp.int64(32)) | wp.int64(c)
    a, b = folded.a[c], folded.b[c]
    move_a, move_b = moves(a, mass), moves(b, mass)
    if (move_a and first[a] != own) or (move_b and first[b] != own):
        return
    mask = wp.uint64(0)
    if move_a:
        mask = taken[a]
        first[a] = wp.int64(0)
    if move_b:
        mask = mask | taken[b]
        first[b] = wp.int64(0)
    k = lowest_free(mask)
    colour[c] = k
    if k < REST:
        bit = wp.uint64(1) << wp.uint64(k)
        if move_a:
            taken[a] = taken[a] | bit
        if move_b:
            taken[b] = taken[b] | bit


@wp.kernel
def mark_left(left: wp.array(dtype=int), colour: wp.array(dtype=int), mark: wp.array(dtype=int)):
    k = wp.tid()
    mark[k] = 0
    if colour[left[k]] < 0:
        mark[k] = 1


@wp.kernel
def list_left(left: wp.array(dtype=int), mark: wp.array(dtype=int), place: wp.array(dtype=int), fewer: wp.array(dtype=int)):
    k = wp.tid()
    if mark[k] > 0:
        fewer[place[k]] = left[k]


@wp.kernel
def finish_colours(colour: wp.array(dtype=int), place: wp.array(dtype=int), count: wp.array(dtype=int)):
    """What is left is the rest; how many contacts each colour has."""
    c = wp.tid()
    if colour[c] < 0:
        colour[c] = REST
    place[c] = c
    wp.atomic_add(count, colour[c], 1)


@wp.kernel
def find_slots(place: wp.array(dtype=int), slot: wp.array(dtype=int)):
    k = wp.tid()
    slot[place[k]] = k


@wp.kernel
def own_slots(slot: wp.array(dtype=int)):
    slot[wp.tid()] = wp.tid()


def colour_contacts(folded, total, mass, bodies, buffers):
    """(slot of each contact in the order of colours, where each colour starts in it; the last is the rest's): rest may be empty."""
    array, device = buffers.array, buffers.device
    colour, place = array("colour", 2 * total, dtype=wp.int32), array("colour_place", 2 * total, dtype=wp.int32)
    first, taken = array("colour_first", bodies, dtype=wp.int64), array("colour_taken", bodies, dtype=wp.uint64)
    count, slot = array("colour_count", COLOURS + 1, dtype=wp.int32), array("slot", total, dtype=wp.int32)
    colour.fill_(-1)
    for zeroed in (first, taken, count):
        zeroed.zero_()
    left, rounds = array("colour_left", total, dtype=wp.int32), 0
    run(own_slots, total, [left], device)
    while left.shape[0] and rounds < ROUNDS:
        for _ in range(AT_ONCE):
            run(nominate, left.shape[0], [mass, folded, left, colour, first], device)
            run(choose, left.shape[0], [mass, folded, left, first, taken, colour], device)
        rounds += AT_ONCE
        left = _still_left(left, colour, rounds, buffers)
    run(finish_colours, total, [colour, place, count], device)
    wp.utils.radix_sort_pairs(colour, place, total)
    run(find_slots, total, [place, slot], device)
    return slot, np.concatenate([[0], np.cumsum(count.numpy())])


def _still_left(left, colour, rounds, buffers):
    """Those of some contacts that have no colour yet, in their order."""
    n, array = left.shape[0], buffers.array
    mark, place = array("colour_mark", n, dtype=wp.int32), array("colour_before", n + 1, dtype=wp.int32)
    run(mark_left, n, [left, colour, mark], buffers.device)
    place.zero_()
    scan(mark, place)
    fewer = array(f"colour_left_{rounds // AT_ONCE % 2}", last_of(place), dtype=wp.int32)
    run(list_left, n, [left, mark, place, fewer], buffers.device)
    return fewer


def keep_order(total, buffers):
    """The slots of contacts that need no colours."""
    slot = buffers.array("slot", total, dtype=wp.int32)
    run(own_slots, total, [slot], buffers.device)
    return slot
