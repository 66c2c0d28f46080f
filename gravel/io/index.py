"""The index of a result of many processes: what it tells (``Stretch``), how it is written, and what one that is there tells of this run.

In: for each leg the names of its parts and how many rows each frame has in them. Out: a VTKHDF file whose large arrays are virtual, with
relative names. VTK wants the points of a frame side by side, so a leg of r processes and k frames makes r k runs of rows of each array of
bodies or contacts; all else is one run for each leg. Cells are numbers from 0 on, which stand in the part of rank 0 once. Surfaces are not
in it: the corners of a process's triangles are numbers of its own points.
"""

import os
import re
from dataclasses import dataclass, field
from typing import NamedTuple

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

from gravel.io.about import ANCHORS, about_in, write_about, write_body_names, write_materials
from gravel.io.blocks import COMMON, KINDS, ROOT, enter, lay_out_root, look_empty, multiples_name
from gravel.io.contact_results import BLOCK, COLUMNS, GROUP, links_to
from gravel.io.frames import frames_before, frames_in, hair, reading
from gravel.io.joined import LEGS, PARTS, check_links, is_index, legs_in, opened
from gravel.io.layout import (
    BODIES,
    CIRCUMSTANCES,
    CONSTANT,
    JOINT_FIELDS,
    PLACES,
    POINT_DATA,
    RANK,
    REPORT_FIELDS,
    SHAPES,
    SPARE_BYTES,
    VERSION,
)
from gravel.io.outputs import check_room
from gravel.io.validate_file import DAMAGE, all_rows, need, stored

RUN_BYTES = 120  # of an index, for each run of rows of each array
PLANES = ("plane_position", "plane_normal")


@dataclass
class Stretch:
    """What an index tells of the frames of one leg."""

    names: list  # of the parts, by rank
    times: list = field(default_factory=list)  # s, of the frames
    bodies: list = field(default_factory=list)  # of each frame: how many in each part
    constants: list = field(default_factory=list)  # of each frame: the row of each part at which what hardly changes begins
    contacts: list = field(default_factory=list)  # of each frame: how many in each part, None where they were not saved
    geometries: list = field(default_factory=list)  # how many each part holds
    reports: int = 0  # of steps, in the part of rank 0
    planes: int = 0  # rows of them, likewise
    joints: tuple = (0, 0)  # frames that have joints, and how many
    periodic: bool = False
    ranked: bool = True  # whether the parts say whose bodies theirs are; a file of one process does not

    def __len__(self):
        return len(self.times)

    def look_at_head(self, part, reports):
        """Take in what the part of rank 0, an open file, tells of these frames; so many of its reports count."""
        own, frames = part["gravel"], len(self)
        self.reports = reports
        self.planes = int(own["plane_count"][:frames].sum())
        rows, columns = own["joints/angle"].shape
        self.joints = (min(rows, frames), columns) if rows else (0, 0)
        self.periodic = len(own["cell"]) > 0
        self.ranked = "rank" in part[BODIES]["PointData"]


# --- what was written before


def parts_named_in(path):
    """Names of the parts of an index; of what is none, none."""
    try:
        with h5py.File(path, "r") as file:
            check_links(file)
            return [name for leg in legs_in(file) for name in leg.names] if is_index(file) else []
    except DAMAGE:
        return []


def removable_parts(path):
    """Names of the parts of an index that go when it is replaced: those that a run to this path writes, and of the run of the index. An
    index that was copied names the parts of the original, one that was made to do harm any file; these stay."""
    run = run_of(path)
    return [name for name in parts_named_in(path) if is_part_name(path, name) and run_of(path.with_name(name)) == run]


def part_name(path, leg, rank):
    """The name of a part file; legs count from 1."""
    return f"{path.stem}{'' if leg == 1 else f'.leg{leg}'}.rank{rank:04d}{path.suffix}"


def is_part_name(path, name):
    """Whether a run to a path writes a part of this name."""
    return re.fullmatch(re.escape(path.stem) + r"(\.leg\d+)?\.rank\d{4,}" + re.escape(path.suffix), name) is not None


