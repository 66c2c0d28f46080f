"""Benchmarks: the papers' tables and the bars of this project, measured here, next to their references.

Each benchmark is a function ``run(quick, threads)`` that yields rows (dicts); the first yields are printed as they come. Where nobody says
how many threads, it gets all, or its own ``THREADS``.
"""

import importlib
import json

import click

from gravel import checks

NAMES = (
    "collide",
    "contacts",
    "ellipsoids",
    "pairs",
    "box-collider",
    "solver",
    "step",
    "state",
    "convergence",
    "start",
    "crowd",
    "joints",
    "packing",
    "ffd",
    "scaling",
)
ALONE = ("scaling",)  # that take long, and run only when they are named
OPTIONS = {"scaling": ("steps", "latency", "bandwidth")}  # that a benchmark has of its own


def run(names, quick, threads, as_json, **options):
    """Run benchmarks by name, all if none is given. ``options``: what some of them take beside ``quick`` and ``threads``."""
    from gravel.cli import processor
    from gravel.engine import largest_thread_count

    names = names or tuple(name for name in NAMES if name not in ALONE)
    for name in names:
        checks.choice("benchmark", name, NAMES)
    given = {option: value for option, value in options.items() if value is not None}
    for option in given:
        takers = [name for name, own in OPTIONS.items() if option in own]
        if not set(takers) & set(names):
            raise ValueError(f"--{option} goes with {' or '.join(takers)} only, but the benchmarks are {', '.join(names)}")
    most = threads or largest_thread_count()
    results = {"processor": processor(), "threads": most, "quick": quick}
    if not as_json:
        click.echo(f"{results['processor']}, {most} threads")
    for name in names:
        module = importlib.import_module(f"gravel.bench.{name.replace('-', '_')}")
        rows = results[name] = []
        if not as_json:
            click.echo(f"\n{name}: {module.__doc__.splitlines()[0]}")
        own = {option: value for option, value in given.items() if option in OPTIONS.get(name, ())}
        for row in module.run(quick, threads or getattr(module, "THREADS", most), **own):
            rows.append(row)
            if not as_json:
                click.echo("  " + ", ".join(f"{key} {_written(value)}" for key, value in row.items()))
    if as_json:
        click.echo(json.dumps(results, indent=1))


def _written(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)
