"""Shapes, regions, sizes, turns and motions from the checked keys of a scene file, and arrays from the files beside it."""

import csv
import pathlib
import zipfile
import zlib
from dataclasses import dataclass

import numpy as np

from gravel import checks
from gravel.io.robots import Reach
from gravel.model.motion import ConstantVelocity, Oscillation
from gravel.packing.blend import scaled
from gravel.packing.regions import BoxRegion, CylinderRegion, HopperRegion, MeshRegion, SphereRegion
from gravel.packing.sizes import LogNormalSizes, NormalSizes, SieveCurve, UniformSizes, WeibullSizes
from gravel.rotations import from_rotation_vector, multiply
from gravel.scenefile.error_locations import attempt
from gravel.scenefile.records import Kind
from gravel.scenefile.values import BAD
from gravel.shapes.compounds import Clump, Compound
from gravel.shapes.kinds import SIMPLE
from gravel.shapes.meshes import HeightField, Mesh
from gravel.shapes.polyhedra import ConvexHull, Mass, read_mesh

REGIONS = {"box": BoxRegion, "cylinder": CylinderRegion, "sphere": SphereRegion, "hopper": HopperRegion}
DISTRIBUTIONS = {
    "uniform": UniformSizes,
    "normal": NormalSizes,
    "log_normal": LogNormalSizes,
    "weibull": WeibullSizes,
    "sieve": SieveCurve,
}
TABLE_COLUMNS = {
    "positions": ("x", "y", "z"),
    "quaternions": ("qw", "qx", "qy", "qz"),
    "velocities": ("vx", "vy", "vz"),
    "angular_velocities": ("wx", "wy", "wz"),
    "masses": ("mass",),
    "inertias": ("ix", "iy", "iz"),
}
MOST_PARTS = 5000  # of a compound: more take seconds to put together, and compounds of compounds can have any number
SIZE_COLUMNS = (("size",), ("size1", "size2"), ("size1", "size2", "size3"), ("size1", "size2", "size3", "size4"))


# --- files beside the scene file
class Folder:
    """Where the files that a scene file names are looked for; they must lie where a robot file's must (``gravel.io.robots.Reach``)."""

    def __init__(self, scene_file, outside_files=False):
        self.path, self.outside_files = pathlib.Path(scene_file).parent, outside_files
        self.reach = Reach(scene_file, anywhere=outside_files)


def beside(folder, name) -> pathlib.Path:
    """A file that a scene file names."""
    path = folder.path / name
    if not folder.reach.allows(path):
        raise ValueError(f"file {folder.reach.refusal(name, path)}")
    if not path.is_file():
        raise FileNotFoundError(f"file must be there, but {path} {'is no file' if path.exists() else 'does not exist'}")
    return path


def arrays_of(path) -> dict[str, np.ndarray]:
    """Arrays of an .npz file, by name."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"file must be an .npz file of arrays, but {path} cannot be read as one: {error}") from None


def wanted(arrays, name, path):
    if name not in arrays:
        raise ValueError(f"file must hold the array {name!r}, but {path} holds {', '.join(arrays) or 'none'}")
    return arrays[name]


def table_of(path) -> dict[str, np.ndarray]:
    """Arrays of bodies, positions and others by name, from a .csv or .npz file."""
    if path.suffix.lower() == ".npz":
        arrays = arrays_of(path)
        wanted(arrays, "positions", path)
        for name in arrays:
            checks.choice(f"array of file {path}", name, (*TABLE_COLUMNS, "sizes"))
        return arrays
    columns = columns_of(path)
    known = [*TABLE_COLUMNS.values(), *SIZE_COLUMNS]
    for name in columns:
        checks.choice(f"column of file {path}", name, tuple(dict.fromkeys(column for group in known for column in group)))
    sizes = {name for name in columns if name.startswith("size")}
    if sizes and sizes not in map(set, SIZE_COLUMNS):
        there = ", ".join(sorted(sizes))
        raise ValueError(f"file must have the column size, or size1 and size2, or size1 to size3 or size4, but {path} has {there}")
    groups = {**TABLE_COLUMNS, "sizes": next((group for group in reversed(SIZE_COLUMNS) if set(group) <= set(columns)), ("size",))}
    found = {}
    for name, group in groups.items():
        there = [column in columns for column in group]
        if any(there) and not all(there):
            raise ValueError(f"file must have all of the columns {', '.join(group)} or none, but {path} has only some")
        if all(there):
            found[name] = np.column_stack([columns[column] for column in group])
    wanted(found, "positions", path)
    return {name: values[:, 0] if values.shape[1] == 1 else values for name, values in found.items()}


def columns_of(path) -> dict[str, np.ndarray]:
    """Columns of a .csv file, by the names in its first line."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        header = [name.strip() for name in next(rows, [])]
        if len(header) == 1 and ";" in header[0]:
            raise ValueError(f"file must have commas between its columns, but {path} has semicolons")
        if len(set(header)) != len(header):
            raise ValueError(f"file must name each column once, but the first line of {path} does not")
        values = []
        for number, row in enumerate(rows, 2):
            if not row:  # an empty line
                continue
            try:
                if len(row) != len(header):
                    raise ValueError
                values.append([float(word) for word in row])
            except ValueError:
                raise ValueError(f"file must have {len(header)} numbers in each row, but line {number} of {path} has not") from None
    if not values:
        raise ValueError(f"file must have rows of numbers below its first line, but {path} has none")
    return dict(zip(header, np.array(values).T))


