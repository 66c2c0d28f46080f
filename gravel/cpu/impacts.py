"""Impacts: bodies that hit each other bounce, before the cone problem makes them stay apart.

In: contacts and the velocities at the start of the step. Out: velocities after the bounces, and their impulses.

A contact that closes within the step, faster than a threshold, is a collision: the pair's normal velocity becomes
-e times what it was, with Coulomb friction during the blow. One contact after the other, until none closes faster than
the threshold. Asking v_n+ >= -e v_n- of all contacts at once, as a bias of the cone problem, makes touching balls share
a blow (Newton's cradle: -1/3, 2/3, 2/3 instead of 0, 0, 1); one after the other, the blow travels through, and with e = 1
every single collision keeps energy and momentum.
"""

import math

import numpy as np
from numba import njit

from gravel.cpu.assemble import FRICTION_COLUMN, contact_responses, response_row
from gravel.cpu.threads import INNER
from gravel.cpu.vectors import cross
from gravel.state import MATERIAL

RESTITUTION_COLUMN = 1  # of materials.PAIR_FIELDS
ROUNDS = 50  # then what still closes is left to the cone problem, without bounce


@njit(**INNER)
def add_impulse(velocity, body, mass, inertia, spin, rx, ry, rz, px, py, pz):
    """Velocity row of a body after an impulse p at arm r."""
    v = velocity[body]
    v[0] += mass * px
    v[1] += mass * py
    v[2] += mass * pz
    tx, ty, tz = cross(rx, ry, rz, px, py, pz)
    if inertia.size > 0:
        k = 8 * body
        tx, ty, tz = (
            inertia[k] * tx + inertia[k + 1] * ty + inertia[k + 2] * tz,
            inertia[k + 1] * tx + inertia[k + 3] * ty + inertia[k + 4] * tz,
            inertia[k + 2] * tx + inertia[k + 4] * ty + inertia[k + 5] * tz,
        )
    else:
        tx, ty, tz = spin * tx, spin * ty, spin * tz
    v[4] += tx
    v[5] += ty
    v[6] += tz


@njit(nogil=True, error_model="numpy", cache=True)
def bounce(contacts, arranged, inertia, table, step, threshold, blow):
    """Let colliding pairs bounce; ``blow`` (c, 3) := the impulses of that on b. Returns the number of collisions."""
    velocity, collisions = arranged.velocity, 0
    n = arranged.order.size
    touched = np.zeros(n, np.bool_)
    for round_ in range(ROUNDS):
        touched_now = np.zeros(n, np.bool_)
        again = False
        for tile in range(contacts.count.size):
            for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
                a, b = contacts.a[c], contacts.b[c]
                if round_ == 0:
                    blow[c, 0], blow[c, 1], blow[c, 2] = 0, 0, 0
                elif not (touched[a] or touched[b] or touched_now[a] or touched_now[b]):
                    continue
                i, j = arranged.tag[a, MATERIAL], arranged.tag[b, MATERIAL]
                restitution = table[i, j, RESTITUTION_COLUMN]
                if restitution == 0.0:
                    continue
                nx, ny, nz = contacts.normal[c, 0], contacts.normal[c, 1], contacts.normal[c, 2]
                ra, rb, va, vb = arranged.reach[a], arranged.reach[b], velocity[a], velocity[b]
                ax, ay, az = contacts.arm[c, 0], contacts.arm[c, 1], contacts.arm[c, 2]
                bx, by, bz = ax + ra[0] - rb[0], ay + ra[1] - rb[1], az + ra[2] - rb[2]
                ux = vb[0] - va[0] + (vb[5] * bz - vb[6] * by) - (va[5] * az - va[6] * ay)
                uy = vb[1] - va[1] + (vb[6] * bx - vb[4] * bz) - (va[6] * ax - va[4] * az)
                uz = vb[2] - va[2] + (vb[4] * by - vb[5] * bx) - (va[4] * ay - va[5] * ax)
                un = ux * nx + uy * ny + uz * nz
                if un >= -threshold or contacts.gap[c] + step * un > 0.0:
                    continue
                mass_a, mass_b = arranged.mass[a, 0], arranged.mass[b, 0]
                if inertia.size > 0:
                    mass = mass_a + mass_b
                    _, rt, _, _ = contact_responses(inertia, mass, a, b, nx, ny, nz, ax, ay, az, bx, by, bz)
                    n0, n1, n2 = response_row(inertia, mass, a, b, nx, ny, nz, ax, ay, az, bx, by, bz)
                    rn = n0 * nx + n1 * ny + n2 * nz
                else:
                    rn = mass_a + mass_b
                    arm_a, arm_b = ax * nx + ay * ny + az * nz, bx * nx + by * ny + bz * nz
                    rt = rn + arm_a * arm_a * arranged.mass[a, 1] + arm_b * arm_b * arranged.mass[b, 1]
                tx, ty, tz = ux - un * nx, uy - un * ny, uz - un * nz
                slip = math.sqrt(tx * tx + ty * ty + tz * tz)
                pn = -(1.0 + restitution) * un / rn
                pt = min(slip / rt, table[i, j, FRICTION_COLUMN] * pn) / max(slip, 1e-30)
                px, py, pz = pn * nx - pt * tx, pn * ny - pt * ty, pn * nz - pt * tz
                add_impulse(velocity, a, mass_a, inertia, arranged.mass[a, 1], ax, ay, az, -px, -py, -pz)
                add_impulse(velocity, b, mass_b, inertia, arranged.mass[b, 1], bx, by, bz, px, py, pz)
                blow[c, 0] += px
                blow[c, 1] += py
                blow[c, 2] += pz
                touched_now[a] = arranged.tag[a, 3]
                touched_now[b] = arranged.tag[b, 3]
                again = True
                collisions += 1
        touched = touched_now
        if not again:
            break
    return collisions
