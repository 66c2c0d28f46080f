"""The moments of a step, as prescribed motions, motors and periodic cells need them."""

from typing import NamedTuple


class StepTimes(NamedTuple):
    """``start`` s of a step of ``dt`` s, and ``offset`` s after it the moment at which the step looks at poses and forces: half a step with
    Moreau's midpoint rule, else zero."""

    start: float
    dt: float
    offset: float

    @property
    def look(self) -> float:
        """s: when the step looks at the bodies."""
        return self.start + self.offset

    @property
    def end(self) -> float:
        """s"""
        return self.start + self.dt

    @property
    def midpoint(self) -> bool:
        """Whether the step looks half a step ahead."""
        return self.offset > 0.0
