"""Assemble: contacts and joint rows to one cone problem in block form.

In: contacts with slots, proxies, what pairs of materials do at a contact. Out: the rows of the blocks
(``gravel.cpu.solve.blocks``).

The bias of a contact is ``contact_laws.bias_of`` along its normal. Immovable bodies that turn add the velocity of their surface, and so
do surfaces that move by themselves (``surface_velocity``, empty where none does). ``contacts`` has images of bodies where space repeats
itself, ``folded`` the bodies themselves. Bodies that lie within several others (``count_overlaps``) share the recovery speed among them:
pushed by each at full speed, a hundred bodies in one place would fly apart at a hundred times that speed.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.cpu.solve import blocks as rows_of
from gravel.cpu.solve.blocks import WIDTH, row_offset
from gravel.formulas import cones, contact_laws
from gravel.formulas.bounds import MOVES
from gravel.formulas.contact_laws import DEEP_OVERLAP
from gravel.host.arrays import margin_of
from gravel.host.formulas import FORMS
from gravel.host.responses import contact_responses
from gravel.host.threads import INNER, Kernel, named
from gravel.host.vectors import cross, to_matrix
from gravel.state import MATERIAL

_laws, turned_into_cone = FORMS.of(contact_laws), FORMS.of(cones).turned_into_cone
bias_of, cohesive_impulse, friction_of, torque_arms = _laws.bias_of, _laws.cohesive_impulse, _laws.friction_of, _laws.torque_arms

# Offsets of a lane's numbers within its block, as signed integers: those of ``blocks`` are made for the vectoriser.
NX, NY, NZ, BX, BY, BZ = (int(getattr(rows_of, name)) for name in ("NX", "NY", "NZ", "BX", "BY", "BZ"))
FRICTION, COHESION, MASS_A, MASS_B = (int(getattr(rows_of, name)) for name in ("FRICTION", "COHESION", "MASS_A", "MASS_B"))
ARM_A, ARM_B, SPIN_A, SPIN_B = (int(getattr(rows_of, name)) for name in ("ARM_A", "ARM_B", "SPIN_A", "SPIN_B"))
AX, AY, AZ, CX, CY, CZ = (int(getattr(rows_of, name)) for name in ("AX", "AY", "AZ", "CX", "CY", "CZ"))
RESPONSE_N, RESPONSE_T, ETA, TWIST = (int(getattr(rows_of, name)) for name in ("RESPONSE_N", "RESPONSE_T", "ETA", "TWIST"))


class ContactInput(NamedTuple):
    """What contacts bring to the cone problem beside their geometry."""

    slot: np.ndarray  # (contacts,) block and lane of each
    inertia: np.ndarray  # of the proxies, world frame; empty where all are balls
    contact_values: np.ndarray  # of pairs of materials
    impulse: np.ndarray  # (contacts, 3) N s, of the last step
    torque: np.ndarray  # (contacts, 3) N m s, or empty
    surface_velocity: np.ndarray  # (contacts, 3) m/s, or empty
    overlap_count: np.ndarray  # (n,) see ``count_overlaps``, or empty


@njit(**INNER)
def world_inertia_of(i, order, quaternion, mass, inertia):
    b = order[i]
    m = to_matrix(quaternion[b])
    x, y, z = mass[b, 1], mass[b, 2], mass[b, 3]
    k = 8 * i
    for row in range(3):
        for column in range(row, 3):
            inertia[k] = m[row][0] * x * m[column][0] + m[row][1] * y * m[column][1] + m[row][2] * z * m[column][2]
            k += 1


@Kernel
def world_inertia(order, bodies, inertia):
    """``inertia`` := inverse inertia of the proxies in the world frame, rows of eight; the last is the dummy's."""
    for i in prange(order.size):
        world_inertia_of(np.int64(i), order, bodies.quaternion, bodies.inverse_mass, inertia)
    for k in range(8 * order.size, 8 * order.size + 8):
        inertia[k] = 0


