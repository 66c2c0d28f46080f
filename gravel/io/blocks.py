"""Blocks of a VTKHDF file: each a mesh that may change from frame to frame, written as VTK's reader (9.4 and later) takes it.

The root is a ``MultiBlockDataSet``, its blocks are named in ``Assembly``, and every frame is one part of each block. What does not change
from frame to frame stands in the file once, and frames point at it (``Shared``), for VTK has an offset for each array and frame. Cells of
a kind all have the same number of corners, so where the corners of each begin is the same list of multiples in all frames. That, and what
else all blocks have in common, stands in ``VTKHDF/Steps`` (``Common``), and is linked from where VTK looks for it.

VTK's reader forgets the times of a file with blocks when it is asked for information twice (9.6 and 9.7), unless the root has steps, too;
these it takes for one more block, which nobody has named, so they must look like one that is empty.
"""

from typing import NamedTuple

import h5py
import numpy as np

from gravel.io.validate_file import stored

ROOT = "VTKHDF"
COMMON = f"{ROOT}/Steps"
KINDS = ("Vertices", "Lines", "Polygons", "Strips")
CHUNK = 16384  # rows
FEW = 1024  # rows of a chunk of what has one row a frame
STEPS = {"Values": ((), "f8", 0), "PartOffsets": ((), "i8", 0), "NumberOfParts": ((), "i8", 1), "CellOffsets": ((4,), "i8", 0)}


def lay_out_root(file):
    """The group that VTK looks for, without blocks."""
    root = file.create_group(ROOT, track_order=True)  # VTK asks in which order blocks were made
    mark(root, "MultiBlockDataSet")
    root.create_group("Assembly", track_order=True)
    mark(root.create_group("Steps"), "PolyData")
    return root


def mark(group, kind):
    """Say what VTK is to make of a group."""
    group.attrs["Version"] = np.array([2, 1], "i8")
    group.attrs.create("Type", kind.encode(), dtype=h5py.string_dtype("ascii", len(kind)))


def enter(root, name):
    """A new block in the root's list; returns its group."""
    group = root.create_group(name)
    mark(group, "PolyData")
    group.attrs["Index"] = len(root["Assembly"])
    root["Assembly"][name] = h5py.SoftLink(f"/{ROOT}/{name}")
    return group


def grow(group, name, shape, dtype, chunk=CHUNK, **options):
    """A dataset without rows, which may get any number of them."""
    return group.create_dataset(name, (0, *shape), dtype, maxshape=(None, *shape), chunks=(chunk, *shape), **options)


def append(data, values):
    """Append rows to a dataset."""
    values = np.asarray(values, data.dtype).reshape(-1, *data.shape[1:])
    before = len(data)
    data.resize(before + len(values), axis=0)
    if len(values):
        data[before:] = values


class Common:
    """What all blocks of a file have in common: times, columns that are the same in all frames, kinds without cells, multiples."""

    def __init__(self, file):
        self.group = file[COMMON]
        if "Values" not in self.group:
            self._lay_out(self.group)
        self.steps = {name: self.group[name] for name in STEPS}
        self.none, self.numbers = self.group["nothing/NumberOfCells"], {}

    @staticmethod
    def _lay_out(group):
        for name, (shape, dtype, fill) in STEPS.items():
            grow(group, name, shape, dtype, FEW, fillvalue=fill)
        nothing = group.create_group("nothing")
        nothing["NumberOfConnectivityIds"] = grow(nothing, "NumberOfCells", (), "i8", FEW)
        nothing["Offsets"], nothing["Connectivity"] = np.zeros(1, "i8"), np.zeros(0, "i8")
        look_empty(group, nothing)

    def seal(self, frames):
        """From now on readers find so many frames."""
        self.group.attrs.modify("NSteps", frames)

    def add_frame(self, time):
        """One more frame; columns that are the same in all get what they are filled with."""
        frames = len(self.steps["Values"]) + 1
        append(self.steps["Values"], [time])
        append(self.steps["PartOffsets"], [frames - 1])
        for data in (self.steps["NumberOfParts"], self.steps["CellOffsets"], self.none):
            data.resize(frames, axis=0)

    def multiples(self, step, count=0):
        """0, step, 2 step ..., at least so many."""
        name = multiples_name(step)
        if step not in self.numbers:
            packed = {"shuffle": True, "compression": "gzip", "compression_opts": 1}
            self.numbers[step] = self.group[name] if name in self.group else grow(self.group, name, (), "i8", **packed)
        numbers = self.numbers[step]
        if len(numbers) < count:
            append(numbers, step * np.arange(len(numbers), count))
        return numbers

    def lengths(self, frames):
        """(array, rows that so many frames have in it)."""
        for name in STEPS:
            yield stored(self.group, name), frames
        yield stored(self.group["nothing"], "NumberOfCells"), frames


