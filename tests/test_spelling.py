"""A word that is not known gets the suggestion that is most like it, or none."""

import subprocess
import sys

import pytest

from dkrls_cli.spelling import suggest


@pytest.mark.parametrize(
    ("word", "choices", "expected"),
    [
        ("lta", ["time", "lat", "lon"], "lat"),
        ("TIEM", ["time", "lat", "lon"], "time"),
        ("Lat", ["lat", "lon"], "lat"),
        ("matern2", ["gaussian", "matern52", "matern12"], "matern52"),
        ("longitud", ["longitude", "latitude"], "longitude"),
        ("sst", ["SSH", "SST"], "SST"),
    ],
)
def test_the_most_similar_choice_is_suggested(word, choices, expected):
    assert suggest(word, choices) == f" Did you mean '{expected}'?"


@pytest.mark.parametrize("word", ["", "depth", "q"])
def test_nothing_is_suggested_where_nothing_is_alike(word):
    assert suggest(word, ["time", "lat", "lon"]) == ""
    assert suggest(word, []) == ""


def test_the_library_that_compares_words_is_imported_for_an_error_only():
    code = "import sys, dkrls_cli.spelling as s; assert 'difflib' not in sys.modules; "
    code += "s.suggest('a', ['b']); assert 'difflib' in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_long_words_and_long_lists_are_not_compared():
    assert suggest("a" * 61, ["a" * 61]) == ""
    assert suggest("latitide", ["a" * 100, "latitude"]) == " Did you mean 'latitude'?"
    assert suggest("latitide", [*(f"c{i}" for i in range(499)), "latitude"])
    assert suggest("latitide", [*(f"c{i}" for i in range(500)), "latitude"]) == ""
