"""What is written onto a picture: time and number of bodies, a scale bar with a round length, a colour bar with its unit or a legend.

In: pixels (height, width, 3) and what they show. Out: pixels, with sharp text in the ink that the background asks for; nothing that was
drawn is left under it.
"""

import os
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gravel.view import need
from gravel.view.look import MAP, rgb, round_length

UNITS = ((1e3, "km"), (1.0, "m"), (1e-3, "mm"), (1e-6, "µm"), (1e-9, "nm"))
TEXT, MARGIN = 0.028, 0.025  # height of letters and distance to the border, of the rows
SCALE_SHARE = 0.2  # of the width, which the scale bar does not exceed
BAR = (0.28, 0.72)  # rows of the colour bar, as shares
PLAIN = 2  # of 255: what differs from the background by no more is background
BAR_ROOM = 0.84  # share of the width that bodies keep to where there is a colour bar


class Bar:
    """A colour bar: words, limits, whether values lie beyond, a name of a colour map."""

    def __init__(self, words, limits, beyond=False, map_name=MAP):
        self.words, self.limits, self.beyond, self.map_name = words, limits, beyond, map_name


def written_on(pixels, title, pixels_per_metre, look, bar=None, legend=(), signs=()):
    """The pixels with title, scale bar (None: none), colour bar (None: none), a legend of (name, colour) and one of ``signs``, names of
    SIGNS. Where bodies or floors reach under them they get a card in the colour of the background, so that all can be read."""
    sheet = need("PIL.Image").fromarray(pixels)
    letters = max(TEXT * pixels.shape[0], 9)
    page = Page(sheet, need("PIL.ImageDraw").Draw(sheet), tuple(int(255 * x) for x in look.ink), look.backdrop, letters)
    _title(page, title)
    if pixels_per_metre:
        _scale_bar(page, pixels_per_metre)
    if bar is not None:
        _colour_bar(page, bar)
    _legend(page, legend, signs, bar is not None)
    return np.asarray(sheet)


class Page(NamedTuple):
    """What is written on."""

    sheet: object  # a picture of Pillow
    pen: object
    ink: tuple  # of text
    backdrop: np.ndarray  # (3,) the background, 0 to 1
    letters: float  # pixels, their height

    def clear(self, left, top, right, bottom):
        """Put a card under what is written there, unless there is only background."""
        edge = 0.45 * self.letters
        box = [max(round(left - edge), 0), max(round(top - edge), 0), round(right + edge), round(bottom + edge)]
        paper = tuple(int(255 * x + 0.5) for x in self.backdrop)
        below = np.asarray(self.sheet.crop((*box[:2], min(box[2], self.sheet.width), min(box[3], self.sheet.height))))
        if (np.abs(below.astype(int) - paper) > PLAIN).any():
            self.pen.rounded_rectangle(box, radius=edge, fill=paper)


