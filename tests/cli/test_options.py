"""Options: groups expanded for Typer, closed sets, values from a file, and texts."""

from __future__ import annotations

import inspect
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from shell import dkrls, refusal
from typer.testing import CliRunner

from dkrls_cli.cli import options as opt
from dkrls_cli.errors import SettingError


@dataclass(frozen=True)
class Colour:
    red: Annotated[int, typer.Option(min=0, help="How red.")] = 3
    shade: Annotated[str | None, typer.Option("--shade", "-s")] = None


@dataclass(frozen=True)
class Size(Colour):
    red: Annotated[int, typer.Option(help="Another default.")] = 7
    wide: Annotated[bool, typer.Option("--wide")] = False


@dataclass(frozen=True)
class Needed:
    name: Annotated[str, typer.Option()]


def run(command: Any, *words: str, code: int = 0) -> Any:
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result


def test_a_command_receives_its_options_as_groups() -> None:
    got: list[Any] = []

    @opt.expand
    def paint(
        what: Annotated[str, typer.Argument()],
        *,
        thick: Annotated[float, typer.Option()] = 1.5,
        colour: Colour,
        count: Annotated[int, typer.Option()] = 2,
    ) -> None:
        """Paint something."""
        got.append((what, thick, colour, count))

    run(paint, "wall")
    run(paint, "door", "--red", "5", "-s", "dark", "--thick", "2", "--count", "9")
    assert got == [("wall", 1.5, Colour(3, None), 2), ("door", 2.0, Colour(5, "dark"), 9)]
    assert "Invalid value" in run(paint, "wall", "--red", "-1", code=2).stderr
    assert list(inspect.signature(paint).parameters) == ["what", "thick", "red", "shade", "count"]
    assert (paint.__name__, paint.__doc__) == ("paint", "Paint something.")


def test_a_group_may_extend_another_and_change_a_default() -> None:
    got: list[Any] = []

    @opt.expand
    def paint(*, size: Size) -> None:
        got.append(size)

    run(paint)
    run(paint, "--wide", "--red", "1")
    assert got == [Size(red=7, shade=None, wide=False), Size(red=1, shade=None, wide=True)]
    assert list(inspect.signature(paint).parameters) == ["red", "shade", "wide"]


def test_an_option_without_a_default_is_required() -> None:
    @opt.expand
    def paint(*, needed: Needed) -> None:
        assert needed.name == "x"

    run(paint, "--name", "x")
    assert "Missing option" in run(paint, code=2).stderr


# Closed sets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "choices"),
    [
        (["fit", "absent.nc", "--dry-run", "--missing", "x"], "model, error"),
        (["fit", "absent.nc", "-o", "m.npz", "--missing", "x"], "model, error"),
        (["fit", "absent.nc", "--dry-run", "--noise", "x"], "level, joint, auto"),
        (["validate", "absent.nc", "--holdout", "0.2", "--missing", "x"], "model, error"),
        (["validate", "absent.nc", "--holdout", "0.2", "--noise", "x"], "level, joint, auto"),
        (["predict", "absent.npz", "--format", "x"], "csv, jsonl, nc"),
        (["stream", "absent.npz", "--format", "x"], "csv, jsonl"),
    ],
)
def test_a_word_outside_a_closed_set_is_refused_before_any_file_is_read(
    words: list[str], choices: str
) -> None:
    line = refusal(*words, code=2)
    option = words[-2]
    expected = f"Error: Invalid value for '{option}': 'x'. Choose from: {choices}. "
    assert line == f"{expected}Try 'dkrls {words[0]} --help'."


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
        ("sigmas = 3", "has a key 'sigmas' that is not an option"),
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
    assert "Choose from: output, var, engine, levels, kernel, sigma," in line
    assert "config" not in line.split("Choose from:")[1]


