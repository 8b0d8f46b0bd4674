"""Errors of cells of which few are hidden at a time."""

from dataclasses import replace

import numpy as np
import pytest

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.gaps.bars import GapBars
from dkrls_cli.gaps.field import Grouping
from dkrls_cli.tuning.calibration import holes, sparing
from dkrls_cli.tuning.calibration.holes import gap_bars
from dkrls_cli.tuning.calibration.sparing import hide_few
from dkrls_cli.tuning.gaps import choose_with_gaps
from dkrls_cli.tuning.moves import LevelConstraint

AXES = [np.arange(22.0), np.arange(20.0)]
KERNELS = [Kernel("gaussian", 3.0), Kernel("matern52", 4.0)]
RIDGE = 1e-3


def drawn(seed=0):
    """Return a random field of the kernels, and the same with a tenth of its cells missing."""
    rng = np.random.default_rng(seed)
    roots = [np.linalg.cholesky(gram(k, c, c) + 1e-9 * np.eye(c.size)) for k, c in pairs()]
    truth = roots[0] @ rng.standard_normal((22, 20)) @ roots[1].T
    truth += np.sqrt(RIDGE) * rng.standard_normal(truth.shape)
    return truth, np.where(rng.random(truth.shape) < 0.1, np.nan, truth)


def pairs():
    return list(zip(KERNELS, AXES, strict=True))


def choose(values):
    given = [LevelConstraint(k.family, k.sigma, None, k) for k in KERNELS]
    return choose_with_gaps(values, AXES, given, ridge=RIDGE)


def dense(window):
    """Return the answers in the hidden cells of a window, by one dense system."""
    one, other = (gram(kernel, c, c) for kernel, c in pairs())
    covariance, seen = np.kron(one, other), np.isfinite(window.seen).ravel()
    system = covariance[np.ix_(seen, seen)] + RIDGE * np.eye(seen.sum())
    weights = np.linalg.solve(system, window.seen.ravel()[seen])
    return (covariance[:, seen] @ weights).reshape(window.values.shape)[window.hidden]


def test_every_hidden_cell_is_hidden_once_beside_two_thirds_of_the_others():
    chosen = choose(drawn()[1])
    few = hide_few(chosen)
    assert len(few.windows) == 3 * len(chosen.windows)
    for place, window in enumerate(chosen.windows):
        parts = few.windows[3 * place : 3 * place + 3]
        np.testing.assert_array_equal(sum(p.hidden.astype(int) for p in parts), window.hidden)
        sizes = [np.count_nonzero(part.hidden) for part in parts]
        assert max(sizes) - min(sizes) <= 1
        for part in parts:
            kept = part.hidden[window.hidden]
            np.testing.assert_array_equal(part.shares, window.shares[kept])
            np.testing.assert_allclose(part.answers[part.hidden], dense(part), atol=1e-4)


@pytest.mark.parametrize("count", [0, 1])
def test_a_window_with_one_hidden_cell_or_none_has_one_part(count):
    chosen = choose(drawn()[1])
    window = chosen.windows[0]
    hidden = np.zeros(window.hidden.shape, bool)
    hidden[tuple(np.argwhere(window.hidden)[:count].T)] = True
    lone = replace(window, hidden=hidden, weights=np.ones(count))
    (part,) = hide_few(replace(chosen, windows=(lone,))).windows
    np.testing.assert_array_equal(part.hidden, hidden)


def test_a_solve_that_does_not_end_leaves_all_as_it_was(monkeypatch):
    chosen, solve = choose(drawn()[1]), sparing.solve_window
    calls = []

    def failing(*args, **options):
        calls.append(1)
        return replace(solve(*args, **options), converged=len(calls) != 2)

    monkeypatch.setattr(sparing, "solve_window", failing)
    assert hide_few(chosen) is chosen


def test_error_bars_of_narrow_gaps_are_told_by_few_cells_at_a_time(monkeypatch):
    values = drawn()[1]
    chosen = choose(values)
    few = hide_few(chosen)
    bars = gap_bars(values, AXES, chosen)
    monkeypatch.setattr(holes, "hide_few", lambda found: found)
    assert bars.scale == gap_bars(values, AXES, few).scale
    assert bars.scale < 0.95 * gap_bars(values, AXES, chosen).scale


@pytest.mark.parametrize("wide", [False, True])
def test_in_holes_the_cells_stay_hidden_together(wide, monkeypatch):
    values = drawn()[1]
    if wide:
        values[4:14, 5:15] = np.nan
    asked = []
    monkeypatch.setattr(holes, "hide_few", lambda found: asked.append(1) or found)
    assert isinstance(gap_bars(values, AXES, choose(values)), GapBars)
    assert bool(asked) == (not wide)


@pytest.mark.parametrize("ridge", [1e-15, 1e-3])
@pytest.mark.parametrize("kind", ["product", "group", "long"])
def test_the_ridge_is_no_smaller_than_the_round_off_of_the_whole_grid(ridge, kind, monkeypatch):
    """Of a window it would be smaller, and noise-free data would seem to be answered better."""
    chosen, solve, asked = choose(drawn()[1]), sparing.solve_window, set()
    grouping = Grouping(((0, 1),)) if kind == "group" else Grouping()
    chosen = replace(chosen, setting=replace(chosen.setting, ridge=ridge, grouping=grouping))
    if kind == "long":
        chosen = replace(chosen, spectra=(None, chosen.spectra[1]))

    def recording(field, part, ridge, *args, **options):
        asked.add(ridge)
        return solve(field, part, RIDGE, *args, **options)

    monkeypatch.setattr(sparing, "solve_window", recording)
    hide_few(chosen)
    largest = np.prod([np.linalg.eigvalsh(gram(k, c, c))[-1] for k, c in pairs()])
    least = 4 * np.finfo(float).eps * largest if kind == "product" else 0.0
    assert list(asked) == [pytest.approx(max(ridge, least), rel=1e-9, abs=0)]
    assert least < 1e-12


def test_cells_that_were_left_out_alone_are_not_hidden_again():
    truth, _ = drawn()
    truth[5, 6] = np.nan
    chosen = choose(truth)
    assert hide_few(chosen) is chosen
