"""Curves of a run: energy, contacts, residual and penetration, or the joints, over time."""

import numpy as np

from gravel.io.vtkhdf import check_writable, read_joints, read_reports
from gravel.view import need


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


def _finish(pyplot, figure, axes, output):
    for axis in axes[1]:
        axis.set_xlabel("time, s")
    figure.savefig(output, dpi=120)
    pyplot.close(figure)
    return output
