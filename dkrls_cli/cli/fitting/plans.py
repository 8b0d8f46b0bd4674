"""Plans of fits for a dry run: what they would do and take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dkrls_cli.cli.describe import level_rows, level_table, shape_text
from dkrls_cli.cli.fitting.inputs import report_notes
from dkrls_cli.cli.fitting.memory import estimates
from dkrls_cli.cli.report import Report, Result
from dkrls_cli.cli.terminal.tables import bytes_text, pairs

if TYPE_CHECKING:
    from dkrls_cli.files.source import Source
    from dkrls_cli.model.settings import Settings
    from dkrls_cli.tuning.footprint import Footprint


def plan_results(
    sources: Sequence[Source],
    settings: Settings,
    report: Report,
    *,
    answers: int | None = None,
    besides: int | None = None,
) -> list[Result]:
    """Check the settings as fits do, and return what these would do and take.

    Models are saved, or give `answers` of so many bytes instead, or are compared with what is held
    out, with so many bytes held `besides`.
    """
    held: dict[str, Any] = {"saved": True} if answers is None else {"answers": answers}
    held = held if besides is None else {"besides": besides}
    complete = estimates(sources, settings, **held)
    with_gaps: Sequence[Footprint | None] = [None] * len(sources)
    if settings.missing == "model":
        with_gaps = estimates(sources, settings, gaps=True, **held)
    each = zip(sources, complete, with_gaps, strict=True)
    return [plan_result(*one, settings, report) for one in each]


def plan_result(
    source: Source, needs: Footprint, gaps: Footprint | None, settings: Settings, report: Report
) -> Result:
    """Check the settings as a fit does, and return what it would do and take.

    `gaps` is what it would take if cells are missing, which is known once the data is read.
    """
    from dkrls_cli.model.planning.plan import plan_fit

    report_notes(source, report)
    if settings.allowed is not None:
        settings.allowed.check_units(source.name, source.attrs)
    plan = plan_fit(source.axes, settings, errors=source.errors is not None)
    for what, found in (("memory", needs), ("memory if cells are missing", gaps)):
        if found is not None:
            parts = {part: bytes_text(size) for part, size in found.parts.items()}
            report.detail("", f"{source.name}: {what}", pairs(parts))
    if_gaps = f", {bytes_text(gaps.memory)} if cells are missing" if gaps else ""
    rows = level_rows(source.axes, plan.hierarchy, plan.levels)
    facts: dict[str, Any] = {
        "variable": source.name,
        "cells": needs.cells,
        "memory_bytes": needs.memory,
        "memory_bytes_with_gaps": gaps.memory if gaps else None,
        "memory_parts": dict(needs.parts),
        "operations": needs.operations,
        "joint_ridge": plan.joint_ridge,
        "poles": plan.poles.kind if plan.poles else "none",
    }
    words = {
        "variable": source.name,
        "grid": shape_text(source.axes),
        "memory": f"about {bytes_text(needs.memory)}{if_gaps}",
        "work": f"about {needs.operations:.2g} operations",
        **({"joint ridge": plan.joint_ridge or "auto"} if plan.joint else {}),
        **({"poles": plan.poles.kind} if plan.poles else {}),
    }
    return {**facts, "levels": rows}, (pairs(words), level_table(rows))
