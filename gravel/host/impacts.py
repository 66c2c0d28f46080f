"""Impacts: bodies that hit each other bounce, before the cone problem makes them stay apart.

In: contacts and the velocities at the start of the step. Out: velocities after the bounces, and their impulses.

A contact that closes within the step, faster than a threshold, is a collision: the pair's normal velocity becomes
-e times what it is at the moment of touching, with Coulomb friction during the blow. Gravity acts before that moment and after it:
with a blow at the start of the step and a whole step of gravity after it, the speed g h would be lost. The way is right, too: at the old
velocity up to that moment, at the new one from then on, so that a blow changes the path of a body and not the energy of that path. One
pair after the other, part by part of the step so that they come nearly in their order in time, until none closes
faster than the threshold. After k blows on a body in a step, what closes more slowly than 3 k hundredths of the hardest of them counts
no longer: in a crowd that is pressed together bounces get ever fainter and never end (inelastic collapse).

Asking v_n+ >= -e v_n- of all contacts at once, as a bias of the cone problem, makes touching balls share
a blow (Newton's cradle: -1/3, 2/3, 2/3 instead of 0, 0, 1); one after the other, the blow travels through, and with e = 1
every single collision keeps energy and momentum.
"""

import math

import numpy as np
from gravel.host.arrays import margin_of
from numba import njit

from gravel.cpu.solve.assemble import FRICTION_COLUMN, bias_of, contact_responses, response_row
from gravel.formulas.bounds import BALL, MOVES, OTHER
from gravel.host.threads import INNER
from gravel.host.vectors import cross
from gravel.shapes import SPHERE
from gravel.state import MATERIAL, SHAPE

RESTITUTION_COLUMN = 1  # of materials.PAIR_FIELDS
ROUNDS = 50  # then what still closes is left to the cone problem, without bounce
FAINT = 0.03  # of the hardest blow on a body in this step, times their number: what closes more slowly is left to it likewise
PARTS = 8  # of a step, one after the other: impacts come nearly in their order in time
TURNS = 200  # of processes, where several act on a body; then likewise
MOST = 64  # contacts of a pair that are struck at once
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
def lay_frame(c, contacts, arranged, frame):
    """``frame`` := normal, arm from a and arm from b of contact c, where the step looks."""
    a, b, reach = contacts.a[c], contacts.b[c], arranged.reach
    for k in range(3):
        frame[k], frame[3 + k] = contacts.normal[c, k], contacts.arm[c, k]
        frame[6 + k] = contacts.arm[c, k] + reach[a, k] - reach[b, k]
    # a ball meets what cannot move with its surface, however far away that is where the step looks
    tag, extent = arranged.tag, arranged.extent
    if tag[a, MOVES] == BALL and tag[b, MOVES] == 0:
        for k in range(3):
            frame[3 + k] = extent[a, 0] * frame[k]
    elif tag[b, MOVES] == BALL and tag[a, MOVES] == 0:
        for k in range(3):
            frame[6 + k] = -extent[b, 0] * frame[k]


@njit(**INNER)
def velocity_at(c, frame, touching, velocity, carry):
    """(u, u . n) of contact c: velocity of b relative to a there."""
    v, a, b = velocity, touching.a[c], touching.b[c]
    ax, ay, az, bx, by, bz = frame[3], frame[4], frame[5], frame[6], frame[7], frame[8]
    ux = v[b, 0] - v[a, 0] + (v[b, 5] * bz - v[b, 6] * by) - (v[a, 5] * az - v[a, 6] * ay)
    uy = v[b, 1] - v[a, 1] + (v[b, 6] * bx - v[b, 4] * bz) - (v[a, 6] * ax - v[a, 4] * az)
    uz = v[b, 2] - v[a, 2] + (v[b, 4] * by - v[b, 5] * bx) - (v[a, 4] * ay - v[a, 5] * ax)
    if carry.size > 0:
        ux, uy, uz = ux + carry[c, 0], uy + carry[c, 1], uz + carry[c, 2]
    return ux, uy, uz, ux * frame[0] + uy * frame[1] + uz * frame[2]


