"""Pages of the guide, which are Markdown files in this folder.

``README.md`` is the list of pages: ``- [topic](topic.md): one line about it`` under a heading for
each group. The topic is the name of the file.
"""

from __future__ import annotations

import re
from importlib import resources

_INDEX = "README"
_ENTRY = re.compile(r"^- \[([\w-]+)\]\(\1\.md\): (.+)$", re.M)
_LINK = re.compile(r"\[([^\]\n]+)\]\(([\w-]+)\.md(?:#[\w-]+)?\)")


def groups() -> dict[str, dict[str, str]]:
    """Return the topics and one line about each, by the heading of the list they stand under.

    Examples
    --------
    >>> groups()["Start here"]["first-steps"]
    'First steps: fit a grid, ask the model, look at the answer'
    """
    parts = re.split(r"^## (.+)$", read_page(_INDEX), flags=re.M)
    return {
        title: dict(_ENTRY.findall(text))
        for title, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def topics() -> dict[str, str]:
    """Return all topics in the order of the list, and one line about each.

    Examples
    --------
    >>> list(topics())[:2]
    ['first-steps', 'regrid']
    """
    return {topic: line for entries in groups().values() for topic, line in entries.items()}


def read_page(topic: str) -> str:
    """Return the Markdown text of the page about a topic, as it is stored.

    Examples
    --------
    >>> read_page("glossary").splitlines()[0]
    '# Glossary'
    """
    return resources.files(__package__).joinpath(f"{topic}.md").read_text(encoding="utf-8")


def pages_with(words: str) -> list[str]:
    """Return the topics whose pages contain some words, those about them first.

    Upper and lower case are the same, and so are spaces and hyphens between the words.

    Examples
    --------
    >>> pages_with("SBATCH"), pages_with("conservative-regridding")
    (['hpc'], ['regrid'])
    """
    text = r"[\s-]+".join(map(re.escape, re.findall(r"[^\s-]+", words)))
    whole = re.compile(rf"\b{text}\b" if text else "$^", re.IGNORECASE)  # no words: nowhere
    found = [topic for topic in topics() if whole.search(read_page(topic))]
    return sorted(found, key=lambda topic: not whole.search(topics()[topic]))


def links_as_commands(text: str) -> str:
    """Return a page with its links to other pages written as the command that shows them.

    Examples
    --------
    >>> links_as_commands("See [fill](fill.md) and [the levels](glossary.md#words).")
    'See `dkrls help fill` and the levels (`dkrls help glossary`).'
    """
    return _LINK.sub(_as_command, text)


def _as_command(link: re.Match[str]) -> str:
    """Return a link as a command, behind its text unless that is the topic itself."""
    text, topic = link.groups()
    command = f"`dkrls help {topic}`"
    return command if text == topic else f"{text} ({command})"
