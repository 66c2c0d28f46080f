"""The JSON schema of scene files (draft 2020-12), for editors to complete and check them, and the reference of all keys in Markdown.
Both come from the one table in ``gravel.scenefile.language``."""

import json

from gravel.scenefile.language import DOCUMENT
from gravel.scenefile.records import Kinds, Record
from gravel.scenefile.values import Either, Many, Named

FILE = "gravel.schema.json"  # what it is called beside a scene file
FIRST_LINE = f"# yaml-language-server: $schema={FILE}"


def json_schema() -> dict:
    """The schema, as plain values."""
    definitions: dict = {}
    DOCUMENT.schema(definitions)
    whole = definitions.pop("scene_file")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A scene of gravel",
        **whole,
        "$defs": dict(sorted(definitions.items())),
    }


def schema_text() -> str:
    return json.dumps(json_schema(), indent=1) + "\n"


def reference() -> str:
    """All keys in Markdown: one table per record, in order of first use."""
    seen: dict[str, str] = {}
    _describe(DOCUMENT, seen)
    return "\n".join(seen.values())


def _describe(value, seen):
    """Adds the description of a record or of kinds, and of what they hold."""
    if isinstance(value, Record) and value.name not in seen:
        seen[value.name] = _table_of(value)
        for key in value.keys.values():
            _describe(key.value, seen)
    elif isinstance(value, Kinds) and value.name not in seen:
        seen[value.name] = _list_of(value)
        for one in value.kinds.values():
            _describe(one, seen)
    elif isinstance(value, (Many, Named)):
        _describe(value.each, seen)
    elif isinstance(value, Either):
        for one in value.kinds:
            _describe(one, seen)


def _table_of(record):
    lines = [f"### {record.name}", record.doc, ""]
    if record.ways:
        ways = ", ".join(" with ".join(f"`{name}`" for name in way) for way in record.ways if way)
        lines += [f"Exactly one of: {ways}.", ""]
    if record.keys:
        lines += ["| key | value | meaning | default |", "|---|---|---|---|"]
    for name, key in record.keys.items():
        without = "**required**" if key.required else "" if key.default is None else str(key.default).lower()
        lines.append(f"| `{name}` | {_link(key.value)} | {key.doc} | {without} |")
    return "\n".join(lines) + "\n"


def _list_of(kinds):
    named = f" Or {kinds.names.words}." if kinds.names else ""
    lines = [f"### {kinds.name}", f"{kinds.doc} One of these keys.{named}", ""]
    lines += [f"- `{word}`: {_link(one)}. {one.doc}" for word, one in kinds.kinds.items()]
    return "\n".join(lines) + "\n"


def _link(value):
    """What a value is, in words, with links to what has a table of its own."""
    if isinstance(value, (Record, Kinds)):
        return f"[{value.name}](#{value.name.replace(' ', '-')})"
    if isinstance(value, Many):
        return f"list of {_link(value.each)}"
    if isinstance(value, Named):
        return f"name: {_link(value.each)}"
    if isinstance(value, Either):
        return " or ".join(map(_link, value.kinds))
    return value.words.replace("|", "\\|")
