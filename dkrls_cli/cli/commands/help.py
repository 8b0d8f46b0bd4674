"""``dkrls help``: the guide."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from io import StringIO
from typing import Annotated, Any

import typer

from dkrls_cli.cli.expansion import expand
from dkrls_cli.cli.report import Report, edge
from dkrls_cli.cli.terminal.tables import can_draw, pairs
from dkrls_cli.errors import SettingError
from dkrls_cli.guide.pages import groups, links_as_commands, pages_with, read_page, topics
from dkrls_cli.spelling import suggest

# Pages that are named for an unknown word: a longer list is no advice.
_MOST_PAGES = 4


@expand
def help(  # noqa: A001  # the name of the command
    context: typer.Context,
    topic: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TOPIC]", help="A page of the guide, or a command."),
    ] = None,
    *,
    report: Report,
) -> None:
    """Read the guide: a page about a topic, or the list of topics.

    On a terminal the page is drawn; in a pipe it is plain Markdown.

    Examples:
      dkrls help

      dkrls help first-steps

      dkrls help fill | less
    """
    with edge(report.debug):
        words = [word.lower() for word in topic or []]
        name = "-".join(words)
        if not words:
            print_topics(replace(report, quiet=False))  # data that was asked for
        elif name in topics():
            print_page(name, report)
        else:
            print_command(context.find_root(), words, report)


def print_topics(report: Report) -> None:
    """Print the topics and one line about each."""
    width = max(map(len, topics()))
    parts: list[Any] = []
    for title, lines in groups().items():
        parts += [f"{title}:", pairs({topic.ljust(width): lines[topic] for topic in lines})]
    end = "Read one with: dkrls help TOPIC. Options of a command: dkrls help COMMAND."
    report.result({"topics": topics()}, *parts, end)


def print_page(topic: str, report: Report) -> None:
    """Print a page: drawn on a terminal, else as it is stored. It is data that was asked for."""
    from dkrls_cli.cli.terminal.markdown import draw_markdown

    text = read_page(topic)
    if report.json:
        report.result({"topic": topic, "about": topics()[topic], "text": text})
    elif can_draw(sys.stdout):
        draw_markdown(links_as_commands(text))
    else:
        typer.echo(text, nl=False)


def print_command(root: Any, words: Sequence[str], report: Report) -> None:
    """Print the help of a command, such as fit or bench real, as its option --help does."""
    check_command(root, words)
    show = partial(root.command, [*words, "--help"], prog_name="dkrls", standalone_mode=False)
    if not report.json:
        show()
        return
    with redirect_stdout(StringIO()) as text:
        show()
    report.result({"command": " ".join(words), "text": text.getvalue()})


def check_command(root: Any, words: Sequence[str]) -> None:
    """Raise SettingError, with what could have been meant, if there is no command of this name."""
    from dkrls_cli.cli import COMMANDS

    if words[0] not in COMMANDS:
        raise SettingError(unknown_topic("-".join(words), COMMANDS))
    _, command, _ = root.command.resolve_command(root, [words[0]])
    races = getattr(command, "commands", {})
    if words[2:] or not set(words[1:]) <= set(races):
        raise SettingError(
            f"There is no command '{' '.join(words)}'.{suggest(words[-1], races)} "
            f"Try 'dkrls help {words[0]}'."
        )


def unknown_topic(name: str, commands: Iterable[str]) -> str:
    """Return a message about a topic that is not known, with the best suggestion there is."""
    message = f"There is no topic '{name}' in the guide, and no command of that name."
    meant = suggest(name, [*topics(), *commands])
    pages = pages_with(name)[:_MOST_PAGES] if not meant else []
    if pages:
        meant = f" Pages that mention it: {', '.join(pages)}."
    return f"{message}{meant} Try 'dkrls help'."
