"""Methods with their settings: which race, in which order, and how they are shown."""

from __future__ import annotations

import math

from bench.paper.small_data import entry_of

from dkrls_cli.bench.paper.entries import (
    ONLINE_METHODS,
    OWN,
    PAPER,
    PAPER_METHODS,
    SEARCHED,
    RaceEntry,
    make_entries,
)
from dkrls_cli.bench.paper.search_results import SEARCH_RESULTS, SearchResult
from dkrls_cli.bench.rivals.registry import RIVALS


def names(dataset: str, *methods: str) -> list[tuple[str, str]]:
    return [(e.method, e.settings) for e in make_entries(dataset, methods)]


def test_every_method_has_an_entry_with_each_kind_of_settings() -> None:
    assert names("cross", "linear", "krls", "klms", "dkrls-auto", "dkrls-recursive", "dkrls") == [
        ("dkrls", PAPER),
        ("dkrls", SEARCHED),
        ("dkrls-auto", OWN),
        ("dkrls-recursive", PAPER),
        ("klms", SEARCHED),
        ("krls", PAPER),
        ("krls", SEARCHED),
        ("linear", OWN),
    ]


def test_methods_are_ours_then_online_ones_then_rivals() -> None:
    assert (
        "dkrls",
        "dkrls-auto",
        "dkrls-recursive",
        *ONLINE_METHODS,
        *RIVALS,
    ) == PAPER_METHODS
    assert "recursive" not in ONLINE_METHODS
    assert "skrls" in ONLINE_METHODS


def test_settings_found_now_take_the_place_of_those_stored() -> None:
    found = {"klms": SearchResult({"step": 0.5}, (1.0, 2.0), 3.0)}
    (entry,) = make_entries("cross", ["klms", "knlms"], found)
    assert entry == RaceEntry("klms", SEARCHED, {"step": 0.5}, (1.0, 2.0), True, 3.0)
    (stored,) = make_entries("cross", ["klms"])
    assert stored.parameters == SEARCH_RESULTS["cross"]["klms"].parameters


def test_the_recursion_has_the_settings_of_the_paper_s_method() -> None:
    recursion, ours = (entry_of(name, PAPER) for name in ("dkrls-recursive", "dkrls"))
    assert recursion.parameters == ours.parameters


def test_only_a_careful_user_shuffles_and_only_where_the_order_is_free() -> None:
    assert not entry_of("swkrls", PAPER).shuffled
    assert not entry_of("swkrls", PAPER).prepared
    assert entry_of("swkrls", SEARCHED).shuffled
    assert not entry_of("kkf", SEARCHED).shuffled
    assert entry_of("kkf", SEARCHED).prepared


def test_an_entry_as_text() -> None:
    entry = RaceEntry("swkrls", SEARCHED, {"ridge": 1e-6, "window": 1000}, (2.6, 3.0))
    assert entry.label == "swkrls*"
    assert entry.parameter_text == "ridge 1e-06, window 1000, scales 2.6 x 3"
    own = RaceEntry("linear", OWN)
    assert (own.label, own.parameter_text) == ("linear", "")
    assert math.isnan(own.search_seconds)
