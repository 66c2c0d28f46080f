"""Which frames of a result are exported, and how: what every format is given."""

import importlib

import numpy as np

from gravel import checks
from gravel.io.frames import frame_in, reading


class Chosen:
    """The frames of a result that were asked for, read one by one."""

    def __init__(self, result, frames=None, contacts=False, colour="material", split=False):
        self.result, self.numbers = result, chosen_frames(len(result), frames, result.path)
        self.with_contacts, self.colour, self.split = contacts, colour, split

    def __len__(self):
        return len(self.numbers)

    @property
    def times(self):
        """(frames,) s."""
        return self.result.times[self.numbers]

    def __iter__(self):
        """(number in the result, arrays as ``gravel.io.vtkhdf.read_frame`` gives them) of each."""
        for number in self.numbers:
            with reading(self.result.path):
                data = frame_in(self.result.file, number)
            yield number, data

    def contacts(self, number):
        """The contacts of a frame, or None if they are not asked for; refused where the result has none."""
        return self.result.contacts(number) if self.with_contacts else None


def chosen_frames(count, frames, path):
    """Numbers of frames of a result that has ``count``: one, several, a slice, or all (None)."""
    if count == 0:
        raise ValueError(f"{path} holds no frames")
    if frames is None or isinstance(frames, slice):
        numbers = list(range(count))[frames or slice(None)]
        if not numbers:
            why = "the last is before the first" if (frames.start or 0) < count else "there is no such frame"
            raise ValueError(f"frames must be some of the {count} of {path}, but the first is {frames.start}, and {why}")
        return numbers
    numbers = [frames] if isinstance(frames, (int, np.integer)) else list(frames)
    for number in numbers:
        number = checks.count("frame", number, minimum=-count)
        if number >= count:
            raise ValueError(f"frame must be from {-count} to {count - 1} for {path}, not {number}")
    if not numbers:
        raise ValueError(f"frames must be some of the {count} of {path}, but are none")
    return [int(number) % count for number in numbers]


def need(module, extra, words):
    """Import a module of an extra, or say how to get it. ``words``: what needs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise RuntimeError(f'{words} needs {module.split(".")[0]}, which is not installed: pip install "gravel[{extra}]"') from None
