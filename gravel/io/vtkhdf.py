"""Results as a VTKHDF time series: one HDF5 file that ParaView, PyVista and h5py open.

Each frame is a cloud of points, one per body that is there and has a size, with point data (id, velocity, radius, shape,
extent, quaternion, mass, inertia, material, geometry). Beside the group ``VTKHDF`` the file holds ``gravel``: the planes of each
frame, gravity and how long before the frame its contacts were found, the step reports over time, ``joints`` with a row of
``sim.joints`` for each frame, ``contact_table`` where it was asked for (``gravel.io.contact_results``), and ``geometries/<number>``,
the surfaces of hulls, compounds and meshes as ``vertices`` and ``triangles`` in the frame of their bodies, which scale them by
extent[0]. A geometry is written when a body first has it. The numbers in ``shape`` are named in the attribute ``shapes``, and ``run``
is the run that the frames are of: one that goes on from a checkpoint goes on with its file. The file is flushed after every frame, so
that what was written before a stop can be read. ``gravel.io.result`` reads it all. Of many processes, each writes such a file of its
own bodies, with the point data ``rank``, and ``gravel.io.parts`` an index to them.
"""

import contextlib
import ctypes
import errno
import os
import pathlib
import shutil

import h5py
import numpy as np

from gravel import shapes
from gravel.cell import Cell, Deformation
from gravel.io.contact_results import ContactsGroup, contact_lengths
from gravel.io.joined import is_index, joined_frame, joined_joints, joined_reports
from gravel.io.sound import DAMAGE, all_rows, rows_of, stored
from gravel.io.triangles import kind_of, surface_of
from gravel.rotations import rotate
from gravel.shapes import PLANE
from gravel.shapes.geometry import NONE
from gravel.state import ANGULAR, LINEAR, MATERIAL, SHAPE, STATUS, can_move

try:
    import resource
except ImportError:  # no such limit on this system
    resource = None  # type: ignore[assignment]
allocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None) if os.name == "posix" else None

POINT_DATA = {
    "id": ((), "i4"),
    "velocity": ((3,), "f4"),
    "angular_velocity": ((3,), "f4"),
    "radius": ((), "f4"),  # of the ball around the body
    "shape": ((), "i4"),
    "extent": ((3,), "f4"),
    "quaternion": ((4,), "f4"),
    "mass": ((), "f4"),  # kg; 0 of bodies that forces cannot move
    "inertia": ((3,), "f4"),  # kg m2, principal moments; 0 likewise
    "material": ((), "i4"),
    "movable": ((), "i4"),  # 0: fixed or with prescribed motion
    "geometry": ((), "i4"),  # number of its surface, or -1
}
RANK = {"rank": ((), "i4")}  # the process that wrote the body, in files of one of many
CIRCUMSTANCES = {  # of each frame
    "plane_count": ((), "i8"),
    "gravity": ((3,), "f8"),  # m/s2
    "cell": ((13,), "f8"),  # where space is periodic: ``cell_numbers``
    "frame_dt": ((), "f8"),  # s, length of the step before it
    "contact_lag": ((), "f8"),  # s: its contacts were found so long before it
}
VERSION = 5
ENDINGS = (".vtkhdf", ".hdf", ".h5")
KINDS = ("Vertices", "Lines", "Polygons", "Strips")
SHAPES = ("SPHERE", "ELLIPSOID", "CAPSULE", "CYLINDER", "CONE", "BOX", "HULL", "COMPOUND", "MESH", "PLANE")
FRAME_BYTES, SPARE_BYTES = 200, 32_000_000  # room asked for: for each body of a frame, and for the chunks of all arrays
GEOMETRY_BYTES = 4000  # for the group of a geometry, beside its arrays
REPORT_FIELDS = (
    *("time", "contacts", "iterations", "residual", "residual_rms", "converged"),
    *("max_penetration", "kinetic_energy", "joint_violation"),
)
JOINT_FIELDS = ("slide", "slide_speed", "angle", "angle_speed", "force", "torque", "motor_force", "motor_torque", "violation", "broken")