@njit(**INNER)
def clear_block(block, blocks, unknowns, dummy):
    """Empty lanes: the dummy body, no impulse, and responses that can be divided by."""
    rows, body_a, body_b, rolling_arms = blocks.rows, blocks.body_a, blocks.body_b, blocks.rolling
    block_impulse, block_torque = unknowns.impulse, unknowns.torque
    rolling, real = rolling_arms.size > 0, rows.dtype.type
    first = row_offset(block, blocks.ball_start[-1])
    for k in range(first, row_offset(block + 1, blocks.ball_start[-1])):
        rows[k] = real(0)
    for k in range(block * WIDTH, (block + 1) * WIDTH):
        body_a[k] = dummy
        body_b[k] = dummy
    for k in range(block * 3 * WIDTH, (block + 1) * 3 * WIDTH):
        block_impulse[k] = real(0)
        if rolling:
            block_torque[k] = real(0)
    if rolling:
        for k in range(block * 2 * WIDTH, (block + 1) * 2 * WIDTH):
            rolling_arms[k] = real(0)
    if block >= blocks.ball_start[-1]:  # padding lanes: any response will do, but not zero
        for lane in range(WIDTH):
            k = first + lane
            rows[k + RESPONSE_N] = rows[k + RESPONSE_T] = rows[k + ETA] = rows[k + TWIST] = real(1)


@njit(**INNER)
def clear_hubs(blocks, unknowns, dummy):
    """The last tile's blocks, which all tiles fill."""
    for start in (blocks.ball_start, blocks.general_start):
        for block in range(start[-2], start[-1]):
            clear_block(block, blocks, unknowns, dummy)


