"""Scripts of shells are installed once, and nothing else of a start-up file changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell import dkrls, refusal

from dkrls_cli.cli.completion.scripts import SCRIPTS, install


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
