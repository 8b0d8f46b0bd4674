"""The command line. The only folder that imports typer and rich.

A command is imported when it is called; the list of commands knows only the first line of each.
"""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dkrls_cli import __version__
from dkrls_cli.signals import stop_on_signals
from dkrls_cli.spelling import suggest

COMMANDS = {
    "fit": "Turn a grid into a model.",
    "predict": "Answer from a model: on a grid, like another file, or at scattered points.",
    "regrid": "Bring a grid onto another one: fit and predict in one step.",
    "fill": "Fill the missing cells of a grid; everything else stays as it is.",
    "check": "Find cells that the others speak against.",
    "update": "Add slices along the last level to a model.",
    "stream": "Forecast every slice that comes on stdin, then learn it.",
    "validate": "Measure a model against a grid, or the method against held-out parts of one.",
    "info": "Show the levels of a model, its size and where it came from.",
    "bench": "Race on this machine: the paper's experiments, your own grids, and the clock.",
    "help": "Read the guide: a page about a topic, or the list of topics.",
}

PAPER = (
    "Mohamadipanah, Heydari, Chowdhary, "
    '"Deep Kernel Recursive Least-Squares Algorithm", arXiv 1704.04522.'
)
"""The paper that describes the method."""

LIBRARIES = ("numpy", "scipy", "xarray", "netCDF4", "pandas", "threadpoolctl", "typer", "rich")
"""Libraries whose versions `dkrls --version -v` prints: those that dkrls depends on."""


class Commands(TyperGroup):
    """The group of all commands: each is known by name and imported when it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command that is called, and return it."""
        if args and args[0] in COMMANDS:
            self.commands[args[0]] = _import_command(args[0])
        return super().resolve_command(ctx, args)

    def main(  # type: ignore[override]  # all but the words only by keyword, as Typer calls it
        self, args: Any = None, *, standalone_mode: bool = True, **extra: Any
    ) -> Any:
        """Run the command line; a wrong command line is one line on stderr and exit code 2."""
        try:
            code = super().main(args=args, standalone_mode=False, **extra)
            if sys.stdout is not None:
                sys.stdout.flush()
        except Exception as error:
            if not standalone_mode or not (
                isinstance(error, OSError) or hasattr(error, "format_message")
            ):
                raise
            sys.exit(_exit_code(error))
        if standalone_mode:
            sys.exit(code or 0)
        return code


def _exit_code(error: Any) -> int:
    """Print what is wrong with a command line, or with the output, and return the exit code."""
    from dkrls_cli.cli.report import print_error, silence_stdout
    from dkrls_cli.cli.terminal.clean import clean

    if isinstance(error, OSError):
        silence_stdout()
        if isinstance(error, BrokenPipeError):  # the reader has seen enough
            return 0
        print_error(f"Error: Standard output cannot be written ({error.strerror}).")
        return 1
    line = _usage_error_line(error)
    if line:  # without any arguments the help was printed instead
        print_error(f"Error: {clean(line)}")
    return int(getattr(error, "exit_code", 2))


def _import_command(name: str) -> Any:
    """Return the command with this name, ready to run."""
    command = getattr(import_module(f"dkrls_cli.cli.commands.{name}"), name)
    if not isinstance(command, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(name)(command)
        command = alone
    return _refuse_repeats(typer.main.get_command(command))


def _refuse_repeats(command: Any) -> Any:
    """Return a command that refuses an option of one value if it is given twice.

    Otherwise the last value would be taken without a word. The commands of a group do so as well.
    """
    parse = command.parse_args

    def parse_args(context: Any, words: list[str]) -> list[str]:
        _check_repeats(command, context, words)
        rest: list[str] = parse(context, words)
        return rest

    command.parse_args = parse_args
    for inner in getattr(command, "commands", {}).values():
        _refuse_repeats(inner)
    return command


def _check_repeats(command: Any, context: Any, words: list[str]) -> None:
    """Raise a usage error if an option that takes one value stands twice among the words."""
    parser = command.make_parser(context)
    single = [
        parameter
        for parameter in command.params
        if parameter.param_type_name == "option"
        and not (parameter.multiple or parameter.is_flag or parameter.count)
    ]
    for parameter in single:  # to collect all values, where a command keeps the last one
        parser.add_option(
            obj=parameter, opts=parameter.opts, dest=parameter.name, action="append", nargs=1
        )
    found, _, _ = parser.parse_args(args=list(words))
    for parameter in single:
        values = [str(value) for value in found.get(parameter.name) or ()]
        if values[1:]:
            name = max(parameter.opts, key=len)
            times = "twice" if len(values) == 2 else f"{len(values)} times"
            context.fail(f"{name} was given {times}: {' and '.join(values)}. Give one value.")


def _usage_error_line(error: Any) -> str:
    """Return what is wrong with a command line as one line, with the choices if there are any."""
    message = " ".join(error.format_message().split())
    choices = getattr(getattr(getattr(error, "param", None), "type", None), "choices", None)
    if choices:
        begin = message.partition(" is not one of ")[0]
        message = f"{begin}. Choose from: {', '.join(choices)}."
        message += suggest(_wrong_word(begin), choices)
    where = getattr(getattr(error, "ctx", None), "command_path", "dkrls")
    end = "" if message.endswith((".", "?")) else "."
    return f"{message}{end} Try '{where} --help'." if message else ""


def _wrong_word(message: str) -> str:
    """Return the last word in quotes of a message, without what follows it."""
    words: list[str] = re.findall(r"'([^']*)'", message)
    return words[-1] if words else ""


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


def _print_version(context: typer.Context, asked: bool) -> None:
    """Print the version; with --verbose also the paper and the versions of libraries."""
    if not asked:
        return
    typer.echo(f"dkrls {__version__}")
    if context.params["verbose"]:
        typer.echo(f"\nThe method:\n  {PAPER}\n")
        for name, version in _library_versions().items():
            typer.echo(f"{name} {version}")
    raise typer.Exit


def _library_versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries, without importing them."""
    from importlib.metadata import PackageNotFoundError, version
    from platform import python_version

    versions = {"python": python_version()}
    for name in LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not found"
    return versions


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, help="Print the version.")
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            is_eager=True,  # read before --version, which needs it
            help="With --version: also the paper, and versions of libraries.",
        ),
    ] = False,
) -> None:
    """Kernel models of gridded data: Deep Kernel Recursive Least-Squares (D-KRLS)."""
    if verbose:
        command = context.invoked_subcommand
        context.fail(f"--verbose stands before {command}. Write dkrls {command} ... --verbose.")


def main() -> None:
    """Run the command line of this process."""
    stop_on_signals()
    _fill_closed_streams()
    app(prog_name="dkrls")


def _fill_closed_streams() -> None:
    """Open nothing in place of standard streams that are closed.

    Otherwise the next file that is opened, a model for example, would stand in for stderr, and a
    library that reports an error would write into it.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
