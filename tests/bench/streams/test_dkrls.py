"""Forecasts by this package are those of a live stream."""

from __future__ import annotations

import numpy as np
import pytest
from bench.streams.known_streams import NO_LIMIT, waves

from dkrls_cli import fit
from dkrls_cli.bench.streams.dkrls import DkrlsForecaster
from dkrls_cli.bench.streams.race import run_forecaster
from dkrls_cli.model.stream import Plan, Stream


@pytest.mark.parametrize("retune", [False, True])
def test_ours_is_what_a_stream_does(retune: bool) -> None:
    stream, plan = waves(steps=40), Plan(15, retune=retune)
    run = run_forecaster(DkrlsForecaster(plan, first=10), stream, NO_LIMIT)
    named = {"time": stream.coordinates[:10], "series": np.arange(3.0)}
    live = Stream(fit(stream.values[:10], named, ["series", "time"]), plan)
    for place in range(10, 40):
        new = live.model.axes[0].at(stream.coordinates[place])
        expected = live.step(new, stream.values[place : place + 1])
        missed = np.sum((expected.values - stream.values[place]) ** 2)
        assert run.squares[place - 1] == pytest.approx(missed, rel=1e-9)
    changes = np.sum(np.diff(stream.values[:10], axis=0) ** 2, axis=1)
    assert run.squares[:9] == pytest.approx(changes)
