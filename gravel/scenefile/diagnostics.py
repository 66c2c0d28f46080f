"""What is wrong with a scene file: each fault is one sentence that names file, line and key; all of them together are the error."""

import difflib
from typing import Any, NamedTuple

MOST_TOLD = 40  # faults that are printed


class Fault(NamedTuple):
    """One thing that is wrong."""

    file: str  # as it was given
    line: int  # from 1 on; 0: of the file as a whole
    path: str  # of the key, such as grains[0].placement.lattice.spacing; empty: none
    words: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return printable(": ".join(part for part in (where, self.path, self.words) if part))


def printable(words: Any) -> str:
    """Words without what a terminal would obey: characters that are not printed stand as they do in Python's text."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in str(words))


def told(faults: list[Fault]) -> list[str]:
    """A line for each of the first faults, and how many more there are."""
    more = len(faults) - MOST_TOLD
    return [*map(str, faults[:MOST_TOLD]), *([f"... and {more} more error{'s' * (more > 1)}"] if more > 0 else [])]


class SceneFileError(ValueError):
    """A scene file that cannot be taken; ``faults`` are all that were found, in the order of the lines."""

    def __init__(self, faults: list[Fault]):
        self.faults = sorted(dict.fromkeys(faults), key=lambda fault: fault.line)
        super().__init__("\n".join(told(self.faults)))


class Faults:
    """Collects what is wrong while a file is read. ``names``: what the file gives names to, by kind, for what refers to them."""

    def __init__(self, file: str):
        self.file = file
        self.found: list[Fault] = []
        self.names: dict[str, Any] = {}

    def add(self, line: int, path: str, words: str) -> None:
        self.found.append(Fault(self.file, line, path, words))

    def raise_if_any(self) -> None:
        if self.found:
            raise SceneFileError(self.found)


def suggestion(word, allowed) -> str:
    """A hint at the nearest of some words, or nothing."""
    allowed = [str(one) for one in allowed]
    begun = [one for one in allowed if len(str(word)) > 1 and one.startswith(str(word))]
    near = begun or difflib.get_close_matches(str(word), allowed, 1, 0.5)
    return f"; did you mean {near[0]!r}?" if near else ""
