"""A model as an estimator of scikit-learn: rows of coordinates in, values out."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dkrls_cli.arrays import Array
from dkrls_cli.errors import InputError
from dkrls_cli.model.answering.answers import Outside
from dkrls_cli.model.fit import fit
from dkrls_cli.model.settings import Noise, PerLevel

# Cells that a grid may have however few of them have a value: their kernels take no time.
_ALWAYS = 2**16
# Share of the cells of a larger grid that need a value: below it a solve for all cells is waste,
# and methods for scattered points are the better choice.
_LEAST_SHARE = 0.01


class GridRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Kernel regression of rows whose coordinates repeat: those of a grid, whole or with gaps.

    Every column of X is a dimension, and its distinct values are the coordinates of a grid. Cells
    of the grid that no row names are missing. Rows of the same cell are averaged. Columns of a
    table keep their names, so that ``lon`` is a longitude and goes round the globe.

    Parameters
    ----------
    kernel, sigma, ridge, period, noise
        As for :func:`dkrls_cli.fit`: one value, or one by the name of a column (``x0``, ``x1``, ...
        without names).
    outside
        What is answered outside the range of the rows: ``nearest`` (as at the end of the range),
        ``extrapolate``, ``missing`` (NaN) or ``refuse``.
    smooth
        Whether the model answers at the coordinates of the rows as well; otherwise the answers
        there are the data.

    Attributes
    ----------
    model_ : dkrls_cli.Model
        The model.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if all of them are texts.

    Examples
    --------
    >>> x, t = np.meshgrid(np.linspace(0, 3, 20), np.arange(10.0), indexing="ij")
    >>> rows = np.column_stack([x.ravel(), t.ravel()])
    >>> regressor = GridRegressor().fit(rows, np.sin(rows[:, 0]) * np.cos(rows[:, 1] / 4))
    >>> bool(np.allclose(regressor.predict([[0.7, 3.5]]), np.sin(0.7) * np.cos(3.5 / 4), atol=1e-2))
    True
    """

    def __init__(
        self,
        *,
        kernel: PerLevel[str] = "auto",
        sigma: PerLevel[float | str] = "auto",
        ridge: PerLevel[float | str] = "auto",
        period: PerLevel[float | str | None] = "auto",
        noise: Noise = "auto",
        outside: Outside = "nearest",
        smooth: bool = True,
    ) -> None:
        self.kernel = kernel
        self.sigma = sigma
        self.ridge = ridge
        self.period = period
        self.noise = noise
        self.outside = outside
        self.smooth = smooth

    def fit(self, X: ArrayLike, y: ArrayLike) -> GridRegressor:  # noqa: N803
        """Fit a model to rows.

        Parameters
        ----------
        X
            Coordinates (rows, dimensions).
        y
            A value for every row.

        Returns
        -------
        GridRegressor
            The estimator itself.

        Raises
        ------
        InputError
            If the coordinates hardly ever repeat, so that most cells of their grid are missing.
        """
        rows, values = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2
        )
        names = [str(name) for name in getattr(self, "feature_names_in_", ())]
        names = names or [f"x{place}" for place in range(rows.shape[1])]
        grid, coordinates = grid_of(rows, np.asarray(values, np.float64))
        self.model_ = fit(
            grid,
            dict(zip(names, coordinates, strict=True)),
            kernel=self.kernel,
            sigma=self.sigma,
            ridge=self.ridge,
            period=self.period,
            noise=self.noise,
        )
        return self

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = ...) -> Array: ...  # noqa: N803

    @overload
    def predict(
        self,
        X: ArrayLike,  # noqa: N803
        return_std: Literal[True],
    ) -> tuple[Array, Array]: ...

    def predict(
        self,
        X: ArrayLike,  # noqa: N803
        return_std: bool = False,
    ) -> Array | tuple[Array, Array]:
        """Return the answers at rows, and their standard errors if asked for.

        Parameters
        ----------
        X
            Coordinates (rows, dimensions).
        return_std
            Whether to return the standard errors as well.

        Returns
        -------
        ndarray or tuple of ndarray
            An answer for every row, and with `return_std` its standard error.
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        points = dict(zip(self.model_.dims, rows.T, strict=True))
        rules: dict[str, Any] = {"outside": self.outside, "mask": "none", "smooth": self.smooth}
        answers = np.asarray(self.model_.predict_points(points, **rules))
        if not return_std:
            return answers
        return answers, np.asarray(self.model_.std_points(points, **rules))


def grid_of(rows: Array, values: Array) -> tuple[Array, list[Array]]:
    """Return values on the grid of all coordinates of rows, NaN where there is no row.

    Examples
    --------
    >>> grid_of(np.array([[0.0, 5.0], [1.0, 6.0], [1.0, 6.0]]), np.array([1.0, 2.0, 4.0]))[0]
    array([[ 1., nan],
           [nan,  3.]])
    """
    pairs = [np.unique(column, return_inverse=True) for column in rows.T]
    shape = [coordinates.size for coordinates, _ in pairs]
    cells = math.prod(shape)
    if cells > _ALWAYS and len(rows) < _LEAST_SHARE * cells:
        raise InputError(
            f"The rows form a grid of {' x '.join(map(str, shape))} = {cells} cells, and "
            f"{len(rows)} rows are less than {100 * _LEAST_SHARE:g} % of them. Expected "
            "coordinates that repeat: round them, or leave columns out."
        )
    flat = np.ravel_multi_index([codes.reshape(-1) for _, codes in pairs], shape)
    counts = np.bincount(flat, minlength=cells)
    with np.errstate(invalid="ignore"):
        means = np.bincount(flat, values, cells) / counts
    return means.reshape(shape), [coordinates for coordinates, _ in pairs]
