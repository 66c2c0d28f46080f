"""How pictures and videos are to look: what users may say of it, checked in one place; and the colours of bodies.

In: the options of ``gv.picture`` and ``gravel picture``. Out: a ``Look``; ``Tones``, which gives every body of a frame its colour, the
same over all frames of a video.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gravel import checks
from gravel.view import need
from gravel.view.camera import numbers_of, parse
from gravel.view.colouring import COLOURS, PALETTE, colouring

CHOICES = ("auto", *COLOURS)
MAP = "RdYlBu_r"  # told apart by the colour-blind, and light enough for shadows to be seen
PALEST = {"YlOrRd": 0.12, MAP: 0.06}  # where a map begins: below it nothing is seen, on paper or in the dark
LARGEST = 16384  # pixels a side
CROWD, FAR = 0.95, 3.0  # share of bodies that the scale covers where others exceed it by far
GRAINS, MAINLY, FEW = 20, 0.95, 0.01  # fewer moving bodies are a machine; shares of bodies that are nearly all, and next to none
SOME_MOVE = 0.05  # share of bodies in motion from which speed tells most
LISTED = 12  # materials or processes that a legend names
RESTS = 0.05  # of the speed of a fall through its own radius: what is slower counts as at rest
STILL = 0.005  # of that speed: what is slower is what the solver leaves of rest, and no motion that a scale should show
SPREAD = 1.3  # largest over smallest size: bodies at rest that differ by more are coloured by it


@dataclass(frozen=True)
class Look:
    """The options of a picture, as they were given; what cannot be is refused."""

    colour: str = "auto"
    size: tuple = (1200, 900)
    camera: object = "auto"
    background: str = "white"
    forces: bool = False
    clip: object = None
    limits: object = None
    occlusion: bool = True
    caption: bool = True
    backdrop: np.ndarray = field(init=False, repr=False, default=None)  # (3,) the background, 0 to 1

    def __post_init__(self):
        put = object.__setattr__
        checks.choice("colour", self.colour, CHOICES)
        put(self, "size", size_of(self.size))
        put(self, "camera", self.camera if hasattr(self.camera, "target") else parse(self.camera))
        put(self, "backdrop", colour_of("background", self.background))
        put(self, "clip", None if self.clip is None else clip_of(self.clip))
        put(self, "limits", None if self.limits is None else limits_of(self.limits))

    @property
    def needs_contacts(self):
        return self.forces or self.colour == "contacts"

    @property
    def ink(self):
        """(3,) black or white, whichever is read on the background."""
        return np.full(3, 0.12 if self.backdrop @ (0.3, 0.59, 0.11) > 0.45 else 0.94)


def size_of(size):
    """(width, height) in pixels, from two numbers or "1200x900"."""
    try:
        given = size.lower().split("x") if isinstance(size, str) else size
        width, height = (int(n) for n in given)
    except (TypeError, ValueError, AttributeError):
        raise ValueError(f"size must be WIDTHxHEIGHT in pixels, such as 1200x900, not {size!r}") from None
    for name, pixels in (("width", width), ("height", height)):
        if not 16 <= pixels <= LARGEST:
            raise ValueError(f"size must be from 16 to {LARGEST} pixels, but its {name} is {pixels}")
    return width, height


def clip_of(clip):
    """(normal of length one, offset) of "nx,ny,nz,offset"."""
    numbers = numbers_of("clip", clip, "nx,ny,nz,offset") if isinstance(clip, str) else checks.array("clip", clip, (None,))
    if len(numbers) != 4:
        raise ValueError(f"clip must be nx,ny,nz,offset, so 4 numbers, not {len(numbers)}: {clip!r}")
    length = np.linalg.norm(numbers[:3])
    normal = checks.unit("normal of clip", numbers[:3])
    return normal, float(numbers[3] / length)


def limits_of(limits):
    """(low, high) of "low,high"."""
    numbers = numbers_of("limits", limits, "low,high") if isinstance(limits, str) else checks.array("limits", limits, (None,))
    if len(numbers) != 2 or numbers[0] >= numbers[1]:
        raise ValueError(f"limits must be low,high, the second above the first, not {limits!r}")
    return float(numbers[0]), float(numbers[1])


def colour_of(name, colour):
    """(3,) red, green, blue from 0 to 1, of a colour that matplotlib knows: white, #f4f4f0 ..."""
    try:
        return np.array(need("matplotlib.colors").to_rgb(colour))
    except ValueError:
        raise ValueError(f"{name} must be a colour such as white, black or #f4f4f0, not {colour!r}") from None


def rgb(values, limits, name=MAP):
    """(n, 3) colours of values on a scale."""
    scaled = np.clip((np.asarray(values, float) - limits[0]) / (limits[1] - limits[0]), 0, 1)
    pale = PALEST.get(name, 0.0)
    return need("matplotlib").colormaps[name](pale + (1 - pale) * scaled)[:, :3]


