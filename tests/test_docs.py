"""Documents against the program: examples run, lists are complete, versions agree."""

import doctest
import importlib
import pkgutil
import re
import shlex
import shutil
import tomllib
from datetime import date
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
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
CITATION = (ROOT / ".github" / "CITATION.cff").read_text()
CONTRIBUTING = (ROOT / ".github" / "CONTRIBUTING.md").read_text()
MODULES = [m.name for m in pkgutil.walk_packages(dkrls_cli.__path__, "dkrls_cli.")]


@pytest.mark.parametrize("name", ["dkrls_cli", *MODULES])
def test_docstring_examples_run(name):
    if name != "dkrls_cli.__main__":
        assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.slow
@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, re.S))
def test_readme_python_runs(code, tmp_path, monkeypatch):
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
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


@pytest.mark.slow
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
def test_the_list_of_commands_repeats_their_docstrings(name, line):
    command = getattr(importlib.import_module(f"dkrls_cli.cli.commands.{name}"), name)
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


# ------------------------------------------------------------------- the paper and the glossary


def test_the_paper_is_cited_once_in_full():
    where = "arXiv:1704.04522"
    for text in (README, dkrls_cli.__doc__, CITATION):
        assert "Deep Kernel Recursive Least-Squares Algorithm" in text.replace("\n", " ").replace(
            "> ", ""
        )
        assert all(author in text for author in ("Mohamadipanah", "Heydari", "Chowdhary"))
    assert [text.count(where) for text in (README, dkrls_cli.__doc__)] == [1, 1]


def glossary():
    section = README.split("## Words used here")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", section, re.M)[1:]
    return {term: meaning for terms, meaning in rows for term in terms.split(", ")}


def test_the_glossary_explains_every_term_once():
    terms = (
        "grid cell slice fibre gap level hierarchy cascade kernel sigma ridge frame core hold-out"
    )
    assert set(terms.split()) | {"error bar", "drift", "period"} <= set(glossary())
    assert "gaussian" in glossary()["kernel"]


def test_links_within_the_readme_lead_somewhere():
    titles = re.findall(r"^#+ (.+)$", README, re.M)
    anchors = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}
    links = re.findall(r"\]\(#([\w-]+)\)", README)
    assert links
    assert set(links) <= anchors


# -------------------------------------------------- changelog, citation, notes for contributors


def sections(text):
    """Return the sections of a changelog: (version, date or empty, text)."""
    parts = re.split(r"^## \[(.+?)\](?: - (\S+))?$", text, flags=re.M)
    return list(zip(parts[1::3], parts[2::3], parts[3::3], strict=True))


def test_the_changelog_is_ready_for_a_tag():
    (first, undated, _), *released = sections(CHANGELOG)
    assert (first, undated) == ("Unreleased", None)
    assert CHANGELOG.count("\n## ") == 1 + len(released)
    assert released[0][0] == dkrls_cli.__version__
    versions = [tuple(map(int, version.split("."))) for version, _, _ in released]
    assert versions == sorted(set(versions), reverse=True)
    days = [date.fromisoformat(day) for _, day, _ in released]
    assert days == sorted(days, reverse=True)


def test_changes_are_grouped_as_keep_a_changelog_does():
    groups = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    for version, _, text in sections(CHANGELOG):
        titles = re.findall(r"^### (.+)$", text, re.M)
        assert len(titles) == len(set(titles)), version
        assert set(titles) <= groups, version
        assert bool(titles) == bool(text.strip()), version


def test_the_citation_has_the_required_fields_and_no_version_of_its_own():
    keys = re.findall(r"^([a-z-]+):", CITATION, re.M)
    assert {"cff-version", "message", "title", "authors", "type", "license"} <= set(keys)
    assert len(keys) == len(set(keys))
    assert "version" not in keys  # it is written in dkrls_cli/__init__.py only
    _, paper = CITATION.split("preferred-citation:")
    assert re.findall(r"family-names: (\w+)", paper) == ["Mohamadipanah", "Heydari", "Chowdhary"]
    assert "year: 2017" in paper


def test_contributing_describes_every_folder():
    package = Path(dkrls_cli.__file__).parent
    table = CONTRIBUTING.split("## Where things are")[1].split("\n## ")[0]
    folders = {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}
    files = {path.name for path in package.glob("*.py") if not path.name.startswith("__")}
    named = re.findall(r"`([\w/.]+)`", "".join(re.findall(r"^\| (`.+?) \|", table, re.M)))
    assert sorted(named) == sorted(folders | files)


def test_contributing_names_the_floor_of_coverage():
    floor = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]["report"]
    assert f"below {floor['fail_under']} %" in CONTRIBUTING
