"""The command line. The only door to typer and rich."""

from __future__ import annotations

from typing import Annotated

import typer

from dkrls_cli import __version__

app = typer.Typer(
    name="dkrls",
    help="Kernel models of gridded data: Deep Kernel Recursive Least-Squares (D-KRLS).",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    """Run the command line."""
    app()
