"""Joints over the frames of a run: coordinates, reactions, motors' efforts, how far they are open."""

import numpy as np

from gravel.view.plots.style import dots, logarithmic, over_time

MOST = 12  # joints that are drawn: those with the largest reactions


def joint_panels(result):
    """A panel for each quantity that any of the joints has."""
    names, table = result.joint_names, result.joints
    if not names:
        raise ValueError(f"{result.path} holds no joints to plot")
    force = np.linalg.norm(table.force, axis=2)
    chosen = _heaviest(force, table)
    rows = (
        (table.angle, "angle, rad"),
        (table.slide, "slide or length, m"),
        (force, "reaction force, N"),
        (table.motor_torque, "motor's torque, N m"),
        (table.motor_force, "motor's force, N"),
        (table.violation, "how far the joint is open, m"),
    )
    drawn = [(values, label) for values, label in rows if np.nan_to_num(values[:, chosen]).any()] or [rows[2]]
    return tuple(_panel(result.times, values, label, names, chosen) for values, label in drawn)


def _heaviest(force, table):
    motor = np.abs(np.nan_to_num(table.motor_torque)) + np.abs(np.nan_to_num(table.motor_force))
    load = np.nan_to_num(force).max(axis=0, initial=0.0) + motor.max(axis=0, initial=0.0)
    return np.sort(np.argsort(-load, kind="stable")[:MOST])


def _panel(times, values, label, names, chosen):
    def draw(axes):
        for joint in chosen:
            if np.nan_to_num(values[:, joint]).any():
                axes.plot(times, values[:, joint], marker=dots(len(times)), label=names[joint])
        over_time(axes, label)
        if "open" in label:
            logarithmic(axes, values[:, chosen])
        if axes.lines:
            axes.legend(fontsize=7)

    return draw
