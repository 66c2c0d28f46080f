"""gravel: large-scale rigid multibody dynamics with frictional contact.

>>> import gravel as gv
>>> scene = gv.Scene(gravity=(0, 0, -9.81))
"""

from gravel.batches import contact_batches, count_contacts
from gravel.compounds import Clump, Compound
from gravel.contacts import ContactTable, find_contacts
from gravel.io.fclib import load_fclib
from gravel.materials import Material
from gravel.motion import ConstantVelocity, Oscillation
from gravel.polyhedra import ConvexHull
from gravel.problem import ConeProblem, Solution
from gravel.scene import Scene
from gravel.shapes import Box, Capsule, Cone, Cylinder, Ellipsoid, Plane, Sphere
from gravel.simulation import PAPER_SCHEME, Simulation, SimulationError, StepReport
from gravel.solvers import APGD, BarzilaiBorwein, GaussSeidel, Jacobi
from gravel.surfaces import HeightField, Mesh

__version__ = "0.2.0"

__all__ = [
    "APGD",
    "BarzilaiBorwein",
    "Box",
    "Capsule",
    "Clump",
    "Compound",
    "Cone",
    "ConeProblem",
    "ConstantVelocity",
    "ContactTable",
    "ConvexHull",
    "Cylinder",
    "Ellipsoid",
    "GaussSeidel",
    "HeightField",
    "Jacobi",
    "Material",
    "Mesh",
    "Oscillation",
    "PAPER_SCHEME",
    "Plane",
    "Scene",
    "Simulation",
    "SimulationError",
    "Solution",
    "Sphere",
    "StepReport",
    "contact_batches",
    "count_contacts",
    "find_contacts",
    "load_fclib",
]
