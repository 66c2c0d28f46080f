"""Mass splitting: contacts of one body that several processes solve at the same time.

Each process sweeps over its own contacts as if the body were its alone; added up, what they all do would be too much, and the sweeps
diverge. So a body that k processes act on is taken to have one k-th of its mass and inertia on each of them (mass splitting, Tonge et
al. 2012), and its velocity changes by the mean of what they find. The sum over all impulses times the body's true inverse mass is just
that mean, so velocities and impulses fit each other at all times, v = v_free + M^-1 D p, and at the solution nothing of the splitting is
left. Residuals and the gradient solvers know whole bodies only.
"""

import numpy as np
from numba import njit

from gravel.cpu.solve.blocks import (
    ARM_A,
    AX,
    AY,
    AZ,
    CX,
    CY,
    CZ,
    MASS_A,
    MASS_B,
    NX,
    NY,
    NZ,
    RESPONSE_N,
    RESPONSE_T,
    SPIN_A,
    SPIN_B,
    TWIST,
    WIDTH,
    row_offset,
)
from gravel.host.responses import contact_responses

N_X, N_Y, N_Z, A_X, A_Y, A_Z, C_X, C_Y, C_Z = (int(k) for k in (NX, NY, NZ, AX, AY, AZ, CX, CY, CZ))
OF_BALLS = tuple(int(k) for k in (MASS_A, MASS_B, SPIN_A, SPIN_B, ARM_A))  # what splitting changes; the last only fills the row
OF_OTHERS = tuple(int(k) for k in (MASS_A, MASS_B, RESPONSE_N, RESPONSE_T, TWIST))


@njit(nogil=True, error_model="numpy", cache=True)
def count_lanes(body_a, body_b, lanes, parts):
    """Lanes with a body of which there are several ``parts``."""
    count = 0
    for k in range(lanes):
        count += parts[body_a[k]] > 1 or parts[body_b[k]] > 1
    return count


@njit(nogil=True, error_model="numpy", cache=True)
def split_lanes(blocks, number, parts, inertia, offset, whole, split):
    """offset (m, 5) := offsets of the numbers that splitting changes, ``whole`` and ``split`` := their values without and with it.
    ``inertia`` is that of the parts."""
    rows, body_a, body_b, at = blocks.rows, blocks.body_a, blocks.body_b, 0
    for lane in range(number * WIDTH):
        a, b = body_a[lane], body_b[lane]
        if parts[a] <= 1 and parts[b] <= 1:
            continue
        block, k = lane // WIDTH, row_offset(lane // WIDTH, blocks.ball_start[-1]) + lane % WIDTH
        ball = block < blocks.ball_start[-1]
        for i in range(5):
            offset[at, i] = k + (OF_BALLS[i] if ball else OF_OTHERS[i])
            whole[at, i] = split[at, i] = rows[offset[at, i]]
        split[at, 0] *= parts[a]
        split[at, 1] *= parts[b]
        if ball:
            split[at, 2] *= parts[a]
            split[at, 3] *= parts[b]
        else:
            arm_a, arm_b = (rows[k + A_X], rows[k + A_Y], rows[k + A_Z]), (rows[k + C_X], rows[k + C_Y], rows[k + C_Z])
            normal, mass = (rows[k + N_X], rows[k + N_Y], rows[k + N_Z]), split[at, 0] + split[at, 1]
            n, t, _, twist = contact_responses(inertia, mass, a, b, normal, arm_a, arm_b)
            split[at, 2], split[at, 3], split[at, 4] = n, t, twist
        at += 1


class SplitBodies:
    """The contacts of bodies that several processes act on, in both forms. A problem has them whole until ``use(True)``."""

    def __init__(self, blocks, number, inertia, indices, parts):
        """``indices`` (k,) of the bodies, ``parts`` (k,) into how many each is split."""
        rows, real = blocks.rows, blocks.rows.dtype
        indices, parts = indices[parts > 1], parts[parts > 1]
        of_body = np.ones(max(int(max(blocks.body_a.max(initial=0), blocks.body_b.max(initial=0), indices.max(initial=0))) + 1, 1), real)
        of_body[indices] = parts
        self.rows, self.inertia, self.is_split = rows, inertia, False
        self.turns = (8 * indices[:, None] + np.arange(6)).reshape(-1) if inertia.size else np.empty(0, np.int64)
        self.whole_turns = inertia[self.turns]
        self.split_turns = self.whole_turns * np.repeat(parts, 6)[: len(self.turns)].astype(real)
        m = int(count_lanes(blocks.body_a, blocks.body_b, number * WIDTH, of_body))
        self.offset, self.whole, self.split = np.empty((m, 5), np.int64), np.empty((m, 5), real), np.empty((m, 5), real)
        inertia[self.turns] = self.split_turns
        split_lanes(blocks, number, of_body, inertia, self.offset, self.whole, self.split)
        inertia[self.turns] = self.whole_turns

    def use(self, split):
        """The problem has the bodies split, or whole."""
        if split != self.is_split:
            self.is_split = split
            self.rows[self.offset] = self.split if split else self.whole
            self.inertia[self.turns] = self.split_turns if split else self.whole_turns
