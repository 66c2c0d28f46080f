"""``gravel cad``: the parts of a STEP file, and which of them have axes in common."""

import itertools

import click

from gravel.cli.group import main
from gravel.scenefile.diagnostics import printable

MOST = 200  # pairs of parts whose common axes are printed
CENTIMETRES = 1e6  # cm3 in a m3


@main.command()
@click.argument("file")
@click.option("--density", type=float, default=7850.0, show_default=True, help="Density of all parts in kg/m3.")
@click.option("--outside-files", is_flag=True, help="Allow files that FILE refers to outside its folder.")
def cad(file, density, outside_files):
    """List the parts of a STEP FILE with their masses, the cylinders found in them, and the axes that two parts have in common, on which a
    joint can be made by name."""
    from gravel.io.step import load_step
    from gravel.scene import Scene

    machine = load_step(Scene(), file, density, fixed="*", contact="none", self_collision=True, outside_files=outside_files)
    for line in (*parts_of(machine, density), *common_of(machine), *(f"note: {message}" for message in machine.messages)):
        click.echo(printable(line))


def parts_of(machine, density):
    """The parts and their cylinders, line by line."""
    total = sum(machine.masses.values())
    yield f"{machine.name}: {len(machine.paths)} parts, {total:.6g} kg at {density:g} kg/m3, lengths in the file in {machine.unit}"
    for part, path in machine.paths.items():
        mass = machine.masses.get(part)
        weight = "no volume" if mass is None else f"{mass:.6g} kg, {mass / density * CENTIMETRES:.6g} cm3"
        yield f"  {part} ({path}): {weight}"
        for axis in machine.axes_of(part):
            kind, place = "hole" if axis.hole else "shaft", ", ".join(f"{round(x, 9) + 0.0:g}" for x in axis.point)
            along = ", ".join(f"{round(x, 6) + 0.0:g}" for x in axis.direction)
            yield f"    {kind} of radius {axis.radius:g} m, {axis.length:.4g} m long at ({place}) m along ({along})"


def common_of(machine):
    """Pairs of parts with an axis in common, line by line."""
    from gravel.io.assembly import common_lines

    found = 0
    for a, b in itertools.combinations([part for part in machine.paths if machine.axes_of(part)], 2):
        for line in common_lines([machine.axes_of(a), machine.axes_of(b)]):
            found += 1
            if found <= MOST:
                yield f"  {a} and {b}: an axis {line}"
    if found > MOST:
        yield f"  and {found - MOST} more"
