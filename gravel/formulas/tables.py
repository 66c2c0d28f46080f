"""Which table of functions finds the contacts of two kinds of shapes, and how many it may find."""

from __future__ import annotations

from gravel.formulas.boxes import MOST_POINTS
from gravel.shapes import BOX, ELLIPSOID, HULL, MESH, PLANE, SPHERE

ROUND, BOXES, CONVEX, MESHES, MESH_PAIRS = range(5)


def table_of(kind_a: int, kind_b: int):
    """The table for two kinds, the first not above the second."""
    if kind_b == MESH:
        return MESH_PAIRS if kind_a == MESH else MESHES
    if kind_a == SPHERE:
        return CONVEX if kind_b == HULL else ROUND
    if kind_a == ELLIPSOID and (kind_b == ELLIPSOID or kind_b == PLANE):
        return ROUND
    if kind_a == BOX and (kind_b == BOX or kind_b == PLANE):
        return BOXES
    return CONVEX


def rows_of(table: int, many: int):
    """Rows that a job may fill."""
    return 1 if table == ROUND else (many if table >= MESHES else MOST_POINTS)
