"""Names of methods as a user may write them."""

import pytest

from dkrls_cli.bench.methods import DKRLS, select_methods
from dkrls_cli.bench.paper.entries import PAPER_METHODS
from dkrls_cli.bench.streams.race import STREAM_METHODS
from dkrls_cli.errors import SettingError


def test_all_methods_are_selected_without_names() -> None:
    assert select_methods(None, ("a", "b")) == ["a", "b"]


def test_methods_come_once_and_in_the_order_of_the_list() -> None:
    assert select_methods(["c", "a", "c"], ("a", "b", "c")) == ["a", "c"]


@pytest.mark.parametrize("known", [PAPER_METHODS, STREAM_METHODS])
@pytest.mark.parametrize("name", ["skrls", "aldkrls"])
def test_skrls_is_selected_by_both_spellings(name: str, known: tuple[str, ...]) -> None:
    assert DKRLS in known
    assert select_methods([name], known) == ["skrls"]
    assert select_methods(["skrls", "aldkrls"], known) == ["skrls"]


@pytest.mark.parametrize(("wanted", "named"), [(["a", "magic"], "magic"), ([], "")])
def test_an_unknown_method_or_none_lists_all(wanted: list[str], named: str) -> None:
    with pytest.raises(SettingError, match=f"Unknown method '{named}'. Choose from: a, b."):
        select_methods(wanted, ("a", "b"))