def check_writable(path, suffix=""):
    """Refuse a path that a file cannot be written to, before any work is done; returns it, of a symbolic link what it leads to.
    ``suffix``: what is added to the name while the file is being written."""
    path = pathlib.Path(path)
    longest = os.pathconf(path.parent, "PC_NAME_MAX") if hasattr(os, "pathconf") and path.parent.is_dir() else 255
    if len(os.fsencode(path.name + suffix)) > longest:
        raise OSError(f"output {path.name[:40]}... cannot be written: a name may have {longest - len(suffix)} bytes here")
    if path.is_symlink():
        path = pathlib.Path(os.path.realpath(path))
    if path.is_dir():
        raise IsADirectoryError(f"output {path} is a folder; give the name of a file")
    if path.exists() and not path.is_file():
        raise OSError(f"output {path} is neither a new nor an ordinary file (a pipe or a device, perhaps); give the name of a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"output {path} cannot be written: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise PermissionError(f"output {path} cannot be written: no permission")
    return path


def check_ending(argument, path, endings):
    """Refuse a name whose ending says that the file is something else."""
    name = pathlib.Path(path).name
    if not name.lower().endswith(endings):
        raise ValueError(f"{argument} must be a file whose name ends in {', '.join(endings[:-1])} or {endings[-1]}, not {name!r:.80}")


def check_room(path, needed):
    """Refuse to write so many bytes where the disk may be full: HDF5 would end the process instead of raising an error."""
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise OSError(f"output {path} cannot be written: its disk has only {free / 1e6:.1f} MB left of the {needed / 1e6:.1f} MB needed")


class Reserve:
    """Room on the disk that is ours before anything is written into it. HDF5 cannot go back when a write fails in the middle: the file
    would be lost, and the process might end in a crash."""

    KEEP_SIZE = 1  # of fallocate: blocks beyond the end of the file, which stays where it is

    def __init__(self, path):
        self.path, self.descriptor = path, os.open(path, os.O_WRONLY)

    def ask(self, needed):
        """Refuse with a sentence where so many bytes more cannot be had, be it for the disk, a quota or a limit of the process."""
        size = os.fstat(self.descriptor).st_size
        if resource is not None and 0 <= (most := resource.getrlimit(resource.RLIMIT_FSIZE)[0]) < size + needed:
            raise OSError(f"output {self.path} cannot grow: this process may write files of {most / 1e6:.1f} MB at most")
        if allocate is None:
            return
        ctypes.set_errno(0)
        if allocate(self.descriptor, self.KEEP_SIZE, ctypes.c_long(size), ctypes.c_long(needed)) != 0:
            number = ctypes.get_errno()
            if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
                raise OSError(number, f"output {self.path} cannot be written: {os.strerror(number)}, {needed / 1e6:.1f} MB were asked for")

    def give_back(self):
        """What was not used goes back."""
        os.ftruncate(self.descriptor, os.fstat(self.descriptor).st_size)
        os.close(self.descriptor)


class ResultWriter:
    """Writes frames of a simulation; use it with ``with``."""

    def __init__(self, path, simulation, contacts=False, keep=None, rank=None):
        """``contacts``: whether each frame gets the contacts of its step. ``keep``: how many frames of the file stay (None: those of an
        earlier time of this very run); ``rank``: of the process, which is then written with its own bodies."""
        self.path = check_writable(path)
        check_ending("save", path, ENDINGS)
        self.surfaces = {}  # those that are not yet in the file
        self.written = 0  # geometries that are
        self.simulation = simulation
        self.reports = []
        self.cells_before = self.cells = 0
        self.rank, self.point_data = rank, POINT_DATA if rank is None else {**POINT_DATA, **RANK}
        self.bodies = self.contact_rows = 0  # in the last frame
        kept = frames_before(self.path, simulation)
        kept = kept if keep is None else min(keep, kept)
        self._check_room()
        self.file = h5py.File(self.path, "r+" if kept else "w")
        self.reserve = Reserve(self.path)
        try:
            if kept:
                with reading(self.path):
                    self._cut(kept)
            else:
                self._lay_out()
            self.root, own = self.file["VTKHDF"], self.file["gravel"]
            self.contacts = ContactsGroup(own) if contacts else None
            own.attrs["run"] = simulation.run_id
            own.attrs["dt"] = simulation.dt
            own.attrs["solver"] = simulation.solver.describe()
        except BaseException:
            self.file.close()
            self.reserve.give_back()
            raise

    def _lay_out(self):
        """The groups and arrays of an empty file."""
        root = self.file.create_group("VTKHDF")
        root.attrs["Version"] = np.array([2, 0], "i8")
        root.attrs.create("Type", b"PolyData", dtype=h5py.string_dtype("ascii", len("PolyData")))
        self._grow(root, "Points", (3,), "f4")
        self._grow(root, "NumberOfPoints", (), "i8")
        for kind in KINDS:
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
        for name, (shape, dtype) in self.point_data.items():
            self._grow(data, name, shape, dtype)
            self._grow(offsets, name, (), "i8")
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
        for name in ("plane_position", "plane_normal"):
            self._grow(own, name, (3,), "f8")
        for name, (shape, dtype) in CIRCUMSTANCES.items():
            self._grow(own, name, shape, dtype)

    def _cut(self, frames):
        """Leave so many frames of an earlier part of the run, and the reports up to now; what lies behind them goes, also a frame that
        was begun and not finished."""
        steps, own = self.file["VTKHDF/Steps"], self.file["gravel"]
        lengths = list(self._lengths(frames))
        for data, length in lengths:
            if len(data) < length:
                raise ValueError(f"{data.name} is shorter than its frames")
        steps.attrs["NSteps"] = frames
        for data, length in lengths:
            data.resize(length, axis=0)
        self.cells_before, self.cells = int(steps["CellOffsets"][-1, 0]), int(self.file["VTKHDF/NumberOfPoints"][-1])
        for number in [number for number in own["geometries"] if int(number) >= len(self.simulation.geometries)]:
            del own["geometries"][number]
        self.written = len(own["geometries"])
        self.surfaces = {number: surface for number, surface in self.surfaces.items() if number >= self.written}

    def _lengths(self, frames):
        """(array, rows that so many frames have in it), for all arrays of the file."""
        root, own = self.file["VTKHDF"], self.file["gravel"]
        steps, joints = root["Steps"], own["joints"]
        parts = stored(root, "NumberOfPoints")[: int(stored(steps, "PartOffsets")[frames - 1]) + 1]
        points, cells = int(stored(steps, "PointOffsets")[frames - 1]) + int(parts[-1]), int(parts.sum())
        reports = stored(own, "time")[: min(len(stored(own, name)) for name in REPORT_FIELDS)]
        steps_taken = int(np.count_nonzero(reports <= self.simulation.time + hair(self.simulation)))
        planes = int(stored(own, "plane_count")[:frames].sum())
        for name in ("Values", "PartOffsets", "NumberOfParts", "PointOffsets", "CellOffsets", "ConnectivityIdOffsets"):
            yield stored(steps, name), frames
        for name in self.point_data:
            yield stored(steps["PointDataOffsets"], name), frames
            yield stored(root["PointData"], name), points
        yield stored(root, "Points"), points
        yield stored(root, "NumberOfPoints"), len(parts)
        for kind in KINDS:
            own_cells = cells if kind == "Vertices" else 0
            for name in ("NumberOfConnectivityIds", "NumberOfCells"):
                yield stored(root[kind], name), len(parts)
            yield stored(root[kind], "Offsets"), own_cells + len(parts)  # each set of cells has one more than cells
            yield stored(root[kind], "Connectivity"), own_cells
        for name in REPORT_FIELDS:
            yield stored(own, name), steps_taken
        for name in JOINT_FIELDS:  # none before the first joint was made
            yield stored(joints, name), min(frames, len(joints[name]))
        for name in ("plane_count", "gravity", "frame_dt", "contact_lag"):
            yield stored(own, name), frames
        yield stored(own, "cell"), min(frames, len(own["cell"]))  # none where space is not periodic
        for name in ("plane_position", "plane_normal"):
            yield stored(own, name), planes
        yield from contact_lengths(own, frames)

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
        needed = SPARE_BYTES + FRAME_BYTES * len(self.simulation.engine.ids()) + new
        check_room(self.path, needed)
        return needed

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
        bodies = self._own_bodies()
        self.reserve.ask(self._check_room())
        self._write_geometries()
        self._write_planes(bodies)
        shown = bodies["tag"][:, SHAPE] != PLANE
        bodies = bodies if shown.all() else {name: values[shown] for name, values in bodies.items()}
        n, before = len(bodies["id"]), len(root["Points"])
        frame = int(steps.attrs["NSteps"])
        if self.contacts is not None:
            self.contact_rows = self.contacts.write(frame, self.simulation, self.reserve)
        self._write_circumstances()
        masses = np.divide(1.0, bodies["inverse_mass"], out=np.zeros((n, 4)), where=bodies["inverse_mass"] > 0)
        parts = root["NumberOfPoints"]
        if frame == 0 or int(parts[-1]) != n:  # another number of bodies: a new set of cells, which later frames share
            self.cells_before, self.cells = self.cells_before + self.cells, n
            self._append(root, "NumberOfPoints", [n])
            for kind in KINDS:
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
            "mass": masses[:, 0],
            "inertia": masses[:, 1:],
            "material": bodies["tag"][:, MATERIAL],
            "movable": can_move(bodies["tag"][:, STATUS]),
            "geometry": bodies["geometry"],
            "rank": np.full(n, self.rank or 0),
        }
        for name in self.point_data:
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
        self.bodies = n
        self._flush_reports()

    def _own_bodies(self):
        """Fields of the bodies that this process writes."""
        simulation = self.simulation
        bodies = simulation.views.present("id", "position", "quaternion", "velocity", "inverse_mass", "extent", "tag", "geometry")
        if simulation.team.size == 1:
            return bodies
        own = np.isin(bodies["id"], simulation.own_ids())
        return {name: values[own] for name, values in bodies.items()}

    def _write_circumstances(self):
        """What may change from frame to frame beside the bodies."""
        own, simulation = self.file["gravel"], self.simulation
        self._append(own, "gravity", simulation.gravity)
        self._append(own, "frame_dt", [simulation.dt])
        if simulation.cell is not None:
            self._append(own, "cell", [cell_numbers(simulation.cell)])
        self._append(own, "contact_lag", [simulation.contact_lag])

    def _write_joints(self, frame):
        """A row for the frame; joints that come later are NaN in the rows before. Of several processes the first writes them."""
        if not len(self.simulation.mechanism) or self.simulation.team.rank:
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
        if not self.file:
            return
        try:
            self.reserve.ask(SPARE_BYTES)
            self._flush_reports()
        finally:
            self.file.close()
            self.reserve.give_back()

    def abandon(self):
        """Close the file without asking other processes (``gravel.io.parts``)."""
        self.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# --- the periodic cell, as numbers
