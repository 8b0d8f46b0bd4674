"""Hidden cells are sampled by distance, and each has the observed cells around it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.tuning.masks import HiddenWindow
from dkrls_cli.tuning.trials.neighbours import find_neighbourhoods

AXES = (np.arange(30.0), np.arange(40.0) * 2)


def window_of(hidden, missing=None, axes=AXES, weights=None):
    values = np.random.default_rng(0).standard_normal(hidden.shape)
    if missing is not None:
        values[missing] = np.nan
    return HiddenWindow(axes, values, hidden, values, None, weights)


def block(corner, sides, shape=(30, 40)):
    hidden = np.zeros(shape, bool)
    hidden[tuple(slice(c, c + s) for c, s in zip(corner, sides, strict=True))] = True
    return hidden


def found(window, cells=50, neighbours=12):
    return find_neighbourhoods(window, cells, neighbours, np.random.default_rng(1))


def test_neighbours_are_observed_cells_and_the_hidden_cell_is_last():
    missing = block((20, 20), (4, 4))
    window = window_of(block((5, 8), (9, 9)), missing)
    near = found(window)
    places = np.stack(near.places, axis=-1)
    assert window.hidden[tuple(places[:, -1].T)].all()
    others = places[:, :-1].reshape(-1, 2)
    assert np.isfinite(window.seen[tuple(others.T)]).all()
    np.testing.assert_array_equal(near.values.ravel(), window.values[tuple(others.T)])
    np.testing.assert_array_equal(near.truth, window.values[tuple(places[:, -1].T)])
    assert near.coordinates is window.coordinates


def test_no_neighbour_comes_twice():
    near = found(window_of(block((5, 8), (9, 9))))
    flat = near.places[0][:, :-1] * 40 + near.places[1][:, :-1]
    assert all(np.unique(row).size == 12 for row in flat)


def test_the_nearest_cells_are_among_the_neighbours():
    hidden = np.zeros((30, 40), bool)
    hidden[15, 20] = True
    near = found(window_of(hidden), neighbours=16)
    offsets = {
        (int(i) - 15, int(j) - 20) for i, j in zip(*(p[0, :-1] for p in near.places), strict=True)
    }
    assert {(0, 1), (0, -1), (1, 0), (-1, 0)} <= offsets
    # far along each axis in turn: measures that prefer one of them
    assert max(abs(i) for i, _ in offsets) >= 3
    assert max(abs(j) for _, j in offsets) >= 3


def test_a_grid_of_few_cells_has_all_of_them_as_neighbours():
    hidden = np.zeros(6, bool)
    hidden[2] = True
    near = found(window_of(hidden, axes=(np.arange(6.0),)), neighbours=12)
    assert sorted(near.places[0][0, :-1]) == [0, 1, 3, 4, 5]


def test_weights_of_every_distance_stay_what_they_are():
    window = window_of(block((2, 2), (20, 20)))
    near = found(window, cells=60)
    whole = np.bincount(window.powers, window.shares)
    np.testing.assert_allclose(np.bincount(near.powers, near.weights), whole)
    assert 60 <= near.truth.size < 100
    assert np.bincount(near.powers).min() >= 12


def test_cells_without_weight_are_not_chosen():
    hidden = block((2, 2), (6, 6))
    weights = np.zeros(36)
    weights[[3, 20]] = 0.5
    near = found(window_of(hidden, weights=weights))
    assert sorted(zip(*(p[:, -1].tolist() for p in near.places), strict=True)) == [(2, 5), (5, 4)]


def test_a_window_without_hidden_cells_has_no_neighbourhoods():
    assert found(window_of(np.zeros((30, 40), bool))).truth.size == 0


@given(st.lists(st.lists(st.integers(0, 9), min_size=12, max_size=12), min_size=1, max_size=5))
def test_first_distinct_numbers_keep_their_order(rows):
    from dkrls_cli.tuning.trials.neighbours import _first_distinct

    expected = [list(dict.fromkeys(row)) for row in rows]
    count = min(map(len, expected))
    got = _first_distinct(np.array(rows), count)
    assert got.tolist() == [row[:count] for row in expected]
