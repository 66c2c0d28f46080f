"""The golden matrix: do all built-in scenes still give the bits they gave? ``python -m tests.golden`` compares with hashes.json,
``--write`` writes it anew, if a second run gives the same; ``--twice`` compares two runs with each other, on any machine.

Hashes hold for one kind of processor and one set of versions, which stand beside them: compilers choose vector units and fuse operations.
They tell of poses and velocities: a wrong residual or contact table shows only if it changes those.
Exit code 0: all are equal; 1: some differ; 3: this is another machine, where a difference would mean nothing.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

from numba.core.registry import cpu_target

from gravel import scenes
from tests.golden.entry import VARIANTS, entries

ROOT = pathlib.Path(__file__).parents[2]
FILE = pathlib.Path(__file__).with_name("hashes.json")
MPIEXEC = str(pathlib.Path(sys.executable).with_name("mpiexec"))  # the extra mpi brings it
PACKAGES = ("numba", "llvmlite", "numpy", "scipy", "warp-lang", "mpi4py", "mpich")
QUICK = [("tank", "single"), ("chain", "double"), ("pile", "threads"), ("wall", "warp"), ("excavator", "mpi")]
EQUAL, DIFFERENT, OTHER_MACHINE = 0, 1, 3


def made_with():
    """What the bits depend on beside the sources: the processor that kernels are compiled for, and versions."""
    triple, cpu, features = cpu_target.target_context.codegen().magic_tuple()
    used = " ".join(sorted(word[1:] for word in features.split(",") if word.startswith("+")))
    versions = {name: version_of(name) for name in PACKAGES}
    system = {"python": platform.python_version(), "libc": " ".join(platform.libc_ver())}
    return {"target": triple, "cpu": cpu, "features": used, **system, **versions}


def version_of(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def other_machine(then, now):
    """One sentence on what differs from the machine that the hashes were written on; empty if nothing does."""
    told = [f"{key} {then.get(key)}, here {now[key]}" for key in now if then.get(key) != now[key] and key != "features"]
    if not told and then.get("features") != now["features"]:
        told = [f"{' '.join(sorted(set(then['features'].split()) ^ set(now['features'].split())))} only on one of the two"]
    return f"hashes.json was written on another kind of machine, where bits may differ ({'; '.join(told)})" if told else ""


def run_entry(scene, variant):
    """([hash, ...] or why there is none, seconds) of one entry, from a process of its own."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "tests.golden.entry", scene, variant]
    if variant == "mpi":
        command[1:1] = ["-m", "mpi4py"]
        command[:0] = [MPIEXEC, "-n", "2"]
    threads = "2" if variant == "threads" else "1"
    environment = {**os.environ, "NUMBA_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
    if done.returncode or not lines:
        return (done.stderr.strip() or "no output").splitlines()[-1], time.perf_counter() - start
    return json.loads(lines[-1]), time.perf_counter() - start


def judge(hashes, golden):
    """In words, what is wrong with the hashes of an entry; empty if nothing is. ``golden`` None: they are to be written."""
    if isinstance(hashes, str):
        return f"failed: {hashes}"
    if len(set(hashes)) > 1:
        return f"differs between 1 and 2 threads: {hashes[0]}, {hashes[1]}"
    return "" if golden in (None, hashes[0]) else f"differs: {hashes[0]}, was {golden}"


def run_all(chosen, golden, jobs):
    """({entry: hash}, {entry: what is wrong with it}); tells each as it ends. ``golden`` is empty if they are to be written."""
    found, wrong = {}, {}
    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(run_entry, *entry): entry for entry in chosen}
        for number, done in enumerate(as_completed(running), 1):
            entry, (hashes, seconds) = running[done], done.result()
            problem = judge(hashes, golden.get(entry, "never written") if golden else None)
            print(f"{number:3} of {len(chosen)}  {entry[0]:13} {entry[1]:8} {seconds:6.1f} s  {problem or 'ok'}", flush=True)
            if problem:
                wrong[entry] = problem
            else:
                found[entry] = hashes[0]
    return found, wrong


def read():
    """What the hashes were written with, and {(scene, variant): hash}."""
    if not FILE.exists():
        return {}, {}
    kept = json.loads(FILE.read_text())
    return kept["made_with"], {(scene, variant): word for scene, row in kept["hashes"].items() for variant, word in row.items()}


def write(now, hashes):
    """In the order of the matrix, so that a diff shows what has changed and nothing else."""
    rows = {}
    for scene, variant in sorted(set(hashes) & set(entries()), key=entries().index):
        rows.setdefault(scene, {})[variant] = hashes[scene, variant]
    FILE.write_text(json.dumps({"made_with": now, "hashes": rows}, indent=1) + "\n")


def choose(options):
    """The entries that were asked for."""
    chosen = QUICK if options.quick else entries()
    return [(s, v) for s, v in chosen if options.only in (None, s) and options.variant in (None, v)]


def main():
    parser = argparse.ArgumentParser("python -m tests.golden", description="Do all built-in scenes still give the bits they gave?")
    parser.add_argument("--write", action="store_true", help="write the hashes instead of comparing with them")
    parser.add_argument("--twice", action="store_true", help="compare two runs with each other, not with what is written")
    parser.add_argument("--only", metavar="SCENE", choices=scenes.NAMES, help="one scene")
    parser.add_argument("--variant", metavar="NAME", choices=VARIANTS, help=f"one of {', '.join(VARIANTS)}")
    parser.add_argument("--quick", action="store_true", help="the small matrix")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes at once (2)")
    options = parser.parse_args()
    now, (then, golden), chosen = made_with(), read(), choose(options)
    other = other_machine(then, now)
    if other and options.write and chosen != entries():
        parser.error(f"{other}: write all of them")
    if other and not (options.write or options.twice):
        print(f"{other}: nothing is compared. Write hashes of your own before you change anything, and keep them out of your commit.")
        return OTHER_MACHINE
    start = time.perf_counter()
    expected, wrong = run_all(chosen, {}, options.jobs) if options.write or options.twice else (golden, {})
    if not wrong:
        found, wrong = run_all(chosen, expected, options.jobs)
    if options.write and not wrong:
        write(now, {**golden, **found})
    outcome = "" if not options.write else "; nothing is written" if wrong else "; written"
    print(f"{len(chosen) - len(wrong)} of {len(chosen)} equal, {time.perf_counter() - start:.0f} s{outcome}")
    for (scene, variant), problem in wrong.items():
        print(f"{scene} {variant} {problem}")
    return DIFFERENT if wrong else EQUAL


if __name__ == "__main__":
    sys.exit(main())
