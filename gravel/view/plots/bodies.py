"""What is drawn of some bodies: the force, torque and power of one over the frames of a run, and maps of pressure and wear on its surface.

Panels are functions of axes, made from an open ``Result``; maps also from a ``WearMap``.
"""

import numpy as np

from gravel import measures
from gravel.measures.wear import QUANTITIES, WearMap
from gravel.view.plots.frames import frames_of
from gravel.view.plots.style import QUIET, dots, need, over_time

UNTOUCHED = "#d9d9d9"
SEEN_FROM = (35.0, -60.0)  # degrees above and around: where nothing says which side bears load
FLAT = 0.05  # of the mean: how far the scale of a curve reaches to both sides, at least
ONE_SIDED = 0.3  # of the force, as a vector sum over the normals: beyond, the map is looked at from that side


def machine_panels(result, body=None, point=None):
    """Panels of the force and torque of the contacts on a ``body`` (name or id), and of the power that it gives; ``point`` m of the torque
    (default: its centre)."""
    body = needed("machine", body)
    times, force, torque, power = [], [], [], []
    for frame in frames_of(result):
        if frame.time > 0 or len(result) == 1:  # before the first step there were no contacts
            times.append(frame.time)
            force.append(measures.contact_force(frame, body))
            torque.append(measures.contact_torque(frame, body, point))
            power.append(measures.contact_power(frame, body))
    if not times:
        raise ValueError(f"{result.path} holds no frames after a step, of which forces could be plotted")
    about = "its centre" if point is None else f"({', '.join(f'{x:g}' for x in point)}) m"
    return (
        lambda axes: _components(axes, times, force, f"force of contacts on {body}, N"),
        lambda axes: _components(axes, times, torque, f"their torque about {about}, N m"),
        lambda axes: _one(axes, times, power, f"power that {body} gives, W"),
    )


def needed(kind, body):
    if body is None:
        raise ValueError(f"the plot {kind} needs body, the name or id of the body that it is of: --body NAME, or body=...")
    return int(body) if isinstance(body, str) and body.isdigit() else body


def _components(axes, times, values, label):
    for k, name in enumerate("xyz"):
        axes.plot(times, np.array(values)[:, k], label=f"along {name}", marker=dots(len(times)))
    over_time(axes, label)
    axes.legend()


def _one(axes, times, values, label):
    axes.plot(times, values, marker=dots(len(times)))
    mean = float(np.mean(values))
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, mean - FLAT * abs(mean)), max(high, mean + FLAT * abs(mean)))  # what is steady looks steady
    axes.axhline(mean, color=QUIET, ls="--", lw=1, label=f"mean: {mean:.4g}")
    over_time(axes, label)
    axes.legend()


# --- maps
def map_of(source, body=None, coefficient=None, hardness=None, edge=None):
    """The map that a plot shows: the one that is given, or that of the frames of a result."""
    options = {"body": body, "coefficient": coefficient, "hardness": hardness, "edge": edge}
    if isinstance(source, WearMap):
        given = [name for name, value in options.items() if value is not None]
        if given:
            raise ValueError(f"{given[0]} goes with a result: a WearMap has its own")
        return source
    return WearMap.of_frames(frames_of(source, 2), needed("map", body), coefficient=coefficient, hardness=hardness, edge=edge)


def pressure_panels(source, **options):
    """Panels of the mean and of the largest pressure on a body."""
    found = map_of(source, **options)
    return tuple(lambda axes, name=name: _draw_map(axes, found, name) for name in ("pressure", "peak_pressure"))


def wear_panels(source, **options):
    """Panels of the sliding work on a body and, with the coefficient and hardness of Archard's law, of the depth of wear."""
    found = map_of(source, **options)
    names = ("work_density", "wear_depth") if found.coefficient is not None else ("work_density",)
    return tuple(lambda axes, name=name: _draw_map(axes, found, name) for name in names)


def _draw_map(axes, found, name):
    """The triangles in their places, coloured by a quantity."""
    figure, place = axes.figure, axes.get_subplotspec()
    axes.remove()
    axes = figure.add_subplot(place, projection="3d")
    values, corners = found.quantity(name), found.surface.corners
    colours, norm = need("matplotlib").colormaps["viridis"], need("matplotlib.colors").Normalize(0.0, float(values.max()) or 1.0)
    shown = colours(norm(values))
    shown[values == 0] = need("matplotlib.colors").to_rgba(UNTOUCHED)
    axes.add_collection3d(need("mpl_toolkits.mplot3d.art3d").Poly3DCollection(corners, facecolors=shown, edgecolors=shown, linewidths=0.1))
    low, high = found.vertices.min(axis=0), found.vertices.max(axis=0)
    thin = 0.02 * float((high - low).max())
    for k, axis in enumerate("xyz"):
        getattr(axes, f"set_{axis}lim")(low[k] - thin, high[k] + thin)
        getattr(axes, f"set_{axis}label")(f"{axis}, m", fontsize=7)
    axes.tick_params(labelsize=6)
    axes.set_box_aspect(high - low + 2 * thin)
    axes.locator_params(nbins=4)
    axes.view_init(*_side(found))
    scale = need("matplotlib.cm").ScalarMappable(norm, colours)
    figure.colorbar(scale, ax=axes, shrink=0.7, pad=0.08, label=f"{name.replace('_', ' ')}, {QUANTITIES[name]}")
    total = {"pressure": (found.force, "N"), "work_density": (found.sliding_work, "J")}.get(name)
    words = f"{found.name}, {found.duration:.4g} s"
    axes.set_title(words if total is None else f"{words}; in all {total[0].sum():.4g} {total[1]}", fontsize=9, pad=16)


def _side(found):
    """Degrees above and around from which the side that bears load is seen."""
    load = found.force @ found.surface.normals
    if np.linalg.norm(load) <= ONE_SIDED * found.force.sum() or not found.force.any():
        return SEEN_FROM
    x, y, z = load / np.linalg.norm(load)
    above = float(np.degrees(np.arcsin(np.clip(z, -1.0, 1.0))))
    around = float(np.degrees(np.arctan2(y, x))) if np.hypot(x, y) > 0.1 else SEEN_FROM[1]
    return float(np.clip(above, -60.0, 60.0)), around + (20.0 if np.hypot(x, y) > 0.1 else 0.0)
