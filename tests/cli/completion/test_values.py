"""Values of options are names in the file on the command line, and words of closed sets."""

from __future__ import annotations

import os
from pathlib import Path

from dkrls_cli.cli.completion.places import find_place
from dkrls_cli.cli.completion.values import option_values


def values(*words: str | Path) -> list[str]:
    """Return the values of the option before the last of some words that begin as that does."""
    *before, typed = map(str, words)
    place = find_place(before)
    found = option_values(place.open_option, typed, place)
    return [one.value for one in found if one.value.startswith(typed)]


def test_variables_and_dimensions_are_those_of_the_file(globe: Path, model: Path) -> None:
    name, last = values("fit", globe, "--var", "")
    assert last == "all"
    assert values("fit", globe, "--var", name[:2]) == [name]
    assert values("fit", globe, "--sigma", "") == ["time=", "lat=", "lon=", "auto"]
    assert values("fit", globe, "--sigma", "l") == ["lat=", "lon="]
    assert values("fit", globe, "--ridge", "lat=1,") == ["lat=1,time=", "lat=1,lon="]
    assert values("fit", globe, "--kernel", "lat=c") == ["lat=cubic"]
    assert "matern12" in values("fit", globe, "--kernel", "m")
    assert values("fit", globe, "--period", "lon=n") == ["lon=none"]
    assert values("fit", globe, "--levels", "lat,") == ["lat,time", "lat,lon"]
    assert values("predict", model, "--at", "") == ["lat=", "lon=", "time="]  # levels of the model
    assert values("predict", model, "--at", "time=") == ["time=all"]
    assert values("predict", model, "--derivative", "t") == ["time"]
    assert values("predict", model, "-o", "") == []
    assert values("validate", "--model", model, "--holdout", "") == ["lat=", "lon=", "time="]
    assert values("fit", globe.parent / "glob*.nc", "--sigma", "t") == ["time="]


def test_words_of_closed_sets_are_completed() -> None:
    assert values("fit", "x", "--noise", "") == ["level", "joint", "auto"]
    assert values("fill", "x", "--mask", "") == ["always", "first", "none"]
    assert values("fit", "x", "--max-memory", "n") == ["none"]


def test_files_that_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.nc")
    (tmp_path / "bad.nc").write_bytes(b"\x89HDF\r\n\x1a\n no")
    for name in ("pipe.nc", "bad.nc", "absent.nc", "/dev/zero", "."):
        assert values("fit", tmp_path / name, "--sigma", "") == ["auto"]
