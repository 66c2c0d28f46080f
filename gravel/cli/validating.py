"""``gravel validate``: compares simulations with formulas."""

import sys

import click

from gravel.cli.group import main


@main.command()
@click.argument("names", nargs=-1)
@click.option("--output", "-o", help="Folder for the figures and FIGURES.md, which keeps the rows of other cases (default: none).")
@click.option("--workers", default=1, show_default=True, help="Processes that run cases in parallel; the table is printed at the end.")
@click.option("--list", "only_list", is_flag=True, help="List the cases and exit.")
def validate(names, output, workers, only_list):
    """Compare simulations with formulas, at default settings and at tight ones (double precision, solved to 1e-10 m/s); print each
    error with its bound.

    NAMES are cases (see --list); default: all. Exit code 0: all errors are within their bounds; 3: one is not."""
    from gravel.validation import CASES
    from gravel.validation import validate as run

    if only_list:
        for case in CASES.values():
            click.echo(f"{case.name:26} {case.title}{' (slow)' if case.slow else ''}")
        return
    click.echo(f"         {'case':26} {'at defaults':>11} {'bound':>8}   {'tight':>11} {'bound':>8}")
    found = run(names, output, tell, workers)
    if output is not None:
        click.echo(f"wrote {len(found)} figures to {output}")
    if not all(outcome.passed for outcomes in found.values() for outcome in outcomes.values()):
        sys.exit(3)


def tell(case, outcomes):
    """One line per case. An error that exceeds its bound is marked, with the reason below if it is known."""
    from gravel.validation import KNOWN_MISSES

    cells, measure = [], next(iter(outcomes.values())).measure
    for settings in ("defaults", "tight"):
        outcome = outcomes.get(settings)
        cells.append(f"{'':20}" if outcome is None else f"{outcome.error:11.2g} {outcome.bound:8.2g}{' ' if outcome.passed else '!'}")
    word = "ok    " if all(outcome.passed for outcome in outcomes.values()) else "FAILED"
    click.echo(f"  {word} {case.name:26} {'  '.join(cells)} {measure}")
    for settings, outcome in outcomes.items():
        if not outcome.passed and (case.name, settings) in KNOWN_MISSES:
            click.echo(f"         {settings}: {KNOWN_MISSES[case.name, settings]}")
