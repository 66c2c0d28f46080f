"""What the solver has left in its blocks, contact by contact."""

import numpy as np
from numba import njit, prange

from gravel.cpu.solve.blocks import COHESION, FRICTION, WIDTH, row_offset
from gravel.host.threads import INNER, Kernel


@njit(**INNER)
def friction_of_tile(tile, start, count, slot, rows, ball_blocks, friction):
    for c in range(start[tile], start[tile] + count[tile]):
        at = row_offset(slot[c] // WIDTH, ball_blocks) + slot[c] % WIDTH
        friction[c, 0], friction[c, 1] = rows[at + np.int64(FRICTION)], rows[at + np.int64(COHESION)]


@Kernel
def friction_of_contacts(start, count, slot, rows, ball_blocks, friction):
    """friction (c, 2) := coefficient of friction and cohesive impulse of each contact. ``slot``: its place in the blocks."""
    for tile in prange(count.size):
        friction_of_tile(np.int64(tile), start, count, slot, rows, ball_blocks, friction)
