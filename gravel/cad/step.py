"""STEP files, as numbers and arrays: products (geometry, each once) and parts (where which product is, by unique names).

The kernel is asked in a process of its own (``kernel``): it ends at once at some damaged files, and takes its process with it.
"""

import fnmatch
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from gravel import checks

INSTALL = 'pip install "gravel[cad]"'
SUFFIXES = (".step", ".stp")
BEGIN, END = b"ISO-10303-21", b"END-ISO-10303-21"
UNNAMED = re.compile(r"Open CASCADE STEP translator.*|COMPOUND|SOLID|SHELL|FACE|=>.*")  # what Open CASCADE calls what was given no name
TAIL = 4096  # bytes at the end, among which END must be
LARGEST = 1e20  # m
LAST: dict[tuple, "Model"] = {}  # the file that was read last, in its state, since scripts and sweeps read one file several times


class Cylinder(NamedTuple):
    """A cylindrical face: a point on the axis m, direction, radius m, from where to where along the direction m, how far round it goes
    (rad), and whether the solid is around it."""

    point: np.ndarray
    direction: np.ndarray
    radius: float
    low: float
    high: float
    round: float
    hole: bool


class Product(NamedTuple):
    """Geometry in its own coordinates, m. ``inertia`` (3, 3) about the centre for density 1; ``volume`` 0: no solid."""

    volume: float
    centre: np.ndarray
    inertia: np.ndarray
    size: float  # diagonal of its box
    broken: int  # solids whose surface is not closed, which count as none
    cylinders: list[Cylinder]
    vertices: np.ndarray
    triangles: np.ndarray


class PlacedPart(NamedTuple):
    """``name``: unique in its model; ``path``: (name, number) of each assembly around it and of itself, from outside, where the number
    tells instances apart; ``names``: all that it may be called by, of products and of their instances."""

    name: str
    path: tuple[tuple[str, int], ...]
    names: frozenset
    product: int
    pose: np.ndarray
    colour: tuple[float, float, float] | None


class Model(NamedTuple):
    """What a STEP file holds. ``unit``: of length, as the file names it; everything here is in m."""

    name: str
    unit: str
    products: list[Product]
    parts: list[PlacedPart]


def is_step(path: Any) -> bool:
    """Does a file's name say that it is a STEP file?"""
    return os.path.splitext(os.fspath(path))[1].lower() in SUFFIXES


def read_step(path: str | os.PathLike, tolerance: float | None = None, roots: Any = "own folder") -> Model:
    """The model in a STEP file. ``tolerance``: how far, in m, triangles may be from the surface (None: 1/1000 of a part's size).
    ``roots``: folders in which files may be that the file refers to; None allows all."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path must be the name of a STEP file, not {path!r:.80}")
    path = os.fspath(path)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"path must be a STEP file, but {path!r} {'is no file' if os.path.exists(path) else 'does not exist'}")
    if tolerance is not None:
        tolerance = checks.number("tolerance", tolerance, above=0.0)
    _check_text(path)
    if importlib.util.find_spec("OCP") is None:
        raise ImportError(f"reading STEP files needs a CAD kernel, cadquery-ocp-novtk: {INSTALL}")
    real = os.path.realpath(path)
    roots = [os.path.dirname(real)] if roots == "own folder" else roots
    about = os.stat(real)
    state = real, about.st_mtime_ns, about.st_size, tolerance
    if state not in LAST:
        with tempfile.TemporaryDirectory(prefix="gravel-step-") as folder:
            answer, arrays = _asked({"path": real, "tolerance": tolerance, "roots": roots}, folder, path)
        if "refused" in answer:
            raise ValueError(f"path must be a STEP file, but {path!r} {answer['refused']}")
        model = _model(path, answer, arrays, tolerance)
        LAST.clear()
        if answer["references"]:  # the files that it refers to may change, or may not be allowed the next time
            return model
        LAST[state] = model
    return LAST[state]


def _model(path, answer, arrays, tolerance):
    """The model in the kernel's answer, checked."""
    products = [_product(k, facts, arrays) for k, facts in enumerate(answer["products"])]
    far = max((np.abs(p.vertices).max() for p in products if len(p.vertices)), default=0.0)
    if not answer["parts"] or not far:
        raise ValueError(f"path must be a STEP file with parts, but {path!r} has none")
    if not far < LARGEST:
        raise ValueError(f"path must be a STEP file of parts below {LARGEST:g} m, but {path!r} reaches to {far:g} m")
    stem = os.path.splitext(os.path.basename(path))[0]
    for product in products:
        _check_volume(path, product, tolerance)
    return Model(_given(answer["name"]) or stem, answer["unit"], products, _named_parts(answer["parts"], stem))


def read_as_one(path: str | os.PathLike) -> tuple[np.ndarray, np.ndarray, tuple[float, np.ndarray, np.ndarray] | None]:
    """(vertices, triangles, solid) of all parts of a STEP file, each where the file places it. ``solid``: exact volume m3, centre m and
    inertia about it for density 1, m5; None if a part encloses no volume."""
    model = read_step(path)
    vertices, triangles, count = [], [], 0
    for part in model.parts:
        product = model.products[part.product]
        vertices.append(product.vertices @ part.pose[:3, :3].T + part.pose[:3, 3])
        triangles.append(product.triangles + count)
        count += len(product.vertices)
    return np.concatenate(vertices), np.concatenate(triangles), _solid_of(model)


