"""Start this very command as several processes, for those who do not call mpiexec themselves."""

import os
import pathlib
import shutil
import subprocess
import sys

from gravel import checks
from gravel.engine import available_cores
from gravel.mpi.domain import Bisection, Grid, Hexagons


def run_again(ranks: int, arguments: list[str]) -> int:
    """Run ``gravel`` with these arguments as so many processes; returns the exit code of the job."""
    command, environment = job_of(ranks, "gravel", arguments)
    return subprocess.run(command, env=environment).returncode


def job_of(ranks: int, module: str, arguments: list[str]) -> tuple[list[str], dict[str, str]]:
    """(command, environment) that run a Python module with these arguments as so many processes."""
    checks.count("ranks", ranks, minimum=1)
    beside = pathlib.Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None:
        raise OSError('there is no mpiexec: pip install "gravel[mpi]" brings one, or load the MPI module of your cluster')
    environment = {**os.environ}
    if ranks > available_cores():  # processes that wait for each other must let the others work
        environment.setdefault("MPIR_CVAR_POLLS_BEFORE_YIELD", "1")
    return [mpiexec, "-n", str(ranks), sys.executable, "-m", "mpi4py", "-m", module, *arguments], environment


def without_option(arguments: list[str], option: str) -> list[str]:
    """Command line arguments without an option and its value."""
    kept, skip = [], False
    for argument in arguments:
        if skip:
            skip = False
        elif argument == option:
            skip = True
        elif not argument.startswith(option + "="):
            kept.append(argument)
    return kept


def domain_from(words: str) -> Grid | Hexagons | Bisection:
    """The domain that a command line names: "bisection", "hexagons", or a grid such as "4x2x1"."""
    if words == "bisection":
        return Bisection()
    if words == "hexagons":
        return Hexagons()
    numbers = words.split("x")
    if len(numbers) <= 3 and all(number.isdigit() for number in numbers):
        return Grid(*map(int, numbers))
    raise ValueError(f'domain must be "bisection", "hexagons" or a grid such as "4x2x1", not {words!r}')