def look_empty(steps, nothing):
    """Make the root's steps look like a block without points. ``nothing``: a kind of cells without any."""
    steps.attrs["NSteps"] = 0
    steps["NumberOfPoints"] = nothing["NumberOfCells"]
    for kind in KINDS:
        steps[kind] = nothing


def multiples_name(step):
    return f"multiples_of_{step}"


class Shared:
    """Arrays of one length that are written again only when one of them has changed."""

    def __init__(self, arrays, at=0, rows=None):
        """``arrays``: datasets by name. ``at``, ``rows``: what the last frame of the file points at, where there is one."""
        self.arrays, self.at, self.values = arrays, int(at), None
        if rows is not None:
            self.values = {name: data[self.at : self.at + int(rows)] for name, data in arrays.items()}

    def place(self, values):
        """The row at which these values begin; they are appended if they are not those of the last time."""
        values = {name: np.array(values[name], data.dtype) for name, data in self.arrays.items()}  # copies: the state moves on
        if self.values is None or not all(np.array_equal(values[name], self.values[name]) for name in values):
            self.at, self.values = len(next(iter(self.arrays.values()))), values
            for name, data in self.arrays.items():
                append(data, values[name])
        return self.at


class Form(NamedTuple):
    """What a block is made of."""

    corners: dict  # kind of cells -> how many corners each has; 1: a vertex for each point
    point_data: dict  # name -> (shape of a row, type)
    constant: tuple = ()  # names of point data that hardly change: they have rows of their own, which frames share
    still: bool = False  # whether the points hardly change either; then all arrays are shared
    linked: bool = False  # whether somebody else fills the arrays
    points: str = "f4"  # type of the points

    @property
    def only_vertices(self):
        return set(self.corners.values()) == {1}

    @property
    def meshes(self):
        """The kinds whose corners are written."""
        return [kind for kind, number in self.corners.items() if number > 1]


