"""The search of settings of online methods, one at a time."""

from __future__ import annotations

from typing import Any

import pytest
from bench.streams.known_streams import NO_LIMIT

from dkrls_cli.baselines import BASELINES
from dkrls_cli.bench.streams import search as module
from dkrls_cli.bench.streams.search import (
    STREAM_SETTINGS,
    make_factory,
    middle_settings,
    search_one_by_one,
    settings_text,
)


def test_every_online_method_is_searched_from_settings_it_takes() -> None:
    assert set(STREAM_SETTINGS) == set(BASELINES)
    for name, lists in STREAM_SETTINGS.items():
        for key, values in lists.items():
            for value in values:
                assert make_factory(name, {**middle_settings(lists), key: value}, 1)().size == 0


def test_a_search_goes_downhill_one_setting_at_a_time() -> None:
    lists = {"feed": ("a", "b"), "x": (1, 2, 3, 4, 5), "y": (1, 2, 3)}

    def error(choice: Any) -> float:
        return (choice["x"] - 4) ** 2 + (choice["y"] - 1) ** 2 + (choice["feed"] == "b")

    found = search_one_by_one(lists, error, NO_LIMIT)
    assert found.settings == {"feed": "a", "x": 4, "y": 1}
    assert 1 < found.tried < 30
    hurried = search_one_by_one(lists, error, 0.0)
    assert hurried.settings == middle_settings(lists)
    assert hurried.tried == 1


def test_a_search_goes_through_the_settings_twice_at_most() -> None:
    """Each setting is best at the place of the one after it: one pass moves one of them."""
    lists = {"x": (0, 1, 2, 3, 4), "y": (0, 1, 2, 3, 4)}
    tried: list[tuple[int, int]] = []

    def error(settings: Any) -> float:
        tried.append((settings["x"], settings["y"]))
        return abs(settings["x"] - settings["y"] - 1) + 0.1 * abs(settings["y"] - 4)

    found = search_one_by_one(lists, error, NO_LIMIT)
    assert len(tried) == len(set(tried)) == found.tried
    assert found.settings in ({"x": 3, "y": 2}, {"x": 4, "y": 3})


def test_nothing_is_tried_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([0.0, 0.5, 1.5, 2.5, *[9.0] * 50])
    monkeypatch.setattr(module, "perf_counter", lambda: next(readings))
    found = search_one_by_one({"x": (3, 2, 1, 0)}, lambda s: s["x"], 2.0)
    assert found.tried == 3  # the middle, and two more in time
    assert found.settings == {"x": 1}
    assert found.seconds == 9.0


def test_factories_scale_the_radius_and_give_a_sigma_per_dimension(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[dict[str, Any]] = []
    classes = {name: lambda **given: seen.append(given) for name in ("qklms", "recursive")}
    monkeypatch.setattr(module, "BASELINES", classes)
    make_factory("qklms", {"feed": None, "sigma": 4.0, "radius": 0.5}, 2)()
    make_factory("recursive", {"feed": None, "sigmas": 3.0, "time_sigma": 7.0}, 2)()
    assert seen == [{"sigma": 4.0, "radius": 2.0}, {"sigmas": [3.0, 3.0, 7.0]}]


def test_settings_as_text_and_their_middle() -> None:
    assert settings_text({"a": 1, "b": 0.5}) == "a 1, b 0.5"
    assert middle_settings({"a": (1, 2, 3), "b": (1, 2)}) == {"a": 2, "b": 2}
