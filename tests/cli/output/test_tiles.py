"""Files that are filled in tiles, beside the same files filled whole."""

import json
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray as xr
from shell import dkrls, peak_of, refusal
from tiled_grids import daily, shrink

from dkrls_cli.cli.output.tiles import can_be_tiled
from dkrls_cli.files.reading import open_source
from dkrls_cli.model.tiling import planning
from dkrls_cli.model.tiling.layout import Context

GIVEN = ("--kernel", "matern52", "--sigma", "lat=3", "--sigma", "lon=3", "--sigma", "time=4")
GIVEN = (*GIVEN, "--ridge", "0.01", "--group", "none")
PACKED = {"dtype": "i2", "scale_factor": 0.001, "add_offset": 5.0, "_FillValue": np.int16(-9999)}
LIMIT = f"{50 * 42}B"


@pytest.fixture(autouse=True)
def small(monkeypatch, request):
    if "slow" not in request.keywords:
        shrink(monkeypatch)


def write(path: Path, form="f4") -> Path:
    data = daily(dtype="float32").assign_attrs(units="K", actual_range=np.array([4.9, 5.1]))
    dataset = data.to_dataset().assign(other=("lat", np.arange(6.0)))
    dataset.attrs["history"] = "made"
    encoding = {"t2m": {**PACKED} if form == "i2" else {"dtype": form}}
    if path.suffix == ".zarr":  # format 2 with its metadata in one place, and 3 without
        old = form == "i2"
        dataset.to_zarr(path, encoding=encoding, zarr_format=2 if old else 3, consolidated=old)
    else:
        encoding["t2m"] |= {"zlib": True, "chunksizes": (7, 6, 7)}
        dataset.to_netcdf(path, encoding=encoding)
    return path


def raw(path: Path) -> xr.Dataset:
    options = {"mask_and_scale": False, "decode_times": False}
    if path.suffix == ".zarr":
        options |= {"consolidated": (path / ".zmetadata").exists()}
    return xr.open_dataset(path, **options).load()


def test_cells_that_mark_missing_ones_are_told_as_in_memory(tmp_path):
    data = daily(dtype="float32")
    data.values[[10, 20, 50], 3, 3] = -9999.0
    data.to_netcdf(source := tmp_path / "in.nc")
    told = []
    for limit in ("none", LIMIT):
        done = dkrls("fill", source, "-o", tmp_path / f"{limit}.nc", *GIVEN, "--max-memory", limit)
        told.append([line for line in done.stderr.splitlines() if line.startswith("Warning")])
    assert told[0] == told[1]
    assert "3 cells of 't2m' hold -9999" in told[0][0]


@pytest.mark.parametrize("ending", ["nc", "zarr"])
@pytest.mark.parametrize("form", ["f4", "i2"])
def test_a_file_filled_in_tiles_is_the_file_filled_whole(ending, form, tmp_path):
    source = write(tmp_path / f"in.{ending}", form)
    one, other = tmp_path / f"whole.{ending}", tmp_path / f"tiles.{ending}"
    dkrls("fill", source, "-o", one, *GIVEN, "--std", "--max-memory", "none")
    done = dkrls("fill", source, "-o", other, *GIVEN, "--std", "--max-memory", LIMIT, "--json")
    assert "Note: t2m is filled in" in done.stderr
    told = json.loads(done.stdout)
    assert told["tiles"] > 1
    assert told["seam_difference"] < 0.1
    assert told["output"] == str(other)
    whole, tiles, given = raw(one), raw(other), raw(source)
    assert sorted(whole) == sorted(tiles)
    assert tiles.t2m.dtype == given.t2m.dtype
    attrs = {key: tiles.t2m.attrs[key] for key in tiles.t2m.attrs if key != "actual_range"}
    assert set(attrs) == set(whole.t2m.attrs)
    assert attrs["ancillary_variables"] == "t2m_std"
    assert "actual_range" not in tiles.t2m.attrs
    for key in ("long_name", "units"):
        assert tiles.t2m_std.attrs[key] == whole.t2m_std.attrs[key]
    assert tiles.t2m_std.dtype == whole.t2m_std.dtype
    assert tiles.attrs["history"].split("\n")[1:] == ["made"]
    step = 0.001 if form == "i2" else 1.0
    assert np.nanmax(np.abs(1.0 * tiles.t2m - whole.t2m)) * step < 0.02
    same = given.t2m.values != (-9999 if form == "i2" else np.nan)
    same &= ~np.isnan(given.t2m.values.astype(float))
    assert np.array_equal(tiles.t2m.values[same], given.t2m.values[same])
    assert (tiles.t2m_std.values[same] == 0).all()
    assert np.array_equal(np.isnan(tiles.t2m_std), np.isnan(whole.t2m_std))
    assert told["filled"] == int((tiles.t2m_std.values > 0).sum())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"{name}.{ending}" for name in ("in", "whole", "tiles")
    )