class Block:
    """A block that frames are appended to; one that is new in a file that has frames is empty in these."""

    def __init__(self, root, name, common, form, links=None):
        """``links``: arrays that somebody else fills, by name."""
        self.common, self.form = common, form
        frames = len(common.steps["Values"])
        if name not in root:
            self._lay_out(enter(root, name), links or {}, frames)
        self.group = group = root[name]
        self.steps, data = group["Steps"], group["PointData"]
        self.points, self.counts, self.starts = group["Points"], group["NumberOfPoints"], self.steps["PointOffsets"]
        self.corner_starts = self.steps["ConnectivityIdOffsets"]
        self.varying = {name: data[name] for name in form.point_data if name not in form.constant}
        shared = {"Points": self.points, **self.varying} if form.still else {name: data[name] for name in form.constant}
        self.constant_starts = self.steps["PointDataOffsets"][form.constant[0]] if form.constant else self.starts
        last = (self.constant_starts[-1], self.counts[-1]) if frames and shared else ()
        self.shared = Shared(shared, *last)
        self.cells = {kind: self._cells(kind, frames) for kind in form.meshes}

    def _lay_out(self, group, links, frames):
        form, steps, data = self.form, group.create_group("Steps"), group.create_group("PointData")
        steps.attrs["NSteps"] = frames
        for name, dataset in self.common.steps.items():
            steps[name] = dataset
        one_row = [grow(group, "NumberOfPoints", (), "i8", FEW), grow(steps, "PointOffsets", (), "i8", FEW)]
        if form.only_vertices:
            steps["ConnectivityIdOffsets"] = self.common.steps["CellOffsets"]
        else:
            one_row.append(grow(steps, "ConnectivityIdOffsets", (4,), "i8", FEW))
        offsets = steps.create_group("PointDataOffsets")
        if form.constant:
            one_row.append(grow(offsets, form.constant[0], (), "i8", FEW))
        for name, (shape, dtype) in {"Points": ((3,), form.points), **form.point_data}.items():
            home = group if name == "Points" else data
            if name in links:
                home[name] = links[name]
            else:
                grow(home, name, shape, dtype)
            if name != "Points" and name not in offsets:
                offsets[name] = offsets[form.constant[0]] if name in form.constant else steps["PointOffsets"]
        one_row += self._lay_out_cells(group)
        for dataset in one_row:
            dataset.resize(frames, axis=0)
        if "Steps" not in self.common.group:
            self.common.group["Steps"] = steps

    def _lay_out_cells(self, group):
        """Groups of all kinds of cells; returns the arrays that have a row for each frame."""
        counts = []
        for kind in KINDS:
            corners = self.form.corners.get(kind)
            if corners is None:
                group[kind] = self.common.group["nothing"]
                continue
            cells = group.create_group(kind)
            cells["Offsets"] = self.common.multiples(corners, 1)
            if corners == 1:
                cells["NumberOfCells"] = cells["NumberOfConnectivityIds"] = group["NumberOfPoints"]
                cells["Connectivity"] = self.common.multiples(1)
            else:
                counts += [grow(cells, name, (), "i8", FEW) for name in ("NumberOfCells", "NumberOfConnectivityIds")]
                grow(cells, "Connectivity", (), "i8")
        return counts

    def _cells(self, kind, frames):
        """The corners of all cells of a kind, shared by frames."""
        group = self.group[kind]
        last = (self.corner_starts[-1, KINDS.index(kind)], group["NumberOfConnectivityIds"][-1]) if frames else ()
        return Shared({"Connectivity": group["Connectivity"]}, *last)

    def write(self, points, values, cells=None):
        """The points, point data by name and corners of cells by kind of one more frame."""
        if self.form.still:
            at = self.shared.place({"Points": points, **values})
        else:
            at = len(self.points)
            append(self.points, points)
            for name, data in self.varying.items():
                append(data, values[name])
        if self.form.constant:
            append(self.constant_starts, [self.shared.place(values)])
        self.point_at(at, len(points), cells or {})

    def point_at(self, at, count, cells=None):
        """One more frame has so many points, from row ``at`` on."""
        append(self.counts, [count])
        append(self.starts, [at])
        if self.form.only_vertices:
            self.common.multiples(1, count + 1)
            return
        starts = [0, 0, 0, 0]
        for kind, shared in self.cells.items():
            ids, group = np.ravel(cells[kind]), self.group[kind]
            starts[KINDS.index(kind)] = shared.place({"Connectivity": ids})
            number = len(ids) // self.form.corners[kind]
            append(group["NumberOfCells"], [number])
            append(group["NumberOfConnectivityIds"], [len(ids)])
            self.common.multiples(self.form.corners[kind], number + 1)
        append(self.corner_starts, [starts])

    def seal(self, frames):
        """From now on readers find so many frames."""
        self.steps.attrs.modify("NSteps", frames)


def block_lengths(group, form, frames):
    """(array, rows that so many frames have in it), for the arrays of a block; not for those that others fill or that are common."""
    steps, data = group["Steps"], group["PointData"]
    counts, starts = stored(group, "NumberOfPoints"), stored(steps, "PointOffsets")
    yield counts, frames
    yield starts, frames
    for name in () if form.linked else ("Points", *form.point_data):
        offsets = starts if name == "Points" else stored(steps["PointDataOffsets"], name)
        yield stored(group if name == "Points" else data, name), _end(offsets, counts, frames)
    for name in form.constant:
        yield stored(steps["PointDataOffsets"], name), frames
    for kind in form.meshes:
        cells, corner_starts = group[kind], stored(steps, "ConnectivityIdOffsets")
        ids = stored(cells, "NumberOfConnectivityIds")
        yield stored(cells, "Connectivity"), _end(corner_starts[:, KINDS.index(kind)], ids, frames)
        yield stored(cells, "NumberOfCells"), frames
        yield ids, frames
        yield corner_starts, frames


def _end(starts, counts, frames):
    """One past the last row that so many frames point at."""
    return int(np.max(starts[:frames] + counts[:frames], initial=0))
