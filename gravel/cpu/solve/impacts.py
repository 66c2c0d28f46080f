"""Impacts: bodies that hit each other bounce, before the cone problem makes them stay apart.

In: contacts and the velocities at the start of the step. Out: velocities after the bounces, and their impulses.

A contact that closes within the step, faster than a threshold, is a collision: the pair's normal velocity becomes
-e times what it is at the moment of touching, with Coulomb friction during the blow. Gravity acts before that moment and after it:
with a blow at the start of the step and a whole step of gravity after it, the speed g h would be lost. A body that touches nothing
else also gets the way right: the old velocity up to that moment, the new one from then on. One pair after the other, until none closes
faster than the threshold. Asking v_n+ >= -e v_n- of all contacts at once, as a bias of the cone problem, makes touching balls share
a blow (Newton's cradle: -1/3, 2/3, 2/3 instead of 0, 0, 1); one after the other, the blow travels through, and with e = 1
every single collision keeps energy and momentum.
"""

import math

import numpy as np
from numba import njit

from gravel.cpu.collide.bounds import MOVES
from gravel.cpu.solve.assemble import FRICTION_COLUMN, contact_responses, response_row
from gravel.cpu.threads import INNER
from gravel.cpu.vectors import cross
from gravel.state import MATERIAL

RESTITUTION_COLUMN = 1  # of materials.PAIR_FIELDS
ROUNDS = 50  # then what still closes is left to the cone problem, without bounce
TURNS = 200  # of processes, where several act on a body; then likewise
PAIR_ROUNDS = 100  # for the contacts of one pair to agree


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


@njit(**INNER)
def normal_velocity(c, contacts, touching, arranged, carry):
    """(u, u . n, arms) of contact c: velocity of b relative to a at the contact, and where that is."""
    a, b = contacts.a[c], contacts.b[c]
    velocity, reach = arranged.velocity, arranged.reach
    ax, ay, az = contacts.arm[c, 0], contacts.arm[c, 1], contacts.arm[c, 2]
    bx, by, bz = ax + reach[a, 0] - reach[b, 0], ay + reach[a, 1] - reach[b, 1], az + reach[a, 2] - reach[b, 2]
    v, a, b = velocity, touching.a[c], touching.b[c]
    ux = v[b, 0] - v[a, 0] + (v[b, 5] * bz - v[b, 6] * by) - (v[a, 5] * az - v[a, 6] * ay)
    uy = v[b, 1] - v[a, 1] + (v[b, 6] * bx - v[b, 4] * bz) - (v[a, 6] * ax - v[a, 4] * az)
    uz = v[b, 2] - v[a, 2] + (v[b, 4] * by - v[b, 5] * bx) - (v[a, 4] * ay - v[a, 5] * ax)
    if carry.size > 0:
        ux, uy, uz = ux + carry[c, 0], uy + carry[c, 1], uz + carry[c, 2]
    un = ux * contacts.normal[c, 0] + uy * contacts.normal[c, 1] + uz * contacts.normal[c, 2]
    return ux, uy, uz, un, ax, ay, az, bx, by, bz


@njit(**INNER)
def responses(c, contacts, arranged, inertia, arms):
    """What a normal and a tangential impulse do to the relative velocity."""
    a, b = contacts.a[c], contacts.b[c]
    nx, ny, nz = contacts.normal[c, 0], contacts.normal[c, 1], contacts.normal[c, 2]
    ax, ay, az, bx, by, bz = arms
    mass = arranged.mass[a, 0] + arranged.mass[b, 0]
    if inertia.size > 0:
        _, rt, _, _ = contact_responses(inertia, mass, a, b, nx, ny, nz, ax, ay, az, bx, by, bz)
        n0, n1, n2 = response_row(inertia, mass, a, b, nx, ny, nz, ax, ay, az, bx, by, bz)
        return n0 * nx + n1 * ny + n2 * nz, rt
    arm_a, arm_b = ax * nx + ay * ny + az * nz, bx * nx + by * ny + bz * nz
    return mass, mass + arm_a * arm_a * arranged.mass[a, 1] + arm_b * arm_b * arranged.mass[b, 1]


@njit(**INNER)
def push(c, touching, arranged, inertia, arms, px, py, pz, blow):
    """Impulse p on b and -p on a at contact c."""
    a, b, mass = touching.a[c], touching.b[c], arranged.mass
    ax, ay, az, bx, by, bz = arms
    add_impulse(arranged.velocity, a, mass[a, 0], inertia, mass[a, 1], ax, ay, az, -px, -py, -pz)
    add_impulse(arranged.velocity, b, mass[b, 0], inertia, mass[b, 1], bx, by, bz, px, py, pz)
    blow[c, 0] += px
    blow[c, 1] += py
    blow[c, 2] += pz


