"""Tiles and colours: the order in which a Gauss-Seidel pass may take the contacts, many at a time.

In: contacts, tile by tile (a tile is a run of bodies that lie together). Out: for each contact its ``slot`` in the blocks.

- Two tiles may run at the same time if no movable body has contacts in both: tiles get colours, greedily, from the bodies
  they touch. All contacts of a tile run before the next tile of the thread, so its velocities stay in the cache.
- Within a tile, each contact goes to the first block that has a free lane and none of its bodies, so that nearly all lanes
  of all blocks are in use.
- A body with very many contacts (a drum, a chassis, a boulder in sand) would need a colour for each. Its contacts form one
  last tile of their own, in which a contact comes one layer after the latest contact of its two bodies.
- Contacts between balls (and what forces cannot move) go to blocks of their own, which are smaller and quicker; the others are wide.

Nothing here depends on the number of threads.
"""

import numpy as np
from numba import njit, prange

from gravel.cpu.solve.blocks import WIDTH
from gravel.formulas.bounds import MOVES, OTHER
from gravel.host.threads import ALLOCATING, INNER, Kernel

COLOURS = 64  # of tiles: bits of a mask
HUB = 32  # more contacts than this make a body a hub
OWN_BALL, OWN_GENERAL, HUB_BALL, HUB_GENERAL = range(4)  # whether a contact is in its own tile's blocks or the hubs', and of which kind


# The place of a single bit, by multiplication: the upper six bits of each product are different (a de Bruijn sequence).
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
PLACE = np.zeros(64, np.int64)
for _bit in range(64):
    PLACE[(0x03F79D71B4CB0A89 << _bit & 0xFFFFFFFFFFFFFFFF) >> 58] = _bit


@njit(**INNER)
def lowest_clear_bit(mask):
    """Place of the lowest bit that is not set; 64 if all are."""
    lowest = ~mask & (mask + np.uint64(1))
    return PLACE[(lowest * DE_BRUIJN) >> np.uint64(58)] if lowest else 64


@njit(**INNER)
def colour_tiles(contacts, tag, degree, tile_mask, tile_colour):
    """Colours of the tiles; marks hubs by their ``degree``. A tile without a free colour gets -2 and joins the hubs."""
    tiles = contacts.count.size
    degree[:] = 0
    tile_mask[:] = 0
    for tile in range(tiles):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            degree[contacts.a[c]] += 1
            degree[contacts.b[c]] += 1
    for tile in range(tiles):
        tile_colour[tile] = -1
        mask = np.uint64(0)
        own = 0
        first, last = contacts.start[tile], contacts.start[tile] + contacts.count[tile]
        for c in range(first, last):
            a, b = contacts.a[c], contacts.b[c]
            if is_hub(a, tag, degree) or is_hub(b, tag, degree):
                continue
            own += 1
            mask |= (tile_mask[a] if tag[a, MOVES] else np.uint64(0)) | (tile_mask[b] if tag[b, MOVES] else np.uint64(0))
        if own == 0:
            continue
        colour = lowest_clear_bit(mask)
        if colour >= COLOURS - 1:
            tile_colour[tile] = -2
            continue
        tile_colour[tile] = colour
        bit = np.uint64(1) << np.uint64(colour)
        for c in range(first, last):
            a, b = contacts.a[c], contacts.b[c]
            if is_hub(a, tag, degree) or is_hub(b, tag, degree):
                continue
            if tag[a, MOVES]:
                tile_mask[a] |= bit
            if tag[b, MOVES]:
                tile_mask[b] |= bit


@njit(**INNER)
def is_hub(body, tag, degree):
    return tag[body, MOVES] and degree[body] > HUB


@njit(**INNER)
def clear_masks(first, last, contacts, tag, degree, mask):
    for c in range(first, last):
        for body in (contacts.a[c], contacts.b[c]):
            if tag[body, MOVES] and degree[body] <= HUB:  # the others are shared with tiles that run at the same time
                mask[body] = 0


@njit(**INNER)
def is_general(a, b, tag):
    return tag[a, MOVES] == OTHER or tag[b, MOVES] == OTHER


@njit(**ALLOCATING)
def fill_blocks(tile, general, tile_colour, contacts, tag, degree, mask, colour_of, slot):
    """Slots of one tile's contacts of one kind, counted from the tile's first block; returns its number of blocks.

    The masks tell in which of 64 blocks a body is already; when none of them suits a contact, the next 64 are begun.
    """
    first, last = contacts.start[tile], contacts.start[tile] + contacts.count[tile]
    base, blocks, full = 0, 0, np.uint64(0)
    used = np.zeros(64, np.int64)
    clear_masks(first, last, contacts, tag, degree, mask)
    for c in range(first, last):
        a, b = contacts.a[c], contacts.b[c]
        if is_general(a, b, tag) != general:
            continue
        if tile_colour == -2 or is_hub(a, tag, degree) or is_hub(b, tag, degree):
            colour_of[c] = HUB_GENERAL if general else HUB_BALL
            continue
        taken = full | (mask[a] if tag[a, MOVES] else np.uint64(0)) | (mask[b] if tag[b, MOVES] else np.uint64(0))
        block = lowest_clear_bit(taken)
        if block == 64:
            base, block, full = base + 64, 0, np.uint64(0)
            used[:] = 0
            clear_masks(first, last, contacts, tag, degree, mask)
        bit = np.uint64(1) << np.uint64(block)
        if tag[a, MOVES]:
            mask[a] |= bit
        if tag[b, MOVES]:
            mask[b] |= bit
        colour_of[c] = OWN_GENERAL if general else OWN_BALL
        slot[c] = (base + block) * WIDTH + used[block]
        used[block] += 1
        if used[block] == WIDTH:
            full |= bit
        blocks = max(blocks, base + block + 1)
    return blocks


