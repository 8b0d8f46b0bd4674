"""Completion: candidates for every place of a command line, and the scripts in real shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shell import PATIENCE, dkrls, refusal

from dkrls_cli.cli import COMMANDS
from dkrls_cli.cli.completion import SCRIPTS, candidates, install, split_line


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


def test_variables_and_dimensions_are_those_of_the_file(globe: Path, model: Path) -> None:
    (name,) = (one for one in values("fit", globe, "--var", "") if one != "all")
    assert values("fit", globe, f"--var={name[:1]}") == [f"--var={name}"]
    assert values("fit", globe, "--sigma", "") == ["time=", "lat=", "lon=", "auto"]
    assert values("fit", globe, "--sigma", "l") == ["lat=", "lon="]
    assert values("fit", globe, "--ridge", "lat=1,") == ["lat=1,time=", "lat=1,lon="]
    assert values("fit", globe, "--kernel", "lat=c") == ["lat=cubic"]
    assert "matern12" in values("fit", globe, "--kernel", "m")
    assert values("fit", globe, "--period", "lon=n") == ["lon=none"]
    assert values("fit", globe, "--levels", "lat,") == ["lat,time", "lat,lon"]
    assert values("predict", model, "--at", "") == ["lat=", "lon=", "time="]  # levels of the model
    assert values("predict", model, "--at", "time=") == ["time=all"]
    assert values("predict", model, "--derivative", "t") == ["time"]
    assert values("predict", model, "-o", "") == []
    assert values("validate", "--model", model, "--holdout", "") == ["lat=", "lon=", "time="]
    assert values("fit", globe.parent / "glob*.nc", "--sigma", "t") == ["time="]


def test_words_of_closed_sets_are_completed() -> None:
    assert values("fit", "x", "--noise", "") == ["level", "joint", "auto"]
    assert values("fit", "x", "--noise=j") == ["--noise=joint"]
    assert values("fill", "x", "--mask", "") == ["always", "first", "none"]
    assert values("fit", "x", "--max-memory", "n") == ["none"]


def test_topics_of_the_guide_are_completed() -> None:
    from dkrls_cli.cli import completion

    folder = Path(completion.__file__).parents[1] / "guide"
    topics = sorted(path.stem for path in folder.glob("*.md") if path.stem != "README")
    assert completion.topics() == topics
    assert values("help", "") == topics != []


def test_files_that_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.nc")
    (tmp_path / "bad.nc").write_bytes(b"\x89HDF\r\n\x1a\n no")
    for name in ("pipe.nc", "bad.nc", "absent.nc", "/dev/zero", "."):
        assert values("fit", tmp_path / name, "--sigma", "") == ["auto"]


def test_lines_are_split_as_a_shell_does() -> None:
    assert split_line("dkrls fit a\\ b.nc --v") == ["dkrls", "fit", "a b.nc", "--v"]
    assert split_line('dkrls fit "a b') == ["dkrls", "fit", "a b"]
    assert split_line("dkrls ") == ["dkrls", ""]
    assert split_line("dkrls fit # x") == ["dkrls", "fit", "#", "x"]


# Installing ---------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_installing_adds_one_line_to_the_start_up_file(home: Path, shell: str) -> None:
    start = home / f".{shell}rc"
    start.write_bytes(b"export A=1 # \xff")
    told = dkrls("--install-completion", shell).stdout
    script = home / ".local" / "share" / "dkrls" / f"completion.{shell}"
    assert script.read_text() == SCRIPTS[shell]
    line = f"source {script}"
    assert start.read_bytes() == b"export A=1 # \xff\n" + f"{line}\n".encode()
    assert f"Wrote {script}." in told
    assert f"Added a line to {start}: {line}" in told
    before = start.read_bytes()
    told = dkrls("--install-completion", shell).stdout
    assert start.read_bytes() == before
    assert "has the line already" in told
    assert "is as it should be" in told


def test_a_start_up_file_that_is_a_link_stays_one(home: Path) -> None:
    (home / "dotfiles").write_text("")
    (home / ".bashrc").symlink_to(home / "dotfiles")
    install("bash")
    assert (home / ".bashrc").is_symlink()
    assert "completion.bash" in (home / "dotfiles").read_text()


def test_fish_finds_its_script_itself(home: Path) -> None:
    dkrls("--install-completion", "fish")
    assert (home / ".config/fish/completions/dkrls.fish").read_text() == SCRIPTS["fish"]
    assert sorted(path.name for path in home.iterdir()) == [".config"]


def test_the_shell_is_told_by_the_environment(home: Path) -> None:
    assert dkrls("--show-completion", SHELL="/usr/bin/zsh").stdout == SCRIPTS["zsh"]
    assert dkrls("--show-completion", "fish").stdout == SCRIPTS["fish"]
    line = refusal("--install-completion", SHELL="/bin/tcsh", code=2)
    assert "SHELL is '/bin/tcsh'" in line
    assert "not 'tcsh'" in refusal("--show-completion", "tcsh", code=2)


def test_what_cannot_be_written_is_refused(home: Path) -> None:
    (home / ".local").write_text("in the way")
    assert "cannot be written" in refusal("--install-completion", "bash")
    (home / ".local").unlink()
    (home / ".bashrc").mkdir()
    assert "cannot be written" in refusal("--install-completion", "bash")


# Real shells --------------------------------------------------------------------------------------


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