@njit(**INNER)
def moment_of_touch(gap, un, pull, lead):
    """When, from the start of the step, a gap closes that is seen ``lead`` later, at speed ``un`` and acceleration ``pull``."""
    start = max(gap - lead * un, 0.0)
    return 2.0 * start / (-un + math.sqrt(max(un * un - 2.0 * pull * start, 0.0)))


@njit(**INNER)
def foresee(first, last, contacts, touching, arranged, carry, restitution, times, gravity, threshold, target, load):
    """When the pair with the contacts first to last collides, s from the start of the step, or -1 where it does not; ``target`` := the
    normal velocity that each shall have then, ``load`` := 0 where one closes, else -1."""
    step, lead = times
    moment = math.inf
    a, b = contacts.a[first], contacts.b[first]
    weight = min(arranged.tag[b, MOVES], 1) - min(arranged.tag[a, MOVES], 1)  # both fall: no relative acceleration
    for c in range(first, last):
        un = normal_velocity(c, contacts, touching, arranged, carry)[3]
        n = contacts.normal[c]
        pull = weight * (gravity[0] * n[0] + gravity[1] * n[1] + gravity[2] * n[2])
        closing = un < -threshold and contacts.gap[c] + step * (un + step * min(pull, 0.0)) <= 0.0
        touch = moment_of_touch(contacts.gap[c], un, pull, lead) if closing else 0.0
        target[c - first] = -restitution * (un + pull * touch) - pull * touch if closing else 0.0
        load[c - first] = 0.0 if closing else -1.0
        moment = min(moment, touch if closing else math.inf)
    return moment if moment < math.inf else -1.0


@njit(**INNER)
def strike(first, last, contacts, touching, arranged, inertia, carry, friction, blow, target, load):
    """Let one pair collide at its contacts first to last; all of them at once, or a flat box would tumble."""
    for _ in range(1 if last - first == 1 else PAIR_ROUNDS):
        change = 0.0
        for c in range(first, last):
            if load[c - first] < 0.0:
                continue
            _, _, _, un, ax, ay, az, bx, by, bz = normal_velocity(c, contacts, touching, arranged, carry)
            arms = ax, ay, az, bx, by, bz
            rn, _ = responses(c, contacts, arranged, inertia, arms)
            p = max(load[c - first] + (target[c - first] - un) / rn, 0.0) - load[c - first]
            load[c - first] += p
            change = max(change, abs(p) * rn)
            push(
                c,
                touching,
                arranged,
                inertia,
                arms,
                p * contacts.normal[c, 0],
                p * contacts.normal[c, 1],
                p * contacts.normal[c, 2],
                blow,
            )
        if change < 1e-9 * target[0]:
            break
    for c in range(first, last):
        if load[c - first] > 0.0 and friction > 0.0:
            ux, uy, uz, un, ax, ay, az, bx, by, bz = normal_velocity(c, contacts, touching, arranged, carry)
            arms = ax, ay, az, bx, by, bz
            _, rt = responses(c, contacts, arranged, inertia, arms)
            tx, ty, tz = ux - un * contacts.normal[c, 0], uy - un * contacts.normal[c, 1], uz - un * contacts.normal[c, 2]
            slip = math.sqrt(tx * tx + ty * ty + tz * tz)
            pt = -min(slip / rt, friction * load[c - first]) / max(slip, 1e-30)
            push(c, touching, arranged, inertia, arms, pt * tx, pt * ty, pt * tz, blow)


