"""The scripts by which bash, zsh and fish ask for candidates, and where they are installed."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from dkrls_cli.errors import OutputError, SettingError

SCRIPTS = {
    "bash": """\
_dkrls_complete() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <(_DKRLS_COMPLETE=bash _DKRLS_BREAKS="$COMP_WORDBREAKS" \\
        dkrls "${COMP_LINE:0:$COMP_POINT}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -gt 0 && ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace 2>/dev/null
    fi
    return 0
}
complete -o default -o bashdefault -F _dkrls_complete dkrls
""",
    "zsh": """\
#compdef dkrls
_dkrls() {
    local line value about item
    local -a closed open
    for line in "${(@f)$(_DKRLS_COMPLETE=zsh dkrls "${(@Q)words[1,CURRENT]}" 2>/dev/null)}"; do
        [[ -z $line ]] && continue
        value=${line%%$'\\t'*}
        about=${${line#$value}#$'\\t'}
        item=${value//:/\\\\:}${about:+:$about}
        if [[ $value == *= ]]; then open+=("$item"); else closed+=("$item"); fi
    done
    if (( ! $#closed && ! $#open )); then
        _files
        return
    fi
    (( $#closed )) && _describe 'dkrls' closed
    (( $#open )) && _describe 'dkrls' open -S ''
    return 0
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
compdef _dkrls dkrls
""",
    "fish": """\
function __dkrls_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (_DKRLS_COMPLETE=fish dkrls $words 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete --command dkrls --no-files --arguments '(__dkrls_complete)'
""",
}
"""What a shell has to run, by its name."""


def show_script(shell: str) -> str:
    """Return what a shell has to run for completion."""
    return SCRIPTS[known_shell(shell)]


def known_shell(shell: str) -> str:
    """Return the name of a shell; that of ``auto`` is told by the variable SHELL."""
    name = Path(os.environ.get("SHELL", "")).name if shell == "auto" else shell
    if name in SCRIPTS:
        return name
    told = f"SHELL is '{os.environ.get('SHELL', '')}'" if shell == "auto" else f"not '{shell}'"
    raise SettingError(f"Completion is for bash, zsh and fish, and {told}. Name one of the three.")


def install(shell: str) -> list[str]:
    """Write the script of a shell where it is found at the next start; return what was done.

    What is there already is not written twice.
    """
    name = known_shell(shell)
    home = Path.home()
    if name == "fish":
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        return [_put(config / "fish" / "completions" / "dkrls.fish", SCRIPTS[name])]
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    script = data / "dkrls" / f"completion.{name}"
    start = home if name == "bash" else Path(os.environ.get("ZDOTDIR") or home)
    done = [_put(script, SCRIPTS[name])]
    return [*done, _append(start / f".{name}rc", f"source {shlex.quote(str(script))}")]


def _put(path: Path, text: str) -> str:
    """Write a file if it does not hold the text already, and return what was done."""
    try:
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            return f"{path} is as it should be."
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OutputError(f"'{path}' cannot be written ({error}).") from None
    return f"Wrote {path}."


def _append(path: Path, line: str) -> str:
    """Add a line to a start-up file, which may be a link, unless it is there; return what was done.

    Nothing else in the file changes.
    """
    try:
        old = path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""
        if line in old.splitlines():
            return f"{path} has the line already: {line}"
        with path.open("a", encoding="utf-8") as file:
            file.write(("" if not old or old.endswith("\n") else "\n") + f"{line}\n")
    except OSError as error:
        raise OutputError(f"'{path}' cannot be written ({error.strerror}).") from None
    return f"Added a line to {path}: {line}"
