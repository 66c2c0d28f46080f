"""Benchmarks: the papers' tables and the bars of this project, measured here, next to their references.

Each benchmark is a function ``run(quick, threads)`` that yields rows (dicts); the first yields are printed as they come.
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
)


def run(names, quick, threads, as_json):
    """Run benchmarks by name, all if none is given."""
    from gravel.cli import processor
    from gravel.engine import largest_thread_count

    names = names or NAMES
    for name in names:
        checks.choice("benchmark", name, NAMES)
    threads = threads or largest_thread_count()
    results = {"processor": processor(), "threads": threads, "quick": quick}
    if not as_json:
        click.echo(f"{results['processor']}, {threads} threads")
    for name in names:
        module = importlib.import_module(f"gravel.bench.{name.replace('-', '_')}")
        rows = results[name] = []
        if not as_json:
            click.echo(f"\n{name}: {module.__doc__.splitlines()[0]}")
        for row in module.run(quick, threads):
            rows.append(row)
            if not as_json:
                click.echo("  " + ", ".join(f"{key} {_written(value)}" for key, value in row.items()))
    if as_json:
        click.echo(json.dumps(results, indent=1))


def _written(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)
