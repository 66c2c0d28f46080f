"""Shapes back from the arrays that bodies keep: their names, and a shape object of one body.

What comes back is in the frame of the body, where its pose places it: of a hull, mesh or compound that can move, about its centre of
mass and along its principal axes. Masses are not part of a shape; those of a body stand in ``sim.masses`` and ``sim.inertias``.
"""

import numpy as np

from gravel.shapes.compounds import Clump, Compound
from gravel.shapes.geometry import NONE, Geometry
from gravel.shapes.meshes import Mesh
from gravel.shapes.polyhedra import ConvexHull
from gravel.shapes.simple import (
    BOX,
    CAPSULE,
    COMPOUND,
    CONE,
    CYLINDER,
    ELLIPSOID,
    HULL,
    PLANE,
    SPHERE,
    Box,
    Capsule,
    Cone,
    Cylinder,
    Ellipsoid,
    Plane,
    Sphere,
)

KIND_NAMES = ("sphere", "ellipsoid", "capsule", "cylinder", "cone", "box", "hull", "compound", "mesh", "plane")  # by their numbers
NO_SHAPE = ""  # the name of what a removed body was


def names_of_kinds(kinds: np.ndarray, there: np.ndarray) -> np.ndarray:
    """(N,) names of kinds; empty where a body is not ``there``."""
    return np.where(there, np.array(KIND_NAMES)[kinds], NO_SHAPE)


def shape_of_body(kind: int, sizes: np.ndarray, geometry: Geometry | None):
    """The shape of a body that has these ``sizes`` (the first three numbers of its extent) and this geometry."""
    radius, half, _ = sizes
    if kind == SPHERE:
        return Sphere(radius)
    if kind in (ELLIPSOID, BOX):
        return Ellipsoid(sizes) if kind == ELLIPSOID else Box(sizes)
    if kind in (CAPSULE, CYLINDER, CONE):
        return {CAPSULE: Capsule, CYLINDER: Cylinder, CONE: Cone}[kind](radius, half)
    if kind == PLANE:
        return Plane(sizes)
    assert geometry is not None  # all others have one
    scale = sizes[0]
    if kind == HULL:
        return ConvexHull(geometry.vertices, scale)
    if kind == COMPOUND:
        return _compound(geometry, scale)
    return Mesh(geometry.vertices, geometry.triangles, scale, sheet=not geometry.one_sided)


def _compound(geometry, scale):
    """Spheres alone become a Clump, which counts what they share once; anything else a Compound."""
    if (geometry.child_kind == SPHERE).all():
        return Clump(geometry.child_position, geometry.child_size[:, 0], scale)
    items = []
    for kind, size, place, turn, number in zip(
        geometry.child_kind, geometry.child_size, geometry.child_position, geometry.child_quaternion, geometry.child_geometry
    ):
        part = None if number == NONE else geometry.parts[number]
        sizes = size * scale
        items.append((shape_of_body(int(kind), sizes, part), place * scale, turn))
    return Compound(items)
