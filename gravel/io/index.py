"""The index of a result of many processes: what it tells (``Stretch``), how it is written, and what one that is there tells of this run.

In: for each leg the names of its parts and how many rows each frame has in them. Out: a VTKHDF file whose large arrays are virtual, with
relative names. VTK wants the points of a frame side by side, so a leg of r processes and k frames makes r k runs of rows of each array of
points; all else is one run for each leg. Cells are numbers from 0 on, which stand in the part of rank 0 once.
"""

import os
from dataclasses import dataclass, field
from typing import NamedTuple

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

from gravel import shapes
from gravel.io.contact_results import COLUMNS, GROUP
from gravel.io.joined import LEGS, PARTS, is_index, legs_in, opened
from gravel.io.sound import DAMAGE, all_rows, need, stored
from gravel.io.vtkhdf import (
    CIRCUMSTANCES,
    JOINT_FIELDS,
    KINDS,
    POINT_DATA,
    RANK,
    REPORT_FIELDS,
    SHAPES,
    SPARE_BYTES,
    VERSION,
    check_room,
    frames_before,
    hair,
    reading,
)

NUMBERS = "numbers"  # in the part of rank 0: 0, 1, 2 ..., at least as many as an index has bodies in a frame, and one more
RUN_BYTES = 120  # of an index, for each run of rows of each array
PLANES = ("plane_position", "plane_normal")


@dataclass
class Stretch:
    """What an index tells of the frames of one leg."""

    names: list  # of the parts, by rank
    times: list = field(default_factory=list)  # s, of the frames
    bodies: list = field(default_factory=list)  # of each frame: how many in each part
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
        self.ranked = "rank" in part["VTKHDF/PointData"]


# --- what was written before


def parts_named_in(path):
    """Names of the parts of an index; of what is none, none."""
    try:
        with h5py.File(path, "r") as file:
            return [name for leg in legs_in(file) for name in leg.names] if is_index(file) else []
    except DAMAGE:
        return []


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


class _Part:
    """What one part tells of the frames before the present time."""

    def __init__(self, file, simulation):
        steps, own = file["VTKHDF/Steps"], file["gravel"]
        times = all_rows(steps, "Values", (), "f8")[: int(steps.attrs["NSteps"])]
        frames = int(np.count_nonzero(times < simulation.time - hair(simulation)))
        self.times = times[:frames].tolist()
        self.bodies = stored(file["VTKHDF"], "NumberOfPoints")[:][stored(steps, "PartOffsets")[:frames]].tolist()
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
    stretch.contacts = [[part.contacts[k] for part in parts] for k in range(frames)]
    stretch.geometries = [part.geometries for part in parts]
    stretch.reports, stretch.planes, stretch.periodic, stretch.ranked = head.reports, head.planes, head.periodic, head.ranked
    stretch.joints = (min(head.joints[0], frames), head.joints[1])
    return stretch


# --- writing


def write_index(path, stretches, simulation):
    """Replace the index at a path, at once and as a whole. The part of rank 0 of the last leg must hold ``NUMBERS``."""
    runs = sum(len(s.names) * len(s) for s in stretches)
    check_room(path, SPARE_BYTES + RUN_BYTES * (len(POINT_DATA) + 2) * runs)
    temporary = path.with_name(path.name + ".part")
    try:
        with h5py.File(temporary, "w") as file:
            _write_vtk(file, stretches)
            _write_own(file, stretches, simulation)
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
    root = file.create_group("VTKHDF")
    root.attrs["Version"] = np.array([2, 0], "i8")
    root.attrs.create("Type", b"PolyData", dtype=h5py.string_dtype("ascii", len("PolyData")))
    totals = np.array([sum(counts) for stretch in stretches for counts in stretch.bodies], np.int64)
    firsts = np.cumsum(totals) - totals
    runs = _runs_of_bodies(stretches)
    virtual(root, "Points", (totals.sum(), 3), "f4", runs)
    data, steps = root.create_group("PointData"), root.create_group("Steps")
    offsets = steps.create_group("PointDataOffsets")
    ranked = {name for stretch in stretches if stretch.ranked for name in stretch.names}
    for name, (shape, dtype) in {**POINT_DATA, **RANK}.items():
        virtual(data, name, (totals.sum(), *shape), dtype, [run for run in runs if name != "rank" or run.name in ranked])
        offsets[name] = firsts
    _write_cells(root, steps, totals, stretches[-1].names[0])
    steps.attrs["NSteps"] = len(totals)
    steps["Values"] = np.array([moment for stretch in stretches for moment in stretch.times])
    steps["NumberOfParts"] = np.ones(len(totals), np.int64)
    steps["PointOffsets"] = firsts


