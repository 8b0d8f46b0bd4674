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
from dkrls_cli.cascade.factors import choice
from dkrls_cli.cascade.kernels import kernel_named
from dkrls_cli.errors import InputError, SettingError
from dkrls_cli.model.update import observed_slices, thin, update_model


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


def test_long_levels_are_updated_as_others_are(tmp_path, monkeypatch):
    monkeypatch.setattr(choice, "LONG", 10)
    array = grid_of(field())
    model = fitted(array.isel(t=slice(0, 20)))
    model.save(tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz").update(array.isel(t=slice(20, None)))
    assert again.cascade.is_long(2)
    assert_equal_models(again, fitted(array))
    assert_equal_models(
        thin(again.update(array.isel(t=[3]), replace=True, window=15), 12),
        thin(fitted(array.isel(t=slice(9, None))), 12),
    )


# --- long last levels ----------------------------------------------------------------------------

LONG_T = {"even": np.arange(150.0), "uneven": np.cumsum(np.linspace(0.5, 1.5, 150))}
LONG_VALUES = np.random.default_rng(2).standard_normal((3, 150))
KINDS = {
    "plain": Kernel("matern52", 5.0),
    "constant": Kernel("matern32", 200.0, constant=1.0),
    "cycle": Kernel("matern12", 5.0, constant=0.5, cycle=24.0),
}


def long_model(kernel, places, steps="even", joint=False):
    """A model of slices on a long level."""
    ridge = 0.0 if joint else 1e-2
    levels = [Level("x", Kernel("matern32", 1.0), ridge), Level("t", KINDS[kernel], ridge)]
    how = {"noise": "joint", "ridge": 1e-2} if joint else {}
    axes = {"x": np.arange(3.0), "t": LONG_T[steps][places]}
    return fit(LONG_VALUES[:, places], axes, levels, mean=0.1, **how)


def assert_equal_long(model, other):
    t = other.axes[1].numbers
    at = {"x": [0.5, 2.0], "t": np.append(t[:-1] + 0.3 * np.diff(t), [t[0] - 0.2, t[-1] + 0.9])}
    assert model.axes[1].texts == other.axes[1].texts
    assert model.cascade.is_long(1)
    answers, expected = (m.predict(**at, extrapolate=True) for m in (model, other))
    np.testing.assert_allclose(answers, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.predict(), other.predict(), atol=1e-12)
    errors, expected = (m.std(**at, extrapolate=True) for m in (model, other))
    np.testing.assert_allclose(errors, expected, rtol=1e-6)


@st.composite
def long_partitions(draw):
    """Slices of a long level in parts that come in order, or in any order."""
    order = np.arange(150)
    if draw(st.booleans()):
        order = np.random.default_rng(draw(st.integers(0, 99))).permutation(order)
    cuts = sorted(draw(st.sets(st.integers(5, 149), min_size=1, max_size=5)))
    return [np.sort(part) for part in np.split(order, cuts)]


@pytest.mark.slow
@pytest.mark.parametrize("long", [8, 70])
@pytest.mark.parametrize("joint", [False, True], ids=["level", "joint"])
@pytest.mark.parametrize("kernel", KINDS)
@settings(max_examples=5, deadline=None)
@given(
    parts=long_partitions(),
    steps=st.sampled_from(list(LONG_T)),
    ask=st.booleans(),
    window=st.none() | st.integers(71, 140),
)
def test_an_updated_long_level_is_that_of_a_fit(parts, steps, ask, window, kernel, joint, long):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "LONG", long)
        first, *others = parts
        model = long_model(kernel, first, steps, joint)
        for part in others:
            if ask:  # the factor is known, and is handed on
                model.predict(t=LONG_T[steps][-1] + 1.0, extrapolate=True)
            model = model.update(LONG_VALUES[:, part], LONG_T[steps][part])
        if window is not None:
            last = LONG_VALUES[:, [149]], LONG_T[steps][[149]]
            model = model.update(*last, replace=True, window=window)
        kept = np.arange(150)[-window if window else 0 :]
        assert_equal_long(model, long_model(kernel, kept, steps, joint))


