"""``dkrls check``: flags of cells, rows, and the grid without them."""

import json
from unittest import mock

import netCDF4
import numpy as np
import pytest
import xarray as xr
from shell import dkrls


def field(times=30, places=10):
    rng = np.random.default_rng(0)
    t, x = np.arange(times)[:, None], np.arange(places)
    return np.round(15 + 4 * np.sin(t / 5 + x / 6) + 0.1 * rng.normal(size=(times, places)), 4)


def dataset(values, name="heat"):
    time = np.datetime64("2020-01-01") + np.arange(len(values))
    coords = {"time": time, "lat": 5.0 * np.arange(values.shape[1])}
    array = xr.DataArray(values, coords, ("time", "lat"), name=name, attrs={"units": "degC"})
    return array.to_dataset()


@pytest.fixture
def grid(tmp_path):
    values = field()
    values[7, 3] += 5
    values[20, 6] -= 5
    values[2, 2] = np.nan
    dataset(values).to_netcdf(tmp_path / "a.nc")
    return tmp_path / "a.nc"


def test_flagged_cells_are_rows_on_stdout(grid):
    done = dkrls("check", grid)
    header, *rows = done.stdout.splitlines()
    assert header == "time,lat,value,expected,std,z,kind,hint"
    assert [row.split(",")[:2] for row in rows] == [["2020-01-08", "15.0"], ["2020-01-21", "30.0"]]
    assert rows[0].split(",")[6] == "spike"
    assert "heat: 2 of 299 cells flagged (2 spike)" in done.stderr
    lines = dkrls("check", grid, "--format", "jsonl", "-q")
    assert lines.stderr == ""
    first = json.loads(lines.stdout.splitlines()[0])
    assert first["time"] == "2020-01-08"
    assert first["lat"] == 15.0
    assert first["z"] > 10
    assert first["hint"] == ""


def test_a_summary_is_one_json_object(grid):
    found = json.loads(dkrls("check", grid, "--json").stdout)
    assert found["flagged"] == 2
    assert found["observed"] == 299
    assert found["kinds"] == {"spike": 2}
    assert found["share"] == pytest.approx(2 / 299)
    assert set(found["predictor"]) <= {"time", "lat"}


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_flags_of_all_cells_are_a_cf_variable(grid, tmp_path, ending):
    target = tmp_path / f"flags.{ending}"
    done = dkrls("check", grid, "-o", target)
    assert "2 of 299 cells" in done.stdout
    with xr.open_dataset(target) as found:
        assert found.heat.attrs["ancillary_variables"] == "heat_flag"
        flags = found.heat_flag
        assert flags.dtype == np.int8
        assert flags.dims == ("time", "lat")
        assert flags.attrs["standard_name"] == "quality_flag"
        assert flags.attrs["flag_meanings"].split()[1] == "spike"
        assert list(flags.attrs["flag_values"]) == [0, 1, 2, 3, 4, 5, 6, 9]
        assert np.argwhere(flags.values == 1).tolist() == [[7, 3], [20, 6]]
        assert int(flags[2, 2]) == 9
        assert "check" in found.attrs["history"]
    dkrls("check", grid, "-o", target, code=1)
    dkrls("check", grid, "-o", target, "--overwrite")


def test_the_grid_without_flagged_cells_is_a_copy_of_the_file(grid, tmp_path):
    with netCDF4.Dataset(grid, "r+") as file:
        packed = file.createVariable("other", "i2", ("lat",))
        packed[:] = 7
    clean = tmp_path / "clean.nc"
    dkrls("check", grid, "--var", "heat", "--mask-out", clean, "-q")
    with xr.open_dataset(grid) as before, xr.open_dataset(clean) as after:
        gone = np.isnan(after.heat.values) & ~np.isnan(before.heat.values)
        assert np.argwhere(gone).tolist() == [[7, 3], [20, 6]]
        kept = ~np.isnan(after.heat.values)
        np.testing.assert_array_equal(after.heat.values[kept], before.heat.values[kept])
        np.testing.assert_array_equal(after.other, 7)


def test_packed_cells_get_the_mark_of_missing_ones(tmp_path):
    data = dataset(np.round(np.where(np.eye(30, 10, -7) > 0, 60.0, field()), 1))
    packing = {"dtype": "int16", "scale_factor": 0.1, "_FillValue": np.int16(-99)}
    data.to_netcdf(tmp_path / "a.nc", encoding={"heat": packing})
    dkrls("check", tmp_path / "a.nc", "--mask-out", tmp_path / "b.nc", "-q")
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        file["heat"].set_auto_maskandscale(False)
        assert (file["heat"][:] == -99).sum() >= 9


