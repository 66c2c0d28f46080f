"""Results as a VTKHDF time series: one HDF5 file that ParaView, PyVista and h5py open.

Each frame is a cloud of points, one per body that is there and has a size, with point data (id, velocity, radius, shape,
extent, quaternion, material, geometry). Beside the group ``VTKHDF`` the file holds ``gravel``: the planes of each frame, the
step reports over time, ``joints`` with a row of ``sim.joints`` for each frame, and ``geometries/<number>``, the surfaces of
hulls, compounds and meshes as ``vertices`` and ``triangles`` in the frame of their bodies, which scale them by extent[0]. A
geometry is written when a body first has it. The numbers in ``shape`` are named in the attribute ``shapes``. The file is flushed
after every frame, so that what was written before a stop can be read.
"""

import os
import pathlib
import shutil

import h5py
import numpy as np

from gravel import shapes
from gravel.io.triangles import kind_of, surface_of
from gravel.rotations import rotate
from gravel.shapes import PLANE
from gravel.shapes.geometry import NONE
from gravel.state import ANGULAR, LINEAR, MATERIAL, MOVABLE, SHAPE, STATUS

POINT_DATA = {
    "id": ((), "i4"),
    "velocity": ((3,), "f4"),
    "angular_velocity": ((3,), "f4"),
    "radius": ((), "f4"),  # of the ball around the body
    "shape": ((), "i4"),
    "extent": ((3,), "f4"),
    "quaternion": ((4,), "f4"),
    "material": ((), "i4"),
    "movable": ((), "i4"),  # 0: fixed or with prescribed motion
    "geometry": ((), "i4"),  # number of its surface, or -1
}
VERSION = 4
SHAPES = ("SPHERE", "ELLIPSOID", "CAPSULE", "CYLINDER", "CONE", "BOX", "HULL", "COMPOUND", "MESH", "PLANE")
FRAME_BYTES, SPARE_BYTES = 200, 32_000_000  # room asked for: for each body of a frame, and for the chunks of all arrays
GEOMETRY_BYTES = 4000  # for the group of a geometry, beside its arrays
REPORT_FIELDS = (
    *("time", "contacts", "iterations", "residual", "residual_rms", "converged"),
    *("max_penetration", "kinetic_energy", "joint_violation"),
)
JOINT_FIELDS = ("slide", "slide_speed", "angle", "angle_speed", "force", "torque", "motor_force", "motor_torque", "violation", "broken")


def check_writable(path):
    """Refuse a path that a file cannot be written to, before any work is done."""
    path = pathlib.Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"output {path} is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"output {path} cannot be written: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise PermissionError(f"output {path} cannot be written: no permission")
    return path


def check_room(path, needed):
    """Refuse to write so many bytes where the disk may be full: HDF5 would end the process instead of raising an error."""
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise OSError(f"output {path} cannot be written: its disk has only {free / 1e6:.1f} MB left of the {needed / 1e6:.1f} MB needed")