def cell_numbers(cell):
    """(13,) low and high corner (0 and 0 along axes that are open), tilt, the axes of its shear, rates of its lengths, shear rate."""
    if cell is None:
        return np.zeros(13)
    low, high = (np.where(cell.periodic, corner, 0.0) for corner in (cell.low, cell.high))
    direction, gradient = cell.to_values()["axes"]
    return np.array([*low, *high, cell.tilt, direction, gradient, *cell.rate, cell.shear_rate])


def cell_of(numbers):
    """The cell of ``cell_numbers``, as it was in its frame and goes on at its rates."""
    low, high, (tilt, direction, gradient), rate, shear_rate = np.split(numbers[:12], 4) + [float(numbers[12])]
    axes = ["xyz"[int(axis)] for axis in (direction, gradient)]
    law = Deformation(strain_rate=rate, shear_rate=shear_rate, direction=axes[0], gradient=axes[1])
    cell = Cell([(a, b) if a < b else None for a, b in zip(low, high)], law)
    cell.tilt = float(tilt)
    return cell


# --- reading


def frames_before(path, simulation):
    """How many frames of the file at this path are of an earlier time of this very run: 0 where there is no file, or it is a result of
    another run, which may be replaced; what is no result is refused."""
    if not path.exists() or path.stat().st_size == 0:
        return 0
    try:
        with h5py.File(path, "r") as file:
            ours = "VTKHDF" in file and "gravel" in file
            same = ours and (file["gravel"].attrs.get("run"), file["gravel"].attrs.get("version")) == (simulation.run_id, VERSION)
            times = stored(file["VTKHDF/Steps"], "Values")[: int(file["VTKHDF/Steps"].attrs["NSteps"])] if same else ()
    except DAMAGE as error:
        raise ValueError(f"output {path} is there already and cannot be read as a result of gravel; it stays as it is: {error}") from None
    if not ours:
        raise ValueError(f"output {path} is there already and is no result of gravel; remove it or give another name")
    return int(np.count_nonzero(np.asarray(times) < simulation.time - hair(simulation)))


