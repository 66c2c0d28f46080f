"""The gallery: its page shows each picture with the commands that make it, which are there, and the repository's page is such a page."""

import pathlib
import shlex

import pytest
from click.testing import CliRunner
from PIL import Image

import gravel.cli.gallery as gallery
from gravel import scenes
from gravel.cli import main

ROOT = pathlib.Path(__file__).parents[2]
SMALL = gallery.Piece("pendulum", "A pendulum", "It swings.", "--time 0.05", "--size 160x120")
OTHER = gallery.Piece("gyroscope", "A gyroscope", "It turns.", "--time 0.02", "--size 160x120")


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gallery, "PIECES", (SMALL, OTHER))
    return lambda *words: CliRunner().invoke(main, ["gallery", *words])


def test_a_page_of_pictures_is_made_with_the_commands_of_each(call, tmp_path):
    done = call("page.md", "--only", "pendulum", "--results", "runs")
    assert done.exit_code == 0, done.output
    text = (tmp_path / "page.md").read_text()
    assert "![A pendulum](page/pendulum.webp)" in text and "gyroscope" not in text
    assert "$ gravel run pendulum --time 0.05\n$ gravel picture pendulum.vtkhdf --size 160x120 -o pendulum.webp\n" in text
    with Image.open(tmp_path / "page" / "pendulum.webp") as image:
        assert image.size == (160, 120) and len(set(image.convert("L").getdata())) > 10
    before = (tmp_path / "runs" / "pendulum.vtkhdf").stat().st_mtime_ns
    assert call("page.md", "--results", "runs").exit_code == 0
    assert (tmp_path / "runs" / "pendulum.vtkhdf").stat().st_mtime_ns == before  # not run again
    assert "![A gyroscope](page/gyroscope.webp)" in (tmp_path / "page.md").read_text()


@pytest.mark.parametrize(
    "words, said",
    [
        (("page.html",), "page must be a file whose name ends in .md"),
        (("page.md", "--only", "pendulumm"), "did you mean 'pendulum'"),
        (("none/page.md",), "no folder none"),
        (("page.md", "--results", "file"), "file must be a folder"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(call, tmp_path, monkeypatch, words, said):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(gallery, "call", lambda *_: pytest.fail("something ran"))
    done = call(*words)
    assert done.exit_code == 1 and said in done.output and not (tmp_path / "page.md").exists()


def test_a_command_that_fails_is_told(call, monkeypatch):
    monkeypatch.setattr(gallery, "PIECES", (SMALL._replace(run="--time -1"),))
    done = call("page.md")
    assert done.exit_code == 1 and "gravel run pendulum --time -1" in done.output and "must be" in done.output


def test_the_list_names_scenes_that_there_are():
    done = CliRunner().invoke(main, ["gallery", "--list"])
    assert [line.split()[0] for line in done.output.splitlines()] == [piece.scene for piece in gallery.PIECES]
    assert {piece.scene for piece in gallery.PIECES} <= set(scenes.NAMES)


def test_the_page_in_the_repository_is_the_one_that_the_command_writes():
    """Word for word, with a picture for each, large enough for a screen and together small enough for a repository."""
    pictures = {path.stem: path for path in (ROOT / "docs" / "gallery").glob("*.webp")}
    assert set(pictures) == {piece.scene for piece in gallery.PIECES}
    assert (ROOT / "docs" / "gallery.md").read_text() == gallery.page_of(gallery.PIECES, "gallery")
    assert sum(path.stat().st_size for path in pictures.values()) < 3_000_000
    for path in pictures.values():
        with Image.open(path) as image:
            assert image.width >= 1200
            assert len(image.convert("RGB").quantize(64).getcolors()) > 20, path  # something is in it


def test_commands_are_split_as_a_shell_would():
    for piece in gallery.PIECES:
        run, picture = map(shlex.split, piece.commands("a folder/".replace(" ", "")))
        assert run[:3] == ["gravel", "run", piece.scene] and picture[-1] == f"afolder/{piece.scene}.webp"
