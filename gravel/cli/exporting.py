"""``gravel export``: converts results for other programs."""

import click

from gravel.cli.group import main


@main.command()
@click.argument("result")
@click.option("--to", help="csv, vtp (with a .pvd file for ParaView), gltf (.glb for web and slides) or usd (default: by -o's ending).")
@click.option("--output", "-o", help="Output file (default: RESULT with the ending of the format).")
@click.option("--frame", type=int, help="Export only this frame; negative numbers count from the end.")
@click.option("--first", type=int, help="First frame (default: 0).")
@click.option("--last", type=int, help="Last frame (default: -1, the last of the file).")
@click.option("--every", type=int, help="Export every N-th frame (default: 1).")
@click.option("--contacts", is_flag=True, help="Also export contacts and their forces: as a separate table (csv), or as lines (vtp).")
@click.option("--split", is_flag=True, help="Write one table per frame (csv).")
@click.option("--colour", "--color", help="Colour by material, speed or radius (gltf, usd; default: material).")
@click.option("--quiet", is_flag=True, help="Hide the progress bar.")
def export(result, to, output, frame, first, last, every, contacts, split, colour, quiet):
    """Convert frames of a RESULT file to another format."""
    from gravel.io.export import export as write

    frames = chosen(frame, first, last, every)
    for path in write(result, to, output, frames, contacts, colour, split, progress=not quiet):
        click.echo(f"wrote {path}")


def chosen(frame, first, last, every):
    """The frames that the options select: a number or a slice."""
    from gravel import checks

    if frame is not None and (first, last, every) != (None, None, None):
        raise ValueError("--frame is one frame; --first, --last and --every select several: give either the one or the others")
    if frame is not None:
        return frame
    every = 1 if every is None else checks.count("every", every, minimum=1)
    end = None if last in (None, -1) else last + 1
    return slice(first, end, every)
