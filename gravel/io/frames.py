"""Result files, read: which frames a file holds, one frame as arrays, its joints and the reports of its steps.

A file that is none of ours, or damaged, is refused with a ``ValueError`` that names it.
"""

import contextlib
import pathlib
import time

import h5py
import numpy as np

from gravel.io.about import anchors_in, body_names_in, material_names_in, stage_seconds_in
from gravel.io.blocks import ROOT
from gravel.io.joined import check_links, is_index, joined_frame, joined_joints, joined_most, joined_reports, joined_stage_seconds
from gravel.io.layout import BODIES, JOINT_FIELDS, PLACES, POINT_DATA, RANK, REPORT_FIELDS, SHAPES, VERSION, cell_of
from gravel.io.validate_file import DAMAGE, all_rows, need, rows_of, stored
from gravel.shapes.geometry import NONE

CHOSEN_BY = ("id", "radius", "movable")  # what tells which bodies of many are shown
PAUSES = (0.05, 0.1, 0.2)  # s: a viewer reads a frame in less


def frames_before(path, simulation):
    """How many frames of the file at this path are of an earlier time of this very run: 0 where there is no file, or it is a result of
    another run, which may be replaced; what is no result is refused."""
    if not path.exists() or path.stat().st_size == 0:
        return 0
    try:
        with writing(path), h5py.File(path, "r") as file:
            check_links(file)
            ours = ROOT in file and "gravel" in file
            same = ours and (file["gravel"].attrs.get("run"), file["gravel"].attrs.get("version")) == (simulation.run_id, VERSION)
            times = stored(file[BODIES]["Steps"], "Values")[: frames_in(file)] if same else ()
    except BlockingIOError:
        raise
    except DAMAGE as error:
        raise ValueError(f"output {path} is there already and cannot be read as a result of gravel; it stays as it is: {error}") from None
    if not ours:
        raise ValueError(f"output {path} is there already and is no result of gravel; remove it or give another name")
    return int(np.count_nonzero(np.asarray(times) < simulation.time - hair(simulation)))


def hair(simulation):
    """s: times that differ by less are one."""
    return 1e-6 * simulation.dt + 1e-12 * abs(simulation.time)


@contextlib.contextmanager
def writing(path):
    """A file that another process has open is not written to: it is said so."""
    try:
        yield
    except OSError as error:
        if is_open_here(error):
            words = "is open in this very program: close the result that was opened, or end the run that writes it"
            raise BlockingIOError(f"output {path} {words}") from None
        if not is_locked(error):
            raise
        raise BlockingIOError(f"output {path} is open in another process: a run that writes it, or a program that shows it") from None


def open_to_write(path, mode):
    """An HDF5 file that is opened to be written; waits a moment for those who look at it."""
    for pause in PAUSES:
        try:
            with writing(path):
                return h5py.File(path, mode)
        except BlockingIOError:
            time.sleep(pause)
    with writing(path):
        return h5py.File(path, mode)


def is_open_here(error):
    """Whether HDF5 could not open a file because this process has it open in another way."""
    return "already open" in str(error)


