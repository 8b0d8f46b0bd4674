"""Run many hostile inputs, each in a process of its own with limits on time and memory.

    python tests/fuzz/run.py --count 10000 --seed 1

Prints every case that ends with another exit code than 0 to 3, with a traceback or with an error
that should not happen, or that takes more than 10 s or 1 GB, and a summary. A case is run again
alone by --only KIND SEED. Needs an operating system that can fork.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.cases import MAKERS, Case, Place, make_case, make_place

from dkrls_cli.cli import app

MOST_SECONDS, MOST_BYTES = 10.0, 1e9


def faults(code: int, errors: str) -> list[str]:
    """Return what is wrong with how a command ended."""
    found = [] if code in (0, 1, 2, 3) else [f"exit code {code}"]
    found += [
        text for text in ("Traceback", "should not happen", "Warning: ") if _has(errors, text)
    ]
    if "\x1b" in errors:
        found.append("control characters on stderr")
    lines = [line for line in errors.splitlines() if line.startswith("Error: ")]
    if len(lines) != (code in (1, 2)):
        found.append(f"{len(lines)} error lines")
    return found


def _has(errors: str, text: str) -> bool:
    """Return whether a text is in the errors; warnings of Python's name a file and a line."""
    if text == "Warning: ":
        return any(text in line and ".py:" in line for line in errors.splitlines())
    return text in errors


def run_case(case: Case, folder: Path) -> tuple[list[str], str]:
    """Run a case in a process of its own; return what is wrong with it, and what it printed."""
    streams = [folder / name for name in ("stdin", "stdout", "stderr")]
    streams[0].write_bytes(case.stdin)
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        _become(case, streams)
    code, used = _wait(child, started)
    errors = streams[2].read_text(errors="replace")
    found = faults(code, errors)
    took = time.monotonic() - started
    found += [f"{took:.1f} s"] if took > MOST_SECONDS else []
    found += [f"{used / 1e6:.0f} MB"] if used > MOST_BYTES else []
    return found, errors


def _become(case: Case, streams: list[Path]) -> None:
    """Run the command in this process, and end it."""
    for number, path in enumerate(streams):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC if number else os.O_RDONLY
        os.dup2(os.open(path, flags, 0o600), number)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    resource.setrlimit(resource.RLIMIT_FSIZE, (10**9, 10**9))
    sys.argv = ["dkrls", *case.words]
    code = 99
    try:
        app(args=case.words, prog_name="dkrls")
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _wait(child: int, started: float) -> tuple[int, float]:
    """Return the exit code of a process and the most bytes it held; it is killed if it is late."""
    while True:
        ended, status, used = os.wait4(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), 1024.0 * used.ru_maxrss
        if time.monotonic() - started > 3 * MOST_SECONDS:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.003)


def warm_up(place: Place) -> None:
    """Run a few commands in this process, so that all others need not import the libraries."""
    import contextlib
    import io

    for words in (
        ["fit", place.path("gaps.nc"), *place.new_model],
        ["predict", place.path("new.npz"), "-o", place.path("out.nc"), "--overwrite", "--std"],
        ["fill", place.path("gaps.nc"), "-o", place.path("out.nc"), "--overwrite"],
        ["update", place.path("new.npz"), place.path("whole.csv"), "--replace"],
        ["validate", place.path("whole.nc"), "--model", place.path("whole.npz")],
    ):
        sys.argv = ["dkrls", *words]
        with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
            app(args=[*words, "--quiet"], prog_name="dkrls")


def run_many(count: int, seed: int, place: Place) -> int:
    """Run cases of all kinds in turn, print those that failed, and return their number."""
    failed, kinds = 0, list(MAKERS)
    for number in range(seed, seed + count):
        kind = kinds[number % len(kinds)]
        case = make_case(kind, number, place)
        found, errors = run_case(case, place.folder)
        if found:
            failed += 1
            last = errors.strip().rpartition("\n")[2]
            print(f"--only {kind} {number}: {', '.join(found)}: {' '.join(case.words)}: {last}")
    print(f"{count} cases, {failed} failed: {dict(Counter(kinds * (count // len(kinds))))}")
    return failed


def main() -> None:
    """Read the options, and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs=2, metavar=("KIND", "SEED"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = make_place(Path(folder))
        warm_up(place)
        if given.only:
            case = make_case(given.only[0], int(given.only[1]), place)
            print(case.words, *run_case(case, place.folder), sep="\n")
        else:
            sys.exit(bool(run_many(given.count, given.seed, place)))


if __name__ == "__main__":
    main()
