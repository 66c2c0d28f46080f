"""``gravel gallery``: makes a page of pictures of built-in scenes, each by the commands that the page shows.

In: PIECES, a table of scenes with the words of ``gravel run`` and ``gravel picture``. Out: a page in Markdown and a folder of pictures
beside it. Every command is a process of its own, as a user would start it.
"""

import pathlib
import shlex
import subprocess
import sys
import tempfile
from typing import NamedTuple

import click

from gravel import checks
from gravel.cli.group import main
from gravel.io.outputs import check_ending, check_writable, replaced

ENDING = ".webp"
INTRODUCTION = """# Gallery
Each picture is made by the two commands below it, at the sizes given there. `gravel gallery` makes all of them, and this page.
"""


class Piece(NamedTuple):
    """A picture of the gallery."""

    scene: str
    title: str
    words: str  # what there is to see
    run: str  # options of ``gravel run``
    picture: str  # options of ``gravel picture``

    def commands(self, folder=""):
        """The two command lines that make it."""
        result = f"{self.scene}.vtkhdf"
        return (
            f"gravel run {self.scene} {self.run}".rstrip(),
            f"gravel picture {result} {self.picture}".rstrip() + f" -o {folder}{self.scene}{ENDING}",
        )


PIECES = (
    Piece(
        "silo",
        "Flow from a silo",
        "Two thousand glass spheres have rained into a round silo in layers of two colours; now they leave it through the hopper, and the "
        "layers show how the bed sinks.",
        "--every 0.1",
        "",
    ),
    Piece(
        "drum",
        "Mixing in a drum",
        "One sand in two colours. The drum lifts it until it rolls down along its surface; what began side by side has begun to mix.",
        "--time 2.2 --every 0.1",
        "",
    ),
    Piece(
        "vehicle",
        "A tracked vehicle on gravel",
        "Ninety-six joints hold two tracks of links and their wheels; colours show the speed of links and grains.",
        "--bodies 6000 --time 1.5 --every 0.1",
        "--colour speed --limits 0,1.2 --camera 2.5,-4.4,2.3,-0.55,-0.05,0.2,0,0,1,28",
    ),
    Piece(
        "excavator",
        "An excavator's bucket",
        "Motors at the joints of boom, stick and bucket drag it through grains.",
        "--time 2.5 --every 0.1",
        "",
    ),
    Piece(
        "segregation",
        "A vibrating sieve",
        "Steel balls of three sizes on two decks, which a motor shakes: each deck lets the smaller ones through.",
        "--time 1.5 --every 0.1",
        "",
    ),
    Piece(
        "pile",
        "Force chains",
        "Eight hundred spheres at rest in a box. A rod stands for each contact, as thick as its force: a few chains carry most of the "
        "weight.",
        "--bodies 800 --time 1.2 --every 0.1 --contacts",
        "--forces --camera front --colour material",
    ),
    Piece(
        "triaxial",
        "A triaxial test",
        "Servo-controlled plates press a sample from all sides, then the upper one comes down. The sample is cut in the middle; rods are "
        "the forces of its contacts.",
        "--bodies 800 --every 0.1 --contacts",
        "--forces --colour material --clip 0,1,0,0 --camera 0,-0.62,0.2,0,0,0.13",
    ),
    Piece(
        "terrain",
        "Rocks on a hillside",
        "Convex hulls in five forms and many sizes tumble down onto a height field; colours show their sizes.",
        "--time 1 --every 0.1",
        "--colour radius --camera 1.2,-4.4,6.8,0,-0.05,0,0,0,1,28",
    ),
    Piece(
        "ellipsoids",
        "Ellipsoids",
        "Eight hundred ellipsoids of as many proportions fall into a box and settle.",
        "--bodies 800 --time 1 --every 0.1",
        "",
    ),
    Piece(
        "clumps",
        "Clumps",
        "Grains that are glued of several spheres each, with the mass and inertia of their union; each has a colour of its own.",
        "--time 1 --every 0.1",
        "--colour body",
    ),
)


@main.command()
@click.argument("page", default="gallery.md")
@click.option("--only", multiple=True, help="Make the picture of this scene only; may be given more than once (default: all).")
@click.option("--results", help="Folder in which results are kept; those that are there are not run again (default: none are kept).")
@click.option("--list", "only_list", is_flag=True, help="List the pictures and exit.")
def gallery(page, only, results, only_list):
    """Run built-in scenes and make a PAGE (Markdown; default: gallery.md) of their pictures, each with its commands.

    The pictures go into a folder beside the page that has its name, and take a few minutes. With --only, pictures that are there stay."""
    if only_list:
        for piece in PIECES:
            click.echo(f"{piece.scene:12} {piece.title}")
        return
    check_ending("page", page, (".md",))
    page, chosen = check_writable(page), [checks.choice("only", name, tuple(piece.scene for piece in PIECES)) for name in only]
    pictures = page.with_suffix("")
    for folder in (pictures, *([pathlib.Path(results)] if results is not None else [])):
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder} must be a folder, or not be there yet, but it is a file")
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as passing:
        for piece in PIECES:
            if not chosen or piece.scene in chosen:
                make(piece, pathlib.Path(results or passing), pictures)
    with replaced(page) as part:
        part.write_text(page_of([piece for piece in PIECES if (pictures / f"{piece.scene}{ENDING}").exists()], pictures.name))
    click.echo(f"wrote {page}")


def make(piece, results, pictures):
    """Run a scene, unless its result is there, and draw it."""
    run, picture = piece.commands(f"{pictures.resolve()}/")
    if not (results / f"{piece.scene}.vtkhdf").exists():
        click.echo(run)
        call(f"{run} --quiet --no-picture", results)
    click.echo(piece.commands()[1])
    call(picture, results)


def call(command, folder):
    """Run a command of gravel in a folder; what it prints is shown only if it fails. Code 3 is a run whose time is short of a check's."""
    done = subprocess.run([sys.executable, "-m", *shlex.split(command)], cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise RuntimeError(f"{command} failed: {(done.stderr or done.stdout).strip().splitlines()[-1]}")


def page_of(pieces, folder):
    """The text of the page."""
    parts = [INTRODUCTION]
    for piece in pieces:
        lines = "\n".join(f"$ {command}" for command in piece.commands())
        picture = f"![{piece.title}]({folder}/{piece.scene}{ENDING})"
        parts.append(f"## {piece.title}\n{piece.words}\n\n{picture}\n\n```console\n{lines}\n```\n")
    return "\n".join(parts)
