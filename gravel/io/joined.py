"""Results of many processes, read: an index file that says which part files hold which frames, and the frames joined from them.

Index: ``run.vtkhdf`` with ``gravel/legs``, a row of four numbers for each stretch of the run that was done by the same number of processes
(its first frame, how many frames, how many processes, how many step reports), and ``gravel/parts``, the names of its part files, leg by
leg and rank by rank. Parts are result files of their own and lie in the folder of the index. Frame k of a leg is frame k of each of its
parts. What is virtual in an index is for other programs and not used here: a name might lead to any file of the machine.
"""

import contextlib
import pathlib
import re
from typing import NamedTuple

import h5py
import numpy as np

from gravel.contacts import join_tables
from gravel.io.blocks import ROOT
from gravel.io.validate_file import all_rows, need, stored

LEGS, PARTS = "legs", "parts"
HAIR = 1e-9  # of a time: parts of one frame agree better than that


class Leg(NamedTuple):
    """Frames that the same processes have written."""

    first: int  # its first frame in the index
    frames: int
    reports: int  # steps whose reports count, of those in the part of rank 0
    names: tuple  # of its part files, by rank


def is_index(file):
    """Whether an open result file leaves its frames to parts."""
    return LEGS in file["gravel"]


def check_links(file):
    """Refuse an open result that leads to other files: h5py would follow links to any file of the machine, and wait for ever at a pipe.
    Links within the file stand in VTK's list of blocks, those of an index to geometries in its parts, for other programs; neither is
    followed here."""
    outer = []

    def look(name, link):
        inner = isinstance(link, h5py.SoftLink) and name.startswith(f"{ROOT}/Assembly/")
        if not (isinstance(link, h5py.HardLink) or inner):
            outer.append(name)

    file.visititems_links(look)
    wrong = next((name for name in outer if not re.fullmatch(r"gravel/geometries/\d+", name)), None)
    if outer and wrong is None and not is_index(file):
        wrong = outer[0]
    need(wrong is None, f"{wrong} is kept in another file")


def legs_in(file):
    """The legs of an open index."""
    own = file["gravel"]
    rows, data = all_rows(own, LEGS, (4,), "i8"), stored(own, PARTS, "S")
    need(data.ndim == 1, "it does not name its parts")
    names = [name.decode() for name in data[:].tolist()]
    need((rows >= 0).all() and rows[:, 2].sum() == len(names), "its legs do not fit its parts")
    need((rows[:, 0] == np.cumsum(rows[:, 1]) - rows[:, 1]).all(), "its legs do not follow each other")
    for name in names:
        plain = name not in ("", "..") and name == pathlib.PurePath(name).name and "\\" not in name
        need(plain, f"its part {name!r:.80} is no plain name")
    ends = np.cumsum(rows[:, 2])
    return [Leg(int(f), int(n), int(reports), tuple(names[e - p : e])) for (f, n, p, reports), e in zip(rows, ends)]


def leg_of(file, frame):
    """(leg that has a frame, number of the frame in it)."""
    for leg in legs_in(file):
        if leg.first <= frame < leg.first + leg.frames:
            return leg, frame - leg.first
    raise ValueError(f"none of its parts has frame {frame}")


@contextlib.contextmanager
def opened(file, name):
    """An open part of an index, if it is one of the same run; what goes wrong inside is the fault of the part."""
    path = pathlib.Path(file.filename).with_name(name)
    if not path.is_file():
        raise ValueError(f"its part {name} is not there; parts lie beside their index")
    try:
        with h5py.File(path, "r") as part:
            check_links(part)
            need("gravel" in part and ROOT in part and not is_index(part), "it is no result of one process")
            for key in ("run", "version"):
                need(part["gravel"].attrs[key] == file["gravel"].attrs[key], f"it is of another {key}")
            yield part
    except (KeyError, ValueError, TypeError, IndexError, OSError, RuntimeError) as error:
        raise ValueError(f"its part {name}: {' '.join(str(error).split())}") from None


