"""Every number of a header is checked, and every failure names its key in one line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from dkrls_cli import Level, fit, load_model
from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cascade.splines.pieces import Piece
from dkrls_cli.errors import ModelFileError
from dkrls_cli.files import npz
from dkrls_cli.grid.axes import Axis, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.style import Packing, Style
from dkrls_cli.model.filing.header import MODEL, check_arrays, check_axes, check_header
from dkrls_cli.model.saving import model_record, save_models

RNG = np.random.default_rng(3)
X, T = np.linspace(0, 4, 12), np.arange(10.0)


def small_model(gaps: bool = False) -> Any:
    values = np.outer(np.sin(X), np.cos(T / 3)) + 0.1 * RNG.standard_normal((12, 10))
    if gaps:
        values[RNG.random(values.shape) < 0.2] = np.nan
    days = np.datetime64("2000-01-01") + T.astype("timedelta64[D]")
    coords = {"x": ("x", X, {"units": "m"}), "t": days}
    attrs = {"units": "K", "valid_min": np.float32(-9)}
    array = xr.DataArray(values, coords, ("x", "t"), "v", attrs)
    return fit(array, kernel="matern32", sigma=2.0, ridge=0.1)


def spline_model() -> Any:
    """A model whose first level has a spline with pieces."""
    kernel = Kernel("linear", 2.0, errors="matern52", pieces=(Piece("cubic", 0.2, 0.4),))
    x, t = np.linspace(0, 1, 12), np.arange(5.0)
    data = xr.DataArray(np.outer(np.sin(x), t), {"x": x, "t": t}, name="v")
    return fit(data, levels=[Level("x", kernel), Level("t", Kernel("gaussian", 3.0), 1e-6)])


MODELS = {"whole": small_model(), "gaps": small_model(True), "pieces": spline_model()}


def stored(kind: str = "whole") -> tuple[dict[str, Any], dict[str, Any]]:
    header, arrays = model_record(MODELS[kind])
    return {"version": 3, **json.loads(json.dumps(header))}, arrays


def load_changed(tmp_path: Path, header: dict[str, Any], arrays: dict[str, Any]) -> Any:
    header.pop("version", None)
    npz.write(tmp_path / "m.npz", header, arrays)
    return load_model(tmp_path / "m.npz")


def put(header: Any, key: list[str | int], value: Any) -> None:
    *path, last = key
    for step in path:
        header = header[step]
    header[last] = value


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the keys of all values of a header that are no objects or lists."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inner:
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))
        else:
            yield (*path, key)


WRONG: list[tuple[list[str | int], Any, str]] = [
    (["mean"], math.nan, "mean is NaN"),
    (["mean"], math.inf, "mean is Infinity"),
    (["dropped"], 2, "dropped is 2"),
    (["joint_ridge"], -1, "joint_ridge is -1"),
    (["compact"], 1, "compact is 1"),
    (["levels", 0, "sigma"], 0, r"levels\[0\]\.sigma is 0"),
    (["levels", 0, "sigma"], math.nan, r"levels\[0\]\.sigma is NaN"),
    (["levels", 0, "kernel"], "rbf", r"levels\[0\]\.kernel is \"rbf\""),
    (["levels", 0, "kernel"], "linear/rbf", r"levels\[0\]\.kernel\[0\] is \"rbf\""),
    (["levels", 0, "kernel"], "gaussian/cubic", "kernel 'gaussian/cubic' has the pieces of"),
    (["levels", 0, "kernel"], 3, r"levels\[0\]\.kernel is 3"),
    (["levels", 0, "pieces"], [], r"levels\[0\]\.pieces is"),
    (["levels", 0, "pieces"], [["cubic", 1]], r"levels\[0\]\.pieces\[0\] is"),
    (["levels", 0, "pieces"], [["rbf", 1, 2]], r"levels\[0\]\.pieces\[0\] is \"rbf\""),
    (["levels", 0, "pieces"], [["cubic", 1, math.inf]], r"levels\[0\]\.pieces\[0\]\[1\] is"),
    (["levels", 0, "pieces"], [["cubic", 1, 2]], "Invalid pieces"),
    (["levels", 1, "ridge"], math.inf, r"levels\[1\]\.ridge"),
    (["levels", 1, "constant"], math.nan, r"levels\[1\]\.constant"),
    (["levels", 1, "swing"], -1, r"levels\[1\]\.swing"),
    (["levels", 1, "cycle"], 0, r"levels\[1\]\.cycle"),
    (["levels", 1, "period"], "year", r"levels\[1\]\.period"),
    (["levels", 1, "name"], "x", "levels have a name twice: x, x"),
    (["levels"], [], "levels is"),
    (["hierarchy"], ["x", "x"], "hierarchy is not the names of the levels"),
    (["hierarchy"], ["x"], "hierarchy is not the names of the levels"),
    (["axes"], [], "axes is"),
    (["axes", 0, "dtype"], "U100000000", r"axes\[0\]\.dtype"),
    (["axes", 0, "turn"], -360, r"axes\[0\]\.turn"),
    (["axes", 1, "time"], ["days since 2000-01-01"], r"axes\[1\]\.time"),
    (["axes", 1, "time"], ["days since 2000-01-01", "lunar"], "Unknown calendar"),
    (["axes", 0, "labels"], ["a"] * 12, "the labels of 'x' have a text twice"),
    (["axes", 0, "labels"], ["a", "b"], "'x' has coordinates without a label"),
    (["axes", 0, "attrs"], {"a": {"dtype": "O", "values": 1}}, r"axes\[0\]\.attrs\.a\.dtype"),
    (["style", "dtype"], "int8", r"style\.dtype is \"int8\", expected one of float32, float64"),
    (["style", "packing"], {"dtype": "V9", "attrs": {}}, r"style\.packing\.dtype"),
    (["style", "fill"], "none", r"style\.fill"),
    (["attrs", "a"], {"dtype": "<U500000000", "values": "a"}, r"attrs\.a\.dtype"),
    (["bounds"], [math.nan, 1], r"bounds\[0\]"),
    (["bounds"], [2, 1], "bound"),
    (["bars", "errors"], ["a"], r"bars\.errors\[0\]"),
    (["bars", "scales", 0], math.inf, r"bars\.scales\[0\]"),
    (["bars", "factors"], [[1, 1, 1]], r"bars\.factors"),
    (["bars", "local"], [{"places": [1], "factors": [0]}], r"bars\.local\[0\]\.factors\[0\]"),
    (["bars", "local"], [{"places": [1]}], r"bars\.local\[0\]\.factors is missing"),
    (["origin", "missing"], {"share": 1}, r"origin\.missing\.\w+ is missing"),
    (["origin", "slices_added"], "3", r"origin\.slices_added"),
    (["origin", "notes"], "all is well", r"origin\.notes"),
    (["narrowed", "core"], {"dtype": "<f8", "shape": [-1]}, r"narrowed\.core\.shape\[0\]"),
    (["narrowed", "core"], {"dtype": "O"}, r"narrowed\.core\.dtype"),
    (["narrowed", "coordinates_1", "step"], 0, "Coordinates 0 and 1 of level 't' are the same"),
    (["narrowed", "coordinates_1", "count"], 2**25, r"narrowed\.coordinates_1\.count"),
    (["narrowed", "coordinates_1", "start"], [0] * 9, r"narrowed\.coordinates_1\.start"),
    (["narrowed", "coordinates_1", "start"], 1e300, "of level 't' are the same"),
    (["narrowed", "coordinates_1", "step"], 1e300, ""),
    (["coverage", "shape"], [-1, 1], r"coverage\.shape\[0\]"),
    (["members"], {"core": 3}, r"members\.core"),
    (["surprise"], 1, "surprise is a key that this program does not know"),
]


@pytest.mark.parametrize(("key", "value", "reason"), WRONG)
def test_a_header_that_says_what_cannot_be_is_refused(
    tmp_path: Path, key: list[str | int], value: Any, reason: str
) -> None:
    header, arrays = stored()
    put(header, key, value)
    with pytest.raises(ModelFileError, match=f"m.npz' is damaged .*{reason}") as refused:
        load_changed(tmp_path, header, arrays)
    assert "\n" not in str(refused.value)


def test_the_headers_of_this_program_pass_and_lack_nothing(tmp_path: Path) -> None:
    for kind in MODELS:
        header, arrays = stored(kind)
        check_header(header)
        load_changed(tmp_path, header, arrays)
        for key in MODEL:
            lacking = {name: value for name, value in stored(kind)[0].items() if name != key}
            with pytest.raises(ValueError, match=f"^{key} is missing"):
                check_header(lacking)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("value", [math.nan, -math.inf, -1, "x", None, [], {}, True, 10**400])
def test_whatever_stands_at_a_key_is_read_or_refused(
    kind: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No value at any place leads to another error than the one that is meant for it."""
    for place in places(stored(kind)[0]):
        header, arrays = stored(kind)
        put(header, list(place), value)
        monkeypatch.setattr(npz, "read", lambda _, found=(header, arrays): found)
        try:
            load_model("m.npz").predict()
        except ModelFileError as error:
            refused = str(error)
            assert refused.count("\n") == 0, place


