"""Impacts: bodies that hit each other bounce, before the cone problem makes them stay apart.

In: contacts and the velocities at the start of the step. Out: velocities after the bounces, and their impulses.

A contact that closes within the step, faster than a threshold, is a collision: the pair's normal velocity becomes
-e times what it is at the moment of touching, with Coulomb friction during the impact. Gravity acts before that moment and after it:
with an impact at the start of the step and a whole step of gravity after it, the speed g h would be lost. The way is right, too: at the old
velocity up to that moment, at the new one from then on, so that an impact changes the path of a body and not the energy of that path. One
pair after the other, part by part of the step so that they come nearly in their order in time, until none closes
faster than the threshold. After k impacts on a body in a step, contacts that close more slowly than 3 k hundredths of the hardest of them
no longer count: in a compressed pack impacts get ever weaker and never end (inelastic collapse).

Asking v_n+ >= -e v_n- of all contacts at once, as a bias of the cone problem, makes touching balls share an impulse (Newton's cradle: -1/3,
2/3, 2/3 instead of 0, 0, 1); one after the other, the impulse travels through, and with e = 1 every single collision keeps energy and
momentum.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from gravel.formulas import contact_laws
from gravel.formulas.bounds import BALL, MOVES, OTHER
from gravel.host.arrays import margin_of
from gravel.host.formulas import FORMS
from gravel.host.responses import contact_responses, inertia_of, response_to
from gravel.host.threads import ALLOCATING, INNER
from gravel.host.vectors import cross
from gravel.shapes import SPHERE
from gravel.state import MATERIAL, SHAPE

_laws = FORMS.of(contact_laws)
bias_of, friction_of, restitution_of = _laws.bias_of, _laws.friction_of, _laws.restitution_of

ROUNDS = 50  # then what still closes is left to the cone problem, without bounce
FAINT = 0.03  # of the hardest impact on a body in this step, times their number: what closes more slowly is left to it likewise
PARTS = 8  # of a step, one after the other: impacts come nearly in their order in time
TURNS = 200  # of processes, where several act on a body; then likewise
MOST = 64  # contacts of a pair that are struck at once
PAIR_ROUNDS = 100  # for the contacts of one pair to agree


class ImpactInput(NamedTuple):
    """What impacts happen to. Of all, velocities change (``proxies.velocity``)."""

    contacts: tuple  # ``Contacts``, perhaps with images of bodies
    folded_contacts: tuple  # the same with the bodies themselves
    proxies: tuple
    inertia: np.ndarray  # world frame, see ``blocks.Unknowns``
    surface_velocity: np.ndarray  # (contacts, 3) m/s at which surfaces move by themselves, or empty
    contact_values: np.ndarray  # of pairs of materials
    times: tuple  # s: the step, and how much later than its start the contacts are seen
    gravity: np.ndarray
    threshold: float  # m/s


class ImpactState(NamedTuple):
    """What impacts leave, beside velocities."""

    since: np.ndarray  # (n,) s from the start of the step: the time of the last impact on each body that can move
    impact_impulse: np.ndarray  # (contacts, 3) N s on b
    shift: np.ndarray  # (n, 3) m: what the way of each body differs from that at its new velocity
    impact_stats: np.ndarray  # (n, 2) how many each body that can move has had, and the hardest, m/s


class PairContacts(NamedTuple):
    """Scratch: the contacts of the pair that is looked at."""

    frames: np.ndarray  # (MOST, 9) normal, arm from a, arm from b, where each touches
    target: np.ndarray  # (MOST,) m/s, the normal velocity that each shall have
    load: np.ndarray  # (MOST,) N s; -1 where it does not close
    old: np.ndarray  # (2, 3) m/s, velocities of both bodies before the blow


@njit(**ALLOCATING)
def make_pair():
    return PairContacts(np.empty((MOST, 9)), np.empty(MOST), np.empty(MOST), np.zeros((2, 3)))


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
def lay_frame(c, contacts, proxies, frame):
    """``frame`` := normal, arm from a and arm from b of contact c, where the step looks."""
    a, b, sphere = contacts.a[c], contacts.b[c], proxies.sphere
    for k in range(3):
        frame[k], frame[3 + k] = contacts.normal[c, k], contacts.arm[c, k]
        frame[6 + k] = contacts.arm[c, k] + sphere[a, k] - sphere[b, k]
    # a ball meets what cannot move with its surface, however far away that is where the step looks
    tag, extent = proxies.tag, proxies.extent
    if tag[a, MOVES] == BALL and tag[b, MOVES] == 0:
        for k in range(3):
            frame[3 + k] = extent[a, 0] * frame[k]
    elif tag[b, MOVES] == BALL and tag[a, MOVES] == 0:
        for k in range(3):
            frame[6 + k] = -extent[b, 0] * frame[k]


@njit(**INNER)
def velocity_at(c, frame, folded, velocity, surface_velocity):
    """(u, u . n) of contact c: velocity of b relative to a there."""
    v, a, b = velocity, folded.a[c], folded.b[c]
    ax, ay, az, bx, by, bz = frame[3], frame[4], frame[5], frame[6], frame[7], frame[8]
    ux = v[b, 0] - v[a, 0] + (v[b, 5] * bz - v[b, 6] * by) - (v[a, 5] * az - v[a, 6] * ay)
    uy = v[b, 1] - v[a, 1] + (v[b, 6] * bx - v[b, 4] * bz) - (v[a, 6] * ax - v[a, 4] * az)
    uz = v[b, 2] - v[a, 2] + (v[b, 4] * by - v[b, 5] * bx) - (v[a, 4] * ay - v[a, 5] * ax)
    if surface_velocity.size > 0:
        ux, uy, uz = ux + surface_velocity[c, 0], uy + surface_velocity[c, 1], uz + surface_velocity[c, 2]
    return ux, uy, uz, ux * frame[0] + uy * frame[1] + uz * frame[2]


@njit(**INNER)
def responses(c, frame, given):
    """What a normal and a tangential impulse do to the relative velocity."""
    a, b, inertia, masses = given.contacts.a[c], given.contacts.b[c], given.inertia, given.proxies.mass
    nx, ny, nz, mass = frame[0], frame[1], frame[2], masses[a, 0] + masses[b, 0]
    if inertia.size > 0:
        n, arm_a, arm_b = (nx, ny, nz), (frame[3], frame[4], frame[5]), (frame[6], frame[7], frame[8])
        across = contact_responses(inertia, mass, a, b, n, arm_a, arm_b)[1]
        n0, n1, n2 = response_to(n, mass, inertia_of(inertia, a), inertia_of(inertia, b), arm_a, arm_b)
        return n0 * nx + n1 * ny + n2 * nz, across
    arm_a, arm_b = frame[3] * nx + frame[4] * ny + frame[5] * nz, frame[6] * nx + frame[7] * ny + frame[8] * nz
    return mass, mass + arm_a * arm_a * masses[a, 1] + arm_b * arm_b * masses[b, 1]


@njit(**INNER)
def push(c, frame, given, px, py, pz, impact_impulse):
    """Impulse p on b and -p on a at contact c."""
    a, b, inertia = given.folded_contacts.a[c], given.folded_contacts.b[c], given.inertia
    velocity, mass = given.proxies.velocity, given.proxies.mass
    add_impulse(velocity, a, mass[a, 0], inertia, mass[a, 1], frame[3], frame[4], frame[5], -px, -py, -pz)
    add_impulse(velocity, b, mass[b, 0], inertia, mass[b, 1], frame[6], frame[7], frame[8], px, py, pz)
    impact_impulse[c, 0] += px
    impact_impulse[c, 1] += py
    impact_impulse[c, 2] += pz


@njit(**INNER)
def time_to_touch(start, un, pull):
    """How long a gap ``start`` takes to close at speed ``un`` < 0 and acceleration ``pull``."""
    return 2.0 * start / (-un + math.sqrt(max(un * un - 2.0 * pull * start, 0.0)))


@njit(**INNER)
def are_balls(a, b, tag):
    """Whether two bodies are balls, as far as impacts go (those with joints are not)."""
    return tag[a, SHAPE] == SPHERE and tag[b, SHAPE] == SPHERE and tag[a, MOVES] != OTHER and tag[b, MOVES] != OTHER


@njit(**INNER)
def meet_balls(c, given, weight, since, shift, frame):
    """When the balls of contact c touch after ``since``, or -1 where they do not within the step; ``frame`` := normal and arms then. Balls
    that graze each other turn about each other within the step: the normal where the step looks would make them gain energy."""
    contacts, folded, proxies, gravity = given.contacts, given.folded_contacts, given.proxies, given.gravity
    step, lead = given.times
    i, j, a, b = contacts.a[c], contacts.b[c], folded.a[c], folded.b[c]
    sphere, v = proxies.sphere, proxies.velocity
    dx, dy, dz = sphere[j, 0] - sphere[i, 0], sphere[j, 1] - sphere[i, 1], sphere[j, 2] - sphere[i, 2]
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
    share = proxies.extent[i, 0] / (proxies.extent[i, 0] + proxies.extent[j, 0])
    for k, p in enumerate((px, py, pz)):
        frame[k], frame[3 + k], frame[6 + k] = p / distance, share * p, (share - 1.0) * p
    return touch


@njit(**INNER)
def foresee(first, last, given, restitution, threshold, since, shift, pair):
    """When the pair with the contacts first to last collides, s from the start of the step, or -1 where it does not within the step;
    ``pair`` := where each touches, its target, and the load 0 where it closes, else -1. ``since``: the last impact on one of the bodies in
    this step."""
    contacts, folded, proxies, surface_velocity, gravity = (
        given.contacts,
        given.folded_contacts,
        given.proxies,
        given.surface_velocity,
        given.gravity,
    )
    step, lead = given.times
    moment = math.inf
    a, b = folded.a[first], folded.b[first]
    weight = min(proxies.tag[b, MOVES], 1) - min(proxies.tag[a, MOVES], 1)  # both fall: no relative acceleration
    balls = surface_velocity.size == 0 and are_balls(a, b, proxies.tag)
    for c in range(first, last):
        frame, touch = pair.frames[c - first], -1.0
        lay_frame(c, contacts, proxies, frame)
        if balls:
            touch = meet_balls(c, given, weight, since, shift, frame)
        un = velocity_at(c, frame, folded, proxies.velocity, surface_velocity)[3]
        pull = weight * (gravity[0] * frame[0] + gravity[1] * frame[1] + gravity[2] * frame[2])
        if not balls and un < -threshold:
            gap = gap_now(c, contacts, folded, proxies, shift) + un * (since - lead) + 0.5 * pull * since * since
            touch = since + time_to_touch(max(gap, 0.0), un + pull * since, pull)
        # corners that follow within half a step touch with the first: a flat box does not tumble
        closing = un < -threshold and 0.0 <= touch <= 1.5 * step
        pair.target[c - first] = -restitution * (un + pull * touch) - pull * touch if closing else 0.0
        pair.load[c - first] = 0.0 if closing else -1.0
        moment = min(moment, touch if closing else math.inf)
    return moment if moment <= step else -1.0


@njit(**INNER)
def gap_now(c, contacts, folded, proxies, shift):
    """The gap of contact c where the step looks, had its bodies always moved at the velocities that they have now."""
    gap, i, j, a, b = float(contacts.gap[c]), contacts.a[c], contacts.b[c], folded.a[c], folded.b[c]
    if not are_balls(a, b, proxies.tag):
        for k in range(3):
            gap += contacts.normal[c, k] * (shift[b, k] - shift[a, k])
        return gap
    seen = now = 0.0
    for k in range(3):
        away = proxies.sphere[j, k] - proxies.sphere[i, k]
        seen += away**2
        now += (away + shift[b, k] - shift[a, k]) ** 2
    return gap + math.sqrt(now) - math.sqrt(seen)


@njit(**INNER)
def closing_speed(first, last, given, pair):
    """The speed at which a pair closes, the largest of its contacts that do."""
    speed = 0.0
    for c in range(first, last):
        if pair.load[c - first] >= 0.0:
            un = velocity_at(c, pair.frames[c - first], given.folded_contacts, given.proxies.velocity, given.surface_velocity)[3]
            speed = max(speed, -float(un))
    return speed


@njit(**INNER)
def resolve_impact(first, last, given, friction, impact_impulse, pair):
    """Let one pair collide at its contacts first to last; all of them at once, or a flat box would tumble."""
    folded, velocity, surface_velocity, target, load = (
        given.folded_contacts,
        given.proxies.velocity,
        given.surface_velocity,
        pair.target,
        pair.load,
    )
    for _ in range(1 if last - first == 1 else PAIR_ROUNDS):
        change = 0.0
        for c in range(first, last):
            if load[c - first] < 0.0:
                continue
            frame = pair.frames[c - first]
            un = velocity_at(c, frame, folded, velocity, surface_velocity)[3]
            rn, _ = responses(c, frame, given)
            p = max(load[c - first] + (target[c - first] - un) / rn, 0.0) - load[c - first]
            load[c - first] += p
            change = max(change, abs(p) * rn)
            push(c, frame, given, p * frame[0], p * frame[1], p * frame[2], impact_impulse)
        if change < 1e-9 * target[0]:
            break
    for c in range(first, last):
        if load[c - first] > 0.0 and friction > 0.0:
            frame = pair.frames[c - first]
            ux, uy, uz, un = velocity_at(c, frame, folded, velocity, surface_velocity)
            _, rt = responses(c, frame, given)
            tx, ty, tz = ux - un * frame[0], uy - un * frame[1], uz - un * frame[2]
            slip = math.sqrt(tx * tx + ty * ty + tz * tz)
            pt = -min(slip / rt, friction * load[c - first]) / max(slip, 1e-30)
            push(c, frame, given, pt * tx, pt * ty, pt * tz, impact_impulse)


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
def correct_way(a, b, late, proxies, partners, old, shift):
    """The way of two bodies that bounced ``late`` seconds before where the step looks (negative: after it): that at the old velocities up
    to the impact, and at the new ones from then on. Balls are struck as they touch, and this keeps their angular momentum. Of
    two others that can move only the part along their new relative velocity does, where they touch nothing else."""
    velocity, ia, ib = proxies.velocity, proxies.mass[a, 0], proxies.mass[b, 0]
    if are_balls(a, b, proxies.tag) or ia == 0.0 or ib == 0.0:
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
def may_strike(a, b, c, near_a, near_b, velocity, sphere, normal, gap, step, fall):
    """Whether a contact may close within the step at all: most of a gas do not, and this is quick to see."""
    closing = turning_speed(velocity, a, sphere[near_a, 3]) + turning_speed(velocity, b, sphere[near_b, 3]) + fall
    for k in range(3):
        closing -= normal[c, k] * (velocity[b, k] - velocity[a, k])
    return gap <= 1.5 * step * closing * (1.0 + 1e-5)


@njit(**INNER)
def end_of_pair(first, end, folded):
    """After the last of the contacts that belong to the pair of the first, as far as they are struck at once."""
    c = first
    while c < end and folded.a[c] == folded.a[first] and folded.b[c] == folded.b[first] and c - first < MOST:
        c += 1
    return c


@njit(**INNER)
def may_meet(first, last, given, shift):
    """Whether any contact of a pair may close within the step."""
    contacts, folded, proxies, gravity, step = given.contacts, given.folded_contacts, given.proxies, given.gravity, given.times[0]
    a, b = folded.a[first], folded.b[first]
    if given.surface_velocity.size > 0 or are_balls(a, b, proxies.tag):
        return True
    fall, near = step * math.sqrt(gravity[0] ** 2 + gravity[1] ** 2 + gravity[2] ** 2), False
    for c in range(first, last):
        gap, i, j = gap_now(c, contacts, folded, proxies, shift), contacts.a[c], contacts.b[c]
        near |= may_strike(a, b, c, i, j, proxies.velocity, proxies.sphere, contacts.normal, gap, step, fall)
    return near


@njit(**INNER)
def moment_of_pair(first, last, given, state, pair):
    """When a pair collides, as ``foresee`` says, or -1."""
    a, b, tag, impact_stats = given.folded_contacts.a[first], given.folded_contacts.b[first], given.proxies.tag, state.impact_stats
    restitution = restitution_of(given.contact_values, tag[a, MATERIAL], tag[b, MATERIAL])
    if restitution == 0.0 or not may_meet(first, last, given, state.shift):
        return -1.0
    slowest = max(given.threshold, FAINT * max(impact_stats[a, 0] * impact_stats[a, 1], impact_stats[b, 0] * impact_stats[b, 1]))
    return foresee(first, last, given, restitution, slowest, max(state.since[a], state.since[b]), state.shift, pair)


@njit(**INNER)
def strike_pair(first, last, moment, given, partners, state, pair, touched):
    """A pair collides; ``touched`` gets its bodies."""
    a, b, proxies, old = given.folded_contacts.a[first], given.folded_contacts.b[first], given.proxies, pair.old
    tag, velocity, since, impact_stats = proxies.tag, proxies.velocity, state.since, state.impact_stats
    for k in range(3):
        old[0, k], old[1, k] = velocity[a, k], velocity[b, k]
    speed = closing_speed(first, last, given, pair)
    resolve_impact(first, last, given, friction_of(given.contact_values, tag[a, MATERIAL], tag[b, MATERIAL]), state.impact_impulse, pair)
    # (of two that can move, where a sheared cell comes between, the relative velocity is not that of the rows)
    if given.surface_velocity.size == 0 or min(tag[a, MOVES], tag[b, MOVES]) == 0:
        correct_way(a, b, given.times[1] - moment, proxies, partners, old, state.shift)
    for body in (a, b):
        if tag[body, MOVES] > 0:
            touched[body], since[body] = True, moment
            impact_stats[body, 0] += 1.0
            impact_stats[body, 1] = max(impact_stats[body, 1], speed)


@njit(**ALLOCATING)
def bounce_once(horizon, given, partners, touched, locked, state, pair, later):
    """One look at all pairs whose bodies have been ``touched``: those that collide before ``horizon`` do so; ``later`` gets the bodies of
    those that will after it. Returns the number of collisions, of pairs that wait for a barred body, and the bodies touched now."""
    contacts, folded, tag = given.contacts, given.folded_contacts, given.proxies.tag
    touched_now, collisions, waiting = np.zeros(touched.size, np.bool_), 0, 0
    for tile in range(contacts.count.size):
        c, end = contacts.start[tile], contacts.start[tile] + contacts.count[tile]
        while c < end:
            a, b, first = folded.a[c], folded.b[c], c
            c = end_of_pair(first, end, folded)
            if not (touched[a] or touched[b] or touched_now[a] or touched_now[b]):
                continue
            moment = moment_of_pair(first, c, given, state, pair)
            if moment > horizon:
                later[a], later[b] = later[a] or tag[a, MOVES] > 0, later[b] or tag[b, MOVES] > 0
            elif moment >= 0.0 and locked.size > 0 and (locked[a] or locked[b]):
                waiting += 1
            elif moment >= 0.0:
                strike_pair(first, c, moment, given, partners, state, pair, touched_now)
                collisions += 1
    return collisions, waiting, touched_now


@njit(nogil=True, error_model="numpy", cache=True)
def solve_impacts(given, partners, touched, locked, state):
    """Let colliding pairs bounce. ``given``: ``ImpactInput``, ``state``: ``ImpactState``. ``partners``: how many others each body touches;
    ``touched`` (n,): which have changed, so that their pairs must be looked at; ``locked`` (n,), or empty: bodies that may not be struck
    now. Returns the number of collisions, and of those that wait for a locked body."""
    collisions, waiting, pair = 0, 0, make_pair()
    for part in range(PARTS):
        horizon, later = given.times[0] * (part + 1) / PARTS, np.zeros(touched.size, np.bool_)
        for _ in range(ROUNDS):
            struck, held, touched_now = bounce_once(horizon, given, partners, touched, locked, state, pair, later)
            collisions, waiting = collisions + struck, waiting + held
            if struck == 0:
                break
            touched = touched_now
        touched = later
    return collisions, waiting


@njit(**INNER)
def bias_after(k, frame, given, state, later, friction, scalars):
    """What the bias of contact k with restitution must be at least, so that the cone problem does not spoil a bounce; -inf: as it is."""
    folded, proxies, gravity, impact_impulse, threshold = (
        given.folded_contacts,
        given.proxies,
        given.gravity,
        state.impact_impulse,
        given.threshold,
    )
    a, b, tag = folded.a[k], folded.b[k], proxies.tag
    lay_frame(k, given.contacts, proxies, frame)
    ux, uy, uz, un = velocity_at(k, frame, folded, proxies.velocity, given.surface_velocity)
    struck = impact_impulse[k, 0] != 0.0 or impact_impulse[k, 1] != 0.0 or impact_impulse[k, 2] != 0.0
    if not ((struck and un >= 0.0) or un > threshold or (later and un < -threshold)):
        return -math.inf, 0.0
    weight = min(tag[b, MOVES], 1) - min(tag[a, MOVES], 1)
    pull = weight * given.times[0] * (gravity[0] * frame[0] + gravity[1] * frame[1] + gravity[2] * frame[2])
    slip = math.sqrt(max(ux * ux + uy * uy + uz * uz - un * un, 0.0)) if scalars.coulomb == 0.0 else 0.0
    return max(0.0, -2.0 * (un + min(pull, 0.0))), friction * slip


@njit(nogil=True, error_model="numpy", cache=True)
def leave_flying(given, state, scalars, margin, lifted):
    """``lifted`` (c, 3) := ``surface_velocity`` and what to add to the bias of each contact, so that the cone problem does not undo or
    spoil impacts:

    - a gap is that between the bodies where their new ways lead, not where the step looked;
    - pairs with restitution that part after an impact, or faster than the threshold, are not pushed out of each other besides, which would
      be energy, and those that touch only after the end of the step are not slowed down by then: they bounce in the next one;
      (those that a later impact has closing again, too slowly for an impact, are held as any contact is: balls that are struck from above
      in step after step would sink into the floor);
    - the cone model would take sliding of these for closing, so that it is taken out (mu |u_t|; Coulomb's law has it so anyway).

    Returns the largest penetration, m, on the ways that bodies really take: those that bounce do not get as deep as the step saw.
    """
    contacts, folded, proxies, surface_velocity, since = (
        given.contacts,
        given.folded_contacts,
        given.proxies,
        given.surface_velocity,
        state.since,
    )
    impact_impulse, shift, law = state.impact_impulse, state.shift, (scalars.step, scalars.recovery, scalars.recovery_speed)
    depth, pair, frame, tag = 0.0, make_pair(), np.empty(9), proxies.tag
    for tile in range(contacts.count.size):
        c, end = contacts.start[tile], contacts.start[tile] + contacts.count[tile]
        while c < end:
            a, b, first = folded.a[c], folded.b[c], c
            c = end_of_pair(first, end, folded)
            i, j = tag[a, MATERIAL], tag[b, MATERIAL]
            restitution, friction = restitution_of(given.contact_values, i, j), friction_of(given.contact_values, i, j)
            later = False
            if restitution > 0.0:
                later = foresee(first, c, given, restitution, given.threshold, max(since[a], since[b]), shift, pair) < 0.0
            for k in range(first, c):
                contact_distance = margin_of(margin, contacts.a[k], contacts.b[k], proxies.sphere, proxies.extent, tag)
                gap = gap_now(k, contacts, folded, proxies, shift)
                seen, bias = bias_of(contacts.gap[k], contact_distance, 1.0, *law), bias_of(gap, contact_distance, 1.0, *law)
                if impact_impulse[k, 0] == 0.0 and impact_impulse[k, 1] == 0.0 and impact_impulse[k, 2] == 0.0:
                    depth = max(depth, -max(gap, float(contacts.gap[k])))
                if restitution > 0.0:
                    least, slip = bias_after(k, frame, given, state, later, friction, scalars)
                    bias = max(bias, least) + slip
                for axis in range(3):
                    own = surface_velocity[k, axis] if surface_velocity.size > 0 else 0.0
                    lifted[k, axis] = own + (bias - seen) * contacts.normal[k, axis]
    return depth
