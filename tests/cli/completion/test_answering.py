"""Candidates for every place of a command line, and the scripts in real shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shell import PATIENCE

import dkrls_cli
from dkrls_cli.cli import COMMANDS
from dkrls_cli.cli.completion.answering import candidates, split_line, topics
from dkrls_cli.cli.completion.scripts import SCRIPTS


def values(*words: str | Path) -> list[str]:
    """Return the candidates for the last of some words."""
    *before, current = map(str, words)
    return [one.value for one in candidates(before, current)]


def test_commands_are_completed() -> None:
    assert values("") == list(COMMANDS)
    assert values("fi") == ["fit", "fill"]
    assert values("bench", "paper") == ["paper-2d", "paper-3d"]
    assert values("fit", "fi") == []  # a file
    assert values("nonsense", "") == []
    assert all(one.about for one in candidates([], ""))


def test_options_are_completed() -> None:
    assert values("fit", "x.nc", "--si") == ["--sigma"]
    assert {"--config", "--save-config", "-o", "--output"} <= set(values("predict", "m.npz", "-"))
    assert values("bench", "real", "--se") == ["--seeds"]
    assert values("--install-completion", "") == ["bash", "zsh", "fish"]
    assert "--version" in values("--")
    assert values("bench", "speed", "--sigma") == []


def test_values_are_completed_behind_an_equals_sign_as_well(globe: Path) -> None:
    (name,) = (one for one in values("fit", globe, "--var", "") if one != "all")
    assert values("fit", globe, f"--var={name[:1]}") == [f"--var={name}"]
    assert values("fit", "x", "--noise=j") == ["--noise=joint"]
    assert values("fit", "x", "--noise", "j") == ["joint"]


def test_topics_of_the_guide_are_completed() -> None:
    folder = Path(dkrls_cli.__file__).parent / "guide"
    names = sorted(path.stem for path in folder.glob("*.md") if path.stem != "README")
    assert topics() == names
    assert values("help", "") == names != []


def test_lines_are_split_as_a_shell_does() -> None:
    assert split_line("dkrls fit a\\ b.nc --v") == ["dkrls", "fit", "a b.nc", "--v"]
    assert split_line('dkrls fit "a b') == ["dkrls", "fit", "a b"]
    assert split_line("dkrls ") == ["dkrls", ""]
    assert split_line("dkrls fit # x") == ["dkrls", "fit", "#", "x"]


# Real shells ------------------------------------------------------------------------------------


@pytest.fixture
def program(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which dkrls is found."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (file := folder / "dkrls").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dkrls_cli "$@"\n')
    file.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(tmp_path)}


def run(command: list[str], code: str, env: dict[str, str]) -> list[str]:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    out = subprocess.run(
        [*command, code], capture_output=True, text=True, env=env, timeout=PATIENCE, check=True
    )
    assert out.stderr == ""
    return out.stdout.splitlines()


def in_bash(line: str, env: dict[str, str]) -> list[str]:
    """Return what bash would offer; COMP_WORDS is broken at = and : as bash does."""
    code = f"""
        {SCRIPTS["bash"]}
        COMP_LINE={line!r} COMP_POINT={len(line)} COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
        complete -p dkrls >/dev/null && _dkrls_complete dkrls && printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    return run(["bash", "--norc", "-c"], code, env)


def test_completion_in_bash(globe: Path, program: dict[str, str]) -> None:
    assert in_bash("dkrls fi", program) == ["fit", "fill"]
    assert in_bash(f"dkrls fit {globe} --sigma l", program) == ["lat=", "lon="]
    assert in_bash(f"dkrls fit {globe} --kernel lat=gau", program) == ["gaussian"]
    assert in_bash("dkrls fit --noise=j", program) == ["joint"]
    assert in_bash("dkrls fit ", program) == [""]  # no candidate: files


def test_names_with_spaces_are_escaped_for_bash(tmp_path: Path, program: dict[str, str]) -> None:
    (tmp_path / "t.csv").write_text("time,a b,c$d\n")
    line = f"dkrls fit {tmp_path / 't.csv'} --var "
    assert in_bash(line, program) == ["time", r"a\ b", r"c\$d", "all"]


def test_names_that_could_do_harm_are_not_offered_or_are_escaped(
    tmp_path: Path, program: dict[str, str]
) -> None:
    (tmp_path / "t.csv").write_bytes(b"time,a\x1b[2Jb,$(touch x);ls,`id`\n")
    assert values("fit", tmp_path / "t.csv", "--var", "") == [
        "time",
        "$(touch x);ls",
        "`id`",
        "all",
    ]
    found = in_bash(f"dkrls fit {tmp_path / 't.csv'} --var ", program)
    assert found == ["time", r"\$\(touch\ x\)\;ls", r"\`id\`", "all"]


def test_completion_in_zsh(globe: Path, program: dict[str, str]) -> None:
    code = f"""
        compdef() {{ }}
        _describe() {{ print -l -- ${{(P)2}} }}
        _files() {{ print files }}
        {SCRIPTS["zsh"]}
        complete_words() {{ words=("$@"); CURRENT=$#; _dkrls }}
        complete_words dkrls fit {globe} --sigma l
        complete_words dkrls fit {globe} --kernel lat=gau
        complete_words dkrls fit ''
    """
    found = run(["zsh", "-f", "-c"], code, program)
    assert found == ["lat=:dimension", "lon=:dimension", "lat=gaussian", "files"]


def test_completion_in_fish(globe: Path, program: dict[str, str]) -> None:
    code = f"""
        {SCRIPTS["fish"]}
        complete -C'dkrls fit {globe} --sigma l'
        complete -C'dkrls fit {globe} --kernel lat=gau'
        complete -C'dkrls fit {globe.parent}/glob'
    """
    found = run(["fish", "--no-config", "-c"], code, program)
    assert found[:3] == ["lat=\tdimension", "lon=\tdimension", "lat=gaussian"]
    assert any("globe.nc" in one for one in found[3:])


def test_a_shell_hears_nothing_of_errors_and_waits_for_nothing(
    tmp_path: Path, program: dict[str, str]
) -> None:
    os.mkfifo(tmp_path / "pipe.nc")
    (tmp_path / "bad.nc").write_bytes(b"CDF\x01 no")
    for words in ([], ["dkrls", "fit", str(tmp_path / "pipe.nc"), "--var", ""], ["x"] * 300):
        start = time.monotonic()
        done = subprocess.run(
            ["dkrls", *words],
            env={**program, "_DKRLS_COMPLETE": "zsh"},
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert time.monotonic() - start < PATIENCE / 2