def joined_frame(file, frame, read):
    """A frame as ``read(part, number)`` gives it of each part: bodies in the order of their ids, planes and circumstances of rank 0."""
    leg, number = leg_of(file, frame)
    pieces = []
    for name in leg.names:
        with opened(file, name) as part:
            pieces.append(read(part, number))
            time, expected = pieces[-1]["time"], pieces[0]["time"]
            need(abs(time - expected) <= HAIR * max(1.0, abs(expected)), f"its frame {number} is of {time:g} s, not {expected:g}")
    head = pieces[0]
    ids = np.concatenate([piece["id"] for piece in pieces])
    order = np.argsort(ids, kind="stable")
    twice = ids[order][1:][np.diff(ids[order]) == 0]
    need(not len(twice), f"body {twice[0] if len(twice) else ''} of frame {frame} is in two parts")
    of_bodies = [name for name, values in head.items() if isinstance(values, np.ndarray) and name not in ("gravity", *_PLANES)]
    joined = {name: np.concatenate([piece[name] for piece in pieces])[order] for name in of_bodies}
    geometries = {number: surface for piece in reversed(pieces) for number, surface in piece["geometries"].items()}
    moving = {"choice": None, "moving": sum(piece["moving"] for piece in pieces)} if "choice" in head else {}
    return {**head, **joined, **moving, "geometries": geometries}


_PLANES = ("plane_position", "plane_normal")


def joined_most(file, read):
    """How many bodies a frame has at most; ``read(part, frames)`` gives how many of them each of its first frames has."""
    most = 0
    for leg in legs_in(file):
        total = np.zeros(leg.frames, np.int64)
        for name in leg.names:
            with opened(file, name) as part:
                found = read(part, leg.frames)
                need(len(found) == leg.frames, f"it holds {len(found)} frames of {leg.frames}")
                total += found
        most = max(most, int(total.max(initial=0)))
    return most


def joined_reports(file, read):
    """The step reports, which the parts of rank 0 hold: ``read(part)`` gives a dict of arrays."""
    pieces = []
    for leg in legs_in(file):
        with opened(file, leg.names[0]) as part:
            pieces.append({name: values[: leg.reports] for name, values in read(part).items()})
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


def joined_stage_seconds(file, read):
    """Stage -> seconds of each step, likewise; 0 in legs that have no such stage."""
    pieces = []
    for leg in legs_in(file):
        with opened(file, leg.names[0]) as part:
            pieces.append((leg.reports, {name: values[: leg.reports] for name, values in read(part).items()}))
            enough = all(len(values) == leg.reports for values in pieces[-1][1].values())
            need(enough, f"it holds the seconds of fewer than {leg.reports} steps")
    names = dict.fromkeys(name for _, piece in pieces for name in piece)
    return {name: np.concatenate([piece.get(name, np.zeros(steps)) for steps, piece in pieces]) for name in names}


def joined_joints(file, read):
    """The joints of all frames, likewise; joints that came later are NaN before."""
    pieces = []
    for leg in legs_in(file):
        with opened(file, leg.names[0]) as part:
            piece = read(part)
            pieces.append({name: values if name == "names" else values[: leg.frames] for name, values in piece.items()})
            need(len(pieces[-1]["time"]) == leg.frames, f"it holds {len(pieces[-1]['time'])} frames of {leg.frames}")
    names = max((piece["names"] for piece in pieces), key=len)
    fields = {name for name in pieces[0] if name not in ("names", "time")}
    return {
        "time": np.concatenate([piece["time"] for piece in pieces]),
        "names": names,
        **{name: _stacked([(piece[name], len(piece["time"])) for piece in pieces], len(names)) for name in fields},
    }


def _stacked(pieces, joints):
    """Arrays (frames or none, their joints, ...) below each other, NaN where there is nothing."""
    rows = []
    for values, frames in pieces:
        rows.append(np.full((frames if joints else 0, joints, *values.shape[2:]), np.nan))
        if len(values):
            rows[-1][:, : values.shape[1]] = values
    return np.concatenate(rows)


def joined_contacts(file, frame, read):
    """The contacts of a frame from all parts, ``read(part, number)`` a ``ContactTable`` or None; None where a part has none."""
    leg, number = leg_of(file, frame)
    tables = []
    for name in leg.names:
        with opened(file, name) as part:
            tables.append(read(part, number))
    return None if any(table is None for table in tables) else join_tables(tables)
