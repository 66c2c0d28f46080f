"""Built-in scenes give the bits they gave (``tests/golden/__main__.py``), where the hashes were written; and the same again anywhere."""

import pathlib
import subprocess
import sys

import pytest

OTHER_MACHINE = 3


def golden(*options):
    done = subprocess.run(
        [sys.executable, "-m", "tests.golden", *options], cwd=pathlib.Path(__file__).parents[2], capture_output=True, text=True
    )
    if done.returncode == OTHER_MACHINE:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_few_entries_are_those_written():
    golden("--quick")


def test_a_second_run_gives_the_same_bits_on_any_machine():
    """And so do one thread and two."""
    golden("--quick", "--twice", "--variant", "threads")


@pytest.mark.slow
def test_all_entries_are_those_written():
    golden()