class Tones(NamedTuple):
    """What gives bodies their colours in all frames of a picture or video."""

    name: str  # of COLOURS
    words: str  # "speed, m/s"
    limits: tuple | None  # of the scale; None: numbered, without a scale
    beyond: bool  # some values lie above the scale
    legend: tuple = ()  # (what it is called, its colour) of numbered things, if they are several and not too many
    still: bool = False  # nothing moves: one colour for all

    def of(self, data, contacts):
        """(n, 3) colours of all bodies of a frame, 0 to 1."""
        if self.still:
            return np.broadcast_to(colour_of("palette", PALETTE[0]), (len(data["id"]), 3))
        values = colouring(data, self.name, contacts).values
        if self.limits is None:
            return np.array([colour_of("palette", c) for c in PALETTE])[values.astype(int) % len(PALETTE)]
        return rgb(values, self.limits)


def tones_of(samples, look):
    """The tones for frames of which ``samples`` (frame, contacts) are some."""
    name = look.colour if look.colour != "auto" else chosen_colour([data for data, _ in samples])
    found = [colouring(data, name, contacts) for data, contacts in samples]
    values = np.concatenate([c.values[data["movable"] > 0] for c, (data, _) in zip(found, samples)])
    if found[0].numbered:
        if look.limits is not None and not look.forces:
            raise ValueError(f"limits are the ends of a colour scale, and colour {name} has none: give a colour such as speed with them")
        return Tones(name, found[0].words, None, False, () if name == "body" else legend_of(found[-1], values))
    values = values if name not in STILLNESS or look.limits else values[values > STILLNESS[name](samples)]
    if name in STILLNESS and not len(values) and not look.limits and not look.forces:
        return Tones(name, found[0].words, None, False, (("at rest", colour_of("palette", PALETTE[0])),), True)
    limits = look.limits or scale_of(values, from_zero=name != "radius")
    return Tones(name, found[0].words, limits, bool(values.max(initial=0) > limits[1] * (1 + 1e-6)))


def _still_speed(samples):
    """m/s below which bodies are at rest, whatever the solver leaves of their speed."""
    radii = np.concatenate([data["radius"][data["movable"] > 0] for data, _ in samples])
    return STILL * np.sqrt(2 * 9.81 * np.median(radii)) if len(radii) else 0.0


def _still_energy(samples):
    masses = np.concatenate([data["mass"][data["movable"] > 0] for data, _ in samples])
    return 0.5 * np.median(masses) * _still_speed(samples) ** 2 if len(masses) else 0.0


STILLNESS = {"speed": _still_speed, "energy": _still_energy}  # colours whose values are noise where nothing moves


def legend_of(colouring, values):
    """(name, colour) of each number among the values; none if there is one, or too many to be listed."""
    numbers = np.unique(values).astype(int).tolist()
    if not 1 < len(numbers) <= LISTED:
        return ()
    return tuple((colouring.name_of(number), colour_of("palette", PALETTE[number % len(PALETTE)])) for number in numbers)


def chosen_colour(frames):
    """What tells most: of a machine its bodies; of grains their size where there are a few sizes, their material where there are several,
    their speed where they move, and at rest their size again where it differs."""
    moving = [data["movable"] > 0 for data in frames]
    material, radius = (np.concatenate([data[name][m] for data, m in zip(frames, moving)]) for name in ("material", "radius"))
    numbers, counts = np.unique(material, return_counts=True)
    if max(np.count_nonzero(m) for m in moving) < GRAINS:
        return "body" if len(numbers) == 1 else "material"
    if counts.max() > MAINLY * len(material) and _size_classes(radius[material == numbers[counts.argmax()]]) > 1:
        return "radius"
    if len(numbers) > 1:
        return "material"
    if any(map(_moves, frames, moving)):
        return "speed"
    return "radius" if radius.max() > SPREAD * radius.min() else "material"


def _size_classes(radius):
    """How many sizes there are, apart from each other by a fifth; those that few have do not count."""
    radius = np.sort(radius)
    ends = np.concatenate([[0], np.flatnonzero(radius[1:] > 1.2 * radius[:-1]) + 1, [len(radius)]])
    return int(np.count_nonzero(np.diff(ends) > FEW * len(radius)))


def _moves(data, moving):
    """Whether more than a few bodies move."""
    speed = np.linalg.norm(data["velocity"][moving], axis=1)
    return np.mean(speed > RESTS * np.sqrt(2 * 9.81 * data["radius"][moving])) > SOME_MOVE if len(speed) else False


def scale_of(values, from_zero):
    """(low, high) of a scale for values, with round ends; far outliers lie beyond it."""
    if not len(values):
        return 0.0, 1.0
    low, high, crowd = float(values.min()), float(values.max()), float(np.quantile(values, CROWD))
    high = crowd if 0 < FAR * crowd < high else high
    low = 0.0 if from_zero or low == high else low
    if high <= low:
        return low, low + 1.0
    step = round_length((high - low) / 4)
    return float(np.floor(low / step + 1e-6) * step), float(np.ceil(high / step - 1e-6) * step)


def round_length(most):
    """The largest of 1, 2, 5, 10 ... times a power of ten that is not above ``most``."""
    power = 10.0 ** np.floor(np.log10(most))
    return float(next(k * power for k in (5, 2, 1) if k * power <= most * (1 + 1e-9)))
