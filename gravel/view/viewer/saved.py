"""The viewer as one file, for people who have neither gravel nor the result: the page, its scripts and the frames.

In: a source (``sources``), frames of it. Out: an HTML file that any browser opens from disk. Messages are those that the server would send
(``wire``), packed with gzip and written as text, each in an element of its own; the element ``saved`` tells which path is where. Scripts
are modules, which pages from disk may not load from other files, so they stand in the page's import map.
"""

import base64
import gzip
import html
import json
import re

from tqdm import tqdm

from gravel.io.export.chosen import chosen_frames
from gravel.io.layout import SHAPES
from gravel.io.outputs import check_ending, check_room, check_writable, replaced
from gravel.shapes import SPHERE
from gravel.view.colouring import colouring
from gravel.view.viewer import wire
from gravel.view.viewer.server import PAGE, SCRIPTS

LARGEST = 500e6  # bytes of a page: browsers need a few times as many to open it
STEADY = ("material", "radius", "body")  # colours that do not change while the same bodies are there
IMPORT = re.compile(r'from "\./(\w+)\.js"')


def save_page(source, output, frames=None, progress=False):
    """Write frames of a source (a number, several, a slice, None: all) as one page; returns its path."""
    check_ending("output", output, (".html", ".htm"))
    output = check_writable(output, ".part")
    about = source.about()
    numbers = chosen_frames(len(about["times"]), frames, about["path"])
    _check_size(source, numbers, output)
    with replaced(output) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.write(_head(about["title"]))
        page = _Messages(file)
        for number, place in enumerate(tqdm(numbers, disable=not progress, unit="frame", dynamic_ncols=True)):
            _add_frame(page, source, number, place, about["contacts"])
            if file.tell() > LARGEST:
                done = f"{number + 1} of {len(numbers)} frames have {file.tell() / 1e6:.0f} MB already"
                raise ValueError(f"a page may have {LARGEST / 1e6:.0f} MB, as much as browsers open, but {done}: take fewer frames")
        page.add("about", json.dumps({**_facts(about, numbers), **_opening(source, numbers)}).encode())
        page.close()
    return output


class _Messages:
    """Writes messages into a page, each once, and what path leads to which."""

    def __init__(self, file):
        self.file, self.places = file, {}

    def add(self, path, content):
        name = f"message{len(self.places)}"
        text = base64.b64encode(gzip.compress(content, 6, mtime=0)).decode()
        self.file.write(f'<script type="text/plain" id="{name}">{text}</script>\n')
        self.places[path] = name

    def __contains__(self, path):
        return path in self.places

    def same(self, path, other):
        """What one path leads to, another does, too."""
        self.places[path] = self.places[other]

    def close(self):
        self.file.write(f'<script type="application/json" id="saved">{json.dumps(self.places)}</script>\n</body>\n</html>\n')


def _add_frame(page, source, number, place, with_contacts):
    """A frame of the source as the page's frame ``number``, with all that the page may ask for."""
    data = source.frame(place)
    key = wire.key_of(data)
    page.add(f"frame/{number}", wire.frame_message(data, key, number))
    if f"layout/{key}" not in page:
        page.add(f"layout/{key}", wire.layout_message(data))
        for name in STEADY:
            page.add(f"{name}/{key}", wire.values_message(colouring(data, name), data))
        for kind, geometry in sorted({*zip(data["shape"].tolist(), data["geometry"].tolist())}):
            _add_surface(page, source, kind, geometry)
    for name in STEADY:
        page.same(f"values/{number}/{name}", f"{name}/{key}")
    page.add(f"values/{number}/speed", wire.values_message(colouring(data, "speed"), data))
    if with_contacts and (found := source.contacts(place)) is not None:
        page.add(f"contacts/{number}", wire.contacts_message(data, *found))


def _add_surface(page, source, kind, geometry):
    path = f"template/{kind}" if geometry < 0 else f"surface/{geometry}"
    if kind != SPHERE and path not in page:
        page.add(path, wire.template_message(kind) if geometry < 0 else wire.surface_message(*source.surface(geometry)))


def _facts(about, numbers):
    """What the page should know first: ``numbers`` of its frames in the result; saved pages have no more colours than these."""
    times = [about["times"][place] for place in numbers]
    shapes = [name.lower() for name in SHAPES]
    return {**about, "live": False, "saved": True, "times": times, "numbers": numbers, "colours": ["speed", *STEADY], "shapes": shapes}


def _opening(source, numbers):
    """What the page shows first: of its frames the nearest to the one that the viewer would open."""
    facts = source.opening()
    nearest = min(range(len(numbers)), key=lambda k: abs(numbers[k] - facts["first"]))
    return {**facts, "first": nearest, "colour": facts["colour"] if facts["colour"] in STEADY else "speed"}


def _check_size(source, numbers, output):
    """Refuse a page that no browser would open, or that the disk has no room for."""
    data = max((source.frame(place) for place in (numbers[0], numbers[-1])), key=lambda one: len(one["id"]))
    each = 16 * len(data["id"]) + 16 * int((data["shape"] != SPHERE).sum())
    needed = 1.3 * each * len(numbers) + 2e6
    if needed > LARGEST:
        most = max(int((LARGEST - 2e6) / (1.3 * each)), 1)
        raise ValueError(
            f"a page of {len(numbers)} frames of {len(data['id'])} bodies would have about {needed / 1e6:.0f} MB, more than browsers open "
            f"({LARGEST / 1e6:.0f}): take {most} frames at most, with every={-(-len(numbers) // most)} or less of the run"
        )
    check_room(output, needed)


def _head(title):
    """The page without its end: style and scripts stand in it."""
    style, scripts = (PAGE / "style.css").read_text(encoding="utf-8"), {name[:-3]: _module(name) for name in SCRIPTS}
    modules = json.dumps({"imports": {f"gravel/{name}": text for name, text in scripts.items()}})
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    page = page.replace("<title>gravel</title>", f"<title>{html.escape(title)} – gravel</title>")
    own = f'<style>\n{style}</style>\n<script type="importmap">{modules}</script>'
    page = page.replace('<link rel="stylesheet" href="style.css">', own)
    page = page.replace('<script type="module" src="viewer.js"></script>', '<script type="module">import "gravel/viewer";</script>')
    return page[: page.index("</body>")]


def _module(name):
    """A script as an address that holds it all."""
    text = IMPORT.sub(r'from "gravel/\1"', (PAGE / name).read_text(encoding="utf-8"))
    return "data:text/javascript;base64," + base64.b64encode(text.encode()).decode()
