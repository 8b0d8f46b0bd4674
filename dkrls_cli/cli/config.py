"""Options from a TOML file: ``--config`` of every command.

Keys are long names of options. A key at the top is for every command that has such an option, a key
in a table such as ``[fit]`` or ``[bench.real]`` for that command alone. An option that takes a
value per dimension may be a table of them: ``sigma = {lat = 5, time = "30D"}``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dkrls_cli.cli.report import edge
from dkrls_cli.cli.terminal.pages import SETTINGS
from dkrls_cli.errors import SettingError
from dkrls_cli.spelling import suggest

# Bytes of a file of options: a hundred times as many as all options take.
_LARGEST = 2**20

# Options that are not read from a file: they are about files of options, or about help.
NEVER_READ = ("--config", "--save-config", "--help")


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take the defaults of options from a TOML file, and return its path."""
    if path is not None and not context.resilient_parsing:
        with edge(False):
            found = defaults(context, read_toml(path), path)
            context.default_map = {**(context.default_map or {}), **found}
    return path


def defaults(context: typer.Context, settings: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the defaults that a file has for a command, by the names of its parameters."""
    words, known = command_words(context), options_of(context.command)
    top = {key: value for key, value in settings.items() if not _is_command_table(key, value)}
    _refuse_unknown(path, top, known)
    own = own_table(settings, words, context.command)
    wrong = next((key for key in own if key not in known), None)
    if wrong is not None:
        raise SettingError(
            f"'{path}' has a key '{wrong}' in [{'.'.join(words)}] that is not an option of this "
            f"command. Choose from: {', '.join(known)}.{suggest(wrong, known)}"
        )
    merged = {**{key: value for key, value in top.items() if key in known}, **own}
    return {known[k].name or k: _option_value(k, v, known[k]) for k, v in merged.items()}


def _refuse_unknown(path: Path, top: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Raise SettingError for a key at the top that is an option of no command, nor a command."""
    if all(key in known for key in top):
        return
    every = all_options()
    wrong = next((key for key in top if key not in every), None)
    if wrong is None:
        return
    if isinstance(top[wrong], Mapping):
        commands = configured_commands()
        raise SettingError(
            f"'{path}' has a table [{wrong}] that is neither a command nor an option. Commands: "
            f"{', '.join(commands)}.{suggest(wrong, commands) or suggest(wrong, every)}"
        )
    raise SettingError(
        f"'{path}' has a key '{wrong}' that is not an option of any command. This one has: "
        f"{', '.join(known)}.{suggest(wrong, every)}"
    )


def command_words(context: typer.Context) -> list[str]:
    """Return the words that name a command, such as bench and real, without the program."""
    words: list[str] = []
    here: Any = context
    while here.parent is not None:
        words.insert(0, str(here.info_name))
        here = here.parent
    return words


def options_of(command: Any) -> dict[str, Any]:
    """Return the options of a command that a file may have, by their long names."""
    return {
        name.removeprefix("--"): parameter
        for parameter in command.params
        for name in parameter.opts
        if name.startswith("--") and name not in NEVER_READ
    }


def own_table(settings: Mapping[str, Any], words: Sequence[str], command: Any) -> Mapping[str, Any]:
    """Return the table of a command; those of the commands in a group are not part of it."""
    table: Any = settings
    for word in words:
        table = table.get(word, {}) if isinstance(table, Mapping) else {}
    if not (words and isinstance(table, Mapping)):
        return {}
    inner = getattr(command, "commands", {})
    return {
        key: value
        for key, value in table.items()
        if not (key in inner and isinstance(value, Mapping))
    }


def configured_commands() -> list[str]:
    """Return the names of all commands that take options from a file."""
    from dkrls_cli.cli import COMMANDS, UNCONFIGURED

    return [name for name in COMMANDS if name not in UNCONFIGURED]


def all_options() -> dict[str, None]:
    """Return the long names of the options of all commands, each once."""
    from dkrls_cli.cli import import_command

    found: dict[str, None] = {}
    for name in configured_commands():
        command = import_command(name)
        for one in (command, *getattr(command, "commands", {}).values()):
            found |= dict.fromkeys(options_of(one))
    return found


def _is_command_table(key: str, value: Any) -> bool:
    """Return whether a value at the top of a file is the table of a command."""
    return isinstance(value, Mapping) and key in configured_commands()


def read_toml(path: Path) -> dict[str, Any]:
    """Return what is in a TOML file, or raise SettingError if it cannot be read."""
    return parse_toml(path, toml_text(path))


def toml_text(path: Path) -> str:
    """Return the text of a file of options."""
    try:
        with open(path, "rb") as file:
            raw = file.read(_LARGEST + 1)
        if len(raw) > _LARGEST:
            raise ValueError(f"it has more than {_LARGEST} bytes")
        return raw.decode("utf-8")
    except OSError as error:
        raise SettingError(f"'{path}' cannot be read ({error.strerror}).") from None
    except ValueError as error:
        raise SettingError(f"'{path}' is not TOML: {error}.") from None


def parse_toml(path: Path, text: str) -> dict[str, Any]:
    """Return what a TOML text holds."""
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except RecursionError:
        raise SettingError(f"'{path}' is not TOML: it is nested too deeply.") from None
    except ValueError as error:  # of the format, or of a number that is too long
        raise SettingError(f"'{path}' is not TOML: {error}.") from None


def _option_value(key: str, value: Any, parameter: Any) -> Any:
    """Return a value of a TOML file as the command line would give it to a parameter."""
    repeatable = getattr(parameter, "multiple", False)
    if getattr(parameter, "is_flag", False):
        if not isinstance(value, bool):
            raise SettingError(f"{key} is {value} in the file. Expected true or false.")
        return value
    if isinstance(value, Mapping):
        if not repeatable:
            raise SettingError(f"{key} takes one value, not a table of them.")
        return [f"{dim}={setting}" for dim, setting in value.items()]
    several = value if isinstance(value, list) else [value]
    if repeatable:
        return [str(word) for word in several]
    return ",".join(map(str, several))


Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        is_eager=True,
        callback=read_config,
        rich_help_panel=SETTINGS,
        help="TOML file with defaults for these options, at its top or in a table of this command; "
        "options given here override it.",
    ),
]
