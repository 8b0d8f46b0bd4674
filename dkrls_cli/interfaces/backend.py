"""A model file as a dataset of xarray: ``xr.open_dataset("m.npz", engine="dkrls")``.

The values wait: the part that is asked for is computed when it is, and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from dkrls_cli.errors import ModelFileError
from dkrls_cli.files.npz import is_model_file
from dkrls_cli.grid.axes import Axis
from dkrls_cli.model.answering.answers import Rules, ask
from dkrls_cli.model.saving import load_models

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dkrls_cli.model.model import Model


class ModelBackend(BackendEntrypoint):
    """Opens a model file as a dataset: the answers at the coordinates of the data.

    The option ``std=True`` of ``open_dataset`` adds the standard errors, ``NAME_std``.
    """

    description = "Open model files of dkrls (.npz)"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "std")

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        std: bool = False,
    ) -> xr.Dataset:
        """Return the models of a file as a dataset whose values are computed when asked for.

        Parameters
        ----------
        filename_or_obj
            The model file.
        drop_variables
            Names of variables to leave out.
        std
            Whether to add the standard errors.

        Raises
        ------
        ModelFileError
            If there is no such file, it is no model file, or its variables are on other grids.
        """
        path = _path_of(filename_or_obj)
        gone = [drop_variables] if isinstance(drop_variables, str) else list(drop_variables or ())
        models = [model for name, model in load_models(path).items() if name not in gone]
        coords = _shared_coordinates(models, path)
        variables = {model.name: _variable(model) for model in models}
        if std:
            variables |= {model.std_variable()[0]: _variable(model, std=True) for model in models}
        kept = {name: variable for name, variable in variables.items() if name not in gone}
        attrs = dict(models[0].style.global_attrs) if models else {}
        return xr.Dataset(kept, coords, attrs)

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Return whether this is a model file: by its name, and by its first bytes."""
        try:
            return is_model_file(_path_of(filename_or_obj))
        except ModelFileError:
            return False


def _path_of(given: Any) -> str:
    """Return the path of a model file, or raise ModelFileError if it is something else."""
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    raise ModelFileError(f"A model file is opened by its path, not as {type(given).__name__}.")


def _shared_coordinates(models: Iterable[Model], path: str) -> dict[str, xr.Variable]:
    """Return the coordinates of all models, or raise if two have other ones of a dimension."""
    axes: dict[str, tuple[Axis, str]] = {}
    for model in models:
        for axis in model.coverage.axes:
            known, owner = axes.setdefault(axis.name, (axis, model.name))
            if known.texts != axis.texts:
                raise ModelFileError(
                    f"The variables '{owner}' and '{model.name}' of '{path}' have other "
                    f"coordinates of '{axis.name}'. Leave one of them out: "
                    f"drop_variables='{model.name}'."
                )
    return {name: _coordinate(axis) for name, (axis, _) in axes.items() if axis.has_coordinate}


def _coordinate(axis: Axis) -> xr.Variable:
    """Return the coordinates of an axis, with the units and calendar that its file counts by."""
    counted = (
        {} if axis.time is None else {"units": axis.time.units, "calendar": axis.time.calendar}
    )
    return xr.Variable((axis.name,), axis.values, dict(axis.attrs), counted)


def _variable(model: Model, *, std: bool = False) -> xr.Variable:
    """Return the answers of a model, or their standard errors, as a variable that waits."""
    attrs: Mapping[str, Any] = model.std_variable()[1] if std else model.attrs
    dims = [axis.name for axis in model.coverage.axes]
    return xr.Variable(dims, indexing.LazilyIndexedArray(ModelArray(model, std=std)), dict(attrs))


class ModelArray(BackendArray):
    """The answers of a model at the coordinates of its data, computed where they are indexed."""

    def __init__(self, model: Model, *, std: bool = False) -> None:
        self.model = model
        self.std = std
        self.axes = tuple(model.axes_at({}))
        self.shape = tuple(axis.size for axis in self.axes)
        self.dtype = np.dtype(np.float64)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> NDArray[Any]:
        """Return a part of the answers."""
        support = indexing.IndexingSupport.OUTER
        found: NDArray[Any] = indexing.explicit_indexing_adapter(
            key, self.shape, support, self._part
        )
        return found

    def _part(self, key: tuple[Any, ...]) -> NDArray[Any]:
        """Return the answers at an index per axis: an integer, which drops it, a slice or many."""
        places = [np.arange(axis.size)[one] for axis, one in zip(self.axes, key, strict=True)]
        shape = [place.size for place in places if place.ndim]
        if not all(shape):
            return np.empty(shape)
        flat = map(np.atleast_1d, places)
        axes = [axis.take(place) for axis, place in zip(self.axes, flat, strict=True)]
        query = ask(self.model, axes, Rules(), ())
        return (query.std() if self.std else query.values()).reshape(shape)
