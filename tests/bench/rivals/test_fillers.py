"""Ways to fill missing cells against plain formulas and other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench.gappy_grids import waves
from scipy.interpolate import LinearNDInterpolator

from dkrls_cli.bench.real.gaps import make_filling_problem, make_hidden_cases
from dkrls_cli.bench.rivals import fillers
from dkrls_cli.bench.rivals.fillers import FILLERS, FillingProblem, fill_eof, fill_per_axis


def problem(values: Any, asked: Any = None, time: int = 0) -> FillingProblem:
    given = np.asarray(values, np.float64)
    return FillingProblem(given, np.isnan(given) if asked is None else asked, time)


def test_a_series_is_filled_along_itself() -> None:
    nan = np.nan
    values = [nan, 1.0, nan, nan, 4.0, 6.0, nan]
    np.testing.assert_allclose(fill_per_axis(problem(values)), [1.0, 2.0, 3.0, 6.0])


def test_per_axis_is_the_mean_over_dimensions_that_reach() -> None:
    case = next(make_hidden_cases(waves((6, 9, 11)), [0]))
    seen = case.seen.values
    along = []
    for axis in range(3):
        moved = np.moveaxis(seen, axis, -1).copy()
        for fibre in moved.reshape(-1, moved.shape[-1]):
            known = np.flatnonzero(np.isfinite(fibre))
            if known.size:
                every = np.arange(fibre.size)
                fibre[:] = np.interp(every, known, fibre[known], np.nan, np.nan)
        along.append(np.moveaxis(moved, -1, axis)[case.hidden])
    reached = np.isfinite(along).any(axis=0)
    assert reached.any()
    answers = fill_per_axis(make_filling_problem(case))
    np.testing.assert_allclose(answers[reached], np.nanmean(np.array(along)[:, reached], axis=0))


def test_nearest_is_the_nearest() -> None:
    case = list(make_hidden_cases(waves((7, 8, 9), missing=0.5), [0]))[1]
    seen = case.seen.values
    known, asked = np.argwhere(np.isfinite(seen)), np.argwhere(case.hidden)
    away = ((asked[:, None] - known[None]) ** 2).sum(axis=2)
    answers = FILLERS["nearest"](make_filling_problem(case))
    for row, answer in zip(away, answers, strict=True):
        assert answer in seen[tuple(known[row == row.min()].T)]


def test_griddata_is_linear_inside_the_hull_and_nearest_outside() -> None:
    case = next(make_hidden_cases(waves((7, 8)), [0]))
    seen = case.seen.values
    seen[0] = np.nan
    asked = case.hidden | (np.arange(7) == 0)[:, None]
    known = np.isfinite(seen)
    linear = LinearNDInterpolator(np.argwhere(known), seen[known])(np.argwhere(asked))
    given = problem(seen, asked)
    expected = np.where(np.isnan(linear), FILLERS["nearest"](given), linear)
    np.testing.assert_allclose(FILLERS["griddata"](given), expected)
    row = np.where(np.arange(7)[:, None] == 3, seen, np.nan)  # in a line: there is no hull
    flat = problem(row, asked & np.isnan(row))
    np.testing.assert_array_equal(FILLERS["griddata"](flat), FILLERS["nearest"](flat))


@pytest.mark.parametrize("time", [0, 1, 2])
def test_eof_recovers_what_has_few_modes(time: int) -> None:
    rng = np.random.default_rng(2)
    space, modes = rng.standard_normal((2, 60)), rng.standard_normal((2, 25)) * [[3.0], [1.0]]
    truth = 7.0 + np.moveaxis((space.T @ modes).reshape(6, 10, 25), -1, time)
    seen = np.where(rng.random(truth.shape) < 0.2, np.nan, truth)
    answers = fill_eof(problem(seen, time=time))
    asked = truth[np.isnan(seen)]
    assert np.sqrt(np.mean((answers - asked) ** 2)) < 0.01 * asked.std()


def test_eof_is_at_the_mean_where_nothing_was_ever_seen() -> None:
    values = waves((9, 4, 5)).values
    values[:, 2, 3] = np.nan
    asked = np.zeros(values.shape, bool)
    asked[:, 2, 3] = True
    np.testing.assert_allclose(fill_eof(problem(values, asked)), np.nanmean(values))


@pytest.mark.parametrize("method", FILLERS)
@pytest.mark.parametrize("shape", [(30,), (9, 12), (4, 5, 6)])
def test_every_method_answers_every_cell(method: str, shape: tuple[int, ...]) -> None:
    for case in make_hidden_cases(waves(shape), [0]):
        answers = FILLERS[method](make_filling_problem(case))
        assert answers.shape == (case.hidden.sum(),)
        assert np.isfinite(answers).all()


def test_cells_that_no_dimension_reaches_get_the_nearest_value() -> None:
    values = np.full((4, 4), np.nan)
    values[2, 2] = 5.0
    np.testing.assert_array_equal(fill_per_axis(problem(values)), np.full(15, 5.0))


@pytest.mark.parametrize(("known", "count"), [(2, 1), (30, 1), (100, 3), (2000, 60), (4000, 80)])
def test_as_many_cells_are_set_aside_as_dineof_takes(known: int, count: int) -> None:
    """One percent and 40 more, or three percent if that is less."""
    observed = np.arange(5000).reshape(50, 100) < known
    aside = fillers._set_aside(observed)
    assert aside.sum() == count
    assert not (aside & ~observed).any()


def test_truncation_is_that_of_the_singular_value_decomposition() -> None:
    for shape in ((9, 5), (5, 9)):
        matrix = np.random.default_rng(1).normal(size=shape)
        u, s, vt = np.linalg.svd(matrix, full_matrices=False)
        expected = (u[:, :2] * s[:2]) @ vt[:2]
        np.testing.assert_allclose(fillers._truncate(matrix, 2), expected, atol=1e-12)


def test_the_number_of_modes_is_the_best_at_the_cells_set_aside() -> None:
    """Two modes and noise: one mode is too few, and many fit the noise."""
    rng = np.random.default_rng(0)
    signal = np.outer(rng.normal(size=40), rng.normal(size=30)) * 3
    signal += np.outer(rng.normal(size=40), rng.normal(size=30))
    noisy = signal + 0.3 * rng.normal(size=signal.shape)
    observed = rng.random(signal.shape) < 0.8
    aside = fillers._set_aside(observed)
    errors = []
    for filled in fillers._fill_by_modes(noisy, observed & ~aside, noisy.std(), 8):
        errors.append(np.sum((filled - noisy)[aside] ** 2))
    best = fillers._best_modes(noisy, observed & ~aside, aside, noisy.std())
    assert best == np.argmin(errors) + 1 == 2


def test_observed_cells_are_never_changed_and_one_more_mode_starts_from_the_last() -> None:
    rng = np.random.default_rng(3)
    matrix = np.outer(rng.normal(size=12), rng.normal(size=9)) + 0.1 * rng.normal(size=(12, 9))
    observed = rng.random((12, 9)) < 0.8
    steps = list(fillers._fill_by_modes(matrix, observed, 1.0, 2))
    assert len(steps) == 2
    for modes, filled in enumerate(steps, start=1):
        np.testing.assert_array_equal(filled[observed], matrix[observed])
        gone = fillers._truncate(filled, modes)[~observed] - filled[~observed]
        assert np.sqrt(np.mean(gone**2)) < 2e-4  # it has converged


def test_no_more_modes_are_tried_after_three_worse_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """The errors by number of modes; the last two are never reached, or only in the second case."""
    anomalies, aside = np.zeros((9, 9)), np.eye(9, dtype=bool)
    for errors, tried, best in (([3, 1, 2, 2, 2, 0.5], 5, 2), ([3, 1, 2, 2, 0.5, 4], 6, 5)):
        seen: list[float] = []

        def fill(*_: Any, errors: Any = errors, seen: Any = seen) -> Any:
            for error in errors:
                seen.append(error)
                yield np.full((9, 9), float(error))

        monkeypatch.setattr(fillers, "_fill_by_modes", fill)
        assert fillers._best_modes(anomalies, ~aside, aside, 1.0) == best
        assert len(seen) == tried
