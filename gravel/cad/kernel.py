"""What the CAD kernel (Open CASCADE) knows of a STEP file. A program of its own, since the kernel takes the whole process with it when
it stumbles over a damaged file: ``python kernel.py QUESTION.json FOLDER`` writes ``model.json`` and ``arrays.npz`` into FOLDER.

Question: ``path``; ``tolerance`` m or null, of the triangles; ``roots``, folders that other files may be in, or null for any.
Answer: ``name``, ``unit``, ``references`` (how many other files it refers to), ``products`` (geometry, each once) and ``parts`` (where
which product is); or ``refused``, a sentence's end.
Lengths are in m, densities 1. It knows nothing of gravel, so that it starts at once.
"""

import json
import math
import os
import sys

import numpy as np
from OCP.Bnd import Bnd_Box
from OCP.BRep import BRep_Tool
from OCP.BRepAdaptor import BRepAdaptor_Surface
from OCP.BRepBndLib import BRepBndLib
from OCP.BRepGProp import BRepGProp
from OCP.BRepMesh import BRepMesh_IncrementalMesh
from OCP.BRepTools import BRepTools
from OCP.GeomAbs import GeomAbs_Cylinder
from OCP.GProp import GProp_GProps
from OCP.IFSelect import IFSelect_RetDone
from OCP.Quantity import Quantity_Color, Quantity_TOC_sRGB
from OCP.ShapeUpgrade import ShapeUpgrade_ShapeDivideAngle
from OCP.STEPCAFControl import STEPCAFControl_Reader
from OCP.STEPConstruct import STEPConstruct_ExternRefs
from OCP.STEPControl import STEPControl_Reader
from OCP.TCollection import TCollection_AsciiString, TCollection_ExtendedString
from OCP.TDataStd import TDataStd_Name
from OCP.TDF import TDF_ChildIterator, TDF_Label, TDF_Tool
from OCP.TDocStd import TDocStd_Document
from OCP.TopAbs import TopAbs_FACE, TopAbs_REVERSED, TopAbs_SHELL, TopAbs_SOLID
from OCP.TopExp import TopExp_Explorer
from OCP.TopLoc import TopLoc_Location
from OCP.TopoDS import TopoDS
from OCP.XCAFDoc import XCAFDoc_ColorGen, XCAFDoc_ColorSurf, XCAFDoc_ColorTool, XCAFDoc_DocumentTool, XCAFDoc_ShapeTool

MM = 1e-3  # m: what the kernel reads every file into
FINE = 1e-3  # of a part's size: how far triangles may be from the surface unless told
ANGLE = 0.35  # rad between the normals of neighbours: 18 around a cylinder
EXACT = 1e-12  # of the volume: where the integration stops
LARGEST_DIFFERENCE = 1e-6  # of two integrations of one volume
MOST_PARTS = 100_000
DEEPEST = 100  # assemblies in assemblies


as_face = getattr(TopoDS, "Face_s", None) or TopoDS.Face  # its name before Open CASCADE 8, and since


class Refused(Exception):
    """Its words end the sentence "path must be a STEP file, but FILE ..."."""


# --- the file
def read(path, roots):
    """The document of a file, the name of its length unit, and how many other files it refers to."""
    reader = STEPCAFControl_Reader()
    reader.SetNameMode(True)
    reader.SetColorMode(True)
    read_into(reader, path)
    references = set()
    check_references(path, reader.Reader(), roots, references)
    document = TDocStd_Document(TCollection_ExtendedString("XCAF"))
    if not reader.Transfer(document):
        raise Refused("holds no part that can be read")
    return document, unit_of(reader.Reader()), len(references)


def read_into(reader, path):
    if reader.ReadFile(path) != IFSelect_RetDone:
        raise Refused("cannot be read as one")


