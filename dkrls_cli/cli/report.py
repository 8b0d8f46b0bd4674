"""Printing of commands: results on stdout, everything else on stderr, an error as one line."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

import typer

from dkrls_cli.cli.terminal.clean import clean, clean_lines
from dkrls_cli.cli.terminal.pages import OUTPUT
from dkrls_cli.errors import DkrlsError, OutputError, SettingError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from dkrls_cli.cli.terminal.tables import Layout

Result: TypeAlias = "tuple[Mapping[str, Any], Sequence[str | Layout]]"
"""Result of a command for one variable: data for JSON, and the same as texts and tables."""

HINTS = {
    "outside": "--outside missing leaves them out, nearest or extrapolate answers there.",
    "outside mean derivative": "--outside missing leaves them out, extrapolate answers there.",
}
"""Sentences that name the option of a setting, where the plain one would not do."""

# Characters of an error line: enough for every message of ours, whatever a file calls things.
_LONGEST = 2000


@dataclass(frozen=True)
class Report:
    """How much a command prints, and in which form: options that every command has.

    Results are summaries. They are printed as text, as one JSON object with `json`, and not at all
    with `quiet` alone. Data that a command was asked for (predictions, forecasts) is not printed
    by a report: it is written to stdout whatever these options are.
    """

    panel: ClassVar[str] = OUTPUT

    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help="Print nothing but errors, and data you asked for."),
    ] = False
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print more details on stderr.")
    ] = False
    debug: Annotated[
        bool, typer.Option("--debug", help="Show a traceback when something fails.")
    ] = False

    def note(self, text: str) -> None:
        """Print a note or a warning on stderr."""
        if not self.quiet:
            print_error(clean(text))

    def detail(self, *texts: str | Layout) -> None:
        """Print details on stderr, with --verbose only: each a line, or a table."""
        if self.verbose and not self.quiet:
            for text in texts:
                print_error(clean(text) if isinstance(text, str) else str(text))

    def result(self, data: Mapping[str, Any], *parts: str | Layout) -> None:
        """Print the result of a command: `data` as a JSON object, or the same as texts and tables.

        Parts are separated by an empty line; an empty text is left out.
        """
        if self.json:
            typer.echo(json.dumps(_json_value(data)))
        elif not self.quiet:
            _print_parts([part for part in parts if part != ""])

    def results(self, found: Sequence[Result], **common: Any) -> None:
        """Print the results of variables: that of one as ever, those of several one by one.

        Each has its data for JSON and its parts; `common` is data of all of them together.
        """
        if len(found) == 1:
            data, parts = found[0]
            self.result({**common, **data}, *parts)
            return
        every = [part for _, parts in found for part in parts]
        self.result({**common, "variables": [dict(data) for data, _ in found]}, *every)

    def part(self, *parts: str | Layout) -> None:
        """Print a part of a long result as soon as it is known, and an empty line after it.

        With --json nothing is printed: the object that is the result comes at the end.
        """
        if not (self.json or self.quiet):
            _print_parts([part for part in parts if part != ""])
            typer.echo()

    def next_step(self, *words: str) -> None:
        """Suggest the next command on stderr, to people at a terminal only: not in pipes or logs.

        `words` are those of the command, without the program.
        """
        if not (self.quiet or self.json) and sys.stdout.isatty() and sys.stderr.isatty():
            print_error(clean(f"Next: dkrls {shlex.join(words)}"))

    def working(
        self, what: str, total_bytes: float | None = None
    ) -> AbstractContextManager[Callable[[float], None]]:
        """Return a context that shows that work goes on, once it has taken two seconds.

        The context yields a callback that takes the fraction done, 0 to 1. With it the time left is
        shown, and with the bytes of the whole work their rate.
        """
        if self.quiet:
            return nullcontext(_ignore_fraction)
        from dkrls_cli.cli.terminal.progress import show_progress

        return show_progress(what, total_bytes)


def _print_parts(parts: Sequence[str | Layout]) -> None:
    """Print texts and tables on stdout: drawn on a terminal, plain in a pipe."""
    from dkrls_cli.cli.terminal.tables import can_draw, draw

    if can_draw(sys.stdout):
        draw(parts)
    else:
        texts = [clean_lines(part) if isinstance(part, str) else str(part) for part in parts]
        typer.echo("\n\n".join(texts))


def print_error(text: str) -> None:
    """Print a line on stderr, if somebody reads it: that nobody does fails no command."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(text, file=sys.stderr)  # a progress bar that is drawn there stays below
            sys.stderr.flush()


def _ignore_fraction(fraction: float) -> None:
    """Do nothing with the fraction done: progress is not shown."""


@contextmanager
def edge(debug: bool) -> Iterator[None]:
    """Turn errors into one line on stderr and an exit code; with `debug` let them through.

    This is the only place where that is done. Exit codes: 2 for wrong settings, 1 for everything
    else that fails, 130 after an interrupt. A reader that closes the pipe is no error.
    """
    if sys.stdout is None:  # closed by the program that started the command
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough
        silence_stdout()
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt:
        print_error("Interrupted.")
        raise typer.Exit(130) from None
    except Exception as error:
        if debug:
            raise
        print_error(f"Error: {error_line(error)}")
        _flush_or_silence_stdout()
        raise typer.Exit(2 if isinstance(error, SettingError) else 1) from None


def refuse_closed_stdout() -> None:
    """Raise OutputError if answers are to be written to a standard output that is closed."""
    if sys.stdout is None or getattr(sys.stdout, "name", "") == os.devnull:  # opened by `edge`
        raise OutputError("Standard output is closed, and the answers go there. Give -o OUT.")


def _flush_or_silence_stdout() -> None:
    """Write what waits to be written to stdout, or drop it: the error has been reported."""
    try:
        sys.stdout.flush()
    except OSError:
        silence_stdout()


def silence_stdout() -> None:
    """Let what is still to be written to stdout go nowhere: nobody can read it."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def error_line(error: Exception) -> str:
    """Return an error as one line, with the option that would help where there is one."""
    line = clean(" ".join(_error_text(error).split()))
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..."


def _error_text(error: Exception) -> str:
    if isinstance(error, DkrlsError):
        return f"{error} {_hint(error)}"
    if isinstance(error, MemoryError):
        return f"Not enough memory ({error}). Use a part of the grid, or --float32."
    if isinstance(error, OSError):
        return f"{error.strerror or error}: '{error.filename or ''}'".removesuffix(": ''")
    if isinstance(error, UnicodeEncodeError):
        letter = clean(error.object[error.start : error.start + 1])
        return (
            f"'{letter}' cannot be written in the encoding of the output, {error.encoding}. Set "
            "PYTHONIOENCODING=utf-8, or write to a file."
        )
    return (
        f"{type(error).__name__}: {error}. This should not happen: please report it, with what "
        "--debug shows."
    )


def _hint(error: DkrlsError) -> str:
    """Return the sentence that names the option for the setting that an error is about."""
    if error.setting is None:
        return ""
    options = [f"--{name.replace('_', '-')}" for name in error.setting.split()]
    plain = f"Option{'s' if options[1:] else ''}: {', '.join(options)}."
    return HINTS.get(error.setting, plain)


def _json_value(value: Any) -> Any:
    """Return a value as JSON can hold it: NaN and infinity become null."""
    if isinstance(value, Mapping):
        return {key: _json_value(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def command_line() -> list[str]:
    """Return the words of the running command, the program by its name."""
    return ["dkrls", *sys.argv[1:]]