def test_tables_are_checked_and_masked(tmp_path):
    values = field()
    values[7, 3] += 5
    names = [f"s{i}" for i in range(10)]
    wide = ["time," + ",".join(names)]
    wide += [f"2020-01-{t + 1:02},{','.join(map(str, row))}" for t, row in enumerate(values)]
    (tmp_path / "wide.csv").write_text("\n".join(wide) + "\n")
    done = dkrls("check", tmp_path / "wide.csv", "--levels", "time,sensor", "--mask-out",
                 tmp_path / "clean.csv")  # fmt: skip
    assert "2020-01-08,s3," in done.stdout
    lines = (tmp_path / "clean.csv").read_text().splitlines()
    assert lines[8].split(",")[4] == ""
    assert lines[7] == wide[7]
    long = ["time,sensor,heat"]
    long += [f"{t},{x},{values[t, x]}" for t in range(30) for x in range(10)]
    rows = dkrls("check", "-", stdin="\n".join(long) + "\n", code=0).stdout.splitlines()
    assert rows[1].startswith("7,3,")


def test_several_variables_are_told_apart(tmp_path):
    one, other = field(), field()
    one[4, 4] += 6
    other[9, 2] -= 6
    both = dataset(one).merge(dataset(other, "cold"))
    both.to_netcdf(tmp_path / "a.nc")
    rows = dkrls("check", tmp_path / "a.nc", "--var", "all").stdout.splitlines()
    assert rows[0].startswith("variable,time,lat,")
    assert sorted(row.split(",")[0] for row in rows[1:]) == ["cold", "heat"]
    found = json.loads(dkrls("check", tmp_path / "a.nc", "--var", "all", "--json").stdout)
    assert [one["flagged"] for one in found["variables"]] == [1, 1]
    dkrls("check", tmp_path / "a.nc", "--var", "all", "-o", tmp_path / "f.nc", "-q")
    with xr.open_dataset(tmp_path / "f.nc") as flags:
        assert {"heat_flag", "cold_flag"} <= set(flags)


def test_new_slices_are_checked_against_a_model(tmp_path):
    values = field(40)
    dataset(values[:30]).to_netcdf(tmp_path / "old.nc")
    values[33, 5] += 6
    dataset(values)["heat"][30:].to_dataset().to_netcdf(tmp_path / "new.nc")
    given = ["--kernel", "matern32", "--sigma", "time=10,lat=30", "--ridge", "1e-3"]
    dkrls("fit", tmp_path / "old.nc", *given, "-o", tmp_path / "m.npz", "-q")
    rows = dkrls("check", tmp_path / "m.npz", tmp_path / "new.nc").stdout.splitlines()
    assert [row.split(",")[:2] for row in rows[1:]] == [["2020-02-03", "25.0"]]
    for words, message in [
        (["--sigma", "3"], "--sigma is for a grid"),
        (["--mask-out", tmp_path / "x.nc"], "--mask-out is for a grid"),
        (["--var", "cold"], "no variable cold"),
    ]:
        done = dkrls("check", tmp_path / "m.npz", tmp_path / "new.nc", *words, code=2)
        assert message in done.stderr
    assert "Give new slices" in dkrls("check", tmp_path / "m.npz", code=2).stderr


def test_many_flagged_cells_can_fail_the_command(grid):
    dkrls("check", grid, "--fail-above", "0.001", "-q", code=3)
    dkrls("check", grid, "--fail-above", "0.01", "-q")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--false-alarm", "0.7"], 2, "false-alarm rate 0.7"),
        (["--max-memory", "1MB"], 1, "more than the 1 MB of --max-memory"),
        (["--kernel", "gauss"], 2, "Unknown kernel"),
        (["-o", "flags.xyz"], 2, "format of 'flags.xyz' is not known"),
        (["--mask-out", "-"], 2, "cannot be written as a grid"),
        (["other.nc"], 2, "the first is no model"),
    ],
)
def test_what_cannot_be_is_refused(grid, words, code, message):
    assert message in dkrls("check", grid, *words, code=code).stderr


def test_a_robust_fit_tells_what_it_did_without(grid, tmp_path):
    given = ["--kernel", "matern32", "--sigma", "time=10,lat=30", "--ridge", "1e-3"]
    done = dkrls("fit", grid, *given, "--robust", "-o", tmp_path / "m.npz")
    assert "2 cells, 0.669 %: 2 spike" in done.stdout
    assert "2 spike" in dkrls("info", tmp_path / "m.npz").stdout
    assert "2 spike" in dkrls("fill", grid, *given, "--robust", "-o", tmp_path / "f.nc").stdout
    new = ["update", tmp_path / "m.npz", grid, "--robust"]
    assert "--robust" in dkrls(*new, code=2).stderr


def test_a_robust_fit_counts_the_memory_of_its_check(grid, tmp_path):
    small = ["-o", tmp_path / "m.npz", "--kernel", "matern32", "--sigma", "3", "--ridge", "0.1"]
    with mock.patch("dkrls_cli.model.quality.check.check_memory", lambda cells: 10**18 + cells):
        dkrls("fit", grid, *small, "-q")
        done = dkrls("fit", grid, *small, "--robust", "--overwrite", code=1)
    assert "Checking time 30 x lat 10 needs about" in done.stderr
