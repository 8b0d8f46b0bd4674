"""Slices left out in folds, against dense solves, and the law of error bars between coordinates."""

from functools import reduce

import numpy as np
import pytest

from dkrls_cli.cascade.calibration import folds as module
from dkrls_cli.cascade.calibration.folds import (
    BetweenScale,
    find_between_scale,
    leave_out_folds,
)
from dkrls_cli.cascade.errorbars.bars import Z90
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.level import Level

RIDGE = 0.02
KERNELS = [Kernel("matern32", 2.0), Kernel("matern52", 3.0, period=9.0), Kernel("matern12", 4.0)]
AXES = [np.array([3.0, 0.0, 1.0, 2.5, 6.0, 4.0, 5.2]), np.arange(9.0), np.arange(3.0)]


def everything(fold):
    return np.ones(fold.missed.shape, bool)


def model_of(values, axes=AXES, kernels=KERNELS, mean=0.3, **how):
    levels = [Level(f"level{n}", kernel) for n, kernel in enumerate(kernels)]
    return fit_cascade(values, axes, levels, joint_ridge=RIDGE, mean=mean, **how)


def random_model(**how):
    return model_of(np.random.default_rng(0).standard_normal((7, 9, 3)), **how)


def dense(model, values, kept, queries):
    """Predictions and the variance left, of the whole grid in one dense solve."""
    axes = [c[k] for c, k in zip(model.coordinates, kept, strict=True)]
    kernels = [level.kernel for level in model.levels]
    system = reduce(np.kron, [gram(k, c, c) for k, c in zip(kernels, axes, strict=True)])
    cross = reduce(np.kron, [gram(k, q, c) for k, q, c in zip(kernels, queries, axes, strict=True)])
    inverse = np.linalg.inv(system + RIDGE * np.eye(len(system)))
    known = values[np.ix_(*kept)].ravel() - model.mean
    prior = np.prod([kernel.variance for kernel in kernels])
    left = prior - np.einsum("ij,jk,ik->i", cross, inverse, cross) + RIDGE
    shape = [query.size for query in queries]
    return (cross @ inverse @ known + model.mean).reshape(shape), left.reshape(shape)


def test_folds_predict_as_dense_solves_do():
    model = random_model()
    values = model.predict()
    found = list(leave_out_folds(model))
    assert len(found) == 5
    for fold in found:
        predicted, left = dense(model, values, fold.kept, fold.queries)
        out = np.ones(values.shape, bool)
        out[np.ix_(*fold.kept)] = False
        out, truth = out[np.ix_(*fold.places)], values[np.ix_(*fold.places)]
        np.testing.assert_allclose(fold.missed[out], (predicted - truth)[out], atol=1e-11)
        assert not fold.missed[~out].any()
        np.testing.assert_allclose(fold.left, left, atol=1e-11)


def test_every_inner_slice_is_left_out_once_and_no_two_neighbours_together():
    model = random_model()
    gone = [np.zeros(size, int) for size in model.shape]
    for fold in leave_out_folds(model):
        for axis, (kept, size) in enumerate(zip(fold.kept, model.shape, strict=True)):
            out = np.setdiff1d(np.arange(size), kept)
            gone[axis][out] += 1
            ranks = np.argsort(np.argsort(model.coordinates[axis]))[out]
            assert (np.diff(np.sort(ranks)) >= 5).all()
    assert gone[0].tolist() == [1, 0, 1, 1, 0, 1, 1]  # a line keeps its ends, 0.0 and 6.0
    assert gone[1].tolist() == [1] * 9  # a circle has none
    assert gone[2].tolist() == [1] * 3  # three slices are too few to spare two


def test_one_coordinate_is_never_left_out():
    model = model_of(np.ones((1, 9, 1)), [np.zeros(1), AXES[1], np.zeros(1)])
    found = list(leave_out_folds(model))
    assert all(fold.kept[0].size == fold.kept[2].size == 1 for fold in found)
    assert sum(fold.kept[1].size < 9 for fold in found) == len(found) == 5
    single = model_of(np.ones((1,)), [np.zeros(1)], KERNELS[:1])
    assert not list(leave_out_folds(single))
    alone = find_between_scale(single, everything)
    assert alone.factors.tolist() == [alone.climate / alone.open] * 2


def test_patterns_tell_which_levels_are_left_out():
    fold = next(leave_out_folds(random_model()))
    counted = np.zeros(fold.missed.shape, int)
    for pattern in np.ndindex(2, 2, 2):
        counted[fold.cells(pattern)] += 1
        for axis, on in enumerate(pattern):
            ranks = np.unique(np.broadcast_arrays(*fold.cells(pattern))[axis])
            assert np.isin(fold.places[axis][ranks], fold.kept[axis], invert=bool(on)).all()
    assert (counted == 1).all()


