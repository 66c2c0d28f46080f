"""Tiles and colours: the order in which a Gauss-Seidel pass may take the contacts, many at a time.

In: contacts, tile by tile (a tile is a run of bodies that lie together). Out: for each contact its ``slot`` in the blocks.

- Two tiles may run at the same time if no movable body has contacts in both: tiles get colours, greedily, from the bodies
  they touch. All contacts of a tile run before the next tile of the thread, so its velocities stay in the cache.
- Within a tile, contacts get colours the same way; blocks hold contacts of one colour, so no body is twice in a block.
- A body with very many contacts (a drum, a chassis, a boulder in sand) would need a colour for each. Its contacts form one
  last tile of their own, in which a contact comes one layer after the latest contact of its two bodies.

Nothing here depends on the number of threads.
"""

import numpy as np
from numba import njit, prange

from gravel.cpu.blocks import WIDTH
from gravel.cpu.threads import INNER, PARALLEL

COLOURS = 64  # bits of a mask
HUB = 32  # more contacts than this make a body a hub: two bodies below it never need more than 63 colours
HUB_COLOUR = 255


@njit(**INNER)
def lowest_clear_bit(mask):
    bit = 0
    while mask & 1:
        mask >>= np.uint64(1)
        bit += 1
    return bit


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
            mask |= (tile_mask[a] if tag[a, 3] else np.uint64(0)) | (tile_mask[b] if tag[b, 3] else np.uint64(0))
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
            if tag[a, 3]:
                tile_mask[a] |= bit
            if tag[b, 3]:
                tile_mask[b] |= bit


@njit(**INNER)
def is_hub(body, tag, degree):
    return tag[body, 3] and degree[body] > HUB


@njit(**INNER)
def colour_contacts(tile, tile_colour, contacts, tag, degree, mask, colour_of, slot):
    """Slots of one tile's contacts, counted from the tile's first block; returns its number of blocks."""
    first, last = contacts.start[tile], contacts.start[tile] + contacts.count[tile]
    count = np.zeros(COLOURS, np.int64)
    for c in range(first, last):
        for body in (contacts.a[c], contacts.b[c]):
            if tag[body, 3] and degree[body] <= HUB:  # the others are shared with tiles that run at the same time
                mask[body] = 0
    for c in range(first, last):
        a, b = contacts.a[c], contacts.b[c]
        if tile_colour == -2 or is_hub(a, tag, degree) or is_hub(b, tag, degree):
            colour_of[c] = HUB_COLOUR
            continue
        taken = (mask[a] if tag[a, 3] else np.uint64(0)) | (mask[b] if tag[b, 3] else np.uint64(0))
        colour = lowest_clear_bit(taken)
        bit = np.uint64(1) << np.uint64(colour)
        if tag[a, 3]:
            mask[a] |= bit
        if tag[b, 3]:
            mask[b] |= bit
        colour_of[c] = colour
        slot[c] = count[colour]
        count[colour] += 1
    blocks = 0
    for colour in range(COLOURS):
        used = (count[colour] + WIDTH - 1) // WIDTH
        count[colour] = blocks * WIDTH
        blocks += used
    for c in range(first, last):
        if colour_of[c] != HUB_COLOUR:
            slot[c] += count[colour_of[c]]
    return blocks


@njit(**INNER)
def layer_hubs(contacts, tag, layer, colour_of, slot):
    """Slots of the hubs' contacts, counted from the first block of their tile; returns its number of blocks."""
    layer[:] = 0
    deepest = 0
    for tile in range(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            if colour_of[c] == HUB_COLOUR:
                a, b = contacts.a[c], contacts.b[c]
                at = max(layer[a] if tag[a, 3] else 0, layer[b] if tag[b, 3] else 0)
                layer[a] = layer[b] = at + 1
                slot[c] = at
                deepest = max(deepest, at + 1)
    count = np.zeros(deepest, np.int64)
    for tile in range(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            if colour_of[c] == HUB_COLOUR:
                count[slot[c]] += 1
    blocks = 0
    for k in range(deepest):
        used = (count[k] + WIDTH - 1) // WIDTH
        count[k] = blocks * WIDTH
        blocks += used
    for tile in range(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            if colour_of[c] == HUB_COLOUR:
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
def collect_hubs(contacts, tag, tile_colour, layer, colour_of, slot, block_start):
    """The contacts that no tile took become the last tile; returns its number of blocks."""
    hubs = 0
    for tile in range(contacts.count.size):
        first, last = contacts.start[tile], contacts.start[tile] + contacts.count[tile]
        if tile_colour[tile] < 0:
            block_start[tile + 1] = 0
            for c in range(first, last):
                colour_of[c] = HUB_COLOUR
        for c in range(first, last):
            hubs += colour_of[c] == HUB_COLOUR
    return layer_hubs(contacts, tag, layer, colour_of, slot) if hubs > 0 else 0


@njit(**INNER)
def shift_slots(tile, contacts, colour_of, slot, block_start):
    """Slots are counted from the first block of all from here on."""
    hubs = block_start[contacts.count.size]
    for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
        slot[c] += (hubs if colour_of[c] == HUB_COLOUR else block_start[tile]) * WIDTH


@njit(parallel=PARALLEL, nogil=True, error_model="numpy", cache=True)
def plan_blocks(contacts, tag, degree, mask, tile_colour, colour_of, slot, block_start, tile_order, colour_start):
    """Fill slot, block_start, tile_order and colour_start; returns (tiles to run, tile colours). The hubs' tile is last.

    ``degree``, ``mask``: scratch, one entry per body. ``tile_colour``, ``colour_of``: scratch, per tile and contact.
    """
    tiles = contacts.count.size
    colour_tiles(contacts, tag, degree, mask, tile_colour)
    run, colours = order_tiles(tile_colour, tile_order, colour_start)
    for colour in range(colours):  # tiles of one colour share no movable body, so they can share the masks
        for k in prange(colour_start[colour], colour_start[colour + 1]):
            tile = tile_order[k]
            block_start[tile + 1] = colour_contacts(tile, tile_colour[tile], contacts, tag, degree, mask, colour_of, slot)
    block_start[tiles + 1] = collect_hubs(contacts, tag, tile_colour, degree, colour_of, slot, block_start)
    if block_start[tiles + 1] > 0:
        tile_order[run] = tiles
        run += 1
        colours += 1
        colour_start[colours] = run
    block_start[0] = 0
    for tile in range(tiles + 1):
        block_start[tile + 1] += block_start[tile]
    for tile in range(tiles):
        shift_slots(tile, contacts, colour_of, slot, block_start)
    return run, colours
