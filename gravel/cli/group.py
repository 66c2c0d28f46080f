"""The group of all commands, and the form of their error messages."""

import warnings

import click

import gravel
from gravel.running.processes import wait_for_the_first
from gravel.scenefile.diagnostics import printable

OTHERWISE = {"until": "time", "save": "output"}  # arguments of Python that have other names as options


class Commands(click.Group):
    """Prints errors and warnings as one line on stderr, errors with exit code 1; suggests the nearest match for unknown names."""

    def invoke(self, context):
        before, warnings.formatwarning = warnings.formatwarning, lambda message, *_, **__: f"warning: {printable(message)}\n"
        try:
            return super().invoke(context)
        except (click.exceptions.Exit, click.Abort):  # the end of --help is one of these, and a RuntimeError too
            raise
        except (ValueError, TypeError, IndexError, OSError, RuntimeError, ImportError, MemoryError, OverflowError) as error:
            wait_for_the_first()
            words = in_words_of_options(str(error), self.commands.get(context.invoked_subcommand))
            raise click.ClickException(printable(words)) from None
        finally:
            warnings.formatwarning = before

    def resolve_command(self, context, arguments):
        try:
            return super().resolve_command(context, arguments)
        except click.UsageError:
            from gravel.checks import choice

            try:
                choice("command", arguments[0], tuple(self.commands))
            except ValueError as error:
                raise click.UsageError(str(error)) from None
            raise


def in_words_of_options(sentence, command):
    """Rewords the refusal of a Python argument, "until must be ...", for the option that it came from: "--time must be ..."."""
    name, must, rest = sentence.partition(" must ")
    options = {option[2:].replace("-", "_"): option for one in getattr(command, "params", ()) for option in one.opts if option[:2] == "--"}
    return f"{options[OTHERWISE.get(name, name)]}{must}{rest}" if OTHERWISE.get(name, name) in options else sentence


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(gravel.__version__)
def main():
    """Large-scale rigid multibody dynamics with frictional contact."""
