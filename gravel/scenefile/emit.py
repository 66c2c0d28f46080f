"""Plain values as YAML text: short things on one line, long lists of numbers wrapped, the rest as blocks."""

import json
import math
import re

WIDTH = 130
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_ ./-]*(?<![ :])$")  # words that need no quotation marks
RESERVED = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")


def flow(value) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{word(key)}: {flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, (int, float)):
        return number(value)
    return word(value)


def number(value) -> str:
    """The shortest text that is read back as the same number."""
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    text = repr(value)
    return text[:-2] if text.endswith(".0") else text


def word(text) -> str:
    return text if PLAIN.match(text) and text.lower() not in RESERVED else json.dumps(text, ensure_ascii=False)


def block(value, indent: int = 0) -> list[str]:
    """Lines of a value, each with its indent."""
    margin = " " * indent
    if len(text := flow(value)) + indent <= WIDTH and not _is_section(value, indent):
        return [margin + text]
    if isinstance(value, dict):
        return [line for key, one in value.items() for line in _entry(f"{margin}{word(key)}:", one, indent)]
    if isinstance(value, (list, tuple)) and value and not isinstance(value[0], dict):
        return _wrapped(value, margin)
    if isinstance(value, (list, tuple)):
        lines = []
        for one in value:
            first, *rest = block(one, indent + 2)
            lines += [f"{margin}- {first.lstrip()}", *rest]
        return lines
    return [margin + text]


def _is_section(value, indent):
    """Top sections are blocks, however short."""
    return indent == 0 and isinstance(value, dict) and bool(value)


def _entry(head, value, indent):
    text = flow(value)
    empty = not isinstance(value, (dict, list, tuple)) or not value
    lists = indent == 0 and isinstance(value, (dict, list, tuple)) and not _is_numbers(value)
    if empty or (len(head) + 1 + len(text) <= WIDTH and not lists):
        return [f"{head} {text}"]
    if indent == 0 and isinstance(value, dict):
        return [head, *(line for key, one in value.items() for line in _entry(f"  {word(key)}:", one, 2))]
    return [head, *_items(value, indent + 2)]


def _items(value, indent):
    """A value that does not fit behind its key."""
    if isinstance(value, (list, tuple)) and isinstance(value[0], dict):
        lines = []
        for one in value:
            text = flow(one)
            if len(text) + indent + 2 <= WIDTH:
                lines.append(f"{' ' * indent}- {text}")
                continue
            first, *rest = [line for key, inner in one.items() for line in _entry(f"{' ' * (indent + 2)}{word(key)}:", inner, indent + 2)]
            lines += [f"{' ' * indent}- {first.lstrip()}", *rest]
        return lines
    return block(value, indent)


def _is_numbers(value):
    return isinstance(value, (list, tuple)) and all(isinstance(one, (int, float)) for one in value)


def _wrapped(values, margin):
    """A long list in flow style, over several lines."""
    lines, line = [], margin + "["
    for k, one in enumerate(values):
        text = flow(one) + ("," if k < len(values) - 1 else "]")
        if len(line) + len(text) + 1 > WIDTH and line.strip() != "[":
            lines.append(line.rstrip())
            line = margin + " "
        line += text + " "
    return [*lines, line.rstrip()]
