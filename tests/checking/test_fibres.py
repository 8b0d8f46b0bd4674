import numpy as np
import pytest

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.checking.fibres import Window, WindowModel, leave_out, residuals_in, windows


def covariance(size, sigma=2.0, ridge=0.1, rng=None):
    numbers = np.arange(float(size)) if rng is None else np.sort(rng.uniform(0, size, size))
    return gram(Kernel("matern32", sigma), numbers, numbers) + ridge * np.eye(size)


def by_refit(c, y, used):
    """Predict every cell from the used ones but itself, by a dense solve each."""
    left, spread = np.empty(y.size), np.empty(y.size)
    for i in range(y.size):
        o = used.copy()
        o[i] = False
        weights = np.linalg.solve(c[np.ix_(o, o)], c[o, i])
        left[i] = y[i] - weights @ y[o]
        spread[i] = np.sqrt(c[i, i] - weights @ c[o, i])
    return left, spread


def test_residuals_are_those_of_refits_without_the_cell():
    rng = np.random.default_rng(1)
    c = covariance(9, rng=rng)
    y = rng.normal(size=(9, 4))
    used = np.ones((9, 4), bool)
    used[[2, 3], 1] = used[0, 2] = False
    used[:, 3] = [1, 0, 0, 0, 0, 0, 0, 0, 1]
    left, spread = residuals_in(y, used, np.linalg.inv(c), slice(0, 9))
    for column in range(4):
        expected = by_refit(c, y[:, column], used[:, column])
        np.testing.assert_allclose(left[:, column], expected[0], atol=1e-9)
        np.testing.assert_allclose(spread[:, column], expected[1], atol=1e-9)


def test_a_fibre_without_cells_is_predicted_by_the_mean():
    c = covariance(5)
    y = np.arange(5.0)[:, None]
    left, spread = residuals_in(y, np.zeros((5, 1), bool), np.linalg.inv(c), slice(0, 5))
    np.testing.assert_allclose(left, y, atol=1e-12)
    np.testing.assert_allclose(spread[:, 0], np.sqrt(np.diag(c)))


def test_two_axes_leave_a_cell_out_of_their_product():
    rng = np.random.default_rng(2)
    c1, c2 = covariance(5), covariance(6, sigma=1.0)
    y = rng.normal(size=(5, 6))
    used, left, spread = np.ones(y.shape, bool), y, np.ones(y.shape)
    for axis, c in enumerate((c1, c2)):
        size = len(c)
        model = WindowModel(Window(np.arange(size), slice(0, size)), np.linalg.inv(c))
        found = leave_out(left, used, axis, [model])
        left, spread = found.left, spread * found.spread
    expected = by_refit(np.kron(c1, c2), y.ravel(), used.ravel())
    np.testing.assert_allclose(left.ravel(), expected[0], atol=1e-9)
    np.testing.assert_allclose(spread.ravel(), expected[1], atol=1e-9)


@pytest.mark.parametrize(("size", "ring"), [(256, False), (257, False), (700, False), (700, True)])
def test_windows_answer_for_every_place_once_with_neighbours_on_both_sides(size, ring):
    found = windows(size, ring)
    inner = np.concatenate([w.places[w.inner] for w in found])
    assert sorted(inner.tolist()) == list(range(size))
    assert (len(found) == 1) == (size <= 256)
    for w in found:
        start, stop = w.inner.start, w.places.size - w.inner.stop
        at_ends = w.places[w.inner][0] == 0, w.places[w.inner][-1] == size - 1
        assert (start == 32 or (at_ends[0] and not ring)) or len(found) == 1
        assert (stop == 32 or (at_ends[1] and not ring)) or len(found) == 1


def test_windows_of_a_long_axis_agree_with_the_whole():
    rng = np.random.default_rng(3)
    c = covariance(400, sigma=3.0, ridge=0.05)
    y, used = rng.normal(size=(400, 2)), np.ones((400, 2), bool)
    used[150:170, 0] = False
    models = [
        WindowModel(w, np.linalg.inv(c[np.ix_(w.places, w.places)])) for w in windows(400, False)
    ]
    found = leave_out(y, used, 0, models)
    whole = residuals_in(y, used, np.linalg.inv(c), slice(0, 400))
    np.testing.assert_allclose(found.left, whole[0], atol=1e-6)


def test_only_fibres_that_changed_are_computed_again():
    rng = np.random.default_rng(4)
    y = rng.normal(size=(6, 5))
    y[2, 2] = np.nan
    model = [WindowModel(Window(np.arange(6), slice(0, 6)), np.linalg.inv(covariance(6)))]
    used = np.ones(y.shape, bool)
    first = leave_out(y, used, 0, model)
    fewer = used.copy()
    fewer[1, 3] = False
    again, fresh = leave_out(y, fewer, 0, model, first), leave_out(y, fewer, 0, model)
    np.testing.assert_allclose(again.left, fresh.left, rtol=1e-12)
    np.testing.assert_allclose(again.spread, fresh.spread, rtol=1e-12)
    np.testing.assert_array_equal(again.left[:, 0], first.left[:, 0])
    other = y.copy()
    other[0, 0] += 1.0
    again = leave_out(other, used, 0, model, first)
    fresh = leave_out(other, used, 0, model)
    np.testing.assert_allclose(again.left, fresh.left, rtol=1e-12)
    assert np.isnan(again.left[2, 2])


def test_a_bad_cell_that_is_left_out_touches_no_other():
    rng = np.random.default_rng(5)
    y, used = rng.normal(size=(8, 3)), np.ones((8, 3), bool)
    used[4, 1] = False
    inverse = np.linalg.inv(covariance(8))
    worse = y.copy()
    worse[4, 1] += 1000.0
    one = residuals_in(y, used, inverse, slice(0, 8))[0]
    other = residuals_in(worse, used, inverse, slice(0, 8))[0]
    difference = other - one
    assert difference[4, 1] == pytest.approx(1000.0)
    difference[4, 1] = 0.0
    np.testing.assert_allclose(difference, 0.0, atol=1e-9)
