"""Files with their gaps filled: what changes, and what does not."""

import csv
import json
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given
from hypothesis import strategies as st
from sample_files import netcdf
from shell import ROOT, dkrls, refusal

from dkrls_cli.gaps.pattern import gap_lengths

LAT, LON = np.linspace(-20, 20, 9), np.linspace(100, 130, 11)
DAYS = np.arange(12)
LAND = np.add.outer((LAT / 20) ** 2, ((LON - 130) / 15) ** 2) < 0.4
GIVEN = ("--kernel", "matern52", "--sigma", "lat=15", "--sigma", "lon=15", "--sigma", "time=5")
GIVEN = (*GIVEN, "--ridge", "1e-4")


def field() -> np.ndarray:
    waves = np.sin(np.add.outer(DAYS / 4, np.add.outer(LAT / 10, LON / 9)))
    return 15.0 + 4 * waves


def gaps() -> np.ndarray:
    missing = np.broadcast_to(LAND, (12, 9, 11)) | (
        np.random.default_rng(2).random((12, 9, 11)) < 0.15
    )
    missing[:, 0, 0] = False  # no coordinate is lost by chance
    missing[5] = True  # a lost day
    missing[2:5, 3, 2] = True
    return missing


MISSING = gaps()
ALWAYS = np.broadcast_to(LAND, MISSING.shape)


def write(path: Path, form: str = "NETCDF4", **encoding) -> Path:
    values = np.where(MISSING, np.nan, field())
    dataset = xr.Dataset(
        {
            "sst": (
                ("time", "lat", "lon"),
                values.astype("f4"),
                {"units": "degree_Celsius", "standard_name": "sea_surface_temperature"},
            ),
            "depth": (("lat", "lon"), np.where(LAND, np.nan, 100.0), {"note": "kept"}),
        },
        {
            "time": ("time", DAYS, {"units": "days since 2001-01-01", "calendar": "360_day"}),
            "lat": ("lat", LAT, {"units": "degrees_north"}),
            "lon": ("lon", LON, {"units": "degrees_east"}),
        },
        {"title": "a test", "history": "made"},
    )
    dataset.to_netcdf(
        path, format=form, engine="netcdf4", unlimited_dims=["time"], encoding={"sst": encoding}
    )
    return path


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    packed = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 10.0, "_FillValue": -32768}
    path = tmp_path_factory.mktemp("fill") / "sst.nc"
    return write(path, zlib=True, chunksizes=(3, 9, 11), **packed)


def raw(path: Path, name: str = "sst") -> np.ndarray:
    with netCDF4.Dataset(path) as dataset:
        dataset.set_auto_maskandscale(False)
        return dataset.variables[name][...]


def described(path: Path) -> dict:
    """All that a file says of its variables, dimensions and attributes, but for the history."""
    with netCDF4.Dataset(path) as dataset:
        return {
            "format": dataset.data_model,
            "attrs": {k: dataset.getncattr(k) for k in dataset.ncattrs() if k != "history"},
            "dims": {n: (d.size, d.isunlimited()) for n, d in dataset.dimensions.items()},
            "variables": {
                n: (v.dtype, v.dimensions, v.filters(), v.chunking(), repr(v.__dict__))
                for n, v in dataset.variables.items()
            },
        }


def test_only_missing_cells_change(source, tmp_path):
    out = tmp_path / "filled.nc"
    told = json.loads(dkrls("fill", source, "--var", "sst", "-o", out, *GIVEN, "--json").stdout)
    before, after = raw(source), raw(out)
    assert np.array_equal(before[~MISSING], after[~MISSING])
    wanted = MISSING & ~ALWAYS
    assert (after[wanted] != -32768).all()
    assert (after[ALWAYS] == -32768).all()
    with xr.open_dataset(out) as filled:
        assert np.abs(filled.sst.values - field())[wanted].max() < 0.5
        first, made = filled.attrs["history"].split("\n")
    assert "dkrls fill sst.nc" in first
    assert made == "made"
    assert described(out) == described(source)
    assert np.array_equal(raw(source, "depth"), raw(out, "depth"), equal_nan=True)
    assert told["filled"] == wanted.sum()
    assert told["missing"] == MISSING.sum()
    assert told["left"] == {"left as masked": int(ALWAYS.sum())}


