"""Answers to a shell that asks what may stand next on a command line.

A shell calls ``dkrls`` with the variable ``_DKRLS_COMPLETE`` set to its name, and with the words so
far; it gets one candidate per line, with an explanation after a tab. Names of variables and
dimensions are those of the file on the command line. Without candidates a shell offers files.

Nothing here prints an error, and what takes longer than two seconds is given up.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress

from dkrls_cli.cli.completion.places import find_place
from dkrls_cli.cli.completion.values import Candidate, option_values
from dkrls_cli.cli.terminal.clean import clean

# Seconds after which a file system that does not answer is given up: nobody waits longer at a TAB.
_PATIENCE = 2.0


def answer_shell(shell: str, words: Sequence[str]) -> None:
    """Print the candidates for the last word of a command line; say nothing if anything fails."""
    import threading

    watchdog = threading.Timer(_PATIENCE, os._exit, (0,))
    watchdog.daemon = True
    watchdog.start()
    with suppress(Exception):
        if shell == "bash":
            words = split_line(words[0])
        *before, current = words[1:] or [""]
        found = candidates(before, current)
        breaks = os.environ.get("_DKRLS_BREAKS", "") if shell == "bash" else ""
        lines = [_line(one, current, shell, breaks) for one in found]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
    watchdog.cancel()


def split_line(line: str) -> list[str]:
    """Return the words of a line that may end within quotes; the last is the one being typed.

    >>> split_line("dkrls fit 'my file.nc' --var "), split_line("dkrls fit 'my fi")
    (['dkrls', 'fit', 'my file.nc', '--var', ''], ['dkrls', 'fit', 'my fi'])
    """
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words = []
    try:
        for word in lexer:
            words.append(word)
        if line[-1:].isspace() and not line.endswith("\\ "):
            words.append("")
    except ValueError:  # within quotes
        words.append(lexer.token or "")
    return words


def _line(candidate: Candidate, current: str, shell: str, breaks: str) -> str:
    """Return a candidate as a shell reads it."""
    value, about = candidate.value, " ".join(candidate.about.split())
    if shell != "bash":
        return f"{value}\t{about}" if about else value
    typed = max((current.rfind(mark) for mark in breaks), default=-1) + 1
    return re.sub(r"([^\w@%+=:,./-])", r"\\\1", value[typed:])


def candidates(words: Sequence[str], current: str) -> list[Candidate]:
    """Return what may stand in place of the last word of a command line.

    Parameters
    ----------
    words
        The words before it, without the name of the program.
    current
        The word as far as it is typed.

    Returns
    -------
    list of Candidate
        Words that begin as `current` does; none where a file may stand.
    """
    place = find_place(words)
    name, equals, typed = current.partition("=")
    option = place.options.get(name) if equals and name.startswith("--") else None
    if option is not None:
        found = [
            Candidate(f"{name}={one.value}", one.about)
            for one in option_values(option, typed, place)
        ]
    elif place.open_option is not None:
        found = option_values(place.open_option, current, place)
    elif current.startswith("-"):
        found = [Candidate(name, one.help or "") for name, one in place.options.items()]
    elif place.commands:
        found = [Candidate(name, about) for name, about in place.commands.items()]
    elif place.words[:1] == ["help"]:
        found = [Candidate(topic) for topic in topics()]
    else:
        found = []
    return [one for one in found if one.value.startswith(current) and _is_safe(one.value)]


def _is_safe(value: str) -> bool:
    """Return whether a name, which may come from a file, can be put on a command line."""
    return bool(value) and clean(value) == value


def topics() -> list[str]:
    """Return the topics of the guide."""
    from dkrls_cli.guide.pages import topics as pages

    return sorted(pages())
