"""What a result says of its run: facts in rows, how it converged, what is worth a warning, and the command that would make it again.

All functions take an open ``Result``, some its ``summary`` too; what they say is plain text, in SI units.
"""

import datetime
import math
import pathlib
import re
import shlex

import numpy as np

from gravel.io.contact_results import GROUP
from gravel.running.run import RunReport
from gravel.solvers import SOLVERS
from gravel.view.plots.steps import DEEP, median_radius, stages_of

FAR = 10.0  # times the diagonal of the first frame: bodies farther out are lost
OPEN = 0.01  # of the median radius: joints that open further are worth a warning
LONGEST = 64_000  # bytes of a script that is shown
WORDS = {  # of ``Result.about``, in the order of the page
    "scene": "scene",
    "script": "script",
    "bodies": "bodies",
    "seed": "seed of random places",
    "solver": "solver",
    "friction": "friction",
    "precision": "precision",
    "device": "device",
    "processor": "processor",
    "threads": "threads",
    "processes": "processes",
    "version": "gravel",
    "started": "started",
}


def last_of(about):
    """How the run was made at its end: what changed when it went on replaces what was."""
    return {**about, **{name: value for leg in about["continued"] for name, value in leg.items() if name not in ("time", "started")}}


def facts(result):
    """(word, value) rows of what was run."""
    about, reports = last_of(result.about), result.reports
    about["started"] = str(about["started"]).replace("T", " ").replace("+00:00", " UTC")
    rows = [(words, str(about[name])) for name, words in WORDS.items() if about.get(name) is not None]
    rows[3:3] = [
        ("time step", f"{about['dt']:g} s"),
        ("simulated", f"{reports['time'][-1]:g} s in {len(reports)} steps, {len(result)} frames"),
        *_come_or_gone(result),
        ("contacts at the end", str(reports["contacts"][-1])),
        *([("joints", str(len(result.joint_names)))] if result.joint_names else []),
        ("wall clock of the steps", f"{wall_clock(result):.1f} s"),
    ]
    for leg in about["continued"]:
        changes = ", ".join(f"{name} {value}" for name, value in leg.items() if name not in ("time", "started")) or "as it was"
        rows.append((f"continued at {leg['time']:g} s", f"{leg['started']}: {changes}"))
    return rows


def _come_or_gone(result):
    """How many bodies that can move there are at the end, where that is another number than at the start."""
    start, end = (int(np.count_nonzero(result[index].movable)) for index in (0, -1))
    return [("bodies at the end", f"{end} that can move, {start} at the start")] if start != end else []


def wall_clock(result):
    """s, of all stages of all steps."""
    return float(sum(values.sum() for values in result.stage_seconds.values()))


def materials(result):
    """(number, properties) of the materials that bodies have in the first or in the last frame."""
    used, known = np.unique(np.concatenate([result[index].materials for index in (0, -1)])), result.materials
    return [(int(k), known[k]) for k in used if k < len(known)]


# --- convergence
def summary(result):
    """The ``RunReport`` of all steps in the file."""
    reports, about = result.reports, last_of(result.about)
    stages = result.stage_seconds
    return RunReport(
        steps=len(reports),
        time=float(reports["time"][-1]),
        seconds=wall_clock(result),
        contacts=int(reports["contacts"][-1]),
        residual=float(reports["residual"].max()),
        max_penetration=float(reports["max_penetration"].max()),
        joint_violation=float(reports["joint_violation"].max()),
        unconverged=int((~reports["converged"]).sum()),
        interrupted=False,
        tolerance=float(about["tolerance"]),
        rms_tolerance=float(about.get("rms_tolerance") or math.inf),
        median_residual=float(np.median(reports["residual"])),
        first_seconds=float(sum(values[0] for values in stages.values())),
        dt=float(about["dt"]),
        radius=median_radius(result),
    )


def convergence_rows(result, report):
    """(word, value) rows beside the sentence of ``RunReport.convergence``."""
    iterations = result.reports["iterations"]
    good = report.steps - report.unconverged
    length = report.residual * report.dt
    share = f", {100 * length / report.radius:.2g} % of the median radius" if report.radius else ""
    return [
        ("converged", f"{good} of {report.steps} steps, {100 * good / report.steps:.1f} %"),
        ("tolerance", report.goal()),
        ("residual", f"{report.residual:.3g} m/s at worst, {report.median_residual:.3g} m/s in the median"),
        ("the worst in lengths", f"{length:.3g} m in a step{share}"),
        ("iterations", f"{np.median(iterations):g} in the median, {iterations.max()} at most"),
        ("deepest penetration", f"{report.max_penetration:.3g} m"),
        *([("joints open", f"{report.joint_violation:.3g} m at most")] if result.joint_names else []),
    ]


def stage_rows(result):
    """(stage, seconds in all, ms in a step after the first, % of those, ms of the first step), the longest first."""
    later, every = stages_of(result), result.stage_seconds
    whole = max(sum(float(values.sum()) for values in later.values()), 1e-300)
    for name, values in later.items():
        yield name, float(every[name].sum()), 1e3 * float(values.mean()), 100 * float(values.sum()) / whole, 1e3 * float(every[name][0])


