"""Code in the documents runs: every Python block, page by page in one namespace; commands have options that are there.

In a page, ``<!-- run first ... -->`` is Python that prepares the blocks after it, ``<!-- checked ... -->`` looks at what they did, and
``<!-- not run: reason -->`` before a block leaves it out.
"""

import shlex

import click
import pytest
from documents import PAGES, blocks_of, commands_of, name_of

from gravel.cli import main

PYTHON = [page for page in PAGES if name_of(page) != "README.md" and blocks_of(page)]  # README has a test of its own
WITH_COMMANDS = [page for page in PAGES if name_of(page) != "CHANGELOG.md" and commands_of(page)]  # which tells of commands as they were


@pytest.mark.parametrize("page", PYTHON, ids=name_of)
def test_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for line, code in blocks_of(page):
        exec(compile("\n" * line + code, str(page), "exec"), names)


def parsed(line):
    """The context of a command, as click reads it without running it."""
    words = shlex.split(line.replace("…", "...").replace("\\|", "|"))[1:]
    with click.Context(main, info_name="gravel", **main.context_settings) as context:  # which commands keep
        name, command, rest = main.resolve_command(context, words)
        return command.make_context(name, list(rest), parent=context)


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name_of)
def test_commands_of_a_page_are_there_with_their_options(page):
    wrong = []
    for line, whole in commands_of(page).items():
        try:
            parsed(line)
        except (click.MissingParameter, click.BadOptionUsage):  # in a sentence, a command or option may stand without its value
            if whole:
                wrong.append(line)
        except click.exceptions.Exit:  # --help
            pass
        except click.UsageError as error:
            wrong.append(f"{line}: {error.format_message()}")
    assert wrong == []


def test_a_wrong_option_would_be_seen():
    with pytest.raises(click.UsageError):
        parsed("gravel run silo --bodys 10")
    with pytest.raises(click.UsageError):
        parsed("gravel runn silo")


def test_blocks_are_found_and_left_out_as_marked(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "a\n<!-- run first\nx = 1\n-->\n```python\ny = x\n```\n<!-- not run: no GPU -->\n```python\nz\n```\n```python\nw = y\n```\n"
    )
    assert [code for _, code in blocks_of(page)] == ["x = 1\n", "y = x\n", "w = y\n"]
