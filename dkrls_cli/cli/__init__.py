"""The command line. The only door to typer and rich.

A command is imported when it is called for; the list of commands knows them by a line each.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dkrls_cli import __version__

COMMANDS = {
    "fit": "Turn a grid into a model.",
    "predict": "Answer from a model: on a grid, like another file, or at scattered points.",
    "fill": "Fill the missing cells of a grid; all else stays as it is.",
    "update": "Add slices along the last level to a model.",
    "stream": "Forecast every slice that comes on stdin, then learn it.",
    "validate": "Measure a model against a grid, or the method against held-out parts of one.",
    "info": "Show the levels of a model, its size and where it came from.",
    "bench": "Race on this machine: the paper's experiments, your own grids, and the clock.",
}


class Commands(TyperGroup):
    """Commands that are there by name, and themselves once one is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called, imported now."""
        if args and args[0] in COMMANDS:
            self.commands[args[0]] = _imported(args[0])
        return super().resolve_command(ctx, args)


def _imported(name: str) -> Any:
    command = getattr(import_module(f"dkrls_cli.cli.{name}"), name)
    if isinstance(command, typer.Typer):
        return typer.main.get_command(command)
    alone = typer.Typer(add_completion=False)
    alone.command(name)(command)
    return typer.main.get_command(alone)


app = typer.Typer(
    name="dkrls",
    cls=Commands,
    help="Kernel models of gridded data: Deep Kernel Recursive Least-Squares (D-KRLS).",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


for _name, _line in COMMANDS.items():
    app.command(_name, help=_line)(lambda: None)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"dkrls {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print version."),
    ] = False,
) -> None:
    """Kernel models of gridded data: Deep Kernel Recursive Least-Squares (D-KRLS)."""


def main() -> None:
    """Run the command line; a wrong command line is one line on stderr and exit code 2."""
    try:
        code = app(prog_name="dkrls", standalone_mode=False)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        message = " ".join(error.format_message().split())
        where = getattr(getattr(error, "ctx", None), "command_path", "dkrls")
        if message:  # without any arguments the help was printed, and says it all
            typer.echo(f"Error: {message} Try '{where} --help'.", err=True)
        sys.exit(getattr(error, "exit_code", 2))
    sys.exit(code or 0)
