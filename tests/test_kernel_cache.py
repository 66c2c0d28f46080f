"""Compiled kernels are those of the sources as they are, and are found again wherever the sources are the same."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import gravel
from gravel import kernel_cache

SCRIPT = """
from gravel.kernel_cache import folder
from gravel.packing.outer import four_times
print(four_times(1.5), four_times.stats.cache_hits and "found" or "compiled", folder())
"""
INNER = """from numba import njit
from gravel.kernel_cache import install
install()
FACTOR = 2.0
@njit(cache=True)
def twice(x):
    return FACTOR * x
"""
OUTER = """from numba import njit
from gravel.packing.inner import twice
@njit(cache=True)
def four_times(x):
    return twice(twice(x))
"""


@pytest.fixture
def copy(tmp_path):
    """A copy of the package with a kernel that calls one of another file."""
    package = tmp_path / "here" / "gravel"
    shutil.copytree(pathlib.Path(gravel.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "packing" / "inner.py").write_text(INNER)
    (package / "packing" / "outer.py").write_text(OUTER)
    return package


def run(package, cache):
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, cwd=cache.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    value, how, place = done.stdout.split()
    return float(value), how, pathlib.Path(place)


def test_an_edit_in_another_file_runs_the_new_code(copy, tmp_path):
    cache = tmp_path / "cache"
    value, how, first = run(copy, cache)
    assert (value, how) == (6.0, "compiled") and cache in first.parents
    assert run(copy, cache) == (6.0, "found", first)
    (copy / "packing" / "inner.py").write_text(INNER.replace("2.0", "3.0"))
    value, how, second = run(copy, cache)
    assert (value, how) == (13.5, "compiled") and second != first
    (copy / "packing" / "inner.py").write_text(INNER)
    assert run(copy, cache) == (6.0, "found", first)


def test_the_same_sources_elsewhere_find_what_is_compiled(copy, tmp_path):
    cache = tmp_path / "cache"
    _, _, first = run(copy, cache)
    other = tmp_path / "there" / "gravel"
    shutil.copytree(copy, other)
    with open(other / "printing" / "formatting.py", "a") as file:
        file.write("# not a kernel\n")
    os.utime(other / "packing" / "inner.py", (0, 0))
    assert run(other, cache) == (6.0, "found", first)


def test_functions_of_other_packages_are_left_to_numba(tmp_path):
    assert kernel_cache.SourcesLocator.from_function(run, str(tmp_path / "kernels.py")) is None
    assert kernel_cache.SourcesLocator.from_function(run, __file__) is None


def test_folders_that_were_used_long_ago_go(tmp_path):
    for k in range(kernel_cache.KEPT + 5):
        (tmp_path / f"{k}").mkdir()
        os.utime(tmp_path / f"{k}", (k, k))
    kernel_cache._remove_oldest(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {f"{k}" for k in range(4, kernel_cache.KEPT + 5)}
