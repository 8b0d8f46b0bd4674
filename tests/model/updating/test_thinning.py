"""Models with fewer slices or other settings, and how surprising new slices are."""

import math

import numpy as np
import pytest
from growing_grids import SMALL, T, assert_equal_models, field, fitted, grid_of, slices, small

from dkrls_cli import Kernel, Level, fit
from dkrls_cli.cascade.factors import choice
from dkrls_cli.cascade.kernels import gram
from dkrls_cli.model.updating import thinning
from dkrls_cli.model.updating.thinning import thin


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
    missed = fewer.predict(t=[gone], extrapolate=True).values - array.sel(t=[gone]).values
    assert fewer.origin["thinned"]["rmse"] == pytest.approx(np.sqrt(np.mean(missed**2)))
    assert thin(model, 24) is model


def dense_choice(numbers, level, most):
    """The slices that stay, each time without the one that the others predict best."""
    left = list(range(len(numbers)))
    ridge = level.ridge
    while len(left) > most:
        z = np.array([numbers[i] for i in left], float)
        system = gram(level.kernel, z, z) + ridge * np.eye(z.size)
        variance = 1 / np.linalg.inv(system).diagonal()
        del left[int(np.argmax(variance <= variance.min() * (1 + 2e-6)))]
    return left


@pytest.mark.parametrize("period", [None, 40.0])
def test_the_slice_that_others_span_best_goes_first(period):
    numbers = [0, 1, 2, 9, 10, 11, 12, 25, 26, 38]
    model = small(numbers, period=period)
    for most in (9, 6, 4, 2, 1):
        kept = [numbers[i] for i in dense_choice(numbers, model.levels[1], most)]
        assert thin(model, most).axes[1].numbers.tolist() == kept


def test_slices_of_a_singular_level_are_thinned_as_well():
    """Without a ridge of its own the level has that of round-off."""
    numbers = list(range(12))
    levels = [Level("x", Kernel()), Level("t", Kernel("gaussian", 30.0, constant=50.0))]
    values, t = slices(numbers)
    axes = {"x": np.arange(4.0), "t": t}
    model = fit(values, axes, levels, noise="joint", ridge=1e-2)
    fewer = thin(model, 3)
    assert fewer.axes[1].size == 3
    assert set(fewer.axes[1].numbers) < set(map(float, numbers))
    assert np.isfinite(fewer.origin["thinned"]["rmse"])


def test_among_equals_the_oldest_goes_first():
    around = small(range(0, 40, 5), period=40.0)
    assert thin(around, 7).axes[1].numbers.tolist() == list(range(5, 40, 5))
    assert thin(around, 8) is around


def test_the_cost_of_thinning_is_pooled_over_all_slices_that_went():
    model = small(range(20))
    first = thin(model, 15)
    second = thin(first, 12)
    gone = [
        sorted(set(a.axes[1].numbers) - set(b.axes[1].numbers))
        for a, b in ((model, first), (first, second))
    ]
    squares = []
    for after, numbers in zip((first, second), gone, strict=True):
        missed = (
            after.predict(t=numbers, extrapolate=True).values - SMALL[:, [int(z) for z in numbers]]
        )
        squares.append(np.sum(missed**2))
    told = second.origin["thinned"]
    assert (len(gone[0]), len(gone[1]), told["slices"]) == (5, 3, 8)
    assert told["rmse"] == pytest.approx(math.sqrt(sum(squares) / (8 * 4)))


def test_cells_that_were_missing_do_not_count_as_missed():
    values, t = slices(range(6, 12), gaps=True)
    model = small(range(6)).update(values, t)
    fewer = thin(model, 11)
    (gone,) = set(range(12)) - set(fewer.axes[1].numbers.astype(int))
    missed = fewer.predict(t=[float(gone)], extrapolate=True).values[:, 0] - SMALL[:, gone]
    seen = ~model.unobserved[:, gone]
    assert fewer.origin["thinned"]["rmse"] == pytest.approx(np.sqrt(np.mean(missed[seen] ** 2)))


@pytest.fixture
def short_is_long(monkeypatch):
    """Levels of more than 60 coordinates are long."""
    monkeypatch.setattr(choice, "LONG", 60)


TIME = Level("t", Kernel("matern32", 5.0), 1e-2)


def long_model(numbers):
    """A model of slices of noise, its last level as :data:`TIME`."""
    values = np.random.default_rng(0).standard_normal((3, len(numbers)))
    axes = {"x": np.arange(3.0), "t": np.asarray(numbers, float)}
    return fit(values, axes, [Level("x", Kernel("matern32", 1.0), 1e-2), TIME])


@pytest.mark.parametrize("gone", [1, 2, 4])
def test_a_few_slices_of_a_long_level_go_one_by_one(gone, short_is_long):
    numbers = np.sort(np.random.default_rng(3).uniform(0, 200, 90)).tolist()
    model = long_model(numbers)
    kept = [numbers[i] for i in dense_choice(numbers, TIME, 90 - gone)]
    assert thin(model, 90 - gone).axes[1].numbers.tolist() == kept


def test_among_equals_of_a_long_level_the_oldest_goes_first(monkeypatch):
    dense = thin(long_model(range(0, 400, 4)), 97)
    monkeypatch.setattr(choice, "LONG", 60)
    long = thin(long_model(range(0, 400, 4)), 97)
    assert long.axes[1].numbers.tolist() == dense.axes[1].numbers.tolist()


@pytest.mark.parametrize("most", [70, 40])
def test_many_slices_of_a_long_level_go_nearly_as_well_as_one_by_one(most, short_is_long):
    """Measured by the variance that the slices left leave of those that went."""
    numbers = np.sort(np.random.default_rng(5).uniform(0, 150, 100))

    def left(kept):
        gone = np.setdiff1d(np.arange(100), kept)
        z, q = numbers[kept], numbers[gone]
        system = gram(TIME.kernel, z, z) + TIME.ridge * np.eye(z.size)
        cross = gram(TIME.kernel, q, z)
        explained = np.einsum("qz,zq->q", cross, np.linalg.solve(system, cross.T))
        return float((1.0 - explained).sum())

    kept = thinning._least_dependent_of_many(TIME, numbers, most)
    assert kept.size == most
    assert left(kept) < 1.1 * left(dense_choice(numbers, TIME, most))


def test_slices_that_go_at_once_are_no_neighbours():
    precision = np.array([5.0, 9.0, 9.0, 8.0, 1.0, 7.0])
    assert thinning._pick_apart(precision, np.arange(6.0), 6) == [1, 3, 5]
    assert thinning._pick_apart(precision, np.arange(6.0), 2) == [1, 3]
    mixed = np.array([0.0, 2.0, 1.0, 5.0, 4.0, 3.0])
    assert thinning._pick_apart(precision, mixed, 6) == [1, 3, 0]
