"""STEP files for the tests, written by the CAD kernel: any tree of parts in any unit, and a slider-crank with a bucket."""

import contextlib
import os

import build123d as b3d
from OCP.BRepBuilderAPI import BRepBuilderAPI_Transform
from OCP.BRepGProp import BRepGProp
from OCP.GProp import GProp_GProps
from OCP.Interface import Interface_Static
from OCP.Quantity import Quantity_Color, Quantity_TOC_sRGB
from OCP.STEPCAFControl import STEPCAFControl_Writer
from OCP.STEPControl import STEPControl_AsIs
from OCP.TCollection import TCollection_ExtendedString
from OCP.TDataStd import TDataStd_Name
from OCP.TDocStd import TDocStd_Document
from OCP.TopLoc import TopLoc_Location
from OCP.XCAFDoc import XCAFDoc_ColorSurf, XCAFDoc_DocumentTool

CRANK, ROD = 0.05, 0.2  # m, of the slider-crank


class Document:
    """A STEP file to be. Products are added once, and placed any number of times."""

    def __init__(self):
        self.document = TDocStd_Document(TCollection_ExtendedString("XCAF"))
        self.shapes = XCAFDoc_DocumentTool.ShapeTool_s(self.document.Main())
        self.colours = XCAFDoc_DocumentTool.ColorTool_s(self.document.Main())

    def product(self, name, shape, colour=None):
        return self._named(self.shapes.AddShape(_in_place(shape), False), name, colour)

    def assembly(self, name, components, colour=None):
        """``components``: (product, b3d.Location, name of the instance), with a colour of its own or without."""
        label = self._named(self.shapes.NewShape(), name, colour)
        for product, place, instance, *own in components:
            self._named(self.shapes.AddComponent(label, product, place.wrapped), instance, *own)
        return label

    def write(self, path, unit="MM", external=None):
        """``external``: a prefix; then each product goes into a file of its own, in the current folder."""
        self.shapes.UpdateAssemblies()
        writer = STEPCAFControl_Writer()
        Interface_Static.SetCVal_s("write.step.unit", unit)
        try:
            with _silent():
                writer.Transfer(self.document, STEPControl_AsIs, external)
                writer.Write(str(path))
        finally:
            Interface_Static.SetCVal_s("write.step.unit", "MM")
        return path

    def _named(self, label, name, colour=None):
        TDataStd_Name.Set_s(label, TCollection_ExtendedString(name, True))
        if colour is not None:
            self.colours.SetColor(label, Quantity_Color(*colour, Quantity_TOC_sRGB), XCAFDoc_ColorSurf)
        return label


def _in_place(shape):
    """The kernel's shape with its place in its coordinates: a shape that is placed would become an assembly of its own."""
    solids = shape.solids()
    if len(solids) != 1:
        return (b3d.Compound(solids) if solids else shape).wrapped
    solid = solids[0].wrapped
    return BRepBuilderAPI_Transform(solid.Located(TopLoc_Location()), solid.Location().Transformation(), True).Shape()


@contextlib.contextmanager
def _silent():
    """Without what the kernel prints, past Python."""
    kept, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nothing)


def write_part(path, shape, name="part", unit="MM"):
    document = Document()
    document.product(name, shape)
    return document.write(path, unit)


def kernel_volume(shape):
    """m3, by the CAD kernel, of a shape in mm."""
    found = GProp_GProps()
    BRepGProp.VolumeProperties_s(shape.wrapped, found, 1e-12)
    return found.Mass() * 1e-9


def along_y(radius, thickness, x=0.0, z=0.0, y=0.0):
    """A cylinder along y about (x, y, z), mm."""
    return b3d.Pos(x, y, z) * b3d.Rot(90, 0, 0) * b3d.Cylinder(radius, thickness)


def machine_parts():
    """Name -> shape, mm: a crank that turns about y at the origin and points along x, a rod, a piston that slides along x in a bore of
    the frame, and a bucket that stands on the piston."""
    r, length = 1e3 * CRANK, 1e3 * ROD
    end = r + length
    frame = b3d.Pos(0, -45, 0) * b3d.Box(60, 30, 60) - along_y(10, 40, y=-45)
    guide = b3d.Pos(end + 20, 0, 0) * b3d.Box(180, 60, 60) - b3d.Pos(end + 20, 0, 0) * b3d.Rot(0, 90, 0) * b3d.Cylinder(22, 200)
    guide -= b3d.Pos(end + 20, 0, 30) * b3d.Box(200, 40, 60)  # open above, so that less than a full turn is left
    crank = along_y(10, 40, y=-40) + b3d.Pos(r / 2, -15, 0) * b3d.Box(r + 30, 10, 30) + along_y(8, 20, x=r)
    rod = b3d.Pos(r + length / 2, 0, 0) * b3d.Box(length + 24, 10, 24) - along_y(8, 20, x=r) - along_y(6, 20, x=end)
    piston = b3d.Pos(end, 0, 0) * b3d.Rot(0, 90, 0) * b3d.Cylinder(22, 60) - b3d.Pos(end - 20, 0, 0) * b3d.Box(80, 12, 50)
    piston += along_y(6, 30, x=end)
    bucket = b3d.Pos(end, 0, 62) * (b3d.Box(100, 60, 80) - b3d.Pos(0, 0, 5) * b3d.Box(90, 50, 80))
    return {"frame": b3d.Compound([frame, guide]), "crank": crank, "rod": rod, "piston": piston, "bucket": bucket}


def write_slider_crank(path, unit="MM"):
    document, parts = Document(), machine_parts()
    labels = {name: document.product(name, shape) for name, shape in parts.items()}
    document.assembly("slider-crank", [(label, b3d.Location(), name) for name, label in labels.items()])
    return document.write(path, unit)
