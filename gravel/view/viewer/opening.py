"""What a page shows first: a frame in which something happens, the colour that tells most, and all bodies in view."""

import numpy as np

from gravel.view.look import chosen_colour
from gravel.view.viewer.wire import bounds_of

LIVELY = 0.01  # of the largest kinetic energy: a tenth of the speeds then. So a flow counts that comes after a fall
MANY = 200_000  # bodies: of so many only the frame that is opened is read before the page is shown
MARGIN = 0.5  # of the diagonal: bodies that are farther away at the start or in the end do not make the picture smaller


def lively_frame(times, steps, energies):
    """The number of the frame to open: the middle one of those with at least LIVELY of the largest kinetic energy, or the last if
    nothing moves.

    ``times``: s, of the frames; ``steps``, ``energies``: the time in s of each step and its kinetic energy in J. Of three frames in a row
    the middle value counts, so that one body which is shot away in one frame does not decide; unless nothing else moves."""
    before = np.searchsorted(steps, times, side="right") - 1
    found = np.where(before >= 0, np.append(energies, 0.0)[before], 0.0)
    ends = np.pad(found, 1, mode="edge")
    steady = np.median([ends[:-2], ends[1:-1], ends[2:]], axis=0)
    chosen = steady if steady.max() > 0 else found
    if not chosen.max() > 0:
        return len(times) - 1
    lively = np.flatnonzero(chosen >= LIVELY * chosen.max())
    return int(lively[len(lively) // 2])


def colour_of(data, live=False):
    """What the bodies of a frame are coloured by at first. A run that goes on will move, whatever it does now."""
    name = chosen_colour([data])
    moving = data["material"][data["movable"] > 0]
    return "speed" if live and name == "material" and (moving == moving[:1]).all() else name


def box_of(frames):
    """[low, high] corners of what the camera sees: the first of some frames, and what lies near it in the others."""
    low, high = np.array(bounds_of(frames[0]))
    reach = MARGIN * np.linalg.norm(high - low)
    lowest, highest = low.copy(), high.copy()
    for data in frames[1:]:
        other_low, other_high = np.array(bounds_of(data))
        lowest = np.where(other_low >= low - reach, np.minimum(lowest, other_low), lowest)
        highest = np.where(other_high <= high + reach, np.maximum(highest, other_high), highest)
    return [lowest.tolist(), highest.tolist()]
