"""What predict writes is what it was given: values, coordinates, attributes, bytes."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import sample_files as files
import xarray as xr
import zarr
from sample_files import EAST, LAT, LON, NORTH, grid, latlon, timed
from shell import dkrls, refusal, spawn

from dkrls_cli import __version__, fit
from dkrls_cli.errors import InputError, OutputError, SettingError
from dkrls_cli.files.writing import Field, history_line, write_grid, write_netcdf_to_stdout
from dkrls_cli.grid.axes import Axis, axis_of, index_axis, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.rotated import true_places
from dkrls_cli.grid.style import Companion, Packing, Style, source_coordinates

TABLES = {"long_table", "zipped_table", "wide_table"}
DIGITS = {"time_stamps": "time"}  # read as dates, and written as days: see test_digits.py
NOT_KEPT = ("bounds", "coordinates", "cell_measures", "dtype", "missing_value", "_FillValue")


def opened(path: Path, **options: Any) -> xr.Dataset:
    kind = {"engine": "zarr", "consolidated": False} if path.suffix == ".zarr" else {}
    with xr.open_dataset(path, **kind, **options) as dataset:
        return dataset.load()


def silently(path: Path, **options: Any) -> xr.Dataset | None:
    """The dataset, or None if xarray has something to say about it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return opened(path, **options)
        except (Warning, ValueError):
            return None


