"""Options that say what is asked of models: answers, masks, and coordinates."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.report import Report
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.spec import parse_at
from dkrls_cli.spelling import suggest

if TYPE_CHECKING:
    from dkrls_cli.arrays import Array
    from dkrls_cli.grid.axes import Axis
    from dkrls_cli.grid.grid import Grid
    from dkrls_cli.model.answering.answers import Land, Outside, Query, Rules
    from dkrls_cli.model.model import Model

_LAND = ("model", "none")


@dataclass(frozen=True)
class AnswerOptions:
    """Form of the answers, and where an answer is allowed."""

    std: Annotated[bool, typer.Option("--std", help="Add the standard error of every answer.")] = (
        False
    )
    smooth: opt.Smooth = False
    outside: Annotated[
        Literal["refuse", "missing", "nearest", "extrapolate"] | None,
        typer.Option(
            help="What to do outside the training range.",
            show_default="missing with --like and in regrid, else refuse",
        ),
    ] = None
    allow_extrapolation: Annotated[
        bool, typer.Option("--allow-extrapolation", help="The same as --outside extrapolate.")
    ] = False
    mask: Annotated[
        str,
        typer.Option(
            metavar="model|none|FILE",
            help="What stays missing: cells that never had data (land), nothing, or cells where "
            "FILE has 0 or no value; the nearest cell decides.",
        ),
    ] = "model"
    mean: Annotated[
        bool,
        typer.Option(
            "--mean",
            help="Means over the cells of all dimensions at new coordinates: their bounds, "
            "or half-way between coordinates.",
        ),
    ] = False
    mean_along: Annotated[
        str | None,
        typer.Option(metavar="DIM,...", help="Means over the cells of these dimensions only."),
    ] = None
    mean_over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIM[=LOW:HIGH],...",
            help="One mean over ranges, or over whole dimensions, with its own standard error. "
            "Repeatable.",
        ),
    ] = None
    derivative: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIM", help="Derivative by a dimension; twice for the second. Repeatable."
        ),
    ] = None
    per_metre: Annotated[
        bool,
        typer.Option(
            "--per-metre", help="Derivatives by latitude and longitude in metres, not degrees."
        ),
    ] = False

    def rules(
        self,
        model: Model,
        usual: Outside = "refuse",
        asked: Mapping[str, Any] | None = None,
        cells: Mapping[str, Array] | None = None,
    ) -> Rules:
        """Return the rules of answering that these options give for a model.

        `usual` is what happens outside if no option says it, `asked` are the coordinates that are
        asked for by dimension, and `cells` the cells of these, where they are known.
        """
        from dkrls_cli.model.answering.questions import read_question

        mean = self.mean_dims or self.mean
        question = read_question(
            model, mean, self.derivative or (), self.per_metre, asked or {}, cells
        )
        return replace(self.plain_rules(model, usual), question=question)

    def plain_rules(self, model: Model, usual: Outside) -> Rules:
        """Return the rules of answering values that these options give for a model."""
        from dkrls_cli.model.answering.answers import Rules

        self.refuse_impossible()
        outside: Outside = "extrapolate" if self.allow_extrapolation else self.outside or usual
        return Rules(outside, read_land(self.mask, model), self.smooth)

    @property
    def mean_dims(self) -> list[str]:
        """The dimensions that --mean-along names."""
        return [dim.strip() for dim in (self.mean_along or "").split(",") if dim.strip()]

    @property
    def asks(self) -> bool:
        """Whether anything but values is asked for."""
        cells = self.mean or self.mean_along or self.mean_over
        return bool(cells or self.derivative or self.per_metre)

    def refuse_impossible(self) -> None:
        """Raise an error for options that exclude each other, or a mask that is not there."""
        if self.mean_over and (self.mean or self.mean_along):
            raise SettingError("--mean-over does not go with --mean or --mean-along.")
        if self.allow_extrapolation and self.outside not in (None, "extrapolate"):
            raise SettingError(
                f"--allow-extrapolation and --outside {self.outside} do not go together."
            )
        if self.mask not in _LAND:
            refuse_no_mask(self.mask, _LAND)


def read_land(mask: str, model: Model) -> Land:
    """Return which cells stay missing: the name of a rule, or the mask in a file."""
    if mask in _LAND:
        return cast(Literal["model", "none"], mask)
    from dkrls_cli.model.answering.coverage import coverage_of

    return coverage_of(read_mask_file(mask, _LAND), model.axes)


def read_mask_file(mask: str, known: Sequence[str]) -> Grid:
    """Return the mask in a file, or raise InputError with the names of known masks."""
    from dkrls_cli.files.reading import open_file

    refuse_no_mask(mask, known)
    return open_file(mask).grid()


def refuse_no_mask(mask: str, known: Sequence[str]) -> None:
    """Raise InputError if there is no file of a mask, with the names of known masks."""
    if not os.path.exists(mask):
        raise InputError(
            f"There is no mask '{mask}', and no file of that name. Choose from: "
            f"{', '.join(known)}; or give a file.{suggest(mask, known)}"
        )


def asked_cells(
    variables: Sequence[Sequence[Axis]],
    at: Sequence[str] | None,
    like: str | None,
    report: Report,
) -> tuple[list[dict[str, Any]], list[dict[str, Array]]]:
    """Return the coordinates to answer at, by dimension, for variables on these axes, and cells.

    They are those of a file, replaced by those of --at. What only some of the variables have is
    for these. Cells (m, 2) are those of the file, where it has bounds.
    """
    from dkrls_cli.files.reading import Targets, read_targets
    from dkrls_cli.grid.cf import is_called

    if like is None:
        targets = Targets([{} for _ in variables], [{} for _ in variables])
    else:
        targets = read_targets(like, variables)
    if targets.unused:
        report.note(
            f"Note: {', '.join(targets.unused)} of '{like}' are coordinates of no dimension here, "
            "and are not used."
        )
    asked, cells = targets.coordinates, targets.cells
    dims = [text.partition("=")[0].strip() for text in at or ()]
    known = [[any(is_called(axis, dim) for axis in axes) for dim in dims] for axes in variables]
    nobody = [not any(of_one) for of_one in zip(*known, strict=True)]
    for found, its, axes, own in zip(asked, cells, variables, known, strict=True):
        texts = zip(at or (), own, nobody, strict=True)
        replaced = parse_at([text for text, has, none in texts if has or none], axes)
        found.update(replaced)
        for dim in replaced:
            its.pop(dim, None)
    return asked, cells


def asked_grids(
    models: Sequence[Model],
    asked: Sequence[dict[str, Any]],
    answers: AnswerOptions,
    usual: Outside,
    cells: Sequence[Mapping[str, Array]],
) -> list[Query]:
    """Return where to answer for each of several variables.

    `asked` has their coordinates, `usual` is what happens outside if no option says it, and `cells`
    has the bounds of cells, where they are known.
    """
    from dkrls_cli.model.answering.answers import ask
    from dkrls_cli.model.answering.regions import ask_region

    if answers.mean_over:
        derive = answers.derivative or ()
        return [
            ask_region(
                model,
                answers.mean_over,
                at,
                answers.plain_rules(model, usual),
                derive,
                answers.per_metre,
            )
            for model, at in zip(models, asked, strict=True)
        ]
    return [
        ask(model, model.axes_at(at), answers.rules(model, usual, at, own), list(at))
        for model, at, own in zip(models, asked, cells, strict=True)
    ]
