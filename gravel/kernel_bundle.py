"""Compiled kernels as one file: made on one machine, taken over by others that compile nothing then (containers, clusters, wheels).

A bundle is a ZIP archive of the kernels' folder (``kernel_cache``) with ``bundle.json``, which says what the kernels are for: the state of
gravel's sources, Python, Numba, the platform and the type of the CPU. A machine takes them over if all of these are its own and its CPU has
all that they need. Kernels for ``BASELINES`` run on any CPU of the last ten years; ``NUMBA_CPU_NAME=x86-64-v3 gravel compile ...``
makes them.

A bundle holds machine code and pickles, and can do whatever a program can: take over only what you would run.
"""

import contextlib
import functools
import io
import itertools
import json
import os
import pathlib
import pickle
import sys
import tempfile
import zipfile

import llvmlite.binding
import numba
from numba.core import serialize

from gravel import kernel_cache

SHIPPED = kernel_cache.PACKAGE / "kernels.zip"  # in wheels that carry kernels
DESCRIPTION = "bundle.json"
# What a CPU must have for kernels of a type that is no real CPU's name (System V ABI, levels of x86-64).
BASELINES = {
    "x86-64-v2": ("cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"),
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2"),
    "generic": (),
}
SUFFIXES = (".nbi", ".nbc", ".compiled")  # an index of kernels, a kernel, the note that all kernels of a kind of scene are there


def export_kernels(path: str | os.PathLike) -> int:
    """Write all kernels that are compiled for this state of the sources and this type of CPU to ``path``; returns how many."""
    path, place = pathlib.Path(path), kernel_cache.folder()
    files = [] if place is None else sorted(file for file in place.rglob("*") if file.suffix in SUFFIXES)
    kernels = sum(file.suffix == ".nbc" for file in files)
    if not kernels:
        raise ValueError("there are no compiled kernels to export; compile some with: gravel compile SCENE")
    part = path.with_name(path.name + ".part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(DESCRIPTION, json.dumps(_description(), indent=1))
            for file in files:
                archive.write(file, file.relative_to(place).as_posix())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return kernels


def import_kernels(path: str | os.PathLike) -> int:
    """Take over the kernels of a bundle; returns how many. Those that are compiled here already stay."""
    place = kernel_cache.folder()
    if place is None:
        raise ValueError("kernels cannot be kept here: no folder for them can be written; set NUMBA_CACHE_DIR to one that can")
    try:
        with zipfile.ZipFile(path) as archive:
            _check(path, json.loads(archive.read(DESCRIPTION)))
            names = sorted(name for name in archive.namelist() if name != DESCRIPTION)
            if any(not _is_ours(name) for name in names):
                raise ValueError(f"{path} is not a bundle of kernels: it holds other files")
            taken = sum(_take_over(archive, name, place) for name in names if name.endswith(".nbi"))
            for name in (name for name in names if name.endswith(".compiled")):  # last: who reads them expects the kernels
                (place / name).touch()
            return taken
    except (zipfile.BadZipFile, KeyError, json.JSONDecodeError, pickle.UnpicklingError, EOFError) as error:
        raise ValueError(f"{path} is not a bundle of kernels, or damaged") from error


@functools.cache
def import_shipped_kernels() -> None:
    """Once in each new folder of kernels: those that came with the package, if they are for this machine."""
    place = kernel_cache.folder()
    if SHIPPED.exists() and place is not None and not (place / "shipped.compiled").exists():
        with contextlib.suppress(ValueError, OSError):  # they are for another machine: this one compiles its own
            import_kernels(SHIPPED)
        (place / "shipped.compiled").touch()


def _description() -> dict:
    name, features = kernel_cache.cpu()
    return {
        "sources": kernel_cache.fingerprint(),
        "python": f"{sys.implementation.cache_tag}",
        "numba": numba.__version__,
        "platform": llvmlite.binding.get_process_triple(),
        "cpu": name,
        "features": features,
    }


def _check(path, description):
    """Refuse kernels that are for other sources or another machine."""
    here = _description()
    meanings = {"sources": "another version of gravel", "python": "Python", "numba": "Numba", "platform": "the platform"}
    for key, meaning in meanings.items():
        if description.get(key) != here[key]:
            of = meaning if key == "sources" else f"{meaning} {description.get(key)}, not {here[key]}"
            raise ValueError(f"the kernels in {path} are for {of}")
    name, features = str(description.get("cpu")), str(description.get("features"))
    needed = BASELINES[name] if name in BASELINES else [word[1:] for word in features.split(",") if word.startswith("+")]
    own = llvmlite.binding.get_host_cpu_features()
    missing = sorted(word for word in needed if not own.get(word, False))
    if missing:
        raise ValueError(f"the kernels in {path} are for a CPU {name}, which has {', '.join(missing)}; this one has not")


def _is_ours(name):
    """Whether a name in an archive is that of a kernel's file, and stays in its folder."""
    path = pathlib.PurePosixPath(name)
    return path.suffix in SUFFIXES and not path.is_absolute() and ".." not in path.parts and "\\" not in name


def _take_over(archive, index, place):
    """The kernels of one function, as far as there are none of the same types; returns how many. Kernels first, then the index that names
    them: a process that reads meanwhile never misses a file.

    An index is two pickles: Numba's version; the state of the sources with a dict of the kernels' files by (signature, (platform, CPU,
    features), hashes of the function). Kernels are entered under this CPU, which can run them, since Numba looks for no other."""
    version, stamp, offered = _read_index(io.BytesIO(archive.read(index)))
    target, kernels = place / index, {}
    if target.exists():
        with open(target, "rb") as file:
            kernels = _read_index(file)[2]
    target.parent.mkdir(parents=True, exist_ok=True)
    number, taken = itertools.count(1), 0
    for (signature, (platform, *_), *hashes), name in offered.items():
        key = signature, (platform, *kernel_cache.cpu()), *hashes
        if key not in kernels:
            own = next(own for n in number if (own := f"{target.stem}.{n}.nbc") not in kernels.values())
            _write(target.with_name(own), archive.read(str(pathlib.PurePosixPath(index).with_name(name))))
            kernels[key] = own
            taken += 1
    _write(target, serialize.dumps(version) + serialize.dumps((stamp, kernels)))
    return taken


def _read_index(file):
    return pickle.load(file), *pickle.load(file)


def _write(target, content):
    """In one piece."""
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
        file.write(content)
    os.replace(file.name, target)
