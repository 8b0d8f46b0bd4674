"""What is reported of validations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shell import dkrls

from dkrls_cli.cli.validating.results import read_limits
from dkrls_cli.errors import SettingError


def test_validate_exits_with_3_above_a_threshold(model: Path, globe: Path) -> None:
    words = ["validate", globe, "--holdout", "lat=0.2", "--repeats", "1", "--fail-above"]
    assert "Missed: rmse is" in dkrls(*words, "rmse=0", code=3).stderr
    assert dkrls(*words, "rmse=0", "-q", code=3).stderr == ""
    dkrls(*words, "rmse=1e9")
    told = dkrls("validate", globe, "--model", model, "--fail-above", "rmse=-1", "--json", code=3)
    assert json.loads(told.stdout)["missed"] == ["rmse"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("speed=1", "one of rmse"),
        ("rmes=1", "Did you mean"),
        ("rmse", "METRIC=VALUE"),
        ("mae=x", "'x'"),
    ],
)
def test_limits_are_metrics_and_numbers(text: str, reason: str) -> None:
    assert read_limits(["rmse=0.5", "bias=-1"]) == {"rmse": 0.5, "bias": -1.0}
    assert read_limits(None) == {}
    with pytest.raises(SettingError, match=reason):
        read_limits([text])