@pytest.mark.parametrize("form", ["NETCDF3_CLASSIC", "NETCDF4_CLASSIC", "NETCDF4"])
def test_standard_errors_are_added(form, tmp_path):
    source, out = write(tmp_path / "a.nc", form, _FillValue=np.float32(1e20)), tmp_path / "b.nc"
    dkrls("fill", source, "--var", "sst", "-o", out, "--std", "--mask", "none", *GIVEN)
    with xr.open_dataset(out) as filled:
        assert filled.sst.attrs["ancillary_variables"] == "sst_std"
        assert filled.sst_std.attrs["standard_name"] == "sea_surface_temperature standard_error"
        assert (filled.sst_std.values[~MISSING] == 0).all()
        assert (filled.sst_std.values[MISSING] > 0).all()
        assert np.isfinite(filled.sst.values).all()
    assert "already" in refusal(
        "fill", out, "--var", "sst", "-o", tmp_path / "c.nc", "--std", *GIVEN
    )
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_zarr_stores_are_copied_and_changed(version, source, tmp_path):
    store, out = tmp_path / "a.zarr", tmp_path / "b.zarr"
    with xr.open_dataset(source, decode_times=False) as dataset:
        for variable in dataset.variables.values():
            variable.encoding = {
                k: v
                for k, v in variable.encoding.items()
                if k in ("dtype", "scale_factor", "add_offset", "_FillValue")
            }
        dataset.to_zarr(store, zarr_format=version, consolidated=True)
    dkrls("fill", store, "--var", "sst", "-o", out, "--std", *GIVEN)
    with xr.open_zarr(store, decode_times=False) as one, xr.open_zarr(out, decode_times=False) as b:
        known = ~MISSING
        assert np.array_equal(one.sst.values[known], b.sst.values[known])
        assert np.isfinite(b.sst.values[MISSING & ~ALWAYS]).all()
        assert (b.sst_std.values[MISSING & ~ALWAYS] > 0).all()
        assert b.sst.attrs["units"] == "degree_Celsius"
        assert one.depth.identical(b.depth)
        assert "dkrls fill a.zarr" in b.attrs["history"]


def test_tables_are_filled(tmp_path):
    cells = [(d, x) for d in range(8) for x in range(9) if (d + 2 * x) % 7]
    table = "day,x,t\n" + "".join(f"{d},{x},{d + 0.5 * x}\n" for d, x in cells)
    source = tmp_path / "t.csv"
    source.write_text(table)
    for name in ("o.csv", "o.jsonl", "o.nc"):
        dkrls("fill", source, "-o", tmp_path / name, "--mask", "none", "--allow-extrapolation")
    rows = list(csv.DictReader((tmp_path / "o.csv").read_text().splitlines()))
    lines = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    with xr.open_dataset(tmp_path / "o.nc") as grid:
        assert grid.t.shape == (8, 9)
        values = grid.t.values.ravel()
    filled = {(r["day"], r["x"]): r["t"] for r in lines}
    assert {(int(r["day"]), int(r["x"])): float(r["t"]) for r in rows} == filled
    np.testing.assert_allclose([r["t"] for r in lines], values)
    truth = np.add.outer(np.arange(8), 0.5 * np.arange(9)).ravel()
    np.testing.assert_allclose(values, truth, atol=0.1)


def test_a_row_that_is_there_twice_is_refused_by_its_place(tmp_path):
    source = tmp_path / "t.csv"
    source.write_text("day,x,t\n0,0,1\n0,1,2\n1,0,3\n1,1,4\n0,1,5\n")
    assert "x=1" in refusal("fill", source, "-o", tmp_path / "o.csv").replace(" = ", "=")


def filled_cells(source, tmp_path, *words) -> np.ndarray:
    out = tmp_path / "o.nc"
    dkrls("fill", source, "--var", "sst", "-o", out, "--overwrite", *GIVEN, *words)
    return (raw(out) != -32768) & MISSING


def test_masks_say_what_stays_missing(source, tmp_path):
    assert np.array_equal(filled_cells(source, tmp_path, "--mask", "none"), MISSING)
    first = np.broadcast_to(MISSING[0], MISSING.shape)
    assert np.array_equal(filled_cells(source, tmp_path, "--mask", "first"), MISSING & ~first)
    wet = xr.DataArray((LAT[:, None] < 5) & (LON > 105), {"lat": LAT, "lon": LON}, ("lat", "lon"))
    wet.astype("i1").rename("wet").transpose("lon", "lat").to_netcdf(tmp_path / "mask.nc")
    found = filled_cells(source, tmp_path, "--mask", tmp_path / "mask.nc")
    assert np.array_equal(found, MISSING & wet.values)


