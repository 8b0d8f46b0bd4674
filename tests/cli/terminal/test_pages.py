"""Help pages: panels, widths, defaults, and examples that a shell can run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pytest
import typer
from shell import dkrls

from dkrls_cli.cli import COMMANDS, import_command
from dkrls_cli.cli.expansion import expand
from dkrls_cli.cli.terminal.pages import (
    PANELS,
    SETTINGS,
    Entry,
    entry,
    entry_lines,
    example_lines,
    panels,
    text_lines,
)


def pages() -> Iterator[tuple[str, ...]]:
    """Yield the words of every command, those of groups after them."""
    yield ()
    for name in COMMANDS:
        yield (name,)
        yield from ((name, inner) for inner in getattr(import_command(name), "commands", {}))


def parameters(words: tuple[str, ...]) -> list[Any]:
    if not words:
        return []
    command = import_command(words[0])
    found = command.commands[words[1]] if words[1:] else command
    return [one for one in found.params if not getattr(one, "hidden", False)]


ALL = [pytest.param(words, id="-".join(words) or "root") for words in pages()]


@pytest.mark.parametrize("words", ALL)
@pytest.mark.parametrize("width", [60, 80])
def test_no_line_is_too_long_and_no_value_is_broken(words: tuple[str, ...], width: int) -> None:
    told = dkrls(*words, "--help", COLUMNS=str(width)).stdout
    assert max(map(len, told.splitlines())) == width
    lefts = [line[2:] for line in told.splitlines() if line.startswith("│ ")]
    for parameter in parameters(words):
        left = entry(parameter, _context(words)).left
        assert any(f"{line} ".startswith(f"{left} ") for line in lefts), left


def _context(words: tuple[str, ...]) -> Any:
    command = import_command(words[0])
    found = command.commands[words[1]] if words[1:] else command
    return typer.Context(found, info_name=" ".join(words))


@pytest.mark.parametrize("words", ALL)
def test_panels_and_defaults_are_alike_everywhere(words: tuple[str, ...]) -> None:
    told = dkrls(*words, "--help", COLUMNS="120").stdout
    titles = re.findall(r"^╭─ ([\w ]+?) ─", told, re.MULTILINE)
    ordered = [title for title in ("Commands", *PANELS) if title in titles]
    assert titles == ordered
    assert "Default:" not in told
    for brackets in re.findall(r"\s\[([^\]=]+)\]", re.sub(r"│\n│\s+", " ", told)):
        known = r"default: .+|required|\d\S* (or more|to \S+)|OPTIONS|ARGS|TOPIC|bash.zsh.fish"
        assert re.fullmatch(known, " ".join(brackets.split())), brackets


@dataclass(frozen=True)
class Group:
    panel: ClassVar[str] = SETTINGS

    plain: Annotated[int, typer.Option(min=1, metavar="N", help="Some.")] = 3
    output: Annotated[str | None, typer.Option(metavar="OUT", show_default="none")] = None
    own: Annotated[str, typer.Option(metavar="X", rich_help_panel="Mine")] = "x"


def test_an_option_names_its_panel_or_its_group_does() -> None:
    @expand
    def command(
        file: Annotated[str, typer.Argument(metavar="FILE")],
        *,
        group: Group,
        other: Annotated[bool, typer.Option("--other")] = False,
    ) -> None:
        pass

    app = typer.Typer(add_completion=False)
    app.command()(command)
    made = typer.main.get_command(app)
    found = panels(made, typer.Context(made))
    named = {title: [one.left for one in entries] for title, entries in found.items()}
    assert named["What"] == ["FILE", "--other"]
    assert named["Settings"] == ["--plain N", "--config FILE"]
    assert "--output OUT" in named["Output and messages"]
    assert named["Output and messages"][-1] == "--help"
    assert named["Mine"] == ["--own X"]
    texts = {one.names: one.about for entries in found.values() for one in entries}
    assert texts["--plain"] == "Some. [1 or more] [default: 3]"
    assert texts["--output"] == "[default: none]"
    assert texts["FILE"] == "[required]"


def test_a_name_that_is_too_wide_stands_above_its_text() -> None:
    entries = [Entry("--a", "", "first"), Entry("--long-name", "A|B|C|D", "second")]
    assert [str(line) for line in entry_lines(entries, 30)] == [
        "--a          first",
        "--long-name A|B|C|D",
        "             second",
    ]
    wide = [str(line) for line in entry_lines(entries, 60)]
    assert wide == ["--a                  first", "--long-name A|B|C|D  second"]


@pytest.mark.parametrize("width", [30, 40, 58, 100])
def test_an_example_in_lines_is_the_same_command(width: int) -> None:
    example = "dkrls fit 'run-*.nc' --var tas --sigma time=30 --sigma lat=5 -o tas.npz"
    lines = example_lines(example, width)
    assert max(map(len, lines)) <= width
    assert shlex.split("\n".join(lines).replace("\\\n", " ")) == shlex.split(example)


def test_paragraphs_are_filled_and_examples_are_not() -> None:
    text = "Do\nit.\n\nMore words\nhere.\n\nExamples:\n  dkrls a\n\n  dkrls b\n"
    assert text_lines(text, 40) == [
        *("Do it.", "", "More words here.", "", "Examples:", "  dkrls a", "  dkrls b", ""),
    ]
