"""Whatever an input holds, a command ends with an answer or with one clear line.

A few hundred cases run here; `python tests/fuzz/run.py --count 10000` runs many more, each in a
process of its own with limits on time and memory.
"""

from __future__ import annotations

import sys
import warnings
from unittest import mock

import pytest
from fuzz.cases import MAKERS, Place, make_case, make_place
from typer.testing import CliRunner

from dkrls_cli.cli import app
from dkrls_cli.cli.terminal import progress

CASES = 10  # of each kind
MANY = 130


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return make_place(tmp_path_factory.mktemp("fuzz"))


def run_case(kind: str, seed: int, place: Place) -> None:
    case = make_case(kind, seed, place)
    where = f"{kind} {seed}: {case.words}"
    with (
        mock.patch.object(sys, "argv", ["dkrls", *case.words]),
        mock.patch.object(progress, "FIRST_AFTER", 1e6),
    ):
        result = CliRunner().invoke(app, case.words, input=case.stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), where
    assert result.exit_code in (0, 1, 2, 3), where
    assert "should not happen" not in result.stderr, f"{where}: {result.stderr}"
    assert "Traceback" not in result.output, where
    assert "\x1b" not in result.stderr, where
    errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == (result.exit_code in (1, 2)), f"{where}: {result.stderr}"


def run_cases(kind: str, seeds: range, place: Place) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="numpy.ndarray size changed")
        warnings.filterwarnings("ignore", category=ResourceWarning)  # of files that libraries leave
        for seed in seeds:
            run_case(kind, seed, place)


@pytest.mark.parametrize("kind", MAKERS)
def test_hostile_inputs_are_answered_or_refused(kind: str, place: Place) -> None:
    run_cases(kind, range(CASES), place)


@pytest.mark.slow
@pytest.mark.parametrize("kind", MAKERS)
def test_many_hostile_inputs_are_answered_or_refused(kind: str, place: Place) -> None:
    run_cases(kind, range(CASES, MANY), place)


@pytest.mark.parametrize("kind", MAKERS)
def test_a_seed_gives_the_same_case_again(kind: str, place: Place) -> None:
    first = make_case(kind, 3, place)
    assert make_case(kind, 3, place) == first
    others = [make_case(kind, seed, place) for seed in range(4, 12)]
    assert any(other != first for other in others) or kind in ("toml", "table")