def test_older_files_may_have_keys_that_are_forgotten() -> None:
    header, _ = stored()
    check_header({**header, "version": 2, "forgotten": [1]})
    with pytest.raises(ValueError, match="forgotten is a key"):
        check_header({**header, "forgotten": [1]})


def test_equal_steps_stand_for_no_more_numbers_than_memory_has() -> None:
    header, _ = stored()
    form = {"dtype": "<f8", "start": 0.0, "step": 1.0, "parts": 1, "count": 2**23}
    header["narrowed"] = {"a": form, "b": form}
    check_header(header)
    header["narrowed"] = {"a": form, "b": form, "c": {**form, "count": 1}}
    with pytest.raises(ValueError, match="narrowed stands for more than 16777216 numbers"):
        check_header(header)


def test_variables_are_named_by_their_place(tmp_path: Path) -> None:
    from dataclasses import replace

    one, other = (replace(MODELS["whole"], name=name) for name in "ab")
    save_models([one, other], tmp_path / "m.npz")
    header, arrays = npz.read(tmp_path / "m.npz")
    for change, reason in (
        ({"variables": 3}, "variables is 3"),
        ({"variables": []}, "variables is"),
        ({"variables": [{}]}, r"variables\[0\]\.name is missing"),
        ({"variables": [{"members": 1}]}, r"variables\[0\]\.members is 1"),
        ({"mean": math.nan}, r"variables\[0\]\.mean is NaN"),
    ):
        changed = {key: value for key, value in header.items() if key not in ("arrays", "digest")}
        changed |= change
        for key in ("format", "version"):
            changed.pop(key)
        npz.write(tmp_path / "c.npz", changed, arrays)
        with pytest.raises(ModelFileError, match=reason):
            load_model(tmp_path / "c.npz", "a")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("core", np.zeros((2, 2), np.int8)),
        ("coordinates_0", np.zeros((2, 2))),
        ("coordinates_1", np.array(["a"])),
        ("frame_0", np.zeros(3)),
        ("absent", np.zeros(3)),
        ("filled", np.zeros((1, 3), np.uint8)),
    ],
)
def test_arrays_are_of_the_kind_that_their_names_say(name: str, array: Any) -> None:
    with pytest.raises(ValueError, match=f"array '{name}' is of type {array.dtype}"):
        check_arrays({name: array})
    check_arrays({"companion_0": array})


