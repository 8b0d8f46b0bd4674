"""The order of slices, and which of them stay."""

import numpy as np
import pytest
from growing_grids import SMALL, assert_equal_models, field, fitted, grid_of, slices, small

from dkrls_cli.errors import InputError
from dkrls_cli.model.updating.order import observed_slices
from dkrls_cli.model.updating.update import update_model


def test_a_descending_axis_stays_descending():
    array = grid_of(field()).isel(t=slice(None, None, -1))
    model = fitted(array.isel(t=slice(5, None))).update(array.isel(t=slice(0, 5)))
    assert_equal_models(model, fitted(array))


def test_a_known_coordinate_is_refused_or_replaced():
    array = grid_of(field())
    model = fitted(array)
    with pytest.raises(InputError, match=r"3\.0 of 't' is in the model already.*replace"):
        model.update(array.isel(t=[3]))
    changed = array.copy(deep=True)
    changed[..., 3] += 1
    assert_equal_models(model.update(changed.isel(t=[3]), replace=True), fitted(changed))


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


@pytest.mark.slow
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


def test_observed_slices_have_a_cell_with_a_value():
    values = np.full((3, 4, 2), np.nan)
    values[1, 2, 0] = values[1, 3, 0] = 1.0
    assert observed_slices(values, 0).tolist() == [1]
    assert observed_slices(values, 1).tolist() == [2, 3]
    assert observed_slices(values, 2).tolist() == [0]
