"""Memory that fits need: estimated beforehand, and refused where it is more than allowed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dkrls_cli.cli.describe import shape_text
from dkrls_cli.cli.output.streams import SchedulerOptions
from dkrls_cli.cli.terminal.tables import bytes_text
from dkrls_cli.errors import SettingError

if TYPE_CHECKING:
    from dkrls_cli.files.source import Source
    from dkrls_cli.grid.grid import Grid
    from dkrls_cli.model.settings import Settings
    from dkrls_cli.tuning.footprint import Footprint


def estimates(
    sources: Sequence[Source],
    settings: Settings,
    *,
    gaps: bool = False,
    loaded: bool = False,
    saved: bool = False,
    besides: int = 0,
    answers: int = 0,
) -> list[Footprint]:
    """Estimate what fitting each of several variables takes, one after the other.

    With `gaps`, cells are missing; observations with errors take as much. With `loaded`, the data
    has been read, as that of tables always has. With `saved`, models are written. `besides` are
    bytes that are held during the fits, `answers` those of answers after them.
    """
    from dkrls_cli.memory import held_bytes, peak_bytes
    from dkrls_cli.model.planning.plan import group_memory, pole_shape
    from dkrls_cli.tuning.footprint import Machine, footprint, kept_memory

    machine, kept, found = Machine(held_bytes(), peak_bytes()), besides, []
    for source in sources:
        in_holes = gaps or source.errors is not None
        whole = source.shape if source.errors is not None else pole_shape(source.axes, settings)
        needs = footprint(
            source.shape,
            source.dtype,
            storage=settings.dtype,
            compact=settings.compact,
            joint=settings.noise == "joint",
            gaps=in_holes,
            loaded=loaded or source.table is not None,
            saved=saved,
            others=kept,
            answers=answers,
            sphere=group_memory(source.axes, settings) if gaps else 0,
            added=math.prod(whole) - math.prod(source.shape),
            machine=machine,
        )
        found.append(needs)
        kept += kept_memory(whole, settings.dtype, "float64" if in_holes else source.dtype)
    return found


def exceeds(sources: Sequence[Source], settings: Settings, limit: float, answers: int = 0) -> bool:
    """Return whether fits in memory would need more than is allowed."""
    return any(needs.memory > limit for needs in estimates(sources, settings, answers=answers))


def has_large_land(sources: Sequence[Source], settings: Settings, limit: float) -> bool:
    """Return whether a grid has land, and a fit through it would need more memory than allowed.

    One time of such a grid is looked at, and nothing of grids that are small enough.
    """
    from dkrls_cli.model.lasting.land import find_land

    if settings.missing == "error" or not can_be_streamed(sources):
        return False
    pairs = zip(sources, estimates(sources, settings, gaps=True), strict=True)
    return any(needs.memory > limit and find_land(source) is not None for source, needs in pairs)


def can_be_streamed(sources: Sequence[Source]) -> bool:
    """Return whether variables can be read part by part."""
    return all(source.reader is not None for source in sources)


def refuse_whole(sources: Sequence[Source], scheduling: SchedulerOptions) -> None:
    """Raise SettingError if work is to go part by part on what can only be read as a whole."""
    if scheduling.is_given and not can_be_streamed(sources):
        raise SettingError(
            f"'{sources[0].name}' can only be read as a whole: --scheduler and --resume are for "
            "NetCDF and Zarr. Leave them out."
        )


def refuse_too_large(
    sources: Sequence[Source],
    settings: Settings,
    limit: float,
    **held: Any,
) -> None:
    """Raise InputError if fits would need more memory than allowed, before any is used.

    Keywords are those of :func:`estimates`.
    """
    for source, needs in zip(sources, estimates(sources, settings, **held), strict=True):
        _refuse_above(limit, needs, f"Fitting {shape_text(source.axes)}", settings)
        if settings.robust:
            refuse_large_check(source, limit)


def refuse_large_check(source: Source, limit: float) -> None:
    """Raise InputError if checking a variable needs more memory than allowed."""
    from math import prod

    from dkrls_cli.errors import InputError
    from dkrls_cli.model.quality.check import check_memory

    needs = check_memory(prod(source.shape))
    if needs > limit:
        raise InputError(
            f"Checking {shape_text(source.axes)} needs about {bytes_text(needs)} of memory, more "
            f"than the {bytes_text(limit)} of --max-memory. Try a part of the grid, or a larger "
            "--max-memory."
        )


def refuse_large_gaps(
    source: Source, grid: Grid, settings: Settings, limit: float, *, loaded: bool = True
) -> None:
    """Raise InputError if cells are missing and fitting through them would need too much memory.

    Whether cells are missing is known only when the data has been read. It is then held by the
    process, which a part of it to be taken is not: that is not `loaded`.
    """
    if settings.missing == "error" or grid.is_complete:
        return
    (needs,) = estimates([source], settings, gaps=True, loaded=loaded)
    what = f"Fitting {shape_text(source.axes)} through its missing cells"
    _refuse_above(limit, needs, what, settings)


def _refuse_above(limit: float, needs: Footprint, what: str, settings: Settings) -> None:
    """Raise InputError if something needs more memory than the limit."""
    from dkrls_cli.errors import InputError

    if needs.memory > limit:
        other = ", --noise level (which needs less)" if settings.noise == "joint" else ""
        raise InputError(
            f"{what} needs about {bytes_text(needs.memory)} of memory, more than the "
            f"{bytes_text(limit)} of --max-memory. Try a part of the grid{other}, or a larger "
            "--max-memory."
        )
