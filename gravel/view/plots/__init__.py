"""Plots of results, simulations and logs, by kind (``gravel.view.plots.kinds``): ``plot`` gives a matplotlib figure, or writes a file.

>>> gv.plot("run.vtkhdf", "energy", output="energy.svg")
"""

import contextlib
import os
from typing import Any

from gravel import checks
from gravel.io.checkpoint import load
from gravel.io.result import Frame, Result, open_result
from gravel.measures.wear import WearMap
from gravel.view.plots.kinds import KINDS
from gravel.view.plots.style import check_output, figure_of, save, style

__all__ = ["KINDS", "plot"]


def plot(source: Any, kind: str | None = None, output: str | os.PathLike | None = None, **options: Any) -> Any:
    """Plot a run, a moment of it, or how solvers get on with its next step.

    ``source``: the path of a result, of a checkpoint (kind "solvers") or of a log (.csv); a ``Result``; for what is drawn of a moment
    also a ``Frame`` or a ``Simulation``, for maps a ``WearMap``. ``kind``: a name of ``KINDS``; by default "overview", of a log "log".
    ``output``: a PNG, SVG or PDF file; then its path is returned, else the matplotlib figure. Options go with kinds:

    - forces, profile, velocity, sizes: ``frame`` (of a result; default -1, the last), ``bins``; but for sizes ``region`` = (low, high)
      m, a box; profile and velocity: ``axis`` "x", "y" or "z"; velocity: ``component`` "x", "y", "z" or "speed" (default: all three)
    - flow: ``outlet`` m, a height; for Beverloo's law ``width`` m of the ``opening`` ("circle" or "square"), ``density`` kg/m3 of the bed
      (default: 0.58 of the grains'), ``diameter`` m of the grains (default: their mean), ``coefficient`` (0.58), ``empty`` (1.5)
    - mixing, segregation: ``which``, the bodies of one kind by their name, that of their material, or ids; mixing: ``cell`` m;
      segregation also as profile
    - dynamic-angle: ``axis`` of the drum (default "y"), ``width`` m of the columns
    - residence: ``region`` = (low, high) m
    - machine: ``body``, a name or id, ``point`` m of the torque (default: its centre)
    - pressure, wear: ``body`` and ``edge`` m, and for wear ``coefficient`` and ``hardness``, as of ``WearMap``; none of a ``WearMap``
    - solvers: ``solvers`` (names, default all that iterate), ``iterations`` (300), ``warm_start`` (False)
    """
    kind = kind or ("log" if _is_log(source) else "overview")
    entry = KINDS[checks.choice("kind of plot", kind, tuple(KINDS))]
    for name in options:
        if name not in entry.options:
            raise ValueError(f"{name} is no option of the plot {kind}, which takes {', '.join(entry.options) or 'none'}")
    output = None if output is None else check_output(output)
    with style(), _given(source, kind, entry.of, options) as given:
        drawings = entry.drawings(given, options)
        figure, axes = figure_of(len(drawings))
        for draw, panel in zip(drawings, axes):
            draw(panel)
    return figure if output is None else save(figure, output)


def _is_log(source):
    return isinstance(source, (str, os.PathLike)) and os.fspath(source).lower().endswith(".csv")


@contextlib.contextmanager
def _given(source, kind, of, options):
    """What the panels of a kind are drawn from. Takes ``frame`` out of the options."""
    if _is_log(source) != (of == "log"):
        was = f"a log, {os.fspath(source)}" if _is_log(source) else f"{source!s:.80}, which is no log in CSV"
        raise ValueError(f"the plot {kind} cannot be drawn of {was}")
    if of == "log":
        yield source
    elif of == "problem":
        yield _simulation(source)
    elif isinstance(source, WearMap):
        if of != "map":
            raise TypeError(f"of a WearMap there are the plots pressure and wear, not {kind}")
        yield source
    elif isinstance(source, Frame) or hasattr(source, "next_problem"):
        yield _moment(source, kind, of, options)
    elif not isinstance(source, (str, os.PathLike, Result)):
        raise TypeError(f"source of a plot must be the path of a result, a Result, a Frame or a Simulation, not {source!r:.80}")
    else:
        with contextlib.nullcontext(source) if isinstance(source, Result) else open_result(source) as result:
            yield result if of in ("run", "map") else _frame(result, options.pop("frame", -1))


def _simulation(source):
    if isinstance(source, (str, os.PathLike)):
        return load(source)
    if not hasattr(source, "next_problem"):
        raise TypeError(f"solvers are tried on a Simulation or on a checkpoint, which have a next step, not on {source!r:.80}")
    return source


def _moment(source, kind, of, options):
    if of in ("run", "map"):
        raise TypeError(f"the plot {kind} is drawn over a run, of a result file, not of {source!r:.80}")
    if "frame" in options:
        raise ValueError(f"frame goes with a result, but {source!r:.80} is a moment of its own")
    return source


def _frame(result, index):
    if not len(result):
        raise ValueError(f"{result.path} holds no frames to plot")
    return result[index]
