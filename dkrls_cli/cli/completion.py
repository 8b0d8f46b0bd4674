"""Completion of command lines in bash, zsh and fish.

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dkrls_cli.cli.terminal.clean import clean
from dkrls_cli.errors import OutputError, SettingError

if TYPE_CHECKING:
    from dkrls_cli.files.listing.names import Names

VARIABLE = "_DKRLS_COMPLETE"
"""Variable of the environment that has the name of the shell that asks."""

# Seconds after which a file system that does not answer is given up: nobody waits longer at a TAB.
_PATIENCE = 2.0

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


# --- installing ----------------------------------------------------------------------------------


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


# --- answering a shell ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """A word that may stand next, and what it is."""

    value: str
    about: str = ""


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


@dataclass(frozen=True)
class Place:
    """Where a command line stands: the command, its options, and what was given so far.

    Attributes
    ----------
    words
        Words that name the command, such as bench and real.
    options
        Options of the command by all their names, long ones first.
    commands
        Commands that may follow, and what each does.
    given
        Arguments that were given.
    open_option
        The option whose value comes next; None if there is none.
    """

    words: list[str]
    options: dict[str, Any]
    commands: dict[str, str]
    given: list[str] = field(default_factory=list)
    open_option: Any = None


def find_place(words: Sequence[str]) -> Place:
    """Return where a command line stands after some words."""
    from dkrls_cli.cli import COMMANDS, import_command, root_command

    command, named = root_command(), list[str]()
    given: list[str] = []
    open_option: Any = None
    for word in words:
        if open_option is not None:
            given += [word] if "--model" in open_option.opts else []
            open_option = None
        elif word.startswith("-") and len(word) > 1:
            name, equals, _ = word.partition("=")
            option = _options(command).get(name)
            takes_value = option is not None and not (option.is_flag or option.count)
            open_option = option if takes_value and not equals else None
        elif not named and word in COMMANDS:
            command = import_command(word)
            named.append(word)
        elif word in getattr(command, "commands", {}) and not given:
            command = command.commands[word]
            named.append(word)
        else:
            given.append(word)
    inner = {} if given else getattr(command, "commands", {})
    short = {name: (one.help or "").strip().split("\n\n")[0] for name, one in inner.items()}
    return Place(named, _options(command), short, given, open_option)


def _options(command: Any) -> dict[str, Any]:
    """Return the options of a command by all their names, long ones first."""
    pairs = [
        (name, parameter)
        for parameter in command.params
        if parameter.param_type_name == "option" and not getattr(parameter, "hidden", False)
        for name in parameter.opts
    ]
    return dict(sorted(pairs, key=lambda pair: not pair[0].startswith("--")))


def topics() -> list[str]:
    """Return the topics of the guide."""
    from dkrls_cli.guide.pages import topics as pages

    return sorted(pages())


# --- values of options ---------------------------------------------------------------------------


def option_values(option: Any, typed: str, place: Place) -> list[Candidate]:
    """Return the values that an option may have."""
    name = max(option.opts, key=len).removeprefix("--")
    choices = getattr(option.type, "choices", None)
    if choices:
        return [Candidate(str(choice)) for choice in choices]
    metavar = str(option.metavar or "").strip("[]")
    literal = [word for word in metavar.split("|") if re.fullmatch(r"[a-z]+", word)]
    complete = _COMPLETERS.get(name)
    found = list(complete(typed, names_given(place))) if complete else []
    return [*found, *map(Candidate, literal)]


def names_given(place: Place) -> Names:
    """Return the names in the first file on a command line that has any."""
    from glob import glob

    from dkrls_cli.files.listing.names import Names, names_in

    for word in place.given:
        for path in [word] if os.path.exists(word) else sorted(glob(word))[:1]:
            with suppress(Exception):
                found = names_in(path)
                if found.dimensions:
                    return found
    return Names()


Completer = Callable[[str, "Names"], Iterator[Candidate]]
"""Yields the values of an option, from what is typed of it and the names in the file."""


def _variables(typed: str, names: Names) -> Iterator[Candidate]:
    """Yield the variables."""
    yield from (Candidate(name, "variable") for name in names.variables)


def _one_dimension(typed: str, names: Names) -> Iterator[Candidate]:
    """Yield the dimensions."""
    yield from (Candidate(name, "dimension") for name in names.dimensions)


def _dimensions(typed: str, names: Names) -> Iterator[Candidate]:
    """Yield what is typed and one more dimension, of those that are not named yet."""
    before, comma, _ = typed.rpartition(",")
    used = before.split(",")
    for name in names.dimensions:
        if name not in used:
            yield Candidate(f"{before}{comma}{name}", "dimension")


def _pairs(*values: str, kernels: bool = False, alone: bool = True) -> Completer:
    """Return a completer of ``DIM=VALUE``, several of them separated by commas.

    With `alone`, a value may also stand without a dimension, for all of them.
    """

    def complete(typed: str, names: Names) -> Iterator[Candidate]:
        before, comma, last = typed.rpartition(",")
        if comma and "=" not in last and "=" not in before:
            return
        words = [*values, *(_kernels() if kernels else ())]
        dim, equals, _ = last.partition("=")
        if equals:
            yield from (Candidate(f"{before}{comma}{dim}={word}") for word in words)
            return
        used = {pair.partition("=")[0] for pair in before.split(",")}
        for name in names.dimensions:
            if name not in used:
                yield Candidate(f"{before}{comma}{name}=", "dimension")
        if alone and not comma:
            yield from map(Candidate, words)

    return complete


def _kernels() -> tuple[str, ...]:
    """Return the names of all kernels."""
    from dkrls_cli.cascade.kernels import KERNELS

    return KERNELS


_COMPLETERS: dict[str, Completer] = {
    "at": _pairs("all", alone=False),
    "cell-means-along": _dimensions,
    "derivative": _one_dimension,
    "group": _dimensions,
    "holdout": _pairs(),
    "kernel": _pairs("auto", kernels=True),
    "levels": _dimensions,
    "max-gap": _pairs(),
    "mean-along": _dimensions,
    "mean-over": _pairs(),
    "obs-error": _variables,
    "period": _pairs("auto", "none"),
    "ridge": _pairs("auto"),
    "sigma": _pairs("auto"),
    "var": _variables,
    "within": _pairs(),
}
"""How values of options are completed, by the long names of these."""
