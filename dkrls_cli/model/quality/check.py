"""Every cell of a grid against what the others say of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dkrls_cli.arrays import Array, Indices
from dkrls_cli.cascade.level import Level
from dkrls_cli.checking.choice import CheckAxis
from dkrls_cli.checking.survey import FALSE_ALARM, GOOD, MISSING, SPIKE, Survey, survey
from dkrls_cli.circle import nearest
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.grid.axes import Axis, index_axis
from dkrls_cli.grid.cf import place_of
from dkrls_cli.grid.grid import Coordinates, Grid, GridLike, as_grid, is_labelled, to_data_array
from dkrls_cli.model.chunked.loading import refuse_large
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.planning.requests import FitPlan
from dkrls_cli.model.quality.checked import Checked, expected_variables, flag_variable
from dkrls_cli.model.settings import DEFAULTS, PerLevel, Settings

if TYPE_CHECKING:
    import xarray as xr

    from dkrls_cli.model.model import Model

# Bytes of memory for each cell of a grid that is checked, measured, and of blocks besides.
_BYTES_PER_CELL, _BESIDES = 330, 10**8

# Slices of a model before the new ones, and after, that these are compared with.
_CONTEXT = 256


def check(
    data: GridLike,
    coordinates: Coordinates | None = None,
    *,
    model: Model | None = None,
    levels: Sequence[Level | str] | None = DEFAULTS.levels,
    kernel: PerLevel[str] = DEFAULTS.kernel,
    sigma: PerLevel[float | str] = DEFAULTS.sigma,
    ridge: PerLevel[float | str] = DEFAULTS.ridge,
    period: PerLevel[float | str | None] = DEFAULTS.period,
    false_alarm: float = FALSE_ALARM,
) -> xr.Dataset:
    """Flag the cells of a grid that the others speak against.

    Every cell is predicted from all others, left out in closed form, see
    :mod:`dkrls_cli.checking.fibres`. Kinds of findings are spikes (single cells), sensors that are
    stuck or jump, slices out of line or repeated, and units that change.

    Parameters
    ----------
    data
        An xarray.DataArray, a Grid or an array of numbers; NaN where cells are missing. A chunked
        DataArray is loaded, and refused if it does not fit into memory.
    coordinates
        For an array of numbers, a coordinate vector per axis, by name or in order.
    model
        A trained model: the data is then new slices, which are compared with those that the model
        was fitted to and with each other.
    levels, kernel, sigma, ridge, period
        Settings of the predictions, as for :func:`dkrls_cli.fit`. What is ``auto`` is chosen by a
        measure that bad cells do not move.
    false_alarm
        Share of good cells that may be flagged as spikes.

    Returns
    -------
    xarray.Dataset
        The data, its flags (name with ``_flag`` behind, CF ``flag_values`` and ``flag_meanings``),
        what is expected of each cell (``_expected``), and the usual size of the difference as a
        standard deviation (``_expected_std``).

    Raises
    ------
    InputError
        If the data cannot be used, or does not fit the model.
    SettingError
        If a setting is not possible.

    Examples
    --------
    >>> x, t = np.linspace(0, 3, 16), np.arange(20.0)
    >>> values = np.outer(np.sin(x), np.cos(t / 4))
    >>> values += 0.01 * np.random.default_rng(0).normal(size=values.shape)
    >>> values[3, 7] += 1
    >>> found = check(values, {"x": x, "t": t})
    >>> np.argwhere(found.values_flag.values == 1)
    array([[3, 7]])
    """
    refuse_large(data)
    grid = as_grid(data, coordinates)
    settings = Settings(levels, kernel, sigma, ridge, period)
    if model is None:
        checked = check_grid(grid, settings, false_alarm=false_alarm)
    else:
        if settings != DEFAULTS:
            given = next(iter(settings.given))
            raise SettingError(f"The setting '{given}' is for a grid alone. Leave it out.")
        checked = check_slices(model, grid, false_alarm=false_alarm)
    return _labelled(data, checked)


def check_grid(
    grid: Grid, settings: Settings = DEFAULTS, *, false_alarm: float = FALSE_ALARM
) -> Checked:
    """Check a grid as :func:`check` does, with settings that are one value.

    Parameters
    ----------
    grid
        Values on named axes, NaN where cells are missing.
    settings
        Of these, levels, kernels, sigmas, ridges and periods.
    false_alarm
        Share of good cells that may be flagged as spikes.

    Returns
    -------
    Checked
        Flags, and what is expected.

    Raises
    ------
    InputError, SettingError
        As for :func:`check`.

    Examples
    --------
    >>> values = np.outer(np.sin(np.arange(20) / 4), np.cos(np.arange(30) / 4))
    >>> values += 0.01 * np.random.default_rng(0).normal(size=values.shape)
    >>> values[7, 9] += 1
    >>> check_grid(as_grid(values)).counts
    {'spike': 1}
    """
    if not 0 < false_alarm < 0.5:
        raise SettingError(
            f"Invalid false-alarm rate {false_alarm}. Give a share between 0 and 0.5, like 0.001.",
            setting="false_alarm",
        )
    infinite = int(np.count_nonzero(np.isinf(grid.values)))
    if infinite:
        raise InputError(
            f"{infinite} of {grid.values.size} values are infinite. Expected finite numbers, or "
            "NaN for missing cells."
        )
    grid.refuse_unsuitable()
    kept, sources = zip(*(_distinct(axis) for axis in grid.axes), strict=True)
    axes = [axis.take(places) for axis, places in zip(grid.axes, kept, strict=True)]
    plan = plan_fit(axes, replace(settings, noise="level", folds=None, group="none"))
    places = [
        some[np.argsort(axis.numbers, kind="stable")] for some, axis in zip(kept, axes, strict=True)
    ]
    ordered = [axis.take(p) for axis, p in zip(grid.axes, places, strict=True)]
    values = np.asarray(grid.values, np.float64)[np.ix_(*places)]
    found = survey(values, _check_axes(ordered, plan), _along(ordered, plan), false_alarm)
    back = np.ix_(*(_inverse(p, source) for p, source in zip(places, sources, strict=True)))
    return _judge_repeats(_checked(grid, found, back), values[back])


def check_slices(model: Model, grid: Grid, *, false_alarm: float = FALSE_ALARM) -> Checked:
    """Check new slices against those of a model, and against each other.

    Parameters
    ----------
    model
        The model. Of a long one, the slices next to the new ones are compared with.
    grid
        The new slices, in any order of dimensions.
    false_alarm
        Share of good cells that may be flagged as spikes.

    Returns
    -------
    Checked
        Flags of the new slices, on the axes of the model.

    Raises
    ------
    InputError
        If the slices do not fit the model.
    """
    from dkrls_cli.model.updating.alignment import align

    values, new = align(model, grid)
    grows = model.grows
    near = _slices_near(model.axes[grows], new)
    together = np.concatenate([np.take(_known_values(model), near, grows), values], grows)
    axis = _joined_axis(model.axes[grows].take(near), new)
    axes = tuple(axis if place == grows else one for place, one in enumerate(model.axes))
    whole = Grid(together, axes, model.name, model.attrs)
    settings = Settings(list(model.hierarchy))
    found = check_grid(whole, settings, false_alarm=false_alarm)
    theirs = tuple(new if place == grows else one for place, one in enumerate(model.axes))
    asked = Grid(values, theirs, model.name, model.attrs, grid.style)
    fresh = np.arange(near.size, axis.size)
    return replace(
        found,
        grid=asked,
        flags=np.take(found.flags, fresh, grows),
        expected=np.take(found.expected, fresh, grows),
        std=np.take(found.std, fresh, grows),
        units=np.take(found.units, fresh, grows),
    )


def _slices_near(own: Axis, new: Axis) -> Indices:
    """Return the places of the slices of a model that new ones are compared with, in order.

    A slice at the coordinate of a new one is left out: the new one would take its place.
    """
    ends = np.array([new.numbers.min(), new.numbers.max()])
    others = np.flatnonzero(~nearest(own.numbers, new.numbers, own.turn)[1])
    if own.labels is not None:
        return others[-_CONTEXT:]
    beyond = np.abs(own.numbers[others][:, None] - ends).min(axis=1)
    inside = (own.numbers[others] >= ends[0]) & (own.numbers[others] <= ends[1])
    order = np.argsort(np.where(inside, 0.0, beyond), kind="stable")
    return np.sort(others[order[:_CONTEXT]])


def _joined_axis(own: Axis, new: Axis) -> Axis:
    """Return the axis of old and new slices together; labels are counted."""
    if own.labels is not None:
        return index_axis(own.name, own.size + new.size)
    return replace(own, numbers=np.concatenate([own.numbers, new.numbers]), written=None)


def _known_values(model: Model) -> Array:
    """Return the data of a model, NaN where it had none."""
    seen = model.observations
    values = model.cascade.predict() if seen is None else seen.values.copy()
    if seen is None and model.unobserved is not None:
        values[model.unobserved] = np.nan
    return values


def check_memory(cells: int) -> int:
    """Return the bytes that checking a grid of so many cells takes."""
    return _BYTES_PER_CELL * cells + _BESIDES


def _distinct(axis: Axis) -> tuple[Indices, Indices]:
    """Return the places of coordinates that are not repeated, and for all the one they repeat."""
    kept = np.asarray(axis.distinct, np.intp)
    if kept.size == axis.size:
        return kept, kept
    return kept, kept[nearest(axis.numbers, axis.numbers[kept], axis.turn)[0]]


def _inverse(places: Indices, source: Indices) -> Indices:
    """Return where in an order each of some places is."""
    rank = np.empty(int(source.max()) + 1, np.intp)
    rank[places] = np.arange(places.size)
    return rank[source]


def _check_axes(axes: Sequence[Axis], plan: FitPlan) -> list[CheckAxis]:
    """Return the axes as plain numbers, with the settings that were given."""
    result = []
    for axis, level in zip(axes, plan.levels, strict=True):
        ordered = axis.labels is None
        if isinstance(level, Level):
            kernel = level.kernel
            about = CheckAxis(
                axis.numbers, kernel.period, ordered, kernel.family, kernel.sigma, level.ridge
            )
        else:
            about = CheckAxis(
                axis.numbers, level.period, ordered, level.family, level.sigma, level.ridge
            )
        result.append(about)
    return result


def _along(axes: Sequence[Axis], plan: FitPlan) -> int | None:
    """Return the axis along which slices follow each other: the last level, if it is no place."""
    last = [axis.name for axis in axes].index(plan.hierarchy[-1])
    axis = axes[last]
    return last if axis.labels is None and place_of(axis) is None else None


def _checked(grid: Grid, found: Survey, back: tuple[NDArray[Any], ...]) -> Checked:
    """Return what was found with the axes of the grid, in its own order."""
    names = grid.dims
    return Checked(
        grid,
        found.flags[back],
        found.expected[back],
        found.std[back],
        found.units[back],
        (float(found.limits[0]), float(found.limits[1])),
        {names[step.axis]: step.words for step in found.predictor.steps},
    )


def _judge_repeats(checked: Checked, compared: Array) -> Checked:
    """Return a checked grid in which cells that differ from the ones they repeat are judged alone.

    Of a longitude that is there twice, the first stands for both; `compared` are its values.
    """
    own = checked.grid.values
    differs = ~np.isclose(own, compared, rtol=_SAME, atol=0.0, equal_nan=True)
    if not differs.any():
        return checked
    scaled = (own - checked.expected) / checked.std
    low, high = checked.limits
    flags = np.where((scaled < -low) | (scaled > high), SPIKE, GOOD)
    flags = np.where(np.isnan(own), MISSING, flags).astype(np.int8)
    return replace(
        checked,
        flags=np.where(differs, flags, checked.flags),
        units=np.where(differs, np.int8(-1), checked.units),
    )


# Share of a value by which another one may differ that repeats it: rounding of float32.
_SAME = 1e-6


def _labelled(data: GridLike, checked: Checked) -> xr.Dataset:
    """Return a checked grid as a dataset."""
    grid = checked.grid
    (expected, about), (std, of_std) = expected_variables(grid.name, grid.attrs)
    flag, flag_attrs = flag_variable(grid.name, grid.attrs)
    values = _own_array(data, grid)
    values.attrs = {**values.attrs, "ancillary_variables": flag}
    dataset = values.to_dataset(name=grid.name)
    beside: dict[str, tuple[NDArray[Any], dict[str, Any]]] = {
        flag: (checked.flags, flag_attrs),
        expected: (checked.expected, about),
        std: (checked.std, of_std),
    }
    for name, (array, attrs) in beside.items():
        added = values.copy(data=array.reshape(values.shape))
        added.attrs = attrs
        dataset[name] = added
    return dataset


def _own_array(data: GridLike, grid: Grid) -> xr.DataArray:
    """Return a copy of the data with its own coordinates, where it is labelled, else the grid."""
    if is_labelled(data) and data.size == grid.values.size and set(data.dims) <= set(grid.dims):
        order = [dim for dim in grid.dims if dim in data.dims]
        if list(data.dims) == order:
            return data.copy()
    return to_data_array(grid.values, grid.axes, grid.name, grid.attrs)
