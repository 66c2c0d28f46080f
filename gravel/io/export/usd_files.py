"""A USD file (.usdc, .usda or .usd), for Omniverse, Blender, Houdini and the like: a ``PointInstancer`` with time samples.

Metres, z up; a second has 24 time codes, so that a run plays in real time. Each kind of shape and colour is a prototype, the bodies of a
frame are arrays of places, turns, scales and prototypes: bodies may come and go, and colours change. Needs usd-core (extra usd).
"""

import os

import numpy as np

from gravel.io.export.chosen import need
from gravel.io.export.instances import COLOURS, GREY, Palette, is_sphere, keys_of, linear, mesh_of, scales_of  # noqa: F401
from gravel.io.outputs import replaced
from gravel.io.surfaces import squares

ENDINGS = (".usdc", ".usda", ".usd")
RATE = 24.0  # time codes a second
ROW_BYTES, SAVE_AFTER = 64, 100_000_000  # of a body in a frame; so many bytes are kept in memory at most, before they go to the disk


def write(chosen, output):
    """NAME.usdc."""
    need("pxr", "usd", "export to usd")
    palette = Palette(chosen)
    with replaced(output) as path:
        stage = Stage(path, palette.colours)
        for _, data in chosen:
            stage.add(data, palette.numbers(data), float(data["time"] - chosen.times[0]))
            yield
        stage.save(data, float(chosen.times[-1] - chosen.times[0]))
    return [output]


class Stage:
    """A USD stage that frames are added to."""

    def __init__(self, path, colours):
        from pxr import Usd, UsdGeom

        path.unlink(missing_ok=True)
        self.colours, self.prototypes, self.unsaved = colours, {}, 0
        self.stage = Usd.Stage.CreateNew(os.fspath(path))
        UsdGeom.SetStageUpAxis(self.stage, UsdGeom.Tokens.z)
        UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)
        self.stage.SetTimeCodesPerSecond(RATE)
        self.stage.SetDefaultPrim(UsdGeom.Xform.Define(self.stage, "/gravel").GetPrim())
        self.bodies = UsdGeom.PointInstancer.Define(self.stage, "/gravel/bodies")

    def add(self, data, colours, time):
        """A frame, so many s after the first."""
        from pxr import Vt

        code, bodies = RATE * time, self.bodies
        keys, which = keys_of(data)
        pairs, place = np.unique(np.stack([which, colours], axis=1), axis=0, return_inverse=True)
        numbers = np.array([self._prototype(keys[key], int(colour), data) for key, colour in pairs], "i4")[place.reshape(-1)]
        turn = data["quaternion"].astype(float)
        turn /= np.maximum(np.linalg.norm(turn, axis=1, keepdims=True), 1e-30)
        bodies.CreateProtoIndicesAttr().Set(Vt.IntArray.FromNumpy(numbers), code)
        bodies.CreateIdsAttr().Set(Vt.Int64Array.FromNumpy(data["id"].astype("i8")), code)
        bodies.CreatePositionsAttr().Set(Vt.Vec3fArray.FromNumpy(data["position"].astype("f4")), code)
        bodies.CreateOrientationsAttr().Set(Vt.QuathArray.FromNumpy(turn[:, [1, 2, 3, 0]].astype("f2")), code)  # known to all readers
        bodies.CreateScalesAttr().Set(Vt.Vec3fArray.FromNumpy(scales_of(data).astype("f4")), code)
        bodies.CreateVelocitiesAttr().Set(Vt.Vec3fArray.FromNumpy(data["velocity"].astype("f4")), code)
        self.unsaved += ROW_BYTES * len(numbers)
        if self.unsaved > SAVE_AFTER:
            self.stage.GetRootLayer().Save()
            self.unsaved = 0

    def _prototype(self, key, colour, data):
        """The number of a mesh in a colour."""
        if (key, colour) not in self.prototypes:
            number = len(self.prototypes)
            path = f"/gravel/bodies/prototypes/shape_{number}"
            self._define(path, key, colour, data["geometries"])
            self.bodies.CreatePrototypesRel().AddTarget(path)
            self.prototypes[key, colour] = number
        return self.prototypes[key, colour]

    def _define(self, path, key, colour, geometries):
        from pxr import Gf, UsdGeom

        if is_sphere(key):
            shape = UsdGeom.Sphere.Define(self.stage, path)
            shape.CreateRadiusAttr(1.0)
        else:
            vertices, faces = mesh_of(key, geometries)
            shape = self._mesh(path, vertices, faces)
        shape.CreateDisplayColorAttr([Gf.Vec3f(*linear(self.colours[colour]))])

    def _mesh(self, path, vertices, faces):
        from pxr import UsdGeom, Vt

        mesh = UsdGeom.Mesh.Define(self.stage, path)
        mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(vertices, "f4")))
        mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(faces), np.shape(faces)[1], "i4")))
        mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(np.ascontiguousarray(faces, "i4").ravel()))
        mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
        return mesh

    def save(self, data, seconds):
        """The floors of the last frame, and the end."""
        from pxr import Gf

        points, _, cells = squares(data)
        if len(cells["Polygons"]):
            floors = self._mesh("/gravel/floors", points, cells["Polygons"])
            floors.CreateDisplayColorAttr([Gf.Vec3f(*linear(GREY))])
        self.stage.SetStartTimeCode(0.0)
        self.stage.SetEndTimeCode(RATE * seconds)
        self.stage.GetRootLayer().Save()
        del self.stage  # which keeps the file open
