"""New slices along the last level: the same model as a fit of all of them, whatever the order."""

import numpy as np
import pytest
import xarray as xr
from growing_grids import (
    JOINT,
    LEVELS,
    NEW,
    SMALL,
    T,
    X,
    Y,
    assert_equal_models,
    field,
    fitted,
    grid_of,
    slices,
    small,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from dkrls_cli import Kernel, Level, fit, load_model
from dkrls_cli.cascade.kernels import kernel_named
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.model.updating.update import update_model


@st.composite
def partitions(draw):
    """Slices of a grid in parts, in any order."""
    order = draw(st.permutations(range(T.size)))
    cuts = sorted(draw(st.sets(st.integers(2, T.size - 1), min_size=1, max_size=5)))
    return [list(part) for part in np.split(np.array(order), cuts)]


@pytest.mark.slow
@pytest.mark.parametrize("how", [{}, JOINT], ids=["level", "joint"])
@pytest.mark.parametrize("noise", [0.0, 0.1], ids=["smooth", "noisy"])
@settings(max_examples=25, deadline=None)
@given(parts=partitions())
def test_an_updated_model_is_that_of_a_fit(parts, noise, how):
    array = grid_of(field(noise))
    first, *others = [array.isel(t=sorted(part)) for part in parts]
    model = fitted(first, **how)
    for part in others:
        model = model.update(part)
    assert_equal_models(model, fitted(array, **how))


@settings(max_examples=6, deadline=None)
@given(parts=partitions(), window=st.integers(2, 30))
def test_a_window_keeps_the_last_slices_whatever_the_order(parts, window):
    array = grid_of(field())
    first, *others = [array.isel(t=sorted(part)) for part in parts]
    model = fitted(first)
    for part in others:
        model = model.update(part)
    last = model.update(array.isel(t=[0]), replace=True, window=window)
    assert_equal_models(last, fitted(array.isel(t=slice(-window, None))))


def test_a_window_along_the_way_is_that_of_the_end():
    array = grid_of(field())
    model = fitted(array.isel(t=slice(0, 6)))
    for place in range(6, T.size):
        model = model.update(array.isel(t=[place]), window=5)
    assert_equal_models(model, fitted(array.isel(t=slice(-5, None))))


@pytest.mark.parametrize("dims", [("t", "x", "y"), ("x", "t", "y"), ("y", "x", "t")])
def test_the_growing_dimension_may_stand_anywhere(dims):
    array = grid_of(field()).transpose(*dims)
    model = fitted(array.isel(t=slice(0, 20)))
    for place in range(20, T.size):
        model = model.update(array.isel(t=place))
    assert_equal_models(model, fitted(array))


def test_older_models_stay_as_they_were():
    array = grid_of(field())
    base = fitted(array.isel(t=slice(0, 10)))
    before = base.update(array.isel(t=[10]))
    kept = before.predict(**NEW, extrapolate=True).values
    one = before.update(array.isel(t=[11]))
    other = before.update(array.isel(t=[12]))
    assert np.array_equal(before.predict(**NEW, extrapolate=True), kept)
    assert_equal_models(one, fitted(array.isel(t=slice(0, 12))))
    assert_equal_models(other, fitted(array.isel(t=[*range(11), 12])))


def test_plain_arrays_and_single_slices():
    values = field()
    whole = fit(values, {"x": X, "y": Y, "t": T}, LEVELS, mean=1.5)
    start = fit(values[..., :22], {"x": X, "y": Y, "t": T[:22]}, LEVELS, mean=1.5)
    assert_equal_models(start.update(values[..., 22:], T[22:]), whole)
    one_by_one = start.update(values[..., 22], 22.0).update(values[..., 23], 23.0)
    assert_equal_models(one_by_one, whole)
    with pytest.raises(InputError, match="shape"):
        start.update(values[:3, :, 22:], T[22:])
    with pytest.raises(SettingError, match="Coordinates"):
        start.update(values[..., 22:])
    for wrong, words in ((np.nan, "is nan"), (np.inf, "is inf"), ([[22.0]], "a vector")):
        with pytest.raises(InputError, match=words):
            start.update(values[..., 22:23], wrong)


def test_saving_keeps_what_an_update_needs(tmp_path):
    array = grid_of(field())
    model = fitted(array.isel(t=slice(0, 20))).update(array.isel(t=slice(20, 22)))
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz").update(array.isel(t=slice(22, None)))
    assert_equal_models(again, fitted(array))
    assert again.origin["slices_added"] == 4


def test_single_precision_stays_single():
    array = grid_of(field())
    model = fitted(array.isel(t=slice(0, 20)), dtype="float32").update(array.isel(t=slice(20, 24)))
    assert model.cascade.core.dtype == np.float32
    assert_equal_models(model, fitted(array, dtype="float32"))


# --- long last levels ----------------------------------------------------------------------------


# --- which slices are kept -----------------------------------------------------------------------


@pytest.mark.parametrize("joint", [False, True], ids=["level", "joint"])
def test_replacing_a_window_and_a_rank_go_together(joint):
    changed = SMALL[:, [4, 6, 7]] + 1.0
    model = small(range(6), joint)
    after = model.update(changed, [4.0, 6.0, 7.0], replace=True, window=5, max_rank=4)
    assert after.axes[1].size == 4
    assert set(after.axes[1].numbers) < {3.0, 4.0, 5.0, 6.0, 7.0}
    assert after.origin["slices_added"] == 3
    assert after.origin["thinned"]["slices"] == 1
    truth = dict(zip([3.0, 5.0, 4.0, 6.0, 7.0], [*SMALL[:, [3, 5]].T, *changed.T], strict=True))
    for column, z in enumerate(after.axes[1].numbers):
        np.testing.assert_allclose(after.predict().values[:, column], truth[z], atol=1e-12)


@pytest.mark.parametrize("name", ["window", "max_rank"])
def test_at_least_one_slice_is_kept(name):
    model, new = small(range(6)), slices([6])
    told = {"window": "Invalid window 0", "max_rank": "Invalid rank 0"}[name]
    with pytest.raises(SettingError, match=f"{told}. It must be 1 or above"):
        model.update(*new, **{name: 0})
    assert model.update(*new, **{name: 1}).axes[1].size == 1


def test_slices_are_counted_over_all_updates():
    model = small(range(6)).update(*slices([6, 7, 8]))
    values, t = slices([9, 10])
    values[:, 0] = np.nan
    assert model.update(values, t, window=2).origin["slices_added"] == 4


def wave(t):
    x = np.linspace(0, 1, 6)
    return np.sin(3 * x[:, None] + np.log(t)), {"x": x, "t": t}


@pytest.mark.parametrize("kernel", ["cubic", "log-quintic", "log-matern32"])
def test_splines_and_warps_grow_as_if_fitted_at_once(kernel):
    t = np.geomspace(1.0, 50.0, 18)
    levels = [Level("x", Kernel("quintic")), Level("t", kernel_named(kernel, 0.7))]
    start = fit(*wave(t[:12]), levels=levels, mean=0.0)
    whole = fit(*wave(t), levels=levels, mean=0.0)
    values, coordinates = wave(t[12:])
    grown = start.update(xr.DataArray(values, coordinates, ["x", "t"]))
    query = {"x": [0.13, 0.8], "t": [1.5, 20.0, 49.0]}
    np.testing.assert_allclose(grown.predict(**query), whole.predict(**query), atol=1e-12)
    fewer = grown.update(xr.DataArray(*wave(np.array([60.0])), ["x", "t"]), window=9)
    assert fewer.shape == (6, 9)


def test_a_new_coordinate_without_a_logarithm_is_refused():
    t = np.geomspace(1.0, 50.0, 12)
    levels = [Level("x", Kernel("quintic")), Level("t", Kernel("matern32", 0.7, warp="log"), 1e-6)]
    model = fit(*wave(t), levels=levels)
    values, coordinates = wave(t[:1])
    new = xr.DataArray(values, {**coordinates, "t": [-1.0]}, ["x", "t"])
    with pytest.raises(InputError, match="The log of coordinate -1 cannot be taken"):
        model.update(new)


def test_an_update_tells_what_came():
    values, t = slices([6, 7, 8])
    values[:, 1] = np.nan
    after = update_model(small(range(6)), values, t, window=4)
    assert (after.added, after.empty) == (2, 1)
    assert after.surprise.cells == 8
    assert after.model.axes[1].numbers.tolist() == [4, 5, 6, 8]
