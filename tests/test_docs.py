"""Documents against the program: examples run, lists are complete, versions agree."""

import doctest
import importlib
import pkgutil
import re
import shutil
import tomllib
from datetime import date
from pathlib import Path

import documents
import numpy as np
import options_page
import pytest
import xarray as xr
from shell import dkrls

import dkrls_cli
from dkrls_cli import fit
from dkrls_cli.cli import COMMANDS as COMMAND_LINES
from dkrls_cli.files import npz as modelfile
from dkrls_cli.guide.pages import read_page, topics

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
CITATION = (ROOT / ".github" / "CITATION.cff").read_text()
CONTRIBUTING = (ROOT / ".github" / "CONTRIBUTING.md").read_text()
GUIDE = Path(dkrls_cli.__file__).parent / "guide"
PAGES = {f"dkrls_cli/guide/{topic}.md": read_page(topic) for topic in ["README", *topics()]}
DOCUMENTS = {"README.md": README, **PAGES}
MODULES = [m.name for m in pkgutil.walk_packages(dkrls_cli.__path__, "dkrls_cli.")]


@pytest.mark.parametrize("name", ["dkrls_cli", *MODULES])
def test_docstring_examples_run(name):
    if name != "dkrls_cli.__main__":
        assert doctest.testmod(importlib.import_module(name)).failed == 0


# --------------------------------------------------------------------------- the README, the guide


def test_the_readme_opens_with_the_main_job_and_the_tests():
    first, second = documents.blocks(README)[:2]
    assert (first.kind, second.kind) == ("bash", "bash")
    assert "sample_data/" in first.text
    assert "pytest" in second.text


def test_the_readme_shows_what_its_first_command_prints():
    first, _, third = documents.blocks(README)[:3]
    shown = [command for command, printed in documents.sessions(third.text) if printed]
    assert shown
    assert shown == re.findall(r"\.venv/bin/(dkrls [^&\n]*[^&\s])", first.text)


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 150


@pytest.mark.slow
@pytest.mark.parametrize("name", DOCUMENTS)
def test_everything_on_a_page_runs_in_order(name, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "sample_data", tmp_path / "sample_data")
    monkeypatch.chdir(tmp_path)
    if name == "README.md":  # prints nothing of the grid with gaps: a fourth of it will do
        with xr.open_dataset(ROOT / "sample_data" / "ocean_gaps.nc") as gaps:
            gaps[{"time": slice(12)}].to_netcdf("sample_data/ocean_gaps.nc")
    documents.run_page(DOCUMENTS[name])


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("rmse 0.0100", "rmse  0.01004", True),
        ("rmse 0.0100", "rmse  0.0102", False),
        ("rmse 0.0100", "mae  0.0100", False),
        ("fitted in 0.2 s", "fitted in 31 s", True),
        ("2020-03-20,10.0", "2020-03-21,10.0", False),
        ("one\n...\nlast", "one\ntwo\nthree\nlast", True),
        ("one\n...\nlast", "one\ntwo\nthree", False),
        ("one\ntwo", "one", False),
    ],
)
def test_what_is_printed_is_compared(expected, printed, same):
    if same:
        documents.check_same(expected, printed)
    else:
        with pytest.raises(AssertionError):
            documents.check_same(expected, printed)


def test_sessions_are_written_anew_where_they_differ():
    page = "```console\n$ echo one \\\n    two\n{}$ echo 3\n3\n```\n"
    assert documents.refreshed(page.format("2\n")) == page.format("one two\n")
    assert documents.refreshed(page.format("one  two\n")) == page.format("one  two\n")
    long = "```console\n$ printf 'a\\nb\\nc\\n'\n{}...\n```\n"
    assert documents.refreshed(long.format("x\n")) == long.format("a\n")


def test_a_program_that_should_be_there_is_missed():
    assert documents.run_line("echo 'a | b' | cat") == "a | b\n"
    with pytest.raises(AssertionError, match="not found"):
        documents.run_line("nosuchprogram x | cat")


def test_blocks_that_are_not_run_hold_no_command():
    for name, text in DOCUMENTS.items():
        for block in documents.blocks(text):
            assert block.kind in ("sh", "bash", "console", "python", "text"), name
            if block.kind == "text":
                assert not re.search(r"^(\$ )?dkrls ", block.text, re.M), name


def test_every_option_that_a_page_names_exists():
    """In commands that run, and in those within a sentence."""
    known = {
        name: {flag for option in command.params for flag in option.opts} | {"--help", "-h"}
        for name, command in options_page.all_commands()
    }
    count = 0
    for name, text in DOCUMENTS.items():
        for words in re.findall(r"\bdkrls ([a-z][^`|&\n<>]*)", text.replace("\\\n", " ")):
            path = words.split()[0]
            if path == "bench" and " ".join(words.split()[:2]) in known:
                path = " ".join(words.split()[:2])
            for option in re.findall(r"(?<=\s)--?[a-z][a-z0-9-]*", words):
                count += 1
                assert option in known.get(path, ()), f"{name}: dkrls {words}"
    assert count > 100


