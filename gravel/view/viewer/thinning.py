"""Which bodies of many are shown: a browser draws some hundred thousand well, and results hold ten million.

In: what hardly ever changes about the bodies of a frame. Out: a ``Choice`` of rows. A body is chosen by its id alone, so that the same ones
are shown in every frame, also where others come and go. Fixed bodies, parts of machines and all that have joints stay: only grains are
thinned out.
"""

from typing import NamedTuple

import numpy as np

from gravel import checks
from gravel.io.layout import POINT_DATA

MOST = 500_000  # bodies that are shown unless the user asks for more or fewer
LARGE = 4.0  # times the median radius: parts of machines among grains
MOST_PARTS = 50_000  # of more fixed or large bodies an even share is shown, too
BODY_FIELDS = ("position", "rank", *POINT_DATA)


class Choice(NamedTuple):
    """The bodies of a frame that are shown."""

    rows: np.ndarray  # (k,) in the frame
    sampled: np.ndarray  # (k,) bool: those that stand for others, too
    moving: int  # how many bodies of the whole frame can move


def share_of(count, most):
    """The share of so many bodies that is shown."""
    return min(1.0, most / max(count, 1))


def most_of(bodies):
    """How many bodies are shown at most, as users give it."""
    return checks.count("bodies", bodies, minimum=1)


def chooser(share):
    """What ``gravel.io.frames.frame_in`` asks which bodies to read; None if all are shown."""
    return None if share >= 1.0 else lambda bodies, jointed: choose(bodies, jointed, share)


def choose(bodies, jointed, share):
    """``bodies``: id, radius and movable of each; ``jointed``: ids of those with joints."""
    moving = bodies["movable"] > 0
    typical = np.median(bodies["radius"][moving]) if moving.any() else np.inf
    kept = ~moving | (bodies["radius"] > LARGE * typical)
    if np.count_nonzero(kept) > MOST_PARTS:
        kept[:] = False
    kept |= np.isin(bodies["id"], jointed)
    sampled = ~kept & (_scattered(bodies["id"]) < share * 2.0**32)
    rows = np.flatnonzero(kept | sampled)
    return Choice(rows, sampled[rows], int(np.count_nonzero(moving)))


def _scattered(ids):
    """Numbers below 2**32 that follow no pattern, one for each id (the last steps of MurmurHash3): bodies that were made row by row are not
    left out row by row."""
    x = np.asarray(ids).astype(np.uint32)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    return x ^ (x >> np.uint32(16))


def thinned(data, most):
    """A frame that is in memory, with so many bodies at most."""
    share = share_of(len(data["id"]), most)
    if share >= 1.0:
        return data
    joints = data["joints"]
    choice = choose(data, np.concatenate([joints["body_a"], joints["body_b"]]), share)
    chosen = {name: data[name][choice.rows] for name in BODY_FIELDS}
    return {**data, **chosen, "sampled": choice.sampled, "moving": choice.moving, "share": share}
