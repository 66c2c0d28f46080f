"""The look of all plots: one style, colours that colour-blind readers can tell apart, and files by their ending.

Figures are made without pyplot, so that nothing is kept and no screen is looked for.
"""

import io

import numpy as np

from gravel.io.outputs import replaced
from gravel.io.vtkhdf import check_ending, check_writable
from gravel.view import need

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")  # after Okabe and Ito
QUIET = "#666666"  # of what is drawn for comparison
ENDINGS = (".png", ".svg", ".pdf")
STYLE = {
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.titlesize": 9,
    "axes.labelsize": 10,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.limits": (-3, 4),
    "axes.formatter.use_mathtext": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "legend.fontsize": 8,
    "legend.framealpha": 0.8,
    "legend.edgecolor": "none",
    "figure.dpi": 100,
    "savefig.dpi": 130,
    "svg.fonttype": "path",
    "svg.hashsalt": "gravel",  # the same plot gives the same file
}
DECADES = 1e-6  # of the largest value: smaller ones are below a logarithmic scale
WIDTH, HEIGHT = 5.2, 3.6  # inches, of a panel
ALONE = (6.2, 4.1)  # of a panel that is the only one
WITHOUT_DATE = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def style():
    """A context in which plots get their look."""
    matplotlib = need("matplotlib")
    cycler = need("cycler").cycler
    lines = cycler(linestyle=("-", "--", ":")) * cycler(color=COLOURS)  # curves beyond the seventh differ by their dashes
    return matplotlib.rc_context({**STYLE, "axes.prop_cycle": lines})


def figure_of(panels):
    """A figure of so many panels side by side, and their axes. In a notebook it shows itself."""
    columns = 1 if panels == 1 else 2
    rows = -(-panels // columns)
    size = ALONE if panels == 1 else (WIDTH * columns, HEIGHT * rows)
    figure = need("matplotlib.figure").Figure(figsize=size, layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axis in axes[panels:]:
        axis.set_axis_off()
    figure._repr_png_ = lambda: png_of(figure)
    return figure, axes[:panels]


def png_of(figure):
    """The figure as the bytes of a PNG."""
    with io.BytesIO() as file, style():
        figure.savefig(file, format="png")
        return file.getvalue()


def check_output(output):
    """Refuse a place that a plot cannot be written to, before any work is done."""
    check_ending("output of a plot", output, ENDINGS)
    return check_writable(output, ".part")


def save(figure, output):
    """Write a figure as PNG, SVG or PDF; returns the path."""
    ending = output.suffix.lower()
    with replaced(output) as whole, style():
        figure.savefig(whole, format=ending[1:], metadata=WITHOUT_DATE.get(ending))
    return output


# --- what panels share
def over_time(axes, label):
    """The words of a panel over time."""
    axes.set(xlabel="time, s", ylabel=label)
    axes.margins(x=0.01)


def logarithmic(axes, *values):
    """A logarithmic scale upwards, where there is anything that can be on it; what is next to nothing is left out."""
    most = max(float(np.max(some, initial=0.0, where=~np.isnan(some))) for some in values)
    if most > 0:
        axes.set_yscale("log", nonpositive="mask")
        axes.set_ylim(bottom=max(axes.get_ylim()[0], DECADES * most))


def note(axes, words):
    """A few words in a panel."""
    axes.annotate(words, (0.02, 0.02), xycoords="axes fraction", fontsize=8, color=QUIET, va="bottom", zorder=5)


def few_ticks(axes):
    """Room between the numbers below a panel."""
    axes.locator_params(axis="x", nbins=5)


def dots(count):
    """The marker of a curve of so many points: few are shown one by one."""
    return "o" if count <= 60 else None