@njit(nogil=True, error_model="numpy", cache=True)
def count_partners(contacts, partners):
    """``partners`` := how many other bodies each has contacts with."""
    partners[:] = 0
    for tile in range(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            new = c == contacts.start[tile] or contacts.a[c] != contacts.a[c - 1] or contacts.b[c] != contacts.b[c - 1]
            partners[contacts.a[c]] += new
            partners[contacts.b[c]] += new


@njit(**INNER)
def correct_way(a, b, late, arranged, partners, old, shift):
    """The way of two bodies that bounced ``late`` seconds after where the step looks (negative: before), where they touch nothing else.
    Of two that can move only the part along their new relative velocity: that keeps their angular momentum."""
    velocity, ia, ib = arranged.velocity, arranged.mass[a, 0], arranged.mass[b, 0]
    if (ia > 0.0 and partners[a] != 1) or (ib > 0.0 and partners[b] != 1):
        return
    along, square = 1.0, 1.0
    if ia > 0.0 and ib > 0.0:
        along, square = 0.0, 1e-300
        for k in range(3):
            new = float(velocity[b, k] - velocity[a, k])
            along += (new - float(old[1, k] - old[0, k])) * new
            square += new * new
    for k in range(3):
        if ia > 0.0 and ib > 0.0:
            way = late * along / square * float(velocity[b, k] - velocity[a, k])
            shift[a, k] -= ia / (ia + ib) * way
            shift[b, k] += ib / (ia + ib) * way
        elif ia > 0.0:
            shift[a, k] += late * (velocity[a, k] - old[0, k])
        else:
            shift[b, k] += late * (velocity[b, k] - old[1, k])


@njit(**INNER)
def turning_speed(velocity, body, radius):
    """The most that turning adds to the speed of a point of a body."""
    w = velocity[body, 4] ** 2 + velocity[body, 5] ** 2 + velocity[body, 6] ** 2
    return math.sqrt(w) * radius if w > 0.0 else 0.0


@njit(**INNER)
def may_strike(a, b, c, near_a, near_b, velocity, reach, normal, gap, step, fall):
    """Whether a contact may close within the step at all: most of a gas do not, and this is quick to see."""
    closing = turning_speed(velocity, a, reach[near_a, 3]) + turning_speed(velocity, b, reach[near_b, 3]) + fall
    for k in range(3):
        closing -= normal[c, k] * (velocity[b, k] - velocity[a, k])
    return gap[c] <= step * closing * (1.0 + 1e-5)


@njit(nogil=True, error_model="numpy", cache=True)
def bounce(contacts, touching, arranged, inertia, carry, contact_values, times, gravity, threshold, partners, touched, barred, blow, shift):
    """Let colliding pairs bounce (``touching``: the contacts with bodies instead of images, ``carry``: what their surfaces move at by
    themselves, or empty); ``blow`` (c, 3) gets the impulses of that on b; ``shift`` (n, 3) what the way of each body differs
    from that at its new velocity. ``times``: the step, and how much later than its start the contacts are seen. ``partners``: how many
    others each body touches; ``touched`` (n,): which have changed, so that their pairs must be looked at; ``barred`` (n,), or empty: bodies
    that may not be struck now. Returns the number of collisions, and of those that wait for a barred body."""
    old = np.zeros((2, 3))
    collisions, n = 0, arranged.order.size
    target, load = np.empty(64), np.empty(64)
    velocity, reach, normal, gap, step = arranged.velocity, arranged.reach, contacts.normal, contacts.gap, times[0]
    fall = step * math.sqrt(gravity[0] ** 2 + gravity[1] ** 2 + gravity[2] ** 2)
    for _ in range(ROUNDS):
        touched_now = np.zeros(n, np.bool_)
        before, waiting = collisions, 0
        for tile in range(contacts.count.size):
            c, end = contacts.start[tile], contacts.start[tile] + contacts.count[tile]
            while c < end:
                a, b, first = touching.a[c], touching.b[c], c
                while c < end and touching.a[c] == a and touching.b[c] == b and c - first < 64:
                    c += 1
                if not (touched[a] or touched[b] or touched_now[a] or touched_now[b]):
                    continue
                i, j = arranged.tag[a, MATERIAL], arranged.tag[b, MATERIAL]
                restitution, friction = contact_values[i, j, RESTITUTION_COLUMN], contact_values[i, j, FRICTION_COLUMN]
                if restitution == 0.0:
                    continue
                if carry.size == 0:
                    near = False
                    for k in range(first, c):
                        near |= may_strike(a, b, k, contacts.a[k], contacts.b[k], velocity, reach, normal, gap, step, fall)
                    if not near:
                        continue
                rest = carry, restitution, times, gravity, threshold, target, load
                moment = foresee(first, c, contacts, touching, arranged, *rest)
                if moment >= 0.0 and barred.size > 0 and (barred[a] or barred[b]):
                    waiting += 1
                elif moment >= 0.0:
                    for k in range(3):
                        old[0, k], old[1, k] = arranged.velocity[a, k], arranged.velocity[b, k]
                    strike(first, c, contacts, touching, arranged, inertia, carry, friction, blow, target, load)
                    # (of two that can move, where a sheared cell comes between, the relative velocity is not that of the rows)
                    if carry.size == 0 or min(arranged.tag[a, MOVES], arranged.tag[b, MOVES]) == 0:
                        correct_way(a, b, times[1] - moment, arranged, partners, old, shift)
                    touched_now[a] = touched_now[a] or arranged.tag[a, MOVES] > 0
                    touched_now[b] = touched_now[b] or arranged.tag[b, MOVES] > 0
                    collisions += 1
        if collisions == before:
            break
        touched = touched_now
    return collisions, waiting