@lru_cache
def font(letters):
    """DejaVu Sans, which comes with matplotlib."""
    path = os.path.join(need("matplotlib").get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
    return need("PIL.ImageFont").truetype(path, round(letters))


def scale_bar(width, pixels_per_metre):
    """(length in m, pixels, words) of the scale bar of a picture so wide."""
    length = round_length(SCALE_SHARE * width / pixels_per_metre)
    unit, name = next((u for u in UNITS if length >= u[0] * (1 - 1e-9)), UNITS[-1])
    return length, length * pixels_per_metre, f"{length / unit:g} {name}"


def _title(page, title):
    place = (MARGIN * page.sheet.height,) * 2
    shown = font(page.letters)
    page.clear(*page.pen.textbbox(place, title, font=shown, anchor="la"))
    page.pen.text(place, title, fill=page.ink, font=shown, anchor="la")


def _scale_bar(page, pixels_per_metre):
    width, height = page.sheet.size
    _, long, words = scale_bar(width, pixels_per_metre)
    margin, thick = MARGIN * height, max(round(0.005 * height), 2)
    x, y = round(margin), round(height - margin) - thick
    shown = font(page.letters)
    middle = max(x + 0.5 * long, x + 0.5 * shown.getlength(words))  # in narrow pictures the words are longer than the bar
    above = page.pen.textbbox((middle, y - 0.4 * margin), words, font=shown, anchor="mb")
    page.clear(x, above[1], max(x + long, above[2]), y + thick)
    page.pen.rectangle((x, y, x + round(long) - 1, y + thick - 1), fill=page.ink)
    page.pen.text((middle, y - 0.4 * margin), words, fill=page.ink, font=shown, anchor="mb")


def _colour_bar(page, bar):
    (width, height), pen, letters = page.sheet.size, page.pen, page.letters
    top, bottom = (round(share * height) for share in BAR)
    left, thick = round(0.905 * width), max(round(0.016 * width), 6)
    large, small = font(0.95 * letters), font(0.85 * letters)
    edge, marks = width - MARGIN * height, ticks(bar)
    long = max((small.getlength(words) for _, words in marks), default=0.0)
    first = min(left, edge - large.getlength(bar.words))
    page.clear(first, top - 2 * letters, max(edge, left + 1.5 * thick + long), bottom + 0.5 * letters)
    rows = rgb(np.linspace(bar.limits[1], bar.limits[0], bottom - top), bar.limits, bar.map_name)
    strip = np.repeat((255 * rows + 0.5).astype(np.uint8)[:, None, :], thick, axis=1)
    page.sheet.paste(need("PIL.Image").fromarray(strip), (left, top))
    pen.rectangle((left - 1, top - 1, left + thick, bottom), outline=page.ink)
    for share, words in marks:
        y = bottom - share * (bottom - top)
        pen.line((left + thick, y, left + thick + 0.3 * thick, y), fill=page.ink)
        pen.text((left + 1.5 * thick, y), words, fill=page.ink, font=small, anchor="lm")
    pen.text((edge, top - 0.9 * letters), bar.words, fill=page.ink, font=large, anchor="rb")


def _legend(page, legend, signs, below_bar):
    """Names with squares of their colours and with signs, one below the other: in the middle of the right border, or below the bar."""
    rows = [*legend, *((name, None) for name in signs)]
    if not rows:
        return
    (width, height), letters = page.sheet.size, page.letters
    shown, square, room = font(0.9 * letters), 0.8 * letters, (2.6 if signs else 1.6) * 0.8 * letters
    wide = max(shown.getlength(name) for name, _ in rows)
    left, tall = width - MARGIN * height - wide - room, 1.6 * letters * len(rows)
    top = min(BAR[1] * height + 2.0 * letters, height - tall - letters) if below_bar else 0.5 * (height - tall)
    page.clear(left, top, width - MARGIN * height, top + tall)
    for k, (name, colour) in enumerate(rows):
        y = top + 1.6 * letters * (k + 0.5)
        if colour is None:
            SIGNS[name](page, left, y, 2.2 * square)
        else:
            box = (left, y - 0.5 * square, left + square, y + 0.5 * square)
            page.pen.rectangle(box, fill=tuple(int(255 * x) for x in colour), outline=page.ink)
        page.pen.text((left + room, y), name, fill=page.ink, font=shown, anchor="lm")


def _spring_sign(page, left, y, wide):
    xs = left + wide * np.array([0, 0.15, 0.22, 0.36, 0.5, 0.64, 0.78, 0.85, 1])
    ys = y + 0.18 * wide * np.array([0, 0, -1, 1, -1, 1, -1, 0, 0])
    page.pen.line(list(zip(xs, ys)), fill=page.ink, width=max(round(0.1 * page.letters), 1))


def _line_sign(page, left, y, wide):
    page.pen.line((left, y, left + wide, y), fill=page.ink, width=max(round(0.1 * page.letters), 1))


def _joint_sign(page, left, y, wide):
    _line_sign(page, left, y, wide)
    middle, radius = left + 0.5 * wide, 0.2 * wide
    page.pen.ellipse((middle - radius, y - radius, middle + radius, y + radius), fill=page.ink)


SIGNS = {"spring": _spring_sign, "distance": _line_sign, "joint": _joint_sign}  # as gravel.view.overlays draws what is called so


def ticks(bar):
    """(share of the bar, words) of some round values."""
    low, high = bar.limits
    step = round_length((high - low) / 3)
    values = np.arange(np.ceil(low / step - 1e-6), np.floor(high / step + 1e-6) + 1) * step
    marks = [((v - low) / (high - low), f"{v + 0.0:.4g}") for v in values]
    if bar.beyond and marks and marks[-1][0] > 0.99:
        marks[-1] = (marks[-1][0], f"≥ {marks[-1][1]}")
    return marks
