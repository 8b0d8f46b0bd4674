"""The list of commands, their help, the version, and wrong command lines."""

from __future__ import annotations

import re
import tomllib

import pytest
from shell import ROOT, dkrls, refusal

from dkrls_cli import __version__
from dkrls_cli.cli import COMMANDS, LIBRARIES, app


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("width", [60, 80, 120])
def test_help_says_it_all(command: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", width)
    told = dkrls(command, "--help").stdout
    assert max(map(len, told.splitlines())) == width
    examples = re.findall(r"^ *dkrls \w+ .*$", told, re.MULTILINE)
    assert len(examples) >= 2
    assert "Examples:" in told
    assert all(option in told for option in ("--json", "--quiet", "--debug"))
    if command in ("fit", "validate") and width == 120:
        assert told.count("[DIM=]VALUE") == 3
        assert "[DIM=]NAME" in told


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
    assert out.stdout.splitlines()[-1] == "[]"


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


def test_without_arguments_there_is_help_and_no_error() -> None:
    told = dkrls(code=2)
    assert "Usage: dkrls" in told.output
    assert "Error" not in told.output


def test_from_python_a_wrong_command_line_is_an_exception_and_a_code_is_returned() -> None:
    import typer

    command = typer.main.get_command(app)
    with pytest.raises(Exception, match="No such command"):
        command.main(["nonsense"], standalone_mode=False)
    assert not command.main(["--version"], standalone_mode=False)
