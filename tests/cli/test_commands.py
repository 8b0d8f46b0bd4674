"""The list of commands, their help, the version, and wrong command lines."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from shell import ROOT, dkrls, refusal

from dkrls_cli import __version__
from dkrls_cli.cli import COMMANDS, LIBRARIES, app, import_command


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("width", [60, 80, 120])
def test_help_says_it_all(command: str, width: int) -> None:
    told = dkrls(command, "--help", COLUMNS=str(width)).stdout
    assert max(map(len, told.splitlines())) == width
    examples = re.findall(r"^ *dkrls \w+ .*$", told, re.MULTILINE)
    assert len(examples) >= 2
    assert "Examples:" in told
    assert all(option in told for option in ("--json", "--quiet", "--debug"))
    if command in ("fit", "validate") and width == 120:
        assert told.count("[DIM=]VALUE") == 3
        assert "[DIM=]NAME" in told


def test_a_command_is_made_once() -> None:
    assert all(import_command(name) is import_command(name) for name in COMMANDS)


def test_help_does_not_import_the_commands() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from dkrls_cli.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name.startswith('dkrls_cli.cli.')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "cli.terminal.pages" in out.stdout.splitlines()[-1]
    assert "commands" not in out.stdout.splitlines()[-1]


def test_xarray_does_not_import_dask_for_a_command() -> None:
    pytest.importorskip("dask")
    import subprocess
    import sys

    code = (
        "import sys, dkrls_cli.cli, dkrls_cli.__main__\n"
        "def run():\n"
        "    import xarray\n"
        "    xarray.Variable('x', [1.0])\n"
        "    print([name for name in sys.modules if name.startswith('dask.')])\n"
        "dkrls_cli.cli.main = run\n"
        "dkrls_cli.__main__.main()"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "[]\n"


def test_the_version_is_one_line() -> None:
    assert dkrls("--version").stdout == f"dkrls {__version__}\n"


@pytest.mark.parametrize(
    "words", [["--version", "-v"], ["-v", "--version"], ["--verbose", "--version"]]
)
def test_the_version_in_full_has_the_paper_and_the_libraries(words: list[str]) -> None:
    import numpy as np

    first, *rest = dkrls(*words).stdout.splitlines()
    assert first == f"dkrls {__version__}"
    told = "\n".join(rest)
    for part in ("Mohamadipanah, Heydari, Chowdhary", "arXiv 1704.04522"):
        assert part in told
    assert '"Deep Kernel Recursive Least-Squares Algorithm"' in told
    assert f"\nnumpy {np.__version__}\n" in told
    assert re.search(r"^python 3\.\d+", told, re.MULTILINE)
    assert "not found" not in told


def test_versions_are_printed_of_all_that_is_depended_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[^\w-]", text)[0] for text in project["dependencies"]}
    assert needed <= set(LIBRARIES)


def test_verbose_belongs_after_a_command() -> None:
    line = refusal("-v", "info", "m.npz", code=2)
    assert line == (
        "Error: --verbose stands before info. Write dkrls info ... --verbose. Try 'dkrls --help'."
    )


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["nonsense"], "No such command 'nonsense'. Try 'dkrls --help'."),
        (["fit"], "Missing argument 'INPUT'. Try 'dkrls fit --help'."),
        (["fit", "a", "--nois", "x"], "No such option: --nois"),
        (
            ["fit", "a", "--folds", "1"],
            "'--folds': 1 is not in the range x>=2. Try 'dkrls fit",
        ),
        (["bench", "nonsense"], "No such command 'nonsense'. Try 'dkrls bench --help'."),
        (["bench", "real"], "Missing argument 'FILE'. Try 'dkrls bench real --help'."),
    ],
)
def test_a_wrong_command_line_is_one_line(words: list[str], line: str) -> None:
    told = refusal(*words, code=2)
    assert line in told
    assert re.search(r"[^.]\. Try 'dkrls[ \w-]* --help'\.$", told)


def test_without_arguments_there_are_three_commands_to_try() -> None:
    told = dkrls()
    tried = re.findall(r"^  dkrls (\w+) ", told.stdout, re.MULTILINE)
    assert len(tried) == 3
    assert set(tried) <= set(COMMANDS)
    assert max(map(len, told.stdout.splitlines())) <= 60
    assert len(told.stdout.splitlines()) <= 10
    assert told.stderr == ""


def test_the_help_of_all_commands_has_examples() -> None:
    told = dkrls("--help", COLUMNS="60").stdout
    assert max(map(len, told.splitlines())) == 60
    assert set(re.findall(r"^ *dkrls (\w+) ", told, re.MULTILINE)) <= set(COMMANDS)
    assert len(re.findall(r"^   dkrls \w+ ", told, re.MULTILINE)) >= 3
    for command, line in COMMANDS.items():
        assert re.search(rf"^│ {command} +{line[:20]}", told, re.MULTILINE)


def test_verbose_alone_is_refused() -> None:
    assert "--verbose goes with --version" in refusal("-v", code=2)


def test_from_python_a_wrong_command_line_is_an_exception_and_a_code_is_returned() -> None:
    import typer

    command = typer.main.get_command(app)
    with pytest.raises(Exception, match="No such command"):
        command.main(["nonsense"], standalone_mode=False)
    assert not command.main(["--version"], standalone_mode=False)


# Settings given twice


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["fit", "x", "--noise", "level", "--noise", "joint"],
            "--noise was given twice: level and",
        ),
        (["fit", "x", "-o", "a.npz", "--output", "b.npz"], "--output was given twice: a.npz and b"),
        (["fit", "x", "-oa.npz", "-o", "b", "--output=c"], "--output was given 3 times: a.npz and"),
        (["fill", "x", "--mask", "a", "--mask", "b"], "--mask was given twice: a and b"),
        (["fit", "x", "--folds", "2", "--folds", "2"], "--folds was given twice: 2 and 2"),
        (["fit", "x", "--config", "a", "--config", "b"], "--config was given twice: a and b"),
        (["predict", "m", "--like", "a", "--like", "b"], "--like was given twice: a and b"),
        (["update", "m", "x", "--window", "1", "--window", "2"], "--window was given twice: 1 and"),
        (["stream", "m", "--format", "csv", "--format", "jsonl"], "--format was given twice: csv"),
        (["validate", "x", "--seed", "1", "--seed", "2"], "--seed was given twice: 1 and 2"),
        (["info", "m", "--weights", "a", "--weights", "b"], "--weights was given twice: a and b"),
        (["bench", "real", "x", "--csv", "a", "--csv", "b"], "--csv was given twice: a and b"),
        (["bench", "--csv", "a", "--csv", "b"], "--csv was given twice: a and b"),
    ],
)
def test_an_option_of_one_value_that_is_given_twice_is_refused(words: list[str], told: str) -> None:
    line = refusal(*words, code=2)
    assert told in line
    command = " ".join(words[:2] if words[1] == "real" else words[:1])
    assert line.endswith(f". Give one value. Try 'dkrls {command} --help'.")


def test_flags_and_repeatable_options_may_be_repeated(globe: Path) -> None:
    words = ("fit", globe, "--dry-run", "--dry-run", "-q", "-q", "--compact", "--compact")
    dkrls(*words, "--sigma", "lat=3", "--sigma", "lon=4", "--json", "--json")


def test_values_that_look_like_options_are_values(globe: Path) -> None:
    assert "'--var' in" not in dkrls("fit", globe, "--dry-run", "--json").stdout
    assert "no variable '--var'" in refusal("fit", globe, "--dry-run", "--var", "--var")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["fot", "x"], "fit"),
        (["bench", "paper2d"], "paper-2d"),
        (["fit", "x", "--sigm", "3"], "--sigma"),
        (["fit", "x", "--noise", "jont"], "joint"),
        (["validate", "x", "--holdout", "0.2", "--fail-above", "rms=1"], "rmse"),
        (["bench", "gaps", ROOT / "sample_data" / "ocean_gaps.nc", "--methods", "dkrl"], "dkrls"),
        (
            ["fill", ROOT / "sample_data" / "ocean_gaps.nc", "-o", "o.nc", "--mask", "alway"],
            "always",
        ),
    ],
)
def test_a_word_that_is_nearly_right_gets_a_suggestion(words: list[str], meant: str) -> None:
    line = dkrls(*words, code=1 if "--mask" in words else 2).stderr
    assert meant in line.split("Did you mean" if "--sigm" not in words else "Possible")[-1]
    assert "?." not in line
