"""What the documents say is so."""

import doctest
import importlib
import pkgutil
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from shell import dkrls

import dkrls_cli
from dkrls_cli import fit
from dkrls_cli.cli import COMMANDS as COMMAND_LINES
from dkrls_cli.files import npz as modelfile

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
MODULES = [m.name for m in pkgutil.walk_packages(dkrls_cli.__path__, "dkrls_cli.")]


@pytest.mark.parametrize("name", ["dkrls_cli", *MODULES])
def test_docstring_examples_hold(name):
    if name != "dkrls_cli.__main__":
        assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, re.S))
def test_readme_python_runs(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})


def test_readme_opens_with_the_main_job_and_the_tests():
    first, second = re.findall(r"```bash\n(.*?)```", README, re.S)[:2]
    assert "sample_data/" in first
    assert "pytest" in second


COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", README, re.S)
    for line in block.splitlines()
    if line.startswith("dkrls ")
]


def test_readme_commands_run_in_order(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "sample_data", tmp_path / "sample_data")
    monkeypatch.chdir(tmp_path)
    assert len(COMMANDS) > 5
    for line in COMMANDS:
        command, _, given = line.partition(" < ")
        stdin = Path(given).read_text() if given else None
        assert dkrls(*shlex.split(command)[1:], stdin=stdin).exit_code == 0, line


def test_readme_and_help_name_every_command():
    help_text = dkrls("--help").stdout
    for command in COMMAND_LINES:
        assert any(line.startswith(f"dkrls {command} ") for line in COMMANDS)
        assert command in help_text
        assert "Examples" in dkrls(command, "--help").stdout


@pytest.mark.parametrize(("name", "line"), list(COMMAND_LINES.items()))
def test_the_list_of_commands_says_what_they_say(name, line):
    command = getattr(importlib.import_module(f"dkrls_cli.cli.{name}"), name)
    about = getattr(command, "registered_callback", None)
    assert (about.callback if about else command).__doc__.splitlines()[0] == line


def test_readme_documents_every_key_of_the_model_file(tmp_path):
    values = np.arange(12.0).reshape(3, 4)
    fit(values).save(tmp_path / "m.npz")
    values[1, 1] = np.nan
    fit(values).save(tmp_path / "gaps.npz")
    whole = np.arange(12.0).reshape(3, 4)
    fit(whole).update([[0.0], [1.0], [np.nan]], [4]).save(tmp_path / "filled.npz")
    for path in tmp_path.glob("*.npz"):
        header, arrays = modelfile.read(path)
        for key in header:
            assert f"`header.{key}`" in README, key
        for key in header["bars"]:
            assert f"`{key}`" in README, key
        for name in arrays:
            assert re.sub(r"_\d$", "_i", name) in README, name
