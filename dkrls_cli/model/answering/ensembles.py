"""Ensembles of answers: members that pass through the data and differ as far as the error bars say.

A member is the answers plus one draw of their errors (:mod:`dkrls_cli.cascade.ensembles`), kept
within the bounds of the model. Cells without an answer have none in any member. Members come one at
a time, so that memory does not grow with their number.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dkrls_cli.arrays import Array
from dkrls_cli.cascade.errorbars.joint import JointBars
from dkrls_cli.errors import SettingError
from dkrls_cli.grid.grid import REALIZATION, ensemble_variable, realization_axis, to_data_array
from dkrls_cli.model.answering.answers import PointQuery, Query

if TYPE_CHECKING:
    import xarray as xr

    from dkrls_cli.model.model import Model


def draw_members(query: Query | PointQuery, members: int, seed: int = 0) -> Iterator[Array]:
    """Return an iterator over the members of an ensemble, each in the shape of the answers.

    What can be refused is refused at once, before the first member is asked for.

    Parameters
    ----------
    query
        Where to answer.
    members
        Number of members. Each is the same whatever their number.
    seed
        Seed of the random numbers. Variables of different names have different ones, so that their
        errors are independent.

    Raises
    ------
    SettingError
        If there is no such number of members or seed, or there are too many points or coordinates.
    """
    model = query.model
    check_ensemble(model.name, model.dims, members, seed)
    refuse_unknown_errors(model)
    deviation = _deviations(query, _seed_of(model, seed))
    answers, bounds = query.free(), model.bounds

    def member(number: int) -> Array:
        values = answers + deviation(number)
        return query.blank(values if bounds is None else bounds.clip(values))

    return map(member, range(members))


def refuse_unknown_errors(model: Model) -> None:
    """Raise SettingError if a model has no error bars: it refers to a grid with land."""
    bars = model.known_bars
    if isinstance(bars, JointBars) and math.isnan(bars.scale):
        raise SettingError(
            f"Errors of '{model.name}', which refers to a grid with missing cells, are not known: "
            "there are neither standard errors nor ensembles. Leave them out, or fill the grid "
            "first, land as well, and fit it again."
        )


def check_ensemble(name: str, dims: Collection[str], members: int, seed: int) -> None:
    """Raise SettingError if an ensemble of a variable on these dimensions is not possible."""
    if members < 1:
        raise SettingError(f"Invalid number of members {members}. It must be 1 or more.")
    if seed < 0:
        raise SettingError(f"Invalid seed {seed}. It must be 0 or above.")
    if REALIZATION in dims:
        raise SettingError(
            f"'{name}' has a dimension '{REALIZATION}' of its own, as that of an ensemble is "
            "to be named. Rename it before the fit."
        )


def _seed_of(model: Model, seed: int) -> int:
    """Return the seed of one variable."""
    mixed = np.random.SeedSequence([seed, zlib.crc32(model.name.encode())])
    return int(mixed.generate_state(1, np.uint64)[0])


def _deviations(query: Query | PointQuery, seed: int) -> Callable[[int], Array]:
    """Return a function that draws the deviation of a member from the answers."""
    model, smooth = query.model, query.rules.smooth
    if query.linear is not None:
        return query.linear.deviations(seed)
    if isinstance(query, Query):
        asked = model.queries(query.asked)
        return model.bars.deviations(model.cascade, asked, smooth=smooth, seed=seed)
    return model.bars.deviations_at_points(
        model.cascade, query.asked, spread=query.spread, smooth=smooth, seed=seed
    )


def stack_members(query: Query | PointQuery, members: int, seed: int) -> Array:
    """Return all members (members, ...) of an ensemble in one array."""
    drawn = draw_members(query, members, seed)
    result = np.empty((members, *query.shape))
    for number, values in enumerate(drawn):
        result[number] = values
    return result


def ensemble_array(query: Query, members: int, seed: int, at: Mapping[str, Any]) -> xr.DataArray:
    """Return the members of an ensemble on a grid, first dimension ``realization``.

    `at` has the coordinates as they were given: a scalar drops its dimension.
    """
    values = stack_members(query, members, seed)
    name, attrs = ensemble_variable(query.model.name, query.model.attrs)
    array = to_data_array(values, [realization_axis(members), *query.axes], name, attrs)
    return array.isel(_scalars(at))


def iterate_arrays(
    query: Query, members: int, seed: int, at: Mapping[str, Any]
) -> Iterator[xr.DataArray]:
    """Return an iterator over members, each with its number as a scalar coordinate."""
    name, attrs = ensemble_variable(query.model.name, query.model.attrs)
    axis = realization_axis(members)

    def labelled(number: int, values: Array) -> xr.DataArray:
        axes = [axis.take([number]), *query.axes]
        array = to_data_array(values[None], axes, name, attrs)
        return array.isel({REALIZATION: 0, **_scalars(at)})

    return map(labelled, range(members), draw_members(query, members, seed))


def _scalars(at: Mapping[str, Any]) -> dict[str, int]:
    """Return the first index of every dimension that was asked for at one coordinate."""
    return {dim: 0 for dim, value in at.items() if np.ndim(value) == 0}
