"""Options of the races: their defaults, and limits that contradict."""

from __future__ import annotations

import pytest

from dkrls_cli.cli.commands.bench.options import (
    CompetitionOptions,
    ExperimentOptions,
    GapOptions,
    QuickOptions,
    RealOptions,
    StreamRaceOptions,
)
from dkrls_cli.errors import SettingError


def test_seconds_are_those_given_or_the_default() -> None:
    assert ExperimentOptions().seconds(60.0) == 60.0
    assert ExperimentOptions(full=True).seconds(60.0) == 60.0
    assert ExperimentOptions(time_limit=7.0).seconds(60.0) == 7.0


@pytest.mark.parametrize("limit", [0.0, 9.0])
def test_a_full_run_has_no_limit(limit: float) -> None:
    with pytest.raises(SettingError, match=f"--time-limit {limit:g} and --full, which has no"):
        ExperimentOptions(full=True, time_limit=limit).seconds(60.0)


def test_slow_races_have_fewer_draws_and_more_time() -> None:
    assert (ExperimentOptions().seeds, QuickOptions().seeds) == (5, 3)
    assert (RealOptions().seeds, RealOptions().time_limit) == (3, 60.0)
    assert (GapOptions().seeds, GapOptions().time_limit) == (1, 300.0)
    assert (StreamRaceOptions().window, StreamRaceOptions().time_limit) == (200, 300.0)


def test_the_data_set_of_a_competition_is_found_by_default() -> None:
    assert (CompetitionOptions().dataset, CompetitionOptions().csv) == (None, None)
