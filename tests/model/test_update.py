"""New slices along the last level: the same model as a fit of all of them, whatever the order."""

from dataclasses import replace
from functools import reduce
from unittest import mock

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from dkrls_cli import Kernel, Level, fit, load_model
from dkrls_cli.cascade import spectrum as factors
from dkrls_cli.cascade.growing import Growing
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.cascade.spectrum import extend, factor
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.slices import fill_slices
from dkrls_cli.model.fit import retune
from dkrls_cli.model.update import thin, update_model

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
    answers, expected = model.predict(**NEW), other.predict(**NEW)
    scale = float(np.abs(expected).max())
    assert model.axes[model.grows].texts == other.axes[other.grows].texts
    assert float(np.abs(answers - expected).max()) <= tolerance * scale
    assert float(np.abs(model.predict() - other.predict()).max()) <= tolerance * scale
    np.testing.assert_allclose(model.std(**NEW), other.std(**NEW), rtol=1e-6)


@st.composite
def partitions(draw):
    """Slices of a grid in parts, in any order."""
    order = draw(st.permutations(range(T.size)))
    cuts = sorted(draw(st.sets(st.integers(2, T.size - 1), min_size=1, max_size=5)))
    return [list(part) for part in np.split(np.array(order), cuts)]


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


def test_a_descending_axis_stays_descending():
    array = grid_of(field()).isel(t=slice(None, None, -1))
    model = fitted(array.isel(t=slice(5, None))).update(array.isel(t=slice(0, 5)))
    assert_equal_models(model, fitted(array))


def test_frames_widen_and_give_way():
    x, t = np.linspace(0, 1, 40), np.arange(12.0)
    waves = [np.outer(np.cos(k * x), np.sin(k * t / 3 + 0.1)) for k in range(1, 12)]
    values = np.array([sum(waves[: 1 + step])[:, step] for step in range(t.size - 1)]).T
    values = np.column_stack([values, np.random.default_rng(0).normal(size=40)])
    levels = [Level("x", Kernel("matern32", 0.3), 1e-6), Level("t", Kernel("matern12", 3.0), 1e-3)]
    array = xr.DataArray(values, {"x": x, "t": t}, ("x", "t"))
    model = fit(array.isel(t=slice(0, 3)), levels=levels, mean=0.2)
    widths = []
    for step in range(3, 12):
        model = model.update(array.isel(t=step))
        frame = model.cascade.frames[0]
        widths.append(40 if frame is None else frame.shape[1])
    whole = fit(array, levels=levels, mean=0.2)
    assert widths[0] < 10
    assert widths == sorted(widths)
    assert widths[-1] == 40
    at = {"x": [0.111, 0.93], "t": [1.5, 12.0]}
    np.testing.assert_allclose(model.predict(**at), whole.predict(**at), rtol=1e-9)


def test_older_models_stay_as_they_were():
    array = grid_of(field())
    base = fitted(array.isel(t=slice(0, 10)))
    before = base.update(array.isel(t=[10]))
    kept = before.predict(**NEW).values
    one = before.update(array.isel(t=[11]))
    other = before.update(array.isel(t=[12]))
    assert np.array_equal(before.predict(**NEW), kept)
    assert_equal_models(one, fitted(array.isel(t=slice(0, 12))))
    assert_equal_models(other, fitted(array.isel(t=[*range(11), 12])))


def test_a_known_coordinate_is_refused_or_replaced():
    array = grid_of(field())
    model = fitted(array)
    with pytest.raises(InputError, match=r"3\.0 of 't' is in the model already.*replace"):
        model.update(array.isel(t=[3]))
    changed = array.copy(deep=True)
    changed[..., 3] += 1
    assert_equal_models(model.update(changed.isel(t=[3]), replace=True), fitted(changed))


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


# --- what differs is named -----------------------------------------------------------------------


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
    with pytest.raises(InputError, match="coordinates of 'x' are in 'm'"):
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
    np.testing.assert_allclose(updated.predict(**at), whole.predict(**at), rtol=1e-9)


def test_labels_are_numbered_on():
    values = field()[..., :3]
    array = xr.DataArray(values, {"x": X, "y": Y, "t": ["a", "b", "c"]}, ("x", "y", "t"))
    model = fitted(array.isel(t=slice(0, 2))).update(array.isel(t=[2]))
    assert model.axes[2].texts == ["a", "b", "c"]
    assert np.allclose(model.predict(t=["c"])[..., 0], values[..., 2])
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
    np.testing.assert_allclose(updated.predict(t=[21.5]), whole.predict(t=[21.5]), rtol=1e-9)


