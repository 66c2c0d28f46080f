"""Kernels that one machine has compiled serve another, which compiles nothing; what is not for it is refused."""

import json
import os
import platform
import subprocess
import sys
import zipfile

import llvmlite.binding
import pytest
from click.testing import CliRunner
from test_kernel_cache import INNER, copy  # noqa: F401  # a copy of the package with two small kernels

from gravel import kernel_bundle
from gravel.cli import main

CALL = """
from gravel import kernel_bundle
from gravel.packing.outer import four_times
print(four_times({argument}), "found" if four_times.stats.cache_hits else "compiled")
"""
EXPORT = "from gravel.kernel_bundle import export_kernels; print(export_kernels({path!r}), 'written')"
IMPORT = "from gravel.kernel_bundle import import_kernels; print(import_kernels({path!r}), 'taken')"
SHIPPED = "from gravel.kernel_bundle import import_shipped_kernels; import_shipped_kernels(); import_shipped_kernels(); print(0, 'done')"


def run(package, cache, script, **environment):
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(cache), **environment}
    done = subprocess.run([sys.executable, "-c", script], env=environment, cwd=package.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    value, how = done.stdout.split()
    return float(value), how


@pytest.fixture
def bundle(copy, tmp_path):  # noqa: F811
    """A file with the kernel ``four_times`` of numbers in double precision."""
    path, cache = tmp_path / "kernels.zip", tmp_path / "made"
    assert run(copy, cache, CALL.format(argument=1.5)) == (6.0, "compiled")
    number, _ = run(copy, cache, EXPORT.format(path=str(path)))
    assert number == 2  # with the one that it calls
    return path


def test_a_machine_that_takes_kernels_over_compiles_nothing(copy, bundle, tmp_path):  # noqa: F811
    cache = tmp_path / "other"
    assert run(copy, cache, IMPORT.format(path=str(bundle))) == (2, "taken")
    assert run(copy, cache, CALL.format(argument=1.5)) == (6.0, "found")
    assert run(copy, cache, IMPORT.format(path=str(bundle))) == (0, "taken")  # it has them


def test_kernels_of_other_types_that_are_there_stay(copy, bundle, tmp_path):  # noqa: F811
    cache = tmp_path / "other"
    assert run(copy, cache, CALL.format(argument=2)) == (8.0, "compiled")
    run(copy, cache, IMPORT.format(path=str(bundle)))
    assert run(copy, cache, CALL.format(argument=1.5)) == (6.0, "found")
    assert run(copy, cache, CALL.format(argument=2)) == (8.0, "found")


def test_an_edit_makes_kernels_useless(copy, bundle, tmp_path):  # noqa: F811
    (copy / "packing" / "inner.py").write_text(INNER.replace("2.0", "3.0"))
    with pytest.raises(AssertionError, match="are for another version of gravel"):
        run(copy, tmp_path / "other", IMPORT.format(path=str(bundle)))


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the type of CPU is one of x86")
def test_kernels_for_any_cpu_of_ten_years_run_here(copy, tmp_path):  # noqa: F811
    plain = {"NUMBA_CPU_NAME": "x86-64-v2", "NUMBA_CPU_FEATURES": ""}
    path = str(tmp_path / "kernels.zip")
    assert run(copy, tmp_path / "made", CALL.format(argument=1.5), **plain) == (6.0, "compiled")
    run(copy, tmp_path / "made", EXPORT.format(path=path), **plain)
    assert json.loads(zipfile.ZipFile(path).read("bundle.json"))["cpu"] == "x86-64-v2"
    run(copy, tmp_path / "other", IMPORT.format(path=path))
    assert run(copy, tmp_path / "other", CALL.format(argument=1.5)) == (6.0, "found")


def test_kernels_that_came_with_the_package_are_taken_over_once(copy, bundle, tmp_path):  # noqa: F811
    bundle.rename(copy / "kernels.zip")
    run(copy, tmp_path / "other", SHIPPED)
    assert run(copy, tmp_path / "other", CALL.format(argument=1.5)) == (6.0, "found")
    (copy / "kernels.zip").write_bytes(b"nonsense")  # not looked at again, and no error where it is
    run(copy, tmp_path / "other", SHIPPED)
    run(copy, tmp_path / "third", SHIPPED)
    assert run(copy, tmp_path / "third", CALL.format(argument=1.5)) == (6.0, "compiled")


def described(path, files=(), **changes):
    """A bundle without kernels, for this machine but for some changes."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bundle.json", json.dumps({**kernel_bundle._description(), **changes}))
        for name in files:
            archive.writestr(name, b"")
    return str(path)


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"sources": "f" * 16}, "another version of gravel"),
        ({"python": "cpython-27"}, "Python cpython-27, not cpython-3"),
        ({"numba": "0.1"}, "Numba 0.1, not "),
        ({"platform": "mips-linux"}, "the platform mips-linux, not "),
        ({"cpu": "quick1", "features": "+sse2,-avx2,+warp-drive,+flux"}, "a CPU quick1, which has flux, warp-drive; this one has not"),
        ({"files": ["../../outside.nbc"]}, "it holds other files"),
        ({"files": ["/etc/index.nbi"]}, "it holds other files"),
        ({"files": ["run.py"]}, "it holds other files"),
        ({"files": ["cpu/damaged.nbi"]}, "not a bundle of kernels, or damaged"),
    ],
)
def test_what_is_not_for_this_machine_is_refused(tmp_path, changes, sentence):
    files = changes.pop("files", ())
    result = CliRunner().invoke(main, ["compile", "--import", described(tmp_path / "other.zip", files, **changes)])
    assert result.exit_code == 1 and sentence in result.output and len(result.output.splitlines()) == 1


def test_what_is_no_bundle_is_refused(tmp_path):
    path = tmp_path / "kernels.zip"
    path.write_bytes(b"PK nonsense")
    result = CliRunner().invoke(main, ["compile", "--import", str(path)])
    assert result.exit_code == 1 and "is not a bundle of kernels" in result.output


def test_a_cpu_that_lacks_something_is_seen(monkeypatch, tmp_path):
    """Kernels for a level of x86-64 need what the level says."""
    monkeypatch.setattr(llvmlite.binding, "get_host_cpu_features", lambda: {"avx": True, "sse4.2": True})
    with pytest.raises(ValueError, match="has avx2, bmi, bmi2, f16c, fma, lzcnt, movbe, popcnt; this one has not"):
        kernel_bundle.import_kernels(described(tmp_path / "k.zip", cpu="x86-64-v3", features=""))


def test_the_command_says_what_it_wants():
    runner = CliRunner()
    assert "name scenes to compile, or give --all" in runner.invoke(main, ["compile"]).output
    assert "scene must be one of" in runner.invoke(main, ["compile", "sillo"]).output
    assert "jobs must be" in runner.invoke(main, ["compile", "silo", "--jobs", "0"]).output.replace("--jobs", "jobs")
