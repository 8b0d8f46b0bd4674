"""The estimator: scikit-learn's own checks, and the answers of the model behind it."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from dkrls_cli import GridRegressor, fit
from dkrls_cli.errors import InputError
from dkrls_cli.interfaces.estimator import grid_of

GIVEN = {"kernel": "matern32", "sigma": 1.0, "ridge": 0.1}
SCATTERED = "its rows are scattered in 5 or 10 dimensions: no two share a coordinate"
CANNOT = {
    "check_positive_only_tag_during_fit": SCATTERED,
    "check_estimators_dtypes": SCATTERED,
    "check_dtype_object": SCATTERED,
    "check_regressors_train": SCATTERED,
    "check_regressor_data_not_an_array": SCATTERED,
    "check_regressors_int": SCATTERED,
}  # what they check is checked below on rows of a grid


@pytest.mark.slow
def test_scikit_learn_finds_nothing_wrong():
    options = {"expected_failed_checks": CANNOT, "on_fail": "raise", "on_skip": None}
    found = check_estimator(GridRegressor(**GIVEN), **options)
    passed = [check["check_name"] for check in found if check["status"] == "passed"]
    assert len(passed) > 35
    assert not set(passed) & set(CANNOT)


X, T = np.linspace(0, 3, 12), np.arange(-4.0, 5.0)
ROWS = np.array(list(product(X, T)))
VALUES = np.sin(ROWS[:, 0]) * np.cos(ROWS[:, 1] / 3)


def test_rows_of_a_grid_are_answered_as_the_grid():
    order = np.random.default_rng(0).permutation(len(ROWS))
    regressor = GridRegressor(**GIVEN).fit(ROWS[order], VALUES[order])
    model = fit(VALUES.reshape(12, 9), {"x0": X, "x1": T}, **GIVEN)
    asked = np.array([[0.3, 1.2], [X[3], T[2]], [2.0, -3.3]])
    points = {"x0": asked[:, 0], "x1": asked[:, 1]}
    found, std = regressor.predict(asked, return_std=True)
    np.testing.assert_allclose(found, model.predict_points(points, smooth=True), atol=1e-12)
    np.testing.assert_allclose(std, model.std_points(points, smooth=True), atol=1e-12)
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(regressor.predict(asked), found)


def test_rows_that_are_not_there_are_gaps():
    kept = np.random.default_rng(1).random(len(ROWS)) < 0.8
    regressor = GridRegressor(kernel="gaussian", sigma=2.0, ridge=1e-6)
    regressor.fit(ROWS[kept], VALUES[kept])
    assert regressor.model_.unobserved.sum() == (~kept).sum()
    np.testing.assert_allclose(regressor.predict(ROWS[~kept]), VALUES[~kept], atol=2e-2)
    assert regressor.score(ROWS[~kept], VALUES[~kept]) > 0.99


def test_rows_of_one_cell_are_averaged():
    rows = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [2.0, 3.0]])
    grid, coordinates = grid_of(rows, np.array([1.0, 2.0, 6.0, 5.0]))
    np.testing.assert_array_equal(grid, [[3.0, np.nan], [np.nan, 5.0]])
    assert [axis.tolist() for axis in coordinates] == [[0.0, 2.0], [1.0, 3.0]]


@pytest.mark.parametrize(("outside", "inside"), [("nearest", True), ("missing", False)])
def test_what_lies_outside_is_answered_as_asked_for(outside, inside):
    regressor = GridRegressor(**GIVEN, outside=outside).fit(ROWS, VALUES)
    found, end = regressor.predict([[9.0, 0.0], [3.0, 0.0]])
    assert (found == end) if inside else np.isnan(found)
    with pytest.raises(ValueError, match="outside the training range"):
        GridRegressor(**GIVEN, outside="refuse").fit(ROWS, VALUES).predict([[9.0, 0.0]])


def test_without_smoothing_the_answers_are_the_data():
    noisy = VALUES + np.random.default_rng(2).standard_normal(VALUES.size)
    plain = GridRegressor(**GIVEN, smooth=False).fit(ROWS, noisy)
    np.testing.assert_allclose(plain.predict(ROWS), noisy, atol=1e-12)
    assert np.abs(GridRegressor(**GIVEN).fit(ROWS, noisy).predict(ROWS) - noisy).max() > 0.1


def test_columns_keep_their_names_and_what_they_mean():
    lon = np.arange(0.0, 360.0, 20.0)
    rows = np.array(list(product(T * 10, lon)))
    table = pd.DataFrame(rows, columns=["smooth", "lon"])  # a name that is also a keyword
    values = np.cos(np.deg2rad(rows[:, 1])) + rows[:, 0] / 100
    regressor = GridRegressor(kernel="gaussian", sigma=20.0, ridge=1e-9).fit(table, values)
    assert regressor.model_.dims == ("smooth", "lon")
    assert regressor.feature_names_in_.tolist() == ["smooth", "lon"]
    some = pd.DataFrame({"smooth": [5.0, 5.0], "lon": [350.0, -10.0]})
    there, round_about = regressor.predict(some)
    assert there == pytest.approx(round_about, abs=1e-12)
    assert there == pytest.approx(np.cos(np.deg2rad(10)) + 0.05, abs=1e-2)


def test_settings_may_be_given_by_column():
    regressor = GridRegressor(kernel="gaussian", sigma={"x0": 1.0, "x1": 2.0}, ridge=1e-6)
    model = regressor.fit(ROWS, VALUES).model_
    assert [model.level_of(dim).kernel.sigma for dim in ("x0", "x1")] == [1.0, 2.0]


def scattered(count, columns=3):
    return np.random.default_rng(0).random((count, columns))


def test_a_grid_that_is_nearly_empty_is_refused_with_its_size():
    with pytest.raises(InputError, match=r"41 x 41 x 41 = 68921 cells, and 41 rows are less than"):
        GridRegressor(**GIVEN).fit(scattered(41), np.arange(41.0))
    assert grid_of(scattered(40), np.arange(40.0))[0].size == 64000  # small enough to be answered


def test_one_cell_in_a_hundred_is_enough():
    places = np.arange(1000.0)
    assert grid_of(np.column_stack([places, places % 100]), places)[0].shape == (1000, 100)
    with pytest.raises(InputError, match="1000 x 101 = 101000 cells, and 1000 rows are less than"):
        grid_of(np.column_stack([places, places % 101]), places)


# What the checks of scikit-learn that cannot apply would check, on rows of a grid.


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, object])
def test_numbers_of_any_type_are_taken(dtype):
    rows = np.array(list(product(range(6), range(-3, 4)))).astype(dtype)
    values = rows.astype(float).sum(axis=1)
    whole = GridRegressor(**GIVEN).fit(rows.astype(float), values).predict(rows.astype(float))
    found = GridRegressor(**GIVEN).fit(rows, values.astype(dtype)).predict(rows)
    np.testing.assert_allclose(found, whole)


def test_lists_and_data_frames_are_taken():
    found = GridRegressor(**GIVEN).fit(ROWS.tolist(), VALUES.tolist()).predict(ROWS.tolist())
    assert found.shape == VALUES.shape
    table = xr.DataArray(ROWS, dims=("row", "column"))
    np.testing.assert_array_equal(GridRegressor(**GIVEN).fit(table, VALUES).predict(ROWS), found)


def test_it_stands_in_a_pipeline_and_a_search():
    pipe = make_pipeline(StandardScaler(), GridRegressor(**GIVEN))
    assert cross_val_score(pipe, ROWS, VALUES, cv=3).shape == (3,)
    search = GridSearchCV(GridRegressor(**GIVEN), {"ridge": [1e-6, 10.0]}, cv=3)
    order = np.random.default_rng(3).permutation(len(ROWS))
    assert search.fit(ROWS[order], VALUES[order]).best_params_ == {"ridge": 1e-6}