def hair(simulation):
    """s: times that differ by less are one."""
    return 1e-6 * simulation.dt + 1e-12 * abs(simulation.time)


@contextlib.contextmanager
def reading(path):
    """What goes wrong inside is the fault of the file."""
    try:
        yield
    except DAMAGE as error:
        raise ValueError(f"{path} cannot be read as a result of gravel: {' '.join(str(error).split())}") from None


def open_result(path):
    """An open result file; refuses what is not one with a clear sentence."""
    path = pathlib.Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no result file {path}")
    try:
        file = h5py.File(path, "r")
    except (OSError, RuntimeError) as error:
        raise ValueError(f"{path} is not a result file of gravel: {error}") from None
    try:
        with reading(path):
            ours = "VTKHDF" in file and "gravel" in file
            version = int(file["gravel"].attrs.get("version", 1)) if ours else 0
        if not ours:
            raise ValueError(f"{path} is not a result file of gravel: it has no group VTKHDF or gravel")
        if version != VERSION:
            raise ValueError(f"{path} has result version {version}, this gravel reads version {VERSION}")
    except ValueError:
        file.close()
        raise
    return file


def read_frame(path, frame=-1):
    """One frame as a dict of arrays: time, position and the point data; negative frames count from the end.

    "geometries": number -> {"vertices", "triangles"} of those that bodies of the frame have.
    """
    with open_result(path) as file:
        with reading(path):
            count = frames_in(file)
        if not -count <= frame < count:
            raise ValueError(f"frame must be from {-count} to {count - 1} for {path}, not {frame}")
        with reading(path):
            return frame_in(file, frame % count)


