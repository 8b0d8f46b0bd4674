"""Wide tables are told from scattered points and from columns of different quantities."""

import numpy as np
import pytest

from dkrls_cli.files.text.shapes import is_coordinate_name, is_series, wide_doubt

RNG = np.random.default_rng(3)
ORDER = np.arange(30.0)
CHAOS = RNG.permutation(30) / 7


def like(count):
    return list(RNG.standard_normal((count, 30)) + 20)


@pytest.mark.parametrize("first", [None, ORDER, ORDER[::-1]], ids=["labels", "up", "down"])
@pytest.mark.parametrize(
    "header",
    [
        "Jan Feb Mar",
        "JANUARY FEBRUARY",
        "mon tue wed",
        "DJF MAM JJA SON",
        "s1 s2 s3 s10",
        "T10m T20m",
        "sensor_a sensor_b",
        "temp_north temp_south",
        "London Paris Rome",
        "north south",
        "A B",
        "p1 p2",
    ],
)
def test_like_names_and_like_values_are_wide(first, header):
    names = header.split()
    assert wide_doubt(first, names, like(len(names))) is None


@pytest.mark.parametrize("header", ["Jan Feb Mar", "s1 s2", "T0.5m T1.5m"])
def test_a_series_of_names_is_wide_whatever_the_order_and_the_values(header):
    names = header.split()
    values = [column * 10.0 ** (3 * i) for i, column in enumerate(like(len(names)))]
    assert wide_doubt(CHAOS, names, values) is None


@pytest.mark.parametrize(
    ("header", "odd"),
    [
        ("t v", "t"),
        ("lon temp", "lon"),
        ("Longitude SST", "Longitude"),
        ("lat lon sst", "lat"),
        ("depth temp", "depth"),
        ("date value", "date"),
        ("y z", "y"),
        ("north lat", "lat"),
    ],
)
def test_the_name_of_a_coordinate_means_scattered_points(header, odd):
    names = header.split()
    for first in (None, ORDER, CHAOS):
        reason, scattered = wide_doubt(first, names, like(len(names)))
        assert reason == f"'{odd}' in its header is the name of a coordinate"
        assert scattered


def test_units_behind_a_name_do_not_hide_it():
    assert wide_doubt(ORDER, ["lon (deg)", "a"], like(2))[0].startswith("'lon (deg)'")
    assert wide_doubt(ORDER, ["Temp [degC]", "a"], like(2))[0].startswith("'Temp [degC]'")


@pytest.mark.parametrize("header", ["wind_speed wind_dir", "a temp_mean", "a b.max", "a b qc"])
def test_names_that_end_in_a_measure_are_quantities(header):
    names = header.split()
    reason, scattered = wide_doubt(ORDER, names, like(len(names)))
    assert reason.endswith("in its header is the name of a quantity")
    assert not scattered


def test_a_series_has_two_names_at_least():
    assert is_series(["May", "Jun"])
    assert not is_series(["May"])
    assert not is_series(["s1"])
    assert not is_series(["Jan", "v"])
    assert not is_series(["s1", "t2"])


def test_the_name_of_a_quantity_means_different_quantities_if_the_rows_are_in_order():
    for first, scattered in ((None, False), (ORDER, False), (CHAOS, True)):
        found = wide_doubt(first, ["b", "value"], like(2))
        assert found == ("'value' in its header is the name of a quantity", scattered)


def test_a_first_column_in_no_order_means_scattered_points():
    assert wide_doubt(CHAOS, ["b", "c"], like(2)) == ("its first column is in no order", True)
    level = np.array([1.0, 1.0, 2.0])
    assert wide_doubt(level, ["b", "c"], [level, level])[1]


@pytest.mark.parametrize(
    ("one", "other", "unlike"),
    [
        ([10.0, 20.0], [990.0, 1030.0], True),  # degrees and hPa
        ([0.0, 1.0], [0.0, 101.0], True),
        ([0.0, 1.0], [0.0, 99.0], False),  # a dry and a wet place
        ([300.0, 301.0], [250.0, 251.0], False),  # kelvin, far apart but of one size
        ([690.0, 710.0], [990.0, 1030.0], False),  # pressure on a mountain
        ([5.0, 5.0], [6.0, 6.0], False),
        ([1.0, 1.0], [20.0, 20.0], True),
        ([np.nan, np.nan], [990.0, 1030.0], False),
    ],
)
def test_values_of_different_size_are_different_quantities(one, other, unlike):
    for names in (["b", "c"], ["c", "b"]):
        columns = [np.array(one), np.array(other)]
        found = wide_doubt(None, names, columns)
        assert (found is not None) == unlike
        if found:
            assert found[0].startswith("its columns hold values of different size ('")
            assert not found[1]


def test_nothing_observed_is_no_reason_against_a_wide_table():
    assert wide_doubt(None, ["b", "c"], [np.full(3, np.nan)] * 2) is None


@pytest.mark.parametrize("name", ["x", "Lat", "LON", "time", "datetime", "Depth", "easting"])
def test_names_of_coordinates(name):
    assert is_coordinate_name(name)
    assert not is_coordinate_name(f"{name}_1")
