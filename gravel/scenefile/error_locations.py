"""Errors of gravel's own constructors, put to the line and key of a scene file that they are about."""

import re

from gravel.scenefile.values import BAD

SAID_OTHERWISE = {  # what constructors call things, and the keys that stand for them
    "path": "file",
    "mesh": "file",
    "body_a": "between",
    "body_b": "between",
    "joint_1": "joints",
    "joint_2": "joints",
    "masses": "mass",
    "inertias": "inertia",
    "quaternions": "rotation",
    "quaternion": "rotation",
    "velocities": "velocity",
    "angular_velocities": "angular_velocity",
    "bodies": "count",
    **dict.fromkeys(("positions", "sizes", "heights", "vertices", "triangles", "points"), "file"),
}
MOST_WORDS = 3  # before the name of an argument, as in "Material friction must be ..."
TROUBLE = (ValueError, TypeError, OSError, RuntimeError, ImportError, MemoryError, ArithmeticError)  # what gravel refuses things with


def attempt(faults, given, function, *arguments, **options):
    """What a function gives; BAD where it refuses, after the faults were told at which of the ``given`` keys."""
    try:
        return function(*arguments, **options)
    except TROUBLE as error:
        key, words = blamed(str(error), given.item.value)
        faults.add(given.line_of(key), given.path_of(key), words)
        return BAD


def blamed(message: str, keys) -> tuple[str | None, str]:
    """(the key that a message is about, or None; the message without its name)."""
    message = " ".join(message.split())
    found = []
    for word in (*keys, *SAID_OTHERWISE):
        key = word if word in keys else SAID_OTHERWISE[word]
        before = r"(?<!have )(?<!has )(?<!inhomogeneous )(?<!with )" if word == "shape" else ""  # numpy's word for lengths of arrays
        place = re.search(rf"{before}(?<![\w-]){re.escape(word)}(\[[^\]]*\])?(?![\w-])", message)
        if place and key in keys:
            found.append((place.start(), -len(word), key, place.end()))
    if not found:
        return None, message
    start, _, key, end = min(found)
    rest = message[end:].strip()
    named = len(message[:start].split()) <= MOST_WORDS and rest.startswith(("must", "cannot", "goes", "needs"))
    return key, rest if named else message