def test_only_short_gaps_are_filled(source, tmp_path):
    lengths = gap_lengths(MISSING, 0, DAYS.astype(float))
    for words, limit in ((("time=2",), 2), (("time=3D",), 3)):
        found = filled_cells(source, tmp_path, "--max-gap", *words)
        assert np.array_equal(found, MISSING & ~ALWAYS & (lengths <= limit))
    along = gap_lengths(MISSING, 2, LON)
    both = filled_cells(source, tmp_path, "--max-gap", "time=3", "--max-gap", "lon=6")
    assert np.array_equal(both, MISSING & ~ALWAYS & (lengths <= 3) & (along <= 6))


def walked_lengths(missing, x):
    """Lengths of the gaps of one fibre, walked cell by cell."""
    lengths = np.zeros(x.size)
    for i in np.flatnonzero(missing):
        low, high = i, i
        while low > 0 and missing[low]:
            low -= 1
        while high < x.size - 1 and missing[high]:
            high += 1
        lengths[i] = np.inf if missing.all() else x[high] - x[low]
    return lengths


@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 1]))
def test_a_gap_is_as_long_as_from_data_to_data(seed, axis):
    rng = np.random.default_rng(seed)
    x = np.cumsum(rng.uniform(0.2, 2, 14))
    missing = rng.random((14, 4)) < rng.uniform(0.1, 1.0)
    expected = np.stack([walked_lengths(column, x) for column in missing.T], axis=1)
    order = rng.permutation(14)
    turned = np.moveaxis(missing[order], 0, axis)
    found = np.moveaxis(gap_lengths(turned, axis, x[order]), axis, 0)
    np.testing.assert_allclose(found, expected[order])


def test_slices_beyond_the_data_are_left_unless_asked_for(tmp_path):
    source = write(tmp_path / "a.nc", _FillValue=np.float32(1e20))
    with netCDF4.Dataset(source, "r+") as dataset:
        dataset["sst"][-2:] = 1e20
    told = [
        json.loads(
            dkrls(
                "fill", source, "--var", "sst", "-o", tmp_path / f"{i}.nc", *GIVEN, "--json", *w
            ).stdout
        )
        for i, w in enumerate([[], ["--allow-extrapolation"]])
    ]
    sea = int((~LAND).sum())
    assert told[0]["left"]["left beyond the data along time"] == 2 * sea
    assert told[1]["filled"] == told[0]["filled"] + 2 * sea


def test_nothing_is_fitted_where_nothing_is_to_be_filled(tmp_path):
    source, out = write(tmp_path / "a.nc", _FillValue=np.float32(1e20)), tmp_path / "b.nc"
    with netCDF4.Dataset(source, "r+") as dataset:
        dataset["sst"][...] = np.where(ALWAYS, 1e20, field())
    result = dkrls("fill", source, "--var", "sst", "-o", out)
    assert "nothing is left to fill" in result.stderr
    assert f"left as masked  {int(ALWAYS.sum())}" in result.stdout
    assert "solved" not in result.stdout
    assert np.array_equal(raw(source), raw(out))


def test_a_complete_grid_is_copied(tmp_path):
    source, out = ROOT / "sample_data" / "ocean.nc", tmp_path / "same.nc"
    result = dkrls("fill", source, "-o", out)
    assert "0 of 0 missing cells" in result.stdout
    assert "Warning" not in result.stderr
    assert np.array_equal(raw(source), raw(out))


