"""The documents as the tests see them: pages, their Python in order, and the commands they show."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PART = re.compile(
    r"^<!-- not run: (?P<reason>.+?) -->$|^<!-- (?:run first|checked)\n(?P<hidden>.*?)^-->$|^```python\n(?P<shown>.*?)^```$", re.S | re.M
)
COMMAND = re.compile(r"^(?:\$ |    )(?P<line>gravel [^\n#]*)|`(?P<inline>gravel [a-z][^`\n]*)`", re.M)


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def blocks_of(page):
    """Pieces of Python of a page, hidden and shown, with the lines they begin at; those that must not run are left out."""
    text, skipped, pieces = page.read_text(encoding="utf-8"), False, []
    for found in PART.finditer(text):
        if found["reason"]:
            skipped = True
            continue
        code = found["hidden"] if found["shown"] is None else found["shown"]
        if not (skipped and found["shown"] is not None):
            pieces.append((text[: found.start()].count("\n") + 2, code))
        skipped = False
    return pieces


def commands_of(page):
    """{command of gravel that a page shows, without what a shell adds: whether it is whole, to be copied}."""
    found = {}
    for match in COMMAND.finditer(page.read_text(encoding="utf-8")):
        line = re.split(r"\s+(?:&&|\||>)\s+", match["line"] or match["inline"])[0].strip()
        found[line] = found.get(line, False) or match["line"] is not None
    return found
