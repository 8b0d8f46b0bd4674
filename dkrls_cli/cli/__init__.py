"""The command line. The only door to typer and rich."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dkrls_cli import __version__
from dkrls_cli.cli.bench import bench
from dkrls_cli.cli.fill import fill
from dkrls_cli.cli.fit import fit
from dkrls_cli.cli.info import info
from dkrls_cli.cli.predict import predict
from dkrls_cli.cli.stream import stream
from dkrls_cli.cli.update import update
from dkrls_cli.cli.validate import validate

app = typer.Typer(
    name="dkrls",
    help="Kernel models of gridded data: Deep Kernel Recursive Least-Squares (D-KRLS).",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.command()(fit)
app.command()(predict)
app.command()(fill)
app.command()(update)
app.command()(stream)
app.command()(validate)
app.command()(info)
app.add_typer(bench)


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
