"""The search: its moves, its limits, and that it finds what is stored."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from bench.paper.small_data import last, small

from dkrls_cli.bench.paper import search as module
from dkrls_cli.bench.paper.entries import SEARCHED, RaceEntry
from dkrls_cli.bench.paper.published import synthetic_dataset
from dkrls_cli.bench.paper.run import SplitResult
from dkrls_cli.bench.paper.search import (
    SearchRange,
    fixed_settings,
    search_settings,
    trial_cells,
)
from dkrls_cli.bench.paper.search_results import SEARCH_RESULTS


def test_a_search_finds_what_is_stored() -> None:
    found = search_settings(synthetic_dataset("cross"), "qklms")
    assert replace(found, seconds=0.0) == replace(SEARCH_RESULTS["cross"]["qklms"], seconds=0.0)


def test_a_search_improves_on_where_it_starts() -> None:
    data = small((20, 20))
    start, end = (search_settings(data, "krls", trials) for trials in (1, 30))
    errors = [
        last(RaceEntry("krls", SEARCHED, f.parameters, f.scales, True), data).rmse
        for f in (start, end)
    ]
    assert errors[1] < errors[0] / 3


def test_neighbours_stay_within_their_bounds() -> None:
    searched = SearchRange(1.0, (4.0, 2.0), least=0.5, most=4.0)
    assert list(searched.neighbours(1.0)) == [4.0, 2.0, 0.5]
    assert list(SearchRange(1.0, (2.0,)).neighbours(3.0)) == [6.0, 1.5]


def test_sizes_are_the_paper_s_where_it_gives_them() -> None:
    assert fixed_settings("paper-3d", "swkrls") == {"window": 300}
    assert fixed_settings("cross", "swkrls") == {"window": 1000}  # those of the 2D data
    assert fixed_settings("paper-2d", "skrls") == {"budget": 1000}  # the paper's is unlimited
    assert fixed_settings("cross", "krls") == {}


def test_dkrls_sees_more_cells() -> None:
    assert (trial_cells("dkrls"), trial_cells("krls")) == (100_000, 4000)


class Trials:
    """Stands for a method whose error is a function of its settings."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: Any) -> None:
        self.entries: list[RaceEntry] = []
        self._error = error
        monkeypatch.setattr(module, "run_split", self.run)

    def run(self, entry: RaceEntry, task: Any, limits: Any) -> Any:
        assert (limits.seconds, limits.bytes) == (math.inf, math.inf)
        assert entry.prepared
        self.entries.append(entry)
        yield self._error(entry)


def test_a_search_ends_where_no_move_improves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is least at a ridge of 1e-8 and the first scales."""

    def error(entry: RaceEntry) -> SplitResult:
        off = abs(math.log10(entry.parameters["ridge"]) + 8)
        first = trials.entries[0].scales
        off += sum(abs(math.log(a / b)) for a, b in zip(entry.scales, first, strict=True))
        return SplitResult(1, 1, rmse=off)

    trials = Trials(monkeypatch, error)
    found = search_settings(small(), "krls")
    assert found.parameters == {"ridge": 1e-8}
    ranges = [np.ptp(axis) for axis in small().make_task(0).coordinates]
    assert found.scales == pytest.approx([size / 12 for size in ranges], rel=2e-3)
    assert len(trials.entries) < 60


@pytest.mark.parametrize("trials", [1, 2, 7])
def test_there_are_at_most_so_many_trials(trials: int, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = iter(range(1000, 0, -1))  # every move improves
    seen = Trials(monkeypatch, lambda entry: SplitResult(1, 1, rmse=float(next(errors))))
    search_settings(small(), "krls", trials)
    assert len(seen.entries) == trials


def test_settings_that_fail_or_have_a_note_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def error(entry: RaceEntry) -> SplitResult:
        ridge = entry.parameters["ridge"]
        if ridge > 1e-4:
            raise np.linalg.LinAlgError
        if ridge < 1e-4:
            return SplitResult(1, 1, rmse=0.1, note="no finite answer")
        return SplitResult(1, 1, rmse=1.0)

    Trials(monkeypatch, error)
    assert search_settings(small(), "krls").parameters["ridge"] == 1e-4


def test_all_scales_move_together_then_each_setting_then_each_scale() -> None:
    at = {"step": 0.4, "scales0": 1.0, "scales1": 2.0}
    moves = [list(move(at)) for move in module._all_moves("klms", 2)]
    assert moves[0] == [
        at | {"scales0": 1.6, "scales1": 3.2},
        at | {"scales0": 1 / 1.6, "scales1": 2 / 1.6},
    ]
    assert [m["step"] for m in moves[1]] == [0.8, 0.2, 0.52, 0.4 / 1.3]
    assert moves[2] == [at | {"scales0": 1.6}, at | {"scales0": 1 / 1.6}]
    assert moves[3] == [at | {"scales1": 3.2}, at | {"scales1": 1.25}]


def test_settings_are_rounded_to_three_digits() -> None:
    found = module._make_result({"step": 0.123456, "scales0": 9.87654}, {"budget": 7}, 2.0)
    assert found.parameters == {"step": 0.123, "budget": 7}
    assert (found.scales, found.seconds) == ((9.88,), 2.0)
