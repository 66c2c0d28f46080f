"""Benchmarks: the papers' tables and the bars of this project, measured here, next to their references.

Each benchmark is a function ``run(quick, threads)`` that yields rows (dicts); the first yields are printed as they come. Where nobody says
how many threads, it gets all, or its own ``THREADS``. Those in ``ON_DEVICES`` take a ``device`` as well, and make their simulations there.
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
    "files",
    "scaling",
    "kernels",
    "device",
    "viewer",
    "video",
)
ALONE = ("files", "scaling", "kernels", "device", "viewer", "video")  # that take long or need room or an extra: only when named
OPTIONS = {"scaling": ("steps", "latency", "bandwidth")}  # that a benchmark has of its own
ON_DEVICES = (
    "collide",
    "ellipsoids",
    "pairs",
    "step",
    "state",
    "convergence",
    "device",
)  # that run on any device; others are about the CPU


def run(names, quick, threads, as_json, device=None, **options):
    """Run benchmarks by name, all if none is given (on a ``device`` other than the CPU, those that can). ``options``: what some of them
    take beside ``quick``, ``threads`` and ``device``."""
    from gravel.cli.measuring import processor
    from gravel.engine import largest_thread_count, make_engine

    elsewhere = device not in (None, "cpu")
    names = names or (ON_DEVICES if elsewhere else tuple(name for name in NAMES if name not in ALONE))
    for name in names:
        checks.choice("benchmark", name, NAMES)
        if elsewhere and name not in ON_DEVICES:
            raise ValueError(f"benchmark {name!r} takes no --device but cpu; on {device} there are {', '.join(ON_DEVICES)}")
    given = {option: value for option, value in options.items() if value is not None}
    for option in given:
        takers = [name for name, own in OPTIONS.items() if option in own]
        if not set(takers) & set(names):
            raise ValueError(f"--{option} goes with {' or '.join(takers)} only, but the benchmarks are {', '.join(names)}")
    most = threads or largest_thread_count()
    results = {"processor": processor(), "threads": most, "quick": quick}
    if elsewhere:  # refused here if it is not there
        results["device"] = f"{device} ({make_engine(device).device.name})"
    if not as_json:
        click.echo(f"{results['processor']}, {most} threads" + (f"; device {results['device']}" if elsewhere else ""))
    for name in names:
        module = importlib.import_module(f"gravel.bench.{name.replace('-', '_')}")
        rows = results[name] = []
        if not as_json:
            click.echo(f"\n{name}: {module.__doc__.splitlines()[0]}")
        own = {option: value for option, value in given.items() if option in OPTIONS.get(name, ())}
        if elsewhere:
            own["device"] = device
        for row in module.run(quick, threads or getattr(module, "THREADS", most), **own):
            rows.append(row)
            if not as_json:
                click.echo("  " + ", ".join(f"{key} {_written(value)}" for key, value in row.items()))
    if as_json:
        click.echo(json.dumps(results, indent=1))


def _written(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)
