"""The kinds of shapes by their numbers: one record each, the class of its shapes.

``simple.Simple`` says what a record of a simple shape holds; those with a geometry have a number and a name, and their geometry says the
rest.
"""

from typing import Any

import numpy as np

from gravel.shapes.compounds import Compound
from gravel.shapes.geometry import NONE
from gravel.shapes.meshes import Mesh
from gravel.shapes.polyhedra import ConvexHull
from gravel.shapes.simple import COMPOUND, HULL, MESH, SOLIDS, Plane

KINDS: tuple[Any, ...] = tuple(sorted((*SOLIDS, ConvexHull, Compound, Mesh, Plane), key=lambda kind: kind.KIND))
NAMES = tuple(kind.NAME for kind in KINDS)
SIMPLE: dict[str, Any] = {solid.NAME: solid for solid in SOLIDS} | {Plane.NAME: Plane}
CONVEX = frozenset({HULL, *(solid.KIND for solid in SOLIDS)})
ROUND = tuple(kind.KIND for kind in SOLIDS if kind.ROUND)  # whose triangles are a choice


def kind_of(geometry):
    """HULL, COMPOUND or MESH."""
    return COMPOUND if len(geometry.child_kind) else MESH if len(geometry.triangles) else HULL


def half_thickness(kinds, extents, numbers, geometries):
    """(n,) m: half of what each body measures where it is thinnest, from what an engine keeps of it; ``numbers``: of its geometry."""
    half = np.full(len(kinds), np.inf)
    for solid in SOLIDS:
        rows = np.flatnonzero(kinds == solid.KIND)
        for sizes in solid.sizes_of(extents[rows]):
            half[rows] = np.minimum(half[rows], sizes.min(axis=1) if sizes.ndim > 1 else sizes)
    shaped = numbers != NONE
    if shaped.any():
        half[shaped] = extents[shaped, 0] * np.array([geometry.half.min() for geometry in geometries])[numbers[shaped]]
    return half
