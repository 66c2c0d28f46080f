"""``gravel compile``: kernels for later runs, and for other machines."""

import multiprocessing
import os
import pathlib
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

import click

from gravel import checks, kernel_cache, scenes
from gravel.cli.group import main
from gravel.engine import available_cores, compile_usual_kernels
from gravel.scenefile import is_scene_file, load_scene_file
from gravel.simulation import Simulation

PARTS = 5  # of the usual kernels of one precision, by kinds of shapes: so many processes may share them
STEPS = 100  # at most, until bodies of a scene touch


@main.command("compile")
@click.argument("scene_names", metavar="[SCENE]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Compile for all built-in scenes, and for the usual kinds of users' scenes.")
@click.option("--precision", help="single or double (default: the scene's own, or single; with --all: both for the usual kinds).")
@click.option("--jobs", type=int, help="Number of processes that compile at once (default: all cores).")
@click.option("--export", "exported", metavar="FILE", help="Write all compiled kernels of this machine to a file, for other machines.")
@click.option("--import", "imported", metavar="FILE", help="Take over the kernels in a file first; only from a source that you trust.")
def compile_command(scene_names, everything, precision, jobs, exported, imported):
    """Compile kernels before the first run: of built-in scenes, of scene files (.yaml), or of all that is usual.

    Kernels are kept in the user's cache folder (or below NUMBA_CACHE_DIR). A file of kernels serves machines with the same versions of
    gravel, Python and Numba, and a CPU that has what the kernels need. NUMBA_CPU_NAME=x86-64-v3 makes kernels for any x86 CPU with AVX2.
    """
    if not (scene_names or everything or exported or imported):
        raise click.UsageError("name scenes to compile, or give --all, --export or --import")
    if precision is not None:
        checks.choice("precision", precision, ("single", "double"))
    jobs = available_cores() if jobs is None else checks.count("jobs", jobs, minimum=1)
    for name in scene_names:
        load_scene_file(name) if is_scene_file(name) else scenes.module_of(name)
    if kernel_cache.folder() is None:
        raise ValueError("no folder for kernels can be written; set NUMBA_CACHE_DIR to one that can")
    if imported is not None:
        from gravel.kernel_bundle import import_kernels

        click.echo(f"{import_kernels(imported)} kernels taken over from {imported}")
    names = list(dict.fromkeys((*scene_names, *(scenes.NAMES if everything else ()))))
    tasks = [(f"usual kinds, {kind}, part {k + 1}", compile_usual_kernels, (kind, k, PARTS)) for kind, k in usual(everything, precision)]
    compile_all(tasks + [(name, compile_scene, (name, precision)) for name in names], jobs)
    if exported is not None:
        from gravel.kernel_bundle import export_kernels

        click.echo(f"{export_kernels(exported)} kernels, {pathlib.Path(exported).stat().st_size / 1e6:.1f} MB: {exported}")


def usual(everything, precision):
    """(precision, part) of the usual kernels to be compiled."""
    kinds = ("single", "double") if precision is None else (precision,)
    return [(kind, k) for kind in kinds for k in range(PARTS)] if everything else []


def compile_all(tasks, jobs):
    """Run tasks (what, function, arguments) in processes of their own, and tell as each ends."""
    if not tasks:
        return
    start, before = time.perf_counter(), kernels()
    with ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(function, *arguments): what for what, function, arguments in tasks}
        for number, done in enumerate(as_completed(running), 1):
            done.result()  # raises what went wrong there
            click.echo(f"{number:3} of {len(tasks)}  {running[done]}")
    new = len(kernels() - before)
    click.echo(f"{new} kernels compiled in {time.perf_counter() - start:.0f} s, kept in {kernel_cache.folder()}")


def compile_scene(name, precision):
    """Compile what a scene needs: its kernels one by one, then what its first steps with contacts meet beside them."""
    setup = load_scene_file(name) if is_scene_file(name) else scenes.build(name)
    options = {**setup.options, **({} if precision is None else {"precision": precision})}
    simulation = Simulation(setup.scene, setup.dt, threads=available_cores(), domain=None, **options)
    simulation._warm_up.compile()
    for _ in range(STEPS):
        if simulation.step().contacts and simulation.steps > 2:
            break


def kernels():
    """The files of all compiled kernels."""
    return {os.fspath(file) for file in kernel_cache.folder().rglob("*.nbc")}
