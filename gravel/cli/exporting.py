"""gravel export: results for other programs."""

import click

from gravel.cli.group import main


@main.command()
@click.argument("result")
@click.option("--to", help="csv, vtp (with a .pvd file for ParaView), gltf (.glb for web and slides) or usd (default: as -o ends).")
@click.option("--output", "-o", help="File to write (default: RESULT with another ending).")
@click.option("--frame", type=int, help="Only this frame; negative ones count from the end.")
@click.option("--first", type=int, help="The first frame (default: 0).")
@click.option("--last", type=int, help="The last frame (default: -1, the last that there is).")
@click.option("--every", type=int, help="Only every so manyth frame (default: 1).")
@click.option("--contacts", is_flag=True, help="The contacts and their forces, too: a table of their own (csv), or lines (vtp).")
@click.option("--split", is_flag=True, help="A table for each frame (csv).")
@click.option("--colour", "--color", help="material, speed or radius (gltf, usd; default: material).")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def export(result, to, output, frame, first, last, every, contacts, split, colour, quiet):
    """Write frames of a RESULT file in another format."""
    from gravel.io.export import export as write

    frames = chosen(frame, first, last, every)
    for path in write(result, to, output, frames, contacts, colour, split, progress=not quiet):
        click.echo(f"wrote {path}")


def chosen(frame, first, last, every):
    """The frames that options name: a number or a slice."""
    from gravel import checks

    if frame is not None and (first, last, every) != (None, None, None):
        raise ValueError("--frame is one frame, --first, --last and --every are several: give the one or the others")
    if frame is not None:
        return frame
    every = 1 if every is None else checks.count("every", every, minimum=1)
    end = None if last in (None, -1) else last + 1
    return slice(first, end, every)
