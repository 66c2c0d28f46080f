"""Periodic space: bodies near a border of the cell are seen on its other side, too.

In: the bodies where the step looks, and the lattice by which the cell repeats itself. Out: ``PeriodicBodies``, the same bodies folded into
the cell, followed by images of those that may touch something across a border. Every later stage of detection takes images for bodies like
any other, so all shapes and broad phases know periodic space. Two bodies that touch across a border are found twice, each with the other's
image; ``fold_pairs`` keeps the one in which the lower id is the body itself, and hands it to that body's tile.

Bodies that forces cannot move and that are large against the cell (floors, walls, terrain), and planes, have no images and touch none:
they stand where they are, and act on the bodies as folded into the cell. Others must be small against the cell, so that no two bodies can
touch in two ways.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from gravel.engine import CellTooSmall, Lattice
from gravel.formulas.bounds import MOVES
from gravel.host.arrays import CHUNK, BodyArrays, slack_of
from gravel.host.threads import ALLOCATING, INNER, Kernel
from gravel.state import MOVABLE, SHAPE, STATUS

STAYS = ("id", "inverse_mass", "extent", "geometry")  # fields that change only when rows do
ENDLESS = Lattice(np.full(3, -math.inf), np.full(3, math.inf), 0, 2, 0.0, np.zeros(3), 0.0)  # space that does not repeat itself
CELLS = 4.0  # times its radius that the cell must be long for a body


class PeriodicBodies(NamedTuple):
    """The bodies of a periodic scene, folded into the cell, and their periodic images."""

    bodies: BodyArrays  # n bodies, then m images
    source: np.ndarray  # (n + m,) row of the body that each is, or is an image of
    drift: np.ndarray  # (n + m, 3) m/s: velocity of its image of the cell relative to the cell itself


@njit(**INNER)
def windings_of(point, lattice, k):
    """k (3,) := how many cells a point lies from the cell itself; ``point`` := the same point within the cell."""
    first = lattice.gradient
    for turn in range(3):
        axis = (first + turn) % 3
        k[axis] = 0
        if lattice.length[axis] < math.inf:
            k[axis] = np.int64(math.floor((point[axis] - lattice.low[axis]) / lattice.length[axis]))
            shift(point, lattice, axis, -k[axis])
            if point[axis] >= lattice.low[axis] + lattice.length[axis]:  # rounded up
                k[axis] += 1
                shift(point, lattice, axis, -1)


@njit(**INNER)
def shift(point, lattice, axis, k):
    """Move a point by k cells along an axis."""
    if k != 0:  # axes that do not repeat have no length
        point[axis] += k * lattice.length[axis]
        if axis == lattice.gradient:
            point[lattice.direction] += k * lattice.tilt


@njit(**INNER)
def drift_of(lattice, k, axis):
    """Velocity along an axis of the image of the cell that lies k (3,) cells away."""
    drift = k[axis] * lattice.rate[axis]
    return drift + k[lattice.gradient] * lattice.tilt_rate if axis == lattice.direction else drift


@njit(**INNER)
def shortest(lattice):
    return min(lattice.length[0], lattice.length[1], lattice.length[2])


@njit(**INNER)
def swept_radius(i, velocity, extent, tag, margin, step):
    return extent[i, 3] + slack_of(margin, step, extent[i, 3], velocity, i, tag[i, STATUS], tag[i, SHAPE])


@njit(**INNER)
def is_whole(radius, movable, lattice):
    """Whether a body stands where it is, without images."""
    return radius == math.inf or (not movable and CELLS * radius > shortest(lattice))


@njit(**INNER)
def largest_of_chunk(chunk, bodies, lattice, margin, step, largest):
    """largest[chunk] := (largest radius of what has images, and the row of the largest body that can move and its radius)."""
    velocity, extent, tag = bodies.velocity, bodies.extent, bodies.tag
    most, worst, row = 0.0, 0.0, -1.0
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, tag.shape[0])):
        radius, movable = swept_radius(i, velocity, extent, tag, margin, step), tag[i, STATUS] == MOVABLE
        if not is_whole(radius, movable, lattice):
            most = max(most, radius)
            if movable and radius > worst:
                worst, row = radius, float(i)
    largest[chunk, 0], largest[chunk, 1], largest[chunk, 2] = most, worst, row


@Kernel
def find_largest(bodies, lattice, margin, step, largest):
    for chunk in prange(largest.shape[0]):
        largest_of_chunk(np.int64(chunk), bodies, lattice, margin, step, largest)


@njit(**INNER)
def images_of(i, at, point, home, k, near, lattice, bodies, source, drift):
    """Images of body i, whose folded position is ``home``, from row ``at`` on; returns the next row. ``near``: how far from the cell images
    count. Rows beyond the end are only counted."""
    first, d = lattice.gradient, lattice.direction
    second, third = (first + 1) % 3, (first + 2) % 3
    last_u, last_v, last_w = spans(lattice, first), spans(lattice, second), spans(lattice, third)
    own0, own1, own2 = k[0], k[1], k[2]
    for u in range(-last_u, last_u + 1):
        for axis in range(3):
            point[axis] = home[axis]
        shift(point, lattice, first, u)
        base = 0
        if u != 0 and lattice.length[d] < math.inf:  # shear has moved the layer: back into the cell
            base = -np.int64(math.floor((point[d] - lattice.low[d]) / lattice.length[d]))
            shift(point, lattice, d, base)
        if not is_near(point, first, near, lattice):
            continue
        for v in range(-last_v, last_v + 1):
            shift(point, lattice, second, v)
            if is_near(point, second, near, lattice):
                for w in range(-last_w, last_w + 1):
                    shift(point, lattice, third, w)
                    if (u != 0 or v != 0 or w != 0) and is_near(point, third, near, lattice):
                        if at < source.size:
                            k[0], k[1], k[2] = own0, own1, own2
                            k[first] += u
                            k[second] += v
                            k[third] += w
                            k[d] += base
                            write_image(i, at, point, k, lattice, bodies, source, drift)
                        at += 1
                    shift(point, lattice, third, -w)
            shift(point, lattice, second, -v)
    k[0], k[1], k[2] = own0, own1, own2
    return at


@njit(**INNER)
def spans(lattice, axis):
    """How many images of the cell are searched on each side."""
    return 1 if lattice.length[axis] < math.inf else 0


@njit(**INNER)
def is_near(point, axis, near, lattice):
    low, length = lattice.low[axis], lattice.length[axis]
    return not (length < math.inf) or (point[axis] >= low - near and point[axis] <= low + length + near)


@njit(**INNER)
def is_inner(point, near, lattice):
    """Whether a point within the cell is so far from its borders that it has no images."""
    inner = True
    for axis in range(3):
        low, length = lattice.low[axis], lattice.length[axis]
        if length < math.inf:
            inner &= point[axis] > low + near and point[axis] < low + length - near
    return inner


@njit(**INNER)
def write_image(i, at, point, k, lattice, bodies, source, drift):
    """Row ``at`` of ``bodies`` := the image of body i that lies k cells from it."""
    source[at] = i
    for axis in range(3):
        drift[at, axis] = drift_of(lattice, k, axis)
        bodies.position[at, axis] = point[axis]
        bodies.velocity[at, axis] = bodies.velocity[i, axis] + drift[at, axis]
        bodies.velocity[at, 4 + axis] = bodies.velocity[i, 4 + axis]
    for column in range(4):
        bodies.quaternion[at, column] = bodies.quaternion[i, column]
        bodies.inverse_mass[at, column] = bodies.inverse_mass[i, column]
        bodies.extent[at, column] = bodies.extent[i, column]
        bodies.tag[at, column] = bodies.tag[i, column]
    bodies.id[at] = bodies.id[i]
    bodies.geometry[at] = bodies.geometry[i]


@njit(**ALLOCATING)
def look_at_chunk(chunk, at, bodies, lattice, margin, step, most, periodic, source, drift):
    """Bodies of a chunk folded into the cell, and their images from row ``at`` on; returns the next row. Without room in ``source`` the
    images are only counted."""
    position, velocity, extent, tag = bodies.position, bodies.velocity, bodies.extent, bodies.tag
    to_position, to_velocity, to_quaternion, to_tag = periodic.position, periodic.velocity, periodic.quaternion, periodic.tag
    quaternion, writes = bodies.quaternion, source.size > 0
    point, home, k = np.empty(3), np.empty(3), np.zeros(3, np.int64)
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, tag.shape[0])):
        home[0], home[1], home[2] = position[i, 0], position[i, 1], position[i, 2]
        k[0] = k[1] = k[2] = 0
        radius = swept_radius(i, velocity, extent, tag, margin, step)
        near, whole = radius + most, is_whole(radius, tag[i, STATUS] == MOVABLE, lattice)
        inner = whole or is_inner(home, near, lattice)
        if not inner:
            windings_of(home, lattice, k)
            for axis in range(3):
                k[axis] = -k[axis]
        if writes:
            source[i] = i
            for axis in range(3):
                to_position[i, axis] = home[axis]
                drift[i, axis] = 0.0 if inner else drift_of(lattice, k, axis)
            for column in range(8):
                to_velocity[i, column] = velocity[i, column]
            for column in range(4):
                to_quaternion[i, column] = quaternion[i, column]
                to_tag[i, column] = tag[i, column]
        if not inner:
            at = images_of(i, at, point, home, k, near, lattice, periodic, source, drift)
    return at


@Kernel
def count_images(bodies, lattice, margin, step, most, source, drift, count):
    """count (chunks + 1,) := images of the bodies before each chunk, and of all. ``source`` and ``drift`` have no rows here."""
    chunks = count.size - 1
    for chunk in prange(chunks):
        count[chunk + 1] = look_at_chunk(np.int64(chunk), np.int64(0), bodies, lattice, margin, step, most, bodies, source, drift)
    count[0] = 0
    for chunk in range(chunks):
        count[chunk + 1] += count[chunk]


@Kernel
def fill_periodic(bodies, lattice, margin, step, most, count, periodic, source, drift):
    """``periodic`` gets the bodies and their images; ``source`` and ``drift`` as of ``PeriodicBodies``. What of the bodies stays from step
    to step (``STAYS``) is in its first rows already."""
    n = bodies.tag.shape[0]
    for chunk in prange(count.size - 1):
        look_at_chunk(np.int64(chunk), n + count[chunk], bodies, lattice, margin, step, most, periodic, source, drift)


@njit(**INNER)
def is_kept(real, image, proxies, lattice):
    """Whether a pair of a body and an image is the one of two that counts, and counts at all."""
    whole = not proxies.tag[real, MOVES] and CELLS * proxies.sphere[real, 3] > shortest(lattice)
    return not whole and proxies.id[real] < proxies.id[image]


@njit(nogil=True, error_model="numpy", cache=True)
def take_out_images(capacity, bodies, proxies, lattice, pairs, found):
    """Pairs keep what needs no image; ``found`` := those with one that count, as real * 2^32 + image. Returns how many these are, even
    those that have no room; the pairs are changed only if all have."""
    order, total = proxies.order, 0
    for write in range(2):
        at = 0
        if write and total > found.size:
            break
        for tile in range(pairs.count.size):
            first, kept = tile * capacity, 0
            for p in range(first, first + pairs.count[tile]):
                a, b = np.int64(pairs.a[p]), np.int64(pairs.b[p])
                image_a, image_b = order[a] >= bodies, order[b] >= bodies
                if not image_a and not image_b:
                    if write:
                        pairs.a[first + kept], pairs.b[first + kept] = a, b
                    kept += 1
                elif not (image_a and image_b):
                    real, image = (b, a) if image_a else (a, b)
                    if is_kept(real, image, proxies, lattice):
                        if write:
                            found[at] = real << 32 | image
                        at += 1
            if write:
                pairs.count[tile] = kept
        total = at
    return total


@njit(nogil=True, error_model="numpy", cache=True)
def most_after(found, tile_size, pairs):
    """The most pairs that a tile will have with what was found (sorted)."""
    more = np.zeros(pairs.count.size, np.int64)
    for k in range(found.size):
        more[(found[k] >> 32) // tile_size] += 1
    most = 0
    for tile in range(more.size):
        most = max(most, more[tile] + pairs.count[tile])
    return most


@njit(nogil=True, error_model="numpy", cache=True)
def put_back(found, tile_size, capacity, pairs):
    """Each pair that was found (sorted) goes to the tile of its body, behind what that body has already."""
    last = found.size
    while last > 0:
        tile = (found[last - 1] >> 32) // tile_size
        first = last
        while first > 0 and (found[first - 1] >> 32) // tile_size == tile:
            first -= 1
        own, to, k = tile * capacity + pairs.count[tile] - 1, tile * capacity + pairs.count[tile] + (last - first) - 1, last - 1
        pairs.count[tile] += last - first
        while k >= first:  # from the back, so that nothing is overwritten
            if own >= tile * capacity and pairs.a[own] > found[k] >> 32:
                pairs.a[to], pairs.b[to] = pairs.a[own], pairs.b[own]
                own -= 1
            else:
                pairs.a[to], pairs.b[to] = found[k] >> 32, found[k] & 0xFFFFFFFF
                k -= 1
            to -= 1
        last = first


def fold_pairs(capacity, bodies, proxies, lattice, tile_size, pairs):
    """Pairs without doubles across borders, the body itself first; returns the most that a tile has (with too little room for them, only
    that). ``bodies``: how many rows are bodies."""
    found = np.empty(max(64, bodies // 4), np.int64)
    total = take_out_images(capacity, bodies, proxies, lattice, pairs, found)
    if total > len(found):
        found = np.empty(total, np.int64)
        take_out_images(capacity, bodies, proxies, lattice, pairs, found)
    found = np.sort(found[:total])
    most = most_after(found, tile_size, pairs)
    if most <= capacity:
        put_back(found, tile_size, capacity, pairs)
    return most


@njit(**INNER)
def home_of_chunk(chunk, order, source, index_of, home):
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, order.size)):
        home[i] = index_of[source[order[i]]]


@Kernel
def find_homes(order, source, index_of, row, home):
    """row (n + m,) := row of the body that each proxy is or is an image of; home := the proxy of that body."""
    for i in range(order.size):
        index_of[order[i]] = i
        row[i] = source[order[i]]
    for chunk in prange((order.size + CHUNK - 1) // CHUNK):
        home_of_chunk(np.int64(chunk), order, source, index_of, home)


@njit(**INNER)
def fold_tile(tile, contacts, home, a, b):
    for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
        a[c], b[c] = home[contacts.a[c]], home[contacts.b[c]]


@Kernel
def fold_contacts(contacts, home, a, b):
    """a, b := the bodies of the contacts themselves, instead of images."""
    for tile in prange(contacts.count.size):
        fold_tile(np.int64(tile), contacts, home, a, b)


@njit(**ALLOCATING)
def wrap_chunk(chunk, position, velocity, winding, tag, free, lattice):
    point, k = np.empty(3), np.zeros(3, np.int64)
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, tag.shape[0])):
        if tag[i, STATUS] != MOVABLE or (free.size > 0 and not free[i]):
            continue
        inside = True
        for axis in range(3):
            inside &= not (position[i, axis] < lattice.low[axis] or position[i, axis] >= lattice.low[axis] + lattice.length[axis])
        if inside:
            continue
        for axis in range(3):
            point[axis] = position[i, axis]
        windings_of(point, lattice, k)
        for axis in range(3):
            position[i, axis] = point[axis]
            winding[i, axis] += k[axis]
            velocity[i, axis] -= drift_of(lattice, k, axis)


@Kernel
def wrap(position, velocity, winding, tag, free, lattice):
    """Bodies that have left the cell come in on its other side, with the velocity they have there; ``winding`` counts. Bodies with joints
    are not ``free`` (empty: all are): a machine stays together."""
    for chunk in prange((tag.shape[0] + CHUNK - 1) // CHUNK):
        wrap_chunk(np.int64(chunk), position, velocity, winding, tag, free, lattice)


class GhostBuilder:
    """Builds what detection sees of a periodic scene, in buffers that stay from step to step."""

    def __init__(self, buffers):
        self.buffers = buffers
        self.copied = ()  # which rows, in which arrays, ``bodies`` has copies of

    def build(self, bodies, version, lattice, margin, step):
        """The bodies folded into the cell, followed by their ghosts. ``version`` of the rows: fields that change only when rows do are
        copied only then."""
        n, array = len(bodies.tag), self.buffers.array
        rest, chunks = (lattice, margin, step), -(-n // CHUNK)
        largest, count = array("largest_reach", chunks, (3,), "f8"), array("image_count", chunks + 1, dtype="i8")
        find_largest(bodies, *rest, largest)
        worst = largest[np.argmax(largest[:, 1])]
        if CELLS * worst[1] > lattice.length.min():
            raise CellTooSmall(int(bodies.id[int(worst[2])]), float(worst[1]), CELLS * float(worst[1]))
        most = largest[:, 0].max()
        count_images(bodies, *rest, most, np.empty(0, np.int32), np.empty((0, 3)), count)
        total = n + int(count[-1])
        periodic = self.buffers.kept("seen", total, lambda: self._allocate_periodic_bodies(total, bodies))
        known = version, *(id(self.buffers.held[f"seen_{name}"]) for name in STAYS)
        if self.copied != known:
            self.copied = known
            for name in STAYS:
                getattr(periodic.bodies, name)[:n] = getattr(bodies, name)
        fill_periodic(bodies, *rest, most, count, *periodic)
        return periodic

    def _allocate_periodic_bodies(self, total, bodies):
        array = self.buffers.array
        fields = (array(f"seen_{name}", total, of.shape[1:], of.dtype) for name, of in bodies._asdict().items())
        return PeriodicBodies(BodyArrays(*fields), array("seen_source", total, dtype="i4"), array("seen_drift", total, (3,), "f8"))
