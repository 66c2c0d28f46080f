"""Every case of validation is within its bounds, at defaults and at tight settings; the page of figures has all; bounds can be missed."""

import dataclasses
import pathlib
import re

import numpy as np
import pytest
from click.testing import CliRunner

from gravel.cli import main
from gravel.materials import Material
from gravel.simulation import Simulation
from gravel.validation import CASES, Curve, Outcome, friction, page, validate
from gravel.validation.case import largest
from gravel.validation.running import at, simulate

FOLDER = pathlib.Path(__file__).parents[2] / "docs" / "validation"
ALL = [
    pytest.param(name, settings, marks=[pytest.mark.slow] if case.slow else [])
    for name, case in CASES.items()
    for settings in case.settings
]
CELL = r" \| (\S+) \| (\S+) \| pass| \|  \|  \| "


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
    text = (FOLDER / "FIGURES.md").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| `([a-z0-9-]+)`(?: \(slow\))?(?:{CELL})(?:{CELL}) \|", text, re.M)
    assert {name for name, *_ in rows} == set(CASES)
    for name, *cells in rows:
        found = {"defaults": cells[:2], "tight": cells[2:]}
        assert {settings for settings, (error, _) in found.items() if error} == set(CASES[name].settings)
        assert all(float(error) <= float(bound) for error, bound in found.values() if error)
    for name, case in CASES.items():
        assert f"]({name}.svg)" in text and f"### {case.title}\n{case.text}" in text
        assert "<svg" in (FOLDER / f"{name}.svg").read_text(encoding="utf-8")[:2000]
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(CASES)


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


def test_figures_and_table_are_written(tmp_path, monkeypatch):
    """Also the page, if all cases have run: here there is one that needs no simulation."""
    x = np.linspace(0, 1, 5)

    def straight() -> Outcome:
        """A straight line, $y = x$, that a simulation follows to a quarter."""
        return largest("x, m", "y, m", [Curve("y", x, x, 1.25 * x)], 1.0, "m", 0.2, 0.5)

    case = dataclasses.replace(CASES["free-flight"], name="straight", title="Straight line", function=straight)
    monkeypatch.setattr(page, "CASES", {"straight": case})
    outcomes = validate(folder=tmp_path / "figures")["straight"]
    assert list(outcomes) == ["defaults", "tight"]
    assert all(outcome.error == pytest.approx(0.25) for outcome in outcomes.values())
    assert "Straight line" in (tmp_path / "figures" / "straight.svg").read_text(encoding="utf-8")
    text = (tmp_path / "figures" / "FIGURES.md").read_text(encoding="utf-8")
    assert "| `straight` | 0.25 | 0.5 | pass | 0.25 | 0.2 | **fail** | m |" in text
    assert "![Straight line: formula and simulation](straight.svg)" in text


def test_the_command_lists_and_refuses():
    listed = CliRunner().invoke(main, ["validate", "--list"])
    assert listed.exit_code == 0 and all(name in listed.output for name in CASES)
    refused = CliRunner().invoke(main, ["validate", "free-fligt"])
    assert refused.exit_code == 1 and "free-flight" in refused.output


def test_the_command_ends_with_3_where_a_bound_is_missed(monkeypatch):
    """Also where only one of the two settings misses it."""
    found = CASES["free-flight"].run("tight")
    missed = dataclasses.replace(CASES["free-flight"], function=lambda: dataclasses.replace(found, bound=0.0, at_defaults=1.0))
    monkeypatch.setitem(CASES, "free-flight", missed)
    done = CliRunner().invoke(main, ["validate", "free-flight"])
    assert done.exit_code == 3 and "FAILED free-flight" in done.output
