"""What a picture is of: a result file, a frame of one, a simulation or a scene, each as the arrays of a frame and its contacts."""

import os
from typing import NamedTuple

import numpy as np

from gravel.contacts import ContactTable
from gravel.io.present import frame_of
from gravel.io.result import Frame, Result, open_result
from gravel.io.vtkhdf import read_frame
from gravel.rotations import rotate

MOST_JOINTS = 60  # where there are more, they would hide the bodies
NEAR = 1.5  # radii from the centre of a body: its contacts are nearer


class Shown(NamedTuple):
    """A frame and, where they were asked for, its contacts."""

    data: dict
    contacts: ContactTable | None


def shown(source, frame=-1, with_contacts=False):
    """The frame of a source; ``frame`` counts the frames of a result file."""
    if not isinstance(frame, (int, np.integer)) or isinstance(frame, bool):
        raise TypeError(f"frame must be a whole number, not {frame!r:.80}")
    if isinstance(source, Frame):
        source, frame = source.result.path, source.index
    if isinstance(source, Result):
        source = source.path
    if isinstance(source, (str, os.PathLike)):
        return Shown(read_frame(source, frame), contacts_of(source, frame) if with_contacts else None)
    if not hasattr(source, "mechanism"):
        raise TypeError(f"source must be the path of a result, a Frame, a Simulation or a Scene, not {source!r:.80}")
    if frame != -1:
        raise ValueError(f"frame goes with a result file, but {source!r:.80} is a moment of its own")
    data = frame_of(source)
    if not with_contacts:
        return Shown(data, None)
    if not hasattr(source, "contacts"):
        raise ValueError("forces and colour contacts need contacts, which a scene does not have: give a simulation, or a result with them")
    return Shown({**data, "frame_dt": source.dt}, source.contacts)


def contacts_of(path, frame):
    """The contacts of a frame of a result file; refused if it has none."""
    with open_result(path) as result:
        return result.contacts(frame)


def rows_of_ids(data, ids):
    """The rows (n,) of a frame that bodies with such ids have; -1 where they are not in it."""
    ids, own = np.asarray(ids), data["id"]  # a table of all ids would be as long as the largest
    if not len(own):
        return np.full(len(ids), -1)
    order = np.argsort(own, kind="stable")
    at = order[np.minimum(np.searchsorted(own, ids, sorter=order), len(own) - 1)]
    return np.where(own[at] == ids, at, -1)


def contact_ends(data, ids, points, grain):
    """(n, 3) m: the centres of the bodies of contacts that are a ``grain``; the contacts' points where a body is none, is not in the frame,
    or is seen across the border of a periodic cell, far from the contact."""
    if not len(data["id"]):
        return np.array(points, "f4")
    rows = rows_of_ids(data, ids)
    centres = data["position"][rows]
    near = ((centres - points) ** 2).sum(axis=1) < (NEAR * data["radius"][rows]) ** 2
    return np.where(((rows >= 0) & grain[rows] & near)[:, None], centres, points).astype("f4")


def joints_to_draw(data):
    """Whether a frame has joints, and few enough of them to be drawn."""
    joints = data.get("joints")
    return joints is not None and 0 < len(joints["kind"]) <= MOST_JOINTS


def joint_points(data):
    """(n, 3) m twice: where joints sit on their bodies a and b, in the world; NaN where a body is not there."""
    return tuple(anchors(data, data["joints"][f"body_{side}"], data["joints"][f"point_{side}"]) for side in "ab")


def anchors(data, ids, points):
    """Points in frames of bodies, in the world; -1 is the world."""
    rows, world = rows_of_ids(data, ids), np.array(points, float)
    own = rows >= 0
    world[own] = data["position"][rows[own]] + rotate(data["quaternion"][rows[own]].astype(float), world[own])
    world[~own & (ids >= 0)] = np.nan
    return world
