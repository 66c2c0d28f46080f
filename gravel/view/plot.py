"""Curves of a run over time: energy, contacts, residual and penetration; the joints; a log of measures, or a measure of each frame."""

import csv

import numpy as np

from gravel import checks, measures
from gravel.io.result import open_result
from gravel.io.vtkhdf import check_writable, read_joints, read_reports
from gravel.measures.log import flattened
from gravel.measures.units import unit_of
from gravel.view import need

MEASURES = {  # of frames, by their names in the command line
    "stress": measures.stress,
    "coordination": measures.coordination,
    "fabric": measures.fabric,
    "fraction": measures.packing_fraction,
    "kinetic-energy": measures.kinetic_energy,
    "potential-energy": measures.potential_energy,
}


def plot(result, output):
    """Write a PNG of the step reports of a result file; returns the path."""
    output = check_writable(output)
    reports = read_reports(result)
    if len(reports["time"]) == 0:
        raise ValueError(f"{result} holds no steps to plot")
    need("matplotlib").use("Agg")
    pyplot = need("matplotlib.pyplot")
    figure, axes = pyplot.subplots(2, 2, figsize=(10, 7), sharex=True, layout="constrained")
    rows = (
        ("kinetic_energy", "kinetic energy, J", "linear"),
        ("contacts", "contacts", "linear"),
        ("residual", "residual, m/s (max, rms)", "log"),
        ("max_penetration", "largest penetration, m", "log"),
    )
    for axis, (name, label, scale) in zip(axes.flat, rows):
        axis.plot(reports["time"], reports[name], lw=1)
        if name == "residual":
            axis.plot(reports["time"], reports["residual_rms"], lw=1)
        axis.set(ylabel=label)
        if scale == "log" and (reports[name] > 0).any():
            axis.set_yscale("log")
        axis.grid(alpha=0.3)
    return _finish(pyplot, figure, axes, output)


def plot_joints(result, output, most=12):
    """Write a PNG of the joints of a result file: their coordinates, reactions and motors' efforts; returns the path.

    Of many joints those with the largest reactions are drawn."""
    output = check_writable(output)
    joints = read_joints(result)
    if not joints["names"]:
        raise ValueError(f"{result} holds no joints to plot")
    need("matplotlib").use("Agg")
    pyplot = need("matplotlib.pyplot")
    figure, axes = pyplot.subplots(2, 2, figsize=(11, 8), sharex=True, layout="constrained")
    force = np.linalg.norm(joints["force"], axis=2)
    motor = joints["motor_torque"] + joints["motor_force"]
    load = np.nan_to_num(force).max(axis=0) + np.nan_to_num(np.abs(motor)).max(axis=0)
    chosen = np.sort(np.argsort(-load, kind="stable")[:most])
    rows = (
        (joints["angle"], "angle, rad"),
        (joints["slide"], "slide or length, m"),
        (force, "reaction force, N"),
        (motor, "motor's effort, N m or N"),
    )
    for axis, (values, label) in zip(axes.flat, rows):
        for joint in chosen:
            if np.nan_to_num(values[:, joint]).any():
                axis.plot(joints["time"], values[:, joint], lw=1, label=joints["names"][joint])
        axis.set(ylabel=label)
        axis.grid(alpha=0.3)
        if axis.lines:
            axis.legend(fontsize=6)
    return _finish(pyplot, figure, axes, output)


def plot_log(log, output):
    """Write a PNG of a log of measures in CSV, a panel for each measure; returns the path."""
    output = check_writable(output)
    return _plot_columns(*read_log(log), output)


def plot_measure(result, name, output):
    """Write a PNG of a measure of every frame of a result file; returns the path. Measures of contacts leave out frames without any."""
    output = check_writable(output)
    measure, columns, values = MEASURES[checks.choice("measure", name, tuple(MEASURES))], [], []
    label = name.replace("-", "_")
    with open_result(result) as frames:
        for frame in frames:
            if name in ("coordination", "fabric") and not len(frame.contacts):
                continue
            columns, numbers = flattened(label, measure(frame))
            values.append([frame.time, *numbers])
    if not values:
        raise ValueError(f"{result} holds no frames to measure")
    return _plot_columns(["time", *columns], ["s", *[unit_of(measure)] * len(columns)], np.array(values), output)


def read_log(log):
    """The names, units and rows of a log in CSV (``gravel.measures.Log``)."""
    try:
        with open(log, newline="", encoding="utf-8") as file:
            names, units, *rows = csv.reader(file)
        values = np.array(rows, float).reshape(-1, len(names))
    except (ValueError, csv.Error) as error:  # UnicodeDecodeError is a ValueError
        raise ValueError(f"{log} cannot be read as a log of measures: {' '.join(str(error).split())}") from None
    if names[0] != "time" or len(units) != len(names) or not units[0].startswith("# "):
        raise ValueError(f"{log} is not a log of measures: its first lines must name columns, time first, and their units")
    if not len(values):
        raise ValueError(f"{log} holds no rows to plot")
    return names, [units[0].removeprefix("# "), *units[1:]], values


def _plot_columns(names, units, values, output):
    """A panel for each measure: columns whose names begin alike."""
    panels = {}
    for k, name in enumerate(names[1:], 1):
        panels.setdefault((name.rsplit("_", 1)[0], units[k]), []).append(k)
    need("matplotlib").use("Agg")
    pyplot = need("matplotlib.pyplot")
    rows, side = -(-len(panels) // 2), min(len(panels), 2)
    figure, axes = pyplot.subplots(rows, side, figsize=(10, 3.5 * rows), sharex=True, layout="constrained", squeeze=False)
    for axis, ((panel, unit), columns) in zip(axes.flat, panels.items()):
        for k in columns:
            axis.plot(values[:, 0], values[:, k], lw=1, marker="." if len(values) < 50 else None, label=names[k])
        axis.set(ylabel=f"{panel if len(columns) > 1 else names[columns[0]]}{', ' + unit if unit else ''}")
        axis.grid(alpha=0.3)
        if len(columns) > 1:
            axis.legend(fontsize=6)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    return _finish(pyplot, figure, [None, axes[-1]], output)


def _finish(pyplot, figure, axes, output):
    for axis in axes[1]:
        axis.set_xlabel("time, s")
    figure.savefig(output, dpi=120)
    pyplot.close(figure)
    return output
