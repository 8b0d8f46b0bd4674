"""Add slices to a model along its last level: align them, see how surprising they are, join them.

The result is the model that a fit of all kept slices would make with the same settings, whatever
the order in which they came: slices stand in the order of their coordinates, and cells that were
missing are filled again from all that is known.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from dkrls_cli.grid.axes import Axis
from dkrls_cli.grid.grid import ErrorLike, Grid
from dkrls_cli.grid.style import grow_style
from dkrls_cli.model.model import Model
from dkrls_cli.model.updating.adding import add_slices
from dkrls_cli.model.updating.alignment import align, slice_errors
from dkrls_cli.model.updating.order import observed_slices
from dkrls_cli.model.updating.surprise import Surprise, measure_surprise

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False)
class Update:
    """An updated model.

    Attributes
    ----------
    model
        The model with the new slices.
    surprise
        How the new slices differ from the predictions of the model before.
    added, empty
        Number of new slices with an observed cell, and without one; the latter are left out.
    """

    model: Model
    surprise: Surprise
    added: int
    empty: int


def update_model(
    model: Model,
    data: xr.DataArray | Grid | ArrayLike,
    coordinates: Any = None,
    *,
    replace: bool = False,
    window: int | None = None,
    max_rank: int | None = None,
    obs_error: ErrorLike | None = None,
    accept_inexact: bool = False,
) -> Update:
    """Compare new slices with the predictions of a model, then add them to it.

    The parameters are those of :meth:`dkrls_cli.model.model.Model.update`.

    Returns
    -------
    Update
        The model, how surprising the slices were, and how many there were.
    """
    values, new = align(model, data, coordinates)
    added = observed_slices(values, model.grows).size
    errors = slice_errors(model, data, values, obs_error)
    surprise = measure_surprise(model, values, new, errors)
    after = add_slices(
        model,
        values,
        new,
        replace=replace,
        window=window,
        max_rank=max_rank,
        errors=errors,
        accept_inexact=accept_inexact,
    )
    return Update(with_style(after, data, new), surprise, added, new.size - added)


def with_style(model: Model, data: xr.DataArray | Grid | ArrayLike, new: Axis) -> Model:
    """Return a model that has grown with what stands beside new slices, such as their bounds."""
    theirs = {axis.name: axis for axis in data.axes} if isinstance(data, Grid) else {}
    if not isinstance(data, Grid) or new.name not in theirs:
        return model
    if theirs[new.name].units != new.units:
        return model
    style = grow_style(model.style, model.axes[model.grows], data.style)
    return dataclasses.replace(model, style=style)
