"""Every case of validation is within its bounds, at defaults and at tight settings; the page of figures has all; bounds can be missed."""

import dataclasses
import pathlib
import re

import numpy as np
import pytest
from click.testing import CliRunner

from gravel.cli import main
from gravel.model.materials import Material
from gravel.simulation import Simulation
from gravel.validation import CASES, KNOWN_MISSES, Curve, Outcome, friction, page, validate
from gravel.validation.case import largest
from gravel.validation.rows import Found, Row, read_rows, write_rows
from gravel.validation.running import at, simulate

FOLDER = pathlib.Path(__file__).parents[2] / "docs" / "validation"


def marks(name, settings):
    """A known miss is expected, and seen when it has gone."""
    missed = KNOWN_MISSES.get((name, settings))
    slow = [pytest.mark.slow] if CASES[name].slow else []
    return slow if missed is None else [*slow, pytest.mark.xfail(reason=missed, raises=AssertionError, strict=True)]


ALL = [pytest.param(name, at, marks=marks(name, at)) for name, case in CASES.items() for at in case.settings]


@pytest.mark.parametrize("name, settings", ALL)
def test_case_is_within_its_bound(name, settings):
    outcome = CASES[name].run(settings)
    assert outcome.error <= outcome.bound, f"{outcome.error} {outcome.measure}"
    for curve in outcome.curves:
        assert len(curve.x) == len(curve.formula) == len(curve.simulation) and np.isfinite(curve.difference()).all()


def test_every_case_says_what_it_compares():
    for case in CASES.values():
        assert len(case.text) > 60 and case.family in page.FAMILIES


def test_the_page_has_a_row_a_figure_and_a_bound_of_every_case():
    assert faults_of(FOLDER) == []


def faults_of(folder):
    """What is wrong with a page of figures, its table and its figures."""
    text, rows, faults = (folder / "FIGURES.md").read_text(encoding="utf-8"), read_rows(folder), []
    lines = {name: rest.split(" | ") for name, rest in re.findall(r"^\| `([a-z0-9-]+)`(?: \(slow\))? \| (.*) \|$", text, re.M)}
    faults += [f"{name} has no row" for name in CASES if name not in lines or name not in rows]
    faults += [f"there is no case {name}" for name in {*lines, *rows, *(path.stem for path in folder.glob("*.svg"))} - set(CASES)]
    for name, case in CASES.items():
        figure = folder / f"{name}.svg"
        if not figure.exists() or "<svg" not in figure.read_text(encoding="utf-8")[:2000] or f"]({name}.svg)" not in text:
            faults.append(f"{name} has no figure")
        if f"### {case.title}\n{case.text}" not in text:
            faults.append(f"{name} is described by other words")
        if name in lines and name in rows:
            faults += faults_of_row(name, lines[name], rows[name], text)
    named = {(name, at) for name, row in rows.items() for at, found in row.found.items() if not found.within}
    faults += [f"{name} at {at} is a known miss, but is within its bound" for name, at in set(KNOWN_MISSES) - named]
    return faults


def faults_of_row(name, cells, row, text):
    """Of a line of the table beside the numbers kept: error, bound and verdict at each settings; and its version."""
    faults, written = [], dict(zip(("defaults", "tight"), (cells[:3], cells[3:6])))
    if set(row.found) != set(CASES[name].settings) or {at for at, (error, *_) in written.items() if error} != set(row.found):
        faults.append(f"{name} is not shown at {', '.join(CASES[name].settings)}")
    for settings in set(row.found) & set(written):
        (error, bound, verdict), found = written[settings], row.found[settings]
        if (error, bound) != (page.written(found.error), page.written(found.bound)):
            faults.append(f"{name} at {settings}: the table has other numbers than the file")
        within = found.error <= found.bound  # as they are, not as they are rounded
        if verdict != ("within" if within else "**missed**"):
            faults.append(f"{name} at {settings}: {error} of {bound} is called {verdict}")
        if not within and f"- `{name}`, {page.LOOK[settings][2]}: {KNOWN_MISSES.get((name, settings))}\n" not in text:
            faults.append(f"{name} at {settings} misses its bound, and no reason is named")
    computed = re.search(r"computed with gravel (\S+)\.(?: |$)", text, re.M)
    if row.version != computed[1] and f"`{name}` ({row.version})" not in text:
        faults.append(f"{name} does not say its version {row.version}")
    return faults


