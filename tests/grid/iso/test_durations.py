"""Lengths of time are a number above 0 and a unit, and nothing else."""

import pytest

from dkrls_cli.errors import SettingError
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.iso.durations import SECONDS, is_duration, read_duration


@pytest.mark.parametrize("text", ["30D", "1y", "6 h", "P1M", "PT6H", "0.5D", "10min"])
def test_durations(text):
    assert is_duration(text)
    assert TimeScale("days since 2020-01-01").length(text) > 0


@pytest.mark.parametrize(
    ("text", "days"), [("2W", 14), ("3D", 3), ("6H", 0.25), ("36MIN", 0.025), ("864S", 0.01)]
)
def test_units_of_fixed_length(text, days):
    assert TimeScale("days since 2020-01-01").length(text) == pytest.approx(days, rel=1e-12)


@pytest.mark.parametrize("text", ["", "30", "D", "0D", "-3D", "3 days", "auto", "1D2H", "1e3D"])
def test_what_is_no_duration(text):
    assert not is_duration(text)
    with pytest.raises(SettingError, match=rf"'{text}' is not a time step"):
        read_duration(text)
    with pytest.raises(SettingError, match=r"is not a time step"):
        TimeScale("days since 2020-01-01").length(text)


@pytest.mark.parametrize("text", ["10m", " 0.5 m"])
def test_a_small_m_is_not_taken_for_months(text):
    assert is_duration(text)
    number = text.split("m")[0].strip()
    with pytest.raises(
        SettingError, match=f"may be months or minutes. Write {number}M or {number}MIN"
    ):
        read_duration(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("7D", ("7", "D")),
        ("1M", ("1", "M")),
        ("p1m", ("1", "M")),
        ("P1M", ("1", "M")),
        ("PT1M", ("1", "MIN")),  # behind T a month is a minute
        ("T1M", ("1", "MIN")),
        ("1min", ("1", "MIN")),
        ("0.5 w", ("0.5", "W")),
        ("2Y", ("2", "Y")),
    ],
)
def test_a_duration_is_its_number_and_its_unit(text, found):
    assert read_duration(text) == found
    assert found[1] in {*SECONDS, "M", "Y"}
