"""Writes the page of the guide that lists every option: ``python tests/options_page.py``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from dkrls_cli.cli import COMMANDS, app

PAGE = Path(__file__).parents[1] / "dkrls_cli" / "guide" / "options.md"

_HEAD = """\
# Every option of every command

You get the same from each command itself, in the shell: `dkrls fit --help`.

```sh
dkrls fit --help
```

Options that belong to one command stand under its name, options of several commands come first.
This page is written by `python tests/options_page.py` from the commands themselves.
"""


def all_commands() -> Iterator[tuple[str, Any]]:
    """Yield the name of every command, those of groups included, and the command."""
    root = typer.main.get_command(app)
    context = root.make_context("dkrls", ["fit"], resilient_parsing=True)
    yield "", root
    for name in COMMANDS:
        _, command, _ = root.resolve_command(context, [name])
        yield name, command
        inner = getattr(command, "commands", {})
        yield from ((f"{name} {one}", inner[one]) for one in inner)


def options_of(command: Any) -> list[Any]:
    """Return the options of a command; --help, which every command has, is none of them."""
    return [
        one
        for one in command.params
        if one.param_type_name == "option" and "--help" not in one.opts and not one.hidden
    ]


def option_row(option: Any) -> tuple[str, str]:
    """Return an option as it is written, and what it does."""
    names = ", ".join(f"`{name}`" for name in sorted(option.opts, key=len, reverse=True))
    value = "" if option.is_flag else f" `{value_name(option)}`"
    about = " ".join((option.help or "").split())
    default = option.show_default if isinstance(option.show_default, str) else option.default
    if not (option.is_flag or default in (None, [], ()) or callable(default)):
        about += f" Default: {default}."
    return _escape(names + value), _escape(about)


def value_name(option: Any) -> str:
    """Return what stands for the value of an option: its choices, or a word."""
    choices = getattr(option.type, "choices", None)
    return option.metavar or ("|".join(map(str, choices)) if choices else "VALUE")


def _escape(text: str) -> str:
    """Return a text for a cell of a table, in which a bar would end the cell."""
    return re.sub(r"\|", r"\\|", text)


def page() -> str:
    """Return the text of the page."""
    users: dict[tuple[str, str], list[str]] = {}
    for name, command in all_commands():
        for option in options_of(command):
            users.setdefault(option_row(option), []).append(name)
    shared = {row: names for row, names in users.items() if names[1:]}
    parts = [_HEAD, "## Options of several commands\n", *shared_table(shared)]
    for name, _ in all_commands():
        own = [row for row, names in users.items() if names == [name]]
        if own:
            parts += [f"\n## {f'dkrls {name}'.strip()}\n", "| option | what it does |\n|---|---|"]
            parts += [f"| {option} | {about} |" for option, about in own]
    return "\n".join(parts) + "\n"


def shared_table(rows: dict[tuple[str, str], list[str]]) -> list[str]:
    """Return the table of options that several commands have."""
    every = [name for name, _ in all_commands() if name]
    lines = ["| option | what it does | commands |\n|---|---|---|"]
    for (option, about), names in rows.items():
        where = "all" if len(names) == len(every) else ", ".join(short_names(names))
        lines.append(f"| {option} | {about} | {where} |")
    return lines


def short_names(names: list[str]) -> list[str]:
    """Return the commands, without `bench` before each of its races but the first."""
    races = [name.removeprefix("bench ") for name in names if name.startswith("bench ")]
    plain = [name for name in names if not name.startswith("bench ")]
    return plain + ([f"bench {races[0]}", *races[1:]] if races else [])


if __name__ == "__main__":
    PAGE.write_text(page())