@pytest.mark.parametrize("joint", [False, True], ids=["level", "joint"])
def test_slices_follow_a_long_level_one_by_one(monkeypatch, joint):
    monkeypatch.setattr(choice, "LONG", 70)
    model = long_model("constant", np.arange(100), joint=joint)
    for place in range(100, 150):
        model = model.update(LONG_VALUES[:, place], LONG_T["even"][place], window=90)
        assert model.axes[1].numbers is model.cascade.coordinates[1]
    assert_equal_long(model, long_model("constant", np.arange(60, 150), joint=joint))


@pytest.mark.parametrize("joint", [False, True], ids=["level", "joint"])
def test_a_long_level_is_thinned_as_a_short_one(monkeypatch, joint):
    """Slices that are few enough go one by one."""
    model = long_model("constant", np.arange(90), "uneven", joint)
    short = thin(model, 86).axes[1].numbers
    monkeypatch.setattr(choice, "LONG", 70)
    model = long_model("constant", np.arange(90), "uneven", joint)
    assert model.cascade.is_long(1)
    np.testing.assert_array_equal(thin(model, 86).axes[1].numbers, short)


def test_longitudes_that_follow_keep_how_they_are_written():
    """Degrees are counted on behind 360 by the kernel, and written as they were given."""
    lon = np.arange(300.0, 360.0, 10.0)
    axes = {"y": np.arange(4.0), "lon": lon}
    levels = [Level("y", Kernel("matern32", 1.0), 1e-2), Level("lon", Kernel("matern32", 30.0))]
    model = fit(SMALL[:, :6], axes, levels, mean=0.1).update(SMALL[:, 6:8], [0.0, 10.0], window=7)
    assert model.axes[1].plain.tolist() == [310.0, 320.0, 330.0, 340.0, 350.0, 0.0, 10.0]
    assert model.axes[1].numbers.tolist() == [310.0, 320.0, 330.0, 340.0, 350.0, 360.0, 370.0]


# --- which slices are kept -----------------------------------------------------------------------

ROUTES = {  # name: old slices, new slices, and the order of both together
    "behind": (range(6), range(6, 16), sorted),
    "behind one slice": ([0], range(1, 9), sorted),
    "before": (range(10, 16), range(10), sorted),
    "between": (range(0, 20, 2), range(1, 20, 2), sorted),
    "backwards": (range(6), range(15, 5, -1), sorted),
    "descending": (range(15, 9, -1), range(9, -1, -1), lambda z: sorted(z, reverse=True)),
    "ahead of descending": (range(5, -1, -1), range(6, 16), lambda z: sorted(z, reverse=True)),
    "no order": ([3, 1, 2], [9, 7, 5, 8, 0], lambda z: z),
}


@pytest.mark.parametrize("joint", [False, True], ids=["level", "joint"])
@pytest.mark.parametrize("period", [None, 100.0], ids=["line", "circle"])
@pytest.mark.parametrize("route", ROUTES)
def test_a_window_keeps_the_slices_of_the_largest_coordinates(route, period, joint):
    """Also a window shorter than the new slices, on every way that slices can come."""
    old, new, order = ROUTES[route]
    model = small(old, joint, period)
    everything = [*old, *new]
    for window in (1, 2, len(new) - 1, len(new), len(new) + 1, len(everything) - 1):
        after = model.update(*slices(new), window=window)
        last = sorted(everything)[-window:]
        kept = [z for z in order(everything) if z in last]
        assert after.axes[1].numbers.tolist() == kept
        np.testing.assert_allclose(after.predict().values, SMALL[:, kept], atol=1e-12)
        at = {"x": [0.5], "t": [3.3, 12.4]}
        expected = small(kept, joint, period)
        np.testing.assert_allclose(
            after.predict(**at, extrapolate=True),
            expected.predict(**at, extrapolate=True),
            rtol=1e-9,
        )
    for window in (len(everything), len(everything) + 1, None):
        whole = model.update(*slices(new), window=window)
        assert whole.axes[1].numbers.tolist() == order(everything)
    assert model.axes[1].numbers.tolist() == list(old)


