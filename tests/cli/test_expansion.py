"""Groups of options, expanded for Typer."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.testing import CliRunner

from dkrls_cli.cli.expansion import expand


@dataclass(frozen=True)
class Colour:
    red: Annotated[int, typer.Option(min=0, help="How red.")] = 3
    shade: Annotated[str | None, typer.Option("--shade", "-s")] = None


@dataclass(frozen=True)
class Size(Colour):
    red: Annotated[int, typer.Option(help="Another default.")] = 7
    wide: Annotated[bool, typer.Option("--wide")] = False


@dataclass(frozen=True)
class Needed:
    name: Annotated[str, typer.Option()]


def run(command: Any, *words: str, code: int = 0) -> Any:
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result


def test_a_command_receives_its_options_as_groups() -> None:
    got: list[Any] = []

    @expand
    def paint(
        what: Annotated[str, typer.Argument()],
        *,
        thick: Annotated[float, typer.Option()] = 1.5,
        colour: Colour,
        count: Annotated[int, typer.Option()] = 2,
    ) -> None:
        """Paint something."""
        got.append((what, thick, colour, count))

    run(paint, "wall")
    run(paint, "door", "--red", "5", "-s", "dark", "--thick", "2", "--count", "9")
    assert got == [("wall", 1.5, Colour(3, None), 2), ("door", 2.0, Colour(5, "dark"), 9)]
    assert "Invalid value" in run(paint, "wall", "--red", "-1", code=2).stderr
    own = ["what", "thick", "red", "shade", "count"]
    added = ["context", "config", "save_config", "overwrite"]
    assert list(inspect.signature(paint).parameters) == own + added
    assert (paint.__name__, paint.__doc__) == ("paint", "Paint something.")


def test_a_group_may_extend_another_and_change_a_default() -> None:
    got: list[Any] = []

    @expand
    def paint(*, size: Size) -> None:
        got.append(size)

    run(paint)
    run(paint, "--wide", "--red", "1")
    assert got == [Size(red=7, shade=None, wide=False), Size(red=1, shade=None, wide=True)]
    assert list(inspect.signature(paint).parameters)[:3] == ["red", "shade", "wide"]


def test_an_option_without_a_default_is_required() -> None:
    @expand
    def paint(*, needed: Needed) -> None:
        assert needed.name == "x"

    run(paint, "--name", "x")
    assert "Missing option" in run(paint, code=2).stderr