def heights_of(path):
    """(N, M) heights of a .csv file without a header, or of the array ``heights`` of an .npz file."""
    if path.suffix.lower() == ".npz":
        return wanted(arrays_of(path), "heights", path)
    try:
        return np.loadtxt(path, delimiter=",", ndmin=2)
    except ValueError as error:
        raise ValueError(f"file must be a table of numbers, but {path} is not: {error}") from None


# --- shapes
class Shapes:
    """Makes shapes, those with names once. ``named``: the checked ``shapes`` of a file; ``line_of``: the line of a name."""

    def __init__(self, folder, named, faults, line_of):
        self.folder, self.named, self.faults, self._line_of = folder, named, faults, line_of
        self._made, self._under_way = {}, set()
        self._counted = {}  # name -> how many parts its shape has

    def make(self, value):
        """A shape; of a bare word such as ``sphere`` the class; or BAD."""
        if not isinstance(value, str):
            return BAD if value is BAD else self._of_kind(value)
        if value in self.named:
            return self._by_name(value)
        return SIMPLE[value]

    def _by_name(self, name):
        if name in self._under_way:
            self.faults.add(self._line_of(name), f"shapes.{name}", "contains itself")
            return BAD
        if name not in self._made:
            self._under_way.add(name)
            self._made[name] = self.make(self.named[name])
            self._under_way.discard(name)
        return self._made[name]

    def _of_kind(self, value):
        kind, given = value.kind, value.given
        if kind in SIMPLE:
            return attempt(self.faults, given, SIMPLE[kind], **given)
        make = {"hull": self._hull, "mesh": self._mesh, "height_field": self._heights, "clump": self._clump, "compound": self._compound}
        shape = attempt(self.faults, given, make[kind], given)
        return attempt(self.faults, given, centred, shape) if shape is not BAD and given.get("centred") else shape

    def _points(self, given, name):
        """Points of an .npz or a mesh file."""
        path = beside(self.folder, given["file"])
        if path.suffix.lower() == ".npz":
            return wanted(arrays_of(path), name, path)
        return read_mesh(path)[0]

    def _hull(self, given):
        points = given["points"] if "points" in given else self._points(given, "points")
        return ConvexHull(points, given.get("scale", 1.0))

    def _mesh(self, given):
        options = {"scale": given.get("scale", 1.0), **given.only("sheet", "repair")}
        if "file" not in given:
            return Mesh(given["vertices"], given["triangles"], **options)
        path = beside(self.folder, given["file"])
        if path.suffix.lower() != ".npz":
            return Mesh.from_file(path, **options)
        arrays = arrays_of(path)
        return Mesh(wanted(arrays, "vertices", path), wanted(arrays, "triangles", path), **options)

    def _heights(self, given):
        heights = given["heights"] if "heights" in given else heights_of(beside(self.folder, given["file"]))
        if isinstance(heights, np.ndarray) and heights.ndim != 2:
            raise ValueError(f"heights must be rows of numbers, not an array with {heights.ndim} axes")
        if len({len(row) for row in heights}) > 1:
            raise ValueError("heights must have rows of one length")
        return HeightField(heights, given["spacing"], given.get("origin"))

    def _clump(self, given):
        others = [name for name in ("spheres", "radius", "resolution") if name in given]
        if "file" in given:
            mesh = Mesh.from_file(beside(self.folder, given["file"]))
            return Clump.from_mesh(mesh, **given.only("spheres", "radius", "resolution", "scale"))
        if others:
            raise ValueError(f"{others[0]} goes with a file, but positions and radii are given")
        return Clump(given["positions"], given["radii"], given.get("scale", 1.0))

    def _parts_in(self, value, above=()):
        """How many parts a shape has, without making it; none if it is wrong."""
        if isinstance(value, str):
            if value not in self.named or value in above:
                return 1
            if value not in self._counted:
                self._counted[value] = self._parts_in(self.named[value], (*above, value))
            return self._counted[value]
        if value is BAD:
            return 0
        if value.kind == "compound":
            return sum(self._parts_in(part["shape"], above) for part in value.given["items"])
        return len(value.given["positions"]) if value.kind == "clump" and "positions" in value.given else 1

    def _compound(self, given):
        parts = sum(self._parts_in(part["shape"]) for part in given["items"])
        if parts > MOST_PARTS:
            raise ValueError(f"items must have at most {MOST_PARTS} parts in all, with those of compounds in them, not {parts}")
        items, densities = [], []
        for part in given["items"]:
            shape = self.make(part["shape"])
            if shape is BAD:
                return BAD
            if isinstance(shape, type):
                raise ValueError(f"items must have shapes with sizes, not just {part['shape']!r}")
            items.append((shape, part.get("position", (0.0, 0.0, 0.0)), turn_of(part.get("rotation"))))
            densities.append(part.get("relative_density", 1.0))
        whole = Compound(items, densities)
        return whole if "scale" not in given else scaled_one(whole, given["scale"])


