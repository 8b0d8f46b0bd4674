"""Coverage is counted as a normal distribution and a direct count say."""

import math

import numpy as np
import pytest
from scipy import stats

from dkrls_cli.cascade.errorbars.bars import Z90
from dkrls_cli.model.validation import calibration
from dkrls_cli.model.validation.calibration import EDGES, LEVELS, Calibration
from dkrls_cli.model.validation.metrics import coverage, coverage90


def errors(size=4000, factor=1.0, seed=0):
    """Return truth, answers and variances whose errors are `factor` times as large as promised."""
    rng = np.random.default_rng(seed)
    variance = rng.gamma(2.0, size=size)
    truth = rng.standard_normal(size)
    return truth, truth + factor * np.sqrt(variance) * rng.standard_normal(size), variance


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_observed_coverage_is_that_of_a_normal_distribution_with_such_errors(factor):
    found = Calibration.of(*errors(200_000, factor))
    widths = stats.norm.ppf(0.5 + np.array(LEVELS) / 2)
    expected = stats.norm.cdf(widths / factor) - stats.norm.cdf(-widths / factor)
    np.testing.assert_allclose(found.observed, expected, atol=0.004)
    assert found.spread == pytest.approx(factor, rel=0.01)


def test_every_level_counts_as_a_direct_comparison_does():
    truth, answers, variance = errors()
    found = Calibration.of(truth, answers, variance)
    each = [coverage(truth, answers, variance, level) for level in LEVELS]
    np.testing.assert_allclose(found.observed, each, rtol=1e-15)
    assert found.observed[LEVELS.index(0.9)] == coverage90(truth, answers, variance)
    low, high = stats.norm.interval(0.95, answers, np.sqrt(variance))
    assert found.observed[LEVELS.index(0.95)] == np.mean((low <= truth) & (truth <= high))


def test_the_histogram_counts_every_cell_once_and_keeps_what_lies_beyond_in_its_ends():
    z = np.array([-40.0, -5.0, -0.1, 0.1, 0.1, 4.99, 5.0, 1e9])
    found = Calibration.of(np.zeros(z.size), 2.0 * z, np.full(z.size, 4.0))
    assert found.count == z.size
    assert found.bins.sum() == z.size
    assert found.bins[0] == 2
    assert found.bins[-1] == 3
    assert found.bins[np.searchsorted(EDGES, 0.1) - 1] == 2


def test_cells_without_truth_or_band_do_not_count():
    found = Calibration.of([[np.nan, 1.0], [1.0, 1.0]], np.ones((2, 2)), [[1.0, 0.0], [1.0, 1.0]])
    assert found.count == 2
    assert found.observed.tolist() == [1.0] * len(LEVELS)
    assert found.spread == 0.0


def test_no_cell_has_no_coverage():
    found = Calibration.of([np.nan], [1.0], [1.0])
    assert found.count == 0
    assert np.isnan(found.observed).all()
    assert math.isnan(found.spread)


def test_counts_of_parts_add_up_to_those_of_the_whole():
    truth, answers, variance = errors()
    whole = Calibration.of(truth, answers, variance)
    parts = [
        Calibration.of(truth[p], answers[p], variance[p]) for p in np.split(np.arange(4000), 4)
    ]
    total = parts[0] + parts[1] + parts[2] + parts[3]
    np.testing.assert_array_equal(total.inside, whole.inside)
    np.testing.assert_array_equal(total.bins, whole.bins)
    assert total.count == whole.count
    assert total.squares == pytest.approx(whole.squares)


def test_a_grid_is_counted_in_blocks_whatever_the_order_of_its_axes(monkeypatch):
    truth, answers, variance = (each.reshape(20, 10, 20).transpose(2, 0, 1) for each in errors())
    whole = Calibration.of(truth, answers, variance)
    monkeypatch.setattr(calibration, "_BLOCK", 70)
    parts = Calibration.of(truth, answers, variance)
    np.testing.assert_array_equal(parts.inside, whole.inside)
    np.testing.assert_array_equal(parts.bins, whole.bins)


def test_the_end_of_an_interval_is_inside():
    width = calibration._WIDTHS[LEVELS.index(0.9)]
    assert width == pytest.approx(Z90)
    found = Calibration.of([0.0, 0.0], [width, np.nextafter(width, 9.0)], [1.0, 1.0])
    assert found.observed[LEVELS.index(0.9)] == 0.5