def test_packed_numbers_can_be_unpacked(tmp_path: Path) -> None:
    from dataclasses import replace

    attrs = {"scale_factor": np.float32(-0.5), "add_offset": np.float64(3)}
    style = Style(packing=Packing("int16", attrs))
    header, arrays = model_record(replace(MODELS["whole"], style=style))
    header = json.loads(json.dumps(header))
    load_changed(tmp_path, header, arrays)
    for key, value in (("scale_factor", 0), ("scale_factor", "a"), ("add_offset", math.nan)):
        changed = json.loads(json.dumps(header))
        changed["style"]["packing"]["attrs"][key] = value
        with pytest.raises(ModelFileError, match=f"style.packing.attrs.{key}"):
            load_changed(tmp_path, changed, arrays)


def test_axes_have_labels_and_dates_for_their_numbers() -> None:
    check_axes([text_axis("a", ["x", "y"]), Axis("b", np.array([1.5]))])
    for wrong in ([0.5], [2.0], [-1.0]):
        with pytest.raises(ValueError, match="'a' has coordinates without a label"):
            check_axes([Axis("a", np.array(wrong), labels=("x", "y"))])
    with pytest.raises((ValueError, OverflowError)):
        check_axes([Axis("t", np.array([0.0, 1e300]), time=TimeScale("days since 2000-01-01"))])