# --- warnings
def warnings(result, report):
    """Sentences, one for each thing that is worth a look."""
    found = [_unconverged(report), _deep(result, report), _shorter(result, report), *_gone(result), *_joints(result, report)]
    return [sentence for sentence in found if sentence]


def _unconverged(report):
    if not report.unconverged:
        return None
    return (
        f"{report.unconverged} of {report.steps} steps did not converge to {report.goal()}; "
        f"the worst residual is {report.residual:.2g} m/s."
    )


def _deep(result, report):
    reports = result.reports
    deep = reports["max_penetration"] > DEEP * report.radius
    if not report.radius or not deep.any():
        return None
    worst = int(reports["max_penetration"].argmax())
    return (
        f"Bodies penetrate each other by up to {report.max_penetration:.2g} m, {100 * report.max_penetration / report.radius:.2g} % of the "
        f"median radius, at t = {reports['time'][worst]:.4g} s; in {int(deep.sum())} of {report.steps} steps it is more than 1 %."
    )


def _shorter(result, report):
    until = last_of(result.about).get("until")
    if until is None or report.time > until - 1.5 * report.dt:
        return None
    return f"The run ended at {report.time:.4g} s, before the {until:.4g} s that it was to go: it was stopped, or a step failed."


def _gone(result):
    """Bodies that are not there any more, and those that are far from where all began."""
    first, last = result[0], result[-1]
    gone = np.setdiff1d(first.ids[first.movable], last.ids)
    if len(gone):
        yield f"{len(gone)} of the {first.movable.sum()} bodies of the first frame were removed before the last one: {_some(gone)}."
    there = np.isfinite(first.positions).all(axis=1)
    start, radii = first.positions[there], first.radii[there, None]
    if not len(start) or last.cell is not None:
        return
    low, high = (start - radii).min(axis=0), (start + radii).max(axis=0)
    reach = FAR * np.linalg.norm(high - low)
    lost = last.ids[last.movable & ((last.positions < low - reach) | (last.positions > high + reach)).any(axis=1)]
    if len(lost):
        yield f"{len(lost)} bodies are farther than {reach:.3g} m from where all were at the start, and may be lost: {_some(lost)}."


def _joints(result, report):
    if not result.joint_names:
        return
    if report.radius and report.joint_violation > OPEN * report.radius:
        share = 100 * report.joint_violation / report.radius
        yield f"Joints are open by up to {report.joint_violation:.2g} m, {share:.2g} % of the median radius."
    broken = np.flatnonzero(np.asarray(result.joints.broken[-1], bool))
    if len(broken):
        yield f"{len(broken)} of {len(result.joint_names)} joints are broken or released at the end: {_some(broken)}."


def _some(ids):
    return ", ".join(map(str, ids[:8])) + (" and others" if len(ids) > 8 else "")


# --- the script and the command
def script_text(result):
    """The text of the script that made the run, if it lies beside the result or in this folder and was not changed since; else None."""
    try:
        words = shlex.split(result.about.get("script") or "")
    except ValueError:  # no command line
        return None
    if len(words) < 2 or pathlib.Path(words[1]).name != words[1] or not words[1].endswith(".py"):
        return None
    started = datetime.datetime.fromisoformat(result.about["started"]).timestamp()
    for folder in (pathlib.Path(result.path).parent, pathlib.Path()):
        path = folder / words[1]
        if path.is_file() and path.stat().st_size <= LONGEST and path.stat().st_mtime < started + 1:
            return path.read_text(encoding="utf-8", errors="replace")
    return None


def command(result):
    """The command line that would make the run again; None where it was made by a program of its own."""
    about = result.about
    if about.get("scene") is None:
        return None
    now = last_of(about)
    words = ["gravel", "run", str(about["scene"])]
    if not str(about["scene"]).endswith((".yaml", ".yml")):
        words += ["--bodies", str(about["bodies"])]
    words += ["--seed", str(about["seed"])] if about.get("seed") is not None else []
    until = now.get("until") or float(result.reports["time"][-1])
    words += ["--time", f"{until:.12g}", "--dt", f"{about['dt']:.12g}", *_solver_words(about["solver"]), *_frame_words(result, until)]
    words += [word for name in ("friction", "precision", "device", "threads") for word in (f"--{name}", str(about[name]))]
    words += ["--joints", about["joints"]] if about.get("joints") == "iterative" else []
    words += ["--ranks", str(about["processes"])] if about["processes"] > 1 else []
    if GROUP in result.file["gravel"]:
        words.append("--contacts")
    return shlex.join([*words, "-o", pathlib.Path(result.path).name])


def _frame_words(result, until):
    """The option that says how often frames are written, unless it is as it would be anyway."""
    spans = np.diff(result.times)
    if result.about["continued"] or not len(spans) or abs(spans[0] - until / 50) < 1.01 * result.dt:
        return []
    return ["--every", f"{spans[0]:.6g}"]


def _solver_words(described):
    """Options that choose a solver, from its own words: ``GaussSeidel(iterations=600, momentum=0.9)``."""
    kind, _, settings = described.partition("(")
    name = next((name for name, solver in SOLVERS.items() if solver.__name__ == kind), None)
    words = [] if name is None else ["--solver", name]
    for option in ("iterations", "tolerance"):
        found = re.search(rf"\b{option}=([^,)]+)", settings)
        words += [f"--{option}", found[1]] if found and name != "ffd" else []
    return words
