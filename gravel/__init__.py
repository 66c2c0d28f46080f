"""gravel: large-scale rigid multibody dynamics with frictional contact.

>>> import gravel as gv
>>> scene = gv.Scene(gravity=(0, 0, -9.81))
"""

from gravel import measures
from gravel.body_names import BodyNames
from gravel.contacts import ContactTable
from gravel.detection.batches import contact_batches, count_contacts
from gravel.detection.find import find_contacts
from gravel.errors import SimulationError, SweepError
from gravel.io.assembly import Assembly, Axis
from gravel.io.export import export
from gravel.io.fclib import load_fclib
from gravel.io.mjcf import load_mjcf
from gravel.io.result import Frame, Result, open_result
from gravel.io.robots import Robot
from gravel.io.step import load_step
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
    RevoluteSpherical,
    RevoluteTranslational,
    RotationalSpring,
    Screw,
    SlideGear,
    Spherical,
    Spring,
    Universal,
)
from gravel.joints.table import JointTable
from gravel.model.cell import Cell, Deformation
from gravel.model.materials import Material
from gravel.model.motion import ConstantVelocity, Oscillation
from gravel.model.servo import ServoWall
from gravel.mpi.domain import Bisection, Grid, Hexagons
from gravel.packing.blend import Mixture
from gravel.packing.pack import Packing, pack
from gravel.packing.pour import Pourer, pour
from gravel.packing.regions import BoxRegion, CylinderRegion, HopperRegion, MeshRegion, SphereRegion
from gravel.packing.sizes import LogNormalSizes, NormalSizes, SieveCurve, UniformSizes, WeibullSizes
from gravel.problem import ConeProblem, Solution
from gravel.running.report import StepReport
from gravel.running.run import RunReport
from gravel.running.sleep import Sleep
from gravel.running.sweep import sweep
from gravel.scene import Scene
from gravel.scenefile import SceneFileError, load_scene_file
from gravel.shapes import Box, Capsule, Cone, Cylinder, Ellipsoid, Plane, RoundedBox, Sphere
from gravel.shapes.compounds import Clump, Compound
from gravel.shapes.meshes import HeightField, Mesh
from gravel.shapes.polyhedra import ConvexHull
from gravel.simulation import PAPER_SCHEME, Simulation
from gravel.solvers import APGD, FFD, BarzilaiBorwein, GaussSeidel, Jacobi
from gravel.view.viewer.show import View, view

__version__ = "0.13.0"

__all__ = [
    "APGD",
    "Assembly",
    "Axis",
    "BarzilaiBorwein",
    "Bisection",
    "BodyNames",
    "Box",
    "BoxRegion",
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
    "CylinderRegion",
    "Cylindrical",
    "Deformation",
    "Distance",
    "Ellipsoid",
    "FFD",
    "Fixed",
    "ForceMotor",
    "Frame",
    "GaussSeidel",
    "Gear",
    "Grid",
    "HeightField",
    "Hexagons",
    "HopperRegion",
    "Jacobi",
    "JointTable",
    "Limits",
    "LogNormalSizes",
    "Material",
    "Mesh",
    "MeshRegion",
    "Mixture",
    "NormalSizes",
    "Oscillation",
    "PAPER_SCHEME",
    "Packing",
    "Planar",
    "Plane",
    "PointOnLine",
    "PositionMotor",
    "Pourer",
    "Prismatic",
    "RackPinion",
    "Result",
    "Revolute",
    "RevoluteSpherical",
    "RevoluteTranslational",
    "Robot",
    "RotationalSpring",
    "RoundedBox",
    "RunReport",
    "Scene",
    "SceneFileError",
    "Screw",
    "ServoWall",
    "SieveCurve",
    "Simulation",
    "SimulationError",
    "Sleep",
    "SlideGear",
    "Solution",
    "SpeedMotor",
    "Sphere",
    "SphereRegion",
    "Spherical",
    "Spring",
    "SpringLaw",
    "StepReport",
    "SweepError",
    "UniformSizes",
    "Universal",
    "View",
    "WeibullSizes",
    "contact_batches",
    "count_contacts",
    "env",
    "export",
    "export_fmu",
    "find_contacts",
    "load_fclib",
    "load_mjcf",
    "load_scene_file",
    "load_step",
    "load_urdf",
    "measures",
    "open_result",
    "pack",
    "plot",
    "pour",
    "report",
    "sweep",
    "view",
]

LAZY = {  # what draws, and what controllers use, is loaded when it is first asked for
    "env": "gravel.control.env",
    "export_fmu": "gravel.control.fmu",
    "picture": "gravel.view.picture",
    "plot": "gravel.view.plots",
    "report": "gravel.view.report",
    "video": "gravel.view.video",
}


def __getattr__(name):
    if name not in LAZY:
        raise AttributeError(f"module 'gravel' has no attribute {name!r}")
    import importlib

    module = importlib.import_module(LAZY[name])
    return module if module.__name__.endswith(f".{name}") and not hasattr(module, name) else getattr(module, name)


def __dir__():
    return sorted({*globals(), *LAZY})