def check_references(path, reader, roots, seen):
    """The files that a STEP file refers to, and those that these refer to, must be in one of the folders ``roots``."""
    references = STEPConstruct_ExternRefs(reader.WS())
    references.LoadExternRefs()
    for number in range(1, references.NbExternRefs() + 1):
        name = references.FileName(number)
        other = os.path.realpath(os.path.join(os.path.dirname(path), name))
        if roots is not None and not any(os.path.commonpath([root, other]) == root for root in roots):
            raise Refused(f"refers to {name!r}, which leads to {other!r}, outside its folder; outside_files=True allows files anywhere")
        if not os.path.isfile(other):
            raise Refused(f"refers to {name!r}, which {'is no file' if os.path.exists(other) else 'does not exist'}")
        if other not in seen:
            seen.add(other)
            inner = STEPControl_Reader()
            read_into(inner, other)
            check_references(other, inner, roots, seen)


def unit_of(reader):
    """The name of the file's length unit in small letters, or of the first if there are several."""
    try:
        from OCP.collections import Sequence_TCollection_AsciiString as Names
    except ImportError:  # before Open CASCADE 8
        from OCP.TColStd import TColStd_SequenceOfAsciiString as Names
    lengths, angles, solid_angles = Names(), Names(), Names()
    reader.FileUnits(lengths, angles, solid_angles)
    return lengths.Value(1).ToCString().lower() if lengths.Length() else "millimetre"


# --- the tree
class Tree:
    """The products of a document and where they are."""

    def __init__(self, document):
        self.tool = XCAFDoc_DocumentTool.ShapeTool_s(document.Main())
        self.colours = XCAFDoc_DocumentTool.ColorTool_s(document.Main())
        self.shapes, self.numbers, self.parts = [], {}, []  # of products; entry of a label -> number of the product; parts
        self.counted, self.walked = {}, 0
        roots = [label for label in children_of(self.tool.Label()) if self.tool.IsFree_s(label)]
        if sum(map(self.count, roots)) > MOST_PARTS:
            raise Refused(f"holds more than {MOST_PARTS} parts")
        for label in roots:
            self.walk(label, (), np.eye(4), None)
        self.name = name_of(roots[0]) if len(roots) == 1 else ""

    def target(self, label):
        """The product that a label stands for."""
        if not XCAFDoc_ShapeTool.IsReference_s(label):
            return label
        referred = TDF_Label()
        if not XCAFDoc_ShapeTool.GetReferredShape_s(label, referred) or referred.IsNull():
            raise Refused("places a part that it does not hold")
        return referred

    def count(self, label, depth=0):
        """How many parts there are below a label, without going to each."""
        if depth > DEEPEST:
            raise Refused(f"nests assemblies more than {DEEPEST} deep")
        product = self.target(label)
        key = entry_of(product)
        if key not in self.counted:
            inner = self.components(product)
            self.counted[key] = sum(self.count(one, depth + 1) for one in inner) if inner else 1
        return self.counted[key]

    def components(self, product):
        if not XCAFDoc_ShapeTool.IsAssembly_s(product):
            return []
        return [label for label in children_of(product) if XCAFDoc_ShapeTool.IsComponent_s(label)]

    def walk(self, label, above, pose, colour):
        """Note the parts below a label. ``above``: (name of the product, of the instance, a number of its own) of each assembly around it,
        whose colour holds for what has none."""
        product = self.target(label)
        pose = pose @ pose_of(XCAFDoc_ShapeTool.GetLocation_s(label))
        own = label_colour(label) or label_colour(product)
        self.walked += 1
        path = (*above, (name_of(product), name_of(label), self.walked))
        inner = self.components(product)
        for component in inner:
            self.walk(component, path, pose, own or colour)
        if not inner:
            self.note(product, path, pose, own, colour)

    def note(self, product, path, pose, own, colour):
        """Note one part. Colours: ``own``, or that of its solid or faces, or that of an assembly around it."""
        shape, key = XCAFDoc_ShapeTool.GetShape_s(product), entry_of(product)
        if shape.IsNull():
            return
        if key not in self.numbers:
            self.numbers[key] = len(self.shapes)
            self.shapes.append(shape)
        colour = own or self.colour_of_faces(shape) or colour
        self.parts.append({"product": self.numbers[key], "path": path, "pose": pose.tolist(), "colour": colour})

    def colour_of_faces(self, shape):
        """That of the solid, or of most of its faces."""
        found = {}
        for kind in (TopAbs_SOLID, TopAbs_FACE):
            for one in inner_shapes(shape, kind):
                colour = shape_colour(self.colours, one)
                found[colour] = found.get(colour, 0) + 1
            found.pop(None, None)
            if found:
                return max(found, key=found.get)
        return None


