"""``gravel check``, ``init``, ``schema``: scene files."""

import pathlib
import sys

import click

from gravel.cli.group import main


@main.command()
@click.argument("file")
@click.option("--seed", type=int, help="Seed of random positions and sizes (default: from the file).")
@click.option("--outside-files", is_flag=True, help="Allow the file to read and write outside its own folders.")
def check(file, seed, outside_files):
    """Check a scene FILE (.yaml): report all errors by line and key, or summarise the scene.

    Exit code 0: the scene can be run; 1: it cannot."""
    from gravel.scenefile import SceneFileError, load_scene_file
    from gravel.scenefile.diagnostics import printable, told
    from gravel.scenefile.summary import summary, warnings_of

    try:
        setup = load_scene_file(file, seed, outside_files)
    except SceneFileError as error:
        for line in told(error.faults):
            click.echo(line, err=True)
        count = len(error.faults)
        click.echo(f"{file} cannot be run: {count} error{'s' * (count > 1)}", err=True)
        sys.exit(1)
    click.echo(f"{file} is valid" + (f": {printable(setup.title)}" if setup.title else ""))
    for line in (*summary(setup), *(f"warning: {words}" for words in warnings_of(setup))):
        click.echo(f"  {printable(line)}")


@main.command()
@click.argument("file", default="my.yaml")
@click.option("--from", "scene", help="Write a built-in scene instead of the starter, as far as a file can.")
@click.option("--bodies", type=int, help="With --from: number of movable bodies (default: the scene's own).")
@click.option("--seed", type=int, help="With --from: seed of random positions and sizes (default: 0).")
@click.option("--schema", "with_schema", is_flag=True, help="Also write the JSON schema beside the file: editors then complete its keys.")
def init(file, scene, bodies, seed, with_schema):
    """Write a commented scene FILE (default: my.yaml) to start from."""
    from gravel.scenefile.schema import FILE, schema_text
    from gravel.scenefile.write import write_builtin, write_starter

    path = pathlib.Path(file)
    for option, value in (("--bodies", bodies), ("--seed", seed)):
        if scene is None and value is not None:
            raise ValueError(f"{option} goes with --from, which selects a built-in scene")
    written, notes = (write_starter(path), []) if scene is None else write_builtin(scene, path, bodies, seed or 0)
    if with_schema:
        (path.parent / FILE).write_text(schema_text())
        written.append(path.parent / FILE)
    click.echo(f"wrote {', '.join(map(str, written))}")
    for note in notes:
        click.echo(f"  not in the file: {note}")
    click.echo(f"next: gravel check {path}, gravel run {path}")


@main.command()
@click.option("--output", "-o", help="Output file (default: print to the terminal).")
@click.option("--reference", is_flag=True, help="Print the reference of all keys in Markdown instead.")
def schema(output, reference):
    """Print the JSON schema of scene files, for editors to complete and check them."""
    from gravel.io.vtkhdf import check_writable
    from gravel.scenefile import schema as tables

    text = tables.reference() if reference else tables.schema_text()
    if output is None:
        click.echo(text, nl=False)
    else:
        check_writable(output).write_text(text)
        click.echo(f"wrote {output}")
