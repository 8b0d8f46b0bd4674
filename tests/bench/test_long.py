"""Measurements of long dimensions: every row is there, and says what it measures."""

import numpy as np
import pytest

from dkrls_cli.bench import long as module
from dkrls_cli.bench.long import make_series, measure_agreement, measure_long
from dkrls_cli.cascade.factors import choice


def test_a_series_has_a_day_a_wandering_mean_and_noise() -> None:
    values = make_series(2400, 3)
    assert values.shape == (2400, 3)
    np.testing.assert_array_equal(values, make_series(2400, 3))
    power = np.abs(np.fft.rfft(values - values.mean(axis=0), axis=0)[1:])
    assert (np.argmax(power[50:], axis=0) == 49).all()  # 100 days


def test_every_row_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "LONG", 150)
    monkeypatch.setattr(module, "HOURS", 300)
    rows = list(measure_long((200, 400), appends=8, appended=(170, 250)))
    units = [row.unit for row in rows]
    assert units == [
        *["s", "s", "x half as many", "x the data", "GB"],
        *["x the spread"] * 4,
        *["x scipy cubic splines", "x the data"],
        *["ms", "x the shorter"],
        *["steps a second"] * 2,
    ]
    assert all(row.value > 0 for row in rows if row.unit not in ("x the spread", "x the data"))
    memory = [row.value for row in rows if row.unit == "x the data"]
    assert min(memory) > -10  # none is new where the process has room; pages are counted roughly


def test_long_factors_agree_with_dense_ones() -> None:
    for row in measure_agreement(300):
        assert row.value < 1e-8, row.what