@njit(**INNER)
def responses(c, frame, contacts, arranged, inertia):
    """What a normal and a tangential impulse do to the relative velocity."""
    a, b = contacts.a[c], contacts.b[c]
    nx, ny, nz, ax, ay, az = frame[0], frame[1], frame[2], frame[3], frame[4], frame[5]
    bx, by, bz = frame[6], frame[7], frame[8]
    mass = arranged.mass[a, 0] + arranged.mass[b, 0]
    if inertia.size > 0:
        _, rt, _, _ = contact_responses(inertia, mass, a, b, nx, ny, nz, ax, ay, az, bx, by, bz)
        n0, n1, n2 = response_row(inertia, mass, a, b, nx, ny, nz, ax, ay, az, bx, by, bz)
        return n0 * nx + n1 * ny + n2 * nz, rt
    arm_a, arm_b = ax * nx + ay * ny + az * nz, bx * nx + by * ny + bz * nz
    return mass, mass + arm_a * arm_a * arranged.mass[a, 1] + arm_b * arm_b * arranged.mass[b, 1]


@njit(**INNER)
def push(c, frame, touching, arranged, inertia, px, py, pz, blow):
    """Impulse p on b and -p on a at contact c."""
    a, b, mass = touching.a[c], touching.b[c], arranged.mass
    add_impulse(arranged.velocity, a, mass[a, 0], inertia, mass[a, 1], frame[3], frame[4], frame[5], -px, -py, -pz)
    add_impulse(arranged.velocity, b, mass[b, 0], inertia, mass[b, 1], frame[6], frame[7], frame[8], px, py, pz)
    blow[c, 0] += px
    blow[c, 1] += py
    blow[c, 2] += pz


@njit(**INNER)
def time_to_touch(start, un, pull):
    """How long a gap ``start`` takes to close at speed ``un`` < 0 and acceleration ``pull``."""
    return 2.0 * start / (-un + math.sqrt(max(un * un - 2.0 * pull * start, 0.0)))


@njit(**INNER)
def are_balls(a, b, tag):
    """Whether two bodies are balls, as far as impacts go (those with joints are not)."""
    return tag[a, SHAPE] == SPHERE and tag[b, SHAPE] == SPHERE and tag[a, MOVES] != OTHER and tag[b, MOVES] != OTHER


@njit(**INNER)
def meet_balls(c, contacts, touching, arranged, gravity, weight, times, since, shift, frame):
    """When the balls of contact c touch after ``since``, or -1 where they do not within the step; ``frame`` := normal and arms then. Balls
    that graze each other turn about each other within the step: the normal where the step looks would make them gain energy."""
    step, lead = times
    i, j, a, b = contacts.a[c], contacts.b[c], touching.a[c], touching.b[c]
    reach, v = arranged.reach, arranged.velocity
    dx, dy, dz = reach[j, 0] - reach[i, 0], reach[j, 1] - reach[i, 1], reach[j, 2] - reach[i, 2]
    sum_of_radii = math.sqrt(dx * dx + dy * dy + dz * dz) - float(contacts.gap[c])
    ux, uy, uz = float(v[b, 0] - v[a, 0]), float(v[b, 1] - v[a, 1]), float(v[b, 2] - v[a, 2])
    # where the line on which b now moves, seen from a, was at the start of the step
    x = dx + shift[b, 0] - shift[a, 0] - lead * ux
    y = dy + shift[b, 1] - shift[a, 1] - lead * uy
    z = dz + shift[b, 2] - shift[a, 2] - lead * uz
    touch = since
    for _ in range(1 if weight == 0 else 4):  # a fall bends the line
        half = 0.5 * weight * touch
        wx, wy, wz = ux + half * gravity[0], uy + half * gravity[1], uz + half * gravity[2]
        px, py, pz = x + since * wx, y + since * wy, z + since * wz
        along, square = px * wx + py * wy + pz * wz, wx * wx + wy * wy + wz * wz
        beyond = px * px + py * py + pz * pz - sum_of_radii * sum_of_radii
        inside = along * along - square * beyond
        if along >= 0.0 or inside <= 0.0:
            return -1.0
        touch = since + max(beyond, 0.0) / (-along + math.sqrt(inside))
    if touch > step:
        return -1.0
    later = touch - since
    px, py, pz = px + later * wx, py + later * wy, pz + later * wz
    distance = max(math.sqrt(px * px + py * py + pz * pz), 1e-30)
    share = arranged.extent[i, 0] / (arranged.extent[i, 0] + arranged.extent[j, 0])
    for k, p in enumerate((px, py, pz)):
        frame[k], frame[3 + k], frame[6 + k] = p / distance, share * p, (share - 1.0) * p
    return touch


