"""Checks of plain values: each passes what it should and names the key of what it refuses."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dkrls_cli.model.filing import checks
from dkrls_cli.model.filing.checks import Check


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (checks.number(), [0, -1.5, 1e308], [math.nan, math.inf, True, "1", None, 10**400]),
        (checks.number(0), [0, 0.0, 5], [-1e-300, -math.inf]),
        (checks.number(above=0), [5e-324], [0, -0.0]),
        (checks.number(0, 1), [0, 0.5, 1], [1.0000001]),
        (checks.number(0, finite=False), [math.nan, 0, math.inf, 2**64 - 1], [-1, "nan", 2**64]),
        (checks.whole(), [0, 2**53], [-1, 2**53 + 1, 1.0, True, None]),
        (checks.whole(1, 3), [1, 3], [0, 4]),
        (checks.text, ["", "a"], [1, None, ["a"]]),
        (checks.flag, [True, False], [1, 0, "true", None]),
        (checks.one_of("a", "b"), ["a", "b"], ["c", None, ["a"], 1]),
        (checks.number_type, ["<f8", "|u1", ">i2", "b1"], ["<f16", "O", "U3", "f8,f8", 8]),
        (checks.optional(checks.text), [None, "a"], [1]),
        (checks.list_of(checks.flag), [[], [True]], [[1], True, {}, None]),
        (checks.list_of(checks.flag, 1, 2), [[True], [True] * 2], [[], [True] * 3]),
        (checks.table_of(checks.flag), [{}, {"a": True}], [{"a": 1}, [], None]),
        (checks.attribute, ["a", None, [1, {"b": "c"}]], [{"dtype": "O", "values": 1}]),
        (
            checks.typed_numbers,
            [{"dtype": "<f4", "values": [[1, math.nan]]}, {"dtype": "|b1", "values": True}],
            [
                {"dtype": "<i2", "values": [70000.5, "x"]},
                {"dtype": "<i2", "values": 10**6},
                {"dtype": "<f8", "values": [[1], [1, 2]]},
                {"dtype": "<U9999", "values": "a"},
                {"dtype": "<f8"},
                {"dtype": "<f8", "values": 1, "more": 2},
            ],
        ),
    ],
)
def test_what_passes_and_what_does_not(check: Check, right: list[Any], wrong: list[Any]) -> None:
    for value in right:
        check(value, "key")
    for value in wrong:
        with pytest.raises(ValueError, match=r"^key"):
            check(value, "key")


def test_a_record_has_the_keys_it_needs_and_no_others() -> None:
    check = checks.record({"a": checks.flag}, {"b": checks.text})
    check({"a": True}, "")
    check({"a": True, "b": "x"}, "")
    for wrong, message in (
        ({}, "^a is missing"),
        ({"a": 1}, "^a is 1, expected true or false"),
        ({"a": True, "b": 1}, "^b is 1, expected a text"),
        ({"a": True, "c": 1}, "^c is a key that this program does not know"),
        ([], r"^the header is \[\], expected an object"),
    ):
        with pytest.raises(ValueError, match=message):
            check(wrong, "")
    checks.record({}, {}, checks.flag)({"c": True}, "")
    with pytest.raises(ValueError, match=r"^at\.c is 1"):
        checks.record({}, {}, checks.flag)({"c": 1}, "at")


def test_keys_lead_to_the_value() -> None:
    check = checks.table_of(checks.list_of(checks.record({"sigma": checks.number(above=0)})))
    with pytest.raises(ValueError, match=r"^levels\[1\]\.sigma is -1, expected a number above 0$"):
        check({"levels": [{"sigma": 1}, {"sigma": -1}]}, "")


def test_a_long_value_is_cut() -> None:
    with pytest.raises(ValueError, match=r"^key is \"x{59}\.\.\., expected true or false$"):
        checks.flag("x" * 1000, "key")
