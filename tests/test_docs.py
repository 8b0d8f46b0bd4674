"""What the documents say is so."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import dkrls_cli

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
