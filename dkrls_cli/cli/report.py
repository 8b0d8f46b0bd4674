"""What commands say: results on stdout, the rest on stderr, and errors as one line."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

import typer

from dkrls_cli.errors import DkrlsError, SettingError

_FIRST_WORD_AFTER = 2.0
_NEXT_WORD_AFTER = 10.0
_BAR = 20


@dataclass(frozen=True)
class Report:
    """How much to say, and in which form."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False

    def note(self, text: str) -> None:
        """Something the user may want to know."""
        if not self.quiet:
            typer.echo(text, err=True)

    def detail(self, text: str) -> None:
        """Something for those who asked for more."""
        if self.verbose and not self.quiet:
            typer.echo(text, err=True)

    def result(self, data: Mapping[str, Any], text: str) -> None:
        """The result of a command: an object, or the same in words."""
        typer.echo(json.dumps(_plain(data)) if self.json else text)

    def part(self, text: str) -> None:
        """A part of a long result as soon as it is known; an object comes whole at the end."""
        if not self.json:
            typer.echo(text)

    @contextmanager
    def working(self, what: str) -> Iterator[Callable[[float], None]]:
        """Say that work goes on, once it has taken two seconds and now and then after.

        Who knows how much is done may tell, as a share of 1.
        """
        share: list[float] = []
        if self.quiet:
            yield share.append
            return
        started, done = monotonic(), threading.Event()
        terminal = sys.stderr.isatty()

        def tell() -> None:
            pause = _FIRST_WORD_AFTER
            while not done.wait(pause):
                pause = 0.5 if terminal else _NEXT_WORD_AFTER
                done_so_far = _share_text(share[-1], terminal) if share else ""
                line = f"{what}{done_so_far} ({monotonic() - started:.0f} s)"
                sys.stderr.write(f"\r{line}\x1b[K" if terminal else f"{line}\n")
                sys.stderr.flush()
            if terminal:
                sys.stderr.write("\r\x1b[K")

        teller = threading.Thread(target=tell, daemon=True)
        teller.start()
        try:
            yield share.append
        finally:
            done.set()
            teller.join()


def _share_text(share: float, bar: bool) -> str:
    """How much is done, with a bar where there is a terminal."""
    full = round(_BAR * share)
    drawn = f" [{'#' * full}{'.' * (_BAR - full)}]" if bar else ","
    return f"{drawn} {share:.0%}"


@contextmanager
def edge(debug: bool) -> Iterator[None]:
    """The one place where errors become a line on stderr and an exit code."""
    if sys.stdout is None:  # closed by who started the command
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt:
        typer.echo("Interrupted.", err=True)
        raise typer.Exit(130) from None
    except Exception as error:
        if debug:
            raise
        typer.echo(f"Error: {_line(error)}", err=True)
        raise typer.Exit(2 if isinstance(error, SettingError) else 1) from None


def _line(error: Exception) -> str:
    if isinstance(error, DkrlsError):
        option = f"--{error.setting.replace('_', '-')} does that." if error.setting else ""
        return " ".join(f"{error} {option}".split())
    if isinstance(error, MemoryError):
        return f"Not enough memory ({error}). Use a part of the grid, or --float32."
    if isinstance(error, OSError):
        return f"{error.strerror or error}: '{error.filename or ''}'".removesuffix(": ''")
    return f"{type(error).__name__}: {error}. This should not happen; --debug shows where."


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of equal keys as aligned columns; where too wide turned, else one below the other."""
    heads = list(rows[0])
    cells = [[_text(row[head]) for head in heads] for row in rows]
    room = width()
    numeric = [all(_is_number(row[head]) for row in rows) for head in heads]
    across = _aligned([heads, *cells], numeric)
    turned = _aligned(list(zip(heads, *cells, strict=True)), [False] * (len(rows) + 1))
    for text in (across, turned):
        if max(map(len, text.splitlines())) <= room:
            return text
    return "\n\n".join(pairs(dict(zip(heads, row, strict=True))) for row in cells)


def width() -> int:
    """Columns there are for a table: those of the terminal, else 100."""
    return max(40, shutil.get_terminal_size((100, 0)).columns)


def _aligned(lines: Sequence[Sequence[str]], to_the_right: Sequence[bool]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, to_the_right, strict=True)
        ).rstrip()
        for line in lines
    )


def pairs(data: Mapping[str, Any]) -> str:
    """One key and value per line."""
    width = max(len(key) for key in data)
    return "\n".join(f"{key.ljust(width)}  {_text(value)}" for key, value in data.items())


def bytes_text(size: float) -> str:
    """A number of bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    """JSON has no NaN: what has no value is null."""
    if isinstance(value, Mapping):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def command_line() -> list[str]:
    """Return the words of the running command, the program by its name."""
    return ["dkrls", *sys.argv[1:]]
