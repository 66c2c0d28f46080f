"""gravel: large-scale rigid multibody dynamics with frictional contact.

>>> import gravel as gv
>>> scene = gv.Scene(gravity=(0, 0, -9.81))
"""

from gravel import measures
from gravel.batches import contact_batches, count_contacts
from gravel.cell import Cell, Deformation
from gravel.contacts import ContactTable
from gravel.detection import find_contacts
from gravel.errors import SimulationError
from gravel.io.fclib import load_fclib
from gravel.io.mjcf import load_mjcf
from gravel.io.result import Frame, Result, open_result
from gravel.io.robots import Robot
from gravel.io.urdf import load_urdf
from gravel.joints.drives import ForceMotor, Limits, PositionMotor, SpeedMotor, SpringLaw
from gravel.joints.kinds import (
    Bushing,
    Cylindrical,
    Distance,
    Fixed,
    Gear,
    Planar,
    PointOnLine,
    Prismatic,
    RackPinion,
    Revolute,
    RotationalSpring,
    Screw,
    SlideGear,
    Spherical,
    Spring,
    Universal,
)
from gravel.joints.table import JointTable
from gravel.materials import Material
from gravel.motion import ConstantVelocity, Oscillation
from gravel.problem import ConeProblem, Solution
from gravel.scene import Scene
from gravel.shapes import Box, Capsule, Cone, Cylinder, Ellipsoid, Plane, Sphere
from gravel.shapes.compounds import Clump, Compound
from gravel.shapes.meshes import HeightField, Mesh
from gravel.shapes.polyhedra import ConvexHull
from gravel.simulation import PAPER_SCHEME, Simulation, StepReport
from gravel.solvers import APGD, BarzilaiBorwein, GaussSeidel, Jacobi

__version__ = "0.6.0"

__all__ = [
    "APGD",
    "BarzilaiBorwein",
    "Box",
    "Bushing",
    "Capsule",
    "Cell",
    "Clump",
    "Compound",
    "Cone",
    "ConeProblem",
    "ConstantVelocity",
    "ContactTable",
    "ConvexHull",
    "Cylinder",
    "Cylindrical",
    "Deformation",
    "Distance",
    "Ellipsoid",
    "Fixed",
    "ForceMotor",
    "Frame",
    "GaussSeidel",
    "Gear",
    "HeightField",
    "Jacobi",
    "JointTable",
    "Limits",
    "Material",
    "Mesh",
    "Oscillation",
    "PAPER_SCHEME",
    "Planar",
    "Plane",
    "PointOnLine",
    "PositionMotor",
    "Prismatic",
    "RackPinion",
    "Result",
    "Revolute",
    "Robot",
    "RotationalSpring",
    "Scene",
    "Screw",
    "Simulation",
    "SlideGear",
    "SimulationError",
    "Solution",
    "SpeedMotor",
    "Sphere",
    "Spherical",
    "Spring",
    "SpringLaw",
    "StepReport",
    "Universal",
    "contact_batches",
    "count_contacts",
    "find_contacts",
    "load_fclib",
    "load_mjcf",
    "load_urdf",
    "measures",
    "open_result",
]
