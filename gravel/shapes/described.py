"""Shapes back from the arrays that bodies keep: their names, and a shape object of one body.

What comes back is in the frame of the body, where its pose places it: of a hull, mesh or compound that can move, about its centre of
mass and along its principal axes. Masses are not part of a shape; those of a body stand in ``sim.masses`` and ``sim.inertias``.
"""

import numpy as np

from gravel.shapes.compounds import Clump, Compound
from gravel.shapes.geometry import NONE, Geometry
from gravel.shapes.kinds import KINDS, NAMES
from gravel.shapes.meshes import Mesh
from gravel.shapes.polyhedra import ConvexHull
from gravel.shapes.simple import COMPOUND, HULL, SPHERE

NO_SHAPE = ""  # the name of what a removed body was


def names_of_kinds(kinds: np.ndarray, there: np.ndarray) -> np.ndarray:
    """(N,) names of kinds; empty where a body is not ``there``."""
    return np.where(there, np.array(NAMES)[kinds], NO_SHAPE)


def shape_of_body(kind: int, extent: np.ndarray, geometry: Geometry | None):
    """The shape of a body that has this ``extent`` (three sizes and the bounding radius) and this geometry."""
    if geometry is None:
        return KINDS[kind].of_extent(extent)
    scale = extent[0]
    if kind == HULL:
        return ConvexHull(geometry.vertices, scale)
    if kind == COMPOUND:
        return _compound(geometry, scale)
    return Mesh(geometry.vertices, geometry.triangles, scale, sheet=not geometry.one_sided)


def shape_of_geometry(kind: int, geometry: Geometry):
    """The shape of a body with this geometry at scale 1."""
    return shape_of_body(kind, np.array([1.0, 0.0, 0.0, geometry.radius]), geometry)


def _compound(geometry, scale):
    """Spheres alone become a Clump, which counts what they share once; anything else a Compound."""
    if (geometry.child_kind == SPHERE).all():
        return Clump(geometry.child_position, geometry.child_size[:, 0], scale)
    items = []
    for k, (kind, place, turn) in enumerate(zip(geometry.child_kind, geometry.child_position, geometry.child_quaternion)):
        number = geometry.child_geometry[k]
        part = None if number == NONE else geometry.parts[number]
        items.append((shape_of_body(int(kind), geometry.extent_of_child(k) * scale, part), place * scale, turn))
    return Compound(items)