def test_a_page_begins_with_a_title_and_a_command():
    for topic in topics():
        title, *rest = read_page(topic).splitlines()
        assert title.startswith("# "), topic
        opening = "\n".join(rest).split("\n## ")[0]
        kinds = {block.kind for block in documents.blocks(opening)}
        assert kinds & {"sh", "bash", "console", "python"}, topic


def test_every_command_is_used_and_has_help():
    used = [line for text in DOCUMENTS.values() for line in documents.commands(text)]
    used += re.findall(r"`(dkrls help[^`]*)`", README)
    help_text = dkrls("--help").stdout
    for command in COMMAND_LINES:
        assert any(line.startswith(f"dkrls {command}") for line in used), command
        assert command in help_text
        assert "Examples" in dkrls(command, "--help").stdout
        assert f"| `dkrls {command}` |" in read_page("first-steps"), command


@pytest.mark.parametrize(("name", "line"), list(COMMAND_LINES.items()))
def test_the_list_of_commands_repeats_their_docstrings(name, line):
    command = getattr(importlib.import_module(f"dkrls_cli.cli.commands.{name}"), name)
    about = getattr(command, "registered_callback", None)
    assert (about.callback if about else command).__doc__.splitlines()[0] == line


def test_the_page_of_options_is_up_to_date():
    assert read_page("options") == options_page.page(), "run: python tests/options_page.py"


@pytest.mark.parametrize("command", COMMAND_LINES)
def test_the_page_of_options_has_all_that_help_shows(command, monkeypatch):
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 120)
    shown = set(re.findall(r"(?<=[\s])--[a-z][a-z0-9-]+", dkrls(command, "--help").stdout))
    assert len(shown) >= 4
    text = read_page("options")
    assert {option for option in shown if f"`{option}`" not in text} <= {"--help"}


def test_the_guide_documents_every_key_of_the_model_file(tmp_path):
    text = read_page("model-file")
    values = np.arange(12.0).reshape(3, 4)
    fit(values).save(tmp_path / "m.npz")
    values[1, 1] = np.nan
    fit(values).save(tmp_path / "gaps.npz")
    whole = np.arange(12.0).reshape(3, 4)
    fit(whole).update([[0.0], [1.0], [np.nan]], [4]).save(tmp_path / "filled.npz")
    for path in tmp_path.glob("*.npz"):
        header, arrays = modelfile.read(path)
        for key in header:
            assert f"`header.{key}`" in text, key
        for key in header["bars"]:
            assert f"`{key}`" in text, key
        for name in arrays:
            assert re.sub(r"_\d$", "_i", name) in text, name


# ------------------------------------------------------------ the paper, the glossary, and links


def test_the_paper_is_cited_once_in_full():
    where = "arXiv:1704.04522"
    for text in (README, read_page("how-it-works"), dkrls_cli.__doc__, CITATION):
        assert "Deep Kernel Recursive Least-Squares Algorithm" in text.replace("\n", " ").replace(
            "> ", ""
        )
        assert all(author in text for author in ("Mohamadipanah", "Heydari", "Chowdhary"))
    cited = [README, read_page("how-it-works"), dkrls_cli.__doc__]
    assert [text.count(where) for text in cited] == [1, 1, 1]
    assert sum(where in text for text in PAGES.values()) == 1


def glossary():
    section = read_page("glossary").split("## Words used here")[1]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", section, re.M)[1:]
    return [(term, meaning) for terms, meaning in rows for term in terms.split(", ")]


def test_the_glossary_explains_every_term_once():
    terms = (
        "grid cell slice fibre gap level hierarchy cascade kernel sigma ridge frame core hold-out"
    )
    found = dict(glossary())
    assert len(found) == len(glossary())
    assert set(terms.split()) | {"error bar", "drift", "period"} <= set(found)
    assert "gaussian" in found["kernel"]


def anchors(text):
    """Return the names by which headings of a page can be linked to, as on GitHub."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


def test_every_link_leads_somewhere():
    count = 0
    for name, text in DOCUMENTS.items():
        for link, anchor in re.findall(r"\[[^\]]+\]\(([^)#\s]*)(?:#([\w-]+))?\)", text):
            count += 1
            assert not link.startswith("http"), link
            target = (Path(name).parent / link).as_posix() if link else name
            if target in DOCUMENTS:
                assert not anchor or anchor in anchors(DOCUMENTS[target]), (
                    f"{name}: {link}#{anchor}"
                )
            else:
                assert (ROOT / target).exists(), f"{name}: {link}"
    assert count > 50


def test_the_list_of_pages_has_all_of_them():
    assert {path.stem for path in GUIDE.glob("*.md")} == {"README", *topics()}
    linked = set(re.findall(r"\((dkrls_cli/guide/[\w-]+\.md)\)", README))
    assert len(linked) > 20


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
