"""Samples that online methods learn from slices, and the forecasts they give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench.streams.known_streams import waves

from dkrls_cli.baselines import BASELINES
from dkrls_cli.bench.streams.online import (
    CHANGE_SCHEMES,
    PLACE_SCHEMES,
    LastValue,
    OnlineForecaster,
    SampleScheme,
    SampleUnits,
)


class Spy:
    """Stands for a method: remembers what it was given, answers 0.5."""

    def __init__(self) -> None:
        self.given: list[tuple[list[float], float]] = []

    def update(self, x: Any, y: float) -> None:
        self.given.append((np.asarray(x).tolist(), y))

    def predict(self, points: Any) -> Any:
        return np.full(len(points), 0.5)


@pytest.mark.parametrize(
    ("scheme", "samples", "guess"),
    [
        (SampleScheme("changes", 3), [([-2.0, -3.0], 1.0), ([4.0, 5.0], 2.0)], [7.0, 1.0]),
        (SampleScheme("changes", 3, own=True), [([-2.0, -3.0], 1.0)], [7.0, 1.0]),
        (SampleScheme("time", own=True), [([3.0], 1.0)], [7.0, 1.0]),
        (SampleScheme("place"), [([10.0, 3.0], 1.0), ([20.0, 3.0], 2.0)], [7.0, 1.0]),
        (SampleScheme("place", level=True), [([10.0, 3.0], 4.0), ([20.0, 3.0], -3.0)], [1.0, 11.0]),
    ],
    ids=str,
)
def test_samples_are_made_as_the_scheme_says(
    scheme: SampleScheme, samples: Any, guess: list[float]
) -> None:
    spies: list[Spy] = []

    def make() -> Any:
        spies.append(Spy())
        return spies[-1]

    online = OnlineForecaster(make, scheme, SampleUnits(2.0, 5.0, np.array([[10.0], [20.0]])))
    slices = [[0.0, 10.0], [2.0, 8.0], [6.0, 0.0], [8.0, 4.0]]
    for time, values in zip((0.0, 5.0, 10.0, 15.0), slices, strict=True):
        if time == 15.0:
            assert online.forecast(time).tolist() == guess
        online.learn(time, np.array(values))
    assert len(spies) == (2 if scheme.own else 1)
    assert spies[0].given[-len(samples) :] == samples


def test_a_model_of_time_answers_as_the_method_itself() -> None:
    stream, changes = waves(steps=20, series=2), {}
    online = OnlineForecaster(
        lambda: BASELINES["swkrls"](sigma=3.0), SampleScheme("time", own=True), stream.units()
    )
    online.learn(0.0, stream.values[0])
    for i in range(1, 20):
        online.forecast(float(i))
        online.learn(float(i), stream.values[i])
    for series in range(2):
        changes[series] = np.diff(stream.values[:, series])
        alone = BASELINES["swkrls"](sigma=3.0)
        for i, change in enumerate(changes[series], start=1):
            alone.update([float(i)], change)
        expected = stream.values[-1, series] + alone.predict([[20.0]])[0]
        assert online.forecast(20.0)[series] == pytest.approx(expected, rel=1e-10)


def test_the_last_value_is_the_slice_learnt_last() -> None:
    forecaster = LastValue()
    for value in (1.0, 2.0):
        forecaster.learn(0.0, np.array([value]))
        assert forecaster.forecast(1.0).tolist() == [value]


def test_schemes_as_text() -> None:
    assert [str(scheme) for scheme in (*CHANGE_SCHEMES, *PLACE_SCHEMES)] == [
        "changes of 2 values",
        "changes of 5 values",
        "changes of 3 values",
        "own changes of 3 values",
        "time, changes",
        "place, changes",
        "place, values",
    ]
