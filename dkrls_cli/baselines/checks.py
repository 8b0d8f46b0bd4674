"""Checks of the settings of baselines: each returns the setting, or raises SettingError."""

from __future__ import annotations

import math

from dkrls_cli.errors import SettingError


def check_above(name: str, value: float, least: float = 0.0) -> float:
    """Return a finite setting that is above a bound, or raise SettingError."""
    if not (math.isfinite(value) and value > least):
        raise SettingError(f"Invalid {name} {value}. It must be a finite number above {least:g}.")
    return float(value)


def check_between(name: str, value: float, low: float, high: float) -> float:
    """Return a setting from `low` to `high`, both included, or raise SettingError."""
    if not low <= value <= high:
        raise SettingError(f"Invalid {name} {value}. It must be from {low:g} to {high:g}.")
    return float(value)


def check_count(name: str, value: int) -> int:
    """Return a whole number of at least 1, or raise SettingError."""
    if value != int(value) or value < 1:
        raise SettingError(f"Invalid {name} {value}. It must be a whole number above 0.")
    return int(value)