@pytest.fixture
def two_cases(monkeypatch, tmp_path):
    """Two cases that need no simulation, a page of them, and its folder."""
    x = np.linspace(0, 1, 5)

    def straight() -> Outcome:
        """A straight line, $y = x$, that a simulation follows to a quarter, which is as near as it needs to be."""
        return largest("x, m", "y, m", [Curve("y", x, x, 1.25 * x)], 1.0, "m", 0.3, 0.5)

    def level() -> Outcome:
        """A line that is level, $y = 1$, which a simulation follows exactly, as everyone would hope for it."""
        return largest("x, m", "y, m", [Curve("y", x, x**0, x**0)], 1.0, "m", 0.1)

    made = {
        name: dataclasses.replace(CASES["free-flight"], name=name, title=f"Line: {name}", function=function)
        for name, function in {"straight": straight, "level": level}.items()
    }
    for name in list(CASES):
        monkeypatch.delitem(CASES, name)
    for name, case in made.items():
        monkeypatch.setitem(CASES, name, case)
    for known in list(KNOWN_MISSES):
        monkeypatch.delitem(KNOWN_MISSES, known)
    validate(folder=tmp_path)
    return tmp_path


def test_a_page_as_it_is_written_has_no_fault(two_cases):
    assert faults_of(two_cases) == []
    text = (two_cases / "FIGURES.md").read_text(encoding="utf-8")
    assert "| `straight` | 0.25 | 0.5 | within | 0.25 | 0.3 | within | m |" in text and "No bound is missed." in text
    assert "![Line: straight: formula and simulation](straight.svg)" in text and "2 cases, computed with gravel" in text
    assert "Line: level" in (two_cases / "level.svg").read_text(encoding="utf-8")


def change(folder, name, **values):
    """Changes a row of the file."""
    rows = read_rows(folder)
    write_rows(folder, {**rows, name: dataclasses.replace(rows[name], **values)})


def test_one_case_again_keeps_the_others(two_cases):
    """The other's row, which says its version, and its figure stay as they were."""
    change(two_cases, "level", version="0.9.1", found={"defaults": Found(0.02, 0.1), "tight": Found(0.01, 0.1)})
    before = {name: (two_cases / f"{name}.svg").read_bytes() for name in ("level", "straight")}
    (two_cases / "straight.svg").write_text("not drawn yet", encoding="utf-8")
    validate(["straight"], two_cases)
    assert {name: (two_cases / f"{name}.svg").read_bytes() for name in before} == before  # bytes depend on the numbers only
    text = (two_cases / "FIGURES.md").read_text(encoding="utf-8")
    assert "| `level` | 0.02 | 0.1 | within | 0.01 | 0.1 | within | m |" in text and "With another version: `level` (0.9.1)." in text
    assert faults_of(two_cases) == []


def test_a_page_without_a_case_says_so(two_cases):
    (two_cases / "figures.json").unlink()
    validate(["level"], two_cases)
    assert "Not run yet: `straight`." in (two_cases / "FIGURES.md").read_text(encoding="utf-8")
    assert {"straight has no row", "straight has no figure"} <= set(faults_of(two_cases))


def test_a_miss_needs_a_reason(two_cases, monkeypatch):
    missed = {"defaults": Found(0.6, 0.5), "tight": Found(0.25, 0.3)}
    change(two_cases, "straight", found=missed)
    page.renew(two_cases, {})
    assert faults_of(two_cases) == ["straight at defaults misses its bound, and no reason is named"]
    monkeypatch.setitem(KNOWN_MISSES, ("straight", "defaults"), "It bends.")
    page.renew(two_cases, {})
    assert faults_of(two_cases) == []
    text = (two_cases / "FIGURES.md").read_text(encoding="utf-8")
    assert "| `straight` | 0.6 | 0.5 | **missed** | 0.25 | 0.3 | within | m |" in text and "- `straight`, at defaults: It bends.\n" in text
    change(two_cases, "straight", found={**missed, "defaults": Found(0.4, 0.5)})
    page.renew(two_cases, {})
    assert faults_of(two_cases) == ["straight at defaults is a known miss, but is within its bound"]