def frames_in(file):
    """How many frames an open file holds."""
    return int(file["VTKHDF/Steps"].attrs["NSteps"])


def frame_in(file, frame):
    """A frame of an open file, as ``read_frame`` gives it."""
    if is_index(file):
        return joined_frame(file, frame, frame_in)
    root, own = file["VTKHDF"], file["gravel"]
    steps = root["Steps"]
    first, part = (int(stored(steps, name)[frame]) for name in ("PointOffsets", "PartOffsets"))
    bodies = slice(first, first + int(stored(root, "NumberOfPoints")[part]))
    position = rows_of(root, "Points", bodies, (3,), "f4")
    data = {name: rows_of(root["PointData"], name, bodies, shape, dtype) for name, (shape, dtype) in POINT_DATA.items()}
    ranked = "rank" in root["PointData"]
    data["rank"] = rows_of(root["PointData"], "rank", bodies, *RANK["rank"]) if ranked else np.zeros(len(position), "i4")
    if len(position) and not (data["shape"].min() >= 0 and data["shape"].max() < len(SHAPES) and data["geometry"].min() >= NONE):
        raise ValueError("shape or geometry of a body is a number that there is not")
    counts = rows_of(own, "plane_count", slice(0, frame + 1), (), "i8")
    planes = slice(int(counts[:-1].sum()), int(counts.sum()))
    return {
        "time": float(rows_of(steps, "Values", slice(frame, frame + 1), (), "f8")[0]),
        "position": position,
        **data,
        **{name: rows_of(own, name, planes, (3,), "f8") for name in ("plane_position", "plane_normal")},
        "cell": cell_of(rows_of(own, "cell", slice(frame, frame + 1), (13,), "f8")[0]) if len(stored(own, "cell")) else None,
        "gravity": rows_of(own, "gravity", slice(frame, frame + 1), (3,), "f8")[0],
        **{name: float(rows_of(own, name, slice(frame, frame + 1), (), "f8")[0]) for name in ("frame_dt", "contact_lag")},
        "geometries": {int(k): _surface(own[f"geometries/{k}"]) for k in np.unique(data["geometry"]) if k != NONE},
    }


def _surface(group):
    vertices, triangles = all_rows(group, "vertices", (3,), "f4"), all_rows(group, "triangles", (3,), "i4")
    if len(triangles) and not (triangles.min() >= 0 and triangles.max() < len(vertices)):
        raise ValueError("triangles go beyond their vertices")
    return {"vertices": vertices, "triangles": triangles}


def read_joints(path):
    """The joints' table of all frames: arrays (frames, joints) or (frames, joints, 3) by name, with ``time`` and ``names``."""
    with open_result(path) as file, reading(path):
        return joints_in(file)


def joints_in(file):
    """The joints of an open file, as ``read_joints`` gives them."""
    if is_index(file):
        return joined_joints(file, joints_in)
    group, time = file["gravel/joints"], all_rows(file["VTKHDF/Steps"], "Values", (), "f8")
    names = list(group.attrs.get("names", []))
    size = (len(time), len(names)) if names else (0, 0)
    return {"time": time, "names": names, **{name: _joint_field(group, name, size) for name in JOINT_FIELDS}}


def _joint_field(group, name, size):
    data = stored(group, name)
    if data.shape != size + ((3,) if name in ("force", "torque") else ()) or data.dtype.kind != "f":
        raise ValueError(f"{name} of {size[1]} joints in {size[0]} frames holds {data.dtype} of the shape {data.shape}")
    values = data[:]
    if np.isinf(values).any():  # NaN is what a joint does not have
        raise ValueError(f"{name} of the joints holds what is infinite")
    return values


def read_reports(path):
    """The step reports of a run as arrays by name."""
    with open_result(path) as file, reading(path):
        return reports_in(file)


def reports_in(file):
    """The step reports of an open file, as ``read_reports`` gives them."""
    if is_index(file):
        return joined_reports(file, reports_in)
    reports = {name: all_rows(file["gravel"], name, (), "f8") for name in REPORT_FIELDS}
    if len({len(values) for values in reports.values()}) > 1:
        raise ValueError("the reports of its steps have different lengths")
    return reports