def is_locked(error):
    """Whether HDF5 could not open a file because another process has it open."""
    return isinstance(error, BlockingIOError) or "unable to lock file" in str(error)


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
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give a result file")
    if not path.is_file():
        raise ValueError(f"{path} is no ordinary file (a pipe or a device, perhaps), and no result of gravel")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is not a result file of gravel: it is empty")
    try:
        file = h5py.File(path, "r")
    except (OSError, RuntimeError) as error:
        if is_locked(error):
            words = "is being written by a run, and can be read when that has ended; gravel run --view shows a run while it goes on"
            raise BlockingIOError(f"{path} {words}") from None
        raise ValueError(f"{path} is not a result file of gravel, or it is cut short: {' '.join(str(error).split())}") from None
    try:
        with reading(path):
            check_links(file)
            ours = ROOT in file and "gravel" in file
            version = int(file["gravel"].attrs.get("version", 1)) if ours else 0
        if "gravel_checkpoint" in file.attrs:
            raise ValueError(f"{path} is a checkpoint, not a result: gravel run SCENE --resume {path} goes on with it")
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

    "geometries": number -> {"vertices", "triangles"} of those that bodies of the frame have; "joints": where the joints of the frame sit
    (``gravel.io.present.joint_anchors``); "material_names": by number, empty where a material has none; "body_names"; "rows": at which rows
    of the file its arrays begin, and how many they are.
    """
    with open_result(path) as file:
        with reading(path):
            count = frames_in(file)
        if count == 0:
            raise ValueError(f"{path} holds no frames")
        if not -count <= frame < count:
            raise ValueError(f"frame must be from {-count} to {count - 1} for {path}, not {frame}")
        with reading(path):
            return frame_in(file, frame % count)


def frames_in(file):
    """How many frames an open file holds."""
    return int(file[BODIES]["Steps"].attrs["NSteps"])


def frame_in(file, frame, before=None, choose=None):
    """A frame of an open file, as ``read_frame`` gives it. ``before``: another frame of it; arrays of rows that both share are its own.

    ``choose``: for frames of which not all bodies are wanted: from what it is told of them (CHOSEN_BY by name) and the ids of those that
    have joints, an object whose ``rows`` are those of the bodies to read, ``sampled`` says which of these stand for others, and ``moving``
    how many of all can move. It comes back as "choice", "sampled" and "moving"; no array is larger than one field of all bodies."""
    if is_index(file):
        return joined_frame(file, frame, lambda part, number: frame_in(part, number, choose=choose))
    block, own = file[BODIES], file["gravel"]
    joints = anchors_in(own["joints"], frame)
    data, rows = _bodies_in(block, frame, before, choose and (lambda bodies: choose(bodies, np.append(joints["body_a"], joints["body_b"]))))
    counts = rows_of(own, "plane_count", slice(0, frame + 1), (), "i8")
    planes = slice(int(counts[:-1].sum()), int(counts.sum()))
    return {
        "time": float(rows_of(block["Steps"], "Values", slice(frame, frame + 1), (), "f8")[0]),
        **data,
        **{name: rows_of(own, name, planes, (3,), "f8") for name in ("plane_position", "plane_normal")},
        "cell": cell_of(rows_of(own, "cell", slice(frame, frame + 1), (13,), "f8")[0]) if len(stored(own, "cell")) else None,
        "gravity": rows_of(own, "gravity", slice(frame, frame + 1), (3,), "f8")[0],
        **{name: float(rows_of(own, name, slice(frame, frame + 1), (), "f8")[0]) for name in ("frame_dt", "contact_lag")},
        "geometries": {int(k): _surface(own[f"geometries/{k}"]) for k in np.unique(data["geometry"]) if k != NONE},
        "joints": joints,
        "material_names": material_names_in(file),
        "body_names": body_names_in(file),
        "rows": rows,
    }


def _bodies_in(block, frame, before, choose):
    """What a frame says of its bodies, and at which rows of the file that begins, and how many they are."""
    steps = block["Steps"]
    count, first = int(stored(block, "NumberOfPoints")[frame]), int(stored(steps, "PointOffsets")[frame])
    fields = {**POINT_DATA, **RANK} if "rank" in block["PointData"] else POINT_DATA
    firsts = {name: int(stored(block["Steps/PointDataOffsets"], name)[frame]) for name in fields}
    same = {name for name in fields if before is not None and before["rows"][1] == count and before["rows"][0].get(name) == firsts[name]}
    read = lambda name: _body_rows(block, name, firsts[name], count, *fields[name])  # noqa: E731
    choice = None
    if choose is not None:
        choice = before["choice"] if same.issuperset(CHOSEN_BY) else choose({name: read(name) for name in CHOSEN_BY})
        if before is not None and choice is not before["choice"]:
            same = set()
    only = slice(None) if choice is None else choice.rows
    data = {name: before[name] if name in same else read(name)[only] for name in fields}
    data["position"] = rows_of(block, "Points", slice(first, first + count), (3,), PLACES)[only]
    data.setdefault("rank", np.zeros(len(data["position"]), "i4"))
    if len(data["id"]) and not (data["shape"].min() >= 0 and data["shape"].max() < len(SHAPES) and data["geometry"].min() >= NONE):
        raise ValueError("shape or geometry of a body is a number that there is not")
    if choice is not None:
        data |= {"choice": choice, "sampled": choice.sampled, "moving": choice.moving}
    return data, (firsts, count)


def most_bodies_in(file):
    """How many bodies the frames of an open file have at most."""
    if is_index(file):
        return joined_most(file, lambda part, frames: _bodies_of(part)[:frames])
    return int(_bodies_of(file)[: frames_in(file)].max(initial=0))


def _bodies_of(file):
    """(frames,) how many bodies each frame has."""
    return all_rows(file[BODIES], "NumberOfPoints", (), "i8")


def _body_rows(block, name, first, count, shape, dtype):
    """What a frame says of its bodies, from a row on that other frames may share."""
    return rows_of(block["PointData"], name, slice(first, first + count), shape, dtype)


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
    group, time = file["gravel/joints"], all_rows(file[BODIES]["Steps"], "Values", (), "f8")
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


def seconds_in(file):
    """Stage -> (steps,) s of wall clock, of an open file."""
    seconds = joined_stage_seconds(file, stage_seconds_in) if is_index(file) else stage_seconds_in(file)
    steps = len(reports_in(file)["time"])
    need(all(len(values) == steps for values in seconds.values()), "the seconds of its steps do not fit its reports")
    return seconds
