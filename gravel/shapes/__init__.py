"""Shapes: what bodies look like. Plain descriptions: data, mass properties, validation, and nothing of an engine.

``simple`` shapes are described by three sizes; ``polyhedra``, ``meshes`` and ``compounds`` bring a ``geometry`` as well, which
bodies share by number; ``decompose`` fills meshes with spheres.
"""

from gravel.shapes.compounds import Clump, Compound
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
    SPHERE,
    Box,
    Capsule,
    Cone,
    Cylinder,
    Ellipsoid,
    Plane,
    Simple,
    Sphere,
)

Shape = Simple | Scaled  # what all functions take that take a shape

__all__ = [
    "BOX",
    "CAPSULE",
    "COMPOUND",
    "CONE",
    "CYLINDER",
    "ELLIPSOID",
    "HULL",
    "MESH",
    "PLANE",
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
    "Shape",
    "Simple",
    "Sphere",
]
