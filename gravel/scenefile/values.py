"""Kinds of values that a scene file may hold. Each says of itself what it takes: to the reader of a file (``check``), to editors
(``schema``, JSON Schema 2020-12) and to people (``words``). ``gravel.scenefile.language`` makes the table of all keys from them.

``read(item, path, faults)`` gives the plain value, or BAD after it has told the faults why.
"""

import math
import re
from dataclasses import dataclass
from typing import Any

from gravel.scenefile.diagnostics import suggestion
from gravel.scenefile.text import Item, joined


class _Bad:
    """The value of what is wrong."""

    def __repr__(self):
        return "BAD"


BAD = _Bad()


def any_bad(values) -> bool:
    """Whether one of some values is BAD."""
    return any(value is BAD for value in values)


SMALLEST, LARGEST = 1e-60, 1e60  # of numbers other than 0: beyond, powers of lengths such as moments of inertia overflow
COUNTS = ("no", "one", "two", "three", "four", "five", "six")


class Value:
    """A kind of value."""

    words = "a value"

    def takes(self, item: Item) -> bool:
        """Whether an item looks as if this was meant."""
        return True

    def read(self, item: Item, path: str, faults) -> Any:
        """The value of an item, or BAD; faults say why, once."""
        return BAD if item.broken else self.check(item, path, faults)

    def check(self, item: Item, path: str, faults) -> Any:
        if not self.takes(item):
            return self.refuse(item, path, faults)
        return item.value

    def refuse(self, item, path, faults, words=None, line=None):
        faults.add(line or item.at, path, words or f"must be {self.words}, not {item.kind}")
        return BAD

    def schema(self, definitions: dict) -> dict:
        return {}


@dataclass(frozen=True)
class Number(Value):
    unit: str = ""
    above: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    infinite: bool = False  # whether .inf is allowed

    @property
    def bounds(self):
        parts = [f"above {self.above:g}"] if self.above is not None else []
        parts += [f"at least {self.minimum:g}"] if self.minimum is not None else []
        return parts + ([f"at most {self.maximum:g}"] if self.maximum is not None else [])

    @property
    def words(self):
        unit = f" in {self.unit}" if self.unit else ""
        return f"a number{unit}" + (f" {' and '.join(self.bounds)}" if self.bounds else "") + (" (.inf: none)" if self.infinite else "")

    def takes(self, item):
        return isinstance(item.value, (int, float)) and not isinstance(item.value, bool)

    def check(self, item, path, faults):
        if not self.takes(item):
            return self.refuse(item, path, faults, f"must be {self.words}, not {item.kind}" + _unit_hint(item.value, self.unit))
        try:
            value = float(item.value)
        except OverflowError:
            value = math.inf
        if not (math.isfinite(value) or (self.infinite and not math.isnan(value))):
            return self.refuse(item, path, faults, f"must be finite, not {item.kind}")
        for bound, good in (
            (self.above, self.above is None or value > self.above),
            (self.minimum, self.minimum is None or value >= self.minimum),
            (self.maximum, self.maximum is None or value <= self.maximum),
        ):
            if not good:
                which = next(words for words in self.bounds if words.endswith(f" {bound:g}"))
                return self.refuse(item, path, faults, f"must be {which}, not {value:g}")
        if value and math.isfinite(value) and not SMALLEST <= abs(value) <= LARGEST:
            return self.refuse(item, path, faults, f"must be of a size from {SMALLEST:g} to {LARGEST:g}, or 0, not {value:g}")
        return value

    def schema(self, definitions):
        limits = {"exclusiveMinimum": self.above, "minimum": self.minimum, "maximum": self.maximum}
        return {"type": "number", **{name: limit for name, limit in limits.items() if limit is not None}}


ANGLE = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?) *(deg|rad)")


