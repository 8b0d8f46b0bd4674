from dataclasses import replace

import numpy as np
import pytest

from dkrls_cli.grid.grid import as_grid
from dkrls_cli.model.quality.checked import MEANINGS, Checked, expected_variables, flag_variable


@pytest.fixture
def checked():
    values = np.array([[1.0, 300.0, np.nan], [2.0, 9.0, 3.0]])
    grid = as_grid(values, {"x": [0.5, 1.5], "t": [0, 1, 2]})
    flags = np.array([[0, 5, 9], [0, 1, 0]], np.int8)
    units = np.array([[-1, 0, -1], [-1, -1, -1]], np.int8)
    expected = np.array([[1.0, 26.85, np.nan], [2.0, 4.0, 3.0]])
    return Checked(grid, flags, expected, np.full((2, 3), 0.5), units, (4.0, 5.0), {"t": "k"})


def test_counts_shares_and_hints(checked):
    assert checked.counts == {"spike": 1, "unit": 1}
    assert checked.share == pytest.approx(2 / 5)
    assert checked.hints == {"K instead of degC": 1}
    nothing = replace(checked, flags=np.full((2, 3), 9, np.int8))
    assert (nothing.counts, nothing.share) == ({}, 0.0)


def test_the_masked_grid_lacks_the_flagged_cells_only(checked):
    expected = [[1.0, np.nan, np.nan], [2.0, np.nan, 3.0]]
    np.testing.assert_array_equal(checked.masked.values, expected)
    grid = replace(checked.grid, errors=np.full((2, 3), 0.2))
    assert replace(checked, grid=grid).masked.errors.tolist() == [[0.2, 0, 0.2], [0.2, 0, 0.2]]


def test_rows_have_the_flagged_cells_in_words(checked):
    first, second = checked.rows()
    assert first["hint"] == "K instead of degC"
    assert second == {
        "x": "1.5",
        "t": "1",
        "value": 9.0,
        "expected": 4.0,
        "std": 0.5,
        "z": 10.0,
        "kind": "spike",
        "hint": "",
    }


def test_rows_have_values_as_the_data_has_them_and_other_numbers_with_six_digits(checked):
    values = np.where(checked.grid.values == 9.0, np.float32(9.1), checked.grid.values)
    single = replace(checked.grid, values=values)
    row = list(replace(checked, grid=single, expected=checked.expected / 3).rows())[1]
    assert (row["value"], row["expected"]) == (9.1, 1.33333)
    assert row["z"] == pytest.approx((np.float32(9.1) - 4 / 3) / 0.5, rel=1e-5)


def test_flags_have_the_attributes_of_cf():
    name, attrs = flag_variable("t", {})
    assert name == "t_flag"
    assert attrs["flag_values"].dtype == np.int8
    assert len(attrs["flag_meanings"].split()) == len(attrs["flag_values"]) == len(MEANINGS)
    (expected, about), (std, _) = expected_variables("t", {"units": "K", "long_name": "heat"})
    assert (expected, std, about["units"]) == ("t_expected", "t_expected_std", "K")
