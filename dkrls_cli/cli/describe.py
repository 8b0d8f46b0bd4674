"""Levels and models as rows to print."""

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
    """One row per level, level 0 first; `axes` and `levels` in the order of the data."""
    by_name = {axis.name: (axis, level) for axis, level in zip(axes, levels, strict=True)}
    return [_row(i, *by_name[name]) for i, name in enumerate(hierarchy)]


def _row(depth: int, axis: Axis, level: Level | LevelRequest) -> dict[str, Any]:
    low, high = axis.take([axis.numbers.argmin(), axis.numbers.argmax()]).texts
    place = {"level": depth, "dimension": axis.name, "size": axis.size, "from": low, "to": high}
    return {**place, **_settings(level)}


def _settings(level: Level | LevelRequest) -> dict[str, Any]:
    """Settings of a level, or what is wished of it; what is to be chosen is auto."""
    from dkrls_cli.cascade.level import Level

    if isinstance(level, Level):
        kernel = level.kernel
        facts = {**kernel_facts(kernel), "constant": kernel.constant}
        return {**facts, "ridge": level.ridge, "period": kernel.period}
    wished = {"kernel": level.family, "sigma": level.sigma, "ridge": level.ridge}
    chosen = {key: "auto" if value is None else value for key, value in wished.items()}
    return {**chosen, "period": level.period}


def kernel_facts(kernel: Kernel) -> dict[str, Any]:
    """Family, sigma and cycle of a kernel."""
    return {"kernel": kernel.family, "sigma": kernel.sigma, "cycle": kernel.cycle}


def model_rows(model: Model) -> list[dict[str, Any]]:
    """One row per level of a trained model, with the directions it works with and keeps."""
    trained, errors = model.cascade, model.errors
    rows = level_rows(model.axes, model.hierarchy, trained.levels)
    for row in rows:
        place = model.dims.index(row["dimension"])
        row["cv_error"] = errors[place]
        row["rank"] = trained.spectra[place].rank
        row["kept"] = trained.core.shape[place]
    return rows


def missing_words(model: Model) -> dict[str, str]:
    """What was missing of the grid, and how the gaps were solved for."""
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
    """Names and sizes of the dimensions."""
    return " x ".join(f"{axis.name} {axis.size}" for axis in axes)
