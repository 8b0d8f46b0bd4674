"""Options from a file: which keys it may have, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shell import dkrls, refusal

from dkrls_cli.cli import COMMANDS, UNCONFIGURED, import_command


@pytest.mark.parametrize(
    ("text", "choices"),
    [('missing = "x"', "model, error"), ('noise = "x"', "level, joint, auto")],
)
def test_a_word_outside_a_closed_set_is_refused_in_a_configuration(
    tmp_path: Path, text: str, choices: str
) -> None:
    (path := tmp_path / "run.toml").write_text(text)
    for more in (["--dry-run"], ["-o", tmp_path / "m.npz"]):
        line = refusal("fit", "absent.nc", "--config", path, *more, code=2)
        assert f"'x'. Choose from: {choices}." in line


def test_words_of_closed_sets_are_taken(globe: Path, tmp_path: Path) -> None:
    (path := tmp_path / "run.toml").write_text('noise = "joint"\nmissing = "error"\nridge = 0.5')
    told = json.loads(dkrls("fit", globe, "--config", path, "--dry-run", "--json").stdout)
    assert told["joint_ridge"] == 0.5


# A configuration file -----------------------------------------------------------------------------


def settings_of(*words: Any) -> dict[str, dict[str, Any]]:
    levels = json.loads(dkrls("fit", *words, "--dry-run", "--json").stdout)["levels"]
    return {level["dimension"]: level for level in levels}


def test_a_configuration_gives_defaults_and_options_replace_them(
    globe: Path, tmp_path: Path
) -> None:
    (path := tmp_path / "run.toml").write_text(
        'levels = ["lon", "lat", "time"]\nridge = 1e-4\n[sigma]\nlat = 30\ntime = "20"\n'
        '[kernel]\nlon = "gaussian"\n[period]\nlon = "none"\n'
    )
    levels = settings_of(globe, "--config", path)
    assert list(levels) == ["lon", "lat", "time"]
    assert (levels["lat"]["sigma"], levels["time"]["sigma"]) == (30, 20)
    assert {level["ridge"] for level in levels.values()} == {1e-4}
    assert (levels["lon"]["kernel"], levels["lon"]["period"]) == ("gaussian", None)
    over = settings_of(globe, "--config", path, "--sigma", "7", "--levels", "lat,lon,time")
    assert {level["sigma"] for level in over.values()} == {7}
    assert list(over) == ["lat", "lon", "time"]


@pytest.mark.parametrize(
    ("text", "sigma"), [("sigma = 3", 3), ('sigma = "3.5"', 3.5), ('sigma = ["lat=2"]', 2)]
)
def test_a_configuration_takes_one_value_or_a_list(
    globe: Path, tmp_path: Path, text: str, sigma: float
) -> None:
    (path := tmp_path / "run.toml").write_text(text)
    assert settings_of(globe, "--config", path)["lat"]["sigma"] == sigma


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sigmas = 3", "has a key 'sigmas' that is not an option of any command"),
        ("sigmas = 3", "Did you mean 'sigma'?"),
        ('config = "x"', "has a key 'config'"),
        ("sigma = [", "is not TOML"),
        ("[levels]\na = 1", "levels takes one value, not a table"),
    ],
)
def test_a_wrong_configuration_is_refused(
    globe: Path, tmp_path: Path, text: str, reason: str
) -> None:
    (path := tmp_path / "run.toml").write_text(text)
    assert reason in refusal("fit", globe, "--config", path, "--dry-run", code=2)


def test_an_absent_configuration_is_refused(globe: Path, tmp_path: Path) -> None:
    line = refusal("validate", globe, "--config", tmp_path / "no.toml", code=2)
    assert "cannot be read (No such file" in line


def test_a_wrong_key_lists_the_options(globe: Path, tmp_path: Path) -> None:
    (path := tmp_path / "run.toml").write_text("sigmas = 3")
    line = refusal("fit", globe, "--config", path, "--dry-run", code=2)
    assert "This one has: output, " in line
    assert ", levels, kernel, sigma," in line
    assert "config" not in line.split("This one has:")[1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("compact = 1", "compact is 1 in the file. Expected true or false"),
        ("threads = inf", "Invalid value for '--threads'"),
        ("threads = 2000", "Invalid value for '--threads'"),
        ("folds = 2.5", "Invalid value for '--folds'"),
        ("levels = 1", "1"),
        ("sigma = " + "[" * 10**5, "nested too deeply"),
        ("sigma = " + "9" * 5000, "is not TOML"),
        ("sigma = 1 #" + " " * 2**20, "it has more than 1048576 bytes"),
    ],
)
def test_a_configuration_is_checked_as_options_are(
    globe: Path, tmp_path: Path, text: str, reason: str
) -> None:
    (path := tmp_path / "run.toml").write_text(text)
    assert reason in refusal("fit", globe, "--config", path, "--dry-run", code=2)


def test_a_device_is_no_configuration(globe: Path) -> None:
    assert "more than" in refusal("fit", globe, "--config", "/dev/zero", "--dry-run", code=2)


# Tables of commands -------------------------------------------------------------------------------


def test_a_table_is_for_its_command_and_the_top_for_all(globe: Path, tmp_path: Path) -> None:
    (path := tmp_path / "run.toml").write_text(
        'sigma = 9\nridge = 1e-3\noutside = "nearest"\n[fit]\nsigma = {lat = 4}\nnoise = "joint"\n'
        '[predict]\nstd = true\n[bench.real]\nseeds = 2\n[fill]\nnothing = "checked by fill"\n'
    )
    told = json.loads(dkrls("fit", globe, "--config", path, "--dry-run", "--json").stdout)
    sigmas = {level["dimension"]: level["sigma"] for level in told["levels"]}
    assert sigmas == {"lat": 4, "lon": "auto", "time": "auto"}
    assert told["joint_ridge"] == 1e-3
    line = refusal("fill", globe, "--config", path, "--dry-run", code=2)
    assert "has a key 'nothing' in [fill] that is not an option of this command" in line


def test_answers_take_their_options_from_a_file(model: Path, tmp_path: Path) -> None:
    (path := tmp_path / "run.toml").write_text(
        '[predict]\nat = {lat = 0, lon = 7, time = "2020-01-03"}\nstd = true\nformat = "jsonl"\n'
    )
    words = ["--at", "lat=0", "--at", "lon=7", "--at", "time=2020-01-03", "--std"]
    expected = dkrls("predict", model, *words, "--format", "jsonl").stdout
    assert dkrls("predict", model, "--config", path).stdout == expected


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_with_settings_has_options_from_a_file_and_to_one(name: str) -> None:
    command = import_command(name)
    for one in (command, *getattr(command, "commands", {}).values()):
        options = [option for parameter in one.params for option in parameter.opts]
        expected = 0 if name in UNCONFIGURED else 1
        assert options.count("--save-config") == expected
        if name != "info":  # which prints a file of options, and may write weights
            assert [options.count(option) for option in ("--config", "--overwrite")] == [
                expected
            ] * 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[fot]\nsigma = 1", "has a table [fot] that is neither a command nor an option"),
        ("[fot]\nsigma = 1", "Did you mean 'fit'?"),
        ("[sigmas]\nlat = 1", "Did you mean 'sigma'?"),
        ("[fit]\nsigmas = 3", "has a key 'sigmas' in [fit]"),
        ("[fit]\nsigmas = 3", "Did you mean 'sigma'?"),
        ("[fit]\nstd = true", "has a key 'std' in [fit]"),
        ('[fit]\nconfig = "x"', "has a key 'config' in [fit]"),
        ('save-config = "x"', "has a key 'save-config'"),
        ("fit = 3", "has a key 'fit'"),
        ("[info]\nweights = 3", "has a table [info]"),
    ],
)
def test_wrong_tables_and_keys_are_refused(
    globe: Path, tmp_path: Path, text: str, reason: str
) -> None:
    (path := tmp_path / "run.toml").write_text(text)
    assert reason in refusal("fit", globe, "--config", path, "--dry-run", code=2)


def test_races_have_tables_within_that_of_bench(tmp_path: Path) -> None:
    (path := tmp_path / "run.toml").write_text('[bench.real]\nseed = 2\n[bench]\nmethods = "no"\n')
    line = refusal("bench", "real", "x.nc", "--config", path, code=2)
    assert "has a key 'seed' in [bench.real]" in line
    assert "Did you mean 'seeds'?" in line
    assert "no" in refusal("bench", "--config", path, code=2)
    (path := tmp_path / "run.toml").write_text("[bench]\nreal = 1\n")
    assert "has a key 'real' in [bench]" in refusal("bench", "--config", path, code=2)
