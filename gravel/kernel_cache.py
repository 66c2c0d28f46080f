"""Where compiled kernels are kept: one folder for each state of the sources that kernels are compiled from, and each type of CPU.

Numba keys the cache of a function by the file that it stands in, and does not notice when a function or constant of another file
changes. Here the key is the content of all of ``SOURCES``: an edit never runs stale code, and a reinstall, another environment or a
version that changed nothing in them finds what is compiled. Machines of several types may share a home folder: each has its own kernels.

In: the sources. Out: ``folder()``, below NUMBA_CACHE_DIR if that is set, else the user's cache folder, else one that can be written.
"""

import contextlib
import functools
import hashlib
import os
import pathlib
import shutil
import tempfile

import llvmlite.binding
import numba
import platformdirs
from numba.core import caching, codegen

PACKAGE = pathlib.Path(__file__).parent
# What kernels are made of, constants that they take from Python included.
SOURCES = ("contacts.py", "cpu", "engine.py", "formulas", "host", "joints", "model", "packing", "rotations.py", "shapes", "state.py")
KEPT = 8  # folders of other states of the sources: checkouts and versions that are used in turn


@functools.cache
def fingerprint() -> str:
    """The sources and Numba's version, in one word."""
    found = hashlib.sha256(numba.__version__.encode())
    for name in SOURCES:
        path = PACKAGE / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            found.update(f"{file.relative_to(PACKAGE).as_posix()}\0".encode() + file.read_bytes() + b"\0")
    return found.hexdigest()[:16]


@functools.cache
def cpu() -> tuple[str, str]:
    """(name, features) of the CPU that kernels are compiled for: this machine's, unless NUMBA_CPU_NAME and NUMBA_CPU_FEATURES say else."""
    name, features = numba.config.CPU_NAME, numba.config.CPU_FEATURES
    return (
        llvmlite.binding.get_host_cpu_name() if name is None else name,
        codegen.get_host_cpu_features() if features is None else features,
    )


def folder_name() -> str:
    """The state of the sources and the type of the CPU, in one word."""
    name, features = cpu()
    return f"{fingerprint()}-{name}-{hashlib.sha256(features.encode()).hexdigest()[:6]}"


@functools.cache
def folder() -> pathlib.Path | None:
    """The folder of this state of the sources on this type of CPU, or None where nothing can be written."""
    places = (platformdirs.user_cache_path("gravel"), PACKAGE / "__pycache__", pathlib.Path(tempfile.gettempdir()) / f"gravel-{_user()}")
    for place in [pathlib.Path(numba.config.CACHE_DIR) / "gravel"] if numba.config.CACHE_DIR else places:
        own = place / "kernels" / folder_name()
        with contextlib.suppress(OSError):
            own.mkdir(parents=True, exist_ok=True)
            own.touch()  # used last
            tempfile.TemporaryFile(dir=own).close()
            _remove_oldest(own.parent)
            return own
    return None


def _user() -> str:
    """Temporary folders are shared by users, caches are not."""
    return str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")


def _remove_oldest(place: pathlib.Path) -> None:
    """Of the folders there, those that were used last are kept."""
    with contextlib.suppress(OSError):
        for old in sorted(place.iterdir(), key=lambda path: -path.stat().st_mtime)[KEPT + 1 :]:
            shutil.rmtree(old, ignore_errors=True)


class SourcesLocator(caching._CacheLocator):
    """Tells Numba where kernels of ``SOURCES`` are kept; it leaves functions of other files to Numba's own locators."""

    def __init__(self, place, line):
        self.place, self.line = place, line

    def get_cache_path(self):
        return str(self.place)

    def get_source_stamp(self):
        return fingerprint()

    def get_disambiguator(self):
        return str(self.line)

    @classmethod
    def from_function(cls, function, file):
        path = pathlib.Path(file)
        if PACKAGE not in path.parents or path.relative_to(PACKAGE).parts[0] not in SOURCES or folder() is None:
            return None
        locator = cls(folder() / path.relative_to(PACKAGE).parent, function.__code__.co_firstlineno)
        try:
            locator.ensure_cache_path()
        except OSError:
            return None
        return locator


def install() -> None:
    """Numba keeps gravel's kernels here from now on: to be called before any is defined."""
    if SourcesLocator not in caching.CacheImpl._locator_classes:
        caching.CacheImpl._locator_classes.insert(0, SourcesLocator)