def children_of(label):
    found, walk = [], TDF_ChildIterator(label)
    while walk.More():
        found.append(walk.Value())
        walk.Next()
    return found


def entry_of(label):
    entry = TCollection_AsciiString()
    TDF_Tool.Entry_s(label, entry)
    return entry.ToCString()


def name_of(label):
    name = TDataStd_Name()
    return name.Get().ToExtString() if label.FindAttribute(TDataStd_Name.GetID_s(), name) else ""


def label_colour(label):
    colour = Quantity_Color()
    found = any(XCAFDoc_ColorTool.GetColor_s(label, kind, colour) for kind in (XCAFDoc_ColorSurf, XCAFDoc_ColorGen))
    return srgb(colour) if found else None


def shape_colour(tool, shape):
    colour = Quantity_Color()
    found = any(tool.GetColor(shape, kind, colour) for kind in (XCAFDoc_ColorSurf, XCAFDoc_ColorGen))
    return srgb(colour) if found else None


def srgb(colour):
    return tuple(round(float(value), 6) for value in colour.Values(Quantity_TOC_sRGB))


def pose_of(location):
    """4 x 4, m."""
    move = location.Transformation()
    if abs(move.ScaleFactor() - 1.0) > 1e-9:
        raise Refused(f"places a part at a scale of {move.ScaleFactor():g}, and only turned and moved parts can be read")
    pose = np.eye(4)
    pose[:3] = [[move.Value(row, column) for column in (1, 2, 3, 4)] for row in (1, 2, 3)]
    pose[:3, 3] *= MM
    return pose


def inner_shapes(shape, kind):
    found, walk = [], TopExp_Explorer(shape, kind)
    while walk.More():
        found.append(walk.Current())
        walk.Next()
    return found


# --- one product
def product_of(shape, tolerance):
    """(facts, arrays) of one product in its own coordinates."""
    box = Bnd_Box()
    BRepBndLib.Add_s(shape, box)
    if box.IsVoid() or not inner_shapes(shape, TopAbs_FACE):
        return {"open": 0, "size": 0.0, "cylinders": [], **mass_of([])}, empty_mesh()
    size = math.sqrt(box.SquareExtent()) * MM
    solids = [solid for solid in inner_shapes(shape, TopAbs_SOLID) if is_closed(solid)]
    facts = {"open": len(inner_shapes(shape, TopAbs_SOLID)) - len(solids), "size": size}
    facts |= mass_of(solids)
    shapes = solids or [shape]
    # one tolerance for all, since an edge between two faces is cut once
    deflection = (FINE * size if tolerance is None else tolerance) / MM
    meshes = []
    for one in shapes:
        BRepMesh_IncrementalMesh(one, deflection, False, ANGLE, False)
        meshes.append(triangles_of(one))
    facts["cylinders"] = [cylinder for one in shapes for cylinder in cylinders_of(one)]
    return facts, joined(meshes)


def is_closed(solid):
    """Whether no edge of it has a face on one side only."""
    shells = inner_shapes(solid, TopAbs_SHELL)
    return bool(shells) and all(BRep_Tool.IsClosed_s(shell) for shell in shells)


def mass_of(solids):
    """Volume, centre and inertia about the centre (density 1) of solids together, as exact as the kernel can."""
    volume, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
    for solid in solids:
        one = integrals_of(solid)
        sign = 1.0 if one[0] > 0.0 else -1.0  # inside out
        volume, first, second = volume + sign * one[0], first + sign * one[1], second + sign * one[2]
    if not volume > 0.0:
        return {"volume": 0.0, "centre": [0.0] * 3, "inertia": np.zeros((3, 3)).tolist()}
    centre = first / volume
    inertia = second - volume * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    return {"volume": volume * MM**3, "centre": (centre * MM).tolist(), "inertia": (inertia * MM**5).tolist()}