@njit(nogil=True, error_model="numpy", cache=True)
def count_overlaps(contacts, sphere, extent, tag, overlap_count):
    """overlap_count (n,) := contacts by which a body that can move lies within another."""
    overlap_count[:] = 0
    for tile in range(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            a, b = contacts.a[c], contacts.b[c]
            radius_a = sphere[a, 3] - extent[a, 3] if tag[a, MOVES] else math.inf
            radius_b = sphere[b, 3] - extent[b, 3] if tag[b, MOVES] else math.inf
            if contacts.gap[c] < -DEEP_OVERLAP * min(radius_a, radius_b):
                overlap_count[a] += radius_a < math.inf
                overlap_count[b] += radius_b < math.inf


@njit(**INNER)
def most_overlaps(c, folded, overlap_count):
    """In how many others one of the bodies of contact c lies; 1: at most one."""
    return float(max(overlap_count[folded.a[c]], overlap_count[folded.b[c]], 1)) if overlap_count.size > 0 else 1.0


@njit(**INNER)
def arms_of(c, contacts, sphere):
    """The contact point from the centres of its two bodies."""
    a, b, arm = contacts.a[c], contacts.b[c], contacts.arm
    x, y, z = arm[c, 0], arm[c, 1], arm[c, 2]
    return (x, y, z), (x + sphere[a, 0] - sphere[b, 0], y + sphere[a, 1] - sphere[b, 1], z + sphere[a, 2] - sphere[b, 2])


@njit(**INNER)
def write_ball_rows(k, rows, a, b, n, arm_a, arm_b, bias, proxies):
    """A ball's arm lies along the normal. Returns the bias: an immovable body's turning enters as a surface velocity."""
    tag, mass, velocity = proxies.tag, proxies.mass, proxies.velocity
    x, y, z = bias
    if tag[a, MOVES]:
        rows[k + ARM_A] = arm_a[0] * n[0] + arm_a[1] * n[1] + arm_a[2] * n[2]
        rows[k + SPIN_A] = mass[a, 1]
    else:
        tx, ty, tz = cross(velocity[a, 4], velocity[a, 5], velocity[a, 6], arm_a[0], arm_a[1], arm_a[2])
        x, y, z = x - tx, y - ty, z - tz
    if tag[b, MOVES]:
        rows[k + ARM_B] = -(arm_b[0] * n[0] + arm_b[1] * n[1] + arm_b[2] * n[2])
        rows[k + SPIN_B] = mass[b, 1]
    else:
        tx, ty, tz = cross(velocity[b, 4], velocity[b, 5], velocity[b, 6], arm_b[0], arm_b[1], arm_b[2])
        x, y, z = x + tx, y + ty, z + tz
    return x, y, z


@njit(**INNER)
def write_wide_rows(k, rows, a, b, n, arm_a, arm_b, mass, inertia):
    """``mass``: sum of the inverse masses."""
    rows[k + AX], rows[k + AY], rows[k + AZ] = arm_a
    rows[k + CX], rows[k + CY], rows[k + CZ] = arm_b
    normal, across, eta, twist = contact_responses(inertia, mass, a, b, n, arm_a, arm_b)
    rows[k + RESPONSE_N], rows[k + RESPONSE_T], rows[k + ETA], rows[k + TWIST] = normal, across, eta, twist


@njit(**INNER)
def start_contact(c, given, n, friction, cohesion, i, j, blocks, unknowns):
    """The starting impulse of contact c, between materials i and j, and the arms of its rolling friction."""
    block, lane = given.slot[c] // WIDTH, given.slot[c] % WIDTH
    at, impulse, torque, arms = block * 3 * WIDTH + lane, given.impulse, given.torque, blocks.rolling
    last = impulse[c, 0], impulse[c, 1], impulse[c, 2]
    to = unknowns.impulse
    to[at], to[at + WIDTH], to[at + 2 * WIDTH] = turned_into_cone(last, n, friction, cohesion)
    if arms.size > 0:
        roll, spin = torque_arms(given.contact_values, i, j)
        arms[block * 2 * WIDTH + lane], arms[block * 2 * WIDTH + WIDTH + lane] = roll, spin
        to = unknowns.torque
        for row in range(3):
            to[at + row * WIDTH] = torque[c, row]


def make_assemble_tile(general):
    """The work on one tile, where there may be contacts with arms and inertia of any shape (``general``), or nothing but balls. A
    constant, so that scenes of balls do not compile the rest."""

    @njit(**INNER)
    @named("any" if general else "balls")
    def assemble_tile(tile, contacts, folded, proxies, given, scalars, margin, blocks, unknowns):
        rows, body_a, body_b, slot, surface_velocity, values = (
            blocks.rows,
            blocks.body_a,
            blocks.body_b,
            given.slot,
            given.surface_velocity,
            given.contact_values,
        )
        contact_a, contact_b, start, count = contacts.a, contacts.b, contacts.start, contacts.count
        normal, gaps, sphere, extent, tag, mass = contacts.normal, contacts.gap, proxies.sphere, proxies.extent, proxies.tag, proxies.mass
        for block in range(blocks.ball_start[tile], blocks.ball_start[tile + 1]):
            clear_block(block, blocks, unknowns, proxies.order.size)
        for block in range(blocks.general_start[tile], blocks.general_start[tile + 1]):
            clear_block(block, blocks, unknowns, proxies.order.size)
        for c in range(start[tile], start[tile] + count[tile]):
            a, b, n = contact_a[c], contact_b[c], (normal[c, 0], normal[c, 1], normal[c, 2])
            block, lane, i, j = slot[c] // WIDTH, slot[c] % WIDTH, tag[a, MATERIAL], tag[b, MATERIAL]
            k = row_offset(block, blocks.ball_start[-1]) + lane
            arm_a, arm_b = arms_of(c, contacts, sphere)
            contact_distance, overlaps = margin_of(margin, a, b, sphere, extent, tag), most_overlaps(c, folded, given.overlap_count)
            speed = bias_of(gaps[c], contact_distance, overlaps, scalars.step, scalars.recovery, scalars.recovery_speed)
            bias = speed * n[0], speed * n[1], speed * n[2]
            if surface_velocity.size > 0:
                bias = bias[0] + surface_velocity[c, 0], bias[1] + surface_velocity[c, 1], bias[2] + surface_velocity[c, 2]
            body_a[slot[c]], body_b[slot[c]] = folded.a[c], folded.b[c]
            rows[k + NX], rows[k + NY], rows[k + NZ] = n
            rows[k + FRICTION], rows[k + MASS_A], rows[k + MASS_B] = friction_of(values, i, j), mass[a, 0], mass[b, 0]
            rows[k + COHESION] = cohesive_impulse(values, i, j, gaps[c], contact_distance, scalars.step)
            if general and block >= blocks.ball_start[-1]:
                write_wide_rows(k, rows, a, b, n, arm_a, arm_b, mass[a, 0] + mass[b, 0], given.inertia)
            else:
                bias = write_ball_rows(k, rows, a, b, n, arm_a, arm_b, bias, proxies)
            rows[k + BX], rows[k + BY], rows[k + BZ] = bias
            start_contact(c, given, n, friction_of(values, i, j), rows[k + COHESION], i, j, blocks, unknowns)

    return assemble_tile


ball_tile = make_assemble_tile(False)
any_tile = make_assemble_tile(True)


@Kernel
def assemble_balls(contacts, folded, proxies, given, scalars, margin, blocks, unknowns):
    """Fill the blocks' rows and the starting impulses, where every movable body is a ball; ``given``: ``ContactInput``."""
    clear_hubs(blocks, unknowns, proxies.order.size)
    for tile in prange(contacts.count.size):
        ball_tile(np.int64(tile), contacts, folded, proxies, given, scalars, margin, blocks, unknowns)


@Kernel
def assemble_any(contacts, folded, proxies, given, scalars, margin, blocks, unknowns):
    """The same for bodies of any shape."""
    clear_hubs(blocks, unknowns, proxies.order.size)
    for tile in prange(contacts.count.size):
        any_tile(np.int64(tile), contacts, folded, proxies, given, scalars, margin, blocks, unknowns)
