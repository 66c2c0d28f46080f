"""What is written onto a picture: time and number of bodies, a scale bar with a round length, a colour bar with its unit or a legend.

In: pixels (height, width, 3) and what they show. Out: pixels, with sharp text in the ink that the background asks for.
"""

import os
from functools import lru_cache

import numpy as np

from gravel.view import need
from gravel.view.look import MAP, rgb, round_length

UNITS = ((1e3, "km"), (1.0, "m"), (1e-3, "mm"), (1e-6, "µm"), (1e-9, "nm"))
TEXT, MARGIN = 0.024, 0.025  # height of letters and distance to the border, of the rows
SCALE_SHARE = 0.2  # of the width, which the scale bar does not exceed
BAR = (0.28, 0.72)  # rows of the colour bar, as shares
BAR_ROOM = 0.86  # share of the width that bodies keep to where there is a colour bar


class Bar:
    """A colour bar: words, limits, whether values lie beyond, a name of a colour map."""

    def __init__(self, words, limits, beyond=False, map_name=MAP):
        self.words, self.limits, self.beyond, self.map_name = words, limits, beyond, map_name


def written_on(pixels, title, pixels_per_metre, ink, bar=None, legend=()):
    """The pixels with title, scale bar (None: none), colour bar (None: none) and a legend of (name, colour)."""
    image, draw = need("PIL.Image"), need("PIL.ImageDraw")
    sheet = image.fromarray(pixels)
    pen = draw.Draw(sheet)
    ink = tuple(int(255 * x) for x in ink)
    height, width = pixels.shape[:2]
    letters, margin = max(TEXT * height, 9), MARGIN * height
    pen.text((margin, margin), title, fill=ink, font=font(letters), anchor="la")
    if pixels_per_metre:
        _scale_bar(pen, width, height, pixels_per_metre, ink)
    if bar is not None:
        _colour_bar(sheet, pen, bar, ink, letters)
    _legend(pen, legend, width, height, ink, letters)
    return np.asarray(sheet)


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


def _scale_bar(pen, width, height, pixels_per_metre, ink):
    _, long, words = scale_bar(width, pixels_per_metre)
    margin, thick = MARGIN * height, max(round(0.005 * height), 2)
    x, y = round(margin), round(height - margin) - thick
    pen.rectangle((x, y, x + round(long) - 1, y + thick - 1), fill=ink)
    letters = font(max(TEXT * height, 9))
    middle = max(x + 0.5 * long, x + 0.5 * letters.getlength(words))  # in narrow pictures the words are longer than the bar
    pen.text((middle, y - 0.4 * margin), words, fill=ink, font=letters, anchor="mb")


def _colour_bar(sheet, pen, bar, ink, letters):
    width, height = sheet.size
    top, bottom = round(BAR[0] * height), round(BAR[1] * height)
    left, thick = round(0.905 * width), max(round(0.016 * width), 6)
    rows = rgb(np.linspace(bar.limits[1], bar.limits[0], bottom - top), bar.limits, bar.map_name)
    strip = np.repeat((255 * rows + 0.5).astype(np.uint8)[:, None, :], thick, axis=1)
    sheet.paste(need("PIL.Image").fromarray(strip), (left, top))
    pen.rectangle((left - 1, top - 1, left + thick, bottom), outline=ink)
    for share, words in ticks(bar):
        y = bottom - share * (bottom - top)
        pen.line((left + thick, y, left + thick + 0.3 * thick, y), fill=ink)
        pen.text((left + 1.5 * thick, y), words, fill=ink, font=font(0.85 * letters), anchor="lm")
    pen.text((width - MARGIN * height, top - 0.9 * letters), bar.words, fill=ink, font=font(0.95 * letters), anchor="rb")


def _legend(pen, legend, width, height, ink, letters):
    """Names with squares of their colours, one below the other, in the middle of the right border."""
    shown, square = font(0.9 * letters), 0.8 * letters
    wide = max((shown.getlength(name) for name, _ in legend), default=0.0)
    left, top = width - MARGIN * height - wide - 1.6 * square, 0.5 * height - 0.8 * letters * len(legend)
    for k, (name, colour) in enumerate(legend):
        y = top + 1.6 * letters * (k + 0.5)
        pen.rectangle((left, y - 0.5 * square, left + square, y + 0.5 * square), fill=tuple(int(255 * x) for x in colour), outline=ink)
        pen.text((left + 1.6 * square, y), name, fill=ink, font=shown, anchor="lm")


def ticks(bar):
    """(share of the bar, words) of some round values."""
    low, high = bar.limits
    step = round_length((high - low) / 3)
    values = np.arange(np.ceil(low / step - 1e-6), np.floor(high / step + 1e-6) + 1) * step
    marks = [((v - low) / (high - low), f"{v + 0.0:.4g}") for v in values]
    if bar.beyond and marks and marks[-1][0] > 0.99:
        marks[-1] = (marks[-1][0], f"≥ {marks[-1][1]}")
    return marks
