"""Draws the figure of a case: formula and simulation above, their difference below."""

import pathlib

from gravel.validation.case import Case, Outcome
from gravel.view import need

STYLE = {"svg.fonttype": "none", "svg.hashsalt": "gravel", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3}
LOOK = {"defaults": ("o", "-", "at defaults"), "tight": ("x", ":", "tight")}  # mark, line of the difference, word


def draw(case: Case, outcomes: dict[str, Outcome], path: pathlib.Path) -> None:
    """The curves, and below them the differences, as an SVG whose bytes depend on the numbers only."""
    need("matplotlib").use("Agg")
    pyplot = need("matplotlib.pyplot")
    first = next(iter(outcomes.values()))
    with pyplot.rc_context(STYLE):
        figure, (above, below) = pyplot.subplots(
            2, 1, figsize=(5.6, 3.9), sharex=True, layout="constrained", gridspec_kw={"height_ratios": (3, 1)}
        )
        for number, curve in enumerate(first.curves):
            above.plot(curve.x, curve.formula, color=f"C{number}", lw=1.2, label=curve.label)
        for settings, outcome in outcomes.items():
            draw_simulation(above, below, outcome, *LOOK[settings])
        above.set(title=case.title, ylabel=first.up)
        below.set(xlabel=first.across, ylabel="difference")
        below.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2))
        above.ticklabel_format(useOffset=False)
        if first.log:
            above.set(xscale="log", yscale="log")
        above.legend(fontsize=7, ncols=2)
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)


def draw_simulation(above, below, outcome, mark, line, word):
    """What the simulation did at some settings, over both parts of a figure."""
    for number, curve in enumerate(outcome.curves):
        colour, thin = f"C{number}", slice(None, None, max(1, len(curve.x) // 40))
        above.plot(curve.x[thin], curve.simulation[thin], mark, color=colour, ms=3.5, mfc="none", mew=0.9)
        below.plot(curve.x, curve.difference(), ("." if len(curve.x) < 20 else "") + line, color=colour, ms=3, lw=0.8)
    above.plot([], [], mark, color="grey", ms=3.5, mfc="none", label=word)
