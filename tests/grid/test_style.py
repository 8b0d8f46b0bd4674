"""Styles of several files become one, and grow with a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dkrls_cli.grid.axes import axis_of, index_axis, text_axis
from dkrls_cli.grid.style import (
    Companion,
    Packing,
    Style,
    grow_style,
    join_styles,
    key_values,
    same_values,
    source_coordinates,
)

PACKING = Packing("int16", {"scale_factor": np.float32(0.5), "add_offset": 3})


def style(times: Any, **companions: Companion) -> Style:
    return Style(
        packing=PACKING,
        companions=companions,
        coordinates={"t": np.asarray(times, float), "x": np.arange(2.0)},
    )


def period(*hours: int) -> Companion:
    return Companion(("t",), np.array(hours, "i4"), {"units": "hours"})


def height(value: float) -> Companion:
    return Companion((), np.asarray(value), {"units": "m"})


# One style ----------------------------------------------------------------------------------------


def test_a_packing_has_a_step_and_an_offset() -> None:
    assert (PACKING.scale, PACKING.offset) == (0.5, 3.0)
    assert (Packing("int8", {}).scale, Packing("int8", {}).offset) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("text", "names"),
    [(None, ()), ("crs", ("crs",)), ("crs: x y", ("crs",)), ("a: x y b: lat lon", ("a", "b"))],
)
def test_map_projections_are_named_plainly_or_with_their_coordinates(text: Any, names: Any) -> None:
    assert Style(grid_mapping=text).mappings == names


def test_errors_are_not_packed_as_the_data() -> None:
    packed = Style("float64", packing=PACKING, unlimited=("t",))
    assert packed.of_errors == Style("float32", unlimited=("t",))
    plain = Style("float64", -9.0)
    assert plain.of_errors is plain


def test_a_line_goes_before_the_history() -> None:
    assert Style().after("fit").global_attrs == {"history": "fit"}
    known = Style(global_attrs={"title": "a", "history": "made"}).after("fit").after("predict")
    assert known.global_attrs == {"title": "a", "history": "predict\nfit\nmade"}


def test_coordinates_are_those_that_the_user_writes() -> None:
    axes = [
        axis_of("lon", np.array([350.0, 10.0]), {"units": "degrees_east"}),
        text_axis("site", ["b", "a"]).take([1, 0]),
        index_axis("n", 3),
    ]
    found = source_coordinates(axes)
    assert {name: values.tolist() for name, values in found.items()} == {
        "lon": [350.0, 10.0],
        "site": ["a", "b"],
        "n": [0.0, 1.0, 2.0],
    }
    assert key_values(axes[0]) is axes[0].plain


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ([1.0, np.nan], [1.0, np.nan], True),
        ([1.0, np.nan], [1.0, 2.0], False),
        ([1, 2], [1.0, 2.0], True),
        (["a"], ["a"], True),
        (["a"], ["b"], False),
        ([1.0], [1.0, 1.0], False),
    ],
)
def test_values_are_compared_missing_ones_included(first: Any, second: Any, same: bool) -> None:
    assert same_values(np.array(first), np.array(second)) == same


# Several files ------------------------------------------------------------------------------------

BOTH = axis_of("t", np.array([0.0, 1.0, 2.0]))


def test_companions_of_files_are_joined() -> None:
    parts = [style([0, 1], p=period(6, 12), h=height(2.0)), style([2], p=period(18), h=height(2.0))]
    joined = join_styles(parts, "t", BOTH, alike=True)
    assert joined.companions["p"].values.tolist() == [6, 12, 18]
    assert joined.companions["h"].values == 2.0
    assert joined.coordinates["t"].tolist() == [0, 1, 2]
    assert joined.coordinates["x"].tolist() == [0, 1]
    assert joined.packing is PACKING


@pytest.mark.parametrize(
    ("second", "alike"),
    [
        (style([2]), True),  # a file without it
        (style([2], p=period(18)), False),  # other units of time
        (style([2], p=Companion(("t",), np.array([1]), {"units": "days"})), True),
        (style([2], p=Companion(("t", "x"), np.array([[1, 2]]), {"units": "hours"})), True),
    ],
)
def test_companions_that_do_not_go_together_are_left_out(second: Style, alike: bool) -> None:
    joined = join_styles([style([0, 1], p=period(6, 12)), second], "t", BOTH, alike=alike)
    assert joined.companions == {}
    assert joined.coordinates["t"].tolist() == [0, 1, 2]


def test_bounds_of_another_number_of_vertices_are_left_out() -> None:
    parts = [style([i], b=Companion(("t", "v"), np.zeros((1, 2 + i)))) for i in range(2)]
    assert join_styles(parts, "t", axis_of("t", [0.0, 1.0]), alike=True).companions == {}


def test_scalars_that_differ_between_files_are_left_out() -> None:
    parts = [style([0, 1], h=height(2.0)), style([2], h=height(10.0))]
    assert join_styles(parts, "t", BOTH, alike=True).companions == {}


def test_a_packing_is_kept_only_if_all_files_have_it() -> None:
    finer = Packing("int16", {"scale_factor": 0.25, "add_offset": 3})
    for other in (finer, Packing("int8", PACKING.attrs), None):
        parts = [style([0, 1]), Style(packing=other, coordinates={"t": np.array([2.0])})]
        assert join_styles(parts, "t", BOTH, alike=True).packing is None


# A model that grows -------------------------------------------------------------------------------


def test_a_style_grows_with_its_model() -> None:
    before = style([0, 1], p=period(6, 12), h=height(2.0))
    after = grow_style(before, BOTH, style([2], p=period(18), h=height(2.0)))
    assert after.coordinates["t"].tolist() == [0, 1, 2]
    assert after.companions["p"].values.tolist() == [6, 12, 18]
    assert after.companions["h"].values == 2.0


def test_a_slice_that_is_replaced_has_its_new_companions() -> None:
    after = grow_style(style([0, 1], p=period(6, 12)), BOTH.take([0, 1]), style([1], p=period(99)))
    assert after.companions["p"].values.tolist() == [6, 99]


def test_slices_that_left_a_window_are_gone() -> None:
    after = grow_style(style([0, 1], p=period(6, 12)), BOTH.take([2, 1]), style([2], p=period(18)))
    assert after.companions["p"].values.tolist() == [18, 12]
    assert after.coordinates["t"].tolist() == [2, 1]


def test_new_slices_without_companions_leave_none_along_their_axis() -> None:
    before = style([0, 1], p=period(6, 12), h=height(2.0))
    for added in (None, style([2], h=height(2.0))):
        after = grow_style(before, BOTH, added)
        assert list(after.companions) == ["h"]
        assert after.coordinates["t"].tolist() == [0, 1, 2]


def test_a_model_that_has_not_grown_keeps_its_style() -> None:
    before = style([0, 1, 2], p=period(6, 12, 18))
    assert grow_style(before, BOTH.take([2, 0])) is before
    assert grow_style(Style(), BOTH) == Style()


def test_limits_of_packed_numbers_are_unpacked():
    attrs = {"scale_factor": 0.01, "add_offset": 5.0, "valid_range": np.array([-100, 300], "i2")}
    assert Packing("int16", attrs).valid == {"valid_range": [4.0, 8.0]}
    ends = {"scale_factor": -0.5, "valid_min": np.int16(2), "valid_max": np.int16(8)}
    assert Packing("int16", ends).valid == {"valid_max": [-1.0], "valid_min": [-4.0]}
    assert Packing("int16", {"valid_range": np.array([0.0, 1.0])}).valid == {}
    assert Packing("int8", {"_Unsigned": "true", "valid_min": np.int8(-5)}).valid == {}
