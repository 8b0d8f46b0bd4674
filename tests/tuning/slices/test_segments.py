"""Slices of a segment that are left out, against refits without them."""

import math

import numpy as np
import pytest
from levels_left_out import ROUGH, X, answers, refitted_error

from dkrls_cli.cascade.kernels import Kernel, gram
from dkrls_cli.tuning.candidates import CONSTANT, Candidate
from dkrls_cli.tuning.slices import segments as module
from dkrls_cli.tuning.slices.choice import choose_level
from dkrls_cli.tuning.slices.segments import CopiedSegment, Segment, cut_segments
from dkrls_cli.tuning.spectra import SpectrumCache


@pytest.mark.parametrize(("folds", "ends"), [(3, False), (4, True)])
def test_ends_count_less_from_four_blocks_on(folds, ends):
    kernel = Kernel("matern32", 2.0, None, CONSTANT)
    fixed = {"family": "matern32", "sigma": 2.0, "ridge": 1e-2}
    blocks = np.array_split(np.arange(X.size), folds)
    expected = refitted_error(X, ROUGH, kernel, 1e-2, blocks, closed=not ends)
    assert choose_level(X, ROUGH, folds=folds, **fixed).taken.error == pytest.approx(expected)
    few, data = X[:folds], ROUGH[:folds]
    expected = refitted_error(few, data, kernel, 1e-2, np.arange(folds)[:, None], closed=not ends)
    assert choose_level(few, data, **fixed).taken.error == pytest.approx(expected)


def test_compressed_slices_have_the_same_inner_products():
    rng = np.random.default_rng(6)
    for data, rank in ((rng.standard_normal((9, 30)), 9), (ROUGH[:, :4], 4), (np.zeros((5, 7)), 1)):
        small = module._compress(data)
        assert small.shape == (len(data), rank)
        np.testing.assert_allclose(
            small @ small.T / rank, data @ data.T / data.shape[1], atol=1e-12
        )
        energy = np.sum(small**2, axis=0)
        assert (np.diff(energy) <= 0).all()
    low = rng.standard_normal((12, 2)) @ rng.standard_normal((2, 50))
    assert module._compress(low).shape == (12, 2)
    low[:, 0] += 1e-9 * rng.standard_normal(12)  # detail is kept, however small
    assert module._compress(low).shape == (12, 3)


@pytest.mark.parametrize(("shake", "count"), [(1e-12, 1), (1e-7, 3)])
def test_runs_make_one_segment_if_their_steps_differ_by_rounding_only(shake, count):
    x = np.arange(400.0)
    x += shake * np.sin(x)
    found = list(cut_segments(x, x[:, None], 3))
    assert len(found) == count
    runs = [run for _, runs in found for run in runs]
    np.testing.assert_allclose([run[0, 0] for run in runs], [0, 168, 336], atol=1e-6)


def test_predictions_are_compared_in_the_directions_of_most_energy():
    data = np.random.default_rng(7).standard_normal((50, 60))
    segment = Segment(np.arange(50.0), [data], False, None, SpectrumCache())
    candidate = Candidate(Kernel("matern32", 3.0), 1e-2, 1.0)
    found = segment.midpoints(candidate)
    assert found.size == 49 * 32
    middles = np.arange(49) + 0.5
    whole = answers(np.arange(50.0), segment.data, candidate.kernel, 1e-2, middles)
    np.testing.assert_allclose(found, whole[:, :32].ravel() / math.sqrt(50), atol=1e-10)


@pytest.mark.parametrize("order", [1, -1])
def test_samples_are_left_out_together_with_their_copies(order):
    rng = np.random.default_rng(3)
    x = np.array([-5.0, -4.0, -3.0, -2.2, -1.0, 0.3, 1.0, 2.0, 3.0])[::order]
    copies = np.array([-1, -1, -1, -1, -1, -1, 4, 3, 2] if order == 1 else [6, 5, 4] + [-1] * 6)
    data = rng.normal(size=(9, 20))
    choice = choose_level(x, data, family="matern32", sigma=1.5, ridge=0.1, copies=copies)
    covariance = gram(choice.taken.kernel, x, x) + 0.1 * np.eye(9)
    errors, weights = [], []
    for row in np.flatnonzero(copies < 0):
        left = np.setdiff1d(np.arange(9), [row, *np.flatnonzero(copies == row)])
        rows = np.linalg.solve(covariance[np.ix_(left, left)], covariance[left, row])
        errors.append(np.mean((data[row] - rows @ data[left]) ** 2))
        weights.append(0.1 if x[row] == -5.0 else 1.0)  # the end behind which nothing is copied
    expected = np.sqrt(np.average(errors, weights=weights))
    assert np.isclose(choice.taken.error, expected)
    segment = CopiedSegment(np.sort(x), [data], np.sort(copies), SpectrumCache())
    assert segment.slices == 6