@njit(**INNER)
def foresee(first, last, contacts, touching, arranged, carry, restitution, times, gravity, threshold, since, shift, frames, target, load):
    """When the pair with the contacts first to last collides, s from the start of the step, or -1 where it does not within the step;
    ``frames`` := where each touches, ``target`` := the normal velocity that it shall have then, ``load`` := 0 where one closes, else -1.
    ``since``: the last blow that one of the bodies got in this step."""
    step, lead = times
    moment = math.inf
    a, b = touching.a[first], touching.b[first]
    weight = min(arranged.tag[b, MOVES], 1) - min(arranged.tag[a, MOVES], 1)  # both fall: no relative acceleration
    balls = carry.size == 0 and are_balls(a, b, arranged.tag)
    for c in range(first, last):
        frame, touch = frames[c - first], -1.0
        lay_frame(c, contacts, arranged, frame)
        if balls:
            touch = meet_balls(c, contacts, touching, arranged, gravity, weight, times, since, shift, frame)
        un = velocity_at(c, frame, touching, arranged.velocity, carry)[3]
        pull = weight * (gravity[0] * frame[0] + gravity[1] * frame[1] + gravity[2] * frame[2])
        if not balls and un < -threshold:
            gap = gap_now(c, contacts, touching, arranged, shift) + un * (since - lead) + 0.5 * pull * since * since
            touch = since + time_to_touch(max(gap, 0.0), un + pull * since, pull)
        # corners that follow within half a step touch with the first: a flat box does not tumble
        closing = un < -threshold and 0.0 <= touch <= 1.5 * step
        target[c - first] = -restitution * (un + pull * touch) - pull * touch if closing else 0.0
        load[c - first] = 0.0 if closing else -1.0
        moment = min(moment, touch if closing else math.inf)
    return moment if moment <= step else -1.0


@njit(**INNER)
def gap_now(c, contacts, touching, arranged, shift):
    """The gap of contact c where the step looks, had its bodies always moved at the velocities that they have now."""
    gap, i, j, a, b = float(contacts.gap[c]), contacts.a[c], contacts.b[c], touching.a[c], touching.b[c]
    if not are_balls(a, b, arranged.tag):
        for k in range(3):
            gap += contacts.normal[c, k] * (shift[b, k] - shift[a, k])
        return gap
    seen = now = 0.0
    for k in range(3):
        away = arranged.reach[j, k] - arranged.reach[i, k]
        seen += away**2
        now += (away + shift[b, k] - shift[a, k]) ** 2
    return gap + math.sqrt(now) - math.sqrt(seen)


@njit(**INNER)
def closing_speed(first, last, frames, touching, velocity, carry, load):
    """The speed at which a pair closes, the largest of its contacts that do."""
    speed = 0.0
    for c in range(first, last):
        if load[c - first] >= 0.0:
            speed = max(speed, -float(velocity_at(c, frames[c - first], touching, velocity, carry)[3]))
    return speed


@njit(**INNER)
def strike(first, last, frames, contacts, touching, arranged, inertia, carry, friction, blow, target, load):
    """Let one pair collide at its contacts first to last; all of them at once, or a flat box would tumble."""
    velocity = arranged.velocity
    for _ in range(1 if last - first == 1 else PAIR_ROUNDS):
        change = 0.0
        for c in range(first, last):
            if load[c - first] < 0.0:
                continue
            frame = frames[c - first]
            un = velocity_at(c, frame, touching, velocity, carry)[3]
            rn, _ = responses(c, frame, contacts, arranged, inertia)
            p = max(load[c - first] + (target[c - first] - un) / rn, 0.0) - load[c - first]
            load[c - first] += p
            change = max(change, abs(p) * rn)
            push(c, frame, touching, arranged, inertia, p * frame[0], p * frame[1], p * frame[2], blow)
        if change < 1e-9 * target[0]:
            break
    for c in range(first, last):
        if load[c - first] > 0.0 and friction > 0.0:
            frame = frames[c - first]
            ux, uy, uz, un = velocity_at(c, frame, touching, velocity, carry)
            _, rt = responses(c, frame, contacts, arranged, inertia)
            tx, ty, tz = ux - un * frame[0], uy - un * frame[1], uz - un * frame[2]
            slip = math.sqrt(tx * tx + ty * ty + tz * tz)
            pt = -min(slip / rt, friction * load[c - first]) / max(slip, 1e-30)
            push(c, frame, touching, arranged, inertia, pt * tx, pt * ty, pt * tz, blow)


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
    """The way of two bodies that bounced ``late`` seconds before where the step looks (negative: after it): that at the old velocities up
    to the blow, and at the new ones from then on. Balls are struck as they touch, and this keeps their angular momentum. Of
    two others that can move only the part along their new relative velocity does, where they touch nothing else."""
    velocity, ia, ib = arranged.velocity, arranged.mass[a, 0], arranged.mass[b, 0]
    if are_balls(a, b, arranged.tag) or ia == 0.0 or ib == 0.0:
        for k in range(3):
            shift[a, k] += late * float(velocity[a, k] - old[0, k]) if ia > 0.0 else 0.0
            shift[b, k] += late * float(velocity[b, k] - old[1, k]) if ib > 0.0 else 0.0
        return
    if partners[a] != 1 or partners[b] != 1:
        return
    along, square = 0.0, 1e-300
    for k in range(3):
        new = float(velocity[b, k] - velocity[a, k])
        along += (new - float(old[1, k] - old[0, k])) * new
        square += new * new
    for k in range(3):
        way = late * along / square * float(velocity[b, k] - velocity[a, k])
        shift[a, k] -= ia / (ia + ib) * way
        shift[b, k] += ib / (ia + ib) * way


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
    return gap <= 1.5 * step * closing * (1.0 + 1e-5)


