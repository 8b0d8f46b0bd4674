"""Grids as streams, and the part of a stream that a search sees."""

from __future__ import annotations

import numpy as np
import pytest
from bench.streams.known_streams import NO_LIMIT, waves

from dkrls_cli.bench.streams.data import StreamData, make_stream
from dkrls_cli.bench.streams.race import run_stream_method
from dkrls_cli.errors import InputError
from dkrls_cli.grid.axes import axis_of, text_axis
from dkrls_cli.grid.grid import Grid


def test_a_grid_streams_along_its_last_level() -> None:
    values = np.arange(24.0).reshape(2, 4, 3)
    axes = (axis_of("y", [0.0, 5.0]), axis_of("time", [3.0, 1.0, 2.0, 0.0]), text_axis("x", "abc"))
    stream = make_stream(Grid(values, axes))
    assert stream.coordinates.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert stream.values[0].tolist() == values[:, 3].ravel().tolist()
    assert stream.places.tolist() == [[x, y] for y in (0, 1) for x in (0, 1, 2)]  # x fastest
    assert make_stream(Grid(values, axes), ["time", "x", "y"][::-1]).steps == 4
    with pytest.raises(InputError, match="2 coordinates of y, its last level"):
        make_stream(Grid(values, axes), ["time", "x", "y"])


def test_a_search_sees_few_series_that_are_a_grid() -> None:
    axes = [axis_of(name, np.arange(float(n))) for name, n in (("time", 8), ("y", 9), ("x", 30))]
    few = make_stream(Grid(np.random.default_rng(0).normal(size=(8, 9, 30)), tuple(axes))).thin()
    assert few.values.shape == (8, 16)
    assert {tuple(place) for place in few.places} == {
        (x, y) for x in (0, 9, 19, 29) for y in (0, 2, 5, 8)
    }
    run = run_stream_method("recursive", few, 5, NO_LIMIT)
    assert run.steps == 7
    assert not run.note


@pytest.mark.parametrize(("steps", "seen"), [(3, 0), (40, 10), (4000, 1000), (9000, 1000)])
def test_a_search_sees_a_quarter_or_a_thousand_steps(steps: int, seen: int) -> None:
    stream = StreamData(
        np.arange(float(steps)), np.zeros((steps, 1)), np.zeros((1, 1)), np.arange(1)
    )
    assert stream.search_steps == seen


def test_the_first_steps_keep_all_series() -> None:
    stream = waves(steps=10, series=4)
    first = stream.first(3)
    np.testing.assert_array_equal(first.values, stream.values[:3])
    np.testing.assert_array_equal(first.coordinates, [0.0, 1.0, 2.0])
    assert first.places is stream.places


def test_units_are_those_of_the_steps_that_a_search_sees() -> None:
    values = np.zeros((12, 1))
    values[:3, 0] = [0.0, 3.0, -1.0]  # changes of 3 and 4, and large ones later
    values[3:, 0] = np.arange(9) * 100.0
    times = np.cumsum([0.0, *[2.0] * 10, 50.0])
    stream = StreamData(times, values, np.zeros((1, 1)), np.arange(1))
    units = stream.units()
    assert units.change == pytest.approx(np.sqrt((9 + 16) / 2))
    assert units.step == 2.0
    values[1] = np.nan
    assert StreamData(times, values, np.zeros((1, 1)), np.arange(1)).units().change == 1.0


def test_a_constant_stream_has_a_unit_of_one() -> None:
    stream = StreamData(np.arange(9.0), np.ones((9, 1)), np.zeros((1, 1)), np.arange(1))
    assert stream.units().change == 1.0


def test_a_single_series_is_a_stream() -> None:
    stream = make_stream(Grid(np.arange(5.0), (axis_of("time", np.arange(5.0)),)))
    assert (stream.values.shape, stream.places.shape) == ((5, 1), (1, 1))
    assert stream.few.tolist() == [0]


def test_places_are_in_steps_of_their_dimension() -> None:
    axes = (axis_of("time", np.arange(4.0)), axis_of("x", np.array([0.0, 5.0, 10.0])))
    stream = make_stream(Grid(np.zeros((4, 3)), axes))
    assert stream.places.ravel().tolist() == [0.0, 1.0, 2.0]


def test_three_steps_are_enough() -> None:
    axes = (axis_of("time", np.arange(3.0)),)
    assert make_stream(Grid(np.arange(3.0), axes)).steps == 3
    with pytest.raises(InputError, match=r"has 2 coordinates of time.* needs at least 3\."):
        make_stream(Grid(np.arange(2.0), (axis_of("time", np.arange(2.0)),)))
