"""``dkrls help``: topics, pages, commands, and words that are neither."""

import json
import subprocess
import sys

import pytest
from shell import dkrls, refusal

from dkrls_cli.cli import COMMANDS
from dkrls_cli.guide.pages import read_page, topics


def test_without_a_topic_all_are_listed_with_a_line_each():
    shown = dkrls("help").stdout
    starts = set()
    for topic, line in topics().items():
        row = next(one for one in shown.splitlines() if one.startswith(f"{topic} "))
        assert row.endswith(line)
        starts.add(row.rindex(line))
    assert len(starts) == 1  # one column for all groups
    assert max(map(len, shown.splitlines())) <= 80
    assert "dkrls help TOPIC" in shown
    assert dkrls("help", "-q").stdout == shown


@pytest.mark.parametrize("words", [["first-steps"], ["first", "steps"], ["First-Steps"]])
def test_in_a_pipe_a_page_is_plain_markdown(words):
    found = dkrls("help", *words)
    assert found.stdout == read_page("first-steps")
    assert found.stderr == ""


def test_on_a_terminal_a_page_is_drawn_and_links_are_commands(monkeypatch):
    monkeypatch.setattr("dkrls_cli.cli.commands.help.can_draw", lambda stream: True)
    shown = dkrls("help", "first-steps", COLUMNS="80").stdout
    assert "```" not in shown
    assert "dkrls help" in shown
    assert ".md" not in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("command", ["fit", "bench real"])
def test_the_name_of_a_command_shows_its_help(command):
    words = command.split()
    assert dkrls("help", *words).stdout == dkrls(*words, "--help").stdout


def test_a_page_with_the_name_of_a_command_comes_first():
    both = set(topics()) & set(COMMANDS)
    assert {"regrid", "fill", "check"} <= both
    for name in both:
        assert dkrls("help", name).stdout == read_page(name)
        assert f"dkrls {name}" in read_page(name)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["regird"], "Did you mean 'regrid'?"),
        (["glosary"], "Did you mean 'glossary'?"),
        (["updat"], "Did you mean 'update'?"),
        (["quality", "control"], "Pages that mention it: check, live-sensors. Try"),
        (["slurm"], "Pages that mention it: hpc"),
        (["bench", "reel"], "no command 'bench reel'. Did you mean 'real'? Try 'dkrls help bench'"),
        (["fit", "real"], "no command 'fit real'. Try 'dkrls help fit'"),
        (["xyzzy"], "no command of that name. Try 'dkrls help'."),
    ],
)
def test_an_unknown_word_is_one_line_with_a_suggestion(words, meant):
    line = refusal("help", *words, code=2)
    assert meant in line
    assert line.count("Try") == 1


def test_few_pages_are_named_for_a_word_that_is_on_many():
    line = refusal("help", "coordinates", code=2)
    assert line.partition("mention it: ")[2].count(",") == 3


def test_json_holds_topics_pages_and_commands():
    assert json.loads(dkrls("help", "--json").stdout) == {"topics": topics()}
    page = json.loads(dkrls("help", "fill", "--json").stdout)
    assert page == {"topic": "fill", "about": topics()["fill"], "text": read_page("fill")}
    command = json.loads(dkrls("help", "fit", "--json").stdout)
    assert command["command"] == "fit"
    assert "--sigma" in command["text"]


def test_the_guide_needs_no_numpy():
    words = [sys.executable, "-X", "importtime", "-m", "dkrls_cli", "help", "fill"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == read_page("fill")
    assert "dkrls_cli.guide.pages" in done.stderr
    assert "numpy" not in done.stderr