# Texts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (None, "auto"),
        ([], "auto"),
        (["3"], "3"),
        (["lat=3"], {"lat": "3"}),
        ([" lat = 3", "lon=a=b"], {"lat": "3", "lon": "a=b"}),
        (["lat=10,lon=20"], {"lat": "10", "lon": "20"}),
        (["lat=10 , lon=20", "time=30D"], {"lat": "10", "lon": "20", "time": "30D"}),
        (["lat=10,20"], {"lat": "10,20"}),
        (["b, c=3,d=4"], {"b, c": "3", "d": "4"}),
    ],
)
def test_a_setting_is_for_all_dimensions_or_for_each(
    values: list[str] | None, expected: Any
) -> None:
    assert opt.setting(values, "--sigma") == expected


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["3", "4"], "--sigma 3 is for all dimensions and cannot stand beside another --sigma"),
        (["lat=3", "4"], "Name the dimension: --sigma DIM=4."),
        (["lat=3", "lat=4"], "--sigma was given twice for the same dimension, lat"),
        (["lat=3,lon=2,lon=1"], "--sigma was given twice for the same dimension, lon"),
    ],
)
def test_settings_that_contradict_are_refused(values: list[str], reason: str) -> None:
    with pytest.raises(SettingError, match=reason):
        opt.setting(values, "--sigma")


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, None), ("", []), ("a", ["a"]), (" a, b ,,c,", ["a", "b", "c"])],
)
def test_names_are_separated_by_commas(text: str | None, expected: list[str] | None) -> None:
    assert opt.names(text) == expected


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("500", 500),
        ("500B", 500),
        ("2kB", 2000),
        ("2 KB", 2000),
        ("2KiB", 2048),
        ("1.5MB", 1_500_000),
        ("4GB", 4 * 10**9),
        ("4gib", 4 * 1024**3),
        ("3T", 3 * 10**12),
        ("1TiB", 1024**4),
        ("1e9", 10**9),
        (" 7 ", 7),
    ],
)
def test_sizes(text: str, count: int) -> None:
    assert opt.byte_count(text) == count


@pytest.mark.parametrize("text", ["", "0", "0GB", "-1", "lots", "4XB", "1.2.3", "4GBs", "1e400"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match="is not a size"):
        opt.byte_count(text)


def test_most_of_the_free_memory_is_the_limit_unless_another_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dkrls_cli.memory.available_bytes", lambda: 5e9)
    assert opt.RunOptions().memory_limit == 4e9
    assert opt.RunOptions(max_memory="2kB").memory_limit == 2000
    assert opt.RunOptions(max_memory="none").memory_limit == math.inf


def test_a_locked_model_is_waited_for_a_minute() -> None:
    assert opt.InPlaceOptions() == opt.InPlaceOptions(wait=60.0, overwrite=False)


# Durations and pairs, on the command line and in a file


@pytest.mark.parametrize(
    "words",
    [
        ["--sigma", "latitude=10,time=30D", "--period", "lon=none,time=1Y"],
        ["--sigma", "lat=10", "--sigma", "time=30D", "--period", "lon=none", "--period", "time=1Y"],
    ],
)
def test_settings_of_several_dimensions(globe: Path, tmp_path: Path, words: list[str]) -> None:
    levels = settings_of(globe, *words)
    assert (levels["lat"]["sigma"], levels["time"]["sigma"]) == (10, 30)
    assert levels["time"]["period"] == pytest.approx(365.2425)
    assert levels["lon"]["period"] is None
    for text in (
        'sigma = "latitude=10,time=30D"\nperiod = "lon=none,time=1Y"\n',
        '[sigma]\nlatitude = 10\ntime = "30D"\n[period]\nlon = "none"\ntime = "1Y"\n',
    ):
        (path := tmp_path / "run.toml").write_text(text)
        assert settings_of(globe, "--config", path) == levels


@pytest.mark.parametrize("option", ["kernel", "ridge"])
def test_kernels_and_ridges_in_pairs(globe: Path, option: str) -> None:
    one, other = ("gaussian", "matern12") if option == "kernel" else ("0.5", "0.25")
    levels = settings_of(globe, f"--{option}", f"latitude={one},lon={other}")
    assert [str(levels[dim][option]) for dim in ("lat", "lon", "time")] == [one, other, "auto"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--sigma", "lat=30D"], "Invalid sigma '30D' of 'lat', which has no dates. Give a number"),
        (["--sigma", "time=30Q"], "Invalid sigma '30Q'. Give a number, a duration such as 30D"),
        (["--sigma", "lat=10,20"], "Invalid sigma '10,20'"),
        (["--sigma", "tme=3"], "Did you mean 'time'?"),
    ],
)
def test_nonsense_is_refused_in_one_line(globe: Path, words: list[str], reason: str) -> None:
    assert reason in refusal("fit", globe, "--dry-run", *words, code=2)


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
