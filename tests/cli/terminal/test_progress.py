"""Progress of long work: when a line is written, what it says, and what a terminal shows."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable

import pytest

from dkrls_cli.cli.terminal import progress
from dkrls_cli.cli.terminal.progress import Work, draw_bar, shorten, show_progress, write_lines


class Time:
    """A clock that goes on only while work is waited for; the work takes some seconds."""

    def __init__(self, work_takes: float) -> None:
        self.now, self.end, self.pauses = 0.0, work_takes, []

    def clock(self) -> float:
        return self.now

    def wait(self, pause: float) -> bool:
        self.pauses.append(pause)
        self.now = min(self.now + pause, self.end)
        return self.now >= self.end


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def lines_of(seconds: float, fraction: float | None = None) -> list[str]:
    """Lines written during work of some seconds."""
    time, written = Time(seconds), io.StringIO()
    work = Work("counting", time.clock)
    work.fraction = fraction
    write_lines(work, time.wait, written.write)
    return written.getvalue().splitlines()


@pytest.mark.parametrize(
    ("seconds", "at"),
    [(0.1, []), (2, []), (2.1, [2]), (12, [2]), (12.1, [2, 12]), (32, [2, 12, 22])],
)
def test_a_line_comes_after_2_seconds_and_then_every_10(seconds: float, at: list[int]) -> None:
    assert lines_of(seconds) == [f"counting ({second} s)" for second in at]


def test_a_line_has_the_fraction_done_if_it_is_known() -> None:
    assert lines_of(3, 0.25) == ["counting, 25 %, about 6 s left (2 s)"]
    assert lines_of(3, 0.0) == ["counting, 0 % (2 s)"]
    assert lines_of(3, 1.0) == ["counting, 100 % (2 s)"]


def work_after(seconds: float, fraction: float | None, total_bytes: float | None = None) -> Work:
    """Work that has gone on for some seconds."""
    time = Time(1e6)
    work = Work("reading", time.clock, fraction, total_bytes)
    time.now = seconds
    return work


@pytest.mark.parametrize(
    ("seconds", "fraction", "left"),
    [
        (100, 0.5, "about 1 min 40 s left"),
        (10, 0.01, "about 16 min 30 s left"),
        (3600, 0.25, "about 3 h 0 min left"),
        (10, 0.999, "about 1 s left"),
        (10, 1.0, ""),
        (10, 0.009, ""),  # a guess
        (0.9, 0.5, ""),
        (10, None, ""),
    ],
)
def test_the_time_left_is_that_of_the_rate_so_far(
    seconds: float, fraction: float | None, left: str
) -> None:
    assert work_after(seconds, fraction).left == left


def test_the_rate_is_told_where_bytes_are_known() -> None:
    assert work_after(10, 0.5, 4e9).rate == "200 MB/s"
    assert work_after(10, 0.5, 4e9).line == "reading, 50 %, 200 MB/s, about 10 s left (10 s)"
    assert work_after(200, 0.5, 4e9).state == "10 MB/s, about 3 min 20 s left, 3 min 20 s"
    for work in (work_after(10, None, 4e9), work_after(10, 0.5), work_after(0.5, 0.5, 4e9)):
        assert work.rate == ""


def test_time_is_counted_from_the_start_of_the_work() -> None:
    time = Time(1000)
    time.now = 300.0
    work = Work("counting", time.clock)
    time.now = 345.4
    assert work.line == "counting (45 s)"


@pytest.mark.parametrize(
    ("text", "room", "expected"),
    [
        ("reading sst", 11, "reading sst"),
        ("reading sst", 10, "reading..."),
        ("reading sst", 4, "r..."),
        ("reading sst", 2, ".."),
        ("reading sst", 0, ""),
        ("reading sst", -5, ""),
        ("", 0, ""),
    ],
)
def test_a_text_is_shortened_to_its_room(text: str, room: int, expected: str) -> None:
    assert shorten(text, room) == expected


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Terminal]:
    """A terminal with so many columns in the place of stderr."""

    def make(columns: int) -> Terminal:
        for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "stderr", stream := Terminal())
        return stream

    return make


def frames_of(drawn: str) -> list[str]:
    """The lines that were drawn one over the other, without styles."""
    import re

    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn)
    return [frame.strip() for frame in re.split(r"[\r\n]", plain) if frame.strip()]


@pytest.mark.parametrize("columns", [20, 40, 80])
def test_a_bar_is_never_wider_than_the_terminal(
    terminal: Callable[[int], Terminal], columns: int
) -> None:
    stream, time = terminal(columns), Time(5)
    what = "/a/long/path/to/a/file/with/a/long/name.nc, random 20 %, dkrls"
    work = Work(what, time.clock)
    work.fraction = 0.5
    draw_bar(work, time.wait)
    frames = frames_of(stream.getvalue())
    assert frames
    assert max(map(len, frames)) < columns
    assert any(frame.endswith("4 s") for frame in frames)
    assert any("/a/l" in frame for frame in frames)
    assert any("about 4 s left, 4 s" in frame for frame in frames) == (columns > 38)
    assert all("..." in frame or ". " in frame for frame in frames[1:])


def test_a_bar_shows_the_fraction_and_leaves_nothing_behind(
    terminal: Callable[[int], Terminal],
) -> None:
    stream, time = terminal(80), Time(4)
    work = Work("counting", time.clock)
    filled = []

    def wait(pause: float) -> bool:
        work.set_fraction(time.now / 4)
        return time.wait(pause)

    draw_bar(work, wait)
    drawn = stream.getvalue()
    frames = frames_of(drawn)
    assert all("counting" in frame for frame in frames[1:])
    filled = [frame.count("━") for frame in frames]
    assert max(filled) == 16  # a fifth of the terminal
    assert drawn.endswith("\x1b[2K")  # the last line is erased
    assert "\x1b[?25h" in drawn  # the cursor is shown again


def test_short_work_draws_nothing(terminal: Callable[[int], Terminal]) -> None:
    stream, time = terminal(80), Time(1.9)
    draw_bar(Work("counting", time.clock), time.wait)
    assert stream.getvalue() == ""
    assert time.pauses == [progress.FIRST_AFTER]


def test_notes_stand_above_the_bar_and_stdout_is_left_alone(
    terminal: Callable[[int], Terminal], capsys: pytest.CaptureFixture[str]
) -> None:
    stream, time = terminal(80), Time(4)
    work = Work("counting", time.clock)

    def wait(pause: float) -> bool:
        if 3.0 < time.now < 3.15:
            print("Note: something.", file=sys.stderr)
            print("data")
        return time.wait(pause)

    draw_bar(work, wait)
    assert "Note: something." in frames_of(stream.getvalue())
    assert "data" not in stream.getvalue()
    assert set(capsys.readouterr().out.split()) == {"data"}


def test_no_color_is_respected(
    terminal: Callable[[int], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, time = terminal(80), Time(4)
    monkeypatch.setenv("NO_COLOR", "1")
    draw_bar(Work("counting", time.clock), time.wait)
    assert "counting" in stream.getvalue()
    assert "\x1b[3" not in stream.getvalue()


@pytest.mark.parametrize(("term", "drawn"), [("xterm", True), ("dumb", False)])
def test_a_terminal_gets_a_bar_and_everything_else_lines(
    terminal: Callable[[int], Terminal], monkeypatch: pytest.MonkeyPatch, term: str, drawn: bool
) -> None:
    stream = terminal(80)
    monkeypatch.setenv("TERM", term)
    shown = threading.Event()
    chosen = []

    def choose(name: str) -> Callable[..., None]:
        def run(work: Work, wait: progress.Wait, *_: object) -> None:
            chosen.append((name, work.what))
            shown.set()
            assert wait(60)  # until the work is done

        return run

    monkeypatch.setattr(progress, "draw_bar", choose("bar"))
    monkeypatch.setattr(progress, "write_lines", choose("lines"))
    with show_progress("counting") as set_fraction:
        assert shown.wait(60)
        set_fraction(0.5)
    assert chosen == [("bar" if drawn else "lines", "counting")]
    assert stream.getvalue() == ""


def test_lines_go_to_stderr_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST_AFTER", 0.0)
    written = threading.Event()

    class Stream(io.StringIO):
        def flush(self) -> None:
            written.set()

    monkeypatch.setattr(sys, "stderr", stream := Stream())
    with show_progress("counting") as set_fraction:
        set_fraction(0.5)
        assert written.wait(60)
    assert stream.getvalue().startswith("counting")


def test_a_closed_stderr_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    progress._write("counting")
    with show_progress("counting"):
        pass


def test_progress_ends_with_the_work_also_when_it_fails() -> None:
    before = threading.active_count()
    with pytest.raises(KeyError), show_progress("counting"):
        raise KeyError
    assert threading.active_count() == before


def test_rich_is_imported_only_to_draw() -> None:
    import subprocess

    code = (
        "import sys\n"
        "from dkrls_cli.cli.report import Report\n"
        "with Report().working('counting'): pass\n"
        "Report().result({}, 'done')\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'rich'])"
    )
    env = {**os.environ, "TERM": "xterm"}
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    assert run.stdout.splitlines() == ["done", "[]"]


def test_what_is_done_never_falls():
    work = Work("fitting", clock=lambda: 0.0)
    for fraction, shown in ((0.2, 0.2), (0.1, 0.2), (0.7, 0.7)):
        work.set_fraction(fraction)
        assert work.fraction == shown
