"""Splits of a dataset, samples in order, and the small grid of a search."""

from __future__ import annotations

import numpy as np
import pytest
from bench.paper.small_data import small

from dkrls_cli.bench.paper.dataset import Dataset
from dkrls_cli.bench.paper.published import intel_lab_dataset, synthetic_dataset


def test_samples_come_with_the_first_dimension_fastest() -> None:
    task = small((4, 5, 3)).make_task(0)
    points, values = task.samples(np.arange(task.size))
    np.testing.assert_array_equal(values, task.values.ravel(order="F"))
    assert points[1, 0] != points[0, 0]
    assert (points[1, 1:] == points[0, 1:]).all()
    assert (np.diff(points[:, -1]) >= 0).all()
    truth = np.sin(task.query_points()[:, 0]) * np.cos(task.query_points()[:, 1] / 2)
    truth *= np.cos(task.query_points()[:, 2] / 3)
    np.testing.assert_allclose(task.as_grid(truth), task.truth)


def test_settings_are_searched_in_the_training_part_alone() -> None:
    whole = synthetic_dataset("cross")
    thin, train = whole.thin(400), whole.make_task(0)
    for few, known in zip(thin.coordinates, train.coordinates, strict=True):
        assert set(few) <= set(known)
    assert thin.values.size <= 400
    task = thin.make_task(0)
    assert task.truth.shape == thin.held


def test_a_split_is_random_and_repeatable() -> None:
    one, same, other = (small().make_task(seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.values, same.values)
    assert not np.array_equal(one.queries[0], other.queries[0])
    whole = np.union1d(one.coordinates[0], one.queries[0])
    np.testing.assert_array_equal(whole, small().coordinates[0])


def test_a_dimension_with_nothing_held_out_is_predicted_where_it_was_learnt() -> None:
    task = Dataset("d", (np.arange(4.0), np.arange(10.0)), np.ones((4, 10)), (0, 2)).make_task(0)
    np.testing.assert_array_equal(task.queries[0], task.coordinates[0])
    assert (task.values.shape, task.truth.shape) == ((4, 8), (4, 2))


@pytest.mark.parametrize(("cells", "side"), [(400, 20), (399, 19), (1, 3), (10**6, 37)])
def test_a_small_grid_has_at_most_so_many_cells(cells: int, side: int) -> None:
    thin = synthetic_dataset("cross").thin(cells)
    assert thin.values.shape[0] == min(side, 37)
    assert thin.values.shape[1] == min(max(side, 3), 38) if cells < 10**6 else 38
    assert thin.held == tuple(round(0.2 * n) for n in thin.values.shape)
    for axis in thin.coordinates:
        assert (np.diff(axis) > 0).all()


def test_a_small_grid_keeps_dimensions_with_nothing_held_out() -> None:
    thin = intel_lab_dataset(np.random.default_rng(0).normal(size=(52, 100))).thin(520)
    assert (thin.values.shape, thin.held) == ((52, 10), (0, 2))


def test_values_of_a_small_grid_are_those_at_its_coordinates() -> None:
    thin = small((20, 20)).thin(50)
    x, y = thin.coordinates
    np.testing.assert_allclose(thin.values, np.sin(x)[:, None] * np.cos(y / 2), atol=1e-12)
