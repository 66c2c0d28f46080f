"""A report of a run: one HTML page of what was run, warnings, pictures, convergence, plots and timings, from its result file alone."""

import os
import pathlib
from collections.abc import Iterable

from gravel.io.outputs import replaced
from gravel.io.result import open_result
from gravel.io.vtkhdf import check_ending, check_writable
from gravel.view import findings
from gravel.view.look import Look
from gravel.view.page import element, group, heading, image, listing, page, table, wide_table
from gravel.view.picture import Painter, encoded
from gravel.view.plots import KINDS, plot
from gravel.view.plots.style import png_of
from gravel.view.subject import shown

ENDINGS = (".html", ".htm")
PICTURE = (1200, 900)  # pixels
PLOTS = (  # kind, caption; those that a result has nothing for are left out
    ("overview", "Kinetic energy, contacts, residual and deepest penetration of every step."),
    ("energy", "Kinetic, potential and total energy of the bodies that can move, frame by frame."),
    ("iterations", "Iterations of the solver in every step."),
    ("joints", "The joints with the largest reactions."),
    ("profile", "Packing fraction and coordination number over height, in the last frame."),
    ("velocity", "Mean velocity over height, in the last frame."),
    ("sizes", "Sizes of the bodies that can move, in the last frame."),
    ("forces", "Normal forces at contacts over their mean, in the last frame, and the exponential law that fits those above it."),
    ("coordination", "Mean number of partners that a body touches."),
)
OF_MANY = ("profile", "velocity", "sizes", "forces", "coordination")
PROPERTIES = {
    "density": "density, kg/m³",
    "friction": "friction",
    "restitution": "restitution",
    "rolling_friction": "rolling friction, m",
    "spinning_friction": "spinning friction, m",
    "cohesion": "cohesion, N",
}
MANY = 20  # bodies that can move: of fewer, distributions and profiles say nothing


def report(result: str | os.PathLike, output: str | os.PathLike | None = None, checks: Iterable = ()) -> pathlib.Path:
    """Write a page of a result file as HTML that needs nothing beside itself; returns its path.

    ``output``: by default the result with the ending .html. ``checks``: what a scene says of its physics after the run
    (``Setup.checks``), for a section of its own."""
    path = pathlib.Path(result)
    output = path.with_suffix(".html") if output is None else pathlib.Path(output)
    check_ending("output of a report", output, ENDINGS)
    output = check_writable(output, ".part")
    with open_result(path) as opened:
        for what, count in (("frames", len(opened)), ("steps", len(opened.reports))):
            if not count:
                raise ValueError(f"{path} holds no {what} to report on")
        summary = findings.summary(opened)
        parts = [*what_was_run(opened), *attention(opened, summary, checks), *pictures(opened), *numbers(opened, summary), *plots(opened)]
        text = page(title_of(opened), parts)
    with replaced(output) as whole:
        whole.write_text(text, encoding="utf-8")
    return output


def title_of(result):
    scene = findings.last_of(result.about).get("scene") or pathlib.Path(result.path).name
    return f"{scene}: report of a run"


# --- sections
def what_was_run(result):
    """Title, facts and the command."""
    frame = result[-1]
    time = result.reports["time"][-1]
    line = f"{int(frame.movable.sum())} bodies that can move at the end, {time:g} s simulated; from {pathlib.Path(result.path).name}"
    yield element("h1", title_of(result))
    yield element("p", line, class_="quiet")
    yield heading("What was run")
    yield table(findings.facts(result), "facts")
    yield from how_to_repeat(result)


def how_to_repeat(result):
    """The command that makes the run again; of a program of its own its command line, and its text if it is at hand."""
    command, script = findings.command(result), result.about.get("script")
    if command is not None:
        yield element("p", "The command that would make it again" + (", from the start:" if result.about["continued"] else ":"))
        yield element("pre", command, id="command")
    elif script is None:
        yield element("p", "The scene was built in a notebook or at a prompt, so that there is no command that would make the run again.")
    else:
        yield element("p", "The script that made it:")
        yield element("pre", script, id="made-by")
        text = findings.script_text(result)
        if text is not None:
            yield element("pre", text, id="script", class_="script")


def attention(result, summary, checks):
    """Warnings, and the scene's own checks."""
    yield heading("Warnings")
    found = findings.warnings(result, summary)
    yield listing(found, class_="warnings", id="warnings") if found else element("p", "None.", class_="good", id="warnings")
    if checks:
        yield heading("Checks of the physics")
        rows = [(check.name, f"{'passed' if check.passed else 'FAILED'}: {check.detail}") for check in checks]
        yield table(rows, "checks")


def pictures(result):
    """The first, the middle and the last frame, all with one camera and one scale."""
    yield heading("Pictures")
    places = list(dict.fromkeys((0, len(result) // 2, len(result) - 1)))
    try:
        drawn, colour = drawn_frames(result.path, places)
    except RuntimeError as error:  # nothing to draw with
        yield element("p", f"No pictures: {error}", class_="quiet")
        return
    said = [f"frame {index} at t = {result.times[index]:.4g} s" for index in places]
    yield group([image(png, f"Picture of {words}", f"{words}, coloured by {colour}") for png, words in zip(drawn, said)], class_="pictures")


def drawn_frames(path, places):
    """(frames of a result as the bytes of PNGs, what colours show)."""
    samples = [shown(path, place) for place in places]
    with Painter(samples, Look(size=PICTURE)) as painter:
        return [encoded(painter.pixels(sample)) for sample in samples], painter.plan.tones.words.partition(",")[0]


def numbers(result, summary):
    """Convergence, timings and materials, as tables."""
    yield heading("Convergence")
    sentence = summary.convergence()
    yield element("p", f"{sentence[0].upper()}{sentence[1:]}.", id="sentence")
    yield table(findings.convergence_rows(result, summary), "convergence")
    yield heading("Timings")
    header = ("stage", "seconds in all", "ms in a step", "% of the steps", "ms of the first step")
    rows = [(name, *map(str.format, ("{:.3f}", "{:.3f}", "{:.1f}", "{:.2f}"), values)) for name, *values in findings.stage_rows(result)]
    yield wide_table(header, rows, "stages")
    yield element("p", "Wall clock; the first step, which may compile, counts in the first and last column only.", class_="quiet")
    yield group([framed(plot(result, "stages"), "Wall clock of the stages of a step, on average and over the run.")], class_="plots")
    yield heading("Materials")
    kinds = findings.materials(result)
    rows = [(words, *(f"{properties[name]:g}" for _, properties in kinds)) for name, words in PROPERTIES.items()]
    yield wide_table(("property", *(known["name"] or f"material {number}" for number, known in kinds)), rows, "materials")


def plots(result):
    """Those kinds that make sense for this result, and why others are left out."""
    yield heading("Plots")
    shown, left_out, last = [], [], result[-1]
    for kind, caption in PLOTS:
        if kind in OF_MANY and last.movable.sum() < MANY or kind == "joints" and not result.joint_names:
            continue
        try:
            shown.append(framed(plot(last if KINDS[kind].of == "moment" else result, kind), caption))
        except ValueError as error:
            left_out.append(f"{kind}: {error}")
    yield group(shown, class_="plots")
    if left_out:
        yield element("p", "Left out:", class_="quiet")
        yield listing(left_out, class_="quiet", id="left-out")


def framed(figure, caption):
    """A plot as an image of the page, across it if it has several panels. Its parts are laid out once: saving does it at each draw."""
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")
    return image(png_of(figure), f"Plot: {caption}", caption, class_="broad" if len(figure.axes) > 1 else "single")
