"""Curves over the steps of a run, from the reports in its result: contacts, residual, iterations, penetration, seconds of stages.

Every function takes an open ``Result`` and matplotlib axes, and draws into them.
"""

import numpy as np

from gravel.view.plots.style import COLOURS, QUIET, dots, logarithmic, over_time

DEEP = 0.01  # of the median radius: deeper penetrations are worth a look
AREAS = 200  # steps are taken together so that there are at most so many


def reports_of(result):
    """The reports of all steps; refuses a result that has none."""
    reports = result.reports
    if not len(reports):
        raise ValueError(f"{result.path} holds no steps to plot")
    return reports


def kinetic_energy(result, axes):
    reports = reports_of(result)
    axes.plot(reports["time"], reports["kinetic_energy"], marker=dots(len(reports)))
    over_time(axes, "kinetic energy, J")


def contacts(result, axes):
    reports = reports_of(result)
    axes.plot(reports["time"], reports["contacts"], marker=dots(len(reports)))
    axes.set_ylim(bottom=0)
    over_time(axes, "contacts")


def residual(result, axes):
    """The largest and the mean residual of each step; those that did not converge are marked."""
    reports = reports_of(result)
    time, failed = reports["time"], ~reports["converged"]
    axes.plot(time, reports["residual"], label="largest", marker=dots(len(reports)))
    axes.plot(time, reports["residual_rms"], label="root mean square", marker=dots(len(reports)))
    if failed.any():
        style = {"ls": "none", "marker": "x", "color": COLOURS[6], "ms": 5}
        axes.plot(time[failed], reports["residual"][failed], label=f"not converged ({failed.sum()} of {len(failed)} steps)", **style)
    logarithmic(axes, reports["residual"], reports["residual_rms"])
    over_time(axes, "residual, m/s")
    axes.legend()


def iterations(result, axes):
    reports = reports_of(result)
    axes.plot(reports["time"], reports["iterations"], marker=dots(len(reports)))
    axes.set_ylim(bottom=0)
    over_time(axes, "iterations of the solver in a step")


def penetration(result, axes):
    """The deepest penetration of each step, beside 1 % of the median radius."""
    reports = reports_of(result)
    axes.plot(reports["time"], reports["max_penetration"], marker=dots(len(reports)))
    radius = median_radius(result)
    if radius > 0:
        axes.axhline(DEEP * radius, color=QUIET, ls="--", lw=1, label="1 % of the median radius")
        axes.legend()
    logarithmic(axes, reports["max_penetration"])
    over_time(axes, "deepest penetration, m")


def median_radius(result):
    """m, of the bodies that can move in the last frame that has any; 0 where there are none."""
    for index in dict.fromkeys((len(result) - 1, 0)) if len(result) else ():
        frame = result[index]
        if frame.movable.any():
            return float(np.median(frame.radii[frame.movable]))
    return 0.0


# --- seconds of stages
def stages_of(result):
    """Stage -> seconds of each step after the first, which may compile (of it, if there is no other); the longest first."""
    seconds = {name: values[1:] if len(values) > 1 else values for name, values in result.stage_seconds.items()}
    if not any(len(values) for values in seconds.values()):
        raise ValueError(f"{result.path} holds no seconds of stages to plot")
    return dict(sorted(seconds.items(), key=lambda item: -item[1].sum()))


def stage_bars(result, axes):
    """What each stage takes in a step, on average."""
    stages = stages_of(result)
    means = np.array([1e3 * values.mean() for values in stages.values()])
    bars = axes.barh(list(stages), means, color=COLOURS[0])
    share = 100 * means / max(means.sum(), 1e-300)
    axes.bar_label(bars, [f" {part:.0f} %" if part >= 0.5 else " < 1 %" for part in share], fontsize=8)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.margins(x=0.12)
    axes.set(xlabel="wall clock, ms in a step (mean after the first)", ylabel="stage")


def stage_areas(result, axes, most=5):
    """What stages took over the run, upon each other; the small ones together."""
    stages, time = stages_of(result), reports_of(result)["time"]
    time = time[1:] if len(time) > 1 else time
    names, values = list(stages), [1e3 * seconds for seconds in stages.values()]
    if len(names) > most + 1:
        names, values = [*names[:most], "all others"], [*values[:most], np.sum(values[most:], axis=0)]
    together = -(-len(time) // AREAS)
    first = np.arange(0, len(time), together)
    count = np.diff([*first, len(time)])
    times, areas = np.add.reduceat(time, first) / count, [np.add.reduceat(some, first) / count for some in values]
    axes.stackplot(times, areas, labels=names, colors=COLOURS)
    _cut_peaks(axes, np.sum(areas, axis=0))
    over_time(axes, "wall clock, ms in a step")
    axes.legend(loc="upper left", ncols=2)


def _cut_peaks(axes, heights):
    """A few steps that took far longer than others, because something was compiled or the machine was busy, do not set the scale."""
    usual = 1.5 * float(np.quantile(heights, 0.95))
    if heights.max() > 2 * usual > 0:
        axes.set_ylim(0, usual)
        axes.set_title(f"peaks up to {heights.max():.3g} ms are cut off")