def test_bands_hold_nine_of_ten_cells_of_every_pattern(monkeypatch):
    monkeypatch.setattr(module, "_uncertainty", lambda cascade, pattern: 1.0)
    monkeypatch.setattr(module, "_ENOUGH", 1)
    model = random_model()
    scale, folds = find_between_scale(model, everything), list(leave_out_folds(model))
    for pattern in list(np.ndindex(2, 2, 2))[1:]:
        missed = np.concatenate([fold.missed[fold.cells(pattern)].ravel() for fold in folds])
        left = np.concatenate([fold.left[fold.cells(pattern)].ravel() for fold in folds])
        inside = np.abs(missed) <= Z90 * np.sqrt(scale.factors[pattern] * left) * (1 + 1e-9)
        assert inside.mean() == pytest.approx(0.9, abs=1.0 / missed.size)
        assert scale.usual[pattern] == pytest.approx(np.median(left))


def test_only_cells_that_count_do_and_few_of_them_leave_it_to_the_next():
    model = random_model()

    def first_column(fold):
        return np.broadcast_to(fold.places[2] == 0, fold.missed.shape)

    def nothing(fold):
        return np.zeros(fold.missed.shape, bool)

    one = find_between_scale(model, first_column)
    assert one.factors[1, 0, 0] != find_between_scale(model, everything).factors[1, 0, 0]
    again = find_between_scale(model, nothing, first_column)
    np.testing.assert_array_equal(again.factors, one.factors)
    none = find_between_scale(model, nothing)
    assert (none.factors == none.climate / none.open).all()
    assert (none.usual == none.open).all()


def test_a_pattern_without_cells_takes_the_largest_factor_of_its_levels():
    factors = np.full((2, 2, 2), np.nan)
    usual = factors.copy()
    factors[1, 0, 0], factors[0, 1, 0], factors[0, 1, 1] = 2.0, 5.0, 7.0
    usual[1, 0, 0], usual[0, 1, 0], usual[0, 1, 1] = 0.2, 0.5, 0.7
    module._complete(factors, usual, 9.0, 18.0)
    assert factors.ravel().tolist() == [7.0, 7.0, 5.0, 7.0, 2.0, 2.0, 5.0, 5.0]
    assert usual.ravel().tolist() == [9.0, 9.0, 0.5, 0.7, 0.2, 0.2, 0.5, 0.5]


def test_few_cells_of_a_pattern_tell_a_mean_square():
    values = np.random.default_rng(3).standard_normal((4, 3))
    model = model_of(values, [np.arange(4.0), np.arange(3.0)], KERNELS[::2])
    found, folds = find_between_scale(model, everything), list(leave_out_folds(model))
    for pattern in ((1, 0), (0, 1), (1, 1)):
        squares = np.concatenate([(f.missed**2 / f.left)[f.cells(pattern)].ravel() for f in folds])
        assert 0 < squares.size < module._ENOUGH
        expected = squares.mean() * module._uncertainty(model, pattern)
        assert found.factors[pattern] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("pattern", "slices"), [((1, 0, 0), 5), ((0, 1, 0), 9), ((0, 0, 1), 3), ((1, 1, 1), 3)]
)
def test_few_slices_are_less_certain(pattern, slices):
    expected = module.student_factor(slices)
    assert module._uncertainty(random_model(), pattern) == expected


