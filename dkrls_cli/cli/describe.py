"""Levels and models as rows of tables and as facts to print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dkrls_cli.cascade.kernels import Kernel
    from dkrls_cli.cascade.level import Level
    from dkrls_cli.grid.axes import Axis
    from dkrls_cli.model.model import Model
    from dkrls_cli.model.settings import LevelRequest


def level_rows(
    axes: Sequence[Axis], hierarchy: Sequence[str], levels: Sequence[Level | LevelRequest]
) -> list[dict[str, Any]]:
    """Return one row per level, level 0 first; `axes` and `levels` are in the order of the data."""
    by_name = {axis.name: (axis, level) for axis, level in zip(axes, levels, strict=True)}
    return [_level_row(depth, *by_name[name]) for depth, name in enumerate(hierarchy)]


def _level_row(depth: int, axis: Axis, level: Level | LevelRequest) -> dict[str, Any]:
    """Return the coordinates and the settings of one level."""
    low, high = axis.take([axis.numbers.argmin(), axis.numbers.argmax()]).texts
    place = {"level": depth, "dimension": axis.name, "size": axis.size, "from": low, "to": high}
    return {**place, **_level_settings(level)}


def _level_settings(level: Level | LevelRequest) -> dict[str, Any]:
    """Return the settings of a level; ``auto`` for one that is still to be chosen."""
    from dkrls_cli.cascade.level import Level

    if isinstance(level, Level):
        kernel = level.kernel
        facts = {**kernel_facts(kernel), "constant": kernel.constant}
        return {**facts, "ridge": level.ridge, "period": kernel.period}
    given = {"kernel": level.family, "sigma": level.sigma, "ridge": level.ridge}
    settings = {key: "auto" if value is None else value for key, value in given.items()}
    return {**settings, "period": level.period}


def kernel_facts(kernel: Kernel) -> dict[str, Any]:
    """Return family, sigma and cycle of a kernel."""
    return {"kernel": kernel.family, "sigma": kernel.sigma, "cycle": kernel.cycle}


def model_rows(model: Model) -> list[dict[str, Any]]:
    """Return one row per level of a model: settings, error, directions used and stored."""
    levels = {level.name: level for level in model.levels}
    rows = level_rows(model.axes, model.hierarchy, [levels[dim] for dim in model.dims])
    measured = zip(model.errors, model.ranks, model.stored_shape, strict=True)
    by_name = dict(zip(model.dims, measured, strict=True))
    for row in rows:
        row["cv_error"], row["rank"], row["kept"] = by_name[row["dimension"]]
    return rows


def missing_words(model: Model) -> dict[str, str]:
    """Return what was missing in the grid and how the gaps were solved; empty if nothing was."""
    known = model.origin.get("missing")
    if not known:
        return {}
    tried = known["settings_tried"]
    return {
        "missing": f"{100 * known['share']:.3g} % of the cells: {known['pattern']}",
        "typical gap": known["typical_gap"],
        "solved": f"to {known['residual']:.2g} in {known['iterations']} steps"
        + (f", after {tried} settings tried" if tried else ""),
    }


def shape_text(axes: Sequence[Axis]) -> str:
    """Return the names and sizes of the dimensions, such as "lat 73 x lon 144"."""
    return " x ".join(f"{axis.name} {axis.size}" for axis in axes)