def test_several_variables_go_into_one_copy(tmp_path):
    two = daily().to_dataset().assign(u=daily(seed=4))
    two.to_netcdf(source := tmp_path / "two.nc")
    done = dkrls(
        "fill", source, "-o", out := tmp_path / "out.nc", *GIVEN, "--var", "all",
        "--max-memory", LIMIT, "--json",
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert [one["variable"] for one in told["variables"]] == ["t2m", "u"]
    with netCDF4.Dataset(out) as dataset:
        for one in told["variables"]:
            left = np.ma.getmaskarray(dataset[one["variable"]][...]) | np.isnan(
                np.ma.filled(dataset[one["variable"]][...], np.nan)
            )
            assert left.sum() == one["missing"] - one["filled"] == sum(one["left"].values())
        assert dataset.history.count("dkrls fill") == 1


def test_a_dry_run_tells_the_plan(tmp_path):
    source = write(tmp_path / "in.nc")
    told = json.loads(dkrls("fill", source, "--dry-run", "--max-memory", LIMIT, "--json").stdout)
    assert told["tiles"] > 1
    assert told["memory_bytes"] <= 2100 < told["memory_bytes_whole"]
    assert told["bytes_written"] == 4 * daily().size
    assert told["bytes_read"] == told["passes"] * told["bytes_written"]
    text = dkrls("fill", source, "--dry-run", "--max-memory", LIMIT).stdout
    assert "tiles" in text
    whole = json.loads(dkrls("fill", source, "--dry-run", "--max-memory", "none", "--json").stdout)
    assert (whole["tiles"], whole["passes"]) == (1, 1.0)
    assert [path.name for path in tmp_path.iterdir()] == ["in.nc"]


@pytest.mark.parametrize(
    ("words", "line", "code"),
    [
        (["-o", "out.nc", "--ensemble", "3"], "members of an ensemble go together", 2),
        (["-o", "out.nc", "--obs-error", "0.1"], "--obs-error needs the whole grid", 2),
        (["-o", "out.zarr"], "tiles are written into a copy", 2),
        (["-o", "out.csv"], "tiles are written into a copy", 2),
        (["-o", "out.nc", "--bounds", "5,6"], "The bounds do not hold for the data", 2),
    ],
)
def test_what_tiles_do_not_allow_is_refused_and_nothing_is_written(words, line, code, tmp_path):
    source = write(tmp_path / "in.nc")
    words = [str(tmp_path / word) if word.startswith("out.") else word for word in words]
    assert line in refusal("fill", source, *words, *GIVEN, "--max-memory", LIMIT, code=code)
    assert [path.name for path in tmp_path.iterdir()] == ["in.nc"]


def test_a_limit_that_is_too_small_for_tiles_is_told(tmp_path):
    source = write(tmp_path / "in.nc")
    line = refusal("fill", source, "-o", tmp_path / "o.nc", "--max-memory", "100B")
    assert "Even in tiles, filling time 60 x lat 6 x lon 7 needs about" in line
    assert line.endswith("Try a part of the grid, or a larger --max-memory.")


def test_tiles_that_differ_are_an_error_that_names_the_options(tmp_path, monkeypatch):
    source = write(tmp_path / "in.nc")
    shrink(monkeypatch, (Context(1, 1),), usual=0)
    rough = [word.replace("lat=3", "lat=30").replace("time=4", "time=40") for word in GIVEN]
    words = ["fill", source, "-o", out := tmp_path / "o.nc", *rough, "--max-memory", "600B"]
    line = refusal(*words)
    assert "of the error bar where they meet" in line
    assert line.endswith("Options: --max-memory, --accept-inexact.")
    assert not out.exists()
    done = dkrls(*words, "--accept-inexact")
    assert "Warning: tiles differ by" in done.stderr
    assert out.exists()


def test_notes_are_told(tmp_path):
    data = daily(dtype="float32").assign_attrs(valid_min=np.float32(-50))
    data[10, 3, 3] = np.inf
    data.to_netcdf(source := tmp_path / "in.nc")
    done = dkrls("fill", source, "-o", tmp_path / "o.nc", *GIVEN, "--max-memory", LIMIT)
    assert "Note: values taken as missing: 1 infinite." in done.stderr
    assert "Note: answers are kept at or above -50, as valid_min tells." in done.stderr
    assert "seams" in done.stdout
    done = dkrls(
        "fill", source, "-o", tmp_path / "n.nc", *GIVEN, "--max-memory", LIMIT,
        "--max-gap", "time=0.5",
    )  # fmt: skip
    assert "nothing is left to fill" in done.stderr


def test_tables_are_refused_as_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "plan_tiles", None)
    (table := tmp_path / "t.csv").write_text("x,y,v\n1,1,2\n1,2,NA\n2,1,3\n2,2,4\n")
    line = refusal("fill", table, "-o", tmp_path / "o.csv", "--max-memory", "1kB")
    assert "Fitting x 2 x y 2 needs about" in line