class ResultWriter:
    """Writes frames of a simulation; use it with ``with``."""

    def __init__(self, path, simulation):
        self.path = check_writable(path)
        self.surfaces = {}  # those that are not yet in the file
        self.written = 0  # geometries that are
        self.simulation = simulation
        self._check_room()
        self.file = h5py.File(path, "w")
        root = self.file.create_group("VTKHDF")
        root.attrs["Version"] = np.array([2, 0], "i8")
        root.attrs.create("Type", b"PolyData", dtype=h5py.string_dtype("ascii", len("PolyData")))
        self._grow(root, "Points", (3,), "f4")
        self._grow(root, "NumberOfPoints", (), "i8")
        for kind in ("Vertices", "Lines", "Polygons", "Strips"):
            group = root.create_group(kind)
            for name in ("NumberOfConnectivityIds", "NumberOfCells", "Offsets", "Connectivity"):
                self._grow(group, name, (), "i8")
        data, steps = root.create_group("PointData"), root.create_group("Steps")
        steps.attrs["NSteps"] = 0
        self._grow(steps, "Values", (), "f8")
        for name in ("PartOffsets", "NumberOfParts", "PointOffsets"):
            self._grow(steps, name, (), "i8")
        for name in ("CellOffsets", "ConnectivityIdOffsets"):
            self._grow(steps, name, (4,), "i8")
        offsets = steps.create_group("PointDataOffsets")
        for name, (shape, dtype) in POINT_DATA.items():
            self._grow(data, name, shape, dtype)
            self._grow(offsets, name, (), "i8")
        self.root = root
        self.reports = []
        self.cells_before = self.cells = 0
        own = self.file.create_group("gravel")
        for name in REPORT_FIELDS:
            self._grow(own, name, (), "f8")
        own.create_group("geometries")
        joints = own.create_group("joints")
        for name in JOINT_FIELDS:
            columns = (3,) if name in ("force", "torque") else ()
            sizes = {"maxshape": (None, None, *columns), "chunks": (16, 64, *columns)}
            joints.create_dataset(name, (0, 0, *columns), "f8", fillvalue=np.nan, **sizes)
        own.attrs["version"] = VERSION
        own.attrs["shapes"] = sorted(SHAPES, key=lambda name: getattr(shapes, name))  # by their numbers
        own.attrs["dt"] = simulation.dt
        own.attrs["solver"] = simulation.solver.describe()
        for name in ("plane_position", "plane_normal"):
            self._grow(own, name, (3,), "f8")
        self._grow(own, "plane_count", (), "i8")  # of each frame

    def _grow(self, group, name, shape, dtype):
        return group.create_dataset(name, (0, *shape), dtype, maxshape=(None, *shape), chunks=(16384, *shape))

    def _append(self, group, name, values):
        data = group[name]
        values = np.asarray(values, data.dtype).reshape(-1, *data.shape[1:])
        data.resize(len(data) + len(values), axis=0)
        data[len(data) - len(values) :] = values

    def _write_planes(self, bodies):
        """Where the planes are in this frame."""
        own, planes = self.file["gravel"], bodies["tag"][:, SHAPE] == PLANE
        self._append(own, "plane_position", bodies["position"][planes])
        self._append(own, "plane_normal", rotate(bodies["quaternion"][planes], bodies["extent"][planes, :3]))
        self._append(own, "plane_count", [np.count_nonzero(planes)])

    def _check_room(self):
        """Refuse to go on where a frame and the surfaces that are new may not fit."""
        for number, geometry in enumerate(self.simulation.geometries[self.written :], self.written):
            if number not in self.surfaces:
                vertices, triangles = surface_of(geometry)
                self.surfaces[number] = kind_of(geometry), vertices.astype("f4"), triangles.astype("i4")
        new = sum(GEOMETRY_BYTES + vertices.nbytes + triangles.nbytes for _, vertices, triangles in self.surfaces.values())
        check_room(self.path, SPARE_BYTES + FRAME_BYTES * len(self.simulation.engine.ids()) + new)

    def _write_geometries(self):
        for number, (kind, vertices, triangles) in self.surfaces.items():
            group = self.file["gravel/geometries"].create_group(str(number))
            group.attrs["shape"] = kind
            group["vertices"], group["triangles"] = vertices, triangles
        self.written += len(self.surfaces)
        self.surfaces.clear()

    def observe(self, report):
        """Take a step's report into the record."""
        self.reports.append([getattr(report, name) for name in REPORT_FIELDS])

    def write_frame(self):
        """The present state becomes one more frame."""
        root, steps = self.root, self.root["Steps"]
        bodies = self.simulation.views.present("id", "position", "quaternion", "velocity", "extent", "tag", "geometry")
        self._check_room()
        self._write_geometries()
        self._write_planes(bodies)
        shown = bodies["tag"][:, SHAPE] != PLANE
        bodies = bodies if shown.all() else {name: values[shown] for name, values in bodies.items()}
        n, before = len(bodies["id"]), len(root["Points"])
        frame = int(steps.attrs["NSteps"])
        parts = root["NumberOfPoints"]
        if frame == 0 or int(parts[-1]) != n:  # another number of bodies: a new set of cells, which later frames share
            self.cells_before, self.cells = self.cells_before + self.cells, n
            self._append(root, "NumberOfPoints", [n])
            for kind in ("Vertices", "Lines", "Polygons", "Strips"):
                count = n if kind == "Vertices" else 0
                for name, values in (
                    ("NumberOfConnectivityIds", [count]),
                    ("NumberOfCells", [count]),
                    ("Offsets", np.arange(count + 1)),
                    ("Connectivity", np.arange(count)),
                ):
                    self._append(root[kind], name, values)
        self._append(root, "Points", bodies["position"])
        values = {
            "id": bodies["id"],
            "velocity": bodies["velocity"][:, LINEAR],
            "angular_velocity": bodies["velocity"][:, ANGULAR],
            "radius": bodies["extent"][:, 3],
            "shape": bodies["tag"][:, SHAPE],
            "extent": bodies["extent"][:, :3],
            "quaternion": bodies["quaternion"],
            "material": bodies["tag"][:, MATERIAL],
            "movable": bodies["tag"][:, STATUS] == MOVABLE,
            "geometry": bodies["geometry"],
        }
        for name in POINT_DATA:
            self._append(root["PointData"], name, values[name])
            self._append(steps["PointDataOffsets"], name, [before])
        self._append(steps, "Values", [self.simulation.time])
        self._append(steps, "PartOffsets", [len(parts) - 1])
        self._append(steps, "NumberOfParts", [1])
        self._append(steps, "PointOffsets", [before])
        for name in ("CellOffsets", "ConnectivityIdOffsets"):
            self._append(steps, name, [[self.cells_before, 0, 0, 0]])
        self._write_joints(frame)
        steps.attrs["NSteps"] = frame + 1
        self._flush_reports()

    def _write_joints(self, frame):
        """A row for the frame; joints that come later are NaN in the rows before."""
        if not len(self.simulation.mechanism):
            return
        table, group = self.simulation.joints, self.file["gravel/joints"]
        group.attrs["names"] = self.simulation.mechanism.names
        for name in JOINT_FIELDS:
            group[name].resize(frame + 1, axis=0)
            group[name].resize(len(table), axis=1)
            group[name][frame] = getattr(table, name)

    def _flush_reports(self):
        columns = np.array(self.reports, float).reshape(-1, len(REPORT_FIELDS))
        for k, name in enumerate(REPORT_FIELDS):
            self._append(self.file["gravel"], name, columns[:, k])
        self.reports.clear()
        self.file.flush()

    def close(self):
        if self.file:
            self._flush_reports()
            self.file.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def open_result(path):
    """An open result file; refuses what is not one with a clear sentence."""
    path = pathlib.Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no result file {path}")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise ValueError(f"{path} is not a result file of gravel: {error}") from None
    if "VTKHDF" not in file or "gravel" not in file:
        file.close()
        raise ValueError(f"{path} is not a result file of gravel: it has no group VTKHDF or gravel")
    version = int(file["gravel"].attrs.get("version", 1))
    if version != VERSION:
        file.close()
        raise ValueError(f"{path} has result version {version}, this gravel reads version {VERSION}")
    return file


