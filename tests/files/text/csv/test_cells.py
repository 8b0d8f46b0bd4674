"""Cells are numbers, missing, or texts, and messages name columns."""

import numpy as np
import pytest

from dkrls_cli.errors import SettingError
from dkrls_cli.files.text.csv.cells import (
    code_texts,
    find_bad_text,
    is_missing,
    join_names,
    parse_numbers,
    parse_values,
    text_index,
)


def test_texts_are_numbered_in_order_of_appearance():
    index = text_index()
    assert code_texts(index, ["b", "a", "b"]).tolist() == [0, 1, 0]
    assert code_texts(index, ["c", "a"]).tolist() == [2, 1]
    assert list(index) == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1", " -2.5e1 ", "+.5"], [1.0, -25.0, 0.5]),
        ([], []),
        (["1", "x"], None),
        (["1_2"], None),
        ([""], None),
    ],
)
def test_texts_are_numbers_or_not(texts, numbers):
    found = parse_numbers(texts)
    assert found is None if numbers is None else found.tolist() == numbers


def test_values_may_be_missing():
    assert np.isnan(parse_values(["1", "NA", "inf", "nan", "1e999"])[1:]).all()
    assert parse_values(["1", "NA"])[0] == 1
    assert parse_values(["1", "2"]).tolist() == [1, 2]
    assert parse_values(["1", "no"]) is None


def test_missing_texts():
    assert all(map(is_missing, ["", "NA", "n/a", "Null", "NONE", "-", ".", "+Inf"]))
    assert not any(map(is_missing, ["0", "a", " ", "--", "nanny"]))


def test_the_first_text_that_is_wrong_is_found():
    def encode(texts):
        if "bad" in texts:
            raise SettingError("'bad' is bad.")
        return np.array([float(text) for text in texts])

    assert find_bad_text(encode, ["1", "bad", "nan"]) == ("bad", "'bad' is bad.")
    assert find_bad_text(encode, ["1", "nan"]) == ("nan", "'nan' is not a finite number.")
    with pytest.raises(AssertionError):
        find_bad_text(encode, ["1"])


def test_a_message_lists_the_first_names():
    assert join_names(["a", "", "c"]) == "a, (nameless), c"
    assert join_names(map(str, range(14))) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 more"
