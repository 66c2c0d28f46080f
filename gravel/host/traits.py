"""Traits of a set of bodies: which kinds of shapes there are, whether all that move are balls, and how their sizes differ. They
decide which kernels a scene needs and which broad phase suits it, and change only when bodies come or go."""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from gravel.host.arrays import is_ball
from gravel.shapes import KINDS, PLANE, SPHERE
from gravel.state import MOVABLE, SHAPE, STATUS, can_move

BINS, PER_OCTAVE, MIDDLE = 2048, 8, 1024  # of bounding radii: so many bins from each power of two to the next
FEW_BODIES = 64  # up to so many, testing all pairs is quicker than sorting them
CELLS_PER_BODY = 8  # at most, beyond the first cube of 512 cells of a level
HUGE_LIMIT = 32  # at most so many bodies are kept out of the cells ...
HUGE_RATIO = 4.0  # ... each at least so many times larger than any body in them
MIXED = 3  # octaves that the largest bodies' radius is above the median, from which on the tree is quicker than the grid


class Traits(NamedTuple):
    kinds: frozenset  # of shapes
    movers: frozenset  # of shapes of bodies that can move
    balls: bool  # every body that forces can move is a ball: inertia is a number, arms lie along normals
    some_balls: bool  # some are
    turned: bool  # there are shapes that look different when turned
    shared: bool  # some shapes have a geometry
    mixed: bool  # sizes differ so much that the grid's cells would serve few
    smallest: float  # bounding radius of the bodies that can move, m


@njit(nogil=True, error_model="numpy", cache=True)
def survey(tag, extent, inverse_mass, geometry, count):
    """Bits of all kinds and of those that move, whether all or some that move are balls, whether any has a geometry; ``count`` := bodies by
    bounding radius."""
    kinds, movers, balls, some_balls, shared = 0, 0, True, False, False
    for i in range(tag.shape[0]):
        kind, movable = tag[i, SHAPE], tag[i, STATUS] >= MOVABLE  # asleep or not
        kinds |= 1 << kind
        shared |= geometry[i] >= 0
        if movable:
            movers |= 1 << kind
            ball = is_ball(kind, inverse_mass, i)
            balls &= ball
            some_balls |= ball
        if extent[i, 3] < np.inf:
            share, octave = math.frexp(extent[i, 3])  # radius = share 2^octave, share in [1/2, 1)
            k = PER_OCTAVE * octave + np.int64((2.0 * share - 1.0) * PER_OCTAVE) + MIDDLE
            count[min(max(k, 0), BINS - 1)] += 1
    return kinds, movers, balls, some_balls, shared


def traits_of(bodies):
    """The traits of an engine's rows."""
    count = np.zeros(BINS, np.int64)
    kinds, movers, balls, some_balls, shared = survey(bodies.tag, bodies.extent, bodies.inverse_mass, bodies.geometry, count)
    kinds, movers = (frozenset(k for k in range(len(KINDS)) if bits >> k & 1) for bits in (kinds, movers))
    smallest = float(bodies.extent[can_move(bodies.tag[:, STATUS]), 3].min(initial=np.inf))
    return Traits(kinds, movers, balls, some_balls, not kinds <= {SPHERE, PLANE}, shared, _are_mixed(count), smallest)


def _are_mixed(count):
    """Planes, and a few bodies that are far larger than the rest, count for neither: the grid keeps them out of its cells."""
    total = int(count.sum())
    if total <= 10 * HUGE_LIMIT:
        return False
    up = np.cumsum(count)
    median = int(np.searchsorted(up, (total + 1) // 2))
    largest = int(np.searchsorted(up, total - HUGE_LIMIT))
    return largest - median >= MIXED * PER_OCTAVE
