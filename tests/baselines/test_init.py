"""The registry of baselines and its spellings."""

import pytest

from dkrls_cli.baselines import BASELINES, OTHER_SPELLINGS, canonical_name
from dkrls_cli.baselines.least_squares.skrls import SKRLS


def test_skrls_is_listed_under_the_name_of_the_paper() -> None:
    assert "skrls" in list(BASELINES)
    assert BASELINES["skrls"] is SKRLS
    assert SKRLS.paper_name == "S-KRLS"


def test_another_spelling_is_found_and_not_listed() -> None:
    assert BASELINES["aldkrls"] is SKRLS
    assert "aldkrls" in BASELINES
    assert "aldkrls" not in list(BASELINES)
    assert len(BASELINES) == len(list(BASELINES)) == 13


def test_every_spelling_leads_to_a_listed_name() -> None:
    assert set(OTHER_SPELLINGS.values()) <= set(BASELINES)
    assert not set(OTHER_SPELLINGS) & set(BASELINES)
    assert [canonical_name(name) for name in ("aldkrls", "skrls", "other")] == [
        "skrls",
        "skrls",
        "other",
    ]


def test_an_unknown_name_is_a_key_error() -> None:
    assert "magic" not in BASELINES
    with pytest.raises(KeyError):
        BASELINES["magic"]


def test_the_registry_cannot_be_written_to() -> None:
    with pytest.raises(TypeError):
        BASELINES["mine"] = SKRLS  # type: ignore[index]
