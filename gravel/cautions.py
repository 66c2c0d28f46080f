"""Warnings that point at the user's line.

``warnings.warn`` wants to be told how many calls above the warning the user's line is, and that depends on the way that led to it: a mesh
is made by its class, by ``from_file``, or by a scene file. ``warn`` looks for the line itself: the first one above that is not gravel's,
nor of a library that gravel is called through.
"""

import sys
import warnings

BETWEEN = ("gravel", "contextlib", "functools", "click")  # packages whose lines are not the user's


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of what the user's line has led to; where there is none, as on the command line, of what called first."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_between(frame):
        frame = frame.f_back
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    name = frame.f_globals.get("__name__") or "<string>"
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, name, registry)


def _is_between(frame):
    """By the module's name, not the file's: code that dataclasses make has no file."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in BETWEEN
