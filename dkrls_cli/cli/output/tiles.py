"""``dkrls fill`` of a grid beyond memory: tile by tile, into a copy of its file."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from dkrls_cli.cli.describe import shape_text
from dkrls_cli.cli.output.filled import NOTHING_LEFT, OTHER_MASKS, FillSettings
from dkrls_cli.cli.report import Report, Result, command_line
from dkrls_cli.cli.terminal.tables import bytes_text, pairs
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.cli.output.target import Target
    from dkrls_cli.files.patching.parts import AddedVariable, PatchedCopy
    from dkrls_cli.files.source import Source
    from dkrls_cli.model.tiling.fill import TiledFill
    from dkrls_cli.model.tiling.planning import FillRequest, TilePlan
    from dkrls_cli.tuning.footprint import Footprint


def can_be_tiled(sources: Sequence[Source]) -> bool:
    """Return whether variables can be read part by part, from one file that can be copied."""
    return all(source.read is not None and len(source.paths) < 2 for source in sources)


def refuse_untiled(
    sources: Sequence[Source], how: FillSettings, limit: float, *, is_copy: bool
) -> None:
    """Raise SettingError for what a grid beyond memory does not allow."""
    why = (
        f"Filling {shape_text(sources[0].axes)} takes more memory than the {bytes_text(limit)} of "
        "--max-memory, so it is filled in tiles, and "
    )
    if how.ensemble.members:
        raise SettingError(
            f"{why}members of an ensemble go together over the whole grid. Leave --ensemble out, "
            "or give a larger --max-memory."
        )
    if any(source.errors is not None for source in sources):
        raise SettingError(
            f"{why}--obs-error needs the whole grid. Leave it out, or give a larger --max-memory."
        )
    if not is_copy:
        raise SettingError(
            f"{why}tiles are written into a copy of the file. Give an output of the same kind as "
            "the input, or a larger --max-memory."
        )


def plan_all(sources: Sequence[Source], how: FillSettings, limit: float) -> list[TilePlan]:
    """Plan the tiles of every variable, or raise InputError if none are small enough."""
    from dkrls_cli.errors import InputError
    from dkrls_cli.model.tiling.layout import TilesTooLargeError
    from dkrls_cli.model.tiling.planning import plan_tiles, process_bytes

    request, plans = request_of(how), []
    for source in sources:
        try:
            plans.append(plan_tiles(source, how.settings, request, limit))
        except TilesTooLargeError as error:
            least = bytes_text(error.least + process_bytes())
            raise InputError(
                f"Even in tiles, filling {shape_text(source.axes)} needs about {least} of memory, "
                f"more than the {bytes_text(limit)} of --max-memory. Try a part of the grid, or a "
                "larger --max-memory."
            ) from None
    return plans


def request_of(how: FillSettings) -> FillRequest:
    """Return which cells to fill, and what to add."""
    from dkrls_cli.model.tiling.planning import FillRequest

    return FillRequest(
        how.mask, how.max_gap, how.within, how.max_std, how.std, extrapolate=how.extrapolate
    )


def fill_tiled(
    path: str,
    sources: Sequence[Source],
    plans: Sequence[TilePlan],
    how: FillSettings,
    target: Target,
    limit: float,
    threads: int | None,
    report: Report,
) -> list[Result]:
    """Fill variables tile by tile into a copy of their file, and return what was done."""
    from dkrls_cli.files.patching.parts import patched_copy
    from dkrls_cli.files.writing import history_line
    from dkrls_cli.threads import blas_threads

    assert target.path is not None
    for source, plan in zip(sources, plans, strict=True):
        report.note(f"Note: {plan_words(source, plan)}.")
    results = []
    with (
        patched_copy(path.rstrip("/"), target.path, overwrite=target.overwrite) as copy,
        blas_threads(threads),
    ):
        for source in sources:
            place = target if source is sources[-1] else None
            results.append(fill_variable(copy, source, how, limit, place, report))
        copy.add_history(history_line(command_line()))
    return results


def fill_variable(
    copy: PatchedCopy,
    source: Source,
    how: FillSettings,
    limit: float,
    target: Target | None,
    report: Report,
) -> Result:
    """Fill one variable in a copy of its file, and return what was done."""
    from dkrls_cli.cli.fitting.inputs import report_notes
    from dkrls_cli.model.tiling.fill import fill_in_tiles

    start = perf_counter()
    with copy.variable(source.name, added_errors(source, how)) as writer:
        with report.working(f"filling {shape_text(source.axes)} in tiles") as done:
            found = fill_in_tiles(
                source,
                how.settings,
                request_of(how),
                writer,
                limit,
                lambda what, share: done(share if what == "filling" else 0.0),
            )
        notes = writer.notes
    report_notes(source, report)
    report_tiled(found, notes, report)
    return tiled_result(source, found, perf_counter() - start, target)


def added_errors(source: Source, how: FillSettings) -> AddedVariable | None:
    """Return the variable of standard errors, if they are asked for."""
    from dkrls_cli.files.patching.parts import AddedVariable
    from dkrls_cli.grid.grid import std_variable

    if not how.std:
        return None
    name, attrs = std_variable(source.name, source.attrs)
    return AddedVariable(name, source.style.of_errors.dtype, attrs)


def report_tiled(found: TiledFill, written: Sequence[str], report: Report) -> None:
    """Report what was decided about land, bounds and tiles."""
    if found.note:
        report.note(f"Note: {found.note}. {OTHER_MASKS}")
    for note in [*found.notes, *written]:
        report.note(f"Note: {note}.")
    for warning in found.warnings:
        report.note(f"Warning: {warning}.")
    if found.missing and not found.filled:
        report.note(NOTHING_LEFT)


def tiled_result(source: Source, found: TiledFill, seconds: float, target: Target | None) -> Result:
    """Return what was filled, what was left, and how tiles fit together."""
    seams, layout, model = found.seams, found.layout, found.model
    facts: dict[str, Any] = {
        "variable": source.name,
        "cells": found.cells,
        "missing": found.missing,
        "filled": found.filled,
        "left": dict(found.left),
        "note": found.note or None,
        "cv_error": model.bars.error if model else None,
        "seconds": seconds,
        "tiles": layout.count if layout else 0,
        "seam_difference": seams.worst if seams else None,
        "seam_difference_of_a_cell": seams.largest if seams else None,
        "bytes_read": found.bytes_read,
    }
    words = {
        "variable": source.name,
        "grid": shape_text(source.axes),
        "filled": f"{found.filled} of {found.missing} missing cells",
        **{reason: str(number) for reason, number in found.left.items()},
        **({"cv error": f"{model.bars.error:.4g}"} if model else {}),
        **({"tiles": str(layout.count)} if layout else {}),
        **({"seams": seam_words(found)} if seams and seams.count else {}),
        **({"output": str(target.path)} if target else {}),
    }
    return facts, (pairs(words),)


def seam_words(found: TiledFill) -> str:
    """Return how far tiles differ where they meet, in words."""
    assert found.seams is not None
    worst, largest = found.seams.worst, found.seams.largest
    return f"differ by {worst:.2g} of the error bar at most ({largest:.2g} in a cell)"


def plan_words(source: Source, plan: TilePlan) -> str:
    """Return how a grid is cut into tiles, in words."""
    layout = plan.layout
    cuts = [layout.outer, *([layout.inner] if layout.inner else [])]
    along = " x ".join(f"{len(cut.cores)} along {source.axes[cut.axis].name}" for cut in cuts)
    return (
        f"{source.name} is filled in {layout.count} tiles ({along}): about "
        f"{bytes_text(plan.memory)} of memory, {bytes_text(plan.bytes_read)} read in "
        f"{plan.passes:.2g} passes, {bytes_text(plan.bytes_written)} written"
    )


def plan_result(source: Source, needs: Footprint, plan: TilePlan | None) -> Result:
    """Return what filling a variable would take: whole in memory, or in tiles."""
    facts: dict[str, Any] = {
        "variable": source.name,
        "cells": needs.cells,
        "memory_bytes": plan.memory if plan else needs.memory,
        "memory_bytes_whole": needs.memory,
        "tiles": plan.layout.count if plan else 1,
        "passes": plan.passes if plan else 1.0,
        "bytes_read": plan.bytes_read if plan else None,
        "bytes_written": plan.bytes_written if plan else None,
    }
    words = {
        "variable": source.name,
        "grid": shape_text(source.axes),
        "memory": f"about {bytes_text(facts['memory_bytes'])}"
        + (f", {bytes_text(needs.memory)} whole" if plan else ""),
        **({"tiles": plan_words(source, plan)} if plan else {}),
    }
    return facts, (pairs(words),)
