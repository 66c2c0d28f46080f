"""Results for other programs: ``export(path, to="csv")`` and so on, one file here for each format.

A format is a module with ``ENDINGS`` (the first is that of its default name), ``COLOURS`` (what its bodies can be coloured by, if any) and
``write(chosen, output)``, which yields once for each frame it has done and has put everything in place at the end: under a temporary name
first, so that a file is there as a whole or not at all. Frames are read one by one.
"""

import importlib
import os
import pathlib
from collections.abc import Sequence

from tqdm import tqdm

from gravel import checks
from gravel.io.export.chosen import Chosen
from gravel.io.outputs import check_ending, check_writable
from gravel.io.result import open_result

FORMATS = ("csv", "vtp", "gltf", "usd")


def export(
    path: str | os.PathLike,
    to: str | None = None,
    output: str | os.PathLike | None = None,
    frames: int | slice | Sequence[int] | None = None,
    contacts: bool = False,
    colour: str | None = None,
    split: bool = False,
    progress: bool = False,
) -> list[pathlib.Path]:
    """Write frames of a result file in another format; returns the files to open.

    - ``to``: "csv" (tables), "vtp" (a .pvd file and its .vtp files, for ParaView and the like), "gltf" (a .glb file, for web pages and
      slides) or "usd" (extra usd); None: what the ending of ``output`` says
    - ``output``: a file (default: the result's name with another ending)
    - ``frames``: a number, several, or a slice; None: all
    - ``contacts``: the contacts, too (csv, vtp)
    - ``colour``: "material" (default), "speed" or "radius" (gltf, usd)
    - ``split``: one table for each frame (csv)
    - ``progress``: whether to show a bar
    """
    name = _format(to, output)
    made = importlib.import_module(f"gravel.io.export.{name}_files")
    output = pathlib.Path(output) if output is not None else pathlib.Path(path).with_suffix(made.ENDINGS[0])
    check_ending("output", output, made.ENDINGS)
    _check_options(name, made, contacts, colour, split)
    output = check_writable(output, ".part")
    if output.resolve() == pathlib.Path(path).resolve():
        raise ValueError(f"output {output} is the result itself; give another name")
    with open_result(path) as result:
        chosen = Chosen(result, frames, contacts, colour or "material", split)
        files = made.write(chosen, output)
        with tqdm(total=len(chosen), disable=not progress, unit="frame", dynamic_ncols=True) as bar:
            try:
                while True:
                    next(files)
                    bar.update()
            except StopIteration as end:
                return end.value


def _format(to, output):
    if to is not None:
        return checks.choice("to", to, FORMATS)
    ending = pathlib.Path(output).suffix.lower() if output is not None else ""
    known = {".csv": "csv", ".pvd": "vtp", ".glb": "gltf", ".usdc": "usd", ".usda": "usd", ".usd": "usd"}
    if ending not in known:
        words = "no output says which" if output is None else f"the ending of the output {output} does not say which"
        raise ValueError(f"to must be one of {', '.join(FORMATS)}; {words}")
    return known[ending]


def _check_options(name, made, contacts, colour, split):
    """Refuse what a format does not have."""
    colours = getattr(made, "COLOURS", ())
    if colour is not None and not colours:
        raise ValueError(f"colour goes with gltf and usd, not with {name}, which has all values to colour by")
    if colour is not None:
        checks.choice("colour", colour, colours)
    if contacts and name not in ("csv", "vtp"):
        raise ValueError(f"contacts go with csv and vtp, not with {name}")
    if split and name != "csv":
        raise ValueError(f"split goes with csv, not with {name}")