def test_marks_that_are_not_declared_are_warned_of_where_nothing_else_is_missing(tmp_path):
    path, values = tmp_path / "marked.nc", 10 + np.add.outer(np.arange(5.0), np.arange(6.0))
    values[1, 2] = -9999
    xr.DataArray(values, dims=("y", "x"), name="v").to_netcdf(path)
    result = dkrls("fill", path, "-o", tmp_path / "same.nc")
    assert "Warning: 1 cell of 'v' holds -9999, and all others 10 to 19" in result.stderr
    assert "0 of 0 missing cells" in result.stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "-o FILLED.nc"),
        (["-o", "-"], 2, "file"),
        (["-o", "o.nc", "--max-gap", "3"], 2, "DIM=3"),
        (["-o", "o.nc", "--max-gap", "depth=3"], 2, "no dimension 'depth'"),
        (["-o", "o.nc", "--max-gap", "lat=3D"], 2, "not a number"),
        (["-o", "o.nc", "--max-gap", "time=-1"], 2, "above 0"),
        (["-o", "o.nc", "--mask", "nowhere.nc"], 1, "nowhere.nc"),
        (["-o", "o.xyz"], 2, "o.xyz"),
    ],
)
def test_bad_words_are_refused_and_nothing_is_left(
    words, code, message, source, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert message in refusal("fill", source, "--var", "sst", *GIVEN, *words, code=code)
    assert not list(tmp_path.iterdir())


def test_a_mask_of_another_grid_is_refused(source, tmp_path):
    xr.DataArray(np.ones(3), {"lat": [0.0, 1, 2]}, ("lat",), "m").to_netcdf(tmp_path / "m.nc")
    words = ("fill", source, "--var", "sst", "-o", tmp_path / "o.nc", *GIVEN)
    assert "other coordinates" in refusal(*words, "--mask", tmp_path / "m.nc")
    xr.DataArray(np.ones(3), {"z": [0.0, 1, 2]}, ("z",), "m").to_netcdf(tmp_path / "z.nc")
    assert "dimension 'z'" in refusal(*words, "--mask", tmp_path / "z.nc")


# Land, coasts and bounds --------------------------------------------------------------------------


def write_map(path: Path, missing: np.ndarray, name="t", attrs=None, values=None, **dims) -> Path:
    """A map of the globe in steps of 5 degrees, or of other dimensions."""
    lat, lon = np.arange(-87.5, 90, 5), np.arange(2.5, 360, 5)
    waves = 15 + np.add.outer(5 * np.cos(np.deg2rad(lat)), np.sin(np.deg2rad(lon)))
    values = np.broadcast_to(waves if values is None else values, missing.shape)
    xr.Dataset(
        {name: ((*dims, "lat", "lon"), np.where(missing, np.nan, values), attrs or {})},
        {
            **dims,
            "lat": ("lat", lat, {"units": "degrees_north"}),
            "lon": ("lon", lon, {"units": "degrees_east"}),
        },
    ).to_netcdf(path)
    return path


def globe_land() -> np.ndarray:
    land = np.zeros((36, 72), bool)
    land[12:24, 60:] = land[12:24, :5] = land[:4] = True
    return land


SMOOTH = ("--kernel", "matern52", "--sigma", "30", "--ridge", "1e-4")
HOW = "--mask none fills all, --mask FILE knows land, --within DISTANCE fills near data."


@pytest.mark.parametrize("one_day", [False, True])
def test_one_day_of_the_sea_keeps_its_land_and_says_so(one_day, tmp_path):
    land = globe_land()
    missing, dims = (land[None], {"time": [0]}) if one_day else (land, {})
    source = write_map(tmp_path / "sst.nc", missing, "sst", **dims)
    result = dkrls("fill", source, "-o", tmp_path / "o.nc", *SMOOTH, "--json")
    told = json.loads(result.stdout)
    assert told["filled"] == 0
    assert told["left"] == {"left as masked": int(land.sum())}
    assert "the quantity is of the sea" in result.stderr
    assert told["note"] in result.stderr
    assert HOW in result.stderr
    with xr.open_dataset(tmp_path / "o.nc") as filled:
        assert np.array_equal(np.isnan(filled.sst.values), missing)
    result = dkrls("fill", source, "-o", tmp_path / "p.nc", *SMOOTH, "--json", "--mask", "none")
    assert HOW not in result.stderr
    told = json.loads(result.stdout)
    assert told["left"].get("left as masked") is None
    assert told["note"] is None


def test_a_map_keeps_wide_holes_and_fills_narrow_ones(tmp_path):
    land, clouds = globe_land(), np.zeros((36, 72), bool)
    clouds[27, 30:33] = clouds[30, 10] = True
    source = write_map(tmp_path / "t.nc", land | clouds)
    result = dkrls("fill", source, "-o", tmp_path / "o.nc", *SMOOTH)
    assert f"{land.sum()} missing cells in 2 holes wider than 500 km" in result.stderr
    assert "4 missing cells in 2 holes are taken for gaps" in result.stderr
    assert "4 of" in result.stdout
    with xr.open_dataset(tmp_path / "o.nc") as filled:
        assert np.array_equal(np.isnan(filled.t.values), land)


def test_the_sea_floor_stays_missing(tmp_path):
    land = globe_land()
    missing = np.stack([land, land, land])
    missing[2, 30:, 20:30] = True
    lasting = missing.copy()
    missing[1, 26, 20] = True
    source = write_map(tmp_path / "o.nc", missing, depth=[0.0, 100.0, 1000.0])
    given = (*SMOOTH[:2], "--sigma", "lat=30", "--sigma", "lon=30", "--sigma", "depth=500")
    result = dkrls("fill", source, "-o", tmp_path / "p.nc", *given, "--ridge", "1e-3")
    assert "up to an end of 'depth'" in result.stderr
    with xr.open_dataset(tmp_path / "p.nc") as filled:
        assert np.array_equal(np.isnan(filled.t.values), lasting)


def test_coasts_are_filled_within_a_distance(tmp_path):
    land = globe_land()
    source = write_map(tmp_path / "sst.nc", land, "sst")
    cells = json.loads(
        dkrls("fill", source, "-o", tmp_path / "a.nc", *SMOOTH, "--within", "1", "--json").stdout
    )
    rim = land & (
        ~np.roll(land, 1, 1) | ~np.roll(land, -1, 1) | ~np.roll(land, 1, 0) | ~np.roll(land, -1, 0)
    )
    rim[0] = False  # rows before the first have no data
    with xr.open_dataset(tmp_path / "a.nc") as filled:
        assert np.array_equal(
            ~np.isnan(filled.sst.values) & land, rim & (np.arange(36) > 3)[:, None]
        )
    assert cells["filled"] == rim[4:].sum()
    beyond = "left beyond the data along lat"
    assert cells["left"] == {
        "left further than 1 cell from data": int(land.sum() - rim.sum()),
        beyond: int(rim[:4].sum()),
    }
    words = ("--within", "lat=5", "--within", "lon=10", "--mask", "always")
    both = json.loads(
        dkrls("fill", source, "-o", tmp_path / "b.nc", *SMOOTH, *words, "--json").stdout
    )
    assert both["filled"] == 0


def test_tables_have_coasts_as_well(tmp_path):
    rows = [f"{x},{d},{'' if 2 < x < 8 else x + d}" for x in range(12) for d in range(6)]
    source, out = tmp_path / "t.csv", tmp_path / "o.csv"
    source.write_text("x,day,t\n" + "\n".join(rows) + "\n")
    dkrls("fill", source, "-o", out, "--within", "x=2", "--sigma", "4", "--ridge", "1e-4")
    filled = list(csv.DictReader(out.read_text().splitlines()))
    assert {r["x"] for r in filled if not r["t"]} == {"5"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--within", "0"], "above 0"),
        (["--within", "1", "--within", "lat=2"], "DIM=1"),
        (["--within", "depth=2"], "no dimension 'depth'"),
        (["--within", "lat=2D"], "not a number"),
        (["--mask", "first", "--levels", "time,lat,lon"], "'lon' is a place"),
        (["--bounds", "0,10"], "lie outside, from 1"),
        (["--bounds", "10,0"], "below the other"),
        (["--bounds", "wide"], "Give two numbers"),
    ],
)
def test_distances_masks_and_bounds_that_cannot_be_are_refused(words, message, source, tmp_path):
    given = ("fill", source, "--var", "sst", "-o", tmp_path / "o.nc", *GIVEN)
    assert message in refusal(*given, *words, code=2)
    assert not list(tmp_path.iterdir())


