"""Bodies of any shape without overlap: small ones that grow to their size in the engine, pushed apart by it and kept in by walls.

They start as balls that hold them, at a size at which those find room. Then they grow by a little, the engine takes their overlaps
back in steps of no duration worth the name (no gravity, no friction, no speed is kept, so that a step is the smallest move that parts
them), while small kicks that fade away let them find room, and so on. It is a general way, and an honest one: what it reaches depends
on the shape.
"""

import warnings
from typing import NamedTuple

import numpy as np

from gravel.detection.find import detect_scene
from gravel.model.materials import Material
from gravel.packing.blend import as_given, random_turns, scaled
from gravel.packing.relax import place_balls
from gravel.scene import Scene
from gravel.shapes import BOX, CONVEX, HULL, KINDS
from gravel.simulation import Simulation
from gravel.solvers import GaussSeidel

START = 0.45  # share of the region that the balls around the bodies fill at the start
GROWTH = 0.02  # of their size by which bodies grow at a time
KICK = 0.05  # of the smallest inner radius: how far a kick moves a body in a step, at the start
CALM = 8  # steps without kicks after each growth, at least
PATIENCE = 60  # steps that the engine gets to bring overlaps down before the bodies grow on
LAST = 600  # and at the end
ROUGH = 2e-2  # of the smallest inner radius: overlaps with which bodies may grow on
FINE = 1e-4  # and those that may remain at the end, of bodies that are larger by that share, so that in truth none is left
EDGES = 1.5e-3  # the same for boxes, whose depth is known to a thousandth of their smallest half extent (see ``cpu/collide``)
SLIPPERY = Material(friction=0.0)


class Kind(NamedTuple):
    """Bodies of one template, each at its own factor."""

    shape: object  # of one size
    factors: np.ndarray  # (n,)

    def at(self, scale):
        """The shape of all of them at a scale."""
        return scaled(self.shape, scale * self.factors)

    def radii(self):
        """(n,) m, of the balls about the centres of mass that hold the bodies."""
        return np.array(self.at(1.0).bounding_radii(len(self.factors)))


class Grown(NamedTuple):
    positions: np.ndarray  # (N, 3) as the shapes are given
    quaternions: np.ndarray  # (N, 4)
    share: float  # of their size that the bodies have reached: 1 where it worked
    overlap: float  # m, the deepest that is left


def place_bodies(space, kinds, gap, rng):
    """Places for bodies of any shape; bodies keep ``gap`` m from each other and half of it from the walls."""
    radii = np.concatenate([kind.radii() for kind in kinds])
    turns = random_turns(rng, len(radii))
    balls = radii + 0.5 * gap
    start = min(1.0, (START * space.region.volume / (4 / 3 * np.pi * np.sum(balls**3))) ** (1 / 3))
    centres, share = place_balls(space, start * balls, rng)
    if start == 1.0 and share == 1.0:
        return Grown(*_as_given(kinds, centres, turns), 1.0, 0.0)
    return _grow(space, kinds, gap, centres, turns, start * share, rng)


def _grow(space, kinds, gap, centres, turns, scale, rng):
    inner = np.concatenate([kind.factors * inner_radius(kind.shape) for kind in kinds])
    if gap and not all(kind.shape.KIND in CONVEX for kind in kinds):
        raise ValueError(f"gap must be 0 for bodies that are not convex at such a fraction, not {gap:g}")
    goal = (1 + (EDGES if any(_has_boxes(kind.shape) for kind in kinds) else FINE)) * (1 + 0.5 * gap / inner.min())
    least, scale = float(inner.min()), scale / (1 + GROWTH)
    first = reached = scale
    poses = centres, turns
    while scale < goal:
        scale = min(goal, scale * (1 + GROWTH))
        kick = KICK * least * scale * (1 - (scale - first) / (goal - first))
        enough = (ROUGH if scale < goal else FINE) * least * scale
        poses, deepest = _part(space, kinds, scale, poses, enough, kick, PATIENCE if scale < goal else LAST, rng)
        if deepest > enough:
            break
        reached = scale
    placed = _as_given(kinds, *poses)
    if reached < goal:
        return Grown(*placed, reached / goal, deepest)
    return Grown(*placed, 1.0, deepest_overlap(space, kinds, *placed))


