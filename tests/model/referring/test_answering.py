"""Rows of points, and what is made of sums."""

import numpy as np
from chunked_grids import fitted, globe

from dkrls_cli.model.answering.answers import Rules, ask_points
from dkrls_cli.model.referring.answering import _COLUMNS, PointAnswers, _as_matrix


def asked(model, at, spread=()):
    axes = [axis.at(at[axis.name]) if axis.name in at else axis for axis in model.axes]
    return ask_points(model, axes, Rules(), spread)


def test_points_at_coordinates_take_one_sample_and_others_a_window():
    model = fitted(globe(60), poles="none", sigma={"time": 1.0, "lat": 40.0, "lon": 50.0})
    query = asked(model, {"time": [1.0, 30.5], "lat": [3.0, 4.0], "lon": [0.0, 30.0]})
    rows = PointAnswers.of(query).sums.rows
    assert rows[2].width == 1
    assert rows[2].starts.tolist() == [0, 1]
    assert 1 < rows[0].width < 60
    exact = model.cascade.answer_rows(0, np.array([1.0, 30.5]), False)
    np.testing.assert_allclose(rows[0].matrix(slice(0, 60)), exact, rtol=0, atol=1e-12)


def test_samples_that_all_points_share_are_those_asked_for():
    model = fitted(globe(), poles="none")
    at = {"lat": [3.0], "lon": [4.0], "time": [5.0, 2.0, 5.0]}
    sums = PointAnswers.of(asked(model, at, [0])).sums
    assert sums.samples[0].tolist() == [2, 5]
    between = {**at, "time": [5.0, 2.1]}
    assert PointAnswers.of(asked(model, between, [0])).sums.samples[0].tolist() == list(range(14))


def test_sums_become_answers():
    model = fitted(globe(), poles="none", mean=0.25)
    answers = PointAnswers.of(asked(model, {"lat": [3.0], "lon": [4.0], "time": [5.0, 2.0]}, [0]))
    np.testing.assert_array_equal(answers.finish(np.array([[1.0, 2.0]])), [[2.25, 1.25]])


def test_rows_that_are_an_operator_are_made_some_columns_at_a_time():
    exact = np.random.default_rng(2).standard_normal((3, 2 * _COLUMNS + 5))
    widths = []

    class Operator:
        """Rows that can only be applied."""

        def __len__(self):
            return len(exact)

        def __matmul__(self, other):
            widths.append(other.shape[1])
            return exact @ other

    np.testing.assert_array_equal(_as_matrix(Operator(), exact.shape[1]), exact)
    assert widths == [_COLUMNS, _COLUMNS, 5]
