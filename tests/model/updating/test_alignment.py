"""New slices in the terms of a model: whatever differs is refused by name."""

import numpy as np
import pytest
import xarray as xr
from growing_grids import LEVELS, X, Y, assert_equal_models, field, fitted, grid_of

from dkrls_cli import Kernel, Level, fit
from dkrls_cli.errors import InputError


def test_what_differs_is_named():
    array = grid_of(field())
    model = fitted(array.isel(t=slice(0, 20)))
    new = array.isel(t=slice(20, None))
    cases = {
        "dimensions t, x, z": new.rename(y="z").transpose("t", "x", "z"),
        "'y' differ: the new slices lack 0.7, 1.1": new.isel(y=slice(0, 3)),
        "'x' differ: .* lack 0.0, .*9 in all. and have beyond": new.assign_coords(x=X + 0.01),
    }
    for message, wrong in cases.items():
        with pytest.raises(InputError, match=message):
            model.update(wrong)


def test_units_are_named():
    array = grid_of(field()).assign_attrs(units="m s-1")
    array["x"].attrs["units"] = "km"
    model = fitted(array.isel(t=slice(0, 20)))
    new = array.isel(t=slice(20, None)).copy()
    with pytest.raises(InputError, match="'speed' are in 'knots', those of the model in 'm s-1'"):
        model.update(new.assign_attrs(units="knots"))
    new["x"].attrs["units"] = "m"
    with pytest.raises(InputError, match=r"'x' differ: .* lack 0.125 km, .* model's 0.125 m, "):
        model.update(new)
    new["x"].attrs["units"] = "hPa"
    with pytest.raises(InputError, match="hPa"):
        model.update(new)


def test_the_order_of_dimensions_and_coordinates_may_differ():
    array = grid_of(field())
    model = fitted(array.isel(t=slice(0, 20)))
    new = array.isel(t=slice(20, None), x=slice(None, None, -1), y=[3, 1, 0, 2, 4])
    assert_equal_models(model.update(new.transpose("t", "y", "x")), fitted(array))


def test_dates_in_other_units_are_the_same_dates():
    days = np.datetime64("2020-01-01", "ns") + np.arange(24) * np.timedelta64(1, "D")
    array = grid_of(field(), t=days)
    levels = [*LEVELS[:2], Level("t", Kernel("matern32", 5.0), 1e-2)]
    model = fit(array.isel(t=slice(0, 20)), levels=levels, mean=1.5)
    updated = model.update(array.isel(t=slice(20, None)))
    whole = fit(array, levels=levels, mean=1.5)
    at = {"t": np.array(["2020-01-22T12:00"], "datetime64[ns]")}
    np.testing.assert_allclose(
        updated.predict(**at, extrapolate=True), whole.predict(**at, extrapolate=True), rtol=1e-9
    )


def test_labels_are_numbered_on():
    values = field()[..., :3]
    array = xr.DataArray(values, {"x": X, "y": Y, "t": ["a", "b", "c"]}, ("x", "y", "t"))
    model = fitted(array.isel(t=slice(0, 2))).update(array.isel(t=[2]))
    assert model.axes[2].texts == ["a", "b", "c"]
    assert np.allclose(model.predict(t=["c"], extrapolate=True)[..., 0], values[..., 2])
    assert model.update(values[..., 0], "d").axes[2].texts == ["a", "b", "c", "d"]


def test_coordinates_in_single_precision_are_the_same():
    array = grid_of(field())
    array = array.assign_coords(x=array.x / 3, y=array.y / 7)
    new = array.isel(t=slice(20, None))
    single = new.assign_coords(x=new.x.astype("float32"), y=new.y.astype("float32"))
    model = fitted(array.isel(t=slice(0, 20)))
    assert_equal_models(model.update(single), fitted(array))
    with pytest.raises(InputError, match="'x' differ"):
        model.update(single.assign_coords(x=single.x + np.float32(1e-4)))


def test_positions_are_counted_on():
    values = field()
    array = xr.DataArray(values, dims=("x", "y", "t"))
    model = fit(array.isel(t=slice(0, 20)), levels=LEVELS, mean=1.5)
    updated = model.update(array.isel(t=slice(20, 24)))
    whole = fit(array, levels=LEVELS, mean=1.5)
    np.testing.assert_allclose(
        updated.predict(t=[21.5], extrapolate=True),
        whole.predict(t=[21.5], extrapolate=True),
        rtol=1e-9,
    )
