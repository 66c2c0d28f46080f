"""gravel validate: formulas beside simulations."""

import sys

import click

from gravel.cli.group import main


@main.command()
@click.argument("names", nargs=-1)
@click.option("--output", "-o", help="Folder for a figure of each case and, if all run, the page FIGURES.md (default: no figures).")
@click.option("--list", "only_list", is_flag=True, help="Only list the cases.")
def validate(names, output, only_list):
    """Run simulations beside the formulas that they must follow; print each error with its bound.

    NAMES of cases, see --list; default: all. Exit code 0: all errors are within their bounds; 3: one is not."""
    from gravel.validation import CASES
    from gravel.validation import validate as run

    if only_list:
        for case in CASES.values():
            click.echo(f"{case.name:20} {case.title}{' (slow)' if case.slow else ''}")
        return
    outcomes = run(names, output, tell)
    if output is not None:
        click.echo(f"wrote {len(outcomes)} figures to {output}")
    if not all(outcome.passed for outcome in outcomes.values()):
        sys.exit(3)


def tell(case, outcome):
    """A line for each case."""
    word = "ok    " if outcome.passed else "FAILED"
    click.echo(f"  {word} {case.name:20} {case.title}: error {outcome.error:.2g} {outcome.measure}, allowed {outcome.bound:.2g}")
