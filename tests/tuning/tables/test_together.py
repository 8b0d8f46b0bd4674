"""One spline on all levels is compared with the settings that were chosen level by level."""

import math
from functools import reduce

import numpy as np
import pytest

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.cascade.splines.cardinal import spline_rows
from dkrls_cli.errors import InputError
from dkrls_cli.tuning.candidates import Candidate, LevelChoice
from dkrls_cli.tuning.tables import together
from dkrls_cli.tuning.tables.together import (
    CELLS,
    OwnLevel,
    choose_together,
    compare,
    cut_boxes,
    is_within_error,
    leave_out,
)

RNG = np.random.default_rng(5)
X = np.array([0.0, 0.7, 1.5, 2.9, 3.4, 4.2, 5.5])
KERNEL, RIDGE = Kernel("matern32", 2.0, constant=1.0), 1e-3
ALIKE = {"linear": 1.0, "cubic": 1.0, "quintic": 1.0}


def level(coordinates, kernel=KERNEL, ridge=RIDGE, splines=ALIKE):
    """A level with a setting whose error alone is that of the splines."""
    return OwnLevel(coordinates, kernel, ridge, 1.0, splines)


def walk(*shape):
    """Sums of noise along every axis: rough, as data that linear interpolation suits."""
    return reduce(np.cumsum, range(len(shape)), np.random.default_rng(5).normal(size=shape))


@pytest.mark.parametrize("kernel", [KERNEL, Kernel("gaussian", 9.0), Kernel("cubic")])
def test_rows_predict_inner_samples_from_all_others(kernel):
    rows = level(X, kernel, 0.0 if kernel.is_spline else RIDGE).left_out_rows(X)
    for place in range(1, X.size - 1):
        others = np.delete(X, place)
        if kernel.is_spline:
            expected = spline_rows("cubic", others, X[[place]])[0]
        else:
            solved = gram(kernel, others, others) + RIDGE * np.eye(others.size)
            expected = np.linalg.solve(solved, gram(kernel, others, X[[place]]))[:, 0]
        assert rows[place, place] == pytest.approx(0.0, abs=1e-12)
        assert np.delete(rows[place], place) == pytest.approx(expected, abs=1e-9)


def test_cells_are_predicted_without_their_slices_of_any_level():
    short, labels, mean = np.array([0.0, 1.0, 3.0]), 2, 4.0
    values = mean + RNG.normal(size=(X.size, labels, short.size))
    levels = {0: level(X), 2: level(short, Kernel("linear"), 0.0)}
    (own,), splines = leave_out(values, mean, levels, ["linear"])
    assert own.shape == splines["linear"][0].shape == (X.size - 2, labels, short.size)
    for i, j in [(1, 0), (3, 1), (5, 2)]:
        x, y = np.delete(np.arange(X.size), i), np.delete(np.arange(short.size), j)
        solved = gram(KERNEL, X[x], X[x]) + RIDGE * np.eye(x.size)
        along_x = np.linalg.solve(solved, gram(KERNEL, X[x], X[[i]]))[:, 0]
        along_y = spline_rows("linear", short[y], short[[j]])[0]
        known = values[np.ix_(x, range(labels), y)] - mean
        missed = np.einsum("xly,x,y->l", known, along_x, along_y) - (values[i, :, j] - mean)
        assert own[i - 1, :, j] == pytest.approx(missed**2)


def test_a_choice_gives_its_setting_and_the_errors_of_plain_splines():
    tried = [
        Candidate(kernel, 0.0, error)
        for kernel, error in [
            (Kernel("cubic"), 2.0),
            (Kernel("linear"), 3.0),
            (Kernel("cubic", warp="log"), 4.0),
            (KERNEL, 5.0),
        ]
    ]
    own = OwnLevel.of(X, LevelChoice(Candidate(KERNEL, RIDGE, 0.5), tuple(tried)))
    assert (own.kernel, own.ridge, own.error) == (KERNEL, RIDGE, 0.5)
    assert own.splines == {"linear": 3.0, "cubic": 2.0}


def test_a_spline_is_taken_where_settings_are_worse_and_left_where_they_are_better():
    x, y = np.arange(24.0), np.arange(16.0)
    mixed = RNG.permutation(24)
    values = walk(24, 16)
    long = Kernel("gaussian", 8.0, constant=1.0)
    smooth = np.sin(np.add.outer(x / 2, y / 3))
    exact = Kernel("gaussian", 6.0, constant=1.0)
    assert choose_together(values, 0.0, {0: level(x, long), 1: level(y, long)}) == "linear"
    worse = {0: level(x[mixed], long), 1: level(y, long)}
    assert choose_together(values[mixed], 0.0, worse) == "linear"
    good = {0: level(x, exact, 1e-12), 1: level(y, exact, 1e-12)}
    assert choose_together(smooth, 0.0, good) is None
    assert choose_together(smooth, 0.0, {a: level(v, long, 0.1) for a, v in enumerate([x, y])})


@pytest.mark.parametrize(
    ("splines", "kernel"),
    [
        ({"cubic": math.sqrt(together._HOPELESS) * 1.01}, KERNEL),
        ({}, KERNEL),
        ({"linear": 1.0}, Kernel("linear")),
    ],
)
def test_nothing_is_left_out_if_no_spline_can_win(splines, kernel, monkeypatch):
    monkeypatch.setattr(together, "leave_out", None)
    ridge = 0.0 if kernel.is_spline else RIDGE
    levels = {0: level(X, kernel, ridge, splines)}
    assert choose_together(walk(X.size), 0.0, levels) is None


