"""Scales: the range of colours, symmetric around zero for differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.plots.scales import Scale, error_scale, scale_of

SIGNED = np.array([-1.0, 3.0, np.nan])


def test_values_have_their_own_range() -> None:
    other = np.array([[7.0]])
    assert scale_of([SIGNED, other], "t", {"long_name": "temperature"}) == Scale(-1.0, 7.0)


@pytest.mark.parametrize(
    ("name", "attrs"),
    [
        ("sst_anom", {}),
        ("t", {"standard_name": "surface_temperature_anomaly"}),
        ("t", {"long_name": "Temperature Anomalies"}),
        ("e", {"long_name": "error of the forecast"}),
        ("d", {"long_name": "difference from the mean"}),
        ("u", {"standard_name": "eastward_wind"}),
    ],
)
def test_differences_are_shown_around_zero(name: str, attrs: dict[str, str]) -> None:
    scale = scale_of([SIGNED], name, attrs)
    assert scale == Scale(-3.0, 3.0, "diverging")
    assert scale.place(np.array([-3.0, 0.0, 3.0])).tolist() == [0.0, 0.5, 1.0]
    assert scale_of([np.abs(SIGNED)], name, attrs).palette == "sequential"


@pytest.mark.parametrize(
    "attrs", [{"long_name": "standard error of t"}, {"standard_name": "t standard_error"}]
)
def test_standard_errors_begin_at_zero(attrs: dict[str, str]) -> None:
    assert scale_of([np.array([0.5, 2.0])], "x", attrs) == Scale(0.0, 2.0, "errors")
    assert scale_of([np.array([0.5, 2.0])], "sst_std", {}) == Scale(0.0, 2.0, "errors")


def test_errors_that_are_zero_or_absent_have_a_range() -> None:
    assert error_scale([np.zeros(3)]) == Scale(0.0, 1.0, "errors")
    assert error_scale([np.full(3, np.nan)]) == Scale(0.0, 1.0, "errors")
    assert error_scale([np.array([np.nan, 2.0])]) == Scale(0.0, 2.0, "errors")


@given(st.floats(-1e30, 1e30, allow_subnormal=False))
def test_equal_values_have_a_range_around_them(value: float) -> None:
    scale = scale_of([np.array([value, value])], "t", {})
    assert scale.low < value < scale.high
    assert 0.4 < scale.place(np.array([value]))[0] < 0.6


def test_missing_values_have_no_place() -> None:
    places = Scale(0.0, 2.0).place(np.array([-1.0, 1.0, 5.0, np.nan]))
    np.testing.assert_array_equal(places, [0.0, 0.5, 1.0, np.nan])
