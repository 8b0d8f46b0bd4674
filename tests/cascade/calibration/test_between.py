"""Errors between coordinates of a grid with filled cells, against loops over its cells."""

from dataclasses import replace

import numpy as np
import pytest

from dkrls_cli.cascade.calibration import between as module
from dkrls_cli.cascade.calibration.between import BetweenErrors, grid_pattern, point_pattern
from dkrls_cli.cascade.calibration.folds import (
    BetweenScale,
    find_between_scale,
    leave_out_folds,
)
from dkrls_cli.cascade.fit import fit_cascade
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level

AXES = [np.arange(10.0), np.arange(9.0), np.arange(6.0)]
KERNELS = [Kernel("matern32", 3.0), Kernel("matern32", 3.0, period=9.0), Kernel("matern12", 2.0)]


def filled():
    """A model of a grid with a hole and scattered gaps, and its filled cells."""
    rng = np.random.default_rng(4)
    missing = rng.random((10, 9, 6)) < 0.15
    missing[2:7, 2:6] = True
    levels = [Level(n, k) for n, k in zip("abc", KERNELS, strict=True)]
    return fit_cascade(rng.standard_normal(missing.shape), AXES, levels, joint_ridge=0.05), missing


def around(place, kept, size, circle):
    """The nearest places that are kept, before and after one that is left out."""
    if place in kept:
        return [place]
    steps = range(1, size)
    before = next(p for s in steps if (p := (place - s) % size if circle else place - s) in kept)
    after = next(p for s in steps if (p := (place + s) % size if circle else place + s) in kept)
    return [before, after]


def test_slices_are_judged_by_observed_cells_among_observed_ones():
    model, missing = filled()
    errors = BetweenErrors(missing)
    for fold in leave_out_folds(model):
        counted = errors.count_surrounded(fold)
        for place in np.ndindex(missing.shape):
            near = [
                around(z, set(kept.tolist()), size, axis == 1)
                for axis, (z, kept, size) in enumerate(
                    zip(place, fold.kept, missing.shape, strict=True)
                )
            ]
            beside = missing[np.ix_(*near)].any()
            assert counted[place] == (not missing[place] and not beside)
        np.testing.assert_array_equal(errors.count_observed(fold), ~missing)


def test_errors_are_measured_once_for_a_model_and_only_between_coordinates(monkeypatch):
    model, missing = filled()
    calls = []

    def counting(*given):
        calls.append(1)
        return find_between_scale(*given)

    monkeypatch.setattr(module, "find_between_scale", counting)
    errors, left = BetweenErrors(missing), np.full((2, 1, 1), 0.05)
    at_cells = grid_pattern([np.array([0, 1]), np.array([3]), np.array([2])])
    assert errors.variance(model, left, at_cells, unasked).tolist() == [[[0.0]], [[0.0]]]
    assert calls == []
    some = grid_pattern([np.array([0, -1]), np.array([3]), np.array([2])])
    found = errors.variance(model, left, some, unasked)
    expected = errors.scale_in(model).variance(left[1], [np.ones(1, int), *[np.zeros(1, int)] * 2])
    assert found[0, 0, 0] == 0.0
    assert found[1, 0, 0] == expected[0, 0] > 0
    assert calls == [1]


def unasked():
    raise AssertionError("no answer is far from the data here")


@pytest.mark.parametrize(
    ("left", "answer", "expected"),
    [
        (0.1, None, 0.8),
        (0.22, None, 1.6 * 1.25 ** (np.log(1.1) / np.log(5.0))),  # less than the data varies
        (0.4, 0.3, 2.0),
        (0.4, 1.3, 3.0),
        (0.4, 30.3, 3.2),  # no more than the kernel says
    ],
)
def test_answers_far_beyond_the_data_may_be_as_wrong_as_they_are_far(left, answer, expected):
    model, missing = filled()
    model = replace(model, mean=0.3)
    known = BetweenScale(np.full((2, 2, 2), 8.0), np.full((2, 2, 2), 0.2), open=1.0, climate=2.0)
    ask = unasked if answer is None else lambda: np.full((1, 1, 1), answer)
    pattern = grid_pattern([np.array([-1]), np.array([3]), np.array([2])])
    found = BetweenErrors(missing, known).variance(model, np.full((1, 1, 1), left), pattern, ask)
    assert found.item() == pytest.approx(expected)


def test_what_is_known_is_not_measured_again(monkeypatch):
    model, missing = filled()
    monkeypatch.setattr(module, "find_between_scale", None)
    known = BetweenScale(np.full((2, 2, 2), 2.0), np.ones((2, 2, 2)), open=1.0, climate=1.0)
    errors = BetweenErrors(missing, known)
    assert errors.scale_in(model) is known
    with pytest.raises(TypeError):
        BetweenErrors(missing).scale_in(model)


def test_patterns_of_points_and_of_axes_beside_them():
    model, _ = filled()
    points = [np.array([0.0, 0.5]), np.array([9.0, 4.0]), np.array([1.0, 1.5, 2.0])]
    found = point_pattern(model, points, [2], smooth=False)
    whole = np.broadcast_arrays(*found)
    assert whole[0].tolist() == [[0] * 3, [1] * 3]
    assert whole[1].tolist() == [[0] * 3] * 2  # 9 is 0 on the circle
    assert whole[2].tolist() == [[0, 1, 0]] * 2
    assert all((each == 1).all() for each in point_pattern(model, points, [2], smooth=True))
    assert [each.tolist() for each in grid_pattern([np.array([2, -1]), np.array([-1])])] == [
        [[0], [1]],
        [[1]],
    ]
