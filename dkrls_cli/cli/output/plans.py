"""Plans of answers for a dry run: what they would take, and in how many parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dkrls_cli.cli.describe import shape_text
from dkrls_cli.cli.output.answers import made_at_once, refuse_taken_names
from dkrls_cli.cli.output.rows import ROW_FORMATS, refuse_different_grids
from dkrls_cli.cli.output.streams import stream_facts, stream_result
from dkrls_cli.cli.report import Result
from dkrls_cli.cli.terminal.tables import bytes_text, pairs
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.cli.output.target import Target
    from dkrls_cli.files.source import Source
    from dkrls_cli.model.answering.answers import Query
    from dkrls_cli.model.streaming.request import Streamed
    from dkrls_cli.model.validation.planning import ValidationPlan


def refuse_unplanned(**given: object) -> None:
    """Raise SettingError if answers are asked for of which no plan is made; by their options."""
    named = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if named:
        raise SettingError(
            f"--dry-run tells the plan of answers on a grid, not of {' with '.join(named)}. Leave "
            "one of them out."
        )


def plan_answers(queries: Sequence[Query], target: Target, std: bool) -> list[Result]:
    """Return what answers of models that hold their data would take, or raise as these do."""
    from dkrls_cli.model.planning.answers import predict_memory

    refuse_impossible(queries, target, std)
    at_once, results, held = made_at_once(queries, target), [], 0
    for query in queries:
        memory = predict_memory(query, std=std, form=target.form, at_once=at_once, held=held)
        held += math.prod(query.shape) if math.isinf(at_once) else 0
        taken = {
            "parts": 1,
            "memory_bytes": memory,
            "passes": 0.0,
            "bytes_read": 0,
            "bytes_kept_meanwhile": 0,
            "bytes_written": _bytes_written(query, target, std),
        }
        results.append(result_in_memory(query, taken))
    return results


def plan_parts(streams: Sequence[Streamed], target: Target, *, held: bool) -> list[Result]:
    """Return what answers made part by part would take; `held`: until all of them are written."""
    std = streams[0].answers.std
    refuse_impossible([one.query for one in streams], target, std)
    results, before = [], 0
    for one in streams:
        facts = stream_facts(one)
        if held:
            from dkrls_cli.model.planning.answers import gathered_memory

            before += math.prod(one.query.shape)
            facts["memory_bytes"] = gathered_memory(one, before, std=std)
            facts["bytes_written"] = _bytes_written(one.query, target, std)
        results.append(stream_result(one.source, one.query, facts, None))
    return results


def plan_validation(source: Source, plan: ValidationPlan) -> Result:
    """Return what measuring on a grid would take."""
    query = plan.query
    facts: dict[str, Any] = {
        "parts": plan.parts,
        "memory_bytes": plan.memory,
        "passes": plan.bytes_read / plan.bytes_stored,
        "bytes_read": plan.bytes_read,
        "bytes_kept_meanwhile": plan.bytes_spooled,
        "bytes_written": 0,
    }
    if not plan.in_memory:
        return stream_result(source, query, facts, None)
    return result_in_memory(query, facts)


def refuse_impossible(queries: Sequence[Query], target: Target, std: bool) -> None:
    """Raise SettingError if answers cannot be written together."""
    refuse_taken_names([query.model for query in queries], std)
    if target.form in ROW_FORMATS:
        refuse_different_grids([(query.model.name, query.axes) for query in queries])


def result_in_memory(query: Query, taken: Mapping[str, Any]) -> Result:
    """Return what answers in memory would take, and what that is."""
    facts: dict[str, Any] = {
        "variable": query.model.name,
        "from": shape_text(query.model.coverage.axes),
        "to": shape_text(query.axes),
        "outside": query.outside_count,
        "land": query.land_count,
        **taken,
    }
    words = {name: facts[name] for name in ("variable", "from", "to")}
    told = [f"in memory, about {bytes_text(taken['memory_bytes'])} of memory"]
    moved = (("read", taken["bytes_read"]), ("written", taken["bytes_written"]))
    told += [f"{bytes_text(size)} {what}" for what, size in moved if size]
    words["work"] = ", ".join(told)
    return facts, (pairs(words),)


def _bytes_written(query: Query, target: Target, std: bool) -> int | None:
    """Return the bytes of answers as they are written, before compression; None for text."""
    from numpy import dtype

    if target.form in ROW_FORMATS:
        return None
    return math.prod(query.shape) * dtype(query.model.style.dtype).itemsize * (1 + std)