def scaled_one(shape, factor):
    """A shape of one size at a factor."""
    some = scaled(shape, [factor])
    object.__setattr__(some, "scale", np.array(float(factor)))
    return some


def centred(shape):
    """A shape whose coordinates count as those of its centre of mass and principal axes, whatever they are to rounding."""
    if not shape.has_mass:
        raise ValueError(f"centred must be false for a {type(shape).__name__} without mass")
    mass = Mass(shape.mass.volume, np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), shape.mass.moments)
    object.__setattr__(shape, "_mass" if isinstance(shape, Mesh) else "mass", mass)
    return shape


def with_sizes(shape, word, sizes):
    """The shape of N bodies: of a class with its own numbers in rows, of a shape of one size at factors. ``word``: what the file calls
    it."""
    if len({np.size(row) for row in sizes}) > 1:
        raise ValueError("sizes must have as many numbers for one body as for another")
    sizes = checks.array("sizes", sizes, (None,) if np.ndim(sizes) == 1 else (None, None), above=0.0)
    if not isinstance(shape, type):
        if sizes.ndim != 1:
            raise ValueError(f"sizes must be one factor for each body, not {sizes.shape[1]} numbers")
        return scaled(shape, sizes)
    width = sum(size.columns for size in shape.SIZES)
    if (sizes.ndim, width) != (1, 1) and (sizes.ndim != 2 or sizes.shape[1] != width):
        raise ValueError(f"sizes must be {width} number{'s' * (width > 1)} for each {word}")
    return shape(*shape.split(sizes.reshape(-1, width)))


# --- the rest
def turn_of(rotation):
    """The quaternion of a rotation; None: not turned."""
    if rotation is None:
        return np.array([1.0, 0.0, 0.0, 0.0])
    if "quaternion" in rotation:
        return np.array(rotation["quaternion"])
    if "axis" in rotation:
        axis = np.array(rotation["axis"])
        return from_rotation_vector(rotation["angle"] * axis / np.linalg.norm(axis))
    x, y, z = (from_rotation_vector(angle * axis) for angle, axis in zip(rotation["euler"], np.eye(3)))
    return multiply(z, multiply(y, x))


def region_of(value: Kind, folder):
    if value.kind == "mesh":
        return MeshRegion(Mesh.from_file(beside(folder, value.given["file"]), **value.given.only("scale")))
    return REGIONS[value.kind](**value.given)


def sizes_of(value: Kind):
    return DISTRIBUTIONS[value.kind](**value.given)


@dataclass(frozen=True)
class Table:
    """A function of time by a table, straight between its rows."""

    times: tuple
    values: tuple

    def __post_init__(self):
        _check_times(self.times, "values", self.values)

    def __call__(self, time):
        return float(np.interp(time, self.times, self.values))


@dataclass(frozen=True)
class TableMotion:
    """A motion by a table: displacements (m) and turns (rotation vectors, rad) from the pose at the start, at times (s)."""

    times: tuple
    displacements: tuple | None = None
    turns: tuple | None = None

    def __post_init__(self):
        if self.displacements is None and self.turns is None:
            raise ValueError("a motion by a table needs displacements, turns or both")
        for name in ("displacements", "turns"):
            if getattr(self, name) is not None:
                _check_times(self.times, name, getattr(self, name))

    def pose(self, time, position, quaternion):
        if self.displacements is not None:
            position = position + self._at(time, self.displacements)
        if self.turns is not None:
            quaternion = multiply(from_rotation_vector(self._at(time, self.turns)), quaternion)
        return position, quaternion

    def _at(self, time, rows):
        return np.array([np.interp(time, self.times, column) for column in zip(*rows)])


def _check_times(times, name, values):
    if len(values) != len(times):
        raise ValueError(f"{name} must be as many as times, {len(times)}, not {len(values)}")
    if not (np.diff(times) > 0).all():
        raise ValueError(f"times must rise, not be {list(times)}")


def motion_of(value: Kind):
    given = value.given
    if value.kind == "constant":
        return ConstantVelocity(**given)
    if value.kind == "oscillation":
        return Oscillation(**given)
    rows = {name: tuple(given[name]) for name in ("displacements", "turns") if name in given}
    return TableMotion(tuple(given["times"]), **rows)


def number_or_table(value):
    """A number, or a function of time."""
    return value if isinstance(value, (int, float)) else Table(tuple(value["times"]), tuple(value["values"]))


def surface_of(value):
    if isinstance(value, tuple):
        return value
    return value.get("velocity", (0.0, 0.0, 0.0)), value.get("angular_velocity", (0.0, 0.0, 0.0))
