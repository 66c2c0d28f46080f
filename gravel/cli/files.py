"""gravel check, init, schema: scene files."""

import pathlib
import sys

import click

from gravel.cli.group import main


@main.command()
@click.argument("file")
@click.option("--seed", type=int, help="Of the random places and sizes (default: the file's own).")
@click.option("--outside-files", is_flag=True, help="Allow the file to read and write outside of its own folders.")
def check(file, seed, outside_files):
    """Check a scene FILE (.yaml): tell all that is wrong with it by line and key, or what it holds.

    Exit code 0: it can be run; 1: it cannot."""
    from gravel.scenefile import SceneFileError, load_scene_file
    from gravel.scenefile.faults import printable, told
    from gravel.scenefile.summary import summary, warnings_of

    try:
        setup = load_scene_file(file, seed, outside_files)
    except SceneFileError as error:
        for line in told(error.faults):
            click.echo(line, err=True)
        count = len(error.faults)
        click.echo(f"{file} cannot be run: {count} error{'s' * (count > 1)}", err=True)
        sys.exit(1)
    click.echo(f"{file} is sound" + (f": {printable(setup.title)}" if setup.title else ""))
    for line in (*summary(setup), *(f"warning: {words}" for words in warnings_of(setup))):
        click.echo(f"  {printable(line)}")


@main.command()
@click.argument("file", default="my.yaml")
@click.option("--from", "scene", help="Write a built-in scene as a file instead of the starter, as far as a file can say it.")
@click.option("--bodies", type=int, help="With --from: how many bodies that can move (default: the scene's own).")
@click.option("--seed", type=int, help="With --from: of the random places and sizes (default: 0).")
@click.option("--schema", "with_schema", is_flag=True, help="Leave the schema beside the file, too: editors then complete its keys.")
def init(file, scene, bodies, seed, with_schema):
    """Write a commented scene FILE (default: my.yaml) to start from."""
    from gravel.scenefile.schema import FILE, schema_text
    from gravel.scenefile.write import write_builtin, write_starter

    path = pathlib.Path(file)
    for option, value in (("--bodies", bodies), ("--seed", seed)):
        if scene is None and value is not None:
            raise ValueError(f"{option} goes with --from, which names a built-in scene")
    written, notes = (write_starter(path), []) if scene is None else write_builtin(scene, path, bodies, seed or 0)
    if with_schema:
        (path.parent / FILE).write_text(schema_text())
        written.append(path.parent / FILE)
    click.echo(f"wrote {', '.join(map(str, written))}")
    for note in notes:
        click.echo(f"  not in the file: {note}")
    click.echo(f"next: gravel check {path}, gravel run {path}")


@main.command()
@click.option("--output", "-o", help="File to write it to (default: print it).")
@click.option("--reference", is_flag=True, help="All keys of scene files for people, in Markdown, instead.")
def schema(output, reference):
    """Print the JSON schema of scene files, by which editors complete and check them."""
    from gravel.io.vtkhdf import check_writable
    from gravel.scenefile import schema as tables

    text = tables.reference() if reference else tables.schema_text()
    if output is None:
        click.echo(text, nl=False)
    else:
        check_writable(output).write_text(text)
        click.echo(f"wrote {output}")
