"""Texts of options, and what is refused of them."""

from __future__ import annotations

from typing import Any

import pytest

from dkrls_cli.cli import options as opt
from dkrls_cli.cli.texts import byte_count, read_level_settings, read_setting, split_names
from dkrls_cli.errors import SettingError


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (None, "auto"),
        ([], "auto"),
        (["3"], "3"),
        (["lat=3"], {"lat": "3"}),
        ([" lat = 3", "lon=a=b"], {"lat": "3", "lon": "a=b"}),
        (["lat=10,lon=20"], {"lat": "10", "lon": "20"}),
        (["lat=10 , lon=20", "time=30D"], {"lat": "10", "lon": "20", "time": "30D"}),
        (["lat=10,20"], {"lat": "10,20"}),
        (["b, c=3,d=4"], {"b, c": "3", "d": "4"}),
    ],
)
def test_a_setting_is_for_all_dimensions_or_for_each(
    values: list[str] | None, expected: Any
) -> None:
    assert read_setting(values, "--sigma") == expected


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["3", "4"], "--sigma 3 is for all dimensions and cannot stand beside another --sigma"),
        (["lat=3", "4"], "Name the dimension: --sigma DIM=4."),
        (["lat=3", "lat=4"], "--sigma was given twice for the same dimension, lat"),
        (["lat=3,lon=2,lon=1"], "--sigma was given twice for the same dimension, lon"),
    ],
)
def test_settings_that_contradict_are_refused(values: list[str], reason: str) -> None:
    with pytest.raises(SettingError, match=reason):
        read_setting(values, "--sigma")


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, None), ("", []), ("a", ["a"]), (" a, b ,,c,", ["a", "b", "c"])],
)
def test_names_are_separated_by_commas(text: str | None, expected: list[str] | None) -> None:
    assert split_names(text) == expected


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("500", 500),
        ("500B", 500),
        ("2kB", 2000),
        ("2 KB", 2000),
        ("2KiB", 2048),
        ("1.5MB", 1_500_000),
        ("4GB", 4 * 10**9),
        ("4gib", 4 * 1024**3),
        ("3T", 3 * 10**12),
        ("1TiB", 1024**4),
        ("1e9", 10**9),
        (" 7 ", 7),
    ],
)
def test_sizes(text: str, count: int) -> None:
    assert byte_count(text) == count


@pytest.mark.parametrize("text", ["", "0", "0GB", "-1", "lots", "4XB", "1.2.3", "4GBs", "1e400"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match="is not a size"):
        byte_count(text)


def test_a_kernel_with_parts_gives_a_whole_level() -> None:
    from dkrls_cli.cascade.kernels import Kernel
    from dkrls_cli.cascade.level import Level

    options = opt.KernelOptions(
        levels="x,t",
        kernel=["x=gaussian+constant:1", "t=matern12"],
        sigma=["x=2,t=3"],
        ridge=["x=0.5"],
        period=["x=none", "t=7"],
    )
    found = read_level_settings(options)
    assert found["levels"] == [Level("x", Kernel("gaussian", 2.0, constant=1.0), 0.5), "t"]
    assert (found["kernel"], found["sigma"]) == ({"t": "matern12"}, {"t": "3"})
    assert (found["ridge"], found["period"]) == ("auto", {"t": "7"})


def test_whole_levels_have_no_ridge_of_their_own_under_a_joint_one() -> None:
    from dkrls_cli.cascade.kernels import Kernel
    from dkrls_cli.cascade.level import Level

    options = opt.KernelOptions(
        levels="x",
        kernel=["x=gaussian+constant:1"],
        sigma=["x=2"],
        ridge=["1e-3"],
        period=["x=360"],
    )
    found = read_level_settings(options, "joint")
    assert found["levels"] == [Level("x", Kernel("gaussian", 2.0, 360.0, 1.0), 0.0)]
    assert found["ridge"] == "1e-3"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"sigma": ["x=2"], "ridge": ["x=1"], "period": ["x=none"]}, "Give --levels"),
        ({"levels": "x", "ridge": ["x=1"], "period": ["x=none"]}, "Give --sigma"),
        ({"levels": "x", "sigma": ["3"], "ridge": ["x=1"], "period": ["x=1"]}, "Give --sigma"),
        ({"levels": "x", "sigma": ["x=auto"], "ridge": ["x=1"], "period": ["x=1"]}, "--sigma"),
        ({"levels": "x", "sigma": ["x=2"], "period": ["x=none"]}, "Give --ridge"),
        ({"levels": "x", "sigma": ["x=2"], "ridge": ["x=1"]}, "Give --period"),
        (
            {"levels": "x", "sigma": ["x=2D"], "ridge": ["x=1"], "period": ["x=1"]},
            "--sigma 2D is not a number",
        ),
    ],
)
def test_a_level_that_is_not_whole_is_refused(given: dict[str, Any], reason: str) -> None:
    options = opt.KernelOptions(kernel=["x=gaussian+constant:1"], **given)
    with pytest.raises(SettingError, match=reason):
        read_level_settings(options)
