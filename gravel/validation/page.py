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
HEAD = """# Formula against simulation
Each figure shows what a formula says (line) and what gravel does (dots), and below it the difference.
`gravel validate -o docs/validation` runs all {count} cases, draws the figures and writes this page;
`gravel validate {example} -o figures` does one.
The tests hold every bound (`tests/validation/test_cases.py`; cases marked slow: `pytest -m slow`).

| case | error | allowed | measured by |
|---|---|---|---|
"""


def chosen(names: Iterable[str]) -> list[Case]:
    """The cases of these names; all if there are none."""
    named = [CASES[checks.choice("case", name, tuple(CASES))] for name in names]
    return named or sorted(CASES.values(), key=lambda case: list(FAMILIES).index(case.family))


def validate(names: Iterable[str] = (), folder=None, tell: Callable[[Case, Outcome], None] | None = None) -> dict[str, Outcome]:
    """Runs cases by name (none: all) and returns their outcomes. With a ``folder``, their figures go there, and the page if all have run.

    ``tell(case, outcome)`` is called as each is done."""
    cases, outcomes = chosen(names), {}
    if folder is not None:
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in (*(f"{case.name}.svg" for case in cases), "FIGURES.md"):
            check_writable(folder / name)
    for case in cases:
        outcomes[case.name] = outcome = case.run()
        if folder is not None:
            draw(case, outcome, folder / f"{case.name}.svg")
        if tell is not None:
            tell(case, outcome)
    if folder is not None and len(outcomes) == len(CASES):
        (folder / "FIGURES.md").write_text(page(outcomes), encoding="utf-8")
    return outcomes


def draw(case: Case, outcome: Outcome, path: pathlib.Path) -> None:
    """The curves, and below them the differences, as an SVG whose bytes depend on the numbers only."""
    need("matplotlib").use("Agg")
    pyplot = need("matplotlib.pyplot")
    with pyplot.rc_context(STYLE):
        figure, (above, below) = pyplot.subplots(
            2, 1, figsize=(5.6, 3.9), sharex=True, layout="constrained", gridspec_kw={"height_ratios": (3, 1)}
        )
        for number, curve in enumerate(outcome.curves):
            colour, thin = f"C{number}", slice(None, None, max(1, len(curve.x) // 40))
            above.plot(curve.x, curve.formula, color=colour, lw=1.2)
            above.plot(curve.x[thin], curve.simulation[thin], "o", color=colour, ms=3.5, mfc="none", mew=0.9, label=curve.label)
            below.plot(curve.x, curve.difference(), ".-" if len(curve.x) < 20 else "-", color=colour, ms=3, lw=0.8)
        above.set(title=case.title, ylabel=outcome.up)
        below.set(xlabel=outcome.across, ylabel="difference")
        below.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2))
        above.ticklabel_format(useOffset=False)
        if outcome.log:
            above.set(xscale="log", yscale="log")
        above.plot([], [], color="grey", lw=1.2, label="formula")
        above.plot([], [], "o", color="grey", ms=3.5, mfc="none", label="simulation")
        above.legend(fontsize=7, ncols=2)
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)


def page(outcomes: dict[str, Outcome]) -> str:
    """The page of figures, in Markdown."""
    lines = [HEAD.format(count=len(outcomes), example=next(iter(outcomes)))]
    lines += [row(CASES[name], outcome) for name, outcome in outcomes.items()]
    for family, title in FAMILIES.items():
        lines.append(f"\n## {title}\n")
        for name in outcomes:
            if CASES[name].family == family:
                lines.append(section(CASES[name], outcomes[name]))
    return "".join(lines)


def row(case: Case, outcome: Outcome) -> str:
    slow = " (slow)" if case.slow else ""
    return f"| `{case.name}`{slow} | {written(outcome.error)} | {written(outcome.bound)} | {outcome.measure} |\n"


def section(case: Case, outcome: Outcome) -> str:
    kept = f"Largest error {written(outcome.error)} {outcome.measure}, allowed {written(outcome.bound)}."
    return f"### {case.title}\n{case.text} {kept}\n\n![{case.title}: formula and simulation]({case.name}.svg)\n\n"


def written(value: float) -> str:
    """Two digits; zero is zero."""
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:.2g}"
    return np.format_float_scientific(value, 1, trim="-", exp_digits=1)