# --- slices with missing cells -------------------------------------------------------------------


def with_gaps(seed=1, share=0.2, slices=range(15, 24)):
    array = grid_of(field())
    lost = np.zeros(array.shape, bool)
    lost[..., list(slices)] = (
        np.random.default_rng(seed).random((X.size, Y.size, len(slices))) < share
    )
    return array.where(~lost), lost


def test_filled_slices_are_the_mean_given_what_is_observed():
    rng = np.random.default_rng(3)
    values, gaps = field(), [4, 11, 23]
    trained = fit(values, {"x": X, "y": Y, "t": T}, LEVELS, mean=1.5).cascade
    whole = np.setdiff1d(np.arange(T.size), gaps)
    slices = values[..., gaps].copy()
    slices[rng.random(slices.shape) < 0.3] = np.nan
    done = fill_slices(Growing(trained, 2).take(whole), T[gaps], slices)
    kernel, ridge = LEVELS[2].kernel, LEVELS[2].ridge
    past = gram(kernel, T[whole], T[whole]) + ridge * np.eye(whole.size)
    across = gram(kernel, T[gaps], T[whole])
    expected = 1.5 + (values[..., whole] - 1.5) @ np.linalg.solve(past, across.T)
    left = gram(kernel, T[gaps], T[gaps]) + ridge * np.eye(3)
    left -= across @ np.linalg.solve(past, across.T)
    pairs = zip(LEVELS[:2], (X, Y), strict=True)
    others = [gram(v.kernel, c, c) + v.ridge * np.eye(c.size) for v, c in pairs]
    covariance = reduce(np.kron, [*others, left])
    lost = np.isnan(slices).ravel()
    noise = 1e-4 * np.trace(covariance) / lost.size * np.eye(np.count_nonzero(~lost))
    known = np.linalg.solve(
        covariance[np.ix_(~lost, ~lost)] + noise, (slices - expected).ravel()[~lost]
    )
    truth = expected.ravel()[lost] + covariance[np.ix_(lost, ~lost)] @ known
    np.testing.assert_allclose(done.values.ravel()[lost], truth, rtol=0, atol=1e-6)


@pytest.mark.parametrize("how", [{}, JOINT], ids=["level", "joint"])
def test_slices_with_gaps_may_come_in_any_order(how):
    array, lost = with_gaps()
    start = fitted(array.isel(t=slice(0, 10)), **how)
    at_once = start.update(array.isel(t=slice(10, None)))
    by_ones = start
    for place in (20, 10, 23, 12, 15, 11, 13, 14, 16, 17, 19, 18, 22, 21):
        by_ones = by_ones.update(array.isel(t=[place]))
    assert_equal_models(by_ones, at_once, tolerance=1e-9)
    assert np.array_equal(by_ones.unobserved, lost)
    truth = field()
    missed = (by_ones.predict().values - truth)[lost]
    assert np.abs(missed).std() < 0.3
    assert np.array_equal(by_ones.predict().values[~lost], truth[~lost])
    assert (by_ones.std().values[lost] > 0).all()
    assert (by_ones.std().values[~lost] == 0).all()


def test_the_order_does_not_matter_where_cells_are_hard_to_solve_for():
    array, _ = with_gaps(slices=range(8, 24))
    ridges = (4e-2, 1e-8, 2e-7)
    levels = [replace(level, ridge=ridge) for level, ridge in zip(LEVELS, ridges, strict=True)]
    start = fitted(array.isel(t=slice(0, 8)), levels=levels)
    at_once = start.update(array.isel(t=slice(8, None)))
    by_parts = start
    for part in ([20, 9, 13], [23, 11], [8, 22, 10, 12], [21, 14, 15, 16, 17, 18, 19]):
        by_parts = by_parts.update(array.isel(t=part))
    assert_equal_models(by_parts, at_once)


def test_a_grid_with_gaps_is_fitted_as_it_is_updated():
    array, _ = with_gaps(slices=range(24))
    whole = fitted(array, **{**JOINT, "noise": "auto"})
    start = fitted(array.isel(t=slice(0, 15)), **{**JOINT, "noise": "auto"})
    updated = start.update(array.isel(t=slice(15, None)))
    assert isinstance(updated.bars, GapBars)
    np.testing.assert_allclose(updated.predict(**NEW), whole.predict(**NEW), rtol=1e-9)
    np.testing.assert_allclose(updated.predict(), whole.predict(), rtol=1e-9)


