"""How surprising new slices are."""

import math

import numpy as np
import pytest
from growing_grids import field, fitted, grid_of, slices, small

from dkrls_cli.model.updating.surprise import Surprise, measure_surprise
from dkrls_cli.model.updating.update import update_model


def test_surprise_tells_a_drift_from_more_of_the_same():
    array = grid_of(field())
    model = fitted(array.isel(t=slice(0, 20)))
    assert not update_model(model, array.isel(t=slice(20, None))).surprise.drifts
    assert update_model(model, array.isel(t=slice(20, None)) + 5).surprise.drifts
    assert update_model(model, array.isel(t=[0]), replace=True).surprise.cells == 0


def test_surprise_is_measured_by_root_mean_squares():
    found = Surprise.measure(np.array([3.0, -4.0]), np.array([1.0, 7.0]))
    assert (found.cells, found.rmse, found.promised) == (2, math.sqrt(12.5), 2.0)
    none = Surprise.measure(np.empty(0), np.empty(0))
    assert none.cells == 0
    assert math.isnan(none.rmse)
    assert math.isnan(none.promised)
    assert not none.drifts


@pytest.mark.parametrize(("rmse", "drifts"), [(2.9, False), (3.0, False), (3.01, True)])
def test_a_drift_is_more_than_three_times_what_was_predicted(rmse, drifts):
    assert Surprise(1, 2 * rmse, 2.0).drifts == drifts
    assert not Surprise(0, 2 * rmse, 2.0).drifts


def test_surprise_counts_cells_with_a_value_and_an_error_bar():
    model = small(range(6))
    values, _ = slices([6, 2])
    values[0, 0] = np.nan
    new = model.axes[1].at([6.0, 2.0])
    found = measure_surprise(model, values, new)
    assert found.cells == 3  # the other slice is known
    missed = model.predict(t=[6.0], extrapolate=True).values[1:, 0] - values[1:, 0]
    assert found.rmse == pytest.approx(np.sqrt(np.mean(missed**2)))
    spread = model.std(t=[6.0], extrapolate=True).values[1:, 0]
    assert found.promised == pytest.approx(np.sqrt(np.mean(spread**2)))
