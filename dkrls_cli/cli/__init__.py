"""The command line. The only folder that imports typer and rich.

A command is imported when it is called; the list of commands knows only the first line of each.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable
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
    "check": "Find cells that do not fit the others.",
    "update": "Add slices along the last level to a model.",
    "stream": "Forecast every slice that comes on stdin, then learn it.",
    "validate": "Measure a model against a grid, or the method against held-out parts of one.",
    "plot": "Draw data or a model's answers: a map, a section or a line.",
    "info": "Show the levels of a model, its size and where it came from.",
    "bench": "Race on this machine: the paper's experiments, your own grids, and the clock.",
    "help": "Read the guide: a page about a topic, or the list of topics.",
}

UNCONFIGURED = ("info", "help")
"""Commands whose options do not come from a file: they have nothing to set."""

PAPER = (
    "Mohamadipanah, Heydari, Chowdhary, "
    '"Deep Kernel Recursive Least-Squares Algorithm", arXiv 1704.04522.'
)
"""The paper that describes the method."""

_COMPLETION = ("--install-completion", "--show-completion")

_OPTIONS = "Output and messages"  # panel of the help page, as in cli/terminal/pages.py

LIBRARIES = ("numpy", "scipy", "xarray", "netCDF4", "pandas", "threadpoolctl", "typer", "rich")
"""Libraries whose versions `dkrls --version -v` prints: those that dkrls depends on."""


GREETING = f"""dkrls {__version__}: kernel models of gridded data

  dkrls fit sst.nc -o sst.npz
  dkrls predict sst.npz --like r360x180 -o global.nc
  dkrls fill sst.nc -o filled.nc

They turn a grid into a model, answer from it on another
grid, and fill the missing cells of a grid.

dkrls --help lists all commands, dkrls fit --help options."""
"""What ``dkrls`` alone prints: three commands to try."""


class Commands(TyperGroup):
    """The group of all commands: each is known by name and imported when it is called."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help page of all commands."""
        _print_help(self, ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words before a command; completion takes the name of a shell, or finds it."""
        if args and args[-1] in _COMPLETION:
            args = [*args, "auto"]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command that is called, and return it."""
        if args and args[0] in COMMANDS:
            self.commands[args[0]] = import_command(args[0])
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


@functools.cache
def import_command(name: str) -> Any:
    """Return the command with this name, ready to run; in one process it is made once."""
    command = getattr(import_module(f"dkrls_cli.cli.commands.{name}"), name)
    if not isinstance(command, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(name)(command)
        command = alone
    return _adapt(typer.main.get_command(command))


def _print_help(command: Any, context: Any, formatter: Any = None) -> None:
    """Print the help page of a command."""
    from dkrls_cli.cli.terminal.pages import print_page

    print_page(command, context)


def _adapt(command: Any) -> Any:
    """Return a command that refuses an option of one value if it is given twice.

    Otherwise the last value would be taken without a word. It prints its help page our way. The
    commands of a group do so as well.
    """
    parse = command.parse_args
    command.format_help = functools.partial(_print_help, command)

    def parse_args(context: Any, words: list[str]) -> list[str]:
        _check_repeats(command, context, words)
        rest: list[str] = parse(context, words)
        return rest

    command.parse_args = parse_args
    for inner in getattr(command, "commands", {}).values():
        _adapt(inner)
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
    invoke_without_command=True,
    add_completion=False,  # ours is in cli/completion: it knows the files on the command line
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


def _print_completion(shell: str) -> None:
    """Print the script of a shell for completion."""
    from dkrls_cli.cli.completion.scripts import show_script

    typer.echo(show_script(shell), nl=False)


def _install_completion(shell: str) -> None:
    """Write the script of a shell for completion, and say what was written."""
    from dkrls_cli.cli.completion.scripts import install

    for line in install(shell):
        typer.echo(line)
    typer.echo("Completion works in shells that are opened from now on.")


def _shell_option(act: Callable[[str], None], about: str) -> Any:
    """Return an option that does something for a shell and ends the command."""

    def run(context: typer.Context, shell: str | None) -> None:
        if shell is not None and not context.resilient_parsing:
            from dkrls_cli.cli.report import edge

            with edge(False):
                act(shell)
                raise typer.Exit

    return typer.Option(
        metavar="[bash|zsh|fish]",
        is_eager=True,
        callback=run,
        rich_help_panel=_OPTIONS,
        show_default="the shell that SHELL names",
        help=about,
    )


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
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            rich_help_panel=_OPTIONS,
            help="Print the version.",
        ),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            is_eager=True,  # read before --version, which needs it
            rich_help_panel=_OPTIONS,
            help="With --version: also the paper, and versions of libraries.",
        ),
    ] = False,
    install_completion: Annotated[
        str | None,
        _shell_option(
            _install_completion, "Let the TAB key complete commands, options, and names in files."
        ),
    ] = None,
    show_completion: Annotated[
        str | None,
        _shell_option(_print_completion, "Print what --install-completion would install."),
    ] = None,
) -> None:
    """Turn gridded data into small kernel models, and answer from them.

    The method is Deep Kernel Recursive Least-Squares (D-KRLS). Settings are chosen from the data.

    Examples:
      dkrls fit sst.nc -o sst.npz

      dkrls predict sst.npz --at lat=10:20:0.25 --at time=2020-03-01 -o out.nc

      dkrls regrid sst.nc -o coarse.nc --like r360x180

      dkrls fill cloudy.nc -o filled.nc --std

      dkrls validate sst.nc --holdout 0.2
    """
    command = context.invoked_subcommand
    if command is None:
        if verbose:
            context.fail("--verbose goes with --version, or behind a command.")
        typer.echo(GREETING)
    elif verbose:
        context.fail(f"--verbose stands before {command}. Write dkrls {command} ... --verbose.")


def root_command() -> Any:
    """Return the group of all commands, of which each is only a name and a line."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line of this process, or complete one for a shell."""
    stop_on_signals()
    _fill_closed_streams()
    shell = os.environ.get("_DKRLS_COMPLETE")
    if shell:
        from dkrls_cli.cli.completion.answering import answer_shell

        answer_shell(shell, sys.argv[1:])
        return
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
