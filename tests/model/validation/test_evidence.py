"""Errors by coordinate are those of a direct loop; the slice shown is the fullest."""

import numpy as np
import pytest

from dkrls_cli.grid.axes import Axis, axis_of, index_axis
from dkrls_cli.model.validation.evidence import collect_evidence, shown_axes

TIME = axis_of("time", np.datetime64("2020-01-01") + np.arange(5))
LAT = axis_of("lat", np.arange(6.0), {"units": "degrees_north"})
LON = axis_of("lon", np.arange(7.0) * 10, {"units": "degrees_east"})
AXES = (TIME, LAT, LON)
HELD = (np.array([1, 4]), np.array([0, 2, 5]), np.array([2, 3, 6]))


def compared(seed=0, missing=0.3, held=HELD):
    rng = np.random.default_rng(seed)
    shape = [places.size for places in held]
    truth, answers = rng.standard_normal((2, *shape))
    truth[rng.random(shape) < missing] = np.nan
    return truth, answers, rng.gamma(2.0, size=shape)


def test_errors_by_coordinate_are_those_of_a_loop_over_all_runs():
    runs = [compared(seed) for seed in range(3)]
    found = collect_evidence(AXES, HELD, *runs[0])
    for run in runs[1:]:
        found = found.plus(collect_evidence(AXES, HELD, *run))
    for place, own in enumerate(found.coordinates):
        assert own.axis is AXES[place]
        for at in range(own.axis.size):
            errors = [
                answers[index] - truth[index]
                for truth, answers, _ in runs
                for index in np.ndindex(truth.shape)
                if HELD[place][index[place]] == at and np.isfinite(truth[index])
            ]
            assert own.counts[at] == len(errors)
            if errors:
                assert own.bias[at] == pytest.approx(np.mean(errors))
                assert own.rmse[at] == pytest.approx(np.sqrt(np.mean(np.square(errors))))
            else:
                assert np.isnan(own.rmse[at])
                assert np.isnan(own.bias[at])


def test_the_slice_with_most_known_cells_is_shown_with_its_coordinates():
    truth, answers, variance = compared(missing=0.0)
    truth[0, 1, 1] = np.nan
    shown = collect_evidence(AXES, HELD, truth, answers, variance).shown
    assert [axis.name for axis in shown.axes] == ["lat", "lon"]
    assert shown.axes[0].numbers.tolist() == [0.0, 2.0, 5.0]
    assert [axis.texts for axis in shown.fixed] == [["2020-01-05"]]
    np.testing.assert_array_equal(shown.truth, truth[1])
    np.testing.assert_array_equal(shown.answers, answers[1])
    np.testing.assert_allclose(shown.deviations**2, variance[1])
    assert shown.known == 9


def test_the_first_of_the_fullest_slices_of_all_runs_is_shown():
    less, first, second = compared(0, 0.9), compared(1, 0.0), compared(2, 0.0)
    found = collect_evidence(AXES, HELD, *less)
    found = found.plus(collect_evidence(AXES, HELD, *first))
    found = found.plus(collect_evidence(AXES, HELD, *second))
    np.testing.assert_array_equal(found.shown.truth, first[0][0])


def test_a_grid_of_two_dimensions_is_shown_whole():
    truth, answers, variance = (each[:, :, 0] for each in compared())
    shown = collect_evidence((TIME, LAT), HELD[:2], truth, answers, variance).shown
    assert [axis.name for axis in shown.axes] == ["time", "lat"]
    np.testing.assert_array_equal(shown.truth, truth)
    assert shown.fixed == ()


def test_what_is_kept_is_a_copy_of_one_slice():
    truth, answers, variance = compared()
    shown = collect_evidence(AXES, HELD, truth, answers, variance).shown
    for each in (shown.truth, shown.answers, shown.deviations):
        assert each.base is None or each.base.size == each.size


def test_one_dimension_is_a_series_and_one_cell_is_one_too():
    series = collect_evidence((LAT,), HELD[1:2], *(np.ones(3) for _ in range(3))).shown
    assert [axis.name for axis in series.axes] == ["lat"]
    one = Axis("x", np.zeros(1))
    cell = collect_evidence((one,), (np.array([0]),), np.ones(1), np.ones(1), np.ones(1))
    assert cell.shown.truth.shape == (1,)
    assert cell.coordinates == ()


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ([LON, TIME, LAT], (0, 2)),
        ([LAT, index_axis("member", 9), LON], (0, 2)),
        ([index_axis("a", 3), index_axis("b", 9), index_axis("c", 4)], (1, 2)),
        ([LAT, index_axis("a", 9), index_axis("b", 8)], (1, 2)),
        ([LON, index_axis("a", 3)], (0, 1)),
        ([index_axis("a", 3), index_axis("b", 1), index_axis("c", 4)], (0, 2)),
        ([index_axis("b", 1), index_axis("c", 4)], (1,)),
        ([index_axis("b", 1)], (0,)),
    ],
)
def test_axes_of_a_map_or_else_the_longest_are_shown(axes, expected):
    assert shown_axes(axes) == expected
