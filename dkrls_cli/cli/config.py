"""Options from a TOML file, and to one: ``--config`` and ``--save-config`` of every command.

Keys are long names of options. A key at the top is for every command that has such an option, a key
in a table such as ``[fit]`` or ``[bench.real]`` for that command alone. An option that takes a
value per dimension may be a table of them: ``sigma = {lat = 5, time = "30D"}``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from dkrls_cli.cli.report import edge, print_error
from dkrls_cli.cli.terminal.clean import clean
from dkrls_cli.cli.terminal.pages import OUTPUT, SETTINGS
from dkrls_cli.errors import OutputError, SettingError
from dkrls_cli.spelling import suggest

# Bytes of a file of options: a hundred times as many as all options take.
_LARGEST = 2**20

# Options that are not read from a file: they are about files of options, or about help.
_NEVER_READ = ("--config", "--save-config", "--help")

# Not saved: a file that exists is to be replaced only where somebody says so.
_NEVER_SAVED = (*_NEVER_READ, "--overwrite")

# Exit codes of commands that did not do their work: their options are not worth keeping.
_FAILED = (1, 2, 130)

_ENDING = ".toml"


# --- reading -------------------------------------------------------------------------------------


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
        if name.startswith("--") and name not in _NEVER_READ
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
    return _parse(path, _text(path))


def _text(path: Path) -> str:
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


def _parse(path: Path, text: str) -> dict[str, Any]:
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


# --- saving --------------------------------------------------------------------------------------


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
    old = _text(path)
    before = _parse(path, old)
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
SaveConfig = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.toml",
        rich_help_panel=OUTPUT,
        help="Write the options of this command there, for --config.",
    ),
]