@njit(**INNER)
def end_of_pair(first, end, touching):
    """After the last of the contacts that belong to the pair of the first, as far as they are struck at once."""
    c = first
    while c < end and touching.a[c] == touching.a[first] and touching.b[c] == touching.b[first] and c - first < MOST:
        c += 1
    return c


@njit(nogil=True, error_model="numpy", cache=True)
def bounce(
    contacts,
    touching,
    arranged,
    inertia,
    carry,
    contact_values,
    times,
    gravity,
    threshold,
    partners,
    touched,
    barred,
    since,
    blow,
    shift,
    blows,
):
    """Let colliding pairs bounce (``touching``: the contacts with bodies instead of images, ``carry``: what their surfaces move at by
    themselves, or empty); ``blow`` (c, 3) gets the impulses of that on b; ``since`` (n,) the time of the last blow on each body that can
    move, from the start of the step; ``shift`` (n, 3) what the way of each body differs from that at its new velocity; ``blows`` (n, 2) how
    many each body that can move has had, and the hardest, m/s. ``times``: the step, and how much later than its start the contacts are
    seen. ``partners``: how many others each body touches; ``touched`` (n,): which have changed, so that their pairs must be looked at;
    ``barred`` (n,), or empty: bodies that may not be struck now. Returns the number of collisions, and of those that wait for a barred
    body."""
    old = np.zeros((2, 3))
    collisions, n = 0, arranged.order.size
    frames, target, load = np.empty((MOST, 9)), np.empty(MOST), np.empty(MOST)
    velocity, reach, normal, step, tag = arranged.velocity, arranged.reach, contacts.normal, times[0], arranged.tag
    fall = step * math.sqrt(gravity[0] ** 2 + gravity[1] ** 2 + gravity[2] ** 2)
    waiting = 0
    for part in range(PARTS):
        horizon, later = step * (part + 1) / PARTS, np.zeros(n, np.bool_)
        for _ in range(ROUNDS):
            touched_now = np.zeros(n, np.bool_)
            before = collisions
            for tile in range(contacts.count.size):
                c, end = contacts.start[tile], contacts.start[tile] + contacts.count[tile]
                while c < end:
                    a, b, first = touching.a[c], touching.b[c], c
                    c = end_of_pair(first, end, touching)
                    if not (touched[a] or touched[b] or touched_now[a] or touched_now[b]):
                        continue
                    i, j = tag[a, MATERIAL], tag[b, MATERIAL]
                    restitution, friction = contact_values[i, j, RESTITUTION_COLUMN], contact_values[i, j, FRICTION_COLUMN]
                    if restitution == 0.0:
                        continue
                    if carry.size == 0 and not are_balls(a, b, tag):
                        near = False
                        for k in range(first, c):
                            now = gap_now(k, contacts, touching, arranged, shift)
                            near |= may_strike(a, b, k, contacts.a[k], contacts.b[k], velocity, reach, normal, now, step, fall)
                        if not near:
                            continue
                    last, slowest = (
                        max(since[a], since[b]),
                        max(threshold, FAINT * max(blows[a, 0] * blows[a, 1], blows[b, 0] * blows[b, 1])),
                    )
                    rest = carry, restitution, times, gravity, slowest, last, shift, frames, target, load
                    moment = foresee(first, c, contacts, touching, arranged, *rest)
                    if moment > horizon:
                        later[a], later[b] = later[a] or tag[a, MOVES] > 0, later[b] or tag[b, MOVES] > 0
                    elif moment >= 0.0 and barred.size > 0 and (barred[a] or barred[b]):
                        waiting += 1
                    elif moment >= 0.0:
                        for k in range(3):
                            old[0, k], old[1, k] = velocity[a, k], velocity[b, k]
                        speed = closing_speed(first, c, frames, touching, velocity, carry, load)
                        strike(first, c, frames, contacts, touching, arranged, inertia, carry, friction, blow, target, load)
                        # (of two that can move, where a sheared cell comes between, the relative velocity is not that of the rows)
                        if carry.size == 0 or min(tag[a, MOVES], tag[b, MOVES]) == 0:
                            correct_way(a, b, times[1] - moment, arranged, partners, old, shift)
                        for body in (a, b):
                            if tag[body, MOVES] > 0:
                                touched_now[body], since[body] = True, moment
                                blows[body, 0] += 1.0
                                blows[body, 1] = max(blows[body, 1], speed)
                        collisions += 1
            if collisions == before:
                break
            touched = touched_now
        touched = later
    return collisions, waiting


