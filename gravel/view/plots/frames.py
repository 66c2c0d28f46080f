"""Curves over the frames of a run: energy, mass that flows out beside Beverloo's law, and any measure of each frame.

Every panel is a function of an open ``Result`` and matplotlib axes.
"""

import numpy as np

from gravel import checks, measures
from gravel.measures.log import flattened
from gravel.measures.regions import everywhere
from gravel.measures.snapshot import snapshot_of
from gravel.measures.structure import carrying
from gravel.measures.units import unit_of
from gravel.view.plots.columns import column_panels
from gravel.view.plots.style import QUIET, dots, note, over_time

MEASURES = {  # of frames, by their names in the command line
    "stress": measures.stress,
    "coordination": measures.coordination,
    "fabric": measures.fabric,
    "fraction": measures.packing_fraction,
    "kinetic-energy": measures.kinetic_energy,
    "potential-energy": measures.potential_energy,
    "temperature": measures.granular_temperature,
}
LABELS = {"fraction": "packing_fraction", "coordination": "coordination_number", "temperature": "granular_temperature"}
OF_CONTACTS = ("coordination", "fabric")  # left out in frames where none carries force
PACKED = 0.58  # share of a loose bed that grains fill, for the law's density


def frames_of(result, fewest=1):
    """The result, if it holds frames enough."""
    if len(result) < fewest:
        raise ValueError(
            f"{result.path} holds {len(result) or 'no'} frames, too few to plot" if fewest > 1 else f"{result.path} holds no frames to plot"
        )
    return result


def energy(result, axes):
    """Kinetic and potential energy of the frames and their sum, which where there is no weight are kinetic alone; heights count from
    where the potential energy is lowest."""
    times, kinetic, potential = frames_of(result).times, [], []
    for frame in result:
        kinetic.append(measures.kinetic_energy(frame).total)
        potential.append(measures.potential_energy(frame))
    kinetic, potential = np.array(kinetic), np.array(potential) - min(potential)
    curves = {"total": kinetic + potential, "potential, above its lowest": potential, "kinetic": kinetic}
    for label, values in curves.items() if potential.any() else (("kinetic", kinetic),):
        axes.plot(times, values, label=label, marker=dots(len(times)))
    over_time(axes, "energy, J")
    axes.legend()


# --- measures
def measure_panels(result, name):
    """Panels of a measure of every frame, by its name in MEASURES. Measures of contacts leave out frames where none carries force."""
    measure, columns, rows = MEASURES[name], [], []
    for frame in frames_of(result):
        if not frame.movable.any() or (name in OF_CONTACTS and not carrying(frame.contacts).any()):
            continue
        columns, numbers = flattened(LABELS.get(name, name.replace("-", "_")), measure(frame))
        rows.append([frame.time, *numbers])
    if not rows:
        what = "contacts that carry force" if name in OF_CONTACTS else "bodies that can move"
        raise ValueError(f"{result.path} holds no frames with {what}, of which there could be {name}")
    return column_panels(["time", *columns], ["s", *[unit_of(measure)] * len(columns)], np.array(rows))


# --- mass that flows out
def flow_panels(result, outlet=None, width=None, **law):
    """Panels of the mass that has passed the height ``outlet`` m downwards, and of its rate, with Beverloo's law beside them if the
    ``width`` m of the opening is given. ``law``: ``opening`` (circle, square), ``density`` kg/m3 of the bed (default: 0.58 of the
    grains'), ``diameter`` m of the grains (default: their mean), ``coefficient`` C (default 0.58), ``empty`` k (default 1.5)."""
    if outlet is None:
        raise ValueError("flow needs outlet, the height in m that grains fall through: --outlet 0, or outlet=0.0")
    if width is None and law:
        raise ValueError(f"{', '.join(law)} is of Beverloo's law, which needs width as well, the width of the opening in m")
    passed = measures.MassFlow((0, 0, checks.number("outlet", outlet)), (0, 0, -1))
    unseen = _pass(passed, frames_of(result, 2))
    full = next((frame for frame in result if frame.movable.any()), result[0])  # a pour begins without grains
    rate = None if width is None else law_rate(full, width, **law)
    times, masses = np.array(passed.times), np.array(passed.masses)
    return (
        lambda axes: _mass(axes, times, masses, rate, unseen),
        lambda axes: _rate(axes, times, masses, rate, width),
    )


def _pass(flow, result):
    """Show all frames to the flow; returns how many bodies were removed above it, so that nobody saw whether they passed."""
    unseen, above = 0, np.zeros(0, np.int64)
    for frame in result:
        unseen += int((~np.isin(above, frame.ids)).sum())
        above = frame.ids[frame.movable & ((frame.positions - flow.point) @ flow.normal < 0)]
        flow(frame)
    return unseen


def law_rate(frame, width, opening="circle", density=None, diameter=None, coefficient=0.58, empty=1.5):
    """kg/s by Beverloo's law for the grains of a frame."""
    snapshot = snapshot_of(frame)
    if density is None:
        volume = measures.packing_fraction(snapshot) * everywhere(snapshot)
        density = PACKED * float(snapshot.masses.sum()) / volume
    diameter = 2 * float(snapshot.radii.mean()) if diameter is None else diameter
    gravity = float(np.linalg.norm(snapshot.gravity))
    return measures.beverloo(width, diameter, density, gravity, coefficient, empty, opening)


def _mass(axes, times, masses, rate, unseen):
    axes.plot(times, masses, label="simulation", marker=dots(len(times)))
    began = np.flatnonzero(masses > 0)
    if rate is not None and len(began):
        since = times[max(began[0] - 1, 0) :]
        law = rate * (since - since[0])
        within = law <= 1.15 * masses.max()
        axes.plot(since[within], law[within], ls="--", color=QUIET, label="Beverloo's law")
    if unseen:
        note(axes, f"{unseen} bodies were removed above the outlet between two frames and are not counted")
    over_time(axes, "mass that has passed, kg")
    axes.legend()


def _rate(axes, times, masses, rate, width):
    found = np.diff(masses) / np.diff(times)
    axes.stairs(found, times, baseline=None, lw=1.4, label="simulation, from frame to frame")
    if rate is not None:
        axes.axhline(rate, ls="--", color=QUIET, label=f"Beverloo's law, opening {width:g} m: {rate:.3g} kg/s")
    axes.set_ylim(min(0.0, float(found.min())), 1.3 * max(float(found.max()), rate or 0.0) or None)  # room for the words
    over_time(axes, "mass flow, kg/s")
    axes.legend()
