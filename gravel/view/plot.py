"""Curves of a run: energy, contacts, residual and penetration over time."""

from gravel.io.vtkhdf import check_writable, read_reports
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
    for axis in axes[1]:
        axis.set_xlabel("time, s")
    figure.savefig(output, dpi=120)
    pyplot.close(figure)
    return output
