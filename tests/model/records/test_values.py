"""Values of records: what JSON does not have keeps its type or becomes a text."""

from typing import Any

import numpy as np
import pytest
from kept_records import through_a_file

from dkrls_cli.model.records.values import from_json, to_json


@pytest.mark.parametrize(
    "value",
    [
        np.float32(0.1),
        np.int16(-7),
        np.bool_(True),
        np.array([1, 2], np.uint8),
        np.array([[0.5]]),
        {"a": [1, "b", None, True, 2.5], "c": {"d": np.float64(1.0)}},
        {"dtype": "not a number"},
    ],
)
def test_values_of_attributes_keep_their_type(value: Any) -> None:
    again = from_json(through_a_file(to_json(value)))
    assert type(again) is type(value)
    np.testing.assert_equal(again, value)
    assert getattr(again, "dtype", None) == getattr(value, "dtype", None)


def test_values_that_json_does_not_have_become_texts() -> None:
    assert to_json((1, np.array(["a"]), {2: 1 + 2j})) == [1, ["a"], {"2": "(1+2j)"}]
