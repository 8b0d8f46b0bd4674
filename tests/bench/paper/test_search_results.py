"""Stored settings: complete, usable, and within the ranges of the search."""

from __future__ import annotations

from dkrls_cli.baselines import BASELINES
from dkrls_cli.bench.paper.entries import ONLINE_METHODS
from dkrls_cli.bench.paper.published import DATASETS
from dkrls_cli.bench.paper.search import SEARCH_RANGES, fixed_settings
from dkrls_cli.bench.paper.search_results import SEARCH_RESULTS


def test_every_method_has_settings_for_every_dataset() -> None:
    assert set(SEARCH_RESULTS) == set(DATASETS)
    for name in DATASETS:
        assert set(SEARCH_RESULTS[name]) == {"dkrls", *ONLINE_METHODS} == set(SEARCH_RANGES)
        dimensions = 3 if name == "paper-3d" else 2
        for method, found in SEARCH_RESULTS[name].items():
            assert len(found.scales) == dimensions
            assert found.seconds > 0
            if method != "dkrls":
                BASELINES[method](**found.parameters)


def test_stored_settings_are_those_of_the_search() -> None:
    for name in DATASETS:
        for method, found in SEARCH_RESULTS[name].items():
            fixed = fixed_settings(name, method)
            assert set(found.parameters) == {*SEARCH_RANGES[method], *fixed}
            assert {key: found.parameters[key] for key in fixed} == fixed
            for key, searched in SEARCH_RANGES[method].items():
                assert 0.99 * searched.least <= found.parameters[key] <= searched.most
