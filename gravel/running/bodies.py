"""Bodies of an engine, looked up by their ids."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.engine import Engine
from gravel.state import REMOVED, STATUS, can_move


def typical_radius(engine: Engine) -> float:
    """m, median bounding radius of the bodies that can move; 0 where there are none."""
    radii = engine.field("extent")[can_move(engine.field("tag")[:, STATUS]), 3]
    return float(np.median(radii)) if len(radii) else 0.0


def checked_ids(ids: ArrayLike, count: int) -> np.ndarray:
    """(n,) ids, or one, as users give them; ``count``: how many were ever given."""
    checked = checks.array("ids", np.atleast_1d(ids), (None,), dtype=np.int64)
    if len(checked) and (checked.min() < 0 or checked.max() >= count):
        raise ValueError(f"ids must be below {count}, not {checked.min()} to {checked.max()}")
    return checked


def checked_body(body: int, engine: Engine, count: int) -> int:
    """The id of a body that is there."""
    if checks.count("body", body) >= count:
        raise ValueError(f"body must be an id below {count}, not {body}")
    if engine.pick("tag", [body])[0, STATUS] == REMOVED:
        raise ValueError(f"body must be one that is there, but body {body} was removed")
    return int(body)


class PresentBodies:
    """The bodies of an engine where they are now, as joints look at them to be anchored: ``bodies.position[id]``."""

    def __init__(self, engine: Engine, count: int):
        self.count = count
        self.position, self.quaternion = FieldById(engine, "position"), FieldById(engine, "quaternion")
        self.inverse_mass, self.status = FieldById(engine, "inverse_mass"), FieldById(engine, "tag", STATUS)


class FieldById:
    """One field of single bodies, or a column of it."""

    def __init__(self, engine: Engine, name: str, column: int | None = None):
        self.engine, self.name, self.column = engine, name, column

    def __getitem__(self, body: int) -> Any:
        row = self.engine.pick(self.name, [body])[0]
        return row if self.column is None else row[self.column]
