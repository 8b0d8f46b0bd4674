"""The functions of dkrls as methods of DataArrays: ``data.dkrls.fill()``.

The accessor is there once xarray and dkrls have been imported, in this order; or, whatever the
order, after ``import dkrls_cli.interfaces.accessor``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import xarray as xr

if TYPE_CHECKING:
    from dkrls_cli.model.answering.targets import TargetLike
    from dkrls_cli.model.model import Model
    from dkrls_cli.model.validation.validate import Validation


_register: Any = xr.register_dataarray_accessor  # has no types of its own


@_register("dkrls")
class GridMethods:
    """Models of a DataArray: each method is the function of its name with the data filled in.

    Examples
    --------
    >>> import numpy as np
    >>> x, t = np.linspace(0, 3, 16), np.arange(20.0)
    >>> data = xr.DataArray(np.outer(np.sin(x), np.cos(t / 4)), {"x": x, "t": t}, ("x", "t"))
    >>> data.dkrls.regrid(xr.Dataset(coords={"x": [0.75, 1.5]})).dims
    ('x', 't')
    """

    def __init__(self, data: xr.DataArray) -> None:
        self._data = data

    def fit(self, **settings: Any) -> Model:
        """Return a model of the data: see :func:`dkrls_cli.fit`."""
        from dkrls_cli.model.fit import fit

        return fit(self._data, **settings)

    def fill(self, **settings: Any) -> xr.DataArray | xr.Dataset:
        """Return the data with its missing cells filled: see :func:`dkrls_cli.fill`."""
        from dkrls_cli.model.fill import fill

        found: xr.DataArray | xr.Dataset = fill(self._data, **settings)
        return found

    def regrid(self, like: TargetLike, **settings: Any) -> xr.DataArray | xr.Dataset:
        """Return the data on the grid of another object: see :func:`dkrls_cli.regrid`."""
        from dkrls_cli.model.regrid import regrid

        found: xr.DataArray | xr.Dataset = regrid(self._data, like, **settings)
        return found

    def validate(self, **settings: Any) -> Validation:
        """Measure a model or the method on the data: see :func:`dkrls_cli.validate`."""
        from dkrls_cli.model.validation.validate import validate

        return validate(self._data, **settings)

    def check(self, **settings: Any) -> xr.Dataset:
        """Flag the cells that do not fit the others: see :func:`dkrls_cli.check`."""
        from dkrls_cli.model.quality.check import check

        return check(self._data, **settings)
