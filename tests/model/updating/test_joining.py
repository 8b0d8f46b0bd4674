"""New slices among old ones, along long levels too."""

import numpy as np
import pytest
from growing_grids import SMALL, assert_equal_models, field, fitted, grid_of, slices, small
from hypothesis import given, settings
from hypothesis import strategies as st

from dkrls_cli import Kernel, Level, fit, load_model
from dkrls_cli.cascade.factors import choice
from dkrls_cli.model.updating.thinning import thin


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


def test_slices_that_follow_share_the_storage_of_those_before():
    model = small(range(20)).update(*slices([20]))
    after = model.update(*slices([21]), window=10)
    assert after.store.slices.buffer is model.store.slices.buffer
    again = after.update(*slices([22, 21]), replace=True)
    assert again.store.slices.buffer is not after.store.slices.buffer
    dropped = after.update(*slices([15]), replace=True, window=10)
    assert dropped.axes[1].numbers.tolist() == list(range(12, 22))