def read_frame(path, frame=-1):
    """One frame as a dict of arrays: time, position and the point data; negative frames count from the end.

    "geometries": number -> {"vertices", "triangles"} of those that bodies of the frame have.
    """
    with open_result(path) as file:
        root = file["VTKHDF"]
        steps = root["Steps"]
        count = int(steps.attrs["NSteps"])
        if not -count <= frame < count:
            raise ValueError(f"frame must be from {-count} to {count - 1} for {path}, not {frame}")
        frame %= count
        first, n = int(steps["PointOffsets"][frame]), int(root["NumberOfPoints"][steps["PartOffsets"][frame]])
        data = {name: root["PointData"][name][first : first + n] for name in POINT_DATA}
        counts = file["gravel/plane_count"][: frame + 1]
        own = slice(int(counts[:-1].sum()), int(counts.sum()))
        planes = {name: file["gravel"][name][own] for name in ("plane_position", "plane_normal")}
        position = root["Points"][first : first + n]
        geometries = {int(k): _surface(file[f"gravel/geometries/{k}"]) for k in np.unique(data["geometry"]) if k != NONE}
        return {"time": float(steps["Values"][frame]), "position": position, **data, **planes, "geometries": geometries}


def _surface(group):
    return {name: group[name][:] for name in ("vertices", "triangles")}


def read_joints(path):
    """The joints' table of all frames: arrays (frames, joints) or (frames, joints, 3) by name, with ``time`` and ``names``."""
    with open_result(path) as file:
        group = file["gravel/joints"]
        values = {name: group[name][:] for name in JOINT_FIELDS}
        return {"time": file["VTKHDF/Steps/Values"][:], "names": list(group.attrs.get("names", [])), **values}


def read_reports(path):
    """The step reports of a run as arrays by name."""
    with open_result(path) as file:
        return {name: file["gravel"][name][:] for name in REPORT_FIELDS}
