"""The command line, ``gravel ...``: with one file per family of commands; each registers its commands with the group."""

from gravel.cli import (  # noqa: F401  # they register their commands
    cad,
    compiling,
    controlling,
    exporting,
    files,
    gallery,
    looking,
    measuring,
    plotting,
    running,
    validating,
)
from gravel.cli.group import main

__all__ = ["main"]
