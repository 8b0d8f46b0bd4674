"""What predict writes is what it was given: values, coordinates, attributes, bytes."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sample_files as files
import xarray as xr
from sample_files import EAST, LAT, LON, NORTH, grid, latlon, timed
from shell import dkrls, refusal, spawn

from dkrls_cli import __version__
from dkrls_cli.errors import InputError, OutputError, SettingError
from dkrls_cli.files.writing import history_line, write_grid, write_netcdf_to_stdout
from dkrls_cli.grid.axes import Axis, axis_of, index_axis, text_axis
from dkrls_cli.grid.calendars import TimeScale
from dkrls_cli.grid.grid import Style

TABLES = {"long_table", "zipped_table", "wide_table"}
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
        if dim in new.coords:
            same_coordinate(new[dim], old[dim])
    older = before.attrs.pop("history", None)
    first, *others = after.attrs.pop("history").split("\n")
    assert first.endswith(")")
    assert others == ([older] if older else [])
    assert kept(after.attrs) == kept(before.attrs)


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
        "dkrls predict m.npz -o out.nc",
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
    (tmp_path / name).mkdir() if name.endswith("zarr") else (tmp_path / name).write_text("old")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", "o.nc")

    monkeypatch.setattr(xr.Dataset, "to_netcdf", full)
    monkeypatch.setattr(xr.Dataset, "to_zarr", full)
    monkeypatch.setattr("dkrls_cli.files.text.rows.RowWriter.write_cells", full)
    line = refusal("predict", model, "-o", tmp_path / name, "--overwrite")
    assert line == "Error: No space left on device: 'o.nc'"
    assert {path.name for path in tmp_path.iterdir()} == {"a.nc", "m.npz", name}
    assert name.endswith("zarr") or (tmp_path / name).read_text() == "old"


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
    style = Style("float32", -999.0, {"title": "x", "history": "old"}, "crs", {"a": 1.5})
    variables = {"t": (VALUES, {"units": "K", "ok": True}), "t_std": (VALUES + 1, {})}
    path = str(tmp_path / "a.nc")
    write_grid(path, AXES, variables, style, ["dkrls", "x/y.nc"], overwrite=False)
    raw = opened(Path(path), decode_times=False, mask_and_scale=False)
    np.testing.assert_array_equal(raw.t, VALUES)
    np.testing.assert_array_equal(raw.t_std, VALUES + 1)
    assert raw.t.dtype == raw.t_std.dtype == np.float32
    for name in variables:
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
    write_grid(path, AXES[1:], {"t": (VALUES[0], {})}, Style(), ["dkrls"], overwrite=False)
    raw = opened(Path(path), mask_and_scale=False)
    assert raw.t.attrs == {}
    assert raw.t.dtype == np.float64
    assert list(raw.data_vars) == ["t"]
    assert raw.attrs["history"].count("\n") == 0


@pytest.mark.parametrize("name", ["a.nc", "a.zarr", "a.zarr/"])
def test_an_existing_target_is_kept_unless_it_may_be_replaced(tmp_path: Path, name: str) -> None:
    path, grids = f"{tmp_path}/{name}", [{"t": (VALUES[0] + i, {})} for i in range(2)]
    write_grid(path, AXES[1:], grids[0], Style(), ["dkrls"], overwrite=False)
    with pytest.raises(OutputError, match="exists already"):
        write_grid(path, AXES[1:], grids[1], Style(), ["dkrls"], overwrite=False)
    assert opened(Path(path)).t.values.flat[0] == 0
    write_grid(path, AXES[1:], grids[1], Style(), ["dkrls"], overwrite=True)
    assert opened(Path(path)).t.values.flat[0] == 1
    assert [path.name for path in tmp_path.iterdir()] == [name.rstrip("/")]


def test_a_library_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: Any, **__: Any) -> None:
        raise ModuleNotFoundError("No module named 'zarr'", name="zarr")

    monkeypatch.setattr(xr.Dataset, "to_zarr", absent)
    with pytest.raises(InputError, match=r"needs zarr to be written: pip install"):
        write_grid(
            f"{tmp_path}/a.zarr", AXES, {"t": (VALUES, {})}, Style(), ["dkrls"], overwrite=False
        )


def test_a_file_goes_to_stdout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdout = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", stdout)
    write_netcdf_to_stdout(AXES[1:], {"t": (VALUES[0], {})}, Style(), ["dkrls"], tmp_path)
    (tmp_path / "copy.nc").write_bytes(stdout.buffer.getvalue())
    np.testing.assert_array_equal(opened(tmp_path / "copy.nc").t, VALUES[0])


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
    write_grid(path, AXES[1:], {"t": (VALUES[0], {"a": given})}, Style(), ["x"], overwrite=False)
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