def _solid_of(model):
    """Volume, centre and inertia about the centre of all parts together, by the parallel axis theorem."""
    products = [model.products[part.product] for part in model.parts]
    if any(product.volume == 0.0 or product.broken for product in products):
        return None
    volumes = np.array([product.volume for product in products])
    centres = np.array([part.pose[:3, :3] @ product.centre + part.pose[:3, 3] for part, product in zip(model.parts, products)])
    turns = [part.pose[:3, :3] for part in model.parts]
    centre = volumes @ centres / volumes.sum()
    arms = centres - centre
    second = (volumes[:, None] * arms).T @ arms
    inertia = sum(turn @ product.inertia @ turn.T for turn, product in zip(turns, products))
    return float(volumes.sum()), centre, inertia + np.trace(second) * np.eye(3) - second


def _check_volume(path, product, tolerance):
    """The exact volume and that inside the triangles, which are made in different ways, must agree as far as triangles can."""
    if product.volume == 0.0:
        return
    a, b, c = np.moveaxis((product.vertices - product.centre)[product.triangles], 1, 0)
    normals = np.cross(b - a, c - a)
    inside, area = np.einsum("ni,ni->", a, normals) / 6, np.linalg.norm(normals, axis=1).sum() / 2
    allowed = 0.1 * product.volume + 2 * area * (tolerance or 0.0)
    if not abs(inside - product.volume) <= allowed:
        told = f"its surface encloses {product.volume:.4g} m3, but cut into triangles {inside:.4g} m3"
        raise ValueError(f"path must be a STEP file of sound solids, but of a part of {path!r} {told}: it is damaged")


def _check_text(path):
    """Files of another kind and files that are cut off are told before the kernel is asked."""
    with open(path, "rb") as file:
        head = file.read(TAIL)
        file.seek(max(0, os.path.getsize(path) - TAIL))
        tail = file.read()
    if not head:
        raise ValueError(f"path must be a STEP file, but {path!r} is empty")
    if BEGIN not in head:
        raise ValueError(f"path must be a STEP file, which begins with {BEGIN.decode()}, but {path!r} does not")
    if END not in tail:
        raise ValueError(f"path must be a whole STEP file, which ends with {END.decode()}, but {path!r} does not")


def _asked(question, folder, path):
    """(facts, arrays): the kernel's answer."""
    asking, kernel = os.path.join(folder, "question.json"), os.path.join(os.path.dirname(__file__), "kernel.py")
    with open(asking, "w", encoding="utf-8") as file:
        json.dump(question, file)
    done = subprocess.run([sys.executable, kernel, asking, folder], capture_output=True, stdin=subprocess.DEVNULL, cwd=folder)
    try:
        with open(os.path.join(folder, "model.json"), encoding="utf-8") as file:
            answer = json.load(file)
        with np.load(os.path.join(folder, "arrays.npz")) as arrays:
            return answer, dict(arrays)
    except FileNotFoundError:
        raise ValueError(f"path must be a STEP file, but the CAD kernel {_ending_of(done)} at {path!r}: it may be damaged") from None


def _ending_of(done):
    """How the kernel's process ended, in words."""
    if done.returncode < 0:
        return f"ended with {signal.Signals(-done.returncode).name}"
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return f"failed ({_clean(lines[-1])[:200]})" if lines else "failed"


def _product(number, facts, arrays):
    cylinders = [
        Cylinder(np.array(one["point"]), np.array(one["direction"]), *(one[name] for name in Cylinder._fields[2:]))
        for one in facts["cylinders"]
    ]
    centre, inertia = np.array(facts["centre"]), np.array(facts["inertia"])
    mesh = arrays[f"vertices{number}"], arrays[f"triangles{number}"]
    for array in mesh:
        array.flags.writeable = False
    return Product(facts["volume"], centre, inertia, facts["size"], facts["open"], cylinders, *mesh)


# --- names
def _clean(name):
    """A name on one line, without what cannot be printed."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in name).split())


def _given(name):
    """A name that somebody gave, or none."""
    return "" if UNNAMED.fullmatch(name) else _clean(name)


def _named_parts(given, stem):
    """Parts with unique names: that of the product, followed by .1, .2 ... where there are several of one name."""
    paths = [[(_given(product), _given(instance), number) for product, instance, number in part["path"]] for part in given]
    names = unique([next((name for pair in reversed(path) for name in pair[:2] if name), stem) for path in paths])
    return [
        PlacedPart(
            name,
            tuple((product or instance or "?", number) for product, instance, number in path),
            frozenset(one for product, instance, _ in path for one in (product, instance) if one),
            part["product"],
            np.array(part["pose"]),
            None if part["colour"] is None else tuple(part["colour"]),
        )
        for name, path, part in zip(names, paths, given)
    ]


def unique(names: list[str]) -> list[str]:
    """The same, with .1, .2 ... after those that are there several times."""
    times, taken, counted = Counter(names), set(names), Counter()
    result = []
    for name in names:
        one = name
        while times[name] > 1 and one in taken:
            counted[name] += 1
            one = f"{name}.{counted[name]}"
        taken.add(one)
        result.append(one)
    return result


def chosen(argument: str, name: Any, parts: list[PlacedPart]) -> list[int]:
    """Numbers of the parts that a name means: the part of that name; or all of a product, or in an assembly, of that name; or those that
    fit a pattern such as "bolt*". A name that means none is refused."""
    if not isinstance(name, str):
        raise TypeError(f"{argument} must be names of parts, not {name!r:.80}")
    for fits in (
        lambda part: part.name == name,
        lambda part: name in part.names,
        lambda part: any(fnmatch.fnmatchcase(one, name) for one in (part.name, *part.names)),
    ):
        found = [number for number, part in enumerate(parts) if fits(part)]
        if found:
            return found
    checks.choice(argument, name, tuple(dict.fromkeys([*(part.name for part in parts), *sorted(set().union(*(p.names for p in parts)))])))
    return []
