"""Cells are packed as the other numbers of their variable are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkrls_cli.errors import InputError
from dkrls_cli.files.patching.cells import is_outgrown, packing_notes, put_cells

CELLS = np.array([[True, False, True], [False, False, True]])
PACKED: dict[str, Any] = {"scale_factor": 0.5, "add_offset": 1.0, "_FillValue": np.int16(7)}


def stored() -> np.ndarray:
    return np.arange(100, 106, dtype="int16").reshape(1, 2, 3)  # of a dimension more


@given(st.lists(st.floats(-1000, 1000), min_size=3, max_size=3))
def test_only_the_cells_of_the_mask_change(new: list[float]) -> None:
    numbers, values = stored(), np.full(CELLS.shape, 1e9)
    values[CELLS] = new
    beyond, _ = put_cells("t", numbers, CELLS, values, PACKED)
    assert beyond == 0
    np.testing.assert_array_equal(numbers[0][~CELLS], stored()[0][~CELLS])
    np.testing.assert_allclose(numbers[0][CELLS] * 0.5 + 1, new, atol=0.51)
    assert not (numbers == 7).any()  # beside the mark of missing values


def test_cells_that_are_not_as_they_should_be_are_counted() -> None:
    numbers, values = stored(), np.zeros(CELLS.shape)
    values[CELLS] = 1e6, 4.5, np.nan
    counts = put_cells("t", numbers, CELLS, values, PACKED)
    assert counts == (1, 1)
    assert numbers[0][CELLS].tolist() == [32767, 6, 7]
    assert packing_notes("t", numbers.dtype, PACKED, 0, 0) == []
    assert packing_notes("t", numbers.dtype, PACKED, 2, 3) == [
        "2 filled cells of 't' lie beyond -16383 to 16384.5, which its int16 can hold, and are "
        "stored as the nearer of the two",
        "3 filled cells of 't' equal a mark of missing values, and are stored 0.5 beside it",
    ]


@pytest.mark.parametrize(
    ("attrs", "mark"),
    [
        ({"missing_value": -5}, -5),
        ({"missing_value": -5, "_FillValue": -6}, -6),
        ({"missing_value": [-5, -4]}, -5),
        ({"missing_value": -5, "_FillValue": "none"}, -5),
        ({"missing_value": -9.99, "scale_factor": 0.01}, -999),
    ],
)
def test_a_missing_cell_gets_the_mark_of_the_variable(attrs: dict[str, Any], mark: int) -> None:
    numbers = stored()
    put_cells("t", numbers, CELLS, np.full(CELLS.shape, np.nan), attrs)
    assert set(numbers[0][CELLS]) == {mark}


def test_integers_without_a_mark_cannot_be_missing() -> None:
    holes = np.full(CELLS.shape, np.nan)
    with pytest.raises(InputError, match="'t' is stored as int16 without a _FillValue"):
        put_cells("t", stored(), CELLS, holes, {"missing_value": 1e15})
    floats = stored().astype("float32")
    put_cells("t", floats, CELLS, holes, {})
    assert np.isnan(floats[0][CELLS]).all()


@pytest.mark.parametrize(
    ("low", "high", "outgrown"),
    [(1.0, 9.0, False), (0.9, 9.0, True), (1.0, 9.1, True), (np.inf, -np.inf, False)],
)
def test_a_range_holds_for_values_within_it(low: float, high: float, outgrown: bool) -> None:
    assert is_outgrown({"actual_range": [9.0, 1.0]}, low, high) == outgrown
    assert not is_outgrown({}, low, high)
    assert not is_outgrown({"actual_range": "1 to 9"}, low, high)
    assert not is_outgrown({"actual_range": [5.0]}, low, high)
