"""Every public name says what it takes and what it gives: types, a docstring, and for arrays their shape or unit."""

import inspect
import pathlib
import re

import numpy as np
import pytest

import gravel as gv
from gravel.running.run import run

UNIT = r"\b(m|kg|s|N|Pa|J|rad|Hz|GB|m2|m3|m/s|m/s2|kg/s|1/s|rad/s|N s|N m|ids?)\b"
SHAPE = r"\([\w.| ]+,[\w., |]*\)"  # (3,), (N, 3), (..., 3), (x, y)
DESCRIBED_ABOVE = {"self", "cls"}
WRAPPED = ("fget", "func", "__func__")  # where properties, cached ones and class methods keep their function


def public_things():
    """(path, object) of every public name, those of ``gravel.measures`` included."""
    for name in gv.__all__:
        thing = getattr(gv, name)
        if inspect.ismodule(thing):
            yield from ((f"{name}.{inner}", getattr(thing, inner)) for inner in thing.__all__)
        else:
            yield name, thing


def callables():
    """(path, function, class or None) of every public function and method, each once."""
    seen = set()
    for path, thing in public_things():
        if inspect.isfunction(thing):
            yield path, thing, None
        if inspect.isclass(thing):
            for name, function in methods_of(thing):
                if function not in seen:
                    seen.add(function)
                    yield f"{path}.{name}", function, thing


def methods_of(kind):
    for owner in kind.__mro__:
        if owner.__module__.split(".")[0] != "gravel":
            continue
        for name, value in vars(owner).items():
            function = next((part for part in (getattr(value, name, None) for name in WRAPPED) if part), value)
            public = not name.startswith("_") or name == "__init__"
            if public and inspect.isfunction(function) and function.__module__.startswith("gravel"):
                yield name, function


CALLABLES = list(callables())
CLASSES = [(path, thing) for path, thing in public_things() if inspect.isclass(thing)]


def test_the_walk_finds_what_there_is():
    paths = {path for path, _, _ in CALLABLES}
    assert {"Scene.add_bodies", "Simulation.step", "Simulation.positions", "find_contacts", "measures.stress", "Result.to_xarray"} <= paths
    assert len(paths) > 250 and len(CLASSES) > 60


@pytest.mark.parametrize("path, function", [(path, function) for path, function, _ in CALLABLES], ids=[path for path, *_ in CALLABLES])
def test_parameters_and_results_have_types(path, function):
    signature = inspect.signature(function)
    bare = [p.name for p in signature.parameters.values() if p.annotation is p.empty and p.name not in DESCRIBED_ABOVE]
    assert bare == []
    if not path.endswith("__init__"):
        assert signature.return_annotation is not signature.empty


def test_fields_of_dataclasses_are_no_mere_objects():
    vague = [
        f"{path}.{name}"
        for path, kind in CLASSES
        for name, field in getattr(kind, "__dataclass_fields__", {}).items()
        if field.type in (object, "object") or (field.default is None and "None" not in str(field.type) and "Any" not in str(field.type))
    ]
    assert vague == []


def test_everything_has_a_docstring():
    missing = [path for path, function, kind in CALLABLES if not path.endswith("__init__") and not doc_of(function, kind)]
    assert missing + [path for path, kind in CLASSES if not (kind.__doc__ or "").strip()] == []


def doc_of(function, kind):
    """The docstring, which a method may have from the class that asks for it; __init__ is described by its class."""
    if function.__name__ == "__init__":
        return "\n".join(owner.__doc__ or "" for owner in kind.__mro__)
    return inspect.getdoc(getattr(kind, function.__name__, function) if kind else function) or function.__doc__


def test_a_run_tells_of_all_its_arguments_where_users_look():
    doc = inspect.getdoc(gv.Simulation.run)
    silent = [name for name in inspect.signature(gv.Simulation.run).parameters if f"``{name}``" not in doc]
    assert silent == ["self"] and "``RunReport``" in doc
    assert inspect.signature(gv.Simulation.run).parameters.keys() - {"self"} == inspect.signature(run).parameters.keys() - {"simulation"}


def test_arrays_have_a_shape_or_a_unit_or_are_described_elsewhere():
    """Where a function takes an array, its docstring names it and gives shapes or units; or it says where that is told."""
    silent = []
    for path, function, kind in CALLABLES:
        arrays = [p.name for p in inspect.signature(function).parameters.values() if takes_array(p.annotation)]
        doc = doc_of(function, kind)
        if arrays and not re.search(SHAPE, doc) and not re.search(UNIT, doc) and not re.search(r"[Ss]ee ``|as (in|of) ``", doc):
            silent.append(f"{path}: {', '.join(arrays)}")
    assert not silent, silent


def takes_array(annotation):
    text = str(annotation)
    return annotation is np.ndarray or "ndarray" in text or "SupportsArray" in text or "ArrayLike" in text


def test_properties_that_give_arrays_tell_their_shape():
    silent = []
    for path, function, kind in CALLABLES:
        if kind and isinstance(inspect.getattr_static(kind, function.__name__, None), property):
            annotation = inspect.signature(function).return_annotation
            if annotation in (np.ndarray, "np.ndarray") and not re.search(SHAPE, doc_of(function, kind)):
                silent.append(path)
    assert not silent, silent


def test_types_come_with_the_package():
    assert (pathlib.Path(gv.__file__).parent / "py.typed").exists()