@njit(**ALLOCATING)
def layer_hubs(contacts, kind, tag, layer, colour_of, slot):
    """Slots of the hubs' contacts of one kind, counted from the first block of their tile; returns its number of blocks."""
    layer[:] = 0
    deepest = 0
    for tile in range(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            if colour_of[c] == kind:
                a, b = contacts.a[c], contacts.b[c]
                at = max(layer[a] if tag[a, MOVES] else 0, layer[b] if tag[b, MOVES] else 0)
                layer[a] = layer[b] = at + 1
                slot[c] = at
                deepest = max(deepest, at + 1)
    count = np.zeros(deepest, np.int64)
    for tile in range(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            if colour_of[c] == kind:
                count[slot[c]] += 1
    blocks = 0
    for k in range(deepest):
        used = (count[k] + WIDTH - 1) // WIDTH
        count[k] = blocks * WIDTH
        blocks += used
    for tile in range(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            if colour_of[c] == kind:
                at = slot[c]
                slot[c] = count[at]
                count[at] += 1
    return blocks


@njit(**INNER)
def order_tiles(tile_colour, tile_order, colour_start):
    """Tiles sorted by colour; returns (tiles, colours)."""
    most, run = -1, 0
    for tile in range(tile_colour.size):
        most = max(most, tile_colour[tile])
    colour_start[0] = 0
    for colour in range(most + 1):
        for tile in range(tile_colour.size):
            if tile_colour[tile] == colour:
                tile_order[run] = tile
                run += 1
        colour_start[colour + 1] = run
    return run, most + 1


@njit(**INNER)
def mark_hubs(contacts, tag, tile_colour, colour_of, hubs):
    """The contacts of tiles that no colour took join the hubs'; ``hubs`` := how many balls' and general ones there are."""
    hubs[:] = 0
    for tile in range(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            if tile_colour[tile] < 0:
                colour_of[c] = HUB_GENERAL if is_general(contacts.a[c], contacts.b[c], tag) else HUB_BALL
            if colour_of[c] >= HUB_BALL:
                hubs[colour_of[c] - HUB_BALL] += 1


@njit(**INNER)
def shift_slots(tile, contacts, colour_of, slot, start):
    """Slots are counted from the first block of all from here on."""
    hubs = contacts.count.size
    for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
        kind = colour_of[c]
        slot[c] += start[kind % 2, hubs if kind >= HUB_BALL else tile] * WIDTH


@Kernel
def plan_blocks(contacts, tag, balls, general, degree, mask, tile_colour, colour_of, slot, start, tile_order, colour_start):
    """Fill slot, start, tile_order and colour_start; returns (tiles to run, tile colours). The hubs' tile is last.

    ``balls``, ``general``: which kinds of contacts there may be. ``start`` (2, tiles + 2): first block of each tile, of the balls' and
    of the general ones, which are numbered after all of the balls'.
    ``degree``, ``mask``: scratch, one entry per body. ``tile_colour``, ``colour_of``: scratch, per tile and contact.
    """
    tiles = contacts.count.size
    colour_tiles(contacts, tag, degree, mask, tile_colour)
    run, colours = order_tiles(tile_colour, tile_order, colour_start)
    start[:] = 0
    for colour in range(colours):  # tiles of one colour share no movable body, so they can share the masks
        for k in prange(colour_start[colour], colour_start[colour + 1]):
            tile = tile_order[k]
            rest = tile_colour[tile], contacts, tag, degree, mask, colour_of, slot
            if balls:
                start[0, tile + 1] = fill_blocks(tile, False, *rest)
            if general:
                start[1, tile + 1] = fill_blocks(tile, True, *rest)
    hubs = np.zeros(2, np.int64)
    mark_hubs(contacts, tag, tile_colour, colour_of, hubs)
    for kind in range(2):
        if hubs[kind] > 0:
            start[kind, tiles + 1] = layer_hubs(contacts, HUB_BALL + kind, tag, degree, colour_of, slot)
    if hubs[0] + hubs[1] > 0:
        tile_order[run] = tiles
        run += 1
        colours += 1
        colour_start[colours] = run
    for kind in range(2):
        start[kind, 0] = 0 if kind == 0 else start[0, tiles + 1]
        for tile in range(tiles + 1):
            start[kind, tile + 1] += start[kind, tile]
    for tile in range(tiles):
        shift_slots(tile, contacts, colour_of, slot, start)
    return run, colours
