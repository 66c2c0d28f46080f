"""From the text of a scene file to a tree of items that know their lines: YAML 1.2, and nothing is ever executed.

Plain words are read by YAML 1.2's core schema: ``1e-3`` is a number, ``yes`` and ``on`` are words. Tags are refused, keys may come once,
and what aliases repeat is counted, so that a few lines cannot become millions.
"""

import io
import math
import pathlib
import re
from dataclasses import dataclass
from typing import Any

from gravel.scenefile.diagnostics import Faults, SceneFileError

LONGEST_NUMBER = 1000  # digits of a whole number; a longer one is a real number, and infinite
LARGEST_FILE = 20_000_000  # bytes: tables of bodies belong into a file beside it
MOST_ITEMS = 500_000  # keys and values, those that aliases repeat counted each time
CORE_TAGS = tuple(f"tag:yaml.org,2002:{name}" for name in ("map", "seq", "str", "int", "float", "bool", "null", "merge", "timestamp"))
NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
WHOLE = re.compile(r"[-+]?[0-9]+$|0o[0-7]+$|0x[0-9a-fA-F]+$")
SURROGATE = re.compile("[\ud800-\udfff]")
INFINITE = {".inf": math.inf, "+.inf": math.inf, "-.inf": -math.inf, ".nan": math.nan}
WORDS = {
    "true": True,
    "false": False,
    "null": None,
    "~": None,
    "": None,
}
SAID_BETTER = (  # what the parser says, and what to do about it
    (r"found character '\\t' that cannot start any token", "a tab cannot stand here: indent with spaces"),
    (
        r"mapping values are not allowed here",
        "a key cannot stand here: it is indented otherwise than its neighbours, or a line has two ':'",
    ),
    (r"expected <block end>, but found.*", "is indented otherwise than what it belongs to"),
    (r"found undefined alias (.*)", r"the alias \1 refers to no anchor above it"),
    (r"but found another document", "a scene file holds one document: there must be no second '---'"),
    (r"found unexpected end of stream", "a quotation mark is missing: the file ends within a text"),
    (r"found duplicate anchor (.*)", r"the anchor \1 is there twice"),
)


@dataclass
class Item:
    """A value of a file: a scalar, a list of items, or a dict of items by key."""

    value: Any
    line: int  # where it begins
    at: int  # where its key is, or where it begins if it has none
    broken: bool = False  # a fault tells of it already

    @property
    def kind(self) -> str:
        """What it is, in words."""
        if isinstance(self.value, dict):
            return "keys and values"
        if isinstance(self.value, list):
            return f"a list of {len(self.value)}"
        return "nothing" if self.value is None else repr(self.value)[:60]


def read_text(path, faults: Faults) -> str:
    """The text of a file; raises if it cannot be one."""
    path = pathlib.Path(path)
    if not path.exists():
        raise FileNotFoundError(f"scene file {path} does not exist")
    if not path.is_file():
        raise ValueError(f"scene file {path} is no file")
    if path.stat().st_size > LARGEST_FILE:
        faults.add(0, "", f"must be at most {LARGEST_FILE // 10**6} MB: put tables of bodies into a .csv or .npz file beside it")
        faults.raise_if_any()
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        faults.add(data[: error.start].count(b"\n") + 1, "", "must be text in UTF-8")
        raise SceneFileError(faults.found) from None


def parse(text: str, faults: Faults) -> Item | None:
    """The items of a text; None where it holds nothing or is no YAML: then faults say where."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        node = YAML(typ="safe", pure=True).compose(io.StringIO(text))
        return None if node is None else _Reader(faults).item(node, "", None)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        faults.add(_line_of(mark, text), "", _said_better(error))
    except YAMLError as error:  # a character that no text may hold
        position = getattr(error, "position", 0)
        faults.add(text[:position].count("\n") + 1, "", f"a character that YAML does not allow: {getattr(error, 'character', '')!r}")
    except RecursionError:
        faults.add(1, "", "lists and keys are nested too deeply")
    return None


def _line_of(mark, text):
    """From 1 on; what is found missing at the end of a file is said of its last line."""
    return min(mark.line, max(text.rstrip().count("\n"), 0)) + 1


def _said_better(error):
    problem = str(error.problem)
    for pattern, words in SAID_BETTER:
        if re.match(pattern, problem):
            return re.sub(pattern, words, problem)
    begun = f", in what begins on line {error.context_mark.line + 1}" if error.context_mark is not None else ""
    return f"is no YAML here: {problem}{begun}"


class _Reader:
    """Turns the parser's nodes into items."""

    def __init__(self, faults):
        self.faults, self.count = faults, 0

    def item(self, node, path, key, above=()):
        """``key``: the node of its key, if it has one; ``above``: what it is part of."""
        line = node.start_mark.line + 1
        at = line if key is None else key.start_mark.line + 1
        self.count += 1
        if self.count > MOST_ITEMS:
            if self.count == MOST_ITEMS + 1:
                self.faults.add(at, path, f"the file becomes more than {MOST_ITEMS} keys and values with what its aliases repeat")
            return Item(None, at, at, broken=True)
        if id(node) in above:
            self.faults.add(at, path, "an alias cannot be part of what it repeats")
            return Item(None, at, at, broken=True)
        if str(node.tag) not in CORE_TAGS:
            self.faults.add(line, path, f"must have no tag, not {str(node.tag).replace('tag:yaml.org,2002:', '!!')}")
            return Item(None, at, at, broken=True)
        if isinstance(node.value, str) and SURROGATE.search(node.value):
            self.faults.add(line, path, "must be text, which has no lone surrogates (halves of characters) in it")
            return Item(None, at, at, broken=True)
        if isinstance(node.value, str):
            value = node.value if getattr(node, "style", None) else scalar(node.value)
            return Item(value, at if value is None else line, at)
        above = (*above, id(node))
        if node.value and isinstance(node.value[0], tuple):
            return Item(self._mapping(node, path, above), line, at)
        if node.id == "mapping":
            return Item({}, line, at)
        return Item([self.item(one, f"{path}[{k}]", None, above) for k, one in enumerate(node.value)], line, at)

    def _mapping(self, node, path, above):
        items: dict[str, Item] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key.value, str):
                self.faults.add(line, path, "a key must be a word, not a list or keys and values")
                continue
            if SURROGATE.search(key.value):
                self.faults.add(line, path, "a key must be text, which has no lone surrogates (halves of characters) in it")
                continue
            name, own = key.value, joined(path, key.value)
            if name in items:
                self.faults.add(line, own, f"is given twice: first on line {items[name].at}")
                continue
            items[name] = self.item(value, own, key, above)
        return items


def scalar(text: str):
    """What a plain word means in YAML 1.2's core schema."""
    if text.lower() in WORDS and text in (text.lower(), text.upper(), text.capitalize()):
        return WORDS[text.lower()]
    if WHOLE.match(text) and len(text) < LONGEST_NUMBER:
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if NUMBER.match(text):
        return float(text)
    return INFINITE.get(text.lower(), text)


def joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
