"""A small grid of slices along t, and models of it that grow."""

from dataclasses import replace

import numpy as np
import xarray as xr

from dkrls_cli import Kernel, Level, fit

X, Y, T = np.linspace(0, 1, 9), np.array([0.0, 0.1, 0.3, 0.7, 1.1]), np.arange(24.0)
LEVELS = [
    Level("x", Kernel("matern52", 0.4), 1e-4),
    Level("y", Kernel("gaussian", 0.6), 1e-3),
    Level("t", Kernel("matern32", 5.0, constant=1.0), 1e-2),
]
NEW = {"x": [0.03, 0.52, 0.9], "y": [0.2, 1.0], "t": [-0.5, 3.3, 22.7, 25.0]}


def field(noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    smooth = np.sin(3 * X[:, None, None] + T / 4) * np.cos(2 * Y[:, None]) + 2
    return smooth + noise * rng.normal(size=(X.size, Y.size, T.size))


def grid_of(values, x=X, y=Y, t=T):
    return xr.DataArray(values, {"x": x, "y": y, "t": t}, ("x", "y", "t"), "speed")


def fitted(array, **how):
    """A fit with the settings of the tests."""
    how = {"levels": LEVELS, "mean": 1.5, **how}
    return fit(array, **how)


JOINT = {
    "levels": [replace(level, ridge=0.0) for level in LEVELS],
    "noise": "joint",
    "ridge": 1e-3,
}


def assert_equal_models(model, other, tolerance=1e-9):
    answers, expected = (
        model.predict(**NEW, extrapolate=True),
        other.predict(**NEW, extrapolate=True),
    )
    scale = float(np.abs(expected).max())
    assert model.axes[model.grows].texts == other.axes[other.grows].texts
    assert float(np.abs(answers - expected).max()) <= tolerance * scale
    assert float(np.abs(model.predict() - other.predict()).max()) <= tolerance * scale
    np.testing.assert_allclose(
        model.std(**NEW, extrapolate=True), other.std(**NEW, extrapolate=True), rtol=1e-6
    )


def with_gaps(seed=1, share=0.2, slices=range(15, 24)):
    """The grid without some cells of some slices, and which cells those are."""
    array = grid_of(field())
    lost = np.zeros(array.shape, bool)
    lost[..., list(slices)] = (
        np.random.default_rng(seed).random((X.size, Y.size, len(slices))) < share
    )
    return array.where(~lost), lost


# Values of slices at 0 to 39.
SMALL = np.random.default_rng(5).standard_normal((4, 40))


def small(numbers, joint=False, period=None, gaps=False):
    """A model of slices at some of 0 to 39, each with values of its own."""
    ridge = 0.0 if joint else 1e-2
    levels = [
        Level("x", Kernel("matern32", 1.0), ridge),
        Level("t", Kernel("matern32", 5.0, period), ridge),
    ]
    how = {"noise": "joint", "ridge": 1e-2} if joint else {}
    values, t = slices(numbers, gaps)
    return fit(values, {"x": np.arange(4.0), "t": t}, levels, mean=0.1, **how)


def slices(numbers, gaps=False):
    """Values and coordinates of slices, with gaps in every second one or none."""
    values = SMALL[:, list(numbers)].copy()
    if gaps:
        values[1, ::2] = np.nan
    return values, np.array(numbers, float)