def test_points_know_which_cells_were_filled():
    array, lost = with_gaps()
    model = fitted(array.isel(t=slice(0, 10))).update(array.isel(t=slice(10, None)))
    i, j, k = np.argwhere(lost)[0]
    i2, j2, k2 = np.argwhere(~lost)[-1]
    at = {"x": [X[i], X[i2]], "y": [Y[j], Y[j2]], "t": [T[k], T[k2]]}
    spread = model.std_points(**at)
    assert spread[0] == pytest.approx(float(model.std()[i, j, k]))
    assert spread[1] == 0


def test_filled_cells_survive_a_file_and_a_window(tmp_path):
    array, lost = with_gaps()
    model = fitted(array.isel(t=slice(0, 10))).update(array.isel(t=slice(10, 20)))
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz").update(array.isel(t=slice(20, None)), window=6)
    assert np.array_equal(again.unobserved, lost[..., -6:])
    direct = model.update(array.isel(t=slice(20, None)), window=6)
    assert_equal_models(again, direct)


def test_a_stream_of_nothing_but_gaps_goes_on():
    array = grid_of(field())
    array[2] = np.nan  # a place that never reports again
    start = fitted(grid_of(field()).isel(t=slice(0, 4)))
    model = start
    for place in range(4, 24):
        model = model.update(array.isel(t=[place]), window=8)
    assert model.unobserved.all(axis=(1, 2))[2]
    assert np.isfinite(model.predict(t=[24.0])).all()


def test_an_empty_slice_is_left_out():
    array = grid_of(field())
    array[..., 21] = np.nan
    model = fitted(array.isel(t=slice(0, 20))).update(array.isel(t=slice(20, None)))
    assert model.axes[2].size == 23
    with pytest.raises(InputError, match="missing"):
        model.update(array.isel(t=[21]))


# --- fewer slices, other settings, surprises ----------------------------------------------------


def test_thinning_keeps_what_spans_the_history():
    array = grid_of(field(noise=0.01))
    model = fitted(array.isel(t=slice(0, 4)))
    for place in range(4, 24):
        model = model.update(array.isel(t=[place]), max_rank=12)
    times = model.axes[2].numbers
    assert times.size == 12
    assert times[0] == 0
    assert times[-1] == 23
    assert np.diff(times).max() <= 4
    told = model.origin["thinned"]
    assert told["slices"] == 12
    assert 0 < told["rmse"] < 0.2
    assert_equal_models(model, fitted(array.sel(t=times)))


def test_what_thinning_costs_is_measured():
    array = grid_of(field())
    model = fitted(array)
    fewer = thin(model, 23)
    (gone,) = set(T) - set(fewer.axes[2].numbers)
    missed = fewer.predict(t=[gone]).values - array.sel(t=[gone]).values
    assert fewer.origin["thinned"]["rmse"] == pytest.approx(np.sqrt(np.mean(missed**2)))
    assert thin(model, 24) is model


@pytest.mark.parametrize("how", [{}, JOINT], ids=["level", "joint"])
def test_thinning_knows_gaps(how):
    array, _ = with_gaps()
    model = fitted(array.isel(t=slice(0, 10)), **how).update(
        array.isel(t=slice(10, None)), max_rank=9
    )
    assert model.cascade.shape == (9, 5, 9)
    assert model.unobserved.shape == (9, 5, 9)
    assert np.isfinite(model.std(**NEW)).all()


@pytest.mark.parametrize("how", [{}, JOINT], ids=["level", "joint"])
def test_retuning_changes_the_last_level_only(how):
    array = grid_of(field())
    model = fitted(array, **how)
    other = retune(model)
    assert other.levels[:2] == model.levels[:2]
    assert other.levels[2] != model.levels[2]
    assert other.cascade.mean == model.cascade.mean
    assert other.hierarchy == model.hierarchy


def test_retuning_keeps_a_place_that_is_silent_now():
    array = grid_of(field())
    array[2, :, 10:] = np.nan
    start = fitted(array.isel(t=slice(0, 10)), **JOINT)
    model = start.update(array.isel(t=slice(10, None)), window=8)
    other = retune(model)
    assert other.cascade.shape == (9, 5, 8)
    assert np.array_equal(other.unobserved, model.unobserved)
    assert other.levels[2] != model.levels[2]
    more = array.isel(t=[23]).assign_coords(t=[24.0])
    assert np.isfinite(other.update(more, window=8).predict(t=[25.0])).all()