def test_the_factor_of_a_pattern_is_wider_where_few_slices_tell(monkeypatch):
    wide = find_between_scale(random_model(), everything)
    monkeypatch.setattr(module, "student_factor", lambda slices: 1.0)
    plain = find_between_scale(random_model(), everything)
    ratios = (wide.factors / plain.factors)[(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    np.testing.assert_allclose(ratios, [1.5008, 1.0, 2.0470])
    np.testing.assert_array_equal(wide.usual, plain.usual)


@pytest.mark.parametrize("shape", [(7, 9, 3), (2, 9, 1), (1, 9, 1), (4, 9, 2)])
def test_scales_go_with_the_units_and_not_with_the_mean(shape):
    values = np.random.default_rng(1).standard_normal(shape)
    axes = [axis[:size] for axis, size in zip(AXES, shape, strict=True)]
    one = find_between_scale(model_of(values, axes, mean=0.0), everything)
    other = find_between_scale(model_of(1e3 * values + 50.0, axes, mean=50.0), everything)
    for pattern in np.ndindex(2, 2, 2):
        assert other.factors[pattern] == pytest.approx(1e6 * one.factors[pattern], rel=1e-6)
        assert other.usual[pattern] == pytest.approx(one.usual[pattern])
    assert other.climate == pytest.approx(1e6 * one.climate)
    assert one.climate == pytest.approx((values**2).mean())
    assert one.open == pytest.approx(1.0 + RIDGE)


@pytest.mark.parametrize("shape", [(2, 2), (3, 1, 2), (1, 40), (5, 2, 3), (4,)])
@pytest.mark.parametrize("ridge", [0.0, 1e-14, 0.1])
def test_small_grids_and_tiny_ridges_have_finite_bars(shape, ridge):
    """Smooth kernels leave nothing open but round-off."""
    axes = [np.arange(float(size)) for size in shape]
    levels = [Level(f"level{n}", Kernel("gaussian", 4.0)) for n in range(len(shape))]
    values = np.random.default_rng(6).standard_normal(shape)
    model = fit_cascade(values, axes, levels, joint_ridge=ridge)
    scale = find_between_scale(model, everything)
    assert np.isfinite(scale.factors).all()
    assert (scale.factors >= 0).all()
    pattern = [np.ones(1, int)] * len(shape)
    found = scale.variance(np.array([0.0, 1e-17, 1e-3, 1.0]).reshape(-1, *[1] * len(axes)), pattern)
    assert np.isfinite(found).all()
    assert (np.diff(found.ravel()) >= 0).all()


def test_framed_data_is_the_same_as_samples():
    """Data of few directions is kept in a frame of these."""
    x, y = np.linspace(0, 1, 40), np.linspace(0, 1, 30)
    values = np.outer(np.sin(3 * x), np.cos(2 * y))
    model = model_of(values, [x, y], KERNELS[::2], mean=0.0)
    assert any(frame is not None for frame in model.frames)
    one = find_between_scale(model, everything)
    plain = model.__class__(
        model.levels, model.coordinates, (None, None), (None, None), values, RIDGE
    )
    two = find_between_scale(plain, everything)
    np.testing.assert_allclose(one.factors, two.factors, rtol=1e-8)
    assert one.climate == pytest.approx(two.climate)


def test_a_large_grid_is_seen_in_parts_that_differ(monkeypatch):
    model = random_model()
    monkeypatch.setattr(module, "_CELLS", 7 * 3 * 4)
    monkeypatch.setattr(module, "_FOLDS", 2)
    found = list(leave_out_folds(model))
    assert [fold.places[1].tolist() for fold in found] == [[0, 1, 2, 3], [5, 6, 7, 8]]
    assert all(fold.places[0].size == 7 for fold in found)
    for fold in found:  # a part of a circle is a line: its ends stay
        assert {fold.places[1][0], fold.places[1][-1]} <= set(fold.kept[1].tolist())
        assert fold.missed.shape == (7, 4, 3)
    assert np.isfinite(find_between_scale(model, everything).factors).all()


def test_the_variance_is_a_factor_near_and_goes_over_to_the_climate_far_from_data():
    factors, usual = np.array([1.0, 0.5]), np.array([1.0, 0.01])
    scale = BetweenScale(factors, usual, open=1.0, climate=20.0)
    between = np.array([1])
    near = scale.variance(np.array([1e-4, 1e-2]), (between,))
    np.testing.assert_allclose(near, [0.5e-4, 0.5e-2])
    assert scale.variance(np.array([1.0]), (between,))[0] == pytest.approx(20.0)
    middle = scale.variance(np.array([0.1]), (between,))[0]  # half-way in logarithms
    assert middle == pytest.approx(np.sqrt(0.5e-2 * 20.0))
    left = np.geomspace(1e-6, 1.0, 200)
    assert (np.diff(scale.variance(left, (between,))) > 0).all()
    nothing_left_out = scale.variance(np.array([0.3]), (np.array([0]),))
    assert nothing_left_out.tolist() == [0.3]


def test_errors_larger_than_the_climate_do_not_shrink_far_from_data():
    scale = BetweenScale(np.array([1.0, 50.0]), np.array([1.0, 0.1]), open=1.0, climate=2.0)
    found = scale.variance(np.array([0.1, 0.5, 1.0]), (np.array([1]),))
    np.testing.assert_allclose(found, [5.0, 5.0, 5.0])
    flat = BetweenScale(np.array([1.0, 50.0]), np.array([1.0, 1.0]), open=1.0, climate=2.0)
    just_above = np.array([1.0, 1.0 + 1e-12])  # of the prior: by rounding
    np.testing.assert_allclose(flat.variance(just_above, (np.array([1]),)), 50.0, rtol=1e-9)
    exact = BetweenScale(np.array([1.0, 0.0]), np.array([1.0, 0.1]), open=1.0, climate=0.0)
    np.testing.assert_allclose(
        exact.variance(np.array([0.1, 1.0]), (np.array([1]),)), 0.0, atol=1e-99
    )


@pytest.mark.slow
def test_a_long_level_is_seen_in_runs():
    values = np.random.default_rng(2).standard_normal((1500, 2))
    axes = [np.arange(1500.0), np.arange(2.0)]
    folds = [module._window(values.shape, fold) for fold in range(5)]
    assert [(w[0][0], w[0][-1]) for w in folds][::4] == [(0, 1023), (476, 1499)]
    assert all(w[0].size == 1024 and w[1].size == 2 for w in folds)
    model = model_of(values, axes, [Kernel("matern12", 3.0), Kernel("matern12", 4.0)], mean=0.0)
    assert not any(fold.cascade.is_long(0) for fold in leave_out_folds(model))
