"""The pages of the guide as files: they are found, listed and searched."""

import pytest

from dkrls_cli.guide import pages


def test_every_topic_has_a_page_and_a_line():
    assert len(pages.topics()) > 20
    for topic, line in pages.topics().items():
        assert pages.read_page(topic).startswith("# ")
        assert 5 < len(line) <= 60, topic  # beside the longest topic in 80 columns


def test_groups_hold_every_topic_once():
    groups = pages.groups()
    assert next(iter(groups)) == "Start here"
    listed = [topic for entries in groups.values() for topic in entries]
    assert len(listed) == len(set(listed))
    assert listed == list(pages.topics())


def test_a_page_that_is_not_there_is_an_error():
    with pytest.raises(FileNotFoundError):
        pages.read_page("nothing")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("sbatch", ["hpc"]),
        ("SBATCH", ["hpc"]),
        ("sbat", []),
        ("a.b(", []),
        ("quality control", ["check", "live-sensors"]),
        ("Quality-Control", ["check", "live-sensors"]),
        ("control quality", []),
        ("-", []),
    ],
)
def test_whole_words_are_found_whatever_their_case(words, found):
    assert pages.pages_with(words) == found


def test_links_between_pages_become_commands_and_others_stay():
    text = "[fill](fill.md), [b c](how-it-works.md#the-idea), [d](https://x.org/fill.md), [e](f.py)"
    assert pages.links_as_commands(text) == (
        "`dkrls help fill`, b c (`dkrls help how-it-works`), [d](https://x.org/fill.md), [e](f.py)"
    )


def test_no_page_has_a_link_to_another_that_is_not_read_as_a_command():
    for topic in pages.topics():
        assert ".md" not in pages.links_as_commands(pages.read_page(topic)), topic
