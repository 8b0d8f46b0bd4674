"""Options to a TOML file: ``--save-config`` of every command."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from dkrls_cli.cli.config import (
    NEVER_READ,
    command_words,
    options_of,
    own_table,
    parse_toml,
    toml_text,
)
from dkrls_cli.cli.report import edge, print_error
from dkrls_cli.cli.terminal.clean import clean
from dkrls_cli.cli.terminal.pages import OUTPUT
from dkrls_cli.errors import OutputError, SettingError

# Not saved: a file that exists is to be replaced only where somebody says so.
_NEVER_SAVED = (*NEVER_READ, "--overwrite")

# Exit codes of commands that did not do their work: their options are not worth keeping.
_FAILED = (1, 2, 130)

_ENDING = ".toml"


@contextmanager
def saved_options(context: typer.Context, path: Path | None, overwrite: bool) -> Iterator[None]:
    """Write the options of a command to a file once the command has done its work.

    Whether that is possible is checked before.
    """
    if path is None:
        yield
        return
    with edge(bool(context.params.get("debug"))):
        text = changed_file(context, path, overwrite)
    try:
        yield
    except typer.Exit as end:
        if end.exit_code not in _FAILED:
            _write(context, path, text)
        raise
    _write(context, path, text)


def _write(context: typer.Context, path: Path, text: str) -> None:
    """Write a file of options, and say so."""
    from dkrls_cli.files.output.atomic import atomic_write

    with edge(bool(context.params.get("debug"))):
        with (
            atomic_write(path, overwrite=True) as temporary,
            open(temporary, "w", encoding="utf-8") as file,
        ):
            file.write(text)
        if not context.params.get("quiet"):
            print_error(clean(f"Note: options written to {path}."))


def changed_file(context: typer.Context, path: Path, overwrite: bool) -> str:
    """Return a file of options as it will be, with the table of this command.

    Everything else in a file that exists stays as it is, comments as well.
    """
    if path.suffix.lower() != _ENDING:
        raise SettingError(f"'{path}' does not end in {_ENDING}, as a file of options does.")
    if not path.parent.is_dir():
        raise OutputError(f"'{path.parent}' is not a folder: '{path}' cannot be written.")
    words, own = command_words(context), options_in_force(context)
    block = table_text(words, own)
    if not path.exists():
        return block
    old = toml_text(path)
    before = parse_toml(path, old)
    if own_table(before, words, context.command) and not overwrite:
        raise OutputError(
            f"'{path}' has a table [{'.'.join(words)}]. --overwrite replaces it, and leaves the "
            "rest of the file."
        )
    inner = tuple(getattr(context.command, "commands", {}))
    text = replace_table(old, words, block, keep=inner)
    _check_changed(context, path, text, before, own)
    return text


def _check_changed(
    context: typer.Context, path: Path, text: str, before: Mapping[str, Any], own: Mapping[str, Any]
) -> None:
    """Raise SettingError if a changed file would not give this command the same options.

    Nor may anything else of it change.
    """
    words = command_words(context)
    try:
        after = tomllib.loads(text)
    except ValueError:
        after = {}
    same = _without(before, words, context.command) == _without(after, words, context.command)
    if not same or own_table(after, words, context.command) != own:
        raise SettingError(f"'{path}' cannot be changed safely. Save to another file.")
    never = [name.removeprefix("--") for name in _NEVER_SAVED]
    known = options_of(context.command)
    others = [key for key in after if key in known and key not in own and key not in never]
    if others:
        raise SettingError(
            f"'{path}' has {', '.join(others)} for all commands, which this one does not have "
            "now. Save to another file."
        )


def _without(settings: Mapping[str, Any], words: Sequence[str], command: Any) -> dict[str, Any]:
    """Return what a file holds besides the options of one command."""
    first, *rest = words
    kept = {key: value for key, value in settings.items() if key != first}
    table = settings.get(first, {})
    if rest:
        left = _without(table, rest, command)
    else:
        left = {k: v for k, v in table.items() if k not in own_table(settings, words, command)}
    return {**kept, **({first: left} if left else {})}


def options_in_force(context: typer.Context) -> dict[str, Any]:
    """Return the options of a command that differ from its defaults, as a file holds them."""
    found = {}
    for name, parameter in options_of(context.command).items():
        value = context.params.get(parameter.name)
        source = context.get_parameter_source(parameter.name)
        given = source is not None and source.name != "DEFAULT"
        differs = value not in (None, (), [], parameter.default)
        if given and differs and f"--{name}" not in _NEVER_SAVED:
            found[name] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    """Return the value of an option as TOML holds it: a list of one as that one."""
    if isinstance(value, list | tuple):
        several = [_plain(one) for one in value]
        return several if several[1:] else several[0]
    return value if isinstance(value, bool | int | float) else str(value)


def table_text(words: Sequence[str], values: Mapping[str, Any]) -> str:
    """Return a table of TOML.

    >>> print(table_text(["fit"], {"var": "sst", "sigma": ["lat=5", "time=30D"]}), end="")
    [fit]
    var = "sst"
    sigma = ["lat=5", "time=30D"]
    """
    lines = [f"{key} = {value_text(value)}" for key, value in values.items()]
    return "\n".join([f"[{'.'.join(words)}]", *lines]) + "\n"


def value_text(value: Any) -> str:
    """Return a value as TOML writes it: a text, number, boolean, list, or table in one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, Mapping):
        pairs = (f"{_key_text(key)} = {value_text(one)}" for key, one in value.items())
        return f"{{ {', '.join(pairs)} }}"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _key_text(key: str) -> str:
    """Return a key, in quotes unless it is of letters, digits, dashes and underscores."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else value_text(key)


def replace_table(text: str, words: Sequence[str], block: str, keep: Sequence[str] = ()) -> str:
    """Return a TOML text with a table replaced, or added at its end; all else stays.

    Tables within it go with it, but for those whose names are to be kept.
    """
    name, lines = ".".join(words), list[str]()
    inside, place = False, None
    for line in text.splitlines(keepends=True):
        header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]", line)
        if header:
            first, _, rest = header[1].partition(f"{name}.")
            is_part = not first and rest.split(".")[0] not in keep
            inside = header[1] == name or is_part
            place = len(lines) if inside and place is None else place
        if not inside:
            lines.append(line)
    if place is None:
        head = "".join(lines).rstrip("\n")
        return f"{head}\n\n{block}" if head else block
    after = "".join(lines[place:])
    return "".join(lines[:place]) + block + (f"\n{after}" if after else "")


SaveConfig = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.toml",
        rich_help_panel=OUTPUT,
        help="Write the options of this command there, for --config.",
    ),
]
