"""Runs cases, draws their figures, and writes the page that shows them.

In: names of cases, a folder. Out: ``NAME.svg`` for each and, when all have run, ``FIGURES.md``, which has the table and every figure.
"""

import pathlib
from collections.abc import Callable, Iterable

import numpy as np

from gravel import checks
from gravel.io.vtkhdf import check_writable
from gravel.validation.case import CASES, FAMILIES, Case, Outcome
from gravel.view import need

STYLE = {"svg.fonttype": "none", "svg.hashsalt": "gravel", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3}
LOOK = {"defaults": ("o", "-", "at defaults"), "tight": ("x", ":", "tight")}  # mark, line of the difference, word
HEAD = """# Formula against simulation
Each figure shows what a formula says (line) and what gravel does (circles: at default settings; crosses: at tight ones), and below it the
difference. At defaults means `Simulation(scene, dt)` as every user gets it: single precision, default solver, tolerance and friction.
Tight means double precision and a tolerance of 1e-10 m/s, so that what is left is the error of the step itself. Some cases run at one
of the two only: those that count contacts, and large ones, which would take hours at tight settings.

`gravel validate -o docs/validation` runs all {count} cases, draws the figures and writes this page, in {minutes} on one core;
`gravel validate {example} -o figures` does one.
The tests hold every bound (`tests/validation/test_cases.py`; cases marked slow: `pytest -m slow`), and check that wrong friction, gravity,
restitution or inertia would be seen (`tests/validation/test_cases_can_fail.py`).

| case | error at defaults | allowed | | error, tight | allowed | | measured by |
|---|---|---|---|---|---|---|---|
"""
MINUTES = "about an hour"


def chosen(names: Iterable[str]) -> list[Case]:
    """The cases of these names; all if there are none."""
    named = [CASES[checks.choice("case", name, tuple(CASES))] for name in names]
    return named or sorted(CASES.values(), key=lambda case: list(FAMILIES).index(case.family))


def validate(
    names: Iterable[str] = (), folder=None, tell: Callable[[Case, dict[str, Outcome]], None] | None = None
) -> dict[str, dict[str, Outcome]]:
    """Runs cases by name (none: all) and returns their outcomes by settings. With a ``folder``, their figures go there, and the page if
    all have run.

    ``tell(case, outcomes)`` is called as each is done."""
    cases, found = chosen(names), {}
    if folder is not None:
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in (*(f"{case.name}.svg" for case in cases), "FIGURES.md"):
            check_writable(folder / name)
    for case in cases:
        found[case.name] = outcomes = case.run_all()
        if folder is not None:
            draw(case, outcomes, folder / f"{case.name}.svg")
        if tell is not None:
            tell(case, outcomes)
    if folder is not None and len(found) == len(CASES):
        (folder / "FIGURES.md").write_text(page(found), encoding="utf-8")
    return found


def draw(case: Case, outcomes: dict[str, Outcome], path: pathlib.Path) -> None:
    """The curves, and below them the differences, as an SVG whose bytes depend on the numbers only."""
    need("matplotlib").use("Agg")
    pyplot = need("matplotlib.pyplot")
    first = next(iter(outcomes.values()))
    with pyplot.rc_context(STYLE):
        figure, (above, below) = pyplot.subplots(
            2, 1, figsize=(5.6, 3.9), sharex=True, layout="constrained", gridspec_kw={"height_ratios": (3, 1)}
        )
        for number, curve in enumerate(first.curves):
            above.plot(curve.x, curve.formula, color=f"C{number}", lw=1.2, label=curve.label)
        for settings, outcome in outcomes.items():
            draw_simulation(above, below, outcome, *LOOK[settings])
        above.set(title=case.title, ylabel=first.up)
        below.set(xlabel=first.across, ylabel="difference")
        below.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2))
        above.ticklabel_format(useOffset=False)
        if first.log:
            above.set(xscale="log", yscale="log")
        above.legend(fontsize=7, ncols=2)
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)


def draw_simulation(above, below, outcome, mark, line, word):
    """What the simulation did at some settings, over both parts of a figure."""
    for number, curve in enumerate(outcome.curves):
        colour, thin = f"C{number}", slice(None, None, max(1, len(curve.x) // 40))
        above.plot(curve.x[thin], curve.simulation[thin], mark, color=colour, ms=3.5, mfc="none", mew=0.9)
        below.plot(curve.x, curve.difference(), ("." if len(curve.x) < 20 else "") + line, color=colour, ms=3, lw=0.8)
    above.plot([], [], mark, color="grey", ms=3.5, mfc="none", label=word)


def page(found: dict[str, dict[str, Outcome]]) -> str:
    """The page of figures, in Markdown."""
    lines = [HEAD.format(count=len(found), example=next(iter(found)), minutes=MINUTES)]
    lines += [row(CASES[name], outcomes) for name, outcomes in found.items()]
    for family, title in FAMILIES.items():
        own = [section(CASES[name], found[name]) for name in found if CASES[name].family == family]
        lines += [f"\n## {title}\n", *own] if own else []
    return "".join(lines)


def row(case: Case, outcomes: dict[str, Outcome]) -> str:
    cells = []
    for settings in LOOK:
        outcome = outcomes.get(settings)
        cells += ["", "", ""] if outcome is None else [written(outcome.error), written(outcome.bound), verdict(outcome)]
    measure = next(iter(outcomes.values())).measure
    return f"| `{case.name}`{' (slow)' if case.slow else ''} | {' | '.join(cells)} | {measure} |\n"


def verdict(outcome: Outcome) -> str:
    return "pass" if outcome.passed else "**fail**"


def section(case: Case, outcomes: dict[str, Outcome]) -> str:
    parts = [f"{LOOK[name][2]} {written(found.error)} {found.measure} (allowed {written(found.bound)})" for name, found in outcomes.items()]
    kept = f"Largest error {', '.join(parts)}."
    return f"### {case.title}\n{case.text} {kept}\n\n![{case.title}: formula and simulation]({case.name}.svg)\n\n"


def written(value: float) -> str:
    """Two digits; zero is zero."""
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:.2g}"
    return np.format_float_scientific(value, 1, trim="-", exp_digits=1)