def run_of(path):
    """The run that a result is of, an ordinary file and no link; None where it is no result."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        with h5py.File(path, "r") as file:
            check_links(file)
            return file["gravel"].attrs["run"]
    except DAMAGE:
        return None


def earlier_stretches(path, simulation, name_of_single):
    """What a file holds of an earlier time of this very run. A result of one process counts as a leg of one, whose part will have the name
    that is given; a file that is no result of gravel is refused."""
    if not frames_before(path, simulation):
        return []
    with h5py.File(path, "r") as file, reading(path):
        if not is_index(file):
            return [_joined_stretch([name_of_single], [_Part(file, simulation)])]
        found, legs = [], legs_in(file)
        for leg in legs:
            parts = []
            for name in leg.names:
                with opened(file, name) as part:
                    parts.append(_Part(part, simulation))
            most = (leg.frames, leg.reports) if leg is not legs[-1] else None  # the last parts may hold more than the index tells
            found.append(_joined_stretch(list(leg.names), parts, most))
    return [stretch for stretch in found if len(stretch)]


def earlier_about(path, stretches):
    """How the earlier time of this run was made; None where there was none."""
    if not stretches:
        return None
    with h5py.File(path, "r") as file, reading(path):
        return about_in(file)


class _Part:
    """What one part tells of the frames before the present time."""

    def __init__(self, file, simulation):
        block, own = file[BODIES], file["gravel"]
        steps = block["Steps"]
        times = all_rows(steps, "Values", (), "f8")[: frames_in(file)]
        frames = int(np.count_nonzero(times < simulation.time - hair(simulation)))
        self.times = times[:frames].tolist()
        self.bodies = stored(block, "NumberOfPoints")[:frames].tolist()
        self.constants = stored(steps["PointDataOffsets"], CONSTANT[0])[:frames].tolist()
        firsts = stored(steps, "PointOffsets")[:frames]
        need((firsts == np.cumsum(self.bodies) - self.bodies).all(), "its frames do not follow each other")
        counts = dict(zip(own[GROUP]["frame"][:].tolist(), own[GROUP]["count"][:].tolist())) if GROUP in own else {}
        self.contacts = [counts.get(frame) for frame in range(frames)]
        self.geometries = len(own["geometries"])
        reports = int(np.count_nonzero(stored(own, "time")[:] <= simulation.time + hair(simulation)))
        self.head = Stretch([], self.times)
        self.head.look_at_head(file, reports)


def _joined_stretch(names, parts, most=None):
    """A stretch of what its parts tell, as far as all of them go; ``most``: frames and reports, of a leg that others follow."""
    frames = min(len(part.times) for part in parts)
    head = parts[0].head
    if most is not None:
        frames, head.reports = min(frames, most[0]), min(head.reports, most[1])
    stretch = Stretch(names, parts[0].times[:frames], [[part.bodies[k] for part in parts] for k in range(frames)])
    stretch.constants = [[part.constants[k] for part in parts] for k in range(frames)]
    stretch.contacts = [[part.contacts[k] for part in parts] for k in range(frames)]
    stretch.geometries = [part.geometries for part in parts]
    stretch.reports, stretch.planes, stretch.periodic, stretch.ranked = head.reports, head.planes, head.periodic, head.ranked
    stretch.joints = (min(head.joints[0], frames), head.joints[1])
    return stretch


# --- writing


def write_index(path, stretches, simulation, about):
    """Replace the index at a path, at once and as a whole. ``about``: how the run was made (``gravel.io.about``). The part of rank 0 of
    the last leg must hold as many multiples of 1 as a frame has bodies or contacts, and one more."""
    runs = sum(len(s.names) * len(s) for s in stretches)
    check_room(path, SPARE_BYTES + RUN_BYTES * (len(POINT_DATA) + 2) * runs)
    temporary = path.with_name(path.name + ".part")
    try:
        with h5py.File(temporary, "w") as file:
            _write_vtk(file, stretches)
            _write_own(file, stretches, simulation)
            write_about(file["gravel"], about)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


class Run(NamedTuple):
    """Rows of an array of a part that stand in an array of the index."""

    name: str  # of the part
    source: int  # first row there
    target: int  # first row here
    count: int
    width: tuple | None = None  # of a row there, if it is shorter


def _write_vtk(file, stretches):
    """The bodies of all parts as one block."""
    root = lay_out_root(file)
    block = enter(root, "bodies")
    totals = np.array([sum(counts) for stretch in stretches for counts in stretch.bodies], np.int64)
    firsts = np.cumsum(totals) - totals
    moving, constant = _runs_of_bodies(stretches, False), _runs_of_bodies(stretches, True)
    virtual(block, "Points", (totals.sum(), 3), PLACES, moving)
    data, offsets = block.create_group("PointData"), block.create_group("Steps/PointDataOffsets")
    ranked = {name for stretch in stretches if stretch.ranked for name in stretch.names}
    for name, (shape, dtype) in {**POINT_DATA, **RANK}.items():
        runs = [run for run in constant if run.name in ranked] if name == "rank" else constant if name in CONSTANT else moving
        virtual(data, name, (totals.sum(), *shape), dtype, runs)
        offsets[name] = firsts
    _write_frames(block, totals, firsts, np.array([moment for stretch in stretches for moment in stretch.times]))
    _write_cells(block, totals, stretches[-1].names[0])
    steps = root["Steps"]
    look_empty(steps, block["Lines"])
    steps.attrs["NSteps"], steps["Values"], steps["Steps"] = len(totals), block["Steps/Values"], block["Steps"]


def _write_frames(block, counts, firsts, times):
    """So many points in each frame, from these rows on."""
    steps = block.require_group("Steps")
    steps.attrs["NSteps"] = len(times)
    block["NumberOfPoints"], steps["PointOffsets"], steps["Values"] = counts, firsts, times
    steps["PartOffsets"], steps["NumberOfParts"] = np.arange(len(times)), np.ones(len(times), np.int64)
    steps["CellOffsets"] = steps["ConnectivityIdOffsets"] = np.zeros((len(times), 4), np.int64)


def _write_cells(block, counts, part):
    """A vertex for each point: numbers from 0 on, which frames share."""
    most, where = int(counts.max(initial=0)), f"/{COMMON}/{multiples_name(1)}"
    for kind in KINDS:
        group = block.create_group(kind)
        group["NumberOfCells"] = group["NumberOfConnectivityIds"] = counts if kind == "Vertices" else np.zeros_like(counts)
        rows = most if kind == "Vertices" else 0
        virtual(group, "Connectivity", (rows,), "i8", [Run(part, 0, 0, rows)], where)
        virtual(group, "Offsets", (rows + 1,), "i8", [Run(part, 0, 0, rows + 1)], where)


def _write_own(file, stretches, simulation):
    """The group ``gravel``: of rank 0, but for contacts and geometries."""
    own, joints = file.create_group("gravel"), file.create_group("gravel/joints")
    own.attrs["version"], own.attrs["run"] = VERSION, simulation.run_id
    own.attrs["dt"], own.attrs["solver"] = simulation.dt, simulation.solver.describe()
    own.attrs["shapes"] = SHAPES
    frames = [len(stretch) for stretch in stretches]
    _from_heads(own, REPORT_FIELDS, (), stretches, [stretch.reports for stretch in stretches])
    _from_heads(own, PLANES, (3,), stretches, [stretch.planes for stretch in stretches])
    for name, (shape, dtype) in CIRCUMSTANCES.items():
        rows = [n if name != "cell" or stretch.periodic else 0 for n, stretch in zip(frames, stretches)]
        _from_heads(own, (name,), shape, stretches, rows, dtype)
    most = max(stretch.joints[1] for stretch in stretches)
    for name in JOINT_FIELDS:
        width = (3,) if name in ("force", "torque") else ()
        ends = np.cumsum(frames)
        runs = [Run(s.names[0], 0, int(end - n), s.joints[0], (s.joints[1], *width)) for s, end, n in zip(stretches, ends, frames)]
        virtual(joints, name, (ends[-1] if most else 0, most, *width), "f8", runs)
    if most:
        joints.attrs["names"] = simulation.mechanism.names[:most]
    last = max(stretches, key=lambda stretch: stretch.joints[1])
    for name, (shape, dtype) in ANCHORS.items():
        virtual(joints, name, (most, *shape), dtype, [Run(last.names[0], 0, 0, most)])
    write_materials(own, simulation)
    write_body_names(own, simulation.body_names)
    _write_contacts(file, stretches)
    _link_geometries(own.create_group("geometries"), stretches)
    own[LEGS] = np.array([(end - n, n, len(s.names), s.reports) for s, end, n in zip(stretches, np.cumsum(frames), frames)], np.int64)
    own[PARTS] = np.array([name.encode() for stretch in stretches for name in stretch.names])


def _from_heads(own, names, shape, stretches, rows, dtype="f8"):
    """Arrays with so many rows of the part of rank 0 of each leg."""
    ends = np.cumsum(rows)
    runs = [Run(stretch.names[0], 0, int(end - n), n) for stretch, end, n in zip(stretches, ends, rows)]
    for name in names:
        virtual(own, name, (ends[-1], *shape), dtype, runs)


def _write_contacts(file, stretches):
    """The contacts frame by frame and in it part by part: ``frame`` and ``count`` have a row for each part of each frame."""
    if all(count is None for stretch in stretches for counts in stretch.contacts for count in counts):
        return
    group, runs, rows, target, first = file["gravel"].create_group(GROUP), [], [], 0, 0
    totals = []
    for stretch in stretches:
        sources = [0] * len(stretch.names)
        for number, counts in enumerate(stretch.contacts, first):
            totals.append(sum(count or 0 for count in counts))
            for rank, count in enumerate(counts):
                if count is not None:
                    rows.append((number, count))
                    runs.append(Run(stretch.names[rank], sources[rank], target, count))
                    sources[rank], target = sources[rank] + count, target + count
        first += len(stretch)
    for name, (shape, dtype) in COLUMNS.items():
        virtual(group, name, (target, *shape), dtype, runs)
    group["frame"], group["count"] = np.array(rows, np.int64).T
    _write_contact_block(file, group, np.array(totals, np.int64), stretches[-1].names[0])


def _write_contact_block(file, table, totals, part):
    """The same arrays where VTK looks for them."""
    block = enter(file[ROOT], BLOCK)
    firsts = np.cumsum(totals) - totals
    data, offsets = block.create_group("PointData"), block.create_group("Steps/PointDataOffsets")
    for name, array in links_to(table).items():
        (block if name == "Points" else data)[name] = array
        if name != "Points":
            offsets[name] = firsts
    _write_frames(block, totals, firsts, file[BODIES]["Steps/Values"][:])
    _write_cells(block, totals, part)


def _link_geometries(group, stretches):
    """Each geometry by a link to the first part that holds it."""
    for stretch in stretches:
        for name, count in zip(stretch.names, stretch.geometries):
            for number in range(len(group), count):
                group[str(number)] = h5py.ExternalLink(name, f"/gravel/geometries/{number}")


def _runs_of_bodies(stretches, constant):
    """The runs of all frames and parts, frame by frame and in it part by part, of arrays that hardly change or of the others; of the
    others of a single part, all frames at once."""
    runs, target = [], 0
    for stretch in stretches:
        table = np.array(stretch.bodies, np.int64).reshape(len(stretch), len(stretch.names))
        if len(stretch.names) == 1 and not constant:
            table = table.sum(axis=0, keepdims=True)
        sources = np.array(stretch.constants, np.int64).reshape(table.shape) if constant else np.cumsum(table, axis=0) - table
        for counts, firsts in zip(table.tolist(), sources.tolist()):
            for name, source, count in zip(stretch.names, firsts, counts):
                runs.append(Run(name, source, target, count))
                target += count
    return runs


def virtual(group, name, shape, dtype, runs, source=None):
    """An array whose rows lie in parts, there by the same name if none is given. What cannot be read is NaN, or -1 in whole numbers; the
    rank of bodies that do not say it is 0."""
    shape, kind, filled = tuple(map(int, shape)), np.dtype(dtype), [run for run in runs if run.count]
    if not filled:
        group.create_dataset(name, shape, dtype)
        return
    plan, here, spaces = h5p.create(h5p.DATASET_CREATE), h5s.create_simple(shape), {}
    plan.set_fill_value(np.array(np.nan if kind.kind == "f" else 0 if name == "rank" or kind.kind == "u" else -1, kind))
    plan.set_layout(h5d.VIRTUAL)
    place, rows = (source or f"{group.name}/{name}").encode(), max(run.source + run.count for run in filled)
    for run in filled:
        width = shape[1:] if run.width is None else run.width
        zeros = (0,) * len(width)
        there = spaces.get(width) or spaces.setdefault(width, h5s.create_simple((rows, *width)))  # about: HDF5 looks itself
        there.select_hyperslab((run.source, *zeros), (run.count, *width))
        here.select_hyperslab((run.target, *zeros), (run.count, *width))
        plan.set_virtual(here, run.name.encode(), place, there)
    here.select_all()
    h5d.create(group.id, name.encode(), h5t.py_create(kind), here, plan)
