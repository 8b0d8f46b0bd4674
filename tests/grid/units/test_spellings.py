"""Spellings of one unit are the same, and no others."""

from __future__ import annotations

import pytest

from dkrls_cli.grid.units.spellings import same_units


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("K", "kelvin"),
        ("K", "degrees_K"),
        ("degC", "Celsius"),
        ("degree_Celsius", "degrees celsius"),
        ("°C", "degC"),
        ("m s-1", "m/s"),
        ("m s-1", "m s**-1"),
        ("m s^-1", "m.s-1"),
        ("m*s-1", "meters/second"),
        ("kg m-2 s-1", "kg/m2/s"),
        ("kg m-2 s-1", "kg s-1 m-2"),
        ("mm/day", "mm d-1"),
        ("W m**-2", "W/m^2"),
        ("J kg-1 K-1", "J/kg/K"),
        ("s-1", "1/s"),
        ("s s-1", "1"),
        ("hPa", "mb"),
        ("percent", "%"),
        ("1", "dimensionless"),
        ("degrees", "°"),
        ("m of water equivalent", "m  of water equivalent"),
        ("1e-3 kg", " 1e-3 kg"),
    ],
)
def test_spellings_of_one_unit_are_the_same(one: str, other: str) -> None:
    assert same_units(one, other)
    assert same_units(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("K", "degC"),
        ("K", "k"),
        ("m s-1", "m s-2"),
        ("m s-1", "m s"),
        ("m s-1", "km h-1"),
        ("m/s", "s/m"),
        ("m/s K", "m/s/K"),  # (m/s) K
        ("kg", "g"),
        ("hPa", "Pa"),
        ("mW", "MW"),
        ("1", "%"),
        ("1e-3 kg", "1e-6 kg"),
        ("10 m", "m"),
        ("m2", "m"),
        ("days since 2000-01-01", "days since 2001-01-01"),
        ("m of water equivalent", "m"),
    ],
)
def test_other_units_differ(one: str, other: str) -> None:
    assert not same_units(one, other)
    assert not same_units(other, one)
