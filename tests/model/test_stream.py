"""Streams: every slice forecast by the model of those before it, and learnt like an update."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dkrls_cli import Kernel, Level, Model, fit
from dkrls_cli.errors import InputError
from dkrls_cli.files.feed import Feed, NewSlice
from dkrls_cli.grid.axes import axis_of, text_axis
from dkrls_cli.model.stream import Plan, Stream
from dkrls_cli.tuning.forecasts import Forecaster, settings_around

X = np.linspace(0, 1, 7)
LEVELS = [
    Level("x", Kernel("matern52", 0.4), 1e-4),
    Level("t", Kernel("matern32", 6.0, constant=1.0), 1e-3),
]
JOINT = {"levels": [replace(v, ridge=0.0) for v in LEVELS], "noise": "joint", "ridge": 1e-3}


def times(uneven: bool, count: int = 40) -> np.ndarray:
    steps = np.random.default_rng(5).uniform(0.5, 1.5, count) if uneven else np.ones(count)
    return np.cumsum(steps)


def field(t: np.ndarray, seed: int = 0) -> np.ndarray:
    noise = 0.05 * np.random.default_rng(seed).normal(size=(X.size, t.size))
    return 3 + np.sin(2 * X[:, None] + t / 5) + noise


def fitted(values: np.ndarray, t: np.ndarray, **how: Any) -> Model:
    return fit(values, {"x": X, "t": t}, **{"levels": LEVELS, "mean": 2.9, **how})


def test_a_singular_level_asks_the_model_itself() -> None:
    t = np.arange(40.0)
    values = np.sin(t / 9) * np.ones((7, 1))
    levels = [LEVELS[0], Level("t", Kernel("gaussian", 8.0), 0.0)]
    stream = Stream(fit(values[:, :30], {"x": X, "t": t[:30]}, levels), Plan(window=30))
    for place in range(30, 40):
        before = stream.model.predict(t=t[place : place + 1]).values
        new = stream.model.axes[1].at(t[place])
        assert np.array_equal(stream.step(new, values[:, [place]]).values, before)
    assert stream.rmse < 1e-3


# --- streams ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{}, JOINT], ids=["level", "joint"])
@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("window", [None, 9])
def test_a_forecast_is_the_answer_of_the_model_there(
    how: dict[str, Any], uneven: bool, window: int | None
) -> None:
    t = times(uneven)
    values = field(t)
    stream = Stream(fitted(values[:, :12], t[:12], **how), Plan(window))
    for place in range(12, 40):
        before = stream.model.predict(t=t[place : place + 1]).values
        new = stream.model.axes[1].at(t[place])
        expected = stream.step(new, values[:, place : place + 1])
        assert expected.values == pytest.approx(before, rel=1e-9)
    kept = slice(-window, None) if window else slice(None)
    whole = fitted(values[:, kept], t[kept], **how)
    at = {"x": [0.3], "t": [t[-1] + 0.4]}
    assert float(stream.final_model().predict(**at)[0, 0]) == pytest.approx(
        float(whole.predict(**at)[0, 0]), rel=1e-9
    )
    assert stream.slices == 28


def stream_of(
    values: np.ndarray, t: np.ndarray, start: int, plan: Plan, mean: float = 2.9
) -> Stream:
    stream = Stream(fitted(values[:, :start], t[:start], mean=mean), plan)
    for place in range(start, t.size):
        stream.step(stream.model.axes[1].at(t[place]), values[:, place : place + 1])
    return stream


def test_errors_are_counted_as_they_are() -> None:
    t = times(uneven=False)
    values = field(t)
    stream = stream_of(values, t, 20, Plan())
    forecasts = [
        fitted(values[:, :p], t[:p]).predict(t=t[p : p + 1]).values[:, 0] for p in range(20, 40)
    ]
    missed = np.array(forecasts).T - values[:, 20:]
    assert stream.rmse == pytest.approx(np.sqrt(np.mean(missed**2)))
    assert stream.last_value_rmse == pytest.approx(np.sqrt(np.mean(np.diff(values)[:, 19:] ** 2)))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_several_settings_follow_what_changes(scale: float) -> None:
    t = np.arange(300.0)
    rng = np.random.default_rng(1)
    noise = np.where(t < 150, 0.01, 1.0) * rng.normal(size=(7, 300))
    values = scale * (np.sin(X[:, None] + t / 12) + noise)
    own = stream_of(values, t, 60, Plan(window=60), mean=0.0)
    several = stream_of(values, t, 60, Plan(window=60, retune=True), mean=0.0)
    assert several.rmse < 0.9 * several.last_value_rmse
    assert several.rmse < own.rmse
    assert several.final_model().levels[1] != several.model.levels[1]


def test_shares_do_not_depend_on_units() -> None:
    t = times(uneven=False, count=60)
    values = field(t)
    start = [fit(c * values[:, :30], {"x": X, "t": t[:30]}, LEVELS) for c in (1.0, 1e-6)]
    forecasts = [
        Forecaster(m.growing, settings_around(LEVELS[1], t[:30])).forecast(m.growing, 31.0).values
        for m in start
    ]
    assert forecasts[0] == pytest.approx(1e6 * forecasts[1], rel=1e-6)


def test_error_bars_widen_with_what_is_missed() -> None:
    t = times(uneven=False, count=80)
    values = field(t)
    values[3, 40:] += np.random.default_rng(2).normal(size=40)
    stream = Stream(fitted(values[:, :30], t[:30]), Plan(window=30))
    bars = [
        stream.step(stream.model.axes[1].at(t[p]), values[:, p : p + 1]).std[:, 0]
        for p in range(30, 80)
    ]
    assert bars[-1][3] > 3 * bars[0][3]
    assert np.delete(bars[-1], 3).max() < 0.5 * bars[-1][3]
    promised = fitted(values[:, :30], t[:30]).std(t=t[30:31]).values[:, 0]
    assert bars[0] == pytest.approx(promised)


def test_a_drift_is_noticed() -> None:
    t = times(uneven=False, count=80)
    values = field(t)
    assert stream_of(values, t, 30, Plan()).drift == 0
    values[:, 50:] += 30 * np.random.default_rng(2).normal(size=(7, 30))
    assert stream_of(values, t, 30, Plan()).drift > 3


@pytest.mark.parametrize("retune", [False, True])
@pytest.mark.parametrize("how", [{}, JOINT], ids=["level", "joint"])
def test_missing_cells_and_bounds_go_together(how: dict[str, Any], retune: bool) -> None:
    t = times(uneven=False)
    values = field(t)
    holed = np.where(np.random.default_rng(0).random(values.shape) < 0.2, np.nan, values)
    start = fitted(values[:, :15], t[:15], **how)
    stream = Stream(start, Plan(max_rank=12, retune=retune))
    for place in range(15, 40):
        expected = stream.step(start.axes[1].at(t[place]), holed[:, place : place + 1])
        assert np.isfinite(expected.values).all()
        assert np.isfinite(expected.std).all()
    assert stream.model.axes[1].size == 12
    assert stream.rmse < 1.5 * stream.last_value_rmse
    assert stream.final_model().cascade.shape == (7, 12)


# --- rows to slices -----------------------------------------------------------------------------

AXES = [
    axis_of("t", np.arange(3.0)),
    axis_of("x", np.array([0.1, 0.2])),
    text_axis("s", ["a", "b"]),
]


def gathered(text: str, axes: list[Any] | None = None) -> list[NewSlice]:
    return list(Feed(io.StringIO(text), list(axes or AXES), 0, "v", "standard input").slices())


def long_rows(coordinates: list[Any], skip: int = -1) -> list[dict[str, Any]]:
    cells = [(x, s) for x in (0.1, 0.2) for s in "ab"]
    rows = [
        {"t": t, "x": x, "s": s, "v": round(t + x + (s == "b"), 6)}
        for t in coordinates
        for x, s in cells
    ]
    return [row for i, row in enumerate(rows) if i != skip]


def as_csv(rows: list[dict[str, Any]]) -> str:
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    return "\n".join(lines) + "\n"


def as_json(rows: list[dict[str, Any]]) -> str:
    return "\n".join(map(json.dumps, rows)) + "\n"


@pytest.mark.parametrize("form", [as_csv, as_json])
def test_rows_become_slices(form: Any) -> None:
    found = gathered(form(long_rows([5.0, 6.5], skip=6)))
    assert [new.axis.numbers.tolist() for new in found] == [[5.0], [6.5]]
    assert found[0].values == pytest.approx(np.array([[[5.1, 6.1], [5.2, 6.2]]]))
    assert np.isnan(found[1].values).tolist() == [[[False, False], [True, False]]]


def test_a_slice_is_handed_on_as_soon_as_it_is_whole() -> None:
    asked: list[str] = []

    def lines() -> Any:
        for line in as_csv(long_rows([5.0, 6.0])).splitlines(keepends=True):
            asked.append(line)
            yield line

    slices = Feed(lines(), list(AXES), 0, "v", "standard input").slices()
    next(slices)
    assert len(asked) == 5


def test_missing_values_and_other_columns() -> None:
    text = "site,t,x,s,v\nz,5,0.1,a,NA\nz,5,0.1,b,\nz,5,0.2,a,3\nz,5,0.2,b,nan\n"
    (new,) = gathered(text)
    assert np.isnan(new.values).sum() == 3


def test_new_labels_are_numbered_on() -> None:
    axes = [text_axis("run", ["p", "q"]), axis_of("x", np.array([0.1]))]
    text = "run,x,v\nr,0.1,1\ns,0.1,2\n"
    assert [new.axis.numbers.tolist() for new in gathered(text, axes)] == [[2.0], [3.0]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("t,x,v\n", "no column 's'"),
        ("t,x,s,w,u\n1,0.1,a,1,1\n", "no column 'v' of values"),
        ("t,x,s,v\n5,0.1,a\n", "Line 2 .* has 3 cells"),
        ("t,x,s,v\n5,0.1,a,much\n", "Line 2 .* 'much' for a value"),
        ("t,x,s,v\n5,0.1,c,1\n", "Line 2 .* has no 'c'"),
        ("t,x,s,v\n5,0.3,a,1\n", "Line 2 .* no x 0.3"),
        ("t,x,s,v\nsoon,0.1,a,1\n", "Line 2 .* 'soon' is not a number"),
        ("t,x,s,v\n5,0.1,a,1\n5,0.1,a,2\n", "Line 3 .* again"),
        ('{"t": 5}\n', "no column 'x'"),
        ('{"t": 5, "x": 0.1, "s": "a", "v": 1}\n{"t": 5}\n', "Line 2 .* no 'x'"),
        ('{"t": 5, "x": 0.1, "s": "a", "v": 1}\n[1]\n', "Line 2 .* no object"),
        ('{"t": 5, "x": 0.1, "s": "a", "v": 1}\n{"t"\n', "Line 2 .* not JSON"),
    ],
)
def test_what_is_no_slice_is_refused_by_line(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        gathered(text)