@pytest.mark.slow
def test_memory_stays_within_one_and_a_half_times_the_limit(tmp_path):
    """The grid whole takes more than that by itself."""
    rng = np.random.default_rng(0)
    shape = (1000, 60, 60)
    values = 0.1 * rng.standard_normal(shape, dtype="f4")
    values += np.sin(np.arange(1000) / 9)[:, None, None].astype("f4")
    values[499:502, :30][rng.random((3, 30, 60)) < 0.3] = np.nan  # other tiles have no work
    axes = {"time": np.arange(1000.0), "y": np.arange(60.0), "x": np.arange(60.0)}
    xr.DataArray(values, axes, list(axes), "v").to_netcdf(source := tmp_path / "v.nc")
    words = ["fill", source, "-o", tmp_path / "o.nc", "--max-memory", "260MB", "--ridge", "0.1"]
    words += ["--sigma", "4", "--kernel", "matern52", "--mask", "none", "--std"]
    done, peak = peak_of(words)
    assert "tiles" in done.stderr
    assert peak < 1.5 * 260e6


def test_files_that_are_joined_are_not_tiled(tmp_path):
    """Tiles go into a copy of the file, and there is none of several."""
    days = {"units": "days since 2000-01-01"}
    for day in (0, 1):
        values = xr.DataArray(np.ones((2, 3)), dims=("time", "x"), name="v")
        times = ("time", [2.0 * day, 2.0 * day + 1], days)
        values.assign_coords(time=times).to_netcdf(tmp_path / f"{day}.nc")
    joined, single = open_source([str(tmp_path / "*.nc")]), open_source([str(tmp_path / "0.nc")])
    assert joined.read is not None
    assert not can_be_tiled([single, joined])
    assert can_be_tiled([single])