@njit(nogil=True, error_model="numpy", cache=True)
def leave_flying(
    contacts, touching, arranged, carry, contact_values, times, gravity, threshold, since, blow, shift, scalars, margin, lifted
):
    """``lifted`` (c, 3) := ``carry`` and what to add to the bias of each contact, so that the cone problem does not undo or spoil impacts:

    - a gap is that between the bodies where their new ways lead, not where the step looked;
    - pairs with restitution that part after a blow, or faster than the threshold, are not pushed out of each other besides, which would
      be energy, and those that touch only after the end of the step are not slowed down by then: they bounce in the next one;
      (those that a later blow has closing again, too slowly for an impact, are held as any contact is: balls that are struck from above in
      step after step would sink into the floor);
    - the cone model would take sliding of these for closing, so that it is taken out (mu |u_t|; Coulomb's law has it so anyway).

    Returns the largest penetration, m, on the ways that bodies really take: those that bounce do not get as deep as the step saw.
    """
    depth = 0.0
    frames, target, load = np.empty((MOST, 9)), np.empty(MOST), np.empty(MOST)
    frame, step, tag = np.empty(9), times[0], arranged.tag
    for tile in range(contacts.count.size):
        c, end = contacts.start[tile], contacts.start[tile] + contacts.count[tile]
        while c < end:
            a, b, first = touching.a[c], touching.b[c], c
            c = end_of_pair(first, end, touching)
            i, j = tag[a, MATERIAL], tag[b, MATERIAL]
            restitution, friction = contact_values[i, j, RESTITUTION_COLUMN], contact_values[i, j, FRICTION_COLUMN]
            weight = min(tag[b, MOVES], 1) - min(tag[a, MOVES], 1)
            later = False
            if restitution > 0.0:
                rest = carry, restitution, times, gravity, threshold, max(since[a], since[b]), shift, frames, target, load
                later = foresee(first, c, contacts, touching, arranged, *rest) < 0.0
            for k in range(first, c):
                near = margin_of(margin, contacts.a[k], contacts.b[k], arranged.reach, arranged.extent, tag)
                gap = gap_now(k, contacts, touching, arranged, shift)
                seen, bias = bias_of(contacts.gap[k], near, 1, scalars), bias_of(gap, near, 1, scalars)
                struck = blow[k, 0] != 0.0 or blow[k, 1] != 0.0 or blow[k, 2] != 0.0
                if not struck:
                    depth = max(depth, -max(gap, float(contacts.gap[k])))
                if restitution > 0.0:
                    lay_frame(k, contacts, arranged, frame)
                    ux, uy, uz, un = velocity_at(k, frame, touching, arranged.velocity, carry)
                    if (struck and un >= 0.0) or un > threshold or (later and un < -threshold):
                        pull = weight * step * (gravity[0] * frame[0] + gravity[1] * frame[1] + gravity[2] * frame[2])
                        slip = math.sqrt(max(ux * ux + uy * uy + uz * uz - un * un, 0.0)) if scalars.coulomb == 0.0 else 0.0
                        bias = max(bias, 0.0, -2.0 * (un + min(pull, 0.0))) + friction * slip
                for axis in range(3):
                    own = carry[k, axis] if carry.size > 0 else 0.0
                    lifted[k, axis] = own + (bias - seen) * contacts.normal[k, axis]
    return depth
