"""Hidden cells of observations with errors: poor regions shifted to accurate cells."""

import numpy as np
import pytest

from dkrls_cli.tuning.masks import hide_cells
from dkrls_cli.tuning.noisy.views import tell_by_errors

AXES = [np.arange(40.0), np.arange(50.0)]


def view(errors, gaps=0.3):
    rng = np.random.default_rng(1)
    values = 5 * rng.standard_normal(errors.shape)
    values[rng.random(errors.shape) < gaps] = np.nan
    hidden = hide_cells(values, AXES, rng, errors=errors)
    (window,) = tell_by_errors(hidden, values, errors, rng)
    return window, values


def halves(small=0.1, large=3.0):
    return np.where(np.arange(50) < 25, large, small) * np.ones((40, 1))


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_about_half_of_the_good_cells_are_seen_with_errors_of_poor_ones(gaps):
    window, values = view(halves(), gaps)
    spoilt = window.added_variance > 0
    observed = np.isfinite(values)
    good = observed & (window.errors < 1)
    assert 0.25 < spoilt[good].mean() < 0.75
    assert not spoilt[window.errors > 1].any()
    np.testing.assert_allclose(window.seen_noise[spoilt & good], 9.0)
    shown = good & spoilt & ~window.hidden
    changed = (window.seen - values)[shown]
    assert np.std(changed) == pytest.approx(3.0, rel=0.15)
    kept = observed & ~window.hidden & ~spoilt
    np.testing.assert_array_equal(window.seen[kept], values[kept])


def test_hidden_cells_among_poor_data_are_accurate_themselves():
    window, _ = view(halves())
    poor = window.powers >= 3
    accurate = window.noise < 1
    assert np.count_nonzero(poor & accurate) > 50
    assert window.shares[poor & accurate].sum() > 100 * window.shares[poor & ~accurate].sum()
    assert window.shares.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(window.residuals.shape, window.noise.shape)


def test_errors_that_are_mixed_from_cell_to_cell_are_not_shifted():
    rng = np.random.default_rng(3)
    window, _ = view(np.where(rng.random((40, 50)) < 0.5, 0.1, 3.0))
    assert not np.any(window.added_variance)
    assert np.quantile(window.poorness[window.hidden], 0.9) < 2


def test_a_constant_error_changes_no_weight():
    window, values = view(np.full((40, 50), 2.0))
    assert not np.any(window.added_variance)
    (plain,) = hide_cells(values, AXES, np.random.default_rng(5), errors=np.full((40, 50), 2.0))
    assert plain.noise.tolist() == [4.0] * int(plain.hidden.sum())
    np.testing.assert_allclose(window.shares.sum(), 1.0)
    assert np.ptp(window.shares[window.powers == 0]) < 1e-12
