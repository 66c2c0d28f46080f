"""Keys and values of a scene file: records of known keys, and things of several kinds of which each has its own keys."""

from dataclasses import dataclass, field
from typing import Any

from gravel.scenefile.diagnostics import suggestion
from gravel.scenefile.text import Item, joined
from gravel.scenefile.values import BAD, Name, Number, Value, Vector, Whole, any_bad


class Given(dict):
    """The checked keys of a record, by name, and where they stand in the file."""

    def __init__(self, item: Item, path: str):
        super().__init__()
        self.item, self.path = item, path

    def line_of(self, key: str | None = None) -> int:
        """The line of a key, or of the record."""
        return self.item.value[key].at if key is not None and key in self.item.value else self.item.at

    def path_of(self, key: str | None = None) -> str:
        return self.path if key is None else joined(self.path, key)

    def only(self, *names: str) -> dict:
        """Those of some keys that were given, as arguments."""
        return {name: self[name] for name in names if name in self}


@dataclass(frozen=True)
class Key:
    """A key of a record."""

    value: Value
    doc: str
    required: bool = False
    default: Any = None  # for people: what holds without it


def said_otherwise(name: str, others: dict) -> str:
    """The word to write instead of one that is not taken."""
    return f"; write {others[name]!r}" if name in others else ""


@dataclass(frozen=True)
class Record(Value):
    """Keys and values. ``ways``: sets of keys of which exactly one must be given, all of it; with () among them, none may be."""

    name: str
    doc: str
    keys: dict = field(default_factory=dict)
    ways: tuple = ()
    others: dict = field(default_factory=dict)  # words that are not taken but easily thought of, or were taken once -> the key

    @property
    def words(self):
        return f"keys and values of {self.article} {self.name}"

    @property
    def article(self):
        return "an" if self.name[0] in "aeio" else "a"

    def takes(self, item):
        return isinstance(item.value, dict)

    def check(self, item, path, faults):
        if not self.takes(item):
            return self.refuse(item, path, faults)
        given, good = self.check_keys(item, path, faults)
        return given if good else BAD

    def check_keys(self, item, path, faults):
        """(the keys that were given, those that are wrong as BAD; whether all is well)."""
        given, good = Given(item, path), self._has_all(item, path, faults)
        for name, one in item.value.items():
            if name not in self.keys:
                hint = said_otherwise(name, self.others) or suggestion(name, self.keys) or f"; there are {', '.join(self.keys)}"
                self.refuse(one, joined(path, name), faults, f"is not a key of {self.article} {self.name}{hint}", one.at)
                good = False
            else:
                given[name] = self.keys[name].value.read(one, joined(path, name), faults)
        good = good and self._is_one_way(item, path, faults)
        return given, good and not any_bad(given.values())

    def _has_all(self, item, path, faults):
        there = {*item.value, *(self.others.get(name) for name in item.value)}  # of those said otherwise a fault tells already
        missing = [name for name, key in self.keys.items() if key.required and name not in there]
        for name in missing:
            self.refuse(item, joined(path, name), faults, f"is missing: {self.keys[name].value.words}", item.at)
        return not missing

    def _is_one_way(self, item, path, faults):
        if not self.ways:
            return True
        said = {name for way in self.ways for name in way}
        there = said & set(item.value)
        if any(set(way) == there for way in self.ways):
            return True
        wanted = " or ".join(" with ".join(way) for way in self.ways if way)
        found = " and ".join(name for name in self.keys if name in there) or "none of them"
        self.refuse(item, path, faults, f"must have {'one of: ' if len(self.ways) > 1 else ''}{wanted}, not {found}", item.at)
        return False

    def schema(self, definitions):
        name = self.name.replace(" ", "_")
        if name not in definitions:
            definitions[name] = {}  # it may hold itself
            definitions[name].update(self._schema(definitions))
        return {"$ref": f"#/$defs/{name}"}

    def _schema(self, definitions):
        properties = {name: {**key.value.schema(definitions), "description": self._described(key)} for name, key in self.keys.items()}
        result = {"type": "object", "description": self.doc, "properties": properties, "additionalProperties": False}
        if required := [name for name, key in self.keys.items() if key.required]:
            result["required"] = required
        if self.ways:
            said = {name for way in self.ways for name in way}
            result["oneOf"] = [_just(way, said) for way in self.ways]
        return result

    @staticmethod
    def _described(key):
        return f"{key.doc} ({key.value.words})" if isinstance(key.value, (Number, Vector, Whole)) else key.doc


@dataclass(frozen=True)
class Kinds(Value):
    """One of several records, by the one key that names its kind: ``sphere: {radius: 0.05}``. ``names``: a name may stand for it."""

    name: str
    doc: str
    kinds: dict  # kind -> Record or any value
    names: Name | None = None
    others: dict = field(default_factory=dict)  # as of a Record

    @property
    def words(self):
        named = f", or {self.names.words}" if self.names else ""
        return f"a {self.name}: one of {', '.join(self.kinds)}{named}"

    def takes(self, item):
        return isinstance(item.value, dict) or bool(self.names and self.names.takes(item))

    def check(self, item, path, faults):
        if self.names and self.names.takes(item):
            return self.names.check(item, path, faults)
        if not isinstance(item.value, dict) or not item.value:
            return self.refuse(item, path, faults)
        for name, one in item.value.items():
            if name not in self.kinds:
                hint = said_otherwise(name, self.others) or f"; there are {', '.join(self.kinds)}{suggestion(name, self.kinds)}"
                return self.refuse(one, joined(path, name), faults, f"is not a kind of {self.name}{hint}", one.at)
        if len(item.value) > 1:
            return self.refuse(item, path, faults, f"must be one {self.name}, not {' and '.join(item.value)}", item.at)
        ((kind, one),) = item.value.items()
        value = self.kinds[kind].read(one, joined(path, kind), faults)
        return BAD if value is BAD else Kind(kind, value, one, joined(path, kind))

    def schema(self, definitions):
        name = self.name.replace(" ", "_")
        if name not in definitions:
            definitions[name] = {}
            one = {
                "type": "object",
                "description": self.doc,
                "properties": {kind: value.schema(definitions) for kind, value in self.kinds.items()},
                "additionalProperties": False,
                "minProperties": 1,
                "maxProperties": 1,
            }
            definitions[name].update({"anyOf": [self.names.schema(definitions), one]} if self.names else one)
        return {"$ref": f"#/$defs/{name}"}


class Kind:
    """A thing of some kind, with its values."""

    def __init__(self, kind: str, given, item: Item, path: str):
        self.kind, self.given, self.item, self.path = kind, given, item, path


def _just(way, said):
    """The schema of: these keys, and none of the others that are said."""
    others = sorted(said - set(way))
    one: dict = {"required": sorted(way)} if way else {}
    if others:
        one["not"] = {"anyOf": [{"required": [name]} for name in others]}
    return one
