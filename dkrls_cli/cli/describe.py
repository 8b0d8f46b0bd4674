"""Levels and models as rows of tables and as facts to print."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dkrls_cli.cli.terminal.tables import bytes_text, cell_text, table

if TYPE_CHECKING:
    from dkrls_cli.cascade.kernels import Kernel
    from dkrls_cli.cascade.level import Level
    from dkrls_cli.cli.terminal.tables import Layout
    from dkrls_cli.grid.axes import Axis
    from dkrls_cli.model.model import Model
    from dkrls_cli.model.planning.requests import LevelRequest


# Seconds in a unit of time.
_SECONDS = {
    "microsecond": 1e-6,
    "millisecond": 1e-3,
    "second": 1.0,
    "minute": 60.0,
    "hour": 3600.0,
    "day": 86400.0,
}
# Units of time from which on a larger unit is easier to read.
_MANY = 1000.0
# Accuracy, as a share of the spread of the data, to which missing cells are solved for where all
# settings are given: less is refused unless inexact answers are accepted.
_SETTLED = 1e-7
# Characters of units that stand in a table of 80 columns; longer ones are in the JSON only.
_WIDEST_UNITS = 16


def level_rows(
    axes: Sequence[Axis], hierarchy: Sequence[str], levels: Sequence[Level | LevelRequest]
) -> list[dict[str, Any]]:
    """Return one row per level, level 0 first; `axes` and `levels` are in the order of the data.

    Beside levels that are still to be chosen, those given whole have what all rows have.
    """
    by_name = {axis.name: (axis, level) for axis, level in zip(axes, levels, strict=True)}
    rows = [_level_row(depth, *by_name[name]) for depth, name in enumerate(hierarchy)]
    return [{key: row[key] for key in row if all(key in other for other in rows)} for row in rows]


def _level_row(depth: int, axis: Axis, level: Level | LevelRequest) -> dict[str, Any]:
    """Return the coordinates and the settings of one level."""
    low, high = axis.take([axis.numbers.argmin(), axis.numbers.argmax()]).texts
    place = {"level": depth, "dimension": axis.name, "size": axis.size, "from": low, "to": high}
    return {**place, **_with_units(_level_settings(level), axis)}


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
    """Return name, sigma and cycle of a kernel; a spline has no sigma."""
    sigma = None if kernel.is_spline else kernel.sigma
    return {"kernel": kernel.name, "sigma": sigma, "cycle": kernel.cycle}


def _with_units(facts: Mapping[str, Any], axis: Axis) -> dict[str, Any]:
    """Return the facts of a level with the units of its sigma behind it; None if not known."""
    own, warp = axis.length_units or None, str(facts["kernel"]).rpartition("-")[0]
    units = {"sigma_units": f"{warp}({own})" if own and warp else own}
    pairs = [{key: value} | (units if key == "sigma" else {}) for key, value in facts.items()]
    return {key: value for pair in pairs for key, value in pair.items()}


def level_table(rows: Sequence[Mapping[str, Any]]) -> Layout:
    """Return rows with sigmas as a table, each sigma with its units in one cell."""
    shown = []
    for row in rows:
        sigma, units = row["sigma"], row["sigma_units"]
        cells = {**row, "sigma": length_text(sigma, units) if units and sigma else sigma}
        shown.append({key: value for key, value in cells.items() if key != "sigma_units"})
    return table(shown)


def length_text(length: float | str, units: str) -> str:
    """Return a length with its units; many seconds or hours are told in days.

    A length that is not a number, and units too wide for a table, stand alone.

    >>> length_text(12.3456, "degrees_north"), length_text(43200.0, "hours"), length_text(30.0, "s")
    ('12.35 degrees_north', '1800 days', '30 s')
    """
    if not isinstance(length, float) or len(units) > _WIDEST_UNITS:
        return cell_text(length)
    seconds = _SECONDS.get(units.lower().removesuffix("s"))
    if seconds is not None and length >= _MANY:
        larger = [word for word, one in _SECONDS.items() if length * seconds >= one >= seconds]
        return f"{cell_text(length * seconds / _SECONDS[larger[-1]])} {larger[-1]}s"
    return f"{cell_text(length)} {units}"


def model_rows(model: Model) -> list[dict[str, Any]]:
    """Return one row per level of a model: settings, error, directions used and stored."""
    levels = {level.name: level for level in model.levels}
    rows = level_rows(model.axes, model.hierarchy, [levels[dim] for dim in model.dims])
    measured = zip(model.errors, model.ranks, model.stored_shape, strict=True)
    by_name = dict(zip(model.dims, measured, strict=True))
    for row in rows:
        row["cv_error"], row["rank"], row["kept"] = by_name[row["dimension"]]
        if row["size"] == 1:
            row["cv_error"] = None  # no slice can be left out
    return rows


def cv_words(model: Model) -> dict[str, str]:
    """Return the error on slices or cells left out, beside the spread of the data."""
    by_level = dict(zip(model.dims, model.errors, strict=True))
    errors = {
        dim: by_level[dim]
        for dim in model.hierarchy
        if model.joint_ridge is not None or model.axis_of(dim).size > 1
    }
    if not errors or not all(map(math.isfinite, errors.values())):
        return {}
    units, spread = str(model.attrs.get("units", "")), model.spread
    if len(set(errors.values())) == 1:
        text = f"{next(iter(errors.values())):.3g} {units}".rstrip()
    else:
        text = ", ".join(f"{dim} {error:.3g}" for dim, error in errors.items()) + f" {units}"
    if not spread > 0:
        return {"cv error": text.rstrip()}
    low, high = (f"{100 * end(errors.values()) / spread:.2g}" for end in (min, max))
    span = high if low == high else f"{low} to {high}"
    comma = ";" if "," in text else ","
    return {"cv error": f"{text.rstrip()}{comma} {span} % of the standard deviation"}


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
        **({"group": _group_text(known)} if known.get("group") else {}),
    }


def robust_words(model: Model) -> dict[str, str]:
    """Return which cells a robust fit did without; empty if the fit was not robust."""
    known = model.origin.get("robust")
    if not known:
        return {}
    kinds = ", ".join(f"{count} {kind}" for kind, count in known["kinds"].items())
    share = f"{known['cells']} cells, {100 * known['share']:.3g} %"
    return {"left out as bad": f"{share}: {kinds}" if kinds else "no cell"}


def error_words(model: Model) -> dict[str, str]:
    """Return how large errors of the observations are; empty if these have none."""
    known = model.origin.get("observation_errors")
    if not known:
        return {}
    units = str(model.attrs.get("units", ""))
    least, median, most = (f"{known[key]:.4g}" for key in ("least", "median", "most"))
    source = known.get("source")
    named = f", from {source}" if isinstance(source, str) else ""
    if least == most:
        return {"observation errors": f"{most} {units}".rstrip() + named}
    span = f"{least} to {most} {units}".rstrip()
    return {"observation errors": f"{span} (median {median}){named}"}


def pole_facts(model: Model) -> dict[str, Any] | None:
    """Return how a model is continued across the poles, and the rows added behind each end."""
    rows = model.poles
    if rows is None:
        return None
    return {"kind": model.across_poles, "rows": [len(rows.before), len(rows.after)]}


def pole_words(model: Model) -> dict[str, str]:
    """Return the same in words; empty if the data ends at the poles."""
    rows = model.poles
    if rows is None:
        return {}
    word = "a scalar" if rows.sign == 1 else "a component of a vector"
    ends = zip((0, -1), (rows.before, rows.after), strict=True)
    numbers = model.axes[rows.latitude].numbers
    reached = {"south" if numbers[end] < 0 else "north" for end, added in ends if added}
    where = "both poles" if len(reached) > 1 else f"the {reached.pop()} pole"
    return {"poles": f"continued across {where} as {word}"}


def _group_text(known: Mapping[str, Any]) -> str:
    """Return which dimensions share one distance, and the second scale if there is one."""
    where = ", on the sphere" if known.get("sphere") else ""
    text, second = (
        f"{', '.join(known['group'])} share one distance{where}",
        known.get("second_scale"),
    )
    if not second:
        return text
    return (
        f"{text}; a second scale of {second['factor']:.2g} of the first has "
        f"{100 * second['share']:.3g} % of the variance"
    )


def tolerance_words(model: Model) -> dict[str, str]:
    """Return how far answers are from those of the full model; empty if no tolerance was given."""
    known = model.origin.get("tolerance")
    if not known:
        return {}
    limit = f"{known['limit']:.4g} {model.attrs.get('units', '')}".rstrip()
    small, full = known["bytes"], known["full_bytes"]
    return {
        "tolerance": limit if limit == known["given"] else f"{limit} ({known['given']})",
        "differences": f"at most {known['max']:.4g}, root mean square {known['rms']:.4g}",
        "stored": f"{bytes_text(small)} of {bytes_text(full)}"
        if small < full
        else "the full model: no smaller one is within the tolerance",
    }


def fit_options(model: Model) -> tuple[dict[str, Any], list[str]]:
    """Return the options of a fit that gives a model back from the same data, and notes on them.

    Levels are given whole, so that nothing is chosen again. Where that is not possible, settings
    are those that were asked for, and the others are chosen again as they were.
    """
    from dkrls_cli.cascade.kernels import kernel_text

    asked = dict(model.origin.get("options", {}))
    notes = [f"mean {asked['mean']} was set in Python: no option does"] if "mean" in asked else []
    found: dict[str, Any] = {"var": model.name, "levels": list(model.hierarchy)}
    group = (model.origin.get("missing") or {}).get("group")
    if group or asked.get("robust"):
        why = f"{' and '.join(group)} share one distance" if group else "cells are left out"
        notes.append(f"{why}: settings are chosen again from the data")
        found |= {key: asked[key] for key in ("kernel", "sigma", "ridge", "period") if key in asked}
    else:
        levels = {level.name: level for level in model.levels}
        own = [(dim, levels[dim]) for dim in model.hierarchy]
        found["kernel"] = {dim: kernel_text(level.kernel) for dim, level in own}
        found["sigma"] = {dim: level.kernel.sigma for dim, level in own}
        joint = model.joint_ridge
        found["ridge"] = {dim: one.ridge for dim, one in own} if joint is None else joint
        found["period"] = {dim: one.kernel.period or "none" for dim, one in own}
        if model.origin.get("missing"):
            notes.append("missing cells are solved for again, to the accuracy of the solve")
    found |= _other_options(model, asked)
    if model.origin.get("observation_errors") and "obs-error" not in found:
        notes.append("errors of the observations were given by a file or an array: add obs-error")
    return found, notes


def _other_options(model: Model, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a fit besides those of its levels."""
    missing = model.origin.get("missing") or {}
    group, bounds = missing.get("group"), asked.get("bounds")
    errors = model.origin.get("observation_errors") or {}
    found = {
        "noise": "joint" if model.joint_ridge is not None else None,
        "missing": asked.get("missing"),
        "group": ",".join(group or ()) or ("none" if missing else None),
        "accept-inexact": asked.get("accept_inexact") or missing.get("residual", 0.0) > _SETTLED,
        "poles": model.across_poles,
        "robust": asked.get("robust"),
        "obs-error": errors.get("source"),
        "bounds": bounds if bounds is None or isinstance(bounds, str) else _pair_text(bounds),
        "folds": asked.get("folds"),
        "compact": asked.get("compact"),
        "tolerance": asked.get("tolerance"),
        "float32": asked.get("dtype") == "float32",
        "cell-means-along": ",".join(model.cell_means) or None,
    }
    return {name: value for name, value in found.items() if value not in (None, False)}


def _pair_text(bounds: Sequence[float | None]) -> str:
    """Return bounds as an option takes them, an open end empty."""
    return ",".join("" if end is None else repr(end) for end in bounds)


def shape_text(axes: Sequence[Axis]) -> str:
    """Return the names and sizes of the dimensions, such as "lat 73 x lon 144"."""
    return " x ".join(f"{axis.name} {axis.size}" for axis in axes)
