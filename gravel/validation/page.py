"""Runs cases, draws their figures, and writes the page that shows them.

In: names of cases, a folder. Out: ``NAME.svg`` for each, ``figures.json`` with the numbers of all cases ever run there, and
``FIGURES.md`` with the table and every figure. Cases that did not run this time keep their rows and figures.
"""

import math
import pathlib
import time
from collections.abc import Callable, Iterable, Mapping

from gravel import checks
from gravel.io.vtkhdf import check_writable
from gravel.running.sweep import sweep
from gravel.validation import rows as rowing
from gravel.validation.case import CASES, FAMILIES, Case, Outcome
from gravel.validation.drawing import LOOK, draw
from gravel.validation.misses import KNOWN_MISSES
from gravel.validation.rows import Found, Row, read_rows, row_of, write_rows

PAGE = "FIGURES.md"
SHARED = ("flows",)  # families whose cases look at the same runs
HEAD = """# Formula against simulation
Each figure shows a formula (line) and the result of gravel (circles: default settings; crosses: tight settings), with the difference
below. Default settings are those of `Simulation(scene, dt)`: single precision, default solver, tolerance and friction. Tight settings
are double precision and a tolerance of 1e-10 m/s, so that only the error of the step itself remains. Some cases run at one of the two
only: those that count contacts, and large ones, which would take hours at tight settings.

`gravel validate -o docs/validation` runs all cases, draws the figures and writes this page: {minutes} minutes on one core;
`--workers 2` uses two. `gravel validate {example} -o docs/validation` runs one of them again and keeps the rest.
The tests check every bound (`tests/validation/test_cases.py`; cases marked slow: `pytest -m slow`), and verify that wrong friction,
gravity, restitution or inertia would be noticed (`tests/validation/test_cases_can_fail.py`).

{count} cases, computed with gravel {version}.{exceptions}

| case | error at defaults | bound | | error, tight | bound | | unit or scale |
|---|---|---|---|---|---|---|---|
"""


def chosen(names: Iterable[str]) -> list[Case]:
    """The cases of these names; all if there are none."""
    named = [CASES[checks.choice("case", name, tuple(CASES))] for name in names]
    return named or in_order(CASES)


def in_order(names: Iterable[str]) -> list[Case]:
    """Cases as the page shows them: by family."""
    return sorted((CASES[name] for name in CASES if name in set(names)), key=lambda case: list(FAMILIES).index(case.family))


def validate(
    names: Iterable[str] = (), folder=None, tell: Callable[[Case, dict[str, Outcome]], None] | None = None, workers: int = 1
) -> dict[str, dict[str, Outcome]]:
    """Runs cases by name (none: all) and returns their outcomes by settings. With a ``folder``, their figures and rows go there, and the
    page with all rows that are there. ``workers``: processes that run cases side by side.

    ``tell(case, outcomes)`` is called as each is done; with several workers, when all are."""
    checks.count("workers", workers, minimum=1)
    cases, found, rows = chosen(names), {}, {}
    if folder is not None:
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in (*(f"{case.name}.svg" for case in cases), PAGE, rowing.NAME):
            check_writable(folder / name)
    for case, outcomes, seconds in map(timed, cases) if workers == 1 else side_by_side(cases, workers):
        found[case.name], rows[case.name] = outcomes, row_of(outcomes, seconds)
        if folder is not None:
            draw(case, outcomes, folder / f"{case.name}.svg")
        if tell is not None:
            tell(case, outcomes)
    if folder is not None:
        renew(folder, rows)
    return {case.name: found[case.name] for case in cases}


def timed(case: Case) -> tuple[Case, dict[str, Outcome], float]:
    """With its outcomes and the seconds of a core that they took: what else the machine does is not counted."""
    begun = time.process_time()
    outcomes = case.run_all()
    return case, outcomes, time.process_time() - begun