def ice(tmp_path: Path, **attrs) -> tuple[Path, np.ndarray]:
    waves = np.clip(
        0.5 + np.add.outer(np.sin(np.arange(36) / 2), 1.2 * np.sin(np.arange(72) / 3)), 0, 1
    )
    missing = np.random.default_rng(3).random(waves.shape) < 0.3
    missing[0] = missing[-1] = False
    return write_map(tmp_path / "ice.nc", missing, "frac", attrs, waves), missing


def test_fractions_stay_fractions_by_their_standard_name(tmp_path):
    source, missing = ice(tmp_path, standard_name="cloud_area_fraction", units="1")
    given = ("fill", source, "--mask", "none", "--kernel", "gaussian", "--sigma", "10")
    given = (*given, "--ridge", "1e-4", "--std")
    result = dkrls(*given, "-o", tmp_path / "a.nc")
    assert (
        "Note: answers are kept between 0 and 1, as the standard name 'cloud_area_fraction' tells. "
        "--bounds none turns that off." in result.stderr
    )
    result = dkrls(*given, "-o", tmp_path / "b.nc", "--bounds", "none")
    assert "answers" not in result.stderr
    with xr.open_dataset(tmp_path / "a.nc") as kept, xr.open_dataset(tmp_path / "b.nc") as free:
        assert free.frac.values.min() < 0
        np.testing.assert_allclose(kept.frac, free.frac.clip(0, 1), atol=1e-12)
        assert (kept.frac_std.values <= free.frac_std.values + 1e-12).all()
        assert (kept.frac_std.values[missing] < free.frac_std.values[missing]).any()


