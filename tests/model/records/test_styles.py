"""Styles of files in records."""

import json
from typing import Any

import numpy as np
import pytest
from kept_records import through_a_file

from dkrls_cli.grid.axes import axis_of, text_axis
from dkrls_cli.grid.style import Companion, Packing, Style
from dkrls_cli.model.records.styles import style_from, style_record

PACKING = Packing("int16", {"scale_factor": np.float32(0.01), "_FillValue": np.int16(-9)})
LONG = np.arange(40.0)
COMPANIONS = {
    "height": Companion((), np.asarray(2.0), {"units": "m"}),
    "crs": Companion((), np.asarray(np.int32(1)), {"a": np.float32(6.4)}),
    "name": Companion(("x",), np.array(["a", "bé"])),
    "code": Companion(("x",), np.array([b"a", b"bc"])),
    "label": Companion((), np.asarray("one")),
    "short": Companion(("t",), np.array([1, 2], "i2")),
    "holes": Companion(("t",), np.array([1.0, np.nan], "f4")),
    "long": Companion(("t", "x"), np.stack([LONG, -LONG], 1).astype("f4")),
    "long_holes": Companion(("t",), np.where(LONG > 3, LONG, np.nan)),
    "bytes": Companion(("t",), np.arange(40, dtype="u1")),
    "none": Companion(("t",), np.empty(0)),
}
STYLE = Style(
    "float32",
    -999.0,
    ("_FillValue", "missing_value"),
    PACKING,
    {"title": "a", "history": "b"},
    ("time",),
    "crs: x y",
    COMPANIONS,
    {"lat": ("bounds", "lat_bnds")},
    {"t": LONG, "x": np.array([0.5, 1.5]), "site": np.array(["a", "b"])},
)


def style_again(style: Style, axes: Any = ()) -> Style:
    header, arrays = style_record(style, axes)
    assert not any(array.dtype.hasobject for array in arrays.values())
    finite = [a for a in arrays.values() if a.dtype.kind == "f"]
    assert all(np.isfinite(array).all() for array in finite)  # a model file refuses others
    return style_from(through_a_file(header), arrays, axes)


def test_a_style_comes_back() -> None:
    again = style_again(STYLE)
    for name, one in COMPANIONS.items():
        found = again.companions[name]
        assert found.values.dtype == one.values.dtype, name
        assert found.values.shape == one.values.shape, name
        np.testing.assert_array_equal(found.values, one.values)
        assert (found.dims, found.attrs) == (one.dims, one.attrs)
    assert {k: v.tolist() for k, v in again.coordinates.items()} == {
        k: v.tolist() for k, v in STYLE.coordinates.items()
    }
    plain = [Style(**{**vars(s), "companions": {}, "coordinates": {}}) for s in (again, STYLE)]
    assert plain[0] == plain[1]
    assert type(again.packing.attrs["scale_factor"]) is np.float32  # type: ignore[union-attr]


def test_long_arrays_are_not_in_the_header() -> None:
    header, arrays = style_record(STYLE, ())
    assert len(json.dumps(header)) < 3000
    assert sum(array.size for array in arrays.values()) > 200


def test_a_style_of_an_older_program_is_read() -> None:
    old = {
        "dtype": "float32",
        "fill": -9.0,
        "global_attrs": {"title": "a"},
        "grid_mapping": "crs",
        "grid_mapping_attrs": {"grid_mapping_name": "mercator"},
    }
    found = style_from(old, {}, [axis_of("x", [1.0, 2.0])])
    assert (found.dtype, found.fill, found.marks) == ("float32", -9.0, ("_FillValue",))
    assert found.companions["crs"].attrs == {"grid_mapping_name": "mercator"}
    assert found.companions["crs"].dims == ()
    assert found.coordinates["x"].tolist() == [1.0, 2.0]
    assert style_from({**old, "grid_mapping": None}, {}, []).companions == {}


def test_a_style_without_coordinates_has_those_of_the_model() -> None:
    assert style_again(Style(), [axis_of("x", [1.0])]).coordinates["x"].tolist() == [1.0]
    known = style_again(Style(coordinates={"y": np.arange(2.0)}), [axis_of("x", [1.0])])
    assert list(known.coordinates) == ["y"]


def test_coordinates_of_the_axes_are_not_stored_again() -> None:
    axes = [axis_of("t", LONG), text_axis("site", ["a", "b"]), axis_of("x", [0.5, 1.0])]
    header, arrays = style_record(STYLE, axes)
    assert [header["coordinates"][dim] is None for dim in ("t", "x", "site")] == [True, False, True]
    assert not any(name.startswith("source_coordinates") for name in arrays)
    again = style_again(STYLE, axes)
    for dim, values in STYLE.coordinates.items():
        assert again.coordinates[dim].dtype == values.dtype
        np.testing.assert_array_equal(again.coordinates[dim], values)
    with pytest.raises(KeyError):
        style_from(header, arrays, axes[1:])


@pytest.mark.parametrize("damage", ["size", "type", "gone", "key"])
def test_a_damaged_style_is_refused(damage: str) -> None:
    header, arrays = style_record(STYLE, ())
    name = header["companions"]["long"]["values"]["array"]
    if damage == "size":
        arrays[name] = arrays[name][:3]
    elif damage == "type":
        arrays[name] = arrays[name].astype("f8")
    elif damage == "gone":
        del arrays[name]
    else:
        header["colour"] = "red"
    with pytest.raises((KeyError, ValueError)):
        style_from(header, arrays, ())