@pytest.mark.parametrize("joint", [False, True], ids=["level", "joint"])
@pytest.mark.parametrize("window", [2, 3, 9, 10, 12])
def test_a_window_of_slices_with_gaps_keeps_the_last(window, joint):
    after = small(range(6), joint).update(*slices(range(6, 16), gaps=True), window=window)
    kept = list(range(16))[-window:]
    assert after.axes[1].numbers.tolist() == kept
    assert after.unobserved.tolist() == [
        [row == 1 and z >= 6 and z % 2 == 0 for z in kept] for row in range(4)
    ]


TWICE = {  # name: period, old slices, new slices, what is told
    "behind": (None, range(6), [6, 7, 7, 8], "7.0"),
    "first of those behind": (None, range(6), [6, 6], "6.0"),
    "apart": (None, range(6), [9, 7, 9], "9.0"),
    "before": (None, range(10, 16), [2, 2], "2.0"),
    "descending": (None, range(9, 3, -1), [3, 2, 2], "2.0"),
    "on a circle": (12.0, range(6), [7, 8, 19], "7.0"),
    "around the circle": (12.0, range(1, 6), [12, 8, 24], "12.0"),
}


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
@pytest.mark.parametrize("joint", [False, True], ids=["level", "joint"])
@pytest.mark.parametrize("how", TWICE)
def test_a_coordinate_twice_among_new_slices_is_refused(how, joint, gaps):
    period, old, new, text = TWICE[how]
    model = small(old, joint, period)
    before = model.predict().values
    for options in ({}, {"replace": True}, {"window": 1}, {"max_rank": 3}):
        with pytest.raises(InputError, match=f"{text} of 't' is twice in the new slices"):
            model.update(*slices(new, gaps), **options)
    assert model.axes[1].numbers.tolist() == list(old)
    assert np.array_equal(model.predict().values, before)
    assert "slices_added" not in model.origin
    further = model.update(*slices([30]))
    assert further.axes[1].size == len(old) + 1


def test_an_empty_slice_does_not_count_as_a_second_one():
    values, t = slices([6, 7, 7])
    values[:, 1] = np.nan
    after = update_model(small(range(6)), values, t)
    assert (after.added, after.empty) == (2, 1)
    assert after.model.axes[1].numbers.tolist() == list(range(8))
    assert np.array_equal(after.model.predict().values, SMALL[:, range(8)])


@pytest.mark.parametrize(("period", "known"), [(None, 3), (12.0, 15), (12.0, 27)])
@pytest.mark.parametrize("gaps", [False, True])
def test_a_known_place_is_refused_unless_replaced(period, known, gaps):
    model, new = small(range(6), period=period), slices([known], gaps)
    with pytest.raises(InputError, match=rf"{known}\.0 of 't' is in the model already") as error:
        model.update(*new)
    assert error.value.setting == "replace"
    after = model.update(*new, replace=True)
    assert after.axes[1].size == 6
    assert sorted(after.axes[1].numbers % 12 if period else after.axes[1].numbers) == list(range(6))
    place = after.axes[1].numbers.tolist().index(known)
    np.testing.assert_allclose(after.predict().values[0, place], SMALL[0, known])
    assert (after.unobserved is not None) == gaps


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


def test_slices_that_follow_share_the_storage_of_those_before():
    model = small(range(20)).update(*slices([20]))
    after = model.update(*slices([21]), window=10)
    assert after.store.slices.buffer is model.store.slices.buffer
    again = after.update(*slices([22, 21]), replace=True)
    assert again.store.slices.buffer is not after.store.slices.buffer
    dropped = after.update(*slices([15]), replace=True, window=10)
    assert dropped.axes[1].numbers.tolist() == list(range(12, 22))


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


def test_observed_slices_have_a_cell_with_a_value():
    values = np.full((3, 4, 2), np.nan)
    values[1, 2, 0] = values[1, 3, 0] = 1.0
    assert observed_slices(values, 0).tolist() == [1]
    assert observed_slices(values, 1).tolist() == [2, 3]
    assert observed_slices(values, 2).tolist() == [0]


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
