"""Axes that all tiles of a grid share."""

import numpy as np
import pytest
from tiled_grids import settings

from dkrls_cli.grid.axes import axis_of
from dkrls_cli.model.planning.plan import plan_fit
from dkrls_cli.model.tiling.ground import Frame

LON = {"units": "degrees_east", "standard_name": "longitude"}
NONE = np.empty(0, int)


def frame_of(axes, empty, *, extrapolate=False):
    return Frame.of(axes, [np.asarray(gone, int) for gone in empty], extrapolate=extrapolate)


def ground_of(frame, periods=None, **given):
    names = [axis.name for axis in frame.axes]
    plan = plan_fit(
        frame.known_axes, settings(dict.fromkeys(names, 2.0), periods=periods), complete=False
    )
    return frame.ground(plan, 0, 0, None, **{"sphere": False, **given})


def test_coordinates_without_data_are_solved_for_between_others_and_left_beyond():
    axes = [axis_of("t", np.arange(8.0)), axis_of("x", np.arange(3.0))]
    ground = ground_of(frame_of(axes, [[0, 4, 7], NONE]))
    assert ground.solved[0].tolist() == [1, 2, 3, 4, 5, 6]
    assert np.flatnonzero(ground.beyond[0]).tolist() == [0, 7]
    assert ground.answered[0][1:7].tolist() == list(range(6))
    assert (ground.spans[0].low, ground.spans[0].high) == (1, 7)
    assert ground.spans[0].known.tolist() == [1, 2, 3, 5, 6]


def test_all_coordinates_are_answered_where_that_is_asked_for():
    axes = [axis_of("t", np.arange(8.0)), axis_of("x", np.arange(3.0))]
    ground = ground_of(frame_of(axes, [[0, 7], NONE], extrapolate=True))
    assert ground.solved[0].tolist() == list(range(8))
    assert not ground.beyond[0].any()
    assert (ground.spans[0].low, ground.spans[0].high) == (0, 8)


@pytest.mark.parametrize("ring", [True, False])
def test_a_ring_is_one_for_tiles_if_it_is_one_for_the_model(ring):
    lon = axis_of("lon", np.arange(0.0, 360.0, 45.0), LON)
    axes = [axis_of("t", np.arange(4.0)), lon]
    frame = frame_of(axes, [NONE, [0, 7]])
    ground = ground_of(frame, {"lon": 360.0 if ring else None})
    span = ground.spans[1]
    assert (span.ring, span.low, span.high) == ((True, 0, 8) if ring else (False, 1, 7))
    assert ground.beyond[1].any() != ring


def test_a_repeated_longitude_has_the_answer_of_its_twin():
    lon = axis_of("lon", np.arange(0.0, 361.0, 45.0), LON)
    frame = frame_of([axis_of("t", np.arange(4.0)), lon], [NONE, NONE])
    assert frame.axes[1].size == 8
    ground = ground_of(frame, {"lon": 360.0})
    assert ground.answered[1].tolist() == [*range(8), 0]
    assert ground.columns[1].tolist() == list(range(8))
