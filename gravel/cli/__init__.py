"""The command line, ``gravel ...``: a file for each family of commands, each of which registers its own with the group."""

from gravel.cli import (  # noqa: F401  # they register their commands
    exporting,
    files,
    looking,
    measuring,
    plotting,
    running,
    validating,
)
from gravel.cli.group import main

__all__ = ["main"]
