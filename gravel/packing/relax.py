"""Balls at places without overlap: dropped at random where there is room, or pressed in soft and shaken until they fit.

Dense packings start from random places. The balls are soft, each overlap pushes as hard as it is deep, and the energy of all is brought
down by damped motion (FIRE, Bitzek et al. 2006). Where that ends stuck, the balls are shaken, more and more gently, and it is tried
again: shaken balls find room in layers along the walls and between each other that a plain descent does not find.
"""

import copy
from typing import NamedTuple

import numpy as np

from gravel.packing.regions import BoxRegion, Region

SPARE = 1e-6  # share of a radius by which balls are taken for larger, so that what is left of overlaps is none
SPARSE = 0.28  # share of the region up to which balls are dropped one by one
ROUNDS = 300  # in each of which every ball that has no place yet is dropped once
SKIN = 0.6  # of the smallest radius: pairs nearer than this are looked at until somebody has moved half as far
SHAKES = (0, 500, 2000, 6000)  # steps of shaking, one attempt after the other
DESCENT = (600, 1000, 2000, 4000)  # steps of the descent after each
HOPELESS = 0.3  # of the mean radius: where overlaps are as deep after balls were shaken, more shaking does not part them; those of equal
# balls at 0.62 of the space, which fit in the end, are a fifth of that, at 0.66, which do not, two thirds
LOOSER = (0.6, 0.55, 0.5, 0.4)  # shares of the space that are tried where there is no hope, to tell what is possible
BISECTIONS = 6  # to find out what was reached where the attempts fail
SHAKE = 0.1  # of the mean radius: speed of a shaken ball in one unit of time, in which a ball pushed by an overlap has about left it


class Space(NamedTuple):
    """Where balls may be."""

    region: Region
    periodic: np.ndarray  # (3,) axes

    def within(self):
        """The region without walls across the periodic axes."""
        if not self.periodic.any():
            return self.region
        assert isinstance(self.region, BoxRegion)
        slab = copy.copy(self.region)
        object.__setattr__(slab, "low", np.where(self.periodic, -np.inf, self.region.low))
        object.__setattr__(slab, "high", np.where(self.periodic, np.inf, self.region.high))
        return slab

    def wrapped(self, positions):
        """Positions within the region along periodic axes."""
        low, high = self.region.bounds
        turns = np.where(self.periodic, np.floor((positions - low) / (high - low)), 0.0)
        moved = positions - turns * (high - low)
        return np.where(self.periodic & (moved >= high), low, moved)  # rounding


def place_balls(space, radii, rng):
    """(positions (N, 3), share of their radii at which the balls lie without overlap: 1 where it worked)."""
    if 4 / 3 * np.pi * np.sum(radii**3) <= SPARSE * space.region.volume:
        positions = drop(space, radii, rng)
        if positions is not None:
            return positions, 1.0
    soft = SoftBalls(space, radii * (1 + SPARE))
    positions, deepest = _pressed(soft, radii, rng, len(SHAKES))
    if deepest <= SPARE * radii.min():
        return space.wrapped(positions), 1.0
    filled = 4 / 3 * np.pi * np.sum(radii**3) / space.region.volume
    for fraction in LOOSER if deepest > HOPELESS * radii.mean() else ():
        share = (fraction / filled) ** (1 / 3)
        looser, least = SoftBalls(space, share * radii * (1 + SPARE)), SPARE * share * radii.min()
        places, left = _pressed(looser, share * radii, rng, 2)
        if left <= least:
            return _shrunk(space, radii, places, share)
    return _shrunk(space, radii, positions, soft.fitting_share(positions))


def _pressed(soft, radii, rng, attempts):
    """(positions, the deepest overlap) after so many attempts from random places, or fewer, where one works or there is no hope."""
    positions = soft.space.region.sample(rng, len(radii))
    for shakes, steps in zip(SHAKES[:attempts], DESCENT):
        if shakes:
            positions = shake(soft, positions, shakes, rng)
        positions, deepest = descend(soft, positions, SPARE * radii.min(), steps)
        if deepest <= SPARE * radii.min() or (shakes and deepest > HOPELESS * radii.mean()):
            break
    return positions, deepest


def _shrunk(space, radii, positions, share):
    """After attempts that failed: (positions, the largest share of their radii at which the balls part), which is at least ``share``."""
    above = 1.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (share + above)
        small = SPARE * middle * radii.min()
        moved, deepest = descend(SoftBalls(space, middle * radii * (1 + SPARE)), positions, small, DESCENT[0])
        if deepest <= small:
            positions, share = moved, middle
        else:
            above = middle
    return space.wrapped(positions), share