@dataclass(frozen=True)
class Angle(Value):
    """An angle with its unit, ``20 deg`` or ``0.35 rad``; in rad. A number alone could be either and is refused, but for 0."""

    words = "an angle with its unit, such as 20 deg or 0.349 rad"

    def takes(self, item):
        return isinstance(item.value, (str, int, float)) and not isinstance(item.value, bool)

    def check(self, item, path, faults):
        found = ANGLE.fullmatch(item.value.strip()) if isinstance(item.value, str) else None
        if found is not None and math.isfinite(value := float(found[1])) and abs(value) <= LARGEST:
            return math.radians(value) if found[2] == "deg" else value
        if item.value == 0 and self.takes(item):
            return 0.0
        hint = f": write {item.value:g} deg or {item.value:g} rad" if isinstance(item.value, (int, float)) and self.takes(item) else ""
        return self.refuse(item, path, faults, f"must be {self.words}, not {item.kind}{hint}")

    def schema(self, definitions):
        return {"anyOf": [{"const": 0}, {"type": "string", "pattern": f"^ *{ANGLE.pattern} *$"}]}


@dataclass(frozen=True)
class Whole(Value):
    minimum: int = 0
    maximum: int = 10**15  # what a file means is less

    @property
    def words(self):
        most = f" and at most {self.maximum}" if self.maximum != type(self).maximum else ""
        return f"a whole number of at least {self.minimum}{most}"

    def takes(self, item):
        return isinstance(item.value, int) and not isinstance(item.value, bool)

    def check(self, item, path, faults):
        if self.takes(item) and item.value > self.maximum:
            return self.refuse(item, path, faults, f"must be at most {self.maximum}, not {item.kind}")
        if not self.takes(item) or item.value < self.minimum:
            return self.refuse(item, path, faults)
        return item.value

    def schema(self, definitions):
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}


@dataclass(frozen=True)
class YesNo(Value):
    words = "true or false"

    def takes(self, item):
        return isinstance(item.value, bool)

    def schema(self, definitions):
        return {"type": "boolean"}


@dataclass(frozen=True)
class Text(Value):
    what: str = "text"
    endings: tuple = ()  # of a file's name

    @property
    def words(self):
        return self.what + (f" that ends with {' or '.join(self.endings)}" if self.endings else "")

    def takes(self, item):
        return isinstance(item.value, str) and bool(item.value)

    def check(self, item, path, faults):
        if not self.takes(item) or (self.endings and not item.value.lower().endswith(self.endings)):
            return self.refuse(item, path, faults)
        return item.value

    def schema(self, definitions):
        pattern = "|".join(ending.replace(".", "\\.") for ending in self.endings)
        return {"type": "string", "minLength": 1, **({"pattern": f"({pattern})$"} if self.endings else {})}


@dataclass(frozen=True)
class Choice(Value):
    options: tuple

    @property
    def words(self):
        return f"one of {', '.join(self.options)}"

    def takes(self, item):
        return isinstance(item.value, str)

    def check(self, item, path, faults):
        if item.value not in self.options:
            hint = suggestion(item.value, self.options) if self.takes(item) else ""
            return self.refuse(item, path, faults, f"must be {self.words}, not {item.kind}{hint}")
        return item.value

    def schema(self, definitions):
        return {"enum": list(self.options)}