def _part(space, kinds, scale, poses, enough, kick, patience, rng):
    """The engine parts bodies of some scale: (poses, the deepest overlap that is left, m)."""
    scene, bodies = _scene_of(space, kinds, scale, *_as_given(kinds, *poses, scale))
    size = float(scene.bodies.extent[bodies, 3].min())
    solver = GaussSeidel(iterations=200, tolerance=0.05 * enough)
    options = {"recovery": 0.8, "recovery_speed": np.inf, "integrator": "euler", "margin": 0.1 * size, "restitution_threshold": 1e9}
    simulation = Simulation(scene, 1.0, solver, **options)
    good = poses
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overlaps: they are what this is about
        for step in range(patience + 1):
            simulation.velocities[:] = 0.0
            simulation.angular_velocities[:] = 0.0
            if step < patience and step < CALM and kick:
                simulation.velocities[bodies] = rng.normal(scale=kick, size=(len(bodies), 3))
            good = simulation.positions[bodies].copy(), simulation.quaternions[bodies].copy()
            deepest = simulation.step().max_penetration  # at the start of the step
            if deepest <= enough and (step >= CALM or not kick):
                break
    return good, deepest


def _scene_of(space, kinds, scale, positions, quaternions):
    """(scene with the bodies and walls, ids of the bodies)."""
    low, high = space.region.bounds
    borders = [(low[k], high[k]) if periodic else None for k, periodic in enumerate(space.periodic)]
    scene = Scene(gravity=(0, 0, 0), periodic=borders if space.periodic.any() else None)
    ids = []
    for kind, rows in zip(kinds, _rows(kinds)):
        ids.append(scene.add_bodies(kind.at(scale), positions[rows], SLIPPERY, quaternions=quaternions[rows]))
    for k, wall in enumerate(space.region.walls(inside=True)):
        if not (space.periodic.any() and space.periodic[k // 2]):  # a box has two walls for each axis
            scene.add_body(wall, material=SLIPPERY, fixed=True)
    return scene, np.concatenate(ids)


def deepest_overlap(space, kinds, positions, quaternions):
    """m, of bodies with each other and with the walls."""
    engine = detect_scene(_scene_of(space, kinds, 1.0, positions, quaternions)[0], broad_phase="auto")
    return float(max(0.0, -engine.contacts().gap.min(initial=0.0)))


def _as_given(kinds, centres, turns, scale=1.0):
    parts = [as_given(kind.shape, scale * kind.factors, centres[rows], turns[rows]) for kind, rows in zip(kinds, _rows(kinds))]
    return tuple(np.concatenate(values) for values in zip(*parts))


def _rows(kinds):
    """The rows of each kind among all bodies."""
    ends = np.cumsum([len(kind.factors) for kind in kinds])
    return [slice(end - len(kind.factors), end) for kind, end in zip(kinds, ends)]


def inner_radius(shape):
    """m, radius of the largest ball about the centre of mass that a convex shape of one size holds; of a compound, that of its thinnest
    child."""
    extent = np.append(shape.rows(1)[0], shape.bounding_radii(1))
    if shape.KIND in CONVEX:
        return _inner(shape.KIND, extent, shape.geometry(True))
    return float(extent[0]) * min(_inner(child.kind, child.extent, child.part) for child in shape.children)


def _has_boxes(shape):
    return shape.KIND == BOX or any(child.kind == BOX for child in getattr(shape, "children", ()))


def _inner(kind, extent, geometry):
    if kind != HULL:
        return float(KINDS[kind].inner_radius(extent))
    corners = geometry.vertices[geometry.face_corners[geometry.face_start]]
    return float(extent[0] * np.einsum("ni,ni->n", geometry.face_normals, corners).min())
