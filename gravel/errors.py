"""Errors of gravel's own; bad input is a ValueError or TypeError that says what is allowed."""


class SimulationError(RuntimeError):
    """A step that could not be taken. The simulation still holds the last good state."""

    def __init__(self, message: str, body: int | None = None, time: float | None = None, step: int | None = None):
        super().__init__(message)
        self.body, self.time, self.step = body, time, step


class MissingFunctionError(ValueError):
    """A file was written of something that was a Python function: whoever reads it must give that again."""


class DeviceError(ValueError):
    """A device that is not there, or that has not what is asked of it: no fault of the file that names it."""


class SweepError(RuntimeError):
    """Values of a sweep that failed: ``failures`` holds what was raised for each, by its number among the values, and ``results`` those of
    the others, with None where there is none."""

    def __init__(self, message: str, results: list, failures: dict[int, BaseException]):
        super().__init__(message)
        self.results, self.failures = results, failures