def plain(path: Path) -> xr.Dataset:
    """As the file has it, but unpacked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return opened(path, decode_times=False, decode_coords="all")


def answered(source: Path, folder: Path, name: str = "out.nc", *options: Any) -> Path:
    dkrls("fit", source, "-q", "-o", folder / "m.npz", "--overwrite")
    dkrls("predict", folder / "m.npz", "-o", folder / name, *options)
    return folder / name


def kept(attrs: Any) -> dict[str, Any]:
    return {k: np.asarray(v).tolist() for k, v in attrs.items() if k not in NOT_KEPT}


@pytest.mark.parametrize("name", [name for name in files.WHOLE if name not in TABLES])
def test_the_training_grid_comes_back(name: str, tmp_path: Path) -> None:
    source = files.WHOLE[name](tmp_path)
    out = answered(source, tmp_path)
    reads_without_a_word(out, decode_times=silently(source) is not None)
    before, after = plain(source), plain(out)
    (variable,) = [n for n in after.data_vars if n in before.data_vars]
    old = before[variable]
    new = after[variable]
    assert new.dims == old.dims
    spread = float(old.max()) - float(old.min()) or 1.0
    assert np.abs(new.values - old.values.astype(float)).max() <= 1e-6 * spread
    assert kept(new.attrs) == kept(before[variable].attrs)
    for dim in old.dims if "beside_a_bare" not in name else ():
        assert (dim in new.coords) == (dim in old.coords)
        if dim in new.coords and dim != DIGITS.get(name):
            same_coordinate(new[dim], old[dim])
    older = before.attrs.pop("history", None)
    predicted, fitted, *others = after.attrs.pop("history").split("\n")
    assert ": dkrls predict m.npz " in predicted
    assert ": dkrls fit " in fitted
    assert others == ([older] if older else [])
    assert kept(after.attrs) == kept(before.attrs)
    stored_alike(new, before[variable])
    grows = {dim for dim in before.encoding.get("unlimited_dims", ()) if dim in new.dims}
    assert after.encoding.get("unlimited_dims", set()) == grows


def stored_alike(new: xr.DataArray, old: xr.DataArray) -> None:
    """The type, the packing and the mark of missing values are those of the source."""
    stored = [np.dtype(array.encoding["dtype"]).newbyteorder("=") for array in (new, old)]
    packed = "scale_factor" in old.encoding
    if stored[1].kind == "f" or packed:
        assert stored[0] == stored[1]
    else:
        assert stored[0].kind == "f"
        assert np.finfo(stored[0]).nmant >= min(8 * stored[1].itemsize, 52)
    if packed:
        scale, offset = (
            old.encoding.get(k, d) for k, d in (("scale_factor", 1), ("add_offset", 0))
        )
        integers = [np.rint((array.astype(float) - offset) / scale) for array in (new, old)]
        np.testing.assert_array_equal(*integers)
    for key in ("scale_factor", "add_offset", "_FillValue", "_Unsigned"):
        marks = [array.encoding.get(key) for array in (new, old)]
        assert marks[0] == marks[1] or (np.isnan(marks[0]) and np.isnan(marks[1]))


def reads_without_a_word(path: Path, *, decode_times: bool = True) -> None:
    assert silently(path, decode_times=decode_times) is not None
    if shutil.which("ncdump"):
        told = subprocess.run(["ncdump", "-h", path], capture_output=True, text=True, check=True)
        assert told.stderr == ""


def same_coordinate(new: xr.DataArray, old: xr.DataArray) -> None:
    np.testing.assert_array_equal(new.values, old.values.astype(new.dtype))
    calendars = [array.attrs.pop("calendar", "standard").lower() for array in (new, old)]
    assert calendars[0] == calendars[1]
    assert kept(new.attrs) == kept(old.attrs)
    stored = [np.dtype(array.encoding.get("dtype") or array.dtype) for array in (new, old)]
    packed = "scale_factor" in old.encoding
    texts = all(array.dtype.kind in "USO" for array in (new, old))
    assert packed or texts or stored[0].newbyteorder("=") == stored[1].newbyteorder("=")


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_table_comes_back(name: str, tmp_path: Path) -> None:
    source = files.WHOLE[name](tmp_path)
    out = answered(source, tmp_path, "out.csv")
    reads_without_a_word(answered(source, tmp_path, "out.nc"))
    rows = [line.split(",") for line in out.read_text().splitlines()[1:]]
    if name == "wide_table":
        assert rows[4] == ["2001", "FEB", "2.0"]
    else:
        assert rows[4] == ["2020-01-02", "b", "6.0"]


@pytest.mark.parametrize("calendar", ["standard", "360_day", "noleap", "julian"])
def test_dates_come_back_as_dates(calendar: str, tmp_path: Path) -> None:
    source = timed(tmp_path / "a.nc", "hours since 1999-01-01 06:00", calendar)
    before, after = opened(source), opened(answered(source, tmp_path))
    assert after.time.values.tolist() == before.time.values.tolist()
    assert after.time.dt.calendar == before.time.dt.calendar
    assert after.time.encoding["units"] == before.time.encoding["units"]


@pytest.mark.parametrize(
    "name", ["zarr_store", "labels_as_strings", "time_360_day", "odd_attributes"]
)
def test_zarr_is_written_and_read(name: str, tmp_path: Path) -> None:
    source = files.WHOLE[name](tmp_path)
    out = answered(source, tmp_path, "out.zarr")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        after = xr.open_dataset(out, engine="zarr").load()
        xr.open_zarr(out).load()
    np.testing.assert_allclose(after.t, opened(source).t, rtol=1e-6)
    assert {path.name for path in tmp_path.glob(".*")} == set()
    dkrls("predict", tmp_path / "m.npz", "-o", f"{out}/", "--overwrite")
    assert "exists already" in refusal("predict", tmp_path / "m.npz", "-o", out)


def test_zarr_attributes_that_netcdf_does_not_have_become_texts(tmp_path: Path) -> None:
    source = tmp_path / "a.zarr"
    attrs = {"flag": True, "nothing": None, "tree": {"a": [1, 2]}, "empty": [], "mixed": [1, "b"]}
    xr.Dataset({"t": (("lat",), files.field(LAT), attrs)}, {"lat": LAT}, attrs).to_zarr(
        source, consolidated=False, zarr_format=3
    )
    after = opened(answered(source, tmp_path))
    assert after.t.attrs["flag"] == 1
    assert after.t.attrs["tree"] == '{"a": [1, 2]}'
    assert after.attrs["nothing"] == "null"


def test_fill_value_projection_and_units_are_kept(tmp_path: Path) -> None:
    source = files.WHOLE["two_fill_values"](tmp_path)
    after = opened(answered(source, tmp_path), mask_and_scale=False)
    assert after.t.dtype == np.float32
    assert after.t.attrs["_FillValue"] == -999
    out = answered(files.WHOLE["projected_grid_with_latitudes"](tmp_path), tmp_path, "p.nc")
    mapped = opened(out)
    assert mapped.t.attrs["grid_mapping"] == "crs"
    assert mapped.crs.attrs == {"grid_mapping_name": "lambert_conformal_conic", "a": 6.4e6}


def test_coordinates_between_integers_are_not_cut(tmp_path: Path) -> None:
    source = files.WHOLE["integer_coordinates"](tmp_path)
    out = opened(answered(source, tmp_path, "o.nc", "--at", "x=0.5,1.5"))
    assert out.x.values.tolist() == [0.5, 1.5]
    whole = opened(answered(source, tmp_path, "w.nc", "--at", "x=3,1"))
    assert whole.x.dtype == np.int32


def test_longitudes_are_written_as_they_were_asked_for(tmp_path: Path) -> None:
    out = answered(latlon(tmp_path / "a.nc"), tmp_path, "o.nc", "--at", "lon=-90,540,33")
    assert opened(out).lon.values.tolist() == [-90, 540, 33]


# History ------------------------------------------------------------------------------------------


def test_history_has_base_names_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    words = ["dkrls", "predict", "/home/me/m.npz", "--like=../x/grid.nc", "-o", "a/b c.nc", "out/"]
    line = history_line(words)
    assert line.startswith(
        "1970-01-01T00:00:00Z: dkrls predict m.npz --like=grid.nc -o 'b c.nc' out ("
    )


def test_a_wrong_epoch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(SettingError, match="SOURCE_DATE_EPOCH is 'yesterday'"):
        history_line([])


def test_newer_lines_of_history_come_first(tmp_path: Path) -> None:
    first = answered(latlon(tmp_path / "a.nc"), tmp_path)
    second = answered(first, tmp_path, "again.nc")
    lines = opened(second).attrs["history"].split("\n")
    assert [line.split(": ")[1].split(" (")[0] for line in lines] == [
        "dkrls predict m.npz -o again.nc",
        "dkrls fit out.nc -q -o m.npz --overwrite",
        "dkrls predict m.npz -o out.nc",
        "dkrls fit a.nc -q -o m.npz --overwrite",
        "made",
    ]


@pytest.mark.parametrize("name", ["four_dimensions", "labels_as_strings", "time_360_day"])
def test_two_runs_give_the_same_bytes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    source, seen = files.WHOLE[name](tmp_path), []
    for run in ("one", "two"):
        (folder := tmp_path / run).mkdir()
        answered(source, folder)
        dkrls("predict", folder / "m.npz", "-o", folder / "o.csv")
        seen.append([(folder / f).read_bytes() for f in ("m.npz", "out.nc", "o.csv")])
    assert seen[0] == seen[1]


@pytest.mark.slow
def test_two_processes_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    model = tmp_path / "m.npz"
    axes = {"time": (np.arange(9.0), {"units": "days since 2000-1-1"}), "lon": (LON, EAST)}
    dkrls("fit", grid(tmp_path / "a.nc", axes), "-o", model)
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        assert (
            spawn("predict", model, "--at", "time=2000-01-02", "-o", folder / "o.nc").returncode
            == 0
        )
    assert (tmp_path / "one/o.nc").read_bytes() == (tmp_path / "two/o.nc").read_bytes()


# Nothing half done --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["o.nc", "o.csv", "o.zarr", "o.jsonl"])
def test_a_failure_leaves_nothing_behind(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m.npz"
    dkrls("fit", grid(tmp_path / "a.nc", {"lat": (LAT, NORTH)}), "-o", model)
    if name.endswith("zarr"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".zgroup").write_text("old")
    else:
        (tmp_path / name).write_text("old")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", "o.nc")

    monkeypatch.setattr(xr.Dataset, "to_netcdf", full)
    monkeypatch.setattr(xr.Dataset, "to_zarr", full)
    monkeypatch.setattr("dkrls_cli.files.text.rows.RowWriter.write_cells", full)
    line = refusal("predict", model, "-o", tmp_path / name, "--overwrite")
    assert line == f"Error: '{tmp_path / name}' cannot be written (No space left on device)."
    assert {path.name for path in tmp_path.iterdir()} == {"a.nc", "m.npz", name}
    kept = tmp_path / name / ".zgroup" if name.endswith("zarr") else tmp_path / name
    assert kept.read_text() == "old"


# Grids written directly ---------------------------------------------------------------------------

AXES = (
    Axis("time", np.array([0.0, 1.5]), "float32", TimeScale("days since 2000-01-01", "noleap")),
    axis_of("lon", np.array([350, 10], "int16"), {"units": "degrees_east", "bad": {"a": None}}),
    text_axis("site", ["a", "bé"]),
    index_axis("n", 2),
)
VALUES = np.arange(16.0).reshape(2, 2, 2, 2)


def test_a_grid_is_written_with_its_style(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    style = Style(
        "float32",
        -999.0,
        global_attrs={"title": "x", "history": "old"},
        grid_mapping="crs",
        companions={"crs": Companion((), np.asarray(np.int32(0)), {"a": 1.5})},
    )
    fields = [
        Field("t", VALUES, AXES, {"units": "K", "ok": True}, style),
        Field("t_std", VALUES + 1, AXES, {}, style),
    ]
    path = str(tmp_path / "a.nc")
    assert write_grid(path, fields, ["dkrls", "x/y.nc"], overwrite=False) == []
    raw = opened(Path(path), decode_times=False, mask_and_scale=False)
    np.testing.assert_array_equal(raw.t, VALUES)
    np.testing.assert_array_equal(raw.t_std, VALUES + 1)
    assert raw.t.dtype == raw.t_std.dtype == np.float32
    for name in ("t", "t_std"):
        assert raw[name].attrs["_FillValue"] == -999
        assert raw[name].attrs["grid_mapping"] == "crs"
    assert raw.t.attrs["ok"] == 1
    assert raw.crs.attrs == {"a": 1.5}
    assert raw.time.attrs == {"units": "days since 2000-01-01", "calendar": "noleap"}
    assert (raw.time.dtype, raw.time.values.tolist()) == (np.float32, [0.0, 1.5])
    assert (raw.lon.dtype, raw.lon.values.tolist()) == (np.int16, [350, 10])
    assert raw.lon.attrs == {"units": "degrees_east", "bad": '{"a": null}'}
    assert raw.site.values.tolist() == ["a", "bé"]
    assert "n" not in raw.coords
    first, second = raw.attrs["history"].split("\n")
    assert first.startswith("1970-01-01T00:00:00Z: dkrls y.nc (dkrls ")
    assert second == "old"
    assert raw.attrs["title"] == "x"


def test_a_style_without_fill_or_projection_adds_none(tmp_path: Path) -> None:
    path = str(tmp_path / "a.nc")
    write_grid(path, [Field("t", VALUES[0], AXES[1:])], ["dkrls"], overwrite=False)
    raw = opened(Path(path), mask_and_scale=False)
    assert raw.t.attrs == {}
    assert raw.t.dtype == np.float64
    assert list(raw.data_vars) == ["t"]
    assert raw.attrs["history"].count("\n") == 0


@pytest.mark.parametrize("name", ["a.nc", "a.zarr", "a.zarr/"])
def test_an_existing_target_is_kept_unless_it_may_be_replaced(tmp_path: Path, name: str) -> None:
    path, grids = f"{tmp_path}/{name}", [[Field("t", VALUES[0] + i, AXES[1:])] for i in range(2)]
    write_grid(path, grids[0], ["dkrls"], overwrite=False)
    with pytest.raises(OutputError, match="exists already"):
        write_grid(path, grids[1], ["dkrls"], overwrite=False)
    assert opened(Path(path)).t.values.flat[0] == 0
    write_grid(path, grids[1], ["dkrls"], overwrite=True)
    assert opened(Path(path)).t.values.flat[0] == 1
    assert [path.name for path in tmp_path.iterdir()] == [name.rstrip("/")]


def test_a_library_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: Any, **__: Any) -> None:
        raise ModuleNotFoundError("No module named 'zarr'", name="zarr")

    monkeypatch.setattr(xr.Dataset, "to_zarr", absent)
    with pytest.raises(InputError, match=r"needs zarr to be written: pip install"):
        write_grid(f"{tmp_path}/a.zarr", [Field("t", VALUES, AXES)], ["dkrls"], overwrite=False)


def test_a_file_goes_to_stdout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdout = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", stdout)
    write_netcdf_to_stdout([Field("t", VALUES[0], AXES[1:])], ["dkrls"])
    (tmp_path / "copy.nc").write_bytes(stdout.buffer.getvalue())
    np.testing.assert_array_equal(opened(tmp_path / "copy.nc").t, VALUES[0])


# What stands beside the data ----------------------------------------------------------------------

PLACES = axis_of("x", np.array([1.0, 2.0, 4.0]), {"units": "m", "actual_range": [1.0, 4.0]})
TIMES = Axis("time", np.arange(4.0), "float64", TimeScale("days since 2000-01-01"))
GRID = np.arange(12.0).reshape(4, 3)
BESIDE = Style(
    unlimited=("time",),
    grid_mapping="crs: x y",
    companions={
        "crs": Companion((), np.asarray(np.int32(3)), {"grid_mapping_name": "mercator"}),
        "height": Companion((), np.asarray(2.0), {"units": "m"}),
        "station": Companion(("x",), np.array(["a", "b", "c"])),
        "code": Companion(("x",), np.array([b"aa", b"b", b"c"])),
        "depth": Companion(("time", "x"), np.where(GRID > 1, GRID, np.nan), {"bounds": "depths"}),
        "depths": Companion(("time", "x", "nv"), np.stack([GRID, GRID + 1], 2)),
        "x_bnds": Companion(("x", "bnds"), np.array([[0.0, 1.5], [1.5, 3.0], [3.0, 5.0]])),
    },
    bounds={"x": ("bounds", "x_bnds")},
    coordinates=source_coordinates([TIMES, PLACES]),
)


def write(folder: Path, *fields: Field, name: str = "a.nc", **options: Any) -> xr.Dataset:
    """The raw content of a file, written without notes."""
    path = folder / name
    assert write_grid(str(path), fields, ["dkrls"], overwrite=True, **options) == []
    return opened(path, decode_times=False, mask_and_scale=False, decode_coords=False)


@pytest.mark.parametrize("name", ["a.nc", "a.zarr"])
def test_companions_are_written_and_named(tmp_path: Path, name: str) -> None:
    raw = write(tmp_path, Field("t", GRID, [TIMES, PLACES], {}, BESIDE), name=name)
    assert raw.t.attrs["coordinates"] == "height station code depth"
    assert raw.t.attrs["grid_mapping"] == "crs"  # there is no y
    assert raw.height.values == 2.0
    assert raw.height.dims == ()
    assert raw.station.values.tolist() == ["a", "b", "c"]
    assert raw.code.values.astype(str).tolist() == ["aa", "b", "c"]
    np.testing.assert_array_equal(raw.depth, BESIDE.companions["depth"].values)
    assert np.isnan(raw.depth.attrs["_FillValue"])
    assert raw.depth.attrs["bounds"] == "depths"
    assert raw.depths.dims == ("time", "x", "nv")
    assert raw.x.attrs == {"units": "m", "actual_range": pytest.approx([1, 4]), "bounds": "x_bnds"}
    assert raw.x_bnds.values[1].tolist() == [1.5, 3.0]
    assert "_FillValue" not in {*raw.x.attrs, *raw.height.attrs, *raw.x_bnds.attrs}
    decoded = opened(tmp_path / name, decode_coords="all")
    assert list(decoded.data_vars) == ["t"]


def test_a_part_of_the_grid_has_its_part_of_the_companions(tmp_path: Path) -> None:
    axes = [TIMES.take([2]), PLACES.take([2, 0])]
    raw = write(tmp_path, Field("t", GRID[[2]][:, [2, 0]], axes, {}, BESIDE))
    assert raw.station.values.tolist() == ["c", "a"]
    assert raw.depth.values.tolist() == [[8.0, 6.0]]
    assert raw.x_bnds.values.tolist() == [[3, 5], [0, 1.5]]
    assert "actual_range" in raw.x.attrs


def test_between_coordinates_only_what_is_known_is_written(tmp_path: Path) -> None:
    axes = [TIMES, PLACES.at([1.0, 3.0])]
    raw = write(tmp_path, Field("t", GRID[:, :2], axes, {}, BESIDE))
    assert set(raw.data_vars) == {"t", "crs", "height", "x_bnds"}
    assert raw.t.attrs["coordinates"] == "height"
    assert raw.x.attrs == {"units": "m", "bounds": "x_bnds"}
    assert raw.x_bnds.values.tolist() == [[0, 2], [2, 4]]
    alone = write(tmp_path, Field("t", GRID[:, :1], [TIMES, PLACES.at([3.0])], {}, BESIDE))
    assert "x_bnds" not in alone
    assert "bounds" not in alone.x.attrs


def test_a_projection_names_coordinates_that_are_there(tmp_path: Path) -> None:
    y = axis_of("y", np.arange(4.0))
    raw = write(tmp_path, Field("t", GRID, [y, PLACES], {}, BESIDE))
    assert raw.t.attrs["grid_mapping"] == "crs: x y"


def test_an_axis_is_not_written_again_as_a_scalar(tmp_path: Path) -> None:
    style = Style(companions={"time": Companion((), np.asarray(7.0))})
    raw = write(tmp_path, Field("t", GRID, [TIMES, PLACES], {}, style))
    assert raw.time.values.tolist() == [0, 1, 2, 3]
    assert "coordinates" not in raw.t.attrs


# Several variables --------------------------------------------------------------------------------


def test_variables_of_other_dimensions_share_a_file(tmp_path: Path) -> None:
    style = Style("float32", global_attrs={"title": "second"})
    first = Style(**{**vars(BESIDE), "global_attrs": {"title": "first"}})
    raw = write(
        tmp_path,
        Field("t", GRID, [TIMES, PLACES], {"units": "K"}, first),
        Field("p", GRID[0], [PLACES], {"units": "Pa"}, BESIDE),
        Field("q", GRID[:, 0], [TIMES], {}, style),
        Field("s", GRID[None], [axis_of("z", [5.0]), TIMES, PLACES]),
    )
    assert {name: raw[name].dims for name in "tpqs"} == {
        "t": ("time", "x"),
        "p": ("x",),
        "q": ("time",),
        "s": ("z", "time", "x"),
    }
    assert list(raw.data_vars)[:4] == ["t", "p", "q", "s"]
    assert (raw.t.dtype, raw.q.dtype) == (np.float64, np.float32)
    assert raw.p.attrs["coordinates"] == "height station code"
    assert "coordinates" not in raw.q.attrs
    assert raw.attrs["title"] == "first"
    assert raw.encoding["unlimited_dims"] == {"time"}


@pytest.mark.parametrize(
    "other",
    [
        PLACES.at([1.0, 2.0, 4.5]),
        PLACES.take([0, 1]),
        axis_of("x", np.array([1.0, 2.0, 4.0]), {"units": "km"}),
        text_axis("x", ["1", "2", "4"]),
    ],
)
def test_variables_that_differ_in_coordinates_are_refused(tmp_path: Path, other: Axis) -> None:
    fields = [Field("a", GRID, [TIMES, PLACES]), Field("b", GRID[0, : other.size], [other])]
    with pytest.raises(InputError, match="'a' and 'b' have different coordinates of 'x'"):
        write_grid(str(tmp_path / "a.nc"), fields, ["x"], overwrite=False)
    assert not list(tmp_path.iterdir())


def test_variables_that_differ_in_companions_are_refused(tmp_path: Path) -> None:
    styles = [Style(companions={"h": Companion((), np.asarray(v))}) for v in (2.0, 10.0)]
    fields = [Field(n, GRID[0], [PLACES], {}, s) for n, s in zip("ab", styles, strict=True)]
    with pytest.raises(InputError, match="different 'h' beside them"):
        write_grid(str(tmp_path / "a.nc"), fields, ["x"], overwrite=False)
    fields[1] = Field("h", GRID[0], [PLACES])  # a variable of that name goes before a companion
    assert write_grid(str(tmp_path / "a.nc"), fields, ["x"], overwrite=False) == []
    assert opened(tmp_path / "a.nc").h.dims == ("x",)


# Packing ------------------------------------------------------------------------------------------

PACKED = Style("float32", packing=Packing("int16", {"scale_factor": 0.5, "_FillValue": -99}))


@pytest.mark.parametrize("name", ["a.nc", "a.zarr"])
def test_packed_variables_are_packed_again(tmp_path: Path, name: str) -> None:
    values = np.where(GRID > 0, GRID, np.nan)
    raw = write(tmp_path, Field("t", values, [TIMES, PLACES], {"units": "K"}, PACKED), name=name)
    assert raw.t.dtype == np.int16
    assert raw.t.values.ravel().tolist() == [-99, *(2 * np.arange(1, 12))]
    assert raw.t.attrs["scale_factor"] == 0.5
    np.testing.assert_array_equal(opened(tmp_path / name, decode_times=False).t, values)


@pytest.mark.parametrize("name", ["a.nc", "a.zarr"])
def test_what_cannot_be_packed_is_told(tmp_path: Path, name: str) -> None:
    values = np.where(GRID > 0, GRID * 1e6, np.nan)
    notes = write_grid(
        str(tmp_path / name), [Field("t", values, [TIMES, PLACES], {}, PACKED)], [], overwrite=False
    )
    assert notes == [
        "'t' is written as float32 and not packed as int16: 11 cells beyond -16384 to 16383.5"
    ]
    np.testing.assert_array_equal(opened(tmp_path / name, decode_times=False).t, values)


def test_attributes_that_no_longer_hold_are_dropped(tmp_path: Path) -> None:
    attrs = {
        "units": "K",
        "grid_type": "gaussian",
        "actual_range": [0.0, 11.0],
        "cell_methods": "time: mean x: mean",
        "valid_range": [0.0, 20.0],
        "coordinates": "nowhere",
        "formula_terms": "a: nowhere",
    }
    whole = write(tmp_path, Field("t", GRID, [TIMES, PLACES], attrs, BESIDE)).t.attrs
    assert whole.keys() - {"coordinates", "grid_mapping"} == attrs.keys() - {
        "coordinates",
        "formula_terms",
    }
    axes = [TIMES, PLACES.at([1.5, 2.5, 3.5])]
    other = write(tmp_path, Field("t", GRID + 10, axes, attrs, BESIDE)).t.attrs
    assert other["cell_methods"] == "time: mean"
    assert other["coordinates"] == "height"
    assert not {"grid_type", "actual_range", "valid_range", "formula_terms"} & other.keys()


# Compression and growth ---------------------------------------------------------------------------


def large(cells: int) -> Field:
    axis = Axis("time", np.arange(float(cells)), "float64", TimeScale("days since 2000-01-01"))
    return Field("t", np.arange(float(cells)), [axis], {}, Style(unlimited=("time",)))


@pytest.mark.parametrize(
    ("cells", "compress", "level"),
    [
        (124_000, None, 0),
        (126_000, None, 1),
        (126_000, 0, 0),
        (126_000, 7, 7),
        (10, 9, 9),
        (10, None, 0),
    ],
)
def test_variables_above_a_megabyte_are_compressed(
    tmp_path: Path, cells: int, compress: int | None, level: int
) -> None:
    write_grid(str(tmp_path / "a.nc"), [large(cells)], [], overwrite=False, compress=compress)
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        filters = file["t"].filters()
        assert (filters["zlib"], filters["complevel"]) == (level > 0, level)
        assert filters["shuffle"] == (level > 0)
        assert file.data_model == "NETCDF4"


@pytest.mark.parametrize(("compress", "level"), [(None, 5), (0, None), (3, 3), (9, 9)])
def test_zarr_is_compressed_as_asked_for(
    tmp_path: Path, compress: int | None, level: int | None
) -> None:
    write_grid(str(tmp_path / "a.zarr"), [large(100)], [], overwrite=False, compress=compress)
    codec = zarr.open_group(tmp_path / "a.zarr")["t"].metadata.compressor
    assert (None if codec is None else codec.clevel) == level
    np.testing.assert_array_equal(opened(tmp_path / "a.zarr").t, np.arange(100.0))


def test_records_are_kept_together(tmp_path: Path) -> None:
    """The default of netCDF is a chunk for every record, of 24 bytes here."""
    x, t = axis_of("x", np.arange(3.0)), axis_of("time", np.arange(50_000.0))
    style = Style(unlimited=("time",))
    write(tmp_path, Field("t", np.zeros((50_000, 3)), [t, x], {}, style))
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        assert file["t"].chunking() == [2**20 // 24, 3]
        assert file["time"].chunking() == [50_000]
    wide = axis_of("x", np.arange(140_000.0))
    write(tmp_path, Field("t", np.zeros((2, 140_000)), [t.take([0, 1]), wide], {}, style))
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        assert file["t"].chunking()[0] == 1


def two_outputs(folder: Path) -> tuple[Path, Path]:
    """Answers of one model at times that follow each other."""
    source = files.WHOLE["unlimited_time_with_bounds"](folder)
    first = answered(source, folder, "one.nc", "--std", "--at", "time=1999-01-16,1999-02-15")
    dkrls(
        "predict",
        folder / "m.npz",
        "--std",
        "--at",
        "time=1999-03-01,1999-03-21",
        "-o",
        folder / "two.nc",
    )
    return first, folder / "two.nc"


def test_outputs_grow_along_time(tmp_path: Path) -> None:
    first, second = two_outputs(tmp_path)
    with netCDF4.Dataset(first, "a") as one, netCDF4.Dataset(second) as two:
        assert one.dimensions["time"].isunlimited()
        assert not one.dimensions["lat"].isunlimited()
        for name in ("time", "t", "t_std"):
            one[name][2:4] = two[name][:]
    whole = opened(first)
    assert whole.time.values.astype("datetime64[D]").astype(str).tolist() == [
        "1999-01-16",
        "1999-02-15",
        "1999-03-01",
        "1999-03-21",
    ]
    np.testing.assert_array_equal(whole.t[2:], opened(second).t)


@pytest.mark.skipif(shutil.which("ncrcat") is None, reason="NCO is not installed")
def test_ncrcat_joins_outputs(tmp_path: Path) -> None:
    parts = two_outputs(tmp_path)
    subprocess.run(["ncrcat", *parts, tmp_path / "whole.nc"], check=True, capture_output=True)
    whole = opened(tmp_path / "whole.nc")
    assert whole.sizes["time"] == 4
    np.testing.assert_array_equal(whole.t, np.concatenate([opened(part).t for part in parts]))


TOOLS = {"cdo": ["cdo", "-s", "sinfo"], "ncks": ["ncks", "-m"], "ncdump": ["ncdump", "-h"]}


@pytest.mark.parametrize(
    "name",
    ["unlimited_time_with_bounds", "packed_with_fill_value", "projected_grid_with_latitudes"],
)
def test_other_programs_read_what_is_written(name: str, tmp_path: Path) -> None:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    out = answered(files.WHOLE[name](tmp_path), tmp_path, "out.nc", "--std")
    for command in TOOLS.values():
        done = subprocess.run([*command, out], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "error" not in done.stderr.lower()


# Real and made files, from end to end -------------------------------------------------------------

E1 = Path(__file__).parents[3] / "shared" / "data" / "E1_north_america.nc"


@pytest.mark.skipif(
    not E1.exists(),
    reason="needs ../shared/data/E1_north_america.nc; the next test has the same on a made file",
)
def test_a_climate_model_comes_back_with_its_scalars_and_bounds(tmp_path: Path) -> None:
    with xr.open_dataset(E1, decode_times=False) as dataset:
        part = dataset.isel(time=slice(0, 24), latitude=slice(0, 9), longitude=slice(0, 8)).load()
    part.to_netcdf(tmp_path / "a.nc", unlimited_dims=["time"])
    out = opened(answered(tmp_path / "a.nc", tmp_path), decode_times=False, decode_coords=False)
    before = opened(tmp_path / "a.nc", decode_times=False, decode_coords=False)
    assert set(out.air_temperature.attrs["coordinates"].split()) == {
        "forecast_period",
        "forecast_reference_time",
        "height",
    }
    for name in ("forecast_period", "forecast_reference_time", "height", "time_bnds"):
        xr.testing.assert_equal(out[name], before[name])
    kept = ("cell_methods", "grid_mapping")
    for key in kept:
        assert out.air_temperature.attrs[key] == before.air_temperature.attrs[key]


def test_everything_beside_the_data_comes_back(tmp_path: Path) -> None:
    """The twin of the climate model, with a companion of every kind."""
    source = files.WHOLE["unlimited_time_with_bounds"](tmp_path)
    before = opened(source, decode_times=False, decode_coords=False)
    times = {"time_bnds": before.time_bnds, "period": ("time", np.arange(5, dtype="i4"))}
    before = before.assign(times)
    before.t.attrs["coordinates"] = "height period"
    before.time.attrs["bounds"], before.lat.attrs["bounds"] = "time_bnds", "lat_bnds"
    before.to_netcdf(tmp_path / "b.nc", unlimited_dims=["time"])
    out = answered(tmp_path / "b.nc", tmp_path)
    after = opened(out, decode_times=False, decode_coords=False)
    for name in ("height", "period", "time_bnds", "lat_bnds"):
        xr.testing.assert_equal(after[name], before[name])
        assert after[name].dtype == before[name].dtype
    assert after.t.attrs["coordinates"] == "height period"
    assert after.t.attrs["cell_methods"] == "time: mean"
    dkrls("predict", tmp_path / "m.npz", "--at", "time=1999-02-01", "-o", tmp_path / "c.nc")
    other = opened(tmp_path / "c.nc", decode_times=False, decode_coords=False)
    assert other.t.attrs["coordinates"] == "height"
    assert "cell_methods" not in other.t.attrs
    assert not {"period", "time_bnds"} & set(other.variables)
    assert other.lat.attrs["bounds"] == "lat_bnds"


def test_files_that_are_joined_have_the_companions_of_all(tmp_path: Path) -> None:
    paths = []
    for part in range(2):
        times = np.arange(3.0) + 3 * part
        extra = {"period": (("time",), (times * 6).astype("i4"), {"units": "1"})}
        attrs = {"coordinates": "period"}
        paths.append(
            timed(
                tmp_path / f"{part}.nc",
                "days since 2000-01-01",
                None,
                times,
                extra=extra,
                var_attrs=attrs,
            )
        )
    dkrls("fit", *paths, "-o", tmp_path / "m.npz")
    dkrls("predict", tmp_path / "m.npz", "-o", tmp_path / "o.nc")
    assert opened(tmp_path / "o.nc").period.values.tolist() == [0, 6, 12, 18, 24, 30]


def test_a_model_that_grows_keeps_its_companions(tmp_path: Path) -> None:
    def part(name: str, times: Any) -> Path:
        extra = {"period": (("time",), (times * 6).astype("i4"), {"units": "1"})}
        attrs = {"coordinates": "period", "cell_methods": "time: mean"}
        return timed(
            tmp_path / name, "days since 2000-01-01", None, times, extra=extra, var_attrs=attrs
        )

    dkrls("fit", part("a.nc", np.arange(6.0)), "-o", tmp_path / "m.npz")
    dkrls("update", tmp_path / "m.npz", part("b.nc", np.arange(6.0, 8)))
    dkrls("predict", tmp_path / "m.npz", "-o", tmp_path / "o.nc")
    after = opened(tmp_path / "o.nc")
    assert after.period.values.tolist() == [0, 6, 12, 18, 24, 30, 36, 42]
    assert after.t.attrs["cell_methods"] == "time: mean"


def test_a_model_of_python_adds_no_line_of_history(tmp_path: Path) -> None:
    x, y = np.linspace(0, 3, 9), np.linspace(0, 2, 8)
    fit(np.outer(np.sin(x), np.cos(y)), {"x": x, "y": y}).save(tmp_path / "m.npz")
    dkrls("predict", tmp_path / "m.npz", "-o", tmp_path / "o.nc")
    (line,) = opened(tmp_path / "o.nc").attrs["history"].split("\n")
    assert "dkrls predict" in line


def test_rotated_places_are_written_between_the_coordinates(tmp_path: Path) -> None:
    pole = {
        "grid_mapping_name": "rotated_latitude_longitude",
        "grid_north_pole_latitude": 39.25,
        "grid_north_pole_longitude": -162.0,
    }
    rlat, rlon = np.linspace(-5, 5, 6), np.linspace(-6, 6, 7)
    lat, lon = true_places(rlat, rlon, pole)
    source = grid(
        tmp_path / "a.nc",
        {
            "rlat": (rlat, {"standard_name": "grid_latitude", "units": "degrees"}),
            "rlon": (rlon, {"standard_name": "grid_longitude", "units": "degrees"}),
        },
        extra={
            "pole": ((), np.int32(0), pole),
            "lat": (("rlat", "rlon"), lat, NORTH),
            "lon": (("rlat", "rlon"), lon, EAST),
        },
        var_attrs={"grid_mapping": "pole", "coordinates": "lon lat"},
    )
    out = answered(source, tmp_path, "o.nc", "--at", "rlat=0.3,1.1", "--at", "rlon=0.7")
    after = opened(out, decode_coords=False)
    expected = true_places(np.array([0.3, 1.1]), np.array([0.7]), pole)
    np.testing.assert_allclose(after.lat, expected[0])
    np.testing.assert_allclose(after.lon, expected[1])
    assert after.t.attrs["coordinates"] == "lon lat"


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("text", "text"),
        (1.5, 1.5),
        (np.int16(3), 3),
        ([1, 2], [1, 2]),
        (True, 1),
        (np.array([True, False]), [1, 0]),
        (None, "null"),
        ({"a": 1}, '{"a": 1}'),
        ([], "[]"),
        ([[1, 2], [3, 4]], "[[1, 2], [3, 4]]"),
    ],
)
def test_attributes_are_written_as_netcdf_can_hold_them(
    tmp_path: Path, given: Any, written: Any
) -> None:
    path = str(tmp_path / "a.nc")
    write_grid(path, [Field("t", VALUES[0], AXES[1:], {"a": given})], ["x"], overwrite=False)
    found = opened(Path(path)).t.attrs["a"]
    assert np.asarray(found).tolist() == written


@pytest.mark.parametrize(
    ("word", "kept"),
    [
        ("plain", "plain"),
        ("/a/b.nc", "b.nc"),
        ("a/b/", "b"),
        ("--like=../x.nc", "--like=x.nc"),
        ("--at=lat=1", "--at=lat=1"),
        ("lat=10:20:5", "lat=10:20:5"),
    ],
)
def test_history_names_files_without_folders(
    word: str, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert history_line([word]) == f"1970-01-02T00:00:00Z: {kept} (dkrls {__version__})"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert not history_line([word]).startswith("1970")
