"""Bounds of settings, and what the errors say."""

import math

import pytest

from dkrls_cli.baselines.checks import check_above, check_between, check_count
from dkrls_cli.errors import SettingError


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_a_setting_must_be_finite_and_above_its_bound(value: float) -> None:
    with pytest.raises(SettingError, match=r"Invalid sigma .* finite number above 0\."):
        check_above("sigma", value)


def test_a_setting_above_its_bound_is_returned_as_a_float() -> None:
    assert check_above("power", 2, 1.0) == 2.0
    assert isinstance(check_above("power", 2, 1.0), float)
    with pytest.raises(SettingError, match=r"Invalid power 1\.0\. .* above 1\."):
        check_above("power", 1.0, 1.0)


def test_both_bounds_are_included() -> None:
    assert check_between("share", 0.0, 0.0, 1.0) == 0.0
    assert check_between("share", 1, 0.0, 1.0) == 1.0
    for value in (-1e-9, 1 + 1e-9, math.nan):
        with pytest.raises(SettingError, match=r"Invalid share .* from 0 to 1\."):
            check_between("share", value, 0.0, 1.0)


def test_a_count_is_a_whole_number_from_one() -> None:
    assert check_count("budget", 1) == 1
    assert check_count("budget", 3.0) == 3  # type: ignore[arg-type]
    assert isinstance(check_count("budget", 3.0), int)  # type: ignore[arg-type]
    for value in (0, -2, 1.5):
        with pytest.raises(SettingError, match=r"Invalid budget .* whole number above 0\."):
            check_count("budget", value)  # type: ignore[arg-type]
