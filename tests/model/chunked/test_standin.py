"""Stand-ins of stored grids."""

import numpy as np
import pytest
from stored_grids import globe, stored, waves

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.level import Level
from dkrls_cli.model.answering.bounds import Bounds
from dkrls_cli.model.chunked.ground import prepare
from dkrls_cli.model.chunked.standin import any_level, make_stand_in, no_bars
from dkrls_cli.model.fit import fit
from dkrls_cli.model.planning.requests import LevelRequest
from dkrls_cli.model.poles.crossing import continue_rows
from dkrls_cli.model.settings import DEFAULTS, Settings


def test_a_stand_in_is_the_model_in_all_but_values():
    data = globe()
    whole = fit(data, poles="scalar", ridge=0.01)
    ground = prepare(stored(data), Settings(poles="scalar"))
    levels = whole.cascade.levels
    rows = continue_rows(ground.axes, ground.plan.poles, 1, levels, None, whole.cascade.mean)
    made = make_stand_in(
        ground,
        levels,
        whole.cascade.mean,
        bars=whole.bars,
        bounds=(Bounds(0.0, 9.0), ""),
        facts={"notes": ["a note"]},
        rows=rows,
    )
    assert made.cascade.core.strides == (0, 0, 0)  # one number
    assert made.cascade.shape == whole.cascade.shape
    assert (made.axes[1].size, made.across_poles, made.hierarchy) == (19, "scalar", whole.hierarchy)
    assert (made.bounds, made.origin) == (Bounds(0.0, 9.0), {"notes": ["a note"]})
    asked = whole.axes_at({"lat": [-89.0, 3.3], "lon": [2.0, 359.0], "time": [1.5]})
    queries = whole.queries(asked)
    np.testing.assert_allclose(made.variance(queries), whole.variance(queries))
    for axis, query in enumerate(queries):
        rows_made = made.cascade.answer_rows(axis, query, False)
        np.testing.assert_allclose(
            rows_made, whole.cascade.answer_rows(axis, query, False), atol=1e-9
        )


def test_error_bars_that_are_not_known_are_no_numbers():
    ground = prepare(stored(waves()), DEFAULTS)
    levels = [
        any_level(planned, axis)
        for planned, axis in zip(ground.plan.levels, ground.axes, strict=True)
    ]
    made = make_stand_in(ground, levels, 10.0, bars=no_bars(3), bounds=(None, ""), facts={})
    asked = made.queries(made.axes_at({"lat": [21.0]}))
    assert np.isnan(made.variance(asked)).all()


def test_levels_that_are_not_chosen_keep_what_is_given():
    axis = prepare(stored(waves()), DEFAULTS).axes[2]
    given = Level("lon", Kernel("matern32", 4.0), 0.1)
    assert any_level(given, axis) is given
    some = any_level(LevelRequest("lon", "matern52", None, 0.3, 360.0), axis)
    assert (some.kernel.family, some.kernel.period, some.ridge) == ("matern52", 360.0, 0.3)
    assert some.kernel.sigma == pytest.approx(60 / 23)