def drop(space, radii, rng):
    """Random sequential addition, large balls first: places of all balls, or None where some find no room."""
    from gravel.packing import balls

    cells = balls.cells_for(radii, *space.region.bounds, space.periodic)
    within, positions, placed = space.within(), np.empty((len(radii), 3)), np.zeros(len(radii), bool)
    order = np.argsort(-radii, kind="stable")
    for level in range(cells.level.max(), -1, -1):
        left = order[cells.level[order] == level]
        for _ in range(ROUNDS):
            if not len(left):
                break
            places = space.region.try_centres(rng, radii[left], space.periodic)
            inside = within.distance(places) >= radii[left]
            balls.insert(left[inside], places[inside], positions, radii, cells, placed)
            left = left[~placed[left]]
        if len(left):
            return None
    return positions


class SoftBalls:
    """Forces between soft balls, and from the walls."""

    def __init__(self, space, radii):
        self.space, self.radii = space, radii
        self.within, self.skin = space.within(), SKIN * radii.min()
        self.mass = ((radii / radii.min()) ** 2)[:, None]  # a large ball is pushed by many
        self._pairs_at = self._walls_at = None

    def forces(self, positions):
        """((N, 3) as large as the overlaps are deep, the deepest overlap m)."""
        from gravel.packing import balls

        self._find_pairs(positions)
        forces = np.zeros_like(positions)
        deepest = balls.push_apart(positions, self.radii, self._pairs, self._lengths, forces)[1]
        near = self._near_walls(positions)
        if len(near):
            depth = self.radii[near] - self._distance[near]
            forces[near] += np.maximum(depth, 0.0)[:, None] * self.within.inward(positions[near])
            deepest = max(deepest, float(depth.max()))
        return forces, deepest

    def fitting_share(self, positions):
        """The share of their radii at which the balls do not overlap: of an attempt that failed."""
        pairs = self._pairs
        arms = positions[pairs[:, 1]] - positions[pairs[:, 0]]
        lengths = np.where(self._lengths > 0, self._lengths, np.inf)
        arms -= np.where(self._lengths > 0, self._lengths, 0.0) * np.rint(arms / lengths)
        between = np.linalg.norm(arms, axis=1) / self.radii[pairs].sum(axis=1)
        return float(min(1.0, between.min(initial=1.0), (self.within.distance(positions) / self.radii).min()))

    def _find_pairs(self, positions):
        """Pairs that may touch, found anew when somebody has moved half a skin."""
        from gravel.packing import balls

        if self._pairs_at is not None and np.max(np.sum((positions - self._pairs_at) ** 2, axis=1)) < (0.5 * self.skin) ** 2:
            return
        self._pairs_at, room = positions.copy(), 8 * len(positions)
        while True:
            cells = balls.cells_for(self.radii, *self.space.region.bounds, self.space.periodic, self.skin)
            pairs = np.empty((room, 2), np.int64)
            found = balls.near_pairs(positions, self.radii, self.skin, cells, pairs)
            if found <= room:
                break
            room = found
        self._pairs, self._lengths = pairs[:found], cells.lengths

    def _near_walls(self, positions):
        """Balls that overlap a wall. Nobody's distance changes by more than it has moved, so only those that may be near are asked."""
        if self._walls_at is None:
            self._walls_at, self._distance = positions.copy(), self.within.distance(positions)
        else:
            moved = np.sqrt(np.sum((positions - self._walls_at) ** 2, axis=1))
            asked = np.flatnonzero(self._distance - moved < self.radii)
            self._walls_at[asked], self._distance[asked] = positions[asked], self.within.distance(positions[asked])
        return np.flatnonzero(self._distance < self.radii)  # distances that were not asked for again are larger


def descend(soft, positions, enough, steps):
    """Balls move downhill until no overlap is deeper than ``enough``, m, or the steps are used up: (positions, the deepest)."""
    velocities, dt, turn, good = np.zeros_like(positions), 0.1, 0.1, 0
    for _ in range(steps):
        forces, deepest = soft.forces(positions)
        if deepest <= enough:
            return positions, deepest
        if np.sum(forces * velocities) > 0.0:  # sums, not products of BLAS, whose threads round as they like
            steered = np.sqrt(np.sum(velocities**2) / np.sum(forces**2))
            velocities = (1 - turn) * velocities + turn * steered * forces
            good += 1
            if good > 5:
                dt, turn = min(1.1 * dt, 0.5), 0.99 * turn
        else:
            velocities, dt, turn, good = np.zeros_like(velocities), max(0.5 * dt, 0.02), 0.1, 0
        velocities += dt * forces / soft.mass
        positions = positions + dt * velocities
    return positions, soft.forces(positions)[1]


def shake(soft, positions, steps, rng):
    """Balls move freely, at speeds that go down to nothing."""
    dt, size = 0.3, float(np.mean(soft.radii))
    velocities = rng.normal(size=positions.shape) / np.sqrt(soft.mass)
    forces = soft.forces(positions)[0] / soft.mass
    for step in range(steps):
        if step % 10 == 0:
            energy = np.mean(soft.mass * velocities**2)
            velocities *= SHAKE * size * (1 - step / steps) / np.sqrt(energy)
        velocities += 0.5 * dt * forces
        positions = positions + dt * velocities
        forces = soft.forces(positions)[0] / soft.mass
        velocities += 0.5 * dt * forces
    return positions