def test_retuning_fills_anew():
    array, lost = with_gaps()
    model = fitted(array.isel(t=slice(0, 10))).update(array.isel(t=slice(10, None)))
    other = retune(model)
    assert np.array_equal(other.unobserved, lost)
    held = fitted(array.isel(t=slice(0, 10)), levels=other.levels)
    again = held.update(array.isel(t=slice(10, None)))
    assert_equal_models(other, again)


def test_surprise_tells_a_drift_from_more_of_the_same():
    array = grid_of(field())
    model = fitted(array.isel(t=slice(0, 20)))
    assert not update_model(model, array.isel(t=slice(20, None))).surprise.drifts
    assert update_model(model, array.isel(t=slice(20, None)) + 5).surprise.drifts
    assert update_model(model, array.isel(t=[0]), replace=True).surprise.cells == 0


def test_windows_and_ranks_are_checked():
    array = grid_of(field())
    model = fitted(array.isel(t=slice(0, 20)))
    with pytest.raises(SettingError, match="window 0"):
        model.update(array.isel(t=[20]), window=0)
    with pytest.raises(SettingError, match="rank 0"):
        model.update(array.isel(t=[20]), max_rank=0)


# --- long levels ---------------------------------------------------------------------------------


@pytest.fixture
def short_is_long(monkeypatch):
    """Levels of more than ten coordinates take the way of long ones."""
    monkeypatch.setattr(factors, "_LONG", 10)


def test_long_levels_answer_as_others_do(monkeypatch):
    array = grid_of(field())
    plain = fitted(array)
    monkeypatch.setattr(factors, "_LONG", 10)
    long = fitted(array)
    assert [s.triangular for s in long.cascade.spectra] == [False, False, True]
    assert_equal_models(long, plain)
    points = {"x": [0.03, 0.5, X[2]], "y": [0.2, 1.0, Y[1]], "t": [3.3, 24.0, T[5]]}
    np.testing.assert_allclose(long.predict_points(**points), plain.predict_points(**points))
    np.testing.assert_allclose(long.std_points(**points), plain.std_points(**points), rtol=1e-6)
    np.testing.assert_allclose(long.weights(3), plain.weights(3), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(long.predict(smooth=True), plain.predict(smooth=True), rtol=1e-9)


@settings(max_examples=15, deadline=None)
@given(parts=partitions())
def test_long_levels_grow_by_rows(parts):
    array = grid_of(field())
    with mock.patch.object(factors, "_LONG", 10):
        first, *others = [array.isel(t=sorted(part)) for part in parts]
        model = fitted(first)
        for part in others:
            model = model.update(part)
            model.cascade.spectra  # noqa: B018  it is worked out on the way
        assert_equal_models(model, fitted(array))


@pytest.mark.usefixtures("short_is_long")
def test_long_levels_keep_their_rows(tmp_path):
    array = grid_of(field())
    model = fitted(array.isel(t=slice(0, 20)))
    rows = model.cascade.spectra[2].vectors.T
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz").update(array.isel(t=slice(20, None)))
    assert np.array_equal(again.cascade.spectra[2].vectors.T[:20, :20], rows)
    assert_equal_models(again, fitted(array))
    assert_equal_models(
        thin(again.update(array.isel(t=[3]), replace=True, window=15), 12),
        thin(fitted(array.isel(t=slice(9, None))), 12),
    )
    smooth = [*LEVELS[:2], Level("t", Kernel("gaussian", 5.0), 1e-12)]
    assert not fitted(array, levels=smooth).cascade.spectra[2].triangular


def test_triangles_are_inverses_of_any_size():
    x = np.arange(300.0)
    gramian = gram(Kernel("matern32", 7.0), x, x)
    first = factor(gramian[:290, :290], 1e-3)
    whole = extend(first, gramian[:290, 290:], gramian[290:, 290:], 1e-3)
    inverse = (whole.vectors / (whole.values + 1e-3)) @ whole.vectors.T
    np.testing.assert_allclose(inverse @ (gramian + 1e-3 * np.eye(300)), np.eye(300), atol=1e-9)
    assert np.array_equal(np.triu(whole.vectors), whole.vectors)
