"""Help pages of commands: options in panels, cut to the width of the terminal.

Names and values of an option stand on the left and are never broken. Where they need more room than
the left column has, the text begins on the next line.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dkrls_cli.cli.terminal.tables import count_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

WHAT = "What"
SETTINGS = "Settings"
RESOURCES = "Resources"
OUTPUT = "Output and messages"

COMMANDS = "Commands"

PANELS = (WHAT, SETTINGS, RESOURCES, OUTPUT)
"""Titles of the panels of a help page, in their order."""

_EDGES = 4  # columns of a panel that its borders and the spaces beside them take
_GAP = 2  # columns between the left column and the text
_LEFT_SHARE = 0.45  # the left column takes less than half: texts need most of the width
_INDENT = 4  # columns by which the second line of an example is set in


@dataclass(frozen=True)
class Entry:
    """An option, argument or command of a help page.

    Attributes
    ----------
    names
        Names, such as "--output, -o".
    value
        What stands for its value, such as "MODEL.npz"; empty for a flag.
    about
        What it does, with the default at the end.
    """

    names: str
    value: str
    about: str

    @property
    def left(self) -> str:
        """Names and value as they stand in the left column."""
        return f"{self.names} {self.value}".rstrip()


def print_page(command: Any, context: Any) -> None:
    """Print the help page of a command."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, markup=False)
    room = console.width - 2
    lines = [*usage_lines(command, context, room), "", *text_lines(command.help or "", room)]
    console.print()
    for line in lines:
        console.print(Text(f" {line}".rstrip(), style="bold" if line is lines[0] else ""))
    for title, entries in panels(command, context).items():
        console.print(_panel(title, entries, console))


def panels(command: Any, context: Any) -> dict[str, list[Entry]]:
    """Return the entries of a help page by the titles of their panels, commands first."""
    found: dict[str, list[Entry]] = {title: [] for title in (COMMANDS, *PANELS)}
    parameters = command.get_params(context)
    for parameter in sorted(parameters, key=lambda one: one.param_type_name != "argument"):
        if not getattr(parameter, "hidden", False):
            title = getattr(parameter, "rich_help_panel", None)
            title = title or (OUTPUT if "--help" in parameter.opts else WHAT)
            found.setdefault(title, []).append(entry(parameter, context))
    inner = getattr(command, "commands", {})
    found[COMMANDS] = [
        Entry(name, "", (one.help or "").strip().split("\n\n")[0]) for name, one in inner.items()
    ]
    return {title: entries for title, entries in found.items() if entries}


def entry(parameter: Any, context: Any) -> Entry:
    """Return an option or argument as it stands on a help page."""
    value = "" if getattr(parameter, "is_flag", False) else _value_name(parameter, context)
    about = " ".join(filter(None, [parameter.help or "", *_brackets(parameter)]))
    if parameter.param_type_name == "argument":
        return Entry(value, "", about)
    return Entry(", ".join(sorted(parameter.opts, key=len, reverse=True)), value, about)


def _value_name(parameter: Any, context: Any) -> str:
    """Return what stands for a value: its name, or the words of a closed set."""
    choices = getattr(parameter.type, "choices", None)
    if choices and parameter.metavar is None:
        return "|".join(map(str, choices))
    return str(parameter.make_metavar(ctx=context)).strip("<>")


def _brackets(parameter: Any) -> Iterator[str]:
    """Yield what stands in brackets behind the text: the range, the default, or required."""
    low, high = (getattr(parameter.type, end, None) for end in ("min", "max"))
    if low is not None or high is not None:
        yield f"[{_range_text(low, high)}]"
    shown = getattr(parameter, "show_default", None)
    if parameter.required:
        yield "[required]"
    elif isinstance(shown, str):
        yield f"[default: {shown}]"
    elif parameter.default not in (None, False, True) and not callable(parameter.default):
        yield f"[default: {_number_text(parameter.default)}]"


def _range_text(low: float | None, high: float | None) -> str:
    """Return which numbers are allowed."""
    if high is None:
        return f"{_number_text(low)} or more"
    return f"{_number_text(low)} to {_number_text(high)}" if low is not None else f"up to {high}"


def _number_text(value: Any) -> str:
    """Return a number as people write it; other values as they are."""
    if isinstance(value, int | float):
        return f"{value:g}" if abs(value) < 10000 else count_text(int(value))
    return str(value)


def usage_lines(command: Any, context: Any, room: int) -> list[str]:
    """Return how a command is called."""
    words = ["Usage:", context.command_path, "[OPTIONS]"]
    for parameter in command.get_params(context):
        if parameter.param_type_name == "argument":
            words.append(_value_name(parameter, context))
            words[-1] += "..." if parameter.nargs == -1 else ""
    if hasattr(command, "commands"):
        words += ["COMMAND", "[ARGS]..."]
    return _wrapped(" ".join(words), room)


def text_lines(text: str, room: int) -> list[str]:
    r"""Return the text of a command in lines; long examples are continued by a backslash.

    >>> text_lines("Fit.\n\nExamples:\n  dkrls fit sst.nc -o sst.npz", 20)
    ['Fit.', '', 'Examples:', '  dkrls fit sst.nc \\', '      -o sst.npz', '']
    """
    about, found, examples = inspect.cleandoc(text).partition("Examples:\n")
    lines: list[str] = []
    for paragraph in filter(None, map(str.strip, about.split("\n\n"))):
        lines += [*_wrapped(" ".join(paragraph.split()), room), ""]
    if found:
        lines.append("Examples:")
        for example in filter(None, map(str.strip, examples.splitlines())):
            lines += example_lines(example, room)
        lines.append("")
    return lines


def example_lines(example: str, room: int) -> list[str]:
    """Return an example in lines that a shell takes as one; options stay beside their values."""
    begin, *rest = example.split(" -")
    lines = [f"  {begin}"]
    for part in (f" -{one}" for one in rest):
        if len(lines[-1]) + len(part) + 2 <= room:
            lines[-1] += part
        else:
            lines[-1] += " \\"
            lines.append(" " * (_INDENT + 1) + part)
    return lines


def _wrapped(text: str, room: int) -> list[str]:
    """Return a text in lines; words with hyphens stay whole, as options must."""
    return textwrap.wrap(text, max(room, 1), break_on_hyphens=False) or [""]


def _panel(title: str, entries: Sequence[Entry], console: Console) -> Any:
    """Return a panel with its entries."""
    from rich.panel import Panel
    from rich.text import Text

    lines = entry_lines(entries, console.width - _EDGES)
    return Panel(Text("\n").join(lines), title=title, title_align="left", border_style="dim")


def entry_lines(entries: Sequence[Entry], room: int) -> list[Text]:
    """Return the lines of a panel, none longer than `room` unless a name is."""
    from rich.text import Text

    widest = max(len(one.left) for one in entries) + _GAP
    left = min(widest, int(_LEFT_SHARE * room))
    lines = []
    for one in entries:
        first, *rest = _wrapped(one.about, room - left)
        head = Text.assemble((one.names, "bold cyan"), " ", (one.value, "yellow"))
        head.rstrip()
        if len(one.left) + _GAP <= left:
            lines.append(head + Text(f"{'':{left - len(one.left)}}{first}"))
        else:
            lines += [head, Text(f"{'':{left}}{first}")]
        lines += [Text(f"{'':{left}}{line}") for line in rest]
    return lines
