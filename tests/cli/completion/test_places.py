"""Where a command line stands after some words."""

from __future__ import annotations

from dkrls_cli.cli import COMMANDS
from dkrls_cli.cli.completion.places import find_place


def test_commands_may_follow_until_one_is_named() -> None:
    assert list(find_place([]).commands) == list(COMMANDS)
    bench = find_place(["bench"])
    assert bench.words == ["bench"]
    assert {"real", "paper-2d"} <= set(bench.commands)
    assert find_place(["bench", "real"]).words == ["bench", "real"]
    assert find_place(["bench", "real"]).commands == {}
    assert find_place(["fit", "x.nc"]).commands == {}


def test_words_that_are_no_options_are_given() -> None:
    place = find_place(["fit", "a.nc", "--sigma", "3", "-", "b.nc"])
    assert place.given == ["a.nc", "-", "b.nc"]
    assert place.open_option is None
    assert find_place(["validate", "--model", "m.npz"]).given == ["m.npz"]
    assert find_place(["fit", "fit"]).given == ["fit"]


def test_an_option_is_open_until_its_value_comes() -> None:
    assert "--sigma" in find_place(["fit", "a.nc", "--sigma"]).open_option.opts
    assert find_place(["fit", "a.nc", "--sigma=3"]).open_option is None
    assert find_place(["fit", "a.nc", "--overwrite"]).open_option is None  # a flag
    assert find_place(["fit", "a.nc", "--nonsense"]).open_option is None


def test_long_names_of_options_come_first() -> None:
    names = list(find_place(["predict"]).options)
    assert names == sorted(names, key=lambda name: not name.startswith("--"))
    assert {"-o", "--output"} <= set(names)
