"""A cone problem from plain arrays: contacts are put in tiles by their first body, coloured and laid out in blocks."""

import numpy as np
from numba import njit

from gravel.cpu.solve.block_problem import BlockProblem
from gravel.cpu.solve.blocks import (
    AX,
    AZ,
    BX,
    BZ,
    COHESION,
    CX,
    CZ,
    FRICTION,
    MASS_A,
    MASS_B,
    NX,
    NZ,
    RESPONSE_N,
    ROWS_GENERAL,
    TWIST,
    WIDTH,
    Blocks,
    Unknowns,
)
from gravel.cpu.solve.tiles import COLOURS, plan_blocks
from gravel.formulas.bounds import MOVES, OTHER
from gravel.host.arrays import Contacts
from gravel.host.joints.block import JointBlock
from gravel.host.joints.rows import make_rows
from gravel.host.responses import contact_responses
from gravel.host.rules import Scalars

TILE = 512
KINDS = False, True  # arrays may speak of any bodies: all contacts are general


def row(offset):
    """Number of a row in its block, from the offset of its lanes."""
    return int(offset) // WIDTH


@njit(nogil=True, error_model="numpy", cache=True)
def all_responses(inertia, inverse_mass, body_a, body_b, normal, arm_a, arm_b):
    """(n, 4) normal and tangential response, eta and twist of each contact."""
    result = np.empty((body_a.size, 4))
    for c in range(body_a.size):
        a, b, n = body_a[c], body_b[c], (normal[c, 0], normal[c, 1], normal[c, 2])
        r, s = (arm_a[c, 0], arm_a[c, 1], arm_a[c, 2]), (arm_b[c, 0], arm_b[c, 1], arm_b[c, 2])
        mass = inverse_mass[a] + inverse_mass[b]
        result[c, 0], result[c, 1], result[c, 2], result[c, 3] = contact_responses(inertia, mass, a, b, n, r, s)
    return result


class ArrayProblem(BlockProblem):
    """A block problem that finds its way back to the order of the arrays."""

    def __init__(self, *parts, slot, bodies):
        super().__init__(*parts)
        self.slot, self.bodies = slot, bodies

    def impulse_of_contacts(self):
        return self._blocks_of(self.unknowns.impulse, 3)[self.slot // WIDTH, :, self.slot % WIDTH].astype(float)

    def body_velocities(self):
        rows = self.unknowns.velocity.reshape(-1, 8)[: self.bodies]
        return np.concatenate([rows[:, :3], rows[:, 4:7]], axis=1).astype(float)


def block_problem_from_arrays(p, coulomb):
    """The block form of a ``ConeProblem``."""
    n, bodies, real = len(p.body_a), len(p.inverse_mass), p.real
    order = np.argsort(p.body_a // TILE, kind="stable")
    tiles = bodies // TILE + 1
    count = np.bincount(p.body_a // TILE, minlength=tiles)
    start = np.concatenate([[0], np.cumsum(count)[:-1]])
    a, b = p.body_a[order].astype(np.int32), p.body_b[order].astype(np.int32)
    none, none3 = np.empty(0, np.int64), np.empty((0, 3), real)
    contacts = Contacts(a, b, none, none3, none3, np.empty(0, real), start, count, none, none)
    sorted_slot, block_start = np.zeros(n, np.int32), np.zeros((2, tiles + 2), np.int64)
    tile_order, colour_start = np.zeros(tiles + 1, np.int64), np.zeros(COLOURS + 2, np.int64)
    tag = np.zeros((bodies, 4), np.int32)
    tag[:, MOVES] = np.where(p.inverse_mass > 0, OTHER, 0)
    run, colours = plan_blocks(
        contacts,
        tag,
        *KINDS,
        np.zeros(bodies, np.int32),
        np.zeros(bodies, np.uint64),
        np.zeros(tiles, np.int32),
        np.zeros(n, np.uint8),
        sorted_slot,
        block_start,
        tile_order,
        colour_start,
    )
    slot = np.empty(n, np.int64)
    slot[order] = sorted_slot
    number = int(block_start[1, -1])
    velocity = np.zeros((bodies + 1, 8), real)
    velocity[:-1, :3], velocity[:-1, 4:7] = p.velocity[:, :3], p.velocity[:, 3:]
    inertia = np.zeros((bodies + 1, 8), real)
    inertia[:-1, :6] = p.inverse_inertia[:, (0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2)]
    body_a, body_b = np.full(number * WIDTH, bodies, np.int32), np.full(number * WIDTH, bodies, np.int32)
    body_a[slot], body_b[slot] = p.body_a, p.body_b
    rows = np.zeros((number, ROWS_GENERAL, WIDTH), real)
    rows[:, row(RESPONSE_N) : row(TWIST) + 1] = 1
    block, lane = slot // WIDTH, slot % WIDTH
    rows[block, row(NX) : row(NZ) + 1, lane], rows[block, row(BX) : row(BZ) + 1, lane] = p.normal, p.bias
    rows[block, row(FRICTION), lane], rows[block, row(COHESION), lane] = p.friction, p.cohesion
    rows[block, row(MASS_A), lane], rows[block, row(MASS_B), lane] = p.inverse_mass[p.body_a], p.inverse_mass[p.body_b]
    rows[block, row(AX) : row(AZ) + 1, lane], rows[block, row(CX) : row(CZ) + 1, lane] = p.arm_a, p.arm_b
    rows[block, row(RESPONSE_N) : row(TWIST) + 1, lane] = all_responses(
        inertia.astype(float).reshape(-1), p.inverse_mass, p.body_a, p.body_b, p.normal, p.arm_a, p.arm_b
    )
    blocks = Blocks(rows.reshape(-1), body_a, body_b, np.empty(0, real), *block_start, tile_order[:run], colour_start[: colours + 1])
    now, last = ([np.zeros(number * 3 * WIDTH, real), np.empty(0, real), velocity.reshape(-1).copy()] for _ in range(2))
    unknowns = Unknowns(*now, *last, inertia.reshape(-1), np.zeros(number * WIDTH, real))
    scalars = Scalars(float(coulomb), 1.0, 0.0, 0.0)
    return ArrayProblem(blocks, unknowns, scalars, n, KINDS, JointBlock(_joint_rows(p)), slot=slot, bodies=bodies)


def _joint_rows(p):
    """Rows of two entries each, one per body."""
    jacobian = p.joints["jacobian"].reshape(-1, 2, 2, 3)
    bodies = np.stack([p.joints["body_a"], p.joints["body_b"]], axis=1)
    delta = np.empty_like(jacobian)
    delta[:, :, 0] = jacobian[:, :, 0] * p.inverse_mass[bodies][..., None]
    delta[:, :, 1] = np.einsum("msij,msj->msi", p.inverse_inertia[bodies], jacobian[:, :, 1])
    response = (jacobian * delta).sum(axis=(1, 2, 3))
    if (response <= 0).any():
        raise ValueError(f"joint row {int(np.argmin(response))} moves no body")
    rows = make_rows(np.full(len(bodies), 2), bodies.reshape(-1))
    rows.body[:] = bodies.reshape(-1)
    rows.jacobian[:], rows.delta[:] = jacobian.reshape(-1, 6), delta.reshape(-1, 6)
    rows.eta[:], rows.bias[:], rows.lower[:], rows.upper[:] = 1 / response, p.joints["bias"], p.joints["lower"], p.joints["upper"]
    return rows
