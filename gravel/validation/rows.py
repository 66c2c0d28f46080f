"""Rows of the page of figures: the numerical results of cases, kept in ``figures.json`` beside the page.

So one case can be run again, and the page rewritten with the rows of the others unchanged. A row names the version of gravel that made
it.
"""

import json
import pathlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from gravel.validation.case import Outcome

NAME = "figures.json"


@dataclass(frozen=True)
class Found:
    """An error at some settings, and its bound there; NaN is not within any."""

    error: float
    bound: float

    @property
    def within(self) -> bool:
        return bool(self.error <= self.bound)


@dataclass(frozen=True)
class Row:
    """What a case found, by settings; ``seconds`` of a core that it took, at all of them; ``version`` of gravel."""

    found: Mapping[str, Found]
    measure: str
    seconds: float
    version: str


def row_of(outcomes: Mapping[str, Outcome], seconds: float) -> Row:
    from gravel import __version__

    found = {settings: Found(float(outcome.error), float(outcome.bound)) for settings, outcome in outcomes.items()}
    return Row(found, next(iter(outcomes.values())).measure, float(f"{seconds:.2g}"), __version__)


def read_rows(folder: pathlib.Path) -> dict[str, Row]:
    """By case; none where there is no such file."""
    path = folder / NAME
    if not path.exists():
        return {}
    rows = json.loads(path.read_text(encoding="utf-8"))
    return {name: Row(**{**row, "found": {at: Found(**found) for at, found in row["found"].items()}}) for name, row in rows.items()}


def write_rows(folder: pathlib.Path, rows: Mapping[str, Row]) -> None:
    lines = [f"{json.dumps(name)}: {json.dumps(asdict(row))}" for name, row in rows.items()]  # a line each, so that changes can be read
    (folder / NAME).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