def test_a_spline_must_be_known_on_every_level(monkeypatch):
    monkeypatch.setattr(together, "leave_out", None)
    levels = {0: level(X, splines={"cubic": 1.0}), 1: level(X, splines={"linear": 1.0})}
    assert choose_together(walk(X.size, X.size), 0.0, levels) is None


def test_nothing_is_taken_where_a_part_is_too_uneven(monkeypatch):
    def refuse(*_given, **_more):
        raise InputError("too uneven")

    monkeypatch.setattr(together, "piecewise_left_out", refuse)
    assert choose_together(walk(X.size), 0.0, {0: level(X)}) is None


def found(monkeypatch, ridge, *, spline, own):
    """The choice between settings of some ridge and one spline, from squared errors of each."""
    monkeypatch.setattr(together, "leave_out", lambda *_: ([own], {"cubic": [spline]}))
    return choose_together(np.zeros(7), 0.0, {0: level(X, ridge=ridge, splines={"cubic": 1.0})})


@pytest.mark.parametrize(
    ("ridge", "spline", "name"),
    [
        (1e-3, [1.1, 0.9, 1.1, 0.95, 1.0], "cubic"),  # 1 % more, within its standard error
        (1e-3, [1.02, 1.03, 1.02, 1.03, 1.02], None),  # always more
        (1e-3, [1.0, 1.0, 1.0, 1.0, 1.3], None),  # 6 % more in the mean
        (1e-3, [0.2, 0.2, 0.2, 0.2, 9.0], None),
        (1e-12, [0.2, 0.2, 0.2, 0.2, 9.0], "cubic"),  # without noise one slice may make the mean
        (1e-12, [0.2, 0.2, 0.2, 0.2, 20.0], None),
        (1e-12, [1.1, 1.1, 1.1, 1.1, 1.1], None),  # more in typical slices
    ],
)
def test_a_spline_misses_no_more_in_the_mean_and_in_typical_slices(
    ridge, spline, name, monkeypatch
):
    assert found(monkeypatch, ridge, spline=np.array(spline), own=np.ones(5)) == name


def test_all_levels_must_be_without_noise_for_one_slice_to_make_the_mean(monkeypatch):
    squares = [np.ones(5)], {"cubic": [np.array([0.2, 0.2, 0.2, 0.2, 9.0])]}
    monkeypatch.setattr(together, "leave_out", lambda *_: squares)
    clean, noisy = level(X, ridge=1e-12), level(X, ridge=1e-3)
    assert choose_together(np.zeros((7, 7)), 0.0, {0: clean, 1: clean}) == "cubic"
    assert choose_together(np.zeros((7, 7)), 0.0, {0: clean, 1: noisy}) is None


def test_of_two_splines_the_better_one_by_mean_and_typical_slices_is_taken(monkeypatch):
    splines = {"linear": [np.full(5, 0.8)], "cubic": [np.array([0.1, 0.1, 0.1, 0.1, 4.0])]}
    monkeypatch.setattr(together, "leave_out", lambda *_: ([np.ones(5)], splines))
    assert choose_together(np.zeros(7), 0.0, {0: level(X, ridge=1e-12)}) == "cubic"


def test_ratios_are_of_all_cells_and_of_the_slices_of_every_axis():
    one = [np.array([[1.0, 3.0], [2.0, 2.0]]), np.array([[4.0, 4.0], [4.0, 4.0]])]
    other = [np.ones((2, 2)), np.ones((2, 2))]
    ratio = compare(one, other)
    assert ratio.mean == 3.0
    rows, columns = [2.0, 2.0, 4.0, 4.0], [1.5, 2.5, 4.0, 4.0]
    expected = np.exp((np.mean(np.log(rows)) + np.mean(np.log(columns))) / 2)
    assert ratio.typical == pytest.approx(expected)


def test_a_difference_is_compared_with_its_largest_standard_error():
    other = np.ones((4, 3))
    by_rows = other + np.array([[0.5], [-0.3], [0.3], [-0.3]])  # 0.05, standard error 0.2
    assert is_within_error([by_rows], [other])
    assert is_within_error([by_rows.T], [other.T])
    assert not is_within_error([by_rows + 0.2], [other])


def test_boxes_cover_small_grids_and_stay_within_the_cells_of_large_ones():
    assert list(cut_boxes([160, 12])) == [(slice(0, 160), slice(0, 12))]
    for shape in ([161, 40], [90, 80, 70], [500, 400, 300], [3, 2000]):
        boxes = list(cut_boxes(shape))
        sizes = {tuple(part.stop - part.start for part in box) for box in boxes}
        assert sizes == {tuple(min(size, 64) for size in shape)}
        assert len(boxes) * math.prod(*sizes) <= CELLS
        assert len(boxes) <= 3
        assert all(
            part.stop <= size for box in boxes for part, size in zip(box, shape, strict=True)
        )
    (middle,) = cut_boxes([500, 400, 300])
    assert middle == (slice(218, 282), slice(168, 232), slice(118, 182))


def test_large_grids_are_looked_at_in_boxes():
    x, y = np.arange(200.0), np.arange(70.0)
    long = Kernel("gaussian", 8.0, constant=1.0)
    assert choose_together(walk(200, 70), 0.0, {0: level(x, long), 1: level(y, long)}) == "linear"