@pytest.mark.parametrize(
    "old, new, fault",
    [
        ("| 0.25 | 0.5 | within |", "| 0.25 | 0.5 | **missed** |", "straight at defaults: 0.25 of 0.5 is called **missed**"),
        ("| 0.25 | 0.3 | within |", "| 0.15 | 0.3 | within |", "straight at tight: the table has other numbers than the file"),
        ("$y = x$", "$y = 2 x$", "straight is described by other words"),
        ("computed with gravel ", "computed with gravel 9.", "level does not say its version"),
    ],
)
def test_a_page_that_was_changed_is_seen(two_cases, old, new, fault):
    path = two_cases / "FIGURES.md"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    assert any(found.startswith(fault) for found in faults_of(two_cases))


def test_an_error_that_is_no_number_is_a_miss(tmp_path):
    row = Row({"defaults": Found(float("nan"), 1.0)}, "m", 1.0, "1.0.0")
    write_rows(tmp_path, {"free-flight": row})
    assert not read_rows(tmp_path)["free-flight"].found["defaults"].within
    assert "**missed**" in page.line(CASES["free-flight"], row)


@pytest.mark.parametrize(
    "value, word", [(0.0, "0"), (1.02e-7, "1e-7"), (9.97e-5, "1e-4"), (2.38e-7, "2.4e-7"), (0.0123, "0.012"), (2e4, "2e4"), (np.nan, "nan")]
)
def test_numbers_have_two_digits(value, word):
    assert page.written(value) == word


def test_workers_find_the_same():
    """Two processes give the bits of one."""
    names = ["spinning-friction", "free-flight"]
    alone, apart = validate(names), validate(names, workers=2)
    assert list(apart) == names
    for name in names:
        assert {at: outcome.error for at, outcome in apart[name].items()} == {at: outcome.error for at, outcome in alone[name].items()}


def test_an_error_beyond_the_bound_is_seen(monkeypatch):
    """With friction a tenth lower in the formula's simulation, the block goes on too far."""
    thrown = friction.thrown
    monkeypatch.setattr(friction, "thrown", lambda shape, height, mu, speed: thrown(shape, height, 0.9 * mu, speed))
    assert not friction.sliding_block().passed


def test_cases_run_at_the_settings_of_a_user_and_at_tight_ones():
    """``simulate`` in a case gives the simulation that ``Simulation(scene, dt)`` does, or a tight one; what a case asks for goes first."""
    scene = friction.on_floor(Material())
    mine = Simulation(scene, 1e-3)
    with at("defaults"):
        user, chosen = simulate(scene), simulate(scene, precision="double")
    with at("tight"):
        tight = simulate(scene)
    for name in ("solver", "precision", "friction", "integrator", "margin", "recovery", "tolerance"):
        assert getattr(user, name) == getattr(mine, name)
    assert (tight.precision, tight.tolerance, tight.friction, chosen.precision) == ("double", 1e-10, mine.friction, "double")


def test_a_case_may_allow_more_at_defaults():
    case = dataclasses.replace(CASES["free-flight"], function=lambda: Outcome("x", "y", [], 0.5, "m", 0.1, at_defaults=1.0))
    assert [(name, outcome.bound, outcome.passed) for name, outcome in case.run_all().items()] == [
        ("defaults", 1.0, True),
        ("tight", 0.1, False),
    ]


def test_the_command_lists_and_refuses():
    listed = CliRunner().invoke(main, ["validate", "--list"])
    assert listed.exit_code == 0 and all(name in listed.output for name in CASES)
    refused = CliRunner().invoke(main, ["validate", "free-fligt"])
    assert refused.exit_code == 1 and "free-flight" in refused.output
    idle = CliRunner().invoke(main, ["validate", "free-flight", "--workers", "0"])
    assert idle.exit_code == 1 and "workers" in idle.output


def test_the_command_ends_with_3_where_a_bound_is_missed(monkeypatch):
    """Also where only one of the two settings misses it, and its reason is known."""
    monkeypatch.setitem(KNOWN_MISSES, ("free-flight", "tight"), "It flies too far.")
    found = CASES["free-flight"].run("tight")
    missed = dataclasses.replace(CASES["free-flight"], function=lambda: dataclasses.replace(found, bound=0.0, at_defaults=1.0))
    monkeypatch.setitem(CASES, "free-flight", missed)
    done = CliRunner().invoke(main, ["validate", "free-flight"])
    assert done.exit_code == 3 and "FAILED free-flight" in done.output and "tight: It flies too far." in done.output