@dataclass(frozen=True)
class Name(Value):
    """What something else in the file is called; ``of``: the kind of thing."""

    of: str
    also: tuple = ()  # words that are no names but allowed, too

    @property
    def words(self):
        return f"the name of a {self.of}" + "".join(f", or {word}" for word in self.also)

    def takes(self, item):
        return isinstance(item.value, str) and bool(item.value)

    def check(self, item, path, faults):
        if not self.takes(item):
            return self.refuse(item, path, faults)
        known, name = faults.names.get(self.of, {}), item.value
        if name in self.also or name in known or any(name.startswith(begin + mark) for begin, mark in known.items() if mark):
            return name
        there = ", ".join(map(repr, list(known)[:8])) + (" and others" if len(known) > 8 else "") if known else "none"
        hint = suggestion(name, [*known, *self.also])
        return self.refuse(item, path, faults, f"must be {self.words}, not {name!r} (there are: {there}){hint}")

    def schema(self, definitions):
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True)
class Vector(Value):
    length: int
    unit: str = ""
    above: float | None = None
    direction: bool = False  # it may not be zero
    infinite: bool = False  # whether .inf is allowed

    @property
    def words(self):
        count = COUNTS[self.length] + " numbers" + (f" above {self.above:g}" if self.above is not None else "")
        return count + (f" in {self.unit}" if self.unit else "") + (", not all zero" if self.direction else "")

    def takes(self, item):
        return isinstance(item.value, list)

    def check(self, item, path, faults):
        if not self.takes(item) or len(item.value) != self.length:
            return self.refuse(item, path, faults, f"must be {self.words}, not {item.kind}")
        number = Number("", self.above, infinite=self.infinite)
        values = [number.read(one, f"{path}[{k}]", faults) for k, one in enumerate(item.value)]
        if any_bad(values):
            return BAD
        if self.direction and not any(values):
            return self.refuse(item, path, faults, "must have a direction, not be zero")
        return tuple(values)

    def schema(self, definitions):
        items = Number("", self.above).schema(definitions)
        return {"type": "array", "items": items, "minItems": self.length, "maxItems": self.length}


@dataclass(frozen=True)
class Many(Value):
    """A list."""

    each: Value
    least: int = 0
    most: int | None = None
    apart: bool = False  # one that is wrong is BAD and leaves the others good

    @property
    def words(self):
        if self.least == self.most:
            return f"a list of {COUNTS[self.least]}, each {self.each.words}"
        return f"a list{f' of at least {COUNTS[self.least]}' if self.least else ''}, each {self.each.words}"

    def takes(self, item):
        return isinstance(item.value, list)

    def check(self, item, path, faults):
        if not self.takes(item) or len(item.value) < self.least or (self.most is not None and len(item.value) > self.most):
            return self.refuse(item, path, faults)
        values = [self.each.read(one, f"{path}[{k}]", faults) for k, one in enumerate(item.value)]
        return BAD if any_bad(values) and not self.apart else values

    def schema(self, definitions):
        limits = {"minItems": self.least or None, "maxItems": self.most}
        return {"type": "array", "items": self.each.schema(definitions), **{k: v for k, v in limits.items() if v is not None}}


@dataclass(frozen=True)
class Named(Value):
    """Things by their names."""

    each: Value
    what: str

    @property
    def words(self):
        return f"{self.what} by their names"

    def takes(self, item):
        return isinstance(item.value, dict)

    def check(self, item, path, faults):
        if not self.takes(item):
            return self.refuse(item, path, faults)
        return {name: self.each.read(one, joined(path, name), faults) for name, one in item.value.items()}

    def schema(self, definitions):
        return {"type": "object", "additionalProperties": self.each.schema(definitions)}


@dataclass(frozen=True)
class Nothing(Value):
    words = "null"

    def takes(self, item):
        return item.value is None

    def schema(self, definitions):
        return {"type": "null"}


@dataclass(frozen=True)
class Either(Value):
    """One of several kinds; the first that takes an item by its look has it."""

    kinds: tuple

    @property
    def words(self):
        return " or ".join(kind.words for kind in self.kinds)

    def takes(self, item):
        return any(kind.takes(item) for kind in self.kinds)

    def check(self, item, path, faults):
        for kind in self.kinds:
            if kind.takes(item):
                return kind.check(item, path, faults)
        return self.refuse(item, path, faults)

    def schema(self, definitions):
        return {"anyOf": [kind.schema(definitions) for kind in self.kinds]}


def _unit_hint(value, unit):
    """For those who write units."""
    if isinstance(value, str) and value[:1].isdigit():
        return f"; write the number alone{f', in {unit}' if unit else ''}"
    return ""
