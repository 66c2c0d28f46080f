"""Which of two shapes is a in their contacts, which table of functions finds these, and how many it may find."""

from __future__ import annotations

from gravel.formulas.boxes import MOST_POINTS
from gravel.shapes import BOX, COMPOUND, ELLIPSOID, MESH, PLANE, SPHERE

ROUND, BOXES, CONVEX, MESHES, MESH_PAIRS = range(5)


def rank_of(kind: int):
    """Where a kind stands in a pair: convex shapes come before compounds, meshes and planes, and each among its like by number."""
    return kind + 1000 if kind >= COMPOUND and kind <= PLANE else kind


def is_behind(kind_a: int, kind_b: int):
    """Whether a shape of kind a comes after one of kind b in their pair."""
    return rank_of(kind_a) > rank_of(kind_b)


def table_of(kind_a: int, kind_b: int):
    """The table for two kinds, the first not behind the second. What has no closed form is left to the support functions."""
    if kind_b == MESH:
        return MESH_PAIRS if kind_a == MESH else MESHES
    if kind_a == SPHERE and (kind_b <= BOX or kind_b == PLANE):
        return ROUND
    if kind_a == ELLIPSOID and (kind_b == ELLIPSOID or kind_b == PLANE):
        return ROUND
    if kind_a == BOX and (kind_b == BOX or kind_b == PLANE):
        return BOXES
    return CONVEX


def table_between(kind_a: int, kind_b: int):
    """The table for two kinds in any order."""
    return table_of(kind_b, kind_a) if is_behind(kind_a, kind_b) else table_of(kind_a, kind_b)


def rows_of(table: int, many: int):
    """Rows that a job may fill."""
    return 1 if table == ROUND else (many if table >= MESHES else MOST_POINTS)