def side_by_side(cases: Iterable[Case], workers: int) -> list[tuple[Case, dict[str, Outcome], float]]:
    """The same, by several processes: slow cases first, and those that look at the same runs in one process, which keeps these."""
    shared = [case.name for case in cases if case.family in SHARED]
    alone = [[case.name] for case in sorted(cases, key=lambda case: not case.slow) if case.family not in SHARED]
    tasks = [names for names in (shared, *alone) if names]
    timed = sweep(timed_by_name, tasks, processes=workers, failures="raise")
    done = {name: (outcomes, seconds) for names in timed for name, outcomes, seconds in names}
    return [(case, *done[case.name]) for case in cases]


def timed_by_name(names: Iterable[str]) -> list[tuple[str, dict[str, Outcome], float]]:
    """In a worker, which has cases of its own: functions are not sent."""
    return [(name, *timed(CASES[name])[1:]) for name in names]


def renew(folder: pathlib.Path, rows: Mapping[str, Row]) -> None:
    """Puts rows among those of the folder, and writes the page of all; rows of cases that are no more go."""
    known = {**read_rows(folder), **rows}
    known = {case.name: known[case.name] for case in in_order(known)}
    write_rows(folder, known)
    (folder / PAGE).write_text(page(known), encoding="utf-8")


def page(rows: Mapping[str, Row]) -> str:
    """The page of figures, in Markdown."""
    version = newest([row.version for row in rows.values()])
    minutes = max(1, round(sum(row.seconds for row in rows.values()) / 60))
    head = HEAD.format(count=len(rows), example=next(iter(rows)), minutes=minutes, version=version, exceptions=exceptions(rows, version))
    lines = [head, *(line(CASES[name], row) for name, row in rows.items()), misses(rows)]
    for family, title in FAMILIES.items():
        own = [section(CASES[name], rows[name]) for name in rows if CASES[name].family == family]
        lines += [f"\n## {title}\n", *own] if own else []
    return "".join(lines)


def newest(versions: Iterable[str]) -> str:
    return max(versions, key=lambda version: [int(part) if part.isdigit() else -1 for part in version.split(".")])


def exceptions(rows: Mapping[str, Row], version: str) -> str:
    """Rows of other versions, and cases that have no row: said, not hidden."""
    other = [f"`{name}` ({row.version})" for name, row in rows.items() if row.version != version]
    missing = [f"`{case.name}`" for case in in_order(CASES) if case.name not in rows]
    words = [f" With another version: {', '.join(other)}."] if other else []
    return "".join([*words, f" Not run yet: {', '.join(missing)}."] if missing else words)


def line(case: Case, row: Row) -> str:
    """A line of the table."""
    cells = []
    for settings in LOOK:
        found = row.found.get(settings)
        cells += ["", "", ""] if found is None else [written(found.error), written(found.bound), verdict(found)]
    return f"| `{case.name}`{' (slow)' if case.slow else ''} | {' | '.join(cells)} | {row.measure} |\n"


def verdict(found: Found) -> str:
    return "within" if found.within else "**missed**"


def misses(rows: Mapping[str, Row]) -> str:
    """Every miss with its reason, below the table."""
    missed = [(name, settings) for name, row in rows.items() for settings, found in row.found.items() if not found.within]
    if not missed:
        return "\nNo bound is missed.\n"
    told = [f"- `{name}`, {LOOK[at][2]}: {KNOWN_MISSES.get((name, at), 'the reason is not known yet.')}\n" for name, at in missed]
    return "".join(["\nMissed:\n\n", *told])


def section(case: Case, row: Row) -> str:
    parts = [f"{LOOK[at][2]} {written(found.error)} {row.measure} (bound {written(found.bound)})" for at, found in row.found.items()]
    kept = f"Largest error {', '.join(parts)}."
    return f"### {case.title}\n{case.text} {kept}\n\n![{case.title}: formula and simulation]({case.name}.svg)\n\n"


def written(value: float) -> str:
    """Two digits; zero is zero."""
    if value == 0 or 1e-3 <= abs(value) < 1e4 or not math.isfinite(value):
        return f"{value:.2g}"
    digits, power = f"{value:.1e}".split("e")
    return f"{float(digits):g}e{int(power)}"
