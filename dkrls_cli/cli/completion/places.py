"""Where a command line stands: the command, its options, and what was given so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Place:
    """Where a command line stands: the command, its options, and what was given so far.

    Attributes
    ----------
    words
        Words that name the command, such as bench and real.
    options
        Options of the command by all their names, long ones first.
    commands
        Commands that may follow, and what each does.
    given
        Arguments that were given.
    open_option
        The option whose value comes next; None if there is none.
    """

    words: list[str]
    options: dict[str, Any]
    commands: dict[str, str]
    given: list[str] = field(default_factory=list)
    open_option: Any = None


def find_place(words: Sequence[str]) -> Place:
    """Return where a command line stands after some words."""
    from dkrls_cli.cli import COMMANDS, import_command, root_command

    command, named = root_command(), list[str]()
    given: list[str] = []
    open_option: Any = None
    for word in words:
        if open_option is not None:
            given += [word] if "--model" in open_option.opts else []
            open_option = None
        elif word.startswith("-") and len(word) > 1:
            name, equals, _ = word.partition("=")
            option = _options(command).get(name)
            takes_value = option is not None and not (option.is_flag or option.count)
            open_option = option if takes_value and not equals else None
        elif not named and word in COMMANDS:
            command = import_command(word)
            named.append(word)
        elif word in getattr(command, "commands", {}) and not given:
            command = command.commands[word]
            named.append(word)
        else:
            given.append(word)
    inner = {} if given else getattr(command, "commands", {})
    short = {name: (one.help or "").strip().split("\n\n")[0] for name, one in inner.items()}
    return Place(named, _options(command), short, given, open_option)


def _options(command: Any) -> dict[str, Any]:
    """Return the options of a command by all their names, long ones first."""
    pairs = [
        (name, parameter)
        for parameter in command.params
        if parameter.param_type_name == "option" and not getattr(parameter, "hidden", False)
        for name in parameter.opts
    ]
    return dict(sorted(pairs, key=lambda pair: not pair[0].startswith("--")))
