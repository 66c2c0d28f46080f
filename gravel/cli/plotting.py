"""``gravel plot``, ``report``: curves and distributions of results, and an HTML page of one result."""

import pathlib

import click
import numpy as np

from gravel import scenes
from gravel.cli.group import main
from gravel.simulation import Simulation
from gravel.view.plots.kinds import KINDS

ENDINGS = {"overview": "plot", "log": "plot"}  # of the default name, where it is not the kind

HELP = """Plot a RESULT file. The default KIND is overview.

RESULT may also be a log of measures in CSV or, for the kind solvers, a checkpoint or the name of a built-in scene, which is run first.
The ending of --output selects the format: .png, .svg or .pdf. Names in brackets are the kinds to which an option applies.

\b
"""


def table_of_kinds():
    """The kinds, one row each, for the help."""
    return "\n".join(f"  {name:17}{kind.words}" for name, kind in KINDS.items())


@main.command(help=HELP + table_of_kinds())
@click.argument("result")
@click.argument("kind", required=False)
@click.option("--output", "-o", help="PNG, SVG or PDF file (default: RESULT with -KIND.png; for the overview -plot.png).")
@click.option("--frame", type=int, help="[forces, profile, velocity, segregation, sizes] Frame; negative: from the end (default: -1).")
@click.option("--bins", type=int, help="[forces, profile, velocity, segregation, sizes] Bins (default: 20, for distributions 30).")
@click.option("--region", help="[forces, profile, velocity, segregation, residence] Box x0,y0,z0,x1,y1,z1, m (default: all).")
@click.option("--axis", help="[profile, velocity, segregation] Axis: x, y or z (default: z, the height); [dynamic-angle] of the drum (y).")
@click.option("--component", help="[velocity] Component: x, y, z or speed (default: x, y and z).")
@click.option("--which", help="[mixing, segregation] Bodies of one kind, by their name or that of their material.")
@click.option("--cell", type=float, help="[mixing] Edge of the samples in m (default: five mean diameters).")
@click.option("--body", help="[machine, pressure, wear] Body, by its name or id.")
@click.option("--edge", type=float, help="[pressure, wear] Longest edge of the map's triangles in m (default: those of a mesh).")
@click.option("--hardness", type=float, help="[wear] Hardness H in Pa of Archard's law, k F s / H.")
@click.option("--outlet", type=float, help="[flow] Height in m at which the falling mass is counted.")
@click.option(
    "--width",
    type=float,
    help="[flow] Width of the opening in m, for Beverloo's law C rho sqrt(g) (D - k d)^(5/2); [dynamic-angle] of columns.",
)
@click.option("--opening", help="[flow] Shape of the opening: circle or square (default: circle).")
@click.option("--density", type=float, help="[flow] Density rho of the bed in kg/m3 (default: 0.58 of the grains').")
@click.option("--diameter", type=float, help="[flow] Diameter d of the grains in m (default: their mean).")
@click.option("--coefficient", type=float, help="[flow] Coefficient C (default: 0.58); [wear] k of Archard's law.")
@click.option("--empty", type=float, help="[flow] Coefficient k of the empty annulus (default: 1.5).")
@click.option("--solver", "solvers", multiple=True, help="[solvers] A solver; may be given more than once (default: all that iterate).")
@click.option("--iterations", type=int, help="[solvers] Number of iterations (default: 300).")
@click.option("--warm-start", is_flag=True, default=None, help="[solvers] Start from the last step's impulses.")
@click.option("--bodies", type=int, help="[solvers, of a scene] Number of bodies (default: the scene's own).")
@click.option("--time", "duration", type=float, help="[solvers, of a scene] Simulated time in s to run first (default: the scene's own).")
@click.option("--joints", is_flag=True, help="Same as the kind joints.")
@click.option("--measure", help="Same as the kinds stress, coordination, fabric, fraction, kinetic-energy, potential-energy.")
def plot(result, kind, output, joints, measure, bodies, duration, region, solvers, **options):
    from gravel.view.plots import plot as draw

    kind = kind_of(result, kind, joints, measure)
    options = {name: value for name, value in options.items() if value is not None}
    if region is not None:
        options["region"] = box_of(region)
    if solvers:
        options["solvers"] = solvers
    path = pathlib.Path(result)
    output = output or path.with_name(f"{path.stem}-{ENDINGS.get(kind, kind)}.png")
    if kind == "solvers" and result in scenes.NAMES and not path.exists():
        result = settled(result, bodies, duration)
    elif bodies is not None or duration is not None:
        raise ValueError("--bodies and --time go with the kind solvers and the name of a scene")
    click.echo(f"wrote {draw(result, kind, output, **options)}")


@main.command()
@click.argument("result")
@click.option("--output", "-o", help="HTML file (default: RESULT with .html).")
def report(result, output):
    """Write one HTML page for a RESULT file: what was run, warnings, pictures, convergence, timings, plots.

    The page is self-contained."""
    from gravel.view.report import report as write

    click.echo(f"wrote {write(result, output)}")


def kind_of(result, kind, joints, measure):
    """The requested kind, which can be given in three ways."""
    from gravel import checks
    from gravel.view.plots.frames import MEASURES

    asked = [name for name in (kind, "joints" if joints else None, measure) if name is not None]
    if len(asked) > 1:
        raise ValueError(f"{', '.join(asked)} are different plots: give one of them")
    if measure is not None:
        checks.choice("measure", measure, tuple(MEASURES))
    return asked[0] if asked else "log" if result.lower().endswith(".csv") else "overview"


def box_of(words):
    """(low, high) from six numbers separated by commas."""
    try:
        low, high = np.array(words.split(","), float).reshape(2, 3).tolist()
    except ValueError:
        raise ValueError(f"region must be six numbers x0,y0,z0,x1,y1,z1, not {words!r}") from None
    return low, high


def settled(scene, bodies, duration):
    """A built-in scene that has run for a while."""
    setup = scenes.build(scene, bodies)
    simulation = Simulation(setup.scene, setup.dt, **setup.options)
    simulation.run(setup.time if duration is None else duration, progress=True, observers=setup.watchers())
    return simulation