def integrals_of(solid):
    """(volume, first moments, tensor of inertia about the origin).

    The kernel's integration over a face stops when the volume has converged, by when the moments of a face that goes all the way
    round may still be wrong in the fourth digit. Cut into quarters, faces get the moments as right as the volume.
    """
    whole = integrated(solid)
    divide = ShapeUpgrade_ShapeDivideAngle(math.pi / 2, solid)
    if not divide.Perform():
        return whole
    quarters = integrated(divide.Result())
    return quarters if abs(quarters[0] - whole[0]) <= LARGEST_DIFFERENCE * abs(whole[0]) else whole


def integrated(solid):
    found = GProp_GProps()
    BRepGProp.VolumeProperties_s(solid, found, EXACT)
    volume, centre, tensor = found.Mass(), np.array(found.CentreOfMass().Coord()), found.MatrixOfInertia()
    inertia = np.array([[tensor.Value(row, column) for column in (1, 2, 3)] for row in (1, 2, 3)])
    return volume, volume * centre, inertia + volume * (centre @ centre * np.eye(3) - np.outer(centre, centre))


def empty_mesh():
    return np.zeros((0, 3)), np.zeros((0, 3), np.int64)


def triangles_of(shape):
    """(vertices m, triangles counter-clockwise from outside) of a shape that has been cut into triangles."""
    meshes = [empty_mesh()]
    for face in inner_shapes(shape, TopAbs_FACE):
        place = TopLoc_Location()
        mesh = BRep_Tool.Triangulation_s(as_face(face), place)
        if mesh is None:
            raise Refused("has a face that the CAD kernel cannot cut into triangles")
        move = place.Transformation()
        nodes = [mesh.Node(k).Transformed(move).Coord() for k in range(1, mesh.NbNodes() + 1)]
        corners = np.array([mesh.Triangle(k).Get() for k in range(1, mesh.NbTriangles() + 1)], np.int64).reshape(-1, 3) - 1
        meshes.append((MM * np.array(nodes).reshape(-1, 3), corners[:, ::-1] if face.Orientation() == TopAbs_REVERSED else corners))
    vertices, triangles = joined(meshes)
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    inside_out = len(inner_shapes(shape, TopAbs_SOLID)) and np.einsum("ni,ni->", a, np.cross(b, c)) < 0
    return vertices, triangles[:, ::-1] if inside_out else triangles


def joined(meshes):
    starts = np.cumsum([0, *(len(vertices) for vertices, _ in meshes)])
    return np.concatenate([vertices for vertices, _ in meshes]), np.concatenate([t + start for (_, t), start in zip(meshes, starts)])


def cylinders_of(shape):
    """The cylindrical faces: a point on the axis, direction, radius, from where to where along the direction, how far round (rad), and
    whether the solid is around it (a hole)."""
    found = []
    for one in inner_shapes(shape, TopAbs_FACE):
        face = as_face(one)
        surface = BRepAdaptor_Surface(face)
        if surface.GetType() != GeomAbs_Cylinder:
            continue
        cylinder = surface.Cylinder()
        frame = cylinder.Position()
        u0, u1, v0, v1 = BRepTools.UVBounds_s(face)
        hole = (face.Orientation() == TopAbs_REVERSED) == frame.Direct()
        found.append(
            {
                "point": [MM * x for x in frame.Location().Coord()],
                "direction": list(frame.Direction().Coord()),
                "radius": MM * cylinder.Radius(),
                "low": MM * v0,
                "high": MM * v1,
                "round": u1 - u0,
                "hole": hole,
            }
        )
    return found


def main(question, folder):
    with open(question, encoding="utf-8") as file:
        asked = json.load(file)
    arrays = {}
    try:
        document, unit, references = read(asked["path"], asked["roots"])
        tree = Tree(document)
        answer = {"name": tree.name, "unit": unit, "references": references, "parts": tree.parts, "products": []}
        for number, shape in enumerate(tree.shapes):
            facts, (vertices, triangles) = product_of(shape, asked["tolerance"])
            answer["products"].append(facts)
            arrays |= {f"vertices{number}": vertices, f"triangles{number}": triangles}
    except Refused as error:
        answer = {"refused": str(error)}
    np.savez(os.path.join(folder, "arrays.npz"), **arrays)
    with open(os.path.join(folder, "model.json"), "w", encoding="utf-8") as file:
        json.dump(answer, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
