"""Curves of how grains lie and mix: the slope of a bed or a heap, Lacey's index and residence times over the frames of a run, and the share
of one kind along an axis at a moment.

``which`` names the bodies of one kind: by their name, by that of their material, or by ids.
"""

import numpy as np

from gravel import measures
from gravel.measures.snapshot import snapshot_of
from gravel.state import MATERIAL
from gravel.view.plots.frames import frames_of
from gravel.view.plots.moments import along_axis, within
from gravel.view.plots.style import COLOURS, QUIET, dots, over_time


def angle_panels(result, axis="y", width=None):
    """A panel of the dynamic angle of the bed in a drum that turns about ``axis``; ``width`` m of its columns."""
    return (_curve(result, lambda frame: np.degrees(measures.dynamic_angle(frame, axis, width)), "dynamic angle, degrees"),)


def repose_panels(result):
    """A panel of the slope of a heap."""
    return (_curve(result, lambda frame: np.degrees(measures.angle_of_repose(frame)), "angle of repose, degrees"),)


def mixing_panels(result, which=None, cell=None):
    """A panel of Lacey's index of one kind among all bodies; ``cell`` m, the edge of its samples."""
    measure = lambda frame: measures.mixing_index(frame, kind_of(frame, "mixing", which), cell)  # noqa: E731
    return (_curve(result, measure, f"mixing index of {_called(which)} (Lacey)", (0.0, 1.0)),)


def residence_panels(result, region=None):
    """Panels of how long bodies stayed in a box, as a distribution, and how many of them were there."""
    if region is None:
        raise ValueError("residence needs region, the box of which it is: --region x0,y0,z0,x1,y1,z1, or region=(low, high)")
    observer, inside, times = measures.ResidenceTime(region), [], []
    for frame in frames_of(result, 2):
        observer(frame)
        times.append(frame.time)
        inside.append(observer.inside)
    return (lambda axes: _stays(axes, observer), lambda axes: _inside(axes, times, inside))


def _stays(axes, observer):
    if not observer.stays:
        axes.set_axis_off()
        axes.annotate("no body came in and left again", (0.5, 0.5), xycoords="axes fraction", ha="center", color=QUIET)
        return
    label, span = f"{len(observer.stays)} bodies that came and left", (0.0, 1.05 * max(observer.stays))
    axes.hist(observer.stays, 20, range=span, density=True, color=COLOURS[0], label=label)
    axes.axvline(observer.mean, color=QUIET, ls="--", lw=1, label=f"mean: {observer.mean:.3g} s")
    axes.set(xlabel="residence time, s", ylabel="exit age distribution, 1/s")
    axes.legend()


def _inside(axes, times, inside):
    axes.plot(times, inside, marker=dots(len(times)))
    axes.set_ylim(bottom=0)
    over_time(axes, "bodies in the region")


def segregation(moment, axes, which=None, axis="z", bins=20, region=None):
    """The share by mass of one kind in slabs along an axis."""
    places, share = measures.segregation_profile(moment, kind_of(moment, "segregation", which), axis, bins, region)
    along_axis(axes, places, {None: share}, f"share of {_called(which)} by mass")
    (axes.set_xlim if places.axis == 2 else axes.set_ylim)(0.0, 1.0)
    axes.set_title(within(moment, places))


# --- shared
def _curve(result, measure, label, limits=None):
    """A panel of a measure over the frames; frames that it does not fit are gaps, and if it fits none, the last reason is raised."""
    times, values, reason = [], [], None
    for frame in frames_of(result):
        times.append(frame.time)
        try:
            values.append(float(measure(frame)))
        except ValueError as error:
            values.append(np.nan)
            reason = error
    if reason is not None and np.isnan(values).all():
        raise ValueError(f"no frame of {result.path} can be measured; of the last: {reason}")

    def draw(axes):
        axes.plot(times, values, marker=dots(len(times)))
        if limits is not None:
            axes.set_ylim(min(limits[0], np.nanmin(values)), max(limits[1], 1.02 * np.nanmax(values)))
        over_time(axes, label)

    return draw


def kind_of(source, kind, which):
    """The ids of one kind of bodies, which is named or numbered."""
    if which is None:
        raise ValueError(f"the plot {kind} needs which, the name of the bodies of one kind, or of their material: --which NAME")
    snapshot = snapshot_of(source)
    if not isinstance(which, str) or which in snapshot.names:
        return which
    names = material_names(source)
    if which not in names:
        there = ", ".join(map(repr, [*snapshot.names, *filter(None, names)])) or "none: name bodies or materials when they are made"
        raise ValueError(f"which must be a name of bodies or of a material, not {which!r}; there are {there}")
    numbers = [number for number, name in enumerate(names) if name == which]
    if hasattr(source, "views"):
        return source.ids[np.isin(source.bodies.tag[:, MATERIAL], numbers) & source.alive]
    return source.ids[np.isin(source.materials, numbers)]


def material_names(source):
    """The names of materials by the numbers that bodies have."""
    if hasattr(source, "views"):
        return [kind.name for kind in source.materials.kinds]
    return [material["name"] for material in source.result.materials]


def _called(which):
    return which if isinstance(which, str) else "the chosen bodies"
