"""``gravel fmu``: machines for other tools."""

import re

import click

from gravel.cli.group import main


@main.command()
@click.argument("scene")
@click.option("--output", "-o", help="The file to write (default: SCENE.fmu).")
@click.option("--inputs", help="Variables that the tool sets, with commas between (default: the motors, as they are made).")
@click.option("--outputs", help="Variables that it reads (default: what all joints do, and how well the steps converged).")
@click.option("--list", "only_list", is_flag=True, help="List the variables of the scene and exit.")
@click.option("--fmi", type=int, default=3, show_default=True, help="Version of the standard, 3 or 2.")
@click.option("--step", type=float, help="Communication step to advise, in s: a multiple of the scene's time step (default: that one).")
@click.option("--dt", type=float, help="Time step in s (default: the scene's own).")
@click.option("--bodies", type=int, help="Number of movable bodies of a built-in scene (default: its own).")
@click.option("--seed", type=int, help="Seed of random positions and sizes (default: 0, or from the file).")
@click.option("--outside-files", is_flag=True, help="Allow a scene file to read outside its own folders.")
def fmu(scene, output, inputs, outputs, only_list, fmi, step, **options):
    """Write a built-in SCENE or a scene file as an FMU, a unit that other tools co-simulate (FMI 3 or 2, extra fmi).

    Variables are named as in --list: motor.crank.speed, joint.crank.angle, body.piston.position.x; motor.speed means that of all motors.
    The Python of the tool must be able to import gravel.
    """
    import pathlib

    from gravel.control.fmu import export_fmu
    from gravel.control.sources import machine_of

    if only_list:
        variables = machine_of(scene, **options).variables
        for side in ("inputs", "outputs"):
            click.echo(side)
            for line in lines_of(variables.listed(side)):
                click.echo(f"  {line}")
        count = variables.simulation.count
        click.echo(f"bodies that are not listed, by id: body[0].position to body[{count - 1}].position, and so on")
        return
    path = export_fmu(scene, output or f"{pathlib.Path(scene).stem}.fmu", inputs, outputs, fmi=fmi, step=step, **options)
    click.echo(f"wrote {path}")


def lines_of(listed):
    """A line for each owner with its quantities; owners by id that have the same ones share a line."""
    rows: list = []
    for key, variables in listed.items():
        words = ", ".join(quantity(key, variable) for variable in variables)
        kind, number = re.fullmatch(r"(\w*)(?:\[(\d+)\])?.*", key).groups()
        last = rows[-1] if rows else None
        if number is not None and last and last["words"] == words and last["kind"] == kind and last["next"] == int(number):
            last.update(next=int(number) + 1, last=key)
        else:
            rows.append({"first": key, "last": key, "words": words, "kind": kind, "next": None if number is None else int(number) + 1})
    names = [row["first"] if row["first"] == row["last"] else f"{row['first']} to {row['last']}" for row in rows]
    width = min(max(map(len, names), default=0), 30)
    return [f"{name:{width}}  {row['words']}" for name, row in zip(names, rows)]


def quantity(key, variable):
    """What follows the owner in a name, with components and unit."""
    name = variable.name.removeprefix(f"{key}.")
    return name + (f".{{{','.join(variable.components)}}}" if variable.components else "") + (f" {variable.unit}" if variable.unit else "")