def test_bounds_that_data_lies_outside_of_are_not_used(tmp_path):
    source, _ = ice(tmp_path, valid_max=0.5)
    words = ("--sigma", "10", "--ridge", "1e-3", "--mask", "none")
    result = dkrls("fill", source, "-o", tmp_path / "o.nc", *words)
    assert "Note: answers are not kept at or below 0.5, as valid_max tells: " in result.stderr
    assert "turns that off" not in result.stderr


# Tables come back as they were

WIDE = "year;Jan;Feb;Mar;Apr\n" + "".join(
    f"{1990 + y};{y + 0.5};{'NA' if y == 3 else f'{y + 1.0:.2f}'};{y + 1.5};{y + 2}\n"
    for y in (2, 0, 1, 3, 4, 5)
)


def test_an_output_that_exists_is_not_replaced(tmp_path: Path) -> None:
    (source := tmp_path / "w.csv").write_text(WIDE)
    assert "exists" in refusal("fill", source, "-o", source)
    assert source.read_text() == WIDE


def test_infinite_values_of_a_table_are_told(tmp_path: Path) -> None:
    (source := tmp_path / "w.csv").write_text(WIDE.replace("2.5", "inf"))
    told = dkrls("fit", source, "--dry-run", "--quiet").stderr
    assert told == ""
    assert "Note: Values taken as missing: 2 infinite." in dkrls("fit", source, "--dry-run").stderr


def test_the_length_of_a_gap_is_of_a_dimension_by_its_role(tmp_path: Path) -> None:
    source = write(tmp_path / "a.nc")
    told = [
        json.loads(
            dkrls("fill", source, "-o", tmp_path / f"{i}.nc", *GIVEN, *words, "--json").stdout
        )["left"]
        for i, words in enumerate(
            [
                ["--max-gap", "time=3D", "--max-gap", "lat=11"],
                ["--max-gap", "time=3D,latitude=11"],
            ]
        )
    ]
    assert told[0] == told[1]
    assert "left in gaps along lat" in told[0]
    line = refusal("fill", source, "-o", tmp_path / "o.nc", "--max-gap", "tme=3D", code=2)
    assert "no dimension 'tme'. The data has time, lat, lon. Did you mean 'time'?" in line


def test_a_copy_keeps_its_compression(tmp_path: Path) -> None:
    source = write(tmp_path / "a.nc", zlib=True, complevel=6, _FillValue=-9.0)
    line = refusal("fill", source, "-o", tmp_path / "b.nc", "--compress", "3", code=2)
    assert "--compress 3 does not apply" in line
    dkrls("fill", source, "-o", tmp_path / "b.nc", *GIVEN)
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        assert file["sst"].filters()["complevel"] == 6
    dkrls("fill", source, "-o", tmp_path / "b.zarr", "--compress", "3", *GIVEN)
    assert zarr.open_group(tmp_path / "b.zarr")["sst"].metadata.compressor.clevel == 3
    line = refusal("fill", source, "-o", tmp_path / "b.csv", "--compress", "3", code=2)
    assert "is for NetCDF and Zarr" in line


def test_gaps_are_measured_in_months(tmp_path: Path) -> None:
    """75 days are 2.46 months: observed cells may be two months apart, not three."""
    times = np.arange(24.0) + 0.5
    values = np.multiply.outer(np.sin(times / 3), np.cos(LAT / 30)) + 5
    values[5, 2] = values[12:14, 4] = np.nan
    attrs = {"units": "months since 1960-01-01"}
    variables = {
        "time": (("time",), times, attrs),
        "lat": (("lat",), LAT, {"units": "degrees_north"}),
        "t": (("time", "lat"), values, {"_FillValue": np.nan}),
    }
    source = netcdf(tmp_path / "a.nc", variables)
    words = ("--sigma", "time=3", "--sigma", "lat=20", "--ridge", "1e-5")
    dkrls("fill", source, "-o", tmp_path / "b.nc", "--max-gap", "time=75D", *words)
    with xr.open_dataset(tmp_path / "b.nc", decode_times=False) as filled:
        assert np.isfinite(filled.t.values[5, 2])
        assert np.isnan(filled.t.values[12:14, 4]).all()
        assert filled.time.attrs["units"] == "months since 1960-01-01"
        np.testing.assert_array_equal(filled.time, times)
