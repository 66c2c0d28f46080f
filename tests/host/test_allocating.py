"""Functions that do not count references to arrays (``INNER``) get no new array from anybody: they would never give it back."""

import ast
import pathlib

import gravel

ROOT = pathlib.Path(gravel.__file__).parent
MAKES = {"empty", "zeros", "ones", "full", "arange", "array", "copy", "empty_like", "zeros_like", "astype", "concatenate"}


def functions(trees, options):
    """Functions with ``@njit(..., **options)``."""
    for node in (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        if any("njit(" in text and f"**{options}" in text for text in map(ast.unparse, node.decorator_list)):
            yield node


def called(node):
    """Names of what is called somewhere in a node."""
    calls = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
    return {f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in calls}


def gives_new_array(function, known):
    """Whether it may return an array made by itself or by one of the ``known`` functions."""
    new = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and called(node.value) & (MAKES | known):
            new |= {n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    values = [n.value for n in ast.walk(function) if isinstance(n, ast.Return) and n.value is not None]
    return any(called(v) & (MAKES | known) or isinstance(v, ast.Name) and v.id in new for v in values)


def givers(trees):
    """Names of the allocating functions that return new arrays, also those of other such functions."""
    known, allocating = set(), list(functions(trees, "ALLOCATING"))
    while True:
        more = {f.name for f in allocating if gives_new_array(f, known)}
        if more == known:
            return known
        known = more


def leaks(trees):
    known = givers(trees)
    return sorted(f"{f.name} calls {name}" for f in functions(trees, "INNER") for name in called(f) & known)


def test_no_function_without_counters_gets_a_new_array():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))]
    assert {"make_work", "make_scratch", "dead_joints", "make_pair"} <= givers(trees)
    assert not leaks(trees)


def test_such_a_function_is_found():
    text = """
@njit(**ALLOCATING)
def room(n):
    values = np.empty(n)
    return values

@njit(**ALLOCATING)
def rooms(n):
    return room(n), 3

@njit(**INNER)
def work(n):
    return rooms(n)[0][0]
"""
    assert leaks([ast.parse(text)]) == ["work calls rooms"]
