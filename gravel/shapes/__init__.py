"""Shapes: what bodies look like. Plain descriptions: data, mass properties, validation, and nothing of an engine.

``simple`` shapes are described by their sizes; ``polyhedra``, ``meshes`` and ``compounds`` bring a ``geometry`` as well, which
bodies share by number; ``decompose`` fills meshes with spheres. ``kinds`` lists all kinds by number.
"""

from gravel.shapes.compounds import Clump, Compound
from gravel.shapes.kinds import CONVEX, KINDS, ROUND
from gravel.shapes.meshes import HeightField, Mesh
from gravel.shapes.polyhedra import ConvexHull, Scaled
from gravel.shapes.simple import (
    BOX,
    CAPSULE,
    COMPOUND,
    CONE,
    CYLINDER,
    ELLIPSOID,
    HULL,
    MESH,
    PLANE,
    ROUNDED_BOX,
    SOLIDS,
    SPHERE,
    Box,
    Capsule,
    Cone,
    Cylinder,
    Ellipsoid,
    Plane,
    RoundedBox,
    Simple,
    Sphere,
)

Shape = Simple | Scaled  # what all functions take that take a shape
SHAPES = tuple(kind.__name__ for kind in (*SOLIDS, ConvexHull, Plane, Compound, Clump, Mesh, HeightField))

__all__ = [
    "BOX",
    "CAPSULE",
    "COMPOUND",
    "CONE",
    "CONVEX",
    "CYLINDER",
    "ELLIPSOID",
    "HULL",
    "KINDS",
    "MESH",
    "PLANE",
    "ROUND",
    "ROUNDED_BOX",
    "SHAPES",
    "SOLIDS",
    "SPHERE",
    "Box",
    "Capsule",
    "Clump",
    "Compound",
    "Cone",
    "ConvexHull",
    "Cylinder",
    "Ellipsoid",
    "HeightField",
    "Mesh",
    "Plane",
    "RoundedBox",
    "Shape",
    "Simple",
    "Sphere",
]
