"""Runs the examples of a Markdown page, block by block, in the current folder.

What a block is for stands behind its fence:

- ``sh``: one command a line. Stages of a pipe that are ``dkrls`` run in this process.
- ``bash``: one script.
- ``console``: commands behind ``$``, and what they print; ``...`` stands for lines left out.
- ``python``: a program of its own.

Not run are ``text``, and scripts that make an environment: .ci/run does those.

``python tests/documents.py PAGE.md ...`` runs pages, and writes what commands print now into their
console blocks.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shell import dkrls

OPTIONAL = {"mlr", "duckdb", "cdo", "sbatch", "jq"}
"""Programs that need not be installed: lines that use a missing one are not run."""

_SET_UP = "python3 -m venv"
_WIDTH = "100"  # columns of what commands print, as in a pipe
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
_CLOSE = 0.01  # relative difference of printed numbers: more than versions of libraries make
_BYTES = re.compile(r"\b[kMG]B\b")
_MACHINE = ("solved ", "memory ")  # starts of lines whose numbers depend on the machine


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its kind, its text, and the line where it begins."""

    kind: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    return [
        Block(found[1], found[2], page.count("\n", 0, found.start()) + 1)
        for found in re.finditer(r"^```(\w*)\n(.*?)^```$", page, re.M | re.S)
    ]


def commands(page: str) -> list[str]:
    """Return all commands of a page, one line each, those of scripts included."""
    lines = []
    for block in blocks(page):
        if block.kind in ("sh", "bash"):
            lines += joined_lines(block.text)
        elif block.kind == "console":
            lines += [command for command, _ in sessions(block.text)]
    return lines


def run_page(page: str) -> None:
    """Run all blocks of a page in order, and check what the commands of sessions print."""
    for block in blocks(page):
        print(f"line {block.line}: {block.kind}")  # shown when a test fails
        for _, expected, printed in run_block(block):
            check_same(expected, printed)


def run_block(block: Block) -> Iterator[tuple[str, str, str]]:
    """Run a block; yield commands of a session, what they should print, and what they do."""
    if block.kind == "console":
        for command, expected in sessions(block.text):
            printed = run_line(command)
            yield command, expected, expected if printed is None else printed
    elif block.kind == "sh":
        for line in joined_lines(block.text):
            run_line(line)
    elif block.kind == "bash" and not block.text.startswith(_SET_UP):
        run_script(block.text)
    elif block.kind == "python":
        exec(compile(block.text, f"line {block.line}", "exec"), {"__name__": "__page__"})


def joined_lines(text: str) -> list[str]:
    """Return the commands of a block, lines that end in a backslash joined, without comments."""
    lines = text.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def sessions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a console block as they are written, each with what it prints."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command = re.match(r"(?:[^\n]*\\\n)*[^\n]*", part)[0]  # to the first end without backslash
        yield command, part[len(command) + 1 :]


def run_script(text: str) -> None:
    """Run a block as a script; any command that fails ends it."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


def run_line(line: str) -> str | None:
    """Run a pipeline, and return all that it prints; None if one of its programs is missing."""
    words_given = words_of(line.replace("\\\n", " "))
    stages = [split_stage(words) for words in split_at(words_given, "|")]
    missing = {words[0] for words, _, _ in stages} - {"dkrls"}
    missing = {name for name in missing if not shutil.which(name)}
    if missing:
        assert missing <= OPTIONAL, f"{missing} not found: {line}"
        return None
    given, said = "", ""
    for words, source, target in stages:
        given = Path(source).read_text() if source else given
        given, noted = run_stage(words, given)
        said += noted
        if target:
            Path(target).write_text(given)
            given = ""
    return said + given


def run_stage(words: list[str], stdin: str) -> tuple[str, str]:
    """Run one program, and return what it writes to stdout and to stderr."""
    if words[0] == "dkrls":
        result = dkrls(*words[1:], stdin=stdin, COLUMNS=_WIDTH)
        return result.stdout, result.stderr
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout, done.stderr


def words_of(line: str) -> list[str]:
    """Return the words of a command line; pipes and redirections are words of their own."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


def split_at(words: list[str], mark: str) -> list[list[str]]:
    """Return the parts of a list between the marks."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word == mark:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def split_stage(words: list[str]) -> tuple[list[str], str, str]:
    """Return the words of one program, and the files that it reads and writes, if any."""
    files = {"<": "", ">": ""}
    for mark in files:
        if mark in words:
            place = words.index(mark)
            files[mark] = words[place + 1]
            words = words[:place] + words[place + 2 :]
    return words, files["<"], files[">"]


# ------------------------------------------------------------------------ what a command prints


def check_same(expected: str, printed: str) -> None:
    """Check what was printed: texts are equal, numbers close, and times are whatever they are."""
    want, got = tidy_lines(expected), tidy_lines(printed)
    if "..." in want:
        place = want.index("...")
        head, tail = want[:place], want[place + 1 :]
        want = head + tail
        got = got[: len(head)] + got[len(got) - len(tail) :]
    assert len(want) == len(got), f"expected:\n{expected}\nprinted:\n{printed}"
    for line, other in zip(want, got, strict=True):
        assert same_line(line, other), f"expected: {line}\nprinted:  {other}\n\n{printed}"


def tidy_lines(text: str) -> list[str]:
    """Return the lines of a text, single spaces between words, times without their number."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [re.sub(r"\b[\d.]+(e-\d+)? s\b", "T s", line) for line in lines if line]


def same_line(line: str, other: str) -> bool:
    """Return whether two lines are equal but for small differences of numbers."""
    if line.startswith(_MACHINE):
        line, other = (_BYTES.sub("B", one) for one in (line, other))
        return _NUMBER.sub("N", line) == _NUMBER.sub("N", other)
    if _NUMBER.sub("N", line) != _NUMBER.sub("N", other):
        return False
    pairs = zip(_NUMBER.findall(line), _NUMBER.findall(other), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=_CLOSE, abs_tol=1e-9) for a, b in pairs)


# ------------------------------------------------------------------- pages as they should be now


def refreshed(page: str) -> str:
    """Return a page whose sessions show what their commands print now, where that differs."""
    for block in blocks(page):
        lines = list(run_block(block))
        if lines:
            shown = "".join(f"$ {command}\n{now(*rest)}" for command, *rest in lines)
            page = page.replace(f"```console\n{block.text}```", f"```console\n{shown}```")
    return page


def now(expected: str, printed: str) -> str:
    """Return what a command prints, as it was written if that is still the same."""
    try:
        check_same(expected, printed)
    except AssertionError:
        lines, before = printed.splitlines(), expected.splitlines()
        if before[-1:] == ["..."]:
            lines = [*lines[: len(before) - 1], "..."]
        return "".join(f"{line.rstrip()}\n" for line in lines)
    return expected


if __name__ == "__main__":
    data = Path(__file__).parents[1] / "sample_data"
    for path in map(Path, sys.argv[1:]):
        target = path.resolve()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            shutil.copytree(data, "sample_data")
            target.write_text(refreshed(target.read_text()))
