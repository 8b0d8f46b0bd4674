"""When a stream is saved, and how a signal stops it: by a clock of its own."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from dkrls_cli.cli.saver import Saver, StoppedError, parse_intervals


class Clock:
    """A clock that goes on only when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Learner:
    """A stream and its model, of which only slices and saves matter; a save takes 2 s."""

    def __init__(self, clock: Clock) -> None:
        self.slices, self.saves, self.clock, self.model = 0, [], clock, self

    def final_model(self) -> Learner:
        return self

    def save(self, path: Path, overwrite: bool) -> None:
        self.saves.append((path.name, overwrite, self.slices))
        self.clock.now += 2.0


def saver(slices: int | None, seconds: float | None) -> tuple[Saver, Any, Clock]:
    clock = Clock()
    learner: Any = Learner(clock)
    return Saver(Path("m.npz"), slices, seconds, clock, stream=learner), learner, clock


def test_slow_saves_come_less_often() -> None:
    """At 50 s between saves, but at least ten times the time that the last save took."""
    for took, pause in ((0.0, 50.0), (4.0, 50.0), (5.0, 50.0), (7.0, 70.0)):
        keeper, _, clock = saver(None, 50.0)
        keeper.save_took = took
        clock.now += pause - 0.5
        assert not keeper.is_late()
        clock.now += 0.5
        assert keeper.is_late()


def test_saves_by_count_come_after_so_many_slices_whatever_the_time() -> None:
    keeper, learner, clock = saver(3, None)
    for _ in range(7):
        learner.slices += 1
        clock.now += 1000
        keeper.save_if_due()
    assert learner.saves == [("m.npz", True, 3), ("m.npz", True, 6)]
    assert not keeper.is_late()
    keeper.save()  # at the end: what is new
    keeper.save()  # nothing is new
    assert learner.saves[2:] == [("m.npz", True, 7)]


def test_saves_by_time_wait_for_something_new() -> None:
    keeper, learner, clock = saver(None, 60.0)
    clock.now += 60
    keeper.save_if_due()
    assert learner.saves == []
    learner.slices = 4
    keeper.save_if_due()
    assert learner.saves == [("m.npz", True, 4)]
    assert (keeper.saved_slices, keeper.save_took, keeper.saved_at) == (4, 2.0, clock.now)
    learner.slices = 5
    clock.now += 59
    keeper.save_if_due()
    assert len(learner.saves) == 1
    clock.now += 1
    keeper.save_if_due()
    assert len(learner.saves) == 2


def test_a_timer_saves_only_while_input_is_awaited() -> None:
    keeper, learner, clock = saver(None, 1.0)
    learner.slices, clock.now = 1, clock.now + 5
    keeper._tick(0, None)
    assert learner.saves == []
    keeper.waiting = True
    keeper._tick(0, None)
    assert len(learner.saves) == 1


def test_a_signal_interrupts_only_the_wait_for_input() -> None:
    keeper, _, _ = saver(1, None)
    slices: Any = iter("ab")
    incoming = keeper.incoming(slices)
    assert next(incoming) == "a"
    keeper._stop(signal.SIGTERM, None)  # while a slice is learnt
    assert list(incoming) == []
    assert next(slices) == "b"  # the slice after it was not read
    keeper.waiting = True
    with pytest.raises(StoppedError):
        keeper._stop(signal.SIGTERM, None)
    assert not keeper.waiting


class StoppedBeforeWaiting(Saver):
    """A saver that a signal reaches just before it waits for input."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "waiting" and value:
            super().__setattr__("number", signal.SIGTERM)
        super().__setattr__(name, value)


def test_a_signal_just_before_the_wait_for_input_is_not_lost() -> None:
    slices: Any = iter("ab")
    assert list(StoppedBeforeWaiting(Path("m.npz"), 1, None).incoming(slices)) == []
    assert next(slices) == "a"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", (1, None)),
        (" 100 ", (100, None)),
        ("60s", (None, 60.0)),
        ("5 min", (None, 300.0)),
        ("2h", (None, 7200.0)),
        ("999999", (999999, None)),
    ],
)
def test_intervals_between_saves(text: str, expected: tuple[int | None, float | None]) -> None:
    assert parse_intervals(text) == expected


def test_a_new_file_is_written_once_and_then_replaced() -> None:
    keeper, learner, _ = saver(1, None)
    keeper.overwrite, learner.slices = False, 1
    keeper.save()
    learner.slices = 2
    keeper.save_at_once()
    keeper.save_at_once()
    assert learner.saves == [("m.npz", False, 1), ("m.npz", True, 2)]