def _write_cells(root, steps, totals, part):
    """A vertex for each body; frames that follow each other and have as many bodies share their cells."""
    new = np.diff(totals, prepend=-1) != 0
    place, sizes = np.cumsum(new) - 1, totals[new]
    before = np.cumsum(sizes) - sizes
    root["NumberOfPoints"], steps["PartOffsets"] = sizes, place
    for name in ("CellOffsets", "ConnectivityIdOffsets"):
        steps[name] = np.stack([before[place], *np.zeros((3, len(totals)), np.int64)], axis=1)
    for kind in KINDS:
        group, own = root.create_group(kind), sizes if kind == "Vertices" else np.zeros_like(sizes)
        group["NumberOfConnectivityIds"], group["NumberOfCells"] = own, own
        for name, more in (("Connectivity", 0), ("Offsets", 1)):
            ends = np.cumsum(own + more)
            runs = [Run(part, 0, int(end - size), int(size)) for end, size in zip(ends, own + more)]
            virtual(group, name, (ends[-1],), "i8", runs, f"/gravel/{NUMBERS}")


def _write_own(file, stretches, simulation):
    """The group ``gravel``: of rank 0, but for contacts and geometries."""
    own, joints = file.create_group("gravel"), file.create_group("gravel/joints")
    own.attrs["version"], own.attrs["run"] = VERSION, simulation.run_id
    own.attrs["dt"], own.attrs["solver"] = simulation.dt, simulation.solver.describe()
    own.attrs["shapes"] = sorted(SHAPES, key=lambda name: getattr(shapes, name))
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
    _write_contacts(own, stretches)
    _link_geometries(own.create_group("geometries"), stretches)
    own[LEGS] = np.array([(end - n, n, len(s.names), s.reports) for s, end, n in zip(stretches, np.cumsum(frames), frames)], np.int64)
    own[PARTS] = np.array([name.encode() for stretch in stretches for name in stretch.names])


def _from_heads(own, names, shape, stretches, rows, dtype="f8"):
    """Arrays with so many rows of the part of rank 0 of each leg."""
    ends = np.cumsum(rows)
    runs = [Run(stretch.names[0], 0, int(end - n), n) for stretch, end, n in zip(stretches, ends, rows)]
    for name in names:
        virtual(own, name, (ends[-1], *shape), dtype, runs)


def _write_contacts(own, stretches):
    """The contacts part by part: ``frame`` and ``count`` have a row for each part of each frame."""
    if all(count is None for stretch in stretches for counts in stretch.contacts for count in counts):
        return
    group, runs, frame, count, target, first = own.create_group(GROUP), [], [], [], 0, 0
    for stretch in stretches:
        for rank, name in enumerate(stretch.names):
            known = [(first + k, counts[rank]) for k, counts in enumerate(stretch.contacts) if counts[rank] is not None]
            frame += [k for k, _ in known]
            count += [rows for _, rows in known]
            runs.append(Run(name, 0, target, sum(rows for _, rows in known)))
            target += runs[-1].count
        first += len(stretch)
    for name, (shape, dtype) in COLUMNS.items():
        virtual(group, name, (target, *shape), dtype, runs)
    group["frame"], group["count"] = np.array(frame, np.int64), np.array(count, np.int64)


def _link_geometries(group, stretches):
    """Each geometry by a link to the first part that holds it."""
    for stretch in stretches:
        for name, count in zip(stretch.names, stretch.geometries):
            for number in range(len(group), count):
                group[str(number)] = h5py.ExternalLink(name, f"/gravel/geometries/{number}")


def _runs_of_bodies(stretches):
    """The runs of all frames and parts, frame by frame and in it part by part; of a single part, all frames at once."""
    runs, target = [], 0
    for stretch in stretches:
        table = np.array(stretch.bodies, np.int64).reshape(len(stretch), len(stretch.names))
        if len(stretch.names) == 1:
            table = table.sum(axis=0, keepdims=True)
        sources = np.cumsum(table, axis=0) - table
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
